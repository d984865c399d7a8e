"""The Python state that a build reads: state in the key of its plan, and state that the plan cannot follow.

In the key by contents, and compared at every call: containers and dataclasses of numbers, strings and tensors; NumPy
arrays of up to 64 KB; tensors, arrays and modules named by globals or enclosing variables; called modules; elements
read by `item()`.
A plan keeps the first state of larger arrays, the user's objects, large containers, and other globals and enclosing
variables, and reports this once (a job's plan follows enclosing variables, the settings of a factory of jobs).
Independent of plans. Read next: `key.py`, `side_effects.py`.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import sys
from collections import deque
from collections.abc import Container, Iterable
from enum import Enum
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from ...core.backend import namespace, to_host
from ...core.grad.hooks import functions_on
from ...core.host import HostArray, HostScalar
from ...core.ir import Where
from ...core.source_location import IS_MINFLOW_FILE
from ...core.tensor import Tensor
from ..hooks import GLOBAL_HOOKS, hooks_of
from ..module import Module
from .tree import fields_of

MAX_ENTRIES, MAX_LEVELS = 1_000, 4  # limits of a container that is compared at every call
MAX_ARRAY_BYTES = 1 << 16  # limit in bytes of a NumPy array that is compared at every call
PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
FUNCTIONS = (FunctionType, MethodType, functools.partial)
RANDOM_SOURCES = {
    ("numpy.random._generator", "Generator"),
    ("numpy.random.mtrand", "RandomState"),
    ("random", "Random"),
}
# attributes through which Python reads the learning rate, which is a state of a plan, not part of its key
LEARNING_RATE_ATTRIBUTES = {
    "param_groups": "the learning rate of an optimizer",
    "get_last_lr": "the learning rate of a scheduler",
}
NAMESPACES = {("types", "SimpleNamespace"), ("argparse", "Namespace")}


def is_user_file(filename: str) -> bool:
    """True for a user's file: one that is not part of minflow, Python or an installed package."""
    return not IS_MINFLOW_FILE[filename] and not filename.startswith(installed_prefixes())


@functools.cache
def installed_prefixes() -> tuple[str, ...]:
    import sysconfig

    return tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})


def is_instance_by_name(value: Any, names: Iterable[tuple[str, str]]) -> bool:
    """True for an instance of one of these classes, given as (module, name) so that they need not be imported."""
    return any((base.__module__, base.__name__) in names for base in type(value).__mro__)


def snapshot(
    value: Any,
    reasons: list[str] | None = None,
    alive: list | None = None,
    level: int = MAX_LEVELS,
    budget: list | None = None,
) -> Any:
    """Return a snapshot that compares equal while the contents do: numbers and strings by bits, all else by identity.

    reasons: receives the reasons why parts cannot be followed. alive: receives the objects whose ids are in the result.
    """
    kind = value.__class__
    if isinstance(value, PLAIN_TYPES):
        return kind, repr(value) if isinstance(value, float | complex) else value
    if isinstance(value, CONTAINERS):
        budget = [MAX_ENTRIES] if budget is None else budget
        budget[0] -= len(value)
        if level and budget[0] >= 0:
            parts = [snapshot(x, reasons, alive, level - 1, budget) for x in value]
            if isinstance(value, dict):
                parts = list(zip(parts, [snapshot(x, reasons, alive, level - 1, budget) for x in value.values()]))
            if budget[0] >= 0:
                return kind, frozenset(parts) if isinstance(value, set | frozenset) else tuple(parts)
        if reasons is not None:
            reasons.append(
                f"a {kind.__name__} of more than {MAX_ENTRIES:,} entries"
                if budget[0] < 0
                else f"more than {MAX_LEVELS} levels deep"
            )
    elif (fields := fields_of(value)) is not None and level:
        return kind, snapshot(fields, reasons, alive, level - 1, budget)
    elif isinstance(value, Tensor):
        if alive is not None:
            alive.append((value, value.array, value.spec))
        return id(value), id(value.array), id(value.spec), value._needs
    elif isinstance(value, HostScalar):
        return kind, value.tobytes()
    elif small_array(value):
        return kind, value.dtype.str, value.shape, value.tobytes()
    elif kind is Variable:
        return snapshot(value.value_now(), None, alive)
    elif kind is ElementsRead:
        return value.snapshot()
    elif reasons is not None and (reason := untracked_description(value)):
        reasons.append(reason)
    if alive is not None:
        alive.append(value)
    return id(value)


def modules_in(value: Any, seen: Container[int] = (), level: int = MAX_LEVELS) -> Iterable[Module]:
    """Yield the modules that a value is or contains, with their submodules. seen: ids of modules to skip."""
    if isinstance(value, Module):
        if "_modules" in value.__dict__ and id(value) not in seen:
            yield from value.modules()
    elif level and isinstance(value, CONTAINERS) and len(value) <= MAX_ENTRIES:
        for x in value.values() if isinstance(value, dict) else value:
            yield from modules_in(x, seen, level - 1)


def small_array(value: Any) -> bool:
    """True for a NumPy array whose elements are part of the key of a plan."""
    return isinstance(value, HostArray) and value.nbytes <= MAX_ARRAY_BYTES and not value.dtype.hasobject


def changes_inside(value: Any) -> bool:
    """True if an object's contents can change in place, and `snapshot` detects that."""
    if small_array(value):
        return True
    if isinstance(value, list | dict | set | deque):
        return len(value) <= MAX_ENTRIES
    if (fields := fields_of(value)) is not None:
        return not type(value).__dataclass_params__.frozen or any(map(changes_inside, fields.values()))
    return isinstance(value, tuple) and len(value) <= MAX_ENTRIES and any(map(changes_inside, value))


def contents_changed(contents: Iterable[tuple[Any, Any]]) -> bool:
    """True if the contents of one of these (container, its earlier contents) have changed."""
    return any([snapshot(value) != before for value, before in contents])


def fully_tracked(value: Any) -> bool:
    """True for numbers and strings, alone or in containers, that `snapshot` follows completely."""
    reasons: list[str] = []
    kinds = (*PLAIN_TYPES, *CONTAINERS, HostScalar, HostArray)
    known = isinstance(value, kinds) or fields_of(value) is not None
    return known and (snapshot(value, reasons), not reasons)[1]


def untracked_description(value: Any) -> str:
    """Describe an object whose state can change undetected; empty for functions, classes and minflow's objects."""
    kind = type(value)
    if isinstance(value, HostArray):
        return f"a NumPy array {value.dtype}{list(value.shape)}"
    if is_instance_by_name(value, RANDOM_SOURCES):
        return "a generator of random numbers"
    if isinstance(value, type | FunctionType | MethodType | Enum) or any(
        base.__module__.startswith("minflow.") for base in kind.__mro__
    ):
        return ""
    if getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
        return ""
    return f"an object of class {kind.__name__}" if is_user_class(kind) else ""


def is_user_class(kind: type) -> bool:
    """True for a class of the user, and for a plain namespace."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    own = kind.__module__ == "__main__" or (file is not None and is_user_file(file))
    return own or any((base.__module__, base.__name__) in NAMESPACES for base in kind.__mro__)


def describe_data(value: Any) -> str:
    """Describe a value that is data; empty for a module, function, class or tensor, and for containers of these."""
    if isinstance(value, CONTAINERS):
        leaves = entries_of(value)
        data = not leaves or any(isinstance(x, Tensor) or describe_data(x) for x in leaves[:MAX_ENTRIES])
        return display_text(value) if data else ""
    return display_text(value) if isinstance(value, (*PLAIN_TYPES, HostScalar)) else untracked_description(value)


def entries_of(container: Any) -> list:
    """Return the entries of a container; keys, then values, of a dict."""
    return [*container, *container.values()] if isinstance(container, dict) else [*container]


def display_text(value: Any) -> str:
    """Format a value for the user, on one line."""
    if isinstance(value, CONTAINERS) and not printable(value):
        return f"{type(value).__name__} of {len(value):,}"
    if not isinstance(value, (*PLAIN_TYPES, *CONTAINERS, HostScalar)):
        return type(value).__name__
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def printable(value: Any, level: int = MAX_LEVELS) -> bool:
    if isinstance(value, CONTAINERS):
        return level > 0 and len(value) <= 20 and all([printable(x, level - 1) for x in entries_of(value)])
    return isinstance(value, PLAIN_TYPES)


# ---- what the code of a build reads ----------------------------------------------------------------------------------


class UntrackedRead(NamedTuple):
    """State that build read and that a plan does not follow. what: a description of the value."""

    name: str
    what: str
    where: Where | None


class Variable:
    """A global, or a variable of an enclosing function, that named a tensor when a build read it. namespace: its
    dict, or its closure cell.
    """

    __slots__ = "name", "namespace"

    def __init__(self, name: str, namespace: Any):
        self.name, self.namespace = name, namespace

    def value_now(self) -> Any:
        """Return the object that the variable names now, or None."""
        if isinstance(self.namespace, dict):
            return self.namespace.get(self.name)
        try:
            return self.namespace.cell_contents
        except ValueError:
            return None


Variables = dict[tuple[int, str], Variable]  # key: id of the space, and the name


class ElementsRead:
    """Elements of a tensor that a build has read, for example by `item()`: they are constants of its plan."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def snapshot(self) -> Any:
        """Return a snapshot that compares equal while the elements do; for a large tensor, their hash."""
        array = to_host(self.tensor.array)
        if small_array(array):
            return snapshot(array)
        elements = namespace().ascontiguousarray(array).view("uint8")
        return array.dtype.str, array.shape, hashlib.blake2b(elements.data).digest()

    def __str__(self) -> str:
        array = self.tensor.array
        return str(array.item()) if array.size == 1 else str(self.tensor.spec)


class CodeNames(NamedTuple):
    """Names that a code object and nested ones read, with locations: globals, enclosing variables, and attributes.

    stored, set_attributes: the globals and enclosing variables, and the attributes, that this code writes.
    """

    globals: dict[str, Where]
    closure_vars: dict[str, Where]
    attributes: dict[str, Where]
    stored: dict[str, Where]
    set_attributes: dict[str, Where]


INSTRUCTIONS = {  # name of an instruction -> the field of CodeNames that its name belongs to
    **dict.fromkeys(("LOAD_GLOBAL", "LOAD_NAME"), "globals"),
    **dict.fromkeys(("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"), "closure_vars"),
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"), "attributes"),
    **dict.fromkeys(("STORE_GLOBAL", "STORE_DEREF"), "stored"),
    "STORE_ATTR": "set_attributes",
}


@functools.lru_cache(maxsize=4_096)
def names_in_code(code: CodeType, skipped: frozenset[CodeType] = frozenset()) -> CodeNames:
    found = CodeNames({}, {}, {}, {}, {})
    for step in dis.get_instructions(code):
        if step.opname in INSTRUCTIONS:
            getattr(found, INSTRUCTIONS[step.opname]).setdefault(step.argval, (code, step.offset))
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner not in skipped:
            found = CodeNames(*[{**theirs, **own} for theirs, own in zip(names_in_code(inner, skipped), found)])
    return found


def is_constant(name: str) -> bool:
    """True for names in capitals, which are constants by convention, and for Python's own, such as `__name__`."""
    return name.isupper() or name[:2] == "__"


class BuildReads:
    """The Python state that a build read.

    untracked: name -> state that its plan does not follow.  variables: names of tensors, which the plan follows.
    attributes: the names of all attributes.  named, named_attributes: all globals and enclosing variables, and
    attributes, also those that it only writes.  modules: id -> (name, module) of globals and enclosing variables that
    are or contain modules: their attributes and tensors can be read without a call.
    """

    def __init__(self) -> None:
        self.untracked: dict[str, UntrackedRead] = {}
        self.variables: Variables = {}
        self.named: Variables = {}
        self.attributes: set[str] = set()
        self.named_attributes: set[str] = set()
        self.modules: dict[int, tuple[str, Module]] = {}

    def add_modules(self, name: str, value: Any) -> None:
        """Add the modules that a value is or contains."""
        for module in modules_in(value, self.modules):
            self.modules.setdefault(id(module), (name, module))

    def add_functions(
        self, roots: Iterable[tuple[Any, type | None]], skipped: frozenset[CodeType], follow_closures: bool
    ) -> None:
        """Add the Python state that the user's functions read.

        roots: (function, the class whose method it is). Visits the functions and methods that these name too, except
        those with the code objects in `skipped`. follow_closures: True if variables of enclosing functions are followed
        by their contents, like those that name tensors.
        """
        stack, seen = list(roots), set()
        while stack:
            function, kind = stack.pop()
            if isinstance(function, functools.partial):
                function = function.func
            function = getattr(function, "__func__", function)
            code = getattr(function, "__code__", None)
            if not isinstance(code, CodeType) or code in skipped or not is_user_file(code.co_filename):
                continue
            if (function, kind) in seen:
                continue
            seen.add((function, kind))
            reads = names_in_code(code, skipped)
            self.attributes.update(reads.attributes)
            self.named_attributes.update(reads.attributes, reads.set_attributes)
            space, cells = function.__globals__, dict(zip(code.co_freevars, function.__closure__ or ()))
            values = [(Variable(name, space), where) for name, where in reads.globals.items() if name in space]
            names = [name for name in cells if name in reads.closure_vars]
            values += [(Variable(name, cells[name]), reads.closure_vars[name]) for name in names]
            stored = [Variable(name, cells.get(name, space)) for name in reads.stored]
            for variable in (*stored, *[variable for variable, _ in values]):
                self.named[id(variable.namespace), variable.name] = variable
            for variable, where in values:
                # variables that the function itself sets, such as a counter, change at each call only in eager mode
                follow = follow_closures and variable.name not in reads.stored
                stack += self.add_variable(variable, where, follow)
            for name in reads.attributes if kind is not None else ():
                method = inspect.getattr_static(kind, name, None)
                method = method.fget if isinstance(method, property) else method
                stack.append((method, kind))

    def add_variable(self, variable: Variable, where: Where, follow: bool) -> list[tuple[Any, type | None]]:
        """Add a variable; return the function that it names, if it does. follow: True to follow an enclosing variable
        by its contents.
        """
        name, value = variable.name, variable.value_now()
        self.add_modules(name, value)
        inside = follow and not isinstance(variable.namespace, dict) and fully_tracked(value)
        settings = fields_of(value) is not None and fully_tracked(value)
        if inside or settings or isinstance(value, Tensor) or small_array(value):
            self.variables[id(variable.namespace), name] = variable
        elif isinstance(value, FUNCTIONS):
            return [(value, type(value.__self__) if isinstance(value, MethodType) else None)]
        elif not is_constant(name) and (what := describe_data(value)):
            self.untracked.setdefault(name, UntrackedRead(name, what, where))
        return []

    def add_hook(self, hook: Any) -> None:
        """Add an object that is a hook or whose method is one: its attributes can change without a new plan."""
        holder = getattr(hook, "__self__", None) if isinstance(hook, FunctionType | MethodType) else hook
        if getattr(holder, "__dict__", None) and (what := untracked_description(holder)):
            name = f"a hook, {getattr(hook, '__qualname__', type(hook).__name__)}"
            self.untracked.setdefault(name, UntrackedRead(name, what, None))

    def untracked_reads(self, untracked_attributes: dict[tuple[str, str], str]) -> list[UntrackedRead]:
        """Return the state that the plan does not follow. untracked_attributes: (owner, name) -> a description, for
        attributes that are not part of the key by contents.
        """
        own = [(f"{owner}.{name}", name, what) for (owner, name), what in untracked_attributes.items()]
        own += [(name, name, what) for name, what in LEARNING_RATE_ATTRIBUTES.items()]
        mine = [UntrackedRead(path, what, None) for path, name, what in own if name in self.attributes]
        return [*self.untracked.values(), *mine]


def find_reads(
    root: Any,
    modules: Iterable[Any],
    later: Iterable[Any] = (),
    follow_closures: bool = False,
    holder: Any = None,
    tensors: Iterable[Tensor] = (),
) -> BuildReads:
    """Find the Python state that a build read. root: (function, class). modules: the called ones. later: functions that
    run after each call.

    holder: the object whose method is the root. Functions that are attributes of the holder or of a module count as
    called. tensors: concrete ones that build used, whose hooks ran.
    """
    called, reads = list(modules), BuildReads()
    attributes = [item for owner in (holder, *called) for item in getattr(owner, "__dict__", {}).items()]
    registered = [GLOBAL_HOOKS.registered(), *map(functions_on, tensors), *map(hooks_of, called)]
    hooks = [hook for some in registered for hook, _ in some]
    roots = [root, *[(value, None) for _, value in attributes if isinstance(value, FunctionType | functools.partial)]]
    roots += [(hook, None) if isinstance(hook, FUNCTIONS) else (type(hook).__call__, type(hook)) for hook in hooks]
    kinds: Iterable[Any] = dict.fromkeys(map(type, called))
    roots += [(kind.forward, kind) for kind in kinds]
    skipped = frozenset(function.__code__ for function in later if hasattr(function, "__code__"))
    reads.add_functions(roots, skipped, follow_closures)
    for name, value in attributes:
        if isinstance(value, CONTAINERS):
            reads.add_modules(name, value)
    for hook in hooks:
        reads.add_hook(hook)
    return reads
