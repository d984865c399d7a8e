"""Events of job functions: see `core/base/events.py`. Read next: `stream.py` and `../function.py`, which emit them."""

from __future__ import annotations

from typing import Any, NamedTuple


class JobCalled(NamedTuple):
    """A job function is called. Emitted in the caller's thread before the step is submitted; not for steps of a Run."""

    job: Any
    rank: int = 0


class JobStepped(NamedTuple):
    """A step of a job has succeeded. Emitted on the worker, before the step's callback, in the order of the steps.

    job: the job function; names are not unique.  name: name of the job.  number: index of this call of the job, from 1.
    owner: the Run that submitted it, or None.  result: result of the call.  record: its times (`records.Record`).
    """

    job: Any
    name: str
    number: int
    owner: Any
    result: Any
    record: Any
    rank: int = 0
