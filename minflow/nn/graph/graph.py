"""nn.Graph: the user's class with `__init__` and `build`, called like a function.

A call compares one integer (the epoch) and the specs of its inputs; a new key is traced and compiled. The user's
modules stay the user's: `graph.model` is the Module. Read next: `build.py`, `compiled.py`.
"""

from __future__ import annotations

import inspect
import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from typing import Any

import numpy as np

from ...compiler.executor import LOCK, collector_waiting
from ...compiler.passes import PASSES, Pass
from ...core.base import events
from ...core.base.display import Display
from ...core.ir import Node
from ...core.mode import EPOCH, MODE, touch
from ...core.spec import Spec, default_dtype, spec_of
from ...core.tensor import Tensor
from ...core.where import warn
from ...diagnosis.failure import Recorded, builds
from ..module import Module
from . import messages as mistakes, notices, state
from .build import Build
from .compiled import Compiled
from .config import GraphConfig
from .listing.mixin import GraphListing
from .key import Fingerprint, differences
from .python_state import moved, reads_of
from .tree import flatten, keys_of, leaves, marked

PLANS = 16  # of one graph; the one that was not used for the longest time makes room
COUNTS: dict[str, Iterator[int]] = {}  # class name -> the numbers of its graphs, as OneFlow counts them


RESERVED: set[str] = set()  # names that attributes of a subclass cannot have


class Passes(list):
    """A list whose changes move the epoch."""


def moving(name: str):
    original = getattr(list, name)

    def method(self, *args, **kwargs):
        touch()
        return original(self, *args, **kwargs)

    return method


for verb in ("append", "extend", "insert", "remove", "pop", "clear", "reverse", "__setitem__", "__delitem__", "__iadd__"):
    setattr(Passes, verb, moving(verb))


class Graph(GraphListing, Display):
    """Base class of static graphs.

    A subclass calls `super().__init__()`, sets its modules as attributes, and computes in `build`, which is run once
    for each kind of input to record it. `self.add_optimizer(optimizer)` in `__init__` and `loss.backward()` in `build`
    make it a training graph: each call is then one step.

        class TrainGraph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model, self.loss_fn = model, nn.CrossEntropyLoss()
                self.add_optimizer(optimizer)

            def build(self, x, y):
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                return loss

    Inputs and outputs: tensors and None in lists, tuples and dicts. Outputs are new tensors without a tape.
    passes: the list of functions that the traced graph goes through; it may be edited.
    """

    def __init__(self) -> None:
        name = type(self).__name__
        number = next(COUNTS.setdefault(name, itertools.count()))
        self.__dict__.update(
            _name=f"{name}_{number}", _config=GraphConfig(), _members={}, _optimizers=[], _plans=OrderedDict(), _epoch=-1, _contents=[],
            _fingerprint=None, _last=None, _found=[], _history=[], _level=-1, _debug={}, _passes=Passes(PASSES), _kept=set(),
            _scaler=None, _pending=None, _steps=0, _timed=0, _failure=None, _volatile=set(), _told=set(),
            _variables={},
        )  # fmt: skip
        RESERVED.update(self.__dict__)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """What the graph computes; every subclass defines it."""
        mistakes.missing_build(self)

    # ---- attributes --------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if "_members" not in self.__dict__:
            mistakes.missing_init(self, f"is given the attribute {name!r}")
        if name in RESERVED:
            mistakes.reserved(self, name, value)
        if name == "repr_style":
            self._check_style(value)
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Module):
            self._members[name] = value
        elif hasattr(value, "param_groups") and hasattr(value, "step"):
            mistakes.optimizer_attribute(self, name, value)
        elif isinstance(value, Tensor):
            mistakes.tensor_attribute(self, name, value)
        elif isinstance(value, Graph):
            mistakes.nested(self, name, value)
        else:
            self._members.pop(name, None)
        old = self.__dict__.get(name, Graph)
        if old is not value and not (type(old) is type(value) and isinstance(value, bool | int | float | str) and old == value):
            touch()
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise mistakes.no_attribute(self, name)

    def __delattr__(self, name: str) -> None:
        self._members.pop(name, None)
        touch()
        object.__delattr__(self, name)

    name = property(lambda self: self._name, doc="The class's name and a number: `TrainGraph_0`.")
    config = property(lambda self: self._config, doc="The settings: see GraphConfig.")
    training = property(lambda self: bool(self._optimizers), doc="Was an optimizer added?")
    is_compiled = property(lambda self: self._last is not None, doc="Was it called, so that there is a plan?")
    optimizers = property(lambda self: self._optimizers)
    kept = property(lambda self: self._kept)
    passes = property(lambda self: self._passes, doc="Functions from a Graph to a Graph, in order; edit the list to change them.")

    @passes.setter
    def passes(self, passes: list[Pass]) -> None:
        self._passes[:] = passes
        touch()

    # ---- training ----------------------------------------------------------------------------------------------------

    def add_optimizer(self, optim: Any, *, lr_sch: Any = None, is_sparse: bool = False) -> None:
        """Make this a training graph: each call clips gradients (where the groups say so), steps `optim`, and then
        steps the scheduler `lr_sch`. Several optimizers may be added."""
        if "_members" not in self.__dict__:
            mistakes.missing_init(self, "is given an optimizer")
        schedulers = [] if lr_sch is None else list(lr_sch) if isinstance(lr_sch, list | tuple) else [lr_sch]
        mistakes.check_optimizer(self, optim, schedulers)
        self._optimizers.append((optim, schedulers))
        self._config.training = True
        touch()

    def set_grad_scaler(self, grad_scaler: Any = None) -> None:
        """Accepted; gradients in float32 need no scaling, so it has no effect on a CPU."""
        self.__dict__["_scaler"] = grad_scaler
        hint = "leave it out, or keep it for other machines"
        warn("set_grad_scaler: without effect on a CPU, where gradients are float32", hint)

    def stepped(self, compiled: Compiled) -> None:
        """The bookkeeping at the end of a training step; runs where an interrupt waits."""
        self.__dict__["_steps"] += 1
        for optimizer, schedulers in self._optimizers:
            optimizer.stepped()
            for scheduler in schedulers:
                scheduler.step()

    # ---- the call ----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        compiled, tensors = self.prepare(args, kwargs)
        arrays = []
        for x in tensors:
            array = x.array
            if array is None:
                mistakes.symbolic_input(self, x)
            arrays.append(array if array.flags.c_contiguous else np.array(array, order="C"))
        if self.__dict__["_timed"]:
            self.__dict__["_timed"] -= 1
            return compiled.run(self, arrays, True)
        return compiled.run(self, arrays, compiled.runs < 2)

    def compiled_for(self, args: tuple, kwargs: dict) -> Compiled:
        """The plan for these inputs, made if need be, without running it."""
        return self.prepare(args, kwargs)[0]

    def prepare(self, args: tuple, kwargs: dict) -> tuple[Compiled, Any]:
        """The plan for a call, and the tensors that it takes. Compares the epoch, and looks closer only where it moved;
        and at what containers hold and which tensors variables name, where the graph or its modules have some."""
        own = self.__dict__
        if "_members" not in own:
            mistakes.missing_init(self, "is called")
        mode = MODE.get()
        if EPOCH.now != own["_epoch"] or (own["_contents"] and moved(own["_contents"])):
            self.look()
        specs, tensors = None, args
        if not kwargs and mode.trace is None:
            try:  # the common case: tensors only
                specs, tree = tuple([x.spec for x in args]), len(args)
            except AttributeError:
                pass  # what is wrong is told outside of this
        if specs is None:
            tree, tensors, specs = self.structure(args, kwargs)
        key = own["_key"], tree, specs, mode.grad, default_dtype()
        compiled = own["_plans"].get(key)
        if compiled is None:
            compiled = self.compile_for(key, args, kwargs)
        elif compiled is not own["_last"]:
            own["_plans"].move_to_end(key)
            own["_last"] = compiled
        return compiled, tensors

    def structure(self, args: tuple, kwargs: dict) -> tuple[Any, list[Tensor], tuple[Spec, ...]]:
        tree, tensors = flatten((args, kwargs), mistakes.refuse_input(self))
        if MODE.get().trace is not None:
            mistakes.symbolic_input(self, tensors[0] if tensors else Tensor(0.0))
        return tree, tensors, tuple([x.spec for x in tensors])

    def give(self, array: np.ndarray) -> Tensor:
        """An output: a new tensor that remembers which graph it came from, for the error of its backward()."""
        result = Tensor(array, spec_of(array))
        result.result_of = self._name
        return result

    def look(self) -> None:
        """The epoch has moved: what plans depend on is looked at again. Plans whose captured tensors went elsewhere go.

        The epoch that was looked at is noted last, so that an interrupt anywhere only means that the next call looks
        again.
        """
        own, epoch = self.__dict__, EPOCH.now
        fingerprint = Fingerprint.of_graph(self)
        if own["_fingerprint"] is None or own["_fingerprint"].key != fingerprint.key:
            known = next((c.fingerprint for c in own["_plans"].values() if c.fingerprint.key == fingerprint.key), None)
            own["_fingerprint"] = known or fingerprint
        own["_key"] = id(own["_fingerprint"])
        for key, compiled in list(own["_plans"].items()):
            stale = compiled.stale()
            if stale:
                own["_pending"] = stale
                del own["_plans"][key]
        own["_contents"], own["_epoch"] = own["_fingerprint"].contents, epoch

    def compile_for(self, key: tuple, args: tuple, kwargs: dict) -> Compiled:
        """Trace and compile for these inputs, one graph at a time; nothing of the graph changes if that fails."""
        with LOCK, collector_waiting():
            # another thread may have made it
            return self.__dict__["_plans"].get(key) or self.compile_now(key, args, kwargs)

    def compile_now(self, key: tuple, args: tuple, kwargs: dict) -> Compiled:
        own = self.__dict__
        if type(self).build is Graph.build:
            mistakes.missing_build(self)
        mistakes.check_arguments(self, args, kwargs)
        tree, tensors, specs = self.structure(args, kwargs)
        inputs = self.input_key(tree, specs)
        last: Compiled | None = own["_last"]
        if self._config.static and last is not None:
            changed = input_differences(last.inputs_key, inputs)
            if changed:
                mistakes.static_inputs(self, changed)
        if own["_optimizers"] and not MODE.get().grad:
            mistakes.under_no_grad(self)
        for x in tensors:
            if x.array is None:
                mistakes.symbolic_input(self, x)
        build = Build(self, tree, tensors)
        build.debug.started()
        try:
            parts = copy_context().run(build.run)  # an interrupt, wherever it comes, leaves no mode behind
            own["_found"] = list(dict.fromkeys([*own["_found"], *build.paths_of_found()]))
            build.debug.traced()
            compiled = Compiled(self, build, parts, len(own["_history"]))
        except BaseException as error:
            own["_failure"] = build
            build.debug.failed(error)
            mistakes.clean(build)
            raise
        own["_volatile"] |= build.volatile
        build.before.clear()  # it holds the graph's last plan, and that one the plan before it
        build.debug.compiled(compiled)
        modules = [call.module for call in build.top.walk() if call is not build.top]
        reads = reads_of((type(self).build, type(self)), modules, holder=self)
        own["_variables"] = {**own["_variables"], **reads.variables}
        self.look()  # the trace may itself have moved the epoch, or met modules that are no members
        compiled.fingerprint, compiled.inputs_key = own["_fingerprint"], inputs
        compiled.reads = reads.and_attributes(own["_fingerprint"].opaque)
        if last is not None:
            compiled.reason = input_differences(last.inputs_key, inputs) + (own["_pending"] or [])
            said = {f"{path}.{name}" for path, name in own["_volatile"]} | {what for what, _, _ in compiled.reason}
            compiled.reason += [d for d in differences(last.fingerprint, compiled.fingerprint) if d[0] not in said]
            compiled.reason += mode_differences(last.mode, (MODE.get().grad, default_dtype()))
        compiled.mode = MODE.get().grad, default_dtype()
        own["_pending"], own["_last"], own["_failure"] = None, compiled, None
        own["_history"].append(compiled.summary())
        own["_plans"][own["_key"], *key[1:]] = compiled
        if len(own["_plans"]) > PLANS:
            own["_plans"].popitem(last=False)
        for notice in (*build.notices, *notices.of_reads(compiled.reads, own["_told"], "build", type(self).build.__code__)):
            notices.tell(self, notice)
        if events.GraphCompiled in events.LISTENERS:
            events.emit(events.GraphCompiled(self, compiled.number, tuple(compiled.reason), dict(compiled.seconds)))
        return compiled

    def input_key(self, tree: Any, specs: tuple[Spec, ...]) -> tuple:
        return tuple(zip(self.input_names(tree), specs)), tree

    def input_names(self, tree: Any) -> list[str]:
        """The name of each input tensor, as build calls it: "x", "batch[0]", "options['mask']"."""
        args, kwargs = marked(tree)
        return [self.argument_name(path) for path, leaf in leaves((args, kwargs)) if leaf is not None]

    def argument_name(self, path: Any) -> str:
        """What build calls the input at a path such as (0, 1, "key") or "[0][1]": its parameter's name and the rest."""
        keys = keys_of(path)
        if keys[0] == 1:
            name, rest = str(keys[1]), keys[2:]
        else:
            parameters = [p for p in inspect.signature(self.build).parameters.values() if p.kind in (0, 1, 2)]
            position = keys[1]
            plain = [p for p in parameters if p.kind != 2]
            if position < len(plain):
                name = plain[position].name
            else:
                name = f"{parameters[-1].name}[{position - len(plain)}]" if parameters else f"argument {position}"
            rest = keys[2:]
        return name + "".join(f"[{key!r}]" for key in rest)

    # ---- its modules and tensors -------------------------------------------------------------------------------------

    def named_members(self) -> Iterator[tuple[str, Module]]:
        """(attribute, module); modules in a list or dict attribute as "layers.0"."""
        yield from self._members.items()
        for name, value in vars(self).items():
            if not name.startswith("_") and isinstance(value, list | tuple | dict):
                for path, leaf in leaves(value):
                    if isinstance(leaf, Module):
                        yield ".".join([name, *map(str, path)]), leaf

    def all_modules(self, found: Any = ()) -> list[tuple[str, Module]]:
        """(path, module) of every module of the graph, each once; also those that build met elsewhere."""
        seen: dict[int, tuple[str, Module]] = {}
        for name, member in self.named_members():
            for path, module in member.named_modules():
                seen.setdefault(id(module), (f"{name}.{path}" if path else name, module))
        for path, module in (*self._found, *found):
            seen.setdefault(id(module), (path, module))
        return list(seen.values())

    def module_paths(self) -> dict[int, str]:
        return {id(module): path for path, module in self.all_modules()}

    def named_tensors(self, found: Any = ()) -> Iterator[tuple[Tensor, str]]:
        """(tensor, name) of every parameter, buffer and optimizer state."""
        names: dict[int, str] = {}
        for path, module in self.all_modules(found):
            for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                if tensor is not None:
                    names.setdefault(id(tensor), f"{path}.{name}")
                    yield tensor, f"{path}.{name}"
        for optimizer, _ in self._optimizers:
            for i, p in enumerate(optimizer.parameters()):
                for key, tensor in optimizer.state.get(p, {}).items():
                    yield tensor, f"{names.get(id(p), f'parameter {i}')}-{key}"

    def parameter_names(self, found: Any = ()) -> dict[int, str]:
        """id(parameter) -> "model.fc1.weight"; a tied one has its first name."""
        names: dict[int, str] = {}
        for tensor, name in self.named_tensors(found):
            names.setdefault(id(tensor), name)
        return names

    def outside_name(self, tensor: Tensor) -> str:
        """The name of a tensor that build reads from around it: a global, a variable of the function around, a
        default."""
        function = type(self).build
        closed = inspect.getclosurevars(function)
        for space in (closed.nonlocals, closed.globals):
            for name, value in space.items():
                if value is tensor or (isinstance(value, Tensor) and value.array is tensor.array):
                    return name
        for path, module in self.all_modules():
            for name, value in module.__dict__.items():
                if value is tensor:
                    return f"{path}.{name}"
        return ""

    @property
    def nodes(self) -> list[Node]:
        """The operations that a call runs, after all passes; empty before the first call."""
        return [] if self._last is None else [node for part in self._last.parts for node in part.graph.nodes]

    # ---- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> OrderedDict[str, Any]:
        """Everything that a training run needs to go on. See `state.py`."""
        return state.state_of(self)

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> Any:
        """Go on where `state_dict` was taken, before or after the first call. See `state.py`."""
        return state.load_into(self, state_dict, strict)


RESERVED.update(name for name in dir(Graph) if name[:1] != "_" and name not in ("build", "passes", "repr_style"))


def input_differences(old: tuple, new: tuple) -> list[tuple[str, str, str]]:
    """(name, old spec, new spec) of the inputs that changed."""
    before, after = dict(old[0]), dict(new[0])
    found = [(name, str(before.get(name, "was not there")), str(after.get(name, "is not there")))
             for name in dict.fromkeys((*before, *after)) if before.get(name) is not after.get(name)]  # fmt: skip
    if not found and old[1] != new[1]:
        found = [("structure of the inputs", "as at the plan before", "another")]
    return found


def mode_differences(old: tuple, new: tuple) -> list[tuple[str, str, str]]:
    names = "recording of gradients", "default dtype"
    return [(name, str(a), str(b)) for name, a, b in zip(names, old, new) if a != b]


def described(reason: list[tuple[str, str, str]]) -> str:
    return "; ".join(f"{what}: {old} -> {new}" for what, old, new in reason)


@builds(Graph.compile_now.__code__)
def recorded(own: Mapping[str, Any]) -> Recorded:
    """What a build had recorded when it failed, for the card of its error."""
    build = own["build"]
    return Recorded(own["self"].name, build.trace.graph, build.debug.source_name)
