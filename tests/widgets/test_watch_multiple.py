"""Several objects in one curve: side by side, in sequence, and within a curve of the caller."""

import threading

import pytest
from minflow_widgets import LossCurve, watch

import minflow as flow
import minflow.typing as tp
from minflow import nn
from tests.graph_models import Step
from tests.widgets.watching import X, job, model_and_optimizer, until

pytestmark = pytest.mark.usefixtures("front")


def test_objects_of_one_name_are_numbered():
    """A factory makes jobs of one name, and two graphs are of one class."""

    def make(k):
        @flow.global_function()
        def evaluate(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
            return flow.math.reduce_mean(x) * k

        return evaluate

    first, second = make(1.0), make(10.0)
    first(X[0, :2])  # to compile
    with watch(first, second) as curve:
        for calls, job in ((3, first), (2, second), (1, first)):
            for _ in range(calls):
                job(X[0, :2])
    found = {name: (steps.tolist(), values.tolist()) for name, (steps, values) in curve.data.items()}
    assert found == {"evaluate 1 loss": ([1, 2, 3, 4], [1.0] * 4), "evaluate 2 loss": ([1, 2], [10.0] * 2)}
    graphs = [Step(*model_and_optimizer(lr)) for lr in (0.0, 0.5)]
    with watch(*graphs, names=["still", "fast"]) as curve:
        losses = [[graph(flow.from_numpy(X)).item() for _ in range(2)] for graph in graphs] + [
            [graphs[0](flow.from_numpy(X)).item()]
        ]
    assert curve.data["still loss"][1].tolist() == losses[0] + losses[2]
    assert curve.data["fast loss"][1].tolist() == losses[1]
    assert curve.data["still gradient norm"][0].tolist() == [1, 2, 3]
    assert curve.data["fast gradient norm"][0].tolist() == [1, 2]


def test_only_watched_steps_of_a_job_count():
    """Earlier calls do not count; another watch of the same curve continues."""
    train = job()
    train(X)
    with watch(train) as curve:
        for _ in range(3):
            train(X)
    assert curve.data["loss"][0].tolist() == [1, 2, 3] and curve._status().startswith("step 3 ")
    with LossCurve() as curve:
        for _ in range(2):
            with watch(train, into=curve):
                train(X), train(X)
    assert curve.data["loss"][0].tolist() == [1, 2, 3, 4]


def test_several_tables_are_named_after_their_folder(tmp_path):
    with LossCurve(log=tmp_path) as curve:
        for name in ("one", "other"):
            graph = Step(*model_and_optimizer())
            with watch(graph, name=name, into=curve):
                graph(flow.from_numpy(X)), graph(flow.from_numpy(X))
    assert sorted(path.name for path in curve.paths) == ["one.csv", "other.csv"]
    assert f"2 tables in {tmp_path}" in curve._status() and "one.csv" not in curve._status()


def test_block_may_be_used_in_each_epoch():
    train = Step(*model_and_optimizer())
    with LossCurve() as curve:
        block = watch(train, into=curve)
        for _ in range(2):
            with block:
                train(flow.from_numpy(X))
        train(flow.from_numpy(X))
    assert curve.data["loss"][0].tolist() == curve.data["gradient norm"][0].tolist() == [1, 2] and curve._feeds == []


def test_run_is_shown_in_the_curve_of_another():
    go, losses = threading.Event(), []

    def landed(loss):
        losses.append(loss)
        if len(losses) > 9:
            go.wait(60)

    run = flow.start(job(tp.Callback[tp.Numpy]), [X] * 20, callback=landed)
    with LossCurve() as curve, watch(run, into=curve):
        until(lambda: len(curve._series) and curve._series["loss"].count >= 9)
        go.set()
    assert len(curve.data["loss"][0]) == 20 and curve._within == []


def test_errors_in_a_shared_curve_are_reported():
    class Forward(nn.Graph):
        def build(self, x):
            return x

    graph = Forward()
    with LossCurve() as curve:
        for _ in range(2):
            with watch(graph, into=curve):
                graph(flow.from_numpy(X))
        curve.add(accuracy=1.0)
    assert curve.text().count(f"{graph.name} returns no number to draw") == 1
    assert curve.svg().count("the loss from build</text>") == 1


def test_one_curve_for_two_parts():
    train = job()
    with LossCurve(x="time") as curve:
        with watch(train, into=curve, names=["first"]):
            train(X)
        train(X)
        with watch(train, into=curve, names=["second"]):
            train(X)
    assert [len(values) for _, values in curve.data.values()] == [1, 1, 1, 1]
    assert list(curve.data) == ["first loss", "first lr", "second loss", "second lr"]
    assert curve._feeds == [], "a curve filled in many parts holds none of them"
