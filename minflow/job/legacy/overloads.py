"""The table of names that a legacy and a modern function share, and the rule that chooses between them.

The legacy meaning applies if an argument is a Blob (a job function is being built) or a legacy keyword is passed;
otherwise the modern one applies, also in the forward of an nn.Module that a job function calls. Public names dispatch
in `../../core/base/legacy_dispatch.py`. Legacy functions are listed by module and imported on first use, so that
`import minflow` loads none of them. Purely legacy names are in `../__init__.py`. Read next: `arrays.py`, `gather.py`,
`math.py`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...core.base.errors import DTypeError
from ...core.source_location import fail
from ...core.spec import DType
from ..blob import Blob
from ..build_context import current, in_module


class Row(NamedTuple):
    """One shared name.

    name: as in `flow.name`.  legacy: "module.function" in this package.  keywords: those that only the legacy function
    has. meaning: how the legacy function differs from the modern one, in one sentence.
    """

    name: str
    legacy: str
    keywords: frozenset[str]
    meaning: str


def row(name: str, legacy: str, keywords: str, meaning: str) -> Row:
    return Row(name, legacy, frozenset((keywords + " name").split()), meaning)


ROWS = (
    # shapes
    row("reshape", "arrays.reshape", "x",
        "takes the sizes as one list; the modern one also takes them one by one"),
    row("flatten", "arrays.flatten", "", "is the modern one, and takes a name"),
    row("transpose", "arrays.transpose", "a perm conjugate batch_axis_non_change",
        "puts all axes in the order of the list perm; the modern one swaps two axes"),
    row("squeeze", "arrays.squeeze", "axis", "refuses an axis whose size is not 1; the modern one leaves it as it is"),
    row("expand", "arrays.expand", "x expand_size",
        "takes the sizes as one list; the modern one also takes them one by one"),
    row("concat", "arrays.concat", "inputs values max_dim_size",
        "has inputs and axis where the modern one has tensors and dim"),
    row("stack", "arrays.stack", "inputs", "has inputs and axis where the modern one has tensors and dim"),
    # by index
    row("gather", "gather.gather", "params indices validate_indices batch_dims",
        "takes whole slices along axis, and the index may have any shape; "
        "the modern one takes element by element along dim"),
    row("one_hot", "gather.one_hot", "indices depth axis dtype",
        "takes the number of classes as depth, the two values and their dtype (int32); "
        "the modern one counts the classes and gives int64"),
    row("diag", "arrays.diag", "x", "is the modern one, and takes x and a name"),
    # by condition
    row("where", "gather.where", "x y", "takes a condition of any dtype; the modern one takes bool"),
    row("masked_fill", "gather.masked_fill", "x", "takes a mask of any dtype; the modern one takes bool"),
    row("argwhere", "gather.argwhere", "condition dtype", "gives int32, the modern one int64"),
    row("nonzero", "gather.nonzero", "a",
        "gives int32 with one column per element, the modern one int64 with one row"),
    # by order
    row("sort", "gather.sort", "direction", "gives only the numbers; the modern one gives (values, indices)"),
    row("argsort", "gather.argsort", "direction",
        "has direction and gives int32; the modern one has descending and gives int64"),
    row("argmax", "math.argmax", "",
        "goes along the last axis and gives int32; the modern one goes through all elements and gives int64"),
    # numbers
    row("matmul", "arrays.matmul", "a b transpose_a transpose_b alpha",
        "takes matrices, transposed and scaled if asked; the modern one also takes vectors"),
    row("clamp", "math.clip_by_value", "values min_value max_value",
        "calls the limits min_value and max_value; the modern one min and max"),
    row("clip", "math.clip_by_value", "values min_value max_value",
        "calls the limits min_value and max_value; the modern one min and max"),
    row("equal", "math.equal", "x y", "compares number by number and gives int8; the modern one gives one Python bool"),
    row("eq", "math.equal", "x y", "gives int8, the modern one bool"),
    row("ne", "math.not_equal", "x y", "gives int8, the modern one bool"),
    row("lt", "math.less", "x y", "gives int8, the modern one bool"),
    row("le", "math.less_equal", "x y", "gives int8, the modern one bool"),
    row("gt", "math.greater", "x y", "gives int8, the modern one bool"),
    row("ge", "math.greater_equal", "x y", "gives int8, the modern one bool"),
    row("logical_and", "math.logical_and", "x y", "gives int8, the modern one bool"),
    row("ctc_loss", "losses.ctc_loss", "", "gives shape (1,) where the modern one gives (), and takes a name"),
    # constants
    row("zeros", "arrays.zeros", "shape",
        "takes the shape as one list, then the dtype; the modern one takes sizes one by one as well"),
    row("ones", "arrays.ones", "shape",
        "takes the shape as one list, then the dtype; the modern one takes sizes one by one as well"),
    row("zeros_like", "arrays.zeros_like", "like", "calls its tensor like, the modern one input"),
    row("ones_like", "arrays.ones_like", "like", "calls its tensor like, the modern one input"),
)  # fmt: skip

TABLE = {f"flow.{each.name}": each for each in ROWS}
LOSSES = {  # classes that were functions: called with Blobs they return the loss
    "flow.nn.BCELoss": "losses.bce_loss",
    "flow.nn.BCEWithLogitsLoss": "losses.bce_with_logits_loss",
    "flow.nn.KLDivLoss": "losses.kl_div_loss",
    "flow.nn.L1Loss": "losses.l1_loss",
    "flow.nn.MSELoss": "losses.mse_loss",
    "flow.nn.MarginRankingLoss": "losses.margin_ranking_loss",
    "flow.nn.PixelShuffle": "losses.pixel_shuffle_of",
    "flow.nn.TripletMarginLoss": "losses.triplet_margin_loss",
}
NORMS = {  # modules that were functions: called with a Blob they return the normalized Blob
    "flow.nn.GroupNorm": "norms.group_norm",
    "flow.nn.InstanceNorm1d": "norms.instance_norm1d",
    "flow.nn.InstanceNorm2d": "norms.instance_norm2d",
    "flow.nn.InstanceNorm3d": "norms.instance_norm3d",
}


def legacy_function(path: str) -> Callable:
    """Import the function "module.function" of this package."""
    module, _, name = path.partition(".")
    return getattr(importlib.import_module(f".{module}", __package__), name)


def has_blob(values: Iterable) -> bool:
    """True if a value is a Blob or a list that contains one. A positional dtype also means the legacy order."""
    return any([isinstance(x, Blob | DType) or (isinstance(x, list | tuple) and has_blob(x)) for x in values])


def legacy_meaning(name: str, args: tuple, kwargs: Mapping) -> Callable | None:
    """The legacy function if a call selects it; None for the modern one.

    A keyword that only the modern function has selects it: `flow.squeeze(blob, dim=0)` is modern. Raises DTypeError if
    keywords of both are passed.
    """
    if name in LOSSES or name in NORMS:
        if in_module():
            return None
        whole = name in NORMS or len(args) > 1 or kwargs.keys() & {"target", "negative", "upscale_factor"}
        first = next(iter((*args, *kwargs.values())), None)
        return legacy_function((LOSSES | NORMS)[name]) if whole and isinstance(first, Blob) else None
    if name not in TABLE:
        return None
    keywords = TABLE[name].keywords & kwargs.keys()
    if not keywords and (current() is None or in_module() or not has_blob((*args, *kwargs.values()))):
        return None
    function = legacy_function(TABLE[name].legacy)
    parameters = inspect.signature(function).parameters
    others = sorted(kwargs.keys() - parameters.keys())
    if not others:
        return function
    if not keywords:
        return None
    what = f"{' and '.join(sorted(keywords))} belongs to job functions, {' and '.join(others)} does not"
    fail(DTypeError, f"{function.__name__}: {what}", f"all by that generation's names: {', '.join(parameters)}")
