"""What programs of job functions' generation do, and what their writers get wrong: results, and errors that say what to do."""

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.errors import JobError

X = np.ones((2, 3), "float32")


@pytest.fixture(autouse=True)
def fresh():
    flow.clear_default_session()
    yield
    flow.clear_default_session()


def test_a_watch_handler_without_annotation_gets_what_a_future_gives():
    """As the op tests of that generation ask it: `.numpy()`, `.numpy_list()`."""
    seen = {}

    @flow.global_function("train")
    def job():
        x = flow.get_variable("x", shape=(3,), initializer=flow.constant_initializer(0.5))
        loss = flow.math.tanh(x)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [1e-4]), momentum=0).minimize(loss)
        flow.watch(x, lambda value: seen.update(x=value))
        flow.watch_diff(x, lambda value: seen.update(diff=value))
        return loss

    given = job().get()
    np.testing.assert_allclose(given.numpy(), np.tanh(seen["x"].numpy()), rtol=1e-6)
    np.testing.assert_allclose(seen["diff"].numpy(), 1 - np.tanh(seen["x"]) ** 2, rtol=1e-5)
    assert len(seen["x"].numpy_list()) == seen["x"].parallel_num() == 1


def test_an_operator_with_an_equals_sign_makes_a_new_blob():
    """Blobs of that generation were never written: another name for one keeps what it was."""

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Bundle[tp.Numpy]:
        w = first = flow.get_variable("w", shape=(3,), initializer=flow.ones_initializer())
        shortcut = y = x * 2
        y += x
        y *= 3
        y -= 1
        y /= 4
        x += w
        w += 5
        return [shortcut, y, x, first, w]

    for _ in range(2):
        shortcut, y, x, first, w = job(X)
        assert (shortcut == 2).all() and (y == 2).all() and (x == 2).all() and (first == 1).all() and (w == 6).all()


def test_what_is_computed_from_a_futures_array_is_one_array():
    flow.config.cpu_device_num(2)
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function(function_config=config)
    def job(x: tp.ListNumpy.Placeholder((2, 3))):
        return x * 2

    try:
        given = job([X, 2 * X]).get()
    finally:
        flow.config.cpu_device_num(1)
    assert [part[0, 0] for part in given.numpy_list()] == [2, 4] and given.parallel_num() == 2
    more = given + 1
    np.testing.assert_array_equal(more.numpy(0), np.concatenate([2 * X + 1, 4 * X + 1]))
    assert more.parallel_num() == 1 and given[0].numpy_list()[0].shape == (3,)
    with pytest.raises(JobError, match="device that is not there"):
        given.numpy(2)
