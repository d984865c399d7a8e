"""Speedups from repeated measurements, in words that follow from the numbers and their spread.

Independent of exercises; lessons import it beside `check`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .i18n import say

CLEAR = 0.02  # smallest distance of the median from 1 that counts as a difference


class Speedup:
    """How many times as fast `quick` is as `slow`: sequences of seconds that were measured in turns.

    median: of the ratios of all rounds.  low, high: limits of the middle half of them, the noise.
    >>> print(Speedup([3.0, 3.2, 3.1], [2.0, 2.0, 2.0]).sentence("the graph", "eager mode"))
    the graph is 1.55 times as fast as eager mode (1.52 to 1.58 in the middle half of 3 rounds)
    >>> print(Speedup([1.0, 1.1, 1.0], [1.1, 1.0, 1.0]).sentence("the graph", "eager mode"))
    no difference beyond the noise between the graph and eager mode: 1.00 (0.95 to 1.05 in the middle half of 3 rounds)
    """

    def __init__(self, slow: Sequence[float], quick: Sequence[float]):
        self.rounds = min(len(slow), len(quick))
        ratios = np.asarray(slow[: self.rounds], float) / np.asarray(quick[: self.rounds], float)
        self.low, self.median, self.high = map(float, np.percentile(ratios, (25, 50, 75)))

    @property
    def clear(self) -> bool:
        """True if the middle half of the rounds is on one side of 1, and the median is not next to it."""
        return not self.low <= 1 <= self.high and abs(self.median - 1) > CLEAR

    def __str__(self) -> str:
        return say("{middle} ({low} to {high})", **self.words("", "", self.low, self.median, self.high))

    def sentence(self, quick: str, slow: str) -> str:
        """State the result of the rounds for two programs, given by their names."""
        low, high, middle = self.low, self.high, self.median
        if not self.clear:
            text = say(
                "no difference beyond the noise between {quick} and {slow}: {middle} "
                "({low} to {high} in the middle half of {rounds} rounds)",
                **self.words(quick, slow, low, middle, high),
            )
        elif middle > 1:
            text = say(
                "{quick} is {middle} times as fast as {slow} ({low} to {high} in the middle half of {rounds} rounds)",
                **self.words(quick, slow, low, middle, high),
            )
        else:
            text = say(
                "{quick} is slower: {slow} is {middle} times as fast "
                "({low} to {high} in the middle half of {rounds} rounds)",
                **self.words(quick, slow, 1 / high, 1 / middle, 1 / low),
            )
        return text

    def words(self, quick: str, slow: str, low: float, middle: float, high: float) -> dict[str, str]:
        """Names and rounded numbers for the sentence."""
        numbers = {"low": f"{low:.2f}", "middle": f"{middle:.2f}", "high": f"{high:.2f}"}
        return {"quick": quick, "slow": slow, **numbers, "rounds": str(self.rounds)}


def least(speedups: Mapping[str, Speedup]) -> str:
    """The name of the smallest speedup; several names if their noise overlaps with it.

    >>> fast, slow = Speedup([3.0, 3.1], [2.0, 2.0]), Speedup([2.2, 2.3], [2.0, 2.0])
    >>> least({"a": fast, "b": slow}), least({"a": slow, "b": slow})
    ('b', 'a or b (no difference beyond the noise)')
    """
    smallest = min(speedups.values(), key=lambda one: one.median)
    names = [name for name, one in speedups.items() if one.low <= smallest.high]
    if len(names) == 1:
        return names[0]
    return say(" or ").join(names) + say(" (no difference beyond the noise)")
