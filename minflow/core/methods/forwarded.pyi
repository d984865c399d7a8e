"""Signatures and docstrings of the methods of `forwarded.py`, written by `python -m tests.method_stubs`."""

from collections.abc import Sequence
from typing import Any

from ..base.dtypes import DTypeLike
from ..functions import return_types
from ..random import Generator
from ..tensor import Tensor

class Forwarded:
    def add(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        """`input + alpha * other`, broadcast and promoted."""

    def sub(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        """`input - alpha * other`, broadcast and promoted. Raises DTypeError for bools."""

    def mul(self: Tensor, other: Tensor | float) -> Tensor:
        """a * b; logical and for bools."""

    def div(self: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`; rounding_mode "floor" rounds down and keeps integers, "trunc" rounds towards 0."""

    def pow(self: Tensor, exponent: Tensor | float) -> Tensor:
        """`input ** exponent`. Raises DTypeError for an integer tensor to a negative integer."""

    def subtract(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
        """`input - alpha * other`, broadcast and promoted. Raises DTypeError for bools."""

    def multiply(self: Tensor, other: Tensor | float) -> Tensor:
        """a * b; logical and for bools."""

    def divide(self: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`; rounding_mode "floor" rounds down and keeps integers, "trunc" rounds towards 0."""

    def true_divide(self: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`; rounding_mode "floor" rounds down and keeps integers, "trunc" rounds towards 0."""

    def floor_divide(self: Tensor, other: Tensor | float) -> Tensor:
        """a / b rounded down."""

    def fmod(self: Tensor, other: Tensor | float) -> Tensor:
        """The remainder of a / b, with the sign of a (C's fmod)."""

    def remainder(self: Tensor, other: Tensor | float) -> Tensor:
        """The remainder of a / b, with the sign of b (Python's %)."""

    def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        """`input + value * tensor1 * tensor2`, in the promoted dtype of the three."""

    def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        """`input + value * tensor1 / tensor2`, in the promoted dtype of the three."""

    def lerp(self: Tensor, end: Tensor | float, weight: Tensor | float) -> Tensor:
        """`input + weight * (end - input)`: from input (weight 0) to end (weight 1)."""

    def maximum(self: Tensor, other: Tensor | float) -> Tensor:
        """The elementwise maximum; NaN wins; ties share the gradient."""

    def minimum(self: Tensor, other: Tensor | float) -> Tensor:
        """The elementwise minimum; NaN wins; ties share the gradient."""

    def clamp(self: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
        """Limit input to [min, max]; these are numbers or tensors, and one of them may be None."""

    def clip(self: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
        """Limit input to [min, max]; these are numbers or tensors, and one of them may be None."""

    def clamp_min(self: Tensor, min: Tensor | float) -> Tensor:
        """Elementwise max(input, min)."""

    def clamp_max(self: Tensor, max: Tensor | float) -> Tensor:
        """Elementwise min(input, max)."""

    def masked_fill(self: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
        """Replace elements where mask is True by `value`, a number or a 0-d tensor. The dtype of input is kept."""

    def eq(self: Tensor, other: Tensor | float) -> Tensor:
        """a == b."""

    def ne(self: Tensor, other: Tensor | float) -> Tensor:
        """a != b."""

    def lt(self: Tensor, other: Tensor | float) -> Tensor:
        """a < b."""

    def le(self: Tensor, other: Tensor | float) -> Tensor:
        """a <= b."""

    def gt(self: Tensor, other: Tensor | float) -> Tensor:
        """a > b."""

    def ge(self: Tensor, other: Tensor | float) -> Tensor:
        """a >= b."""

    def less(self: Tensor, other: Tensor | float) -> Tensor:
        """a < b."""

    def less_equal(self: Tensor, other: Tensor | float) -> Tensor:
        """a <= b."""

    def greater(self: Tensor, other: Tensor | float) -> Tensor:
        """a > b."""

    def greater_equal(self: Tensor, other: Tensor | float) -> Tensor:
        """a >= b."""

    def not_equal(self: Tensor, other: Tensor | float) -> Tensor:
        """a != b."""

    def allclose(
        self: Tensor, other: Tensor | float, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        """True if all elements are close; a Python bool. See `isclose`."""

    def isclose(
        self: Tensor, other: Tensor | float, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Tensor:
        """|input - other| <= atol + rtol * |other|, elementwise; equal infinities are close."""

    def equal(self: Tensor, other: Tensor) -> bool:
        """True if the shapes are the same and all elements are equal; a Python bool."""

    def is_same_size(self: Tensor, other: Tensor) -> bool:
        """True if both have the same shape; a Python bool."""

    def logical_and(self: Tensor, other: Tensor | float) -> Tensor:
        """True where both are true."""

    def logical_or(self: Tensor, other: Tensor | float) -> Tensor:
        """True where at least one of the two is true."""

    def logical_xor(self: Tensor, other: Tensor | float) -> Tensor:
        """True where exactly one of the two is true."""

    def logical_not(self: Tensor) -> Tensor:
        """True where x is zero or False."""

    def bitwise_and(self: Tensor, other: Tensor | float) -> Tensor:
        """a & b: logical for bools, bitwise for integers."""

    def bitwise_or(self: Tensor, other: Tensor | float) -> Tensor:
        """a | b: logical for bools, bitwise for integers."""

    def bitwise_xor(self: Tensor, other: Tensor | float) -> Tensor:
        """a ^ b: logical for bools, bitwise for integers."""

    def bitwise_not(self: Tensor) -> Tensor:
        """~x: logical for bools, bitwise for integers."""

    def bitwise_left_shift(self: Tensor, other: Tensor | float) -> Tensor:
        """a << b: a * 2**b; overflowing bits are lost."""

    def bitwise_right_shift(self: Tensor, other: Tensor | float) -> Tensor:
        """a >> b: floor(a / 2**b)."""

    def neg(self: Tensor) -> Tensor:
        """-x."""

    def negative(self: Tensor) -> Tensor:
        """-x."""

    def abs(self: Tensor) -> Tensor:
        """|x|; the derivative at 0 is 0."""

    def absolute(self: Tensor) -> Tensor:
        """|x|; the derivative at 0 is 0."""

    def sign(self: Tensor) -> Tensor:
        """-1, 0 or 1; 0 for NaN."""

    def sgn(self: Tensor) -> Tensor:
        """x / |x| of a complex number, 0 at 0; the sign of a real one."""

    def positive(self: Tensor) -> Tensor:
        """Return input. Raises DTypeError for bools."""

    def exp(self: Tensor) -> Tensor:
        """e to the power x."""

    def exp2(self: Tensor) -> Tensor:
        """2 to the power x."""

    def expm1(self: Tensor) -> Tensor:
        """exp(x) - 1, exact for small x."""

    def log(self: Tensor) -> Tensor:
        """The natural logarithm; -inf at 0, NaN below."""

    def log1p(self: Tensor) -> Tensor:
        """log(1 + x), exact for small x."""

    def log2(self: Tensor) -> Tensor:
        """The logarithm to base 2."""

    def log10(self: Tensor) -> Tensor:
        """The logarithm to base 10."""

    def sqrt(self: Tensor) -> Tensor:
        """The square root."""

    def rsqrt(self: Tensor) -> Tensor:
        """1 / sqrt(x)."""

    def square(self: Tensor) -> Tensor:
        """x * x."""

    def reciprocal(self: Tensor) -> Tensor:
        """1 / x."""

    def sin(self: Tensor) -> Tensor:
        """The sine, x in radians."""

    def cos(self: Tensor) -> Tensor:
        """The cosine, x in radians."""

    def tan(self: Tensor) -> Tensor:
        """The tangent, x in radians."""

    def tanh(self: Tensor) -> Tensor:
        """The hyperbolic tangent."""

    def sinh(self: Tensor) -> Tensor:
        """The hyperbolic sine."""

    def cosh(self: Tensor) -> Tensor:
        """The hyperbolic cosine."""

    def asin(self: Tensor) -> Tensor:
        """The inverse sine, in radians."""

    def acos(self: Tensor) -> Tensor:
        """The inverse cosine, in radians."""

    def atan(self: Tensor) -> Tensor:
        """The inverse tangent, in radians."""

    def asinh(self: Tensor) -> Tensor:
        """The inverse hyperbolic sine."""

    def acosh(self: Tensor) -> Tensor:
        """The inverse hyperbolic cosine, at least 0."""

    def atanh(self: Tensor) -> Tensor:
        """The inverse hyperbolic tangent."""

    def arcsin(self: Tensor) -> Tensor:
        """The inverse sine, in radians."""

    def arccos(self: Tensor) -> Tensor:
        """The inverse cosine, in radians."""

    def arctan(self: Tensor) -> Tensor:
        """The inverse tangent, in radians."""

    def arcsinh(self: Tensor) -> Tensor:
        """The inverse hyperbolic sine."""

    def arccosh(self: Tensor) -> Tensor:
        """The inverse hyperbolic cosine, at least 0."""

    def arctanh(self: Tensor) -> Tensor:
        """The inverse hyperbolic tangent."""

    def atan2(self: Tensor, other: Tensor | float) -> Tensor:
        """The angle of the point (x, y), in radians from -pi to pi; its gradient at (0, 0) is 0."""

    def arctan2(self: Tensor, other: Tensor | float) -> Tensor:
        """The angle of the point (x, y), in radians from -pi to pi; its gradient at (0, 0) is 0."""

    def deg2rad(self: Tensor) -> Tensor:
        """Convert degrees to radians: `input * pi / 180`."""

    def rad2deg(self: Tensor) -> Tensor:
        """Convert radians to degrees: `input * 180 / pi`."""

    def floor(self: Tensor) -> Tensor:
        """x rounded down."""

    def ceil(self: Tensor) -> Tensor:
        """x rounded up."""

    def trunc(self: Tensor) -> Tensor:
        """x rounded towards 0."""

    def fix(self: Tensor) -> Tensor:
        """x rounded towards 0."""

    def frac(self: Tensor) -> Tensor:
        """The fractional part: `input - trunc(input)`, with the sign of input."""

    def frexp(self: Tensor) -> return_types.frexp:
        """(mantissa, exponent): input = mantissa * 2**exponent with 1/2 <= |mantissa| < 1; exponents are int32."""

    def ldexp(self: Tensor, other: Tensor | float) -> Tensor:
        """`input * 2**other`, in the dtype of input if that is floating."""

    def nan_to_num(
        self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """Replace NaN (by 0 unless given), inf and -inf (by the largest and smallest number of the dtype). The gradient is
        0 there."""

    def float_power(self: Tensor, exponent: Tensor | float) -> Tensor:
        """`input ** exponent`, computed and returned in float64."""

    def hypot(self: Tensor, other: Tensor | float) -> Tensor:
        """sqrt(a*a + b*b), the length of the vector (a, b), even if a*a would overflow."""

    def copysign(self: Tensor, other: Tensor | float) -> Tensor:
        """The absolute value of a with the sign of b, including that of -0.0."""

    def nextafter(self: Tensor, other: Tensor | float) -> Tensor:
        """The next representable number after a in the direction of b."""

    def heaviside(self: Tensor, values: Tensor) -> Tensor:
        """0 where input is negative (or NaN), `values` where it is 0, 1 where it is positive. No gradient."""

    def fmax(self: Tensor, other: Tensor | float) -> Tensor:
        """Elementwise maximum that ignores NaN if the other element is a number. Ties give the gradient to input."""

    def fmin(self: Tensor, other: Tensor | float) -> Tensor:
        """Elementwise minimum that ignores NaN if the other element is a number. Ties give the gradient to input."""

    def gcd(self: Tensor, other: Tensor | float) -> Tensor:
        """The greatest common divisor."""

    def lcm(self: Tensor, other: Tensor | float) -> Tensor:
        """The least common multiple; 0 if one is 0."""

    def logaddexp(self: Tensor, other: Tensor | float) -> Tensor:
        """log(exp(a) + exp(b)), without overflow."""

    def logaddexp2(self: Tensor, other: Tensor | float) -> Tensor:
        """log2(2**a + 2**b), without overflow."""

    def erf(self: Tensor) -> Tensor:
        """The error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    def erfc(self: Tensor) -> Tensor:
        """1 - erf(x), exact if that is small."""

    def erfinv(self: Tensor) -> Tensor:
        """The inverse of erf; NaN outside [-1, 1]."""

    def lgamma(self: Tensor) -> Tensor:
        """log |gamma(x)|; gamma(n) is the factorial of n - 1."""

    def digamma(self: Tensor) -> Tensor:
        """The derivative of lgamma."""

    def mvlgamma(self: Tensor, p: int) -> Tensor:
        """log of the multivariate gamma function: log(pi) * p * (p-1) / 4 + the sum of lgamma(x - j/2), j = 0 .. p-1.

        p: the number of dimensions. Meant for x above (p - 1) / 2."""

    def igamma(self: Tensor, other: Tensor | float) -> Tensor:
        """The regularized lower incomplete gamma function; differentiable only in b."""

    def igammac(self: Tensor, other: Tensor | float) -> Tensor:
        """The regularized upper incomplete gamma function, 1 - igamma; differentiable only in b."""

    def i0(self: Tensor) -> Tensor:
        """Modified Bessel function of the first kind, order 0."""

    def sinc(self: Tensor) -> Tensor:
        """sin(pi * x) / (pi * x); 1 at 0."""

    def logit(self: Tensor, eps: float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; NaN outside [0, 1]. eps: clamp x to [eps, 1 - eps] first."""

    def xlogy(self: Tensor, other: Tensor | float) -> Tensor:
        """a * log(b); 0 if a is 0 and b is not NaN."""

    def isnan(self: Tensor) -> Tensor:
        """True where x is NaN."""

    def isinf(self: Tensor) -> Tensor:
        """True where x is inf or -inf."""

    def isfinite(self: Tensor) -> Tensor:
        """True where x is neither infinite nor NaN."""

    def isneginf(self: Tensor) -> Tensor:
        """True where x is negative infinity."""

    def isposinf(self: Tensor) -> Tensor:
        """True where x is positive infinity."""

    def isreal(self: Tensor) -> Tensor:
        """True where the imaginary part is 0."""

    def signbit(self: Tensor) -> Tensor:
        """True where x has a minus sign, also for -0.0."""

    def is_nonzero(self: Tensor) -> bool:
        """True if the one element of input is not 0; a Python bool."""

    def relu(self: Tensor) -> Tensor:
        """max(x, 0); the derivative at 0 is 0."""

    def sigmoid(self: Tensor) -> Tensor:
        """1 / (1 + exp(-x))."""

    def gelu(self: Tensor, approximate: str = "none") -> Tensor:
        """x * Phi(x) = x / 2 * (1 + erf(x / sqrt(2))); with approximate="tanh"
        x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))). Hendrycks & Gimpel 2016, section 2."""

    def quick_gelu(self: Tensor) -> Tensor:
        """x * sigmoid(1.702 * x), an approximation of gelu. Hendrycks & Gimpel 2016, section 2."""

    def softplus(self: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta; where beta * x > threshold, x itself."""

    def softsign(self: Tensor) -> Tensor:
        """x / (1 + |x|)."""

    def square_relu(self: Tensor) -> Tensor:
        """max(x, 0)**2. So et al. 2021, section 3."""

    def prelu(self: Tensor, weight: Tensor) -> Tensor:
        """x if x > 0, else weight * x. weight: one element, or one per channel (axis 1). He et al. 2015, eq. 1."""

    def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
        """x if |x| > lambd, else 0."""

    def adjoint(self: Tensor) -> Tensor:
        """The conjugate transpose of the last two axes; for a 0-d tensor the conjugate."""

    def angle(self: Tensor) -> Tensor:
        """The angle of a complex number in radians, from -pi to pi; for a real number 0, or pi if it is negative."""

    def conj(self: Tensor) -> Tensor:
        """The complex conjugate, computed eagerly; a real tensor is returned unchanged."""

    def resolve_conj(self: Tensor) -> Tensor:
        """Return input: `conj` is never lazy here."""

    def resolve_neg(self: Tensor) -> Tensor:
        """Return input: negation is never lazy here."""

    def is_conj(self: Tensor) -> bool:
        """Always False: `conj` is never lazy here."""

    def stft(
        self: Tensor,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Tensor | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        normalized: bool = False,
        onesided: bool | None = None,
        return_complex: bool | None = None,
        align_to_window: bool | None = None,
    ) -> Tensor:
        """The spectra of the frames `input[..., k * hop : k * hop + n_fft] * window`, one column each.

        input: float or complex (T,) or (B, T).  Returns complex (B, F, K): F = n_fft // 2 + 1 frequencies of a real signal
        (`onesided`), else n_fft, and K frames.  hop_length: n_fft // 4 by default.  window: (win_length,), centered in a
        frame.  center: frame k is around sample k * hop_length, and the signal is padded by n_fft // 2 on both sides.
        normalized: divide by sqrt(n_fft).  return_complex: must be given for a real signal; False returns the real and
        imaginary part along a last axis of size 2.  align_to_window: must be None or False."""

    def istft(
        self: Tensor,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Tensor | None = None,
        center: bool = True,
        normalized: bool = False,
        onesided: bool | None = None,
        length: int | None = None,
        return_complex: bool = False,
    ) -> Tensor:
        """The signal whose stft is nearest to `input`: frames are added up, and divided by the sum of squared windows.

        input: complex (F, K) or (B, F, K), from `stft` with the same arguments.  length: samples of the result, by default
        those of K frames, without the padding of `center`.  return_complex: the signal is complex.
        Raises OutOfRangeError if the windows leave samples out; a graph does not check this."""

    def max(self: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        """The maximum; with `dim`, `(values, indices)` along it; with a second tensor, the elementwise maximum."""

    def min(self: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        """The minimum; with `dim`, `(values, indices)` along it; with a second tensor, the elementwise minimum."""

    def mean(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """The mean over `dim`. Raises DTypeError for integers."""

    def prod(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """The product over `dim`. Bools and integers give int64, or `dtype`."""

    def var(
        self: Tensor,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        """The variance over `dim`: squared distances to the mean, summed and divided by n - 1 (by n if not unbiased).

        correction: subtracted from n, in place of `unbiased`. That of complex numbers is the sum over both parts."""

    def std(
        self: Tensor,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        """The standard deviation over `dim`: the square root of `var`; its derivative at 0 is defined as 0."""

    def amin(self: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
        """The minimum over `dim`; ties share the gradient."""

    def amax(self: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
        """The maximum over `dim`; ties share the gradient."""

    def argmin(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """`int64`: the index of the first minimum along `dim`, or in the flattened tensor."""

    def argmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """`int64`: the index of the first maximum along `dim`, or in the flattened tensor."""

    def any(self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        """True if any element is nonzero."""

    def all(self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        """True if all elements are nonzero."""

    def median(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        """The median (the lower of two middle elements), NaN if one element is NaN; with `dim`, `(values, indices)`."""

    def logsumexp(self: Tensor, dim: int, keepdim: bool = False) -> Tensor:
        """log(sum(exp(x))) over `dim`, without overflow. Bools and integers are converted to floats first."""

    def nansum(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """The sum over `dim`, ignoring NaN; 0 if there is nothing else."""

    def nanmean(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """The mean over `dim`, ignoring NaN; NaN if there is nothing else. Raises DTypeError for integers."""

    def count_nonzero(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
        """The number of nonzero elements over `dim`."""

    def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> return_types.aminmax:
        """`(min, max)` over `dim`, one axis, or all; ties share the gradient."""

    def nanmedian(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        """The median, ignoring NaN (the lower of two middle elements); with `dim`, `(values, indices)`."""

    def quantile(
        self: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """The q-th quantiles (q from 0 to 1) of the elements along `dim`; NaN if one element is NaN.

        q: a number, or a vector of m, which adds a first axis of size m. interpolation: between neighbors, "linear",
        "lower", "higher", "midpoint" or "nearest". Raises DTypeError unless input is float32 or float64."""

    def nanquantile(
        self: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """`quantile`, ignoring NaN."""

    def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> return_types.mode:
        """`(values, indices)`: the most frequent element along `dim` (ties: the smallest), and its last index."""

    def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
        """`(values, indices)`: the k-th smallest element along `dim`, counted from 1; NaN counts as the largest."""

    def dist(self: Tensor, other: Tensor | float, p: float = 2) -> Tensor:
        """The p-norm of the difference."""

    def cumsum(self: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The cumulative sum along `dim`."""

    def cumprod(self: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The cumulative product along `dim`. Bools and integers give int64, or `dtype`."""

    def cummax(self: Tensor, dim: int) -> return_types.cummax:
        """`(values, indices)`: the cumulative maximum along `dim`. NaN wins; among equal elements the last index."""

    def cummin(self: Tensor, dim: int) -> return_types.cummin:
        """`(values, indices)`: the cumulative minimum along `dim`. NaN wins; among equal elements the last index."""

    def logcumsumexp(self: Tensor, dim: int) -> Tensor:
        """Cumulative log(exp(x1) + ... + exp(x)) along `dim`, without overflow. Raises DTypeError for integers."""

    def diff(
        self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """x[i + 1] - x[i] along `dim`, n times; for bools, whether they differ. prepend, append: concatenated to the ends
        first."""

    def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> return_types.topk:
        """`(values, indices)` of the k largest (or smallest) elements along `dim`, in order."""

    def sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> return_types.sort:
        """`(values, indices)` sorted along `dim`. The sort is always stable; NaN counts as the largest."""

    def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        """`int64`: the indices that sort along `dim`."""

    def msort(self: Tensor) -> Tensor:
        """Sort along axis 0, NaN last."""

    def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
        """Scale down each slice along `dim` whose p-norm exceeds maxnorm."""

    def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        """`int64 (max + 1,)`: how often each of 0, 1, 2, ... occurs in a vector; with weights, the sum of their weights.

        minlength: minimum length of the result. Raises TraceError in a graph, because the length depends on the data."""

    def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
        """`(bins,)`: counts in equal bins from min to max (0 and 0: the smallest and largest element of the input).

        Elements outside the range, and NaN, are not counted. Raises DTypeError for integers."""

    def histogram(
        self: Tensor,
        bins: int | Sequence[int] | Tensor = 100,
        *,
        range: Sequence[float] | None = None,
        weight: Tensor | None = None,
        density: bool = False,
    ) -> return_types.histogram:
        """`(hist, bin_edges)`: counts per bin, or the sums of their weights.

        bins: number of equal bins in `range` (default: from the smallest to the largest element), or a vector of edges.
        density: normalize so that the area under the histogram is 1. A bin contains its left edge, the last one both."""

    def unique_consecutive(
        self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """Collapse runs of equal elements (or slices along `dim`) to one; see `unique`. Eager only."""

    def multinomial(
        self: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """`int64 (..., num_samples)`: indices drawn with the probabilities in a vector, or in each row of a matrix.

        Rows need not sum to 1. replacement: an index may be drawn more than once.
        Source: without replacement the smallest of exponential times, Efraimidis & Spirakis 2006."""

    def in_top_k(self: Tensor, predictions: Tensor, k: int) -> Tensor:
        """`bool`: True if the prediction of the target is among the k largest of its row; ties count as True."""

    def nms(self: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
        """`int64 (k,)`: indices of the boxes that non-maximum suppression keeps, by descending score.

        A box is dropped if its intersection over union with a kept box is above iou_threshold. boxes: (n, 4), x1, y1, x2,
        y2. Eager only. Source: Girshick et al. 2014, arXiv:1311.2524, section 2.3."""

    def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Merge the axes from start_dim to end_dim into one; a view if the strides allow one, else a copy."""

    def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
        """Split one axis into several."""

    def squeeze(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
        """Remove the axes of size 1, or those of them that `dim` names."""

    def t(self: Tensor) -> Tensor:
        """The transposed matrix; a tensor with fewer axes is returned unchanged."""

    def movedim(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """Move some axes to other positions; the others keep their order."""

    def moveaxis(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """Move some axes to other positions; the others keep their order."""

    def broadcast_to(self: Tensor, shape: int | Sequence[int]) -> Tensor:
        """Broadcast input to this shape without copying."""

    def expand_as(self: Tensor, other: Tensor) -> Tensor:
        """Expand to the shape of another tensor."""

    def tile(self: Tensor, *dims: int | Sequence[int]) -> Tensor:
        """`repeat` in which missing counts in front are 1."""

    def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
        """`length` elements along `dim`, beginning at `start`; a view."""

    def select(self: Tensor, dim: int, index: int) -> Tensor:
        """The slice at one index along `dim`, without that axis; a view."""

    def flip(self: Tensor, *dims: int | Sequence[int]) -> Tensor:
        """Reverse the order along some axes; a copy."""

    def roll(self: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
        """Shift elements along some axes (or in the flattened tensor); elements that leave at the end re-enter at the
        start."""

    def fliplr(self: Tensor) -> Tensor:
        """The columns (axis 1) in reverse order; a copy."""

    def flipud(self: Tensor) -> Tensor:
        """The rows (axis 0) in reverse order; a copy."""

    def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """Rotate by k quarter turns, from the first of two axes towards the second; a copy."""

    def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
        """A copy of `narrow(input, dim, start, length)`."""

    def as_strided(
        self: Tensor, size: int | Sequence[int], stride: int | Sequence[int], storage_offset: int | None = None
    ) -> Tensor:
        """A view of the storage of input, by sizes and strides in elements; storage_offset defaults to input's.

        The gradient of an element that occurs more than once is the sum over its occurrences."""

    def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
        """A view of sliding windows along an axis: the axis then counts windows, and a new last axis has their elements."""

    def sum_to_size(self: Tensor, *size: int | Sequence[int]) -> Tensor:
        """Sum over the axes that broadcasting from `size` would repeat."""

    def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Split along `dim` into at most n views of equal size (the last may be smaller)."""

    def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along `dim`, each without that axis; views."""

    def tensor_split(
        self: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0
    ) -> tuple[Tensor, ...]:
        """Split along `dim` into views: n parts (the first ones one longer if needed), or parts ending at given indices."""

    def hsplit(self: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Split along axis 1, or axis 0 of a vector, into views: n equal parts, or parts that end at given indices."""

    def vsplit(self: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Split along axis 0 into views: n equal parts, or parts that end at given indices."""

    def dsplit(self: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Split along axis 2 into views: n equal parts, or parts that end at given indices."""

    def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Split along `dim` into views of these sizes."""

    def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Same as chunk: writing into a part is always safe here."""

    def unsafe_split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Same as split: writing into a part is always safe here."""

    def unsafe_split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Same as split_with_sizes: writing into a part is always safe here."""

    def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """The diagonal of two axes as the last axis; a view."""

    def tril(self: Tensor, diagonal: int = 0) -> Tensor:
        """The lower triangle of the last two axes; 0 above the given diagonal."""

    def triu(self: Tensor, diagonal: int = 0) -> Tensor:
        """The upper triangle of the last two axes; 0 below the given diagonal."""

    def trace(self: Tensor) -> Tensor:
        """The sum of the diagonal of a matrix."""

    def diag(self: Tensor, diagonal: int = 0) -> Tensor:
        """The diagonal of a matrix, or the matrix with a given vector as its diagonal."""

    def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """The last axis as the diagonal of two new axes, zeros elsewhere."""

    def diagflat(self: Tensor, offset: int = 0) -> Tensor:
        """The matrix with all elements of input, flattened, on its diagonal."""

    def gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
        """`out[i, j] = input[i, index[i, j]]` for dim 1, and so on. sparse_grad: accepted; gradients are dense."""

    def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
        """The slices along `dim` at the positions in a vector of integers."""

    def masked_select(self: Tensor, mask: Tensor) -> Tensor:
        """A vector of the elements where the mask is True. Raises TraceError in a graph."""

    def nonzero(self: Tensor, as_tuple: bool = False) -> Any:
        """`int64 (n, ndim)`: positions of the nonzero elements; as_tuple: one vector per axis. Raises TraceError in a
        graph."""

    def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
        """`int64 (size, ndim)`: the first `size` rows of nonzero(input), also in a graph; fill_value after the last one."""

    def take(self: Tensor, index: Tensor) -> Tensor:
        """Elements of the flattened tensor at integer positions."""

    def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
        """`gather` that broadcasts the other axes; without `dim`, indices are positions in the flattened tensor."""

    def batch_gather(self: Tensor, indices: Tensor) -> Tensor:
        """`(batch..., k, ...)`: from each entry of a batch the slices at its row of indices, along the next axis.

        OneFlow's function: all axes of indices but the last are batch axes."""

    def scatter(
        self: Tensor,
        dim: int,
        index: Tensor,
        src: Tensor | float | None = None,
        *,
        value: Tensor | float | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Copy of input with `[i, index[i, j]] = src[i, j]` for dim 1, and so on; src may be a number (`value`).

        reduce: "add" adds to the present element, "multiply" multiplies it."""

    def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Copy of input with `[i, index[i, j]] += src[i, j]` for dim 1, and so on."""

    def scatter_reduce(
        self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """Copy of input with the elements of src that go to `[i, index[i, j]]` (for dim 1) reduced to one: "sum", "prod",
        "mean", "amax" or "amin".

        include_self: the element of input takes part in the reduction. Tied extremes share the gradient."""

    def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """Copy of input with `alpha * source` added to the slices along `dim` at the positions in a vector of integers."""

    def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """Copy of input with the slices along `dim` at the positions in a vector of integers replaced by source."""

    def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
        """Copy of input with the slices along `dim` at the positions in a vector of integers filled with a number."""

    def index_put(self: Tensor, indices: Sequence, values: Tensor, accumulate: bool = False) -> Tensor:
        """Copy of input with `input[indices] = values`; accumulate: values are added, also at repeated positions."""

    def index_reduce(
        self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """Copy of input with the slices of source that go to one position along `dim` reduced to one: "prod", "mean",
        "amax" or "amin". include_self: the slice of input takes part in the reduction."""

    def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """Copy of input with source written to positions of the flattened tensor; accumulate: added to them."""

    def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
        """Copy of input with the first elements of source, in order, where the mask is True."""

    def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
        """Copy of input with src in place of `input.select(dim, index)`."""

    def slice_scatter(
        self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> Tensor:
        """Copy of input with src in place of the slice start:end:step along `dim`."""

    def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Copy of input with src in place of `input.diagonal(offset, dim1, dim2)`."""

    def as_strided_scatter(
        self: Tensor,
        src: Tensor,
        size: int | Sequence[int],
        stride: int | Sequence[int],
        storage_offset: int | None = None,
    ) -> Tensor:
        """Copy of input with src written through `as_strided`."""

    def mm(self: Tensor, mat2: Tensor) -> Tensor:
        """The product of two matrices."""

    def bmm(self: Tensor, mat2: Tensor) -> Tensor:
        """The matrix products of two stacks, pair by pair."""

    def mv(self: Tensor, vec: Tensor) -> Tensor:
        """A matrix times a vector."""

    def dot(self: Tensor, other: Tensor) -> Tensor:
        """The sum of the products of two vectors."""

    def outer(self: Tensor, vec2: Tensor) -> Tensor:
        """All products of two vectors: out[i, j] = input[i] * vec2[j]."""

    def ger(self: Tensor, vec2: Tensor) -> Tensor:
        """All products of two vectors: out[i, j] = input[i] * vec2[j]."""

    def inner(self: Tensor, other: Tensor) -> Tensor:
        """The sums of products over the last axes of both: for vectors the dot product; a number scales."""

    def kron(self: Tensor, other: Tensor) -> Tensor:
        """Kronecker product: each element of input times the whole of other, block by block; missing axes count as 1."""

    def vdot(self: Tensor, other: Tensor) -> Tensor:
        """The sum of the products of two vectors, with the conjugates of the first one."""

    def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """`beta * input + alpha * mat1 @ mat2`."""

    def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """`beta * input + alpha * mat @ vec`."""

    def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """`beta * input + alpha * outer(vec1, vec2)`."""

    def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """`beta * input + alpha * the sum of the products of two stacks of matrices`."""

    def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """`beta * input + alpha * batch1 @ batch2`, for stacks of matrices."""

    def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
        """The cross product of vectors of 3 elements along `dim`; None: the first axis of size 3."""

    def det(self: Tensor) -> Tensor:
        """The determinant of a square matrix."""

    def logdet(self: Tensor) -> Tensor:
        """The logarithm of the determinant: NaN if it is negative, -inf if it is 0."""

    def slogdet(self: Tensor) -> return_types.slogdet:
        """(sign, logabsdet) of the determinant; 0 and -inf for a singular matrix."""

    def inverse(self: Tensor) -> Tensor:
        """The inverse matrix. Raises LinAlgError if a matrix is singular."""

    def pinverse(self: Tensor, rcond: float = 1e-15) -> Tensor:
        """Older name for `pinv`, with its older default."""

    def cholesky(self: Tensor, upper: bool = False) -> Tensor:
        """The lower triangular L with L @ L.T = input (upper: U with U.T @ U = input).

        input must be symmetric positive definite, else LinAlgError; only its lower (upper: upper) triangle is read."""

    def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
        """The inverse of L @ L.T (upper: of L.T @ L)."""

    def triangular_solve(
        self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> return_types.triangular_solve:
        """Older name for `solve_triangular`; returns (solution, A)."""

    def svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
        """(U, S, V), with V instead of the Vh of linalg.svd. some: U and V have only as many columns as S has elements."""

    def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """X with A @ X = b, from the result of `lu_factor(A)`; linalg.lu_solve has its arguments in another order."""

    def matrix_power(self: Tensor, n: int) -> Tensor:
        """A @ A @ ... n times, by repeated squaring; the identity for n = 0, powers of the inverse for n < 0."""

    def matrix_exp(self: Tensor) -> Tensor:
        """I + A + A @ A / 2 + A @ A @ A / 6 + ..."""

    def cov(
        self: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """The covariance matrix of the rows (variables) over the columns (observations). fweights: how often each
        observation counts; aweights: its weight."""

    def corrcoef(self: Tensor) -> Tensor:
        """The correlation coefficients of the rows, from -1 to 1."""

    def mul_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a * b; logical and for bools."""

    def multiply_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a * b; logical and for bools."""

    def floor_divide_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a / b rounded down."""

    def remainder_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The remainder of a / b, with the sign of b (Python's %)."""

    def fmod_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The remainder of a / b, with the sign of a (C's fmod)."""

    def neg_(self: Tensor) -> Tensor:
        """In place: -x."""

    def negative_(self: Tensor) -> Tensor:
        """In place: -x."""

    def abs_(self: Tensor) -> Tensor:
        """In place: |x|; the derivative at 0 is 0."""

    def absolute_(self: Tensor) -> Tensor:
        """In place: |x|; the derivative at 0 is 0."""

    def sign_(self: Tensor) -> Tensor:
        """In place: -1, 0 or 1; 0 for NaN."""

    def exp_(self: Tensor) -> Tensor:
        """In place: e to the power x."""

    def exp2_(self: Tensor) -> Tensor:
        """In place: 2 to the power x."""

    def expm1_(self: Tensor) -> Tensor:
        """In place: exp(x) - 1, exact for small x."""

    def log_(self: Tensor) -> Tensor:
        """In place: The natural logarithm; -inf at 0, NaN below."""

    def log1p_(self: Tensor) -> Tensor:
        """In place: log(1 + x), exact for small x."""

    def log2_(self: Tensor) -> Tensor:
        """In place: The logarithm to base 2."""

    def log10_(self: Tensor) -> Tensor:
        """In place: The logarithm to base 10."""

    def sqrt_(self: Tensor) -> Tensor:
        """In place: The square root."""

    def rsqrt_(self: Tensor) -> Tensor:
        """In place: 1 / sqrt(x)."""

    def square_(self: Tensor) -> Tensor:
        """In place: x * x."""

    def reciprocal_(self: Tensor) -> Tensor:
        """In place: 1 / x."""

    def sin_(self: Tensor) -> Tensor:
        """In-place `sin`."""

    def cos_(self: Tensor) -> Tensor:
        """In place: The cosine, x in radians."""

    def tan_(self: Tensor) -> Tensor:
        """In place: The tangent, x in radians."""

    def tanh_(self: Tensor) -> Tensor:
        """In place: The hyperbolic tangent."""

    def sinh_(self: Tensor) -> Tensor:
        """In place: The hyperbolic sine."""

    def cosh_(self: Tensor) -> Tensor:
        """In place: The hyperbolic cosine."""

    def asin_(self: Tensor) -> Tensor:
        """In place: The inverse sine, in radians."""

    def acos_(self: Tensor) -> Tensor:
        """In place: The inverse cosine, in radians."""

    def atan_(self: Tensor) -> Tensor:
        """In place: The inverse tangent, in radians."""

    def asinh_(self: Tensor) -> Tensor:
        """In place: The inverse hyperbolic sine."""

    def acosh_(self: Tensor) -> Tensor:
        """In place: The inverse hyperbolic cosine, at least 0."""

    def atanh_(self: Tensor) -> Tensor:
        """In place: The inverse hyperbolic tangent."""

    def arcsin_(self: Tensor) -> Tensor:
        """In place: The inverse sine, in radians."""

    def arccos_(self: Tensor) -> Tensor:
        """In place: The inverse cosine, in radians."""

    def arctan_(self: Tensor) -> Tensor:
        """In place: The inverse tangent, in radians."""

    def arcsinh_(self: Tensor) -> Tensor:
        """In place: The inverse hyperbolic sine."""

    def arccosh_(self: Tensor) -> Tensor:
        """In place: The inverse hyperbolic cosine, at least 0."""

    def arctanh_(self: Tensor) -> Tensor:
        """In place: The inverse hyperbolic tangent."""

    def atan2_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The angle of the point (x, y), in radians from -pi to pi; its gradient at (0, 0) is 0."""

    def arctan2_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The angle of the point (x, y), in radians from -pi to pi; its gradient at (0, 0) is 0."""

    def floor_(self: Tensor) -> Tensor:
        """In-place `floor`."""

    def ceil_(self: Tensor) -> Tensor:
        """In-place `ceil`."""

    def trunc_(self: Tensor) -> Tensor:
        """In place: x rounded towards 0."""

    def fix_(self: Tensor) -> Tensor:
        """In place: x rounded towards 0."""

    def hypot_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: sqrt(a*a + b*b), the length of the vector (a, b), even if a*a would overflow."""

    def copysign_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The absolute value of a with the sign of b, including that of -0.0."""

    def nextafter_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The next representable number after a in the direction of b."""

    def gcd_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The greatest common divisor."""

    def lcm_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The least common multiple; 0 if one is 0."""

    def bitwise_left_shift_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a << b: a * 2**b; overflowing bits are lost."""

    def bitwise_right_shift_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a >> b: floor(a / 2**b)."""

    def erf_(self: Tensor) -> Tensor:
        """In place: The error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    def erfc_(self: Tensor) -> Tensor:
        """In place: 1 - erf(x), exact if that is small."""

    def erfinv_(self: Tensor) -> Tensor:
        """In place: The inverse of erf; NaN outside [-1, 1]."""

    def lgamma_(self: Tensor) -> Tensor:
        """In place: log |gamma(x)|; gamma(n) is the factorial of n - 1."""

    def digamma_(self: Tensor) -> Tensor:
        """In place: The derivative of lgamma."""

    def igamma_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The regularized lower incomplete gamma function; differentiable only in b."""

    def igammac_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: The regularized upper incomplete gamma function, 1 - igamma; differentiable only in b."""

    def i0_(self: Tensor) -> Tensor:
        """In place: Modified Bessel function of the first kind, order 0."""

    def xlogy_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a * log(b); 0 if a is 0 and b is not NaN."""

    def relu_(self: Tensor) -> Tensor:
        """relu, in place."""

    def sigmoid_(self: Tensor) -> Tensor:
        """In place: 1 / (1 + exp(-x))."""

    def logical_not_(self: Tensor) -> Tensor:
        """In place: True where x is zero or False."""

    def bitwise_not_(self: Tensor) -> Tensor:
        """In place: ~x: logical for bools, bitwise for integers."""

    def eq_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a == b."""

    def ne_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a != b."""

    def lt_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a < b."""

    def le_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a <= b."""

    def gt_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a > b."""

    def ge_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a >= b."""

    def less_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a < b."""

    def less_equal_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a <= b."""

    def greater_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a > b."""

    def greater_equal_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a >= b."""

    def not_equal_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a != b."""

    def round_(self: Tensor, *, decimals: int = 0) -> Tensor:
        """In-place `round`."""

    def tril_(self: Tensor, diagonal: int = 0) -> Tensor:
        """In place: The lower triangle of the last two axes; 0 above the given diagonal."""

    def triu_(self: Tensor, diagonal: int = 0) -> Tensor:
        """In place: The upper triangle of the last two axes; 0 below the given diagonal."""

    def masked_fill_(self: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
        """In place: Replace elements where mask is True by `value`, a number or a 0-d tensor. The dtype of input is kept."""

    def scatter_(
        self: Tensor,
        dim: int,
        index: Tensor,
        src: Tensor | float | None = None,
        *,
        value: Tensor | float | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """In place: Copy of input with `[i, index[i, j]] = src[i, j]` for dim 1, and so on; src may be a number (`value`).

        reduce: "add" adds to the present element, "multiply" multiplies it."""

    def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """In place: Copy of input with `[i, index[i, j]] += src[i, j]` for dim 1, and so on."""

    def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """In place: Copy of input with `alpha * source` added to the slices along `dim` at the positions in a vector of integers."""

    def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """In place: Copy of input with the slices along `dim` at the positions in a vector of integers replaced by source."""

    def index_fill_(self: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
        """In place: Copy of input with the slices along `dim` at the positions in a vector of integers filled with a number."""

    def index_put_(self: Tensor, indices: Sequence, values: Tensor, accumulate: bool = False) -> Tensor:
        """In place: Copy of input with `input[indices] = values`; accumulate: values are added, also at repeated positions."""

    def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """In place: Copy of input with source written to positions of the flattened tensor; accumulate: added to them."""

    def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
        """In place: Copy of input with the first elements of source, in order, where the mask is True."""

    def logical_and_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: True where both are true."""

    def logical_or_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: True where at least one of the two is true."""

    def logical_xor_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: True where exactly one of the two is true."""

    def bitwise_and_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a & b: logical for bools, bitwise for integers."""

    def bitwise_or_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a | b: logical for bools, bitwise for integers."""

    def bitwise_xor_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: a ^ b: logical for bools, bitwise for integers."""

    def addcmul_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        """In place: `input + value * tensor1 * tensor2`, in the promoted dtype of the three."""

    def addcdiv_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
        """In place: `input + value * tensor1 / tensor2`, in the promoted dtype of the three."""

    def addmm_(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """In place: `beta * input + alpha * mat1 @ mat2`."""

    def addmv_(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """In place: `beta * input + alpha * mat @ vec`."""

    def addr_(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """In place: `beta * input + alpha * outer(vec1, vec2)`."""

    def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """In place: `beta * input + alpha * the sum of the products of two stacks of matrices`."""

    def baddbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """In place: `beta * input + alpha * batch1 @ batch2`, for stacks of matrices."""

    def frac_(self: Tensor) -> Tensor:
        """In-place `frac`."""

    def sinc_(self: Tensor) -> Tensor:
        """In place: sin(pi * x) / (pi * x); 1 at 0."""

    def deg2rad_(self: Tensor) -> Tensor:
        """In place: Convert degrees to radians: `input * pi / 180`."""

    def rad2deg_(self: Tensor) -> Tensor:
        """In place: Convert radians to degrees: `input * 180 / pi`."""

    def heaviside_(self: Tensor, values: Tensor) -> Tensor:
        """In place: 0 where input is negative (or NaN), `values` where it is 0, 1 where it is positive. No gradient."""

    def ldexp_(self: Tensor, other: Tensor | float) -> Tensor:
        """In place: `input * 2**other`, in the dtype of input if that is floating."""

    def float_power_(self: Tensor, exponent: Tensor | float) -> Tensor:
        """In place: `input ** exponent`, computed and returned in float64."""

    def logit_(self: Tensor, eps: float | None = None) -> Tensor:
        """In place: log(x / (1 - x)), the inverse of sigmoid; NaN outside [0, 1]. eps: clamp x to [eps, 1 - eps] first."""

    def nan_to_num_(
        self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """In place: Replace NaN (by 0 unless given), inf and -inf (by the largest and smallest number of the dtype). The gradient is
        0 there."""

    def mvlgamma_(self: Tensor, p: int) -> Tensor:
        """In place: log of the multivariate gamma function: log(pi) * p * (p-1) / 4 + the sum of lgamma(x - j/2), j = 0 .. p-1.

        p: the number of dimensions. Meant for x above (p - 1) / 2."""

    def lerp_(self: Tensor, end: Tensor | float, weight: Tensor | float) -> Tensor:
        """In-place `lerp`."""

    def clamp_(self: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
        """In place: Limit input to [min, max]; these are numbers or tensors, and one of them may be None."""

    def clip_(self: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
        """In place: Limit input to [min, max]; these are numbers or tensors, and one of them may be None."""

    def clamp_min_(self: Tensor, min: Tensor | float) -> Tensor:
        """In place: Elementwise max(input, min)."""

    def clamp_max_(self: Tensor, max: Tensor | float) -> Tensor:
        """In place: Elementwise min(input, max)."""

    def index_reduce_(
        self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """In place: Copy of input with the slices of source that go to one position along `dim` reduced to one: "prod", "mean",
        "amax" or "amin". include_self: the slice of input takes part in the reduction."""

    def scatter_reduce_(
        self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """In place: Copy of input with the elements of src that go to `[i, index[i, j]]` (for dim 1) reduced to one: "sum", "prod",
        "mean", "amax" or "amin".

        include_self: the element of input takes part in the reduction. Tied extremes share the gradient."""

    def sgn_(self: Tensor) -> Tensor:
        """In place: x / |x| of a complex number, 0 at 0; the sign of a real one."""

    def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
        """In place: Remove the axes of size 1, or those of them that `dim` names."""

    def unsqueeze_(self: Tensor, dim: int) -> Tensor:
        """In place: Insert an axis of size 1 at `dim`."""

    def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
        """In place: Swap two axes; a view."""

    def swapdims_(self: Tensor, dim0: int, dim1: int) -> Tensor:
        """In place: Swap two axes; a view."""

    def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
        """In place: NumPy's name for `transpose`."""

    def t_(self: Tensor) -> Tensor:
        """In place: The transposed matrix; a tensor with fewer axes is returned unchanged."""
