"""Probability distributions with PyTorch's names: sample, log_prob, entropy, kl_divergence. Imported on first use.

Read next: `distribution.py`, then `normal.py`.
"""

from ..core.messages.suggestions import name_hints as _name_hints
from .counts import Bernoulli as Bernoulli
from .counts import Binomial as Binomial
from .counts import Geometric as Geometric
from .counts import Poisson as Poisson
from .categories import Categorical as Categorical
from .categories import Multinomial as Multinomial
from .categories import OneHotCategorical as OneHotCategorical
from .distribution import Distribution as Distribution
from .distribution import Independent as Independent
from .divergence import kl_divergence as kl_divergence
from .divergence import register_kl as register_kl
from .normal import HalfNormal as HalfNormal
from .normal import LogNormal as LogNormal
from .normal import MultivariateNormal as MultivariateNormal
from .normal import Normal as Normal
from .inverse_cdf import Cauchy as Cauchy
from .inverse_cdf import Exponential as Exponential
from .inverse_cdf import Gumbel as Gumbel
from .inverse_cdf import Laplace as Laplace
from .inverse_cdf import Uniform as Uniform

__getattr__ = _name_hints("flow.distributions", globals())
