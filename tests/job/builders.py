"""What the tests of job functions share: small jobs, errors that are looked at, and waits that give up."""

import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.job.queue.stream import STREAM
from tests.clocks import LONG


def wait(event):
    assert event.wait(LONG), STREAM.thread_locations()


def job_of(function, *inputs, kind="predict", result=tp.Numpy, name="job", config=None):
    """A job of `function(*blobs)`. inputs: a shape, an array, or an annotation for each; result None: a future."""
    names = [f"x{i}" for i in range(len(inputs))]
    space = {"function": function}
    exec(f"def job({', '.join(names)}):\n    return function({', '.join(names)})", space)
    job = space["job"]
    job.__name__ = name
    job.__annotations__ = {name: annotation(given) for name, given in zip(names, inputs)}
    if result is not None:
        job.__annotations__["return"] = result
    return flow.global_function(type=kind, function_config=config)(job)


def annotation(given):
    if isinstance(given, np.ndarray):
        return tp.Numpy.Placeholder(given.shape, dtype=getattr(flow, given.dtype.name))
    return tp.Numpy.Placeholder(given) if isinstance(given, tuple) else given


def sgd(loss, rate=1.0, momentum=0, **options):
    schedule = flow.optimizer.PiecewiseConstantScheduler([], [rate])
    flow.optimizer.SGD(schedule, momentum=momentum, **options).minimize(loss)


def refused(call, kind, text, *arguments):
    """The error of this kind that the call raises. Its text has `text`, and it says what to try."""
    with pytest.raises(kind, match=text) as caught:
        call(*arguments)
    assert caught.value.what and caught.value.hint, str(caught.value)
    return caught.value


@contextmanager
def switching(seconds):
    """Threads take turns at this interval; None: as they did."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before if seconds is None else seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def thread(function, *arguments):
    """A thread runs it meanwhile, and ends before this does."""
    running = threading.Thread(target=function, args=arguments)
    running.start()
    yield running
    running.join(LONG)
    assert not running.is_alive(), STREAM.thread_locations()


def fails(result):
    """A callback."""
    raise KeyError("mean")


def counting(name="train_job", size=4, result=tp.Callback[tp.Numpy], config=None):
    """A train job of two variables that move together: each is lowered by exactly x in every step."""

    def train(x):
        a, b = [flow.get_variable(name, (size,), initializer=flow.zeros_initializer()) for name in "ab"]
        loss = a * x + b * x
        sgd(loss, float(size))
        return loss

    return job_of(train, (size,), kind="train", result=result, name=name, config=config)


def looking(name="eval_job", result=tp.Numpy):
    """A predict job that gives the variable `a` plus x."""
    a = lambda: flow.get_variable("a", (4,), initializer=flow.zeros_initializer())
    return job_of(lambda x: a() + x, (4,), result=result, name=name)


def failing(config=None):
    """A train job whose step fails where the label is no class; its variable moves in every step that does not."""

    def train(labels):
        loss = cross_entropy(labels)
        sgd(loss)
        return loss

    return job_of(train, GOOD, kind="train", result=tp.Callback[tp.Numpy], name="train_job", config=config)


def cross_entropy(labels):
    w = flow.get_variable("w", (2, 3), initializer=flow.zeros_initializer())
    return flow.nn.sparse_softmax_cross_entropy_with_logits(labels, w)


ONES = np.ones(4, "f")
GOOD, BAD = np.array([0, 1], "i"), np.array([0, 7], "i")


class Held:
    """A callback that holds the worker until `go`."""

    def __init__(self):
        self.entered, self.go = threading.Event(), threading.Event()

    def by(self, job, x=ONES):
        """The worker is held by the callback of a step of `job`, which this gives."""
        step = job.submit((x,), {}, self)
        wait(self.entered)
        return step

    def __call__(self, result):
        self.entered.set()
        assert self.go.wait(LONG)
