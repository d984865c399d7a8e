"""The normal distribution, distributions derived from it, and its multivariate form."""

from __future__ import annotations

import math
from typing import Any

from ..core import functions as F
from ..core.base.errors import ShapeError
from ..core.functions.arguments import ensure_tensor
from ..core.functions.creation import randn
from ..core.functions.matrices import eye_of, solve_triangular
from ..core.source_location import fail
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Univariate, on_ranks_of

LOG_ROOT = math.log(math.sqrt(2 * math.pi))


def standard_normal(shape, like: Tensor) -> Tensor:
    return on_ranks_of(like, randn(*shape, dtype=like.dtype, device=like.device))


class Normal(Univariate):
    """The normal distribution.

    loc: the mean.  scale: the standard deviation, > 0; float tensors or numbers that broadcast.
    """

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: constraints.Constraint = constraints.real

    mean = property(lambda self: self.loc)
    mode = mean
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.square())

    def rsample(self, sample_shape=()) -> Tensor:
        return self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value) -> Tensor:
        value = self._validate_value(value)
        return -((value - self.loc).square() / (2 * self.variance)) - F.log(self.scale) - LOG_ROOT

    def cdf(self, value) -> Tensor:
        return 0.5 * (1 + F.erf((self._validate_value(value) - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value) -> Tensor:
        return self.loc + self.scale * F.erfinv(2 * ensure_tensor(value) - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + LOG_ROOT + F.log(self.scale)


class LogNormal(Univariate):
    """exp of a normal value with mean loc and standard deviation scale."""

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive

    base_dist = property(lambda self: Normal(self.loc, self.scale, False), doc="The distribution of the logarithm.")
    mean = property(lambda self: F.exp(self.loc + self.scale.square() / 2))
    mode = property(lambda self: F.exp(self.loc - self.scale.square()))

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return F.expm1(square) * F.exp(2 * self.loc + square)

    def rsample(self, sample_shape=()) -> Tensor:
        return F.exp(self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale)

    def log_prob(self, value) -> Tensor:
        value = self._validate_value(value)
        return self.base_dist.log_prob(F.log(value)) - F.log(value)

    def cdf(self, value) -> Tensor:
        return self.base_dist.cdf(F.log(self._validate_value(value)))

    def icdf(self, value) -> Tensor:
        return F.exp(self.base_dist.icdf(value))

    def entropy(self) -> Tensor:
        return 0.5 + LOG_ROOT + F.log(self.scale) + self.loc


class HalfNormal(Univariate):
    """The absolute value of a normal value with mean 0 and standard deviation scale."""

    has_rsample = True
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    mode = property(lambda self: F.mul(self.scale, 0.0))
    variance = property(lambda self: self.scale.square() * (1 - 2 / math.pi))

    def rsample(self, sample_shape=()) -> Tensor:
        return F.abs(standard_normal(self._extended_shape(sample_shape), self.scale)) * self.scale

    def log_prob(self, value) -> Tensor:
        value = self._validate_value(value)
        return Normal(0.0, self.scale, False).log_prob(value) + math.log(2)

    def cdf(self, value) -> Tensor:
        return F.erf(self._validate_value(value) / (self.scale * math.sqrt(2)))

    def icdf(self, value) -> Tensor:
        return self.scale * F.erfinv(ensure_tensor(value)) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 * math.log(math.pi / 2) + 0.5 + F.log(self.scale)


def cholesky_factor(name: str, parameters: dict[str, Tensor], *matrices: Tensor | None) -> Tensor:
    """The lower Cholesky factor of the covariance matrix of a distribution, given in one of three ways.

    parameters: the mean as "loc", if the distribution has one.  matrices: covariance_matrix, precision_matrix and
    scale_tril, two of them None.
    """
    choices = dict(zip(("covariance_matrix", "precision_matrix", "scale_tril"), matrices))
    passed = [choice for choice, x in choices.items() if x is not None]
    if len(passed) != 1:
        what = f"{name}: {' and '.join(passed) or 'no matrix'} given"
        fail(ShapeError, what, "one of covariance_matrix, precision_matrix and scale_tril")
    matrix: Any = choices[passed[0]]
    n = parameters.get("loc", matrix).shape[-1:]
    if matrix.ndim < 2 or matrix.shape[-2:] != n + n:
        vectors = "".join(f"{x} of shape {list(loc.shape)} and " for x, loc in parameters.items())
        hint = " and the ".join([*[f"{x} (..., n)" for x in parameters], "matrix (..., n, n)"])
        fail(ShapeError, f"{name}: {vectors}a matrix of {list(matrix.shape)}", hint, **parameters, matrix=matrix)
    if passed == ["covariance_matrix"]:
        return F.cholesky(matrix)
    if passed == ["precision_matrix"]:  # if P = K @ K.T with K upper, the inverse of K.T is lower
        upper = F.cholesky(matrix.flip((-2, -1))).flip((-2, -1))
        return solve_triangular(upper.mT, eye_of(upper, matrix.shape[-1]), upper=False)
    return matrix


class MatrixScaled(Distribution):
    """A distribution whose covariance matrix is given by `scale_tril`, its Cholesky factor."""

    scale_tril: Tensor

    @property
    def covariance_matrix(self) -> Tensor:
        """scale_tril @ scale_tril.mT."""
        return F.matmul(self.scale_tril, self.scale_tril.mT)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return F.cholesky_inverse(self.scale_tril)


class MultivariateNormal(MatrixScaled):
    """The multivariate normal distribution.

    loc: (..., n).  One of covariance_matrix, precision_matrix (its inverse) and scale_tril (its lower Cholesky factor),
    each (..., n, n).
    """

    has_rsample = True
    arg_constraints = {"loc": constraints.real_vector, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector

    def __init__(
        self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args: bool | None = None
    ):
        tril = cholesky_factor("MultivariateNormal", {"loc": loc}, covariance_matrix, precision_matrix, scale_tril)
        batch = F.broadcast_tensors(loc[..., 0], tril[..., 0, 0])[0].shape
        n = loc.shape[-1]
        self.loc, self.scale_tril = loc.expand(*batch, n), tril.expand(*batch, n, n)
        super().__init__(batch, (n,), validate_args)

    mean = property(lambda self: self.loc)
    mode = mean
    variance = property(lambda self: self.scale_tril.square().sum(-1))

    def rsample(self, sample_shape=()) -> Tensor:
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + F.matmul(self.scale_tril, drawn.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        """Half the log-determinant of the covariance matrix."""
        return F.log(F.diagonal(self.scale_tril, 0, -2, -1)).sum(-1)

    def log_prob(self, value) -> Tensor:
        offset = (self._validate_value(value) - self.loc).unsqueeze(-1)
        distance = solve_triangular(self.scale_tril, offset, upper=False).square().sum((-2, -1))
        return -0.5 * distance - self.event_shape[0] * LOG_ROOT - self._half_log_det()

    def entropy(self) -> Tensor:
        return self.event_shape[0] * (0.5 + LOG_ROOT) + self._half_log_det()


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with covariance cov_factor @ cov_factor.mT + diag(cov_diag).

    loc: (..., n).  cov_factor: (..., n, rank).  cov_diag: (..., n), > 0.
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector

    def __init__(self, loc, cov_factor, cov_diag, validate_args: bool | None = None):
        n = loc.shape[-1] if loc.ndim else 0
        if not n or cov_factor.ndim < 2 or cov_factor.shape[-2] != n or cov_diag.ndim < 1 or cov_diag.shape[-1] != n:
            what = "LowRankMultivariateNormal: the shapes of loc, cov_factor and cov_diag do not agree"
            hint = "loc (..., n), cov_factor (..., n, rank), cov_diag (..., n)"
            fail(ShapeError, what, hint, loc=loc, cov_factor=cov_factor, cov_diag=cov_diag)
        batch = F.broadcast_tensors(loc[..., 0], cov_factor[..., 0, 0], cov_diag[..., 0])[0].shape
        self.loc, self.cov_diag = loc.expand(*batch, n), cov_diag.expand(*batch, n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, (n,), validate_args)
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        capacitance = F.matmul(scaled, self.cov_factor) + eye_of(self.cov_factor, cov_factor.shape[-1])
        self.scaled, self.capacitance_tril = scaled, F.cholesky(capacitance)  # matrix determinant lemma, Woodbury

    mean = property(lambda self: self.loc)
    mode = mean
    variance = property(lambda self: self.cov_factor.square().sum(-1) + self.cov_diag)

    @property
    def covariance_matrix(self) -> Tensor:
        """cov_factor @ cov_factor.mT + diag(cov_diag)."""
        return F.matmul(self.cov_factor, self.cov_factor.mT) + F.diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return F.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        half = solve_triangular(self.capacitance_tril, self.scaled, upper=False)
        return F.diag_embed(F.reciprocal(self.cov_diag)) - F.matmul(half.mT, half)

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        along = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        spread = F.matmul(self.cov_factor, along.unsqueeze(-1)).squeeze(-1)
        return self.loc + spread + F.sqrt(self.cov_diag) * standard_normal(shape, self.loc)

    def _half_log_det(self) -> Tensor:
        """Half the log-determinant of the covariance matrix."""
        tril = F.log(F.diagonal(self.capacitance_tril, 0, -2, -1)).sum(-1)
        return tril + 0.5 * F.log(self.cov_diag).sum(-1)

    def log_prob(self, value) -> Tensor:
        offset = self._validate_value(value) - self.loc
        along = F.matmul(self.scaled, offset.unsqueeze(-1))
        inside = solve_triangular(self.capacitance_tril, along, upper=False).square().sum((-2, -1))
        distance = (offset.square() / self.cov_diag).sum(-1) - inside
        return -0.5 * distance - self.event_shape[0] * LOG_ROOT - self._half_log_det()

    def entropy(self) -> Tensor:
        return self.event_shape[0] * (0.5 + LOG_ROOT) + self._half_log_det()
