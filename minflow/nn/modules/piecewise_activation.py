"""Layers: piecewise, gated and parametric activations. Formulas: `../functional/piecewise_activation.py` and
`../../core/functions/activation.py`.
"""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions.activation import check_input
from ...core.functions.creation import full
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .activation import AlongAxis, InplaceActivation
from .linear import check_size


class ELU(InplaceActivation):
    """x if x > 0, else alpha * (exp(x) - 1)."""

    _repr_attributes = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(InplaceActivation):
    """x if x > 0, else alpha * (exp(x / alpha) - 1)."""

    _repr_attributes = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(InplaceActivation):
    """elu with alpha = 1.6733, times 1.0507, which preserves mean 0 and variance 1."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Mish(InplaceActivation):
    """x * tanh(log(1 + exp(x)))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class PReLU(Module):
    """x if x > 0, else weight * x: the slope below 0 is learned.

    num_parameters: 1, or the number of channels (axis 1). weight: (num_parameters,), starts as `init`.
    """

    _repr_attributes = ("num_parameters",)

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        check_size("PReLU", "num_parameters", num_parameters)
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), float(init), dtype=dtype, device=device))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class GLU(Module):
    """a * sigmoid(b), where a and b are the two halves of the input along dim."""

    _repr_attributes = ("dim",)

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""

    _repr_attributes = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Shrink(Module):
    """Base of the layers with a threshold lambd."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Shrink):
    """x - lambd if x > lambd, x + lambd if x < -lambd, else 0."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Hardshrink(Shrink):
    """x if |x| > lambd, else 0."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Hardtanh(InplaceActivation):
    """min(max(x, min_val), max_val). min_value, max_value: the old names of these arguments."""

    _repr_attributes = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if not self.max_val > self.min_val:
            what = f"Hardtanh: min_val must be below max_val, got {self.min_val} and {self.max_val}"
            fail(OutOfRangeError, what, "nn.Hardtanh(-1.0, 1.0)")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Hardsigmoid(InplaceActivation):
    """min(max(x / 6 + 1 / 2, 0), 1)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(InplaceActivation):
    """x * hardsigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Threshold(InplaceActivation):
    """x if x > threshold, else value."""

    _repr_attributes = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(InplaceActivation):
    """x if x > 0, else a * x, where a is drawn from [lower, upper) in training, and is their mean in evaluation."""

    _repr_attributes = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__(inplace)
        self.lower, self.upper = lower, upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class QuickGELU(Module):
    """x * sigmoid(1.702 * x), close to GELU."""

    def forward(self, x: Tensor) -> Tensor:
        return F.quick_gelu(x)


class SquareReLU(Module):
    """max(x, 0)**2."""

    def forward(self, input: Tensor) -> Tensor:
        return F.square_relu(input)


class Softmin(AlongAxis):
    """softmax(-x) along axis `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """softmax over the channels at each pixel of images (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        check_input("Softmax2d", input, floating=True)
        if input.spec.ndim not in (3, 4):
            what = f"Softmax2d: the input must be (N, C, H, W) or (C, H, W), got {input.spec.ndim} axes"
            fail(ShapeError, what, "nn.Softmax(dim) for other shapes", input=input)
        return F.softmax(input, -3)
