"""Initializers: each fills a tensor in place, outside the tape, and returns it.

Random elements come from `generator`, or else from the default Generator. Read next: `modules/linear.py`, for the
initializers that layers use.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.backend import namespace
from ..core.base.errors import DTypeError, ShapeError
from ..core.base.placement import broadcast
from ..core.functions import creation
from ..core.grad.modes import no_grad
from ..core.host.blas import on_all_threads
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail, warn
from ..core.tensor import Tensor

if TYPE_CHECKING:
    from ..core.random import Generator

Initializer = TypeVar("Initializer", bound=Callable[..., Tensor])
GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain that compensates for the smaller standard deviation after a nonlinearity.

    param: the negative slope if nonlinearity is "leaky_relu" (0.01 if None). He et al. 2015, section 2.2.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        what = f"calculate_gain: there is no nonlinearity {nonlinearity!r}"
        fail(ShapeError, what, f"leaky_relu, {', '.join(GAINS)}")
    return GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return (fan_in, fan_out): the number of inputs of one output, and the number of outputs of one input."""
    shape = tensor.spec.shape
    if len(shape) < 2:
        what = f"fan_in and fan_out need at least 2 axes, this tensor has {len(shape)}"
        fail(ShapeError, what, "init.zeros_ or init.uniform_ for a bias", tensor=tensor)
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def fill_with(tensor: Tensor, new: Tensor) -> Tensor:
    with no_grad():
        if tensor.is_global and new.is_local:  # the elements of the first rank, if others have drawn other ones
            new = new.to_global(tensor.placement, [broadcast] * len(tensor.sbp))
        tensor.copy_(new)
    return tensor


def draw_uniform(tensor: Tensor, low: float, high: float, generator: Generator | None) -> Tensor:
    """Random elements in [low, high), with the tensor's shape and dtype."""
    with no_grad():
        return creation.rand_like(tensor, generator=generator) * (high - low) + low


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with elements drawn uniformly from [a, b)."""
    if not a <= b:
        fail(ShapeError, f"uniform_: a must be at most b, got [{a}, {b})", "the lower one first", tensor=tensor)
    return fill_with(tensor, draw_uniform(tensor, a, b, generator))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with elements drawn from the normal distribution N(mean, std**2)."""
    if getattr(mean, "shape", ()) or getattr(std, "shape", ()):
        what = "normal_: mean and std are one number each"
        fail(ShapeError, what, "flow.normal(mean, std) takes arrays", mean=mean, std=std)
    spec = tensor.spec
    place: dict[str, Any] = {"placement": tensor.placement, "sbp": tensor.sbp} if tensor.is_global else {}
    return fill_with(
        tensor, creation.normal(mean, std, tuple(spec.shape), dtype=spec.dtype, generator=generator, **place)
    )


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with elements drawn from N(mean, std**2) truncated to [a, b], by inverting the cdf."""

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / (std * math.sqrt(2.0)))) / 2.0

    low, high = 2 * below(a) - 1, 2 * below(b) - 1
    with no_grad():
        new = erfinv(draw_uniform(tensor, low, high, generator).double()) * (std * math.sqrt(2.0)) + mean
        return fill_with(tensor, new.clamp(a, b).to(tensor.spec.dtype))


def erfinv(y: Tensor) -> Tensor:
    """The inverse of erf in float64: Winitzki's approximation, then Newton steps (erf' = 2/sqrt(pi) exp(-x^2))."""
    y = y.clamp(-1 + 1e-15, 1 - 1e-15)
    log, c = (1 - y * y).log(), 0.147
    half = log / 2 + 2 / (math.pi * c)
    x = y.sign() * ((half * half - log / c).sqrt() - half).clamp(0.0).sqrt()
    for _ in range(3):
        x = x - (x.erf() - y) * (math.sqrt(math.pi) / 2) * (x * x).exp()
    return x


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill with 1 on the diagonal and 0 elsewhere. tensor: (n, m)."""
    if tensor.spec.ndim != 2:
        what = f"eye_ needs 2 axes, this tensor has {tensor.spec.ndim}"
        fail(ShapeError, what, "init.dirac_ is for filters", tensor=tensor)
    return fill_with(tensor, creation.eye(*tensor.spec.shape, dtype=tensor.spec.dtype, device="cpu"))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill filters (F, C, ...) with 1 in the middle of channel f of filter f, per group: an identity."""
    shape = tensor.spec.shape
    if not 3 <= len(shape) <= 5 or shape[0] % groups:
        what = f"dirac_ needs filters (F, C, ...) with F divisible by groups={groups}"
        fail(ShapeError, what, "init.eye_ for matrices", tensor=tensor)
    new = creation.zeros(*shape, dtype=tensor.spec.dtype, device="cpu")
    per_group = shape[0] // groups
    middle = tuple(n // 2 for n in shape[2:])
    for group in range(groups):
        for channel in range(min(per_group, shape[1])):
            new[(group * per_group + channel, channel, *middle)] = 1.0
    return fill_with(tensor, new)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill from U(-a, a) with a = gain * sqrt(6 / (fan_in + fan_out)). Glorot & Bengio 2010, eq. 16."""
    a = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill from N(0, std**2) with std = gain * sqrt(2 / (fan_in + fan_out)). Glorot & Bengio 2010, eq. 12."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode.lower() not in ("fan_in", "fan_out"):
        what = f"kaiming: mode is {mode!r}"
        fail(ShapeError, what, 'mode="fan_in" keeps the size of activations, "fan_out" that of gradients')
    fan = fans(tensor)[mode.lower() == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill from U(-b, b) with b = gain * sqrt(3 / fan). He et al. 2015, eq. 10 and 14.

    a: negative slope of the leaky ReLU that follows.
    """
    bound = math.sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill from N(0, std**2) with std = gain / sqrt(fan). He et al. 2015, eq. 10 and 14."""
    return normal_(tensor, 0.0, kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill a matrix (rows, the rest flattened) with orthonormal rows or columns, times gain. Saxe et al. 2013."""
    from ..core.functions.creation import from_numpy

    if not tensor.spec.floating:
        what = f"orthogonal_: the tensor must be floating, got {tensor.spec.dtype.name}"
        fail(DTypeError, what, "tensor.float()", tensor=tensor)
    if tensor.spec.ndim < 2:
        what = f"orthogonal_ needs at least 2 axes, this tensor has {tensor.spec.ndim}"
        fail(ShapeError, what, "init.normal_", tensor=tensor)
    rows = tensor.spec.shape[0]
    columns = math.prod(tensor.spec.shape[1:])
    draw = creation.normal(0.0, 1.0, (max(rows, columns), min(rows, columns)), generator=generator, device="cpu")
    xp = namespace()
    q, r = on_all_threads(xp.linalg.qr, draw.numpy().astype("float64"))
    q = q * xp.sign(xp.diag(r))  # makes the distribution uniform over all such matrices: Mezzadri 2007, section 5
    matrix = xp.ascontiguousarray(q.T if rows < columns else q) * float(gain)
    return fill_with(tensor, from_numpy(matrix.reshape(tensor.spec.shape)).to(tensor.spec.dtype))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill from N(0, std**2), with a fraction `sparsity` of zeros per column. tensor: (n, m). Martens 2010, sec. 5."""
    from ..core.functions.creation import randperm

    if tensor.spec.ndim != 2:
        fail(ShapeError, f"sparse_ needs 2 axes, this tensor has {tensor.spec.ndim}", "init.normal_", tensor=tensor)
    rows, columns = tensor.spec.shape
    zeros = math.ceil(sparsity * rows)
    new = creation.normal(0.0, std, (rows, columns), dtype=tensor.spec.dtype, generator=generator, device="cpu")
    for column in range(columns):
        new[randperm(rows, generator=generator, device="cpu")[:zeros], column] = 0.0
    return fill_with(tensor, new)


def deprecated_alias(function: Initializer) -> Initializer:
    """Make a function with PyTorch's former name, without the underscore, which warns once."""
    name = function.__name__

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Tensor:
        warn(f"init.{name[:-1]} is the old name of init.{name}", f"init.{name}(tensor, ...)")
        return function(*args, **options)

    wrapper.__name__ = wrapper.__qualname__ = name[:-1]
    return wrapper  # type: ignore[return-value]  # `wraps` keeps the signature


uniform, normal, eye = deprecated_alias(uniform_), deprecated_alias(normal_), deprecated_alias(eye_)
constant, dirac, sparse, orthogonal = (
    deprecated_alias(constant_),
    deprecated_alias(dirac_),
    deprecated_alias(sparse_),
    deprecated_alias(orthogonal_),
)
xavier_uniform, xavier_normal = deprecated_alias(xavier_uniform_), deprecated_alias(xavier_normal_)
kaiming_uniform, kaiming_normal = deprecated_alias(kaiming_uniform_), deprecated_alias(kaiming_normal_)

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
__getattr__ = _name_hints("flow.nn.init", globals())


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """fan_in or fan_out, under the private name that programs import from PyTorch and OneFlow."""
    return fans(tensor)[mode.lower() == "fan_out"]


_calculate_fan_in_and_fan_out = fans
