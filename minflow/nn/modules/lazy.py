"""Lazy layers: they take the input size from the first input, and then become the layer that they are named after.

Until then weight and bias have no elements: call the model once, or load a state, before making an optimizer or a
graph. Read next: `../parameter.py` for UninitializedParameter.
"""

from __future__ import annotations

import inspect
from typing import Any

from ...core.base.errors import GraphError, ShapeError
from ...core.messages.suggestions import signature_error
from ...core.mode import MODE
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from ..functional.arguments import check_tensor
from ..module import Module
from ..parameter import Uninitialized, UninitializedBuffer, UninitializedParameter
from .conv import Conv1d, Conv2d, Conv3d
from .conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instance_norm import InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .norm import BatchNorm1d, BatchNorm2d, BatchNorm3d


def from_state(module: Any, entries: dict, prefix: str, *rest: Any) -> None:
    """Take the shapes from the tensors of a state before it is loaded."""
    sizes = {name: getattr(entries.get(prefix + name), "shape", None) for name in module._uninitialized_names()}
    known = [shape for name, shape in sizes.items() if shape and not isinstance(entries[prefix + name], Uninitialized)]
    if known and len(known) == len(sizes):
        module._materialize(module._size_of(dict(sizes)))


class Lazy(Module):
    """Base of lazy layers, with parameters that get their shapes later. size: the name of the unknown attribute."""

    _layer: Any = None  # the class argument of a subclass
    _size = "in_channels"

    def __init_subclass__(cls, layer: Any = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._layer = layer or cls._layer

    def _make_uninitialized(self, *names: str) -> None:
        """Replace parameters and buffers made by the constructor with uninitialized ones."""
        for name in names:
            for registry, kind in ((self._parameters, UninitializedParameter), (self._buffers, UninitializedBuffer)):
                if registry.get(name) is not None:
                    old = registry[name]
                    registry[name] = kind(device=old.device, dtype=old.dtype)
        setattr(self, self._size, 0)
        self.__dict__["_by_state"] = self._get_hooks().add("load_before", from_state, False)

    def _uninitialized_names(self) -> list[str]:
        """Return the names of parameters and buffers that have no shape yet."""
        return [n for n, t in {**self._parameters, **self._buffers}.items() if isinstance(t, Uninitialized)]

    def has_uninitialized_params(self) -> bool:
        """True if any parameter or buffer is still uninitialized."""
        return bool(self._uninitialized_names())

    def reset_parameters(self) -> None:
        """Do nothing until the shapes are known."""

    def _axis(self, ndim: int) -> int:
        """Return the axis of the input that has the channels or features."""
        return -1

    def forward(self, input: Tensor) -> Tensor:
        name = type(self).__name__
        check_tensor(name, input)
        if MODE.get().trace is not None:
            what = f"{name} is not initialized yet, and a graph cannot do that"
            fail(GraphError, what, "model(x) once, then the graph", input=input)
        axis = self._axis(input.spec.ndim)
        if not -input.spec.ndim <= axis < input.spec.ndim:
            what = f"{name}: the input has {input.spec.ndim} axes, so it has no channels"
            fail(ShapeError, what, f"as nn.{name[4:]} takes", input=input)
        self.initialize_parameters(input)
        return self.forward(input)  # the forward of its new class

    def initialize_parameters(self, input: Tensor) -> None:
        """Create parameters and buffers in the shapes that this input requires, and initialize them."""
        self._materialize(input.spec.shape[self._axis(input.spec.ndim)])

    def _materialize(self, count: int) -> None:
        """Create the parameters for this number of input features."""
        shapes = self._shapes(count)
        for name in self._uninitialized_names():
            {**self._parameters, **self._buffers}[name].materialize(shapes[name])
        setattr(self, self._size, count)
        self.__dict__.pop("_by_state").remove()
        self.__class__ = type(self)._layer
        self.reset_parameters()

    _shapes: Any  # of parameters and buffers, for an input size
    _size_of: Any  # the input size, from such shapes


class LazyLinear(Lazy, Linear, layer=Linear):
    """Linear(in_features, out_features), with in_features taken from the first input."""

    _size = "in_features"

    def __init__(
        self, out_features: int, bias: bool = True, device: Device | str | None = None, dtype: DType | None = None
    ):
        super().__init__(1, out_features, bias, device, dtype)
        self._make_uninitialized("weight", "bias")

    def _shapes(self, count: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters for this number of input features."""
        return {"weight": (self.out_features, count), "bias": (self.out_features,)}

    def _size_of(self, shapes: dict) -> int:
        """Return the number of input features of parameters with these shapes."""
        return shapes["weight"][-1]


class LazyConv(Lazy):
    """A convolution with in_channels taken from the first input; its other arguments are those of the layer."""

    _axes: int
    transposed: bool

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _first, *others = inspect.signature(cls._layer).parameters.values()
        cls.__signature__ = inspect.Signature(others)

    def __init__(self, *args: Any, **kwargs: Any):
        try:
            groups = inspect.signature(type(self)).bind(*args, **kwargs).arguments.get("groups", 1)
        except TypeError as error:
            raise signature_error(type(self), args, kwargs, f"nn.{type(self).__name__}", error) or error from None
        super().__init__(groups, *args, **kwargs)
        self._make_uninitialized("weight", "bias")

    def _axis(self, ndim: int) -> int:
        return ndim - self._axes - 1

    def _shapes(self, count: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of parameters and buffers for this number of input channels."""
        first, second = (count, self.out_channels) if self.transposed else (self.out_channels, count)
        if count < 1 or count % self.groups:
            what = f"{type(self).__name__}: the input has {count} channels, which groups={self.groups} does not divide"
            fail(ShapeError, what, "another groups")
        return {"weight": (first, second // self.groups, *self.kernel_size), "bias": (self.out_channels,)}

    def _size_of(self, shapes: dict) -> int:
        """Return the number of input channels of parameters with these shapes."""
        return shapes["weight"][0] if self.transposed else shapes["weight"][1] * self.groups


class LazyNorm(Lazy):
    """A norm with num_features taken from the first input."""

    _size = "num_features"
    _axes: Any  # the numbers of axes that an input of the layer may have

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(1, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self._make_uninitialized("weight", "bias", "running_mean", "running_var")

    def _axis(self, ndim: int) -> int:
        return ndim - self._axes[0] if issubclass(self._layer, InstanceNorm) else 1

    def _shapes(self, count: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of parameters and buffers for this number of input channels."""
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (count,))

    def _size_of(self, shapes: dict) -> int:
        """Return the number of input channels of parameters with these shapes."""
        return next(iter(shapes.values()))[0]

    def initialize_parameters(self, input: Tensor) -> None:
        name = type(self).__name__
        if input.spec.ndim not in self._axes:
            what = f"{name}: the input must have {' or '.join(map(str, self._axes))} axes, got {input.spec.ndim}"
            fail(ShapeError, what, f"as nn.{name[4:]} takes", input=input)
        super().initialize_parameters(input)


class LazyConv1d(LazyConv, Conv1d, layer=Conv1d):
    """Conv1d, with in_channels taken from the first input."""


class LazyConv2d(LazyConv, Conv2d, layer=Conv2d):
    """Conv2d, with in_channels taken from the first input."""


class LazyConv3d(LazyConv, Conv3d, layer=Conv3d):
    """Conv3d, with in_channels taken from the first input."""


class LazyConvTranspose1d(LazyConv, ConvTranspose1d, layer=ConvTranspose1d):  # type: ignore[misc]  # no output_size
    """ConvTranspose1d, with in_channels taken from the first input."""


class LazyConvTranspose2d(LazyConv, ConvTranspose2d, layer=ConvTranspose2d):  # type: ignore[misc]  # no output_size
    """ConvTranspose2d, with in_channels taken from the first input."""


class LazyConvTranspose3d(LazyConv, ConvTranspose3d, layer=ConvTranspose3d):  # type: ignore[misc]  # no output_size
    """ConvTranspose3d, with in_channels taken from the first input."""


class LazyBatchNorm1d(LazyNorm, BatchNorm1d, layer=BatchNorm1d):
    """BatchNorm1d, with num_features taken from the first input."""


class LazyBatchNorm2d(LazyNorm, BatchNorm2d, layer=BatchNorm2d):
    """BatchNorm2d, with num_features taken from the first input."""


class LazyBatchNorm3d(LazyNorm, BatchNorm3d, layer=BatchNorm3d):
    """BatchNorm3d, with num_features taken from the first input."""


class LazyInstanceNorm1d(LazyNorm, InstanceNorm1d, layer=InstanceNorm1d):
    """InstanceNorm1d, with num_features taken from the first input."""


class LazyInstanceNorm2d(LazyNorm, InstanceNorm2d, layer=InstanceNorm2d):
    """InstanceNorm2d, with num_features taken from the first input."""


class LazyInstanceNorm3d(LazyNorm, InstanceNorm3d, layer=InstanceNorm3d):
    """InstanceNorm3d, with num_features taken from the first input."""
