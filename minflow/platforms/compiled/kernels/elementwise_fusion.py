"""Clusters of elementwise ops and row reductions: one instruction interprets bytecode of vector operations.

A cluster runs in blocks of whole rows that stay in the first-level cache with all intermediate values. Each operation
is a loop over a block, so interpretation is cheap, and no code is generated per model. One element per row is broadcast
only when combined with a full operand; a row is repeated in each block; column sums are kept per chunk and added in
chunk order. Results are within some units in the last place of NumPy's (for sums: of the sum of magnitudes). Semantics:
`compiler/fusion.py`. Read next: `elementwise_loops.py`, the operations.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from ....compiler import fusion
from ....core.ir import Value, outputs_of
from ..codegen.jit import compiled, float32
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import filled, load, store, store_some
from ..lowering import lowers
from ..passes.elementwise_fusion import MASK as MASK_OPERAND
from ..runtime.instructions import Words, instruction, run_routine, word_at
from ..runtime.tasks import Task, Workspace
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
    max_of_rows,
    operand,
    operation_routine,
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
WORD = 8  # bytes
# Words of a line, of which an operation may use fewer operands; and of an input, the first two also of an output.
CODE, OUT, A, B, C, A_STEP, B_STEP, C_STEP, RESULT_KIND = range(9)
KIND, PLACE, PERIOD, REPEAT = range(4)
LINE, INPUT, OUTPUT = 9 * WORD, 4 * WORD, 2 * WORD  # bytes of each


class Cluster(NamedTuple):
    """Addresses that the parts of the interpreter share, and the columns of a row.

    offsets: table of the offset of each place in scratch memory, from `base` on; four spare vectors are before
    it.  places: table of the current address of each place, in scratch memory or in an array.  inputs, outputs: tables
    of entries.  entries_end: the end of both.  arrays, results: tables of the arrays of the inputs and of the outputs.
    """

    offsets: int
    places: int
    base: int
    inputs: int
    outputs: int
    entries_end: int
    arrays: int
    results: int
    columns: int
    routine: int


@instruction
def run_cluster(
    chunk,
    scratch,
    program,
    lines,
    places,
    inputs,
    outputs,
    rows,
    columns,
    chunk_rows,
    block_rows,
    routine,
    arrays: Words,
):
    """Interpret the bytecode of a cluster for some rows.

    program: lines, offsets of places, and entries of inputs and outputs; then the number of each.  rows, columns: of
    the cluster; a chunk computes `chunk_rows` rows in blocks of `block_rows`.  routine: that of vector
    operations.  arrays: the address of each input and output.
    """
    offsets, addresses = program + lines * LINE, (scratch + 63) // 64 * 64
    entries = offsets + places * WORD
    cluster = Cluster(
        offsets,
        addresses,
        addresses + (places * WORD + 63) // 64 * 64 + 4 * STEP,
        entries,
        entries + inputs * INPUT,
        entries + inputs * INPUT + outputs * OUTPUT,
        arrays,
        arrays + inputs * WORD,
        columns,
        routine,
    )
    for i in range(places):
        put_word(addresses, i, cluster.base + word_at(offsets, i))
    load_constant_inputs(cluster, block_rows)
    clear_column_sums(cluster, chunk)
    first = chunk * chunk_rows
    last = min(first + chunk_rows, rows)
    for row in range(first, last, block_rows):
        block = min(block_rows, last - row)
        load_inputs(cluster, row, block)
        locate_outputs(cluster, row, block)
        for line in range(program, offsets, LINE):
            run_line(cluster, line, block)
        write_outputs(cluster, row, block)


@compiled
def load_constant_inputs(cluster, block_rows):
    """Load the inputs that are the same in all blocks."""
    for i in range((cluster.outputs - cluster.inputs) // INPUT):
        entry, source = cluster.inputs + i * INPUT, word_at(cluster.arrays, i)
        kind, place = word_at(entry, KIND), word_at(cluster.places, word_at(entry, PLACE))
        if kind == SCALAR:
            store(place, filled(number_at(source, 0)))
        elif kind == TILE:
            for r in range(block_rows):
                copy_in(source, place + r * cluster.columns * BYTES, cluster.columns)
        elif kind == ONE_ROW:
            put_word(cluster.places, word_at(entry, PLACE), source)


@compiled
def clear_column_sums(cluster, chunk):
    """Set the column sums of this chunk, which are accumulated in place, to 0."""
    for i in range((cluster.entries_end - cluster.outputs) // OUTPUT):
        entry = cluster.outputs + i * OUTPUT
        if word_at(entry, KIND) == COLUMN:
            size = (cluster.columns + LANES - 1) // LANES * STEP
            place = word_at(cluster.results, i) + chunk * size
            put_word(cluster.places, word_at(entry, PLACE), place)
            for q in range(place, place + size, STEP):
                store(q, filled(float32(0)))


@compiled
def load_inputs(cluster, row, rows):
    """Load the inputs of a block. Whole vectors of a full operand are read in place."""
    columns = cluster.columns
    count = rows * columns
    for i in range((cluster.outputs - cluster.inputs) // INPUT):
        entry, source = cluster.inputs + i * INPUT, word_at(cluster.arrays, i)
        kind, index, repeat = word_at(entry, KIND), word_at(entry, PLACE), word_at(entry, REPEAT)
        start, place = row // repeat % word_at(entry, PERIOD), cluster.base + word_at(cluster.offsets, index)
        if repeat > 1:
            load_repeated_rows(entry, source, place, row, rows, columns)
        elif kind == FULL and count % LANES == 0:
            put_word(cluster.places, index, source + start * columns * BYTES)
        elif kind == FULL:
            put_word(cluster.places, index, place)
            copy_in(source + start * columns * BYTES, place, count)
        elif kind == ROW:
            copy_in(source + start * BYTES, place, rows)
        elif kind == MASK:
            masks_in(source + start * columns, place, count)


@compiled
def load_repeated_rows(entry, source, place, row, rows, columns):
    """Load an input each of whose rows is read for several rows."""
    kind, period, repeat = word_at(entry, KIND), word_at(entry, PERIOD), word_at(entry, REPEAT)
    for r in range(rows):
        start = (row + r) // repeat % period
        if kind == FULL:
            copy_in(source + start * columns * BYTES, place + r * columns * BYTES, columns)
        elif kind == ROW:
            put(place, r, number_at(source, start))
        else:
            masks_in(source + start * columns, place + r * columns * BYTES, columns)


@compiled
def locate_outputs(cluster, row, rows):
    """Set the addresses of full outputs: in the array, if they are whole vectors."""
    for i in range((cluster.entries_end - cluster.outputs) // OUTPUT):
        entry = cluster.outputs + i * OUTPUT
        if word_at(entry, KIND) == FULL:
            index, target = word_at(entry, PLACE), word_at(cluster.results, i) + row * cluster.columns * BYTES
            in_place = rows * cluster.columns % LANES == 0
            put_word(cluster.places, index, target if in_place else cluster.base + word_at(cluster.offsets, index))


@compiled
def write_outputs(cluster, row, rows):
    """Copy the outputs of a block that were not written in place."""
    columns = cluster.columns
    for i in range((cluster.entries_end - cluster.outputs) // OUTPUT):
        entry, target = cluster.outputs + i * OUTPUT, word_at(cluster.results, i)
        kind, place = word_at(entry, KIND), word_at(cluster.places, word_at(entry, PLACE))
        if kind == FULL and rows * columns % LANES:
            copy_out(place, target + row * columns * BYTES, rows * columns)
        elif kind == ROW:
            copy_out(place, target + row * BYTES, rows)


@compiled
def run_line(cluster, line, rows):
    """Run one operation on a block."""
    columns, code = cluster.columns, word_at(line, CODE)
    a_step, b_step, c_step = word_at(line, A_STEP), word_at(line, B_STEP), word_at(line, C_STEP)
    out, a = word_at(cluster.places, word_at(line, OUT)), word_at(cluster.places, word_at(line, A))
    b, c = word_at(cluster.places, word_at(line, B)), word_at(cluster.places, word_at(line, C))
    if code < SPREAD and (a_step % STEP or b_step % STEP or c_step % STEP):
        for r in range(rows):
            run_line_on_row(cluster, line, r, out, a, b, c)
    elif code < SPREAD:
        kind = word_at(line, RESULT_KIND)
        count = rows if kind == ROW else LANES if kind == SCALAR else rows * columns
        vectors = (count + LANES - 1) // LANES
        run_routine(cluster.routine, code, out, a, b, c, a_step, b_step, c_step, vectors, 0, 0, 0)
    elif code == SPREAD:
        spread_rows(out, a, rows, columns)
    elif code == ROW_SUM:
        sum_rows(out, a, rows, columns)
    elif code == ROW_MAX:
        max_of_rows(out, a, rows, columns)
    elif code == ROW_DOT:
        sum_products(out, a, b, rows, columns)
    else:
        sum_columns(out, a, rows, columns)


@compiled
def run_line_on_row(cluster, line, r, out, a, b, c):
    """Run one vector operation on row r of a block. A partial last vector overlaps the one before."""
    columns, routine, spare, code = cluster.columns, cluster.routine, cluster.base - 4 * STEP, word_at(line, CODE)
    a_step, b_step, c_step = word_at(line, A_STEP), word_at(line, B_STEP), word_at(line, C_STEP)
    end = (columns - LANES) * BYTES
    x, y = operand(a, a_step, r, columns, spare), operand(b, b_step, r, columns, spare + STEP)
    z, target = operand(c, c_step, r, columns, spare + 2 * STEP), out + r * columns * BYTES
    i, j, k = step_in_row(a_step), step_in_row(b_step), step_in_row(c_step)
    if columns % LANES:  # the last 16 first, since the inputs may be overwritten
        u, v, w = x + i // STEP * end, y + j // STEP * end, z + k // STEP * end
        run_routine(routine, code, spare + 3 * STEP, u, v, w, 0, 0, 0, 1, 0, 0, 0)
    run_routine(routine, code, target, x, y, z, i, j, k, columns // LANES, 0, 0, 0)
    if columns % LANES:
        store(target + end, load(spare + 3 * STEP))


@instruction
def add_columns(chunk, scratch, parts, chunks, columns, out):
    """Add the column sums of all chunks, (chunks, columns rounded up to whole vectors), in order."""
    size = (columns + LANES - 1) // LANES * STEP
    for i in range(0, columns, LANES):
        total, first = filled(float32(0)), parts + i * BYTES
        for q in range(first, first + chunks * size, size):
            total = total + load(q)
        store_some(out + i * BYTES, columns - i, total)


# ---- bytecode --------------------------------------------------------------------------------------------------------


class Register(NamedTuple):
    """An operand of bytecode. kind: ROW, FULL, SCALAR or COLUMN.  place: index of its place."""

    kind: int
    place: int


class Bytecode:
    """Builder of the bytecode that `run_cluster` interprets.

    kinds: of each place.  lines: of nine words.  own: places that later results must not reuse.
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
        offsets, total, free = [0] * len(self.kinds), 0, []
        for place, kind in enumerate(self.kinds):
            if place in self.own:
                offsets[place], total = total, total + sizes[kind] * BYTES
        for i, line in enumerate(self.lines):
            # A vector operation may write over its operands; a row operation may not.
            after = line[0] >= SPREAD
            dying = {p for p in line[2:5] if p not in self.own and last[p] == i}
            free += [] if after else [offsets[p] for p in sorted(dying)]
            if line[1] not in self.own:
                if not free:
                    free.append(total)
                    total += sizes[FULL] * BYTES
                offsets[line[1]] = free.pop()
            free += [offsets[p] for p in sorted(dying)] if after else []
        return offsets, total

    def fuse_pairs(self, firsts: Collection[str], seconds: Collection[str]) -> None:
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

    def finish(self) -> Bytecode:
        """Finish the parts that depend on no array."""
        self.fuse_pairs(["mul"], ["add", "sub"])
        self.fuse_pairs(PAIRED, [*PAIRED, *AFTER])
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
        self.head = (self.words, *counts, self.rows, self.columns, high, height, operation_routine.address)
        return self

    def steps(self, arrays: list[np.ndarray], outs: list[np.ndarray], workspace: Workspace) -> list[Task]:
        wide, after, targets = -(-self.columns // LANES) * LANES, [], []
        for (kind, _), out in zip(self.outputs, outs):
            targets.append(workspace.take(self.chunks * wide) if kind == COLUMN else out)
            if kind == COLUMN:
                after.append(add_columns(1, targets[-1], self.chunks, self.columns, out))
        sources = [arrays[x] if x.__class__ is int else x for x in self.sources]
        step = run_cluster(self.chunks, *self.head, *sources, *targets, scratch=self.scratch)
        return [step, *after]


# ---- lowering of ops -------------------------------------------------------------------------------------------------


def softmax(p, x, dim):
    grown = p("exp", p("sub", x, p.over_row("row_max", x)))
    return p("mul", grown, p("div", 1.0, p.over_row("row_sum", grown)))


def log_softmax(p, x, dim):
    below = p("sub", x, p.over_row("row_max", x))
    return p("sub", below, p("log", p.over_row("row_sum", p("exp", below))))


OVER_ROWS = {"softmax": softmax, "log_softmax": log_softmax}
KINDS = {fusion.SCALAR: SCALAR, fusion.ROW: ROW, fusion.FULL: FULL, MASK_OPERAND: MASK}


def bytecode_of(code) -> Bytecode:
    bytecode = Bytecode(code.rows, code.columns)
    known: dict[Any, Register] = {}  # an input with how it is read, or a result -> its register
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
            total = bytecode.over_row("row_sum", *operands)
            known[out] = bytecode("mul", total, 1 / code.columns) if node.op.name == "mean" else total
        else:
            over_row = OVER_ROWS.get(node.op.name)
            known[out] = over_row(bytecode, *operands, **node.attrs) if over_row else lower(node, bytecode, operands)
    for value in code.outputs:
        result = known[value]
        whole = value.spec.size == code.rows * code.columns
        bytecode.output(result, COLUMN if result.kind == COLUMN else FULL if whole else ROW)
    return bytecode.finish()


def cluster(arrays, outs, workspace, code) -> list[Task] | None:
    """Build the tasks of a cluster; None if an array is not contiguous."""
    if not all([a.flags.c_contiguous for a in (*arrays, *outs)]):
        return None
    code.program = code.program or bytecode_of(code)
    return code.program.steps(arrays, outs, workspace)


for op in fusion.CLUSTERS:
    lowers(op, cluster)
