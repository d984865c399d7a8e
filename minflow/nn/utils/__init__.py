"""Helpers around parameters: gradients held within bounds, and all parameters as one vector."""

from ...core.messages.near import name_hints as _name_hints
from .clip_grad import clip_grad_norm_ as clip_grad_norm_
from .clip_grad import clip_grad_value_ as clip_grad_value_
from .clip_grad import get_total_norm as get_total_norm
from .convert import parameters_to_vector as parameters_to_vector
from .convert import vector_to_parameters as vector_to_parameters
from . import rnn as rnn

__getattr__ = _name_hints("flow.nn.utils", globals())
