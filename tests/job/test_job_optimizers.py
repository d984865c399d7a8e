"""Optimizers and schedules of job functions: comparison with formulas, and errors.

A stub of the build of a job holds eager tensors instead of blobs, so that `apply` runs immediately;
`test_job_training.py` has the same optimizers in jobs.
"""

import inspect
import math

import numpy as np
import pytest
from builders import raised_error
from optimizer_bench import SHAPES, Bench, gradients_of

import minflow as flow
from minflow.core.base.errors import CallError, OptimError
from minflow.job.train import optimizer as O


def rate(t):
    """The rate of CosineScheduler(0.1, 15) at step t."""
    return 0.1 * 0.5 * (1 + math.cos(math.pi * min(t, 15) / 15))


SCHEDULE = O.CosineScheduler(0.1, 15)


def follow(optimizer, rule, steps=20, dtype="float64", size=1.0, tolerance=1e-12):
    """Run both for `steps` steps: rule(w, g, state, lr, t) returns the new w and keeps its state in a dict."""
    bench = Bench(dtype)
    wanted, states = bench.numbers(), {name: {} for name in SHAPES}
    for t in range(steps):
        gradients = gradients_of(t, size=size)
        bench.step(optimizer, gradients)
        for name in SHAPES:
            wanted[name] = rule(name, wanted[name], gradients[name], states[name], rate(t), t)
        for name, found in bench.numbers().items():
            assert found.dtype == dtype
            np.testing.assert_allclose(found, wanted[name], rtol=tolerance, atol=tolerance, err_msg=f"{name}, step {t}")
    return bench, states


# ---- the formulas ------------------------------------------------------------------------------------------------


def momentum(name, w, g, s, lr, t, beta=0.9, decay=0.0):
    """The rate is inside the momentum, unlike in flow.optim.SGD: old gradients keep the rate of their step."""
    s["momentum"] = beta * s.get("momentum", 0) - lr * g
    return w + s["momentum"] - lr * decay * w


def moments(name, w, g, s, lr, t, b1=0.9, b2=0.999, eps=1e-8, corrected=False, decay=0.0):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    if corrected:
        lr = lr * math.sqrt(1 - b2 ** (t + 1)) / (1 - b1 ** (t + 1))
    return w - lr * (s["m"] / (np.sqrt(s["v"]) + eps) + decay * w)


def test_lazy_adam_skips_rows_without_gradient():
    shapes = {"table": (5, 2)}
    bench, optimizer = Bench(shapes=shapes), O.LazyAdam(SCHEDULE)
    w, m, v = bench.numbers()["table"], np.zeros((5, 2)), np.zeros((5, 2))
    for t, rows in enumerate([[0, 3], [3], [], [1, 3], [0]]):
        g = np.zeros((5, 2))
        g[rows] = gradients_of(t, shapes)["table"][rows]
        bench.step(optimizer, {"table": g})
        m[rows] = 0.9 * m[rows] + 0.1 * g[rows]
        v[rows] = 0.999 * v[rows] + 0.001 * g[rows] ** 2
        lr = rate(t) * math.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1))
        w[rows] -= lr * m[rows] / (np.sqrt(v[rows]) + 1e-8)
    np.testing.assert_allclose(bench.numbers()["table"], w, rtol=1e-12)
    np.testing.assert_allclose(bench.slots["table-m"].numpy(), m, rtol=1e-12)
    assert not bench.slots["table-v"].numpy()[[2, 4]].any()


def test_centered_rmsprop_has_no_negative_variance():
    """Constant gradients have variance 0, and in float32 it is slightly negative for many of them."""
    shapes = {"w": (500,)}
    bench, optimizer, g = (
        Bench("float32", shapes),
        O.RMSProp(SCHEDULE, 0.9, 1e-8, centered=True),
        np.linspace(100, 200, 500),
    )
    below = 0
    for _ in range(200):
        bench.step(optimizer, {"w": g})
        below += (bench.slots["w-mean_square"].numpy() - bench.slots["w-mean_gradient"].numpy() ** 2 < -1e-8).sum()
    assert below > 0 and np.isfinite(bench.numbers()["w"]).all()


def lars(name, w, g, s, lr, t, beta=0.9, eps=1e-9, coefficient=0.0001):
    local = lr * coefficient * np.sqrt(np.mean(w * w)) / (eps + np.sqrt(np.mean(g * g)))
    s["momentum"] = beta * s.get("momentum", 0) - local * g
    return w + s["momentum"]


def lamb(name, w, g, s, lr, t, decay=0.0, eps=1e-6):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    a = s["m"] / (1 - 0.9 ** (t + 1)) / np.sqrt(s["v"] / (1 - 0.999 ** (t + 1)) + eps)
    ours, its = np.linalg.norm(w), np.linalg.norm(a)
    trust = ours / its if ours > 0 and its > 0 else 1.0
    return w - lr * trust * (a + decay * w)


def decayed_weight(name, *a):
    return momentum(name, *a, 0.9, 0.3 if name == "dense1-weight" else 0.0)


def mean_squares(name, w, g, s, lr, t, centered=False):
    s["mean_square"] = 0.9 * s.get("mean_square", 0) + 0.1 * g * g
    s["mean_gradient"] = 0.9 * s.get("mean_gradient", 0) + 0.1 * g
    return w - lr * g / np.sqrt(s["mean_square"] - (s["mean_gradient"] ** 2 if centered else 0) + 1e-3)


# (optimizer, its rule, its states)
RULES = [
    (O.SGD(SCHEDULE, momentum=0), lambda name, w, g, s, lr, t: w - lr * g, ""),
    (O.SGD(SCHEDULE), momentum, "momentum"),
    (O.SGDW(SCHEDULE, momentum=0, weight_decay=0.3), lambda name, w, g, s, lr, t: w - lr * (g + 0.3 * w), ""),
    (O.SGDW(SCHEDULE, momentum=0.8, weight_decay=0.3), lambda *a: momentum(*a, 0.8, 0.3), "momentum"),
    (O.SGDW(SCHEDULE, weight_decay=0.3, weight_decay_includes="weight$"), decayed_weight, "momentum"),
    (O.SGDW(SCHEDULE, weight_decay=0.3, weight_decay_excludes=["bias", "^sc"]), decayed_weight, "momentum"),
    (O.Adam(SCHEDULE), moments, "m v"),
    (O.Adam(SCHEDULE, 0.8, 0.9, 0.01, do_bias_correction=True), lambda *a: moments(*a, 0.8, 0.9, 0.01, True), "m v"),
    (
        O.AdamW(SCHEDULE, beta2=0.99, epsilon=1e-3, weight_decay=0.2),
        lambda *a: moments(*a, b2=0.99, eps=1e-3, decay=0.2),
        "m v",
    ),
    (
        O.AdamW(SCHEDULE, beta2=0.99, epsilon=1e-3, do_bias_correction=True, weight_decay=0.2),
        lambda *a: moments(*a, b2=0.99, eps=1e-3, corrected=True, decay=0.2),
        "m v",
    ),
    (
        O.AdamW(SCHEDULE, weight_decay=0.2, weight_decay_excludes="bias$"),
        lambda name, *a: moments(name, *a, decay=0.0 if name == "dense1-bias" else 0.2),
        "m v",
    ),
    (O.LazyAdam(SCHEDULE), lambda *a: moments(*a, corrected=True), "m v"),  # every element has a gradient
    (O.RMSProp(SCHEDULE, 0.9, 1e-3), mean_squares, "mean_square"),
    (O.RMSProp(SCHEDULE, 0.9, 1e-3, True), lambda *a: mean_squares(*a, True), "mean_square mean_gradient"),
    (O.LARS(SCHEDULE), lars, "momentum"),
    (O.LARS(SCHEDULE, 0.8, 1e-3, 0.5), lambda *a: lars(*a, 0.8, 1e-3, 0.5), "momentum"),
    (O.LAMB(SCHEDULE), lamb, "m v"),
    (O.LAMB(SCHEDULE, weight_decay=0.1), lambda *a: lamb(*a, decay=0.1), "m v"),
]


@pytest.mark.parametrize("optimizer, rule, kept", RULES, ids=[repr(optimizer) for optimizer, *_ in RULES])
def test_optimizer_follows_its_formula(optimizer, rule, kept):
    bench, states = follow(optimizer, rule, tolerance=1e-10)
    assert set(bench.slots) == {f"{name}-{slot}" for name in SHAPES for slot in kept.split()}
    for slot in kept.split():
        np.testing.assert_allclose(bench.slots[f"scale-{slot}"].numpy(), states["scale"][slot], rtol=1e-10)
    follow(optimizer, rule, dtype="float32", tolerance=2e-4)


def test_lamb_of_zeros():
    """A weight of zeros, or one without gradient, gets the plain step."""
    bench, optimizer = Bench(shapes={"zeros": (3,), "still": (3,)}), O.LAMB(SCHEDULE)
    bench.weights["zeros"].zero_()
    still = bench.numbers()["still"]
    bench.step(optimizer, {"zeros": np.full(3, 2.0), "still": np.zeros(3)})
    np.testing.assert_allclose(bench.numbers()["zeros"], -0.1 / np.sqrt(1 + 1e-6 / 4), rtol=1e-9)
    np.testing.assert_array_equal(bench.numbers()["still"], still)


# ---- clipping, loss scales, several at once ----------------------------------------------------------------------


def test_clipping_by_global_norm():
    def rule(gradients):
        norm = math.sqrt(sum((g**2).sum() for g in gradients.values()))
        return {name: g * 1.5 / max(norm, 1.5) for name, g in gradients.items()}

    clipped = Bench(), O.Adam(SCHEDULE, grad_clipping=O.grad_clipping.by_global_norm(1.5))
    by_hand = Bench(), O.Adam(SCHEDULE)
    for t in range(20):
        gradients = gradients_of(t, size=10.0 ** (t % 3 - 2))  # some longer than 1.5, some shorter
        clipped[0].step(clipped[1], gradients)
        by_hand[0].step(by_hand[1], rule(gradients))
    for name, found in clipped[0].numbers().items():
        np.testing.assert_allclose(found, by_hand[0].numbers()[name], rtol=1e-9)


def test_clipping_keeps_short_gradients():
    gradients = [flow.tensor([0.3, 0.1]), flow.tensor([[0.2]])]
    for old, new in zip(gradients, O.grad_clipping.by_global_norm(1.0).clipped(gradients)):
        np.testing.assert_array_equal(old.numpy(), new.numpy())


def test_static_loss_scale():
    assert O.SGD(SCHEDULE).loss_scale(Bench()) is None
    assert O.SGD(SCHEDULE, loss_scale_factor=128.0).loss_scale(Bench()) == 128.0
    assert O.SGD(SCHEDULE, loss_scale_policy=O.loss_scale.static_loss_scale(8)).loss_scale(Bench()) == 8.0


def scale_of(bench):
    prefix = "System-Train-DynamicLossScale-train_job"
    scale, count = bench.slots[f"{prefix}-LossScale"], bench.slots[f"{prefix}-GoodStepCounter"]
    assert (scale.dtype, count.dtype, tuple(scale.shape)) == (flow.float32, flow.int64, (1,))
    return float(scale), int(count)


def test_dynamic_loss_scale_finds_the_largest():
    bench = Bench()
    optimizer = O.SGD(SCHEDULE, loss_scale_policy=O.loss_scale.dynamic_loss_scale(8.0, 3, 2.0))
    seen = []
    for t, bad in enumerate([0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]):
        found = optimizer.loss_scale(bench)
        assert tuple(found.shape) == ()
        gradients = gradients_of(t)
        if bad:
            gradients["dense1-bias"][1] = [math.nan, math.inf, -math.inf][t % 3]
        before = {**bench.numbers(), **{k: v.numpy().copy() for k, v in bench.slots.items() if "-momentum" in k}}
        seen.append((float(found), scale_of(bench)[1]))
        bench.step(optimizer, gradients)
        after = {**bench.numbers(), **{k: v.numpy().copy() for k, v in bench.slots.items() if "-momentum" in k}}
        same = [np.array_equal(before[name], after[name]) for name in before]
        assert all(same) if bad else not any(same), t
    assert seen == [
        (8, 0),
        (8, 1),
        (8, 2),
        (16, 0),
        (16, 1),
        (8, 0),
        (8, 1),
        (8, 2),
        (16, 0),
        (16, 1),
        (8, 0),
        (4, 0),
        (2, 0),
        (1, 0),
        (1, 0),
    ]


def test_dynamic_loss_scale_ends_at_the_largest_float():
    bench = Bench()
    policy = O.loss_scale.dynamic_loss_scale(2.0**126, 1, 4.0)
    optimizer = O.SGD(SCHEDULE, loss_scale_policy=policy)
    for t in range(3):
        optimizer.loss_scale(bench)
        bench.step(optimizer, gradients_of(t))
    assert scale_of(bench)[0] == np.finfo(np.float32).max


def test_combined_optimizers_each_train_their_own():
    both = O.CombinedOptimizer(
        [
            O.SGD(SCHEDULE, momentum=0, variables=["dense1-weight"]),
            O.Adam(O.PiecewiseConstantScheduler([], [0.5]), variables=lambda: ["dense1-bias"]),
        ]
    )

    def rule(name, w, g, s, lr, t):
        if name == "scale":
            return w
        return w - lr * g if name == "dense1-weight" else moments(name, w, g, s, 0.5, t)

    bench, _ = follow(both, rule)
    assert set(bench.slots) == {"dense1-bias-m", "dense1-bias-v"}


def test_only_named_variables_are_trained_and_clipped():
    bench = Bench()
    optimizer = O.SGD(
        O.PiecewiseConstantScheduler([], [1.0]),
        momentum=0,
        variables=["scale"],
        grad_clipping=O.grad_clipping.by_global_norm(1.0),
    )
    before = bench.numbers()
    bench.step(optimizer, {**gradients_of(0, size=100.0), "scale": np.array(0.5)})
    np.testing.assert_array_equal(bench.numbers()["dense1-bias"], before["dense1-bias"])
    np.testing.assert_allclose(bench.numbers()["scale"], before["scale"] - 0.5)


def test_rate_is_read_once_for_all_variables():
    for optimizer, readers in ((O.SGD(SCHEDULE), 1), (O.Adam(SCHEDULE), 2), (O.LAMB(SCHEDULE), 3)):
        bench = Bench()
        bench.step(optimizer, gradients_of(0))
        assert bench.readers == readers


def test_job_without_trainable_variables():
    for optimizer in (
        O.SGD(SCHEDULE, grad_clipping=O.grad_clipping.by_global_norm(1.0)),
        O.Adam(SCHEDULE, loss_scale_policy=O.loss_scale.dynamic_loss_scale()),
    ):
        bench = Bench()
        bench.step(optimizer, {})
        assert not bench.slots


# ---- schedules of the learning rate --------------------------------------------------------------------------------

AFTER = O.CosineScheduler(0.2, 20)


def cosine(t):
    return 0.2 * (0.9 * (1 + math.cos(math.pi * min(t / 20, 1))) / 2 + 0.1)


def linear_cosine(t, periods=0.5, alpha=0.0, beta=0.001):
    u = min(t / 20, 1)
    return 0.2 * ((alpha + 1 - u) * (1 + math.cos(2 * math.pi * periods * u)) / 2 + beta)


def cycles(t):
    """Cycle k = ceil(t / steps) goes linearly from the rate at its start to the end value at k * steps."""
    return 0.15 * (1 - max(t, 1) / (10 if t <= 10 else 20 if t <= 20 else 30)) + 0.05


SCHEDULES = [  # (schedule, its rate at step t); a boundary belongs to the piece before it
    (O.PiecewiseConstantScheduler([3, 10], [0.5, 0.1, 0.02]), lambda t: 0.5 if t <= 3 else 0.1 if t <= 10 else 0.02),
    (O.PiecewiseConstantScheduler([], [0.1]), lambda t: 0.1),
    (O.PiecewiseScalingScheduler(0.4, [5, 12], [0.5, 0.1]), lambda t: 0.4 * (1 if t <= 5 else 0.5 if t <= 12 else 0.1)),
    (O.PiecewiseScalingScheduler(0.4, [5, 12], 0.25), lambda t: 0.4 * (1 if t <= 5 else 0.25)),
    (O.CosineScheduler(0.2, 20, 0.1), cosine),
    (O.CosineScheduler(0.2, 20), lambda t: 0.1 * (1 + math.cos(math.pi * min(t / 20, 1)))),
    (O.LinearCosineScheduler(0.2, 20), linear_cosine),
    (O.LinearCosineScheduler(0.2, 20, 2.0, 0.3, 0.05), lambda t: linear_cosine(t, 2.0, 0.3, 0.05)),
    (O.PolynomialScheduler(0.2, 20), lambda t: (0.2 - 0.0001) * (1 - min(t, 20) / 20) + 0.0001),
    (O.PolynomialSchduler(0.2, 20, 0.05, 2.0), lambda t: 0.15 * (1 - min(t, 20) / 20) ** 2 + 0.05),
    (O.PolynomialScheduler(0.2, 10, 0.05, cycle=True), cycles),
    (O.ExponentialScheduler(0.2, 7, 0.5), lambda t: 0.2 * 0.5 ** (t / 7)),
    (O.ExponentialScheduler(0.2, 7, 0.5, True), lambda t: 0.2 * 0.5 ** (t // 7)),
    (O.InverseTimeScheduler(0.2, 7, 0.5), lambda t: 0.2 / (1 + 0.5 * t / 7)),
    (O.InverseTimeScheduler(0.2, 7, 0.5, True), lambda t: 0.2 / (1 + 0.5 * (t // 7))),
    (O.NaturalExpScheduler(0.2, 7, 0.5), lambda t: 0.2 * math.exp(-0.5 * t / 7)),
    (O.NaturalExpScheduler(0.2, 7, 0.5, True), lambda t: 0.2 * math.exp(-0.5 * (t // 7))),
    # a warm-up replaces the first steps and does not shift the others
    (
        O.CosineScheduler(0.2, 20, warmup=O.warmup.linear(5, 0.1)),
        lambda t: 0.2 * (0.1 + 0.9 * t / 5) if t < 5 else AFTER.rate(t),
    ),
    (O.CosineScheduler(0.2, 20, warmup=O.warmup.constant(5, 0.3)), lambda t: 0.2 * 0.3 if t < 5 else AFTER.rate(t)),
    (O.CosineScheduler(0.2, 20, warmup=O.warmup.linear(0, 0.0)), AFTER.rate),
    (
        O.PiecewiseConstantScheduler([2], [0.5, 0.1], warmup=O.warmup.linear(4, 0.0)),  # from its first value
        lambda t: 0.125 * t if t < 4 else 0.1,
    ),
]


@pytest.mark.parametrize("schedule, closed", SCHEDULES, ids=[repr(schedule) for schedule, _ in SCHEDULES])
def test_schedule_follows_its_formula(schedule, closed):
    assert [schedule.rate(t) for t in range(31)] == pytest.approx([closed(t) for t in range(31)], rel=1e-14, abs=1e-16)


class Reader:
    def at_step(self, function):
        return flow.tensor(function(3))


def test_custom_schedule():
    assert O.CustomScheduler(lambda t: 1 / (1 + t)).symbol(Reader()).item() == 0.25
    rate = flow.tensor([0.125])
    found = O.CustomScheduler(rate).symbol(Reader())
    assert (tuple(found.shape), found.item()) == ((), 0.125)


# ---- mistakes ----------------------------------------------------------------------------------------------------

CONSTANT = O.PiecewiseConstantScheduler([], [0.1])
MISTAKES = [
    (lambda: O.SGD(0.25), r"PiecewiseConstantScheduler\(\[\], \[0.25\]\)"),
    (lambda: O.Adam(None), "NoneType"),
    (lambda: O.SGD(CONSTANT, momentum=1.0), "momentum must be at least 0 and below 1, got 1"),
    (lambda: O.SGD(CONSTANT, momentum="x"), "momentum must be .*, got a str"),
    (lambda: O.Adam(CONSTANT, beta1=-0.1), "beta1 must be .*, got -0.1"),
    (lambda: O.LAMB(CONSTANT, beta2=1), "beta2 must be .*, got 1"),
    (lambda: O.AdamW(CONSTANT, epsilon=-1), "epsilon must be .*, got -1"),
    (lambda: O.AdamW(CONSTANT, weight_decay=-0.5), "weight_decay must be .*, got -0.5"),
    (lambda: O.LARS(CONSTANT, epsilon=0), "epsilon must be more than 0, got 0"),
    (lambda: O.RMSProp(CONSTANT, decay_rate=1.5), "decay_rate must be .*, got 1.5"),
    (lambda: O.RMSProp(CONSTANT, epsilon=math.nan), "epsilon must be .*, got nan"),
    (
        lambda: O.SGDW(CONSTANT, weight_decay_includes="a", weight_decay_excludes="b"),
        "includes and .*excludes are both given",
    ),
    (lambda: O.LAMB(CONSTANT, weight_decay_includes=["("]), r"holds '\('"),
    (lambda: O.SGD(CONSTANT, grad_clipping=1.0), r"by_global_norm\(1.0\)"),
    (lambda: O.SGD(CONSTANT, variables="dense1-weight"), r"variables=\['dense1-weight'\]"),
    (lambda: O.SGD(CONSTANT, loss_scale_factor=2.0, loss_scale_policy=O.loss_scale.static_loss_scale(2)), "both given"),
    (lambda: O.SGD(CONSTANT, loss_scale_policy=1024), "loss_scale_policy must be .*, got a int"),
    (lambda: O.SGD(CONSTANT, train_step_lbn="step"), "train_step_lbn"),
    (lambda: O.grad_clipping.by_global_norm(0), "clip_norm must be more than 0, got 0"),
    (lambda: O.loss_scale.static_loss_scale(0), "loss_scale_factor must be .*, got 0"),
    (lambda: O.loss_scale.dynamic_loss_scale(0.5), "initial_loss_scale must be .*, got 0.5"),
    (lambda: O.loss_scale.dynamic_loss_scale(increment_period=0), "increment_period must be at least 1, got 0"),
    (lambda: O.loss_scale.dynamic_loss_scale(multiplier=1), "multiplier must be more than 1, got 1"),
    (lambda: O.CombinedOptimizer([CONSTANT]), r"optimizers\[0\] is a PiecewiseConstantScheduler"),
    (lambda: O.CombinedOptimizer([O.CombinedOptimizer([])]), r"optimizers\[0\] is a CombinedOptimizer"),
    (lambda: O.CombinedOptimizer([O.SGD(CONSTANT, loss_scale_factor=2)]), r"optimizers\[0\] has a loss scale"),
    (lambda: O.PiecewiseConstantScheduler([10], [0.1]), "1 boundaries make 2 pieces, and 1 values"),
    (lambda: O.PiecewiseConstantScheduler([10, 5], [0.1, 0.2, 0.3]), r"boundaries\[1\] is 5"),
    (lambda: O.PiecewiseConstantScheduler([1.5], [0.1, 0.2]), r"boundaries\[0\] must be an integer, got 1.5"),
    (lambda: O.PiecewiseConstantScheduler(0.1, [0.1]), "boundaries must be .*, got a float"),
    (lambda: O.PiecewiseConstantScheduler([], 0.1), "values must be .*, got a float"),
    (lambda: O.PiecewiseConstantScheduler([], ["a"]), r"values\[0\] must be a number, got a str"),
    (lambda: O.PiecewiseScalingScheduler(0.1, [5], [0.1, 0.2]), "1 boundaries, and 2 factors"),
    (lambda: O.CosineScheduler(-0.1, 5), "base_lr must be .*, got -0.1"),
    (lambda: O.CosineScheduler(0.1, 0), "steps must be at least 1, got 0"),
    (lambda: O.CosineScheduler(0.1, 2.5), "steps must be .*, got 2.5"),
    (lambda: O.PolynomialScheduler(0.1, 5, -1), "end_learning_rate must be .*, got -1"),
    (lambda: O.ExponentialScheduler(0.1, 5, -1), "decay_rate must be .*, got -1"),
    (lambda: O.CosineScheduler(0.1, 5, warmup=5), "warmup must be .*, got a int"),
    (lambda: O.warmup.linear(5, 1.0), "start_multiplier must be at least 0 and below 1, got 1"),
    (lambda: O.warmup.constant(5, 0), "multiplier must be more than 0 and below 1, got 0"),
    (lambda: O.warmup.constant(-1, 0.5), "steps must be at least 0, got -1"),
    (lambda: O.CustomScheduler("lr/out"), "'lr/out' is neither a Blob nor a function"),
    (lambda: O.CustomScheduler(flow.zeros(2)), "one floating number"),
]


@pytest.mark.parametrize("make, text", MISTAKES, ids=[text[:30] for _, text in MISTAKES])
def test_invalid_arguments(make, text):
    error = raised_error(make, OptimError, text)
    assert "test_job_optimizers.py" in error.where and str(error).count("Try: ") == 1


def test_unknown_names():
    bench = Bench()
    raised_error(
        bench.step,
        OptimError,
        "'dense1-wieght' is not a variable(.|\n)*such as dense1-weight",
        O.SGD(CONSTANT, variables=["dense1-wieght"]),
        gradients_of(0),
    )
    twice = O.CombinedOptimizer([O.SGD(CONSTANT, variables=["scale"]), O.SGD(CONSTANT)])
    raised_error(
        bench.step, OptimError, r"scale is trained by optimizers\[0\] and by optimizers\[1\]", twice, gradients_of(0)
    )


def test_repr():
    plain = "SGD(lr_scheduler=PiecewiseConstantScheduler(boundaries=[], values=[0.1]), momentum=0.9)"
    assert repr(O.SGD(CONSTANT)) == plain
    clipped = repr(O.Adam(CONSTANT, grad_clipping=O.grad_clipping.by_global_norm(2)))
    assert "do_bias_correction=False" in clipped and "grad_clipping=grad_clipping.by_global_norm(2)" in clipped
    dynamic = O.SGDW(CONSTANT, loss_scale_policy=O.loss_scale.dynamic_loss_scale(8))
    assert "loss_scale_policy=loss_scale.dynamic_loss_scale(8, 2000, 2)" in repr(dynamic)
    schedule = O.PolynomialScheduler(0.1, 10, warmup=O.warmup.linear(3, 0.1))
    assert repr(schedule) == (
        "PolynomialScheduler(base_lr=0.1, steps=10, end_learning_rate=0.0001, power=1.0, cycle=False, "
        "warmup=warmup.linear(steps=3, start_multiplier=0.1))"
    )


def test_flow_optimizer_has_its_names_and_suggests_others():
    shown = set(dir(flow.optimizer))
    assert shown >= {"SGD", "LAMB", "warmup", "grad_clipping", "loss_scale", "PolynomialSchduler"}
    assert "sqrt" not in shown
    with pytest.raises(AttributeError, match="flow.optimizer.RMSProp"):
        flow.optimizer.Adagrad
    with pytest.raises(AttributeError, match="did you mean flow.optimizer.CosineScheduler"):
        flow.optimizer.CosinScheduler


def test_declared_arguments_define_the_signature():
    assert list(inspect.signature(O.SGD).parameters) == [
        "lr_scheduler",
        "loss_scale_factor",
        "momentum",
        "grad_clipping",
        "train_step_lbn",
        "loss_scale_policy",
        "variables",
    ]
    beta1 = inspect.signature(O.AdamW).parameters["beta1"]
    assert (beta1.default, beta1.annotation) == (0.9, "float")
    assert str(inspect.signature(O.CosineScheduler)).startswith(
        "(base_lr: 'float', steps: 'int', alpha: 'float' = 0.0, "
    )
    with pytest.raises(CallError, match=r"(?s)SGD has no argument 'moment'.*Try: did you mean momentum"):
        O.SGD(CONSTANT, moment=0.9)
    with pytest.raises(CallError, match="Adam also needs lr_scheduler"):
        O.Adam()


def test_custom_schedule_has_the_signature_of_its_constructor():
    class Halving(O.LrScheduler):
        def __init__(self, base_lr, every):
            super().__init__(base_lr)
            self.every = every

        def decayed(self, t):
            return self.base_lr * 0.5 ** (t // self.every)

    schedule = Halving(0.5, every=2)
    assert repr(schedule) == "Halving(base_lr=0.5, every=2)"
    assert [schedule.rate(t) for t in range(4)] == [0.5, 0.5, 0.25, 0.25]
    assert str(inspect.signature(Halving)) == "(base_lr, every)"
