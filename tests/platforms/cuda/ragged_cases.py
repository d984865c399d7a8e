"""Calls of the kernels of the platform "cupy" on sizes that no block and no warp divides, by the name of the op.

Each kernel has a line here, in alphabetical order. `test_cuda_kernels.py` runs it in each float dtype, with the
examples of the op. Elementwise ops need no line.
"""

from minflow.core.ops.conv import GEOMETRY, out_shape, positions
from minflow.core.ops.examples import Case, bools, case, floats, ints, positive
from minflow.core.ops.update import count, rate, settings
from minflow.core.spec import bfloat16, float16, float32, float64, int64

ROWS = [(3, 5), (2, 33), (70, 11), (2, 3, 257), (2, 1100), (1, 9000)]  # one team of threads after the other
COLUMNS = [((5, 37, 3), 1), ((3, 500, 2), 1), ((8200, 3), 0), ((3, 8, 1100), 1)]  # elements that are not contiguous
SCORES = [(3, 5), (70, 11), (2, 1100), (2, 7, 3, 5), (1, 3, 8300), (2500, 3)]  # of classes along axis 1


def labels_of(shape: tuple[int, ...]):
    return ints(shape[0], *shape[2:], low=0, high=shape[1], dtype="int32" if len(shape) > 2 else "int64")


def loss_cases(*before: str, weights: bool = False, needs: int = 0, **more) -> list[Case]:
    """Calls of a loss of labels, or of its gradient with `before`: the names of inputs beside labels and weight."""
    found = []
    for k, shape in enumerate(SCORES):
        reduction = ("mean", "sum", "none")[k % 3]
        grad = floats(shape[0], *shape[2:]) if reduction == "none" else floats(())
        by_name = {"x": floats(*shape), "probs": positive(*shape, low=0.1, high=0.9), "grad": grad}
        inputs = [labels_of(shape) if name == "labels" else by_name[name] for name in before]
        if weights:
            inputs.append((1, positive(shape[1]), 2.5)[k % 3])
        attrs = dict(ignore_index=(-100, 1)[k % 2], reduction=reduction, **more)
        found.append(Case(tuple(inputs), attrs | ({"needs": needs} if needs else {})))
        if "x" not in before and "probs" not in before:
            found[-1].attrs["shape"] = shape
    return found


def norm_cases(*sizes: tuple, inputs: int = 3, **attrs) -> tuple[list[Case], list[Case]]:
    """Calls of a norm with weight and perhaps bias, or with numbers in their place, and of its gradient.

    sizes: (shape of x, shape of the weight, attrs).
    """
    forward, backward = [], []
    for k, (shape, vector, more) in enumerate(sizes):
        x = floats(*shape, low=-2.0, high=5.0)
        affine = ([positive(*vector), floats(*vector)], [1, 0], [positive(*vector), 0])[k % 3]
        needs = sum([1 << i for i, y in enumerate((x, *affine[: inputs - 1])) if not isinstance(y, int)])
        both = (x, *affine[: inputs - 1]), attrs | more | {"eps": (1e-5, 0.1)[k % 2]}
        forward.append(Case(*both))
        backward.append(Case((floats(*shape), *both[0]), both[1] | {"needs": needs}))
    return forward, backward


NORMALIZED = [(x, x[-1:], {"axes": (-1,)}) for x in [*ROWS, (70, 3, 33)]] + [((5, 3, 7), (3, 7), {"axes": (-2, -1)})]
GROUPED = [((3, 6, 7), (6,), 2), ((2, 4, 3, 5), (4,), 4), ((2, 6, 23, 17), (6,), 1), ((3, 10), (10,), 5)]
LAYER_NORM, RMS_NORM = norm_cases(*NORMALIZED), norm_cases(*NORMALIZED, inputs=2)
GROUP_NORM = norm_cases(*[(x, v, {"groups": n}) for x, v, n in GROUPED])
AFFINE = [lambda c: (positive(c), floats(c)), lambda c: (2.0, 1)]
BATCHES = [(7, 3), (300, 37), (2, 3, 5), (3, 40, 7, 7), (5, 2, 40, 33), (1, 70, 9)]

COUNTER = ints(2, low=-(2**62), high=2**62)  # key and counter
DRAWN = [
    dict(shape=shape, dtype=dtype, offset=offset)
    for shape, offset in [((3, 7), 0), ((1030,), 5)]
    for dtype in (float16, bfloat16, float32, float64)
]
ADAPTIVE = [((2, 3, 9, 11), (4, 3)), ((1, 2, 5, 7), (8, 9)), ((3, 5, 7, 7), (1, 1)), ((1, 2, 40, 41), (1, 1))]
STRIDES = [((3, 3), (1, 1), (1, 1)), ((3, 2), (2, 3), (1, 0)), ((2, 5), (3, 2), (0, 2))]
POOLED = [
    ((1 + i, 3, 13, 22), dict(kernel_size=k, stride=s, padding=p, ceil_mode=bool(i % 2)))
    for i, (k, s, p) in enumerate(STRIDES)
]
MEANS = [
    (x, attrs | dict(count_include_pad=include, divisor_override=divisor))
    for x, attrs in POOLED
    for include, divisor in [(True, None), (False, None), (True, 3)]
]
MAXIMA = [(x, attrs | dict(dilation=dilation)) for x, attrs in POOLED for dilation in [(1, 1), (2, 3)]]


def pooled(x, kernel_size, stride, padding, ceil_mode, **_) -> tuple[int, ...]:
    return positions(x[2:], kernel_size, stride, padding, (1, 1), ceil_mode)


LINES = [*[case(floats(*shape), dim=len(shape) - 1) for shape in ROWS], *[case(floats(*x), dim=d) for x, d in COLUMNS]]

# Shapes of images and filters, and what differs from GEOMETRY. The comments name the tiles of `kernels/conv.py`.
CONVOLUTIONS = [
    ((2, 5, 9, 11), (70, 5, 3, 3), dict(padding=(1, 1))),  # square tiles
    ((3, 9, 13, 12), (33, 9, 3, 3), dict(stride=(2, 2), padding=(1, 1))),
    ((1, 3, 23, 19), (70, 3, 7, 7), dict(stride=(2, 2), padding=(3, 3))),  # of WEIGHT_GRAD, large tiles
    ((2, 40, 7, 7), (130, 40, 1, 1), {}),
    ((2, 6, 12, 11), (10, 3, 5, 5), dict(groups=2, padding=(4, 4), dilation=(2, 2))),  # wide tiles
    ((2, 6, 12, 11), (10, 3, 3, 2), dict(groups=2, padding=(1, 1), dilation=(1, 2), stride=(3, 2))),
    ((2, 6, 12, 11), (10, 6, 1, 1), dict(stride=(2, 3))),
    ((1, 60, 3, 3), (61, 60, 3, 3), dict(padding=(1, 1))),  # parts of the sum
    ((3, 2, 16, 15), (5, 2, 3, 3), dict(padding=(1, 1))),
    ((3, 5, 17, 15), (10, 1, 5, 5), dict(groups=5, padding=(1, 2), stride=(2, 3))),  # depthwise
    ((2, 3, 29, 23), (3, 1, 7, 7), dict(groups=3, padding=(3, 3))),
    ((2, 3, 12, 13), (3, 1, 2, 26), dict(groups=3, padding=(3, 8))),  # a filter too wide for registers
]
LARGE_TILES = ((1, 3, 131, 130), (70, 3, 1, 2), {}), ((1, 70, 131, 130), (3, 70, 1, 2), {})  # of FORWARD, INPUT_GRAD

# Shapes of queries, keys and values, and masks. The comments name the tiles of `kernels/attention.py`.
ATTENTION = [
    ((2, 3, 5, 20), (2, 3, 37, 20), (2, 3, 37, 33), 0, False),  # keys of several tiles
    ((1, 70, 64), (1, 65, 64), (1, 65, 64), bools(70, 65), True),  # queries of several tiles
    ((2, 33, 100), (2, 40, 100), (2, 40, 72), floats(2, 1, 40), False),  # tiles of wide features
]

PARAMETERS = floats(7, 301), floats(4097), floats(1)
DECAY = dict(weight_decay=0.1, maximize=False)

RAGGED = {
    "adam": [case(x, x(), x(), positive(*x.shape), count, rate, **settings) for x in PARAMETERS],
    "adam_amsgrad": [
        case(x, x(), x(), positive(*x.shape), positive(*x.shape), count, rate, **settings) for x in PARAMETERS
    ],
    "adaptive_avg_pool2d": [case(floats(*x), output_size=y) for x, y in ADAPTIVE],
    "adaptive_avg_pool2d_grad": [case(floats(*x[:2], *y), shape=x) for x, y in ADAPTIVE],
    "avg_pool2d": [case(floats(*x), **attrs) for x, attrs in MEANS],
    "avg_pool2d_grad": [case(floats(*x[:2], *pooled(x, **attrs)), shape=x, **attrs) for x, attrs in MEANS],
    "batch_norm": [case(floats(*x, low=-2.0, high=5.0), positive(x[1]), floats(x[1]), eps=1e-5) for x in BATCHES],
    "batch_norm_grad": [
        case(floats(*x), floats(*x), positive(x[1]), floats(x[1]), positive(x[1]), eps=1e-5) for x in BATCHES
    ],
    "batch_norm_inference": [
        case(floats(*x), floats(x[1]), positive(x[1]), *AFFINE[k % 2](x[1]), eps=1e-5) for k, x in enumerate(BATCHES)
    ],
    "bernoulli": [case(floats(*x, low=0.0, high=1.0), COUNTER, offset=0) for x in [(3, 7), (1030,)]],
    "conv2d": [case(floats(*x), floats(*w), **GEOMETRY | o) for x, w, o in CONVOLUTIONS],
    "conv2d_input_grad": [
        case(floats(*out_shape(x, w, o)), floats(*w), shape=x, **GEOMETRY | o)
        for x, w, o in [*CONVOLUTIONS, LARGE_TILES[1]]
    ],
    "conv2d_weight_grad": [
        case(floats(*out_shape(x, w, o)), floats(*x), shape=w, **GEOMETRY | o) for x, w, o in CONVOLUTIONS
    ],
    "cross_entropy": [
        *loss_cases("x", "labels", weights=True, label_smoothing=0.0),
        *loss_cases("x", "labels", weights=True, label_smoothing=0.2),
    ],
    "cross_entropy_grad": [
        *loss_cases("grad", "x", "labels", weights=True, label_smoothing=0.0, needs=1),
        *loss_cases("grad", "x", "labels", weights=True, label_smoothing=0.2, needs=1),
    ],
    "dropout": [case(floats(*x), COUNTER, p=p, offset=2**40) for x, p in [((3, 7), 0.3), ((2100,), 0.5), ((5,), 1.0)]],
    "group_norm": GROUP_NORM[0],
    "group_norm_grad": GROUP_NORM[1],
    "index_add": [
        case(floats(7, 33), ints(500, high=7), floats(500, 33), axis=0),  # long runs
        case(floats(3, 300, 5), ints(7, 11, low=-300, high=300), floats(3, 7, 11, 5), axis=1),
        case(floats(40), ints(333, low=39, high=40), floats(333), axis=0),  # one run
    ],
    "layer_norm": LAYER_NORM[0],
    "layer_norm_grad": LAYER_NORM[1],
    "log_softmax": LINES,
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
    "max_pool2d": [case(floats(*x), **attrs) for x, attrs in MAXIMA],
    "max_pool2d_grad": [
        case(floats(2, 3, 5, 7), ints(2, 3, 5, 7, high=99), shape=(2, 3, 9, 11), apart=False),
        case(floats(1, 2, 20, 21), ints(1, 2, 20, 21, high=4), shape=(1, 2, 40, 43), apart=False),
        case(floats(2, 1, 1, 1), ints(2, 1, 1, 1, high=12), shape=(2, 1, 3, 4), apart=True),
    ],
    "nll": loss_cases("x", "labels"),
    "nll_grad": loss_cases("grad", "labels"),
    "nll_loss": loss_cases("x", "labels", weights=True),
    "nll_loss_grad": loss_cases("grad", "x", "labels", weights=True, needs=1),
    "normal": [case(COUNTER, mean=1.0, std=2.0, **x) for x in DRAWN],
    "randint": [case(COUNTER, low=-3, high=2**31, **x) for x in [*DRAWN, dict(shape=(13,), dtype=int64, offset=0)]],
    "rms_norm": RMS_NORM[0],
    "rms_norm_grad": RMS_NORM[1],
    "scaled_dot_product_attention": [
        case(floats(*q), floats(*k), floats(*v), mask, scale=0.25, nowhere=nowhere)
        for q, k, v, mask, nowhere in ATTENTION
    ],
    "scaled_dot_product_attention_grad": [
        case(floats(*q[:-1], v[-1]), floats(*q), floats(*k), floats(*v), mask, scale=0.25, nowhere=nowhere, needs=needs)
        for (q, k, v, mask, nowhere), needs in zip(ATTENTION, (7, 7, 6))
    ],
    "scatter_add": [
        case(floats(5, 3), ints(90, 3, high=5), floats(90, 3), dim=0),
        case(floats(1000), ints(77, high=1000), floats(77), dim=0),
    ],
    "sgd": [case(x, x(), rate, **DECAY) for x in PARAMETERS],
    "sgd_dampened": [case(x, x(), x(), count, rate, momentum=0.9, dampening=0.2, **DECAY) for x in PARAMETERS],
    "sgd_momentum": [case(x, x(), x(), rate, momentum=0.9, nesterov=True, **DECAY) for x in PARAMETERS],
    "softmax": LINES,
    "softmax_cross_entropy": loss_cases("x", "labels"),
    "softmax_cross_entropy_grad": loss_cases("probs", "labels", "grad"),
    "uniform": [case(COUNTER, low=low, high=high, **x) for x in DRAWN for low, high in [(0.0, 1.0), (-1.5, 2.25)]],
}
