"""A compiled job, and how one step of it runs on the worker. Read next: `../compiler/plan_cache.py`,
`queue/stream.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ..compiler.executor import INSIDE, run
from ..compiler.passes import PASSES
from ..compiler.plan_cache import Compiled, Part
from ..core.backend import Array
from ..core.base.placement import broadcast, split
from ..core.context import current_context, world
from ..core.functionalize import external_users_of
from ..core.host import HostArray
from ..core.messages.training_warnings import check_results
from ..core.ops.global_tensors import local_part
from ..core.source_location import NOTICES
from ..core.spec import DEFAULT_DEVICES, Spec, cpu, spec_of
from ..nn.graph.python_state import find_reads
from ..nn.graph.side_effects import warn_of_reads
from ..platforms.targets import choose_target
from .build import JobBuild
from .queue.device_arguments import DeviceArguments
from .queue.step import Stopped


class CompiledJob(Compiled):
    """A job compiled for one set of input specs. part: its passes and plan, for inspection."""

    def __init__(self, build: JobBuild, part: Part, seconds: float):
        super().__init__([part], PASSES, seconds, choose_target([part.graph], build.job.config.bits))
        self.part = self.parts[0]
        self.plan, self.graph = self.part.plan, self.part.graph
        self.job, self.training = build.job, build.training
        self.steps = build.session.steps  # this session's: after a clear the count restarts
        self.value, self.positions, self.watches = build.value, build.positions, build.watch_positions
        self.lengths = build.lengths
        self.trace, self.drawn = build.trace, build.trace.drawn
        self.mirror, self.inputs = build.mirror, [source.out_specs[0] for source in part.graph.inputs]
        self.whole_inputs = all([spec.placement is None for spec in self.inputs])
        variables = (*build.session.variables.values(), *build.session.slots.values())
        own = {id(variable.tensor) for variable in variables}
        tensors = [t for t in self.trace.keepalive if id(t) not in own]
        self.captured = [(t, t.array, t._label or "captured") for t in tensors]
        self.reads = frozenset([external_users_of(t) for t in tensors if not external_users_of(t).lent])
        for outside in self.reads:
            outside.order = build.session.order
        self.draws = [(generator, entry[0]) for generator, entry in self.trace.draws.items()]
        self.uses = frozenset((*build.used, *build.named))
        schedule = getattr(build.optimizer[0], "lr_scheduler", None) if build.optimizer else None
        self.rate = getattr(schedule, "rate", None)  # steps done -> learning rate of the next step, or None

    def capture_values(self, waits: bool = False) -> list[tuple[Any, Array]]:
        """Values that are fixed on the caller's thread when a step is submitted: the counters of its random numbers,
        and copies of arrays that share memory with NumPy. waits: True if the caller waits for the step, so that no copy
        is needed.
        """
        parts = 1 if self.mirror is None else len(self.mirror.order)
        drawn = [(generator, generator.draw(count * parts)) for generator, count in self.draws]
        if self.mirror is not None:
            for (_, first), (_, count) in zip(drawn, self.draws):
                first[1] += count * self.mirror.order.index(current_context().rank)  # after those of ranks before
        return drawn + [(key, array if waits else array.copy()) for key, array in self.trace.lent.items()]

    def stale(self) -> list[tuple[str, str, str]]:
        """Captured tensors that have changed since compilation: they have another storage, or now share memory with
        NumPy.
        """
        found = [(name, "a tensor", "another storage") for t, array, name in self.captured if t.array is not array]
        lent = any(outside.lent for outside in self.reads)
        return found + [("captured", "its own memory", "memory that NumPy shares")] * lent

    def rates_of(self, done: int) -> Callable[[], list[float]]:
        return lambda: [] if self.rate is None else [self.rate(done)]

    def run(self, arrays: list[Array] | DeviceArguments, draws: list) -> tuple[Any, list[list[Array]]]:
        """Run one step on the worker. Returns the results of the call and the watched values."""
        with current_context().plan_lock:
            self.drawn.update(draws)
            results = arrays.run(self.plan) if isinstance(arrays, DeviceArguments) else run(self.plan, arrays)
            for counter in self.plan.version_counters:
                counter.version += 1
            if self.training:
                steps = self.steps
                if NOTICES.on:
                    done = steps.get(self.job.name, 0)
                    check_results(
                        f"job {self.job.name}",
                        results,
                        1,
                        done + 1,
                        self.rates_of(done),
                        (self.job.function.__code__, 0),
                    )
                steps[self.job.name] = steps.get(self.job.name, 0) + 1
        parts = [[array] for array in results] if self.mirror is None else self.results_of_ranks(results)
        for i, (length, axis) in self.lengths.items():
            parts[i] = [x[(slice(None),) * axis + (slice(n.item()),)] for x, n in zip(parts[i], parts[length])]
        columns = [[array for i in column for array in parts[i]] for column in self.positions]
        watched = [[array for i in column for array in parts[i]] for _, column in self.watches]
        return self.job.signature.result_of(self.value, iter(columns)), watched

    def results_of_ranks(self, results: list[HostArray]) -> list[list[HostArray]]:
        """For each result the arrays of all ranks, which may differ in shape."""
        comm, order = world(), self.mirror.order  # type: ignore[union-attr]  # in the mirrored view
        found = comm.exchange(comm.fingerprint(f"job {self.job.name}"), [array.copy() for array in results])
        return [[array.copy() for array in column] for column in zip(*[found[rank] for rank in order])]

    def local_parts(self, arrays: list[HostArray]) -> list[HostArray]:
        """The parts of arguments that this rank has."""
        if self.whole_inputs:
            return arrays
        return [x if spec.placement is None else local_part(x, spec) for x, spec in zip(arrays, self.inputs)]

    def arguments(self, arrays: list[HostArray]) -> list[HostArray] | DeviceArguments:
        """The arguments of a step, which begin to be copied if its plan runs on a GPU."""
        if self.plan.device is cpu:
            return arrays
        return DeviceArguments(self.plan.backend, arrays, [source.out_specs[0].device for source in self.graph.inputs])


# ---- a new plan ------------------------------------------------------------------------------------------------------


def compile_job(job: Any, inputs: tuple, by_device: list[list[Any]], owner: Any = None) -> CompiledJob:
    """Trace and compile for these arrays, and add the plan to the job's plans under the key `inputs`. If it fails, the
    session is unchanged. A run (`owner`) that was stopped creates no more variables.
    """
    if owner is not None and owner.is_ending():
        raise Stopped
    device = cpu if job.config.place is None else job.config.place.device

    ranks = None if job.mirrored else job.together

    def placed(array: Any, leaf: Any) -> Spec:
        axis = leaf.kind.batch_axis
        sbp = None if ranks is None else (broadcast if axis is None else split(axis % array.ndim),)
        return spec_of(array).replace(device=device, placement=ranks, sbp=sbp)

    specs = [
        [
            [placed(array, leaf) for array in part] if isinstance(part, list) else placed(part, leaf)
            for part, leaf in zip(column, job.leaves)
        ]
        for column in by_device
    ]
    build, plan = copy_context().run(build_in_context, job, specs)  # so that an interrupt cannot leave a mode set
    job.session.jobs.setdefault(job.name, job)  # the session may have been cleared since the job was defined
    if build.replaced:
        for other in job.session.live_jobs():
            for key, old in list(other.plans.items()):
                if not old.uses.isdisjoint(build.replaced):
                    del other.plans[key]
    plans, known = job.plans, len(job.modules)
    before = plans.fingerprint
    handlers = [watch.handler for watch in (*build.watched, *build.watched_gradients)]
    reads = find_reads((job.function, None), build.trace.modules.values(), handlers, follow_closures=True)
    read = [module for called in build.trace.modules.values() for module in called.modules()]
    job.modules.update({id(module): module for module in (*read, *[module for _, module in reads.modules.values()])})
    job.variables = {**job.variables, **reads.variables}
    job.numbers = {**job.numbers, **{id(t): ("", t) for t in build.trace.tensors_read()}}
    plans.look()  # after the build, which may have called modules or set their attributes
    if len(job.modules) == known and plans.fingerprint is not before:
        entries = plans.fingerprint.entries.items()
        first = {(name, f"variable {space}") for space, name in job.variables} - before.entries.keys()
        job.volatile |= {place for place, value in entries if before.entries.get(place) != value} - first
        plans.look()
    plans.add(inputs, plan)
    modules = list(job.modules.values())  # the fingerprint has their indices, messages name their classes
    untracked = {
        (type(modules[int(number)]).__name__, name): what
        for (number, name), what in plans.fingerprint.untracked.items()
    }
    warn_of_reads(job.name, reads.untracked_reads(untracked), job.noticed, job.function.__code__)
    if job.session.loading is not None:  # a checkpoint was loaded: report names that were not used
        job.session.loading.job_compiled(job)
    return plan


def build_in_context(job: Any, specs: list[list[Any]]) -> tuple[JobBuild, CompiledJob]:
    INSIDE.set(f"the job function {job.name}")
    DEFAULT_DEVICES.set(() if job.config.place is None else (job.config.place.device,))
    start = time.perf_counter()
    build = JobBuild(job, job.session, specs)
    part = build.run()
    return build, CompiledJob(build, part, time.perf_counter() - start)
