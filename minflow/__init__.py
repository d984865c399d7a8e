"""minflow: a deep-learning framework that a learner can see through.

    import minflow as flow
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    x.grad                                             # tensor([2., 4.], dtype=minflow.float32)

The names and their meaning are OneFlow's, and so PyTorch's. This file is the public face on one screen; what stands
behind a name is in the module that it is imported from. Start reading at `core/op.py`.
"""

import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .core.messages import near as _near
from .core import eager as _eager  # the mode that runs everything until something else is entered
from .core.backend import fast as _fast  # without this line reference kernels run, and all else stays as it is
from .core.functions.creation import (
    arange, as_tensor, bernoulli, empty, empty_like, eye, from_dlpack, from_numpy, full, full_like, is_tensor,
    linspace, normal, ones, ones_like, rand, rand_like, randint, randint_like, randn, randn_like, randperm, tensor,
    zeros, zeros_like,
)
from .core.base.errors import MinflowError, MinflowWarning
from .core.functions import (
    abs, absolute, acos, add, addcdiv, addcmul, addmm, addmv, all, allclose, amax, amin, any, argmax, argmin, argsort,
    argwhere, asin, atan, baddbmm, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, bmm, broadcast_tensors,
    broadcast_to, cat, ceil, chunk, clamp, clip, concat, concatenate, cos, count_nonzero, cumsum, diag, diagonal, div,
    divide, dot, einsum, eq, equal, erf, exp, expand, expm1, flatten, flip, floor, floor_divide, fmod, gather, ge, gt,
    hstack, index_add, index_select, inner, isclose, isfinite, isinf, isnan, kron, le, lerp, log, log1p, log2,
    logical_and, logical_not, logical_or, logical_xor, logsumexp, lt, masked_fill, masked_select, matmul, max, maximum,
    mean, median, meshgrid, min, minimum, mm, moveaxis, movedim, mul, multiply, mv, narrow, ne, neg, negative, nonzero,
    norm, numel, one_hot, outer, permute, pow, prod, reciprocal, relu, remainder, repeat_interleave, reshape,
    result_type, roll, round, rsqrt, scatter, scatter_add, select, sigmoid, sign, sin, sort, split, sqrt, square,
    squeeze, stack, std, std_mean, sub, subtract, sum, swapaxes, swapdims, t, take, take_along_dim, tan, tanh,
    tensordot, tile, topk, trace, transpose, tril, triu, true_divide, trunc, unbind, unflatten, unsqueeze, var,
    var_mean, vstack, where,
)
from .core.grad.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .core.messages.notices import notices
from .core.messages.printing import set_printoptions
from .core.random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .core.spec import (
    Device as device, DType as dtype, bool_ as bool, default_dtype as get_default_dtype, finfo, float16, float32,
    float64, iinfo, int8, int32, int64, set_default_dtype, uint8,
)
from .core.tensor import Size, Tensor
from . import amp, autograd, cuda, env, linalg
from . import nn, optim
from . import job
from .amp import autocast
from .io import load, save
from .diagnosis import ipython as _cards
from .nn.functional import log_softmax, softmax
from .nn.summary import summary
from .views.show import show

half, float, double, int, long = float16, float32, float64, int32, int64

# numpy tells of overflow in our lines; inf and nan are results here, as in PyTorch
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minflow\.core\.")

__version__ = "0.1.0"

if _TYPE_CHECKING:
    from . import data, library, typing, utils, vision

_LATER = ("data", "library", "typing", "utils", "vision")  # rooms that many programs do not need: imported at first use


def __getattr__(name: str):
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _missing(name)


def __dir__() -> list[str]:
    return sorted({*_near.public(globals()), *_LATER, *_near.LATER["flow"]})


_missing = _near.name_hints("flow", globals())  # what the __getattr__ above asks
_cards.install()  # in a notebook, errors of models, graphs and jobs are also shown as cards
