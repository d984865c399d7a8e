"""Methods that gather elements by index or mask: `x.gather(1, index)`, `x.masked_select(mask)`.

`x[index]` is in `../tensor.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..messages.suggestions import hint_methods
from .scatter import Scattering

if TYPE_CHECKING:
    from ..tensor import Tensor


@hint_methods
class Gathering(Scattering):
    """Gathering and scattering by index."""

    def gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
        return F.gather(self, dim, index)

    def scatter(
        self: Tensor,
        dim: int,
        index: Tensor,
        src: Tensor | float | None = None,
        *,
        value: Tensor | float | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        return F.scatter(self, dim, index, src, value=value, reduce=reduce)

    def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        return F.scatter_add(self, dim, index, src)

    def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
        return F.index_select(self, dim, index)

    def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        return F.index_add(self, dim, index, source, alpha=alpha)

    def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
        return F.index_copy(self, dim, index, source)

    def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
        return F.index_fill(self, dim, index, value)

    def masked_select(self: Tensor, mask: Tensor) -> Tensor:
        return F.masked_select(self, mask)

    def nonzero(self: Tensor, as_tuple: bool = False) -> Any:
        return F.nonzero(self, as_tuple)

    def argwhere(self: Tensor) -> Tensor:
        return F.nonzero(self)

    def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
        return F.take_along_dim(self, indices, dim)
