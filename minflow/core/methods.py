"""The methods of Tensor that are one line each: operators, arithmetic, reductions, shapes, indexing, in-place forms.

`x.sum(1)` is `functions.sum(x, 1)`; what it computes is told there. `tensor.py` holds what a Tensor is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import functions as F
from .base.errors import DTypeError, ShapeError, TraceError
from .door import apply
from .ir import NUMBERS
from .messages.near import tell_methods
from .mode import MODE, touch, using
from .ops import compare as c
from .ops import elementwise as e
from .ops import shape as s
from .rebind import cell_of, guard, in_place, overwrite, repeated_axes, store, write
from .spec import DType
from .where import fail


@tell_methods
class Methods:
    """The one-line methods; Tensor inherits them."""

    # ---- operators ---------------------------------------------------------------------------------------------------

    def __add__(self, other):
        return apply(e.add, self, other)

    def __radd__(self, other):
        return apply(e.add, other, self)

    def __mul__(self, other):
        return apply(e.mul, self, other)

    def __rmul__(self, other):
        return apply(e.mul, other, self)

    def __sub__(self, other):
        return apply(e.sub, self, other)

    def __rsub__(self, other):
        return apply(e.sub, other, self)

    def __truediv__(self, other):
        return apply(e.div, self, other)

    def __rtruediv__(self, other):
        return apply(e.div, other, self)

    def __pow__(self, other):
        return apply(e.pow, self, other)

    def __rpow__(self, other):
        return apply(e.pow, other, self)

    def __floordiv__(self, other):
        return apply(e.floor_divide, self, other)

    def __rfloordiv__(self, other):
        return apply(e.floor_divide, other, self)

    def __mod__(self, other):
        return apply(e.remainder, self, other)

    def __rmod__(self, other):
        return apply(e.remainder, other, self)

    def __matmul__(self, other):
        return F.matmul(self, other)

    def __rmatmul__(self, other):
        return F.matmul(other, self)

    def __neg__(self):
        return apply(e.neg, self)

    def __pos__(self):
        return self

    def __abs__(self):
        return apply(e.abs, self)

    def __invert__(self):
        return F.bitwise_not(self)

    def __and__(self, other):
        return F.bitwise_and(self, other)

    def __rand__(self, other):
        return F.bitwise_and(other, self)

    def __or__(self, other):
        return F.bitwise_or(self, other)

    def __ror__(self, other):
        return F.bitwise_or(other, self)

    def __xor__(self, other):
        return F.bitwise_xor(self, other)

    def __rxor__(self, other):
        return F.bitwise_xor(other, self)

    def __lt__(self, other):
        return apply(c.lt, self, other)

    def __le__(self, other):
        return apply(c.le, self, other)

    def __gt__(self, other):
        return apply(c.gt, self, other)

    def __ge__(self, other):
        return apply(c.ge, self, other)

    def __eq__(self, other):
        return apply(c.eq, self, other) if comparable(other) else NotImplemented

    def __ne__(self, other):
        return apply(c.ne, self, other) if comparable(other) else NotImplemented

    def __iadd__(self, other):
        return in_place(e.add, self, other)

    def __isub__(self, other):
        return in_place(e.sub, self, other)

    def __imul__(self, other):
        return in_place(e.mul, self, other)

    def __itruediv__(self, other):
        return in_place(e.div, self, other)

    def __ipow__(self, other):
        return in_place(e.pow, self, other)

    def __ifloordiv__(self, other):
        return in_place(e.floor_divide, self, other)

    def __imod__(self, other):
        return in_place(e.remainder, self, other)

    def __iand__(self, other):
        return store(self, F.bitwise_and(self, other))

    def __ior__(self, other):
        return store(self, F.bitwise_or(self, other))

    def __ixor__(self, other):
        return store(self, F.bitwise_xor(self, other))

    # ---- arithmetic and comparison -----------------------------------------------------------------------------------

    def add(self, other, *, alpha=1):
        return F.add(self, other, alpha=alpha)

    def sub(self, other, *, alpha=1):
        return F.sub(self, other, alpha=alpha)

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

    negative, absolute = neg, abs

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

    @F.numpy_names
    def softmax(self, dim=None, dtype=None):
        return F.softmax(self, dim, dtype=dtype)

    @F.numpy_names
    def log_softmax(self, dim=None, dtype=None):
        return F.log_softmax(self, dim, dtype=dtype)

    def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        return F.allclose(self, other, rtol, atol, equal_nan)

    def isclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        return F.isclose(self, other, rtol, atol, equal_nan)

    def equal(self, other):
        return F.equal(self, other)

    # ---- in place ----------------------------------------------------------------------------------------------------

    def mul_(self, other):
        return in_place(e.mul, self, other)

    def floor_divide_(self, other):
        return in_place(e.floor_divide, self, other)

    def remainder_(self, other):
        return in_place(e.remainder, self, other)

    def pow_(self, other):
        return in_place(e.pow, self, other)

    def add_(self, other, *, alpha=1):
        return in_place(e.add, self, other if alpha == 1 else F.scaled(self, other, alpha))

    def sub_(self, other, *, alpha=1):
        return in_place(e.sub, self, other if alpha == 1 else F.scaled(self, other, alpha))

    def div_(self, other, *, rounding_mode=None):
        return in_place(e.div, self, other) if rounding_mode is None else overwrite(F.div, self, other, rounding_mode=rounding_mode)

    def neg_(self):
        return in_place(e.neg, self)

    def abs_(self):
        return in_place(e.abs, self)

    def sign_(self):
        return in_place(e.sign, self)

    def exp_(self):
        return in_place(e.exp, self)

    def log_(self):
        return in_place(e.log, self)

    def sqrt_(self):
        return in_place(e.sqrt, self)

    def rsqrt_(self):
        return in_place(e.rsqrt, self)

    def square_(self):
        return in_place(e.square, self)

    def sin_(self):
        return in_place(e.sin, self)

    def cos_(self):
        return in_place(e.cos, self)

    def tanh_(self):
        return in_place(e.tanh, self)

    def sigmoid_(self):
        return in_place(e.sigmoid, self)

    def floor_(self):
        return in_place(e.floor, self)

    def ceil_(self):
        return in_place(e.ceil, self)

    def trunc_(self):
        return in_place(e.trunc, self)

    def reciprocal_(self):
        return in_place(e.reciprocal, self)

    def relu_(self):
        return in_place(e.relu, self)

    def expm1_(self):
        return in_place(e.expm1, self)

    def log1p_(self):
        return in_place(e.log1p, self)

    def log2_(self):
        return in_place(e.log2, self)

    def tan_(self):
        return in_place(e.tan, self)

    def erf_(self):
        return in_place(e.erf, self)

    def fmod_(self, other):
        return in_place(e.fmod, self, other)

    def logical_and_(self, other):
        return store(self, F.logical_and(self, other))

    def logical_or_(self, other):
        return store(self, F.logical_or(self, other))

    def logical_xor_(self, other):
        return store(self, F.logical_xor(self, other))

    def logical_not_(self):
        return write(self, F.logical_not(self))

    def bitwise_and_(self, other):
        return store(self, F.bitwise_and(self, other))

    def bitwise_or_(self, other):
        return store(self, F.bitwise_or(self, other))

    def bitwise_xor_(self, other):
        return store(self, F.bitwise_xor(self, other))

    def bitwise_not_(self):
        return write(self, F.bitwise_not(self))

    subtract_, multiply_, divide_, true_divide_, negative_, absolute_ = sub_, mul_, div_, div_, neg_, abs_

    def cumsum_(self, dim):
        return write(self, F.cumsum(self, dim))

    def tril_(self, diagonal=0):
        return write(self, F.tril(self, diagonal))

    def triu_(self, diagonal=0):
        return write(self, F.triu(self, diagonal))

    def baddbmm_(self, batch1, batch2, *, beta=1, alpha=1):
        return store(self, F.baddbmm(self, batch1, batch2, beta=beta, alpha=alpha))

    def squeeze_(self, dim=None):
        return reshaped(self, F.squeeze, dim)

    def unsqueeze_(self, dim):
        return reshaped(self, F.unsqueeze, dim)

    def transpose_(self, dim0, dim1):
        return reshaped(self, F.transpose, dim0, dim1)

    swapaxes_ = swapdims_ = transpose_

    def t_(self):
        return reshaped(self, F.t)

    def round_(self):
        return write(self, F.round(self))

    def clamp_(self, min=None, max=None):
        return overwrite(F.clamp, self, min, max)

    clip_ = clamp_

    def clamp_min_(self, min):
        return overwrite(F.clamp, self, min, None)

    def clamp_max_(self, max):
        return overwrite(F.clamp, self, None, max)

    def lerp_(self, end, weight):
        return overwrite(F.lerp, self, end, weight)

    def addmm_(self, mat1, mat2, *, beta=1, alpha=1):
        return store(self, F.addmm(self, mat1, mat2, beta=beta, alpha=alpha))

    def addcmul_(self, tensor1, tensor2, *, value=1):
        return store(self, self + F.mul(tensor1, tensor2) * value)

    def addcdiv_(self, tensor1, tensor2, *, value=1):
        return store(self, self + F.div(tensor1, tensor2) * value)

    def masked_fill_(self, mask, value):
        return write(self, F.masked_fill(self, mask, value))

    def copy_(self, other, non_blocking=False):
        mode = MODE.get()
        recorded = mode.grad and hasattr(other, "spec") and mode.own(other).needs
        # two tensors of one Value would share their hooks
        return write(self, apply(s.clone, other) if recorded else other)

    def fill_(self, value):
        if getattr(value, "shape", ()) or isinstance(value, list | tuple):
            what = f"fill_: one number is wanted, not {tuple(getattr(value, 'shape', ())) or value!r}"
            fail(ShapeError, what, "copy_(...), or value.item()", value=value)
        repeated = repeated_axes(self)
        if not repeated:
            return write(self, value)
        # where elements lie in one place
        once = tuple([(0, 1 if d in repeated else None, None) for d in range(self.ndim)])
        write(apply(s.getitem, self, index=once), value)
        return self

    def zero_(self):
        return self.fill_(0)

    def scatter_(self, dim, index, src):
        return write(self, F.scatter(self, dim, index, src))

    def scatter_add_(self, dim, index, src):
        return write(self, F.scatter_add(self, dim, index, src))

    def index_add_(self, dim, index, source, *, alpha=1):
        return write(self, F.index_add(self, dim, index, source, alpha=alpha))

    def index_copy_(self, dim, index, source):
        return write(self, F.index_copy(self, dim, index, source))

    def index_fill_(self, dim, index, value):
        return write(self, F.index_fill(self, dim, index, value))

    def uniform_(self, low=0.0, high=1.0, *, generator=None):
        return write(self, F.uniform_like(self, low, high, generator=generator))

    def normal_(self, mean=0.0, std=1.0, *, generator=None):
        return write(self, F.normal_like(self, mean, std, generator=generator))

    def bernoulli_(self, p=0.5, *, generator=None):
        return write(self, F.bernoulli_like(self, p, generator=generator))

    def random_(self, low=None, high=None, *, generator=None):
        """Integers in [low, high); `random_(high)` starts at 0, `random_()` goes up to what the dtype can count."""
        if high is None:
            low, high = 0, counts(self.spec.dtype) if low is None else low
        return write(self, F.randint_like(self, low, high, generator=generator))

    def exponential_(self, lambd=1.0, *, generator=None):
        return write(self, F.exponential_like(self, lambd, generator=generator))

    def bernoulli(self, p=None, *, generator=None):
        if getattr(p, "shape", ()):
            fail(ShapeError, "bernoulli: p is a tensor, where a number is wanted", "p.bernoulli() draws with its numbers", x=self, p=p)
        return F.bernoulli(self, generator=generator) if p is None else F.bernoulli_like(self, p, generator=generator)

    # ---- reduction ---------------------------------------------------------------------------------------------------

    @F.numpy_names
    def sum(self, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=False):
        return F.sum(self, dim, keepdim, dtype=dtype, axis=axis, keepdims=keepdims)

    @F.numpy_names
    def mean(self, dim=None, keepdim=False, *, dtype=None):
        return F.mean(self, dim, keepdim) if dtype is None else F.mean(self, dim, keepdim, dtype=dtype)

    @F.numpy_names
    def prod(self, dim=None, keepdim=False, *, dtype=None):
        return F.prod(self, dim, keepdim) if dtype is None else F.prod(self, dim, keepdim, dtype=dtype)

    @F.numpy_names
    def var(self, dim=None, unbiased=True, keepdim=False, *, correction=None):
        return F.var(self, dim, unbiased, keepdim, correction=correction)

    @F.numpy_names
    def std(self, dim=None, unbiased=True, keepdim=False, *, correction=None):
        return F.std(self, dim, unbiased, keepdim, correction=correction)

    @F.numpy_names
    def min(self, dim=None, keepdim=False):
        return F.min(self, dim, keepdim)

    @F.numpy_names
    def max(self, dim=None, keepdim=False):
        return F.max(self, dim, keepdim)

    @F.numpy_names
    def amin(self, dim=(), keepdim=False):
        return F.amin(self, dim, keepdim)

    @F.numpy_names
    def amax(self, dim=(), keepdim=False):
        return F.amax(self, dim, keepdim)

    @F.numpy_names
    def argmin(self, dim=None, keepdim=False):
        return F.argmin(self, dim, keepdim)

    @F.numpy_names
    def argmax(self, dim=None, keepdim=False):
        return F.argmax(self, dim, keepdim)

    @F.numpy_names
    def any(self, dim=None, keepdim=False):
        return F.any(self, dim, keepdim)

    @F.numpy_names
    def all(self, dim=None, keepdim=False):
        return F.all(self, dim, keepdim)

    @F.numpy_names
    def median(self, dim=None, keepdim=False):
        return F.median(self, dim, keepdim)

    @F.numpy_names
    def norm(self, p=2, dim=None, keepdim=False):
        return F.norm(self, p, dim, keepdim)

    @F.numpy_names
    def logsumexp(self, dim, keepdim=False):
        return F.logsumexp(self, dim, keepdim)

    @F.numpy_names
    def cumsum(self, dim, *, dtype=None):
        return F.cumsum(self, dim, dtype=dtype)

    @F.numpy_names
    def topk(self, k, dim=-1, largest=True, sorted=True):
        return F.topk(self, k, dim, largest, sorted)

    @F.numpy_names
    def sort(self, dim=-1, descending=False, stable=False):
        return F.sort(self, dim, descending, stable)

    @F.numpy_names
    def argsort(self, dim=-1, descending=False, stable=False):
        return F.argsort(self, dim, descending, stable)

    # ---- shape -------------------------------------------------------------------------------------------------------

    def reshape(self, *shape):
        return F.reshape(self, *shape)

    def view(self, *shape):
        if shape and isinstance(shape[0], DType):
            if len(shape) > 1 or shape[0] is not self.dtype:
                fail(DTypeError, f"view: there is no look at the bits of {self.dtype.name} as {shape[0].name}",
                     f"x.to({shape[0]}) for the numbers in that dtype", x=self)  # fmt: skip
            shape = self.spec.shape
        return F.view(self, one_or_many(shape))

    def reshape_as(self, other):
        return F.reshape(self, F.shape_of("reshape_as", other))

    def view_as(self, other):
        return F.view(self, F.shape_of("view_as", other))

    def ravel(self):
        return F.reshape(self.contiguous(), (-1,))  # PyTorch's copies a strided tensor even where a view would do

    def flatten(self, start_dim=0, end_dim=-1):
        return F.flatten(self, start_dim, end_dim)

    def unflatten(self, dim, sizes):
        return F.unflatten(self, dim, sizes)

    def squeeze(self, dim=None):
        return F.squeeze(self, dim)

    def unsqueeze(self, dim):
        return F.unsqueeze(self, dim)

    def transpose(self, dim0, dim1):
        return F.transpose(self, dim0, dim1)

    swapaxes = swapdims = transpose

    def permute(self, *dims):
        return F.permute(self, one_or_many(dims))

    def t(self):
        return F.t(self)

    T = property(lambda self: apply(s.permute, self, dims=tuple(range(self.spec.ndim - 1, -1, -1))))
    mT = property(lambda self: F.transpose(self, -2, -1))

    def movedim(self, source, destination):
        return F.movedim(self, source, destination)

    def expand(self, *sizes):
        return F.expand(self, one_or_many(sizes))

    def expand_as(self, other):
        return F.expand_as(self, other)

    def broadcast_to(self, size):
        return F.broadcast_to(self, size)

    def repeat(self, *sizes):
        return F.repeat(self, one_or_many(sizes))

    def tile(self, *dims):
        return F.tile(self, one_or_many(dims))

    @F.numpy_names
    def split(self, split_size, dim=0):
        return F.split(self, split_size, dim)

    @F.numpy_names
    def chunk(self, chunks, dim=0):
        return F.chunk(self, chunks, dim)

    @F.numpy_names
    def unbind(self, dim=0):
        return F.unbind(self, dim)

    def narrow(self, dim, start, length):
        return F.narrow(self, dim, start, length)

    def select(self, dim, index):
        return F.select(self, dim, index)

    def flip(self, *dims):
        return F.flip(self, one_or_many(dims))

    def roll(self, shifts, dims=None):
        return F.roll(self, shifts, dims)

    def tril(self, diagonal=0):
        return F.tril(self, diagonal)

    def triu(self, diagonal=0):
        return F.triu(self, diagonal)

    def diagonal(self, offset=0, dim1=0, dim2=1):
        return F.diagonal(self, offset, dim1, dim2)

    # ---- indexing ----------------------------------------------------------------------------------------------------

    def gather(self, dim, index):
        return F.gather(self, dim, index)

    def scatter(self, dim, index, src):
        return F.scatter(self, dim, index, src)

    def scatter_add(self, dim, index, src):
        return F.scatter_add(self, dim, index, src)

    def index_select(self, dim, index):
        return F.index_select(self, dim, index)

    def index_add(self, dim, index, source, *, alpha=1):
        return F.index_add(self, dim, index, source, alpha=alpha)

    def index_copy(self, dim, index, source):
        return F.index_copy(self, dim, index, source)

    def index_fill(self, dim, index, value):
        return F.index_fill(self, dim, index, value)

    def masked_select(self, mask):
        return F.masked_select(self, mask)

    def nonzero(self, as_tuple=False):
        return F.nonzero(self, as_tuple)

    def argwhere(self):
        return F.nonzero(self)

    def take_along_dim(self, indices, dim):
        return F.take_along_dim(self, indices, dim)

    # ---- linear algebra ----------------------------------------------------------------------------------------------

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

    # ---- new tensors like this one -----------------------------------------------------------------------------------

    def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
        return creation().tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    def new_full(self, size, fill_value, dtype=None, device=None, requires_grad=False):
        return creation().full(size, fill_value, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    def new_zeros(self, *size, dtype=None, device=None, requires_grad=False):
        return creation().zeros(one_or_many(size), dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    def new_ones(self, *size, dtype=None, device=None, requires_grad=False):
        return creation().ones(one_or_many(size), dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    def new_empty(self, *size, dtype=None, device=None, requires_grad=False):
        return creation().empty(one_or_many(size), dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


def creation():
    """The module of creation functions, which stands below this one."""
    from .functions import creation

    return creation


def reshaped(target, view, *args):
    """Make `target` itself a view of what it was: `x.t_()`."""
    if target.array is not None and MODE.get().trace is not None:
        fail(TraceError, f"{view.__name__}_ of a tensor from outside while a graph is built: it would have no numbers after it",
             f"x = x.{view.__name__}(...) makes a view", tensor=target)  # fmt: skip
    touch()
    guard(MODE.get(), target, target)
    base = type(target).__new__(type(target))
    base.__dict__.update(target.__dict__)
    base.cell = cell_of(target)
    with using(MODE.get().but(grad=True)):  # no number is written: the history stays, under no_grad too
        fresh = view(base, *args)
    target.array, target.spec, target.alias, target.cell = fresh.array, fresh.spec, fresh.alias, fresh.cell
    target.value, target.needs = fresh.value, fresh.needs
    return target


def counts(dtype: DType) -> int:
    """One more than the largest integer up to which a dtype holds every integer, or than its maximum."""
    return 2 ** (np.finfo(dtype.np).nmant + 1) + 1 if dtype.floating else 2 if dtype.rank == 0 else int(np.iinfo(dtype.np).max)


def comparable(x: Any) -> bool:
    """Does == make sense elementwise? With None or a string it is just False."""
    return hasattr(x, "spec") or isinstance(x, np.ndarray | np.generic) or x.__class__ in NUMBERS


def one_or_many(sizes: tuple) -> tuple:
    """`(2, 3)` for both calls, f(2, 3) and f((2, 3))."""
    if len(sizes) == 1 and sizes[0].__class__ is not int and F.several(sizes[0]):
        return tuple(sizes[0])
    return sizes


# numpy's operators on a tensor: `np.add(array, tensor)` is what `array + tensor` calls
BY_UFUNC = {
    np.add: e.add, np.subtract: e.sub, np.multiply: e.mul, np.true_divide: e.div, np.floor_divide: e.floor_divide, np.power: e.pow,
    np.float_power: e.pow, np.remainder: e.remainder, np.matmul: F.matmul, np.maximum: e.maximum, np.minimum: e.minimum,
    np.equal: c.eq, np.not_equal: c.ne, np.less: c.lt, np.less_equal: c.le, np.greater: c.gt, np.greater_equal: c.ge,
    np.bitwise_and: F.bitwise_and, np.bitwise_or: F.bitwise_or, np.bitwise_xor: F.bitwise_xor,
}  # fmt: skip
