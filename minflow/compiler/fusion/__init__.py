"""Passes that make a graph faster: layout and fusion. The machine runs what they make; NumPy can, too.

Read in this order: `blocks.py`, the operations on blocks of channels, then `layout.py`, which brings them in.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..passes import Pass, memory

FUSION: list[Pass] = []  # what the machine brings in while it is used: not exact, but for float32's rounding


def with_fusion(passes: Iterable[Pass]) -> list[Pass]:
    """The passes, with those of FUSION before `memory`, which orders what they make."""
    passes = list(passes)
    at = passes.index(memory) if memory in passes else len(passes)
    return [*passes[:at], *FUSION, *passes[at:]]
