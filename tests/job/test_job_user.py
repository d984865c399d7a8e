"""What programs of job functions' generation do, and what their writers get wrong: results, and errors that say what to
do."""

import collections
import copy
import functools
import inspect
import pickle
import threading

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import DTypeError, JobError, MinflowError
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


@flow.global_function()
def plus_one(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    return x + 1


@flow.global_function()
def doubled(x: tp.Numpy.Placeholder((2, 3))):
    return x * 2


def test_a_job_is_copied_and_pickled_as_functions_are():
    class Trainer:
        job = plus_one

        def __init__(self):
            self.own = plus_one

    assert copy.deepcopy(Trainer()).own is plus_one and copy.copy(plus_one) is plus_one
    assert pickle.loads(pickle.dumps(plus_one)) is plus_one
    with pytest.raises((pickle.PicklingError, AttributeError), match="job_with.<locals>.trained"):
        pickle.dumps(job_with(2))
    wrapped = functools.wraps(plus_one)(lambda *args: plus_one(*args))
    assert wrapped(X)[0, 0] == 2 and wrapped.__name__ == "plus_one"
    shown = str(inspect.signature(plus_one))
    assert shown == "(x: minflow.typing.Numpy.Placeholder((2, 3), dtype=float32)) -> minflow.job.typing.Numpy"


async def asynchronous(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    return x


def generator(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    yield x


@pytest.mark.parametrize("function", [3, None, dict, len, functools.partial(max, 3), asynchronous, generator],
                         ids=lambda function: getattr(function, "__name__", str(function)))
def test_only_a_function_becomes_a_job(function):
    with pytest.raises(JobError, match="made of a Python function|is a generator or async") as caught:
        flow.global_function()(function)
    assert caught.value.where and caught.value.hint


HANDLED = {
    "forgot get": lambda step: step.numpy(), "forgot get of a list": lambda step: step.numpy_list(), "abs": abs,
    "round": round,
    "in": lambda step: 3 in step, "%": lambda step: step % 2, "//": lambda step: step // 2, "deepcopy": copy.deepcopy,
    "copy": copy.copy, "pickle": pickle.dumps, "tensor": flow.tensor, "set": lambda step: step.__setitem__(0, 1),
}  # fmt: skip


@pytest.mark.parametrize("use", HANDLED)
def test_a_handle_tells_what_to_do_in_its_place(use):
    step = doubled(X)
    with pytest.raises(JobError) as caught:
        HANDLED[use](step)
    assert ".get() waits for it" in caught.value.hint and caught.value.where
    assert step.get().numpy()[0, 0] == 2


def test_a_job_called_in_a_job_is_refused_at_that_line():
    @flow.global_function()
    def outer(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return plus_one(x)

    with pytest.raises(JobError, match="calling plus_one inside the job function outer") as caught:
        outer(X)
    assert caught.value.where.startswith("at test_job_user.py:")


def test_a_job_called_in_a_callback_is_refused_at_that_line():
    caught = []

    def callback(result):
        with pytest.raises(JobError) as error:
            plus_one(result)
        caught.append(error.value)

    doubled(X)(callback)
    flow.sync_default_session()
    assert "inside a callback" in caught[0].what and caught[0].where.startswith("at test_job_user.py:")


def test_a_wrong_batch_of_a_run_is_told_where_it_was_started():
    run = flow.start(plus_one, [3])
    with pytest.raises(
        JobError, match="the argument x of job plus_one is an int, where a numpy array is wanted"
    ) as caught:
        run.result()
    assert caught.value.where.startswith("at test_job_user.py:")


def test_what_can_take_one_argument_may_watch():
    seen = []

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        flow.watch(x, lambda value, key="x": seen.append((key, value.shape)))
        flow.watch(x, print)
        return x

    job(X)
    assert seen == [("x", (2, 3))]


@pytest.mark.parametrize("name", [None, "", 3])
def test_a_namespace_that_is_no_name_is_refused_at_its_line(name):
    with pytest.raises(JobError, match="a namespace is a name") as caught:
        flow.scope.namespace(name)
    assert caught.value.where.startswith("at test_job_user.py:")


def test_settings_are_calls():
    config = flow.function_config()
    for name in ("default_data_type", "concurrency_width", "enable_inplace"):
        with pytest.raises(JobError, match=f"{name} is a call") as caught:
            setattr(config, name, 3)
        assert caught.value.hint == f"config.{name}(3)" and caught.value.where
    with pytest.raises(JobError, match="no setting 'concurency_width'") as caught:
        config.concurency_width = 3
    with pytest.raises(JobError, match="flow.config.cpu_device_num is a call"):
        flow.config.cpu_device_num = 2
    assert copy.deepcopy(config).view == "consistent"


PLACEHOLDERS = {
    "a dtype that is not there": (
        lambda: tp.Numpy.Placeholder((2,), dtype="banana"), "Numpy.Placeholder: minflow has no dtype banana"
    ),
    "an axis that is no number": (lambda: tp.Numpy.Placeholder((2,), batch_axis="x"), "batch_axis is no axis"),
    "no Placeholder": (lambda: tp.Numpy((2, 3)), "tp.Numpy is an annotation, and is not called"),
    "a placeholder that is called": (lambda: tp.Numpy.Placeholder((2, 3))(), "is an annotation, and is not called"),
}


@pytest.mark.parametrize("wrong", PLACEHOLDERS)
def test_a_wrong_placeholder(wrong):
    make, text = PLACEHOLDERS[wrong]
    with pytest.raises(MinflowError, match=text) as caught:
        make()
    assert caught.value.where.startswith("at test_job_user.py:") and caught.value.hint


def test_a_placeholder_may_have_sizes_that_numpy_worked_out():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((np.prod([1, 2]), 3))) -> tp.Numpy:
        return x

    assert job(X).shape == (2, 3)


class Hostile(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    def __repr__(self):
        raise RuntimeError("no text")

    def __call__(self, result):
        raise self


def test_an_error_without_a_text_does_not_end_the_worker():
    doubled(X)(Hostile())
    with pytest.raises(JobError, match="raised Hostile: .its text cannot be made: RuntimeError") as caught:
        flow.sync_default_session(timeout=20)
    assert isinstance(caught.value.__cause__, Hostile) and caught.value.where.startswith("at test_job_user.py:")
    assert plus_one(X)[0, 0] == 2
    with pytest.raises(
        JobError, match="the argument x of job plus_one is a Hostile, where a numpy array is wanted"
    ) as caught:
        plus_one(Hostile())
    assert caught.value.values["got x"] == "Hostile"


def test_a_callback_that_is_none_is_refused_at_its_line():
    step = doubled(X)
    step(print)
    for wrong, text in (((), "not callable"), ((lambda: 0,), "with one argument"), ((print,), "a callback already")):
        with pytest.raises(JobError, match=text) as caught:
            step(*wrong)
        assert caught.value.where.startswith("at test_job_user.py:") and caught.value.hint


ARRAYS = {
    "masked": (lambda: np.ma.masked_array(X, mask=X > 0), "masked array", "x.filled(0)"),
    "of objects": (lambda: X.astype(object), "another dtype", 'x.astype("float32")'),
    "of the other byte order": (lambda: X.astype(">f4"), "another dtype", 'x.astype("float32")'),
    "double": (
        lambda: X.astype("f8"), "another dtype", 'x.astype("float32"), or dtype=flow.float64 in the placeholder'
    ),
    "a handle": (lambda: doubled(X), "is a Step, where a numpy array is wanted", "doubled(...).get() waits"),
    "a tensor": (lambda: flow.tensor(X), "is a Tensor, where a numpy array is wanted", ".numpy() gives"),
}


@pytest.mark.parametrize("which", ARRAYS)
def test_an_array_that_is_refused(which):
    make, text, hint = ARRAYS[which]
    with pytest.raises(JobError, match=text) as caught:
        plus_one(make())
    assert hint in caught.value.hint and "above" not in caught.value.hint and caught.value.where
    assert ("placeholder" in caught.value.hint) == (which == "double")


def test_a_structure_that_is_refused_is_told_as_what_it_is():
    one = tp.Numpy.Placeholder((2, 3))

    @flow.global_function()
    def both(pair: tuple[one, one]) -> tp.Numpy:
        return pair[0] + pair[1]

    for wrong, kind in ((X, "an ndarray"), ((X,), "a tuple of 1"), ([X] * 3, "a list of 3"), (None, "None")):
        with pytest.raises(
            JobError, match=f"the argument pair of job both is {kind}, where a tuple of 2 arrays is wanted"
        ):
            both(wrong)

    @flow.global_function()
    def listed(x: tp.ListNumpy.Placeholder((2, 3))) -> tp.ListNumpy:
        return x

    with pytest.raises(
        JobError,
        match="the argument x of job listed is an ndarray, where a list with one array for each device is wanted"
    ):
        listed(X)


BIG = np.arange(24, dtype="float32").reshape(4, 6)


@pytest.mark.parametrize("array", [BIG[::-2, ::2], np.asfortranarray(BIG[:2, :3]), BIG[:3, :2].T,
                                   np.broadcast_to(np.float32(3), (2, 3)), BIG[:2, :3].view(np.matrix)],
                         ids=["strided", "Fortran", "transposed", "broadcast", "matrix"])
def test_an_array_of_any_layout_is_taken_as_its_numbers(array):
    given = plus_one(array)
    np.testing.assert_array_equal(given, np.asarray(array) + 1)
    assert type(given) is np.ndarray and given.flags.c_contiguous and given.flags.writeable


@pytest.mark.parametrize("keep", [lambda x: x, lambda x: x * 2, lambda x: flow.get_variable("w", (3,)),
                                  lambda x: flow.reshape(x, [6])], ids=["input", "result", "variable", "view"])
def test_a_blob_of_another_job_is_refused(keep):
    kept = []

    @flow.global_function()
    def keeps(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        kept.append(keep(x))
        return x

    @flow.global_function()
    def uses(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return flow.reshape(x, [-1])[:1] + kept[0]

    keeps(X)
    with pytest.raises(JobError, match="a Blob of another build is used while job uses is built") as caught:
        uses(X)
    assert caught.value.where.startswith("at test_job_user.py:") and "share variables by name" in caught.value.hint
    with pytest.raises(JobError, match="is a Blob, where a numpy array is wanted") as caught:
        plus_one(kept[0])
    assert "return the Blob from its job" in caught.value.hint


Pair = collections.namedtuple("Pair", "loss accuracy")


def test_a_namedtuple_keeps_its_names():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Bundle[tp.Numpy]:
        return {"both": Pair(x, [x + 1])}

    both = job(X)["both"]
    assert isinstance(both, Pair) and both.accuracy[0][0, 0] == 2


@pytest.mark.parametrize(
    "text", ["tp.Numpy.Placeholder((2, 3)", "tp.Nunpy.Placeholder((2, 3))", "nowhere", "tp.Numpy()()"]
)
def test_an_annotation_that_cannot_be_read(text):
    def job(x):
        return x

    job.__annotations__ = {"x": text, "return": tp.Numpy}
    with pytest.raises(
        JobError, match="annotation of x in job job cannot be read|is an annotation, and is not called"
    ) as caught:
        flow.global_function()(job)
    assert caught.value.where and caught.value.hint


def test_devices_that_return_other_numbers_of_blobs_are_refused():
    flow.config.cpu_device_num(2)

    @flow.global_function()
    def job(x: tp.ListListNumpy.Placeholder((2, 3))) -> tp.ListListNumpy:
        return x

    try:
        assert len(job([[X, X], [X, X]])) == 2
        with pytest.raises(JobError, match="other numbers of Blobs on other devices") as caught:
            job([[X], [X, X]])
    finally:
        flow.config.cpu_device_num(1)
    assert caught.value.values == {"device 0": "1", "device 1": "2"} and caught.value.where and caught.value.hint


def test_arguments_may_have_any_name():
    @flow.global_function()
    def job(
        args: tp.Numpy.Placeholder((2, 3)), kwargs: tp.Numpy.Placeholder((2, 3)), self: tp.Numpy.Placeholder((2, 3))
    ) -> tp.Numpy:
        return args + kwargs * self

    assert job(X, self=2 * X, kwargs=3 * X)[0, 0] == 7


def test_a_blob_is_not_none():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return x * 2 if x != None and not x == None else x  # noqa: E711 - as programs have it

    assert job(X)[0, 0] == 2


NUMBERS = {
    "l2": lambda: flow.regularizers.l2("a"), "l1": lambda: flow.regularizers.l1(None),
    "deviation": lambda: flow.truncated_normal("a"),
    "mean": lambda: flow.random_normal_initializer("a"), "range": lambda: flow.random_uniform_initializer("a", 1),
    "value": lambda: flow.constant_initializer([1, 2]),
}


@pytest.mark.parametrize("which", NUMBERS)
def test_what_is_no_number_is_refused(which):
    with pytest.raises(JobError, match="where a number is wanted") as caught:
        NUMBERS[which]()
    assert caught.value.where.startswith("at test_job_user.py:") and caught.value.hint


def test_a_session_is_not_cleared_while_another_thread_builds_on_it():
    clearing, alive = threading.Thread(target=flow.clear_default_session), []

    @flow.global_function("train")
    def job(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
        w = flow.get_variable("w", (3,), initializer=flow.ones_initializer())
        clearing.start()
        clearing.join(0.2)
        alive.append(clearing.is_alive())
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.5]), momentum=0).minimize(w * x)
        return w

    np.testing.assert_array_equal(job(np.ones(3, "float32")), 1)
    clearing.join(60)
    assert alive == [True] and not clearing.is_alive()
