import numpy as np
import pytest

import minflow as flow

pytest.importorskip("numba", reason="the kernel is compiled by numba, which is not installed")

from minflow.core.kernels import observed
from minflow.core.ops.linalg import matmul
from minflow.core.spec import spec_of
from minflow.platforms.compiled.kernels import thin_gemm
from minflow.platforms.compiled.lowering import SUMS
from tests.single_tasks import run_builder, same_bits

SHAPES = [  # rows, terms, columns, ta, tb
    *[(rows, 1001, 333, False, True) for rows in (1, 2, 3, 8)],
    *[(rows, 333, 1027, False, False) for rows in (1, 2, 5, 8)],
    (1, 2, 70001, False, False),
    *[(2001, terms, 1033, ta, False) for terms in (2, 3, 4) for ta in (False, True)],
    (50, 1000, 700, False, True),
]


def arrays_of(rows, terms, columns, ta, tb):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((terms, rows) if ta else (rows, terms)).astype("f4")
    return a, rng.standard_normal((columns, terms) if tb else (terms, columns)).astype("f4")


def run(a, b, ta, tb):
    expected = (a.T if ta else a).astype("f8") @ (b.T if tb else b)
    found = same_bits(lambda: run_builder(thin_gemm.thin, [a, b], [expected], ta=ta, tb=tb))
    assert found is not None
    assert abs(found[0] - expected).max() <= SUMS * np.finfo("f4").eps * abs(expected).max()


@pytest.mark.parametrize("shape", SHAPES)
def test_products_with_one_large_matrix(shape):
    *_, ta, tb = shape
    a, b = arrays_of(*shape)
    assert thin_gemm.accepts(spec_of(a), spec_of(b), ta, tb)
    run(a, b, ta, tb)


@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[6], SHAPES[10]])
def test_rows_that_are_not_adjacent(shape):
    *_, ta, tb = shape
    a, b = arrays_of(*shape)
    run(np.repeat(a, 2, 0)[::2], np.hstack([b, b])[:, : b.shape[1]], ta, tb)


def test_infinite_terms_stay_in_their_row():
    a, b = arrays_of(2, 1001, 333, False, True)
    a[0, -1] = np.inf
    (found,) = run_builder(thin_gemm.thin, [a, b], [np.empty((2, 333))], ta=False, tb=True)
    assert np.isinf(found[0]).all() and np.isfinite(found[1]).all()


@pytest.mark.parametrize(
    "shape", [(200, 1000, 700, False, True), (2, 40, 4000, False, True), (8, 100, 100, False, True)]
)
def test_other_products_are_left_to_blas(shape):
    *_, ta, tb = shape
    a, b = arrays_of(*shape)
    out = np.empty((shape[0], shape[2]), "f4")
    assert not thin_gemm.accepts(spec_of(a), spec_of(b), ta, tb)
    assert run_builder(thin_gemm.thin, [a, b], [out], ta=ta, tb=tb) is None


@pytest.mark.parametrize("strided", [False, True])
def test_eager_code_chooses_by_size_alone(strided, on):
    platforms = []
    a, b = map(flow.tensor, arrays_of(4 if strided else 2, 1000, 300, False, True))
    with observed(lambda op, platform, *_: platforms.append((op, platform))):
        x = a[::2] if strided else a
        x @ b.T
        x[:, :100] @ b[:, :100].T
    assert [platform for op, platform in platforms if op is matmul] == ["compiled", "reference"]
