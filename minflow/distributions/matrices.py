"""Distributions of matrices: Wishart, of covariance matrices, and LKJCholesky, of factors of correlation matrices."""

from __future__ import annotations

import math

from ..core import functions as F
from ..core.base.errors import ShapeError
from ..core.functions.creation import arange
from ..core.functions.matrices import solve_triangular
from ..core.functions.special import mvlgamma
from ..core.source_location import fail
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_parameters
from .gamma_family import Beta, Chi2
from .normal import MatrixScaled, cholesky_factor, standard_normal


class Wishart(MatrixScaled):
    """The sum of x @ x.T over df vectors x of the normal distribution with mean 0 and this covariance matrix.

    df: > n - 1.  One of covariance_matrix, precision_matrix (its inverse) and scale_tril (its lower Cholesky factor),
    each (..., n, n). Source: Bartlett's decomposition (1933).
    """

    has_rsample = True
    arg_constraints = {"df": constraints.dependent, "scale_tril": constraints.lower_cholesky}
    support = constraints.positive_definite

    def __init__(
        self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args: bool | None = None
    ):
        tril = cholesky_factor("Wishart", {}, covariance_matrix, precision_matrix, scale_tril)
        n = tril.shape[-1]
        self.df = broadcast_parameters(df, tril[..., 0, 0])[0]
        self.scale_tril = tril.expand(*self.df.shape, n, n)
        super().__init__(self.df.shape, (n, n), validate_args)
        self._require("df", self.df, self.df > n - 1, f"greater than {n - 1}, the size of the matrix minus 1")

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.event_shape[0] - 1
        return F.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = F.diagonal(v, 0, -2, -1)
        return self.df[..., None, None] * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=()) -> Tensor:
        n = self.event_shape[0]
        shape = self._extended_shape(sample_shape)
        degrees = self.df.unsqueeze(-1) - arange(n, dtype=self.df.dtype, device=self.df.device)
        roots = F.sqrt(Chi2(degrees, validate_args=False).rsample(shape[: len(shape) - len(self.batch_shape) - 2]))
        factor = F.matmul(self.scale_tril, F.tril(standard_normal(shape, self.df), -1) + F.diag_embed(roots))
        return F.matmul(factor, factor.mT)

    def _log_scale(self) -> Tensor:
        """log of the determinant of scale_tril, times 2**(n/2)."""
        logs = F.log(F.diagonal(self.scale_tril, 0, -2, -1)).sum(-1)
        return logs + self.event_shape[0] * math.log(2) / 2

    def log_prob(self, value) -> Tensor:
        value, n = self._validate_value(value), self.event_shape[0]
        half = solve_triangular(self.scale_tril, F.cholesky(value), upper=False)  # its squares sum to the trace
        log_det = F.log(F.diagonal(F.cholesky(value), 0, -2, -1)).sum(-1)
        log_normalizer = self.df * self._log_scale() + mvlgamma(self.df / 2, n)
        return (self.df - n - 1) * log_det - half.square().sum((-2, -1)) / 2 - log_normalizer

    def entropy(self) -> Tensor:
        n, df = self.event_shape[0], self.df
        halves = df.unsqueeze(-1) / 2 - arange(n, dtype=df.dtype, device=df.device) / 2
        expected = (df - n - 1) / 2 * F.digamma(halves).sum(-1)
        return (n + 1) * self._log_scale() + mvlgamma(df / 2, n) - expected + df * n / 2


class LKJCholesky(Distribution):
    """Lower Cholesky factors L of random correlation matrices, with density det(L @ L.mT)**(concentration - 1).

    dim: the size of the matrix, >= 2.  concentration: 1 makes all correlation matrices equally likely, more favors
    small correlations. Source: Lewandowski, Kurowicka & Joe 2009, the onion method (section 3).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration=1.0, validate_args: bool | None = None):
        if not isinstance(dim, int) or dim < 2:
            fail(ShapeError, f"LKJCholesky: a correlation matrix of size {dim}", "dim=2 or more", dim=dim)
        self.dim = dim
        (self.concentration,) = broadcast_parameters(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape=()) -> Tensor:
        like, shape = self.concentration, self._extended_shape(sample_shape)
        rows = arange(1, self.dim, dtype=like.dtype, device=like.device)
        beta = Beta(rows / 2, like.unsqueeze(-1) + (self.dim - 1 - rows) / 2, validate_args=False)
        lengths = beta.sample(shape[: len(shape) - len(self.batch_shape) - 2])  # squared, below the diagonal
        directions = F.tril(standard_normal(shape, like), -1)[..., 1:, :]
        below = F.sqrt(lengths).unsqueeze(-1) * directions / F.norm(directions, 2, -1, True)
        factor = F.cat([0 * below[..., :1, :], below], -2)
        return factor + F.diag_embed(F.sqrt((1 - factor.square().sum(-1)).clamp(min=2.0**-126)))

    def log_prob(self, value) -> Tensor:
        value, n = self._validate_value(value), self.dim
        logs = F.log(F.diagonal(value, 0, -2, -1))[..., 1:]
        rows = arange(2, n + 1, dtype=logs.dtype, device=logs.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + n - rows
        alpha = self.concentration + (n - 1) / 2
        log_normalizer = (n - 1) * (math.log(math.pi) / 2 - F.lgamma(alpha)) + mvlgamma(alpha - 0.5, n - 1)
        return (powers * logs).sum(-1) - log_normalizer
