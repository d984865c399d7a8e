"""Volumes, and the norms that were functions with a class's name, in job functions: against plain numpy."""

import numpy as np
import pytest
from legacy import both, in_job

import minflow as flow
from minflow.core.base.errors import ShapeError

RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3, 4, 6, 5)).astype("float32")
AROUND = {"VALID": [(0, 0)] * 3, "SAME": [(1, 0), (1, 0), (1, 1)], "SAME_UPPER": [(0, 1), (0, 1), (1, 1)]}


@pytest.fixture(autouse=True)
def session():
    flow.clear_default_session()
    yield
    flow.clear_default_session()


def seen(x, pads, value):
    """The windows of 3 x 3 x 3 voxels, 2 apart: (N, C, D, H, W, 3, 3, 3)."""
    x = np.pad(x.astype("float64"), [(0, 0), (0, 0), *pads], constant_values=value)
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3, 3), (2, 3, 4))[:, :, ::2, ::2, ::2]


def channels_last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize("padding", [*AROUND, [(0, 0), (0, 0), (2, 0), (0, 1), (1, 1)]], ids=str)
@pytest.mark.parametrize("data_format", ["NCDHW", "NDHWC"])
def test_volumes(padding, data_format):
    last = data_format == "NDHWC"
    pads = AROUND[padding] if isinstance(padding, str) else padding[2:]
    if last and not isinstance(padding, str):
        padding = [(0, 0), *pads, (0, 0)]
    w = RNG.standard_normal((4, 3, 3, 3, 3)).astype("float32")
    wanted = {
        "conv3d": np.einsum("ncdhwijk,fcijk->nfdhw", seen(X, pads, 0), w),
        "max_pool3d": seen(X, pads, -np.inf).max((-1, -2, -3)),
        "avg_pool3d": np.nanmean(seen(X, pads, np.nan), (-1, -2, -3)),
    }
    x, w = (channels_last(X), channels_last(w)) if last else (X, w)
    for name, expected in wanted.items():
        function = getattr(flow.nn, name)
        if name == "conv3d":
            found = both(lambda x, w, f=function: f(x, w, 2, padding, data_format), x, w)
        else:
            found = both(lambda x, f=function: f(x, 3, 2, padding, data_format), x)
        expected = channels_last(expected) if last else expected
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=name)


def test_the_layer_of_volumes_learns():
    def job(x):
        out = flow.layers.conv3d(x, 6, 3, 2, "SAME", groups=3, activation=flow.nn.relu, name="c")
        return flow.math.reduce_mean(out, axis=[2, 3, 4])

    assert in_job(job, X).shape == (2, 6)
    shapes = {name: it.shape for name, it in flow.get_all_variables().items()}
    assert shapes == {"c-weight": (6, 1, 3, 3, 3), "c-bias": (6,)}
    with pytest.raises(ShapeError, match="conv3d: the input has 4 axes, wanted 5: NCDHW"):
        flow.nn.conv3d(flow.zeros(1, 2, 3, 3), flow.zeros(1, 2, 3, 3), 1, "SAME")


def by_hand(x, parts):
    rows = x.reshape(len(x), parts, -1).astype("float64")
    return ((rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)).reshape(x.shape)


NORMS = {
    "InstanceNorm1d": (X[..., 0, 0], 3), "InstanceNorm2d": (X[..., 0], 3), "InstanceNorm3d": (X, 3),
    "GroupNorm": (np.repeat(X[..., 0], 2, axis=1), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_functions_of_blobs(name):
    x, parts = NORMS[name]
    options = dict(num_groups=2) if name == "GroupNorm" else {}

    def job(x):
        function = getattr(flow.nn, name)
        return function(function(x, **options), affine=False, **options)

    np.testing.assert_allclose(in_job(job, x), by_hand(by_hand(x, parts), parts), rtol=1e-4, atol=1e-4)
    shapes = {name: it.shape for name, it in flow.get_all_variables().items()}
    assert shapes == {f"{name}_0_gamma": (1, parts, 1), f"{name}_0_beta": (1, parts, 1)}
    assert isinstance(getattr(flow.nn, name)(2, 4) if options else getattr(flow.nn, name)(3), flow.nn.Module)


def test_two_norms_are_two_and_a_name_shares():
    def job(x):
        return flow.nn.InstanceNorm3d(flow.nn.InstanceNorm3d(flow.nn.InstanceNorm3d(x)), name="own")

    in_job(job, X)
    in_job(job, X)  # another job of the same layers shares their numbers
    assert [name for name in flow.get_all_variables() if "gamma" in name] == [
        "InstanceNorm3d_0_gamma", "InstanceNorm3d_1_gamma", "own_gamma"]
    with pytest.raises(ShapeError, match="InstanceNorm2d: the input has 5 axes, wanted 4"):
        in_job(lambda x: flow.nn.InstanceNorm2d(x), X)
    with pytest.raises(ShapeError, match="GroupNorm: num_groups is 2 for shape"):
        in_job(lambda x: flow.nn.GroupNorm(x, 2), X)


def test_one_number_has_one_axis():
    """That generation had no array without axes: programs of it write loss[0]."""
    numbers = X[0, 0, 0]
    for job in (flow.math.reduce_sum, lambda x: flow.nn.L1Loss(x, x), lambda x: flow.nn.BCEWithLogitsLoss(x, x, x)):
        assert in_job(job, numbers).shape == (1,)
    assert in_job(lambda x: flow.math.reduce_sum(x, keepdims=True), numbers).shape == (1, 1)
    assert in_job(lambda x: x.sum(), numbers).shape == ()
