"""A job for the explorer: its last plan, or with inputs a step recorded call by call and put back. Read next:
`../function.py`."""

from __future__ import annotations

from typing import Any

from ...compiler.executor import LOCK, run
from ...core.base.errors import JobError
from ...core.base.interrupts import uninterrupted
from ...core.random import default_generator
from ...core.where import here
from ...nn.graph.compare.eager_check import put_back
from ...nn.graph.explore.subject import Subject
from ..function import Job
from ..stream import STREAM


def job_subject(job: Job, args: tuple = (), kwargs: dict | None = None, step: bool = False) -> Subject:
    """The Subject of a job. step: record one without inputs too. Raises JobError if it was never compiled and no inputs
    are given."""
    STREAM.sync()
    if not args and not kwargs and not step:
        if job.compiled is None:
            raise JobError(f"job {job.name} has not been called yet, so there is nothing to explore", where=here(),
                           hint=f"call it once, or {job.name}.compile(), or give the inputs: explore({job.name}, ...)")  # fmt: skip
        return subject_of(job, job.compiled)
    given = [job.signature.copied(argument, value, job.devices) for argument, value in job.signature.bound(args, kwargs or {})]
    columns = [list(column) for column in zip(*given)] if given else [[] for _ in range(job.devices)]
    plan = job.plan_for(columns)
    arrays = [array for column in columns for part in column for array in (part if isinstance(part, list) else [part])]
    subject = subject_of(job, plan)
    held = [(s.array, s.array.copy()) for s in plan.graph.states]
    drawn = [(g, g.get_state()) for g in {*[g for g, _ in plan.draws], default_generator}]
    subject.starts(arrays)

    def timed() -> None:
        try:
            with LOCK, uninterrupted():
                plan.drawn.update(plan.submitted())
                run(plan.plan, arrays, True)
        finally:
            put_back(held, drawn)

    cold = not plan.plan.runs
    try:
        with LOCK, uninterrupted():
            plan.drawn.update(plan.submitted())
            run(plan.plan, arrays, watch=subject.watcher(plan.part))
    finally:
        put_back(held, drawn)
    subject.times_from(timed, cold)
    return subject


def subject_of(job: Job, plan: Any) -> Subject:
    kinds = {name: "parameter" if v.trainable else "buffer" for name, v in job.session.variables.items()}
    kinds |= {name: "optimizer state" for name in job.session.slots}
    return Subject(f"{job.kind} job {job.name}", [plan.part], {}, kinds, lambda name, ran=False: None, by_reader=True)
