"""Clusters of elementwise ops and row reductions: one instruction interprets bytecode of vector operations.

A cluster runs in blocks of whole rows that stay in the first-level cache with all intermediate values. Each operation
is a loop over a block, so interpretation is cheap, and no code is generated per model. One element per row is broadcast
only when combined with a full operand; a row is repeated in each block; column sums are kept per chunk and added in
chunk order. Results are within some units in the last place of NumPy's (for sums: of the sum of magnitudes). Semantics:
`compiler/fusion/elementwise_fusion.py`. Read next: `elementwise_loops.py`, the operations.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ....compiler.fusion import elementwise_fusion as fusion
from ....core.ir import Value, outputs_of
from ..codegen.jit import float32
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import add, filled, load, store, store_some
from ..lowering import lowers
from ..runtime.tasks import Task, Workspace, instruction, run_routine, word_at
from .conv import BYTES
from .elementwise_loops import (
    AFTER,
    AGAIN,
    BY_ROW,
    MUL,
    NAMES,
    OPCODES,
    PAIRED,
    ROW_DOT,
    ROW_MAX,
    ROW_SUM,
    SPREAD,
    STEP,
    copy_in,
    copy_out,
    masks_in,
    most_of_rows,
    operand,
    operating,
    put_word,
    spread_rows,
    step_in_row,
    sum_columns,
    sum_products,
    sum_rows,
)
from .formula_lowering import lower

BLOCK, LONGEST = 1 << 11, 1 << 12  # elements of a block, unless rows are longer; of one with odd rows
BY_ROWS = 1 << 8  # columns from which on an operation with a per-row operand runs row by row
WORK, CHUNK = 1 << 18, (1 << 12, 1 << 16)  # work of a chunk: elements times operations; elements, at least and at most
# Kinds of inputs and outputs. TILE: a row, copied for each row of a block. ONE_ROW: a row that is read again for each.
SCALAR, ROW, FULL, MASK, TILE, COLUMN, ONE_ROW = range(7)


# ---- the interpreter -------------------------------------------------------------------------------------------------

GONE = -1  # result of a removed line
HEAD = 10  # words before those of inputs and outputs
LINE, INPUT, OUTPUT = 9, 4, 2  # words of the bytecode for each


@instruction
def run_cluster(words, chunk, scratch):  # noqa: C901
    """Interpret the bytecode of a cluster for some rows.

    words: bytecode, lines, places, inputs, outputs, rows, columns, rows of a chunk, rows of a block, `operating`; the
    address of each input and output. A place holds the current address of an operand, in scratch memory or in an array.
    """
    program, lines, count = word_at(words, 0), word_at(words, 1), word_at(words, 2)
    inputs, outputs, columns = word_at(words, 3), word_at(words, 4), word_at(words, 6)
    first = chunk * word_at(words, 7)
    last, height = min(first + word_at(words, 7), word_at(words, 5)), word_at(words, 8)
    places = (scratch + 63) // 64 * 64
    base, table = places + (count * 8 + 63) // 64 * 64 + 4 * STEP, program + lines * LINE * 8
    spare, operating = base - 4 * STEP, word_at(words, 9)
    for i in range(count):
        put_word(places, i, base + word_at(table, i))
    of_inputs = table + count * 8
    of_outputs, addresses = of_inputs + inputs * INPUT * 8, words + HEAD * 8
    for i in range(inputs):
        kind, source = word_at(of_inputs, i * INPUT), word_at(addresses, i)
        place = word_at(places, word_at(of_inputs, i * INPUT + 1))
        if kind == SCALAR:
            store(place, filled(number_at(source, 0)))
        elif kind == TILE:
            for r in range(height):
                copy_in(source, place + r * columns * BYTES, columns)
        elif kind == ONE_ROW:
            put_word(places, word_at(of_inputs, i * INPUT + 1), source)
    for i in range(outputs):
        if word_at(of_outputs, i * OUTPUT) == COLUMN:
            wide = (columns + LANES - 1) // LANES * STEP
            place = word_at(addresses, inputs + i) + chunk * wide
            put_word(places, word_at(of_outputs, i * OUTPUT + 1), place)
            for q in range(place, place + wide, STEP):
                store(q, filled(float32(0)))
    for row in range(first, last, height):
        rows = min(height, last - row)
        numbers = rows * columns
        for i in range(inputs):
            entry, source = of_inputs + i * INPUT * 8, word_at(addresses, i)
            kind, where, period, repeat = word_at(entry, 0), word_at(entry, 1), word_at(entry, 2), word_at(entry, 3)
            start, place = row // repeat % period, base + word_at(table, where)
            if repeat > 1:
                for r in range(rows):
                    start = (row + r) // repeat % period
                    if kind == FULL:
                        copy_in(source + start * columns * BYTES, place + r * columns * BYTES, columns)
                    elif kind == ROW:
                        put(place, r, number_at(source, start))
                    else:
                        masks_in(source + start * columns, place + r * columns * BYTES, columns)
            elif kind == FULL and numbers % LANES == 0:
                put_word(places, where, source + start * columns * BYTES)
            elif kind == FULL:
                put_word(places, where, place)
                copy_in(source + start * columns * BYTES, place, numbers)
            elif kind == ROW:
                copy_in(source + start * BYTES, place, rows)
            elif kind == MASK:
                masks_in(source + start * columns, place, numbers)
        for i in range(outputs):
            if word_at(of_outputs, i * OUTPUT) == FULL:
                where = word_at(of_outputs, i * OUTPUT + 1)
                target = word_at(addresses, inputs + i) + row * columns * BYTES
                put_word(places, where, target if numbers % LANES == 0 else base + word_at(table, where))
        for line in range(program, table, LINE * 8):
            code, out, a = word_at(line, 0), word_at(places, word_at(line, 1)), word_at(places, word_at(line, 2))
            b, c = word_at(places, word_at(line, 3)), word_at(places, word_at(line, 4))
            u, v, w = word_at(line, 5), word_at(line, 6), word_at(line, 7)
            if code < SPREAD and (u % STEP or v % STEP or w % STEP):
                end = (columns - LANES) * BYTES
                for r in range(rows):
                    x, y = operand(a, u, r, columns, spare), operand(b, v, r, columns, spare + STEP)
                    z, target = operand(c, w, r, columns, spare + 2 * STEP), out + r * columns * BYTES
                    i, j, k = step_in_row(u), step_in_row(v), step_in_row(w)
                    if columns % LANES:  # the last 16 first, since the inputs may be overwritten
                        run_routine(
                            operating,
                            code,
                            spare + 3 * STEP,
                            x + i // STEP * end,
                            y + j // STEP * end,
                            z + k // STEP * end,
                            0,
                            0,
                            0,
                            1,
                            0,
                            0,
                            0,
                        )
                    run_routine(operating, code, target, x, y, z, i, j, k, columns // LANES, 0, 0, 0)
                    if columns % LANES:
                        store(target + end, load(spare + 3 * STEP))
            elif code < SPREAD:
                kind = word_at(line, 8)
                count = rows if kind == ROW else LANES if kind == SCALAR else numbers
                run_routine(operating, code, out, a, b, c, u, v, w, (count + LANES - 1) // LANES, 0, 0, 0)
            elif code == SPREAD:
                spread_rows(out, a, rows, columns)
            elif code == ROW_SUM:
                sum_rows(out, a, rows, columns)
            elif code == ROW_MAX:
                most_of_rows(out, a, rows, columns)
            elif code == ROW_DOT:
                sum_products(out, a, b, rows, columns)
            else:
                sum_columns(out, a, rows, columns)
        for i in range(outputs):
            kind, place = word_at(of_outputs, i * OUTPUT), word_at(places, word_at(of_outputs, i * OUTPUT + 1))
            if kind == FULL and numbers % LANES:
                copy_out(place, word_at(addresses, inputs + i) + row * columns * BYTES, numbers)
            elif kind == ROW:
                copy_out(place, word_at(addresses, inputs + i) + row * BYTES, rows)


@instruction
def add_columns(words, chunk, scratch):
    """Add the column sums of all chunks: words sums of each chunk, chunks, columns, out."""
    count, columns, target = word_at(words, 1), word_at(words, 2), word_at(words, 3)
    wide = (columns + LANES - 1) // LANES * STEP
    for i in range(0, columns, LANES):
        found, p = filled(float32(0)), word_at(words, 0) + i * BYTES
        for q in range(p, p + count * wide, wide):
            found = add(found, load(q))
        store_some(target + i * BYTES, columns - i, found)


# ---- bytecode --------------------------------------------------------------------------------------------------------


class Register(NamedTuple):
    """An operand of bytecode. kind: ROW, FULL, SCALAR or COLUMN.  place: index of its place."""

    kind: int
    place: int


class Bytecode:
    """Builder of the bytecode that `run_cluster` interprets.

    kinds: of each place.  lines: of LINE words.  own: places that later results must not reuse.
    """

    def __init__(self, rows: int, columns: int):
        self.rows, self.columns = rows, columns
        self.kinds: list[int] = []
        self.lines: list[list[int]] = []
        self.own: set[int] = set()
        self.inputs: list[tuple[int, int, int, int]] = []  # kind, place, rows (period), repeat
        self.sources: list[int | np.ndarray] = []  # index of an array of the cluster, or a number
        self.outputs: list[tuple[int, int]] = []
        self.numbers: dict[bytes, Register] = {}
        self.spreads: dict[Register, Register] = {}

    def place(self, kind: int, own: bool = False) -> int:
        self.kinds.append(kind)
        if own:
            self.own.add(len(self.kinds) - 1)
        return len(self.kinds) - 1

    def input(self, source: int | np.ndarray, kind: int, period: int, repeat: int = 1) -> Register:
        if (kind, period) == (FULL, 1) and self.columns >= BY_ROWS:
            kind = ONE_ROW
        register = Register(FULL if kind == MASK else kind, self.place(FULL if kind == MASK else kind, own=True))
        repeat = self.rows if kind == MASK and period == 1 else repeat  # a mask of one row is read for each row
        self.inputs.append((kind, register.place, period, repeat))
        self.sources.append(source)
        return register

    def number(self, x: float) -> Register:
        array = np.array([x], "f4")
        if array.tobytes() not in self.numbers:
            self.numbers[array.tobytes()] = self.input(array, SCALAR, 1)
        return self.numbers[array.tobytes()]

    def line(self, name: str, kind: int, *operands: Register) -> Register:
        out, more = Register(kind, self.place(kind, own=kind != FULL)), 3 - len(operands)
        special = {SCALAR: 0, ONE_ROW: AGAIN, ROW: BY_ROW if kind == FULL else STEP}
        steps = [special.get(x.kind, STEP) for x in operands]
        places = [x.place for x in operands]
        self.lines.append([OPCODES[name], out.place, *places, *places[:1] * more, *steps, *[0] * more, kind])
        return out

    def __call__(self, name: str, *operands: Register | float) -> Register:
        """Append a vector operation; its result has one element per row if no operand has more."""
        registers = [x if isinstance(x, Register) else self.number(x) for x in operands]
        if all(x.kind in (ROW, SCALAR) for x in registers):
            return self.line(name, ROW if any(x.kind == ROW for x in registers) else SCALAR, *registers)
        by_rows = self.columns % LANES == 0 or self.columns >= BY_ROWS
        return self.line(name, FULL, *[x if x.kind != ROW or by_rows else self.full(x) for x in registers])

    def full(self, x: Register) -> Register:
        """Broadcast x to all columns."""
        if x.kind == FULL:
            return x
        if x not in self.spreads:
            self.spreads[x] = self.line("spread" if x.kind == ROW else "copy", FULL, x)
        return self.spreads[x]

    def over_row(self, name: str, x: Register) -> Register:
        return self.line(name, ROW, self.full(x))

    def over_columns(self, x: Register) -> Register:
        return self.line("column_sum", COLUMN, self.full(x))

    def output(self, x: Register, kind: int) -> None:
        """Write x to an output; copied if it is an output already."""
        if kind == ROW and x.kind == SCALAR:
            x = self.line("copy", ROW, x)
        elif kind == FULL and (x.kind != FULL or x.place in self.own):
            x = self.line("copy", FULL, self.full(x))
        self.own.add(x.place)
        self.outputs.append((kind, x.place))

    def height(self) -> int:
        """Rows of a block: whole vectors if possible, and within one period of each input.

        A single operation on operands in place keeps nothing in the cache, and needs no small blocks.
        """
        copied = any([kind == MASK or (kind == FULL and (n == 1 or each > 1)) for kind, _, n, each in self.inputs])
        wide = [line for line in self.lines if line[-1] == FULL or line[0] >= SPREAD]
        most = max(1, (CHUNK[1] if len(wide) == 1 and not copied else BLOCK) // self.columns)
        repeated = math.gcd(
            *[n for kind, _, n, each in self.inputs if kind in (ROW, FULL, MASK) and each == 1 < n < self.rows]
        )
        whole = LANES // math.gcd(LANES, self.columns)
        if most < whole and whole * self.columns <= LONGEST:
            most = whole
        if repeated:
            fitting = [n for n in range(1, most + 1) if repeated % n == 0]
            return max(fitting, key=lambda n: (n % whole == 0, n))
        return max(most // whole * whole, 1) if most >= whole else most

    def offsets(self, height: int) -> tuple[list[int], int]:
        """Offset of each place in scratch memory, and its size, in bytes. Results reuse places that are free again."""
        sizes = {ONE_ROW: 0, SCALAR: LANES, ROW: -(-height // LANES) * LANES + LANES, COLUMN: 0}
        sizes[FULL] = sizes[TILE] = -(-height * self.columns // LANES) * LANES + 2 * LANES
        last = {place: i for i, line in enumerate(self.lines) for place in line[2:5]}
        found, total, free = [0] * len(self.kinds), 0, []
        for place, kind in enumerate(self.kinds):
            if place in self.own:
                found[place], total = total, total + sizes[kind] * BYTES
        for i, line in enumerate(self.lines):
            # A vector operation may write over its operands; a row operation may not.
            after = line[0] >= SPREAD
            dying = {p for p in line[2:5] if p not in self.own and last[p] == i}
            free += [] if after else [found[p] for p in sorted(dying)]
            if line[1] not in self.own:
                if not free:
                    free.append(total)
                    total += sizes[FULL] * BYTES
                found[line[1]] = free.pop()
            free += [found[p] for p in sorted(dying)] if after else []
        return found, total

    def joined(self, firsts: Collection[str], seconds: Collection[str]) -> None:
        """Fuse an operation with the only user of its result, if there is code for both."""
        read = Counter([place for line in self.lines for place in {*line[2:5]}])
        waiting: dict[int, list[int]] = {}  # result -> line
        for line in self.lines:
            name, i = NAMES[line[0]], 2 if line[2] in waiting else 3
            first = waiting.get(line[i])
            together = first and f"{NAMES[first[0]]}_{'taken' if (name, i) == ('sub', 3) else name}"
            if together in OPCODES and name in seconds and line[-1] == FULL and (name in AFTER or line[2] != line[3]):
                third, step = (first[2], 0) if name in AFTER else (line[5 - i], line[8 - i])
                line[0], line[2:8] = OPCODES[together], [*first[2:4], third, *first[5:7], step]
                del waiting[first[1]]
                first[1] = GONE
            elif name == "row_sum" and first and [first[0], *first[5:7]] == [MUL, STEP, STEP]:
                # All three count as reads, for the liveness of places.
                line[0], line[2:5] = ROW_DOT, [*first[2:4], first[2]]
                del waiting[first[1]]
                first[1] = GONE
            elif name in firsts and line[-1] == FULL and read[line[1]] == 1 and line[1] not in self.own:
                waiting[line[1]] = line
        self.lines = [line for line in self.lines if line[1] != GONE]

    def finished(self) -> Bytecode:
        """Finish the parts that depend on no array."""
        self.joined(["mul"], ["add", "sub"])
        self.joined(PAIRED, [*PAIRED, *AFTER])
        height = self.height()
        inputs = [
            (TILE if (kind, n) == (FULL, 1) and height > 1 else kind, *more, n, each)
            for kind, *more, n, each in self.inputs
        ]
        work = max(sum([line[-1] == FULL for line in self.lines]), 1) * self.columns
        most = min(max(WORK // work * self.columns, CHUNK[0]), CHUNK[1]) // self.columns
        high = max(most // height, 1) * height
        offsets, scratch = self.offsets(height)
        self.chunks, self.scratch = -(-self.rows // high), scratch // BYTES + len(offsets) * 2 + 7 * LANES
        self.words = np.array(
            [*functools.reduce(operator.iadd, self.lines, []), *offsets, *sum(inputs, ()), *sum(self.outputs, ())], "i8"
        )
        counts = len(self.lines), len(offsets), len(inputs), len(self.outputs)
        self.head = (*counts, self.rows, self.columns, high, height, operating.address)
        return self

    def steps(self, arrays: list[np.ndarray], outs: list[np.ndarray], room: Workspace) -> list[Task]:
        wide, after, targets = -(-self.columns // LANES) * LANES, [], []
        for (kind, _), out in zip(self.outputs, outs):
            targets.append(room.take(self.chunks * wide) if kind == COLUMN else out)
            if kind == COLUMN:
                after.append(add_columns(1, targets[-1], self.chunks, self.columns, out))
        sources = [arrays[x] if x.__class__ is int else x for x in self.sources]
        step = run_cluster(self.chunks, self.words, *self.head, *sources, *targets, scratch=self.scratch)
        return [step, *after]


# ---- lowering of ops -------------------------------------------------------------------------------------------------


def softmax(p, x, dim):
    grown = p("exp", p("sub", x, p.over_row("row_max", x)))
    return p("mul", grown, p("div", 1.0, p.over_row("row_sum", grown)))


def log_softmax(p, x, dim):
    below = p("sub", x, p.over_row("row_max", x))
    return p("sub", below, p("log", p.over_row("row_sum", p("exp", below))))


OVER_ROWS = {"softmax": softmax, "log_softmax": log_softmax}
KINDS = {fusion.SCALAR: SCALAR, fusion.ROW: ROW, fusion.FULL: FULL, fusion.MASK: MASK}


def bytecode_of(code) -> Bytecode:
    bytecode, known = Bytecode(code.rows, code.columns), {}
    inputs = {value: i for i, value in enumerate(code.inputs)}

    def register(x: Value | float, shape: tuple) -> Register | float:
        """Return the register of an input, which has one for each way in which it is read."""
        if not isinstance(x, Value):
            return float(x)
        base = fusion.base_of(x)
        if base not in inputs:
            return known[base]
        read = code.read(x, shape)
        if (base, read) not in known:
            known[base, read] = bytecode.input(inputs[base], KINDS[read.kind], read.period, read.repeat)
        return known[base, read]

    for node in code.nodes:
        if node.op.is_view:
            continue
        out, summing = outputs_of(node)[0], node.op.name in fusion.SUMS
        shape = node.inputs[0].spec.shape if summing else out.spec.shape
        operands = [register(x, shape) for x in node.inputs]
        if summing and fusion.summed_to(node) == fusion.COLUMN:
            known[out] = bytecode.over_columns(*operands)
        elif summing:
            found = bytecode.over_row("row_sum", *operands)
            known[out] = bytecode("mul", found, 1 / code.columns) if node.op.name == "mean" else found
        else:
            over_row = OVER_ROWS.get(node.op.name)
            known[out] = over_row(bytecode, *operands, **node.attrs) if over_row else lower(node, bytecode, operands)
    for value in code.outputs:
        found = known[value]
        whole = value.spec.size == code.rows * code.columns
        bytecode.output(found, COLUMN if found.kind == COLUMN else FULL if whole else ROW)
    return bytecode.finished()


def cluster(arrays, outs, room, code) -> list[Task] | None:
    """Build the tasks of a cluster; None if an array is not contiguous."""
    if not all([a.flags.c_contiguous for a in (*arrays, *outs)]):
        return None
    code.bytecode = code.bytecode or bytecode_of(code)
    return code.bytecode.steps(arrays, outs, room)


for op in fusion.CLUSTERS:
    lowers(op, cluster)
