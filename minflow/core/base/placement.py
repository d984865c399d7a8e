"""Placements of global tensors on ranks: plain values without behavior.

A `Placement` is a device type and an array of ranks. An `Sbp` describes, for one axis of that array, how the tensor is
distributed: split along a dim, broadcast, or as partial sums. Source: Yuan et al. 2021 (arXiv:2110.15032), section 3.
"""

from __future__ import annotations

from typing import NamedTuple


class Placement(NamedTuple):
    """An array of ranks. type: "cpu" or "cuda".  ranks: the ranks in C order.  hierarchy: the shape of the array."""

    type: str
    ranks: tuple[int, ...]
    hierarchy: tuple[int, ...]


class Sbp(NamedTuple):
    """Distribution along one axis of ranks. kind: "split", "broadcast" or "partial_sum".  dim: of a split, else -1."""

    kind: str
    dim: int = -1

    def __str__(self) -> str:
        return f"split(dim={self.dim})" if self.kind == "split" else self.kind


broadcast = Sbp("broadcast")
partial_sum = Sbp("partial_sum")


def split(dim: int) -> Sbp:
    """The Sbp by which each rank holds a slice along `dim`."""
    return Sbp("split", dim)
