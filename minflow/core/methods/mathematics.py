"""Elementary and special functions as methods, and their in-place forms: `x.sinh()`, `x.hypot(y)`, `x.lgamma_()`.

Read next: `in_place.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functions as F
from ..functionalize import apply_inplace, call_inplace, write_into
from ..messages.suggestions import hint_methods
from ..ops import binary, elementwise as e, special as s

if TYPE_CHECKING:
    from ..functions import return_types
    from ..tensor import Tensor


@hint_methods
class Mathematics:
    """Unary and binary functions beyond arithmetic."""

    def acos(self: Tensor) -> Tensor:
        return F.acos(self)

    def acosh(self: Tensor) -> Tensor:
        return F.acosh(self)

    def asin(self: Tensor) -> Tensor:
        return F.asin(self)

    def asinh(self: Tensor) -> Tensor:
        return F.asinh(self)

    def atan(self: Tensor) -> Tensor:
        return F.atan(self)

    def atanh(self: Tensor) -> Tensor:
        return F.atanh(self)

    def cosh(self: Tensor) -> Tensor:
        return F.cosh(self)

    def sinh(self: Tensor) -> Tensor:
        return F.sinh(self)

    def digamma(self: Tensor) -> Tensor:
        return F.digamma(self)

    def erfc(self: Tensor) -> Tensor:
        return F.erfc(self)

    def erfinv(self: Tensor) -> Tensor:
        return F.erfinv(self)

    def exp2(self: Tensor) -> Tensor:
        return F.exp2(self)

    def frac(self: Tensor) -> Tensor:
        return F.frac(self)

    def i0(self: Tensor) -> Tensor:
        return F.i0(self)

    def lgamma(self: Tensor) -> Tensor:
        return F.lgamma(self)

    def log10(self: Tensor) -> Tensor:
        return F.log10(self)

    def sinc(self: Tensor) -> Tensor:
        return F.sinc(self)

    def deg2rad(self: Tensor) -> Tensor:
        return F.deg2rad(self)

    def rad2deg(self: Tensor) -> Tensor:
        return F.rad2deg(self)

    def frexp(self: Tensor) -> return_types.frexp:
        return F.frexp(self)

    def isneginf(self: Tensor) -> Tensor:
        return F.isneginf(self)

    def isposinf(self: Tensor) -> Tensor:
        return F.isposinf(self)

    def isreal(self: Tensor) -> Tensor:
        return F.isreal(self)

    def signbit(self: Tensor) -> Tensor:
        return F.signbit(self)

    def positive(self: Tensor) -> Tensor:
        return F.positive(self)

    def is_nonzero(self: Tensor) -> bool:
        return F.is_nonzero(self)

    def atan2(self: Tensor, other: Tensor | float) -> Tensor:
        return F.atan2(self, other)

    def copysign(self: Tensor, other: Tensor | float) -> Tensor:
        return F.copysign(self, other)

    def fmax(self: Tensor, other: Tensor | float) -> Tensor:
        return F.fmax(self, other)

    def fmin(self: Tensor, other: Tensor | float) -> Tensor:
        return F.fmin(self, other)

    def gcd(self: Tensor, other: Tensor | float) -> Tensor:
        return F.gcd(self, other)

    def heaviside(self: Tensor, values: Tensor) -> Tensor:
        return F.heaviside(self, values)

    def hypot(self: Tensor, other: Tensor | float) -> Tensor:
        return F.hypot(self, other)

    def lcm(self: Tensor, other: Tensor | float) -> Tensor:
        return F.lcm(self, other)

    def ldexp(self: Tensor, other: Tensor | float) -> Tensor:
        return F.ldexp(self, other)

    def logaddexp(self: Tensor, other: Tensor | float) -> Tensor:
        return F.logaddexp(self, other)

    def logaddexp2(self: Tensor, other: Tensor | float) -> Tensor:
        return F.logaddexp2(self, other)

    def nextafter(self: Tensor, other: Tensor | float) -> Tensor:
        return F.nextafter(self, other)

    def xlogy(self: Tensor, other: Tensor | float) -> Tensor:
        return F.xlogy(self, other)

    def bitwise_left_shift(self: Tensor, other: Tensor | float) -> Tensor:
        return F.bitwise_left_shift(self, other)

    def bitwise_right_shift(self: Tensor, other: Tensor | float) -> Tensor:
        return F.bitwise_right_shift(self, other)

    def igamma(self: Tensor, other: Tensor | float) -> Tensor:
        return F.igamma(self, other)

    def igammac(self: Tensor, other: Tensor | float) -> Tensor:
        return F.igammac(self, other)

    def float_power(self: Tensor, exponent: Tensor | float) -> Tensor:
        return F.float_power(self, exponent)

    def logit(self: Tensor, eps: float | None = None) -> Tensor:
        return F.logit(self, eps)

    def nan_to_num(
        self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        return F.nan_to_num(self, nan, posinf, neginf)

    def polygamma(self: Tensor, n: int) -> Tensor:
        return F.polygamma(n, self)

    def mvlgamma(self: Tensor, p: int) -> Tensor:
        return F.mvlgamma(self, p)

    def is_same_size(self: Tensor, other: Tensor) -> bool:
        return F.is_same_size(self, other)

    # ---- in place ----------------------------------------------------------------------------------------------------

    def acos_(self: Tensor) -> Tensor:
        return apply_inplace(e.acos, self)

    def acosh_(self: Tensor) -> Tensor:
        return apply_inplace(e.acosh, self)

    def asin_(self: Tensor) -> Tensor:
        return apply_inplace(e.asin, self)

    def asinh_(self: Tensor) -> Tensor:
        return apply_inplace(e.asinh, self)

    def atan_(self: Tensor) -> Tensor:
        return apply_inplace(e.atan, self)

    def atanh_(self: Tensor) -> Tensor:
        return apply_inplace(e.atanh, self)

    def cosh_(self: Tensor) -> Tensor:
        return apply_inplace(e.cosh, self)

    def sinh_(self: Tensor) -> Tensor:
        return apply_inplace(e.sinh, self)

    def digamma_(self: Tensor) -> Tensor:
        return apply_inplace(s.digamma, self)

    def erfc_(self: Tensor) -> Tensor:
        return apply_inplace(s.erfc, self)

    def erfinv_(self: Tensor) -> Tensor:
        return apply_inplace(s.erfinv, self)

    def exp2_(self: Tensor) -> Tensor:
        return apply_inplace(e.exp2, self)

    def frac_(self: Tensor) -> Tensor:
        return call_inplace(F.frac, self)

    def i0_(self: Tensor) -> Tensor:
        return apply_inplace(s.i0, self)

    def lgamma_(self: Tensor) -> Tensor:
        return apply_inplace(s.lgamma, self)

    def log10_(self: Tensor) -> Tensor:
        return apply_inplace(e.log10, self)

    def sinc_(self: Tensor) -> Tensor:
        return call_inplace(F.sinc, self)

    def deg2rad_(self: Tensor) -> Tensor:
        return call_inplace(F.deg2rad, self)

    def rad2deg_(self: Tensor) -> Tensor:
        return call_inplace(F.rad2deg, self)

    def atan2_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(e.atan2, self, other)

    def copysign_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.copysign, self, other)

    def gcd_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.gcd, self, other)

    def heaviside_(self: Tensor, values: Tensor) -> Tensor:
        return call_inplace(F.heaviside, self, values)

    def hypot_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.hypot, self, other)

    def lcm_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.lcm, self, other)

    def ldexp_(self: Tensor, other: Tensor | float) -> Tensor:
        return call_inplace(F.ldexp, self, other)

    def nextafter_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.nextafter, self, other)

    def xlogy_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.xlogy, self, other)

    def bitwise_left_shift_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.bitwise_left_shift, self, other)

    def bitwise_right_shift_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(binary.bitwise_right_shift, self, other)

    def igamma_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(s.igamma, self, other)

    def igammac_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(s.igammac, self, other)

    def float_power_(self: Tensor, exponent: Tensor | float) -> Tensor:
        return call_inplace(F.float_power, self, exponent)

    def logit_(self: Tensor, eps: float | None = None) -> Tensor:
        return call_inplace(F.logit, self, eps)

    def nan_to_num_(
        self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        return call_inplace(F.nan_to_num, self, nan, posinf, neginf)

    def polygamma_(self: Tensor, n: int) -> Tensor:
        return call_inplace(by_order, self, n)

    def mvlgamma_(self: Tensor, p: int) -> Tensor:
        return call_inplace(F.mvlgamma, self, p)

    def eq_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_into(self, F.eq(self, other))

    def ne_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_into(self, F.ne(self, other))

    def lt_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_into(self, F.lt(self, other))

    def le_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_into(self, F.le(self, other))

    def gt_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_into(self, F.gt(self, other))

    def ge_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_into(self, F.ge(self, other))

    # ---- NumPy's names -----------------------------------------------------------------------------------

    arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
    arctan, arctan2, arctanh = atan, atan2, atanh
    arccos_, arccosh_, arcsin_, arcsinh_ = acos_, acosh_, asin_, asinh_
    arctan_, arctan2_, arctanh_ = atan_, atan2_, atanh_
    less_, less_equal_, greater_, greater_equal_, not_equal_ = lt_, le_, gt_, ge_, ne_


def by_order(input: Tensor, n: int) -> Tensor:
    return F.polygamma(n, input)
