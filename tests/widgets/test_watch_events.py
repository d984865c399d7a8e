"""Events of the engine: the loss of a backward, the steps of graphs and jobs. None without a listener."""

from contextlib import ExitStack

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.base import events
from minflow.core.base.errors import JobError
from minflow.job.queue.events import JobStepped
from minflow.nn.graph.compiled import GraphRan
from tests.graph_models import Step


def test_backward_emits_its_loss():
    heard = []
    x = flow.ones(3, requires_grad=True)
    with events.subscribe(events.BackwardDone, heard.append):
        loss = (x * x).sum()
        loss.backward()
    assert heard[0].outputs[0].item() == 3.0 and len(heard) == 1


def test_graph_emits_its_steps():
    model, heard = nn.Linear(3, 2), []
    train = Step(model, flow.optim.SGD(model.parameters(), lr=0.1))
    with ExitStack() as all_kinds:
        for kind in (events.GraphCompiled, events.StepDone, GraphRan):
            all_kinds.enter_context(events.subscribe(kind, heard.append))
        losses = [train(flow.ones(4, 3)).item() for _ in range(3)]
    kinds = [type(event).__name__ for event in heard]
    assert kinds[kinds.index("GraphCompiled") :] == ["GraphCompiled"] + ["StepDone", "GraphRan"] * 3
    ran = [event for event in heard if isinstance(event, GraphRan)]
    assert [event.step for event in ran] == [1, 2, 3] and [event.result.item() for event in ran] == losses
    assert ran[0].graph is train and ran[0].lr == (0.1,)


def test_two_listeners_to_one_event():
    first, second = [], []
    with events.subscribe(events.BackwardDone, first.append):
        with events.subscribe(events.BackwardDone, second.append):
            flow.ones(3, requires_grad=True).sum().backward()
        flow.ones(3, requires_grad=True).sum().backward()
    assert (len(first), len(second)) == (2, 1) and not events.LISTENERS


def test_job_emits_its_steps_before_callbacks():
    @flow.global_function()
    def double(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
        return x * 2.0

    heard = []
    with events.subscribe(JobStepped, heard.append):
        for i in range(4):
            double(np.full(2, i, np.float32))(heard.append)
        flow.sync_default_session()
    double(np.ones(2, np.float32))
    flow.sync_default_session()
    assert [type(x).__name__ for x in heard] == ["JobStepped", "ndarray"] * 4
    assert [x.number for x in heard[::2]] == [1, 2, 3, 4] and heard[2].result is heard[3]
    assert heard[0].name == "double" and heard[0].owner is None and heard[0].record.ended >= heard[0].record.started


def test_failing_listener_fails_its_step():
    @flow.global_function()
    def same(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        return x * 1.0

    def listener(event):
        raise KeyError("mine")

    with events.subscribe(JobStepped, listener), pytest.raises(JobError, match="mine"):
        same(np.ones(2, np.float32))
    assert same(np.ones(2, np.float32)).tolist() == [1, 1]


def test_run_has_its_epochs():
    @flow.global_function()
    def mean(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
        return flow.math.reduce_mean(x)

    run = flow.start(mean, [np.full(2, i, np.float32) for i in range(3)], epochs=2)
    run.result(60)
    assert run.starts == [0, 3] and run.values == [0, 1, 2, 0, 1, 2] and run.times == sorted(run.times)
