"""Compare the memory that a plan needs with the free memory, before allocating it. Read next: `core/memory.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.backend import OPEN, largest_tensors
from ..core.base.errors import OutOfMemoryError
from ..core.ir import Node, Source, Value, where_text
from ..core.memory import size_text
from ..core.spec import Device, cpu

HINT = (
    "a smaller batch or smaller inputs; float32 instead of float64; in training also "
    "module.to(nn.graph.GraphModule).activation_checkpointing = True"
)


def check_memory(
    needed: int, values: Iterable[Value], name_of: Callable[[Node], str], kernels: int = 0, device: Device = cpu
) -> None:
    """Raise OutOfMemoryError if a plan needs more memory than is free; names its largest values.

    kernels: how many of the bytes are workspace of kernels.
    """
    if (free := OPEN.get(device, OPEN[cpu]).free_bytes_if_short(needed)) is None:
        return
    largest = sorted(dict.fromkeys(values), key=lambda v: -v.spec.nbytes)[:3]
    shown = {
        (v.node.name or "input")
        if isinstance(v.node, Source)
        else name_of(v.node): f"{v.spec}, {size_text(v.spec.nbytes)}, created at {where_text(v.node.where)}"
        for v in largest
    }
    others = {} if device is cpu else largest_tensors(device)
    within = f", {size_text(kernels)} of them for kernels to compute with" if kernels else ""
    raise OutOfMemoryError(
        f"the plan of this graph needs {size_text(needed)} of memory, and {size_text(free)} are free",
        values={"needed": f"{needed} bytes{within}", "free": f"{free} bytes", **shown, **others},
        hint=HINT,
        where=f"at {where_text(largest[0].node.where)}" if largest else "",
    )
