"""Events of job functions, for whoever listens: see `core/base/events.py`. Read next: `stream.py`, which emits it."""

from __future__ import annotations

from typing import Any, NamedTuple


class JobStepped(NamedTuple):
    """The work of a job's step has ended well; heard on the worker, before the step's callback, in the order of the
    steps.

    job: the job function; others may have its name.  name: of the job.  number: of this call of the job, from 1.
    owner: the Run that submitted it, or None.  result: what the call gives.  record: its times (`stream.Record`).
    """

    job: Any
    name: str
    number: int
    owner: Any
    result: Any
    record: Any
