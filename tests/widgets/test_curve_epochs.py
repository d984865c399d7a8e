"""Ends of epochs and means over epochs: by steps, by mark(), by passes of loaders, by runs."""

import threading
import time

import numpy as np
import pytest
from minflow_widgets import LossCurve, watch
from minflow_widgets.curve.epochs import Epochs
from minflow_widgets.curve.series import Series

import minflow as flow
from minflow.core.base import events
from minflow.utils.data import DataLoader, IterableDataset, TensorDataset
from tests.graph_models import Step
from tests.widgets.watching import eager_step, header, legend, model_and_optimizer

pytestmark = pytest.mark.usefixtures("front")


def loader(n=12, **more):
    return DataLoader(TensorDataset(flow.from_numpy(np.ones((n, 3), np.float32))), batch_size=4, **more)


@pytest.mark.parametrize("first", [0, 1])
def test_means_over_a_given_number_of_steps(first):
    with LossCurve(epoch=10) as curve:
        for step in range(25):
            curve.add(step + first, **{"loss": float(step), "gradient norm": 1.0})
            if step % 10 == 9:
                curve.add(val_loss=2.0)
    assert {name: [list(map(float, part)) for part in parts] for name, parts in curve.epochs.items()} == {
        "loss": [[1, 2], [4.5, 14.5]]
    }, "complete epochs; values per epoch and norms have no mean"
    assert "mean of epochs 1 to 2: 4.5, 14.5" in curve.text()
    assert ">epoch mean<" in curve.svg() and ">14.5<" in curve.svg() and "rings: epoch means" in curve.svg()
    assert [each[:2] for each in header(curve)["series"][0]["epochs"]] == [[9 + first, 4.5], [19 + first, 14.5]]
    assert legend(curve)[0][-1] == "epoch mean" and legend(curve)[1][-1] == "14.5"


def test_means_between_marks():
    with LossCurve() as curve:
        curve.mark("warm-up ends")
        for epoch in range(3):
            for i in range(4):
                curve.add(loss=float(epoch))
            curve.mark()
    assert curve.epochs["loss"][1].tolist() == [0.0, 1.0, 2.0]


def test_steps_that_restart_in_each_epoch():
    with LossCurve() as curve:
        for epoch in range(3):
            for i in range(4):
                curve.add(i, loss=float(epoch * 10 + i))
                time.sleep(0.001)
            curve.mark()
    assert curve.epochs["loss"][1].tolist() == [1.5, 11.5, 21.5]
    seconds = curve._series["loss"].seconds[[0, 4, 11]]
    assert curve._epochs.numbers("", 0.0, np.zeros(3), seconds).tolist() == [1, 2, 3]


@pytest.mark.parametrize("way", ["graph", "eager", "workers"])
def test_loader_pass_around_the_steps_is_an_epoch(way):
    model, optimizer = model_and_optimizer()
    train, more = Step(model, optimizer), {"num_workers": 1} if way == "workers" else {}
    training, testing = loader(**more), loader()
    with watch(train) if way == "graph" else watch(model, optimizer) as curve:
        list(training)  # a look at the data before training: no steps, no epoch
        for _ in range(2):
            for i, (x,) in enumerate(training):
                if way == "graph":
                    train(x)
                else:
                    eager_step(model, optimizer, x)
                if i == 1:
                    for (x,) in testing:  # in the middle of an epoch, and after it
                        model(x)
            total = sum(model(x).mean().item() for (x,) in testing)
            curve.add(test_loss=total)
        other = threading.Thread(target=lambda: list(training))  # of another loop
        other.start()
        other.join()
    numbers, means = curve.epochs["loss"]
    losses = curve.data["loss"][1]
    assert curve.data["test_loss"][0].tolist() == [3.0, 6.0], "at the last step of their epochs"
    assert numbers.tolist() == [1, 2] and means.tolist() == [losses[:3].mean(), losses[3:].mean()]
    assert [(step, text) for step, _, text in curve.marks()] == [(3.0, "1"), (6.0, "2")]
    assert not events.LISTENERS


def test_iterable_and_abandoned_loop():
    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(np.ones((8, 3), np.float32))

    train = Step(*model_and_optimizer())
    with watch(train) as curve:
        for x in DataLoader(Numbers(), batch_size=4):
            train(x)
        for x in DataLoader(Numbers(), batch_size=4):
            train(x)
            break
    assert [step for step, *_ in curve.marks()] == [2.0], "an abandoned pass is not an epoch"


def test_given_epochs_take_precedence():
    train = Step(*model_and_optimizer())
    with watch(train, epoch=2) as curve:
        for (x,) in loader(16):
            train(x)
    assert curve.epochs["loss"][0].tolist() == [1, 2]


def test_objects_in_one_curve_have_their_own_epochs():
    with LossCurve() as curve:
        for name, n in (("few", 8), ("many", 16)):
            train = Step(*model_and_optimizer())
            with watch(train, names=[name], into=curve):
                for _ in range(2):
                    for (x,) in loader(n):
                        train(x)
    assert {name: len(means) for name, (_, means) in curve.epochs.items()} == {"few loss": 2, "many loss": 2}
    assert [step for step, *_ in curve.marks()] == [2.0, 4.0, 8.0]


def test_mean_that_is_not_finite():
    with LossCurve(epoch=2) as curve:
        for value in (1.0, 2.0, float("nan"), 1.0, float("inf"), float("-inf"), 3.0, 4.0):
            curve.add(loss=value)
    assert "mean of epochs 1 to 4: 1.5, NaN, NaN, 3.5" in curve.text()
    assert [each[1] for each in header(curve)["series"][0]["epochs"]] == [1.5, None, None, 3.5]
    assert "nan" not in curve.svg()


def test_many_epochs_need_little_text_and_time():
    s, epochs = Series("loss"), Epochs(2)
    for start in range(0, 20_000, 1000):
        steps = range(start + 1, start + 1001)
        s.extend(steps, [float(step) for step in steps], steps)
        epochs.average(s)
    assert [one.mean for one in s.epochs] == [2 * k + 1.5 for k in range(10_000)] and len(s.epoch_ends()) <= 100
    assert s.epoch_means() == "mean of epochs 1 to 10000: 1.5, 3.5, ..., 19,992, 19,994, 19,996, 19,998, 20,000"
    tiny = Epochs(1e-300)
    tiny.average(s)
    assert len(s.epochs) == 10_000


def test_epoch_of_a_step():
    steps = np.array([0.0, 1.0, 9.0, 10.0, 11.0, 20.0])
    assert Epochs(10).numbers("", 0.0, steps, steps).tolist() == [1, 1, 1, 2, 2, 3]
    assert Epochs(10).numbers("", 1.0, steps, steps).tolist() == [1, 1, 1, 1, 2, 2]
    seen = Epochs()
    seen.passed("a", 9.0, 5.0)
    seen.passed("a", 9.0, 5.0)
    assert seen.numbers("a", 1.0, steps, steps).tolist() == [1, 1, 1, 2, 2, 2] and not seen.known("b")
