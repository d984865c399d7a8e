"""Names of namespaces that import although minflow leaves them out: classes that are refused when they are called.

Packages import such a namespace only to compare types: `isinstance(x, DTensor)` is False. Read next:
`../core/messages/unsupported.py`, whose IMPORTED_NAMESPACES lists the namespaces.
"""

from __future__ import annotations

import functools
from abc import ABCMeta
from typing import Any, NoReturn

from ..core.base.errors import MissingNameError
from ..core.messages.unsupported import reason, substitute
from ..core.source_location import fail


class RefusedType(ABCMeta):
    """Metaclass of classes without instances. Attributes of such a class are such classes too, but it has no elements.

    path: the name below the root, such as "quantization.QuantStub".
    """

    path: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        namespace, _, name = cls.path.rpartition(".")
        fail(MissingNameError, f"flow.{namespace} has no {name}", hint_of(cls.path))

    __iter__ = __contains__ = __setitem__ = __enter__ = __exit__ = __call__  # with __getitem__, `in` would never end

    def __getattr__(cls, name: str) -> RefusedType:
        if name.startswith("__") or name[-1] == "_":
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return refused_type(f"{cls.path}.{name}")

    def __getitem__(cls, key: Any) -> RefusedType:
        return cls


def hint_of(path: str) -> str:
    """Substitute for a refused name, or for the namespace that contains it."""
    above = path
    while above and reason(above) is None:
        above = above.rpartition(".")[0]
    return reason(above) or substitute(path)


@functools.cache
def refused_type(path: str) -> RefusedType:
    """The class under a name below the root: the same one each time."""
    namespace, _, name = path.rpartition(".")
    return RefusedType(name, (), {"path": path, "__module__": f"minflow.{namespace}", "__doc__": hint_of(path)})
