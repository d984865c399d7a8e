"""Probability distributions with PyTorch's names: sample, log_prob, entropy, kl_divergence. Imported on first use.

Read next: `distribution.py`, then `normal.py`.
"""

from ..core.messages.suggestions import name_hints as _name_hints
from .categories import Categorical as Categorical, Multinomial as Multinomial, OneHotCategorical as OneHotCategorical
from .counts import Bernoulli as Bernoulli, Binomial as Binomial, Geometric as Geometric, Poisson as Poisson
from .distribution import Distribution as Distribution, Independent as Independent
from .divergence import kl_divergence as kl_divergence, register_kl as register_kl
from .inverse_cdf import (
    Cauchy as Cauchy,
    Exponential as Exponential,
    Gumbel as Gumbel,
    Laplace as Laplace,
    Uniform as Uniform,
)
from .normal import (
    HalfNormal as HalfNormal,
    LogNormal as LogNormal,
    MultivariateNormal as MultivariateNormal,
    Normal as Normal,
)

__getattr__ = _name_hints("flow.distributions", globals())
