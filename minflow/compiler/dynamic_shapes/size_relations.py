"""Infer how a number depends on dynamic axes from its values at some sizes.

Read next: `traces.py`, which provides the values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from .derived_sizes import SizeFormula, SizeRatio


class NotSizeDependent(Exception):
    """A value differs between traces in a way that the axes do not explain. values: the value at each size.  why: a
    hint.
    """

    def __init__(self, values: Sequence[Any], why: str = ""):
        self.values, self.why = values, why


class SizeSolver:
    """Infers a number at all sizes from its values at some. names: names of the axes.  sizes: sizes of each trace; the
    first is the base, and all combinations of its sizes with the second size of each axis must occur.
    """

    def __init__(self, names: Sequence[str], sizes: Sequence[tuple[int, ...]]):
        self.names, self.sizes = tuple(names), list(sizes)
        self.dicts = [dict(zip(names, s)) for s in sizes]
        self.low = sizes[0]
        self.high = tuple(next(s[k] for s in sizes if s[k] != n) for k, n in enumerate(self.low))

    def solve(self, values: Sequence[Any]) -> Any:
        """Combine the structures of all traces into one with dependent values at its leaves. Raises
        NotSizeDependent.
        """
        first = values[0]
        if all(same_value(x, first) for x in values[1:]):
            return first
        kinds = {type(x) for x in values}
        if kinds <= {tuple} or kinds <= {list}:
            if len({len(x) for x in values}) == 1:
                return type(first)([self.solve(column) for column in zip(*values)])
        elif kinds == {dict}:
            if len({tuple(x) for x in values}) == 1:
                return {key: self.solve([x[key] for x in values]) for key in first}
        elif kinds == {int}:
            if (formula := self.integer(values)) is not None:
                return formula
            raise NotSizeDependent(
                values,
                "a size may be multiplied by an integer or added to one; x.size(0) // 2 is not supported, "
                "because it is rounded at odd sizes",
            )
        elif kinds == {float}:
            if (result := self.number(values)) is not None:
                return result
            raise NotSizeDependent(values, "multiply and divide by x.size(0) itself, or x.mean(0) for x.sum(0) / n")
        raise NotSizeDependent(values)

    def integer(self, values: Sequence[int]) -> SizeFormula | None:
        """The multilinear function with integer coefficients that has these values, or None."""
        terms = self.factors(dict(zip(self.sizes, values)).__getitem__)
        if any(factor.denominator != 1 for factor in terms.values()):
            return None
        ordered = sorted(terms.items(), key=lambda item: (-len(item[0]), item[0]))
        result = SizeFormula(tuple((int(factor), names) for names, factor in ordered if factor))
        return result if all(result.evaluate(s) == x for s, x in zip(self.dicts, values)) else None

    def factors(self, value: Callable[[tuple], int], rest: tuple = ()) -> dict[tuple[str, ...], Fraction]:
        """Names of axes -> coefficient of their product. rest: the sizes chosen so far."""
        k = len(rest)
        if k == len(self.names):
            return {(): Fraction(value(rest))}
        low, high = [self.factors(value, (*rest, n[k])) for n in (self.low, self.high)]
        result = {}
        for names, x in low.items():
            slope = (high[names] - x) / (self.high[k] - self.low[k])
            result[names], result[(self.names[k], *names)] = x - slope * self.low[k], slope
        return result

    def number(self, values: Sequence[float]) -> SizeRatio | None:
        """The SizeRatio that has exactly these values, or None."""
        if not all(1e-300 < abs(x) < math.inf for x in values):
            return None
        for ratio in self.ratios(values):
            if all(ratio.evaluate(s) == x for s, x in zip(self.dicts, values)):
                return ratio
        return None

    def ratios(self, values: Sequence[float]) -> Iterator[SizeRatio]:
        """Candidates: an integer; 1 or 2 divided by an integer; and momentum * (n / (n - 1)), as in batch norm."""
        if all(x == int(x) for x in values) and (top := self.integer(list(map(int, values)))):
            yield SizeRatio(1.0, top, constant_formula(1))
        for c in (1, 2, -1, -2):
            if bottom := self.integer([round(c / x) for x in values]):
                yield SizeRatio(1.0, constant_formula(c), bottom)
        for count in range(1, len(self.names) + 1):
            for names in itertools.combinations(self.names, count):
                n = [math.prod([s[name] for name in names]) for s in self.dicts]
                j = next(j for j, m in enumerate(n) if m != n[0])
                # 1 / value = 1/scale - 1/(scale * factor * n), linear in 1 / n
                slope = (1 / values[j] - 1 / values[0]) / (1 / n[0] - 1 / n[j])
                start = 1 / values[0] + slope / n[0]
                if slope > 0 < start and (factor := round(start / slope)):
                    top, bottom = SizeFormula(((factor, names),)), SizeFormula(((factor, names), (-1, ())))
                    near = values[0] / SizeRatio(1.0, top, bottom).evaluate(self.dicts[0])
                    for scale in (float(f"{near:.12g}"), near, math.nextafter(near, 0), math.nextafter(near, math.inf)):
                        yield SizeRatio(scale, top, bottom)


def constant_formula(n: int) -> SizeFormula:
    return SizeFormula(((n, ()),))


def same_value(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(map(same_value, a, b))
    if type(a) is dict:
        return list(a) == list(b) and all(map(same_value, a.values(), b.values()))
    return a is b or bool(a == b) or (a != a and b != b)
