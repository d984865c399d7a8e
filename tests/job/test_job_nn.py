"""flow.nn of job functions on eager tensors: windows and paddings, losses and norms against plain numpy."""

import itertools
import math

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import DTypeError, JobError, OutOfRangeError, ShapeError
from minflow import nn
from minflow.job import NN
from minflow.job.legacy import losses, windows
from minflow.job.legacy.meanings import LOSSES, legacy_function

RNG = np.random.default_rng(0)


def t(array, dtype="float64"):
    return flow.from_numpy(np.ascontiguousarray(array, dtype))


def numbers(*shape):
    return RNG.standard_normal(shape)


# ---- windows: one pixel at a time, from the definition -----------------------------------------------------------


def pads_of(n, k, s, d, padding):
    """(before, after) of one axis, written from the reference's words: ceil(n / s) positions, the odd pixel
    somewhere."""
    reach = (k - 1) * d + 1
    if not isinstance(padding, str):
        return padding
    if padding == "VALID":
        return 0, 0
    total = max(0, ((n + s - 1) // s - 1) * s + reach - n)
    return (total // 2, total - total // 2) if padding == "SAME_UPPER" else (total - total // 2, total // 2)


def conv_by_hand(x, w, s, pads, d, groups):
    x = np.pad(x, ((0, 0), (0, 0), *pads))
    f, c, kh, kw = w.shape
    oh, ow = [(n - (k - 1) * e - 1) // p + 1 for n, k, e, p in zip(x.shape[2:], (kh, kw), d, s)]
    out = np.zeros((x.shape[0], f, oh, ow))
    for g, i, j in itertools.product(range(groups), range(oh), range(ow)):
        mine = slice(g * f // groups, (g + 1) * f // groups)
        rows = slice(i * s[0], i * s[0] + (kh - 1) * d[0] + 1, d[0])
        columns = slice(j * s[1], j * s[1] + (kw - 1) * d[1] + 1, d[1])
        out[:, mine, i, j] = np.tensordot(x[:, g * c : (g + 1) * c, rows, columns], w[mine], ((1, 2, 3), (1, 2, 3)))
    return out


CONVS = [
    # size, kernel, stride, dilation, groups
    ((8, 8), (3, 3), 2, 1, 1), ((7, 9), (3, 2), (2, 3), 1, 1), ((8, 5), (5, 5), 1, 1, 1), ((9, 8), (2, 4), 1, 1, 1),
    ((9, 10), (3, 2), 2, 2, 1), ((6, 6), (1, 1), 2, 1, 1), ((8, 8), (3, 3), 2, 1, 2), ((5, 4), (1, 3), 3, 1, 1),
]  # fmt: skip
PIXELS = [[0, 0, (1, 0), (0, 2)], [(0, 0), (0, 0), 2, (1, 1)], [0, 0, (3, 0), (0, 1)]]
PADDINGS = ["VALID", "SAME", "same", "SAME_LOWER", "SAME_UPPER", *PIXELS]


@pytest.mark.parametrize("padding", PADDINGS, ids=str)
@pytest.mark.parametrize("size, kernel, stride, dilation, groups", CONVS)
def test_conv2d_in_both_formats(size, kernel, stride, dilation, groups, padding):
    x, w = numbers(2, 4, *size), numbers(6, 4 // groups, *kernel)
    s = stride if isinstance(stride, tuple) else (stride, stride)
    sides = [padding.upper()] * 2 if isinstance(padding, str) else [
        (p, p) if isinstance(p, int) else p for p in padding[2:]
    ]
    pads = [pads_of(n, k, p, dilation, side) for n, k, p, side in zip(size, kernel, s, sides)]
    expected = conv_by_hand(x, w, s, pads, (dilation, dilation), groups)
    got = nn.conv2d(t(x), t(w), stride, padding, dilations=dilation, groups=groups).numpy()
    assert got.shape == expected.shape and np.allclose(got, expected)
    if padding in ("SAME", "SAME_UPPER"):
        assert got.shape[2:] == tuple(-(-n // p) for n, p in zip(size, s))
    if groups == 1:
        last = padding if isinstance(padding, str) else [0, *padding[2:], 0]
        got = nn.conv2d(t(x.transpose(0, 2, 3, 1)), t(w.transpose(0, 2, 3, 1)), stride, last, "NHWC", dilation).numpy()
        assert np.allclose(got.transpose(0, 3, 1, 2), expected)


def test_same_puts_the_odd_pixel_first_and_same_upper_last():
    x, w = t(np.arange(4.0).reshape(1, 1, 1, 4)), t(np.array([[[[1.0, 10.0]]]]))
    assert nn.conv2d(x, w, 1, "SAME").numpy().ravel().tolist() == [0, 10, 21, 32]
    assert nn.conv2d(x, w, 1, "SAME_LOWER").numpy().ravel().tolist() == [0, 10, 21, 32]
    assert nn.conv2d(x, w, 1, "SAME_UPPER").numpy().ravel().tolist() == [10, 21, 32, 3]
    assert nn.compat_conv2d(x, w, 1, "SAME").numpy().ravel().tolist() == [10, 21, 32, 3]


def test_same_of_seed_003_pads_first_and_halves():
    axes = windows.windows("", (128, 128), (3, 3), (2, 2), (1, 1), "SAME_LOWER")
    assert axes == [(64, 1, 0), (64, 1, 0)]
    assert windows.windows("", (128,), (3,), (2,), (1,), "SAME_UPPER") == [(64, 0, 1)]


def test_a_padding_that_the_op_can_say_copies_no_image():
    x = flow.zeros(1, 1, 128, 128)
    for padding, said in (("SAME_LOWER", (1, 1)), ("SAME_UPPER", (0, 0))):
        axes = windows.windows("", (128, 128), (3, 3), (2, 2), (1, 1), padding)
        wide, sides = windows.fitted(x, axes, (3, 3), (2, 2), (1, 1), (9, 9))
        assert sides == said and (wide is x) == (padding == "SAME_LOWER")


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_UPPER", [0, 0, (2, 1)]], ids=str)
def test_conv1d(padding):
    x, w = numbers(2, 3, 10), numbers(4, 3, 4)
    pads = pads_of(10, 4, 2, 1, padding.upper() if isinstance(padding, str) else padding[2])
    expected = conv_by_hand(x[:, :, None], w[:, :, None], (1, 2), [(0, 0), pads], (1, 1), 1)[:, :, 0]
    assert np.allclose(nn.conv1d(t(x), t(w), 2, padding).numpy(), expected)
    if isinstance(padding, str):
        got = nn.conv1d(t(x.transpose(0, 2, 1)), t(w.transpose(0, 2, 1)), 2, padding, "NWC").numpy()
        assert np.allclose(got.transpose(0, 2, 1), expected)


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_UPPER"])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_conv2d_transpose_is_the_adjoint_of_conv2d(padding, data_format):
    image, w = numbers(2, 3, 9, 8), numbers(5, 3, 3, 2)
    if data_format == "NHWC":
        image, w = image.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1)
    forward = nn.conv2d(t(image), t(w), 2, padding, data_format).numpy()
    back = numbers(*forward.shape)
    got = nn.conv2d_transpose(t(back), t(w), image.shape, 2, padding, data_format).numpy()
    assert got.shape == image.shape
    assert np.isclose((forward * back).sum(), (got * image).sum())  # <Ax, y> = <x, A'y>


def pool_by_hand(x, k, s, pads, kind, ceil=False):
    n, m = x.shape[2:]
    marked = np.pad(x, ((0, 0), (0, 0), *pads), constant_values=np.nan)
    counts = []
    for i, (size, kk, ss) in enumerate(zip((n, m), k, s)):
        free = size + sum(pads[i]) - kk
        count = (math.ceil(free / ss) if ceil else free // ss) + 1
        counts.append(count - 1 if ceil and (count - 1) * ss >= size + pads[i][0] else count)
    out = np.zeros((*x.shape[:2], *counts))
    for i, j in itertools.product(*map(range, counts)):
        seen = marked[:, :, i * s[0] : i * s[0] + k[0], j * s[1] : j * s[1] + k[1]]
        out[:, :, i, j] = np.nanmax(seen, (2, 3)) if kind == "max" else np.nanmean(seen, (2, 3))
    return out


POOLS = [((6, 6), (2, 2), 2), ((7, 9), (3, 2), (2, 3)), ((5, 5), (4, 3), 1), ((5, 7), (2, 2), 2), ((8, 7), (3, 3), 2)]
POOL_PADDINGS = ["VALID", "SAME", "SAME_UPPER", [0, 0, (1, 0), (0, 1)], [0, 0, 1, 1], [0, 0, (0, 1), (1, 0)]]


@pytest.mark.parametrize("padding", POOL_PADDINGS, ids=str)
@pytest.mark.parametrize("size, kernel, stride", POOLS)
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_sees_the_pixels_of_the_image_only(kind, size, kernel, stride, padding):
    x = numbers(2, 3, *size) - 5  # below 0, so that a 0 of the padding would be seen
    s = stride if isinstance(stride, tuple) else (stride, stride)
    sides = [padding] * 2 if isinstance(padding, str) else [(p, p) if isinstance(p, int) else p for p in padding[2:]]
    pads = [pads_of(n, k, p, 1, side) for n, k, p, side in zip(size, kernel, s, sides)]
    pool = nn.max_pool2d if kind == "max" else nn.avg_pool2d
    expected = pool_by_hand(x, kernel, s, pads, kind)
    assert np.allclose(pool(t(x), kernel, stride, padding).numpy(), expected)
    if isinstance(padding, str):
        got = pool(t(x.transpose(0, 2, 3, 1)), kernel, stride, padding, data_format="NHWC").numpy()
        assert np.allclose(got.transpose(0, 3, 1, 2), expected)
    else:
        assert np.allclose(
            pool(t(x), kernel, stride, padding, ceil_mode=True).numpy(), pool_by_hand(x, kernel, s, pads, kind, True)
        )


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_UPPER"])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_of_one_axis(kind, padding):
    x = numbers(2, 3, 9) - 5
    expected = pool_by_hand(x[:, :, None], (1, 4), (1, 2), [(0, 0), pads_of(9, 4, 2, 1, padding)], kind)[:, :, 0]
    assert np.allclose(getattr(nn, f"{kind}_pool1d")(t(x), 4, 2, padding).numpy(), expected)


@pytest.mark.parametrize("padding", ["SAME", "SAME_UPPER", [0, 0, (2, 0), (0, 1)]], ids=str)
def test_gradients_go_through_paddings(padding):
    from minflow.core.grad.gradcheck import gradcheck

    x, w = t(numbers(1, 2, 6, 5)), t(numbers(2, 2, 3, 4))
    x.requires_grad_(), w.requires_grad_()
    assert gradcheck(lambda x, w: nn.conv2d(x, w, 2, padding), (x, w))
    assert gradcheck(lambda x: nn.max_pool2d(x, (3, 4), 2, padding), (x,))
    assert gradcheck(lambda x: nn.avg_pool2d(x, (3, 4), 2, padding), (x,))


X, W = flow.zeros(2, 3, 8, 8), flow.zeros(4, 3, 3, 3)


@pytest.mark.parametrize("wrong, told", [
    (lambda: nn.conv2d(X, W, 1, "FULL"), "padding is 'FULL'"),
    (lambda: nn.conv2d(X, W, 1, (1, 1)), r"padding is \(1, 1\).*axis of NCHW"),
    (lambda: nn.conv2d(X, W, 1, [0, 1, 1, 1]), r"padding is \[0, 1, 1, 1\]"),
    (lambda: nn.conv2d(X, W, 1, [0, 0, (1, 2, 3), 1]), r"\(1, 2, 3\)"),
    (lambda: nn.conv2d(X, W, 1, "SAME", "CHWN"), "data_format is 'CHWN'"),
    (lambda: nn.conv2d(X, W, 0, "SAME"), "strides is 0"),
    (lambda: nn.conv2d(X, W, (1, 2, 3), "SAME"), r"strides is \(1, 2, 3\)"),
    (lambda: nn.conv2d(X, flow.zeros(4, 2, 3, 3), 1, "SAME"), r"3 channels \(axis 1\), the filters take 2"),
    (lambda: nn.conv2d(X, W, 1, "SAME", groups=3), "the filters take 3 in groups=3"),
    (lambda: nn.conv2d(flow.zeros(3, 8, 8), W, 1, "SAME"), "3 axes, wanted 4"),
    (lambda: nn.conv2d(X, flow.zeros(4, 3, 9, 9), 1, "VALID"), "reaches over 9 pixels does not fit in 8"),
    (lambda: nn.max_pool2d(X, 9, 1, "VALID"), "reaches over 9 pixels"),
    (lambda: nn.max_pool2d(X, 2, 1, [0, 0, 2, 0]), r"\(2, 2\).*windows of \[2, 2\]"),
    (lambda: nn.conv2d_transpose(X, W, (2, 4, 9, 9), 1), r"output_shape \[2, 4, 9, 9\] asks for \[2, 4, 7, 7\]"),
    (lambda: nn.conv2d_transpose(X, W), "output_shape is None"),
    (lambda: legacy_function("losses.pixel_shuffle_of")(X, 2), "3 channels cannot become 2 x 2"),
])  # fmt: skip
def test_mistakes_with_windows(wrong, told):
    with pytest.raises(ShapeError, match=told):
        wrong()


def test_an_array_is_told_to_become_a_tensor():
    with pytest.raises(DTypeError, match=r"nn\.conv2d: the input is no tensor but ndarray"):
        nn.conv2d(np.zeros((1, 1, 3, 3)), W, 1, "SAME")


# ---- number by number --------------------------------------------------------------------------------------------

V = np.array([-5.0, -2.0, -0.5, 0.0, 0.5, 2.0, 7.0])


@pytest.mark.parametrize("name, expected", [
    ("relu", np.maximum(V, 0)),
    ("relu6", np.clip(V, 0, 6)),
    ("leaky_relu", np.where(V > 0, V, 0.2 * V)),
    ("elu", np.where(V > 0, V, np.exp(V) - 1)),
    ("swish", V / (1 + np.exp(-V))),
    ("mish", V * np.tanh(np.log(1 + np.exp(V)))),
    ("hardsigmoid", np.clip(V / 6 + 0.5, 0, 1)),
    ("hardswish", V * np.clip(V / 6 + 0.5, 0, 1)),
    ("hardtanh", np.clip(V, -1, 1)),
])  # fmt: skip
def test_activations(name, expected):
    assert np.allclose(getattr(nn, name)(t(V), name="activation").numpy(), expected)


def test_elu_of_large_numbers_is_finite():
    x = t([1000.0, -1000.0]).requires_grad_()
    out = nn.elu(x)
    out.sum().backward()
    assert out.numpy().tolist() == [1000.0, -1.0] and x.grad.numpy().tolist() == [1.0, 0.0]


def test_options_of_activations():
    assert np.allclose(nn.leaky_relu(t(V), 0.5).numpy(), np.where(V > 0, V, 0.5 * V))
    assert np.allclose(nn.elu(t(V), 2.0).numpy(), np.where(V > 0, V, 2 * (np.exp(V) - 1)))
    assert np.allclose(nn.swish(t(V), 2.0).numpy(), V / (1 + np.exp(-2 * V)))
    assert np.allclose(nn.hardtanh(t(V), -3, 1).numpy(), np.clip(V, -3, 1))
    with pytest.raises(OutOfRangeError, match="min_val 2 is above max_val 1"):
        nn.hardtanh(t(V), 2, 1)


def test_softmax_takes_the_last_axis():
    x = numbers(2, 3, 4)
    for axis in (None, -1, 2, 0):
        at = 2 if axis is None else axis
        e = np.exp(x) / np.exp(x).sum(at, keepdims=True)
        assert np.allclose(nn.softmax(t(x), axis).numpy(), e)
        assert np.allclose(nn.logsoftmax(t(x), axis).numpy(), np.log(e))
    with pytest.raises(ShapeError, match="axis is 3, and the input has 3 axes"):
        nn.softmax(t(x), 3)


def test_bias_add_in_each_format():
    x, b = numbers(2, 3, 4, 5), numbers(3)
    assert np.allclose(nn.bias_add(t(x), t(b)).numpy(), x + b[:, None, None])
    assert np.allclose(nn.bias_add(t(x), t(b), "NCHW").numpy(), x + b[:, None, None])
    assert np.allclose(nn.bias_add(t(x.transpose(0, 2, 3, 1)), t(b), "NHWC").numpy(), x.transpose(0, 2, 3, 1) + b)
    assert np.allclose(nn.bias_add(t(x[:, :, 0, 0]), t(b)).numpy(), x[:, :, 0, 0] + b)
    with pytest.raises(ShapeError, match=r"value has \[2, 3, 4, 5\] \(channels are axis 1\), bias \[5\]"):
        nn.bias_add(t(x), t(numbers(5)))
    with pytest.raises(ShapeError, match="data_format is 'CHW'"):
        nn.bias_add(t(x), t(b), "CHW")


# ---- norms -------------------------------------------------------------------------------------------------------


def test_moments_do_not_cancel():
    x = numbers(4, 3, 5) + 1e8
    mean, variance = nn.moments(t(x), [0, 2])
    assert mean.shape == (3,) and np.allclose(mean.numpy(), x.mean((0, 2)), rtol=1e-12)
    assert np.allclose(variance.numpy(), x.var((0, 2)), rtol=1e-6)
    assert nn.moments(t(x), [0, -1], keepdims=True)[1].shape == (1, 3, 1)
    with pytest.raises(ShapeError, match="axis is 3"):
        nn.moments(t(x), 3)


@pytest.mark.parametrize("axis", [1, -1])
def test_batch_normalization_by_given_numbers(axis):
    x = numbers(2, 3, 4, 3)
    mean, variance, offset, scale = numbers(3), numbers(3) ** 2, numbers(3), numbers(3)
    shape = [1, 3, 1, 1] if axis == 1 else [3]
    expected = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 0.1)
    assert np.allclose(
        nn.batch_normalization(t(x), t(mean), t(variance), variance_epsilon=0.1, axis=axis).numpy(), expected
    )
    got = nn.batch_normalization(t(x), t(mean), t(variance), t(offset), t(scale), 0.1, axis).numpy()
    assert np.allclose(got, expected * scale.reshape(shape) + offset.reshape(shape))


def test_batch_normalization_names_the_axis_that_would_fit():
    with pytest.raises(ShapeError, match=r"mean has shape \[4\], axis 1 of x has 3(.|\n)*axis=2"):
        nn.batch_normalization(flow.zeros(2, 3, 4), flow.zeros(4), flow.zeros(4))


def test_layer_norm():
    x, gamma, beta = numbers(2, 3, 4), numbers(4), numbers(4)
    expected = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    assert np.allclose(nn.layer_norm(t(x)).numpy(), expected)
    assert np.allclose(nn.layer_norm(t(x), t(gamma), t(beta)).numpy(), expected * gamma + beta)
    rows = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    assert np.allclose(nn.layer_norm(t(x), begin_norm_axis=-1).numpy(), rows)
    with pytest.raises(
        ShapeError, match=r"gamma has shape \[3, 4\], begin_params_axis=2 wants \[4\](.|\n)*begin_params_axis=1"
    ):
        nn.layer_norm(t(x), flow.zeros(3, 4))


# ---- dropout -----------------------------------------------------------------------------------------------------


def test_dropout_scales_what_it_keeps():
    x = flow.ones(200, 100)
    out = nn.dropout(x, rate=0.25).numpy()
    assert set(np.unique(out)) == {0, np.float32(1 / 0.75)} and abs((out == 0).mean() - 0.25) < 0.02
    assert nn.dropout(x, 0) is x and nn.dropout(x, 0.0) is x
    assert np.array_equal(nn.dropout(x, 0.5, seed=1).numpy(), nn.dropout(x, 0.5, seed=1).numpy())


def test_noise_shape_drops_whole_channels():
    out = nn.dropout(flow.ones(8, 16, 5, 5), 0.5, noise_shape=(8, 16, 1, 1)).numpy().reshape(128, 25)
    assert (out == out[:, :1]).all() and 0 < (out[:, 0] == 0).sum() < 128
    with pytest.raises(ShapeError, match=r"noise_shape \(3, 1\) does not broadcast to \(2, 5\)"):
        nn.dropout(flow.ones(2, 5), 0.5, noise_shape=(3, 1))


@pytest.mark.parametrize("rate", [1, 1.5, -0.1, "half", True])
def test_a_rate_is_a_share_below_one(rate):
    with pytest.raises(OutOfRangeError, match=f"rate is {rate!r}"):
        nn.dropout(flow.ones(3), rate)


def test_random_mask_like():
    mask = nn.random_mask_like(flow.zeros(100, 100), 0.3, seed=2)
    assert mask.dtype is flow.int8 and set(np.unique(mask.numpy())) == {0, 1} and abs(mask.numpy().mean() - 0.7) < 0.02
    assert nn.random_mask_like(flow.zeros(3), 0.0).numpy().tolist() == [1, 1, 1]


# ---- losses ------------------------------------------------------------------------------------------------------


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (6, 1)])
def test_sparse_softmax_cross_entropy_is_one_loss_per_example(shape, dtype):
    lead = shape[:-1] if shape == (6, 1) else shape
    logits, labels = numbers(*lead, 5), RNG.integers(0, 5, shape)
    expected = -np.take_along_axis(log_softmax(logits).reshape(-1, 5), labels.reshape(-1, 1), 1).reshape(shape)
    for function in (
        nn.sparse_softmax_cross_entropy_with_logits, nn.distributed_sparse_softmax_cross_entropy_with_logits
    ):
        got = function(t(labels, dtype), t(logits), name="softmax_loss").numpy()
        assert got.shape == shape and np.allclose(got, expected)
    probabilities = np.exp(log_softmax(logits))
    assert np.allclose(nn.sparse_cross_entropy(t(labels, dtype), t(probabilities)).numpy(), expected)


def test_the_gradient_of_the_sparse_loss():
    logits, labels = t(numbers(4, 3)).requires_grad_(), t([0, 2, 1, 1], "int32")
    nn.sparse_softmax_cross_entropy_with_logits(labels, logits).sum().backward()
    expected = np.exp(log_softmax(logits.numpy()))
    expected[np.arange(4), labels.numpy()] -= 1
    assert np.allclose(logits.grad.numpy(), expected)


def test_losses_by_distributions():
    logits, labels = numbers(2, 3, 5), np.exp(log_softmax(numbers(2, 3, 5)))
    got = nn.softmax_cross_entropy_with_logits(t(labels), t(logits)).numpy()
    assert np.allclose(got, -(labels * log_softmax(logits)).sum(-1))
    z = RNG.integers(0, 2, (2, 3, 5)).astype(float)
    p = 1 / (1 + np.exp(-logits))
    got = nn.sigmoid_cross_entropy_with_logits(t(z), t(logits)).numpy()
    assert np.allclose(got, -(z * np.log(p) + (1 - z) * np.log(1 - p)))
    assert np.allclose(nn.sigmoid_cross_entropy_with_logits(t(z, "int32"), t(logits)).numpy(), got)


LABELS, LOGITS = flow.zeros(4, dtype=flow.int32), flow.zeros(4, 3)
SPARSE = nn.sparse_softmax_cross_entropy_with_logits


@pytest.mark.parametrize("kind, wrong, told", [
    (
        JobError, lambda: SPARSE(LOGITS, LABELS),
        r"labels and logits are swapped: labels is float32\[4, 3\], logits is int32\[4\]"
    ),
    (JobError, lambda: SPARSE(LOGITS, LABELS.float()), "labels and logits are swapped"),
    (
        ShapeError, lambda: SPARSE(flow.zeros(5, dtype=flow.int32), LOGITS),
        r"labels has shape \[5\], wanted \[4\] for logits \[4, 3\]"
    ),
    (ShapeError, lambda: SPARSE(flow.zeros(4, 3, dtype=flow.int32), LOGITS), r"\[4, 3\](.|\n)*one-hot"),
    (DTypeError, lambda: SPARSE(LABELS.float(), LOGITS), "labels is float32, and class numbers are integers"),
    (DTypeError, lambda: SPARSE(LABELS, LABELS), r"logits is int32\[4\], wanted floating"),
    (OutOfRangeError, lambda: SPARSE(LABELS + 3, LOGITS), "3"),
    (OutOfRangeError, lambda: SPARSE(LABELS - 1, LOGITS), "-1"),
    (ShapeError, lambda: nn.softmax_cross_entropy_with_logits(LABELS, LOGITS), r"int32\[4\].*float32\[4, 3\]"),
    (ShapeError, lambda: nn.sigmoid_cross_entropy_with_logits(LOGITS, flow.zeros(4)), r"float32\[4, 3\]"),
    (ShapeError, lambda: losses.mse_loss(LOGITS, flow.zeros(4)), r"input \[4, 3\], target \[4\]"),
])  # fmt: skip
def test_mistakes_with_losses(kind, wrong, told):
    with pytest.raises(kind, match=told):
        wrong()


A, B = numbers(4, 3), numbers(4, 3)
P = 1 / (1 + np.exp(-A))
Z = (B > 0).astype(float)
Q = np.exp(log_softmax(B))


def norm(x):
    return np.sqrt((np.abs(x + 1e-6) ** 2).sum(-1))


EACH = {
    "L1Loss": (lambda f: f(t(A), t(B), reduction="none"), np.abs(A - B)),
    "MSELoss": (lambda f: f(t(A), t(B), reduction="none"), (A - B) ** 2),
    "BCELoss": (lambda f: f(t(P), t(Z), t(Q), reduction="none"), -Q * (Z * np.log(P) + (1 - Z) * np.log(1 - P))),
    "BCEWithLogitsLoss": (lambda f: f(t(A), t(Z), t(Q), t([2.0, 1.0, 3.0]), reduction="none"),
                          -Q * ([2.0, 1.0, 3.0] * Z * np.log(P) + (1 - Z) * np.log(1 - P))),
    "MarginRankingLoss": (
        lambda f: f(t(A), t(B), t(2 * Z - 1), 0.5, reduction="none"), np.maximum(0, -(2 * Z - 1) * (A - B) + 0.5)
    ),
    "KLDivLoss": (lambda f: f(t(A), t(Q), reduction="none"), Q * (np.log(Q) - A)),
    "TripletMarginLoss": (
        lambda f: f(t(A), t(B), t(Q), reduction="none"), np.maximum(0, norm(A - B) - norm(A - Q) + 1)
    ),
}  # fmt: skip

CAPITALS = {name: getattr(nn, name) if name in NN else legacy_function(LOSSES[f"flow.nn.{name}"])
            for name in (
                "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
                "TripletMarginLoss"
            )}


@pytest.mark.parametrize("name", EACH)
def test_losses_of_predictions(name):
    call, expected = EACH[name]
    assert np.allclose(call(CAPITALS[name]).numpy(), expected)


def test_reductions_and_variants():
    f = CAPITALS
    assert np.isclose(f["MSELoss"](t(A), t(B)).item(), ((A - B) ** 2).mean())
    assert np.isclose(f["L1Loss"](t(A), t(B), reduction="sum").item(), np.abs(A - B).sum())
    assert np.allclose(f["KLDivLoss"](t(A), t(np.log(Q)), True, reduction="none").numpy(), Q * (np.log(Q) - A))
    assert f["KLDivLoss"](t(A), t(Q * 0)).item() == 0
    got = f["TripletMarginLoss"](t(A), t(B), t(Q), swap=True, reduction="none").numpy()
    assert np.allclose(got, np.maximum(0, norm(A - B) - np.minimum(norm(A - Q), norm(B - Q)) + 1))
    with pytest.raises(ShapeError, match="reduction is 'all'"):
        f["MSELoss"](t(A), t(B), reduction="all")


def test_pixel_shuffle():
    x = np.arange(2 * 12 * 2 * 3).reshape(2, 12, 2, 3).astype(float)
    out = legacy_function("losses.pixel_shuffle_of")(t(x), 2).numpy()
    assert out.shape == (2, 3, 4, 6)
    for c, i, j in itertools.product(range(3), range(4), range(6)):
        assert (out[:, c, i, j] == x[:, c * 4 + (i % 2) * 2 + j % 2, i // 2, j // 2]).all()
    assert nn.PixelShufflev2(t(x), 1, 4).shape == (2, 3, 2, 12)


def test_every_name_takes_a_name():
    import inspect

    for function in (*[getattr(nn, name) for name in NN], *CAPITALS.values()):
        assert "name" in inspect.signature(function).parameters and function.__doc__


def test_a_steep_slope_of_the_modern_leaky_relu_in_a_job():
    """Comparisons of Blobs give int8; what is written on operators must not depend on that."""
    x = np.array([-2.0, -0.5, 0.0, 3.0], "float32")

    @flow.global_function()
    def steep(x: tp.Numpy.Placeholder((4,))) -> tp.Numpy:
        return flow.nn.functional.leaky_relu(x, 2.0)

    np.testing.assert_array_equal(steep(x), np.where(x > 0, x, 2 * x))
