"""Run compiled kernels from eager mode: the tasks of an op are cached for arrays of the same shapes and strides.

Building tasks takes some 50 us, the time of a small op; patching the addresses among their arguments takes 3 us. An
argument is an address if it lies within an array: no other argument is that large. Read next:
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
from .tasks import Builder, Task, Workspace
from .threads import RECORDERS

LITTLE, LARGE = 1 << 16, 32 << 20  # bytes: initial workspace, and the largest one that is cached
MOST = 1 << 10  # cached calls


class CallCache(threading.local):
    """Per-thread cache.

    memory: one workspace for all calls.  calls: signature of a call -> Call, or False for calls left to NumPy.
    """

    def __init__(self) -> None:
        self.memory = np.empty(LITTLE, np.uint8)
        self.calls: dict[tuple, Any] = {}


CALL_CACHE = CallCache()


class CachedCall:
    """Tasks whose arrays can be exchanged. Views of one array move together: their distances are in the signature.

    results: shape and dtype of each output.  moves: for each array, (words, index of an address among them, its offset
    in the array).  memory: the workspace.
    """

    def __init__(self, steps: list[Task], arrays: Sequence, results: list[tuple], memory: np.ndarray):
        spans = spans_of(arrays)
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
        self.cacheable = (
            all(
                [
                    moves or a.flags.c_contiguous or span == (0, 0)
                    for a, moves, span in zip(arrays, self.moves, spans)
                    if isinstance(a, np.ndarray)
                ]
            )
            and all([end <= first for (_, end), (first, _) in itertools.pairwise(ends)])  # no address is in two arrays
            and not any([((t >= first) & (t < end)).any() for t in tables for first, end in ends])
        )

    def __call__(self, arrays: Sequence) -> bool:
        """Run on these arrays; False if a task refuses their elements."""
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


def owners_of(arrays: Sequence) -> list[int]:
    """Identity of the owner of the memory of each array; a number of its own for anything else."""
    return [~i if a.__class__ is not np.ndarray else id(a if a.base is None else a.base) for i, a in enumerate(arrays)]


def distances(arrays: Sequence) -> tuple[int, ...]:
    """Bytes from each array to the first one that shares its memory; () if no two do."""
    owners = owners_of(arrays)
    if len({*owners}) == len(owners):
        return ()
    firsts = [arrays[owners.index(owner)] for owner in owners]
    return tuple([0 if a is first else at(a) - at(first) for a, first in zip(arrays, firsts)])


def spans_of(arrays: Sequence) -> list[tuple[int, int]]:
    """Bounds in memory of each array; the first of those that share memory has the bounds of all, the others (0, 0)."""
    spans, owners = [(0, 0)] * len(arrays), owners_of(arrays)
    for a, owner in zip(arrays, owners):
        if a.__class__ is np.ndarray and a.size:
            i, (low, high) = owners.index(owner), byte_bounds(a)
            start, end = spans[i]
            spans[i] = (min(start or low, low), max(end, high))
    return spans


def run_compiled(op: Op, builder: Builder, *arrays: Any, out: Any = None, **attrs: Any) -> Any:
    """Run an op by its tasks; NotImplemented if there are none for these arrays, or if one refuses their elements."""
    given_outs = () if out is None else out if op.many else (out,)
    same = [next((i for i, a in enumerate(arrays) if a is o), -1) for o in given_outs]  # inputs that are written
    signature: tuple | None = (
        op,
        *[
            (a.shape, a.strides, a.dtype) if a.__class__ is np.ndarray else (a.__class__, a)
            for a in (*arrays, *given_outs)
        ],
        *same,
        *attrs.items(),
        distances((*arrays, *given_outs)),
    )
    cache = CALL_CACHE
    try:
        call = cache.calls.get(signature)
    except TypeError:  # an unhashable argument
        signature = call = None
    if call is False:
        return run_on_copies(op, builder, arrays, out, attrs)
    call = call and cache.calls.pop(signature, None)  # take it out: a signal handler may call ops, too
    results = call.results if call else results_of(op, arrays, given_outs, attrs)
    outs = given_outs or [np.empty(shape, dtype) for shape, dtype in results]
    call = call or new_call(builder, arrays, outs, attrs, results)
    done = call and call([*arrays, *other_than(arrays, outs)])
    if signature is not None and (not call or (call.cacheable and call.memory is cache.memory)):
        if len(cache.calls) >= MOST:
            cache.calls.clear()
        cache.calls[signature] = call or False
    if not call:
        return run_on_copies(op, builder, arrays, out, attrs)
    if not done:
        return NotImplemented
    return out if out is not None else tuple(outs) if op.many else outs[0]


def run_on_copies(op: Op, builder: Builder, arrays: Sequence, out: Any, attrs: dict) -> Any:
    """Run an op on contiguous copies of its arrays, such as gradients that are expanded or transposed.

    NotImplemented if all are contiguous.
    """
    copies = [np.ascontiguousarray(a) if a.__class__ is np.ndarray and a.ndim else a for a in arrays]
    if all([a is copy for a, copy in zip(arrays, copies)]):
        return NotImplemented
    return run_compiled(op, builder, *copies, out=out, **attrs)


def results_of(op: Op, arrays: Sequence, given_outs: Sequence, attrs: dict) -> list[tuple]:
    if given_outs:
        return [(a.shape, a.dtype) for a in given_outs]
    specs = op.infer(*[spec_of(a) if isinstance(a, np.ndarray) else a for a in arrays], **attrs)
    return [(spec.shape, spec.np) for spec in (specs if op.many else (specs,))]


def new_call(
    builder: Callable, arrays: Sequence, outs: Sequence, attrs: dict, results: list[tuple]
) -> CachedCall | None:
    """Build a call for these arrays in the workspace of this thread, which grows up to LARGE bytes."""
    memory = CALL_CACHE.memory
    workspace = Workspace(rounded(at(memory), ALIGN))
    steps = builder(arrays, outs, workspace, **attrs)
    if steps is not None and workspace.used > memory.nbytes - ALIGN:
        memory = np.empty(rounded(workspace.used + ALIGN, LITTLE), np.uint8)
        if memory.nbytes <= LARGE:
            CALL_CACHE.memory = memory
            CALL_CACHE.calls.clear()
        steps = builder(arrays, outs, Workspace(rounded(at(memory), ALIGN)), **attrs)
    return None if steps is None else CachedCall(steps, [*arrays, *other_than(arrays, outs)], results, memory)


def other_than(arrays: Sequence, outs: Sequence) -> list:
    """The outputs that are not inputs, too."""
    return [out for out in outs if not any([out is a for a in arrays])]
