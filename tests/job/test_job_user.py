"""What programs of job functions' generation do, and what their writers get wrong: results, and errors that say what to do."""

import numpy as np
import pytest

import minflow as flow


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
