"""Trace the build of a graph, or a job's function, once more with inputs of other sizes.

No plan is made and inputs have no memory. Side effects are undone (attributes, containers, random generators), and
prints and warnings suppressed. Read next: `writing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from ..compiler.executor import BUILD_LOCK, INSIDE, collector_waiting
from ..compiler.plan_cache import PlanCache
from ..core.backend import namespace
from ..core.base.errors import GraphError
from ..core.context import current_context
from ..core.mode import MODE, using
from ..core.source_location import here
from ..core.spec import Spec, default_dtype
from ..core.tensor import Tensor
from ..job.build import JobBuild
from ..job.function import Job
from ..nn.graph.build import Build, Observer
from ..nn.graph.compiled import CompiledGraph
from ..nn.graph.key import differences
from ..nn.graph.undo import undoing_side_effects


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
        with undoing_side_effects([("self", graph), *graph.all_modules()]):
            copy_context().run(run_in_mode, build.run, MODE.get().replace(grad=compiled.mode[0]))
        return build


def retrace_job(job: Job, specs: Sequence[Spec]) -> tuple[JobBuild, Any]:
    """Trace a job's function with inputs of these specs. Returns its build and the Part. The session is unchanged."""
    with current_context().plan_lock, BUILD_LOCK, collector_waiting():
        build = JobBuild(job, job.session, [list(specs)])
        with undoing_side_effects([("", module) for module in job.modules.values()]):
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
