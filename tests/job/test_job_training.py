"""Optimizers inside train jobs: the mean-gradient rule, the order of operations, loss scales, and errors of
minimize.
"""

import numpy as np
import pytest
from builders import job_of, raised_error
from optimizer_bench import Bench

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError, OptimError
from minflow.job.session import default_session
from minflow.job.train import optimizer as O

pytestmark = pytest.mark.usefixtures("empty_session")
SHAPES = {"w": (4, 2), "b": (2,)}
CONSTANT = O.PiecewiseConstantScheduler([], [0.5])


def masks(step):
    rng = np.random.default_rng(step)
    return rng.standard_normal((4, 2)).astype("float32"), rng.standard_normal((4, 2)).astype("float32")


def variables():
    w = flow.get_variable("w", shape=(4, 2), initializer=flow.random_uniform_initializer(0.5, 2.0))
    return w, flow.get_variable("b", shape=(2,), initializer=flow.random_uniform_initializer(0.5, 2.0))


def training(function, *inputs, result=tp.Numpy):
    return job_of(function, *inputs, kind="train", result=result, name=function.__name__)


def linear_job(optimizer):
    """A job with an 8-element loss w * x + b * y: the gradients of its mean are x / 8 and the column sums of y / 8."""

    def linear(x, y):
        w, b = variables()
        optimizer.minimize(w * x + b * y)
        return [w, b]

    return training(linear, (4, 2), (4, 2), result=tp.Bundle[tp.Numpy])


SCHEDULE = O.CosineScheduler(0.1, 15)
ALL = [O.SGD(SCHEDULE, momentum=0), O.SGD(SCHEDULE), O.SGDW(SCHEDULE, weight_decay=0.1), O.Adam(SCHEDULE),
       O.LARS(SCHEDULE),
       O.AdamW(SCHEDULE, do_bias_correction=True, weight_decay=0.1), O.LazyAdam(SCHEDULE),
       O.RMSProp(SCHEDULE, centered=True),
       O.LAMB(SCHEDULE, weight_decay=0.1, weight_decay_excludes="b"),
       O.CombinedOptimizer([O.SGD(SCHEDULE, variables=["w"]), O.Adam(SCHEDULE, variables=["b"])]),
       O.Adam(SCHEDULE, grad_clipping=O.grad_clipping.by_global_norm(0.2))]  # fmt: skip


@pytest.mark.parametrize("optimizer", ALL, ids=lambda o: type(o).__name__)
def test_job_follows_the_optimizer_formula(optimizer):
    """A call returns the values from before its step; states are kept by name and survive a recompilation."""
    job, bench = linear_job(optimizer), Bench("float32", SHAPES)
    for t in range(20):
        x, y = masks(t)
        before = job(x, y)
        if t == 0:
            for name, w in zip(("w", "b"), before):
                bench.weights[name].copy_(flow.tensor(w))
        for name, w in zip(("w", "b"), before):
            np.testing.assert_allclose(w, bench.numbers()[name], rtol=2e-5, atol=1e-6, err_msg=f"{name}, step {t}")
        bench.step(optimizer, {"w": x / 8, "b": y.sum(0) / 8})
    assert set(default_session().slots) == set(bench.slots)
    for name, kept in bench.slots.items():
        np.testing.assert_allclose(default_session().slots[name].numpy(), kept.numpy(), rtol=2e-5, atol=1e-6)
    assert job.steps == 20


def test_schedule_counts_finished_steps_from_0():
    job = linear_job(O.SGD(O.PiecewiseConstantScheduler([1], [1.0, 0.25]), momentum=0))
    x, y = masks(0)
    seen = [job(x, y)[0] for _ in range(5)]
    for i, rate in enumerate([1.0, 1.0, 0.25, 0.25]):
        np.testing.assert_allclose(seen[i] - seen[i + 1], rate * x / 8, rtol=1e-4, atol=1e-6)


def test_rate_as_an_argument():
    def step(x, lr):
        w, _ = variables()
        O.SGD(O.CustomScheduler(lr), momentum=0).minimize(w * x)
        return w

    job, (x, _) = training(step, (4, 2), (1,)), masks(0)
    seen = [job(x, np.array([rate], "float32")) for rate in (1.0, 0.0, 2.0, 0.0)]
    for i, rate in enumerate([1.0, 0.0, 2.0]):
        np.testing.assert_allclose(seen[i] - seen[i + 1], rate * x / 8, rtol=1e-4, atol=1e-6)


def test_regularizers_come_before_clipping():
    def step(x):
        w = flow.get_variable(
            "w",
            shape=(4, 2),
            initializer=flow.random_uniform_initializer(-2.0, 2.0),
            regularizer=flow.regularizers.l1_l2(0.3, 0.7),
        )
        O.SGD(CONSTANT, momentum=0, grad_clipping=O.grad_clipping.by_global_norm(1.0)).minimize(w * x)
        return w

    job, (x, _) = training(step, (4, 2)), masks(0)
    before, after = job(x), job(x)
    g = x / 8 + 0.3 * np.sign(before) + 0.7 * before
    assert np.linalg.norm(g) > 1
    np.testing.assert_allclose(after, before - 0.5 * g / np.linalg.norm(g), rtol=1e-5)


def test_several_losses():
    def step(x, y):
        w, _ = variables()
        O.SGD(CONSTANT, momentum=0).minimize([w * x, w * y])
        return w

    job, (x, y) = training(step, (4, 2), (4, 2)), masks(0)
    before, after = job(x, y), job(x, y)
    np.testing.assert_allclose(before - after, 0.5 * (x + y) / 8, rtol=1e-4, atol=1e-6)


# ---- loss scales -------------------------------------------------------------------------------------------------


def network_job(policy):
    def network(x, y):
        normal = flow.random_normal_initializer(0, 0.5)
        hidden = flow.get_variable("hidden", shape=(5, 7), initializer=normal, random_seed=1)
        out = flow.get_variable("out", shape=(7, 1), initializer=normal, random_seed=1)
        loss = flow.math.square(flow.matmul(flow.math.tanh(flow.matmul(x, hidden)), out) - y)
        O.Adam(CONSTANT, loss_scale_policy=policy).minimize(loss)
        return loss

    return training(network, (16, 5), (16, 1))


def data(t):
    rng = np.random.default_rng(t)
    return rng.standard_normal((16, 5)).astype("float32"), rng.standard_normal((16, 1)).astype("float32")


@pytest.mark.parametrize(
    "policy",
    [O.loss_scale.dynamic_loss_scale(increment_period=4), O.loss_scale.static_loss_scale(2**20)],
    ids=["dynamic", "static"],
)
def test_loss_scale_keeps_the_bits_of_float32(policy):
    losses = []
    for given in (None, policy):
        flow.clear_default_session()
        job = network_job(given)
        losses.append([job(*data(t)) for t in range(20)])
    np.testing.assert_array_equal(*losses)
    assert losses[0][-1].mean() != losses[0][0].mean()


def test_step_with_infinite_gradients_is_skipped():
    job = network_job(O.loss_scale.dynamic_loss_scale(2.0**30))
    job(*data(0))
    state = "System-Train-DynamicLossScale-network"
    session = default_session()
    held = {**session.variables, **{name: s for name, s in session.slots.items() if state not in name}}
    before = {name: v.numpy() for name, v in held.items()}
    x, y = data(1)
    y[3] = np.nan
    assert np.isnan(job(x, y)[3])
    for name, v in held.items():
        np.testing.assert_array_equal(v.numpy(), before[name])
    assert session.slots[f"{state}-LossScale"].numpy() == [2.0**29]
    assert session.slots[f"{state}-GoodStepCounter"].numpy() == [0]
    assert session.slots[f"{state}-GoodStepCounter"].dtype is flow.int64
    job(*data(2))
    assert any(not np.array_equal(v.numpy(), before[name]) for name, v in held.items())


# ---- mistakes ----------------------------------------------------------------------------------------------------


def test_minimize_outside_a_job():
    text = "flow.optimizer.SGD.minimize works only inside a job function"
    raised_error(O.SGD(CONSTANT).minimize, JobError, text, flow.zeros(3))


@pytest.mark.parametrize("text, losses_of", [
    ("the loss must be a Blob, got a float", lambda loss: 0.5),
    ("the list of losses is empty", lambda loss: []),
    (r"losses\[1\] must be a Blob, got a NoneType", lambda loss: [loss, None]),
    ("the loss is int32", lambda loss: loss.to(flow.int32)),
    (r"losses\[1\] is float32\[2\], losses\[0\] is float32\[4, 2\]", lambda loss: [loss, loss.sum(0)]),
])  # fmt: skip
def test_invalid_losses(text, losses_of):
    def step(x):
        loss = variables()[0] * x
        O.Adam(CONSTANT).minimize(losses_of(loss))
        return loss

    error = raised_error(training(step, (4, 2)), OptimError, text, masks(0)[0])
    assert "test_job_training.py" in str(error)


def test_unknown_variables_are_reported_at_minimize():
    def step(x):
        w, b = variables()
        O.Adam(CONSTANT, variables=["w", "bias"]).minimize(w * x + b)
        return w

    error = raised_error(
        training(step, (4, 2)), OptimError, "'bias' is not a variable that this job trains", masks(0)[0]
    )
    assert error.where == f"at test_job_training.py:{step.__code__.co_firstlineno + 2}"
