"""What errors of nn.Graph say, and the notices of what will not repeat. Read next: `graph.py`."""

from __future__ import annotations

import builtins
import random
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from ...core.errors import GraphError, MinflowError, ShapeError, TraceError
from ...core.ir import Where, where_text
from ...core.op import OURS, caller, describe, fail, here
from ...core.tensor import Tensor
from ..module import Module

# ---- defining a graph ------------------------------------------------------------------------------------------------


def missing_init(graph: Any, name: str) -> NoReturn:
    kind = type(graph).__name__
    fail(GraphError, f"{kind} is given the attribute {name!r} before nn.Graph.__init__ has run",
         f"super().__init__() as the first line of {kind}.__init__", attribute=name)  # fmt: skip


def missing_build(graph: Any) -> NoReturn:
    kind = type(graph).__name__
    if "forward" in vars(type(graph)):
        fail(GraphError, f"{kind} has a forward, and a graph has a build", f"rename {kind}.forward to build", graph=graph.name)
    fail(GraphError, f"{kind} has no build", "def build(self, x): return self.model(x)", graph=graph.name)


def optimizer_attribute(graph: Any, name: str, optimizer: Any) -> NoReturn:
    fail(GraphError, f"{type(graph).__name__}: the optimizer is set as the attribute {name!r}, where the graph would never use it",
         f"self.add_optimizer({name})", optimizer=type(optimizer).__name__)  # fmt: skip


def tensor_attribute(graph: Any, name: str, tensor: Tensor) -> NoReturn:
    fail(GraphError, f"{type(graph).__name__}: a tensor is set as the attribute {name!r} of a graph",
         "a Module holds tensors: nn.Parameter or register_buffer in it; or pass the tensor to build", tensor=tensor)  # fmt: skip


def nested(graph: Any, name: str) -> NoReturn:
    fail(GraphError, f"{type(graph).__name__}: the graph {name!r} inside a graph", "hold the Module that both use", attribute=name)


def check_optimizer(graph: Any, optimizer: Any, schedulers: list) -> None:
    """Refuse what is no optimizer, a scheduler of another one, and one that is there already."""
    kind = type(graph).__name__
    if not hasattr(optimizer, "param_groups") or not hasattr(optimizer, "prepare"):
        hint = "self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))"
        if hasattr(optimizer, "optimizer"):
            hint = "self.add_optimizer(optimizer, lr_sch=scheduler)"
        fail(GraphError, f"{kind}.add_optimizer takes an optimizer, not {type(optimizer).__name__}", hint, optimizer=optimizer)
    for scheduler in schedulers:
        if not hasattr(scheduler, "step"):
            fail(GraphError, f"{kind}.add_optimizer: lr_sch is a {type(scheduler).__name__}",
                 "lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 30)", lr_sch=scheduler)  # fmt: skip
        if getattr(scheduler, "optimizer", optimizer) is not optimizer:
            fail(GraphError, f"{kind}.add_optimizer: the scheduler sets the rates of another optimizer",
                 "make the scheduler with the optimizer that is added", lr_sch=type(scheduler).__name__)  # fmt: skip
    for other, _ in graph.optimizers:
        shared = {id(p) for p in other.parameters()} & {id(p) for p in optimizer.parameters()}
        if shared or other is optimizer:
            fail(GraphError, f"{kind}.add_optimizer: {len(shared)} parameters are in an optimizer of this graph already",
                 "each parameter in one optimizer", optimizer=type(optimizer).__name__)  # fmt: skip


def unknown_style(graph: Any, style: Any, styles: tuple[str, ...]) -> NoReturn:
    known = " or ".join(map(repr, styles))
    what = f"{type(graph).__name__}.repr_style is {style!r}, and there are {known}"
    fail(GraphError, what, f"graph.repr_style = {styles[0]!r}", style=style)


# ---- calling it ------------------------------------------------------------------------------------------------------


def refuse_input(graph: Any) -> Callable[[str, Any], NoReturn]:
    """For `flatten`: an input that is neither a tensor nor None."""

    def refuse(path: str, leaf: Any) -> NoReturn:
        name = graph.argument_name(path)
        kind = type(leaf).__name__
        if isinstance(leaf, Module):
            hint = "modules belong into __init__: self.model = model"
        elif isinstance(leaf, bool | int | float):
            hint = f"flow.tensor({leaf!r}) for a number that changes; an attribute of the graph for one that does not"
        elif hasattr(leaf, "__array__"):
            hint = "flow.from_numpy(array)"
        else:
            hint = "an attribute of the graph holds what is no tensor and does not change"
        raise GraphError(f"{graph.name}: the input {name} is a {kind}; a graph takes tensors and None, in lists, tuples and dicts",
                         values={name: repr(leaf)[:80]}, where=here(), hint=hint)  # fmt: skip

    return refuse


def symbolic_input(graph: Any, tensor: Tensor) -> NoReturn:
    fail(TraceError, f"{graph.name} is called with a symbolic tensor, from inside the build of a graph",
         "a graph cannot contain another: call the Module that both use", input=tensor)  # fmt: skip


def not_divisible(graph: Any, name: str, tensor: Tensor, steps: int) -> NoReturn:
    size = f"{tensor.spec.shape[0]} along axis 0" if tensor.spec.shape else "no axes"
    fail(ShapeError, f"{graph.name}: input {name} has {size}, which cannot be cut into {steps} equal parts",
         f"a batch whose size is a multiple of {steps} (drop_last=True in the DataLoader); or "
         "config.set_gradient_accumulation_steps(1)", input=tensor)  # fmt: skip


def static_inputs(graph: Any, differences: list[tuple[str, Any, Any]]) -> NoReturn:
    values = {name: f"{old} at the first call, {new} now" for name, old, new in differences}
    raise ShapeError(f"{graph.name} takes static inputs, and {len(differences)} of them changed: {', '.join(values)}", values=values,
                     where=here(), hint="drop_last=True in the DataLoader; or config.static_inputs(False): a plan for each")  # fmt: skip


# ---- inside build ----------------------------------------------------------------------------------------------------


def check_outputs(build: Any, output: Any, flatten: Callable) -> tuple[Any, list[Tensor]]:
    """The structure and the tensors that build returned."""
    graph = build.graph
    if output is None:
        line = where_text((type(graph).build.__code__, 0))
        raise GraphError(f"{graph.name}: build returns None", values={"build": f"at {line}"}, where=here(),
                         hint="return loss (or what the model computed)")  # fmt: skip

    def refuse(path: str, leaf: Any) -> NoReturn:
        name = f"output {path}" if path else "its output"
        raise GraphError(f"{graph.name}: build returns a {type(leaf).__name__}, and a graph gives tensors and None",
                         values={name: repr(leaf)[:80]}, where=here(),
                         hint="return the tensor itself; what is no tensor is known without the graph")  # fmt: skip

    return flatten(output, refuse)


def check_backward(build: Any) -> None:
    """An optimizer needs a backward, a backward an optimizer whose parameters it reaches."""
    graph = build.graph
    if graph.optimizers and not build.backwards:
        raise GraphError(f"{graph.name} has an optimizer, and its build calls no backward()", values={"optimizer": names(graph)},
                         where=here(), hint="loss.backward() in build, before return loss")  # fmt: skip
    if build.backwards and not graph.optimizers:
        raise GraphError(f"{graph.name}: build calls backward(), and the graph has no optimizer",
                         values={"backward": f"at {where_text(build.backwards[0])}"}, where=here(),
                         hint="self.add_optimizer(optimizer) in __init__; or flow.autograd.grad(loss, inputs)")  # fmt: skip
    for optimizer, _ in graph.optimizers:
        parameters = [p for p in optimizer.parameters() if p.requires_grad]
        if parameters and all(p.grad is None for p in parameters):
            raise GraphError(f"{graph.name}: backward reaches none of the {len(parameters)} parameters of {type(optimizer).__name__}",
                             values={"backward": f"at {where_text(build.backwards[0])}"}, where=here(),
                             hint="make the optimizer of the parameters of the module that the graph runs: "
                             "flow.optim.SGD(model.parameters(), ...), after model.to(...)")  # fmt: skip


def names(graph: Any) -> str:
    return ", ".join(type(optimizer).__name__ for optimizer, _ in graph.optimizers)


def step_in_build(graph: Any, what: Any, verb: str) -> NoReturn:
    fail(GraphError, f"{type(what).__name__}.{verb}() inside build: the graph steps by itself at the end of each call",
         f"leave it out; self.add_optimizer({'optimizer' if hasattr(what, 'prepare') else 'optimizer, lr_sch=scheduler'}) in __init__",
         graph=graph.name)  # fmt: skip


def check_leaks(build: Any) -> None:
    """A symbolic tensor that stayed in a module or in the graph would be of no use after build."""
    for path, module in build.graph.all_modules(build.paths_of_found()):
        for name, value in {**module._parameters, **module._buffers, **module.__dict__}.items():
            if name not in ("_parameters", "_buffers", "_modules"):
                refuse_symbolic(build, f"{path}.{name}", value)
    for name, value in vars(build.graph).items():
        if not name.startswith("_"):
            refuse_symbolic(build, f"self.{name}", value)


def refuse_symbolic(build: Any, name: str, value: Any) -> None:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
    for x in held:
        if isinstance(x, Tensor) and x.array is None:
            raise TraceError(f"{build.graph.name}: build leaves a symbolic tensor in {name}, where it has no numbers after build",
                             values={name: describe(x)}, where=here(),
                             hint="return it from build; a registered buffer of the same spec is updated at each call")  # fmt: skip


def foreign(build: Any, graph: Any, error: MinflowError) -> MinflowError:
    """The graph reads a value that it did not make: a symbolic tensor of an earlier build was used."""
    for node in graph.nodes:
        for x in node.inputs:
            if hasattr(x, "node") and x.node not in graph.nodes and x.node not in (*graph.inputs, *graph.states):
                return TraceError(f"{build.graph.name}: {node.op} reads a symbolic tensor that was made in an earlier build",
                                  values={"tensor": f"{x.spec}, made at {where_text(x.node.where)}"},
                                  where=f"at {where_text(node.where)}",
                                  hint="a tensor made in build lives until build returns: pass it on through arguments")  # fmt: skip
    return error


def no_such_value(build: Any, name: str, ops: dict) -> NoReturn:
    import difflib

    known = list(dict.fromkeys([call.path for call in build.top.walk() if call.path] + list(ops)))
    near = difflib.get_close_matches(name, known, 3)
    build.graph.kept.discard(name)
    raise GraphError(f"{build.graph.name} computes nothing that is called {name!r}", values={"near": ", ".join(near) or "nothing"},
                     where=here(), hint="the path of a module that runs, 'model.fc1'; or an op's name as style v1 prints it")  # fmt: skip


# ---- what will not repeat --------------------------------------------------------------------------------------------


LIBRARIES = tuple(dict.fromkeys(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")))


class Notice(NamedTuple):
    """Something that build does in Python, which happens once and not at each call."""

    kind: str  # "print", "attribute", "random", "time"
    text: str
    where: Where | None


@contextmanager
def watched(build: Any) -> Iterator[None]:
    """While build runs, note what will not repeat: print, writes to plain attributes, `random`, `time`.

    Only what the learner's own code does, on this thread: libraries and other threads may look at the clock.
    """
    seen, here_now = build.notices, threading.get_ident()
    originals: list[tuple[Any, str, Any]] = []

    def note(kind: str, text: str) -> None:
        if not any(n.kind == kind for n in seen):
            seen.append(Notice(kind, text, caller(3)))

    def wrap(owner: Any, name: str, kind: str, text: str) -> None:
        original = getattr(owner, name)

        def wrapped(*args, **kwargs):
            file = sys._getframe(1).f_code.co_filename
            if threading.get_ident() == here_now and not OURS[file] and not file.startswith(LIBRARIES):
                note(kind, text)
            return original(*args, **kwargs)

        originals.append((owner, name, original))
        setattr(owner, name, wrapped)

    before = attributes(build)
    wrap(builtins, "print", "print", "print() runs while the graph is built, not at each call")
    for name in ("random", "randint", "uniform", "choice", "gauss", "shuffle", "sample", "randrange"):
        wrap(random, name, "random", f"random.{name}() is drawn while the graph is built, and stays the same at each call")
    for name in ("time", "perf_counter", "monotonic"):
        wrap(time, name, "time", f"time.{name}() is read while the graph is built, and stays the same at each call")
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
    for name, value in attributes(build).items():
        if name not in before or (before[name] is not value and before[name] != value):
            note("attribute", f"{name} is set while the graph is built, not at each call")
            break


def attributes(build: Any) -> dict[str, Any]:
    """The plain attributes (numbers, texts) of the graph and its modules."""
    plain = (bool, int, float, str, type(None))
    found = {f"self.{k}": v for k, v in vars(build.graph).items() if not k.startswith("_") and isinstance(v, plain)}
    for path, module in build.graph.all_modules():
        found |= {f"{path}.{k}": v for k, v in module.__dict__.items() if not k.startswith("_") and isinstance(v, plain)}
    return found


def tell(graph: Any, notice: Notice) -> None:
    """Tell of it once in the life of a graph: a warning at the learner's line."""
    import warnings

    told = graph.__dict__.setdefault("_told", set())
    if (notice.kind, notice.where) in told:
        return
    told.add((notice.kind, notice.where))
    from ...core.errors import MinflowWarning

    code, instruction = notice.where or (None, 0)
    line = next((n for start, end, n in code.co_lines() if start <= instruction < end), 1) if code else 1
    text = MinflowError(f"{graph.name}: {notice.text}", where=f"at {where_text(notice.where)}" if notice.where else "",
                        hint="compute it before the call and pass it to build as a tensor; or do it outside the graph")  # fmt: skip
    warnings.warn_explicit(str(text), MinflowWarning, code.co_filename if code else "minflow", line or 1)


def not_kept(graph: Any, name: str) -> NoReturn:
    fail(GraphError, f"{graph.name}: the value of {name!r} was not kept in the last call; it is from the next call on",
         f"call the graph once more; or graph.keep({name!r}) before the first call", name=name)  # fmt: skip
