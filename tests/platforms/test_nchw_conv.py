"""minflow.platforms.compiled.kernels.nchw_conv: convolutions and their gradients by micro-kernels, against NumPy's in
float64.

For all three directions, direct, by Winograd's algorithm and by im2col: rounding errors like NumPy's float32; the same
bits at each call, for any split of the batch and beside another thread; no write outside the result; no read of old
scratch memory; NaN and infinity are propagated.
"""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

pytest.importorskip("numba")
import conv_cases
from conv_cases import DIRECTIONS, ONE, Case, cases, check, numpys
from kernel_checks import EPS, examples

from minflow.core.ops import conv as ops
from minflow.platforms.compiled.kernels import conv_geometry, im2col, nchw_conv, winograd
from minflow.platforms.compiled.passes.nchw16c import LANES
from minflow.platforms.compiled.runtime import eager, task_scheduler
from tests.platforms.kernel_checks import compiled_call
from tests.single_tasks import FILL, guarded_array, same_bits
from tests.threads import run_in_threads

conv2d, conv2d_input_grad, conv2d_weight_grad = [
    compiled_call(op) for op in (ops.conv2d, ops.conv2d_input_grad, ops.conv2d_weight_grad)
]


def winograd_directions(case):
    """Directions computed by Winograd's algorithm."""
    if case.groups > 1:  # groups of whole vectors run as separate convolutions
        c, f = case.c // case.groups, case.f // case.groups
        return winograd_directions(case._replace(c=c, f=f, groups=1)) if c % LANES == 0 else set()
    x, _, g = case.shapes
    border = tuple(d * (k - 1) - p for d, k, p in zip(case.dilation, case.kernel, case.padding))
    found = set()
    if conv_geometry.sizes(x, case.f, case.kernel, *case.geometry).tiles is not None:
        found |= {"results", "filters"}
    if case.stride == ONE and conv_geometry.sizes(g, case.c, case.kernel, ONE, border, case.dilation).tiles is not None:
        found.add("images")
    return found


def im2col_directions(case):
    """Directions computed by im2col."""
    _, w, g = case.shapes
    found = {
        "results": im2col.pays(w, g, case.stride, case.padding),
        "images": im2col.pays(w, g, case.stride, case.padding),
        "filters": im2col.pays(w, g, case.stride, case.padding, for_filters=True),
    }
    return {direction for direction, pays in found.items() if pays}


def arrays(case, seed=0):
    return conv_cases.arrays(case, seed)[:3]


@pytest.fixture(scope="module", autouse=True)
def no_size_limits():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nchw_conv, "LEAST", 0)
        yield


def compiled_results(case, x, w, g, bias=0, of=np.empty):
    """Dictionary from direction to the compiled result, without the directions left to NumPy."""
    found = {
        "results": conv2d(x, w, **case.names, out=of(g.shape, "f4")),
        "images": conv2d_input_grad(g, w, shape=x.shape, **case.names, out=of(x.shape, "f4")),
        "filters": conv2d_weight_grad(g, x, shape=w.shape, **case.names, out=of(w.shape, "f4")),
    }
    return {direction: array for direction, array in found.items() if array is not None}


def without_epilogue(case):
    """Without the epilogue of a blocked convolution."""
    return case._replace(bias=False, act="", as_they_are=True)


def bytes_of(found):
    return {direction: array.tobytes() for direction, array in found.items()}


@pytest.mark.parametrize("size", [4, 8])
def test_small_groups_are_compiled(size):
    case = Case(3, 3 * size + 8, (7, 5), 3 * size + 8, (3, 2), (2, 1), (1, 0), groups=(3 * size + 8) // size)
    assert compiled_results(case, *arrays(case)).keys() == DIRECTIONS
    check(case, compiled_results, winograd_directions(case))


@examples(40, 15)
@given(cases().map(without_epilogue), st.integers(0, 99))
@example(Case(1, 32, (5, 5), 32, (5, 5), groups=2), 0)
@example(Case(1, 1, (1, 1), 8, (1, 1)), 0)  # one pixel of one image
@example(Case(1, 16, (3, 3), 8, (3, 3)), 0)  # few filters, whose gradient is an image of few channels
@example(Case(17, 40, (5, 5), 30), 0)  # 1x1 filters on images between those in blocks and NumPy's
@example(Case(6, 40, (1, 1), 33, (3, 3), padding=(1, 1)), 0)  # all but one filter pixel is on the border
@example(Case(2, 16, (2, 3), 16, (5, 5), padding=(2, 2)), 0)  # images smaller than the filter
@example(Case(6, 17, (13, 7), 47, (3, 3), padding=(3, 2)), 0)  # a border as wide as the filter
@example(Case(2, 20, (9, 9), 20, (1, 1), padding=(1, 1)), 0)  # results computed from the border only
@example(Case(3, 32, (8, 8), 70, (3, 3), (2, 2), (1, 1)), 0)
@example(Case(2, 16, (10, 9), 48, (1, 1), (3, 2)), 0)  # pixels that no filter tap reads
@example(Case(1, 16, (17, 33), 32, (2, 4), (1, 3), (1, 2), (2, 1)), 0)
@example(Case(1, 3, (31, 30), 64, (5, 4), (2, 3), (5, 4), (3, 1)), 0)  # few channels
@example(Case(2, 24, (13, 17), 3, (5, 4), padding=(2, 1)), 0)  # few filters
@example(Case(2, 17, (19, 17), 1, (3, 2), (2, 1), (0, 1), (1, 2)), 0)
def test_rounding_error_is_that_of_numpy(case, seed):
    check(case, compiled_results, winograd_directions(case), seed)


@examples(40, 15)
@given(cases().map(without_epilogue), st.integers(0, 99))
@example(Case(1, 1, (1, 1), 8, (1, 1), padding=(1, 0)), 0)  # one pixel and a border
@example(Case(17, 3, (7, 7), 20, (7, 7)), 0)  # one position in each image
@example(Case(35, 5, (5, 7), 20, (2, 3), (1, 2)), 0)  # planes are transposed in tiles
@example(Case(3, 40, (9, 11), 33, (3, 2), (2, 3), (1, 1), (2, 3)), 0)
@example(Case(5, 16, (10, 9), 48, (1, 1), (3, 2)), 0)  # pixels that no filter tap reads
@example(Case(2, 100, (5, 4), 70, (4, 4), (2, 2), (2, 1)), 0)  # a sum in two parts
def test_rounding_error_of_im2col(case, seed):
    """For any geometry, whether or not it is faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(im2col, "pays", lambda *shapes, **window: True)
        patch.setattr(eager, "CALL_CACHE", eager.CallCache())
        check(case._replace(groups=1), compiled_results, set(), seed)


@pytest.mark.parametrize(
    "case",
    [
        Case(4, 32, (14, 14), 64, (5, 5), padding=(2, 2)),
        Case(2, 64, (14, 14), 64, (3, 3), padding=(1, 1)),
        Case(6, 96, (8, 8), 64),
        Case(3, 64, (16, 16), 64, (3, 3), (2, 2), (1, 1)),
        Case(2, 96, (4, 4), 128, (3, 3), padding=(1, 1)),
    ],
    ids=["5x5", "3x3", "1x1", "stride 2", "few positions"],
)
def test_typical_layers_are_within_tolerance(case):
    """Relative root mean square error: 5 eps, and 20 eps for Winograd's algorithm."""
    single = arrays(case)
    right = numpys(case, *[array.astype("f8") for array in single], exact=True)
    for direction, found in compiled_results(case, *single).items():
        share = np.sqrt(((found - right[direction]) ** 2).mean() / (right[direction] ** 2).mean())
        assert share <= (20 if direction in winograd_directions(case) else 5) * EPS, (direction, share / EPS)


@pytest.mark.parametrize(("m", "r"), [(m, r) for r, m in winograd.RESULTS.items()])
def test_winograd_matrices_compute_the_convolution(m, r):
    """Exactly, in fractions: Y = A^T ((G g) * (B^T d)) of every unit filter at every unit tile."""
    results, filters, data = winograd.matrices(m, r)
    for tap in range(r):
        for pixel in range(m + r - 1):
            found = results @ (filters[:, tap] * data[:, pixel])
            assert list(found) == [int(i + tap == pixel) for i in range(m)]


# ---- the same bits ---------------------------------------------------------------------------------------------------

DIRECT = Case(12, 20, (9, 11), 40, (3, 2), (2, 1), (1, 0))
FEW = Case(11, 3, (12, 9), 24, (5, 5), padding=(2, 2))
TILED3 = Case(12, 18, (9, 11), 40, (3, 3), padding=(1, 1))
TILED5 = Case(7, 32, (10, 7), 33, (5, 5), padding=(2, 2))
IM2COL = Case(2, 96, (4, 5), 100, (3, 3), padding=(1, 1))
FEW_FILTERS = Case(6, 20, (10, 9), 6, (3, 3), padding=(1, 1))
ALL = {"direct": DIRECT, "few": FEW, "few filters": FEW_FILTERS, "3x3": TILED3, "5x5": TILED5, "im2col": IM2COL}
KINDS = pytest.mark.parametrize("case", ALL.values(), ids=ALL)


def test_algorithm_names_match_algorithms():
    found = [winograd_directions(case) for case in ALL.values()]
    assert found == [set(), set(), set(), DIRECTIONS, DIRECTIONS, set()]
    assert compiled_results(FEW_FILTERS, *arrays(FEW_FILTERS)).keys() == DIRECTIONS
    assert im2col_directions(IM2COL) == DIRECTIONS
    assert im2col_directions(Case(16, 40, (5, 5), 30)) == DIRECTIONS - {"filters"}
    assert not im2col_directions(
        Case(1, 512, (8, 8), 16, (5, 5), (2, 2), (2, 2))
    )  # few filters, and runs of one element
    assert not im2col_directions(DIRECT) | im2col_directions(FEW) | im2col_directions(TILED3)


@KINDS
def test_results_do_not_depend_on_scratch_memory(case):
    given_ = arrays(case)
    first = compiled_results(case, *given_)
    for other in KINDS.args[1]:  # leave their values, including infinities, in scratch memory
        compiled_results(other, *[np.full_like(array, np.inf) for array in arrays(other)])
    eager.CALL_CACHE.memory[:] = task_scheduler.THREAD_SCRATCH.memory[:] = 0xFF  # NaN
    assert bytes_of(compiled_results(case, *given_)) == bytes_of(first)


@KINDS
def test_bits_do_not_depend_on_thread_count(case):
    given_ = arrays(case)
    same_bits(lambda: [*compiled_results(case, *given_).values()])


@pytest.mark.parametrize("case", [case for case in ALL.values() if case.n > conv_geometry.CHUNK])
@pytest.mark.parametrize("pieces", [1, 2])
def test_bits_do_not_depend_on_batch_split(case, pieces):
    """At multiples of CHUNK: results image by image; filter gradients as ordered sums over chunks."""
    x, w, g = arrays(case)
    whole, step = compiled_results(case, x, w, g), pieces * conv_geometry.CHUNK
    starts = list(range(0, case.n, step))
    parts = {}
    for start in reversed(starts):
        piece = case._replace(n=min(step, case.n - start))
        parts[start] = compiled_results(piece, x[start : start + step], w, g[start : start + step])
    for direction in {"results", "images"} & whole.keys():
        joined = np.concatenate([parts[start][direction] for start in starts])
        assert joined.tobytes() == whole[direction].tobytes()


@KINDS
def test_oversized_workspace_is_freed_after_the_call(case, monkeypatch):
    given_ = arrays(case)
    usual = compiled_results(case, *given_)
    monkeypatch.setattr(eager, "CALL_CACHE", eager.CallCache())
    monkeypatch.setattr(eager, "LARGE", 0)
    assert bytes_of(compiled_results(case, *given_)) == bytes_of(usual)
    assert eager.CALL_CACHE.memory.nbytes == eager.LITTLE


def test_concurrent_callers_get_the_same_bits():
    pairs = [(case, arrays(case)) for case in (DIRECT, TILED3, FEW, TILED5)]
    alone = [bytes_of(compiled_results(case, *given_)) for case, given_ in pairs]

    def wrong(number):
        return [
            case
            for i in [[0, 1, 2, 3], [3, 0, 2, 1]][number] * 6
            for case, given_ in [pairs[i]]
            if bytes_of(compiled_results(case, *given_)) != alone[i]
        ]

    assert run_in_threads(2, wrong) == [[], []]


# ---- where it writes -------------------------------------------------------------------------------------------------

EVERYWHERE = [
    *KINDS.args[1],
    Case(6, 17, (13, 7), 47, (3, 3), padding=(3, 2)),
    Case(1, 16, (17, 33), 9, (2, 4), (1, 3), (1, 2)),
]


@pytest.mark.parametrize("case", EVERYWHERE)
def test_no_write_outside_the_result(case):
    held = []

    def within(shape, dtype):
        held.append(guarded_array(shape, dtype))
        return held[-1][0]

    found = compiled_results(case, *arrays(case), of=within)
    assert found and all((array != FILL).all() for array in found.values())
    assert all(intact() for _, intact in held)


@pytest.mark.parametrize("case", [*EVERYWHERE, Case(9, 40, (4, 3), 33)])
def test_no_write_outside_scratch_memory(case, monkeypatch):
    """And not outside a workspace."""
    held, empty = [], np.empty

    def within(shape, dtype=float):
        if dtype is not np.uint8:
            return empty(shape, dtype)
        held.append(guarded_array((shape,), dtype))
        return held[-1][0]

    monkeypatch.setattr(np, "empty", within)
    monkeypatch.setattr(eager, "CALL_CACHE", eager.CallCache())
    monkeypatch.setattr(task_scheduler, "THREAD_SCRATCH", task_scheduler.ThreadScratch())
    compiled_results(case, *arrays(case))
    assert held and all(intact() for _, intact in held)


@KINDS
def test_strided_arrays_are_copied(case):
    """Strided inputs; a strided result is left to NumPy."""
    x, w, g = arrays(case)
    usual, turned = bytes_of(compiled_results(case, x, w, g)), np.asfortranarray
    for given_ in ((turned(x), w, g), (x, turned(w), g), (x, w, turned(g))):
        assert bytes_of(compiled_results(case, *given_)) == usual
    assert not compiled_results(case, x, w, g, of=lambda shape, dtype: np.empty(shape, dtype, order="F"))


# ---- non-finite values ----------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["pixel", "weight", "gradient"])
def test_nonfinite_values_are_propagated(case, value, which):
    """Where NumPy's result is not finite, neither is ours. Elsewhere ours matches NumPy's, except where `reach` allows
    more.
    """
    case = case._replace(n=2)
    single = dict(zip(("pixel", "weight", "gradient"), arrays(case)))
    single[which][{"pixel": (1, 2, 3, 4), "weight": (5, 2, 1, 1), "gradient": (1, 5, 2, 3)}[which]] = value
    usual = numpys(case, *single.values())
    for direction, found in compiled_results(case, *single.values()).items():
        lost, ours_lost = ~np.isfinite(usual[direction]), ~np.isfinite(found)
        assert ours_lost[lost].all(), direction
        assert not (ours_lost & ~reach(case, direction, lost, which)).any(), direction
        assert np.allclose(found[~ours_lost], usual[direction][~ours_lost], rtol=1e-3, atol=1e-3), direction


def reach(case, direction, lost, which):
    """Positions that may be non-finite besides those that are `lost` in NumPy's result: Winograd's algorithm fills the
    m x m results of a tile, or all pixels of one channel of a filter; and the gradient of the images also multiplies
    weights with the border, which NumPy skips.
    """
    if (direction == "images" and which == "weight") or (
        direction == "filters" and direction in winograd_directions(case)
    ):
        return np.broadcast_to(lost.any((2, 3), keepdims=True), lost.shape)
    spread = lost.copy()
    if direction in winograd_directions(case):
        m = winograd.RESULTS[case.kernel[0]]
        for n, c, i, j in np.argwhere(lost):
            i, j = i // m * m, j // m * m
            spread[n, c, i : i + m, j : j + m] = True
    return spread
