"""Functions whose arguments differ from those of the public functions of the same meaning. Read next: `fused.py`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial as _partial
from inspect import Parameter as _Parameter, Signature as _Signature
from typing import Any

from ... import linalg as _linalg
from ...core import functions as _flow
from ...core.base.errors import OutOfRangeError as _OutOfRangeError
from ...core.functions import creation as _creation
from ...core.messages.suggestions import name_hints as _name_hints, signature_error as _signature_error
from ...core.source_location import fail as _fail
from ...core.spec import int8 as _int8, int32 as _int32
from ...core.tensor import Tensor as _Tensor
from ...job.legacy import gather as _gather, losses as _losses
from ...nn import functional as _F


def _avg_pool(pool: Callable, divisor_override: int = 0, **options: Any) -> _Tensor:
    return pool(divisor_override=divisor_override or None, **options)


def _prod(input: _Tensor, dim: int | Sequence[int] = (), **options: Any) -> _Tensor:
    keep, axes = options.pop("keepdim", False), [dim] if isinstance(dim, int) else dim or range(input.ndim)
    for axis in sorted({d % input.ndim for d in axes}, reverse=True):
        input = _flow.prod(input, axis, keep, **options)
    return input


def _interpolate(mode: str, input: _Tensor, align_corners: bool | None = None, **scales: float) -> _Tensor:
    return _F.interpolate(input, scale_factor=tuple(scales.values()), mode=mode, align_corners=align_corners)


_CONV = "x:input weight bias stride padding dilation groups channel_pos"
_DECONV = "x:input weight bias stride padding output_padding groups dilation data_format"
_MAX_POOL = "input kernel_size stride padding dilation return_indices:- ceil_mode data_format"
_AVG_POOL = "input kernel_size stride padding ceil_mode count_include_pad divisor_override data_format"
_LINES, _IMAGES = "x:input scale_factor", "x:input height_scale width_scale"
_VOLUMES = "x:input depth_scale height_scale width_scale"
# name -> (OneFlow's arguments in order, each with ours after a colon; "-" is one without an effect here; our function)
_ORDERS: dict[str, tuple[str, Callable]] = {
    "avg_pool2d": (_AVG_POOL, _partial(_avg_pool, _F.avg_pool2d)),
    "avg_pool3d": (_AVG_POOL, _partial(_avg_pool, _F.avg_pool3d)),
    "binary_cross_entropy_loss": ("input target weight reduction", _F.binary_cross_entropy),
    "binary_cross_entropy_with_logits_loss":
        ("input target weight pos_weight reduction", _F.binary_cross_entropy_with_logits),
    "constant": ("shape:size value:fill_value dtype device placement sbp", _creation.full),
    "conv1d": (_CONV, _F.conv1d), "conv2d": (_CONV, _F.conv2d), "conv3d": (_CONV, _F.conv3d),
    "ctc_loss": ("log_probs targets input_lengths target_lengths max_target_length:- blank zero_infinity reduction",
                 _F.ctc_loss),
    "deconv1d": (_DECONV, _F.conv_transpose1d), "deconv2d": (_DECONV, _F.conv_transpose2d),
    "deconv3d": (_DECONV, _F.conv_transpose3d),
    "distributed_sparse_softmax_cross_entropy":
        ("logits label:labels", _losses.sparse_softmax_cross_entropy_with_logits),
    "equal": ("input other", _flow.eq),
    "fold": ("x:input data_format output_size kernel_size dilation_rate:dilation padding strides:stride", _F.fold),
    "gather": ("x:params indices axis", _gather.gather),
    "grid_sample": ("input grid interpolation_mode:mode padding_mode align_corners", _F.grid_sample),
    "kl_div_loss": ("input target log_target reduction", _F.kl_div),
    "max_pool1d": (_MAX_POOL, _partial(_F.max_pool1d, return_indices=True)),
    "max_pool2d": (_MAX_POOL, _partial(_F.max_pool2d, return_indices=True)),
    "max_pool3d": (_MAX_POOL, _partial(_F.max_pool3d, return_indices=True)),
    "norm": ("input:A ord dim keepdim dtype", _linalg.norm),
    "normalize": ("input p dim eps use_l2_norm_kernel:-", _F.normalize),
    "reduce_all": ("x:input dim keepdim", _flow.all), "reduce_any": ("x:input dim keepdim", _flow.any),
    "reduce_max": ("x:input axis:dim keepdim", _flow.amax), "reduce_min": ("x:input axis:dim keepdim", _flow.amin),
    "reduce_mean": ("x:input dim keepdim", _flow.mean), "reduce_sum": ("x:input dim keepdim", _flow.sum),
    "reduce_prod": ("x:input dim keepdim dtype", _prod),
    "rint": ("x:input", _flow.round),
    "rms_norm": ("x:input weight normalized_shape epsilon:eps", _F.rms_norm),
    "scatternd": ("indices updates shape", _gather.scatter_nd),
    "smooth_l1_loss": ("logits:input label:target beta reduction", _F.smooth_l1_loss),
    "softmax_cross_entropy": ("logits label:labels", _losses.softmax_cross_entropy_with_logits),
    "sparse_cross_entropy": ("prediction label:labels depth:-", _losses.sparse_cross_entropy),
    "sparse_softmax_cross_entropy": ("logits label:labels", _losses.sparse_softmax_cross_entropy_with_logits),
    "tensor_getitem": ("x index", lambda x, index: x[index]),
    "unfold": ("x:input data_format kernel_size dilation_rate:dilation padding strides:stride", _F.unfold),
    "unfold_tensor": ("x dimension size step", lambda x, **window: x.unfold(**window)),
    "upsample_bicubic_2d": (_IMAGES + " align_corners data_format", _partial(_interpolate, "bicubic")),
    "upsample_bilinear_2d": (_IMAGES + " align_corners data_format", _partial(_interpolate, "bilinear")),
    "upsample_linear_1d": (_LINES + " align_corners data_format", _partial(_interpolate, "linear")),
    "upsample_nearest_1d": (_LINES + " data_format", _partial(_interpolate, "nearest")),
    "upsample_nearest_2d": (_IMAGES + " data_format", _partial(_interpolate, "nearest")),
    "upsample_nearest_3d": (_VOLUMES + " data_format", _partial(_interpolate, "nearest")),
    "upsample_trilinear_3d": (_VOLUMES + " align_corners data_format", _partial(_interpolate, "trilinear")),
}  # fmt: skip


def _in_order(name: str, words: str, function: Callable) -> Callable:
    """Return `function` with OneFlow's arguments `words`."""
    ours = {theirs: mine or theirs for theirs, _, mine in (word.partition(":") for word in words.split())}
    signature = _Signature([_Parameter(n, _Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in ours])

    def call(*args, **options):
        try:
            passed = signature.bind(*args, **options).arguments
        except TypeError as error:
            raise _signature_error(call, args, options, f"_C.{name}", TypeError()) or error from None
        for layout in ("data_format", "channel_pos"):
            if passed.pop(layout, "channels_first") != "channels_first":
                hint = "x.permute(0, 3, 1, 2) before it, with weights of channels_first, and .permute(0, 2, 3, 1) after"
                _fail(_OutOfRangeError, f"_C.{name}: the only layout is channels_first", hint)
        return function(**{ours[n]: value for n, value in passed.items() if ours[n] != "-"})

    call.__signature__, call.__name__, call.__qualname__ = signature, name, name  # type: ignore[attr-defined]
    return call


globals().update({name: _in_order(name, *row) for name, row in _ORDERS.items()})


# ---- products and norms ----------------------------------------------------------------------------------------------


def matmul(a: _Tensor, b: _Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0) -> _Tensor:
    """alpha * a @ b, of matrices or batches of them, which may be transposed."""
    out = (a.mT if transpose_a else a) @ (b.mT if transpose_b else b)
    return out if alpha == 1 else out * alpha


batch_matmul = matmul


def bias_add(x: _Tensor, bias: _Tensor, axis: int = 1) -> _Tensor:
    """x plus a vector along `axis`."""
    return x + bias.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])


def layer_norm(x: _Tensor, begin_norm_axis: int, begin_params_axis: int, epsilon: float) -> _Tensor:
    """Layer norm over the axes from begin_norm_axis on."""
    return layer_norm_affine(x, None, None, begin_norm_axis, begin_params_axis, epsilon)


def layer_norm_affine(
    x: _Tensor,
    gamma: _Tensor | None,
    beta: _Tensor | None,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-5,
) -> _Tensor:
    """Layer norm over the axes from begin_norm_axis on, times gamma, plus beta, whose axes are the last ones."""
    out = _F.layer_norm(x, x.shape[begin_norm_axis:], None, None, epsilon)
    return out if gamma is None else out * gamma if beta is None else out * gamma + beta


def _with_skip(x: _Tensor, bias: _Tensor | None, skip: _Tensor | None, alpha: float) -> _Tensor:
    x = x if bias is None else x + bias
    return x if skip is None else x + skip * alpha


def skip_layer_norm(
    x: _Tensor,
    gamma: _Tensor | None = None,
    beta: _Tensor | None = None,
    bias: _Tensor | None = None,
    skip: _Tensor | None = None,
    epsilon: float = 1e-5,
    alpha: float = 1.0,
) -> _Tensor:
    """Layer norm over the last axis of x + bias + alpha * skip."""
    return _F.layer_norm(_with_skip(x, bias, skip, alpha), x.shape[-1:], gamma, beta, epsilon)


def skip_rms_norm(
    x: _Tensor,
    weight: _Tensor | None = None,
    bias: _Tensor | None = None,
    skip: _Tensor | None = None,
    epsilon: float = 1e-5,
    alpha: float = 1.0,
) -> _Tensor:
    """RMS norm over the last axis of x + bias + alpha * skip."""
    return _F.rms_norm(_with_skip(x, bias, skip, alpha), x.shape[-1:], weight, epsilon)


def normalization(
    x: _Tensor,
    moving_mean: _Tensor | None = None,
    moving_variance: _Tensor | None = None,
    gamma: _Tensor | None = None,
    beta: _Tensor | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    is_training: bool = False,
) -> _Tensor:
    """Batch norm of the channels on `axis`; momentum is the weight of the new batch, as in nn.BatchNorm2d."""
    moved = x.movedim(axis, 1)
    out = _F.batch_norm(moved, moving_mean, moving_variance, gamma, beta, is_training, momentum, epsilon)
    return out.movedim(1, axis)


def normalization_add_relu(x: _Tensor, addend: _Tensor | None = None, *args: Any, **options: Any) -> _Tensor:
    """relu(normalization(x, ...) + addend)."""
    out = normalization(x, *args, **options)
    return _flow.relu(out if addend is None else out + addend)


def dropout(
    input: _Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    generator: Any = None,
    *,
    addend: _Tensor | None = None,
) -> _Tensor:
    """Dropout, plus `addend`."""
    out = _F.dropout(input, p, training, inplace, generator=generator)
    return out if addend is None else out + addend


def pixel_shuffle(input: _Tensor, h_upscale_factor: int, w_upscale_factor: int) -> _Tensor:
    """[..., C * h * w, H, W] -> [..., C, H * h, W * w]."""
    *batch, channels, rows, columns = input.shape
    h, w = h_upscale_factor, w_upscale_factor
    parts = input.reshape(*batch, channels // (h * w), h, w, rows, columns)
    n = len(batch)
    order = [*range(n + 1), n + 3, n + 1, n + 4, n + 2]
    return parts.permute(*order).reshape(*batch, channels // (h * w), rows * h, columns * w)


# ---- shapes, indices and order ---------------------------------------------------------------------------------------


def transpose(input: _Tensor, *perm: Any) -> _Tensor:
    """Order the axes by the list perm; or swap the axes dim0 and dim1."""
    return input.transpose(*perm) if len(perm) == 2 else input.permute(*perm)


def _cut(start: Sequence[int], stop: Sequence[int], step: Sequence[int]) -> tuple:
    return tuple([builtins.slice(*ends) for ends in zip(start, stop, step, strict=True)])


def logical_slice(x: _Tensor, start: Sequence[int], stop: Sequence[int], step: Sequence[int]) -> _Tensor:
    """x[start[0]:stop[0]:step[0], ...]."""
    return x[_cut(start, stop, step)]


def slice_update(
    x: _Tensor,
    update: _Tensor,
    start: Sequence[int],
    stop: Sequence[int],
    step: Sequence[int],
    *,
    inplace: bool = False,
) -> _Tensor:
    """x with `update` in the part start:stop:step; inplace: True to write into x itself."""
    x = x if inplace else x.clone()
    x[_cut(start, stop, step)] = update
    return x


def split_like(x: _Tensor, like: Sequence[_Tensor], axis: int) -> tuple[_Tensor, ...]:
    """Split x along an axis into parts of the sizes of the tensors in `like`."""
    return x.split([t.shape[axis] for t in like], axis)


def reduce_sum_like(x: _Tensor, like: _Tensor, axis: Sequence[int]) -> _Tensor:
    """The sum over these axes, in the shape of `like`."""
    return x.sum(tuple(axis)).reshape(like.shape) if axis else x


def arg_sort(input: _Tensor, direction: str) -> _Tensor:
    """Indices that sort the last axis. direction: "ASCENDING" or "DESCENDING"."""
    return _flow.argsort(input, -1, _gather.descending("_C.arg_sort", direction))


def top_k(input: _Tensor, k: int, sorted: bool = True) -> _Tensor:
    """Indices of the k largest elements of the last axis."""
    return _flow.topk(input, k, -1, True, sorted).indices


def argwhere(x: _Tensor, dtype: Any = None) -> tuple[_Tensor, _Tensor]:
    """(positions of the elements that are not 0, their number as a tensor (1,)), in int32 by default."""
    places = _flow.nonzero(x).to(_int32 if dtype is None else dtype)
    return places, _creation.tensor([len(places)], dtype=places.dtype)


def reciprocal_no_nan(x: _Tensor) -> _Tensor:
    """1 / x, and 0 where x is 0."""
    return _flow.where(x == 0, 0.0, 1 / _flow.where(x == 0, 1.0, x))


def sqrt_square_sum(x: _Tensor) -> _Tensor:
    """The Euclidean norm of all elements."""
    return _linalg.vector_norm(x)


def nms(x: _Tensor, iou_threshold: float, keep_n: int = -1) -> _Tensor:
    """`int8 (n,)`: 1 for each of the boxes (n, 4), in descending order of their scores, that is kept."""
    order = _creation.arange(len(x), 0, -1, dtype=x.dtype)
    kept = _flow.nms(x, order, iou_threshold)
    kept = kept if keep_n < 0 else kept[:keep_n]
    return _creation.zeros(len(x), dtype=_int8).index_fill(0, kept, 1)


slice = logical_slice
__getattr__ = _name_hints("flow._C", globals())
