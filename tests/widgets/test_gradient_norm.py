"""The global gradient norm: correct for all dtypes, enough steps for a curve, and marked if sampled."""

import math

import numpy as np
import pytest
from minflow_widgets import watch
from minflow_widgets.sources.gradient_norm import GradientNorm, norm_of
from minflow_widgets.sources.step_values import numbers_of

import minflow as flow
from tests.graph_models import Step
from tests.strict_backend import counted
from tests.widgets.watching import X, eager_step, header, legend, model_and_optimizer

pytestmark = pytest.mark.usefixtures("front")


def test_norm_includes_all_gradients():
    model, optimizer = model_and_optimizer()
    with watch(model, optimizer) as curve:
        loss = model(flow.from_numpy(X)).square().mean()
        loss.backward()
        optimizer.step()
    wanted = math.sqrt(sum(float((p.grad.numpy() ** 2).sum()) for p in model.parameters()))
    assert curve.data["gradient norm"][1][0] == pytest.approx(wanted, rel=1e-5)
    same, again = model_and_optimizer()
    train = Step(same, again)
    with watch(train) as curve:
        train(flow.from_numpy(X))
    assert curve.data["gradient norm"][1][0] == pytest.approx(wanted, rel=1e-5)
    assert curve.data["loss"][1][0] == pytest.approx(loss.item())


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
def test_norm_of_a_short_run_is_complete(kind):
    model, optimizer = model_and_optimizer()
    train = Step(model, optimizer)
    things = (train,) if kind == "graph" else (model, optimizer)
    with watch(*things) as curve:
        for _ in range(29):
            if kind == "eager":
                eager_step(model, optimizer)
            else:
                train(flow.from_numpy(X))
    assert curve.data["gradient norm"][0].tolist() == curve.data["loss"][0].tolist() == list(range(1, 30))
    assert "at step" not in curve._series["gradient norm"].now(29) and "every" not in curve.svg()


@pytest.mark.parametrize("kind", ["graph", "eager"])
def test_norm_of_a_long_run_is_marked_as_sampled(kind, no_notices):
    """Sampled by steps, not by time; the last norm is included, and so is the first that is not finite."""
    model, optimizer = model_and_optimizer(lr=1e-3)
    train, bad, x = Step(model, optimizer), 2222, flow.from_numpy(X)

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
                shown, last = header(curve)["series"][-1], int(norm.taken[0])
                assert shown["name"] == "gradient norm" and shown["every"].startswith("norm measured every 1 to ")
                assert last == i or legend(curve, -1)[0][0].endswith(f" at step {last}")
                assert last == i or (f" at step {last}" in curve.line() and f" at step {last}" in curve.text())
    steps, values = curve.data["gradient norm"]
    assert steps[:25].tolist() == list(range(1, 26)) and 35 < len(steps) < 1500 and steps[-1] == 2500
    assert bad in steps and np.isfinite(values[steps < bad]).all() and not np.isfinite(values[steps >= bad]).any()
    longest = int(np.diff(steps[:-1]).max())
    assert f"norm measured every 1 to {longest:,} steps" in curve.svg() and "gradient norm NaN<" in curve.svg()


def test_sampling_rate_of_the_norm():
    """At most its share of the time; more often if steps become slower, and unchanged after a pause."""

    def run(norm, steps, each, took, pauses=()):
        taken, when = [], norm.taken[1] if norm.taken else 0.0
        start = int(norm.taken[0]) if norm.taken else 0
        for step in range(start + 1, start + steps + 1):
            when += each + (60.0 if step in pauses else 0.0)
            norm.left -= 1
            if norm.left <= 0:
                taken.append(step)
                norm.choose_next(step, when, took)
        return taken

    fast = GradientNorm()
    taken = run(fast, 3000, 1e-3, 60e-6)
    assert taken[:60] == list(range(1, 61)) and fast.every == 100 and len([t for t in taken if t > 1000]) == 20
    assert set(np.diff(run(fast, 9000, 1e-3, 60e-6, pauses=(3100,))[-10:]).tolist()) <= {50, 100}, (
        "a pause accumulates at most FREE"
    )
    taken = run(fast, 500, 0.1, 60e-6)
    assert taken[-1] - taken[-2] == 1, "all slow steps are sampled"
    large = GradientNorm()
    taken = run(large, 200, 0.16, 0.02)
    assert taken[0] == 1 and large.every >= 100 and len(taken) < 15, (
        "a norm that costs an eighth of each step is not computed thirty times"
    )
    assert run(GradientNorm(), 29, 0.2, 0.002) == list(range(1, 30))


def test_last_norm_is_not_from_another_backward():
    model, optimizer = model_and_optimizer()
    with watch(model, optimizer) as curve:
        norm = curve._source.sources[0].norm
        for _ in range(2):
            eager_step(model, optimizer)
            norm.left = 100
        optimizer.zero_grad()
        model(flow.from_numpy(X)).sum().backward()  # for inspection
    assert curve.data["gradient norm"][0].tolist() == [1] and "gradient norm" in curve.text()
    assert " at step 1" in curve.text()
    with pytest.raises(KeyboardInterrupt), watch(model, optimizer) as curve:
        for _ in range(2):
            eager_step(model, optimizer)
            curve._source.sources[0].norm.left = 100
        raise KeyboardInterrupt  # possibly in the middle of a step
    assert curve.data["gradient norm"][0].tolist() == [3]


def test_values_of_a_device_are_computed_there(cuda):
    arrays = [X * 1e25, np.array(3.0), X[:0]]
    there = [flow.tensor(a).to(cuda) for a in arrays]
    with counted() as copies:
        assert norm_of([t.array for t in there]) == norm_of(arrays)
        assert numbers_of({"loss": there[1], "all": there[0]}, True) == (("loss",), (3.0,))
        assert numbers_of([there[0]], True) == (("loss",), (pytest.approx(float((X * 1e25).mean())),))
    assert {how.split()[0] for how in copies} <= {"float", "item"}
