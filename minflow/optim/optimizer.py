"""Optimizer: parameters in groups, their state, and the step.

A subclass names its hyperparameters, the state of a parameter, and the op that updates it; `step` runs that op through
the current mode, so that a trace records the same program that eager mode runs. A subclass that writes `step()` in
Python, as in PyTorch, runs only eagerly.
Read next: `sgd.py`, `adam.py`; `lr_scheduler/` changes `group["lr"]`.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from copy import deepcopy
from types import FunctionType
from typing import Any, TypeVar

from ..core.backend import full, namespace
from ..core.base import events
from ..core.base.errors import CallError, GraphError, OptimError, StateError, clean, with_article
from ..core.context import current_context
from ..core.functionalize import is_writable
from ..core.grad.hooks import Handle, check_callable, refuse as refuse_hook
from ..core.grad.modes import enable_grad, no_grad, set_grad_enabled
from ..core.host.float_warnings import silent
from ..core.messages.training_warnings import check_gradients, check_state, defer_gradient_check
from ..core.mode import MODE, bump_mutations, mutation_counter, using
from ..core.op import Op
from ..core.ops.complex import view_as_real
from ..core.sharding import local_spec
from ..core.source_location import NOTICES, describe, fail, warn
from ..core.spec import Device, Spec, cpu, float32
from ..core.tensor import Tensor
from ..nn.loading import MAX_COUNT, Refused, Writes, array_of, as_refusal, plain_data, refuse, tensor_of, write
from ..nn.utils.clip_grad import clip_grad_norm_
from .groups import Group, Params, as_groups, as_number, check_flags, check_kinds, check_range, group_members
from .untracked_params import check_untracked

Function = TypeVar("Function", bound=Callable)  # a decorator returns a function of the same signature

# hyperparameters that states of PyTorch (or of older versions) lack
OPTIONAL_IN_STATE = ("do_bias_correction", "maximize", "decoupled_weight_decay")
FOREIGN_HYPERPARAMETERS = (
    "params",
    "param_names",
    "foreach",
    "capturable",
    "differentiable",
    "fused",
    "decoupled_weight_decay",
    "initial_lr",
    "max_lr",
    "min_lr",
    "max_momentum",
    "base_momentum",
    "clip_grad_max_norm",
    "clip_grad_norm_type",
    *OPTIONAL_IN_STATE,
)
# arguments of optimizers that are not hyperparameters; from the fourth on accepted and ignored
OTHER_ARGUMENTS = (
    "self",
    "__class__",
    "params",
    "contiguous_params",
    "foreach",
    "fused",
    "capturable",
    "differentiable",
)
CUSTOM_STEP = "its step() is a program of its own"
MAX_IDLE_STEPS = 10  # consecutive steps without any gradient before a warning
# elements: a larger gradient is checked every fourth step; if it is not finite, the next loss is not either
LARGE_GRADIENT = 65_536


class Required:
    """Default that marks a hyperparameter as required, as in PyTorch: `def __init__(self, params, lr=required)`."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = Required()


def rate_of(optimizer: Optimizer, group: Mapping[str, Any]) -> float:
    """Return the current learning rate of the group, which users may have set."""
    rate = group.get("lr")
    try:
        return float(rate)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        name = type(optimizer).__name__
        what = f"{name}: the learning rate of a group must be a number, got {rate!r}"
        fail(OptimError, what, 'group["lr"] = 0.1', lr=rate)


def hyperparameters(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Select the hyperparameters (name -> value) from the `locals()` of an optimizer's `__init__`."""
    return {name: value for name, value in arguments.items() if name not in OTHER_ARGUMENTS}


def with_defaults(init: Function, **defaults: Any) -> Function:
    """Copy a function with other defaults, for an optimizer that differs from its base class only in them."""
    kept = {name: p.default for name, p in inspect.signature(init).parameters.items() if p.default is not p.empty}
    values = tuple((kept | defaults).values())
    function: Any = init
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, values, function.__closure__)
    twin.__annotations__ = function.__annotations__
    return twin  # type: ignore[return-value]  # it has the same signature


# hooks before and after the step of every optimizer
STEP_HOOKS: tuple[OrderedDict, OrderedDict] = OrderedDict(), OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable) -> Handle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer, and before its own hooks."""
    return add_hook(STEP_HOOKS[0], hook)


def register_optimizer_step_post_hook(hook: Callable) -> Handle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer, and after its own hooks."""
    return add_hook(STEP_HOOKS[1], hook)


# names that optimizers written for PyTorch import
_RequiredParameter, ParamsT, params_t = Required, Params, Params


def _use_grad_for_differentiable(step: Function) -> Function:
    """Decorator of a custom step(): without gradients, unless the optimizer was made with differentiable=True."""

    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)

    return wrapped  # type: ignore[return-value]  # `wraps` keeps the signature


def _get_value(x: Any) -> Any:
    """The number in a tensor; a number unchanged."""
    return x.item() if isinstance(x, Tensor) else x


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """(fused, foreach): False, since one op updates each parameter."""
    return False, False


STEP_CALL = "hook(optimizer, args, kwargs)"


def add_hook(hooks: OrderedDict[int, Callable], hook: Callable, call: str = STEP_CALL, prepend: bool = False) -> Handle:
    """Add a hook and return a handle that removes it. call: the hook's signature, for the error."""
    check_callable(hook, call, OptimError)
    handle = Handle(hooks)
    hooks[handle.number] = hook
    if prepend:
        hooks.move_to_end(handle.number, last=False)
    bump_mutations()
    return handle


def with_step_hooks(step: Function) -> Function:
    """Wrap `step` in the hooks of its optimizer. Nested calls do not run them again: a custom `step()` may call
    super().step().
    """

    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._in_step:
            return step(self, *args, **kwargs)
        mode, before, (pre_hooks, post_hooks) = MODE.get(), self._steps_taken, self._step_hooks()
        if mode.trace is not None and (pre_hooks or post_hooks or not self._traceable):
            self._refuse_trace("it has step hooks" if self._traceable else CUSTOM_STEP)
        for hook in pre_hooks:
            if (changed := hook(self, args, kwargs)) is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    what = f"must return (args, kwargs) or None, got {with_article(changed)}"
                    refuse_hook(OptimError, hook, what, "return args, kwargs", {"returned": describe(changed)})
                args, kwargs = changed
        self._in_step = True
        try:
            result = step(self, *args, **kwargs)
        finally:
            self._in_step = False
        if not self._traceable and self._steps_taken == before:
            self._last_backwards = mutation_counter.backwards
            self._count_step()
        for hook in post_hooks:
            hook(self, args, kwargs)
        return result

    return wrapped  # type: ignore[return-value]  # `wraps` keeps the signature


LAZY_ATTRIBUTES: dict[str, Callable[[], Any]] = {
    "_optimizer_step_pre_hooks": OrderedDict,
    "_optimizer_step_post_hooks": OrderedDict,
    "_state_hooks": functools.partial(defaultdict, OrderedDict),
    "_untracked": dict,
    "_steps_taken": int,
}


class Optimizer:
    """Base class of all optimizers.

    params: tensors, `(name, tensor)` pairs, or dicts `{"params": tensors, "lr": 0.1, ...}`, one for each group.
    defaults: the hyperparameters of groups that do not set their own.
    A group may have `clip_grad_max_norm` (and `clip_grad_norm_type`, default 2), for `clip_grad()`.

    Attributes: `param_groups`, a list of dicts; `state`, parameter -> dict of tensors, empty before the first step;
    `defaults`.

    A custom optimizer defines `_state_names` and `_update_rule` (see CONTRIBUTING.md), and then also runs in graphs, or
    it defines `step()` over `p.grad` and `self.state[p]` as in PyTorch. The latter runs only eagerly; the error of a
    graph names it.
    """

    _in_step = False  # True during a step()
    _steps_taken: int  # number of steps since this object was created
    _optimizer_step_pre_hooks: OrderedDict[int, Callable]
    _optimizer_step_post_hooks: OrderedDict[int, Callable]
    _state_hooks: defaultdict[str, OrderedDict[int, Callable]]
    _untracked: dict[frozenset, list[int]]  # sets of untracked parameters -> steps in which they had gradients

    # consecutive steps without a gradient; initialized so that a new optimizer warns at the second one
    _idle_steps = MAX_IDLE_STEPS - 2
    _last_backwards = 0  # number of backward() calls at the last step
    _non_negative: tuple[str, ...] = ("lr",)  # names of hyperparameters that are refused below 0
    _scalar_states: tuple[str, ...] = ()  # names of states that are one float32 element per parameter, as in PyTorch

    def __init__(self, params: Params, defaults: Mapping[str, Any]):
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for group in as_groups(params, type(self).__name__):
            self.add_param_group(group)
        check_state().optimizers.add(self)

    def __getattr__(self, name: str) -> Any:
        """Create an attribute of LAZY_ATTRIBUTES: a wrapper of an optimizer may not call Optimizer.__init__."""
        if name not in LAZY_ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = self.__dict__[name] = LAZY_ATTRIBUTES[name]()
        return value

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_init_group" in cls.__dict__ and "step" not in cls.__dict__:
            fail(
                OptimError,
                f"{cls.__name__} defines _init_group, and its step() does not call it",
                "def step(self, closure=None): ... beside it; or _state_names(group), the state that a parameter needs",
                method=cls.__dict__["_init_group"],
            )
        if "step" in cls.__dict__:
            cls.step = with_step_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore attributes from a copy, a pickle or a loaded state. A class may override it to fill in entries that
        older states lack.
        """
        self.__dict__.update(state)

    @property
    def _has_custom_load(self) -> bool:
        """True if hooks, or a method of the class, take part in load_state_dict."""
        return any(self._state_hooks.values()) or type(self).__setstate__ is not Optimizer.__setstate__

    # ---- for subclasses ------------------------------------------------------------------------------------

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        """Refuse hyperparameters outside their range: by default, those in `non_negative` if they are below 0."""
        for name in self._non_negative:
            if name in group:
                check_range(type(self).__name__, group, name)

    def _check_group(self, group: Mapping[str, Any]) -> None:
        """Refuse a group that cannot take a step."""
        owner = type(self).__name__
        check_flags(type(self), group)
        check_kinds(owner, group, self.defaults)
        self._check_hyperparameters(group)
        for name in ("initial_lr", "clip_grad_max_norm"):
            if group.get(name) is not None:
                check_range(owner, group, name)
        if group.get("clip_grad_norm_type") is not None:
            as_number(owner, "clip_grad_norm_type", group["clip_grad_norm_type"])

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the state of a parameter in this group, in the order of the op's inputs and outputs."""
        return ()

    def _initial_value(self, name: str, group: Mapping[str, Any]) -> float:
        """Return the number that fills the state `name` before the first step."""
        return 0.0

    @property
    def _traceable(self) -> bool:
        """True if the step is a rule, which a graph can record."""
        return type(self)._update_rule is not Optimizer._update_rule

    def _refuse_trace(self, why: str = CUSTOM_STEP) -> None:
        """Raise the GraphError for an optimizer that cannot be part of a graph."""
        name = type(self).__name__
        fail(
            GraphError,
            f"{name} cannot be part of a graph: {why}, which a graph would not run at each call",
            "train eagerly: loss.backward(), optimizer.step(); or give the optimizer a rule (CONTRIBUTING.md, "
            '"Add an optimizer")',
            optimizer=name,
        )

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        """Return the op `(p, grad, *state, lr; attrs) -> p, *state` of this group, and its attrs."""
        what = f"{type(self).__name__} has no rule"
        fail(OptimError, what, "def _update_rule(self, group): return op, attrs; or override step()")

    def _cuda_graph_capture_health_check(self) -> None:
        """Do nothing; a custom step() copied from PyTorch calls it."""

    def _check_closure(self, closure: Any) -> None:
        """Refuse a closure that cannot be called, such as a learning rate."""
        if not callable(closure):
            what = f"{type(self).__name__}.step takes a function that computes the loss, or nothing"
            hint = f"optimizer.step(); the learning rate belongs to {type(self).__name__}(model.parameters(), lr=...)"
            fail(CallError, what, hint, closure=closure)

    # ---- the step ------------------------------------------------------------------------------------------------

    @with_step_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in place.

        closure: recomputes the loss (zero_grad, forward, backward) and returns it; step() then returns that loss.
        """
        loss = None
        if (mode := MODE.get()).watch is not None and mode.origin is None:
            mode.watch.refuse_step(self, "step")
        if closure is not None:
            self._check_closure(closure)
            with enable_grad():
                loss = closure()
        mode = MODE.get().replace(grad=False)
        mode.before_step(self)
        has_gradients, total, looked = False, 0.0, NOTICES.on and mode.trace is None and mode.reports_mistakes()
        vdot = namespace().vdot
        elsewhere: dict[Device, list] = {}  # device other than the CPU -> parameters and gradients
        with using(mode):
            for group in self.param_groups:
                with_gradient = [(p, g) for p in group["params"] if (g := p.grad) is not None]
                if not with_gradient:
                    continue
                has_gradients = True
                op, attrs = self._update_rule(group)
                together: dict[Device, list] = {}  # (targets, inputs) of the rule
                names, lr = self._state_names(group), mode.scalar(lambda group=group: rate_of(self, group))
                for p, g in with_gradient:
                    if g._accumulated_after_step:
                        self._warn_mixed(p)
                    g._used_by_step = True
                    if looked and g.spec.device is not cpu:
                        if not self._steps_taken & 3:
                            elsewhere.setdefault(g.spec.device, []).append((p, g))
                    elif looked and (g.spec.size <= LARGE_GRADIENT or not self._steps_taken & 3):
                        total += float(abs(vdot(g.array, g.array)))
                    state = self._state_of(p, group) if names else {}
                    held = [state[name] for name in names]
                    if p.spec.dtype.is_complex:  # a rule updates the two parts as numbers of their own
                        p, g, *held = [view_as_real(t) if t.spec.dtype.is_complex else t for t in (p, g, *held)]
                    if mode.trace is not None:
                        mode.update(op, [p, *held], [p, g, *held, lr], attrs)
                    else:
                        together.setdefault(g.spec.device, []).append(([p, *held], [p, g, *held, lr]))
                for calls in together.values():
                    mode.update_all(op, calls, attrs)
        if not mode.trace:
            self._idle_steps = 0 if has_gradients else self._idle_steps + 1
            if self._idle_steps == MAX_IDLE_STEPS:
                self._check_idle()
            self._last_backwards = mutation_counter.backwards
            if not math.isfinite(total):
                check_gradients(self, [(p, g) for p in self._all_parameters() if (g := p.grad) is not None])
            for pairs in elsewhere.values():
                defer_gradient_check(self, pairs)
            if check_state().untracked:
                check_untracked(self)
            self._count_step()
        return loss

    def _count_step(self) -> None:
        """Count a step; compiled steps call it too."""
        self._steps_taken += 1
        if MODE.get().has_listeners(events.StepDone):
            events.emit(events.StepDone(self, self._steps_taken, self._learning_rates()))

    def _learning_rates(self) -> tuple[float, ...]:
        """The learning rate of each group."""
        return tuple([rate_of(self, group) for group in self.param_groups if "lr" in group])

    def _warn_mixed(self, p: Tensor) -> None:
        """Warn that a step reuses the gradient of an earlier step, to which another backward() has added."""
        warn(
            f"{type(self).__name__}.step: a step has used this gradient already, "
            "and then backward() added a further one to it",
            "optimizer.zero_grad() before each backward(); if the sum is wanted, silence this by "
            'warnings.filterwarnings("ignore", category=flow.MinflowWarning)',
            parameter=p,
        )

    def _check_idle(self) -> None:
        """Warn if consecutive steps find no gradient: backward() was forgotten, or reaches other parameters.

        One such step may be intentional, as may several if parameters are frozen or are updated every few steps, or
        many that only advance a scheduler to plot its rates, without any backward().
        """
        wanted = [p for p in self._all_parameters() if p.requires_grad]
        scheduled = any("initial_lr" in group for group in self.param_groups)
        if not wanted or (scheduled and self._last_backwards == mutation_counter.backwards):
            return
        name = type(self).__name__
        warn(
            f"{name}.step: none of its {len(wanted)} parameters has a gradient, in this step and those before it, "
            "so nothing changes",
            "loss.backward() before each step(); and an optimizer of the model that gives the loss, "
            f"made after the model: flow.optim.{name}(model.parameters(), ...)",
            first=wanted[0],
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters to None, or with set_to_none=False to zeros."""
        if (mode := MODE.get()).watch is not None:
            mode.watch.refuse_step(self, "zero_grad")
        mode.before_step(self)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    g = p.grad
                    if g is None:
                        continue
                    if set_to_none or g._value is not None:  # a gradient on the tape is not overwritten
                        p.grad = None if set_to_none else g.new_zeros(g.shape)
                    else:
                        g.zero_()
                        g._used_by_step = g._accumulated_after_step = False

    def clip_grad(self, error_if_nonfinite: bool = False) -> None:
        """Clip the total norm of the gradients of each group that has `clip_grad_max_norm`."""
        for group in self.param_groups:
            if group.get("clip_grad_max_norm") is not None:
                order = group.get("clip_grad_norm_type", 2.0)
                clip_grad_norm_(
                    group["params"], group["clip_grad_max_norm"], 2.0 if order is None else order, error_if_nonfinite
                )

    # ---- state ---------------------------------------------------------------------------------------------------

    def _state_of(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the state of p, a member of `group`; create it if missing."""
        state = self.state[p]
        for name in self._state_names(group):
            if name not in state:
                spec = Spec((), float32) if name in self._scalar_states else p.spec  # rules read numbers on the host
                part, value = local_spec(spec, current_context().rank), self._initial_value(name, group)
                state[name] = Tensor(full(part, complex(value, value) if spec.dtype.is_complex else value), spec)
                bump_mutations()
        return state

    def _create_states(self) -> None:
        """Create the state of every parameter that requires a gradient before the first step, for tracing."""
        if not self._traceable:
            self._refuse_trace()
        for group in self.param_groups:
            names = self._state_names(group)
            for p in group["params"]:
                if names and p.requires_grad:
                    self._state_of(p, group)

    def _fingerprint(self) -> tuple:
        """Key of the values that are compiled into a step."""
        return tuple([group.fingerprint() for group in self.param_groups])

    # ---- hooks ---------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> Handle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs) for the step."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> Handle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def _step_hooks(self) -> tuple[list[Callable], list[Callable]]:
        """The hooks that run before a step, and those that run after it, in order."""
        before, after = STEP_HOOKS
        own_before, own_after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        return [*before.values(), *own_before.values()], [*own_after.values(), *after.values()]

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` before state_dict()."""
        return add_hook(self._state_hooks["before"], hook, "hook(optimizer)", prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` with the result of state_dict(); a dict that it returns replaces it."""
        return add_hook(self._state_hooks["after"], hook, "hook(optimizer, state_dict)", prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` before loading, with a copy; a dict that it returns is loaded instead."""
        return add_hook(self._state_hooks["load_before"], hook, "hook(optimizer, state_dict)", prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` after a state is loaded."""
        return add_hook(self._state_hooks["load_after"], hook, "hook(optimizer)", prepend)

    # ---- groups --------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group: `{"params": tensors}` and the hyperparameters that differ from the defaults."""
        owner = type(self).__name__
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            what = f"{owner}: a parameter group is a dict with the key 'params'"
            fail(OptimError, what, '{"params": layer.parameters(), "lr": 0.1}', group=param_group)
        params, param_names = group_members(param_group["params"], owner)
        if param_names is not None and len(set(param_names)) < len(param_names):
            what = f"{owner}: two parameters of a group have one name"
            fail(OptimError, what, "names that differ", names=param_names)
        known = {id(p): i for i, group in enumerate(self.param_groups) for p in group["params"]}
        seen: dict[int, int] = {}
        for i, p in enumerate(params):
            if id(p) in known or id(p) in seen:
                first = f"group {known[id(p)]}" if id(p) in known else f"position {seen[id(p)]} of the same group"
                fail(
                    OptimError,
                    f"{owner}: parameter {i} of group {len(self.param_groups)} is in {first} already, "
                    "so it would be updated twice",
                    "each parameter once: list(dict.fromkeys(parameters))",
                    parameter=p,
                )
            seen[id(p)] = i
        passed = {k: v for k, v in param_group.items() if k != "params"}
        group = Group({**passed, **{k: v for k, v in self.defaults.items() if k not in passed}})
        if param_names is not None:
            group["param_names"] = param_names
        group["params"] = params
        if absent := [name for name, value in group.items() if value is required]:
            what = f"{owner}: group {len(self.param_groups)} has no {absent[0]}, which has no default"
            fail(OptimError, what, f"{owner}(params, {absent[0]}=...)", group=list(group))
        self._check_group(group)
        self.param_groups.append(group)
        for p in params:
            p._has_optimizer = True
        bump_mutations()

    # ---- saving and loading --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """`{"state": {index: {name: tensor}}, "param_groups": [{..., "params": [index, ...]}]}`, as in PyTorch.

        The index of a parameter is its position among all parameters, group by group. The tensors share their storage
        with the optimizer's.
        """
        for hook in list(self._state_hooks["before"].values()):
            hook(self)
        return self._run_state_hooks("after", self._state_dict_without_hooks())

    def _run_state_hooks(self, kind: str, state: Any) -> Any:
        """Apply the hooks of one kind to a state, each of which may change it or return a replacement."""
        for hook in list(self._state_hooks[kind].values()):
            if (changed := hook(self, state)) is not None:
                if not isinstance(changed, Mapping):
                    what = f"must return a dict or None, got {with_article(changed)}"
                    hint = "change the dict inside the hook"
                    refuse_hook(StateError, hook, what, hint, {"returned": describe(changed)})
                state = changed
        return state

    def _state_dict_without_hooks(self) -> dict[str, Any]:
        """Return the state_dict, before its hooks run."""
        numbers = {id(p): i for i, p in enumerate(self._all_parameters())}
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]
        state = {
            numbers[id(p)] if isinstance(p, Tensor) else p: dict(s) if isinstance(s, Mapping) else s
            for p, s in self.state.items()
            if not isinstance(p, Tensor) or id(p) in numbers
        }
        return {"state": state, "param_groups": groups}

    def _all_parameters(self) -> list[Tensor]:
        """All parameters, group by group."""
        return [p for group in self.param_groups for p in group["params"]]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a `state_dict()` of minflow or PyTorch: all of it, or raise a StateError and change nothing."""
        if isinstance(state_dict, Mapping):
            state_dict = self._run_state_hooks("load_before", dict(state_dict))
        write(self._checked_state(state_dict))
        if type(self).__setstate__ is not Optimizer.__setstate__:
            self.__setstate__({"state": self.state, "param_groups": self.param_groups})
        for hook in list(self._state_hooks["load_after"].values()):
            hook(self)

    def _checked_state(self, state_dict: Mapping[str, Any]) -> Writes:
        """Return the writes that loading would perform; see `../nn/loading.py`."""
        owner = type(self).__name__
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            what = "state_dict must be a dict with 'state' and 'param_groups'"
            hint = "optimizer.load_state_dict(other.state_dict()); a model's state goes into model.load_state_dict"
            refuse(owner, what, hint, keys=list(state_dict)[:6] if isinstance(state_dict, Mapping) else state_dict)
        passed, states = state_dict["param_groups"], state_dict["state"]
        self._check_listing(passed, states)
        groups = [self._checked_group(i, group) for i, group in enumerate(passed)]
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        copies: list[tuple[Tensor, Tensor]] = []
        if not self._traceable:  # entries of a custom step() under keys other than parameters
            state.update({key: self._copy_data(held) for key, held in states.items() if not isinstance(key, int)})
        places = [(n, group) for saved, group in zip(passed, groups) for n in saved["params"]]
        for (n, group), p in zip(places, self._all_parameters()):
            if not self._traceable:
                if n in states:
                    state[p] = self._convert_custom_state(p, states[n])
                continue
            for name, value in self._convert_state(n, p, group, states.get(n, {})):
                held = self.state.get(p, {}).get(name)
                if isinstance(held, Tensor) and held.spec is value.spec and is_writable(held):
                    copies.append((held, value))  # a compiled step knows the storage
                state[p][name] = held if copies and copies[-1][0] is held else value

        def take() -> None:
            bump_mutations()  # comes first, so that an interrupt cannot hide the change from the next call of a graph
            with no_grad():
                for held, value in copies:
                    held.copy_(value)
            self.state = state
            for mine, new in zip(self.param_groups, groups):
                mine.update(new)

        return [take]

    def _check_listing(self, passed: Any, states: Any) -> None:
        """Refuse a state whose groups differ from this optimizer's, before its contents are examined."""
        owner = type(self).__name__
        if not isinstance(passed, list | tuple) or not all(
            isinstance(g, Mapping) and isinstance(g.get("params"), list | tuple) for g in passed
        ):
            what = "'param_groups' is not a list of dicts with 'params'"
            refuse(owner, what, "the result of an optimizer's state_dict()", param_groups=passed)
        mine, theirs = [len(g["params"]) for g in self.param_groups], [len(g["params"]) for g in passed]
        if mine != theirs:
            what = f"the groups hold {theirs} parameters, this optimizer's hold {mine}"
            refuse(owner, what, "create the optimizer with the groups with which it was saved", saved=theirs, here=mine)
        numbers = [n for g in passed for n in g["params"]]
        if not all(type(n) is int for n in numbers) or len(set(numbers)) < len(numbers):
            what = "the parameters of its groups are not indices, each of them once"
            refuse(owner, what, "the result of an optimizer's state_dict()", params=numbers[:20])
        # a custom step() may keep other entries under keys that are not parameters
        entries = list(states.items()) if isinstance(states, Mapping) else [(0, None)]
        if not all(isinstance(held, Mapping) for key, held in entries if self._traceable or isinstance(key, int)):
            refuse(owner, "'state' is not a dict of dicts", "the result of an optimizer's state_dict()", state=states)
        if self._traceable and (unknown := [n for n in states if n not in set(numbers)]):
            what = f"it has a state for {unknown[0]!r}, which is not a parameter of its groups"
            hint = "the result of an optimizer's state_dict()"
            refuse(owner, what, hint, parameters=numbers[:20], unknown=unknown[:20])

    def _checked_group(self, i: int, passed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the hyperparameters after loading. Missing ones stay, except `lr`; new ones must be plain data."""
        owner, mine = type(self).__name__, self.param_groups[i]
        new: dict[str, Any] = {}
        for name, value in passed.items():
            try:
                if not isinstance(name, str):
                    raise Refused("the name is not a string")
                if name != "params":
                    new[name] = self._copy_data(value)
            except Refused as reason:
                refuse(owner, f"{name!r} of group {i} cannot be loaded: {reason}", "data only", group=i)
        missing = [name for name in self.defaults if name not in new and name not in OPTIONAL_IN_STATE]
        strange = [name for name in new if name not in mine and name not in FOREIGN_HYPERPARAMETERS]
        if "lr" in missing or (missing and strange):
            what = f"group {i} has no {missing[0]!r}"
            hint = "a state that was saved from an optimizer of the same class"
            refuse(owner, what, hint, missing=", ".join(missing), unknown=", ".join(strange) or "none")
        merged = {**mine, **new, "params": mine["params"]}
        as_refusal(owner, lambda: self._check_group(merged))
        names = new.get("param_names")
        if names is not None and (len(names) != len(mine["params"]) or not all(isinstance(n, str) for n in names)):
            what = f"'param_names' of group {i} does not name its parameters"
            refuse(owner, what, "a list of strings", param_names=names)
        return merged

    def _copy_data(self, value: Any) -> Any:
        """Copy a value of a state. Only an optimizer with a custom step() may keep objects other than data."""
        try:
            return plain_data(value)
        except Refused:
            if self._traceable:
                raise
            return deepcopy(value)

    def _convert_custom_state(self, p: Tensor, passed: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the state that a custom step() keeps for p. As in PyTorch, tensors get p's device and, if they
        are floating, its dtype; only `step` keeps its own.
        """
        try:
            copy = self._copy_data(passed)
        except Refused as reason:
            refuse(type(self).__name__, f"a state cannot be loaded: {reason}", "data only", state=passed)
        for name, value in copy.items():
            if isinstance(value, Tensor) and name != "step":
                copy[name] = value.to(device=p.spec.device, dtype=p.spec.dtype if value.spec.floating else None)
        return copy

    def _convert_state(
        self, number: int, p: Tensor, group: Mapping[str, Any], passed: Mapping[str, Any]
    ) -> list[tuple[str, Tensor]]:
        """Convert the state given for p to tensors of p's dtype that share no memory with it."""
        owner, result = type(self).__name__, []
        for name, value in self._add_derived_state(group, {k: v for k, v in passed.items() if v is not None}).items():
            array, counted = array_of(value), name in self._scalar_states
            wanted = () if counted else tuple(p.shape)
            if not isinstance(name, str) or array is None:
                what = f"{name!r} of parameter {number} is not an array of numbers"
                refuse(owner, what, "a state that was saved from an optimizer", found=value)
            if array.shape != wanted:
                what = f"{name} of parameter {number} must have shape {wanted}, got {array.shape}"
                refuse(owner, what, "load the optimizer's state into one made for the same model", parameter=p)
            if name == "step" and counted and not (0 <= array <= MAX_COUNT and array == int(array)):
                refuse(owner, f"{name} of parameter {number} is not a number of steps", "0 or more", found=array.item())
            with silent():  # float64 values that float32 cannot hold
                result.append((name, tensor_of(array, Spec(wanted, float32) if counted else p.spec)))
        if missing := set(self._state_names(group) if result else ()) - {name for name, _ in result}:
            hint = "a state that was saved from an optimizer of the same class"
            refuse(owner, f"{min(missing)} of parameter {number} is missing", hint, found=[name for name, _ in result])
        return result

    def _add_derived_state(self, group: Mapping[str, Any], passed: dict) -> dict:
        """Add the entries that were not saved, because others determine them, to the state given for a parameter."""
        return passed

    def __repr__(self) -> str:
        rows = []
        for i, group in enumerate(self.param_groups):
            rows += [
                f"Parameter Group {i}",
                *[clean(f"    {k}: {group[k]}") for k in sorted(group) if k not in ("params", "param_names")],
            ]
        return "\n".join([f"{type(self).__name__} (", *rows, ")"])
