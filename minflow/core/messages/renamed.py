"""Arguments by their names in OneFlow and PyTorch, if minflow's names differ.

A call by these names first fails; only then `suggestions.py` uses this table, so that calls by our names pay nothing.
Read next: `wrong_arguments.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

# Names of functions, as patterns -> "their name=ours". "name=@" is passed by position; "name=" is accepted without
# effect, and "name=:value" is accepted only with this value.
RENAMED_ARGUMENTS = {
    "flow.permute flow.flip flow.tile Tensor.flip Tensor.tile": "dims=@",
    "Tensor.expand": "size=@ implicit=",
    "Tensor.new_zeros Tensor.new_ones Tensor.new_empty Tensor.resize_ Tensor.sum_to_size": "size=@",
    "Tensor.repeat": "repeats=@",
    "Tensor.to": "other=@",
    "Tensor.new": "other=@",
    "Tensor.type": "non_blocking=",
    "Tensor.requires_grad_": "mode=requires_grad",
    "Tensor.resize_as_ flow.resize_as_": "the_template=tensor",
    "Tensor.swapaxes_": "dim0=axis0 dim1=axis1",
    "flow.dot Tensor.dot": "tensor=other",
    "flow.tensor_split flow.[hvd]split Tensor.tensor_split Tensor.[hvd]split": "sections=indices_or_sections "
    "indices=indices_or_sections "
    "tensor_indices_or_sections=indices_or_sections",
    "flow.broadcast_to Tensor.broadcast_to": "size=shape",
    "flow.cholesky_inverse": "input=L",
    "flow.cholesky_solve": "input=B input2=L",
    "flow.isin": "element=elements test_element=test_elements",
    "flow.kron": "a=input b=other",
    "flow.lu_solve": "input=b",
    "flow.matrix_exp flow.matrix_power": "input=A",
    "flow.qr": "input=A some=:True",
    "flow.save": "f=path",
    "flow.load": "f=path",
    "flow.searchsorted": "input=values",
    "flow.set_rng_state": "new_state=state",
    "flow.unsafe_split": "input=tensor",
    "flow.*_window flow.scalar_tensor flow.logspace flow.tr?[lu]_indices": "layout= pin_memory=",
    "flow.tr?[lu]_indices": "requires_grad=:False",
    "Tensor.map_": "other=tensor",
    "autograd.gradcheck": "func=function",
    "utils.data.default_convert": "data=sample",
    "flow.*dropout nn.functional.*dropout": "train=training",
    "nn.utils.clip_grad* nn.utils.get_total_norm": "foreach=",
    "utils.data.default_collate": "batch=samples",
    "autograd.backward": "grad_variables=grad_tensors",
    "flow.full": "names=:None",
    "flow.result_type": "tensor=@ other=@ scalar=@ scalar1=@ scalar2=@",
    "Tensor.cumsum_": "dtype=:None",
    "flow.rrelu* nn.functional.rrelu*": "generator=:None",
    "flow.group_norm nn.functional.group_norm": "cudnn_enabled=",
    "flow.round flow.unbind": "x=input",
    "flow.split": "x=input tensor=input",
    "flow.lerp": "start=input",
    "flow.from_numpy": "ndarray=array",
    "flow.is_tensor": "obj=x",
    "flow.set_default_dtype": "d=dtype",
    "linalg.norm linalg.matrix_norm": "input=A",
    "linalg.det": "A=input",
    "nn.functional.leaky_relu": "x=input alpha=negative_slope",
    "nn.functional.softshrink": "x=input alpha=lambd inplace=:False",
    "nn.functional.hardshrink": "x=input inplace=:False",
    "nn.functional.prelu": "x=input alpha=weight",
    "nn.functional.quick_gelu nn.functional.square_relu": "x=input",
    "nn.functional.conv[123]d": "x=input channel_pos=:channels_first",
    "nn.functional.max_pool[123]d nn.functional.avg_pool[123]d": "x=input data_format=:channels_first",
    "nn.functional.ctc_loss": "max_target_length=",
    "nn.functional.rms_norm": "hidden_states=input",
    "nn.Softshrink nn.Hardshrink": "inplace=",
    "nn.ParameterList": "parameters=values",
    "nn.init.*": "data_format=:NCHW",
    "nn.utils.clip_grad_norm_": "fused=",
    "optim.lr_scheduler.PolynomialLR": "decay_batch=steps",
    "sbp.split": "axis=dim",
    "Tensor.split": "split_size_or_sections=split_size",
    "Tensor.uniform_": "a=low b=high from=low to=high",
    "Tensor.random_": "from=low to=high",
    "Tensor.size": "idx=dim",
    "Tensor.pow": "other=exponent",
    "Tensor.std Tensor.var": "ddof=correction",
    "Tensor.pow_": "exponent=other",
    "flow.tensordot": "axes=dims",  # NumPy; so calls opt_einsum any library that it does not know
}

# NumPy's names of arguments, which PyTorch takes in place of its own in every call, and those that NumPy's functions
# pass to the method of their name, which mean nothing if they are None.
NUMPY_ARGUMENTS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
NUMPY_ARGUMENTS |= dict.fromkeys(("out", "dtype", "kind", "order", "stable"), ":None")

# Functions that also take their factors by position, in PyTorch's old order -> the names of the factors:
# `x.add_(-lr, grad)`, `addcmul(x, 0.5, a, b)`, `addmm(beta, x, alpha, a, b)`.
OLD_ORDER: dict[str, tuple[str, ...]] = dict.fromkeys("add sub subtract rsub".split(), ("alpha",))
OLD_ORDER |= dict.fromkeys("addcmul addcdiv".split(), ("value",))
OLD_ORDER |= dict.fromkeys("addmm addmv addr addbmm baddbmm".split(), ("beta", "alpha"))
SEVERAL_AXES = "squeeze squeeze_ broadcast_to count_nonzero hsplit vsplit dsplit".split()  # methods: `x.squeeze(0, 2)`

SIGNATURE_ERRORS = ("unexpected keyword argument", "required positional argument")  # texts of Python's TypeErrors


def translate_call(
    qualname: str, args: tuple, passed: Mapping[str, Any], error: BaseException, known: Sequence[str] = ()
) -> tuple[tuple, dict[str, Any]] | None:
    """The arguments of a call by our names; None if none needs translation, or if the function had started.

    qualname: "nn.functional.prelu".  error: the error of the call.  known: the names of the function's parameters.
    """
    if isinstance(error, TypeError) and str(error).endswith("were given"):
        return by_position(qualname, args, passed)
    if not passed or not isinstance(error, TypeError) or not any(text in str(error) for text in SIGNATURE_ERRORS):
        return None
    theirs = {k: ours for k, ours in NUMPY_ARGUMENTS.items() if k not in known and (ours in known or ours == ":None")}
    for names, words in RENAMED_ARGUMENTS.items():
        if any(fnmatchcase(qualname, name) for name in names.split()):
            theirs |= dict(word.split("=", 1) for word in words.split())
    found = {k: theirs[k] for k in passed if k in theirs}
    if not found or any(ours[:1] == ":" and str(passed[k]) != ours[1:] for k, ours in found.items()):
        return None
    if by_place := [passed[k] for k, ours in found.items() if ours == "@"]:
        first = [passed["input"]] if "input" in passed else []
        args, passed = (*args, *first, *by_place), {k: value for k, value in passed.items() if k != "input"}
    kept = {found.get(k, k): value for k, value in passed.items() if found.get(k, k)[:1] not in ("", ":", "@")}
    given = [ours for k in passed if (ours := found.get(k, k))[:1] not in ("", ":", "@")]
    return (args, kept) if len(kept) == len(given) else None


def by_position(qualname: str, args: tuple, passed: Mapping[str, Any]) -> tuple[tuple, dict[str, Any]] | None:
    """The arguments of a call with more positional ones than ours takes; None if PyTorch takes no more either."""
    space, _, name = qualname.rpartition(".")
    if space == "Tensor" and name in SEVERAL_AXES and all(type(x) is int for x in args[1:]):
        return (args[0], args[1:]), dict(passed)
    names = OLD_ORDER.get(name.removesuffix("_"), ()) if space in ("flow", "Tensor") else ()
    if names == ("alpha",):
        return ((args[0], args[2]), {"alpha": args[1], **passed}) if len(args) == 3 else None
    factors = [x for x in args if not hasattr(x, "spec")]
    if not factors or len(factors) > len(names):
        return None
    return tuple([x for x in args if hasattr(x, "spec")]), {**dict(zip(names, factors)), **passed}
