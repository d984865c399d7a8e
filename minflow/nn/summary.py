"""The tree of a module: its parts and, after one run, the shapes and operation counts of each.

`summary(model, shape)` runs the model once and prints the tree as a table; if a layer fails, the tree up to it is added
to the error. Read next: `../views/records/module.py`, its record, and `../views/text/listing.py`, its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.base.errors import DTypeError, MissingNameError
from ..core.eager import Eager
from ..core.functions.creation import zeros
from ..core.grad.modes import no_grad
from ..core.ir import Value
from ..core.messages.unsupported import reason
from ..core.mode import MODE, using
from ..core.op import Op
from ..core.random import default_generator
from ..core.source_location import fail
from ..core.tensor import Tensor
from ..views.records.recorders import recorder
from .module import Module, extra_text
from .recursion_limit import SHOWN_LEVELS, levels_below

if TYPE_CHECKING:
    from ..views.records.module import ModuleRecord


class Observation:
    """Observations of one module in one run: input and output specs, number of calls, multiply-accumulates and bytes of
    results of all ops inside it, and the error if there was one.
    """

    def __init__(self) -> None:
        self.calls = self.macs = self.nbytes = 0
        self.inputs: tuple[str, ...] = ()
        self.outputs: tuple[str, ...] = ()
        self.earlier: tuple[tuple[str, ...], ...] = ()
        self.error = ""


class CountingMode(Eager):
    """Eager mode that counts the multiply-accumulates and result bytes of each op, for all modules around it.

    running: the modules that are being called, outermost first. seen: by id of module.
    calls: the ops that are running, outermost first, each with the ops of the same kind that it called.
    """

    calls: list[tuple[Any, list]]
    seen: dict[int, Observation]
    running: list[Module]

    def __init__(self, mode: Any, seen: dict[int, Observation], running: list[Module]):
        self.__dict__.update(mode.__dict__, seen=seen, running=running, calls=[])

    def run(self, op: Any, inputs: tuple, attrs: dict) -> Any:
        if any([call.composite for call, _ in self.calls]):  # the outermost composite op counts its parts
            return super().run(op, inputs, attrs)
        again: list = []
        outer = self.calls[-1:]
        self.calls.append((op, again))
        try:
            result = super().run(op, inputs, attrs)
        finally:
            self.calls.pop()
        if outer and outer[0][0] is op:  # its inputs were cast to one dtype: counted here, not there
            outer[0][1].append(op)
        if not again:
            self.add(op, *work(op, inputs, attrs, result))
        return result

    def add(self, op: Op, macs: int, nbytes: int) -> None:
        """Add one call of `op` to the modules around it."""
        for key in {id(module) for module in self.running}:
            self.seen[key].macs += macs
            self.seen[key].nbytes += nbytes


def work(op: Op, inputs: Sequence, attrs: Mapping, result: Any) -> tuple[int, int]:
    """Multiply-accumulates and result bytes of one call; those of a composite op are the sums over its parts."""
    given = [x.spec if isinstance(x, Tensor) else x for x in inputs]
    if op.composite:
        from ..compiler.passes.decomposition import parts_of  # not at the start: it needs the tracer

        calls = [
            (part.op, part.out_specs, [x.spec if isinstance(x, Value) else x for x in part.inputs], part.attrs)
            for part in parts_of(op, given, attrs)
        ]
    else:
        calls = [(op, [t.spec for t in tensors_in(result)], given, attrs)]
    macs = sum([op.macs(outs[0], *specs, **attrs) for op, outs, specs, attrs in calls if op.macs])
    return macs, sum([spec.nbytes for op, outs, _, _ in calls if not op.is_view for spec in outs])


def tensors_in(x: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(x, Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for part in x for t in tensors_in(part)] if isinstance(x, list | tuple) else []


def specs(x: Any) -> tuple[str, ...]:
    return tuple(str(t.spec) for t in tensors_in(x))


@recorder(Module)
def module_record(
    module: Module,
    seen: dict[int, Observation] | None = None,
    name: str = "",
    visited: set[int] | None = None,
    level: int = 0,
    **_: Any,
) -> ModuleRecord:
    """The record of a module and of all below it.

    seen: observations of a run, by id of module. visited: ids of the modules that are listed already.
    """
    from ..views.records.module import ModuleRecord

    visited = set() if visited is None else visited
    shared = id(module) in visited
    visited.add(id(module))
    below = list(module.modules())
    everything = {id(p): p for part in below for p in part._parameters.values() if p is not None}
    held = everything | {id(b): b for part in below for b in part._buffers.values() if b is not None}
    own = [(n, str(t.spec)) for n, t in module._parameters.items() if t is not None]
    own += [(n, str(t.spec)) for n, t in module._buffers.items() if t is not None]
    run = (seen or {}).get(id(module), Observation())
    deep = levels_below(module) if level == SHOWN_LEVELS else 0
    inside = [] if shared or deep else [(n, child) for n, child in module._modules.items() if child is not None]
    children = tuple([module_record(child, seen, n, visited, level + 1) for n, child in inside])
    return ModuleRecord(
        name=name,
        kind=type(module).__name__,
        extra=f"... {deep:,} more level{'s' * (deep > 1)} inside" if deep else extra_text(module),
        own=tuple(own),
        params=sum(p.numel() for p in everything.values()),
        trainable=sum(p.numel() for p in everything.values() if p.requires_grad),
        nbytes=sum(t.nbytes for t in held.values()),
        inputs=run.inputs,
        outputs=run.outputs,
        earlier=run.earlier,
        calls=run.calls if seen is not None else None,
        macs=run.macs,
        written=run.nbytes,
        error=run.error,
        shared=shared,
        children=children,
    )


class Summary:
    """Result of `summary`: `.record` has the data; displays as a table, or in a notebook as a collapsible tree."""

    def __init__(self, record: ModuleRecord):
        self.record = record

    def __repr__(self) -> str:
        from ..views.text.listing import module_text

        return module_text(self.record)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..views.html.page import module_html

        return {"text/html": module_html(self.record), "text/plain": repr(self)}


def summary(model: Module, *inputs: Any, **options: Any) -> Summary:
    """Run the model once and return its tree: layers with their output shapes, parameters and multiply-accumulates.

    inputs: tensors, or shapes (then float32 zeros of that shape, on the device of the model):
    `summary(model, (50, 1, 28, 28))`. Without inputs nothing runs. options: keyword arguments of the model.

    MACs: multiply-accumulates of this batch, forward only: rows * inner * columns of a matrix product, output elements
    * (input channels / groups) * kernel area of a convolution. All ops that run inside a module are counted, so
    functions (attention, einsum) are included. Biases, activations, norms and pooling are left out. Source:
    torch.utils.flop_counter, which counts the same ops, as 2 FLOPs each.

    The run has no side effects: no gradients, no changed buffers (running statistics), no random numbers consumed. An
    error in a layer is raised unchanged, with the tree up to that layer as a note.
    """
    if not isinstance(model, Module):
        what = f"summary takes a Module, not {type(model).__name__}"
        fail(DTypeError, what, "summary(model, (64, 3, 32, 32))", model=model)
    if not inputs and not options:
        return Summary(module_record(model))
    device = next((p.device for p in model.parameters()), None)
    arguments = [example(x, device) for x in inputs]
    seen: dict[int, Observation] = {id(m): Observation() for m in model.modules()}
    handles = [handle for m in model.modules() for handle in observe(m, seen[id(m)])]
    buffers = [(b, b.detach().clone()) for b in model.buffers()]
    state = default_generator.get_state()
    running: list[Module] = []
    handles += [m.register_forward_pre_hook(lambda m, args: running.append(m)) for m in model.modules()]
    counting = CountingMode(MODE.get(), seen, running)
    handles += [m.register_forward_hook(lambda m, args, out: [running.pop(), None][1]) for m in model.modules()]
    try:
        with using(counting), no_grad():
            model(*arguments, **options)
    except Exception as error:
        if running:
            seen[id(running[-1])].error = str(error)
        error.add_note(f"the model, up to the error:\n{Summary(module_record(model, seen))}")
        raise
    finally:
        for handle in handles:
            handle.remove()
        default_generator.set_state(state)
        with no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
    return Summary(module_record(model, seen))


def example(x: Any, device: Any) -> Any:
    """Return a tensor on this device for a shape; any other value unchanged."""
    is_shape = isinstance(x, Sequence) and not isinstance(x, str) and len(x) and all(isinstance(n, int) for n in x)
    return zeros(*x, device=device) if is_shape else x


def observe(module: Module, seen: Observation) -> list:
    """Register hooks that record the inputs and outputs of a module, and return their handles."""

    def before(m: Module, args: tuple) -> None:
        seen.calls += 1
        seen.inputs = specs(args)

    def after(m: Module, args: tuple, out: Any) -> None:
        seen.outputs, before = specs(out), seen.outputs
        if before and before != seen.outputs:
            seen.earlier += (before,)

    pairs = (module.register_forward_pre_hook, before), (module.register_forward_hook, after)
    register: list[tuple[Callable, Callable]] = list(pairs)
    return [method(hook) for method, hook in register]


def refuse_writer(name: str, *args: Any, **options: Any) -> None:
    """Raise the error of a function of OneFlow 0.3's module `flow.summary`, which wrote files for TensorBoard."""
    fail(MissingNameError, f"flow.summary has no {name}: it shows a module", reason(f"summary.{name}") or "")


for _name in ("create_summary_writer", "flush_summary_writer", "scalar", "histogram", "image", "text", "pb", "hparams"):
    setattr(summary, _name, partial(refuse_writer, _name))
