"""Sends and receives of OneFlow (`flow.comm`): a receiver need not know the shape and dtype."""

from __future__ import annotations

from typing import Any

from ..core.base.errors import DTypeError
from ..core.functions.creation import empty, tensor
from ..core.source_location import fail
from ..core.tensor import Tensor
from . import collectives

META = 1 << 14  # tag of the message with shape and dtype


def send(input: Tensor, dst: int, send_meta: bool = True) -> None:
    """Send a tensor to rank `dst`. send_meta: first send its shape and dtype, so that recv need not know them."""
    if send_meta:
        shape = [*input.shape, *[-1] * (64 - input.ndim)]
        names = list(input.dtype.name.encode().ljust(16))
        collectives.send(tensor([input.ndim, *shape, *names]), dst, tag=META)
    collectives.send(input, dst)


def recv(src: int, shape: Any = None, dtype: Any = None, device: Any = None, out: Tensor | None = None) -> Tensor:
    """Return the tensor that rank `src` sends, or write it into `out`.

    shape, dtype: None if the sender sends them, too (`send_meta`).
    """
    if out is None and shape is None:
        meta = tensor([0] * 81)
        collectives.recv(meta, src, tag=META)
        ndim, *rest = meta.tolist()
        shape, dtype = rest[:ndim], bytes(rest[64:]).decode().strip()
    elif out is None and dtype is None:
        fail(DTypeError, "comm.recv: shape without dtype", "recv(src), or recv(src, shape, dtype) with send_meta=False")
    out = empty(tuple(shape), dtype=dtype, device=device) if out is None else out
    collectives.recv(out, src)
    return out
