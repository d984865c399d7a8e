"""Edge cases where onnxruntime differs from us: NaN, infinities, and signed zeros, op by op."""

import numpy as np

from minflow.core.base.errors import MinflowError
from minflow.core.dispatch import apply
from minflow.core.functions.creation import from_numpy
from minflow.core.op import OPS
from minflow.onnx.builder import CONVERTERS
from tests.onnx.helpers import run, traced_model

NAN_LOSES = "a NaN does not win: the ONNX standard leaves it open"
CORNERS = {  # op -> description of the difference
    "sign": "of NaN it is NaN, ours is 0",
    "floor_divide": "a negative number by inf, or a positive one by -inf, is NaN, ours is -1",
    "atan2": "NaN of two infinities; zeros with a sign count as 0",
    "hypot": "NaN of two infinities, or of one and NaN",
    **dict.fromkeys(("relu_grad", "relu6_grad"), "0 where x is infinite or NaN and y is flat, ours is NaN"),
    "erfc": "1 - erf(x), so that its small values beyond 2 have fewer digits",
    **dict.fromkeys(("amax", "amin", "argmax", "argmin", "median"), NAN_LOSES),
}
VALUES = np.array(
    [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -1.5,
        1e30,
        -1e30,
        1e-30,
        1e-6,
        -1e-6,
        1.0,
        -1.0,
        3.0,
        100.0,
        -100.0,
    ],
    "float32",
)
ROWS = np.array(
    [[1, np.nan, 2, 2], [3, 3, 1, 0], [np.nan, np.nan, np.nan, np.nan], [-np.inf, -np.inf, np.inf, 0]], "float32"
)
ALONG = {  # op -> its attrs over rows
    **dict.fromkeys(("sum", "prod", "mean", "amax", "amin", "any", "all"), {"axis": (1,), "keepdims": False}),
    **dict.fromkeys(("argmax", "argmin"), {"axis": 1, "keepdims": False}),
    "var": {"axis": (1,), "keepdims": False, "correction": 1},
    "cumsum": {"axis": 1},
    "sort": {"axis": 1, "descending": True},
    "median": {},
    "softmax": {"dim": 1},
    "log_softmax": {"dim": 1},
}


def agree(op, arrays, attrs) -> bool | None:
    """True if both agree except for rounding; None if the op refuses these values."""

    def call(*tensors):
        return apply(OPS[op], *tensors, **attrs)

    tensors = list(map(from_numpy, arrays))
    try:
        want = call(*tensors)
    except MinflowError:
        return None
    got = run(traced_model(call, tensors), *arrays)
    want = [t.numpy() for t in (want if isinstance(want, list | tuple) else [want])]
    return all(np.allclose(a, b, 1e-5, 1e-35, equal_nan=True) for a, b in zip(got, want, strict=True))


def ops_that_differ() -> set[str]:
    """All ops with a difference, among unary and binary ops on floats and ops along an axis."""
    grid = [x.reshape(-1).copy() for x in np.meshgrid(VALUES, VALUES)]
    found = {op for op, attrs in ALONG.items() if agree(op, [ROWS], attrs) is False}
    for op in CONVERTERS:
        if OPS[op].elementwise and len(OPS[op].inputs) < 3:
            if agree(op, [VALUES] if len(OPS[op].inputs) == 1 else grid, {}) is False:
                found.add(op)
    return found
