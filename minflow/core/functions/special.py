"""Special functions with PyTorch's arguments: those that take an order, and composites over `../ops/special.py`.

They are public in `flow.special`, and some also in `flow`. Read next: `reduction.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base.errors import OutOfRangeError
from ..ops import elementwise as e, special as s
from ..source_location import fail
from .arguments import in_float32, integer
from .elementary import to_floating

if TYPE_CHECKING:
    from ..tensor import Tensor


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma: n = 0 is digamma itself, n = 1 the trigamma function."""
    n = integer(n, "n")
    if n < 0:
        fail(OutOfRangeError, f"polygamma: n must be at least 0, got {n}", "polygamma(1, x)", n=n)
    return s.digamma(input) if n == 0 else s.polygamma(to_floating(input), n=n)


@in_float32
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """log of the multivariate gamma function: log(pi) * p * (p-1) / 4 + the sum of lgamma(x - j/2), j = 0 .. p-1.

    p: the number of dimensions. Meant for x above (p - 1) / 2.
    """
    p = integer(p, "p")
    if not 1 <= p <= 10_000:
        fail(OutOfRangeError, f"mvlgamma: p must be from 1 to 10,000, got {p}", "mvlgamma(x, p=1)", p=p)
    input = to_floating(input)
    total = s.lgamma(input)
    for j in range(1, p):
        total = e.add(total, s.lgamma(e.sub(input, j / 2)))
    return e.add(total, p * (p - 1) / 4 * math.log(math.pi))


@in_float32
def ndtr(input: Tensor) -> Tensor:
    """The cdf of the standard normal distribution at x."""
    return e.mul(s.erfc(e.mul(to_floating(input), -math.sqrt(0.5))), 0.5)


def multigammaln(input: Tensor, p: int) -> Tensor:
    """The name for `mvlgamma` in `flow.special`."""
    return mvlgamma(input, p)
