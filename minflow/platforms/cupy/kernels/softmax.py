"""softmax and log_softmax along any axis."""

from __future__ import annotations

from typing import Any

from ....core.backend import Array
from ....core.kernels import kernel
from ....core.ops.softmax import log_softmax, softmax
from ..device_code import supported
from ..row_teams import contiguous, launch_rows, lines, sum_dtype, team_size

TOLERANCE = 32  # another order of summation, and exp of CUDA's library


def run(xp: Any, x: Array, dim: int, out: Array | None, log: int) -> Any:
    (x,) = contiguous(xp, x)
    out = xp.empty_like(x) if out is None else out
    if not supported(x, out):
        return NotImplemented
    rows, columns, inner = lines(x, dim)
    team, types = team_size(rows, columns, inner), {"T": x.dtype, "ACC": sum_dtype(x)}
    launch_rows("softmax.cu", "softmax_rows", rows, team, x, out, rows, columns, inner, types=types, LOG=log)
    return out


@kernel(softmax, platform="cupy", declines=True, bfloat16=True, tolerance=TOLERANCE)
def _(xp, x, dim, out=None):
    return run(xp, x, dim, out, log=0)


@kernel(log_softmax, platform="cupy", declines=True, bfloat16=True, tolerance=TOLERANCE)
def _(xp, x, dim, out=None):
    return run(xp, x, dim, out, log=1)
