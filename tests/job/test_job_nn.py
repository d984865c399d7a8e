"""flow.nn of job functions in jobs and on eager tensors: windows, losses and norms against modern functions."""

import inspect
import itertools

import numpy as np
import pytest
from legacy import check_rows, run_in_job

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DTypeError, JobError, OutOfRangeError, ShapeError
from minflow.core.grad.gradcheck import gradcheck
from minflow.job import NN
from minflow.job.legacy import losses, windows
from minflow.job.legacy.overloads import LOSSES, legacy_function
from minflow.nn import functional as F

RNG = np.random.default_rng(0)


def t(array, dtype="float64"):
    return flow.from_numpy(np.ascontiguousarray(array, dtype))


def numbers(*shape):
    return RNG.standard_normal(shape)


# ---- windows, from the definition ----------------------------------------------------------------------------------


def pads_of(n, k, s, d, padding):
    """Return (before, after) of one axis from the reference's definition: ceil(n / s) positions, the odd pixel on
    one side.
    """
    reach = (k - 1) * d + 1
    if not isinstance(padding, str):
        return (padding, padding) if isinstance(padding, int) else padding
    if padding == "VALID":
        return 0, 0
    total = max(0, ((n + s - 1) // s - 1) * s + reach - n)
    return (total // 2, total - total // 2) if padding == "SAME_UPPER" else (total - total // 2, total // 2)


def wide(x, pads, value=0.0):
    return F.pad(x, [side for pair in reversed(pads) for side in pair], value=value)


def convolved(x, w, stride, dilation, groups, pads):
    conv = getattr(F, f"conv{len(pads)}d")
    return conv(wide(t(x), pads), t(w), stride=stride, dilation=dilation, groups=groups).numpy()


def pooled(kind, x, kernel, strides, pads, ceil=False):
    """Pool the pixels of the image only. ceil: a last window may exceed the padding if it starts before its end."""
    if ceil:
        for i, (size, k, s) in enumerate(zip(x.shape[2:], kernel, strides)):
            more = -(size + sum(pads[i]) - k) % s
            starts = size + sum(pads[i]) + more - k
            pads[i] = (pads[i][0], pads[i][1] + (more if starts < size + pads[i][0] else 0))
    if kind == "max":
        return getattr(F, f"max_pool{len(pads)}d")(wide(t(x), pads, -np.inf), kernel, strides).numpy()
    pool = getattr(F, f"avg_pool{len(pads)}d")
    return (pool(wide(t(x), pads), kernel, strides) / pool(wide(t(x * 0 + 1), pads), kernel, strides)).numpy()


def last(x):
    """Move channels last."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def all_pads(size, kernel, strides, dilation, padding):
    sides = [padding.upper()] * len(size) if isinstance(padding, str) else padding[2:]
    return [pads_of(n, k, s, dilation, side) for n, k, s, side in zip(size, kernel, strides, sides)]


CONVS = {  # size, kernel, strides, dilation, groups
    1: [((10,), (4,), (2,), 1, 1)],
    2: [
        ((8, 8), (3, 3), (2, 2), 1, 1),
        ((7, 9), (3, 2), (2, 3), 1, 1),
        ((8, 5), (5, 5), (1, 1), 1, 1),
        ((9, 8), (2, 4), (1, 1), 1, 1),
        ((9, 10), (3, 2), (2, 2), 2, 1),
        ((6, 6), (1, 1), (2, 2), 1, 1),
        ((8, 8), (3, 3), (2, 2), 1, 2),
        ((5, 4), (1, 3), (3, 3), 1, 1),
    ],
    3: [((4, 6, 5), (3, 3, 3), (2, 2, 2), 1, 1)],
}
POOLS = {  # size, kernel, strides
    1: [((9,), (4,), (2,))],
    2: [
        ((6, 6), (2, 2), (2, 2)),
        ((7, 9), (3, 2), (2, 3)),
        ((5, 5), (4, 3), (1, 1)),
        ((5, 7), (2, 2), (2, 2)),
        ((8, 7), (3, 3), (2, 2)),
    ],
    3: [((4, 6, 5), (3, 3, 3), (2, 2, 2))],
}
NAMED = ["VALID", "SAME", "SAME_LOWER", "SAME_UPPER"]
PIXELS = {  # convolutions allow more padding than a window covers
    1: [[0, 0, (2, 1)]],
    2: [[0, 0, (1, 0), (0, 1)], [0, 0, 1, 1], [0, 0, (0, 1), (1, 0)]],
    3: [[(0, 0), (0, 0), (2, 0), (0, 1), (1, 1)]],
}
WIDER = [[0, 0, (1, 0), (0, 2)], [(0, 0), (0, 0), 2, (1, 1)], [0, 0, (3, 0), (0, 1)]]
FIRST, LAST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}, {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def moved(padding):
    """The same padding for an image with channels last."""
    return padding if isinstance(padding, str) else [0, *padding[2:], 0]


def one(values):
    """One number for all axes, if they are equal."""
    return values[0] if len(set(values)) == 1 else values


def conv_cases(rank):
    conv = getattr(nn, f"conv{rank}d")
    paddings = [*NAMED, "same", *(WIDER if rank == 2 else PIXELS[rank])]
    for (size, kernel, strides, dilation, groups), pad in itertools.product(CONVS[rank], paddings):
        x, w, s = numbers(2, 4, *size), numbers(6, 4 // groups, *kernel), one(strides)
        out = convolved(x, w, strides, dilation, groups, all_pads(size, kernel, strides, dilation, pad))
        if pad in ("SAME", "SAME_UPPER"):
            assert out.shape[2:] == tuple(-(-n // p) for n, p in zip(size, strides))
        yield (lambda x, w, s=s, pad=pad, d=dilation, g=groups: conv(x, w, s, pad, FIRST[rank], d, groups=g)), out, x, w
        if groups == 1:
            yield (
                (lambda x, w, s=s, pad=pad, d=dilation: conv(x, w, s, moved(pad), LAST[rank], d)),
                last(out),
                last(x),
                last(w),
            )


def pool_cases(name):
    kind, rank, pool = name[:3], int(name[-2]), getattr(nn, name)
    for (size, kernel, strides), pad in itertools.product(POOLS[rank], [*NAMED, *PIXELS[rank]]):
        x = numbers(2, 3, *size) - 5  # negative, so that a 0 of the padding would be visible
        k, s, pads = one(kernel), one(strides), all_pads(size, kernel, strides, 1, pad)
        out = pooled(kind, x, kernel, strides, pads)
        yield (lambda x, k=k, s=s, pad=pad: pool(x, k, s, pad)), out, x
        yield (lambda x, k=k, s=s, pad=pad: pool(x, k, s, moved(pad), LAST[rank])), last(out), last(x)
        if not isinstance(pad, str):
            yield (
                (lambda x, k=k, s=s, pad=pad: pool(x, k, s, pad, ceil_mode=True)),
                pooled(kind, x, kernel, strides, pads, ceil=True),
                x,
            )


@pytest.mark.parametrize("rank", CONVS, ids="conv{}d".format)
def test_convolutions(rank):
    check_rows(list(conv_cases(rank)), 1e-6, every=9)


@pytest.mark.parametrize("name", [f"{kind}_pool{rank}d" for kind in ("max", "avg") for rank in POOLS])
def test_pooling_ignores_padding(name):
    check_rows(list(pool_cases(name)), 1e-6, every=9)


def test_same_pads_first_and_same_upper_last():
    x, w = t(np.arange(4.0).reshape(1, 1, 1, 4)), t(np.array([[[[1.0, 10.0]]]]))
    assert nn.conv2d(x, w, 1, "SAME").numpy().ravel().tolist() == [0, 10, 21, 32]
    assert nn.conv2d(x, w, 1, "SAME_LOWER").numpy().ravel().tolist() == [0, 10, 21, 32]
    assert nn.conv2d(x, w, 1, "SAME_UPPER").numpy().ravel().tolist() == [10, 21, 32, 3]
    assert nn.compat_conv2d(x, w, 1, "SAME").numpy().ravel().tolist() == [10, 21, 32, 3]


def test_symmetric_padding_does_not_copy_the_image():
    x = flow.zeros(1, 1, 128, 128)
    for padding, pixels, said in (("SAME_LOWER", (1, 0), (1, 1)), ("SAME_UPPER", (0, 1), (0, 0))):
        axes = windows.windows("", (128, 128), (3, 3), (2, 2), (1, 1), padding)
        assert axes == [(64, *pixels)] * 2
        fitted, sides = windows.fitted(x, axes, (3, 3), (2, 2), (1, 1), (9, 9))
        assert sides == said and (fitted is x) == (padding == "SAME_LOWER")


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_UPPER"])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_conv2d_transpose_is_the_adjoint_of_conv2d(padding, data_format):
    image, w = numbers(2, 3, 9, 8), numbers(5, 3, 3, 2)
    if data_format == "NHWC":
        image, w = image.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1)
    forward = nn.conv2d(t(image), t(w), 2, padding, data_format).numpy()
    back = numbers(*forward.shape)
    asked = [n if letter in "HW" else 7 for letter, n in zip(data_format, image.shape)]  # only H and W count
    got = nn.conv2d_transpose(t(back), t(w), asked, 2, padding, data_format).numpy()
    assert got.shape == image.shape
    assert np.isclose((forward * back).sum(), (got * image).sum())  # <Ax, y> = <x, A'y>


@pytest.mark.parametrize("padding", ["SAME", "SAME_UPPER", [0, 0, (2, 0), (0, 1)]], ids=str)
def test_gradients_go_through_paddings(padding):
    x, w = t(numbers(1, 1, 4, 3)).requires_grad_(), t(numbers(1, 1, 3, 2)).requires_grad_()
    assert gradcheck(lambda x, w: nn.conv2d(x, w, 2, padding), (x, w))
    assert gradcheck(lambda x: nn.max_pool2d(x, (3, 2), 2, padding), (x,))
    assert gradcheck(lambda x: nn.avg_pool2d(x, (3, 2), 2, padding), (x,))


# ---- ops -------------------------------------------------------------------------------------------------------------


def cross_entropy(labels, logits):
    return F.cross_entropy(logits.reshape(-1, 5), labels.reshape(-1).long(), reduction="none").reshape(labels.shape)


def normalized(x, mean, variance, offset=None, scale=None, axis=1):
    return F.batch_norm(x.transpose(1, axis), mean, variance, scale, offset, eps=0.1).transpose(1, axis)


pixel_shuffle = legacy_function("losses.pixel_shuffle_of")
CAPITALS = {
    name: getattr(nn, name) if name in NN else legacy_function(LOSSES[f"flow.nn.{name}"])
    for name in (
        "BCELoss",
        "BCEWithLogitsLoss",
        "KLDivLoss",
        "L1Loss",
        "MSELoss",
        "MarginRankingLoss",
        "TripletMarginLoss",
    )
}
V = np.array([-5.0, -2.0, -0.5, 0.0, 0.5, 2.0, 7.0])
X, W = flow.zeros(2, 3, 8, 8), flow.zeros(4, 3, 3, 3)
CUBE, IMAGES, BIAS = numbers(2, 3, 4), numbers(2, 3, 4, 5), numbers(3)
BATCH, MEAN, VAR, OFFSET, SCALE = numbers(2, 3, 4, 3), numbers(3), numbers(3) ** 2, numbers(3), numbers(3)
GAMMA, BETA = numbers(4), numbers(4)
LABELS, LOGITS = flow.zeros(4, dtype=flow.int32), flow.zeros(4, 3)
SPARSE = nn.sparse_softmax_cross_entropy_with_logits
SCORES = [
    (numbers(*shape[: 2 if shape == (2, 3) else 1], 5), RNG.integers(0, 5, shape).astype(dtype))
    for shape in ((6,), (2, 3), (6, 1))
    for dtype in ("int32", "int64", "int8")
]
ONES = RNG.integers(0, 2, (2, 3, 5)).astype(float)
FIVE, SHARES = numbers(2, 3, 5), F.softmax(t(numbers(2, 3, 5)), -1).numpy()
A, B = numbers(4, 3), numbers(4, 3)
P, Z, Q = 1 / (1 + np.exp(-A)), (B > 0).astype(float), F.softmax(t(B), -1).numpy()


def each_reduction(name, *arrays, **options):
    """Rows that compare a loss with its modern class; a sum or mean has one axis."""

    def row(reduction, shape):
        modern = getattr(nn, name)(reduction=reduction, **options)
        return (
            lambda *given: CAPITALS[name](*given, reduction=reduction, **options),
            lambda *given: modern(*given).reshape(shape),
            *arrays,
        )

    shape = arrays[0].shape[:1] if name == "TripletMarginLoss" else arrays[0].shape
    return [row("none", shape), row("sum", (1,)), row("mean", (1,))]


OPS = {
    **{
        name: [(getattr(nn, name), getattr(F, name), V)]
        for name in ("relu", "relu6", "mish", "hardsigmoid", "hardswish")
    },
    "elu": [(nn.elu, F.elu, V), (lambda x: nn.elu(x, 2.0), lambda x: F.elu(x, 2.0), V)],
    "hardtanh": [
        (nn.hardtanh, F.hardtanh, V),
        (lambda x: nn.hardtanh(x, -3, 1), lambda x: F.hardtanh(x, -3, 1), V),
        (lambda: nn.hardtanh(t(V), 2, 1), OutOfRangeError, "min_val 2 is above max_val 1"),
    ],
    "leaky_relu": [
        (nn.leaky_relu, lambda x: F.leaky_relu(x, 0.2), V),
        (lambda x: nn.leaky_relu(x, 0.5), lambda x: F.leaky_relu(x, 0.5), V),
    ],
    "swish": [(nn.swish, F.silu, V), (lambda x: nn.swish(x, 2.0), lambda x: F.silu(x * 2) / 2, V)],
    "softmax": [
        (nn.softmax, lambda x: F.softmax(x, -1), CUBE),
        *[
            (lambda x, axis=axis: nn.softmax(x, axis), lambda x, axis=axis: F.softmax(x, axis), CUBE)
            for axis in (-1, 2, -3, 0)
        ],
        (lambda: nn.softmax(t(CUBE), 3), ShapeError, "axis is 3, and the input has 3 axes"),
    ],
    "logsoftmax": [
        (nn.logsoftmax, lambda x: F.log_softmax(x, -1), CUBE),
        (lambda x: nn.logsoftmax(x, 0), lambda x: F.log_softmax(x, 0), CUBE),
    ],
    "bias_add": [
        (nn.bias_add, IMAGES + BIAS[:, None, None], IMAGES, BIAS),
        (lambda x, b: nn.bias_add(x, b, "NCHW"), IMAGES + BIAS[:, None, None], IMAGES, BIAS),
        (lambda x, b: nn.bias_add(x, b, "NHWC"), last(IMAGES) + BIAS, last(IMAGES), BIAS),
        (nn.bias_add, IMAGES[:, :, 0, 0] + BIAS, IMAGES[:, :, 0, 0], BIAS),
        (
            lambda: nn.bias_add(t(IMAGES), t(numbers(5))),
            ShapeError,
            r"value has \[2, 3, 4, 5\] \(channels are axis 1\), bias \[5\]",
        ),
        (lambda: nn.bias_add(t(IMAGES), t(BIAS), "CHW"), ShapeError, "data_format is 'CHW'"),
    ],
    "batch_normalization": [
        *[
            (
                lambda x, *rest, axis=axis: nn.batch_normalization(x, *rest, variance_epsilon=0.1, axis=axis),
                lambda x, *rest, axis=axis: normalized(x, *rest, axis=axis),
                BATCH,
                MEAN,
                VAR,
                *affine,
            )
            for axis in (1, -1)
            for affine in ((), (OFFSET, SCALE))
        ],
        (
            lambda: nn.batch_normalization(flow.zeros(2, 3, 4), flow.zeros(4), flow.zeros(4)),
            ShapeError,
            r"mean has shape \[4\], axis 1 of x has 3(.|\n)*axis=2",
        ),
    ],
    "layer_norm": [
        (nn.layer_norm, lambda x: F.layer_norm(x, (3, 4)), CUBE),
        (nn.layer_norm, lambda x, gamma, beta: F.layer_norm(x, (3, 4)) * gamma + beta, CUBE, GAMMA, BETA),
        (lambda x: nn.layer_norm(x, begin_norm_axis=-1), lambda x: F.layer_norm(x, (4,)), CUBE),
        (
            lambda: nn.layer_norm(t(CUBE), flow.zeros(3, 4)),
            ShapeError,
            r"gamma has shape \[3, 4\], begin_params_axis=2 wants \[4\](.|\n)*begin_params_axis=1",
        ),
    ],
    "moments": [(lambda: nn.moments(t(CUBE), 3), ShapeError, "axis is 3")],
    "dropout": [
        *[
            (lambda rate=rate: nn.dropout(flow.ones(3), rate), OutOfRangeError, f"got {rate!r}")
            for rate in (1, 1.5, -0.1, "half", True)
        ],
        (
            lambda: nn.dropout(flow.ones(2, 5), 0.5, noise_shape=(3, 1)),
            ShapeError,
            r"noise_shape \(3, 1\) does not broadcast to \(2, 5\)",
        ),
    ],
    "sparse_softmax_cross_entropy_with_logits": [
        *[(lambda y, x: SPARSE(y, x, name="softmax_loss"), cross_entropy, y, x) for x, y in SCORES],
        (
            lambda: SPARSE(LOGITS, LABELS),
            JobError,
            r"labels and logits are swapped: labels is float32\[4, 3\], logits is int32\[4\]",
        ),
        (lambda: SPARSE(LOGITS, LABELS.float()), JobError, "labels and logits are swapped"),
        (
            lambda: SPARSE(flow.zeros(5, dtype=flow.int32), LOGITS),
            ShapeError,
            r"labels must have shape \[4\] for logits \[4, 3\], got \[5\]",
        ),
        (lambda: SPARSE(flow.zeros(4, 3, dtype=flow.int32), LOGITS), ShapeError, r"\[4, 3\](.|\n)*one-hot"),
        (lambda: SPARSE(LABELS.float(), LOGITS), DTypeError, "labels is float32, and class indices are integers"),
        (lambda: SPARSE(LABELS, np.zeros((4, 3))), DTypeError, "the logits must be a tensor, got ndarray"),
        (lambda: SPARSE(LABELS, LABELS), DTypeError, r"logits must be floating scores \(N, C\), got int32\[4\]"),
        (lambda: SPARSE(LABELS + 3, LOGITS), OutOfRangeError, "3"),
        (lambda: SPARSE(LABELS - 1, LOGITS), OutOfRangeError, "-1"),
    ],
    "distributed_sparse_softmax_cross_entropy_with_logits": [
        (nn.distributed_sparse_softmax_cross_entropy_with_logits, cross_entropy, y, x) for x, y in SCORES
    ],
    "sparse_cross_entropy": [
        (lambda y, x: nn.sparse_cross_entropy(y, F.softmax(x, -1)), cross_entropy, y, x) for x, y in SCORES
    ],
    "softmax_cross_entropy_with_logits": [
        (nn.softmax_cross_entropy_with_logits, lambda y, x: -(y * F.log_softmax(x, -1)).sum(-1), SHARES, FIVE),
        (
            lambda x: nn.softmax_cross_entropy_with_logits(flow.one_hot(flow.tensor([1, 0]), 2).to(flow.int32), x),
            lambda x: F.cross_entropy(x, flow.tensor([1, 0]), reduction="none"),
            np.float32([[1, 3], [2, 2]]),
        ),
        (lambda: nn.softmax_cross_entropy_with_logits(LABELS, LOGITS), ShapeError, r"int32\[4\].*float32\[4, 3\]"),
    ],
    "sigmoid_cross_entropy_with_logits": [
        *[
            (
                nn.sigmoid_cross_entropy_with_logits,
                lambda y, x: F.binary_cross_entropy_with_logits(x, y.double(), reduction="none"),
                ONES.astype(dtype),
                FIVE,
            )
            for dtype in ("float64", "int32")
        ],
        (lambda: nn.sigmoid_cross_entropy_with_logits(LOGITS, flow.zeros(4)), ShapeError, r"float32\[4, 3\]"),
    ],
    "conv2d": [
        (lambda: nn.conv2d(X, W, 1, "FULL"), ShapeError, "padding is 'FULL'"),
        (lambda: nn.conv2d(X, W, 1, (1, 1)), ShapeError, r"axis of NCHW.*, got \(1, 1\)"),
        (lambda: nn.conv2d(X, W, 1, [0, 1, 1, 1]), ShapeError, r"got \[0, 1, 1, 1\]"),
        (lambda: nn.conv2d(X, W, 1, [0, 0, (1, 2, 3), 1]), ShapeError, r"\(1, 2, 3\)"),
        (lambda: nn.conv2d(X, W, 1, "SAME", "CHWN"), ShapeError, "data_format is 'CHWN'"),
        (lambda: nn.conv2d(X, W, 0, "SAME"), ShapeError, "strides must be .*, got 0"),
        (lambda: nn.conv2d(X, W, (1, 2, 3), "SAME"), ShapeError, r"strides must be .*, got \(1, 2, 3\)"),
        (
            lambda: nn.conv2d(X, flow.zeros(4, 2, 3, 3), 1, "SAME"),
            ShapeError,
            r"3 channels \(axis 1\), the filters take 2",
        ),
        (lambda: nn.conv2d(X, W, 1, "SAME", groups=3), ShapeError, "the filters take 3 in groups=3"),
        (lambda: nn.conv2d(flow.zeros(3, 8, 8), W, 1, "SAME"), ShapeError, "must have 4 axes, NCHW, got 3"),
        (
            lambda: nn.conv2d(X, flow.zeros(4, 3, 9, 9), 1, "VALID"),
            ShapeError,
            "reaches over 9 pixels does not fit in 8",
        ),
        (
            lambda: nn.conv2d(np.zeros((1, 1, 3, 3)), W, 1, "SAME"),
            DTypeError,
            r"nn\.conv2d: the input must be a tensor, got ndarray",
        ),
    ],
    "conv3d": [
        (
            lambda: nn.conv3d(flow.zeros(1, 2, 3, 3), flow.zeros(1, 2, 3, 3), 1, "SAME"),
            ShapeError,
            "conv3d: the input must have 5 axes, NCDHW, got 4",
        ),
    ],
    "max_pool2d": [
        (lambda: nn.max_pool2d(X, 9, 1, "VALID"), ShapeError, "reaches over 9 pixels"),
        (lambda: nn.max_pool2d(X, 2, 1, [0, 0, 2, 0]), ShapeError, r"\(2, 2\).*windows of \[2, 2\]"),
    ],
    "conv2d_transpose": [
        (
            lambda: nn.conv2d_transpose(X, W, (2, 4, 9, 9), 1),
            ShapeError,
            r"output_shape \[2, 4, 9, 9\] asks for \[2, 4, 7, 7\]",
        ),
        (lambda: nn.conv2d_transpose(X, W), ShapeError, "output_shape is None"),
    ],
    "pixel_shuffle": [(lambda: pixel_shuffle(X, 2), ShapeError, "3 channels cannot become 2 x 2")],
    "mse_loss": [(lambda: losses.mse_loss(LOGITS, flow.zeros(4)), ShapeError, r"input \[4, 3\], target \[4\]")],
    "L1Loss": each_reduction("L1Loss", A, B),
    "MSELoss": [
        *each_reduction("MSELoss", A, B),
        (lambda: CAPITALS["MSELoss"](t(A), t(B), reduction="all"), ShapeError, "reduction is 'all'"),
    ],
    "BCELoss": each_reduction("BCELoss", P, Z, weight=t(Q)),
    "BCEWithLogitsLoss": each_reduction("BCEWithLogitsLoss", A, Z, weight=t(Q), pos_weight=t([2.0, 1.0, 3.0])),
    "MarginRankingLoss": each_reduction("MarginRankingLoss", A, B, 2 * Z - 1, margin=0.5),
    "KLDivLoss": [
        *each_reduction("KLDivLoss", A, Q),
        *each_reduction("KLDivLoss", A, np.log(Q), log_target=True),
        (CAPITALS["KLDivLoss"], [0.0], A, Q * 0),
    ],
    "TripletMarginLoss": [
        *each_reduction("TripletMarginLoss", A, B, Q),
        *each_reduction("TripletMarginLoss", A, B, Q, swap=True),
    ],
}


@pytest.mark.parametrize("name", OPS)
def test_op(name):
    check_rows(OPS[name], 1e-6)


def test_moments_do_not_cancel():
    x = numbers(4, 3, 5) + 1e8
    mean, variance = nn.moments(t(x), [0, 2])
    assert mean.shape == (3,) and np.allclose(mean.numpy(), x.mean((0, 2)), rtol=1e-12)
    assert np.allclose(variance.numpy(), x.var((0, 2)), rtol=1e-6)
    assert nn.moments(t(x), [0, -1], keepdims=True)[1].shape == (1, 3, 1)


def test_dropout_scales_what_it_keeps():
    x = flow.ones(200, 100)
    out = nn.dropout(x, rate=0.25).numpy()
    assert set(np.unique(out)) == {0, np.float32(1 / 0.75)} and abs((out == 0).mean() - 0.25) < 0.02
    assert nn.dropout(x, 0) is x and nn.dropout(x, 0.0) is x
    assert np.array_equal(nn.dropout(x, 0.5, seed=1).numpy(), nn.dropout(x, 0.5, seed=1).numpy())


def test_noise_shape_drops_whole_channels():
    out = nn.dropout(flow.ones(8, 16, 5, 5), 0.5, noise_shape=(8, 16, 1, 1)).numpy().reshape(128, 25)
    assert (out == out[:, :1]).all() and 0 < (out[:, 0] == 0).sum() < 128


def test_random_mask_like():
    mask = nn.random_mask_like(flow.zeros(100, 100), 0.3, seed=2)
    assert mask.dtype is flow.int8 and set(np.unique(mask.numpy())) == {0, 1} and abs(mask.numpy().mean() - 0.7) < 0.02
    assert nn.random_mask_like(flow.zeros(3), 0.0).numpy().tolist() == [1, 1, 1]


def test_gradient_of_sparse_cross_entropy():
    logits, labels = t(numbers(4, 3)).requires_grad_(), t([0, 2, 1, 1], "int32")
    nn.sparse_softmax_cross_entropy_with_logits(labels, logits).sum().backward()
    expected = F.softmax(logits, -1).detach().numpy()
    expected[np.arange(4), labels.numpy()] -= 1
    assert np.allclose(logits.grad.numpy(), expected)


def test_pixel_shuffle():
    x = t(np.arange(2 * 12 * 2 * 3).reshape(2, 12, 2, 3))
    assert pixel_shuffle(x, 2).tolist() == F.pixel_shuffle(x, 2).tolist()
    wider = x.reshape(2, 3, 4, 2, 3).permute(0, 1, 3, 4, 2).reshape(2, 3, 2, 12)
    assert nn.PixelShufflev2(x, 1, 4).tolist() == wider.tolist()


def test_every_function_accepts_a_name():
    for function in (*[getattr(nn, name) for name in NN], *CAPITALS.values()):
        assert "name" in inspect.signature(function).parameters and function.__doc__


def test_modern_leaky_relu_with_steep_slope_in_a_job():
    """Comparisons of Blobs return int8; code written with operators must not depend on that."""
    check_rows([(lambda x: F.leaky_relu(x, 2.0), np.where(V > 0, V, 2 * V), V)])


# ---- norms that were functions with class names ----------------------------------------------------------------------

VOLUME = numbers(2, 3, 4, 6, 5).astype("float32")


def by_hand(x, parts):
    rows = x.reshape(len(x), parts, -1)
    return F.layer_norm(t(rows), (rows.shape[2],)).numpy().reshape(x.shape)


NORMS = {
    "InstanceNorm1d": (VOLUME[..., 0, 0], 3), "InstanceNorm2d": (VOLUME[..., 0], 3), "InstanceNorm3d": (VOLUME, 3),
    "GroupNorm": (np.repeat(VOLUME[..., 0], 2, axis=1), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_functions_of_blobs(name, empty_session):
    x, parts = NORMS[name]
    options = dict(num_groups=2) if name == "GroupNorm" else {}

    def job(x):
        function = getattr(flow.nn, name)
        return function(function(x, **options), affine=False, **options)

    np.testing.assert_allclose(run_in_job(job, x), by_hand(by_hand(x, parts), parts), rtol=1e-4, atol=1e-4)
    shapes = {name: it.shape for name, it in flow.get_all_variables().items()}
    assert shapes == {f"{name}_0_gamma": (1, parts, 1), f"{name}_0_beta": (1, parts, 1)}
    assert isinstance(getattr(flow.nn, name)(2, 4) if options else getattr(flow.nn, name)(3), flow.nn.Module)


def test_two_norms_differ_and_equal_names_share_variables(empty_session):
    def job(x):
        return flow.nn.InstanceNorm3d(flow.nn.InstanceNorm3d(flow.nn.InstanceNorm3d(x)), name="own")

    run_in_job(job, VOLUME)
    run_in_job(job, VOLUME)  # another job of the same layers shares their variables
    assert [name for name in flow.get_all_variables() if "gamma" in name] == [
        "InstanceNorm3d_0_gamma",
        "InstanceNorm3d_1_gamma",
        "own_gamma",
    ]
    with pytest.raises(ShapeError, match="InstanceNorm2d: the input must have 4 axes, got 5"):
        run_in_job(lambda x: flow.nn.InstanceNorm2d(x), VOLUME)
    with pytest.raises(ShapeError, match="GroupNorm: num_groups is 2 for shape"):
        run_in_job(lambda x: flow.nn.GroupNorm(x, 2), VOLUME)


def test_scalars_have_one_axis():
    """That generation had no 0-d arrays: its programs write loss[0]."""
    numbers = VOLUME[0, 0, 0]
    for job in (flow.math.reduce_sum, lambda x: flow.nn.L1Loss(x, x), lambda x: flow.nn.BCEWithLogitsLoss(x, x, x)):
        assert run_in_job(job, numbers).shape == (1,)
    assert run_in_job(lambda x: flow.math.reduce_sum(x, keepdims=True), numbers).shape == (1, 1)
    assert run_in_job(lambda x: x.sum(), numbers).shape == ()
