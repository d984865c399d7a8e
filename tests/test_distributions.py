"""Distributions: densities against SciPy, samples against moments, gradients through samples, errors, a graph."""

import math

import numpy as np
import pytest
from scipy import stats

import minflow as flow
from minflow import distributions as D, nn
from minflow.distributions.gamma_family import gamma_slope

WIDE = dict(dtype=flow.float64)
A, B = flow.tensor([0.5, 1.5], **WIDE), flow.tensor([1.0, 2.0], **WIDE)
P = flow.tensor([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]], **WIDE)
TRIL = flow.tensor([[1.5, 0.0], [0.5, 0.8]], **WIDE)

CONTINUOUS = {  # ours, SciPy's, points
    "Normal": (D.Normal(A, B), stats.norm(A.numpy(), B.numpy()), [-1.0, 0.3]),
    "LogNormal": (D.LogNormal(A, B), stats.lognorm(B.numpy(), scale=np.exp(A.numpy())), [0.3, 2.0]),
    "HalfNormal": (D.HalfNormal(B), stats.halfnorm(scale=B.numpy()), [0.0, 2.0]),
    "Uniform": (D.Uniform(A, A + B), stats.uniform(A.numpy(), B.numpy()), [0.75, 3.0]),
    "Exponential": (D.Exponential(B), stats.expon(scale=1 / B.numpy()), [0.0, 2.0]),
    "Laplace": (D.Laplace(A, B), stats.laplace(A.numpy(), B.numpy()), [-1.0, 1.5]),
    "Gumbel": (D.Gumbel(A, B), stats.gumbel_r(A.numpy(), B.numpy()), [-1.0, 2.0]),
    "Cauchy": (D.Cauchy(A, B), stats.cauchy(A.numpy(), B.numpy()), [-1.0, 2.0]),
    "HalfCauchy": (D.HalfCauchy(B), stats.halfcauchy(scale=B.numpy()), [0.5, 2.0]),
    "Pareto": (D.Pareto(A, B + 2), stats.pareto(B.numpy() + 2, scale=A.numpy()), [1.6, 3.0]),
    "GeneralizedPareto": (
        D.GeneralizedPareto(A, B, A / 5),
        stats.genpareto(A.numpy() / 5, A.numpy(), B.numpy()),
        [2, 3],
    ),
    "Weibull": (D.Weibull(A, B), stats.weibull_min(B.numpy(), scale=A.numpy()), [0.5, 2.0]),
}
WITHOUT_ICDF = {  # ours, SciPy's, points
    "Gamma": (D.Gamma(A, B), stats.gamma(A.numpy(), scale=1 / B.numpy()), [0.3, 2.0]),
    "Chi2": (D.Chi2(A), stats.chi2(A.numpy()), [0.3, 2.0]),
    "InverseGamma": (D.InverseGamma(A + 2, B), stats.invgamma(A.numpy() + 2, scale=B.numpy()), [0.3, 2.0]),
}
WITHOUT_CDF = {
    "Beta": (D.Beta(A, B), stats.beta(A.numpy(), B.numpy()), [0.3, 0.8]),
    "StudentT": (D.StudentT(A + 3, A, B), stats.t(A.numpy() + 3, A.numpy(), B.numpy()), [-1.0, 2.0]),
    "FisherSnedecor": (D.FisherSnedecor(A, B + 4), stats.f(A.numpy(), B.numpy() + 4), [0.3, 2.0]),
    "VonMises": (D.VonMises(0 * A, B), stats.vonmises(B.numpy()), [-1.0, 2.0]),
}
DISCRETE = {
    "Bernoulli": (D.Bernoulli(A / 2), stats.bernoulli(A.numpy() / 2), [0.0, 1.0]),
    "Geometric": (D.Geometric(A / 2), stats.geom(A.numpy() / 2, loc=-1), [0.0, 3.0]),
    "Binomial": (D.Binomial(5, A / 2), stats.binom(5, A.numpy() / 2), [0.0, 3.0]),
    "Poisson": (D.Poisson(B), stats.poisson(B.numpy()), [0.0, 3.0]),
    "NegativeBinomial": (D.NegativeBinomial(B + 1, A / 2), stats.nbinom(B.numpy() + 1, 1 - A.numpy() / 2), [0.0, 3.0]),
}


KNOWN = CONTINUOUS | WITHOUT_ICDF | WITHOUT_CDF | DISCRETE


@pytest.mark.parametrize("name", KNOWN)
def test_densities_match_scipy(name):
    ours, theirs, places = KNOWN[name]
    x = flow.tensor(places, **WIDE)
    if name not in ("Cauchy", "HalfCauchy", "VonMises"):
        np.testing.assert_allclose(ours.mean.numpy(), theirs.mean(), rtol=1e-7)
        np.testing.assert_allclose(ours.variance.numpy(), theirs.var(), rtol=1e-7)
        np.testing.assert_allclose(ours.stddev.numpy(), theirs.std(), rtol=1e-7)
    if name in DISCRETE:
        np.testing.assert_allclose(ours.log_prob(x).numpy(), theirs.logpmf(places), rtol=1e-7)
        return
    np.testing.assert_allclose(ours.log_prob(x).numpy(), theirs.logpdf(places), rtol=1e-7)
    if name not in ("FisherSnedecor", "VonMises"):
        np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy(), rtol=1e-7)
    if name not in WITHOUT_CDF:
        np.testing.assert_allclose(ours.cdf(x).numpy(), theirs.cdf(places), rtol=1e-7, atol=1e-12)
    if name not in WITHOUT_CDF | WITHOUT_ICDF:
        np.testing.assert_allclose(ours.icdf(flow.tensor(0.3, **WIDE)).numpy(), theirs.ppf(0.3), rtol=1e-7)


@pytest.mark.parametrize("name", KNOWN)
def test_samples_follow_the_distribution(name):
    """Kolmogorov-Smirnov test for continuous distributions, means for counts; the seed is fixed."""
    ours, theirs, _ = KNOWN[name]
    drawn = ours.sample((4000,)).numpy()
    assert drawn.shape == (4000, 2) and not ours.sample().requires_grad
    for k in range(2):
        if name not in DISCRETE:
            assert stats.kstest(drawn[:, k], lambda x, k=k: theirs.cdf(x[:, None])[:, k]).pvalue > 1e-3
        else:
            assert abs(drawn[:, k].mean() - theirs.mean()[k]) < 5 * theirs.std()[k] / math.sqrt(4000)


def test_categories():
    ours = D.Categorical(P)
    np.testing.assert_allclose(ours.log_prob(flow.tensor([2, 0])).numpy(), np.log([0.5, 0.6]))
    np.testing.assert_allclose(ours.entropy().numpy(), [stats.entropy(row) for row in P.numpy()])
    np.testing.assert_allclose(D.Categorical(logits=P.log() + 7).probs.numpy(), P.numpy())
    drawn = D.OneHotCategorical(P).sample((4000,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), P.numpy(), atol=0.04)
    many = D.Multinomial(6, P).sample((3,))
    assert many.shape == (3, 2, 3) and (many.sum(-1) == 6).all()
    np.testing.assert_allclose(
        D.Multinomial(6, P).log_prob(flow.tensor([1.0, 2.0, 3.0])).numpy(),
        [stats.multinomial.logpmf([1, 2, 3], 6, row) for row in P.numpy()],
    )
    assert ours.sample().dtype is flow.int64 and ours.enumerate_support().shape == (3, 2)


def test_vectors():
    covariance = TRIL @ TRIL.mT
    for ours in (
        D.MultivariateNormal(A, covariance),
        D.MultivariateNormal(A, scale_tril=TRIL),
        D.MultivariateNormal(A, precision_matrix=flow.linalg.inv(covariance)),
    ):
        theirs = stats.multivariate_normal(A.numpy(), covariance.numpy())
        np.testing.assert_allclose(ours.log_prob(B).item(), theirs.logpdf(B.numpy()), rtol=1e-9)
        np.testing.assert_allclose(ours.entropy().item(), theirs.entropy(), rtol=1e-9)
        np.testing.assert_allclose(ours.covariance_matrix.numpy(), covariance.numpy(), rtol=1e-9)
    np.testing.assert_allclose(np.cov(ours.sample((4000,)).numpy().T), covariance.numpy(), atol=0.15)


def test_covariance_matrices():
    covariance, value = TRIL @ TRIL.mT, flow.tensor([[2.0, 0.3], [0.3, 1.0]], **WIDE)
    ours, theirs = D.Wishart(4.5, covariance), stats.wishart(4.5, covariance.numpy())
    np.testing.assert_allclose(ours.log_prob(value).item(), theirs.logpdf(value.numpy()), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy().item(), theirs.entropy(), rtol=1e-9)
    np.testing.assert_allclose(ours.mode.numpy(), theirs.mode(), rtol=1e-9)
    flow.manual_seed(0)
    samples = ours.sample((8000,))
    np.testing.assert_allclose(samples.mean(0).numpy(), theirs.mean(), atol=0.2)
    np.testing.assert_allclose(samples.var(0).numpy(), theirs.var(), rtol=0.1)
    tril = TRIL.clone().requires_grad_()
    D.Wishart(4.5, scale_tril=tril).rsample().sum().backward()
    assert (tril.grad.diagonal() != 0).all()


@pytest.mark.parametrize("dim, concentration", [(2, 1.0), (3, 0.7), (4, 3.0)])
def test_correlation_matrices(dim, concentration):
    """Each correlation r has (r + 1) / 2 of Beta(a, a) with a = concentration + (dim - 2) / 2."""
    ours = D.LKJCholesky(dim, flow.tensor(concentration, **WIDE))
    flow.manual_seed(0)
    samples = ours.sample((20000,))
    correlations = (samples @ samples.mT).numpy()
    assert ours.support.check(samples).all() and np.isfinite(ours.log_prob(samples).numpy()).all()
    variance = 1 / (2 * concentration + dim - 1)
    for i, j in zip(*np.tril_indices(dim, -1)):
        assert abs(correlations[:, i, j].mean()) < 0.02
        assert correlations[:, i, j].var() == pytest.approx(variance, rel=0.06)


PAIRS = [
    (D.Normal(A, B), D.Normal(B, A)),
    (D.LogNormal(A, B), D.LogNormal(B, A)),
    (D.HalfNormal(A), D.HalfNormal(B)),
    (D.Uniform(A, B + 1), D.Uniform(A - 1, B + 2)),
    (D.Exponential(A), D.Exponential(B)),
    (D.Laplace(A, B), D.Laplace(B, A)),
    (D.Gumbel(A, B), D.Gumbel(B, B)),
    (D.Bernoulli(A / 2), D.Bernoulli(A / 3)),
    (D.Binomial(4, A / 2), D.Binomial(4, A / 3)),
    (D.Geometric(A / 2), D.Geometric(A / 3)),
    (D.Poisson(A), D.Poisson(B)),
    (D.Categorical(P), D.Categorical(P.flip(0))),
    (D.MultivariateNormal(A, scale_tril=TRIL), D.MultivariateNormal(B, scale_tril=TRIL + flow.eye(2))),
    (D.Independent(D.Normal(A, B), 1), D.Independent(D.Normal(B, B), 1)),
]


@pytest.mark.parametrize("p, q", PAIRS, ids=lambda d: type(d).__name__)
def test_kl_divergence_is_mean_log_ratio(p, q):
    x = p.sample((20000,))
    difference = (p.log_prob(x) - q.log_prob(x)).numpy()
    error = difference.std(0) / math.sqrt(20000)
    assert (np.abs(difference.mean(0) - D.kl_divergence(p, q).numpy()) <= 5 * error + 1e-9).all()
    np.testing.assert_allclose(D.kl_divergence(p, p).numpy(), 0, atol=1e-9)


def test_gradients_reach_the_parameters():
    loc, scale = (flow.tensor([x], requires_grad=True) for x in (0.5, 2.0))
    x = D.Normal(loc, scale).rsample((3,))
    x.sum().backward()
    np.testing.assert_allclose(loc.grad.item(), 3)
    np.testing.assert_allclose(scale.grad.item(), ((x - loc) / scale).sum().item(), rtol=1e-5)
    logits = flow.zeros(3, requires_grad=True)
    D.Categorical(logits=logits).log_prob(flow.tensor(1)).backward()
    np.testing.assert_allclose(logits.grad.numpy(), [-1 / 3, 2 / 3, -1 / 3], rtol=1e-6)


@pytest.mark.parametrize(
    "call, kind, texts",
    [
        (lambda: D.Normal(0.0, -1.0), flow.OutOfRangeError, ["Normal: scale must be > 0, one is -1", "validate_args"]),
        (lambda: D.Bernoulli(flow.tensor([0.5, 1.5])), flow.OutOfRangeError, ["probs must be from 0 to 1, one is 1.5"]),
        (lambda: D.Bernoulli(), flow.OutOfRangeError, ["neither of probs and logits"]),
        (lambda: D.Exponential(2.0).log_prob(-1.0), flow.OutOfRangeError, ["value must be >= 0, one is -1"]),
        (
            lambda: D.Categorical(P).log_prob(flow.tensor([3, 0])),
            flow.OutOfRangeError,
            ["a whole number from 0 to 2, one is 3"],
        ),
        (lambda: D.Normal(A, B).log_prob(flow.ones(3)), flow.ShapeError, ["[3]", "[2]"]),
        (lambda: D.Bernoulli(0.5).rsample(), flow.GradError, ["Bernoulli: samples do not pass gradients"]),
        (lambda: D.Poisson(1.0).entropy(), flow.OutOfRangeError, ["entropy is not known in closed form"]),
        (lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0)), flow.ShapeError, ["Normal and Poisson"]),
        # as in PyTorch, for programs that then take an average over samples
        (lambda: D.Bernoulli(0.5).rsample(), NotImplementedError, ["do not pass gradients"]),
        (lambda: D.Poisson(1.0).entropy(), NotImplementedError, ["closed form"]),
        (lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0)), NotImplementedError, ["no formula"]),
        # not the results of Categorical
        (lambda: D.Multinomial(5, P).mode, NotImplementedError, ["mode is not known"]),
        (lambda: D.Multinomial(5, P).enumerate_support(), NotImplementedError, ["a list of all values"]),
        (
            lambda: D.kl_divergence(*[D.RelaxedOneHotCategorical(0.5, P)] * 2),
            NotImplementedError,
            ["no formula for ExpRelaxedCategorical"],
        ),
        (lambda: D.kl_divergence(*[D.Multinomial(5, P)] * 2), NotImplementedError, ["no formula for Multinomial"]),
        (lambda: D.MultivariateNormal(A), flow.ShapeError, ["no matrix"]),
        (lambda: D.MultivariateNormal(A, flow.eye(3)), flow.ShapeError, ["loc of shape [2] and a matrix of [3, 3]"]),
        (
            lambda: D.Wishart(3.0, flow.ones(2, 3)),
            flow.ShapeError,
            ["Wishart: a matrix of [2, 3]", "matrix (..., n, n)"],
        ),
        (lambda: D.Wishart(0.5, TRIL), flow.OutOfRangeError, ["df must be greater than 1", "one is 0.5"]),
        (lambda: D.LKJCholesky(1), flow.ShapeError, ["size 1", "dim=2"]),
        (lambda: D.LKJCholesky(2.5), flow.ShapeError, ["size 2.5", "dim=2"]),
        (lambda: D.Independent(D.Normal(A, B), 2), flow.ShapeError, ["2 axes of batch shape [2]"]),
    ],
    ids=lambda x: "",
)
def test_mistakes(call, kind, texts):
    with pytest.raises(kind) as caught:
        call()
    assert all(text in str(caught.value) for text in texts), str(caught.value)


def test_validation_can_be_disabled():
    assert math.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(0.0).item())


def test_custom_distribution():
    class Steady(D.Distribution):
        def log_prob(self, value):
            return flow.zeros_like(value)

    D.register_kl(Steady, Steady)(lambda p, q: "mine")
    assert D.kl_divergence(Steady(), Steady()) == "mine"


def test_in_a_graph():
    """Checks that read values are skipped, and samples come from the generator."""

    class Policy(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def build(self, x):
            policy = D.Categorical(logits=self.model(x))
            noise = D.Normal(flow.zeros(4), 0.1).rsample()
            return policy.log_prob(flow.tensor([1, 2, 0, 1])), policy.entropy() + noise

    model, x = nn.Linear(3, 3), flow.randn(4, 3)
    flow.manual_seed(3)
    found, _ = Policy(model)(x)
    np.testing.assert_allclose(
        found.numpy(), D.Categorical(logits=model(x)).log_prob(flow.tensor([1, 2, 0, 1])).detach().numpy(), rtol=1e-6
    )


def test_expand_and_repr():
    d = D.Normal(0.0, flow.tensor([1.0, 2.0])).expand((3, 2))
    assert d.batch_shape == (3, 2) and d.sample((4,)).shape == (4, 3, 2) and d.loc.shape == (3, 2)
    assert repr(D.Normal(0.0, 1.0)).startswith("Normal(loc: ") and "scale: " in repr(d)
    assert D.Categorical(P).expand((4, 2)).sample().shape == (4, 2)


ON_DEVICE = {
    "Normal": lambda a, b: D.Normal(a, 1.0),
    "Uniform": lambda a, b: D.Uniform(a, 3),
    "Exponential": lambda a, b: D.Exponential(b),
    "Bernoulli": lambda a, b: D.Bernoulli(a / 2),
    "Binomial": lambda a, b: D.Binomial(5, a / 2),
    "Poisson": lambda a, b: D.Poisson(b),
    "OneHotCategorical": lambda a, b: D.OneHotCategorical(b),
    "MultivariateNormal": lambda a, b: D.MultivariateNormal(a, scale_tril=flow.diag(b)),
}


@pytest.mark.parametrize("name", ON_DEVICE)
def test_samples_and_densities_are_on_the_device_of_the_parameters(name, cuda):
    ours, theirs = [ON_DEVICE[name](A.to(device), B.to(device)) for device in (cuda, "cpu")]
    flow.manual_seed(0)
    mine = ours.sample((3,))
    flow.manual_seed(0)
    others = theirs.sample((3,))
    densities = ours.log_prob(mine)
    assert mine.device == densities.device == ours.mean.device == cuda
    np.testing.assert_allclose(mine.cpu().numpy(), others.numpy(), rtol=1e-6)
    np.testing.assert_allclose(densities.cpu().numpy(), theirs.log_prob(others).numpy(), rtol=1e-5)


def test_gradients_of_gamma_samples():
    """The derivative at a fixed probability, against SciPy's inverse cdf; through samples, that of the mean."""
    a = np.array([0.3, 1.5, 8.0])
    x = stats.gamma.ppf(0.3, a)
    step = 1e-5
    want = (stats.gamma.ppf(0.3, a + step) - stats.gamma.ppf(0.3, a - step)) / (2 * step)
    np.testing.assert_allclose(gamma_slope(flow.tensor(a), flow.tensor(x)).numpy(), want, rtol=1e-6)
    concentration = flow.tensor([0.3, 2.5], dtype=flow.float64, requires_grad=True)
    flow.manual_seed(1)
    D.Gamma(concentration, 2.0).rsample((20_000,)).mean(0).sum().backward()
    np.testing.assert_allclose(concentration.grad.numpy(), [0.5, 0.5], atol=0.02)


def test_small_concentrations_stay_positive():
    flow.manual_seed(0)
    drawn = D.Gamma(flow.tensor(1e-3), 1.0).sample((1000,))
    assert bool((drawn > 0).all()) and bool(D.Dirichlet(flow.full((3,), 1e-3)).sample((1000,)).sum(-1).isfinite().all())


def test_mixture_and_transform_in_a_graph():
    class Sampled(nn.Graph):
        def build(self, loc):
            parts = D.Independent(D.Normal(loc, 1.0), 1)
            mixture = D.MixtureSameFamily(D.Categorical(flow.ones(3)), parts)
            squashed = D.TransformedDistribution(D.Normal(loc, 1.0), D.TanhTransform())
            drawn = D.Beta(flow.full((4,), 2.0), 3.0).rsample()
            return mixture.log_prob(loc[0]), squashed.log_prob(loc.sigmoid()), drawn

    loc = flow.arange(6.0).reshape(3, 2)
    flow.manual_seed(3)
    graph = Sampled()(loc)
    flow.manual_seed(3)
    for ours, eager in zip(graph, Sampled().build(loc)):
        np.testing.assert_array_equal(ours.numpy(), eager.numpy())


class Triangular(D.Distribution):
    """A distribution as users of PyTorch write it."""

    arg_constraints = {"peak": D.constraints.unit_interval}
    support = D.constraints.unit_interval

    def __init__(self, peak, validate_args=None):
        self.peak = peak
        super().__init__(peak.shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        u = flow.rand(self._extended_shape(sample_shape))
        return flow.where(u < self.peak, (u * self.peak).sqrt(), 1 - ((1 - u) * (1 - self.peak)).sqrt())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (2 * flow.where(value < self.peak, value / self.peak, (1 - value) / (1 - self.peak))).log()


def test_own_distribution():
    flow.manual_seed(0)
    own = Triangular(flow.tensor([0.2, 0.7]))
    assert own.sample((5,)).shape == (5, 2) and repr(own).startswith("Triangular(peak: ")
    np.testing.assert_allclose(own.log_prob(flow.tensor(0.5)).exp().numpy(), [1.25, 2 * 0.5 / 0.7], rtol=1e-6)
    with pytest.raises(flow.OutOfRangeError, match="Triangular: peak must be from 0 to 1, one is 1.5"):
        Triangular(flow.tensor(1.5))
    with pytest.raises(flow.OutOfRangeError, match="Triangular: value must be from 0 to 1, one is 2"):
        own.log_prob(flow.tensor(2.0))
    with pytest.raises(flow.OutOfRangeError, match="transform_to: no transform to OneHot"):
        D.transform_to(D.constraints.one_hot)


def test_equal_transforms():
    def moved(loc, event_dim):
        base = D.Independent(D.Normal(flow.tensor([0.0, 1.0]), 1.0), 1)
        return D.TransformedDistribution(base, D.AffineTransform(flow.tensor(loc), flow.tensor([2.0, 3.0]), event_dim))

    for event_dim in (0, 1):
        assert D.kl_divergence(moved([1.0, 2.0], event_dim), moved([1.0, 2.0], event_dim)).item() == 0
        with pytest.raises(flow.ShapeError, match="kl_divergence: the transforms"):
            D.kl_divergence(moved([1.0, 2.0], event_dim), moved([1.0, 3.0], event_dim))
    assert D.ExpTransform() == D.ExpTransform() != D.AbsTransform() and hash(D.ExpTransform()) == hash(D.ExpTransform())
    assert D.PowerTransform(2.0) != D.PowerTransform(3.0) and D.PowerTransform(2.0) != "power"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "float16", "bfloat16", "bool"])
def test_quick_looks_agree_with_checks(dtype):
    """`_holds` may be False for any elements, but not True for wrong ones."""
    c = D.constraints
    sets = [c.positive, c.nonnegative, c.unit_interval, c.nonnegative_integer, c.positive_integer]
    sets += [c.interval(-1.0, 2.0), c.half_open_interval(0.0, 2.0), c.greater_than(-1.0), c.less_than(2.0)]
    sets += [c.integer_interval(0, 2), c.interval(flow.zeros(1), 2.0), c.simplex, c.real]
    looked = 0
    for numbers in ([], [0.0], [1.0, 0.5], [2.0, -1.0], [-1.0], [math.nan, 1.0], [math.inf], [0.0, 1.0, 2.0]):
        if dtype in ("float32", "float64", "float16", "bfloat16") or all(map(math.isfinite, numbers)):
            x = flow.tensor(numbers).to(getattr(flow, dtype))
            for each in sets:
                holds = each._holds(x)
                looked += holds
                assert not holds or bool(each.check(x).all())
    assert (looked > 0) is (dtype in ("float32", "float64", "int64"))


def test_valid_ranges_are_checked_without_ops(monkeypatch):
    monkeypatch.delattr(D.constraints._Bounded, "check")
    p = flow.tensor([0.25, 0.75])
    assert D.Categorical(p).log_prob(flow.tensor(1)).item() == pytest.approx(math.log(0.75))
    with pytest.raises(NotImplementedError):
        D.Categorical(p).log_prob(flow.tensor(2))
