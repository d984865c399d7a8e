"""Helpers for tests of `watch`: the smallest model, graph and job that train."""

import json
import re

import numpy as np
from minflow_widgets.watch import WATCHED_CURVES

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.base import events
from tests.clocks import until  # noqa: F401 - for the tests too


def no_update_thread():
    """True once no update thread runs: that of a run ends a moment after its picture is displayed."""
    return not events.LISTENERS and not WATCHED_CURVES


def header(sent):
    """Return the header of a curve, or of the bytes that a page gets."""
    data = sent if isinstance(sent, bytes) else sent.encode()
    return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])


def outlines(svg, look='fill="none"'):
    """The lines of a curve: lists of their pieces, each a list of (x, y); `look` are the attributes after the path."""
    lines = []
    for path in re.findall(rf'<path d="(M[^"]*l[^"]*)" {look}', svg):
        pieces = [np.array(re.findall(r"-?[\d.]+", piece), float).reshape(-1, 2) for piece in path.split("M")[1:]]
        lines.append([[tuple(point) for point in piece.cumsum(0).tolist()] for piece in pieces])
    return lines


def legend(curve, panel=0):
    """The rows of a legend, without its samples of lines."""
    return [cells for cells, *_ in header(curve)["legends"][panel]]


def model_and_optimizer(lr=0.1):
    flow.manual_seed(0)
    model = nn.Linear(3, 2)
    return model, flow.optim.SGD(model.parameters(), lr=lr)


def eager_step(model, optimizer, x=None):
    """Return the loss of a step without a graph."""
    optimizer.zero_grad()
    loss = model(flow.from_numpy(X) if x is None else x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def job(annotation=tp.Numpy, rates=(0.1,), boundaries=()):
    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((4, 3))) -> annotation:
        loss = flow.math.reduce_mean(flow.math.square(flow.layers.dense(x, 2, name="fc")))
        schedule = flow.optimizer.PiecewiseConstantScheduler(list(boundaries), list(rates))
        flow.optimizer.SGD(schedule).minimize(loss)
        return loss

    return train_job


X = np.ones((4, 3), np.float32)
