"""What eager calls: the steps of one op, which are kept for other arrays of the same shapes.

To make steps takes some 50 us, which is as long as a small operation; to write other addresses into their words takes
3. Which words those are is seen from the words: an address is no other number. Read next:
`platforms/compiled/kernels/nchw_conv.py`, `platforms/compiled/kernels/norm.py`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ....core.op import Op
from ....core.spec import spec_of
from .pointers import at
from .task_scheduler import ALIGN, Program, rounded
from .tasks import Builder, Room, Step
from .threads import RECORDERS

LITTLE, LARGE = 1 << 16, 32 << 20  # bytes of a room that is had at once, and of one that is kept
MOST = 1 << 10  # calls that are kept


class Kept(threading.local):
    """Of one thread. memory: a room for all its calls, one after the other.  calls: what is asked for -> a Call, or
    False where an op is left to NumPy.
    """

    def __init__(self) -> None:
        self.memory = np.empty(LITTLE, np.uint8)
        self.calls: dict[tuple, Any] = {}


KEPT = Kept()


class Call:
    """Steps, and where in their words the addresses of arrays stand. results: shape and dtype of each array that is
    written.  moves: of each array, words, which one of them, and bytes from where it begins.  memory: the room.
    """

    def __init__(self, steps: list[Step], arrays: Sequence, results: list[tuple], memory: np.ndarray):
        spans = [byte_bounds(a) if isinstance(a, np.ndarray) and a.size else (0, 0) for a in arrays]
        self.results, self.memory = results, memory
        self.moves = [
            [
                (step.words, int(i), int(step.words[i]) - at(a))
                for step in steps
                for i in np.flatnonzero((step.words >= first) & (step.words < end))
            ]
            for a, (first, end) in zip(arrays, spans)
        ]
        self.refused = [step.refused for step in steps if step.refused is not None]
        constant = [
            tuple([a for a in step.holds if not any(first <= at(a) < end for first, end in spans)]) for step in steps
        ]
        self.program = Program([step._replace(holds=holds) for step, holds in zip(steps, constant)])
        tables = [a for holds in constant for a in holds if a.dtype == np.int64]
        ends = sorted([span for span in spans if span[0] < span[1]])
        self.may_be_kept = (
            all([moves or a.flags.c_contiguous for a, moves in zip(arrays, self.moves) if isinstance(a, np.ndarray)])
            and all([end <= first for (_, end), (first, _) in itertools.pairwise(ends)])  # each address is in one array
            and not any([((t >= first) & (t < end)).any() for t in tables for first, end in ends])
        )

    def __call__(self, arrays: Sequence) -> bool:
        """False where a step refuses what an array holds."""
        for array, moves in zip(arrays, self.moves):
            if moves:
                place = at(array)
                for words, i, distance in moves:
                    words[i] = place + distance
        if RECORDERS:
            RECORDERS[0].run(self.program.steps)
        else:
            self.program()
        return not any([refused.any() for refused in self.refused])


def by_steps(op: Op, builder: Builder, *arrays: Any, out: Any = None, **attrs: Any) -> Any:
    """A kernel made of an op's steps; None where they do not fit, or refuse what an array holds."""
    given = () if out is None else out if op.many else (out,)
    signature: tuple | None = (
        op,
        *[(a.shape, a.strides, a.dtype) if a.__class__ is np.ndarray else (a.__class__, a) for a in (*arrays, *given)],
        *attrs.items(),
    )
    kept = KEPT
    try:
        call = kept.calls.get(signature)
    except TypeError:  # an argument that cannot be looked up
        signature = call = None
    if call is False:
        return None
    call = call and kept.calls.pop(signature, None)  # nobody else has it: a signal's handler may call ops, too
    results = call.results if call else results_of(op, arrays, given, attrs)
    outs = given or [np.empty(shape, dtype) for shape, dtype in results]
    call = call or new_call(builder, arrays, outs, attrs, results)
    done = call and call([*arrays, *outs])
    if signature is not None and (not call or (call.may_be_kept and call.memory is kept.memory)):
        if len(kept.calls) >= MOST:
            kept.calls.clear()
        kept.calls[signature] = call or False
    if not done:
        return None
    return out if out is not None else tuple(outs) if op.many else outs[0]


def results_of(op: Op, arrays: Sequence, given: Sequence, attrs: dict) -> list[tuple]:
    if given:
        return [(a.shape, a.dtype) for a in given]
    specs = op.infer(*[spec_of(a) if isinstance(a, np.ndarray) else a for a in arrays], **attrs)
    return [(spec.shape, spec.np) for spec in (specs if op.many else (specs,))]


def new_call(builder: Callable, arrays: Sequence, outs: Sequence, attrs: dict, results: list[tuple]) -> Call | None:
    """A call for these arrays, with its room in what this thread keeps, where that is large enough."""
    memory = KEPT.memory
    room = Room(rounded(at(memory), ALIGN))
    steps = builder(arrays, outs, room, **attrs)
    if steps is not None and room.used > memory.nbytes - ALIGN:
        memory = np.empty(rounded(room.used + ALIGN, LITTLE), np.uint8)
        if memory.nbytes <= LARGE:
            KEPT.memory = memory
            KEPT.calls.clear()
        steps = builder(arrays, outs, Room(rounded(at(memory), ALIGN)), **attrs)
    return None if steps is None else Call(steps, [*arrays, *outs], results, memory)
