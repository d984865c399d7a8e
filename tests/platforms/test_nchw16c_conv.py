"""minflow.platforms.compiled.kernels.nchw16c_conv: dense convolutions in NCHW16c, against NumPy's in float64.

For each direction: rounding errors like NumPy's float32; lanes beyond the channels stay zero; rows beyond the pixels do
not matter; no write outside the result; the same bits at any thread count, whatever scratch memory holds.
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

pytest.importorskip("numba")
from conv_cases import DIRECTIONS, ONE, Case, arrays, cases, check, numpys
from kernel_checks import EPS, examples, in_blocks

from minflow.core.spec import Spec, float32
from minflow.platforms.compiled.kernels import conv_geometry, im2col, nchw16c_conv
from minflow.platforms.compiled.passes.nchw16c import ACTS, LANES, blocked, out_of_blocks
from minflow.platforms.compiled.runtime import task_scheduler, tasks
from tests.single_tasks import run_builder, same_bits


def done(builder, inputs, size, **attrs):
    """Result of the builder's tasks; None if it returns none."""
    found = run_builder(builder, inputs, [Spec(tuple(size), float32)], **attrs)
    return found and found[0]


def compiled_results(case, x, w, g, bias):
    """Dictionary from direction to the compiled result, without the directions left to NumPy. Images of few channels
    are not blocked.
    """
    grads, shape = in_blocks(g), blocked(x.shape)
    inputs = x if case.c < LANES and case.as_they_are else in_blocks(x)
    found = {
        "results": done(
            nchw16c_conv.blocks_conv2d, [inputs, w, bias], grads.shape, shape=x.shape, act=case.act, **case.names
        ),
        "images": done(nchw16c_conv.blocks_conv2d_input_grad, [grads, w], shape, shape=x.shape, **case.names),
        "filters": done(
            nchw16c_conv.blocks_conv2d_weight_grad,
            [grads, inputs],
            w.shape,
            shape=w.shape,
            images=x.shape,
            **case.names,
        ),
    }
    for direction, shape in (("results", g.shape), ("images", x.shape)):
        if found[direction] is not None:
            found[direction] = unblocked_images(found[direction], shape)
    return {direction: array for direction, array in found.items() if array is not None}


def unblocked_images(blocks, shape):
    """Unblocked images; lanes beyond the channels must be zero."""
    beyond = blocks[shape[1] // LANES :, : shape[0] * math.prod(shape[2:]), shape[1] % LANES :]
    assert shape[1] % LANES == 0 or not beyond.any()
    return out_of_blocks(blocks, shape)


def winograd_directions(case):
    """Directions computed by Winograd's algorithm."""
    if case.groups > 1:  # whole blocks are separate convolutions
        whole = case.c // case.groups % LANES == 0
        return (
            winograd_directions(case._replace(c=case.c // case.groups, f=case.f // case.groups, groups=1))
            if whole
            else set()
        )
    x, _, _g = case.shapes
    geometry = case.kernel, ONE, case.padding, case.dilation
    forward = case.stride == ONE and conv_geometry.sizes(x, case.f, *geometry, (1, 1)).tiles is not None
    back = conv_geometry.back(x, case.f, *geometry[:1], case.stride, *geometry[2:], (1, 1)).tiles is not None
    directions = ("results", forward), ("images", back), ("filters", forward and case.c < 192)
    return {name for name, does in directions if does}


MANY = Case(9, 40, (19, 20), 24, bias=True, act="relu6")  # several chunks of pixels
WIDE = Case(60, 200, ONE, 330, act="relu")  # several chunks of filters
DIRECT = Case(7, 35, (9, 8), 30, (3, 2), (2, 1), (1, 0), (1, 2), True, "relu")
FEW = Case(11, 3, (17, 15), 40, (3, 3), (2, 2), (1, 1), bias=True, act="relu6")
TILED3 = Case(7, 20, (13, 10), 40, (3, 3), padding=(1, 1), bias=True, act="relu")
TILED5 = Case(6, 33, (14, 12), 20, (5, 5), padding=(2, 2), bias=True)
FOURS = Case(7, 24, (9, 8), 24, (3, 2), (2, 1), (1, 0), (1, 2), True, "relu", groups=6)
EIGHTS = Case(6, 40, (11, 10), 40, (3, 3), padding=(1, 1), bias=True, groups=5)
WHOLE = Case(5, 32, (10, 9), 64, (3, 3), padding=(1, 1), act="relu6", groups=2)
IM2COL = Case(2, 100, (4, 5), 101, (3, 3), padding=(1, 1), bias=True, act="relu6")
BORDERED = Case(3, 1, (7, 7), 7, padding=(1, 1), bias=True)  # short rows, transposed together
KINDS = pytest.mark.parametrize("case", [MANY, WIDE, DIRECT, FEW, TILED3, TILED5, FOURS, EIGHTS, WHOLE, IM2COL])


@examples(100, 15)
@example(MANY, 0)
@example(WIDE, 0)
@example(DIRECT, 0)
@example(FEW, 0)
@example(TILED3, 0)
@example(TILED5, 0)
@example(FOURS, 0)
@example(EIGHTS, 0)
@example(IM2COL, 0)
@example(EIGHTS._replace(c=8, f=8, groups=1), 0)
@example(FOURS._replace(c=12, f=12, groups=3), 0)
@example(WHOLE, 0)
@example(FEW._replace(as_they_are=False), 0)
@example(Case(3, 20, (8, 9), 20, (3, 3), (2, 2), (1, 1)), 0)
@example(Case(3, 20, (8, 9), 40, ONE, (2, 3)), 0)
@example(Case(1, 16, (1, 1), 16), 0)
@example(Case(2, 20, (9, 9), 37, (3, 3), (5, 4)), 0)  # pixels that no tap reads
@example(Case(2, 20, (7, 6), 37, (4, 3), (2, 3), (5, 4), (1, 2)), 0)
@example(BORDERED._replace(c=20, f=20), 0)
@given(cases(), st.integers(0, 9))
def test_rounding_error_is_that_of_numpy(case, seed):
    check(case, compiled_results, winograd_directions(case), seed)


@examples(40, 15)
@given(cases(), st.integers(0, 9))
@example(Case(3, 20, (5, 3), 37, (3, 2), (2, 1), (1, 1), (1, 2), True, "relu"), 0)
@example(Case(2, 3, (8, 9), 20, (3, 3), bias=True), 0)  # images in NCHW
@example(Case(5, 33, (3, 3), 17, (1, 1), (2, 2), act="relu"), 0)
def test_rounding_error_of_im2col(case, seed):
    """For any geometry, whether or not it is faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(im2col, "pays", lambda *shapes, **window: True)
        check(case._replace(groups=1), compiled_results, set(), seed)


@KINDS
def test_every_direction_has_a_compiled_kernel(case):
    assert compiled_results(case, *arrays(case)).keys() == DIRECTIONS
    assert winograd_directions(case) == (DIRECTIONS if case in (TILED3, TILED5, WHOLE) else set())


def test_large_filter_gradients_are_not_tiled():
    for channels, tiled_too in ((128, True), (192, False)):
        s = conv_geometry.sizes((2, channels, 8, 8), channels, (3, 3), ONE, ONE, ONE, (144, 144))
        assert s.tiles is not None and (s.grad_tiles is not None) == tiled_too
    case = Case(2, 192, (8, 8), 192, (3, 3), padding=ONE)
    check(case, compiled_results, winograd_directions(case))


def test_strided_input_gradient_skips_zeros():
    case = Case(2, 32, (12, 12), 16, (4, 4), (2, 2), (1, 1))
    x, _, g = case.shapes
    s = conv_geometry.back(x, case.f, case.kernel, case.stride, case.padding, case.dilation)
    done_ = [lines * width * count * LANES for _, count, lines, width, *_ in s.split.tolist()]
    assert len(done_) == 4 and sum(done_) * case.c == s.multiplied == math.prod(g[1:]) * case.c * 16


@pytest.mark.parametrize("case", [*KINDS.args[1], BORDERED])
def test_bits_do_not_depend_on_thread_count(case, monkeypatch):
    """And whatever the scratch memory of kernels and tasks holds."""
    given_, bytes_ = arrays(case), iter((0, 255, 127, 191))  # 0, NaN, a large number, about -1

    def with_other_memory():
        before = next(bytes_)
        monkeypatch.setattr(tasks.np, "empty", lambda shape, dtype=float: np.full(shape, before, dtype))
        monkeypatch.setattr(task_scheduler, "THREAD_SCRATCH", task_scheduler.ThreadScratch())
        return [*compiled_results(case, *given_).values()]

    same_bits(with_other_memory, (1, 2, 3, 4))


@KINDS
def test_empty_batch(case):
    case = case._replace(n=0)
    (shape, filters, size), names = case.shapes, case.names
    x, g, w = [np.ones(blocked(s), "f4") for s in (shape, size)] + [np.ones(filters, "f4")]  # rows without pixels
    done(nchw16c_conv.blocks_conv2d, [x, w, 0], g.shape, shape=shape, act="", **names)
    done(nchw16c_conv.blocks_conv2d_input_grad, [g, w], x.shape, shape=shape, **names)
    assert not done(nchw16c_conv.blocks_conv2d_weight_grad, [g, x], filters, shape=filters, images=shape, **names).any()
    assert not done(nchw16c_conv.blocks_channel_sum, [x], shape[1:2], shape=shape, to=shape[1:2]).any()


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("kernel", [ONE, (2, 2), (3, 3)])
def test_nan_is_propagated(kernel, act):
    case = Case(2, 32, (4, 4), 32, kernel, act=act)
    x, w, g, bias = arrays(case)
    x[1, 3, 1, 1], w[4] = np.nan, np.inf
    found, right = [np.isnan(of(case, x, w, g, bias)["results"]) for of in (compiled_results, numpys)]
    assert found[1, :, 1, 1].all() and found.sum() == right.sum()


@pytest.mark.parametrize("case", [FOURS, EIGHTS, WHOLE])
def test_groups_are_independent(case):
    x, w, g, _ = arrays(case._replace(bias=False, act=""))
    x[:, 0], g[:, 0] = np.nan, np.inf
    found = compiled_results(case._replace(bias=False, act=""), x, w, g, 0)
    f, c = case.f // case.groups, case.c // case.groups
    assert not np.isfinite(found["results"][:, :f]).all() and np.isfinite(found["results"][:, f:]).all()
    assert not np.isfinite(found["images"][:, :c]).all() and np.isfinite(found["images"][:, c:]).all()
    assert not np.isfinite(found["filters"][:f]).all() and np.isfinite(found["filters"][f:]).all()


@pytest.mark.parametrize("stride", [ONE, (2, 1)])
@pytest.mark.parametrize("kernel", [ONE, (2, 3), (3, 3), (5, 5)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_infinity_stays_in_its_channels(kernel, stride, value):
    """Lanes beyond the channels stay zero, as `compiled_results` checks, so that the next convolution has an infinity
    where NumPy has one, and not NaN. Within a Winograd tile an infinity may become NaN.
    """
    for channels, filters in ((20, 17), (3, 40), (33, 5)):
        case = Case(2, channels, (9, 8), filters, kernel, stride)
        x, w, g, _ = arrays(case)
        x[1, 2, 3, 3], g[1, 4, 2, 2] = value, -value
        found = compiled_results(case, x, w, g, 0)
        right = numpys(case, x, w, g)
        for direction in {*found} - winograd_directions(case):
            for kind in (np.isnan, np.isposinf, np.isneginf):
                assert np.array_equal(kind(found[direction]), kind(right[direction])), (direction, kind)
        assert all(np.isfinite(found[d]).all() == np.isfinite(right[d]).all() for d in found)


# ---- blocking and channel sums --------------------------------------------------------------------------------------

SHAPES = [(3, 20, 5, 7), (70, 33), (2, 16, 4, 4), (40, 3, 2, 2), (1, 1, 1, 1), (2, 48, 17, 31)]


@pytest.mark.parametrize("shape", SHAPES)
def test_blocking_round_trip(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    blocks = done(nchw16c_conv.to_blocks, [x], blocked(shape))
    assert (unblocked_images(blocks, shape) == x).all()
    assert (done(nchw16c_conv.from_blocks, [in_blocks(x)], shape, shape=shape) == x).all()


def test_strided_inputs_fall_back_to_numpy():
    x = np.asfortranarray(np.ones((2, 20, 4, 4), "f4"))
    assert done(nchw16c_conv.to_blocks, [x], blocked(x.shape)) is None


@pytest.mark.parametrize("shape", [*SHAPES, (50, 20, 13, 14)])
def test_channel_sums(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    x += 3
    axes = (0, *range(2, x.ndim))
    found = done(nchw16c_conv.blocks_channel_sum, [in_blocks(x)], shape[1:2], shape=shape, to=shape[1:2])
    error = abs(found - x.sum(axes, dtype="f8"))
    assert (error <= 16 * EPS * abs(x).sum(axes, dtype="f8")).all(), error.max()
