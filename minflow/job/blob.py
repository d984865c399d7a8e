"""Blob: the output of an op while a job function is built. It has a shape and a dtype, but no elements.

A subclass of Tensor, because some legacy functions share a name with a modern function and mean something else;
dispatch between the two looks at the class. Read next: `build.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..core.base.errors import JobError, clean
from ..core.functions import eq, ge, gt, le, lt, ne
from ..core.ir import Node, Source
from ..core.methods.operators import comparable
from ..core.ops.shape import cast
from ..core.source_location import here
from ..core.spec import bool_, int8
from ..core.tensor import Tensor
from .build_context import current, in_module

HINTS = {
    "bool": (
        "flow.where(condition, x, y) chooses element by element; a choice that does not depend on elements may use `if`"
    ),
    "numpy": "return it from the job; flow.watch(blob, handler) shows its elements at every step",
}


def comparison_result(truth: Tensor) -> Tensor:
    """Result of a comparison: int8 in the job function itself, bool in a module that it calls."""
    return truth if in_module() else truth.to(int8)


def restore_masks(index: Any) -> Any:
    """Convert int8 results of comparisons in an index back to bool masks; as int8 they would be read as positions."""
    if isinstance(index, tuple):
        return tuple([restore_masks(x) for x in index])
    masks = isinstance(index, Blob) and index.spec.dtype is int8 and index.value is not None
    node = index.value.node if masks else None
    if isinstance(node, Node) and node.op is cast and node.inputs[0].spec.dtype is bool_:
        return Blob(None, node.inputs[0].spec, node.inputs[0], False)
    return index


class Blob(Tensor):
    """A symbolic tensor of a job function."""

    is_dynamic = property(lambda self: False, doc="False: every blob has a fixed shape.")
    is_tensor_list = property(lambda self: False)
    is_lazy = property(lambda self: True)
    static_shape = property(lambda self: tuple(self.spec.shape))
    batch_axis = property(lambda self: 0 if self.spec.shape else None)
    split_axis = property(lambda self: None)
    parallel_conf = property(
        lambda self: "cpu:0:0", doc="Device on which it is computed: there is one device on one machine."
    )

    @property
    def op_name(self) -> str:
        """Name of the op that computes this Blob, such as "dense1-relu"; for an argument or variable, its own name."""
        assert self.value is not None
        node = self.value.node
        if isinstance(node, Source):
            return node.name or "variable"
        return f"{node.scope}-{node.op}" if node.scope else f"{node.op}-{node.number}"

    unique_name = property(lambda self: f"{self.op_name}/out_{self.value.index}")
    logical_blob_name = property(lambda self: f"{self.op_name}/out_{self.value.index}")

    def with_distribute(self, distribute: Any) -> Blob:
        """Accept and ignore a distribution: on one machine all distributions give the same elements."""
        return self

    with_gradient_distribute = with_distribute

    # legacy comparisons return int8: OneFlow had no bool yet
    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return comparison_result(eq(self, other)) if comparable(other) else NotImplemented  # x == None is False

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return comparison_result(ne(self, other)) if comparable(other) else NotImplemented

    def __lt__(self, other: Any) -> Tensor:
        return comparison_result(lt(self, other))

    def __le__(self, other: Any) -> Tensor:
        return comparison_result(le(self, other))

    def __gt__(self, other: Any) -> Tensor:
        return comparison_result(gt(self, other))

    def __ge__(self, other: Any) -> Tensor:
        return comparison_result(ge(self, other))

    __hash__ = Tensor.__hash__

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor.__getitem__(self, restore_masks(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        Tensor.__setitem__(self, restore_masks(index), value)

    def numbers(self, verb: str) -> NoReturn:
        build = current()
        job = f"job {build.job.name}" if build is not None else "a job"
        what = "a branch (if, while, and, or)" if verb == "bool" else f"{verb}()"
        what = f"{what} needs the elements of a Blob; it has none while {job} is built"
        hint = HINTS["bool" if verb == "bool" else "numpy"]
        raise JobError(what, values={"blob": self.described()}, where=here(), hint=hint)

    def described(self) -> str:
        return f"{self.op_name}: {self.spec.dtype.name}{list(self.spec.shape)}"

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # of equal signature
        return (
            f"Blob({clean(str(self.op_name))}, shape={tuple(self.spec.shape)}, dtype=minflow.{self.spec.dtype.name}; "
            "no numbers yet: see flow.watch)"
        )

    __str__ = __repr__


def augmented_assignment(sign: str) -> Callable:
    """Augmented assignment such as `x += y`. In a job function it makes a new Blob, and other names keep the old one,
    because legacy Blobs are never written. In a module that the function calls it writes in place, as in eager mode.
    """
    plain, written = getattr(Tensor, f"__{sign}__"), getattr(Tensor, f"__i{sign}__")
    return lambda self, other: (written if in_module() else plain)(self, other)


for sign in "add sub mul truediv floordiv mod pow".split():
    setattr(Blob, f"__i{sign}__", augmented_assignment(sign))
