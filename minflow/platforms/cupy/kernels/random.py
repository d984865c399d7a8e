"""Random draws, with the same bits as on the CPU: each thread computes its own, so that nothing is copied.

Read next: `sources/philox.cuh`; `core/random.py`.
"""

from __future__ import annotations

import math
from typing import Any

from ....core.backend import Array, namespace, on_host
from ....core.kernels import kernel
from ....core.ops.checks import check_unit
from ....core.ops.random import Part, bernoulli, dropout, normal, randint, span_of, uniform
from ....core.spec import DType, bfloat16, cpu, float16, float64
from ..device_code import C_NAMES, blocks_for, launch, supported

SOURCE = "random.cu"
COUNTER = ("counter",)  # which a CUDA graph reads on the device, to draw anew
TOLERANCE = 4  # of normal values: logarithm and sine of CUDA's library


def draw(
    name: str,
    out: Array,
    *arrays: Array,
    counter: Array,
    offset: int,
    part: Part | None,
    law: tuple[float, ...] = (),
    wide: bool = False,
    halves: bool = False,
) -> Any:
    """Run a function of `sources/random.cu`. Declines a part that is not contiguous in the whole tensor.

    counter: on the CPU, or on the device.  law: the numbers of the distribution.  wide: an element takes two words.
    halves: it takes half of one.
    """
    start, size = 0, out.size
    if part is not None:
        start, span, _ = span_of(out.shape, part)
        if span != size:
            return NotImplemented
    each = 2 if wide else 8 if halves else 4
    state = [None, *counter.tolist(), offset] if on_host(counter) else [counter, 0, 0, offset]
    types = {"T": out.dtype, "U": "float64" if wide or out.dtype.name == "float64" else "float32"}
    options = {"EACH": each, "WIDE": int(wide)}
    blocks = blocks_for(-(-(start % each + size) // each))
    launch(SOURCE, name, blocks, 256, out, *arrays, *state, *law, start, size, types=types, **options)
    return out


def new(xp: Any, shape: tuple[int, ...], dtype: DType, out: Array | None) -> Array:
    return xp.empty(shape, dtype.np) if out is None else out


@kernel(uniform, platform="cupy", declines=True, moves=COUNTER)
def _(xp, counter, shape, low, high, dtype, offset, device=cpu, part=None, out=None):
    out = new(xp, shape, dtype, out)
    if not supported(out):
        return NotImplemented
    unused, wide = {float16: 21, bfloat16: 24}.get(dtype, 8), dtype is float64
    last = namespace().nextafter(dtype.np.type(high), dtype.np.type(low)) if high > low else math.inf
    law = float(high - low), float(low), float(last), int((low, high) != (0, 1)), unused
    return draw("draw_uniform", out, counter=counter, offset=offset, part=part, law=law, wide=wide)


@kernel(normal, platform="cupy", declines=True, moves=COUNTER, tolerance=TOLERANCE)
def _(xp, counter, shape, mean, std, dtype, offset, device=cpu, part=None, out=None):
    out = new(xp, shape, dtype, out)
    if not supported(out):
        return NotImplemented
    law = float(mean), float(std)
    return draw("draw_normal", out, counter=counter, offset=offset, part=part, law=law, wide=dtype is float64)


@kernel(randint, platform="cupy", declines=True, moves=COUNTER)
def _(xp, counter, shape, low, high, dtype, offset, device=cpu, part=None, out=None):
    out = new(xp, shape, dtype, out)
    if not supported(out, dtypes=C_NAMES):
        return NotImplemented
    return draw("draw_integers", out, counter=counter, offset=offset, part=part, law=(high - low, low))


@kernel(bernoulli, platform="cupy", declines=True, bfloat16=True, moves=COUNTER)
def _(xp, p, counter, offset, part=None, out=None):
    p = xp.ascontiguousarray(p)
    out = xp.empty(p.shape, p.dtype) if out is None else out
    if not supported(p, out):
        return NotImplemented
    check_unit(xp, "bernoulli", "p", p, "p.sigmoid()")
    return draw("draw_bernoulli", out, p, counter=counter, offset=offset, part=part)


@kernel(dropout, platform="cupy", declines=True, bfloat16=True, moves=COUNTER, tolerance=1)
def _(xp, x, counter, p, offset, part=None, out=None):
    x = xp.ascontiguousarray(x)
    y, mask = (xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)) if out is None else out
    if not supported(x, y, mask):
        return NotImplemented
    factor = 1 / (1 - p) if p < 1 else 0.0
    if x.dtype == "float16":  # rounded on the CPU, too, where bfloat16 is computed in float32
        factor = float(x.dtype.type(factor))
    law = round(p * 2**16), factor
    done = draw("dropout", y, mask, x, counter=counter, offset=offset, part=part, law=law, halves=True)
    return NotImplemented if done is NotImplemented else (y, mask)
