"""What the tests of the stream share: small jobs, a callback that holds the worker, and waits that give up."""

import threading

import numpy as np

import minflow as flow
import minflow.typing as tp
from minflow.job.queue.stream import STREAM
from tests.clocks import LONG


def wait(event):
    assert event.wait(LONG), STREAM.where_threads_stand()


def counting(name="train_job", size=4, result=tp.Callback[tp.Numpy], config=None):
    """A train job of two variables that move together: each is lowered by exactly x in every step."""

    def job(x: tp.Numpy.Placeholder((size,))) -> result:
        a = flow.get_variable("a", (size,), initializer=flow.zeros_initializer())
        b = flow.get_variable("b", (size,), initializer=flow.zeros_initializer())
        loss = a * x + b * x
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [float(size)]), momentum=0).minimize(loss)
        return loss

    job.__name__ = name
    return flow.global_function(type="train", function_config=config)(job)


def looking(name="eval_job", result=tp.Numpy):
    """A predict job that gives the variable `a` plus x."""

    def job(x: tp.Numpy.Placeholder((4,))) -> result:
        return flow.get_variable("a", (4,), initializer=flow.zeros_initializer()) + x

    job.__name__ = name
    return flow.global_function(type="predict")(job)


def failing():
    """A train job whose step fails where the label is no class; its variable moves in every step that does not."""

    @flow.global_function(type="train")
    def train_job(labels: tp.Numpy.Placeholder((2,), dtype=flow.int32)) -> tp.Callback[tp.Numpy]:
        w = flow.get_variable("w", (2, 3), initializer=flow.zeros_initializer())
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, w)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [1.0]), momentum=0).minimize(loss)
        return loss

    return train_job


ONES = np.ones(4, "f")
GOOD, BAD = np.array([0, 1], "i"), np.array([0, 7], "i")


class Held:
    """A callback that holds the worker until `go`."""

    def __init__(self):
        self.entered, self.go = threading.Event(), threading.Event()

    def __call__(self, result):
        self.entered.set()
        assert self.go.wait(LONG)
