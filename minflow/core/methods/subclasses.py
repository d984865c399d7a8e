"""Classes of tensors that programs define: results of functions keep the class, as in PyTorch.

Read next: `../subclasses.py`, which runs when the first such class is defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..backend import TENSOR_TYPES
from ..base.errors import DTypeError, MissingNameError
from ..dispatch import apply
from ..ops.shape import getitem
from ..overrides import SUBCLASSES, DisableTorchFunctionSubclass, disabled_torch_function_impl, with_class
from ..source_location import fail, here

if TYPE_CHECKING:
    from ..tensor import Tensor

ON_SUBCLASS: list[Callable[[type], None]] = []  # `subclasses.py` prepares a class of a program


class Subclasses:
    """How tensors get a class of a program."""

    _is_overridable = False  # of a class: functions call its `__torch_function__`

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if not cls.__module__.startswith("minflow."):
            for prepare in ON_SUBCLASS:
                prepare(cls)

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """A tensor without elements, which `__init__` sets. That of a program's class is complete, as in PyTorch:
        `__init__` of Tensor, Parameter and Buffer then changes nothing.
        """
        self = object.__new__(cls)
        if SUBCLASSES and not cls.__module__.startswith("minflow."):
            refuse_dispatch(cls)
            our_initializer(cls)(self, *args, **options)
        return self

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        """Call a function on tensors of this class as plain tensors, and give its results the class."""
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **kwargs or {})
            return converted(result, cls, args)

    def as_subclass(self: Tensor, cls: type[Tensor]) -> Any:
        """A view of this tensor, with its gradient, that is of the class `cls`: Tensor, or a class of the program."""
        if not (isinstance(cls, type) and issubclass(cls, Subclasses)):
            fail(DTypeError, "as_subclass takes a class of tensors", "x.as_subclass(flow.Tensor)", cls=cls)
        refuse_dispatch(cls)
        with DisableTorchFunctionSubclass():
            return with_class(apply(getitem, self, index=()), cls)

    @staticmethod
    def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
        """A tensor of the class `cls` on the storage of `data`, outside the tape."""
        refuse_dispatch(cls)
        with DisableTorchFunctionSubclass():
            return with_class(data.detach(), cls).requires_grad_(require_grad)

    @staticmethod
    def _make_wrapper_subclass(cls: type[Tensor], *args: Any, **options: Any) -> NoReturn:
        """Raise MissingNameError: a tensor has elements."""
        what = f"{cls.__name__}: a wrapper of a tensor without elements of its own"
        raise MissingNameError(what, where=here(), hint=INSTEAD_OF_DISPATCH)


def our_initializer(cls: type) -> Callable:
    """The `__init__` of Tensor, Parameter or Buffer that a program's class inherits."""
    ours = [kind for kind in cls.__mro__ if kind.__module__.startswith("minflow.") and "__init__" in vars(kind)]
    return vars(ours[0])["__init__"]


INSTEAD_OF_DISPATCH = (
    "flow.Tensor._make_subclass(cls, data) and a classmethod __torch_function__, or a class that is not a tensor and "
    "has __torch_function__; flow.autograd.Function for gradients"
)


def refuse_dispatch(cls: type) -> None:
    """Raise MissingNameError for a class that defines how ops run, since ops call no Python methods."""
    if getattr(cls, "__torch_dispatch__", disabled_torch_function_impl) is not disabled_torch_function_impl:
        what = f"{cls.__name__}.__torch_dispatch__: ops of minflow call no method of a class"
        raise MissingNameError(what, where=here(), hint=INSTEAD_OF_DISPATCH)


def converted(result: Any, cls: type, args: tuple) -> Any:
    """The result of a function of `args`, with its plain tensors in the class `cls`."""
    if type(result) in TENSOR_TYPES:
        known = any(result is x for x in args) or (result._needs and result.is_leaf)
        return result.as_subclass(cls) if known else with_class(result, cls)
    if isinstance(result, tuple | list) and any(type(x) in TENSOR_TYPES for x in result):
        parts = [converted(x, cls, args) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result
