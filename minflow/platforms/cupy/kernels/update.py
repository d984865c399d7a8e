"""Update rules of optimizers: parameters with the same numbers in one launch, in place.

The numbers are arguments of the launch, since learning rates and step counters are on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.backend import Array
from ....core.kernels import Kernel, register
from ....core.op import Op
from ....core.ops.update import adam, adam_amsgrad, sgd, sgd_dampened, sgd_momentum
from ..device_code import C_NAMES, cuda_backend_of, supported

TOLERANCE = 8  # constants are rounded once, products have a different order
MOST, CHUNK, ARRAYS, NUMBERS = 64, 2048, 5, 10  # sizes in update.cu
BLOCK = 256


class Rule(NamedTuple):
    """How a rule runs. source: its struct in update.cu.  states: number of arrays of its state.

    numbers: (learning rate, number of this step, **attrs) -> the numbers of the source.
    """

    source: str
    states: int
    numbers: Callable[..., Sequence[float]]


def sgd_numbers(lr: float, now: float) -> Sequence[float]:
    return (lr,)


def momentum_numbers(lr: float, now: float, momentum: float, nesterov=False, dampening=0.0) -> Sequence[float]:
    return lr, momentum, 1 - dampening if now > 1 else 1.0, nesterov


def adam_numbers(
    lr: float, now: float, beta1: float, beta2: float, eps: float, corrected: bool, decoupled_decay: float
) -> Sequence[float]:
    fix1, fix2 = (1 - beta1**now, 1 - beta2**now) if corrected else (1.0, 1.0)
    return lr / fix1, beta1, 1 - beta1, beta2, 1 - beta2, 1 / math.sqrt(fix2), eps, 1 - lr * decoupled_decay


RULES = {
    sgd: Rule("sgd", 0, sgd_numbers),
    sgd_momentum: Rule("sgd_momentum", 1, momentum_numbers),
    sgd_dampened: Rule("sgd_momentum", 1, momentum_numbers),
    adam: Rule("adam", 2, adam_numbers),
    adam_amsgrad: Rule("adam_amsgrad", 3, adam_numbers),
}


def numbers_of(
    rule: Rule, lr: float, step: float, weight_decay: float, maximize: bool, decoupled: bool | None = None, **attrs: Any
) -> list[float]:
    """The numbers at the head of a table: sign, decay, and those of the rule."""
    if decoupled is not None:  # Adam
        attrs["decoupled_decay"] = weight_decay if decoupled else 0.0
    sign, decay = -1.0 if maximize else 1.0, 0.0 if decoupled else weight_decay
    return [sign, decay, *rule.numbers(lr, step + 1, **attrs)]


class UpdateCall:
    """A call of a rule on arrays that stay in place."""

    bytes = scratch = 0  # of workspace

    def __init__(self, op: Op, arrays: Sequence, outs: Sequence, attrs: dict[str, Any]):
        self.rule, self.attrs = RULES[op], attrs
        many = 2 + self.rule.states
        self.copies = [(out, x) for out, x in zip(outs, (arrays[0], *arrays[2:many])) if out is not x]
        self.tensors = [outs[0], arrays[1], *outs[1 : 1 + self.rule.states]]
        self.counters, self.new_counters = arrays[many:], outs[1 + self.rule.states :]
        self.backend = cuda_backend_of(outs[0])
        self.addresses = [self.backend.address(x) for x in self.tensors]
        self.key = op, self.backend, outs[0].dtype, tuple(attrs.items())

    def __call__(self) -> None:
        Updates([self])()

    @staticmethod
    def join(groups: Iterable[list[UpdateCall]]) -> list[Updates]:
        return [Updates(calls) for calls in groups]

    def advance(self) -> tuple[Hashable, float, float]:
        """Prepare the targets and count the step. Returns a key: calls with the same key have the same numbers."""
        for out, x in self.copies:
            out[...] = x
        step, lr = float(self.counters[0]) if self.new_counters else 0.0, float(self.counters[-1])
        for counter in self.new_counters:
            counter.fill(step + 1)
        return self.key, step, lr


class Updates:
    """Calls of rules, which run in as few launches as possible."""

    def __init__(self, calls: list[UpdateCall]):
        self.calls = calls
        self.tables: dict[tuple[int, ...], tuple[np.ndarray, int]] = {}

    def __call__(self) -> None:
        groups: dict[tuple[Hashable, float, float], list[int]] = {}
        for i, call in enumerate(self.calls):
            groups.setdefault(call.advance(), []).append(i)
        for (_, step, lr), members in groups.items():
            for start in range(0, len(members), MOST):
                self.launch(tuple(members[start : start + MOST]), lr, step)

    def launch(self, members: tuple[int, ...], lr: float, step: float) -> None:
        first = self.calls[members[0]]
        dtype = first.tensors[0].dtype.name
        real = "float64" if dtype == "float64" else "float32"
        if members not in self.tables:
            self.tables[members] = table_of([self.calls[i] for i in members], real)
        table, blocks = self.tables[members]
        numbers = numbers_of(first.rule, lr, step, **first.attrs)
        table.view(real)[: len(numbers)] = numbers
        macros = ("T", C_NAMES[dtype]), ("ACC", C_NAMES[real]), ("RULE", first.rule.source)
        update = first.backend.function("update.cu", "update", macros)
        update((blocks,), (BLOCK,), (table.view(f"V{table.nbytes}"),))


def table_of(calls: Sequence[UpdateCall], real: str) -> tuple[np.ndarray, int]:
    """The Tensors of update.cu, without numbers of this dtype, and the number of blocks."""
    rows, blocks = [], 0
    for call in calls:
        unused, size = [0] * (ARRAYS - len(call.addresses)), call.tensors[0].size
        rows += [*call.addresses, *unused, size, blocks]
        blocks += -(-size // CHUNK)
    head = NUMBERS * np.dtype(real).itemsize // 8
    table = np.zeros(head + 1 + MOST * (ARRAYS + 2), "int64")
    table[head : head + 1 + len(rows)] = [len(calls), *rows]
    return table, blocks


class Lowering:
    """Prepare a call of a rule in a plan, whose neighbors join it in one launch."""

    steady, lone = 0, True

    def __init__(self, op: Op):
        self.op, self.tensors = op, 2 + RULES[op].states

    def __call__(self, arrays: Sequence, outs: Sequence, **attrs: Any) -> UpdateCall | None:
        tensors = *arrays[: self.tensors], *outs[: self.tensors - 1]
        return UpdateCall(self.op, arrays, outs, attrs) if supported(*tensors) else None

    def run(self, xp, p: Array, grad: Array, *others: Array, out: Any = None, **attrs: Any) -> Any:
        """One call, in eager code."""
        kept = p, *others[: len(self.op.outputs) - 1]
        outs = (
            [np.empty_like(x) if isinstance(x, np.ndarray) else xp.empty_like(x) for x in kept] if out is None else out
        )
        outs = outs if isinstance(outs, list) else [outs]
        call = self((p, xp.ascontiguousarray(grad), *others), outs, **attrs)
        if call is None:
            return NotImplemented
        call()
        return outs if self.op.many else outs[0]


for op in RULES:
    lowering = Lowering(op)
    register(op, "cupy", Kernel(lowering.run, None, lowering, TOLERANCE, declines=True, portable=True, bfloat16=True))
