"""Methods that only call the function of their name, `x.sum(1)`, and in-place methods that write its result into their
tensor, `x.exp_()`: a row each.

A method without an in-place form is the function itself behind the handler of errors, so it costs nothing. Signatures
and docstrings are those of the function; `forwarded.pyi`, which `python -m tests.method_stubs` writes, repeats them for
editors and type checkers. Read next: `adapted.py`, methods whose arguments differ from those of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..base.signatures import MethodSignature, rename
from ..dispatch import apply
from ..functionalize import apply_inplace, call_inplace, write_into, write_result
from ..functions import activation
from ..messages.suggestions import hint_methods, with_hints
from ..op import Op
from .in_place import reshape_in_place

if TYPE_CHECKING:
    from ..tensor import Tensor

METHODS = {
    "arithmetic": "add sub mul div pow subtract multiply divide true_divide floor_divide fmod remainder addcmul "
    "addcdiv lerp maximum minimum clamp clip clamp_min clamp_max masked_fill",
    "comparison": "eq ne lt le gt ge less less_equal greater greater_equal not_equal allclose isclose equal "
    "is_same_size",
    "bits": "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not "
    "bitwise_left_shift bitwise_right_shift",
    "elementary functions": "neg negative abs absolute sign sgn positive exp exp2 expm1 log log1p log2 log10 sqrt "
    "rsqrt square reciprocal sin cos tan tanh sinh cosh asin acos atan asinh acosh atanh arcsin arccos arctan "
    "arcsinh arccosh arctanh atan2 arctan2 deg2rad rad2deg floor ceil trunc fix frac frexp ldexp nan_to_num "
    "float_power hypot copysign nextafter heaviside fmax fmin gcd lcm logaddexp logaddexp2",
    "special functions": "erf erfc erfinv lgamma digamma mvlgamma igamma igammac i0 sinc logit xlogy",
    "properties of elements": "isnan isinf isfinite isneginf isposinf isreal signbit is_nonzero",
    "activations": "relu sigmoid gelu quick_gelu softplus softsign square_relu prelu hardshrink",
    "complex numbers": "adjoint angle conj resolve_conj resolve_neg is_conj stft istft",
    "reductions": "max min mean prod var std amin amax argmin argmax any all median logsumexp nansum nanmean "
    "count_nonzero aminmax nanmedian quantile nanquantile mode kthvalue dist",
    "along an axis": "cumsum cumprod cummax cummin logcumsumexp diff topk sort argsort msort renorm",
    "counts": "bincount histc histogram unique_consecutive multinomial in_top_k nms",
    "shape": "flatten unflatten squeeze t movedim moveaxis broadcast_to expand_as tile narrow select flip roll "
    "fliplr flipud rot90 narrow_copy as_strided unfold sum_to_size",
    "parts": "chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes unsafe_chunk unsafe_split "
    "unsafe_split_with_sizes diagonal tril triu trace diag diag_embed diagflat",
    "gathering": "gather index_select masked_select nonzero nonzero_static take take_along_dim batch_gather",
    "scattering": "scatter scatter_add scatter_reduce index_add index_copy index_fill index_put index_reduce put "
    "masked_scatter select_scatter slice_scatter diagonal_scatter as_strided_scatter",
    "products": "mm bmm mv dot outer ger inner kron vdot addmm addmv addr addbmm baddbmm cross",
    "matrices": "det logdet slogdet inverse pinverse cholesky cholesky_inverse triangular_solve svd lu_solve "
    "matrix_power matrix_exp cov corrcoef",
}


def run_op(run: Callable, op: Op) -> Callable:
    """A method that runs an op on its tensor, and on a second operand if the op takes one."""

    def unary(self: Tensor) -> Tensor:
        return run(op, self)

    def binary(self: Tensor, other: Tensor | float) -> Tensor:
        return run(op, self, other)

    return binary if len(op.inputs) > 1 else unary


def write_result_of(write: Callable, function: Callable) -> Callable:
    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        return write(self, function(self, *args, **options))

    return method


def run_function(run: Callable, function: Callable) -> Callable:
    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        return run(function, self, *args, **options)

    return method


IN_PLACE = {  # how the tensor gets the result of an op or a function -> their names; see `../functionalize.py`
    (run_op, apply_inplace): "mul multiply floor_divide remainder fmod neg negative abs absolute sign exp exp2 "
    "expm1 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan tanh sinh cosh asin acos atan asinh acosh "
    "atanh arcsin arccos arctan arcsinh arccosh arctanh atan2 arctan2 floor ceil trunc fix hypot copysign nextafter "
    "gcd lcm bitwise_left_shift bitwise_right_shift erf erfc erfinv lgamma digamma igamma igammac i0 xlogy relu "
    "sigmoid",
    (write_result_of, write_into): "logical_not bitwise_not eq ne lt le gt ge less less_equal greater greater_equal "
    "not_equal round tril triu masked_fill scatter scatter_add index_add index_copy index_fill index_put put "
    "masked_scatter",
    (write_result_of, write_result): "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor addcmul "
    "addcdiv addmm addmv addr addbmm baddbmm",
    (run_function, call_inplace): "frac sinc deg2rad rad2deg heaviside ldexp float_power logit nan_to_num mvlgamma "
    "lerp clamp clip clamp_min clamp_max index_reduce scatter_reduce sgn",
    (run_function, reshape_in_place): "squeeze unsqueeze transpose swapdims swapaxes t",
}


class Forwarded:
    """The methods of the tables above."""


def method_of(name: str) -> Any:
    """The method that calls the function of this name."""
    function = getattr(F, name, None) or getattr(activation, name)
    if isinstance(function, Op):
        return run_op(apply, function)
    method = with_hints(function, f"Tensor.{name}", method=True)
    method.__wrapped__ = MethodSignature(function)
    return method


def in_place_method_of(name: str, make: Callable, how: Callable) -> Any:
    """The in-place method of this function: `make(how, function)`."""
    function = getattr(F, name)
    if make is run_op:
        return run_op(how, function)
    if isinstance(function, Op):
        function = run_op(apply, function)
    method = make(how, function)
    method.__wrapped__ = MethodSignature(function)
    return method


def add_method(name: str, method: Any) -> None:
    rename(method, f"Tensor.{name}")
    method.__module__ = "minflow.core.tensor"  # where pickle finds it
    setattr(Forwarded, name, method)


for name in " ".join(METHODS.values()).split():
    add_method(name, method_of(name))
for how, names in IN_PLACE.items():
    for name in names.split():
        add_method(f"{name}_", in_place_method_of(name, *how))
hint_methods(Forwarded)
