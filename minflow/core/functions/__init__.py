"""Public functions on tensors: composites with PyTorch's arguments, and ops exported unchanged.

They take tensors and do not import the Tensor class, whose methods call them. Read next: `arithmetic.py`.
"""

from ..base.legacy_dispatch import overloaded as _overloaded
from ..ops.compare import bitwise_and as bitwise_and
from ..ops.compare import bitwise_not as bitwise_not
from ..ops.compare import bitwise_or as bitwise_or
from ..ops.compare import bitwise_xor as bitwise_xor
from ..ops.compare import eq as eq
from ..ops.compare import ge as ge
from ..ops.compare import gt as gt
from ..ops.compare import isfinite as isfinite
from ..ops.compare import isinf as isinf
from ..ops.compare import isnan as isnan
from ..ops.compare import le as le
from ..ops.compare import logical_and as logical_and
from ..ops.compare import logical_not as logical_not
from ..ops.compare import logical_or as logical_or
from ..ops.compare import logical_xor as logical_xor
from ..ops.compare import lt as lt
from ..ops.compare import ne as ne
from ..ops.elementwise import abs as abs
from ..ops.elementwise import acos as acos
from ..ops.elementwise import asin as asin
from ..ops.elementwise import atan as atan
from ..ops.elementwise import ceil as ceil
from ..ops.elementwise import cos as cos
from ..ops.elementwise import erf as erf
from ..ops.elementwise import exp as exp
from ..ops.elementwise import expm1 as expm1
from ..ops.elementwise import floor as floor
from ..ops.elementwise import floor_divide as floor_divide
from ..ops.elementwise import fmod as fmod
from ..ops.elementwise import log as log
from ..ops.elementwise import log1p as log1p
from ..ops.elementwise import log2 as log2
from ..ops.elementwise import maximum as maximum
from ..ops.elementwise import minimum as minimum
from ..ops.elementwise import mul as mul
from ..ops.elementwise import neg as neg
from ..ops.elementwise import reciprocal as reciprocal
from ..ops.elementwise import relu as relu
from ..ops.elementwise import remainder as remainder
from ..ops.elementwise import rsqrt as rsqrt
from ..ops.elementwise import sigmoid as sigmoid
from ..ops.elementwise import sign as sign
from ..ops.elementwise import sin as sin
from ..ops.elementwise import sqrt as sqrt
from ..ops.elementwise import square as square
from ..ops.elementwise import tan as tan
from ..ops.elementwise import tanh as tanh
from ..ops.elementwise import trunc as trunc
from . import out as out  # handles calls with out=
from .arguments import normalize_axis as normalize_axis
from .arguments import check_min_axes as check_min_axes
from .arguments import accept_axis as accept_axis
from .arguments import is_sequence as is_sequence
from .arithmetic import absolute as absolute
from .arithmetic import add as add
from .arithmetic import clip as clip
from .arithmetic import divide as divide
from .arithmetic import multiply as multiply
from .arithmetic import negative as negative
from .arithmetic import scaled as scaled
from .arithmetic import subtract as subtract
from .arithmetic import true_divide as true_divide
from .arithmetic import addcdiv as addcdiv
from .arithmetic import addcmul as addcmul
from .arithmetic import allclose as allclose
from .arithmetic import clamp as clamp
from .arithmetic import div as div
from .arithmetic import equal as equal
from .arithmetic import isclose as isclose
from .arithmetic import lerp as lerp
from .arithmetic import masked_fill as masked_fill
from .arithmetic import pow as pow
from .arithmetic import result_type as result_type
from .arithmetic import round as round
from .arithmetic import rsub as rsub
from .arithmetic import sub as sub
from .arithmetic import where as where
from .einsum import einsum as einsum
from .gather import argwhere as argwhere
from .gather import diag as diag
from .gather import diagonal as diagonal
from .gather import gather as gather
from .gather import index_add as index_add
from .gather import index_copy as index_copy
from .gather import index_fill as index_fill
from .gather import index_select as index_select
from .gather import masked_select as masked_select
from .gather import nonzero as nonzero
from .gather import one_hot as one_hot
from .gather import take as take
from .gather import take_along_dim as take_along_dim
from .gather import trace as trace
from .gather import tril as tril
from .gather import triu as triu
from .indexing import advanced_getitem as advanced_getitem
from .indexing import advanced_target as advanced_target
from .indexing import assign_indexed as assign_indexed
from .linear_algebra import addmm as addmm
from .linear_algebra import addmv as addmv
from .linear_algebra import baddbmm as baddbmm
from .linear_algebra import bmm as bmm
from .linear_algebra import dot as dot
from .linear_algebra import ger as ger
from .linear_algebra import inner as inner
from .linear_algebra import kron as kron
from .linear_algebra import matmul as matmul
from .linear_algebra import mm as mm
from .linear_algebra import mv as mv
from .linear_algebra import outer as outer
from .linear_algebra import tensordot as tensordot
from .softmax import log_softmax as log_softmax
from .softmax import softmax as softmax
from .sorting import argsort as argsort
from .sorting import median as median
from .sorting import sort as sort
from .sorting import topk as topk
from .random import bernoulli as bernoulli
from .random import bernoulli_like as bernoulli_like
from .random import dropout as dropout
from .random import exponential_like as exponential_like
from .random import normal_like as normal_like
from .random import normal_of as normal_of
from .random import randint_like as randint_like
from .random import randint_of as randint_of
from .random import randperm_of as randperm_of
from .random import uniform as uniform
from .random import uniform_like as uniform_like
from .reduction import all as all
from .reduction import amax as amax
from .reduction import amin as amin
from .reduction import any as any
from .reduction import argmax as argmax
from .reduction import argmin as argmin
from .reduction import count_nonzero as count_nonzero
from .reduction import cumsum as cumsum
from .reduction import logsumexp as logsumexp
from .reduction import max as max
from .reduction import mean as mean
from .reduction import min as min
from .reduction import norm as norm
from .reduction import prod as prod
from .reduction import std as std
from .reduction import std_mean as std_mean
from .reduction import sum as sum
from .reduction import var as var
from .reduction import var_mean as var_mean
from .reduction import vector_norm as vector_norm
from .shape import broadcast_tensors as broadcast_tensors
from .shape import broadcast_to as broadcast_to
from .shape import cat as cat
from .shape import chunk as chunk
from .shape import concat as concat
from .shape import concatenate as concatenate
from .shape import expand as expand
from .shape import expand_as as expand_as
from .shape import flatten as flatten
from .shape import flip as flip
from .shape import hstack as hstack
from .shape import meshgrid as meshgrid
from .shape import moveaxis as moveaxis
from .shape import movedim as movedim
from .shape import narrow as narrow
from .shape import numel as numel
from .shape import permute as permute
from .shape import repeat as repeat
from .shape import repeat_interleave as repeat_interleave
from .shape import reshape as reshape
from .shape import roll as roll
from .shape import select as select
from .shape import shape_of as shape_of
from .shape import split as split
from .shape import squeeze as squeeze
from .shape import stack as stack
from .shape import swapaxes as swapaxes
from .shape import swapdims as swapdims
from .shape import t as t
from .shape import tile as tile
from .shape import transpose as transpose
from .shape import unbind as unbind
from .shape import unflatten as unflatten
from .shape import unsqueeze as unsqueeze
from .shape import view as view
from .shape import vstack as vstack
from .complex import (
    adjoint as adjoint,
    angle as angle,
    complex as complex,
    conj as conj,
    imag as imag,
    is_complex as is_complex,
    is_conj as is_conj,
    isreal as isreal,
    polar as polar,
    real as real,
    resolve_conj as resolve_conj,
    resolve_neg as resolve_neg,
    view_as_complex as view_as_complex,
    view_as_real as view_as_real,
)

from ..ops.compare import signbit as signbit
from ..ops.elementwise import (
    acosh as acosh,
    asinh as asinh,
    atan2 as atan2,
    atanh as atanh,
    cosh as cosh,
    exp2 as exp2,
    log10 as log10,
    sinh as sinh,
)
from ..ops.binary import (
    bitwise_left_shift as bitwise_left_shift,
    bitwise_right_shift as bitwise_right_shift,
    copysign as copysign,
    gcd as gcd,
    hypot as hypot,
    lcm as lcm,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    nextafter as nextafter,
    xlogy as xlogy,
)
from ..ops import polynomials as polynomials  # public in flow.special; saved graphs look them up
from ..ops.special import (
    digamma as digamma,
    erfc as erfc,
    erfinv as erfinv,
    i0 as i0,
    igamma as igamma,
    igammac as igammac,
    lgamma as lgamma,
)
from .elementary import (
    clamp_max as clamp_max,
    clamp_min as clamp_min,
    clone as clone,
    deg2rad as deg2rad,
    detach as detach,
    float_power as float_power,
    fmax as fmax,
    fmin as fmin,
    frac as frac,
    frexp as frexp,
    heaviside as heaviside,
    is_floating_point as is_floating_point,
    is_nonzero as is_nonzero,
    is_same_size as is_same_size,
    is_signed as is_signed,
    isneginf as isneginf,
    isposinf as isposinf,
    ldexp as ldexp,
    logit as logit,
    nan_to_num as nan_to_num,
    positive as positive,
    rad2deg as rad2deg,
    sinc as sinc,
    ceil_ as ceil_,
    floor_ as floor_,
    frac_ as frac_,
    lerp_ as lerp_,
    round_ as round_,
    sin_ as sin_,
)
from .special import (
    mvlgamma as mvlgamma,
    polygamma as polygamma,
)
from .joining import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    block_diag as block_diag,
    cartesian_prod as cartesian_prod,
    column_stack as column_stack,
    combinations as combinations,
    dsplit as dsplit,
    dstack as dstack,
    fliplr as fliplr,
    flipud as flipud,
    hsplit as hsplit,
    narrow_copy as narrow_copy,
    ravel as ravel,
    rot90 as rot90,
    row_stack as row_stack,
    split_with_sizes as split_with_sizes,
    tensor_split as tensor_split,
    vsplit as vsplit,
    unsafe_chunk as unsafe_chunk,
    unsafe_split as unsafe_split,
    unsafe_split_with_sizes as unsafe_split_with_sizes,
)
from .cumulative import (
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumulative_trapezoid as cumulative_trapezoid,
    diff as diff,
    gradient as gradient,
    logcumsumexp as logcumsumexp,
    trapezoid as trapezoid,
    trapz as trapz,
)
from .quantiles import (
    aminmax as aminmax,
    kthvalue as kthvalue,
    mode as mode,
    msort as msort,
    nanmean as nanmean,
    nanmedian as nanmedian,
    nanquantile as nanquantile,
    nansum as nansum,
    quantile as quantile,
)
from .counting import (
    bincount as bincount,
    bucketize as bucketize,
    histc as histc,
    histogram as histogram,
    isin as isin,
    searchsorted as searchsorted,
    unique as unique,
    unique_consecutive as unique_consecutive,
)
from .scatter import (
    as_strided as as_strided,
    as_strided_scatter as as_strided_scatter,
    batch_gather as batch_gather,
    diag_embed as diag_embed,
    diagflat as diagflat,
    diagonal_scatter as diagonal_scatter,
    fill_diagonal as fill_diagonal,
    index_put as index_put,
    index_reduce as index_reduce,
    masked_scatter as masked_scatter,
    put as put,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_reduce as scatter_reduce,
    select_scatter as select_scatter,
    slice_scatter as slice_scatter,
    sum_to_size as sum_to_size,
    unfold as unfold,
    unravel_index as unravel_index,
)
from .windows import (
    bartlett_window as bartlett_window,
    blackman_window as blackman_window,
    hamming_window as hamming_window,
    hann_window as hann_window,
    kaiser_window as kaiser_window,
    logspace as logspace,
    tril_indices as tril_indices,
    triu_indices as triu_indices,
    vander as vander,
)
from .sampling import (
    binomial as binomial,
    cauchy_like as cauchy_like,
    geometric_like as geometric_like,
    log_normal_like as log_normal_like,
    multinomial as multinomial,
    poisson as poisson,
)
from .metrics import in_top_k as in_top_k, nms as nms, roc_auc_score as roc_auc_score
from .matrices import (
    cholesky as cholesky,
    cholesky_inverse as cholesky_inverse,
    cholesky_solve as cholesky_solve,
    det as det,
    inverse as inverse,
    logdet as logdet,
    lu_solve as lu_solve,
    lu_unpack as lu_unpack,
    pca_lowrank as pca_lowrank,
    pinverse as pinverse,
    qr as qr,
    slogdet as slogdet,
    svd as svd,
    svd_lowrank as svd_lowrank,
    triangular_solve as triangular_solve,
)
from .matrix_products import (
    addbmm as addbmm,
    addr as addr,
    chain_matmul as chain_matmul,
    corrcoef as corrcoef,
    cov as cov,
    cross as cross,
    dist as dist,
    matrix_exp as matrix_exp,
    matrix_power as matrix_power,
    nuclear_norm as nuclear_norm,
    renorm as renorm,
    vdot as vdot,
)

arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh = acos, acosh, asin, asinh, atan, atan2, atanh
less, less_equal, greater, greater_equal, not_equal, sgn, fix = lt, le, gt, ge, ne, sign, trunc

for _op in (eq, ne, lt, le, gt, ge, logical_and):  # ops that are exported unchanged
    _overloaded(_op)  # type: ignore[arg-type]
