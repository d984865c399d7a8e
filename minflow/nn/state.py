"""state_dict and load_state_dict: the tensors of a module tree by dotted name, and back.

Loading checks every entry before it writes the first, and one error lists everything that does not fit. Works on any
object with Module's three dicts. Read next: `../io`, which stores such a dict in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, NoReturn

from ..core.backend import backend_of_array, to_host
from ..core.base.errors import StateError, clean_lines
from ..core.functionalize import is_writable
from ..core.functions.creation import as_tensor
from ..core.grad.modes import no_grad
from ..core.host import HostArray, HostScalar
from ..core.mode import MODE, bump_mutations
from ..core.source_location import fail, here
from ..core.spec import DType
from ..core.tensor import Tensor
from ..diagnosis.name_suggestions import similar_names
from .hooks import must_be_none
from .loading import Writes, distributed_as, from_torch, write
from .parameter import Parameter
from .recursion_limit import is_walked, walking

MAX_LISTED = 12  # number of entries of one kind that an error lists


class Incompatible(NamedTuple):
    """The names that load_state_dict(strict=False) skipped."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        names = f"missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys}"
        return clean_lines(f"_IncompatibleKeys({names})")


def state_of(module: Any, entries: dict, prefix: str, keep_vars: bool, plain: Any) -> Any:
    """Fill `entries` with the tensors of this module and of those below it. plain: Module's own state_dict."""
    stack: list[tuple[str, Any, Any]] = [(prefix, module, plain)]
    result = entries
    above: set[int] = set()  # a module that contains itself is saved once
    with walking("state_dict", module):
        while stack:
            prefix, part, method = stack.pop()
            if method is None:  # its children are done
                above.discard(id(part))
                if part._module_hooks is not None:
                    returned = run_state_hooks(part, entries, prefix)
                    result = returned if part is module and returned is not None else result
                continue
            if id(part) in above:
                continue
            if method is not plain:  # a class that overrides state_dict
                if not is_walked("state_dict", part):
                    part.state_dict(destination=entries, prefix=prefix, keep_vars=keep_vars)
                continue
            above.add(id(part))
            if hasattr(entries, "_metadata"):
                entries._metadata[prefix[:-1]] = {"version": part._version}
            if part._module_hooks is not None:
                part._module_hooks.call_all("state_before", part, prefix, keep_vars)
            stack.append((prefix, part, None))
            part._save_to_state_dict(entries, prefix, keep_vars)
            children = [(name, child) for name, child in part._modules.items() if child is not None]
            stack += [(f"{prefix}{name}.", child, type(child).state_dict) for name, child in reversed(children)]
    return result


def run_state_hooks(part: Any, entries: dict, prefix: str) -> dict | None:
    """Run the hooks after a module's part of state_dict(). Returns the dict, which old hooks may replace."""
    returned = None
    for _, hook, replaces, _ in part._module_hooks.entries("state_after"):
        answer = hook(part, returned or entries, prefix, {"version": part._version})
        if replaces:
            returned = answer if answer is not None else returned
        elif answer is not None:
            must_be_none("state_after", hook, answer)
    return returned


def as_mapping(entries: Any) -> Mapping[str, Any]:
    """Return the state to load, with tensors of PyTorch as ours. Raises StateError if it is not a dict."""
    if not isinstance(entries, Mapping):
        fail(
            StateError,
            f"load_state_dict takes a dict of name -> tensor, not a {type(entries).__name__}",
            "model.load_state_dict(flow.load(path)), not the path itself"
            if isinstance(entries, str)
            else "model.load_state_dict(other.state_dict())",
            state_dict=entries,
        )
    return {name: from_torch(value) for name, value in entries.items()}


def names_by_data_ptr(tensors: Mapping[str, Any]) -> dict[Hashable, str]:
    """Return address -> name of the tensors that loading will write."""
    return {data_ptr(t): name for name, t in tensors.items() if getattr(t, "array", None) is not None}


def mismatch_reason(old: Tensor, new: Any, assign: bool) -> str:
    """Return the reason why an entry cannot be loaded into a tensor; an empty string if it can."""
    array = new.array if isinstance(new, Tensor) else new
    if not isinstance(new, Tensor | HostArray | HostScalar):
        return f"{type(new).__name__} is neither a tensor nor a numpy array"
    if tuple(new.shape) != old.spec.shape:
        shape = tuple(new.shape)
        return f"must be {list(old.spec.shape)}, got {list(shape)}{shape_hint(shape, old.spec.shape)}"
    if array is None:
        return "a symbolic tensor, which has no elements" if MODE.get().trace is None else ""
    floating = new.spec.floating if isinstance(new, Tensor) else array.dtype.kind == "f"
    if not isinstance(new, Tensor) and array.dtype.kind not in "biuf":
        return f"{array.dtype} is not a dtype of tensors"
    if assign and isinstance(old, Parameter) and not floating:
        return f"a parameter must be floating, got {array.dtype}"
    if old.is_meta and not assign:
        return 'it is on the device meta, without elements: model.to_empty(device="cpu") first, or assign=True'
    if not assign and old.array is not None and not is_writable(old):
        return "its memory may only be read; assign=True puts the new tensor in its place"
    return ""


def as_entry(name: str, old: Tensor, new: Any, assign: bool, storages: Mapping[Hashable, str]) -> Tensor:
    """Return the tensor to load, distributed as `old`, and copied if loading another entry would overwrite it."""
    if not isinstance(new, Tensor):
        dtype = new.dtype if assign and new.dtype.name in DType.table else old.spec.np
        new = as_tensor(to_host(new).astype(dtype, "C", copy=False))
    if old.spec.placement is not new.spec.placement or old.spec.sbp is not new.spec.sbp:
        return distributed_as(old.spec, new.detach())
    if new.array is not None and not assign and storages.get(data_ptr(new), name) != name:
        return new.detach().clone()
    return new


def checked_writes(module: Any, entries: Mapping[str, Any], strict: bool, assign: bool) -> tuple[Writes, Incompatible]:
    """Check every entry, and return the writes that loading performs; see `loading.py`."""
    entries, own = as_mapping(entries), module.state_dict(keep_vars=True)
    missing = [name for name in own if name not in entries]
    unexpected = [name for name in entries if name not in own]
    wrong: list[str] = []
    writes: Writes = []
    storages = names_by_data_ptr(own)
    for name, old in own.items():
        if name not in entries:
            continue
        if reason := mismatch_reason(old, entries[name], assign):
            wrong.append(f"{name}: {reason}")
            continue
        new = as_entry(name, old, entries[name], assign, storages)
        writes.append(assign_into(module, name, old, new) if assign else copy_into(old, new))
    if wrong or (strict and (missing or unexpected)):
        refuse_state(module, len(own), missing if strict else [], unexpected if strict else [], wrong)
    return writes, Incompatible(missing, unexpected)


def refuse_state(module: Any, total: int, missing: list, unexpected: list, wrong: list) -> NoReturn:
    values = {"missing": missing, "unexpected": unexpected, "wrong": wrong}
    count = ", ".join(f"{len(names)} {kind}" for kind, names in values.items() if names)
    raise_all(
        f"load_state_dict: {count} of {total} entries of {type(module).__name__}; nothing was loaded",
        values,
        SIZES if wrong else name_hint(comparable_names(missing), comparable_names(unexpected)),
    )


# ---- with hooks and methods of the program's own ---------------------------------------------------------------------

EXTRA = "_extra_state"
ASSIGN = "assign_to_params_buffers"  # PyTorch's name of `assign` in local_metadata
OVERRIDABLE_METHODS = "_load_from_state_dict", "set_extra_state", "get_extra_state"


def loads_by_parts(module: Any, base: type) -> bool:
    """True if hooks, or overridden methods of a class, take part in loading. base: Module."""
    return any(
        (part._module_hooks is not None and (part._module_hooks.load_before or part._module_hooks.load_after))
        or any(getattr(type(part), name) is not getattr(base, name) for name in OVERRIDABLE_METHODS)
        for part in module.modules()
    )


def load_by_parts(module: Any, state: Mapping[str, Any], strict: bool, assign: bool) -> Incompatible:
    """Load module by module, parents first, as PyTorch does, so that hooks and overridden methods see the entries
    loaded before. If the state does not fit or one of them raises an error, all tensors are restored.
    """
    metadata = getattr(state, "_metadata", None) or {}
    before = Snapshot(module)
    own = names_by_data_ptr(before.tensors)
    entries = {
        key: x if assign or not isinstance(x, Tensor) or own.get(data_ptr(x), key) == key else x.detach().clone()
        for key, x in as_mapping(state).items()
    }
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    try:
        stack: list[tuple[Any, dict | None, str]] = [(module, entries, "")]
        above: set[Any] = set()  # a module that contains itself is loaded once
        while stack:
            part, local, prefix = stack.pop()
            if local is None:  # its children are done
                above.discard(part)
                if part._module_hooks is not None:
                    part._module_hooks.call_all("load_after", part, Incompatible(missing, unexpected))
                continue
            local_metadata = {**metadata.get(prefix[:-1], {}), **({ASSIGN: True} if assign else {})}
            part._load_from_state_dict(local, prefix, local_metadata, True, missing, unexpected, errors)
            above.add(part)
            stack.append((part, None, prefix))
            for name, child in reversed(part._modules.items()):
                if child is not None and child not in above:
                    inner = f"{prefix}{name}."
                    stack.append((child, {k: x for k, x in local.items() if has_prefix(k, inner)}, inner))
        if errors or (strict and (missing or unexpected)):
            refuse_state(module, len(before.tensors), missing if strict else [], unexpected if strict else [], errors)
    except BaseException:
        write([before.restore])
        raise
    return Incompatible(missing, unexpected)


def load_own(
    part: Any,
    entries: Mapping[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
    base: Any,
) -> None:
    """Module._load_from_state_dict. base: Module."""
    if part._module_hooks is not None:
        part._module_hooks.call_all(
            "load_before", part, entries, prefix, local_metadata, strict, missing, unexpected, errors
        )
    assign, writes, extra = local_metadata.get(ASSIGN, False), [], prefix + EXTRA
    own = {n: t for n, t in (*part._parameters.items(), *part._buffers.items()) if t is not None}
    own = {n: t for n, t in own.items() if n not in part._non_persistent_buffers_set}
    for name, old in own.items():
        key = prefix + name
        if key not in entries:
            missing += [key] * strict
        elif reason := mismatch_reason(old, entries[key], assign):
            errors.append(f"{key}: {reason}")
        else:
            new = as_entry(key, old, entries[key], assign, {})
            writes.append(assign_into(part, name, old, new) if assign else copy_into(old, new))
    write(writes)
    takes_extra = type(part).set_extra_state is not base.set_extra_state
    if extra in entries and takes_extra:
        part.set_extra_state(entries[extra])
    elif strict and takes_extra:
        missing.append(extra)
    for key in entries if strict else ():
        if key == extra:
            unexpected += [key] * (not takes_extra)
        elif has_prefix(key, prefix) or not prefix:
            name, dot, _ = key[len(prefix) :].partition(".") if isinstance(key, str) else (key, "", "")
            if name not in (part._modules if dot else own):
                unexpected.append(key)


def has_prefix(key: Any, prefix: str) -> bool:
    return isinstance(key, str) and key.startswith(prefix)


def data_ptr(tensor: Tensor) -> Hashable:
    return None if tensor.array is None else backend_of_array(tensor.array).storage_key(tensor.array)


class Snapshot:
    """The tensors of a module tree at one moment, to restore them later."""

    def __init__(self, module: Any):
        self.registries = [(part, dict(part._parameters), dict(part._buffers)) for part in module.modules()]
        self.tensors = dict(module._named_tensors("_parameters", "", True, False))
        self.tensors |= module._named_tensors("_buffers", "", True, False)
        tensors = [] if MODE.get().trace is not None else [t for t in self.tensors.values() if t.array is not None]
        self.copies = [(t, t.detach().clone()) for t in tensors]

    def restore(self) -> None:
        bump_mutations()
        for part, parameters, buffers in self.registries:
            part.__dict__["_parameters"], part.__dict__["_buffers"] = parameters, buffers
        with no_grad():
            for tensor, copy in self.copies:
                if tensor.spec is copy.spec and is_writable(tensor):
                    tensor.copy_(copy)


def copy_into(old: Tensor, new: Tensor) -> Callable[[], object]:
    def copy() -> None:
        old.copy_(new)

    copy.target = old  # type: ignore[attr-defined]
    return copy


def assign_into(module: Any, name: str, old: Tensor, new: Tensor) -> Callable[[], object]:
    """Return a call that assigns `new` itself to the module, through `__setattr__`, which a class may override."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    wrap = isinstance(old, Parameter) and not isinstance(new, Parameter)
    entry = Parameter(new, requires_grad=old.requires_grad) if wrap else new
    return lambda: setattr(owner, last, entry)


def comparable_names(names: list) -> list[str]:
    """Return the names that are worth comparing: those of a damaged file may be too long or too many."""
    return [name for name in names if isinstance(name, str) and len(name) <= 200][:200]


def raise_all(what: str, lists: Mapping[str, list[str]], hint: str) -> NoReturn:
    values = {}
    for kind, names in lists.items():
        if names:
            more = [f"... and {len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
            values[kind] = ("; " if kind == "wrong" else ", ").join([*map(str, names[:MAX_LISTED]), *more])
    raise StateError(what, values=values, where=here(), hint=hint)


def shape_hint(shape: tuple, expected: tuple) -> str:
    if shape == expected[::-1] and len(shape) == 2:
        return " (transposed: .T)"
    if len(shape) == len(expected) == 4 and (shape[3], shape[2], shape[0], shape[1]) == expected:
        return " (channels last: .permute(3, 2, 0, 1))"
    if sum(n != 1 for n in shape) and [n for n in shape if n != 1] == [n for n in expected if n != 1]:
        return " (as many elements: .reshape)"
    return ""


SIZES = "make the model with the sizes that the state was saved from"


def name_hint(missing: list[str], unexpected: list[str]) -> str:
    """Return a hint for names that differ by a prefix, or by a few letters."""
    for prefix in sorted({name.split(".")[0] + "." for name in unexpected if "." in name}):
        if {name.removeprefix(prefix) for name in unexpected if name.startswith(prefix)} & set(missing):
            return (
                f"the given names start with {prefix!r}: "
                f"model.load_state_dict({{k.removeprefix({prefix!r}): v for k, v in state.items()}})"
            )
    for prefix in sorted({name.split(".")[0] + "." for name in missing if "." in name}):
        if {name.removeprefix(prefix) for name in missing if name.startswith(prefix)} & set(unexpected):
            return (
                f"the expected names start with {prefix!r}: model.{prefix[:-1]}.load_state_dict(state), "
                f"or {{{prefix!r} + k: v for k, v in state.items()}}"
            )
    for name in missing:
        near = similar_names(name, unexpected, 1, 0.8)
        if near:
            return f"{near[0]!r} may be meant as {name!r}: rename it in the dict"
    if missing or unexpected:
        return (
            "strict=False loads what fits by name and skips the rest"
            if not missing or not unexpected
            else ("was this state saved from a model of another class or size? strict=False loads what fits by name")
        )
    return SIZES
