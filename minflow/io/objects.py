"""Objects of classes in a saved file, such as whole modules: how they are written, and built again on request.

An object is saved as Python's copy protocol describes it (`__reduce_ex__`): a function by name, its arguments, and the
state to set. Functions and classes are stored as "module:name", never as code. Building an object imports these modules
and calls these functions, so only `flow.load(path, weights_only=False)` does it. Read next: `tree.py`, which encodes
the parts.
"""

from __future__ import annotations

import copyreg
import importlib
import pickle
from types import FunctionType, MethodType
from typing import Any, NoReturn

from ..core.base.errors import CheckpointError, shown
from ..core.source_location import fail, here
from ..nn.module import Module
from .safe_globals import SAFE_GLOBALS

PUBLIC_HOMES = "minflow", "minflow.nn.functional"  # where functions are found whose own module has them under no name
REGISTRIES = "_parameters", "_buffers", "_modules"
PARTS = {"make", "args", "state", "items", "pairs"}  # of an object in a file
NEW_OBJECT = "copyreg:__newobj__"  # what makes most objects, from their class


class HoldsObjects(Exception):
    """Raised for a file with an object of a class if its code may not run. args: its class or function."""


def is_savable(x: Any) -> bool:
    """True if `save` accepts an object outside of other objects: a module, a set, or one of a class of the program,
    such as argparse.Namespace. Objects with a state, such as optimizers, are to be saved by that.
    """
    if isinstance(x, Module | set | frozenset):
        return True
    code = isinstance(x, type | FunctionType | MethodType | tuple) or type(x).__module__.startswith("minflow.")
    return hasattr(x, "__dict__") and not code and not hasattr(x, "state_dict")


def resolve(name: str) -> Any:
    """Import the function or class with a name of the form "module:name"."""
    module, _, attribute = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def module_of(x: Any) -> str:
    return getattr(x, "__module__", None) or "builtins"


def name_of(x: Any, where: str) -> str:
    """The name "module:name" by which a later process finds a function or class. Raises CheckpointError without one."""
    qualified = getattr(x, "__qualname__", None) or getattr(x, "__name__", "")
    for home in (module_of(x), *PUBLIC_HOMES):
        try:
            if resolve(f"{home}:{qualified}") is x:
                return f"{home}:{qualified}"
        except (ImportError, AttributeError):
            continue
    kind = f"class {x.__name__}" if isinstance(x, type) else f"function {qualified}"
    what = f"save: {where} is or needs the {kind}, which a later load would not find by its name"
    fail(CheckpointError, what, "define it at the top level of a module or cell; or save model.state_dict()", value=x)


def reduced(x: Any, where: str) -> dict[str, Any] | None:
    """The parts of an object; None for one that is meaningless in another process."""
    try:
        found = x.__reduce_ex__(4)
    except (TypeError, pickle.PicklingError) as error:
        what = f"save: {where} is a {type(x).__name__}, which cannot be saved"
        fail(CheckpointError, what, "set it to None first; or save model.state_dict()", value=x, reason=str(error))
    if isinstance(found, str):
        return {"name": f"{module_of(x)}:{found}"}
    make, args, state, items, pairs = (*found, None, None, None)[:5]
    if make is type(None):
        return None
    return {"make": make, "args": args, "state": state, "items": list(items or ()), "pairs": list(pairs or ())}


# ---- loading -----------------------------------------------------------------------------------------------------


def resolve_saved(name: str, trusted: bool) -> Any:
    """`resolve` for a name in a file. Raises HoldsObjects unless the file is trusted, it names a set, or the program
    has declared the class or function safe, and CheckpointError if this process does not find it.
    """
    if not trusted and name != NEW_OBJECT:
        declared = {name_of(x, "a safe global"): x for x in (set, frozenset, *SAFE_GLOBALS)}
        if name not in declared:
            raise HoldsObjects(name)
        return declared[name]
    try:
        return resolve(name)
    except (ImportError, AttributeError) as error:
        module, _, attribute = name.partition(":")
        hint = f"define or import {attribute} as the program that saved it did; or save model.state_dict() there"
        refuse_object(f"the file needs {attribute} of the module {module}, which does not have it", hint, error)


def build(make: Any, args: Any) -> Any:
    """Call the function that makes an object. Raises CheckpointError if that fails, as for a class that has changed."""
    try:
        return make(*args)
    except Exception as error:
        hint = "load it with the classes that it was saved with; or save model.state_dict() there"
        kind = args[0] if make is copyreg.__newobj__ and args else make  # type: ignore[attr-defined]
        refuse_object(f"an object of the file cannot be built by {shown(kind)}", hint, error)


def refuse_object(what: str, hint: str, error: Exception) -> NoReturn:
    raise CheckpointError(f"load: {what}", values={"reason": error}, where=here(), hint=hint) from error


def set_state(x: Any, state: Any, items: list, pairs: list) -> None:
    """Set the state of a new object, as `copy.copy` does."""
    if state is not None and hasattr(x, "__setstate__"):
        x.__setstate__(state)
    elif state is not None:
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        vars(x).update(attributes or {})
        for name, value in (slots or {}).items():
            setattr(x, name, value)
    for item in items:
        x.append(item)
    for key, value in pairs:
        x[key] = value
