"""Layers: Embedding.

Read next: `../functional/embedding.py`.
"""

from __future__ import annotations

from ...core.grad.modes import no_grad
from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.spec import Device, DType
from ...core.functions.creation import empty
from ...core.tensor import Tensor
from ...core.where import fail
from .. import functional as F
from .. import init
from .linear import check_size
from ..module import Module
from ..parameter import Parameter


class Embedding(Module):
    """out[...] = weight[index[...]]: a row of numbers for each index.

    index: int (...), each in [0, num_embeddings).  weight: (num_embeddings, embedding_dim), starts as N(0, 1).
    Returns float (..., embedding_dim). The row padding_idx starts as zeros and gets no gradient.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Device | str | None = None,
        dtype: DType | None = None,
        _weight: Tensor | None = None,
    ):
        super().__init__()
        check_size("Embedding", "num_embeddings", num_embeddings)
        check_size("Embedding", "embedding_dim", embedding_dim)
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                fail(
                    OutOfRangeError,
                    f"Embedding: padding_idx is {padding_idx}, there are {num_embeddings} rows",
                    f"0 to {num_embeddings - 1}",
                )
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if _weight is None:
            self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype, device=device))
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A layer with the given rows (num_embeddings, embedding_dim), which stay as they are if `freeze`."""
        if embeddings.spec.ndim != 2:
            fail(
                ShapeError,
                f"from_pretrained: embeddings have {embeddings.spec.ndim} axes, wanted 2",
                "embeddings=embeddings",
                embeddings=embeddings,
            )
        layer = cls(*embeddings.spec.shape, padding_idx=padding_idx, _weight=embeddings)
        layer.weight.requires_grad_(not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draw the rows anew from N(0, 1)."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0.0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
