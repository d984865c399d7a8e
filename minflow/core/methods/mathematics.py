"""Elementary and special functions as methods, and their in-place forms: `x.sinh()`, `x.hypot(y)`, `x.lgamma_()`.

Read next: `in_place.py`.
"""

from __future__ import annotations

from .. import functions as F
from ..functionalize import in_place, overwrite, write
from ..messages.suggestions import hint_methods
from ..ops import binary, elementwise as e, special as s


@hint_methods
class Mathematics:
    """Unary and binary functions beyond arithmetic."""

    def acos(self):
        return F.acos(self)

    def acosh(self):
        return F.acosh(self)

    def asin(self):
        return F.asin(self)

    def asinh(self):
        return F.asinh(self)

    def atan(self):
        return F.atan(self)

    def atanh(self):
        return F.atanh(self)

    def cosh(self):
        return F.cosh(self)

    def sinh(self):
        return F.sinh(self)

    def digamma(self):
        return F.digamma(self)

    def erfc(self):
        return F.erfc(self)

    def erfinv(self):
        return F.erfinv(self)

    def exp2(self):
        return F.exp2(self)

    def frac(self):
        return F.frac(self)

    def i0(self):
        return F.i0(self)

    def lgamma(self):
        return F.lgamma(self)

    def log10(self):
        return F.log10(self)

    def sinc(self):
        return F.sinc(self)

    def deg2rad(self):
        return F.deg2rad(self)

    def rad2deg(self):
        return F.rad2deg(self)

    def frexp(self):
        return F.frexp(self)

    def isneginf(self):
        return F.isneginf(self)

    def isposinf(self):
        return F.isposinf(self)

    def isreal(self):
        return F.isreal(self)

    def signbit(self):
        return F.signbit(self)

    def positive(self):
        return F.positive(self)

    def is_nonzero(self):
        return F.is_nonzero(self)

    def atan2(self, other):
        return F.atan2(self, other)

    def copysign(self, other):
        return F.copysign(self, other)

    def fmax(self, other):
        return F.fmax(self, other)

    def fmin(self, other):
        return F.fmin(self, other)

    def gcd(self, other):
        return F.gcd(self, other)

    def heaviside(self, values):
        return F.heaviside(self, values)

    def hypot(self, other):
        return F.hypot(self, other)

    def lcm(self, other):
        return F.lcm(self, other)

    def ldexp(self, other):
        return F.ldexp(self, other)

    def logaddexp(self, other):
        return F.logaddexp(self, other)

    def logaddexp2(self, other):
        return F.logaddexp2(self, other)

    def nextafter(self, other):
        return F.nextafter(self, other)

    def xlogy(self, other):
        return F.xlogy(self, other)

    def bitwise_left_shift(self, other):
        return F.bitwise_left_shift(self, other)

    def bitwise_right_shift(self, other):
        return F.bitwise_right_shift(self, other)

    def igamma(self, other):
        return F.igamma(self, other)

    def igammac(self, other):
        return F.igammac(self, other)

    def float_power(self, exponent):
        return F.float_power(self, exponent)

    def logit(self, eps=None):
        return F.logit(self, eps)

    def nan_to_num(self, nan=None, posinf=None, neginf=None):
        return F.nan_to_num(self, nan, posinf, neginf)

    def polygamma(self, n):
        return F.polygamma(n, self)

    def mvlgamma(self, p):
        return F.mvlgamma(self, p)

    def is_same_size(self, other):
        return F.is_same_size(self, other)

    # ---- in place ----------------------------------------------------------------------------------------------------

    def acos_(self):
        return in_place(e.acos, self)

    def acosh_(self):
        return in_place(e.acosh, self)

    def asin_(self):
        return in_place(e.asin, self)

    def asinh_(self):
        return in_place(e.asinh, self)

    def atan_(self):
        return in_place(e.atan, self)

    def atanh_(self):
        return in_place(e.atanh, self)

    def cosh_(self):
        return in_place(e.cosh, self)

    def sinh_(self):
        return in_place(e.sinh, self)

    def digamma_(self):
        return in_place(s.digamma, self)

    def erfc_(self):
        return in_place(s.erfc, self)

    def erfinv_(self):
        return in_place(s.erfinv, self)

    def exp2_(self):
        return in_place(e.exp2, self)

    def frac_(self):
        return overwrite(F.frac, self)

    def i0_(self):
        return in_place(s.i0, self)

    def lgamma_(self):
        return in_place(s.lgamma, self)

    def log10_(self):
        return in_place(e.log10, self)

    def sinc_(self):
        return overwrite(F.sinc, self)

    def deg2rad_(self):
        return overwrite(F.deg2rad, self)

    def rad2deg_(self):
        return overwrite(F.rad2deg, self)

    def atan2_(self, other):
        return in_place(e.atan2, self, other)

    def copysign_(self, other):
        return in_place(binary.copysign, self, other)

    def gcd_(self, other):
        return in_place(binary.gcd, self, other)

    def heaviside_(self, values):
        return overwrite(F.heaviside, self, values)

    def hypot_(self, other):
        return in_place(binary.hypot, self, other)

    def lcm_(self, other):
        return in_place(binary.lcm, self, other)

    def ldexp_(self, other):
        return overwrite(F.ldexp, self, other)

    def nextafter_(self, other):
        return in_place(binary.nextafter, self, other)

    def xlogy_(self, other):
        return in_place(binary.xlogy, self, other)

    def bitwise_left_shift_(self, other):
        return in_place(binary.bitwise_left_shift, self, other)

    def bitwise_right_shift_(self, other):
        return in_place(binary.bitwise_right_shift, self, other)

    def igamma_(self, other):
        return in_place(s.igamma, self, other)

    def igammac_(self, other):
        return in_place(s.igammac, self, other)

    def float_power_(self, exponent):
        return overwrite(F.float_power, self, exponent)

    def logit_(self, eps=None):
        return overwrite(F.logit, self, eps)

    def nan_to_num_(self, nan=None, posinf=None, neginf=None):
        return overwrite(F.nan_to_num, self, nan, posinf, neginf)

    def polygamma_(self, n):
        return overwrite(by_order, self, n)

    def mvlgamma_(self, p):
        return overwrite(F.mvlgamma, self, p)

    def eq_(self, other):
        return write(self, F.eq(self, other))

    def ne_(self, other):
        return write(self, F.ne(self, other))

    def lt_(self, other):
        return write(self, F.lt(self, other))

    def le_(self, other):
        return write(self, F.le(self, other))

    def gt_(self, other):
        return write(self, F.gt(self, other))

    def ge_(self, other):
        return write(self, F.ge(self, other))

    # ---- NumPy's names -----------------------------------------------------------------------------------

    arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
    arctan, arctan2, arctanh = atan, atan2, atanh
    arccos_, arccosh_, arcsin_, arcsinh_ = acos_, acosh_, asin_, asinh_
    arctan_, arctan2_, arctanh_ = atan_, atan2_, atanh_
    less_, less_equal_, greater_, greater_equal_, not_equal_ = lt_, le_, gt_, ge_, ne_


def by_order(input, n):
    return F.polygamma(n, input)
