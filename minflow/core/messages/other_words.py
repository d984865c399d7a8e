"""Arguments by the names that OneFlow gives them, where PyTorch's and ours are others.

A call by these names ends in an error first, and only then is this table asked (see `near.py`): calls by our names pay
nothing. Read next: `wrong_arguments.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

# The function as it is spoken of -> "their name=ours"; "name=" is accepted and says nothing new here, "name=:value"
# only with this value.
WORDS = {
    "flow.round flow.unbind flow.split": "x=input",
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
    "Tensor.split": "split_size_or_sections=split_size",
    "Tensor.uniform_": "a=low b=high",
    "Tensor.random_": "from=low to=high",
    "Tensor.size": "idx=dim",
    "Tensor.broadcast_to": "shape=size",
    "Tensor.pow": "exponent=other",
}


def in_our_words(spoken: str, passed: Mapping[str, Any], error: BaseException) -> dict[str, Any] | None:
    """The keywords by our names, where some are by theirs; None where there are none, and for a call that had begun.

    spoken: "nn.functional.prelu".  error: what the call ended in.
    """
    if not passed or not isinstance(error, TypeError) or "unexpected keyword argument" not in str(error):
        return None
    for names, words in WORDS.items():
        if any(fnmatchcase(spoken, name) for name in names.split()):
            theirs = dict(word.split("=", 1) for word in words.split())
            found = {k: theirs[k] for k in passed if k in theirs}
            if not found or any(ours[:1] == ":" and str(passed[k]) != ours[1:] for k, ours in found.items()):
                return None
            result = {found.get(k, k): value for k, value in passed.items() if found.get(k, k)[:1] not in ("", ":")}
            return result if len(result) == len(passed) - sum(o[:1] in ("", ":") for o in found.values()) else None
    return None
