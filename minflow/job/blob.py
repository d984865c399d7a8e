"""Blob: the output of an op while a job function is built. It has a shape and a dtype, but no elements.

A subclass of Tensor, because some legacy functions share a name with a modern function and mean something else;
dispatch between the two looks at the class. In a job that runs on several ranks a Blob is a global tensor.
Read next: `scope.py`, `build.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..core.base.errors import JobError, clean
from ..core.base.placement import Placement as Ranks, Sbp, broadcast, partial_sum, split
from ..core.context import current_context
from ..core.functions import eq, ge, gt, le, lt, ne
from ..core.ir import Node, Source
from ..core.methods.operators import comparable
from ..core.ops.global_tensors import as_global, as_local, boxed, boxing, share
from ..core.ops.shape import cast
from ..core.sharding import without_partial
from ..core.source_location import here, input_names
from ..core.spec import Spec, bool_, int8
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
    masks = isinstance(index, Blob) and index.spec.dtype is int8 and index._value is not None
    node = index._value.node if masks else None
    if isinstance(node, Node) and node.op is cast and node.inputs[0].spec.dtype is bool_:
        return Blob(None, node.inputs[0].spec, node.inputs[0], False)
    return index


class Blob(Tensor):
    """A symbolic tensor of a job function."""

    # (a Blob, an axis): its first element is the length of this axis at each step, and the shape has the largest length
    bound: tuple[Any, int] | None = None
    is_dynamic = property(lambda self: self.bound is not None, doc="True if the length of an axis depends on elements.")
    is_tensor_list = property(lambda self: False)
    is_lazy = property(lambda self: True)
    static_shape = property(lambda self: tuple(self.spec.shape))
    batch_axis = property(lambda self: 0 if self.spec.shape else None)
    split_axis = property(
        lambda self: next((s.dim for s in self.spec.sbp or () if s.kind == "split"), None),
        doc="The axis along which it is split over ranks, or None.",
    )

    @property
    def parallel_conf(self) -> str:
        """The device on which it is computed, or the ranks: "cpu:0:0"."""
        ranks = self.spec.placement
        return "cpu:0:0" if ranks is None else f"{ranks.type}:{','.join(map(str, ranks.order))}"

    @property
    def op_name(self) -> str:
        """Name of the op that computes this Blob, such as "dense1-relu"; for an argument or variable, its own name."""
        assert self._value is not None
        node = self._value.node
        if isinstance(node, Source):
            return node.name or "variable"
        return f"{node.scope}-{node.op}" if node.scope else f"{node.op}-{node.number}"

    unique_name = property(lambda self: f"{self.op_name}/out_{self._value.index}")
    logical_blob_name = property(lambda self: f"{self.op_name}/out_{self._value.index}")

    def with_distribute(self, distribute: Any) -> Blob:
        """The Blob with another distribution over its ranks."""
        return distributed(self, distribute)

    def with_gradient_distribute(self, distribute: Any) -> Blob:
        """The Blob, whose gradient has this distribution over its ranks."""
        return distributed(self, None, distribute)

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


# ---- distribution over ranks -----------------------------------------------------------------------------------------


def bounded(x: Any, length: Any, axis: int = 0) -> Blob:
    """The Blob, of whose axis a step returns the first `length` elements."""
    blob = Blob(None, x.spec, x._value, x._needs)
    blob.bound = length, axis
    return blob


def refuse_bounded(op: Any, inputs: Sequence[Any]) -> None:
    """Refuse a Blob whose length depends on elements as the input of an op: the elements after its end would count."""
    for x in inputs:
        if isinstance(x, Blob) and x.bound is not None:
            what = f"{op} of a Blob whose length depends on elements"
            hint = (
                "return it with -> tp.ListNumpy; flow.cast_to_static_shape(x) has the largest length, and 0 at the end"
            )
            raise JobError(what, values={"blob": x.described()}, where=here(), hint=hint)


class Distribute:
    """Requested distribution of a Blob over its ranks: "split", "broadcast" or "auto"."""

    def __init__(self, kind: str, axis: int | None = None):
        self.kind, self.axis = kind, axis

    def sbp(self, ndim: int) -> Sbp | None:
        """The Sbp for a Blob with this number of axes; None for "auto". Raises JobError if it has no such axis."""
        if self.kind != "split":
            return broadcast if self.kind == "broadcast" else None
        if self.axis not in range(ndim):
            what = f"{self} of a Blob with {ndim} ax{'i' if ndim == 1 else 'e'}s"
            hint = f"flow.distribute.split({max(ndim - 1, 0)})" if ndim else "flow.distribute.broadcast()"
            raise JobError(what, values={"axis": self.axis}, where=here(), hint=hint)
        return split(self.axis)  # type: ignore[arg-type]  # an axis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribute) and (self.kind, self.axis) == (other.kind, other.axis)

    def __hash__(self) -> int:
        return hash((self.kind, self.axis))

    def __repr__(self) -> str:
        return f"distribute.{self.kind}({'' if self.axis is None else self.axis})"


def check_distribute(distribute: object) -> None:
    """Raise JobError unless this is a Distribute."""
    if not isinstance(distribute, Distribute):
        hint = "flow.distribute.split(axis), broadcast() or auto()"
        raise JobError("this is not a distribution", values={"got": repr(distribute)[:60]}, where=here(), hint=hint)


def sbp_of(distribute: Any, ndim: int) -> tuple[Sbp]:
    """The Sbp of a new variable with this number of axes."""
    if distribute is not None:
        check_distribute(distribute)
    return ((None if distribute is None else distribute.sbp(ndim)) or broadcast,)


def distributed(x: Any, distribute: Any = None, gradient: Any = None) -> Any:
    """The Blob with another distribution, or its gradient with one; the Blob itself if it is not on several ranks."""
    targets = []
    for wanted in (distribute, gradient):
        if wanted is not None:
            check_distribute(wanted)
        sbp = None if wanted is None else wanted.sbp(x.spec.ndim)
        targets.append(sbp if sbp is None or x.spec.placement is None else (sbp,) * len(x.spec.sbp))
    placement, rank = x.spec.placement, current_context().rank
    if placement is None:
        return x
    own, target, of_gradient = x.spec.sbp, targets[0] or x.spec.sbp, targets[1]
    if target == own and of_gradient is None:
        return x
    ends = {"source": (placement, own), "target": (placement, target)}
    return boxing(x, shape=x.spec.shape, **ends, gradient=of_gradient, rank=rank)


def moved(x: Any, ranks: Ranks | None) -> Any:
    """The Blob on these ranks, still split if it is; local if there are none."""
    spec = x.spec
    if ranks is None:
        return whole(x)
    kept = spec.sbp is not None and len(spec.sbp) == len(ranks.hierarchy) == 1 and spec.sbp[0].kind == "split"
    return boxed(x, ranks, spec.sbp if kept else (broadcast,) * len(ranks.hierarchy), current_context().rank)


def whole(x: Any) -> Any:
    """All elements of a Blob, on each rank of the program."""
    if x.spec.placement is None:
        return x
    rank = current_context().rank
    return as_local(boxed(x, Ranks.all(x.spec.placement.type), (broadcast,), rank), rank=rank)


def brought_together(op: Any, inputs: Sequence[Any], ranks: Ranks | None) -> Sequence[Any]:
    """The inputs of an op, one of which is on several ranks, all on the same ranks. Local 0-d Blobs count as numbers,
    and so do inputs that the op reads on the CPU.
    """
    found = []
    for name, x in zip(input_names(op, inputs), inputs):
        if isinstance(x, Tensor) and x.spec.placement is not ranks:
            number = x.spec.placement is None and (not x.spec.ndim or name.partition("[")[0] in op.host_inputs)
            x = x if number else moved(x, ranks)
        found.append(x)
    return found


def like_gradient(g: Any, spec: Spec) -> Any:
    """The gradient of a Blob with this spec, distributed like the Blob."""
    if spec.placement is None or spec.sbp is None:
        return g
    return boxed(g, spec.placement, without_partial(spec.sbp), current_context().rank)


def on_ranks(x: Any) -> bool:
    return isinstance(x, Tensor) and x.spec.placement is not None


def summed(x: Any, ranks: Ranks) -> Any:
    """The sum of the Blobs of all ranks, on each of them."""
    rank = current_context().rank
    terms = as_global(x, shape=x.spec.shape, target=(ranks, (partial_sum,)), rank=rank)
    return as_local(boxed(terms, ranks, (broadcast,), rank), rank=rank)


def of_first(x: Any, ranks: Ranks) -> Any:
    """The Blob of the first rank, on each of them."""
    return share(x, target=(ranks, (broadcast,)))
