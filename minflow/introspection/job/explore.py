"""A job for the explorer: its last plan; given inputs, a step that is recorded call by call and then undone. Read next:
`../../job/function.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.base.errors import JobError
from ...core.source_location import here
from ...job.function import Job
from ...job.queue.stream import current_stream
from ..graph.explore.explorer_model import ExplorerModel, fused_note


def job_explorer_model(job: Job, args: tuple = (), kwargs: dict | None = None, step: bool = False) -> ExplorerModel:
    """The ExplorerModel of a job. step: record a step even without inputs.

    Raises JobError if the job was never compiled and no inputs are given.
    """
    current_stream().sync()
    if not args and not kwargs and not step:
        if job.compiled is None:
            hint = f"call it once, or {job.name}.compile(), or give the inputs: explore({job.name}, ...)"
            what = f"job {job.name} has not been called yet, so there is nothing to explore"
            raise JobError(what, where=here(), hint=hint)
        return explorer_model_of(job, job.compiled)
    bound = job.signature.pair_arguments(args, kwargs or {})
    columns = job.own_parts([job.signature.copy_argument(leaf, value, job.devices) for leaf, value in bound])
    plan = job.plan_for(columns)
    arrays = [array for column in columns for part in column for array in (part if isinstance(part, list) else [part])]
    arrays = plan.local_parts(arrays)
    model = explorer_model_of(job, plan)
    generators = [generator for generator, _ in plan.draws]
    model.record_step(arrays, generators, before=lambda: plan.drawn.update(plan.capture_values()))
    return model


def explorer_model_of(job: Job, plan: Any) -> ExplorerModel:
    kinds = {name: "parameter" if v.trainable else "buffer" for name, v in job.session.variables.items()}
    kinds |= {name: "optimizer state" for name in job.session.slots}
    return ExplorerModel(
        f"{job.kind} job {job.name}",
        plan.unfused,
        {},
        kinds,
        lambda name, ran=False: None,
        fused_note(plan),
        by_reader=True,
    )
