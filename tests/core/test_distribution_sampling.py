"""Random numbers with distributions given by tensors: the distributions, reproducibility, mistakes."""

import numpy as np
from scipy import stats

import minflow as flow
from tests.core.programs import Compiled
from tests.core.refusals import refusals

BIG = 20_000
P = flow.tensor([0.1, 0.0, 0.6, 0.3])


def fits(found, chances) -> bool:
    """True if the integers follow these probabilities; rare values are pooled."""
    counts, wanted = np.bincount(found.astype("int64"), minlength=len(chances))[: len(chances)], chances * len(found)
    often = wanted > 10
    rest = [len(found) - counts[often].sum()], [len(found) - wanted[often].sum()]
    if rest[1][0] < 5:
        return stats.chisquare(counts[often], wanted[often] * counts[often].sum() / wanted[often].sum()).pvalue > 1e-4
    return stats.chisquare([*counts[often], *rest[0]], [*wanted[often], *rest[1]]).pvalue > 1e-4


def test_multinomial_indices():
    generator = flow.Generator(1)
    found = flow.multinomial(P, BIG, True, generator=generator).numpy()
    assert fits(found, P.numpy().astype("float64")) and 1 not in found
    rows = flow.multinomial(P.expand(BIG, 4), 3, generator=generator).numpy()
    assert fits(rows[:, 0], P.numpy().astype("float64")) and all(len(set(row)) == 3 for row in rows[:100].tolist())
    assert flow.multinomial(P, 4).tolist()[-1] == 1  # impossible values come last


def test_counts():
    for rate in (0.3, 4.0, 200.0):
        found = flow.poisson(flow.full((BIG,), rate), flow.Generator(2)).numpy()
        assert fits(found, stats.poisson(rate).pmf(np.arange(400)))
    for n, p in ((1.0, 0.3), (20.0, 0.9), (500.0, 0.01)):
        found = flow.binomial(flow.full((BIG,), n), flow.tensor(p), flow.Generator(3)).numpy()
        assert fits(found, stats.binom(int(n), p).pmf(np.arange(int(n) + 1)))
    assert flow.poisson(flow.zeros(3)).tolist() == [0, 0, 0]
    assert flow.binomial(flow.tensor([5.0, 5.0]), flow.tensor([0.0, 1.0])).tolist() == [0, 5]


def test_in_place():
    x, generator = flow.empty(BIG, dtype=flow.float64), flow.Generator(4)
    assert stats.kstest(x.cauchy_(1.0, 2.0, generator=generator).numpy(), stats.cauchy(1, 2).cdf).pvalue > 1e-4
    logs = np.log(x.log_normal_(1.0, 0.5, generator=generator).numpy())
    assert stats.kstest(logs, stats.norm(1, 0.5).cdf).pvalue > 1e-4
    assert fits(x.geometric_(0.4, generator=generator).numpy(), stats.geom(0.4).pmf(np.arange(60)))
    assert flow.empty(4, dtype=flow.int64).geometric_(0.5).min().item() >= 1


def test_draws_are_reproducible_in_graphs():
    def program(p):
        return [p.multinomial(2), flow.poisson(p * 9), flow.binomial(p * 9, p), p.clone().cauchy_()]

    flow.manual_seed(5)
    eager = [x.numpy() for x in program(P)]
    flow.manual_seed(5)
    assert all(np.array_equal(a, b.numpy()) for a, b in zip(eager, program(P)))
    compiled = Compiled(program)
    flow.manual_seed(5)
    for got, want in zip(compiled(P), eager):
        assert got.dtype == want.dtype and got.shape == want.shape


test_mistakes = refusals(
    [
        (lambda: flow.multinomial(P, 5), "cannot draw 5 of 4"),
        (lambda: flow.multinomial(P, 0), "num_samples must be at least 1, got 0"),
        (lambda: flow.multinomial(P - 0.2, 1), r"-0.1 \(at position 0"),
        (lambda: flow.multinomial(P * 0, 1), "row are 0"),
        (lambda: flow.multinomial(P.long(), 1), "must be floating"),
        (lambda: flow.multinomial(P.reshape(1, 1, 4), 1), "3 axes"),
        (lambda: flow.poisson(P - 1), "rate must be at least 0, got -0.9"),
        (lambda: flow.binomial(P, P + 1), "prob must be probabilities from 0 to 1, got 1"),
        (lambda: flow.binomial(-P, P), "count must be at least 0"),
        (lambda: flow.binomial(P.long(), P), "count must be floating"),
        (lambda: flow.binomial(P.double(), P), "count is float64"),
        (lambda: P.clone().geometric_(1.0), "p must be between 0 and 1, got 1.0"),
        (lambda: P.clone().cauchy_(0, 0), "sigma must be above 0, got 0"),
        (lambda: P.clone().log_normal_(0, 0), "std must be above 0, got 0"),
        (lambda: P.long().cauchy_(), "int64"),
    ]
)
