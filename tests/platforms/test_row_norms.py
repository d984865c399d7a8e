"""Compiled layer norm and group norm, against NumPy in float64."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("numba")
from kernel_checks import EPS, FEW, exactly

from minflow.core.ops import norm as norms
from minflow.core.spec import Spec, float32
from minflow.platforms.compiled.kernels import row_norms
from tests.single_tasks import run_builder, same_bits


def call(op, arrays, shapes, **attrs):
    return run_builder(getattr(row_norms, op.name), arrays, [Spec(shape, float32) for shape in shapes], **attrs)


def check(op, arrays, shapes, terms, scale=1e-30, **attrs):
    for i, (ours, right) in enumerate(zip(call(op, arrays, shapes, **attrs), exactly(op, arrays, attrs), strict=True)):
        if not attrs.get("needs", 1) >> i & 1:
            continue
        size = max(np.abs(right).max(), scale)
        assert np.abs(ours - right.reshape(ours.shape)).max() <= (8 + math.sqrt(terms)) * EPS * size


def normal(seed, *shape):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("f4")


@FEW
@given(st.integers(1, 300), st.integers(2, 300), st.integers(0, 9))
def test_layer_norm(rows, columns, seed):
    x, g, w, b = (
        2 * normal(seed, rows, columns) + 3,
        normal(seed, rows, columns),
        normal(seed, columns),
        normal(seed + 1, columns),
    )
    if x.var(1).min() < 0.1:
        return  # two close numbers: their difference is rounded before any division
    attrs, scale = dict(axes=(-1,), eps=1e-5), np.abs(g).max() * max(np.abs(w).max(), 1) * 4
    for numbers in ((w, b), (1, 0), (w, 0)):
        check(norms.layer_norm, [x, *numbers], [x.shape], 4 * columns, 4, **attrs)
    for weight, shape, needs in ((w, w.shape, 7), (1, (), 1)):
        inputs = [g, x, weight, b if needs == 7 else 0]
        check(
            norms.layer_norm.gradient, inputs, [x.shape, shape, shape], 4 * columns + rows, scale, **attrs, needs=needs
        )


@FEW
@given(
    st.integers(1, 4), st.integers(1, 5), st.integers(1, 20), st.integers(2, 9), st.integers(8, 20), st.integers(0, 9)
)
def test_group_norm(images, groups, channels, height, width, seed):
    shape = images, groups * channels, height, width
    x, g, w, b = 2 * normal(seed, *shape) + 3, normal(seed + 1, *shape), normal(seed, shape[1]), normal(2, shape[1])
    attrs, terms = dict(groups=groups, eps=1e-5), 4 * channels * height * width
    check(norms.group_norm, [x, w, b], [shape], terms, 4, **attrs)
    check(norms.group_norm, [x, w, 0], [shape], terms, 4, **attrs)
    scale = np.abs(g).max() * max(np.abs(w).max(), 1) * 8
    check(
        norms.group_norm.gradient,
        [g, x, w, b],
        [shape, w.shape, w.shape],
        terms + images,
        scale,
        **attrs,
        needs=7,
    )


@pytest.mark.parametrize("columns", [1, 15, 16, 31, 33, 256, 5000])
def test_single_element_rows_and_large_means(columns):
    x, w = normal(0, 5, columns) + np.float32(1000), normal(1, columns)
    (y,) = call(norms.layer_norm, [x, w, w], [x.shape], axes=(-1,), eps=1e-5)
    (right,) = exactly(norms.layer_norm, [x, w, w], dict(axes=(-1,), eps=1e-5))
    assert np.abs(y - right).max() <= 4000 * EPS * max(np.abs(w).max(), 1)  # the shared mean is rounded


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nonfinite_values_stay_in_their_row(value):
    x, g, w = normal(0, 9, 37), normal(1, 9, 37), normal(2, 37)
    x[4, 35] = value
    (y,) = call(norms.layer_norm, [x, w, w], [x.shape], axes=(-1,), eps=1e-5)
    gx, gw, _ = call(
        norms.layer_norm.gradient, [g, x, w, w], [x.shape, w.shape, w.shape], axes=(-1,), eps=1e-5, needs=7
    )
    for found in (y, gx):
        assert np.isnan(found[4]).all() and np.isfinite(np.delete(found, 4, 0)).all()
    assert np.isnan(gw).all()
    x, g = normal(0, 2, 6, 5, 5), normal(1, 2, 6, 5, 5)
    x[1, 3, 4, 4] = value
    (y,) = call(norms.group_norm, [x, w[:6], w[:6]], [x.shape], groups=2, eps=1e-5)
    gx, *_ = call(norms.group_norm.gradient, [g, x, w[:6], w[:6]], [x.shape, (6,), (6,)], groups=2, eps=1e-5, needs=7)
    for found in (y, gx):
        assert np.isnan(found[1, 3:]).all() and np.isfinite(found[0]).all() and np.isfinite(found[1, :3]).all()


def test_unsupported_calls_fall_back_to_numpy():
    one = np.ones(4, "f4")
    assert call(norms.layer_norm, [np.ones((4, 3), "f4").T, one, one], [(3, 4)], axes=(-1,), eps=1e-5) is None
    assert call(norms.layer_norm, [np.ones((0, 4), "f4"), one, one], [(0, 4)], axes=(-1,), eps=1e-5) is None
    assert call(norms.group_norm, [np.ones((2, 4, 5), "f8"), one, one], [(2, 4, 5)], groups=2, eps=1e-5) is None


def test_bits_do_not_depend_on_thread_count(monkeypatch):
    monkeypatch.setattr(row_norms, "CHUNK", 1 << 10)
    x, g, w = normal(0, 700, 70), normal(1, 700, 70), normal(2, 70)
    images, back = x.reshape(10, 70, 10, 7), g.reshape(10, 70, 10, 7)
    rows, groups = dict(axes=(-1,), eps=1e-5), dict(groups=7, eps=1e-5)

    def everything():
        shapes = [images.shape, (70,), (70,)]
        return [
            *call(norms.layer_norm, [x, w, w], [x.shape], **rows),
            *call(norms.layer_norm.gradient, [g, x, w, w], [x.shape, w.shape, w.shape], **rows, needs=7),
            *call(norms.group_norm, [images, w, w], [images.shape], **groups),
            *call(norms.group_norm.gradient, [back, images, w, w], shapes, **groups, needs=7),
        ]

    same_bits(everything)
