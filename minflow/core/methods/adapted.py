"""Methods whose arguments differ from those of the function of their name, often since PyTorch's do: `x.round(2)`,
`x.where(mask, y)`. Read next: `in_place.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..base.errors import ShapeError
from ..functions import activation, matrices
from ..messages.suggestions import hint_methods
from ..source_location import fail

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..functions import return_types
    from ..random import Generator
    from ..tensor import Tensor


@hint_methods
class Adapted:
    """Methods that pass their arguments on in another way."""

    # ---- elementwise -------------------------------------------------------------------------------------------------

    def round(self: Tensor, decimals: int = 0) -> Tensor:
        return F.round(self, decimals=decimals)

    def polygamma(self: Tensor, n: int) -> Tensor:
        return F.polygamma(n, self)

    def where(self: Tensor, condition: Tensor, other: Tensor | float) -> Tensor:
        return F.where(condition, self, other)

    def silu(self: Tensor) -> Tensor:
        return activation.silu(self)

    def mish(self: Tensor) -> Tensor:
        return activation.mish(self)

    def selu(self: Tensor) -> Tensor:
        return activation.selu(self)

    def celu(self: Tensor, alpha: float = 1.0) -> Tensor:
        return activation.celu(self, alpha)

    def bernoulli(self: Tensor, p: Tensor | float | None = None, *, generator: Generator | None = None) -> Tensor:
        if getattr(p, "shape", ()):
            what = "bernoulli: p must be a number, got a tensor"
            fail(ShapeError, what, "p.bernoulli() draws with these probabilities", x=self, p=p)
        return F.bernoulli(self, generator=generator) if p is None else F.bernoulli_like(self, p, generator=generator)

    # ---- along an axis -----------------------------------------------------------------------------------------------

    @F.accept_axis
    def softmax(self: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
        return F.softmax(self, dim, dtype=dtype)

    @F.accept_axis
    def log_softmax(self: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
        return F.log_softmax(self, dim, dtype=dtype)

    @F.accept_axis
    def sum(
        self: Tensor,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
    ) -> Tensor:
        return F.sum(self, dim, keepdim, dtype=dtype, axis=axis, keepdims=keepdims)

    @F.accept_axis
    def norm(
        self: Tensor,
        p: float | str = 2,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        return F.norm(self, p, dim, keepdim, dtype)

    @F.accept_axis
    def split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        return F.split(self, split_size, dim)

    def repeat_interleave(
        self: Tensor, repeats: Tensor | int, dim: int | None = None, *, output_size: int | None = None
    ) -> Tensor:
        return F.repeat_interleave(self, repeats, dim, output_size=output_size)

    # ---- elements ----------------------------------------------------------------------------------------------------

    def unique(
        self: Tensor,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        return F.unique(self, sorted, return_inverse, return_counts, dim)

    def argwhere(self: Tensor) -> Tensor:
        return F.nonzero(self)

    # ---- matrices ----------------------------------------------------------------------------------------------------

    def matmul(self: Tensor, other: Tensor) -> Tensor:
        return F.matmul(self, other)

    def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
        return F.cholesky_solve(self, input2, upper)

    def qr(self: Tensor, some: Any = True) -> return_types.qr:
        return F.qr(self, some)

    def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
        return matrices.packed_lu(self, pivot, get_infos)
