"""Elementwise arithmetic, comparison, matrix products and sampling as methods: `x.add(y)`, `x.exp()`, `x.matmul(w)`."""

from __future__ import annotations

from .. import functions as F
from ..base.errors import ShapeError
from ..dispatch import apply
from ..messages.suggestions import hint_methods
from ..ops import elementwise as e
from ..source_location import fail


@hint_methods
class Arithmetic:
    """Arithmetic, comparison, linear algebra."""

    def add(self, other, *, alpha=1):
        return F.add(self, other, alpha=alpha)

    def sub(self, other, *, alpha=1):
        return F.sub(self, other, alpha=alpha)

    def addcmul(self, tensor1, tensor2, *, value=1):
        return F.addcmul(self, tensor1, tensor2, value=value)

    def addcdiv(self, tensor1, tensor2, *, value=1):
        return F.addcdiv(self, tensor1, tensor2, value=value)

    def mul(self, other):
        return apply(e.mul, self, other)

    def div(self, other, *, rounding_mode=None):
        return F.div(self, other, rounding_mode=rounding_mode)

    subtract, multiply, divide, true_divide = sub, mul, div, div

    def floor_divide(self, other):
        return F.floor_divide(self, other)

    def fmod(self, other):
        return F.fmod(self, other)

    def remainder(self, other):
        return F.remainder(self, other)

    def pow(self, other):
        return F.pow(self, other)

    def maximum(self, other):
        return F.maximum(self, other)

    def minimum(self, other):
        return F.minimum(self, other)

    def eq(self, other):
        return F.eq(self, other)

    def ne(self, other):
        return F.ne(self, other)

    def lt(self, other):
        return F.lt(self, other)

    def le(self, other):
        return F.le(self, other)

    def gt(self, other):
        return F.gt(self, other)

    def ge(self, other):
        return F.ge(self, other)

    def logical_and(self, other):
        return F.logical_and(self, other)

    def logical_or(self, other):
        return F.logical_or(self, other)

    def logical_xor(self, other):
        return F.logical_xor(self, other)

    def bitwise_and(self, other):
        return F.bitwise_and(self, other)

    def bitwise_or(self, other):
        return F.bitwise_or(self, other)

    def bitwise_xor(self, other):
        return F.bitwise_xor(self, other)

    def neg(self):
        return F.neg(self)

    def abs(self):
        return F.abs(self)

    def sign(self):
        return F.sign(self)

    def exp(self):
        return F.exp(self)

    def expm1(self):
        return F.expm1(self)

    def log(self):
        return F.log(self)

    def log1p(self):
        return F.log1p(self)

    def log2(self):
        return F.log2(self)

    def sqrt(self):
        return F.sqrt(self)

    def rsqrt(self):
        return F.rsqrt(self)

    def square(self):
        return F.square(self)

    def sin(self):
        return F.sin(self)

    def cos(self):
        return F.cos(self)

    def tan(self):
        return F.tan(self)

    def tanh(self):
        return F.tanh(self)

    def sigmoid(self):
        return F.sigmoid(self)

    def erf(self):
        return F.erf(self)

    def floor(self):
        return F.floor(self)

    def ceil(self):
        return F.ceil(self)

    def trunc(self):
        return F.trunc(self)

    def reciprocal(self):
        return F.reciprocal(self)

    def relu(self):
        return F.relu(self)

    def logical_not(self):
        return F.logical_not(self)

    def bitwise_not(self):
        return F.bitwise_not(self)

    def isnan(self):
        return F.isnan(self)

    def isinf(self):
        return F.isinf(self)

    def isfinite(self):
        return F.isfinite(self)

    negative, absolute, sgn, fix = neg, abs, sign, trunc
    less, less_equal, greater, greater_equal, not_equal = lt, le, gt, ge, ne

    def round(self, decimals=0):
        return F.round(self, decimals=decimals)

    def clamp(self, min=None, max=None):
        return F.clamp(self, min, max)

    clip = clamp

    def clamp_min(self, min):
        return F.clamp(self, min, None)

    def clamp_max(self, max):
        return F.clamp(self, None, max)

    def lerp(self, end, weight):
        return F.lerp(self, end, weight)

    def addmm(self, mat1, mat2, *, beta=1, alpha=1):
        return F.addmm(self, mat1, mat2, beta=beta, alpha=alpha)

    def where(self, condition, other):
        return F.where(condition, self, other)

    def masked_fill(self, mask, value):
        return F.masked_fill(self, mask, value)

    @F.accept_axis
    def softmax(self, dim=None, dtype=None):
        return F.softmax(self, dim, dtype=dtype)

    @F.accept_axis
    def log_softmax(self, dim=None, dtype=None):
        return F.log_softmax(self, dim, dtype=dtype)

    def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        return F.allclose(self, other, rtol, atol, equal_nan)

    def isclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        return F.isclose(self, other, rtol, atol, equal_nan)

    def equal(self, other):
        return F.equal(self, other)

    # ---- linear algebra ---------------------------------------------------------------------------------------------

    def matmul(self, other):
        return F.matmul(self, other)

    def mm(self, mat2):
        return F.mm(self, mat2)

    def bmm(self, mat2):
        return F.bmm(self, mat2)

    def mv(self, vec):
        return F.mv(self, vec)

    def dot(self, other):
        return F.dot(self, other)

    def outer(self, vec2):
        return F.outer(self, vec2)

    def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
        return F.baddbmm(self, batch1, batch2, beta=beta, alpha=alpha)

    # ---- random numbers ---------------------------------------------------------------------------------------------

    def bernoulli(self, p=None, *, generator=None):
        if getattr(p, "shape", ()):
            fail(
                ShapeError,
                "bernoulli: p must be a number, got a tensor",
                "p.bernoulli() draws with these probabilities",
                x=self,
                p=p,
            )
        return F.bernoulli(self, generator=generator) if p is None else F.bernoulli_like(self, p, generator=generator)
