"""Typical programs of job functions' generation and typical mistakes: results, and errors with suggestions."""

import collections
import copy
import functools
import inspect
import pickle
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from builders import job_of, raised_error, sgd

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import DTypeError, JobError, MinflowError
from minflow.job.session import default_session

pytestmark = pytest.mark.usefixtures("empty_session")
X = np.ones((2, 3), "float32")
THREE = np.ones(3, "float32")
SIZES = (2, 3)


def told(call, *wanted):
    """Return the error that the call raises, which also names a line."""
    error = raised_error(call, *wanted)
    assert error.where, str(error)
    return error


def here(error):
    """Check that the error names a line of this file."""
    assert error.where.startswith("at test_job_user.py:"), error.where
    return error


@pytest.fixture
def two_devices():
    flow.config.cpu_device_num(2)
    yield
    flow.config.cpu_device_num(1)


def test_watch_handler_without_annotation_gets_a_future():
    """The op tests of that generation call `.numpy()` and `.numpy_list()`."""
    seen = {}

    @flow.global_function("train")
    def job():
        x = flow.get_variable("x", shape=(3,), initializer=flow.constant_initializer(0.5))
        loss = flow.math.tanh(x)
        sgd(loss, 1e-4)
        flow.watch(x, lambda value: seen.update(x=value))
        flow.watch_diff(x, lambda value: seen.update(diff=value))
        return loss

    given = job().get()
    np.testing.assert_allclose(given.numpy(), np.tanh(seen["x"].numpy()), rtol=1e-6)
    np.testing.assert_allclose(seen["diff"].numpy(), 1 - np.tanh(seen["x"]) ** 2, rtol=1e-5)
    assert len(seen["x"].numpy_list()) == seen["x"].parallel_num() == 1


def test_augmented_assignment_creates_a_new_blob():
    """Blobs of that generation were never written: another name for one keeps its value."""

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


def test_computation_on_a_futures_array_gives_an_array(two_devices):
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    job = job_of(lambda x: x * 2, tp.ListNumpy.Placeholder(SIZES), result=None, config=config)
    given = job([X, 2 * X]).get()
    assert [part[0, 0] for part in given.numpy_list()] == [2, 4] and given.parallel_num() == 2
    assert [part[0, 0] for part in given.ndarray_list()] == [2, 4] and given.ndarray().shape == given.numpy().shape
    more = given + 1
    np.testing.assert_array_equal(more.numpy(0), np.concatenate([2 * X + 1, 4 * X + 1]))
    assert more.parallel_num() == 1 and given[0].numpy_list()[0].shape == (3,)
    told(given.numpy, JobError, "device that is not there", 2)


def job_with(n):
    """A train job, always of the same name, whose variable w has n elements. A call returns w from before its step."""

    def trained(x):
        w = flow.get_variable("w", (n,), initializer=flow.ones_initializer())
        sgd(w * x, 0.5)
        return w

    return job_of(trained, (n,), kind="train", name="trained")


def test_replaced_job_trains_no_orphaned_variable():
    old, ones = job_with(2), [np.ones(n, "float32") for n in range(5)]
    old(ones[2])
    new = job_with(4)
    new(ones[4])
    assert "trained, as it was defined again" in str(told(old, JobError, "another shape", ones[2]))
    np.testing.assert_array_equal(new(ones[4]), 0.875)  # and nothing of the new one is lost
    again = job_with(4)
    # they share a variable of the same shape
    assert (new(ones[4])[0], again(ones[4])[0], new(ones[4])[0]) == (0.75, 0.625, 0.5)


def test_job_from_before_clearing_the_session_restarts():
    ones = np.ones(2, "float32")
    replaced = job_with(2)
    replaced(ones)
    job = job_with(2)
    job(ones)
    flow.clear_default_session()
    assert replaced(ones)[0] == 1 and job(ones)[0] == 0.75
    other = job_of(lambda: flow.get_variable("w", (3,)))
    assert "trained" in told(other, JobError, "another shape").values["used by"]  # older jobs count as users


@pytest.mark.parametrize("first", ["train", "predict"])
def test_variable_cannot_have_the_name_of_a_slot(first):
    def train(x):
        sgd(flow.get_variable("w", (3,)) * x, 0.1, momentum=0.9)
        return x

    jobs = [
        job_of(train, THREE, kind="train", name="train"),
        job_of(lambda x: x + flow.get_variable("w-momentum", (3,)), THREE, name="predict"),
    ]
    one, another = jobs if first == "train" else jobs[::-1]
    one(THREE)
    error = told(another, JobError, "an optimizer state of another variable", THREE)
    assert error.values == {"optimizer": "keeps it for 'w'"}
    flow.sync_default_session()


WRONG_VARIABLES = [
    (dict(name=None, shape=(2,)), JobError, "name must be a string"),
    (dict(name="w", shape=(-3,)), JobError, "integers of at least 1"),
    (dict(name="w", shape=(2.0,)), JobError, "integers of at least 1"),
    (dict(name="w", shape=(2,), dtype="banana"), DTypeError, "flow.get_variable: minflow has no dtype banana"),
    (dict(name="w", shape=(2,), initializer=3), JobError, "must be an initializer, got int"),
    (dict(name="w", shape=(2,), initializer=np.ones(2)), JobError, "must be an initializer, got ndarray"),
    (dict(name="w", shape=(2,), regularizer=0.1), JobError, "must be a regularizer, got float"),
    (dict(name="w", shape=(10**8, 10**8)), JobError, "variable w does not fit into memory"),
    (dict(name="w", shape=(10**30,)), JobError, "variable w does not fit into memory"),
    (dict(name="System-Random-State", shape=(2,)), JobError, "begin with System-"),
]


@pytest.mark.parametrize("arguments, kind, text", WRONG_VARIABLES, ids=[text for _, _, text in WRONG_VARIABLES])
def test_arguments_of_get_variable_are_checked(arguments, kind, text):
    told(job_of(lambda: flow.get_variable(**arguments)), kind, text)
    assert not default_session().variables


def test_variable_dtype_may_be_a_string():
    def job(x):
        return [flow.get_variable("a", [np.int64(2)], dtype="float64"), flow.get_variable("b", (2,), dtype=np.int32)]

    made = job_of(job, (np.prod([1, 2]), 3), result=tp.Bundle[tp.Numpy])
    assert [x.dtype.name for x in made(X)] == ["float64", "int32"]


@flow.global_function()
def plus_one(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    return x + 1


doubled = job_of(lambda x: x * 2, SIZES, result=None, name="doubled")


def test_plan_lists_calls_with_their_platforms():
    job = job_of(lambda x: flow.math.relu(x) * 2, SIZES, name="scaled")
    here(told(lambda: job.plan, JobError, "scaled has not been called yet"))
    job.compile()
    (relu, mul) = job.plan.record.calls
    assert (relu.op, relu.platform, relu.outputs) == ("relu", "numpy", ("float32[2, 3]",))
    assert (mul.op, mul.platform, mul.seconds) == ("mul", "reference", None)
    assert repr(job.plan).startswith("predict job scaled: plan, 2 calls, arena ")


def test_job_is_copied_and_pickled_like_a_function():
    class Trainer:
        job = plus_one

        def __init__(self):
            self.own = plus_one

    assert copy.deepcopy(Trainer()).own is plus_one and copy.copy(plus_one) is plus_one
    assert pickle.loads(pickle.dumps(plus_one)) is plus_one
    with pytest.raises((pickle.PicklingError, AttributeError), match="job"):
        pickle.dumps(job_with(2))
    wrapped = functools.wraps(plus_one)(lambda *args: plus_one(*args))
    assert wrapped(X)[0, 0] == 2 and wrapped.__name__ == "plus_one"
    shown = str(inspect.signature(plus_one))
    assert shown == "(x: minflow.typing.Numpy.Placeholder((2, 3), dtype=float32)) -> minflow.job.typing.Numpy"


async def asynchronous(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    return x


def generator(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    yield x


@pytest.mark.parametrize(
    "function",
    [3, None, dict, len, functools.partial(max, 3), asynchronous, generator],
    ids=lambda function: getattr(function, "__name__", str(function)),
)
def test_only_functions_become_jobs(function):
    told(flow.global_function(), JobError, "made of a Python function|is a generator or async", function)


# ---- the handle of an async step, used like its result ---------------------------------------------------------------

INSTEAD = {  # of its elements
    "numpy": lambda s: s.numpy(),
    "numpy_list": lambda s: s.numpy_list(),
    "abs": abs,
    "round": round,
    "in": lambda s: 3 in s,
    "%": lambda s: s % 2,
    "//": lambda s: s // 2,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": pickle.dumps,
    "tensor": flow.tensor,
    "set": lambda s: s.__setitem__(0, 1),
}
ARRAY_LIKE = {
    "mean": lambda s: s.mean(),
    "shape": lambda s: s.shape,
    "item": lambda s: s.item(),
    "format": lambda s: f"{s:.3f}",
    "add": lambda s: s + 1,
    "subtract from": lambda s: 1 - s,
    "times an array": lambda s: X * s,
    "negative": lambda s: -s,
    "less": lambda s: s < 1,
    "index": lambda s: s[0],
    "unpack": lambda s: dict(zip(("labels", "logits"), s)),
    "length": lambda s: len(s),
    "float": lambda s: float(s),
    "asarray": lambda s: np.asarray(s),
    "np.mean": np.mean,
    "array_equal": lambda s: np.testing.assert_array_equal(s, X),
}


@pytest.mark.parametrize("use", [*INSTEAD, *ARRAY_LIKE])
def test_handle_is_not_an_array(use):
    step = job_of(lambda x: x * 2, SIZES, result=tp.Callback[tp.Numpy], name="double")(X)
    error = told((INSTEAD | ARRAY_LIKE)[use], JobError, "of a step of double|a step of double", step)
    if use in ARRAY_LIKE:
        assert ": its call does not wait" in error.what and re.search(r"handle  <step 1 of double: \w+>", str(error))
        file = r"\w+\.py" if use in ("np.mean", "array_equal") else re.escape(Path(__file__).name)  # a line of NumPy
        assert re.search(rf"^  at {file}:\d+$", str(error), re.MULTILINE)
        assert "Try: double(...)(callback)" in str(error)
    assert ".get()" in error.hint and (step.get() == 2).all()


def test_handle_supports_repr_and_identity():
    step = doubled(X)
    step.get()  # its repr contains its state
    assert step and not hasattr(step, "shape") and f"{step}" == repr(step)
    with pytest.raises(AttributeError, match="'Step' object has no attribute 'gett'"):
        step.gett()
    assert len({step, step}) == 1 and step == step and step in [step]


# ---- flow.watch ------------------------------------------------------------------------------------------------------


def watching(*handlers):
    def double(x):
        for handler in handlers:
            flow.watch(x, handler)
        return x * 2

    return job_of(double, THREE, name="double")


def test_any_callable_of_one_argument_may_watch():
    seen = []
    watching(lambda value, key="x": seen.append((key, value.shape)), print)(THREE)
    assert seen == [("x", (3,))]


def test_sync_call_returns_after_its_watch_handlers():
    seen, never = [], threading.Event()

    def slow(x: tp.Numpy):
        never.wait(0.05)  # long enough for a caller that does not wait to continue
        seen.append(x)

    double = watching(slow)
    for n in (1, 2, 3):
        assert (double(n * THREE) == 2 * n).all()
        assert len(seen) == n and (seen[-1] == n).all()


def test_sync_call_raises_the_error_of_its_watch_handler():
    def bad(x: tp.Numpy):
        if x[0] == 2:
            raise KeyError("the handler")

    double = watching(bad)
    assert (double(THREE) == 2).all()
    with pytest.raises(JobError, match="watch handler of step 2 of double raised KeyError: 'the handler'"):
        double(2 * THREE)
    assert (double(THREE) == 2).all()
    flow.sync_default_session()  # it was reported once


# ---- arguments and settings ------------------------------------------------------------------------------------------


def wrong_callback(*arguments):
    step = doubled(X)
    step(lambda result: None)
    step(*arguments)


def in_a_callback():
    """Return the error of a call in a callback, which the callback raises too."""
    errors = []
    doubled(X)(lambda result: errors.append(told(lambda: plus_one(X), JobError, "inside a callback")))
    flow.sync_default_session()
    raise errors[0]


def job_of_pair():
    one = tp.Numpy.Placeholder(SIZES)
    return job_of(lambda pair: pair[0] + pair[1], tuple[one, one], name="both")


def job_of_list():
    return job_of(lambda x: x, tp.ListNumpy.Placeholder(SIZES), result=tp.ListNumpy, name="listed")


PAIR = "argument x0 of job both must be a tuple of 2 arrays, got {}"
NUMBER = "must be a number"
MISTAKES = {
    "a job in a job": (
        lambda: job_of(lambda x: plus_one(x), SIZES, name="outer")(X),
        "calling plus_one inside the job function outer",
    ),
    "a job in a callback": (in_a_callback, "inside a callback"),
    "a run's batch": (
        lambda: flow.start(plus_one, [3]).result(),
        "the argument x of job plus_one must be a NumPy array, got an int",
    ),
    "a namespace None": (lambda: flow.scope.namespace(None), "a namespace must be a name"),
    "a namespace of no letters": (lambda: flow.scope.namespace(""), "a namespace must be a name"),
    "a namespace 3": (lambda: flow.scope.namespace(3), "a namespace must be a name"),
    "a dtype that is not there": (
        lambda: tp.Numpy.Placeholder((2,), dtype="banana"),
        "Numpy.Placeholder: minflow has no dtype banana",
    ),
    "an axis that is no number": (lambda: tp.Numpy.Placeholder((2,), batch_axis="x"), "batch_axis must be an axis"),
    "no Placeholder": (lambda: tp.Numpy((2, 3)), "tp.Numpy is an annotation; it cannot be called"),
    "a placeholder that is called": (lambda: tp.Numpy.Placeholder((2, 3))(), "is an annotation; it cannot be called"),
    "no callback": (lambda: wrong_callback(), "not callable"),
    "a callback without argument": (lambda: wrong_callback(lambda: 0), "with one argument"),
    "a second callback": (lambda: wrong_callback(print), "a callback already"),
    "l2": (lambda: flow.regularizers.l2("a"), NUMBER),
    "l1": (lambda: flow.regularizers.l1(None), NUMBER),
    "deviation": (lambda: flow.truncated_normal("a"), NUMBER),
    "mean": (lambda: flow.random_normal_initializer("a"), NUMBER),
    "range": (lambda: flow.random_uniform_initializer("a", 1), NUMBER),
    "value": (lambda: flow.constant_initializer([1, 2]), NUMBER),
    "masked": (lambda: plus_one(np.ma.masked_array(X, mask=X > 0)), r"masked array.*Try: x\.filled\(0\)"),
    "of objects": (lambda: plus_one(X.astype(object)), r'does not have the dtype.*Try: x\.astype\("float32"\)$'),
    "of the other byte order": (
        lambda: plus_one(X.astype(">f4")),
        r'does not have the dtype.*Try: x\.astype\("float32"\)$',
    ),
    "double": (
        lambda: plus_one(X.astype("f8")),
        r'does not have the dtype.*Try: x\.astype\("float32"\), or dtype=flow.float64 in the placeholder',
    ),
    "a smaller batch": (lambda: plus_one(X[:1]), "does not have the shape.*drop the last, smaller batch"),
    "a larger batch": (lambda: plus_one(np.tile(X, (2, 1))), r"does not have the shape.*Try: give .* \[2, 3\], or"),
    "a number": (lambda: plus_one(np.array(1, "f4")), r"does not have the shape.*Try: give .* \[2, 3\], or"),
    "a turned array": (lambda: plus_one(X.T), r"does not have the shape.*Try: reshape it to \[2, 3\], or"),
    "a handle": (
        lambda: plus_one(doubled(X)),
        r"must be a NumPy array, got a Step.*Try: doubled\(\.\.\.\)\.get\(\) waits",
    ),
    "a tensor": (lambda: plus_one(flow.tensor(X)), r"must be a NumPy array, got a Tensor.*\.numpy\(\) gives"),
    "a pair of no tuple": (lambda: job_of_pair()(X), PAIR.format("an ndarray")),
    "a pair of one": (lambda: job_of_pair()((X,)), PAIR.format("a tuple of 1")),
    "a pair of three": (lambda: job_of_pair()([X] * 3), PAIR.format("a list of 3")),
    "a pair None": (lambda: job_of_pair()(None), PAIR.format("None")),
    "no list": (
        lambda: job_of_list()(X),
        "x0 of job listed must be a list with one array for each device, got an ndarray",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_has_a_suggestion(mistake):
    call, text = MISTAKES[mistake]
    here(told(call, MinflowError, f"(?s){text}"))


def test_listing_counts_one_operation(capsys):
    plus_one(X)
    flow.show(plus_one)
    assert capsys.readouterr().out.startswith("predict job plus_one: 1 operation, 0 states\n")


def test_settings_are_functions():
    config = flow.function_config()
    for name in ("default_data_type", "concurrency_width", "enable_inplace"):
        assert told(setattr, JobError, f"{name} is a method", config, name, 3).hint == f"config.{name}(3)"
    told(lambda: setattr(config, "concurency_width", 3), JobError, "no setting 'concurency_width'")
    told(lambda: setattr(flow.config, "cpu_device_num", 2), JobError, "flow.config.cpu_device_num is a method")
    assert copy.deepcopy(config).view == "consistent"


class Hostile(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    def __repr__(self):
        raise RuntimeError("no text")

    def __call__(self, result):
        raise self


def test_error_with_failing_str_does_not_end_the_worker():
    doubled(X)(Hostile())
    error = told(
        lambda: flow.sync_default_session(timeout=20),
        JobError,
        "raised Hostile: .its message cannot be formatted: RuntimeError",
    )
    assert isinstance(here(error).__cause__, Hostile)
    assert plus_one(X)[0, 0] == 2
    error = told(plus_one, JobError, "argument x of job plus_one must be a NumPy array, got a Hostile", Hostile())
    assert error.values["got x"] == "Hostile"


BIG = np.arange(24, dtype="float32").reshape(4, 6)


@pytest.mark.parametrize(
    "array",
    [
        BIG[::-2, ::2],
        np.asfortranarray(BIG[:2, :3]),
        BIG[:3, :2].T,
        np.broadcast_to(np.float32(3), (2, 3)),
        BIG[:2, :3].view(np.matrix),
    ],
    ids=["strided", "Fortran", "transposed", "broadcast", "matrix"],
)
def test_arrays_of_any_memory_layout_are_accepted(array):
    given = plus_one(array)
    np.testing.assert_array_equal(given, np.asarray(array) + 1)
    assert type(given) is np.ndarray and given.flags.c_contiguous and given.flags.writeable


@pytest.mark.parametrize(
    "keep",
    [lambda x: x, lambda x: x * 2, lambda x: flow.get_variable("w", (3,)), lambda x: flow.reshape(x, [6])],
    ids=["input", "result", "variable", "view"],
)
def test_blob_of_another_job_is_refused(keep):
    kept = []
    job_of(lambda x: (kept.append(keep(x)), x)[1], SIZES, name="keeps")(X)
    uses = job_of(lambda x: flow.reshape(x, [-1])[:1] + kept[0], SIZES, name="uses")
    error = told(uses, JobError, "a Blob of another build is used while job uses is built", X)
    assert "share variables by name" in here(error).hint
    error = told(plus_one, JobError, "must be a NumPy array, got a Blob", kept[0])
    assert "return the Blob from its job" in error.hint


Pair = collections.namedtuple("Pair", "loss accuracy")


def test_namedtuple_keeps_its_names():
    job = job_of(lambda x: {"both": Pair(x, [x + 1])}, SIZES, result=tp.Bundle[tp.Numpy])
    both = job(X)["both"]
    assert isinstance(both, Pair) and both.accuracy[0][0, 0] == 2


@pytest.mark.parametrize(
    "text", ["tp.Numpy.Placeholder((2, 3)", "tp.Nunpy.Placeholder((2, 3))", "nowhere", "tp.Numpy()()"]
)
def test_unreadable_annotation(text):
    told(
        job_of,
        JobError,
        "annotation of x0 in job job cannot be read|is an annotation; it cannot be called",
        lambda x: x,
        text,
    )


def test_devices_must_return_equally_many_blobs(two_devices):
    job = job_of(lambda x: x, tp.ListListNumpy.Placeholder(SIZES), result=tp.ListListNumpy)
    assert len(job([[X, X], [X, X]])) == 2
    error = told(job, JobError, "a different number of Blobs on each device", [[X], [X, X]])
    assert error.values == {"device 0": "1", "device 1": "2"}


def test_arguments_may_have_any_name():
    @flow.global_function()
    def job(
        args: tp.Numpy.Placeholder((2, 3)), kwargs: tp.Numpy.Placeholder((2, 3)), self: tp.Numpy.Placeholder((2, 3))
    ) -> tp.Numpy:
        return args + kwargs * self

    assert job(X, self=2 * X, kwargs=3 * X)[0, 0] == 7


def test_blob_compares_with_none():
    job = job_of(lambda x: x * 2 if x != None and x != None else x, SIZES)  # noqa: E711 - as programs have it
    assert job(X)[0, 0] == 2


def test_session_cannot_be_cleared_during_a_build_on_another_thread():
    clearing, alive = threading.Thread(target=flow.clear_default_session), []

    def trained(x):
        w = flow.get_variable("w", (3,), initializer=flow.ones_initializer())
        clearing.start()
        clearing.join(0.2)
        alive.append(clearing.is_alive())
        sgd(w * x, 0.5)
        return w

    np.testing.assert_array_equal(job_of(trained, THREE, kind="train")(THREE), 1)
    clearing.join(60)
    assert alive == [True] and not clearing.is_alive()
