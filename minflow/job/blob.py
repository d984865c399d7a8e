"""Blob: what an op gives while a job function is built. It has a shape and a dtype, and no numbers.

A subclass of Tensor, because some functions of the job functions' generation share a name with a modern one and mean
something else: they look at the class. Read next: `build.py`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.base.errors import JobError, clean
from ..core.functions import eq, ge, gt, le, lt, ne
from ..core.ir import Source
from ..core.methods.operators import comparable
from ..core.spec import int8
from ..core.tensor import Tensor
from ..core.where import here
from .current import current

INSTEAD = {
    "bool": (
        "flow.where(condition, x, y) chooses number by number; a choice that does not depend on numbers may use `if`"
    ),
    "numpy": "return it from the job; flow.watch(blob, handler) shows its numbers at every step",
}


class Blob(Tensor):
    """A symbolic tensor of a job function."""

    is_dynamic = property(lambda self: False, doc="Every blob has a fixed shape here.")
    is_tensor_list = property(lambda self: False)
    is_lazy = property(lambda self: True)
    static_shape = property(lambda self: tuple(self.spec.shape))
    batch_axis = property(lambda self: 0 if self.spec.shape else None)
    split_axis = property(lambda self: None)
    parallel_conf = property(lambda self: "cpu:0:0", doc="Where it is computed: one device of one machine.")

    @property
    def op_name(self) -> str:
        """The op that computes it: "dense1-relu"; for an argument or a variable its name."""
        node = self.value.node
        if isinstance(node, Source):
            return node.name or "variable"
        return f"{node.scope}-{node.op}" if node.scope else f"{node.op}-{node.number}"

    unique_name = property(lambda self: f"{self.op_name}/out_{self.value.index}")
    logical_blob_name = property(lambda self: f"{self.op_name}/out_{self.value.index}")

    def with_distribute(self, distribute: Any) -> Blob:
        """Accepted: on one machine every distribution is the same numbers."""
        return self

    with_gradient_distribute = with_distribute

    # comparisons of that generation give int8: it had no bool
    def __eq__(self, other):
        return eq(self, other).to(int8) if comparable(other) else NotImplemented  # x == None is False

    def __ne__(self, other):
        return ne(self, other).to(int8) if comparable(other) else NotImplemented

    def __lt__(self, other):
        return lt(self, other).to(int8)

    def __le__(self, other):
        return le(self, other).to(int8)

    def __gt__(self, other):
        return gt(self, other).to(int8)

    def __ge__(self, other):
        return ge(self, other).to(int8)

    __hash__ = Tensor.__hash__

    # `x += y` gives its name to a new Blob: those of that generation were never written, so another name keeps the old
    # one
    __iadd__, __isub__, __imul__, __itruediv__ = Tensor.__add__, Tensor.__sub__, Tensor.__mul__, Tensor.__truediv__
    __ifloordiv__, __imod__, __ipow__ = Tensor.__floordiv__, Tensor.__mod__, Tensor.__pow__

    def numbers(self, verb: str) -> NoReturn:
        build = current()
        job = f"job {build.job.name}" if build is not None else "a job"
        what = "a branch (if, while, and, or)" if verb == "bool" else f"{verb}()"
        what = f"{what} asks a Blob for its numbers; while {job} is built it has none"
        hint = INSTEAD["bool" if verb == "bool" else "numpy"]
        raise JobError(what, values={"blob": self.described()}, where=here(), hint=hint)

    def described(self) -> str:
        return f"{self.op_name}: {self.spec.dtype.name}{list(self.spec.shape)}"

    def __repr__(self, **options: Any) -> str:
        return (
            f"Blob({clean(str(self.op_name))}, shape={tuple(self.spec.shape)}, dtype=minflow.{self.spec.dtype.name}; "
            "no numbers yet: see flow.watch)"
        )

    __str__ = __repr__
