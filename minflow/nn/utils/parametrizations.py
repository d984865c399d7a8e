"""`flow.nn.utils.parametrizations`: weight_norm, spectral_norm and orthogonal, as parametrizations.

The trained tensors are `parametrizations.weight.original`, or original0 and original1. Read next: `parametrize.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.backend import namespace
from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions import cat
from ...core.functions.creation import as_tensor, eye, randn, zeros_like
from ...core.functions.matrices import qr, solve
from ...core.functions.matrix_products import matrix_exp
from ...core.grad.modes import no_grad
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..functional import normalize
from ..module import Module
from .parametrize import register_parametrization
from .weight_norms import SpectralNorm, WeightNorm

MAPS = ("matrix_exp", "cayley", "householder")


class WeightNormalization(Module):
    """g * v / |v|: original0 is g, original1 is v."""

    def __init__(self, dim: int | None):
        super().__init__()
        self.rule = WeightNorm("weight", dim)

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / self.rule.length(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self.rule.length(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the length and the direction of a weight separately, and return the module.

    The parameters are original0, the length, and original1, the direction. dim: see `nn.utils.weight_norm`, whose
    state_dicts can be loaded.
    """
    register_parametrization(module, name, WeightNormalization(dim), unsafe=True)

    def rename(state: Any, prefix: str, *rest: Any) -> None:
        for old, new in (("g", "original0"), ("v", "original1")):
            if f"{prefix}{name}_{old}" in state:
                state[f"{prefix}parametrizations.{name}.{new}"] = state.pop(f"{prefix}{name}_{old}")

    module._register_load_state_dict_pre_hook(rename)
    return module


class SpectralNormalization(Module):
    """weight / sigma, where sigma = u @ w @ v approximates its largest singular value by power iteration."""

    def __init__(self, n_power_iterations: int, dim: int, eps: float, weight: Tensor):
        super().__init__()
        self.n_power_iterations, self.eps = n_power_iterations, eps
        self.rule = SpectralNorm("weight", n_power_iterations, eps, dim)
        if weight.ndim > 1:
            with no_grad():
                matrix = self.rule.matrix(weight.detach())
                for part, size in zip("uv", matrix.spec.shape):
                    start = randn(size, dtype=weight.dtype, device=weight.device)
                    self.register_buffer(f"_{part}", normalize(start, dim=0, eps=eps))
                self.refine(matrix, 15)

    def refine(self, matrix: Tensor, steps: int) -> None:
        """Run steps of the power iteration."""
        with no_grad():
            for _ in range(steps):
                self._u.copy_(normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(normalize(matrix.T @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self.rule.matrix(weight)
        if self.training:
            self.refine(matrix.detach(), self.n_power_iterations)
        return weight / (self._u.clone() * (matrix @ self._v.clone())).sum()

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, and return the module. Miyato et al. 2018, eq. 8.

    Each access to the weight in training mode runs n_power_iterations steps. dim: the axis of the outputs (1 for
    transposed convolutions, else 0).
    """
    if n_power_iterations < 1:
        what = f"spectral_norm: n_power_iterations must be at least 1, got {n_power_iterations}"
        fail(OutOfRangeError, what, "n_power_iterations=1")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    parametrization = SpectralNormalization(n_power_iterations, dim, eps, getattr(module, name))
    return register_parametrization(module, name, parametrization)


class Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, if there are fewer rows), from any matrix of its shape.

    matrix_exp: exp(A) of the skew-symmetric matrix A = X - X.T of its lower triangle.  cayley: (I + A/2)(I - A/2)^-1.
    householder: the product of the reflections of the columns of its lower triangle.  base: a matrix that the result
    is multiplied by, so that any orthogonal weight is reached from a multiple of the identity; None without.
    """

    def __init__(self, orthogonal_map: str, use_trivialization: bool):
        super().__init__()
        self.orthogonal_map, self.use_trivialization = orthogonal_map, use_trivialization
        self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        X = X.mT if wide else X
        n, k = X.shape[-2:]
        if self.orthogonal_map == "householder":
            Q = self.reflections(X)
        else:
            X = X.tril()
            X = X if n == k else cat([X, X.new_zeros(*X.shape[:-1], n - k)], -1)
            A, one = X - X.mT, eye(n, dtype=X.dtype, device=X.device)
            Q = matrix_exp(A) if self.orthogonal_map == "matrix_exp" else solve(one - A / 2, one + A / 2)
            Q = Q[..., :k]
        Q = Q if self.base is None else self.base @ Q
        return Q.mT if wide else Q

    def reflections(self, X: Tensor) -> Tensor:
        """The first k columns of the product of k reflections I - tau v v.T, where v is a column below the diagonal."""
        n, k = X.shape[-2:]
        V = X.tril(-1) + eye(n, k, dtype=X.dtype, device=X.device)
        tau = 2 / (V * V).sum(-2)
        Q = eye(n, k, dtype=X.dtype, device=X.device).expand(*X.shape[:-2], n, k)
        for i in reversed(range(k)):
            v = V[..., i : i + 1]
            Q = Q - tau[..., i, None, None] * (v @ (v.mT @ Q))
        return Q * X.diagonal(dim1=-2, dim2=-1).sign().detach().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        start, wide = Q, Q.shape[-2] < Q.shape[-1]
        Q = Q.mT if wide else Q
        n, k = Q.shape[-2:]
        if self.use_trivialization:
            Q = Q if n == k else cat([Q, randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)], -1)
            self.base = Q.clone() if n == k and is_orthogonal(Q) else orthogonalized(Q)
            return zeros_like(start) - eye(*start.shape[-2:], dtype=Q.dtype, device=Q.device)
        if self.orthogonal_map != "householder":
            raise NotImplementedError("only householder, or a trivialization, can start from a given matrix")
        raw, tau = namespace().linalg.qr(Q.numpy(), mode="raw")
        A, unused = as_tensor(raw).mT.to(Q.dtype), as_tensor(tau == 0)  # columns that LAPACK does not reflect
        signs = A.diagonal(dim1=-2, dim2=-1).sign() * (1 - 2 * unused.to(Q.dtype))
        A = A.tril(-1) + A.triu(1) + signs.unsqueeze(-2) * eye(n, k, dtype=A.dtype)
        return A.mT if wide else A


def is_orthogonal(Q: Tensor) -> bool:
    """True if the columns are orthonormal up to rounding."""
    n, k = Q.shape[-2:]
    one = eye(k, dtype=Q.dtype, device=Q.device)
    tolerance = 10 * n * namespace().finfo(Q.numpy().dtype).eps
    return bool(((Q.mT @ Q - one).abs() <= tolerance).all())


def orthogonalized(A: Tensor) -> Tensor:
    """The orthogonal factor of the QR decomposition whose diagonal of R is positive."""
    Q, R = qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight of two or more axes orthogonal (its last two), and return the module.

    orthogonal_map: "matrix_exp" (of square matrices by default), "cayley" or "householder".  use_trivialization: True
    to start from the nearest orthogonal matrix by QR, and keep it in the buffer `base`.
    Source: Lezcano-Casado 2019 (arXiv:1909.09501).
    """
    weight = getattr(module, name)
    if weight.ndim < 2:
        fail(ShapeError, f"orthogonal: {name!r} must have 2 axes or more, got {weight.ndim}", 'name="weight"')
    default = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    orthogonal_map = default if orthogonal_map is None else orthogonal_map
    if orthogonal_map not in MAPS:
        fail(OutOfRangeError, f"orthogonal: unknown orthogonal_map {orthogonal_map!r}", ", ".join(MAPS))
    return register_parametrization(module, name, Orthogonal(orthogonal_map, use_trivialization), unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
__getattr__ = _name_hints("flow.nn.utils.parametrizations", globals())
