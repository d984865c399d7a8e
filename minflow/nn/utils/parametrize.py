"""`flow.nn.utils.parametrize`: compute a parameter by modules, from another parameter that is trained in its place.

`module.weight` is computed on every access; the trained tensor is `parametrizations.weight.original`. A class with
`right_inverse` says which original gives a weight, so that `module.weight = x` works. Read next: `parametrizations.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...core.base.errors import DTypeError, ModuleError, ShapeError
from ...core.grad.modes import no_grad
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter
from .weight_norms import ComputedWeight

CACHE: ContextVar[dict | None] = ContextVar("CACHE", default=None)  # (module, name) -> weight, inside `cached`


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once within a `with` block."""
    token = CACHE.set({} if CACHE.get() is None else CACHE.get())
    try:
        yield
    finally:
        CACHE.reset(token)


class ParametrizedWeight(ComputedWeight):
    """A weight that the ParametrizationList of its name computes."""

    def weight(self, module: Module) -> Tensor:
        cache = CACHE.get()
        if cache is None:
            return module.parametrizations[self.name]()
        key = id(module), self.name
        if key not in cache:
            cache[key] = module.parametrizations[self.name]()
        return cache[key]

    def assign(self, module: Module, value: Tensor) -> None:
        module.parametrizations[self.name].right_inverse(value)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in their order to `original` (or original0, original1, ...)."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        with no_grad():
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        break
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not (isinstance(new, Sequence) and all(isinstance(x, Tensor) for x in new)):
            what = "parametrize: right_inverse must return a tensor or a sequence of tensors"
            fail(ModuleError, what, "return weight", returned=new)
        kind = Parameter if isinstance(original, Parameter) else None
        for name, value in [("original", new)] if self.is_tensor else [(f"original{i}", x) for i, x in enumerate(new)]:
            if self.is_tensor:
                check_same("right_inverse", "dtype", value, original)
                if value is not original:
                    original.data = value.detach()  # the same object, which an optimizer may hold
                value = original
            if kind is not None:
                self.register_parameter(
                    name, value if isinstance(value, kind) else kind(value.detach(), original.requires_grad)
                )
            else:
                self.register_buffer(name, value)
        self.ntensors = 1 if self.is_tensor else len(new)

    def originals(self) -> list[Tensor]:
        """The trained tensors."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes `value`."""
        new: Any = value
        with no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    what = (
                        f"parametrize: {type(module).__name__} has no right_inverse, so the tensor cannot be assigned"
                    )
                    fail(ModuleError, what, "def right_inverse(self, weight): return original", value=value)
                new = module.right_inverse(new)
            for old, one in zip(self.originals(), [new] if self.is_tensor else new):
                check_same("right_inverse", "dtype", one, old)
                old.data = one.detach()

    def forward(self) -> Tensor:
        """Compute the tensor."""
        first, *rest = self
        x = first(*self.originals())
        for module in rest:
            x = module(x)
        return x


def check_same(what: str, attribute: str, found: Tensor, wanted: Tensor) -> None:
    """Raise an error if the dtype or shape of a tensor is not that of the parameter."""
    if not isinstance(found, Tensor):
        fail(ModuleError, f"parametrize: {what} must return a tensor", "return weight", returned=found)
    if getattr(found, attribute) != getattr(wanted, attribute):
        keep = wanted.dtype if attribute == "dtype" else tuple(wanted.shape)
        text = f"parametrize: {what} must keep the {attribute}, {keep}"
        kind = DTypeError if attribute == "dtype" else ShapeError
        fail(kind, text, "unsafe=True leaves out this check", returned=found)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by `parametrization`, after those that it has already; return the
    module.

    unsafe: True if the tensor's shape and dtype may change, which are otherwise checked by one call.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        entries, before = module.parametrizations[tensor_name], getattr(module, tensor_name)
        if not unsafe:
            with no_grad():
                after = parametrization(before)
                check_same("forward", "dtype", after, before)
                check_same("forward", "shape", after, before)
        entries.append(parametrization)
        entries.unsafe |= unsafe
        return module
    registry = next((r for r in (module._parameters, module._buffers) if r.get(tensor_name) is not None), None)
    if registry is None:
        have = ", ".join([*module._parameters, *module._buffers]) or "none"
        what = f"parametrize: {type(module).__name__} has no parameter or buffer {tensor_name!r}"
        fail(ModuleError, what, f"one of its own: {have}")
    original = registry[tensor_name]
    like = original.detach().clone()
    entries = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with no_grad():
            after = entries()
            check_same("forward", "dtype", after, like)
            check_same("forward", "shape", after, like)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = entries
    ParametrizedWeight(tensor_name).begin(module)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if the tensor of this name, or any tensor, of the module is parametrized."""
    entries = module._modules.get("parametrizations")
    if not isinstance(entries, ModuleDict):
        return False
    return len(entries) > 0 if tensor_name is None else tensor_name in entries


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor an ordinary parameter or buffer again, and return the module.

    leave_parametrized: True to keep its current value, False to go back to the original.
    """
    if not is_parametrized(module, tensor_name):
        what = f"parametrize: {tensor_name!r} of this {type(module).__name__} is not parametrized"
        fail(ModuleError, what, "the name that register_parametrization was called with")
    entries = module.parametrizations[tensor_name]
    original = entries.originals()[0]
    if leave_parametrized:
        with no_grad():
            value = entries().detach()
        if entries.is_tensor:
            original.data = value
        else:
            original = Parameter(value, original.requires_grad) if isinstance(original, Parameter) else value
    elif not entries.is_tensor:
        what = f"parametrize: {tensor_name!r} is computed from {entries.ntensors} tensors"
        fail(ModuleError, what, "leave_parametrized=True")
    del module.__dict__["_computed_tensors"][tensor_name], module.parametrizations[tensor_name]
    register = module.register_parameter if isinstance(original, Parameter) else module.register_buffer
    register(tensor_name, original)
    if not module.parametrizations:
        del module.parametrizations
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of the module, which parametrizations leave unchanged."""
    return type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give `to_module` the parametrizations and originals of `from_module`, of all tensors or of one; return it."""
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        entries = from_module.parametrizations[name]
        for parametrization in entries:
            register_parametrization(to_module, name, parametrization, unsafe=True)
        for old, new in zip(entries.originals(), to_module.parametrizations[name].originals()):
            new.data = old.detach().clone()
    return to_module


__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization",
           "remove_parametrizations", "transfer_parametrizations_and_params",
           "type_before_parametrizations"]  # fmt: skip
__getattr__ = _name_hints("flow.nn.utils.parametrize", globals())
