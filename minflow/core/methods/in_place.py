"""Methods that write into their tensor: `x.add_(y)`, `x.zero_()`, `x.scatter_(0, index, y)`.

Each calls the function without the underscore and writes its result; see `../functionalize.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import functions as F
from ..base.errors import ShapeError, TraceError
from ..dispatch import apply
from ..functionalize import (
    apply_inplace,
    call_inplace,
    check_inplace,
    repeated_axes,
    version_counter_of,
    write_into,
    write_result,
)
from ..messages.suggestions import hint_methods
from ..mode import MODE, bump_mutations, using
from ..ops import elementwise as e, shape as s
from ..source_location import fail
from ..spec import DType

if TYPE_CHECKING:
    from ..random import Generator
    from ..tensor import Tensor


@hint_methods
class InPlace:
    """In-place methods."""

    def mul_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(e.mul, self, other)

    def floor_divide_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(e.floor_divide, self, other)

    def remainder_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(e.remainder, self, other)

    def pow_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(e.pow, self, other)

    def add_(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        return apply_inplace(e.add, self, other if alpha == 1 else F.scaled(self, other, alpha))

    def sub_(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        return apply_inplace(e.sub, self, other if alpha == 1 else F.scaled(self, other, alpha))

    def div_(self: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
        return (
            apply_inplace(e.div, self, other)
            if rounding_mode is None
            else call_inplace(F.div, self, other, rounding_mode=rounding_mode)
        )

    def neg_(self: Tensor) -> Tensor:
        return apply_inplace(e.neg, self)

    def abs_(self: Tensor) -> Tensor:
        return apply_inplace(e.abs, self)

    def sign_(self: Tensor) -> Tensor:
        return apply_inplace(e.sign, self)

    def exp_(self: Tensor) -> Tensor:
        return apply_inplace(e.exp, self)

    def log_(self: Tensor) -> Tensor:
        return apply_inplace(e.log, self)

    def sqrt_(self: Tensor) -> Tensor:
        return apply_inplace(e.sqrt, self)

    def rsqrt_(self: Tensor) -> Tensor:
        return apply_inplace(e.rsqrt, self)

    def square_(self: Tensor) -> Tensor:
        return apply_inplace(e.square, self)

    def sin_(self: Tensor) -> Tensor:
        return apply_inplace(e.sin, self)

    def cos_(self: Tensor) -> Tensor:
        return apply_inplace(e.cos, self)

    def tanh_(self: Tensor) -> Tensor:
        return apply_inplace(e.tanh, self)

    def sigmoid_(self: Tensor) -> Tensor:
        return apply_inplace(e.sigmoid, self)

    def floor_(self: Tensor) -> Tensor:
        return apply_inplace(e.floor, self)

    def ceil_(self: Tensor) -> Tensor:
        return apply_inplace(e.ceil, self)

    def trunc_(self: Tensor) -> Tensor:
        return apply_inplace(e.trunc, self)

    def reciprocal_(self: Tensor) -> Tensor:
        return apply_inplace(e.reciprocal, self)

    def relu_(self: Tensor) -> Tensor:
        return apply_inplace(e.relu, self)

    def expm1_(self: Tensor) -> Tensor:
        return apply_inplace(e.expm1, self)

    def log1p_(self: Tensor) -> Tensor:
        return apply_inplace(e.log1p, self)

    def log2_(self: Tensor) -> Tensor:
        return apply_inplace(e.log2, self)

    def tan_(self: Tensor) -> Tensor:
        return apply_inplace(e.tan, self)

    def erf_(self: Tensor) -> Tensor:
        return apply_inplace(e.erf, self)

    def fmod_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(e.fmod, self, other)

    def logical_and_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_result(self, F.logical_and(self, other))

    def logical_or_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_result(self, F.logical_or(self, other))

    def logical_xor_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_result(self, F.logical_xor(self, other))

    def logical_not_(self: Tensor) -> Tensor:
        return write_into(self, F.logical_not(self))

    def bitwise_and_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_result(self, F.bitwise_and(self, other))

    def bitwise_or_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_result(self, F.bitwise_or(self, other))

    def bitwise_xor_(self: Tensor, other: Tensor | float) -> Tensor:
        return write_result(self, F.bitwise_xor(self, other))

    def bitwise_not_(self: Tensor) -> Tensor:
        return write_into(self, F.bitwise_not(self))

    subtract_, multiply_, divide_, true_divide_, negative_, absolute_ = sub_, mul_, div_, div_, neg_, abs_
    sgn_, fix_ = sign_, trunc_

    def cumsum_(self: Tensor, dim: int) -> Tensor:
        return write_into(self, F.cumsum(self, dim))

    def tril_(self: Tensor, diagonal: int = 0) -> Tensor:
        return write_into(self, F.tril(self, diagonal))

    def triu_(self: Tensor, diagonal: int = 0) -> Tensor:
        return write_into(self, F.triu(self, diagonal))

    def baddbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return write_result(self, F.baddbmm(self, batch1, batch2, beta=beta, alpha=alpha))

    def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
        return reshape_in_place(self, F.squeeze, dim)

    def unsqueeze_(self: Tensor, dim: int) -> Tensor:
        return reshape_in_place(self, F.unsqueeze, dim)

    def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
        return reshape_in_place(self, F.transpose, dim0, dim1)

    swapaxes_ = swapdims_ = transpose_

    def t_(self: Tensor) -> Tensor:
        return reshape_in_place(self, F.t)

    def round_(self: Tensor, *, decimals: int = 0) -> Tensor:
        return write_into(self, F.round(self, decimals=decimals))

    def clamp_(self: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
        return call_inplace(F.clamp, self, min, max)

    clip_ = clamp_

    def clamp_min_(self: Tensor, min: Tensor | float) -> Tensor:
        return call_inplace(F.clamp, self, min, None)

    def clamp_max_(self: Tensor, max: Tensor | float) -> Tensor:
        return call_inplace(F.clamp, self, None, max)

    def lerp_(self: Tensor, end: Tensor | float, weight: Tensor | float) -> Tensor:
        return call_inplace(F.lerp, self, end, weight)

    def addmm_(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return write_result(self, F.addmm(self, mat1, mat2, beta=beta, alpha=alpha))

    def addcmul_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        return write_result(self, F.addcmul(self, tensor1, tensor2, value=value))

    def addcdiv_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        return write_result(self, F.addcdiv(self, tensor1, tensor2, value=value))

    def masked_fill_(self: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
        return write_into(self, F.masked_fill(self, mask, value))

    def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
        """Copy the elements of another tensor, broadcast, into this one."""
        if len(getattr(other, "shape", ())) > self.spec.ndim:
            fail(
                ShapeError,
                f"copy_: {tuple(other.shape)} cannot be broadcast to {tuple(self.shape)}, which has fewer axes",
                "other.reshape(x.shape)" if other.numel() == self.numel() else "a tensor that broadcasts to it",
                x=self,
                other=other,
            )
        mode = MODE.get()
        recorded = mode.grad and hasattr(other, "spec") and mode.resolve(other).needs
        # two tensors of one Value would share their hooks
        return write_into(self, apply(s.clone, other) if recorded else other, target_unused=True)

    def fill_(self: Tensor, value: Tensor | float) -> Tensor:
        """Fill with one value."""
        if getattr(value, "shape", ()) or isinstance(value, list | tuple):
            what = f"fill_: the value must be one number, got {tuple(getattr(value, 'shape', ())) or value!r}"
            fail(ShapeError, what, "copy_(...), or value.item()", value=value)
        repeated = repeated_axes(self)
        if not repeated:
            return write_into(self, value, target_unused=True)
        # if elements share memory
        once = tuple([(0, 1 if d in repeated else None, None) for d in range(self.ndim)])
        write_into(apply(s.getitem, self, index=once), value)
        return self

    def zero_(self: Tensor) -> Tensor:
        """Fill with zeros."""
        return self.fill_(0)

    def scatter_(
        self: Tensor,
        dim: int,
        index: Tensor,
        src: Tensor | float | None = None,
        *,
        value: Tensor | float | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        return write_into(self, F.scatter(self, dim, index, src, value=value, reduce=reduce))

    def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        return write_into(self, F.scatter_add(self, dim, index, src))

    def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        return write_into(self, F.index_add(self, dim, index, source, alpha=alpha))

    def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
        return write_into(self, F.index_copy(self, dim, index, source))

    def index_fill_(self: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
        return write_into(self, F.index_fill(self, dim, index, value))

    def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with uniform random values in [low, high)."""
        return write_into(self, F.uniform_like(self, low, high, generator=generator))

    def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with normal random values of this mean and standard deviation."""
        return write_into(self, F.normal_like(self, mean, std, generator=generator))

    def bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
        return write_into(self, F.bernoulli_like(self, p, generator=generator))

    def random_(
        self: Tensor, low: int | None = None, high: int | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with random integers in [low, high). `random_(high)` starts at 0; `random_()` uses the range of the
        dtype.
        """
        if high is None:
            low, high = 0, integer_limit(self.spec.dtype) if low is None else low
        return write_into(self, F.randint_like(self, low, high, generator=generator))

    def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with random values of the exponential distribution with rate `lambd`."""
        return write_into(self, F.exponential_like(self, lambd, generator=generator))


def reshape_in_place(target: Tensor, view: Callable, *args: Any) -> Tensor:
    """Turn `target` itself into a view of its previous elements: `x.t_()`."""
    if target.array is not None and MODE.get().trace is not None:
        fail(
            TraceError,
            f"{view.__name__}_ cannot change a tensor from outside while a graph is built: it would lose its elements",
            f"x = x.{view.__name__}(...) makes a view",
            tensor=target,
        )
    bump_mutations()
    check_inplace(MODE.get(), target, target)
    leaf = target.needs and target.is_leaf  # only under no_grad: otherwise a leaf is refused
    base = type(target).__new__(type(target))
    base.__dict__.update(target.__dict__)
    base.version_counter = version_counter_of(target)
    with using(MODE.get().replace(grad=True)):  # no element is written, so the history stays, even under no_grad
        fresh = view(base, *args)
    target.array, target.spec, target.alias, target.version_counter = (
        fresh.array,
        fresh.spec,
        fresh.alias,
        fresh.version_counter,
    )
    if leaf:
        target.value, target.needs = None, False
        return target.requires_grad_()
    target.value, target.needs = fresh.value, fresh.needs
    return target


def integer_limit(dtype: DType) -> int:
    """The exclusive upper bound of the integers that the dtype represents exactly."""
    return (
        2 ** (np.finfo(dtype.np).nmant + 1) + 1
        if dtype.floating
        else 2
        if dtype.rank == 0
        else int(np.iinfo(dtype.np).max)
    )
