"""Error messages of nn.Graph. `side_effects.py` warns of side effects. Read next: `graph.py`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ...core.base.errors import (
    ContextError,
    GradError,
    GraphError,
    MinflowError,
    ShapeError,
    TraceError,
    shown,
    with_article as a,
)
from ...core.context import Context
from ...core.dispatch import symbolic_error
from ...core.host import HostArray
from ...core.ir import AFTER, INPUT, Source, Value, where_text
from ...core.mode import MODE, bump_mutations
from ...core.source_location import IS_MINFLOW_FILE, describe, fail as fail_with, here, warn as warn_with
from ...core.tensor import Tensor
from ...diagnosis.name_suggestions import similar_names
from ..functional.arguments import Unquoted
from ..module import Module
from .side_effects import REGISTRIES, line_of_write

SGD = "flow.optim.SGD(model.parameters(), lr=0.1)"
ATTRIBUTE_HINTS = {  # a name that a graph does not have -> where to find it
    "forward": "graph(x): a call runs build",
    **dict.fromkeys(("train", "eval"), "model.train() or model.eval(): the graph follows at its next call"),
    **dict.fromkeys("to cuda cpu float double half".split(), "model.to(...): the graph follows at its next call"),
    **dict.fromkeys(("parameters", "named_parameters", "modules", "children", "buffers", "apply"),
                    "model.parameters() and the like: ask the Module that the graph holds"),
    **dict.fromkeys(("zero_grad", "step", "backward"),
                    "the graph does it: loss.backward() in build, self.add_optimizer(optimizer) in __init__"),
}  # fmt: skip


class GraphArgumentError(GraphError, TypeError):
    """The arguments of a call of a graph do not match its build."""


class GraphAttributeError(GraphError, AttributeError):
    """A graph or its config does not have this attribute, or not yet."""


def fail(kind: type[MinflowError], what: str, hint: str, /, **values: Any) -> NoReturn:
    fail_with(kind, what, hint, **{name: Unquoted(x) if isinstance(x, str) else x for name, x in values.items()})


def short_repr(thing: Any) -> str:
    """Return the repr of a value if it is short, else its type; dtype and shape of an array."""
    text = shown(thing)
    if len(text) <= 80 and "\n" not in text and " at 0x" not in text:
        return text
    return f"{type(thing).__name__} {thing.dtype}{list(thing.shape)}" if isinstance(thing, HostArray) else a(thing)


# ---- defining a graph ------------------------------------------------------------------------------------------------


def missing_init(graph: Any, what: str) -> NoReturn:
    kind = type(graph).__name__
    hint = f"super().__init__() as the first line of {kind}.__init__"
    fail(GraphError, f"{kind} {what} before nn.Graph.__init__ has run", hint, graph=kind)


def missing_build(graph: Any) -> NoReturn:
    kind = type(graph).__name__
    if hasattr(type(graph), "forward"):
        what = f"{kind} has a forward, and a graph has a build"
        fail(GraphError, what, f"rename {kind}.forward to build", graph=graph.name)
    own = [name for cls in type(graph).__mro__ if not cls.__module__.startswith("minflow.") for name in vars(cls)]
    near = similar_names("build", own, 1, 0.7)
    hint = f"rename {kind}.{near[0]} to build" if near else "def build(self, x): return self.model(x)"
    fail(GraphError, f"{kind} has no build", hint, graph=graph.name)


def no_attribute(graph: Any, name: str) -> AttributeError:
    kind = type(graph).__name__
    if name[:2] == "__":
        return AttributeError(f"{kind!r} object has no attribute {name!r}")
    if "_members" not in graph.__dict__:
        what = f"{kind} is asked for {name.lstrip('_')} before nn.Graph.__init__ has run"
        hint = f"super().__init__() as the first line of {kind}.__init__"
        return GraphAttributeError(what, values={"graph": kind}, where=here(), hint=hint)
    near = similar_names(name, [n for n in dir(graph) if n[:1] != "_"], 3, 0.6)
    members = ", ".join(graph._members) or "no modules"
    hint = ATTRIBUTE_HINTS.get(name) or (f"did you mean {' or '.join(near)}?" if near else f"it holds {members}")
    what = f"{kind} has no attribute {name!r}"
    return GraphAttributeError(what, values={"graph": graph.name}, where=here(), hint=hint)


def refuse_reserved_name(graph: Any, name: str, value: Any) -> NoReturn:
    what = f"{type(graph).__name__}: {name!r} is a name of nn.Graph itself"
    fail(GraphError, what, f"another name, such as {name.strip('_')}_of_mine", value=short_repr(value))


def optimizer_attribute(graph: Any, name: str, optimizer: Any) -> NoReturn:
    what = f"{type(graph).__name__}: an optimizer is set as the attribute {name!r}, where the graph would never use it"
    fail(GraphError, what, "self.add_optimizer(optimizer)", optimizer=type(optimizer).__name__)


def tensor_attribute(graph: Any, name: str, tensor: Tensor) -> NoReturn:
    hint = "a Module holds tensors, as nn.Parameter or by register_buffer; or pass the tensor to build"
    if tensor.array is None:
        hint = "return it from build; or pass it on as an argument"
    what = f"{type(graph).__name__}: a tensor is set as the attribute {name!r} of a graph"
    fail(GraphError, what, hint, tensor=tensor)


def refuse_copy(graph: Any) -> NoReturn:
    what = f"{graph.name}: a graph is neither copied nor pickled, since its plans belong to its own tensors"
    fail(GraphError, what, "copy.deepcopy of its model, and a new graph of that; graph.state_dict() to keep it")


def refuse_nested_graph(graph: Any, name: str, inner: Any) -> NoReturn:
    what = f"the graph {inner.name} is set as the attribute {name!r}, and a graph cannot contain another"
    fail(GraphError, f"{type(graph).__name__}: {what}", "hold the Module that both use", inner=inner.name)


def unknown_style(graph: Any, style: Any, styles: tuple[str, ...]) -> NoReturn:
    known = " or ".join(map(repr, styles))
    what = f"{type(graph).__name__}.repr_style must be {known}, got {style!r}"
    fail(GraphError, what, f"graph.repr_style = {styles[0]!r}", style=style)


def check_optimizer(graph: Any, optimizer: Any, schedulers: list) -> None:
    """Refuse values that are not optimizers, schedulers of other optimizers, and optimizers already added."""
    kind = type(graph).__name__
    if MODE.get().trace is not None:
        hint = f"call it in {kind}.__init__, after super().__init__()"
        fail(GraphError, f"{kind}.add_optimizer is called inside build", hint, graph=graph.name)
    if (
        isinstance(optimizer, type)
        or not hasattr(optimizer, "param_groups")
        or not hasattr(optimizer, "_create_states")
    ):
        hint = f"self.add_optimizer({SGD})"
        if isinstance(optimizer, type):
            hint = f"self.add_optimizer(flow.optim.{optimizer.__name__}(model.parameters(), lr=0.1))"
        elif isinstance(optimizer, list | tuple):
            hint = "self.add_optimizer(optimizer) once for each"
        elif hasattr(optimizer, "optimizer"):
            hint = "self.add_optimizer(optimizer, lr_sch=scheduler)"
        what = f"{kind}.add_optimizer takes an optimizer, not {a(optimizer)}"
        fail(GraphError, what, hint, optimizer=short_repr(optimizer))
    if not getattr(optimizer, "_traceable", True):
        optimizer._refuse_trace()
    for scheduler in schedulers:
        if isinstance(scheduler, type) or not hasattr(scheduler, "step") or hasattr(scheduler, "param_groups"):
            what = f"{kind}.add_optimizer: lr_sch takes a learning rate scheduler, not {a(scheduler)}"
            fail(GraphError, what, "lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 30)", lr_sch=short_repr(scheduler))
        if why := getattr(scheduler, "_graph_refusal", ""):
            name = type(scheduler).__name__
            what = f"{kind}.add_optimizer: {name} cannot be part of a graph: {why}"
            fail(GraphError, what, "step it eagerly", lr_sch=name)
        if getattr(scheduler, "optimizer", optimizer) is not optimizer:
            name, what = type(scheduler).__name__, "the scheduler sets the learning rate of another optimizer"
            hint = f"flow.optim.lr_scheduler.{name}(optimizer, ...) of the optimizer that is added"
            values = {"lr_sch": f"{name} of {a(scheduler.optimizer)}", "optimizer": type(optimizer).__name__}
            fail(GraphError, f"{kind}.add_optimizer: {what}", hint, **values)
    for other, _ in graph.optimizers:
        shared = {id(p) for p in other._all_parameters()} & {id(p) for p in optimizer._all_parameters()}
        if shared or other is optimizer:
            what = f"{kind}.add_optimizer: {len(shared)} parameters are in an optimizer of this graph already"
            hint = "each parameter in one optimizer"
            fail(GraphError, what, hint, added=type(optimizer).__name__, already=type(other).__name__)


# ---- calling it ------------------------------------------------------------------------------------------------------


def refuse_input(graph: Any) -> Callable[[str, Any], NoReturn]:
    """Raise the error for an input that is neither a tensor nor None; the `refuse` argument of `flatten`."""

    def refuse(path: str, leaf: Any) -> NoReturn:
        name = graph.argument_name(path)
        if isinstance(leaf, Module):
            hint = "modules belong into __init__: self.model = model"
        elif hasattr(leaf, "param_groups"):
            hint = "self.add_optimizer(optimizer) in __init__"
        elif isinstance(leaf, bool | int | float):
            number = f"flow.tensor({shown(leaf)})"
            hint = f"{number} for a number that changes; an attribute of the graph for one that does not"
        elif hasattr(leaf, "__array__"):
            hint = "flow.from_numpy(array)" if getattr(leaf, "ndim", 0) else "flow.tensor(number)"
        elif isinstance(leaf, Iterator | set | frozenset):
            hint = "a list or a tuple of tensors"
        else:
            hint = "a constant that is not a tensor belongs in an attribute of the graph"
        takes = "a graph takes tensors and None, in lists, tuples, dicts and dataclasses"
        what = f"{graph.name}: the input {name} is {a(leaf)}; {takes}"
        raise GraphError(what, values={name: short_repr(leaf)}, where=here(), hint=hint)

    return refuse


def check_arguments(graph: Any, args: tuple, kwargs: dict) -> None:
    """Refuse a call whose arguments do not match build, and name them."""
    try:  # the signature of a wrapper is checked, but not the arguments that it passes on
        signature = inspect.signature(graph.build, follow_wrapped=False)
        signature.bind(*args, **kwargs)
        return
    except ValueError:  # a callable without a signature
        return
    except TypeError:
        pass
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_varargs = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    by_place = {p.name for p in positional[: len(args)]}
    required = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    missing = [name for name in required if name not in by_place and name not in kwargs]
    extra = len(args) - len(positional) if not takes_varargs else 0
    twice = [name for name in kwargs if name in by_place]
    unknown = [name for name in kwargs if name not in signature.parameters]
    wrong = [f"{join_names(missing)} {'is' if len(missing) == 1 else 'are'} missing"] if missing else []
    wrong += [f"{extra} more {'is' if extra == 1 else 'are'} given by position"] if extra > 0 else []
    wrong += [f"{join_names(twice)} {'is' if len(twice) == 1 else 'are'} given twice"] if twice else []
    wrong += [f"it has no {join_names(unknown)}"] if unknown else []
    takes = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
    passed = [f"{p.name} {short_input(x)}" for p, x in zip(positional, args)] + [
        short_input(x) for x in args[len(positional) :]
    ]
    passed += [f"{name}={short_input(x)}" for name, x in kwargs.items()]
    what = f"{graph.name}: build takes {takes}, and {'; '.join(wrong) or 'was called with others'}"
    line = {} if IS_MINFLOW_FILE[type(graph).build.__code__.co_filename] else {"build": f"at {build_line(graph)}"}
    values = {**line, "got": ", ".join(passed) or "nothing"}
    raise GraphArgumentError(what, values=values, where=here(), hint=f"graph({', '.join(required)})")


def join_names(names: list[str]) -> str:
    """Join names: "x", "x and y", or "x, y and z"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def short_input(x: Any) -> str:
    """Describe a tensor by its spec, and any other value by `short_repr`."""
    return str(x.spec) if isinstance(x, Tensor) else short_repr(x)


def symbolic_input(graph: Any, tensor: Tensor) -> NoReturn:
    """Refuse a call of a graph inside the build of another, or a tensor of an earlier build as the input of a graph."""
    if MODE.get().trace is None:
        raise symbolic_error(tensor)
    outer: Any = getattr(MODE.get().watch, "graph", None)
    if outer is graph:
        modules = ", ".join(f"self.{m}" for m in graph._members) or "self.model"
        hint = f"a call of the graph runs build: in build call the modules, {modules}"
    else:
        hint = "call the Module that both use: a graph cannot contain another"
    what = f"{graph.name} is called inside the build of {getattr(outer, 'name', 'a graph')}"
    fail(TraceError, what, hint, input=tensor)


def other_rank(name: str, context: Context, owner: Context) -> ContextError:
    """The error for a call of a graph on another rank than the one that compiled it."""
    return ContextError(
        f"the graph {name} is called on another rank than the one that compiled it",
        values={"called by": context, "compiled by": owner},
        where=here(),
        hint="create the graph in the function that each rank runs",
    )


def hooked_input(graph: Any, tensor: Tensor) -> NoReturn:
    """Refuse an input with a hook: a graph computes no gradient of an input, so the hook would never run."""
    hint = "register it in build, on x.requires_grad_() or on a tensor computed from x; or train eagerly"
    fail(GraphError, f"{graph.name}: an input has a hook, and a graph gives an input no gradient", hint, input=tensor)


def under_no_grad(graph: Any) -> NoReturn:
    what = f"{graph.name} trains, and is called where no gradients are recorded"
    other = "a second graph without add_optimizer on the same model"
    hint = f"call it outside of flow.no_grad(); to look at the loss alone, {other}"
    fail(GraphError, what, hint, optimizer=optimizer_names(graph))


def not_divisible(graph: Any, name: str, tensor: Tensor, steps: int, ranks: int) -> NoReturn:
    size = f"{tensor.spec.shape[0]} along axis 0" if tensor.spec.shape else "no axes"
    what = f"{graph.name}: input {name} has {size}, which cannot be cut into {steps} equal parts"
    what += f" on each of {ranks} ranks" * (ranks > 1)
    hint = f"a batch whose size is a multiple of {steps * ranks} (drop_last=True in the DataLoader)"
    fail(ShapeError, what, f"{hint}; or config.set_gradient_accumulation_steps(1)", **{name: tensor})


def static_inputs_changed(graph: Any, differences: list[tuple[str, Any, Any]]) -> NoReturn:
    values = {name: f"{old} at the first call, {new} now" for name, old, new in differences}
    if "structure of the inputs" in values:
        values["structure of the inputs"] = "not as at the first call"
    what = f"{graph.name} takes static inputs, and {len(differences)} of them changed: {', '.join(values)}"
    hint = "drop_last=True in the DataLoader; or config.static_inputs(False), which makes a plan for each"
    raise ShapeError(what, values=values, where=here(), hint=hint)


# ---- inside build ----------------------------------------------------------------------------------------------------


def build_line(graph: Any) -> str:
    return where_text((type(graph).build.__code__, 0))


def check_outputs(build: Any, output: Any, flatten: Callable) -> tuple[Any, list[Tensor]]:
    """Return the structure and the tensors that build returned. Raises an error for other values."""
    graph = build.graph
    if output is None:
        what = f"{graph.name}: build returns None"
        hint = "return loss, or another result, at the end of build"
        raise GraphError(what, values={"build": f"at {build_line(graph)}"}, where=here(), hint=hint)

    def refuse(path: str, leaf: Any) -> NoReturn:
        where = re.sub(r"^\d+", r"[\g<0>]", path)
        unordered = isinstance(leaf, Iterator | set)
        hint = "a list or a tuple of tensors" if unordered else "return tensors only: the rest is known without a graph"
        gives = "a graph returns tensors and None, in lists, tuples, dicts and dataclasses"
        values = {f"output{where}": short_repr(leaf), "build": f"at {build_line(graph)}"}
        raise GraphError(f"{graph.name}: build returns {a(leaf)}; {gives}", values=values, where=here(), hint=hint)

    return flatten(output, refuse)


def check_backward(build: Any) -> None:
    """Refuse an optimizer without a backward, and a backward without an optimizer whose parameters it reaches."""
    graph = build.graph
    if graph.optimizers and not build.backwards:
        what, hint = "an optimizer, and its build calls no backward()", "loss.backward() in build, before return loss"
        values = {"optimizer": optimizer_names(graph), "build": f"at {build_line(graph)}"}
        raise GraphError(f"{graph.name} has {what}", values=values, where=here(), hint=hint)
    if build.backwards and not graph.optimizers:
        what = f"{graph.name}: build calls backward(), and the graph has no optimizer"
        hint = "self.add_optimizer(optimizer) in __init__; or flow.autograd.grad(loss, inputs)"
        raise GraphError(what, values={"backward": f"at {where_text(build.backwards[0])}"}, where=here(), hint=hint)
    for optimizer, _ in graph.optimizers:
        check_parameters(build, optimizer)


def check_parameters(build: Any, optimizer: Any) -> None:
    """Check that the parameters of an optimizer are in the graph, and that backward reaches at least one of them."""
    graph, kind = build.graph, type(optimizer).__name__
    held = {
        id(p): (f"{path}.{name}", p)
        for path, module in graph.all_modules(build.nonmember_paths())
        for name, p in module._parameters.items()
        if p is not None
    }
    parameters = optimizer._all_parameters()
    trainable = [p for p in parameters if p.requires_grad]
    lost = [p for p in parameters if id(p) not in held and p.grad is None]
    reached = [p for p in trainable if p.grad is not None]
    if lost:
        stepped = {id(p) for other, _ in graph.optimizers for p in other._all_parameters()}
        left = [name for key, (name, p) in held.items() if key not in stepped and p._needs and p.grad is not None]
        what = f"{graph.name}: {len(lost)} of the {len(parameters)} parameters of {kind} are not in the graph"
        values = {"not in the graph": first_items([f"{p._label} {p.spec}".strip() for p in lost])}
        hint = f"flow.optim.{kind}(model.parameters(), ...)"
        hint = f"make it when the model is complete, of the model that the graph holds: {hint}"
        if left or not reached:
            values |= {"in no optimizer": first_items(left)} if left else {}
            raise GraphError(what, values=values, where=here(), hint=hint)
        if graph._last is None:
            what += ", and are never trained by it"
            warn_with(what, hint, **{"not in the graph": Unquoted(first_items([p._label for p in lost]))})
    elif trainable and not reached:
        what = f"{graph.name}: backward reaches none of the {len(trainable)} parameters of {kind}"
        hint = "compute the loss from the model's output, without .detach() or no_grad() on the way"
        raise GraphError(what, values={"backward": f"at {where_text(build.backwards[0])}"}, where=here(), hint=hint)


def first_items(texts: list[str], most: int = 4) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def optimizer_names(graph: Any) -> str:
    return ", ".join(type(optimizer).__name__ for optimizer, _ in graph.optimizers)


def step_in_build(graph: Any, what: Any, verb: str) -> NoReturn:
    does = "forgets the gradients" if verb == "zero_grad" else "steps"
    hint = "leave it out"
    if verb == "step":
        arguments = "optimizer" if hasattr(what, "_create_states") else "optimizer, lr_sch=scheduler"
        hint += f"; self.add_optimizer({arguments}) in __init__"
    text = f"{type(what).__name__}.{verb}() inside build: the graph {does} by itself at the end of each call"
    fail(GraphError, text, hint, graph=graph.name)


def eager_backward(graph: Any, tensor: Tensor) -> NoReturn:
    what = "backward of a tensor that was computed before build, which a call of the graph would not repeat"
    hint = "compute the loss in build, of its inputs; or call backward() outside of the graph"
    fail(GradError, f"{graph.name}: {what}", hint, tensor=tensor)


# ---- symbolic tensors that stay somewhere ----------------------------------------------------------------------------


def symbolic_tensors_in(value: Any, seen: set[int] | None = None, trace: Any = None) -> Iterator[Tensor]:
    """Yield the symbolic tensors in a value, and in lists, tuples, sets and dicts inside it; with `trace`, also the
    concrete tensors that it created and wrote.
    """
    if isinstance(value, Tensor):
        if value.array is None or (trace is not None and trace.created_and_wrote(value)):
            yield value
    elif isinstance(value, dict | list | tuple | set):
        seen = seen if seen is not None else set()
        if id(value) not in seen:
            seen.add(id(value))
            for x in list(value.values() if isinstance(value, dict) else value):
                yield from symbolic_tensors_in(x, seen, trace)


def written_attributes(build: Any) -> Iterator[tuple[str, Any, dict, dict]]:
    """Yield (path, owner, a dict of attributes that may have been written, the same dict before build)."""
    for path, owner, attributes, registries, _ in build.before:
        yield path, owner, owner.__dict__, attributes
        for name, old in registries.items():
            yield path, owner, owner.__dict__[name], old


def check_leaks(build: Any) -> None:
    """Refuse a symbolic tensor that build left in a module or in the graph: it would be useless afterwards."""
    if not build.graph._keeps:
        remove_symbolic_tensors(build)
        return
    for path, owner, now, _ in written_attributes(build):
        for name, value in now.items():
            if name in REGISTRIES or (path == "self" and name[:1] == "_"):
                continue
            containers = Tensor | list | tuple | set | dict
            symbol = (
                next(symbolic_tensors_in(value, trace=build.trace), None) if isinstance(value, containers) else None
            )
            if symbol is not None:
                what = f"build leaves a symbolic tensor in {path}.{name}, where it has no elements after build"
                if symbol.array is not None:
                    what = f"build makes the tensor in {path}.{name} and writes it: each call would start again from it"
                hint = "register_buffer in __init__: a buffer of that spec is updated at each call"
                values, line = {f"{path}.{name}": describe(symbol)}, where_text(line_of_write(build, owner, name))
                raise TraceError(
                    f"{build.graph.name}: {what}",
                    values=values,
                    where=f"at {line}",
                    hint=f"return it from build; or {hint}",
                )


def check_hooks(build: Any, steps: int) -> None:
    """Refuse hooks that would run differently in eager mode: those that each call would add to a parameter, and those
    on a `.grad` that micro-steps accumulate outside the trace.
    """
    for handle, tensor in build.trace.hooked:
        if handle.number in handle.hooks:
            fail(
                GraphError,
                f"{build.graph.name}: a hook is registered on a tensor from outside while the graph is built: eagerly "
                "each call would add one more",
                "register it before the call; or handle = x.register_hook(...) and handle.remove() after backward()",
                tensor=tensor,
                hook=handle.hooks[handle.number],
            )
    hooked = [(s, v.node.hooks.get(AFTER, {})) for v, s in build.trace.leaves.items() if v.node.hooks]
    waiting = [s for s, hooks in hooked if not all([getattr(hook, "linear", False) for hook in hooks.values()])]
    if steps > 1 and waiting:
        what = f"{build.graph.name}: a register_post_accumulate_grad_hook in a graph that accumulates {steps} gradients"
        hint = "x.register_hook(hook), which gets the gradient of each part of the batch; or accumulation 1"
        fail(GraphError, what, hint, tensor=waiting[0])


def remove_symbolic_tensors(build: Any) -> None:
    """After a failed build, remove symbolic tensors from modules and the graph, so that the next one can succeed."""
    for path, _, now, old in written_attributes(build):
        for name, value in list(now.items()):
            own = name in REGISTRIES or (path == "self" and name[:1] == "_")
            if own or not isinstance(value, Tensor | list | tuple | set | dict):
                continue
            if next(symbolic_tensors_in(value), None) is None:
                continue
            bump_mutations()
            if isinstance(value, list | set | dict):
                purge(value)
            elif name in old and next(symbolic_tensors_in(old[name]), None) is None:
                now[name] = old[name]
            else:
                del now[name]


def purge(box: Any, seen: set[int] | None = None) -> None:
    """Remove entries that hold symbolic tensors from a list, set or dict; lists inside it are kept and purged."""
    seen = seen if seen is not None else set()
    if id(box) in seen:
        return
    seen.add(id(box))
    for key, x in list(box.items()) if isinstance(box, dict) else [(x, x) for x in list(box)]:
        if isinstance(x, list | set | dict):
            purge(x, seen)
        elif next(symbolic_tensors_in(x), None) is not None:
            if isinstance(box, list):
                box[:] = [y for y in box if y is not x]
            elif isinstance(box, dict):
                del box[key]
            else:
                box.discard(x)


def foreign_value_error(build: Any, graph: Any, error: MinflowError) -> MinflowError:
    """Return the error for a value that the graph did not make: a symbolic tensor of an earlier build."""
    own = {id(node) for node in (*graph.inputs, *graph.states, *graph.nodes)}
    uses = [(f"{node.op} reads", where_text(node.where), x) for node in graph.nodes for x in node.inputs]
    uses += [("build returns", build_line(build.graph), x) for x in graph.outputs]
    uses += [("a buffer or parameter is set to", build_line(build.graph), x) for x in graph.updates.values()]
    for verb, line, x in uses:
        if isinstance(x, Value) and id(x.node) not in own:
            source = f"created at {where_text(x.node.where)}"
            if isinstance(x.node, Source) and x.node.op is INPUT:
                source = f"input {x.node.name}"
            what = f"{build.graph.name}: {verb} a symbolic tensor of an earlier build"
            hint = "a tensor made in build lives until build returns: keep none in lists or globals"
            return TraceError(what, values={"tensor": f"{x.spec}  ({source})"}, where=f"at {line}", hint=hint)
    return error


# ---- its values ------------------------------------------------------------------------------------------------------


def no_such_value(build: Any, name: str, ops: dict) -> NoReturn:
    known = list(dict.fromkeys([call.path for call in build.top.walk() if call.path] + list(ops)))
    near = similar_names(name, known, 3)
    build.graph.kept.discard(name)
    what = f"{build.graph.name} computes nothing that is called {name!r}"
    hint = "the path of a module that runs, 'model.fc1'; or an op's name as style v1 prints it, or as graph.plan does"
    raise GraphError(what, values={"near": ", ".join(near) or "nothing"}, where=here(), hint=hint)


def not_kept(graph: Any, name: str) -> NoReturn:
    what = f"{graph.name}: the value of {name!r} was not kept in the last call; it is from the next call on"
    fail(GraphError, what, f"call the graph once more; or graph.keep({name!r}) before the first call", name=name)
