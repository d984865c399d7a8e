"""Results of jobs whose length depends on elements: argwhere, nonzero, sync_dynamic_resize and gather_nd."""

import importlib

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError, ShapeError, TraceError

X = np.float32([[0, 5, 0], [2, 0, 7]])
PLACES = np.int32([[0, 1], [1, 0], [1, 2]])
ANY = tp.Numpy.Placeholder((2, 3))


def returns(function):
    """A job of one array (2, 3) that returns a list of arrays."""

    @flow.global_function()
    def job(x: ANY) -> tp.ListNumpy:
        return function(x)

    return job


@pytest.mark.parametrize(("function", "expected"), [
    (lambda x: flow.argwhere(x), PLACES),
    (lambda x: flow.argwhere(x, dtype=flow.int64), PLACES.astype("int64")),
    (lambda x: flow.where(x), PLACES),
    (lambda x: flow.argwhere(flow.math.greater(x, flow.constant_like(x, 4.0))), PLACES[[0, 2]]),
    (lambda x: flow.nonzero(x), PLACES.T),
    (lambda x: flow.gather_nd(x, flow.argwhere(x)), np.float32([5, 2, 7])),
    (lambda x: flow.sync_dynamic_resize(x, flow.constant(1, flow.int32, (1,))), X[:1]),
    (lambda x: flow.cast_to_static_shape(flow.argwhere(x)), np.concatenate([PLACES, np.zeros((3, 2), "int32")])),
])  # fmt: skip
def test_results_have_the_length_of_each_step(function, expected):
    job = returns(function)
    (result,) = job(X)
    assert np.array_equal(result, expected) and result.dtype == expected.dtype
    if len(expected) == 3:  # another number of rows, in the same plan
        (empty,) = job(np.zeros_like(X))
        (full,) = job(np.ones_like(X))
        assert (len(empty), len(full)) == (0, 6) and len(job.plans) == 1


def test_future_and_tuples():
    @flow.global_function()
    def job(x: ANY):
        return flow.argwhere(x), x, [flow.nonzero(x)]

    places, same, (columns,) = job(X).get()
    assert np.array_equal(places.numpy(), PLACES) and np.array_equal(same.numpy(), X)
    assert np.array_equal(columns.numpy(), PLACES.T) and np.array_equal(places.numpy_list(0)[0], PLACES)


def test_sizes_come_from_an_argument():
    @flow.global_function()
    def job(x: ANY, size: tp.Numpy.Placeholder((1,), dtype=flow.int32)) -> tp.ListNumpy:
        rows = flow.sync_dynamic_resize(x, size)
        assert rows.is_dynamic and not x.is_dynamic and rows.shape == (2, 3)
        return rows

    assert [len(job(X, np.int32([n]))[0]) for n in (0, 1, 2)] == [0, 1, 2]
    assert flow.sync_dynamic_resize(flow.tensor(X), flow.tensor([1])).tolist() == [[0, 5, 0]]


@pytest.mark.parametrize(("function", "kind", "said"), [
    (lambda x: flow.argwhere(x) + 1, JobError, r"add of a Blob whose length depends on elements.*int32\[6, 2\]"),
    (lambda x: flow.math.reduce_sum(flow.argwhere(x)), JobError, "sum of a Blob whose length"),
    (lambda x: flow.reshape(flow.nonzero(x), (-1,)), JobError, "reshape of a Blob whose length"),
    (lambda x: flow.sync_dynamic_resize(x, x), ShapeError, r"size is float32\[2, 3\]"),
    (lambda x: flow.masked_select(x, flow.tensor(X) > 0), TraceError, "nonzero_static"),
])  # fmt: skip
def test_other_uses_are_refused(function, kind, said):
    with pytest.raises(kind, match="(?s)" + said) as caught:
        returns(function)(X)
    assert "Try: " in str(caught.value)


def test_a_fixed_shape_is_refused():
    @flow.global_function()
    def fixed(x: ANY) -> tp.Numpy:
        return flow.argwhere(x)

    with pytest.raises(JobError, match=r"length of what it returns depends on elements.*tp\.Numpy"):
        fixed(X)


def test_eager_switches():
    flow.enable_eager_execution(False)
    assert flow.eager_execution_enabled()
    seen = []
    returns(lambda x: (seen.append(flow.eager_execution_enabled()), x)[1])(X)
    assert seen == [False] and flow.experimental.scope is flow.scope
    from minflow.experimental import nn

    assert nn is flow.nn


def test_nonzero_static():
    x = flow.tensor(X)
    assert flow.nonzero_static(x, size=3).tolist() == PLACES.tolist()
    assert flow.nonzero_static(x, size=1).tolist() == [[0, 1]]
    assert flow.nonzero_static(x, size=4, fill_value=9).tolist() == [*PLACES.tolist(), [9, 9]]
    assert x.nonzero_static(size=8).tolist() == [*PLACES.tolist(), *[[-1, -1]] * 5]
    assert flow.nonzero_static(flow.zeros(0, 2), size=2).tolist() == [[-1, -1]] * 2
    assert flow.nonzero_static(flow.tensor(3), size=2).shape == (2, 0)
    with pytest.raises(flow.OutOfRangeError, match="got -1"):
        flow.nonzero_static(x, size=-1)

    class Select(flow.nn.Graph):
        def build(self, x):
            rows, columns = flow.nonzero_static(x, size=4, fill_value=0).unbind(1)
            return x[rows, columns]

    graph = Select()
    assert graph(x).tolist() == [5, 2, 7, 0] and graph(x * 0).tolist() == [0, 0, 0, 0]


def test_what_is_left_out_says_what_to_use():
    flow.config.collective_boxing.nccl_fusion_threshold_mb(8)
    assert "collective_boxing.nccl_fusion_threshold_mb=8" in repr(flow.config)
    with pytest.raises(JobError, match="collective_boxing.*mccl"):
        flow.config.collective_boxing.mccl_streams(8)
    for name in ("ofrecord_reader", "OFRecordImageDecoder", "ImagePreprocessor"):
        with pytest.raises(flow.MissingNameError, match="DataLoader"):
            getattr(flow.data, name)
    for name in ("core.operator.op_conf_pb2", "core.job.initializer_conf_pb2"):
        with pytest.raises(ImportError, match="settings are Python objects"):
            importlib.import_module(f"minflow.{name}")
    for name in ("python.framework.dtype", "python.framework.distribute"):
        with pytest.raises(ImportError, match="public name: flow.distribute for python.framework.distribute"):
            importlib.import_module(f"minflow.{name}")
    with pytest.raises(flow.MissingNameError, match="True or False for IsTrainable"):
        flow.current_global_function_desc()
    with pytest.raises(flow.MissingNameError, match="flow.layers.batch_normalization"):
        flow.user_op_builder("norm").Op("normalization")
