"""Calls of the kernels of the platform "cupy" on sizes that no block and no warp divides, by the name of the op.

Each kernel has a line here, in alphabetical order. `test_cuda_kernels.py` runs it in each float dtype, with the
examples of the op. Elementwise ops need no line.
"""

from minflow.core.ops.conv import GEOMETRY, out_shape
from minflow.core.ops.examples import case, floats

# Shapes of images and filters, and what differs from GEOMETRY. The comments name the tiles of `kernels/conv.py`.
CONVOLUTIONS = [
    ((2, 5, 9, 11), (70, 5, 3, 3), dict(padding=(1, 1))),  # square tiles
    ((3, 9, 13, 12), (33, 9, 3, 3), dict(stride=(2, 2), padding=(1, 1))),
    ((1, 3, 23, 19), (70, 3, 7, 7), dict(stride=(2, 2), padding=(3, 3))),
    ((2, 40, 7, 7), (130, 40, 1, 1), {}),
    ((2, 6, 12, 11), (10, 3, 5, 5), dict(groups=2, padding=(4, 4), dilation=(2, 2))),  # wide tiles
    ((2, 6, 12, 11), (10, 3, 3, 2), dict(groups=2, padding=(1, 1), dilation=(1, 2), stride=(3, 2))),
    ((2, 6, 12, 11), (10, 6, 1, 1), dict(stride=(2, 3))),
    ((1, 60, 3, 3), (61, 60, 3, 3), dict(padding=(1, 1))),  # parts of the sum
    ((3, 2, 16, 15), (5, 2, 3, 3), dict(padding=(1, 1))),
    ((1, 3, 131, 130), (128, 3, 1, 1), {}),  # large tiles
    ((1, 128, 91, 93), (3, 128, 1, 1), dict(stride=(2, 2))),
    ((3, 5, 17, 15), (10, 1, 5, 5), dict(groups=5, padding=(1, 2), stride=(2, 3))),  # depthwise
    ((2, 3, 29, 23), (3, 1, 7, 7), dict(groups=3, padding=(3, 3))),
    ((2, 3, 12, 13), (3, 1, 2, 26), dict(groups=3, padding=(3, 8))),  # a filter too wide for registers
]

RAGGED = {
    "conv2d": [case(floats(*x), floats(*w), **GEOMETRY | o) for x, w, o in CONVOLUTIONS],
    "conv2d_input_grad": [
        case(floats(*out_shape(x, w, o)), floats(*w), shape=x, **GEOMETRY | o) for x, w, o in CONVOLUTIONS
    ],
    "conv2d_weight_grad": [
        case(floats(*out_shape(x, w, o)), floats(*x), shape=w, **GEOMETRY | o) for x, w, o in CONVOLUTIONS
    ],
    "matmul": [
        case(floats(*a), floats(*b), ta=ta, tb=tb)
        for a, b, ta, tb in [
            ((37, 53), (53, 19), False, False),
            ((1, 70), (33, 70), False, True),
            ((70, 1), (70, 1), True, False),
            ((2, 3, 7, 5), (5, 11), False, False),  # one matrix for all rows
            ((4, 1, 7, 5), (1, 3, 9, 5), False, True),  # a batch without a common stride
            ((6, 1, 5, 7), (5, 5, 3), True, False),
        ]
    ],
    "softmax": [case(floats(*shape), dim=len(shape) - 1) for shape in [(3, 5), (2, 33), (2, 3, 257), (1, 1000)]],
}
