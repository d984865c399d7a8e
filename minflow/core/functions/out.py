"""`out=`: a public function writes its result into an existing tensor.

One mechanism for all of them: the function runs as without `out`, and its results are written in place (rebound while a
graph is built). Calls without `out` do not come here: `with_hints` and `Op.__call__` do, if the call has `out=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..base import out as base
from ..base.errors import DeviceError, DTypeError, GradError, ShapeError, TraceError
from ..functionalize import write_into
from ..mode import MODE, bump_mutations
from ..source_location import fail
from .arguments import is_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor


# The functions that take `out` in PyTorch too; all of flow.linalg, special and fft do.
base.NAMES.update(
    """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any arange arccos
    arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort asin asinh atan atan2 atanh baddbmm bernoulli
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize cat ceil
    cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip column_stack complex concat concatenate
    conj_physical copysign cos cosh cross cummax cummin cumprod cumsum deg2rad diag diff digamma div divide dot dstack
    empty eq erf erfc erfinv exp exp2 expm1 eye fix float_power floor floor_divide fmax fmin fmod frac frexp full gather
    gcd ge ger greater greater_equal gt heaviside histc histogram hstack hypot i0 igamma igammac index_add index_copy
    index_select inner inverse isin isneginf isposinf kron kthvalue lcm ldexp le lerp less less_equal lgamma linspace
    log log10 log1p log2 logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logspace
    logsumexp lt masked_select matmul matrix_power max maximum mean median min minimum mm mode msort mul multinomial
    multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow_copy ne neg negative nextafter nonzero
    norm normal not_equal ones outer polar polygamma pow prod quantile rand randint randn randperm range reciprocal
    remainder renorm round row_stack rsqrt scatter scatter_add scatter_reduce searchsorted sgn sigmoid sign signbit sin
    sinc sinh sort sqrt square stack std sub subtract sum take take_along_dim tan tanh tensordot topk tril triu
    true_divide trunc var vdot vstack where xlogy zeros
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr modified_bessel_k0
    modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py
""".split()
)
FACTORY_FUNCTIONS = frozenset(
    "arange empty eye full linspace logspace ones rand randint randn randperm range zeros".split()
)


def run_into(name: str, function: Callable, args: tuple, options: Mapping[str, Any]) -> Any:
    """Run function(*args, **options) and write its results into options["out"], which is returned: a tensor, or a tuple
    for several results.
    """
    options = dict(options)
    out = options.pop("out")
    if out is None:
        return function(*args, **options)
    if name.rpartition(".")[2] in FACTORY_FUNCTIONS and is_tensor(out) and options.get("dtype") is None:
        options["dtype"] = out.dtype
    result = function(*args, **options)
    results, outs = (list(x) if isinstance(x, tuple | list) else [x] for x in (result, out))
    if len(results) != len(outs) or not all(map(is_tensor, outs)) or isinstance(out, list):
        wanted = "a tensor" if len(results) == 1 else f"a tuple of {len(results)} tensors"
        hint = "out=y" if is_tensor(result) else "out=(values, indices)"
        fail(DTypeError, f"{name}: out must be {wanted}, got {kind_of(out)}", hint, out=out)
    for target, new in zip(outs, results):
        check_target(name, target, new)
    for target, new in zip(outs, results):
        write_result(name, target, new)
    return out if is_tensor(result) else type(result)(*outs) if hasattr(result, "_fields") else tuple(outs)


def kind_of(x: Any) -> str:
    return f"{len(x)} values" if isinstance(x, tuple) else type(x).__name__


def check_target(name: str, target: Tensor, new: Tensor) -> None:
    """Refuse gradients through `out`, a dtype that cannot hold the result (like PyTorch), another device or shape."""
    if MODE.get().grad and (target.requires_grad or new.requires_grad):
        what = f"{name}: out= does not record gradients, and an input requires one"
        hint = f"y = {name}(...) without out; or `with flow.no_grad():` around it"
        fail(GradError, what, hint, out=target, result=new)
    if new.dtype.rank > target.dtype.rank and name != "flow.bernoulli":  # 0 and 1 fit into every dtype
        what = f"{name}: the result is {new.dtype.name}, which out, {target.dtype.name}, cannot hold"
        hint = f"out=flow.empty({tuple(new.shape)}, dtype=flow.{new.dtype.name})"
        fail(DTypeError, what, hint, out=target, result=new)
    if new.spec.device is not target.spec.device:
        what = f"{name}: the result is on {new.spec.device}, out is on {target.spec.device}"
        hint = f'out=flow.empty({tuple(new.shape)}, device="{new.spec.device}")'
        fail(DeviceError, what, hint, out=target, result=new)
    if new.spec.shape != target.spec.shape and target.spec.size:
        what = f"{name}: the result has the shape {tuple(new.shape)}, out has {tuple(target.shape)}"
        hint = f"out=flow.empty({tuple(new.shape)}), or out=flow.empty(0), which takes the shape of the result"
        fail(ShapeError, what, hint, out=target, result=new)


def write_result(name: str, target: Tensor, new: Tensor) -> None:
    """Write the result; an `out` without elements, such as flow.empty(0), first takes its shape."""
    if new.spec.shape != target.spec.shape:
        if target._alias is not None or target.array is None or MODE.get().trace is not None:
            what = f"{name}: out has no elements and cannot take the shape {tuple(new.shape)} here"
            hint = f"out=flow.empty({tuple(new.shape)})"
            fail(TraceError if MODE.get().trace is not None else ShapeError, what, hint, out=target, result=new)
        bump_mutations()
        fresh = MODE.get().resolve(new).to(target.dtype).clone()
        target.array, target.spec, target._version_counter = fresh.array, fresh.spec, None
        return
    write_into(target, new)


base.IMPLEMENTATION[:] = [run_into]
