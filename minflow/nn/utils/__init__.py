"""Helpers for parameters: gradient clipping, all parameters as one vector, packed sequences, weight norms."""

from ...core.messages.suggestions import name_hints as _name_hints
from . import rnn as rnn
from .clip_grad import (
    clip_grad_norm as clip_grad_norm,
    clip_grad_norm_ as clip_grad_norm_,
    clip_grad_value_ as clip_grad_value_,
    clip_grads_with_norm_ as clip_grads_with_norm_,
    get_total_norm as get_total_norm,
)
from .convert import parameters_to_vector as parameters_to_vector, vector_to_parameters as vector_to_parameters
from .fusion import (
    fuse_conv_bn_eval as fuse_conv_bn_eval,
    fuse_conv_bn_weights as fuse_conv_bn_weights,
    fuse_linear_bn_eval as fuse_linear_bn_eval,
    fuse_linear_bn_weights as fuse_linear_bn_weights,
    skip_init as skip_init,
)
from .weight_norms import (
    remove_spectral_norm as remove_spectral_norm,
    remove_weight_norm as remove_weight_norm,
    spectral_norm as spectral_norm,
    weight_norm as weight_norm,
)

__getattr__ = _name_hints(
    "flow.nn.utils",
    globals(),
    {name: f"{name}." for name in ("parametrizations", "parametrize", "prune")},
)
