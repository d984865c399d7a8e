"""Trace the build of a graph, or a job's function, once more with inputs of other sizes.

No plan is made and inputs have no memory. Side effects are undone (attributes, containers, random generators), and
prints and warnings suppressed. Read next: `../writing.py`.
"""

from __future__ import annotations

import builtins
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

import numpy as np

from ...compiler.executor import BUILD_LOCK, INSIDE, collector_waiting
from ...compiler.plan_cache import PlanCache
from ...core.backend import namespace
from ...core.base.errors import GraphError
from ...core.context import current_context
from ...core.mode import MODE, using
from ...core.random import default_generator
from ...core.source_location import NOTICES, here
from ...core.spec import Spec, default_dtype
from ...core.tensor import Tensor
from ...job.build import JobBuild
from ...job.function import Job
from ...nn.graph.build import Build, Observer
from ...nn.graph.compiled import CompiledGraph
from ...nn.graph.key import differences


def check_unchanged(name: str, plans: PlanCache, compiled: Any, dtype: Any = None) -> None:
    """Raise GraphError if the next call would recompile the graph or job, because it has changed since its last call.
    dtype: the default dtype of that call.
    """
    with current_context().plan_lock:
        changed = compiled.stale()
        plans.look()
        changed = [*changed, *differences(compiled.fingerprint, plans.fingerprint)]
    if dtype is not None and dtype is not default_dtype():
        changed.append(("default dtype", str(dtype), str(default_dtype())))
    if changed:
        values = {what: f"{old} at its last call, {new} now" for what, old, new in changed}
        raise GraphError(
            f"{name} has changed since its last call",
            values=values,
            where=here(),
            hint="call it once more, then save it",
        )


def retrace_graph(graph: Any, compiled: CompiledGraph, specs: Sequence[Spec]) -> Build:
    """Trace a graph's build with inputs of these specs. compiled: the plan whose mode and argument structure are used.
    Raises the errors of build.
    """
    inputs = [without_memory(whole_batch(spec, compiled.steps)) for spec in specs]  # build receives one part of each
    with current_context().plan_lock, BUILD_LOCK, collector_waiting():
        build = Build(graph, compiled.build.tree, inputs)
        build.observer = Observer()
        with undoing_side_effects([graph, *[module for _, module in graph.all_modules()]]):
            copy_context().run(run_in_mode, build.run, MODE.get().replace(grad=compiled.mode[0]))
        return build


def retrace_job(job: Job, specs: Sequence[Spec]) -> tuple[JobBuild, Any]:
    """Trace a job's function with inputs of these specs. Returns its build and the Part. The session is unchanged."""
    with current_context().plan_lock, BUILD_LOCK, collector_waiting():
        build = JobBuild(job, job.session, [list(specs)])
        with undoing_side_effects(list(job.modules.values())):
            part = copy_context().run(run_in_mode, build.run, MODE.get(), f"the job function {job.name}")
            build.roll_back()
        return build, part


def run_in_mode(run: Callable[[], Any], mode: Any, inside: str = "") -> Any:
    INSIDE.set(inside)
    with using(mode):
        return run()


def whole_batch(spec: Spec, parts: int) -> Spec:
    """Spec of an input that a call splits into `parts` parts."""
    return spec if parts == 1 else spec.replace(shape=(spec.shape[0] * parts, *spec.shape[1:]))


def without_memory(spec: Spec) -> Tensor:
    """A tensor of this spec that stores a single zero."""
    xp = namespace(spec.device)
    return Tensor(xp.broadcast_to(xp.zeros((), spec.np), spec.shape), spec)


# ---- side effects of a build -----------------------------------------------------------------------------------------


@contextmanager
def undoing_side_effects(owners: Sequence[Any]) -> Iterator[None]:
    """Context manager: undo changes to these objects and to random generators, and suppress output."""
    contents: dict[int, tuple[Any, Any]] = {}
    attributes = [(owner.__dict__, dict(owner.__dict__)) for owner in owners]
    for _, values in attributes:
        for value in values.values():
            record_contents(value, contents)
    numbers = random.getstate(), np.random.get_state()
    drawn = default_generator.seed_, default_generator.key, default_generator.counter
    notices, shown, thread = NOTICES.on, builtins.print, threading.get_ident()

    def silent(*args: Any, **options: Any) -> None:
        if threading.get_ident() != thread:
            shown(*args, **options)

    try:
        NOTICES.on, builtins.print = False, silent
        yield
    finally:
        builtins.print, NOTICES.on = shown, notices
        random.setstate(numbers[0])
        np.random.set_state(numbers[1])
        default_generator.seed_, default_generator.key, default_generator.counter = drawn
        for now, before in attributes:
            for name in now.keys() - before.keys():
                del now[name]
            now.update(before)
        for box, before in contents.values():
            if content_ids(box) != content_ids(before):
                box.clear()
                (box.update if isinstance(box, dict | set) else box.extend)(before)


def record_contents(value: Any, contents: dict[int, tuple[Any, Any]]) -> None:
    """Record the contents of nested lists, dicts and sets."""
    if isinstance(value, tuple):
        for x in value:
            record_contents(x, contents)
    elif type(value) in (list, dict, set, deque) and id(value) not in contents:
        contents[id(value)] = value, value.copy()
        for x in value.values() if isinstance(value, dict) else value:
            record_contents(x, contents)


def content_ids(box: Any) -> list:
    return [*map(id, box), *map(id, box.values())] if isinstance(box, dict) else list(map(id, box))
