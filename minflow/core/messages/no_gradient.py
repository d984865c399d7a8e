"""The errors of a backward from something that is not a tensor, and from a tensor without a tape, with the line that
read elements and so lost the tape.

Read next: `../autograd.py`, which raises it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..base.display import cell_name
from ..base.errors import GradError, with_article
from ..context import PerContext
from ..host import HostArray
from ..ir import Where, where_text
from ..source_location import caller, describe, fail, name_of
from ..spec import Spec, cpu


class ElementRead(NamedTuple):
    """A read of the elements of a tensor on a tape. number: its element if it has only one, else None."""

    reader: str
    where: Where
    spec: Spec
    created: Where | None
    number: Any


last_reads: PerContext[deque[ElementRead]] = PerContext(lambda: deque(maxlen=16))


def record_read(tensor, reader: str) -> None:
    """Record a read of elements, for the error of a later backward that does not reach the tensor."""
    if reader in ("item", "float", "int", "numpy", "tolist") and (where := caller(3)) is not None:
        node = tensor._value.node
        last_reads().append(
            ElementRead(reader, where, tensor.spec, node.where if node.inputs else None, number_of(tensor))
        )


def number_of(tensor) -> Any:
    spec = tensor.spec
    known = tensor.array is not None and spec.size == 1 and spec.device is cpu and spec.placement is None
    return tensor.array.item() if known else None  # elsewhere it would be one more copy to the host


def no_gradient(out, verb: str) -> GradError:
    """The error for a call of `verb` (backward or grad) on a tensor without a tape."""
    if out._graph_name:
        return GradError(
            f"{verb}: this tensor is a result of {out._graph_name}, which has no tape, only computed elements",
            values={name_of(out, "output"): describe(out)},
            where=f"at {where_text(caller(4))}",
            hint="call loss.backward() inside build, and self.add_optimizer(optimizer) in the graph's __init__",
        )
    values = {name_of(out, "output"): describe(out)}
    hint = (
        "set requires_grad=True on the tensors that need gradients; it is lost by .detach(), .item(), .numpy(), "
        "float(), under no_grad, by making a new tensor from numbers, and in the result of an nn.Graph"
    )
    where, number = caller(4), number_of(out)
    near = [cut for cut in reversed(last_reads()) if out.array is not None and where and same_program(cut.where, where)]
    if near:
        same = next((cut for cut in near if number is not None and cut.number == number), None)
        cut = same or near[0]
        created = f" created at {where_text(cut.created)}" if cut.created else ""
        values["cut" if same else "last read"] = f"{cut.reader}() at {where_text(cut.where)} of {cut.spec}{created}"
        if same:
            hint = f"compute with the tensor itself: the result of {cut.reader}() has no tape; {hint}"
    return GradError(
        f"{verb}: this tensor was not computed from anything that requires grad",
        values=values,
        where=f"at {where_text(where)}",
        hint=hint,
    )


def same_program(a: Where, b: Where) -> bool:
    """True if two lines are in one file, or in cells of a notebook."""
    first, second = a[0].co_filename, b[0].co_filename
    return first == second or bool(cell_name(first) and cell_name(second))


def as_tensors(verb: str, name: str, x: Any) -> tuple:
    """The tensors of an argument: one, or an iterable of them, such as an nn.ParameterList."""
    if hasattr(x, "spec"):
        return (x,)
    tensors = tuple(x) if isinstance(x, Iterable) and not isinstance(x, str | Mapping | HostArray) else (x,)
    for i, t in enumerate(tensors):
        if callable(t):  # a module or a function
            what = f"{verb}: the {name} must be tensors, got {with_article(t)}"
            fail(GradError, what, f"{name}=list(model.parameters())", **{name if t is x else f"{name}[{i}]": t})
    return tensors
