"""Methods that write into their tensor and are more than rows of `forwarded.py`: `x.add_(y)`, `x.zero_()`,
`x.uniform_()`. See `../functionalize.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..base.errors import DTypeError, ShapeError, TraceError
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
from ..spec import DType, finfo, iinfo

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..random import Generator
    from ..tensor import Tensor


@hint_methods
class InPlace:
    """In-place methods."""

    def add_(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        return apply_inplace(
            e.add, self, other if alpha.__class__ is int and alpha == 1 else F.scaled(self, other, alpha)
        )

    def sub_(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        return apply_inplace(
            e.sub, self, other if alpha.__class__ is int and alpha == 1 else F.scaled(self, other, alpha)
        )

    def div_(self: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
        return (
            apply_inplace(e.div, self, other)
            if rounding_mode is None
            else call_inplace(F.div, self, other, rounding_mode=rounding_mode)
        )

    subtract_, divide_, true_divide_ = sub_, div_, div_

    def pow_(self: Tensor, other: Tensor | float) -> Tensor:
        return apply_inplace(e.pow, self, other)

    def polygamma_(self: Tensor, n: int) -> Tensor:
        return call_inplace(lambda input: F.polygamma(n, input), self)

    def cumsum_(self: Tensor, dim: int) -> Tensor:
        return write_into(self, F.cumsum(self, dim))

    def cumprod_(self: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            what = f"cumprod_: the tensor is {self.dtype.name}, and in place it keeps its dtype"
            fail(DTypeError, what, "x.cumprod(dim, dtype=...)", x=self)
        return call_inplace(F.cumprod, self, dim)

    def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
        return write_result(self, F.renorm(self.clone(), p, dim, maxnorm))

    def fill_diagonal_(self: Tensor, fill_value: Tensor | float, wrap: bool = False) -> Tensor:
        """Fill the diagonal with one value, in place; wrap: again below each square block of a tall matrix."""
        check_one_number("fill_diagonal_", fill_value)
        return write_into(self, F.fill_diagonal(self, fill_value, wrap))

    def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
        """Copy the elements of another tensor, broadcast, into this one."""
        if len(getattr(other, "shape", ())) > self.spec.ndim:
            what = f"copy_: {tuple(other.shape)} cannot be broadcast to {tuple(self.shape)}, which has fewer axes"
            hint = "other.reshape(x.shape)" if other.numel() == self.numel() else "a tensor that broadcasts to it"
            fail(ShapeError, what, hint, x=self, other=other)
        mode = MODE.get()
        recorded = mode.grad and hasattr(other, "spec") and mode.resolve(other)._needs
        # two tensors of one Value would share their hooks
        return write_into(self, apply(s.clone, other) if recorded else other, target_unused=True)

    def fill_(self: Tensor, value: Tensor | float) -> Tensor:
        """Fill with one value."""
        check_one_number("fill_", value)
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

    # ---- random numbers ---------------------------------------------------------------------------------------------

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

    def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the number of trials up to the first success of probability `p`."""
        return write_into(self, F.geometric_like(self, p, generator=generator))

    def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with random values of the Cauchy distribution."""
        return write_into(self, F.cauchy_like(self, median, sigma, generator=generator))

    def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with exp of normal random values."""
        return write_into(self, F.log_normal_like(self, mean, std, generator=generator))


def reshape_in_place(view: Callable, target: Tensor, *args: Any, **options: Any) -> Tensor:
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
    leaf = target._needs and target.is_leaf  # only under no_grad: otherwise a leaf is refused
    base = type(target).__new__(type(target))
    base.__dict__.update(target.__dict__)
    base._version_counter = version_counter_of(target)
    with using(MODE.get().replace(grad=True)):  # no element is written, so the history stays, even under no_grad
        fresh = view(base, *args, **options)
    target.array, target.spec, target._alias, target._version_counter = (
        fresh.array,
        fresh.spec,
        fresh._alias,
        fresh._version_counter,
    )
    if leaf:
        target._value, target._needs = None, False
        return target.requires_grad_()
    target._value, target._needs = fresh._value, fresh._needs
    return target


def check_one_number(op: str, value: Any) -> None:
    """Refuse a list, and a tensor or array with axes."""
    shape = tuple(getattr(value, "shape", ()))
    if shape or isinstance(value, list | tuple):
        what = f"{op}: the value must be one number, got {shape or value!r}"
        fail(ShapeError, what, "copy_(...), or value.item()", value=value)


def integer_limit(dtype: DType) -> int:
    """The exclusive upper bound of the integers that the dtype represents exactly."""
    if dtype.floating:
        return int(2 / finfo(dtype).eps) + 1
    return iinfo(dtype).max if dtype.rank else 2
