"""Random elements of global tensors are those that the first rank draws alone, though other generators differ."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.functions.random import randint_like
from minflow.core.ops import random
from tests.cases import Cases

F, B, S = nn.functional, flow.sbp.broadcast, flow.sbp.split
X = np.random.default_rng(0).normal(size=(5, 7))
IN_PLACE = "uniform_ normal_ exponential_ cauchy_ log_normal_ bernoulli_"
INITIALIZERS = (
    "uniform_ normal_ trunc_normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ eye_"
)
DRAWS = {
    **{name: lambda x, name=name: getattr(x.clone(), name)() for name in IN_PLACE.split()},
    **{f"init.{name}": lambda x, name=name: getattr(nn.init, name)(x.clone()) for name in INITIALIZERS.split()},
    "random_": lambda x: x.clone().random_(0, 9),
    "geometric_": lambda x: x.clone().geometric_(0.3),
    "init.sparse_": lambda x: nn.init.sparse_(x.clone(), 0.3),
    "init.dirac_": lambda x: nn.init.dirac_(x.clone()[None]),
    "rand_like": flow.rand_like,
    "randn_like": flow.randn_like,
    "randint_like": lambda x: flow.randint_like(x, 0, 50),
    "random": lambda x: randint_like(x, 3, 9),
    "normal": lambda x: flow.normal(x, x.abs()),
    "bernoulli": lambda x: flow.bernoulli(x.sigmoid()),
    "poisson": lambda x: flow.poisson(x.abs() * 5),
    "binomial": lambda x: flow.binomial(x * 0 + 9, x.sigmoid()),
    "multinomial": lambda x: flow.multinomial(x.abs() + 0.1, 2),
    "dropout": lambda x: F.dropout(x + 3, 0.4),
    "dropout2d": lambda x: F.dropout2d(x[None, :, :, None], 0.4),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x[None, :, :, None], 0.4),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, hard=True),
}


def drawn(name, x, seed):
    """Two draws in each of two dtypes, after each other."""
    flow.manual_seed(seed)
    return [DRAWS[name](x.to(dtype)) for dtype in (flow.float32, flow.float64) for _ in range(2)]


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_one_rank(name):
    want = [t.numpy() for t in drawn(name, flow.tensor(X), 5)]

    def draw(count, sbp):
        placement = flow.placement("cpu", range(count))
        x = flow.tensor(X).to_global(placement, B).to_global(placement, sbp)
        return [t.numpy() for t in drawn(name, x, 5 + flow.distributed.get_rank())]

    with Cases() as case:
        for count in (2, 3):
            for sbp in (B, S(0), S(1)):
                with case(f"{count} ranks, {sbp}"), flow.virtual_ranks(count) as ranks:
                    for found in ranks.run(draw, count, sbp):
                        for a, b in zip(found, want, strict=True):
                            assert a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("create", [flow.rand, flow.randn], ids=["rand", "randn"])
def test_a_rank_draws_its_part_only(create, monkeypatch):
    """Each rank asks for the bits of its rows, and for no others."""
    flow.manual_seed(5)
    want, sizes = create(8, 6).numpy(), []
    bits = random.bits

    def counted(xp, key, counter, size, start=0):
        sizes.append(size)
        return bits(xp, key, counter, size, start)

    def draw():
        flow.manual_seed(5)
        return create(8, 6, placement=flow.placement("cpu", range(4)), sbp=S(0)).numpy()

    monkeypatch.setattr(random, "bits", counted)
    with flow.virtual_ranks(4) as ranks:
        for found in ranks.run(draw):
            assert np.array_equal(found, want)
    assert sizes == [12] * 4
