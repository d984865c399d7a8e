"""nn.Graph: the user's class with `__init__` and `build`, called like a function.

A call compares one integer (the mutation counter) and the specs of its inputs; a new key is traced, or derived from a
trace at other sizes, and compiled. `graph.model` is still the user's Module. Read next: `build.py`, `compiled.py`.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from ...compiler.passes import PASSES, Pass
from ...compiler.plan_cache import PlanCache
from ...core.base.display import Display
from ...core.context import SUBMIT, PerContext
from ...core.grad.hooks import functions_on
from ...core.in_flight import IN_FLIGHT, wait_for_steps
from ...core.ir import Node
from ...core.mode import MODE, bump_mutations
from ...core.overrides import SUBCLASSES, refuse_in_graph
from ...core.source_location import warn
from ...core.spec import DEFAULT_DEVICES, Spec, default_dtype
from ...core.tensor import Tensor
from ..module import Module
from . import messages, state
from .build import Build, Observer, strides_of
from .compiled import CompiledGraph, compile_graph, contiguous_array
from .config import STYLES, GraphConfig
from .key import Fingerprint
from .members import Members

SPEC = operator.attrgetter("spec")
graph_counts: PerContext[dict[str, Iterator[int]]] = PerContext(dict)  # class name -> indices, counted as in OneFlow


RESERVED: set[str] = set()  # reserved names, which attributes of a subclass cannot have


def reserve(kind: type, *private: str) -> None:
    """Reserve these names, and all read-only public names of this class: a subclass must not assign to them."""
    RESERVED.update(name for name in dir(kind) if name[:1] != "_" and name not in ("build", "passes", "repr_style"))
    RESERVED.update(private)


class Passes(list):
    """A list whose changes bump the mutation counter."""


def with_bump(name: str) -> Callable:
    original = getattr(list, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        bump_mutations()
        return original(self, *args, **kwargs)

    return method


for verb in "append extend insert remove pop clear reverse __setitem__ __delitem__ __iadd__".split():
    setattr(Passes, verb, with_bump(verb))


class RunningGraph(Members, Display):
    """Base class of static graphs.

    A subclass calls `super().__init__()`, sets its modules as attributes, and computes in `build`, which is run at the
    first call, to record it, and again if other inputs or modules change what it computes (see `dynamic.py` for sizes).
    `self.add_optimizer(optimizer)` in `__init__` and `loss.backward()` in `build` make it a training graph: each call
    is then one step.

        class TrainGraph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model, self.loss_fn = model, nn.CrossEntropyLoss()
                self.add_optimizer(optimizer)

            def build(self, x, y):
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                return loss

    Inputs and outputs: tensors and None in lists, tuples, dicts and dataclasses. Outputs are new tensors without a
    tape.
    debug_v_level and the other keywords: arguments of `debug`.  passes: the list of passes that are applied to the
    traced graph; it may be edited.
    """

    repr_style = "seed"  # or "v1": the newer names, and one line per operation
    _keeps = True  # if False, tensors that build leaves in a module are removed afterwards

    def __init__(self) -> None:
        name = type(self).__name__
        number = next(graph_counts().setdefault(name, itertools.count()))
        self.__dict__.update(
            _name=f"{name}_{number}",
            _config=GraphConfig(),
            _members={},
            _optimizers=[],
            _passes=Passes(PASSES),
            _plans=PlanCache(functools.partial(Fingerprint.of_graph, self)),
            _history=[],
            _plan_count=0,  # number of plans
            _dynamic=[],
            _kept=set(),
            _steps=0,
            _timed=0,
            _nonmembers=[],
            _outside_modules=[],
            _volatile=set(),
            _variables={},
            _numbers={},
            _noticed=set(),
        )
        RESERVED.update(self.__dict__)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs. Every subclass must define it."""
        messages.missing_build(self)

    # ---- attributes --------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if "_members" not in self.__dict__:
            messages.missing_init(self, f"is given the attribute {name!r}")
        if name in RESERVED:
            messages.refuse_reserved_name(self, name, value)
        if name == "repr_style":
            if value not in STYLES:
                messages.unknown_style(self, value, STYLES)
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Module):
            self._members[name] = value
        elif hasattr(value, "param_groups") and hasattr(value, "step"):
            messages.optimizer_attribute(self, name, value)
        elif isinstance(value, Tensor):
            messages.tensor_attribute(self, name, value)
        elif isinstance(value, RunningGraph):
            messages.refuse_nested_graph(self, name, value)
        else:
            self._members.pop(name, None)
        old = self.__dict__.get(name, RunningGraph)
        if old is not value and not (
            type(old) is type(value) and isinstance(value, bool | int | float | str) and old == value
        ):
            bump_mutations()
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise messages.no_attribute(self, name)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        messages.refuse_copy(self)

    def __delattr__(self, name: str) -> None:
        self._members.pop(name, None)
        bump_mutations()
        object.__delattr__(self, name)

    @property
    def name(self) -> str:
        """The class name and an index: `TrainGraph_0`."""
        return self._name

    @property
    def config(self) -> GraphConfig:
        """The settings: see GraphConfig."""
        return self._config

    @property
    def training(self) -> bool:
        """True if an optimizer was added."""
        return bool(self._optimizers)

    @property
    def is_compiled(self) -> bool:
        """True if the graph has been called, so that there is a plan."""
        return self._last is not None

    @property
    def optimizers(self) -> list[tuple[Any, list]]:
        """The optimizers, each with its schedulers, in the order in which they were added."""
        return self._optimizers

    @property
    def _last(self) -> CompiledGraph | None:
        """The most recently used plan, or None."""
        return self._plans.last

    @property
    def kept(self) -> set[str]:
        """The names of the values that are kept after each call."""
        return self._kept

    @property
    def passes(self) -> list[Pass]:
        """Functions from a Graph to a Graph, in order; edit the list to change them."""
        return self._passes

    @passes.setter
    def passes(self, passes: list[Pass]) -> None:
        self._passes[:] = passes
        bump_mutations()

    # ---- training ----------------------------------------------------------------------------------------------------

    def add_optimizer(self, optim: Any, *, lr_sch: Any = None, is_sparse: bool = False) -> None:
        """Make this a training graph: each call clips gradients (if the groups say so), steps `optim`, and then steps
        the scheduler `lr_sch`. Several optimizers may be added.
        """
        if "_members" not in self.__dict__:
            messages.missing_init(self, "is given an optimizer")
        schedulers = [] if lr_sch is None else list(lr_sch) if isinstance(lr_sch, list | tuple) else [lr_sch]
        messages.check_optimizer(self, optim, schedulers)
        self._optimizers.append((optim, schedulers))
        self._config.training = True
        bump_mutations()

    def set_grad_scaler(self, grad_scaler: Any = None) -> None:
        """Begin backward with the factor of an `amp.StaticGradScaler`, and divide the gradients of parameters by it.

        None: without a factor. A GradScaler, whose factor adapts, has no effect, with a warning.
        """
        scale = 1 if grad_scaler is None else getattr(grad_scaler, "scale_factor", None)
        if scale is not None:
            self._config.change("loss_scale", scale)
        else:
            hint = "flow.amp.StaticGradScaler(65536.0), a fixed factor; or leave it out: parameters are float32"
            warn("set_grad_scaler: a GradScaler, whose factor adapts, has no effect in a graph", hint)

    # ---- the call ----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if IN_FLIGHT:
            wait_for_steps()
        (compiled, tensors), arrays = self.prepare(args, kwargs), []
        for x in tensors:
            array = x.array
            if array is None:
                messages.symbolic_input(self, x)
            if x._needs and functions_on(x):
                messages.hooked_input(self, x)
            arrays.append(array if array.flags.c_contiguous else contiguous_array(array))
        if compiled.strided:
            arrays = [x.array for x in tensors]
        own = self.__dict__
        if own["_timed"]:
            own["_timed"] -= 1
            return self.profiled(compiled, arrays)
        return compiled.run(self, arrays, compiled.runs < 2 and compiled.timing is None)

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Call the graph asynchronously: add a step to the stream of job functions, and return its handle at once.

            graph.submit(x, y)(show)          # show(loss) is called after the step, in the order of the calls
            step = graph.submit(x, y)
            loss = step.get()                 # wait for the result: also get(timeout), done(), cancel()

        Inputs are copied. The step gives the bits of `graph(x, y)` at this place of the program: an op, a call or a
        write that concerns the tensors of a step in flight waits for it. A call waits while two steps are in flight.
        """
        return SUBMIT[0](self, args, kwargs)

    def compiled_for(self, args: tuple, kwargs: dict) -> CompiledGraph:
        """The plan for these inputs, compiled if necessary, without running it."""
        return self.prepare(args, kwargs)[0]

    def prepare(self, args: tuple, kwargs: dict) -> tuple[CompiledGraph, Any]:
        """The plan for a call, and its input tensors."""
        own = self.__dict__
        if "_members" not in own:
            messages.missing_init(self, "is called")
        mode = MODE.get()
        specs: tuple[Spec, ...] | None = None
        tensors: Sequence[Tensor] = args
        if not kwargs and mode.trace is None:
            try:  # the common case: tensors only
                specs, tree = tuple(map(SPEC, args)), len(args)
            except Exception:
                pass  # the error is raised below, outside this handler
        if specs is None:
            tree, tensors, specs = self.structure(args, kwargs)
        if SUBCLASSES:
            refuse_in_graph(tensors)
        plans = own["_plans"]
        inputs: tuple[Any, ...] = (tree, specs, mode.grad, default_dtype(), DEFAULT_DEVICES.get())
        if own["_config"].bits:
            inputs += tuple(map(strides_of, tensors))
        compiled = plans.find(inputs)
        if compiled is None:
            if type(self).build is RunningGraph.build:
                messages.missing_build(self)
            compiled = plans.compile(inputs, functools.partial(compile_graph, self, args, kwargs, inputs))
        return compiled, tensors

    def profiled(self, compiled: CompiledGraph, arrays: list) -> Any:
        """Run one call and time its operations."""
        return compiled.run(self, arrays, True)

    def observer(self, build: Build) -> Observer:
        """The observer of a build."""
        return Observer()

    @property
    def nodes(self) -> list[Node]:
        """The operations that a call runs, after all passes; empty before the first call."""
        return [] if self._last is None else [node for part in self._last.parts for node in part.graph.nodes]

    # ---- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> OrderedDict[str, Any]:
        """Return everything that a training run needs to resume. See `state.py`."""
        wait_for_steps()
        return state.state_of(self)

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> Any:
        """Resume from where `state_dict` was taken, before or after the first call. See `state.py`."""
        wait_for_steps()
        return state.load_into(self, state_dict, strict)
