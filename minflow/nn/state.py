"""state_dict and load_state_dict: the tensors of a module tree by dotted name, and back.

Loading looks at every entry before it writes the first, and one error lists everything that does not fit.
Works on any object with Module's three dicts. Read next: `../io`, which stores such a dict in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.grad.modes import no_grad
from ..core.base.errors import StateError, clean_lines
from ..core.functions.creation import as_tensor
from ..core.mode import MODE, touch
from ..core.spec import DType
from ..core.tensor import Tensor
from ..core.where import fail, here
from ..diagnosis.suggest import similar
from .loading import Writes
from .parameter import Parameter

SHOWN = 12  # how many entries of one kind an error lists


class Incompatible(NamedTuple):
    """What load_state_dict(strict=False) passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return clean_lines(f"Incompatible(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})")


def state_of(module: Any, entries: dict, prefix: str, keep_vars: bool, plain: Any) -> Any:
    """Fill `entries` with this module's tensors and those of the modules below it. plain: the state_dict of Module
    itself."""
    stack: list[tuple[str, Any, Any]] = [(prefix, module, plain)]
    while stack:
        prefix, part, method = stack.pop()
        if method is None:  # its children are there
            part._hooks.each("state_after", part, entries, prefix, {})
            continue
        if method is not plain:  # of a class with a state_dict of its own
            part.state_dict(destination=entries, prefix=prefix, keep_vars=keep_vars)
            continue
        if part._hooks is not None:
            part._hooks.each("state_before", part, prefix, keep_vars)
            stack.append((prefix, part, None))
        for name, tensor in {**part._parameters, **part._buffers}.items():
            if tensor is not None and name not in part._transient:
                entries[prefix + name] = tensor if keep_vars else tensor.detach()
        children = [(name, child) for name, child in part._modules.items() if child is not None]
        stack += [(f"{prefix}{name}.", child, type(child).state_dict) for name, child in reversed(children)]
    return entries


def before_load(module: Any, entries: Any, strict: bool) -> Any:
    """What is loaded, once the hooks before it have run: they get a copy."""
    hooked = [(path, part) for path, part in module.named_modules() if part._hooks and part._hooks.load_before]
    if hooked and isinstance(entries, Mapping):
        entries = dict(entries)
        for path, part in hooked:
            part._hooks.each("load_before", part, entries, f"{path}." if path else "", {}, strict, [], [], [])
    return entries


def after_load(module: Any, incompatible: Incompatible) -> Incompatible:
    """The names that did not fit, once the hooks after loading have run, children first."""
    for part in reversed([part for part in module.modules() if part._hooks]):
        part._hooks.each("load_after", part, incompatible)
    return incompatible


def checked(module: Any, entries: Mapping[str, Any], strict: bool, assign: bool) -> tuple[Writes, Incompatible]:
    """What loading would write, once all fits; see `loading.py`."""
    if not isinstance(entries, Mapping):
        fail(
            StateError,
            f"load_state_dict takes a dict of name -> tensor, not a {type(entries).__name__}",
            "model.load_state_dict(flow.load(path)), not the path itself"
            if isinstance(entries, str)
            else "model.load_state_dict(other.state_dict())",
            state_dict=entries,
        )
    wanted = module.state_dict(keep_vars=True)
    missing = [name for name in wanted if name not in entries]
    unexpected = [name for name in entries if name not in wanted]
    wrong: list[str] = []
    writes: Writes = []
    storages = {t.array.__array_interface__["data"][0]: name for name, t in wanted.items() if t.array is not None}
    for name, old in wanted.items():
        if name not in entries:
            continue
        new, reason = entries[name], ""
        array = new.array if isinstance(new, Tensor) else new
        if not isinstance(new, Tensor | np.ndarray | np.generic):
            reason = f"{type(new).__name__} is neither a tensor nor a numpy array"
        elif tuple(new.shape) != old.spec.shape:
            shape = tuple(new.shape)
            reason = f"{list(shape)} given, {list(old.spec.shape)} wanted{shape_hint(shape, old.spec.shape)}"
        elif array is None and MODE.get().trace is None:
            reason = "a symbolic tensor, which has no numbers"
        elif array is not None and array.dtype.kind not in "biuf":
            reason = f"{array.dtype} are not numbers of a tensor"
        elif assign and isinstance(old, Parameter) and array is not None and array.dtype.kind != "f":
            reason = f"{array.dtype} given, and a parameter is floating"
        elif not assign and old.array is not None and not old.array.flags.writeable:
            reason = "its memory may only be read; assign=True puts the new tensor in its place"
        if reason:
            wrong.append(f"{name}: {reason}")
            continue
        if not isinstance(new, Tensor):
            dtype = None if assign and new.dtype.name in DType.table else old.spec.np
            new = as_tensor(np.ascontiguousarray(new, dtype).reshape(new.shape))
        elif array is not None and not assign and storages.get(array.__array_interface__["data"][0], name) != name:
            new = new.detach().clone()  # of another entry of this module, which is written as well
        writes.append(holding(module, name, old, new) if assign else copying(old, new))
    if wrong or (strict and (missing or unexpected)):
        values = {"missing": missing if strict else [], "unexpected": unexpected if strict else [], "wrong": wrong}
        count = ", ".join(f"{len(names)} {kind}" for kind, names in values.items() if names)
        raise_all(
            f"load_state_dict: {count} of {len(wanted)} entries of {type(module).__name__}; nothing was loaded",
            values,
            name_hint(texts(missing), texts(unexpected)),
        )
    return writes, Incompatible(missing, unexpected)


def copying(old: Tensor, new: Tensor) -> Callable[[], object]:
    def copy() -> None:
        with no_grad():
            old.copy_(new)

    copy.target = old  # type: ignore[attr-defined]
    return copy


def holding(module: Any, name: str, old: Tensor, new: Tensor) -> Callable[[], object]:
    """Make the module hold `new` itself."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    holder = owner._parameters if isinstance(old, Parameter) else owner._buffers
    wrap = isinstance(old, Parameter) and not isinstance(new, Parameter)
    held = Parameter(new, requires_grad=old.requires_grad) if wrap else new

    def hold() -> None:
        touch()
        holder[last] = held

    return hold


def texts(names: list) -> list[str]:
    """The names that can be compared: not those of a damaged file, which may be long or many."""
    return [name for name in names if isinstance(name, str) and len(name) <= 200][:200]


def raise_all(what: str, lists: Mapping[str, list[str]], hint: str) -> None:
    values = {}
    for kind, names in lists.items():
        if names:
            more = [f"... and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
            values[kind] = ("; " if kind == "wrong" else ", ").join([*map(str, names[:SHOWN]), *more])
    raise StateError(what, values=values, where=here(), hint=hint)


def shape_hint(shape: tuple, wanted: tuple) -> str:
    if shape == wanted[::-1] and len(shape) == 2:
        return " (transposed: .T)"
    if len(shape) == len(wanted) == 4 and (shape[3], shape[2], shape[0], shape[1]) == wanted:
        return " (channels last: .permute(3, 2, 0, 1))"
    if sum(n != 1 for n in shape) and [n for n in shape if n != 1] == [n for n in wanted if n != 1]:
        return " (the same numbers: .reshape)"
    return ""


def name_hint(missing: list[str], unexpected: list[str]) -> str:
    """Names that differ by a prefix, or by a few letters."""
    for prefix in sorted({name.split(".")[0] + "." for name in unexpected if "." in name}):
        if {name.removeprefix(prefix) for name in unexpected if name.startswith(prefix)} & set(missing):
            return (
                f"the given names start with {prefix!r}: "
                f"model.load_state_dict({{k.removeprefix({prefix!r}): v for k, v in state.items()}})"
            )
    for prefix in sorted({name.split(".")[0] + "." for name in missing if "." in name}):
        if {name.removeprefix(prefix) for name in missing if name.startswith(prefix)} & set(unexpected):
            return (
                f"the wanted names start with {prefix!r}: model.{prefix[:-1]}.load_state_dict(state), "
                f"or {{{prefix!r} + k: v for k, v in state.items()}}"
            )
    for name in missing:
        near = similar(name, unexpected, 1, 0.8)
        if near:
            return f"{near[0]!r} may be meant as {name!r}: rename it in the dict"
    if missing or unexpected:
        return (
            "strict=False loads what fits by name and passes over the rest"
            if not missing or not unexpected
            else ("was this state saved from a model of another class or size? strict=False loads what fits by name")
        )
    return "make the model with the sizes that the state was saved from"
