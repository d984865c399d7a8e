"""watch: curves that fill themselves from graphs, optimizers, jobs and runs, without a change to the loop."""

import csv
import io
import json
import math
import threading
import time

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core import events
from minflow.core.errors import JobError, MinflowError
from minflow_widgets import LossCurve, frontends, loss_curve, watch
from minflow_widgets.norm import Norm
from minflow_widgets.rows import Rows
from minflow_widgets.watch import HELD


class Front:
    def __init__(self):
        self.seen, self.finished = 0, 0

    def update(self, curve):
        self.seen += 1
        curve.encode()

    def finish(self, curve):
        self.finished += 1
        self.last = curve.bundle()


@pytest.fixture(autouse=True)
def front(monkeypatch):
    front = Front()
    monkeypatch.setattr(frontends, "choose", lambda: front)
    flow.clear_default_session()
    yield front
    flow.clear_default_session()
    assert not events.LISTENERS and not HELD


def model_and_optimizer(lr=0.1):
    flow.manual_seed(0)
    model = nn.Linear(3, 2)
    return model, flow.optim.SGD(model.parameters(), lr=lr)


class Train(nn.Graph):
    def __init__(self, model, optimizer, scheduler=None):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
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


def test_a_graph(front):
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer, flow.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5))
    losses = []
    with watch(train) as curve:
        for _ in range(4):
            losses.append(train(flow.from_numpy(X)).item())
        curve.add(val_loss=7.0)
    data = curve.data
    assert data["loss"][1].tolist() == losses and data["loss"][0].tolist() == [1, 2, 3, 4]
    assert data["lr"][1].tolist() == [0.1, 0.1, 0.05, 0.05]
    assert data["val_loss"][0].tolist() == [4], "a value of an epoch stands at its last step"
    assert data["gradient norm"][0].tolist()[0] == 1 and front.finished == 1


def test_the_norm_is_that_of_all_gradients():
    model, optimizer = model_and_optimizer()
    with watch(model, optimizer) as curve:
        loss = model(flow.from_numpy(X)).square().mean()
        loss.backward()
        optimizer.step()
    wanted = math.sqrt(sum(float((p.grad.numpy() ** 2).sum()) for p in model.parameters()))
    assert curve.data["gradient norm"][1][0] == pytest.approx(wanted, rel=1e-5)
    same, again = model_and_optimizer()
    train = Train(same, again)
    with watch(train) as curve:
        train(flow.from_numpy(X))
    assert curve.data["gradient norm"][1][0] == pytest.approx(wanted, rel=1e-5)
    assert curve.data["loss"][1][0] == pytest.approx(loss.item())


def test_what_goes_wrong_in_watching_is_told_at_the_end():
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
    assert f"{graph.name} gives no number to draw: return the loss from build" in curve.text() and "return the loss" in curve.svg()
    with pytest.raises(KeyError), watch(model, optimizer) as curve:
        curve._source.sources[0].norm.tell = lambda *what: 1 / 0
        model(flow.from_numpy(X)).sum().backward()
        optimizer.step()
        raise KeyError
    assert "stopped by KeyError; SGD is not watched well: ZeroDivisionError: division by zero" in curve.text()


@pytest.mark.parametrize("scale", [1e-4, 1000.0])
def test_gradient_norm_of_half_precision(scale):
    model, optimizer = model_and_optimizer(lr=0.0)
    model.to(flow.float16)
    with watch(model, optimizer) as curve:
        (model(flow.ones(4, 3).to(flow.float16)) * scale).sum().backward()
        wanted = math.sqrt(sum(float((p.grad.numpy().astype(float) ** 2).sum()) for p in model.parameters()))
        optimizer.step()
    assert curve.data["gradient norm"][1][0] == pytest.approx(wanted, rel=1e-5) and 0 < wanted < math.inf


@pytest.mark.parametrize("scale", [1e20, 1e-28])
def test_gradient_norm_beyond_the_squares_of_float32(scale):
    model, optimizer = model_and_optimizer(lr=0.0)
    with watch(model, optimizer) as curve:
        (model(flow.from_numpy(X)) * scale).sum().backward()
        wanted = math.sqrt(sum(float((p.grad.numpy().astype(float) ** 2).sum()) for p in model.parameters()))
        optimizer.step()
    assert curve.data["gradient norm"][1][0] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("kind", ["graph", "eager", "graph by its optimizer"])
def test_the_norm_of_a_short_run_is_a_curve(kind):
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer)
    things = (train,) if kind == "graph" else (model, optimizer)
    with watch(*things) as curve:
        for _ in range(29):
            if kind == "eager":
                optimizer.zero_grad()
                model(flow.from_numpy(X)).square().mean().backward()
                optimizer.step()
            else:
                train(flow.from_numpy(X))
    assert curve.data["gradient norm"][0].tolist() == curve.data["loss"][0].tolist() == list(range(1, 30))
    assert "at step" not in curve._series["gradient norm"].now(29) and "every" not in curve.svg()


@pytest.mark.parametrize("kind", ["graph", "eager"])
def test_the_norm_of_a_long_run_is_sampled_and_says_so(kind):
    """By steps, not by the time of day; the last one is told, and so is the first that is not finite."""
    model, optimizer = model_and_optimizer(lr=1e-3)
    train, bad, x = Train(model, optimizer), 2222, flow.from_numpy(X)

    def step():
        if kind == "graph":
            return train(x)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        return optimizer.step()

    with watch(*((train,) if kind == "graph" else (model, optimizer))) as curve:
        norm = curve._source.sources[0].norm
        for i in range(1, 2501):
            if i == bad:
                assert norm.every > 1
                model.weight.data[0, 0] = float("nan")
            step()
            if i == bad - 1:
                label, last = header(curve)["series"][-1], int(norm.taken[0])
                assert label["name"] == "gradient norm" and label["every"].startswith("norm of every ")
                assert last == i or label["label"].endswith(f" at step {last}")
                assert last == i or f" at step {last}" in curve.line() and f" at step {last}" in curve.text()
    steps, values = curve.data["gradient norm"]
    assert steps[:30].tolist() == list(range(1, 31)) and 60 < len(steps) < 1500 and steps[-1] == 2500
    assert bad in steps and np.isfinite(values[steps < bad]).all() and not np.isfinite(values[steps >= bad]).any()
    assert f"norm of every {norm.every:,}th step" in curve.svg() and "gradient norm NaN<" in curve.svg()


def test_how_often_the_norm_is_taken():
    """At most its share of the time; more often where steps become slower, all the same after a pause."""
    def run(norm, steps, each, took, pauses=()):
        taken, when = [], norm.taken[1] if norm.taken else 0.0
        start = int(norm.taken[0]) if norm.taken else 0
        for step in range(start + 1, start + steps + 1):
            when += each + (60.0 if step in pauses else 0.0)
            norm.left -= 1
            if norm.left <= 0:
                taken.append(step)
                norm.choose(step, when, took)
        return taken

    fast = Norm()
    taken = run(fast, 3000, 1e-3, 60e-6)
    assert taken[:60] == list(range(1, 61)) and fast.every == 50 and len([t for t in taken if t > 1000]) == 40
    assert run(fast, 4000, 1e-3, 60e-6, pauses=(3100,))[-10:] == list(range(6550, 7001, 50))
    taken = run(fast, 500, 0.1, 60e-6)
    assert taken[-1] - taken[-2] == 1, "slow steps are taken all"
    large = Norm()
    taken = run(large, 200, 0.16, 0.02)
    assert taken[0] == 1 and large.every == 100 and len(taken) < 15, "a norm that takes an eighth of each step is not taken thirty times"
    assert run(Norm(), 29, 0.2, 0.002) == list(range(1, 30))


def test_the_last_norm_is_not_that_of_another_backward():
    model, optimizer = model_and_optimizer()
    with watch(model, optimizer) as curve:
        norm = curve._source.sources[0].norm
        for _ in range(2):
            optimizer.zero_grad()
            model(flow.from_numpy(X)).square().mean().backward()
            optimizer.step()
            norm.left = 100
        optimizer.zero_grad()
        model(flow.from_numpy(X)).sum().backward()  # to look at something
    assert curve.data["gradient norm"][0].tolist() == [1] and "gradient norm" in curve.text() and " at step 1" in curve.text()
    with pytest.raises(KeyboardInterrupt), watch(model, optimizer) as curve:
        for _ in range(2):
            optimizer.zero_grad()
            model(flow.from_numpy(X)).square().mean().backward()
            optimizer.step()
            curve._source.sources[0].norm.left = 100
        raise KeyboardInterrupt  # in the middle of a step, for all that is known
    assert curve.data["gradient norm"][0].tolist() == [3]


def test_losses_of_a_thread_that_never_steps_do_not_pile_up():
    model, optimizer = model_and_optimizer()
    with watch(model, optimizer) as curve:
        source = curve._source.sources[0]
        for i in range(2500):
            source.backward(events.BackwardDone(1, None, (flow.tensor(float(i)),)))
        kept = next(iter(source.losses.values()))
        assert len(kept) <= 2000 and kept[-1] == 2499 and kept == sorted(kept)
        again = kept
        source.backward(events.BackwardDone(1, None, (flow.tensor(1.0),)))
        assert next(iter(source.losses.values())) is again, "nothing is copied"


def test_an_optimizer_and_its_model():
    model, optimizer = model_and_optimizer()
    other_model, other = model_and_optimizer()
    with watch(model, optimizer, gradients=False) as curve:
        for i in range(3):
            loss = model(flow.from_numpy(X)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            other.zero_grad()
            other_model(flow.from_numpy(X)).sum().backward()  # of another model: not ours
            other.step()
    assert curve.data["loss"][1][2] == pytest.approx(loss.item()) and set(curve.data) == {"loss", "lr"}
    assert curve.data["loss"][0].tolist() == [1, 2, 3]


def test_an_optimizer_of_a_graph():
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer)
    with watch(model, optimizer) as curve:
        losses = [train(flow.from_numpy(X)).item() for _ in range(3)]
    assert curve.data["loss"][1].tolist() == losses and curve.data["lr"][0].tolist() == [1, 2, 3]


def header(curve):
    data = curve.encode()
    return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])


def test_a_rate_that_never_changes_is_a_number_and_no_panel(front):
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer)
    with watch(train) as curve:
        for step in range(3):
            train(flow.from_numpy(X))
        quiet = header(curve)
        optimizer.param_groups[0]["lr"] = 0.05
        train(flow.from_numpy(X))
        moved = header(curve)
    assert quiet["panels"] == ["loss", "norm"] and quiet["status"].endswith(" · lr 0.1") and len(quiet["series"]) == 2
    assert moved["panels"] == ["loss", "norm", "lr"] and "lr" not in moved["status"]
    assert [len(row) for row in moved["rows"]] == [1, 2], "beside the strip that is there: the height stays"
    assert curve.data["lr"][1].tolist() == [0.1, 0.1, 0.1, 0.05] and curve.csv().count("\nlr,") == 4
    with watch(model, optimizer) as same:
        train(flow.from_numpy(X))
    assert "lr 0.05" in same.text() and "· lr 0.05</text>" in same.svg() and ">no lr yet<" not in same.svg()


def test_room_is_kept_for_a_rate_that_will_change(front):
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer, flow.optim.lr_scheduler.StepLR(optimizer, 100))
    with watch(train) as curve, watch(model, optimizer, gradients=False) as eager:
        train(flow.from_numpy(X))
    assert curve.panels == ("loss", "lr", "norm") and eager.panels == ("loss", "lr") and header(eager)["rows"] == [[0], [1]]
    for boundaries, panels in (((), ("loss",)), ((1000,), ("loss", "lr"))):
        later = job(rates=(0.1, 0.01)[: len(boundaries) + 1], boundaries=boundaries)
        with watch(later) as curve:
            later(X)
        assert curve.panels == panels and ("lr 0.1" in curve._status()) == (not boundaries)
        flow.clear_default_session()


def test_a_sync_job():
    train = job(rates=(0.1, 0.01), boundaries=(1,))
    with watch(train) as curve:
        losses = [float(train(X)) for _ in range(4)]
        assert len(curve.data["loss"][1]) == 4, "a step of a sync job is there when its call returns"
    assert curve.data["loss"][1].tolist() == losses
    assert curve.data["lr"][1].tolist() == [0.1, 0.1, 0.01, 0.01]


def test_an_async_job_is_waited_for():
    train, seen = job(tp.Callback[tp.Numpy]), []
    with watch(train) as curve:
        for _ in range(20):
            train(X)(lambda loss: seen.append(float(loss)))
    assert curve.data["loss"][1].tolist() == seen and len(seen) == 20


def test_two_jobs_side_by_side():
    @flow.global_function()
    def now(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        return flow.math.reduce_mean(x)

    @flow.global_function()
    def later(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
        return flow.math.reduce_mean(x)

    with watch(now, later, names=["sync", "async"]) as curve:
        for _ in range(5):
            now(X[0, :2])
            time.sleep(0.01)
        for _ in range(5):
            later(X[0, :2])(lambda loss: None)
    assert list(curve.data) == ["sync loss", "async loss"] and curve.x == "time"
    seconds = [curve._series[name].seconds for name in curve.data]
    assert all(0 <= s[0] < 0.04 for s in seconds) and seconds[0][-1] >= 0.04, "each from its own start"
    assert curve.encode().count(b'"panel": 0') == 2, "both in one panel"


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
    assert curve._rows == [], "a curve that is filled in many parts looks at none of them for ever"


def wait_for(condition, seconds=20):
    end = time.perf_counter() + seconds
    while not condition() and time.perf_counter() < end:
        time.sleep(0.01)
    assert condition()


def test_a_run(front):
    train = job(tp.Callback[tp.Numpy], rates=(0.1, 0.01), boundaries=(2,))
    go = threading.Event()
    run = flow.start(train, [X] * 3, epochs=2, callback=lambda loss: go.wait(20))
    curve = watch(run)
    go.set()
    run.result(30)
    wait_for(lambda: front.finished)
    assert curve.data["loss"][1].tolist() == run.values and len(run.values) == 6
    assert [m[0] for m in curve.marks()] == [3.0] and curve.total == 6
    assert "step 6 of 6" in curve._status() and curve._note == ""
    assert curve.data["lr"][1].tolist()[-2:] == [0.01, 0.01]


def test_buttons_of_a_run(front):
    go = threading.Event()
    train = job(tp.Callback[tp.Numpy])
    run = flow.start(train, [X] * 100_000, callback=lambda loss: go.wait(0.002))
    curve = watch(run)
    assert curve.control is run and b'"controls": true' in curve.encode()
    wait_for(lambda: "loss" in curve.data)
    run.pause()
    assert "paused" in curve._status()
    run.resume()
    run.stop()
    run.result(30)
    wait_for(lambda: front.finished)
    assert curve._note == "stopped" and len(curve.data["loss"][0]) == run.steps < 100_000


def test_a_run_that_fails(front):
    train = job(tp.Callback[tp.Numpy])
    run = flow.start(train, [X, X, np.ones(7, np.float32)])
    with pytest.raises(JobError), watch(run) as curve:
        run.result(30)
    assert len(curve.data["loss"][0]) == 2 and front.finished == 1 and curve._note.startswith(("stopped by JobError", "failed: "))


def test_a_loop_without_buttons_says_what_to_use():
    curve = LossCurve()
    curve.add(1, loss=1.0)
    assert b"use Kernel > Interrupt" in curve.encode() and b'"controls": false' in curve.encode()
    curve.finish()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_an_interrupt_ends_it_cleanly(front, kind):
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer)
    with pytest.raises(kind), watch(train) as curve:
        for i in range(10):
            train(flow.from_numpy(X))
            if i == 4:
                raise kind
    assert len(curve.data["loss"][0]) == 5 and f"stopped by {kind.__name__}" in repr(curve) and front.finished == 1


def test_what_goes_wrong_in_watching_does_not_stop_the_run(monkeypatch):
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer)
    monkeypatch.setattr(Rows, "append", lambda *args, **kwargs: 1 / 0)
    with watch(train):
        assert train(flow.from_numpy(X)).item() > 0


def test_what_cannot_be_watched():
    model, _ = model_and_optimizer()
    with pytest.raises(MinflowError, match="Linear"):
        watch(model)
    with pytest.raises(MinflowError, match="list"):
        watch([1])
    with pytest.raises(MinflowError, match="nothing"):
        watch()
    with pytest.raises(MinflowError, match="things *1"):
        watch(job(), names=["a", "b"])
    with pytest.raises(MinflowError, match="'wall'"):
        LossCurve(x="wall")
    with pytest.raises(MinflowError, match=r"total (.|\n)*got +0"):
        LossCurve(total=0)


def test_dicts_give_their_names():
    class Two(nn.Graph):
        def build(self, x):
            return {"loss": x.mean(), "accuracy": x.max(), "logits": x}

    graph = Two()
    with watch(graph) as curve:
        graph(flow.from_numpy(X))
    assert {name: values.tolist() for name, (_, values) in curve.data.items()} == {"loss": [1.0], "accuracy": [1.0]}


def test_csv(tmp_path):
    with LossCurve() as curve:
        curve.add(1, loss=0.1, **{'a,"b"': 2.0})
        curve.add(2, loss=float("nan"))
    text = curve.csv(tmp_path / "run.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["series"], r["step"], r["value"]) for r in rows] == [("loss", "1", "0.1"), ("loss", "2", "nan"), ('a,"b"', "1", "2.0")]
    assert (tmp_path / "run.csv").read_text() == text


def test_nobody_is_told_outside_of_the_block():
    model, optimizer = model_and_optimizer()
    train = Train(model, optimizer)
    curve = watch(train)
    assert not events.LISTENERS
    with curve:
        assert events.LISTENERS
    assert not events.LISTENERS


def test_the_rate_of_a_job_is_that_of_each_step():
    """Told in the loop as a number of steps, made a rate by the pump; also where a rate comes back to what it was."""
    train = job(rates=(0.1, 0.2, 0.1), boundaries=(2, 4))
    with watch(train) as curve:
        for _ in range(8):
            train(np.ones((4, 3), "f"))
    steps, rates = curve.data["lr"]
    assert steps.tolist() == list(range(1, 9)) and rates.tolist() == pytest.approx([0.1] * 3 + [0.2] * 2 + [0.1] * 3)
    assert curve.data["loss"][0].tolist() == steps.tolist()


def test_a_dear_loop_leaves_less_for_showing():
    """Together they keep within the budget; a loop at 100 steps a second is shown as often as ever."""
    def share(cost, rate):
        curve = loss_curve.LossCurve()
        rows = curve.rows()
        rows.cost = cost
        curve._recorded = (loss_curve.clock() - 1.0, 0.0)
        rows.extend([(("loss",), 1, loss_curve.clock(), 1.0)] * rate)
        assert curve._look()
        return curve._share()

    assert share(12e-6, 100) == loss_curve.SHARE and share(7e-6, 1000) == loss_curve.SHARE
    assert loss_curve.LEAST <= share(12e-6, 1000) < 0.0045
    assert share(12e-6, 5000) == loss_curve.LEAST


def test_more_that_cannot_be_watched():
    optimizer = model_and_optimizer()[1]
    for options in ({"names": 3}, {"names": "s"}, {"names": [None]}, {"into": 3}):
        with pytest.raises(MinflowError, match="watch: "):
            watch(optimizer, **options)
    with pytest.raises(MinflowError, match="no two alike"):
        watch(optimizer, model_and_optimizer()[1], names=["a", "a"])  # their numbers would be one series
    with pytest.raises(MinflowError, match="the class Train") as caught:
        watch(Train)
    assert "0x" not in str(caught.value)


def test_a_watch_without_its_block_says_so():
    graph = Train(*model_and_optimizer())
    curve = watch(graph)
    graph(flow.ones(4, 3))
    assert "with watch(...) as curve" in repr(curve)
    curve.finish()
    assert "with watch(...) as curve" in curve.text() and "nothing was watched" in curve.svg()


def test_a_block_that_is_entered_again_is_refused(front):
    for curve in (watch(Train(*model_and_optimizer())), LossCurve()):
        with curve:
            pass
        with pytest.raises(MinflowError, match="has ended with its block"), curve:
            pass


def test_a_run_that_fails_without_a_word(front):
    def loader():
        yield X
        raise ValueError

    run = flow.start(job(tp.Callback[tp.Numpy]), loader())
    curve = watch(run)
    with pytest.raises(ValueError):
        run.result(30)
    wait_for(lambda: curve._finished)
    assert "failed: ValueError" in curve.text()
