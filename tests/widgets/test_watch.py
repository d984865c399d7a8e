"""watch: curves that fill themselves from graphs, optimizers, jobs and runs, without a change to the loop."""

import csv
import io
import threading
import time

import numpy as np
import pytest
from minflow_widgets import LossCurve, watch
from minflow_widgets.curve import loss_curve
from minflow_widgets.curve.feed import Feed

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.base import events
from minflow.core.base.errors import JobError, MinflowError
from tests.graph_models import Step
from tests.widgets.watching import X, header, job, model_and_optimizer, until

pytestmark = pytest.mark.usefixtures("front")


def test_watch_a_graph(front):
    model, optimizer = model_and_optimizer()
    train = Step(model, optimizer, lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5))
    losses = []
    with watch(train) as curve:
        for _ in range(4):
            losses.append(train(flow.from_numpy(X)).item())
        curve.add(val_loss=7.0)
    data = curve.data
    assert data["loss"][1].tolist() == losses and data["loss"][0].tolist() == [1, 2, 3, 4]
    assert data["lr"][1].tolist() == [0.1, 0.1, 0.05, 0.05]
    assert data["val_loss"][0].tolist() == [4], "a value of an epoch is at its last step"
    assert data["gradient norm"][0].tolist()[0] == 1 and len(front.left) == 1


def test_errors_in_watching_are_reported_at_the_end():
    class Forward(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    model, optimizer = model_and_optimizer()
    graph = Forward(model)
    with watch(graph) as curve:
        graph(flow.from_numpy(X))
    assert f"{graph.name} returns no number to draw: return the loss from build" in curve.text()
    assert "return the loss" in curve.svg()
    with pytest.raises(KeyError), watch(model, optimizer) as curve:
        curve._source.sources[0].norm.record = lambda *what: 1 / 0
        model(flow.from_numpy(X)).sum().backward()
        optimizer.step()
        raise KeyError
    assert "stopped by KeyError; SGD is not watched well: ZeroDivisionError: division by zero" in curve.text()


def test_losses_without_steps_do_not_accumulate():
    model, optimizer = model_and_optimizer()
    with watch(model, optimizer) as curve:
        source = curve._source.sources[0]
        for i in range(2500):
            source.on_backward(events.BackwardDone(1, None, (flow.tensor(float(i)),)))
        kept = next(iter(source.losses.values()))
        assert len(kept) <= 2000 and kept[-1] == 2499 and kept == sorted(kept)
        again = kept
        source.on_backward(events.BackwardDone(1, None, (flow.tensor(1.0),)))
        assert next(iter(source.losses.values())) is again, "nothing is copied"


def test_watch_an_optimizer_and_its_model():
    model, optimizer = model_and_optimizer()
    other_model, other = model_and_optimizer()
    with watch(model, optimizer, gradients=False) as curve:
        for i in range(3):
            loss = model(flow.from_numpy(X)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            other.zero_grad()
            other_model(flow.from_numpy(X)).sum().backward()  # of another model: ignored
            other.step()
    assert curve.data["loss"][1][2] == pytest.approx(loss.item()) and set(curve.data) == {"loss", "lr"}
    assert curve.data["loss"][0].tolist() == [1, 2, 3]


def test_watch_an_optimizer_of_a_graph():
    model, optimizer = model_and_optimizer()
    train = Step(model, optimizer)
    with watch(model, optimizer) as curve:
        losses = [train(flow.from_numpy(X)).item() for _ in range(3)]
    assert curve.data["loss"][1].tolist() == losses and curve.data["lr"][0].tolist() == [1, 2, 3]


def test_constant_rate_is_a_number_without_a_panel(front):
    model, optimizer = model_and_optimizer()
    train = Step(model, optimizer)
    with watch(train) as curve:
        for step in range(3):
            train(flow.from_numpy(X))
        quiet = header(curve)
        optimizer.param_groups[0]["lr"] = 0.05
        train(flow.from_numpy(X))
        moved = header(curve)
    assert quiet["panels"] == ["loss", "norm"] and quiet["status"].endswith(" · lr 0.1") and len(quiet["series"]) == 2
    assert moved["panels"] == ["loss", "norm", "lr"] and "lr" not in moved["status"]
    assert [len(row) for row in moved["rows"]] == [1, 2], "beside the existing strip: the height stays"
    assert curve.data["lr"][1].tolist() == [0.1, 0.1, 0.1, 0.05] and curve.csv().count("\nlr,") == 4
    with watch(model, optimizer) as same:
        train(flow.from_numpy(X))
    assert "lr 0.05" in same.text() and "· lr 0.05</text>" in same.svg() and ">no lr yet<" not in same.svg()


def test_room_is_reserved_for_a_changing_rate(front):
    model, optimizer = model_and_optimizer()
    train = Step(model, optimizer, lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 100))
    with watch(train) as curve, watch(model, optimizer, gradients=False) as eager:
        train(flow.from_numpy(X))
    assert curve.panels == ("loss", "lr", "norm") and eager.panels == ("loss", "lr")
    assert header(eager)["rows"] == [[0], [1]]
    for boundaries, panels in (((), ("loss",)), ((1000,), ("loss", "lr"))):
        later = job(rates=(0.1, 0.01)[: len(boundaries) + 1], boundaries=boundaries)
        with watch(later) as curve:
            later(X)
        assert curve.panels == panels and ("lr 0.1" in curve._status()) == (not boundaries)
        flow.clear_default_session()


def test_watch_a_sync_job():
    train = job(rates=(0.1, 0.01), boundaries=(1,))
    with watch(train) as curve:
        losses = [train(X).item() for _ in range(4)]
        assert len(curve.data["loss"][1]) == 4, "a step of a sync job is included when its call returns"
    assert curve.data["loss"][1].tolist() == losses
    assert curve.data["lr"][1].tolist() == [0.1, 0.1, 0.01, 0.01]


def test_async_job_is_waited_for():
    train, seen = job(tp.Callback[tp.Numpy]), []
    with watch(train) as curve:
        for _ in range(20):
            train(X)(lambda loss: seen.append(loss.item()))
    assert curve.data["loss"][1].tolist() == seen and len(seen) == 20


def test_two_jobs_side_by_side(clock):
    @flow.global_function()
    def now(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        return flow.math.reduce_mean(x)

    @flow.global_function()
    def later(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
        return flow.math.reduce_mean(x)

    with watch(now, later, names=["sync", "async"]) as curve:
        for _ in range(5):
            now(X[0, :2])
            clock.sleep(0.1)
        for _ in range(5):
            later(X[0, :2])(lambda loss: None)
    assert list(curve.data) == ["sync loss", "async loss"] and curve.x == "time"
    seconds = [curve._series[name].seconds for name in curve.data]
    assert all(0 <= s[0] < 0.01 for s in seconds) and seconds[0][-1] >= 0.4, "each from its own start"
    assert curve.encode().count(b'"panel": 0') == 2, "both in one panel"


def test_rate_of_a_run_that_is_watched_late(front):
    run = flow.start(job(tp.Callback[tp.Numpy]), [X] * 30, callback=lambda loss: time.sleep(0.01))
    run.result(60)
    time.sleep(0.2)
    curve = watch(run)
    until(lambda: front.left)
    time.sleep(0.3)  # nor does its time continue after its end
    took = run.ended - run.started
    assert f" · {loss_curve.duration(took)}" in curve._status() and loss_curve.per_second(30 / took) in curve._status()


def test_time_of_a_curve_ends_with_it():
    with LossCurve() as curve:
        curve.add(1, loss=1.0)
        curve.add(2, loss=0.5)
    told = curve._status()
    time.sleep(0.25)
    assert curve._status() == told and "step 2" in told


def test_run_over_an_iterable_without_length(front):
    class Some(flow.utils.data.IterableDataset):
        def __iter__(self):
            return iter([np.ones(3, np.float32)] * 8)

    loader = flow.utils.data.DataLoader(Some(), batch_size=4)
    run = flow.start(job(tp.Callback[tp.Numpy]), loader)
    curve = watch(run)
    run.result(60)
    until(lambda: front.left)
    assert curve.total is None and len(curve.data["loss"][0]) == 2


def test_watch_a_run(front):
    train = job(tp.Callback[tp.Numpy], rates=(0.1, 0.01), boundaries=(2,))
    go = threading.Event()
    run = flow.start(train, [X] * 3, epochs=2, callback=lambda loss: go.wait(60))
    curve = watch(run)
    go.set()
    run.result(60)
    until(lambda: front.left)
    assert curve.data["loss"][1].tolist() == run.values and len(run.values) == 6
    assert np.allclose(curve.epochs["loss"][1], np.reshape(run.values, (2, 3)).mean(1))
    assert [m[0] for m in curve.marks()] == [3.0, 6.0] and curve.total == 6
    assert "step 6 of 6" in curve._status() and curve._note == ""
    assert curve.data["lr"][1].tolist()[-2:] == [0.01, 0.01]


def test_watch_a_run_of_a_graph(front):
    model, optimizer = model_and_optimizer()
    schedule = flow.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
    train, go = Step(model, optimizer, lr_sch=schedule), threading.Event()
    run = flow.start(train, [flow.from_numpy(X)] * 3, epochs=2, callback=lambda loss: go.wait(60))
    curve = watch(run)
    go.set()
    run.result(60)
    until(lambda: front.left)
    assert np.allclose(curve.data["lr"][1][-4:], [0.01, 0.01, 0.001, 0.001])
    assert curve.configs[""]["optimizer"] == "SGD"
    assert curve.data["loss"][1].tolist() == run.values and len(run.values) == 6
    assert [m[0] for m in curve.marks()] == [3.0, 6.0] and curve.total == 6


@pytest.mark.parametrize("first", ["loss", "error"])
def test_watch_a_run_of_a_graph_with_several_numbers(front, first):
    class Measured(Step):
        def build(self, x):
            loss = super().build(x)
            return {self.first: loss, "half": loss * 0.5}

    graph, go = Measured(*model_and_optimizer()), threading.Event()
    graph.first = first
    run = flow.start(graph, [flow.from_numpy(X)] * 6, callback=lambda result: go.wait(60))
    curve = watch(run)
    go.set()
    run.result(60)
    until(lambda: front.left)
    assert curve.data[first][1].tolist() == run.values and len(run.values) == 6
    steps, half = curve.data["half"]
    assert len(steps) >= 5 and np.allclose(half, 0.5 * np.array(run.values)[steps.astype(int) - 1])
    assert first == "loss" or "loss" not in curve.data


def test_buttons_of_a_run(front):
    go = threading.Event()
    train = job(tp.Callback[tp.Numpy])
    run = flow.start(train, [X] * 100_000, callback=lambda loss: go.wait(0.002))
    curve = watch(run)
    assert curve.control is run and b'"controls": true' in curve.encode()
    until(lambda: "loss" in curve.data)
    run.pause()
    assert "paused" in curve._status()
    run.resume()
    run.stop()
    run.result(60)
    until(lambda: front.left)
    assert curve._note == "stopped" and len(curve.data["loss"][0]) == run.steps < 100_000
    assert header(curve)["note"] == "stopped" and not header(curve)["problem"]


def test_failing_run(front):
    train = job(tp.Callback[tp.Numpy])
    run = flow.start(train, [X, X, np.ones(7, np.float32)])
    with pytest.raises(JobError), watch(run) as curve:
        run.result(60)
    assert len(curve.data["loss"][0]) == 2 and len(front.left) == 1
    assert curve._note.startswith(("stopped by JobError", "failed: "))
    assert header(curve)["note"] == curve._note and header(curve)["problem"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_interrupt_ends_it_cleanly(front, kind):
    train = Step(*model_and_optimizer())
    with pytest.raises(kind), watch(train) as curve:
        for i in range(10):
            train(flow.from_numpy(X))
            if i == 4:
                raise kind
    assert len(curve.data["loss"][0]) == 5 and f"stopped by {kind.__name__}" in repr(curve) and len(front.left) == 1


def test_errors_in_watching_do_not_stop_the_run(monkeypatch):
    train = Step(*model_and_optimizer())
    monkeypatch.setattr(Feed, "append", lambda *args, **kwargs: 1 / 0)
    with watch(train):
        assert train(flow.from_numpy(X)).item() > 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: watch(model_and_optimizer()[0]), "Linear"),
        (lambda: watch([1]), "list"),
        (watch, "nothing"),
        (lambda: watch(job(), names=["a", "b"]), "things *1"),
        (lambda: LossCurve(x="wall"), "'wall'"),
        (lambda: LossCurve(total=0), r"total (.|\n)*got +0"),
        (lambda: watch(Step), "the class Step"),
        (lambda: watch(model_and_optimizer()[1], model_and_optimizer()[1], names=["a", "a"]), "distinct names"),
        *[
            (lambda options=options: watch(model_and_optimizer()[1], **options), "watch: ")
            for options in ({"names": 3}, {"names": "s"}, {"names": [None]}, {"into": 3})
        ],
    ],
)
def test_unsupported_objects(call, said):
    with pytest.raises(MinflowError, match=said) as caught:
        call()
    assert "0x" not in str(caught.value)


def test_dict_keys_are_names():
    class Two(nn.Graph):
        def build(self, x):
            return {"loss": x.mean(), "accuracy": x.max(), "logits": x}

    graph = Two()
    with watch(graph) as curve:
        graph(flow.from_numpy(X))
    assert {name: values.tolist() for name, (_, values) in curve.data.items()} == {"loss": [1.0], "accuracy": [1.0]}


def test_csv(tmp_path):
    with LossCurve() as curve:
        curve.add(1, loss=0.1, **{'a,"b"': 2.0, "\ud800": 3.0})
        curve.add(2, loss=float("nan"))
    text = curve.csv(tmp_path / "run.csv")
    kept = (tmp_path / "run.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(kept)))
    assert [(r["series"], r["step"], r["value"]) for r in rows] == [
        ("loss", "1", "0.1"),
        ("loss", "2", "nan"),
        ('a,"b"', "1", "2.0"),
        ("\\ud800", "1", "3.0"),
    ]
    assert kept == text.replace("\ud800", "\\ud800")


def test_no_events_outside_the_block():
    train = Step(*model_and_optimizer())
    curve = watch(train)
    assert not events.LISTENERS
    with curve:
        assert events.LISTENERS
    assert not events.LISTENERS


def test_rate_of_a_job_is_that_of_each_step():
    """Recorded by finished steps, converted to a rate by the update thread; also if a rate returns to an old value."""
    train = job(rates=(0.1, 0.2, 0.1), boundaries=(2, 4))
    with watch(train) as curve:
        for _ in range(8):
            train(np.ones((4, 3), "f"))
    steps, rates = curve.data["lr"]
    assert steps.tolist() == list(range(1, 9)) and rates.tolist() == pytest.approx([0.1] * 3 + [0.2] * 2 + [0.1] * 3)
    assert curve.data["loss"][0].tolist() == steps.tolist()


def test_slow_updates_reduce_their_rate(monkeypatch):
    """In total they keep within the budget; a loop at 100 steps per second is displayed as often as usual."""

    def share(cost, rate):
        curve = loss_curve.LossCurve()
        rows = curve.feed()
        rows.cost = cost
        now = loss_curve.clock()
        monkeypatch.setattr(loss_curve, "clock", lambda: now + 1.0)
        curve._recorded = (now, 0.0)
        rows.extend([(("loss",), 1, loss_curve.clock(), 1.0)] * rate)
        assert curve._take_new_values()
        return curve._cpu_share()

    assert share(12e-6, 100) == loss_curve.UPDATE_SHARE and share(7e-6, 1000) == loss_curve.UPDATE_SHARE
    assert loss_curve.MIN_UPDATE_SHARE <= share(12e-6, 1000) < 0.0045
    assert share(12e-6, 5000) == loss_curve.MIN_UPDATE_SHARE


def test_watch_without_a_block_warns():
    graph = Step(*model_and_optimizer())
    curve = watch(graph)
    graph(flow.ones(4, 3))
    assert "with watch(...) as curve" in repr(curve)
    curve.finish()
    assert "with watch(...) as curve" in curve.text() and "nothing was watched" in curve.svg()


def test_reentering_a_block_is_refused(front):
    for curve in (watch(Step(*model_and_optimizer())), LossCurve()):
        with curve:
            pass
        with pytest.raises(MinflowError, match="has ended with its block"), curve:
            pass


def test_run_failing_with_an_empty_message(front):
    def loader():
        yield X
        raise ValueError

    run = flow.start(job(tp.Callback[tp.Numpy]), loader())
    curve = watch(run)
    with pytest.raises(ValueError):
        run.result(60)
    until(lambda: curve._finished)
    assert "failed: ValueError" in curve.text()
