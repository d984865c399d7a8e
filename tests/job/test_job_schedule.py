"""Learning rate schedules of job functions against closed forms, and what they refuse."""

import math

import pytest

import minflow as flow
from minflow.core.base.errors import OptimError
from minflow.job.train import optimizer as O

STEPS = range(31)


def same(schedule, closed):
    assert [schedule.rate(t) for t in STEPS] == pytest.approx([closed(t) for t in STEPS], rel=1e-14, abs=1e-16)


def test_a_boundary_belongs_to_the_piece_before_it():
    schedule = O.PiecewiseConstantScheduler([3, 10], [0.5, 0.1, 0.02])
    rates = [schedule.rate(t) for t in STEPS]
    assert rates == [0.5] * 4 + [0.1] * 7 + [0.02] * 20


def test_constant():
    same(O.PiecewiseConstantScheduler([], [0.1]), lambda t: 0.1)


@pytest.mark.parametrize("scale,later", [([0.5, 0.1], [0.5, 0.1]), (0.25, [0.25, 0.25])])
def test_factors_do_not_multiply_each_other(scale, later):
    same(
        O.PiecewiseScalingScheduler(0.4, [5, 12], scale),
        lambda t: 0.4 * ([1] * 6 + [later[0]] * 7 + [later[1]] * 18)[t]
    )


def test_cosine():
    same(O.CosineScheduler(0.2, 20, 0.1), lambda t: 0.2 * (0.9 * (1 + math.cos(math.pi * min(t / 20, 1))) / 2 + 0.1))
    assert O.CosineScheduler(0.2, 20).rate(20) == pytest.approx(0, abs=1e-16)


def test_linear_cosine():
    def closed(t, periods=0.5, alpha=0.0, beta=0.001):
        u = min(t / 20, 1)
        return 0.2 * ((alpha + 1 - u) * (1 + math.cos(2 * math.pi * periods * u)) / 2 + beta)

    same(O.LinearCosineScheduler(0.2, 20), closed)
    same(O.LinearCosineScheduler(0.2, 20, 2.0, 0.3, 0.05), lambda t: closed(t, 2.0, 0.3, 0.05))


def test_polynomial():
    same(O.PolynomialScheduler(0.2, 20), lambda t: (0.2 - 0.0001) * (1 - min(t, 20) / 20) + 0.0001)
    same(O.PolynomialScheduler(0.2, 20, 0.05, 2.0), lambda t: 0.15 * (1 - min(t, 20) / 20) ** 2 + 0.05)
    assert O.PolynomialSchduler(0.2, 20).rate(7) == O.PolynomialScheduler(0.2, 20).rate(7)


def test_polynomial_in_cycles():
    """Cycle k = ceil(t / steps) goes from the rate at its start straight towards the end at k * steps."""
    lengths = [10] * 11 + [20] * 10 + [30] * 10
    closed = [0.15 * (1 - max(t, 1) / lengths[t]) + 0.05 for t in STEPS]
    same(O.PolynomialScheduler(0.2, 10, 0.05, cycle=True), lambda t: closed[t])


@pytest.mark.parametrize("staircase", [False, True])
def test_endless_decays(staircase):
    def passed(t):
        return t // 7 if staircase else t / 7

    same(O.ExponentialScheduler(0.2, 7, 0.5, staircase), lambda t: 0.2 * 0.5 ** passed(t))
    same(O.InverseTimeScheduler(0.2, 7, 0.5, staircase), lambda t: 0.2 / (1 + 0.5 * passed(t)))
    same(O.NaturalExpScheduler(0.2, 7, 0.5, staircase), lambda t: 0.2 * math.exp(-0.5 * passed(t)))


def test_warmup_replaces_and_does_not_shift():
    after = O.CosineScheduler(0.2, 20)
    slow = O.CosineScheduler(0.2, 20, warmup=O.warmup.linear(5, 0.1))
    same(slow, lambda t: 0.2 * (0.1 + 0.9 * t / 5) if t < 5 else after.rate(t))
    low = O.CosineScheduler(0.2, 20, warmup=O.warmup.constant(5, 0.3))
    same(low, lambda t: 0.2 * 0.3 if t < 5 else after.rate(t))
    assert O.CosineScheduler(0.2, 20, warmup=O.warmup.linear(0, 0.0)).rate(0) == 0.2


def test_warmup_of_a_piecewise_schedule_starts_from_its_first_value():
    schedule = O.PiecewiseConstantScheduler([2], [0.5, 0.1], warmup=O.warmup.linear(4, 0.0))
    assert [schedule.rate(t) for t in range(6)] == pytest.approx([0, 0.125, 0.25, 0.375, 0.1, 0.1])


class Reader:
    def at_step(self, function):
        return flow.tensor(function(3))


def test_custom():
    assert O.CustomScheduler(lambda t: 1 / (1 + t)).symbol(Reader()).item() == 0.25
    rate = flow.tensor([0.125])
    found = O.CustomScheduler(rate).symbol(Reader())
    assert (tuple(found.shape), found.item()) == ((), 0.125)


MISTAKES = [
    (lambda: O.PiecewiseConstantScheduler([10], [0.1]), "1 boundaries make 2 pieces, and 1 values"),
    (lambda: O.PiecewiseConstantScheduler([10, 5], [0.1, 0.2, 0.3]), r"boundaries\[1\] is 5"),
    (lambda: O.PiecewiseConstantScheduler([1.5], [0.1, 0.2]), r"boundaries\[0\] is 1.5"),
    (lambda: O.PiecewiseConstantScheduler(0.1, [0.1]), "boundaries is a float"),
    (lambda: O.PiecewiseConstantScheduler([], 0.1), "values is a float"),
    (lambda: O.PiecewiseConstantScheduler([], ["a"]), r"values\[0\] is a str"),
    (lambda: O.PiecewiseScalingScheduler(0.1, [5], [0.1, 0.2]), "1 boundaries, and 2 factors"),
    (lambda: O.CosineScheduler(-0.1, 5), "base_lr is -0.1"),
    (lambda: O.CosineScheduler(0.1, 0), "steps is 0, and must be at least 1"),
    (lambda: O.CosineScheduler(0.1, 2.5), "steps is 2.5"),
    (lambda: O.PolynomialScheduler(0.1, 5, -1), "end_learning_rate is -1"),
    (lambda: O.ExponentialScheduler(0.1, 5, -1), "decay_rate is -1"),
    (lambda: O.CosineScheduler(0.1, 5, warmup=5), "warmup is a int"),
    (lambda: O.warmup.linear(5, 1.0), "start_multiplier is 1, and must be at least 0 and below 1"),
    (lambda: O.warmup.constant(5, 0), "multiplier is 0, and must be more than 0 and below 1"),
    (lambda: O.warmup.constant(-1, 0.5), "steps is -1, and must be at least 0"),
    (lambda: O.CustomScheduler("lr/out"), "'lr/out' is neither a Blob nor a function"),
    (lambda: O.CustomScheduler(flow.zeros(2)), "one floating number"),
]


@pytest.mark.parametrize("make,text", MISTAKES, ids=[text[:30] for _, text in MISTAKES])
def test_refused(make, text):
    with pytest.raises(OptimError, match=text) as caught:
        make()
    assert "test_job_schedule.py" in caught.value.where and str(caught.value).count("Try: ") == 1


def test_repr():
    schedule = O.PolynomialScheduler(0.1, 10, warmup=O.warmup.linear(3, 0.1))
    assert repr(schedule) == (
        "PolynomialScheduler(base_lr=0.1, steps=10, end_learning_rate=0.0001, power=1.0, cycle=False, "
        "warmup=warmup.linear(steps=3, start_multiplier=0.1))"
    )
