"""Eager that is followed: what every operation read and gave, in order; then everything that it changed is put back.

`eager_check.py` and `compare.py` run build or a reference so, beside a graph. No listener hears
of it. Read next: `eager_check.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....core.eager import Eager
from ....core.ir import Source, where_text
from ....core.mode import MODE, using
from ....core.tensor import Tensor
from ....core.where import caller


@dataclass(eq=False)
class Step:
    """One operation that ran. name: as a learner calls it.  inputs, arrays: what it read and gave; a number stands for
    itself.

    reads: how its inputs are called, as far as is known.  scope: the module that it ran in, in eager.
    """

    op: str
    name: str
    where: str
    inputs: list[Any]
    arrays: list[np.ndarray]
    reads: tuple[str, ...] = ()
    scope: str = ""

    @property
    def key(self) -> tuple:
        return self.op, tuple([a.shape for a in self.arrays])


class Made(NamedTuple):
    """A tensor that steps made or wrote. by: (number of the step, number of its result).  array: a copy, good at this
    version.

    own: it was not there before.
    """

    tensor: Tensor
    by: list[tuple[int, int]]
    array: np.ndarray | None
    version: int
    own: bool


class Recording(Eager):
    """The mode. steps: what ran, in order.

    held: (array, its numbers before) of each write.  grads, counts, schedules: what stood there before, by id.
    """

    def __init__(self, seed: float):
        self.grad, self.seed = MODE.get().grad, seed
        self.steps: list[Step] = []
        self.held: list[tuple[np.ndarray, np.ndarray]] = []
        self.bound: list[tuple[Tensor, Any, bool]] = []
        self.grads: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.counts: dict[int, tuple[Any, str, int]] = {}  # of steps: (who counts, its attribute, the count before)
        self.schedules: dict[int, tuple[Any, dict, list]] = {}
        self.made: dict[int, Made] = {}
        # (step, result) -> the steps that read it; -1 where it was given away
        self.readers: dict[tuple[int, int], list[int]] = {}
        self.ends: set[tuple[int, int]] = set()  # results that went into a state or a gradient
        self.last: list[Any] = [None]

    # ---- what it is asked for ----------------------------------------------------------------------------------------

    def run(self, op, inputs, attrs):
        results = super().run(op, inputs, attrs)
        many = results if isinstance(results, list) else [results]
        if self.last[0] is not results:  # else a promoted op, which ran itself again on cast inputs
            place = where_text(caller(3))
            self.tell(op, inputs, many, place)
            self.last[:] = [results]
            step = len(self.steps) - 1
            for k, t in enumerate(many):
                self.made[id(t)] = Made(t, [(step, k)], self.steps[step].arrays[k], version_of(t), not op.is_view)
            if self.origin is not None:  # of backward: what nobody reads is a gradient
                self.ends |= {(step, k) for k in range(len(many))}
        return results

    def update(self, op, targets, inputs, attrs):
        self.hold(targets)
        super().update(op, targets, inputs, attrs)
        self.tell(op, inputs, targets, where_text(caller(3)))
        for k, t in enumerate(targets):
            self.wrote(t, [(len(self.steps) - 1, k)])

    def write(self, target, root, path, new):
        if id(root) not in self.made or not self.made[id(root)].own:
            self.hold([target])
        self.bound.append((root, root.value, root.needs))
        super().write(target, root, path, new)
        self.wrote(root, self.makers(new))

    def tell(self, op, inputs, results, place: str) -> None:
        step = len(self.steps)
        for x in inputs:
            if isinstance(x, Tensor):
                if x.value is not None and isinstance(x.value.node, Source):
                    self.start_gradient(x)
                for made in self.makers(x):
                    self.readers.setdefault(made, []).append(step)
        self.steps.append(Step(op.name, f"{self.scope}: {op.name}" if self.scope else op.name, place, [self.copy_of(x) for x in inputs],
                              [t.array.copy() for t in results], scope=self.scope))  # fmt: skip

    def wrote(self, root: Tensor, makers: list[tuple[int, int]]) -> None:
        known = self.made.get(id(root))
        own = known is not None and known.own
        if not own:
            self.ends.update(makers)
        self.made[id(root)] = Made(root, [*(known.by if known else ()), *makers], None, 0, own)

    def makers(self, x: Any) -> list[tuple[int, int]]:
        """The results that a tensor holds; a view also those that were written into what it looks at."""
        found = [self.made[id(t)].by for t in (x, x.alias.base if x.alias else None) if id(t) in self.made]
        return [made for by in found for made in by]

    def copy_of(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x.copy() if isinstance(x, np.ndarray) else x
        known = self.made.get(id(x))
        same = known is not None and known.array is not None and known.version == version_of(x)
        return known.array if same else x.array.copy()

    def enter_gradient(self, node) -> None:
        MODE.set(self.but(scope=node.scope, origin=node))

    def writes_at_once(self) -> bool:
        return False

    def looks_for_mistakes(self) -> bool:
        return False

    def hears(self, event: type) -> bool:
        return False

    # ---- what is put back --------------------------------------------------------------------------------------------

    def hold(self, tensors: Iterable[Tensor]) -> None:
        self.held += [(t.array, t.array.copy()) for t in tensors if t.array.flags.writeable]

    def start_gradient(self, x: Tensor) -> None:
        """It has none yet, as in a graph."""
        if id(x) not in self.grads:
            self.grads[id(x)] = x, x.gradient
            x.gradient = None

    def before_step(self, optimizer: Any) -> None:
        self.counts.setdefault(id(optimizer), (optimizer, "steps", optimizer.steps))
        for p in optimizer.parameters():
            self.grads.setdefault(id(p), (p, p.gradient))

    def before_schedule(self, schedule: Any) -> None:
        rates = [group["lr"] for group in schedule.optimizer.param_groups]
        self.schedules.setdefault(id(schedule), (schedule, copy.deepcopy(schedule.state_dict()), rates))

    def before_run(self, graph: Any, parts: Iterable[Any]) -> None:
        states = [s.array for part in parts for s in part.graph.states]
        self.held += [(array, array.copy()) for array in states if array.flags.writeable]
        self.counts.setdefault(id(graph), (graph, "_steps", graph._steps))
        for optimizer, _ in graph.optimizers:
            self.before_step(optimizer)

    def put_back(self) -> None:
        for array, before in reversed(self.held):
            array[...] = before
        for tensor, value, needs in reversed(self.bound):
            tensor.value, tensor.needs = value, needs
        for tensor, gradient in self.grads.values():
            tensor.gradient = gradient
        for counting, name, count in self.counts.values():
            counting.__dict__[name] = count
        for schedule, state, rates in self.schedules.values():
            schedule.load_state_dict(state)
            for group, rate in zip(schedule.optimizer.param_groups, rates):
                group["lr"] = rate

    # ---- afterwards --------------------------------------------------------------------------------------------------

    def computing(self, given: Iterable[Any]) -> list[Step]:
        """The Steps without those that only move states, such as running statistics, or make gradients.

        given: what came out. Results that nothing reads count: numpy may have read them.
        """
        for x in given:
            for made in self.makers(x) if isinstance(x, Tensor) else ():
                self.readers.setdefault(made, []).append(-1)
        aside = [False] * (len(self.steps) + 1)  # the last, number -1: what was given away
        for i in reversed(range(len(self.steps))):
            results = [(i, k) for k in range(len(self.steps[i].arrays))]
            aside[i] = all((made in self.ends or made in self.readers) and all(aside[j] for j in self.readers.get(made, ()))
                           for made in results)  # fmt: skip
        return [step for step, out in zip(self.steps, aside) if not out]


def version_of(x: Tensor) -> int:
    return 0 if x.cell is None else x.cell.version


@contextmanager
def followed(tensors: Iterable[Tensor] = (), parameters: Iterable[Tensor] = (), seed: float = 1) -> Iterator[Recording]:
    """In the block eager is followed; at its end everything that it wrote is as before.

    tensors: whose numbers are put back even if numpy writes them.  parameters: they start without gradients.
    seed: see `Mode`.
    """
    mode = Recording(seed)
    mode.hold(tensors)
    for p in parameters:
        mode.start_gradient(p)
    try:
        with using(mode):
            yield mode
    finally:
        mode.put_back()
