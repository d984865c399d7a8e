"""Public names of `flow.autograd`. The engine is in `core/autograd.py`."""

from .core.autograd import backward as backward
from .core.grad import functional as functional, saved_tensors as _saved_tensors
from .core.grad.function import Function as Function
from .core.grad.gradcheck import gradcheck as gradcheck, gradgradcheck as gradgradcheck
from .core.grad.gradients import grad as grad
from .core.grad.modes import (
    detect_anomaly as detect_anomaly,
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_detect_anomaly as set_detect_anomaly,
    set_grad_enabled as set_grad_enabled,
)
from .core.messages.suggestions import name_hints as _name_hints
from .core.tensor import Tensor as _Tensor


class _Tensors(type):
    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, _Tensor)


class Variable(metaclass=_Tensors):
    """Variable(x) returns the tensor x itself, as in PyTorch since 0.4.

    requires_grad: turn gradients on. volatile: accepted and ignored.
    """

    def __new__(cls, data, requires_grad: bool = False, volatile: bool = False):
        return data.requires_grad_() if requires_grad and not data.requires_grad else data


graph = _saved_tensors
__getattr__ = _name_hints("flow.autograd", globals())
