"""Side effects of build, which a plan does not repeat: print, writes to attributes, `random`, `time`.

Each is reported once. Also records the attributes written during build, for `messages.remove_symbolic_tensors` and for
the plan's key. Read next: `undo.py`, `build.py`.
"""

from __future__ import annotations

import builtins
import dis
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from ...core.ir import Where, where_text
from ...core.source_location import IS_MINFLOW_FILE, warn_at
from ...core.tensor import Tensor
from .python_state import UntrackedRead, changes_inside, display_text, is_user_file, snapshot

PLAIN_TYPES = (bool, int, float, str, type(None))
REGISTRIES = ("_parameters", "_buffers", "_modules")
# not the user's attributes
INTERNAL_ATTRIBUTES = {
    *REGISTRIES,
    "_non_persistent_buffers_set",
    "_module_hooks",
    "_scope_name",
    "_checkpointing",
    "_stage",
    "_stage_placement",
    "training",
}

HINTS = {
    "print": "return the tensor and print the result of the graph; graph.debug(1) shows the shapes while it is built",
    "random": "flow.rand() draws new numbers at each call; or draw before the call and pass a tensor to build",
    "time": "read the clock before and after the call of the graph",
    "attribute": "count outside build; or self.register_buffer(name, tensor), which each call updates",
    "reads": "give it to build as an argument; or hold numbers, strings, tensors and arrays of up to 64 KB in "
    "attributes of the graph or a module, also in lists and dicts: each call looks at those. A constant has a name in "
    "CAPITALS",
}
IS_DRAWN, IS_READ = (
    "is drawn while the graph is built, and stays the same at each call",
    "is read while the graph is built, not at each call",
)


def watched_functions() -> Iterator[tuple[Any, str, str, str]]:
    """(module, name of its function, kind, text); the first graph imports `random` and `np.random`."""
    import random

    yield builtins, "print", "print", "print() runs while the graph is built, not at each call"
    for name in ("random", "randint", "uniform", "choice", "gauss", "shuffle", "sample", "randrange"):
        yield random, name, "random", f"random.{name}() {IS_DRAWN}"
    for name in ("random", "rand", "randn", "randint", "uniform", "normal", "choice", "permutation", "shuffle"):
        yield np.random, name, "random", f"np.random.{name}() {IS_DRAWN}"
    for name in ("time", "perf_counter", "monotonic", "process_time"):
        for unit in ("", "_ns"):
            yield time, name + unit, "time", f"time.{name}{unit}() {IS_READ}"


class Notice(NamedTuple):
    """A side effect that happens during build but not at each call. kind: "print", "attribute", "random", "time" or
    "reads".
    """

    kind: str
    text: str
    where: Where | None


class AttributeRecord(NamedTuple):
    """Attributes of a module, or of the graph ("self"), before build. contents: those of its containers, with texts."""

    path: str
    owner: Any
    attributes: dict[str, Any]
    registries: dict[str, dict]
    contents: dict[str, tuple[Any, str]]


def record_attributes(path: str, owner: Any) -> AttributeRecord:
    own = owner.__dict__
    boxes = {
        name: (snapshot(value), display_text(value))
        for name, value in own.items()
        if changes_inside(value) and name not in INTERNAL_ATTRIBUTES and (path != "self" or name[:1] != "_")
    }
    return AttributeRecord(path, owner, dict(own), {name: dict(own[name]) for name in REGISTRIES if name in own}, boxes)


@contextmanager
def record_side_effects(build: Any) -> Iterator[None]:
    """Record side effects while build runs, and restore everything afterwards. Builds take turns (`BUILD_LOCK`).

    Only the user's own code on this thread is watched: libraries and other threads may read the clock.
    """
    thread, originals = threading.get_ident(), []
    space = getattr(type(build.graph).build, "__globals__", {})
    imported = {id(value): key for key, value in space.items()}

    def note(kind: str, text: str, where: Where | None) -> None:
        if not any(n.kind == kind for n in build.notices):
            build.notices.append(Notice(kind, text, where))

    def watch(owner: Any, name: str, kind: str, text: str) -> None:
        original = getattr(owner, name)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if threading.get_ident() == thread and is_user_file(frame.f_code.co_filename):
                note(kind, text, (frame.f_code, frame.f_lasti))
            return original(*args, **kwargs)

        patched = [(owner.__dict__, name)]
        if id(original) in imported:  # `from time import time`
            patched.append((space, imported[id(original)]))
        for names, key in patched:
            originals.append((names, key, original))
            names[key] = wrapper

    def restore() -> None:
        while originals:
            names, key, original = originals[-1]
            names[key] = original
            originals.pop()

    build.before = [
        record_attributes("self", build.graph),
        *[record_attributes(path, module) for path, module in build.graph.all_modules()],
    ]
    drawn = random_state()
    try:
        try:
            for entry in watched_functions():
                watch(*entry)
            yield
        finally:
            restore()
    finally:
        restore()  # again, in case an interrupt stopped the first
    if random_state() != drawn:  # through a name that is not watched, such as `from random import random`
        note("random", f"a number of random or np.random {IS_DRAWN}", (type(build.graph).build.__code__, 0))
    for path, owner, name, old, new in (*attribute_changes(build), *container_changes(build)):
        build.volatile.add((path, name))
        if old and new:
            text = f"{path}.{name} goes from {old} to {new} while the graph is built, and not again at each call"
            note("attribute", text, line_of_write(build, owner, name))


def random_state() -> tuple:
    import random

    state: Any = np.random.get_state()
    _name, keys, position, *rest = state
    return random.getstate(), keys.tobytes(), position, *rest


def attribute_changes(build: Any) -> Iterator[tuple[str, Any, str, str, str]]:
    """Yield (path, owner, name, old, new) of every attribute that build set; old and new are empty except for numbers,
    strings and None, which an attribute that did not exist counts as.
    """
    for path, owner, attributes, *_ in build.before:
        for name, new in owner.__dict__.items():
            old = attributes.get(name)
            if name in INTERNAL_ATTRIBUTES or (path == "self" and name[:1] == "_") or isinstance(new, Tensor):
                continue
            if new is not old and not (type(new) is type(old) and isinstance(new, PLAIN_TYPES) and new == old):
                yield path, owner, name, *[repr(x) if isinstance(x, PLAIN_TYPES) else "" for x in (old, new)]


def container_changes(build: Any) -> Iterator[tuple[str, Any, str, str, str]]:
    """Yield (path, owner, name, old, new) of every container that build wrote into, except a dict or set that only
    gained entries: it is a cache, and the same at each call.
    """
    for before in build.before:
        for name, (old, text) in before.contents.items():
            value = before.attributes[name]
            if before.owner.__dict__.get(name) is not value or (new := snapshot(value)) == old:
                continue
            added = isinstance(value, dict) and new[1][: len(old[1])] == old[1]
            if not added and not (isinstance(value, set) and old[1] <= new[1]):
                yield before.path, before.owner, name, text, display_text(value)


def line_of_write(build: Any, owner: Any, name: str) -> Where:
    """Return the line where a method of the owner, or build, writes or at least uses `.name`; else that of build."""
    start = type(build.graph).build.__code__
    functions = [
        f for kind in type(owner).__mro__ for key, f in vars(kind).items() if key not in ("__init__", "__setattr__")
    ]
    codes = [getattr(function, "__code__", None) for function in (*functions, type(build.graph).build)]
    for opname in ("STORE_ATTR", "LOAD_ATTR"):  # a list that is appended to is only read
        for code in codes:
            if isinstance(code, CodeType) and not IS_MINFLOW_FILE[code.co_filename]:
                for step in dis.get_instructions(code):
                    if step.opname == opname and step.argval == name:
                        return code, step.offset
    return start, 0


def notices_of_reads(reads: list[UntrackedRead], noticed: set, what: str, code: CodeType) -> list[Notice]:
    """Make one notice of all state that a plan does not follow and that was not reported before. what, code: name and
    code of the function that was built.
    """
    new = [read for read in reads if read.name not in noticed]
    noticed.update(read.name for read in new)
    if not new:
        return []
    listed = ", ".join(f"{read.name} ({read.what})" for read in new[:6]) + (
        f" and {len(new) - 6} more" if len(new) > 6 else ""
    )
    text = f"{what} uses {listed} while it is built, and not again at each call: a later change is not seen"
    return [Notice("reads", text, next((read.where for read in new if read.where), (code, 0)))]


def warn_once(graph: Any, notice: Notice) -> None:
    """Warn at the user's line, once for each graph."""
    key = notice if notice.kind == "reads" else (notice.kind, notice.where)
    if key in graph._noticed:
        return
    graph._noticed.add(key)
    place = f"at {where_text(notice.where)}" if notice.where else ""
    warn_at(f"{graph.name}: {notice.text}", HINTS[notice.kind], {}, notice.where, place, f"{graph.name} {key}")


def warn_of_reads(job: str, reads: list[UntrackedRead], noticed: set, code: CodeType) -> None:
    """Warn about state that a job function reads and that its plan does not follow."""
    for notice in notices_of_reads(reads, noticed, "the function", code):
        hint = (
            "give it to the job as an argument; or flow.get_variable(...), which each step reads. A constant has a "
            "name in CAPITALS"
        )
        warn_at(
            f"job {job}: {notice.text}", hint, {}, notice.where, f"at {where_text(notice.where)}", f"job {job} {notice}"
        )
