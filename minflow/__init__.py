"""minflow: a deep-learning framework that a learner can see through.

    import minflow as flow
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    x.grad                                             # tensor([2., 4.], dtype=minflow.float32)

Names and their meaning are OneFlow's, and so PyTorch's. This file lists the public names; each is implemented in the
module it is imported from. Start reading at `core/op.py`.
"""

import os as _os
import warnings as _warnings
from math import e as e, inf as inf, nan as nan, pi as pi
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from .core.base import gc_pause as _gc_pause  # first: pausing the garbage collector speeds up the imports below
from .core.messages import suggestions as _suggestions
from .core import eager as _eager, trace as _trace  # the modes: the default one, and the one of graphs
from .core import subclasses as _own_classes  # for classes of tensors that programs define
from .platforms import numpy as _numpy_kernels  # without this line, reference kernels run instead
from .distributed.virtual import virtual_ranks as virtual_ranks
from .core.functions.creation import (
    arange as arange,
    as_tensor as as_tensor,
    bernoulli as bernoulli,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    from_dlpack as from_dlpack,
    from_numpy as from_numpy,
    full as full,
    full_like as full_like,
    is_tensor as is_tensor,
    linspace as linspace,
    normal as normal,
    ones as ones,
    ones_like as ones_like,
    rand as rand,
    rand_like as rand_like,
    randint as randint,
    randint_like as randint_like,
    randn as randn,
    randn_like as randn_like,
    randperm as randperm,
    tensor as tensor,
    zeros as zeros,
    zeros_like as zeros_like,
)
from .core.base.errors import (
    CallError as CallError,
    CheckpointError as CheckpointError,
    ContextError as ContextError,
    RankError as RankError,
    DTypeError as DTypeError,
    DataError as DataError,
    DeviceError as DeviceError,
    DivisionError as DivisionError,
    FileError as FileError,
    FormatError as FormatError,
    GradError as GradError,
    GraphError as GraphError,
    GraphFormatError as GraphFormatError,
    InternalError as InternalError,
    JobError as JobError,
    LinAlgError as LinAlgError,
    LoaderError as LoaderError,
    MinflowError as MinflowError,
    MinflowWarning as MinflowWarning,
    MissingDependencyError as MissingDependencyError,
    MissingFileError as MissingFileError,
    MissingModuleError as MissingModuleError,
    MissingNameError as MissingNameError,
    ModuleError as ModuleError,
    NestingError as NestingError,
    NonFiniteError as NonFiniteError,
    OptimError as OptimError,
    OutOfMemoryError as OutOfMemoryError,
    OutOfRangeError as OutOfRangeError,
    SbpError as SbpError,
    ShapeError as ShapeError,
    StateError as StateError,
    TraceError as TraceError,
    WorkerError as WorkerError,
)
from .core.functions import (
    abs as abs,
    absolute as absolute,
    acos as acos,
    add as add,
    addcdiv as addcdiv,
    addcmul as addcmul,
    addmm as addmm,
    addmv as addmv,
    all as all,
    allclose as allclose,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    argwhere as argwhere,
    asin as asin,
    atan as atan,
    baddbmm as baddbmm,
    bitwise_and as bitwise_and,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    bmm as bmm,
    broadcast_tensors as broadcast_tensors,
    broadcast_to as broadcast_to,
    cat as cat,
    ceil as ceil,
    chunk as chunk,
    clamp as clamp,
    clip as clip,
    concat as concat,
    concatenate as concatenate,
    cos as cos,
    count_nonzero as count_nonzero,
    cumsum as cumsum,
    diag as diag,
    diagonal as diagonal,
    div as div,
    divide as divide,
    dot as dot,
    einsum as einsum,
    eq as eq,
    equal as equal,
    erf as erf,
    exp as exp,
    expand as expand,
    expm1 as expm1,
    flatten as flatten,
    flip as flip,
    floor as floor,
    floor_divide as floor_divide,
    fmod as fmod,
    gather as gather,
    ge as ge,
    gt as gt,
    hstack as hstack,
    index_add as index_add,
    index_select as index_select,
    inner as inner,
    isclose as isclose,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    kron as kron,
    le as le,
    lerp as lerp,
    log as log,
    log1p as log1p,
    log2 as log2,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    logsumexp as logsumexp,
    lt as lt,
    masked_fill as masked_fill,
    masked_select as masked_select,
    matmul as matmul,
    max as max,
    maximum as maximum,
    mean as mean,
    median as median,
    meshgrid as meshgrid,
    min as min,
    minimum as minimum,
    mm as mm,
    moveaxis as moveaxis,
    movedim as movedim,
    mul as mul,
    multiply as multiply,
    mv as mv,
    narrow as narrow,
    ne as ne,
    neg as neg,
    negative as negative,
    nonzero as nonzero,
    nonzero_static as nonzero_static,
    norm as norm,
    numel as numel,
    one_hot as one_hot,
    outer as outer,
    permute as permute,
    pow as pow,
    prod as prod,
    reciprocal as reciprocal,
    relu as relu,
    remainder as remainder,
    repeat_interleave as repeat_interleave,
    reshape as reshape,
    result_type as result_type,
    roll as roll,
    round as round,
    rsqrt as rsqrt,
    scatter as scatter,
    scatter_add as scatter_add,
    select as select,
    sigmoid as sigmoid,
    sign as sign,
    sin as sin,
    sort as sort,
    split as split,
    sqrt as sqrt,
    square as square,
    squeeze as squeeze,
    stack as stack,
    std as std,
    std_mean as std_mean,
    sub as sub,
    subtract as subtract,
    sum as sum,
    swapaxes as swapaxes,
    swapdims as swapdims,
    t as t,
    take as take,
    take_along_dim as take_along_dim,
    tan as tan,
    tanh as tanh,
    tensordot as tensordot,
    tile as tile,
    topk as topk,
    trace as trace,
    transpose as transpose,
    tril as tril,
    triu as triu,
    true_divide as true_divide,
    trunc as trunc,
    unbind as unbind,
    unflatten as unflatten,
    unsqueeze as unsqueeze,
    var as var,
    var_mean as var_mean,
    vstack as vstack,
    where as where,
)
from .core.functions import (
    ceil_ as ceil_,
    floor_ as floor_,
    frac_ as frac_,
    lerp_ as lerp_,
    round_ as round_,
    sin_ as sin_,
)
from .core.functions import (
    acosh as acosh,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    asinh as asinh,
    atan2 as atan2,
    atanh as atanh,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_right_shift as bitwise_right_shift,
    clamp_max as clamp_max,
    clamp_min as clamp_min,
    clone as clone,
    copysign as copysign,
    cosh as cosh,
    deg2rad as deg2rad,
    detach as detach,
    digamma as digamma,
    erfc as erfc,
    erfinv as erfinv,
    exp2 as exp2,
    fix as fix,
    float_power as float_power,
    fmax as fmax,
    fmin as fmin,
    frac as frac,
    frexp as frexp,
    gcd as gcd,
    greater as greater,
    greater_equal as greater_equal,
    heaviside as heaviside,
    hypot as hypot,
    i0 as i0,
    igamma as igamma,
    igammac as igammac,
    is_floating_point as is_floating_point,
    is_nonzero as is_nonzero,
    is_same_size as is_same_size,
    is_signed as is_signed,
    isneginf as isneginf,
    isposinf as isposinf,
    lcm as lcm,
    ldexp as ldexp,
    less as less,
    less_equal as less_equal,
    lgamma as lgamma,
    log10 as log10,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    logit as logit,
    mvlgamma as mvlgamma,
    nan_to_num as nan_to_num,
    nextafter as nextafter,
    not_equal as not_equal,
    polygamma as polygamma,
    positive as positive,
    rad2deg as rad2deg,
    rsub as rsub,
    sgn as sgn,
    signbit as signbit,
    sinc as sinc,
    sinh as sinh,
    xlogy as xlogy,
)
from .core.functions import (  # shape, order, count
    aminmax as aminmax,
    as_strided as as_strided,
    as_strided_scatter as as_strided_scatter,
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    bartlett_window as bartlett_window,
    batch_gather as batch_gather,
    bincount as bincount,
    binomial as binomial,
    blackman_window as blackman_window,
    block_diag as block_diag,
    bucketize as bucketize,
    cartesian_prod as cartesian_prod,
    column_stack as column_stack,
    combinations as combinations,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumulative_trapezoid as cumulative_trapezoid,
    diag_embed as diag_embed,
    diagflat as diagflat,
    diagonal_scatter as diagonal_scatter,
    diff as diff,
    dsplit as dsplit,
    dstack as dstack,
    fliplr as fliplr,
    flipud as flipud,
    ger as ger,
    gradient as gradient,
    hamming_window as hamming_window,
    hann_window as hann_window,
    histc as histc,
    histogram as histogram,
    hsplit as hsplit,
    index_copy as index_copy,
    index_fill as index_fill,
    index_put as index_put,
    index_reduce as index_reduce,
    isin as isin,
    kaiser_window as kaiser_window,
    kthvalue as kthvalue,
    logcumsumexp as logcumsumexp,
    logspace as logspace,
    masked_scatter as masked_scatter,
    mode as mode,
    msort as msort,
    multinomial as multinomial,
    nanmean as nanmean,
    nanmedian as nanmedian,
    nanquantile as nanquantile,
    nansum as nansum,
    narrow_copy as narrow_copy,
    nms as nms,
    poisson as poisson,
    put as put,
    quantile as quantile,
    ravel as ravel,
    repeat as repeat,
    roc_auc_score as roc_auc_score,
    rot90 as rot90,
    row_stack as row_stack,
    scatter_reduce as scatter_reduce,
    searchsorted as searchsorted,
    select_scatter as select_scatter,
    slice_scatter as slice_scatter,
    split_with_sizes as split_with_sizes,
    tensor_split as tensor_split,
    trapezoid as trapezoid,
    trapz as trapz,
    tril_indices as tril_indices,
    triu_indices as triu_indices,
    unique as unique,
    unique_consecutive as unique_consecutive,
    unravel_index as unravel_index,
    vander as vander,
    stft as stft,
    istft as istft,
    vsplit as vsplit,
    unsafe_chunk as unsafe_chunk,
    unsafe_split as unsafe_split,
    unsafe_split_with_sizes as unsafe_split_with_sizes,
)
from .core.functions.creation import (
    broadcast_shapes as broadcast_shapes,
    frombuffer as frombuffer,
    new_ones as new_ones,
)
from .core.functions.matrices import packed_lu as _packed_lu
from .core.functions import (  # matrices
    addbmm as addbmm,
    addr as addr,
    chain_matmul as chain_matmul,
    cholesky as cholesky,
    cholesky_inverse as cholesky_inverse,
    cholesky_solve as cholesky_solve,
    corrcoef as corrcoef,
    cov as cov,
    cross as cross,
    det as det,
    dist as dist,
    inverse as inverse,
    logdet as logdet,
    lu_solve as lu_solve,
    lu_unpack as lu_unpack,
    matrix_exp as matrix_exp,
    matrix_power as matrix_power,
    nuclear_norm as nuclear_norm,
    pca_lowrank as pca_lowrank,
    pinverse as pinverse,
    qr as qr,
    renorm as renorm,
    slogdet as slogdet,
    svd as svd,
    svd_lowrank as svd_lowrank,
    triangular_solve as triangular_solve,
    vdot as vdot,
)
from .core.grad.modes import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from .core.messages.docs import inherit_docs as _inherit_docs
from .core.messages.training_warnings import notices as notices
from .core.messages.printing import set_printoptions as set_printoptions
from .core.random import (
    Generator as Generator,
    default_generator as default_generator,
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
)
from .core.spec import Device as _Device, DType as _DType, bool_ as _bool, default_dtype as _default_dtype
from .core.spec import (
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    iinfo as iinfo,
    int8 as int8,
    int32 as int32,
    int64 as int64,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from .core.base.dtypes import (
    bfloat16 as bfloat16,
    can_cast as can_cast,
    complex64 as complex64,
    complex128 as complex128,
    int16 as int16,
    promote_types as promote_types,
    UnsupportedDType as _UnsupportedDType,
)
from .core.base.placement import Placement as _Placement
from .core.base import __version__ as __version__
from .core.functions import (
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
from .core.functions.fill import get_default_device as get_default_device, set_default_device as set_default_device
from .core.functions.storages import TypedStorage as TypedStorage, UntypedStorage as UntypedStorage
from .core.functions.tensor_types import set_default_tensor_type as set_default_tensor_type, make_type as _typed
from .core.tensor import Size as Size, Tensor as Tensor
from . import amp as amp, autograd as autograd, cuda as cuda, env as env, linalg as linalg, sbp as sbp
from . import nn as nn, optim as optim
from .nn.functional import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    channel_shuffle as channel_shuffle,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
    avg_pool1d as avg_pool1d,
    conv1d as conv1d,
    conv2d as conv2d,
    conv3d as conv3d,
    conv_tbc as conv_tbc,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
    group_norm as group_norm,
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
    max_pool3d as max_pool3d,
    rms_norm as rms_norm,
)
from . import job as _job
from . import import_aliases as _import_aliases
from .compat.namespaces.jit import compile as compile
from .compat.namespaces.threads import (
    _assert as _assert,
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode as get_deterministic_debug_mode,
    get_float32_matmul_precision as get_float32_matmul_precision,
    get_num_interop_threads as get_num_interop_threads,
    get_num_threads as get_num_threads,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode as set_deterministic_debug_mode,
    set_float32_matmul_precision as set_float32_matmul_precision,
    set_flush_denormal as set_flush_denormal,
    set_num_interop_threads as set_num_interop_threads,
    set_num_threads as set_num_threads,
    use_deterministic_algorithms as use_deterministic_algorithms,
)
from .core.functions.memory_format import (
    Layout as _Layout,
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
    contiguous_format as contiguous_format,
    memory_format as memory_format,
    preserve_format as preserve_format,
    sparse_coo as sparse_coo,
    strided as strided,
)
from .core.functions.sparse import sparse_coo_tensor as sparse_coo_tensor, spmm as spmm
from .amp import (
    autocast as autocast,
    get_autocast_dtype as get_autocast_dtype,
    is_autocast_enabled as is_autocast_enabled,
)
from .deploy import load_graph as load_graph
from .io import load as load, save as save
from .diagnosis import ipython as _ipython
from .nn.functional import dropout as dropout, log_softmax as log_softmax, softmax as softmax
from .nn.functional.rnn import (
    gru as gru,
    gru_cell as gru_cell,
    lstm as lstm,
    lstm_cell as lstm_cell,
    rnn_relu as rnn_relu,
    rnn_relu_cell as rnn_relu_cell,
    rnn_tanh as rnn_tanh,
    rnn_tanh_cell as rnn_tanh_cell,
)
from .nn.functional import (
    alpha_dropout as alpha_dropout,
    bilinear as bilinear,
    feature_alpha_dropout as feature_alpha_dropout,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cosine_embedding_loss as cosine_embedding_loss,
    ctc_loss as ctc_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    kl_div as kl_div,
    margin_ranking_loss as margin_ranking_loss,
    poisson_nll_loss as poisson_nll_loss,
    triplet_margin_loss as triplet_margin_loss,
    celu as celu,
    celu_ as celu_,
    cdist as cdist,
    cosine_similarity as cosine_similarity,
    gelu as gelu,
    hardshrink as hardshrink,
    mish as mish,
    pairwise_distance as pairwise_distance,
    pdist as pdist,
    prelu as prelu,
    quick_gelu as quick_gelu,
    relu_ as relu_,
    rrelu as rrelu,
    rrelu_ as rrelu_,
    selu as selu,
    selu_ as selu_,
    silu as silu,
    softplus as softplus,
    softsign as softsign,
    square_relu as square_relu,
    threshold as threshold,
    threshold_ as threshold_,
)
from .nn.kernel_calls import kernels as kernels
from .nn.roofline import roofline as roofline
from .nn.summary import summary as summary
from .views.front import show as show

newaxis = None
device = _Device
placement = _Placement
dtype = _DType
layout = _Layout
lu = _packed_lu
bool = _bool
get_default_dtype = _default_dtype
half, float, double, int, long = float16, float32, float64, int32, int64
short, cfloat, cdouble = int16, complex64, complex128
chalf = complex32 = _UnsupportedDType("complex32", 4)
for _name in """qint8 quint8 quint4x2 quint2x4 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
                float4_e2m1fn_x2 qint32""".split():
    globals()[_name] = _UnsupportedDType(_name, 4 if _name == "qint32" else 1)
BoolTensor, ByteTensor, CharTensor = _typed("BoolTensor"), _typed("ByteTensor"), _typed("CharTensor")
ShortTensor, IntTensor, LongTensor = _typed("ShortTensor"), _typed("IntTensor"), _typed("LongTensor")
HalfTensor, FloatTensor, DoubleTensor = _typed("HalfTensor"), _typed("FloatTensor"), _typed("DoubleTensor")
BFloat16Tensor = _typed("BFloat16Tensor")

# numpy warns about overflow; here inf and nan are ordinary results, as in PyTorch
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minflow\.(core|platforms)\.")

if _TYPE_CHECKING:
    from . import (
        data,
        distributed,
        fft,
        func,
        library,
        models,
        onnx,
        profiler,
        signal,
        sparse,
        special,
        typing,
        utils,
        vision,
    )
    from . import testing
    from .compat.namespaces import accelerator, backends, comm, jit
    from .core.grad.registered import ops

# Modules that many programs do not need: imported on first use. _LAZY_COMPAT is for programs for GPUs and clusters.
_LAZY = (
    "data",
    "distributed",
    "distributions",
    "fft",
    "func",
    "library",
    "models",
    "onnx",
    "profiler",
    "signal",
    "sparse",
    "special",
    "typing",
    "utils",
    "vision",
)
_LAZY_COMPAT = ("accelerator", "backends", "comm", "jit", "ops", "testing")
# In-place functions: each calls the method of its name.
_IN_PLACE = """abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_
    clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_
    gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_
    reciprocal_ resize_as_ rsqrt_ sigmoid_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_""".split()

# Functions with the arguments of PyTorch's kernels, and others that few programs call.
_TORCH_FUNCTIONS = """asarray batch_norm constant_pad_nd embedding get_device instance_norm is_storage layer_norm
    scalar_tensor typename vmap""".split()


def __getattr__(name: str) -> _Any:
    if name in _LAZY or name in _LAZY_COMPAT:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in _IN_PLACE:
        from .core.in_place_functions import function_of

        globals()[name] = function = function_of(name)
        return function
    if name in _TORCH_FUNCTIONS:
        from .compat import torch_functions

        globals()[name] = function = _suggestions.with_hints(getattr(torch_functions, name), f"flow.{name}", __name__)
        return function
    return _missing_name(name)


def __dir__() -> list[str]:
    at_first_use = *_LAZY, *_LAZY_COMPAT, *_IN_PLACE, *_TORCH_FUNCTIONS, *_suggestions.LEGACY_NAMES["flow"]
    return sorted({*_suggestions.public(globals()), *at_first_use})


_missing_name = _suggestions.name_hints("flow", globals())  # used by __getattr__ above
_inherit_docs(Tensor, globals(), vars(nn.functional), vars(linalg))
_import_aliases.install()
_ipython.install()  # in a notebook, errors of models, graphs and jobs are also shown as cards
if _os.environ.get("MINFLOW_MACHINE", "0") not in ("", "0"):
    from .platforms.compiled import switch as _machine

    _machine.by_environment()
_gc_pause.resume()
