"""state_dict and load_state_dict: the tensors of a module tree by dotted name, and back.

Loading looks at every entry before it writes the first, and tells everything that does not fit in one error.
Works on any object with Module's three dicts. Read next: `../io`, which stores such a dict in a file.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.grad_modes import no_grad
from ..core.errors import ModuleError
from ..core.op import EPOCH, fail, here
from ..core.creation import as_tensor
from ..core.tensor import Tensor
from .parameter import Parameter

SHOWN = 12  # how many entries of one kind an error lists


class Incompatible(NamedTuple):
    """What load_state_dict(strict=False) passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"Incompatible(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def state_of(module: Any, found: dict, prefix: str, keep_vars: bool) -> Any:
    """Fill `found` with this module's tensors and those of the modules below it."""
    for name, tensor in {**module._parameters, **module._buffers}.items():
        if tensor is not None and name not in module._transient:
            found[prefix + name] = tensor if keep_vars else tensor.detach()
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    return found


def load_into(module: Any, given: Mapping[str, Any], strict: bool, assign: bool) -> Incompatible:
    if not isinstance(given, Mapping):
        fail(
            ModuleError,
            f"load_state_dict takes a dict of name -> tensor, not a {type(given).__name__}",
            "model.load_state_dict(flow.load(path)), not the path itself"
            if isinstance(given, str)
            else "model.load_state_dict(other.state_dict())",
            state_dict=given,
        )
    wanted = module.state_dict(keep_vars=True)
    missing = [name for name in wanted if name not in given]
    unexpected = [name for name in given if name not in wanted]
    wrong: list[str] = []
    ready: dict[str, Tensor] = {}
    for name, old in wanted.items():
        if name in given:
            new = given[name]
            if not isinstance(new, Tensor | np.ndarray | np.generic):
                wrong.append(f"{name}: {type(new).__name__} is neither a tensor nor a numpy array")
                continue
            shape = tuple(new.shape)
            if shape != old.spec.shape:
                wrong.append(
                    f"{name}: {list(shape)} given, {list(old.spec.shape)} wanted{shape_hint(shape, old.spec.shape)}"
                )
                continue
            ready[name] = new if isinstance(new, Tensor) else as_tensor(np.ascontiguousarray(new))
    if wrong or (strict and (missing or unexpected)):
        values = {"missing": missing if strict else [], "unexpected": unexpected if strict else [], "wrong": wrong}
        count = ", ".join(f"{len(names)} {kind}" for kind, names in values.items() if names)
        raise_all(
            f"load_state_dict: {count} of {len(wanted)} entries of {type(module).__name__}; nothing was loaded",
            values,
            name_hint(missing, unexpected),
        )
    with no_grad():
        for name, new in ready.items():
            (hold if assign else copy)(module, name, wanted[name], new)
    return Incompatible(missing, unexpected)


def copy(module: Any, name: str, old: Tensor, new: Tensor) -> None:
    old.copy_(new)


def hold(module: Any, name: str, old: Tensor, new: Tensor) -> None:
    """Make the module hold `new` itself."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    if isinstance(old, Parameter):
        owner._parameters[last] = new if isinstance(new, Parameter) else Parameter(new, requires_grad=old.requires_grad)
    else:
        owner._buffers[last] = new
    EPOCH.now += 1


def raise_all(what: str, lists: Mapping[str, list[str]], hint: str) -> None:
    values = {}
    for kind, names in lists.items():
        if names:
            more = [f"... and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
            values[kind] = ("; " if kind == "wrong" else ", ").join(names[:SHOWN] + more)
    raise ModuleError(what, values=values, where=here(), hint=hint)


def shape_hint(given: tuple, wanted: tuple) -> str:
    if given == wanted[::-1] and len(given) == 2:
        return " (transposed: .T)"
    if len(given) == len(wanted) == 4 and (given[3], given[2], given[0], given[1]) == wanted:
        return " (channels last: .permute(3, 2, 0, 1))"
    if sum(n != 1 for n in given) and [n for n in given if n != 1] == [n for n in wanted if n != 1]:
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
        near = difflib.get_close_matches(name, unexpected, 1, 0.8)
        if near:
            return f"{near[0]!r} may be meant as {name!r}: rename it in the dict"
    if missing or unexpected:
        return (
            "strict=False loads what fits by name and passes over the rest"
            if not missing or not unexpected
            else ("was this state saved from a model of another class or size? strict=False loads what fits by name")
        )
    return "make the model with the sizes that the state was saved from"
