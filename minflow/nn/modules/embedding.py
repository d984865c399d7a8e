"""Layers: Embedding, EmbeddingBag.

Read next: `../functional/embedding.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions.creation import empty
from ...core.grad.modes import no_grad
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .linear import check_size


class EmbeddingTable(Module):
    """Base of the layers with a table of rows. weight: (num_embeddings, embedding_dim)."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        name = type(self).__name__
        check_size(name, "num_embeddings", num_embeddings)
        check_size(name, "embedding_dim", embedding_dim)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                what = f"{name}: padding_idx is {padding_idx}, there are {num_embeddings} rows"
                fail(OutOfRangeError, what, f"0 to {num_embeddings - 1}")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if _weight is None:
            self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype, device=device))
            self.reset_parameters()
        else:
            if _weight.spec.shape != (num_embeddings, embedding_dim):
                what = f"{name}: _weight has shape {list(_weight.spec.shape)}"
                fail(ShapeError, what, f"[{num_embeddings}, {embedding_dim}]", _weight=_weight)
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> EmbeddingTable:
        """Make a layer with the given rows (num_embeddings, embedding_dim), which are not trained if `freeze`.

        options: the other arguments of the class.
        """
        if embeddings.spec.ndim != 2:
            what = f"from_pretrained: embeddings must have 2 axes, got {embeddings.spec.ndim}"
            fail(ShapeError, what, "embeddings=embeddings", embeddings=embeddings)
        rows, columns = embeddings.spec.shape
        layer = cls(rows, columns, padding_idx=padding_idx, _weight=embeddings, **options)
        layer.weight.requires_grad_(not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Reinitialize the rows from N(0, 1)."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0.0)

    def extra_repr(self) -> str:
        return ", ".join(self._repr_parts())

    def _repr_parts(self) -> list[str]:
        """Return the parts of the repr that show the options."""
        usual: dict[str, Any] = dict(padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False)
        parts = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return [f"{self.num_embeddings}, {self.embedding_dim}", *parts, *["sparse=True"] * self.sparse]


class Embedding(EmbeddingTable):
    """out[...] = weight[index[...]]: a row of features for each index.

    index: int (...), each in [0, num_embeddings). weight: (num_embeddings, embedding_dim), initialized from N(0, 1).
    Returns float (..., embedding_dim). The row padding_idx is initialized to zeros and gets no gradient.
    """

    def forward(self, input: Tensor) -> Tensor:
        options = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, *options)


class EmbeddingBag(EmbeddingTable):
    """The mean (sum, maximum) of the rows of each bag of indices: float (B, embedding_dim).

    Called with indices (B, N), or with (n,) and offsets (B,), the start of each bag.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        options: dict[str, Any] = dict(max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq)
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            **options,
            sparse=sparse,
            _weight=_weight,
            device=device,
            dtype=dtype,
        )
        if mode not in ("sum", "mean", "max"):
            fail(ShapeError, f"EmbeddingBag: mode is {mode!r}", 'mode="sum", "mean" or "max"')
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def _repr_parts(self) -> list[str]:
        parts = super()._repr_parts()
        padding = [part for part in parts if part.startswith("padding_idx")]
        return [*[part for part in parts if part not in padding], f"mode={self.mode!r}", *padding]
