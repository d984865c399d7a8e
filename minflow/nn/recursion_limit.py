"""Modules nested thousands of levels deep: limits of the depth, and Python's recursion limit while they run.

Python stops at 1,000 nested calls, which is 200 modules. For a deeper call the limit is raised in steps while it runs,
as far as the stack of the thread allows. Python 3.12 and 3.13 also limit calls through C, which cannot be raised: of
10,000 (1,500 in 3.12.1), a module called with one argument takes 3, others take 5. Recognizes modules by their
attributes. Read next: `module.py`.
"""

from __future__ import annotations

import platform
import sys
import threading
from contextvars import ContextVar
from types import FrameType
from typing import Any

from ..core.base.errors import NestingError, cut
from ..core.base.interrupts import ContextVarScope
from ..core.base.locks import new_lock
from ..core.ir import where_text
from ..core.mode import MODE, using
from ..core.source_location import MODULE_CALL, caller

CHECK_EVERY = 250  # characters of a scope (at least two for each module) between two checks of the depth
FREE_CALLS = 2_000  # nested calls that are free after a check: 16 for each of the modules that fit into a step
BYTES_PER_MODULE = 3_500  # bytes of the thread's stack per nested module; 1,000 to 2,000 were measured
SHOWN_LEVELS = 60  # nesting depth that texts and pictures show; deeper modules are only counted

ACTIVE_LIMITS: list[int] = []  # the limits that running calls asked for
ORIGINAL_LIMIT = [0]  # the limit while that list is empty
LOCK = new_lock()


def call_deeper(module: Any, scope: str, args: tuple, kwargs: dict) -> Any:
    """Call a module with enough stack for its submodules. Endless recursion raises before the stack overflows."""
    depth, modules = depth_of(sys._getframe(1))
    most = stack_size() // BYTES_PER_MODULE
    where = caller(3)
    if modules > most:
        what = f"is called inside {modules:,} other modules, and the stack of this thread takes {most:,}"
        hint = "stop a module that calls itself; threading.stack_size(64 * 2**20) before the thread starts"
        values, place = {"scope": cut(scope, 120)}, f"called at {where_text(where)}"
        raise NestingError(f"{type(module).__name__} {what}", values=values, where=place, hint=hint)
    limit = 3 * depth + FREE_CALLS  # a call through C counts, too
    change_limit(ACTIVE_LIMITS.append, limit)
    try:
        with using(MODE.get().replace(recursion_check_len=len(scope) + CHECK_EVERY, entered=where)):
            return module(*args, **kwargs)
    except RecursionError as error:
        levels = 0 if isinstance(error, NestingError) else c_recursion_depth(error)
        if not levels:
            raise
        what = f"is called inside {levels:,} other modules, deeper than Python {platform.python_version()} goes"
        hint = "stop a module that calls itself; a Python without a limit for calls through C, 3.11 or 3.14"
        values, place = {"scope": cut(scope, 120)}, f"called at {where_text(where)}"
        raise NestingError(f"{type(module).__name__} {what}", values=values, where=place, hint=hint) from None
    finally:
        change_limit(ACTIVE_LIMITS.remove, limit)


def c_recursion_depth(error: RecursionError) -> int:
    """Return the number of nested modules at which Python's limit of C calls raised this error; 0 for other errors."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    depth, modules = depth_of(None if trace is None else trace.tb_frame)
    return modules if sys.version_info >= (3, 12) and depth < sys.getrecursionlimit() - 100 else 0


def depth_of(frame: FrameType | None) -> tuple[int, int]:
    """(frames up to this one, those of them that call modules)."""
    depth = modules = 0
    while frame is not None:
        depth += 1
        modules += frame.f_code in MODULE_CALL
        frame = frame.f_back
    return depth, modules


def change_limit(how: Any, limit: int) -> None:
    with LOCK:
        if not ACTIVE_LIMITS:
            ORIGINAL_LIMIT[0] = sys.getrecursionlimit()
        how(limit)
        sys.setrecursionlimit(max(ORIGINAL_LIMIT[0], *ACTIVE_LIMITS) if ACTIVE_LIMITS else ORIGINAL_LIMIT[0])


def stack_size() -> int:
    """Return the stack size of this thread in bytes, as far as it can be determined, at most 16 MiB."""
    main = threading.current_thread() is threading.main_thread()
    size = 0 if main else threading.stack_size()
    if size:
        threading.stack_size(size)  # reading it has reset it to the default
    if not size:
        try:
            import resource

            size = resource.getrlimit(resource.RLIMIT_STACK)[0]
            size = 2**23 if size == resource.RLIM_INFINITY else size
        except ImportError:  # Windows
            size = 2**20
    return min(size, 2**24)


WALKED_MODULES: ContextVar[frozenset] = ContextVar("walked", default=frozenset())  # (walk, id of module) in progress


class walking(ContextVarScope):
    """While active, a walk such as "train" is going through the modules inside this one.

    An overridden method is called for each submodule of its class; without this mark, a module that contains itself
    would recurse endlessly.
    """

    variable = WALKED_MODULES

    def __init__(self, walk: str, module: Any):
        super().__init__()
        self.key = walk, id(module)

    def value(self) -> frozenset:
        return WALKED_MODULES.get() | {self.key}


def is_walked(walk: str, module: Any) -> bool:
    """True if this walk is in progress inside the module."""
    return (walk, id(module)) in WALKED_MODULES.get()


def levels_below(module: Any) -> int:
    """Number of levels of modules below a module. Shared modules count where they are first visited."""
    deepest, stack, seen = 0, [(0, module)], set()
    while stack:
        level, part = stack.pop()
        if part is not None and id(part) not in seen:
            seen.add(id(part))
            deepest = max(deepest, level)
            stack += [(level + 1, child) for child in part.__dict__.get("_modules", {}).values()]
    return deepest
