"""Gradients, by their public names. The engine behind them is `core/autograd.py`."""

from .core.messages.near import name_hints as _name_hints
from .core.autograd import backward as backward
from .core.autograd import grad as grad
from .core.grad.function import Function as Function
from .core.grad.modes import detect_anomaly as detect_anomaly
from .core.grad.modes import enable_grad as enable_grad
from .core.grad.modes import inference_mode as inference_mode
from .core.grad.modes import no_grad as no_grad
from .core.grad.modes import set_grad_enabled as set_grad_enabled
from .core.grad.gradcheck import gradcheck as gradcheck
from .core.grad.gradcheck import gradgradcheck as gradgradcheck

__getattr__ = _name_hints("flow.autograd", globals())
