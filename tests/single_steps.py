"""The steps of one op, made and run by themselves."""

from collections.abc import Callable, Sequence

import numpy as np

from minflow.machine.program import ALIGN, Program
from minflow.machine.steps import Step, prepared
from minflow.machine.threads import RECORDERS


def steps_of(builder: Callable, arrays: Sequence, outs: Sequence[np.ndarray], **attrs) -> list[Step] | None:
    """In memory of their own; None where the builder finds that it does not fit."""
    found = prepared(builder, arrays, outs, **attrs)
    if found is None:
        return None
    found.settle(np.empty(found.bytes + ALIGN, np.uint8))
    return found.steps


def run_now(steps: Sequence[Step]) -> None:
    """Each step, by several threads where it has several chunks."""
    recorder = RECORDERS[0] if RECORDERS else None
    recorder.run(steps) if recorder else Program(steps)()
