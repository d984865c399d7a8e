"""Probability distributions with PyTorch's names: sample, log_prob, entropy, kl_divergence. Imported on first use.

Read next: `distribution.py`, then `normal.py`.
"""

from ..core.messages.suggestions import name_hints as _name_hints
from . import constraints as constraints, transforms as transforms
from .categories import Categorical as Categorical, Multinomial as Multinomial, OneHotCategorical as OneHotCategorical
from .constraint_registry import biject_to as biject_to, transform_to as transform_to
from .counts import Bernoulli as Bernoulli, Binomial as Binomial, Geometric as Geometric, Poisson as Poisson
from .distribution import Distribution as Distribution, Independent as Independent
from .divergence import kl_divergence as kl_divergence, register_kl as register_kl
from .gamma_family import (
    Beta as Beta,
    Chi2 as Chi2,
    Dirichlet as Dirichlet,
    ExponentialFamily as ExponentialFamily,
    FisherSnedecor as FisherSnedecor,
    Gamma as Gamma,
    InverseGamma as InverseGamma,
    NegativeBinomial as NegativeBinomial,
    StudentT as StudentT,
)
from .inverse_cdf import (
    Cauchy as Cauchy,
    Exponential as Exponential,
    Gumbel as Gumbel,
    Laplace as Laplace,
    Uniform as Uniform,
)
from .matrices import LKJCholesky as LKJCholesky, Wishart as Wishart
from .normal import (
    HalfNormal as HalfNormal,
    LogNormal as LogNormal,
    LowRankMultivariateNormal as LowRankMultivariateNormal,
    MultivariateNormal as MultivariateNormal,
    Normal as Normal,
)
from .transformed import (
    LogisticNormal as LogisticNormal,
    MixtureSameFamily as MixtureSameFamily,
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
    RelaxedBernoulli as RelaxedBernoulli,
    RelaxedOneHotCategorical as RelaxedOneHotCategorical,
    TransformedDistribution as TransformedDistribution,
)
from .transforms import (
    AbsTransform as AbsTransform,
    AffineTransform as AffineTransform,
    CatTransform as CatTransform,
    ComposeTransform as ComposeTransform,
    CumulativeDistributionTransform as CumulativeDistributionTransform,
    ExpTransform as ExpTransform,
    IndependentTransform as IndependentTransform,
    LowerCholeskyTransform as LowerCholeskyTransform,
    PositiveDefiniteTransform as PositiveDefiniteTransform,
    PowerTransform as PowerTransform,
    ReshapeTransform as ReshapeTransform,
    SigmoidTransform as SigmoidTransform,
    SoftmaxTransform as SoftmaxTransform,
    SoftplusTransform as SoftplusTransform,
    StackTransform as StackTransform,
    StickBreakingTransform as StickBreakingTransform,
    TanhTransform as TanhTransform,
    Transform as Transform,
    identity_transform as identity_transform,
)
from .univariate import (
    ContinuousBernoulli as ContinuousBernoulli,
    GeneralizedPareto as GeneralizedPareto,
    HalfCauchy as HalfCauchy,
    Kumaraswamy as Kumaraswamy,
    Pareto as Pareto,
    VonMises as VonMises,
    Weibull as Weibull,
)

__getattr__ = _name_hints("flow.distributions", globals(), {"utils": "utils."})
