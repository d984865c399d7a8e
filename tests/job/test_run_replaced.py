"""Runs of flow.start whose place another program takes: a cleared session, a cell that runs again."""

import threading

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn

X = np.ones((4, 3), np.float32)


@pytest.fixture
def cell(monkeypatch):
    """The running cell: [id, number of its run]."""
    cell = ["one", "1"]
    monkeypatch.setattr("minflow.job.run.running_cell", lambda: tuple(cell))
    monkeypatch.setattr("minflow.job.run.LOADER_TIMEOUT", 60.0)  # no loader blocks here
    yield cell
    flow.clear_default_session()


def train_job(name="train"):
    def train(x: tp.Numpy.Placeholder((4, 3))) -> tp.Callback[tp.Numpy]:
        loss = flow.math.reduce_mean(flow.math.square(flow.layers.dense(x, 2, name="fc")))
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss)
        return loss

    train.__name__ = name
    return flow.global_function(type="train")(train)


def endless(job):
    """A run that has finished a step and goes on."""
    stepped = threading.Event()
    run = flow.start(job, [X] * 10**6, callback=lambda loss: stepped.set())
    assert stepped.wait(60)
    return run


def test_cleared_session_ends_its_runs_with_a_line(cell, capsys):
    """The old loop takes no step in the new session, and one line says so."""
    old = endless(train_job())
    flow.clear_default_session()
    assert old.done() and old.state == "stopped" and old.steps >= 1
    line = f"The run of train was stopped after {old.steps} steps: flow.clear_default_session().\n"
    assert capsys.readouterr().out == line
    train = train_job()
    flow.start(train, [X] * 3).result(60)
    assert train.steps == 3, "only the new run trains"
    flow.clear_default_session()
    assert capsys.readouterr().out == "", "the new run was over"


def test_cell_that_runs_again_ends_its_run(cell, capsys):
    old = endless(train_job())
    cell[1] = "2"
    train = train_job()
    new = endless(train)
    assert old.done() and not new.done()
    assert capsys.readouterr().out == f"The run of train was stopped after {old.steps} steps: its cell runs again.\n"


class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(3, 2)
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


def test_cell_that_makes_a_graph_and_runs_again_ends_its_run(cell, capsys):
    """The new graph of the same class has another name."""
    old = endless(Train())
    cell[1] = "2"
    graph = Train()
    new = endless(graph)
    assert old.job.name != graph.name and old.done() and not new.done()
    line = f"The run of {old.job.name} was stopped after {old.steps} steps: its cell runs again.\n"
    assert capsys.readouterr().out == line


@pytest.mark.parametrize("where", [("one", "1"), ("two", "2"), ("", "")])
def test_other_runs_go_on(cell, capsys, where):
    """Two runs of one execution, those of another cell, and those of a script."""
    if where == ("", ""):
        cell[:] = where
    old = endless(train_job())
    cell[:] = where
    endless(train_job())
    assert not old.done() and capsys.readouterr().out == ""


def test_run_of_another_job_goes_on(cell, capsys):
    old = endless(train_job())
    cell[1] = "2"
    endless(train_job("other"))
    assert not old.done() and capsys.readouterr().out == ""


def test_loader_that_clears_the_session_does_not_wait_for_itself(cell):
    """A run ends at its next step; its own loader cannot wait for that."""
    cleared = threading.Event()

    def batches():
        flow.clear_default_session()
        cleared.set()
        yield X

    run = flow.start(train_job(), batches())
    assert cleared.wait(60), "it waited for its own end"
    assert run.finished.wait(60) and run.state == "stopped" and run.steps == 0
