"""The error of a backward that reaches nothing: it says where the numbers of a tape were read.

Read next: `../autograd.py`, which asks for it.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from ..base.errors import GradError
from ..ir import Where, where_text
from ..spec import Spec
from ..where import caller, describe, name_of


class Cut(NamedTuple):
    """A read of the numbers of a tensor that has a tape. number: the only one, else None."""

    reader: str
    where: Where
    spec: Spec
    created: Where | None
    number: Any


CUTS: deque[Cut] = deque(maxlen=16)  # the last ones


def note_cut(tensor, reader: str) -> None:
    """Remember a read of numbers, for the error of a backward that does not reach the tensor."""
    if reader in ("item", "float", "int", "numpy", "tolist") and (where := caller(3)) is not None:
        node = tensor.value.node
        CUTS.append(Cut(reader, where, tensor.spec, node.where if node.inputs else None, number_of(tensor)))


def number_of(tensor) -> Any:
    return tensor.array.item() if tensor.spec.size == 1 else None


def no_gradient(out, verb: str) -> GradError:
    """The error for `verb` of a tensor without a tape."""
    if out.result_of:
        return GradError(
            f"{verb}: this tensor is a result of {out.result_of}, which has no tape: its numbers are computed already",
            values={name_of(out, "output"): describe(out)},
            where=f"at {where_text(caller(4))}",
            hint="call loss.backward() inside build, and self.add_optimizer(optimizer) in the graph's __init__",
        )
    values = {name_of(out, "output"): describe(out)}
    hint = ("requires_grad=True on what you want gradients of; it is lost by .detach(), .item(), .numpy(), float(), "
            "under no_grad, by making a new tensor from numbers, and in the result of an nn.Graph")
    if CUTS and out.array is not None:  # a symbolic tensor is not made of numbers that were read
        number = number_of(out)
        same = next((cut for cut in reversed(CUTS) if number is not None and cut.number == number), None)
        cut = same or CUTS[-1]
        created = f" made at {where_text(cut.created)}" if cut.created else ""
        values["cut" if same else "last read"] = f"{cut.reader}() at {where_text(cut.where)} of {cut.spec}{created}"
        if same:
            hint = f"compute with the tensor itself: the result of {cut.reader}() has no tape; {hint}"
    return GradError(f"{verb}: this tensor was not computed from anything that requires grad", values=values,
                     where=f"at {where_text(caller(4))}", hint=hint)
