"""What programs of job functions' generation do, and what their writers get wrong: results, and errors that say what to do."""

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.errors import DTypeError, JobError
from minflow.job.session import default_session

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


def job_with(n):
    """A train job, always of the same name, whose variable w has n numbers. A call gives w from before its step."""

    @flow.global_function("train")
    def trained(x: tp.Numpy.Placeholder((n,))) -> tp.Numpy:
        w = flow.get_variable("w", (n,), initializer=flow.ones_initializer())
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.5]), momentum=0).minimize(w * x)
        return w

    return trained


def test_a_job_that_was_replaced_trains_no_variable_that_nobody_sees():
    old, ones = job_with(2), [np.ones(n, "float32") for n in range(5)]
    old(ones[2])
    new = job_with(4)
    new(ones[4])
    with pytest.raises(JobError, match="another shape") as caught:
        old(ones[2])
    assert "trained, as it was defined again" in str(caught.value)
    np.testing.assert_array_equal(new(ones[4]), 0.875)  # and nothing of the new one was lost
    again = job_with(4)
    assert (new(ones[4])[0], again(ones[4])[0], new(ones[4])[0]) == (0.75, 0.625, 0.5)  # of the same shape they share


def test_a_job_from_before_the_session_was_cleared_starts_anew():
    ones = np.ones(2, "float32")
    replaced = job_with(2)
    replaced(ones)
    job = job_with(2)
    job(ones)
    flow.clear_default_session()
    assert replaced(ones)[0] == 1 and job(ones)[0] == 0.75

    @flow.global_function()
    def other() -> tp.Numpy:
        return flow.get_variable("w", (3,))

    with pytest.raises(JobError, match="another shape") as caught:  # the jobs from before count as users
        other()
    assert "trained" in caught.value.values["used by"]


@pytest.mark.parametrize("first", ["train", "predict"])
def test_a_variable_is_not_named_as_a_slot_of_another(first):
    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((3,))) -> None:
        w = flow.get_variable("w", (3,))
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(w * x)

    @flow.global_function()
    def predict(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
        return x + flow.get_variable("w-momentum", (3,))

    jobs = [train, predict] if first == "train" else [predict, train]
    jobs[0](np.ones(3, "float32"))
    with pytest.raises(JobError, match="what the optimizer keeps for another one") as caught:
        jobs[1](np.ones(3, "float32"))
    assert caught.value.values == {"optimizer": "keeps it for 'w'"} and caught.value.where and caught.value.hint
    flow.sync_default_session()


WRONG_VARIABLES = [
    (dict(name=None, shape=(2,)), JobError, "the name is a text"),
    (dict(name="w", shape=(-3,)), JobError, "integers above 0"),
    (dict(name="w", shape=(2.0,)), JobError, "integers above 0"),
    (dict(name="w", shape=(2,), dtype="banana"), DTypeError, "flow.get_variable: minflow has no dtype banana"),
    (dict(name="w", shape=(2,), initializer=3), JobError, "no initializer but int"),
    (dict(name="w", shape=(2,), initializer=np.ones(2)), JobError, "no initializer but ndarray"),
    (dict(name="w", shape=(2,), regularizer=0.1), JobError, "no regularizer but float"),
    (dict(name="w", shape=(10**8, 10**8)), JobError, "variable w does not fit into memory"),
    (dict(name="w", shape=(10**30,)), JobError, "variable w does not fit into memory"),
    (dict(name="System-Random-State", shape=(2,)), JobError, "begin with System-"),
]


@pytest.mark.parametrize("wrong", WRONG_VARIABLES, ids=lambda wrong: wrong[2])
def test_what_a_variable_is_made_of_is_checked(wrong):
    arguments, kind, text = wrong

    @flow.global_function()
    def job() -> tp.Numpy:
        return flow.get_variable(**arguments)

    with pytest.raises(kind, match=text) as caught:
        job()
    assert caught.value.where and caught.value.hint and not default_session().variables


def test_the_dtype_of_a_variable_may_be_a_name():
    @flow.global_function()
    def job() -> tp.Bundle[tp.Numpy]:
        return [flow.get_variable("a", [np.int64(2)], dtype="float64"), flow.get_variable("b", (2,), dtype=np.int32)]

    assert [x.dtype.name for x in job()] == ["float64", "int32"]
