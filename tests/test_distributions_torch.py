"""Distributions, transforms and constraints against PyTorch: every quantity that PyTorch knows. Skipped without it."""

import numpy as np
import pytest

import minflow as flow
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch


def wide(lib, x):
    return lib.tensor(x, dtype=lib.float64)


def mixture(lib):
    weights, each = (
        wide(lib, [[0.3, 0.7], [0.5, 0.5]]),
        lib.distributions.Normal(wide(lib, [[0.0, 1.0], [2.0, 3.0]]), 1),
    )
    return lib.distributions.MixtureSameFamily(lib.distributions.Categorical(weights), each)


def transformed(lib):
    d = lib.distributions
    steps = [d.SigmoidTransform(), d.AffineTransform(wide(lib, 0.0), wide(lib, 2.0)), d.PowerTransform(wide(lib, 2.0))]
    return d.TransformedDistribution(d.Normal(wide(lib, [0.0, 1.0]), wide(lib, [1.0, 2.0])), steps)


def affine_vectors(lib):
    d = lib.distributions
    base = d.MultivariateNormal(wide(lib, [0.2, 0.3, 0.1]), lib.eye(3, dtype=lib.float64))
    return d.TransformedDistribution(base, d.AffineTransform(wide(lib, 1.0), wide(lib, [2.0, 3.0, 4.0]), event_dim=1))


def made(name, *parameters):
    return lambda lib: getattr(lib.distributions, name)(*[wide(lib, x) for x in parameters])


A, B = [0.4, 2.5], [1.5, 2.0]
SCALARS = {
    **{name: made(name, A, B) for name in ("Gamma", "InverseGamma", "Beta", "FisherSnedecor", "Weibull", "VonMises")},
    "Chi2": made("Chi2", A),
    "StudentT": made("StudentT", B, A, B),
    "HalfCauchy": made("HalfCauchy", B),
    "Pareto": made("Pareto", [0.1, 0.2], B),
    "GeneralizedPareto": made("GeneralizedPareto", [0.1, 0.2], B, [0.2, -0.1]),
    "Kumaraswamy": made("Kumaraswamy", B, B),
    "ContinuousBernoulli": made("ContinuousBernoulli", [0.3, 0.5]),
    "RelaxedBernoulli": made("RelaxedBernoulli", 0.7, [0.3, 0.5]),
    "NegativeBinomial": made("NegativeBinomial", [3.0, 5.0], [0.3, 0.5]),
    "MixtureSameFamily": mixture,
    "TransformedDistribution": transformed,
}
VECTORS = {
    "Dirichlet": made("Dirichlet", [[0.3, 1.2, 2.0], [1.5, 2.0, 3.0]]),
    "RelaxedOneHotCategorical": made("RelaxedOneHotCategorical", 0.7, [0.2, 0.3, 0.5]),
    "OneHotCategoricalStraightThrough": made("OneHotCategoricalStraightThrough", [0.2, 0.3, 0.5]),
    "LogisticNormal": made("LogisticNormal", [0.2, 0.3], [1.0, 2.0]),
    "LowRankMultivariateNormal": made(
        "LowRankMultivariateNormal", [0.2, 0.3, 1.0], [[1.0, 0.5], [2.0, 0.0], [0.3, 0.2]], [1.0, 0.5, 2.0]
    ),
    "affine": affine_vectors,
}
MATRIX = [[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]
FACTOR = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, 0.6, 0.64]]
MATRICES = {
    "Wishart": (made("Wishart", [3.5, 7.0], MATRIX), MATRIX),
    "LKJCholesky": (lambda lib: lib.distributions.LKJCholesky(3, wide(lib, A)), FACTOR),
}
OURS_ALONE = {"Kumaraswamy mode"}  # PyTorch's formula takes the logarithm of a negative number: NaN


def compare(what, ours, theirs):
    """Both equal, or both not available."""
    try:
        expected = np.asarray(theirs().detach())
    except (NotImplementedError, AttributeError, RuntimeError):
        return
    if what in OURS_ALONE:
        assert np.isnan(expected).all()
        return
    np.testing.assert_allclose(ours().numpy(), expected, rtol=1e-6, atol=1e-9, err_msg=what)


@pytest.mark.parametrize("name", SCALARS | VECTORS | MATRICES)
def test_quantities(name):
    make, matrix = MATRICES.get(name, (({**SCALARS, **VECTORS}).get(name), None))
    ours, theirs = make(flow), make(torch)
    for quantity in ("mean", "variance", "stddev", "mode"):
        compare(f"{name} {quantity}", lambda q=quantity: getattr(ours, q), lambda q=quantity: getattr(theirs, q))
    compare(f"{name} entropy", ours.entropy, theirs.entropy)
    value = {"NegativeBinomial": [2.0, 1.0], "OneHotCategoricalStraightThrough": [0.0, 1.0, 0.0]}.get(name)
    value = value or matrix or ([0.3, 0.7] if name in SCALARS else [0.2, 0.3, 0.5])
    for method in ("log_prob", "cdf", "icdf"):
        compare(
            f"{name} {method}",
            lambda m=method: getattr(ours, m)(wide(flow, value)),
            lambda m=method: getattr(theirs, m)(wide(torch, value)),
        )
    assert (tuple(ours.batch_shape), tuple(ours.event_shape)) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    wider = (3, *ours.batch_shape)
    compare(
        f"{name} expand",
        lambda: ours.expand(wider).log_prob(wide(flow, value)),
        lambda: theirs.expand(wider).log_prob(wide(torch, value)),
    )


@pytest.mark.parametrize("name", [name for name in SCALARS | VECTORS if name != "NegativeBinomial"])
def test_means_of_samples(name):
    ours, theirs = (({**SCALARS, **VECTORS})[name](lib) for lib in (flow, torch))
    flow.manual_seed(0)
    torch.manual_seed(0)
    values = wide(flow, theirs.sample((4000,)).tolist()), ours.sample((4000,))
    squeezed = [x.atan().mean(0).numpy() for x in values]  # bounded, also for heavy tails
    np.testing.assert_allclose(squeezed[1], squeezed[0], atol=0.08)


@pytest.mark.parametrize("kind", ("biject_to", "transform_to"))
@pytest.mark.parametrize(
    "name", "real positive nonnegative unit_interval simplex lower_cholesky positive_definite".split()
)
def test_transforms_to_constraints(kind, name):
    x = [[0.3, -0.4], [0.1, 0.6]]

    def mapped(lib):
        transform = getattr(lib.distributions, kind)(getattr(lib.distributions.constraints, name))
        y = transform(wide(lib, x))
        assert getattr(lib.distributions.constraints, name).check(y).all()
        return y, transform.inv(y), transform.log_abs_det_jacobian(wide(lib, x), y)

    for part in range(3):
        compare(f"{kind} {name} {part}", lambda n=part: mapped(flow)[n], lambda n=part: mapped(torch)[n])


@pytest.mark.parametrize(
    "names", ["Gamma Gamma", "Beta Beta", "Pareto Pareto", "Normal Laplace", "Laplace Normal", "Uniform Normal",
              "Exponential Gamma", "Gamma Exponential", "Dirichlet Dirichlet"]
)  # fmt: skip
def test_divergences(names):
    def divergence(lib):
        d = lib.distributions
        parameters = {"Exponential": [B], "Dirichlet": [B]}
        p, q = (
            getattr(d, name)(*[wide(lib, x) for x in parameters.get(name, [first, B])])
            for name, first in zip(names.split(), ([0.3, 0.7], [0.2, 0.1]))
        )
        return d.kl_divergence(p, q)

    compare(names, lambda: divergence(flow), lambda: divergence(torch))


CALLS = """
Normal(0.5, 2.0); Normal(loc=0.5, scale=L.ones(3)); Normal(0.5, scale=2.0, validate_args=False);
Normal(0.0, -1.0, False);
StudentT(3.0); StudentT(L.ones(2), scale=2.0); Gamma(1.0, rate=L.ones(2)); Uniform(high=2.0, low=0.0);
Poisson(L.ones(4)); Chi2(L.ones(1)).expand((3,)); LogNormal(0.0, L.ones(1)).expand((2,));
Binomial(L.tensor([3.0]), L.tensor([0.5])).expand((2,)); Gumbel(0.0, 1.0).expand((2, 1));
NegativeBinomial(L.tensor([3.0]), logits=L.tensor([0.5])).expand((2,)); Normal(0.0); Normal(0.0, 1.0, True, 2);
Normal(0.0, sigma=1.0); Normal(0.0, 1.0, loc=0.0); Gamma(1.0, -1.0); Chi2()
"""


@pytest.mark.parametrize("text", [call.strip() for call in CALLS.split(";")])
def test_constructors(text):
    """One rule binds the parameters of all univariate distributions."""

    def described(lib, refused):
        try:
            found = eval(f"L.distributions.{text}", {"L": lib})
        except refused:
            return "refused"
        return tuple(found.batch_shape), found.mean

    ours, theirs = described(flow, (TypeError, flow.OutOfRangeError)), described(torch, (TypeError, ValueError))
    assert ours[0] == theirs[0]  # the batch shape, or the "r" of refused
    if theirs != "refused":
        np.testing.assert_allclose(ours[1].numpy(), theirs[1].numpy(), rtol=1e-6)
