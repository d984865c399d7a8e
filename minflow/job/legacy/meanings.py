"""THE table of names that a legacy and a modern function share with different meanings, and what decides between them.

The legacy meaning holds where an argument is a Blob (a job function is being built) or a legacy keyword is given; the
modern one holds everywhere else and keeps its speed: `merged` adds one test. The legacy functions are named here by
module and imported at their first use, so that `import minflow` loads none of them. Names that only that generation had
are in NEW. Read next: `arrays.py`, `picking.py`, `math.py`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...core.base.errors import DTypeError
from ...core.mode import MODE
from ...core.spec import DType
from ...core.where import fail


class Row(NamedTuple):
    """name: as in `flow.name`.  legacy: "module.function" of this room.  keywords: those that only the legacy one has.
    meaning: one sentence, what the legacy function does and the modern one does not.
    """

    name: str
    legacy: str
    keywords: frozenset[str]
    meaning: str


def row(name: str, legacy: str, keywords: str, meaning: str) -> Row:
    return Row(name, legacy, frozenset((keywords + " name").split()), meaning)


ROWS = (
    # shapes
    row("reshape", "arrays.reshape", "x shape", "takes the sizes as one list; the modern one also takes them one by one"),
    row("flatten", "arrays.flatten", "", "is the modern one, and takes a name"),
    row("transpose", "arrays.transpose", "a perm conjugate batch_axis_non_change",
        "puts all axes in the order of the list perm; the modern one swaps two axes"),
    row("squeeze", "arrays.squeeze", "axis", "refuses an axis whose size is not 1; the modern one leaves it as it is"),
    row("expand", "arrays.expand", "x expand_size", "takes the sizes as one list; the modern one also takes them one by one"),
    row("concat", "arrays.concat", "inputs values max_dim_size", "has inputs and axis where the modern one has tensors and dim"),
    row("stack", "arrays.stack", "inputs", "has inputs and axis where the modern one has tensors and dim"),
    # by index
    row("gather", "picking.gather", "params indices validate_indices batch_dims",
        "takes whole slices along axis, and the index may have any shape; the modern one takes element by element along dim"),
    row("one_hot", "picking.one_hot", "indices depth on_value off_value axis dtype",
        "takes the number of classes as depth, the two values and their dtype (int32); the modern one counts the classes and gives int64"),
    row("diag", "arrays.diag", "x", "is the modern one, and takes x and a name"),
    # by condition
    row("where", "picking.where", "x y", "takes a condition of any dtype; the modern one takes bool"),
    row("masked_fill", "picking.masked_fill", "x", "takes a mask of any dtype; the modern one takes bool"),
    row("argwhere", "picking.argwhere", "condition dtype", "gives int32, the modern one int64"),
    row("nonzero", "picking.nonzero", "a", "gives int32 with one column per element, the modern one int64 with one row"),
    # by order
    row("sort", "picking.sort", "direction", "gives only the numbers; the modern one gives (values, indices)"),
    row("argsort", "picking.argsort", "direction", "has direction and gives int32; the modern one has descending and gives int64"),
    row("argmax", "math.argmax", "", "goes along the last axis and gives int32; the modern one goes through all elements and gives int64"),
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
    # constants
    row("zeros", "arrays.zeros", "shape", "takes the shape as one list, then the dtype; the modern one takes sizes one by one as well"),
    row("ones", "arrays.ones", "shape", "takes the shape as one list, then the dtype; the modern one takes sizes one by one as well"),
    row("zeros_like", "arrays.zeros_like", "like", "calls its tensor like, the modern one input"),
    row("ones_like", "arrays.ones_like", "like", "calls its tensor like, the modern one input"),
)  # fmt: skip

NEW = {  # name in flow -> "module.function": functions that no modern one shares its name with
    **{name: f"arrays.{name}" for name in (
        "reshape_like", "dynamic_reshape", "expand_dims", "broadcast_like", "reverse", "slice", "slice_v2", "slice_update",
        "constant", "constant_scalar", "constant_like", "elem_cnt", "cast", "identity", "identity_n", "cast_to_static_shape",
        "amp_white_identity", "cast_to_current_logical_view", "parallel_cast", "count_not_finite", "multi_count_not_finite", "assign")},
    "range": "arrays.range_of",
    **{name: f"picking.{name}" for name in (
        "dim_gather", "gather_nd", "scatter_nd", "tensor_scatter_nd_update", "tensor_scatter_nd_add")},
    **{name: f"padding.{name}" for name in (
        "pad", "same_padding", "constant_pad2d", "zero_pad2d", "replication_pad2d", "reflection_pad2d")},
    **{name: f"losses.{name}" for name in ("smooth_l1_loss", "combined_margin_loss")},
    **{name: f"math.{name}" for name in (
        "broadcast_to_compatible_with", "clip_by_value", "in_top_k", "unsorted_segment_sum", "unsorted_segment_sum_like",
        "unsorted_batch_segment_sum")},
    "clip_by_scalar": "math.clip_by_value",
}  # fmt: skip


def found(path: str) -> Callable:
    """The function that "module.function" of this room names."""
    module, _, name = path.partition(".")
    return getattr(importlib.import_module(f".{module}", __package__), name)


def has_blob(values: Iterable) -> bool:
    """Is a Blob among them, or in a list among them? A dtype in a place of its own is that generation's order too."""
    from ..blob import Blob

    for x in values:
        if isinstance(x, Blob | DType):
            return True
        if isinstance(x, list | tuple) and has_blob(x):
            return True
    return False


def merged(modern: Callable, legacy: str | Callable, keywords: frozenset[str]) -> Callable:
    """`modern`, but `legacy` where a Blob or one of the legacy keywords is given.

    While nothing is traced there are no Blobs: then a call without keywords goes straight to `modern`. A keyword that
    only the modern one has says as clearly what is meant: `flow.squeeze(blob, dim=0)` is modern. Raises DTypeError
    where keywords of both are given.
    """
    mode, modern_only = MODE.get, keywords.isdisjoint

    def either(*args, **options):
        if mode().trace is None:
            if not options:
                return modern(*args)
            # the call with a keyword that eager code makes most
            if len(options) == len(args) == 1 and "dim" in options:
                return modern(args[0], dim=options["dim"])
            if modern_only(options):
                return modern(*args, **options)
        elif modern_only(options) and not has_blob(args) and not has_blob(options.values()):
            return modern(*args, **options)
        function = found(legacy) if isinstance(legacy, str) else legacy
        others = options.keys() - inspect.signature(function).parameters.keys()
        if not others:
            return function(*args, **options)
        if modern_only(options):
            return modern(*args, **options)
        ours = " and ".join(sorted(keywords & options.keys()))
        fail(DTypeError, f"{function.__name__}: {ours} belongs to job functions, {' and '.join(sorted(others))} does not",
             f"all by that generation's names: {', '.join(inspect.signature(function).parameters)}")  # fmt: skip

    return functools.update_wrapper(either, modern, assigned=("__doc__",), updated=())


def merge(names: dict) -> None:
    """Put the merged function of each row in place of the modern one, in the names of a module."""
    for name, legacy, keywords, _ in ROWS:
        names[name] = function = merged(names[name], legacy, keywords)
        function.__name__ = function.__qualname__ = name
        function.__module__ = names["__name__"]  # where pickle finds it
