"""Where a logical tensor lives on many ranks: plain values, no behaviour.

`Placement` names a device type and an array of ranks; an `Sbp` says, per axis of that array, how the logical
tensor is spread: split along a dim, broadcast, or as partial sums. Source: Yuan et al. 2021 (arXiv:2110.15032), section
3.
"""

from __future__ import annotations

from typing import NamedTuple


class Placement(NamedTuple):
    """type: "cpu" or "cuda".  ranks: the ranks, row by row.  hierarchy: the shape of that array of ranks."""

    type: str
    ranks: tuple[int, ...]
    hierarchy: tuple[int, ...]


class Sbp(NamedTuple):
    """kind: "split", "broadcast" or "partial_sum"; dim: the split dim, -1 for the others."""

    kind: str
    dim: int = -1

    def __str__(self) -> str:
        return f"split(dim={self.dim})" if self.kind == "split" else self.kind


broadcast = Sbp("broadcast")
partial_sum = Sbp("partial_sum")


def split(dim: int) -> Sbp:
    """Each rank holds a slice along `dim`."""
    return Sbp("split", dim)
