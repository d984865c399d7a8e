"""Helpers of the tests of job functions: small jobs, inspected errors, and waits with a limit."""

import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.job.queue.stream import current_stream
from tests.clocks import LONG


def wait(event):
    assert event.wait(LONG), current_stream().thread_locations()


def job_of(function, *inputs, kind="predict", result=tp.Numpy, name="job", config=None):
    """Return a job of `function(*blobs)`.

    inputs: a shape, an array or an annotation for each argument. With result None, a call returns a future.
    """
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


def raised_error(call, kind, text, *arguments):
    """Return the error of this kind that the call raises. Its text contains `text`, and it has a suggestion."""
    with pytest.raises(kind, match=text) as caught:
        call(*arguments)
    assert caught.value.what and caught.value.hint, str(caught.value)
    return caught.value


@contextmanager
def switch_interval(seconds):
    """Set the switch interval of threads; None leaves it as it is."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before if seconds is None else seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def thread(function, *arguments):
    """Run the action on a thread that ends before the block does."""
    running = threading.Thread(target=function, args=arguments)
    running.start()
    yield running
    running.join(LONG)
    assert not running.is_alive(), current_stream().thread_locations()


def fails(result):
    """A callback that raises."""
    raise KeyError("mean")


def counting_job(name="train_job", size=4, result=tp.Callback[tp.Numpy], config=None):
    """Return a train job of two equal variables, which each step decreases by exactly x."""

    def train(x):
        a, b = [flow.get_variable(name, (size,), initializer=flow.zeros_initializer()) for name in "ab"]
        loss = a * x + b * x
        sgd(loss, float(size))
        return loss

    return job_of(train, (size,), kind="train", result=result, name=name, config=config)


def predict_job(name="eval_job", result=tp.Numpy):
    """Return a predict job that returns the variable `a` plus x."""
    a = lambda: flow.get_variable("a", (4,), initializer=flow.zeros_initializer())
    return job_of(lambda x: a() + x, (4,), result=result, name=name)


def failing_job(config=None):
    """Return a train job whose step fails if a label is out of range; other steps change its variable."""

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


class WorkerHold:
    """A callback that blocks the worker until `go`."""

    def __init__(self):
        self.entered, self.go = threading.Event(), threading.Event()

    def by(self, job, x=ONES):
        """Block the worker in the callback of a step of `job`; return its handle."""
        step = job.submit((x,), {}, self)
        wait(self.entered)
        return step

    def __call__(self, result):
        self.entered.set()
        assert self.go.wait(LONG)
