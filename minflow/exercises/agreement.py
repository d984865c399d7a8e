"""How closely two results agree, in words that follow from the numbers.

Independent of exercises; lessons import it beside `check`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .i18n import say

ROUNDING = 1e-5  # largest difference, as a share of the largest number, that counts as rounding of float32


def agreement(one: Any, other: Any) -> str:
    """Say how closely two results agree: exactly, up to rounding, or not.

    one, other: numbers, lists, arrays or tensors, of one shape.
    >>> agreement([0.5, 2.0], [0.5, 2.0]), agreement([0.5, 2.0], [0.5, 2.0000002])
    ('equal in all digits', 'equal but for rounding: the largest difference is 2.0e-07')
    >>> agreement([0.5, 2.0], [0.5, 2.1])
    'different: the largest difference is 1.0e-01'
    """
    a, b = np.asarray(one, float), np.asarray(other, float)
    if a.shape != b.shape:
        raise ValueError(f"agreement: shapes must be equal, got {a.shape} and {b.shape}")
    if np.array_equal(a, b, equal_nan=True):
        return say("equal in all digits")
    gap = float(np.abs(a - b).max())
    if gap <= ROUNDING * np.abs([a, b]).max():
        return say("equal but for rounding: the largest difference is {gap}", gap=f"{gap:.1e}")
    return say("different: the largest difference is {gap}", gap=f"{gap:.1e}")
