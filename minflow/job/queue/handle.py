"""Helpful errors if a handle is used as an array, a common mistake of learners who forget that a job is async.

Independent of the stream. Read next: `step.py`: a Step is such a handle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ...core.base.errors import JobError
from ...core.host import HostArray
from ...core.source_location import here

RESULT = ("numpy", "numpy_list", "parallel_num")  # methods of the result of `.get()` of a job without annotation


class UsedAsArray(JobError, AttributeError, TypeError):
    """A handle was used as if it were its result. Also an AttributeError, so that hasattr() returns False."""


def refused_method(what: str) -> Callable[..., Any]:
    """A method that raises UsedAsArray."""

    def method(self: Any, *others: Any, **options: Any) -> None:
        self.refuse(what)

    return method


class Handle:
    """Base class of handles: attributes, operators, indexing and conversions of arrays raise an error that says how to
    get the array.
    """

    name: str
    writes: Any
    # the call that made it, as a user writes it
    call = property(lambda self: f"{self.name}(...)" if self.writes is None else "graph.submit(...)")

    def refuse(self, what: str) -> NoReturn:
        what = f"{what} of a step of {self.name}: its call does not wait, and gives a handle, not the result"
        waits, call = "-> tp.Numpy in place of tp.Callback makes every call wait", self.call
        if self.writes is not None:
            waits = "graph(...) waits"
        hint = f"{call}(callback) hands the result to callback(result); {call}.get() waits for it; {waits}"
        raise UsedAsArray(what, values={"handle": repr(self)}, where=here(), hint=hint)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (hasattr(HostArray, name) or name in RESULT):
            self.refuse(f".{name}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __format__(self, spec: str) -> str:
        if spec:
            self.refuse(f"a number (:{spec})")
        return str(self)

    def __bool__(self) -> bool:
        return True  # so that `if handle:` works

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = refused_method("arithmetic")
    __truediv__ = __rtruediv__ = __pow__ = __matmul__ = __neg__ = refused_method("arithmetic")
    __lt__ = __le__ = __gt__ = __ge__ = refused_method("a comparison")
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __rpow__ = __rmatmul__ = refused_method("arithmetic")
    __abs__ = __round__ = __pos__ = refused_method("arithmetic")
    __getitem__ = __setitem__ = __contains__ = refused_method("an index")
    __reduce__ = refused_method("a copy")
    __iter__ = refused_method("the parts")
    __len__ = refused_method("the length")
    __float__ = __int__ = refused_method("a number")
    __array__ = refused_method("an array")
