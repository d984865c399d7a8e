"""Elementwise arithmetic, comparison, matrix products and sampling as methods: `x.add(y)`, `x.exp()`, `x.matmul(w)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import functions as F
from ..base.errors import ShapeError
from ..dispatch import apply
from ..messages.suggestions import hint_methods
from ..ops import elementwise as e
from ..source_location import fail

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..random import Generator
    from ..tensor import Tensor


@hint_methods
class Arithmetic:
    """Arithmetic, comparison, linear algebra."""

    def add(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        return F.add(self, other, alpha=alpha)

    def sub(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        return F.sub(self, other, alpha=alpha)

    def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        return F.addcmul(self, tensor1, tensor2, value=value)

    def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        return F.addcdiv(self, tensor1, tensor2, value=value)

    def mul(self: Tensor, other: Tensor | float) -> Tensor:
        return apply(e.mul, self, other)

    def div(self: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
        return F.div(self, other, rounding_mode=rounding_mode)

    subtract, multiply, divide, true_divide = sub, mul, div, div

    def floor_divide(self: Tensor, other: Tensor | float) -> Tensor:
        return F.floor_divide(self, other)

    def fmod(self: Tensor, other: Tensor | float) -> Tensor:
        return F.fmod(self, other)

    def remainder(self: Tensor, other: Tensor | float) -> Tensor:
        return F.remainder(self, other)

    def pow(self: Tensor, other: Tensor | float) -> Tensor:
        return F.pow(self, other)

    def maximum(self: Tensor, other: Tensor | float) -> Tensor:
        return F.maximum(self, other)

    def minimum(self: Tensor, other: Tensor | float) -> Tensor:
        return F.minimum(self, other)

    def eq(self: Tensor, other: Tensor | float) -> Tensor:
        return F.eq(self, other)

    def ne(self: Tensor, other: Tensor | float) -> Tensor:
        return F.ne(self, other)

    def lt(self: Tensor, other: Tensor | float) -> Tensor:
        return F.lt(self, other)

    def le(self: Tensor, other: Tensor | float) -> Tensor:
        return F.le(self, other)

    def gt(self: Tensor, other: Tensor | float) -> Tensor:
        return F.gt(self, other)

    def ge(self: Tensor, other: Tensor | float) -> Tensor:
        return F.ge(self, other)

    def logical_and(self: Tensor, other: Tensor | float) -> Tensor:
        return F.logical_and(self, other)

    def logical_or(self: Tensor, other: Tensor | float) -> Tensor:
        return F.logical_or(self, other)

    def logical_xor(self: Tensor, other: Tensor | float) -> Tensor:
        return F.logical_xor(self, other)

    def bitwise_and(self: Tensor, other: Tensor | float) -> Tensor:
        return F.bitwise_and(self, other)

    def bitwise_or(self: Tensor, other: Tensor | float) -> Tensor:
        return F.bitwise_or(self, other)

    def bitwise_xor(self: Tensor, other: Tensor | float) -> Tensor:
        return F.bitwise_xor(self, other)

    def neg(self: Tensor) -> Tensor:
        return F.neg(self)

    def abs(self: Tensor) -> Tensor:
        return F.abs(self)

    def sign(self: Tensor) -> Tensor:
        return F.sign(self)

    def exp(self: Tensor) -> Tensor:
        return F.exp(self)

    def expm1(self: Tensor) -> Tensor:
        return F.expm1(self)

    def log(self: Tensor) -> Tensor:
        return F.log(self)

    def log1p(self: Tensor) -> Tensor:
        return F.log1p(self)

    def log2(self: Tensor) -> Tensor:
        return F.log2(self)

    def sqrt(self: Tensor) -> Tensor:
        return F.sqrt(self)

    def rsqrt(self: Tensor) -> Tensor:
        return F.rsqrt(self)

    def square(self: Tensor) -> Tensor:
        return F.square(self)

    def sin(self: Tensor) -> Tensor:
        return F.sin(self)

    def cos(self: Tensor) -> Tensor:
        return F.cos(self)

    def tan(self: Tensor) -> Tensor:
        return F.tan(self)

    def tanh(self: Tensor) -> Tensor:
        return F.tanh(self)

    def sigmoid(self: Tensor) -> Tensor:
        return F.sigmoid(self)

    def erf(self: Tensor) -> Tensor:
        return F.erf(self)

    def floor(self: Tensor) -> Tensor:
        return F.floor(self)

    def ceil(self: Tensor) -> Tensor:
        return F.ceil(self)

    def trunc(self: Tensor) -> Tensor:
        return F.trunc(self)

    def reciprocal(self: Tensor) -> Tensor:
        return F.reciprocal(self)

    def relu(self: Tensor) -> Tensor:
        return F.relu(self)

    def logical_not(self: Tensor) -> Tensor:
        return F.logical_not(self)

    def bitwise_not(self: Tensor) -> Tensor:
        return F.bitwise_not(self)

    def isnan(self: Tensor) -> Tensor:
        return F.isnan(self)

    def isinf(self: Tensor) -> Tensor:
        return F.isinf(self)

    def isfinite(self: Tensor) -> Tensor:
        return F.isfinite(self)

    negative, absolute, sgn, fix = neg, abs, sign, trunc
    less, less_equal, greater, greater_equal, not_equal = lt, le, gt, ge, ne

    def round(self: Tensor, decimals: int = 0) -> Tensor:
        return F.round(self, decimals=decimals)

    def clamp(self: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
        return F.clamp(self, min, max)

    clip = clamp

    def clamp_min(self: Tensor, min: Tensor | float) -> Tensor:
        return F.clamp(self, min, None)

    def clamp_max(self: Tensor, max: Tensor | float) -> Tensor:
        return F.clamp(self, None, max)

    def lerp(self: Tensor, end: Tensor | float, weight: Tensor | float) -> Tensor:
        return F.lerp(self, end, weight)

    def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return F.addmm(self, mat1, mat2, beta=beta, alpha=alpha)

    def where(self: Tensor, condition: Tensor, other: Tensor | float) -> Tensor:
        return F.where(condition, self, other)

    def masked_fill(self: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
        return F.masked_fill(self, mask, value)

    @F.accept_axis
    def softmax(self: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
        return F.softmax(self, dim, dtype=dtype)

    @F.accept_axis
    def log_softmax(self: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
        return F.log_softmax(self, dim, dtype=dtype)

    def allclose(
        self: Tensor, other: Tensor | float, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        return F.allclose(self, other, rtol, atol, equal_nan)

    def isclose(
        self: Tensor, other: Tensor | float, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Tensor:
        return F.isclose(self, other, rtol, atol, equal_nan)

    def equal(self: Tensor, other: Tensor) -> bool:
        return F.equal(self, other)

    # ---- linear algebra ---------------------------------------------------------------------------------------------

    def matmul(self: Tensor, other: Tensor) -> Tensor:
        return F.matmul(self, other)

    def mm(self: Tensor, mat2: Tensor) -> Tensor:
        return F.mm(self, mat2)

    def bmm(self: Tensor, mat2: Tensor) -> Tensor:
        return F.bmm(self, mat2)

    def mv(self: Tensor, vec: Tensor) -> Tensor:
        return F.mv(self, vec)

    def dot(self: Tensor, other: Tensor) -> Tensor:
        return F.dot(self, other)

    def outer(self: Tensor, vec2: Tensor) -> Tensor:
        return F.outer(self, vec2)

    def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return F.baddbmm(self, batch1, batch2, beta=beta, alpha=alpha)

    # ---- random numbers ---------------------------------------------------------------------------------------------

    def bernoulli(self: Tensor, p: Tensor | float | None = None, *, generator: Generator | None = None) -> Tensor:
        if getattr(p, "shape", ()):
            fail(
                ShapeError,
                "bernoulli: p must be a number, got a tensor",
                "p.bernoulli() draws with these probabilities",
                x=self,
                p=p,
            )
        return F.bernoulli(self, generator=generator) if p is None else F.bernoulli_like(self, p, generator=generator)
