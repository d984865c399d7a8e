"""Recurrent layers: one product for the inputs of all time steps, then a loop over time per chunk of sequences.

The gradients of the weights are single products, too. In between, a thread takes some sequences through all time steps
without synchronizing with others. States stay in the cache as [block][sequence][16], the layout of a packed left side;
the recurrent weight, the right side, is packed once. Packed sequences and projections are left to NumPy. Semantics,
within float32 rounding: `core/ops/rnn.py`, `core/ops/lstm.py`, `core/ops/gru.py`. Read next: `gemm.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....core.op import OPS
from ..codegen import llvm, vector_math
from ..codegen.jit import compiled
from ..codegen.llvm import LANES, function
from ..codegen.micro_kernels import PANEL, ROWS, VECTORS
from ..codegen.vectors import BYTES, add, below, filled, load, load_some, masked_load, masked_store, store, store_some
from ..lowering import lowers
from ..runtime.instructions import instruction, run_routine, word_at
from ..runtime.tasks import Task, Workspace
from .data_movement import clone
from .elementwise import COLUMNS, flat, sum_rows
from .gemm import packed_rows, packing, product, side
from .gemm_tiles import product as multiply

TOGETHER = ROWS[1]  # sequences of a chunk
TANH, RELU, LSTM, GRU = range(4)
GATES = (1, 1, 4, 3)
STEP, TILE = LANES * BYTES, LANES * LANES


# ---- cells: one time step of 16 elements of a state ------------------------------------------------------------------


class RegisterValue:
    """A vector of 16 float32 in the IR that is being built: arithmetic emits an instruction."""

    def __init__(self, cell: RecurrentCell, value):
        self.cell, self.value = cell, value

    def by(self, name: str, x: RegisterValue | float, y: RegisterValue | float) -> RegisterValue:
        values = [v.value if isinstance(v, RegisterValue) else llvm.filled(v) for v in (x, y)]
        return RegisterValue(self.cell, getattr(self.cell.builder, name)(*values))

    def __add__(self, other: RegisterValue | float) -> RegisterValue:
        return self.by("fadd", self, other)

    def __sub__(self, other: RegisterValue | float) -> RegisterValue:
        return self.by("fsub", self, other)

    def __rsub__(self, other: float) -> RegisterValue:
        return self.by("fsub", other, self)

    def __mul__(self, other: RegisterValue | float) -> RegisterValue:
        return self.by("fmul", self, other)

    def tanh(self) -> RegisterValue:
        return RegisterValue(self.cell, vector_math.tanh(self.cell.builder, self.value))

    def sigmoid(self) -> RegisterValue:
        grown = RegisterValue(self.cell, vector_math.exp(self.cell.builder, (self * -1).value)) + 1
        return self.by("fdiv", 1, grown)

    def where_above(self, x: RegisterValue) -> RegisterValue:
        """Return self, but 0 in lanes where x <= 0."""
        builder = self.cell.builder
        below = builder.fcmp_ordered("<=", x.value, llvm.filled(0))
        return RegisterValue(self.cell, builder.select(below, llvm.filled(0), self.value))


class RecurrentCell:
    """IR builder of a cell.

    apart: elements from gate to gate.  left: number of lanes that exist; others are read as 0.
    """

    def __init__(self, builder, apart, left):
        self.builder, self.apart, self.mask = builder, apart, below(builder, left)

    def of_gate(self, base, gate: int):
        return self.builder.add(base, self.builder.mul(self.apart, llvm.word(gate * BYTES)))

    def read(self, base, gate: int = 0) -> RegisterValue:
        return RegisterValue(self, masked_load(self.builder, self.of_gate(base, gate), self.mask, llvm.filled(0)))

    def write(self, base, *values: RegisterValue) -> None:
        """Write one value per gate."""
        for gate, x in enumerate(values):
            masked_store(self.builder, x.value, self.of_gate(base, gate), self.mask)

    def kept(self, place) -> RegisterValue:
        return RegisterValue(self, llvm.load(self.builder, place))

    def keep(self, place, x: RegisterValue) -> None:
        """Write all 16 lanes of a packed state."""
        llvm.store(self.builder, self.builder.select(self.mask, x.value, llvm.filled(0)), place)

    def keep_blocks(self, place, far, values: Sequence[RegisterValue]) -> None:
        """Write packed values, `far` bytes apart."""
        for x in values:
            self.keep(place, x)
            place = self.builder.add(place, far)


def tanh_forward(cell, x, own, bias, state, memory, values, y, cells):
    h = (cell.read(x) + cell.read(own) + cell.read(bias)).tanh()
    cell.keep(state, h)
    cell.write(y, h)


def relu_forward(cell, x, own, bias, state, memory, values, y, cells):
    h = cell.read(x) + cell.read(own) + cell.read(bias)
    h = h.where_above(h)
    cell.keep(state, h)
    cell.write(y, h)


def lstm_forward(cell, x, own, bias, state, memory, values, y, cells):
    i, f, g, o = [cell.read(x, k) + cell.read(own, k) + cell.read(bias, k) for k in range(4)]
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    c = f * cell.kept(memory) + i * g
    h = o * c.tanh()
    cell.keep(state, h)
    cell.keep(memory, c)
    cell.write(values, i, f, g, o)
    cell.write(cells, c)
    cell.write(y, h)


def gru_forward(cell, x, own, bias, state, memory, values, y, cells):
    r, z, scaled = [cell.read(own, k) + cell.read(bias, k) for k in range(3)]
    r, z = (cell.read(x, 0) + r).sigmoid(), (cell.read(x, 1) + z).sigmoid()
    n = (cell.read(x, 2) + r * scaled).tanh()
    h = (cell.kept(state) - n) * z + n
    cell.keep(state, h)
    cell.write(values, r, z, n, scaled)
    cell.write(y, h)


def tanh_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, far, inner, at_state, before):
    gh = cell.read(gy) + cell.read(own)
    gh = gh * (1 - cell.read(y) * cell.read(y))
    cell.write(inner, gh)
    cell.keep(blocks, gh)
    cell.write(before, cell.read(h))


def relu_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, far, inner, at_state, before):
    gh = (cell.read(gy) + cell.read(own)).where_above(cell.read(y))
    cell.write(inner, gh)
    cell.keep(blocks, gh)
    cell.write(before, cell.read(h))


def lstm_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, far, inner, at_state, before):
    gh, seen = cell.read(gy) + cell.read(own), cell.read(cells).tanh()
    i, f, g, o = [cell.read(values, k) for k in range(4)]
    gc = cell.kept(carried) + gh * o * (1 - seen * seen)
    grads = (gc * g * i * (1 - i), gc * cell.read(c) * f * (1 - f), gc * i * (1 - g * g), gh * seen * o * (1 - o))
    cell.keep(carried, gc * f)
    cell.write(inner, *grads)
    cell.keep_blocks(blocks, far, grads)
    cell.write(before, cell.read(h))


def gru_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, far, inner, at_state, before):
    gh, old = cell.read(gy) + cell.read(own) + cell.kept(carried), cell.read(h)
    r, z, n, scaled = [cell.read(values, k) for k in range(4)]
    of_n = gh * (1 - z) * (1 - n * n)
    of_r, of_z = of_n * scaled * r * (1 - r), gh * (old - n) * z * (1 - z)
    cell.keep(carried, gh * z)
    cell.write(inner, of_r, of_z, of_n)
    cell.write(at_state, of_r, of_z, of_n * r)
    cell.keep_blocks(blocks, far, (of_r, of_z, of_n * r))
    cell.write(before, old)


def by_kind(name: str, places: int, *bodies: Callable) -> Callable:
    """Dispatch (kind, apart, left, *places) to the function of a kind of layer."""

    @function(name, 3 + places, inline=False)
    def chosen(builder, kind, apart, left, *addresses):
        done = builder.append_basic_block("done")
        choice = builder.switch(kind, done)
        for number, body in enumerate(bodies):
            block = builder.append_basic_block("case")
            choice.add_case(llvm.word(number), block)
            builder.position_at_end(block)
            body(RecurrentCell(builder, apart, left), *addresses)
            builder.branch(done)
        builder.position_at_end(done)

    return chosen


forward = by_kind("cell_forward", 8, tanh_forward, relu_forward, lstm_forward, gru_forward)
backward = by_kind("cell_backward", 13, tanh_backward, relu_backward, lstm_backward, gru_backward)


# ---- loops over time -------------------------------------------------------------------------------------------------

# Words of both directions, then of each. KIND of layer; STEPS, BATCH, HIDDEN: sizes; REVERSED: 1 to start at the last
# step.  MULTIPLY: address of the product's routine; TABLE: offsets of each 16 elements of a packed state; PACKED: the
# weight, in PANELS panels of FAR elements.  H0, C0, Y, VALUES, CELLS, HN, CN: inputs and outputs of the op; VALUES are
# those of the gates.  X: products of the input, X_APART elements from row to row.  BIAS: of the state.  GATED: number
# of gates.  GY, GHN, GCN, GH, GC: gradients of Y, HN, CN, H0, C0.  INNER: gradients of the gates' arguments.  OWN:
# those of the products with a state, if they differ.  BEFORE: the states at the start of each step.
(KIND, STEPS, BATCH, HIDDEN, REVERSED, MULTIPLY, TABLE, PACKED, FAR, PANELS, H0, C0, Y, VALUES, CELLS) = range(15)
X, X_APART, BIAS, HN, CN = range(15, 20)
GATED, GY, GHN, GCN, INNER, THREAD_SCRATCH, BEFORE, GH, GC = range(15, 24)


@compiled
def all_panels(words, rows, blocks, left, out):
    """Multiply `blocks` blocks of a packed state by the packed weight, row by row."""
    panels, far = word_at(words, PANELS), word_at(words, FAR) * BYTES
    for j in range(panels):
        run_routine(
            word_at(words, MULTIPLY),
            rows,
            left,
            word_at(words, PACKED) + j * far,
            word_at(words, TABLE),
            blocks,
            LANES * PANEL,
            LANES,
            out + j * PANEL * BYTES,
            panels * PANEL,
            VECTORS,
            LANES,
            0,
        )


@compiled
def copy_in(source, target, count):
    """Copy at most 16 elements, padded with zeros; zeros if there is no source."""
    zeros = filled(np.float32(0))
    store(target, load_some(source, count, zeros) if source else zeros)


@compiled
def copy_out(source, target, count):
    if target:
        store_some(target, count, load(source))


@compiled
def row_of(base, row, hidden, q):
    """Address of block q of the gates of a row; 0 if there is none."""
    return base + (row * hidden + q * LANES) * BYTES if base else 0


@instruction
def through_steps(words, chunk, scratch):
    """Run TOGETHER sequences through all time steps; the words are named above."""
    kind, steps, batch, hidden = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    first, blocks = chunk * TOGETHER, (hidden + LANES - 1) // LANES
    rows, size = min(TOGETHER, batch - first), blocks * TOGETHER * STEP
    states, cells, products = scratch, scratch + size, scratch + 2 * size
    for r in range(rows):
        for q in range(blocks):
            place = (q * TOGETHER + r) * STEP
            copy_in(row_of(word_at(words, H0), first + r, hidden, q), states + place, hidden - q * LANES)
            copy_in(row_of(word_at(words, C0), first + r, hidden, q), cells + place, hidden - q * LANES)
    for k in range(steps):
        here = (steps - 1 - k if word_at(words, REVERSED) else k) * batch + first
        all_panels(words, rows, blocks, states, products)
        for r in range(rows):
            row, own = here + r, products + r * word_at(words, PANELS) * PANEL * BYTES
            x = word_at(words, X) + row * word_at(words, X_APART) * BYTES
            for q in range(blocks):
                place = (q * TOGETHER + r) * STEP
                forward(
                    kind,
                    hidden,
                    hidden - q * LANES,
                    x + q * STEP,
                    own + q * STEP,
                    word_at(words, BIAS) + q * STEP,
                    states + place,
                    cells + place,
                    row_of(word_at(words, VALUES), 4 * row, hidden, q),
                    row_of(word_at(words, Y), row, hidden, q),
                    row_of(word_at(words, CELLS), row, hidden, q),
                )
    for r in range(rows):
        for q in range(blocks):
            place = (q * TOGETHER + r) * STEP
            copy_out(states + place, row_of(word_at(words, HN), first + r, hidden, q), hidden - q * LANES)
            copy_out(cells + place, row_of(word_at(words, CN), first + r, hidden, q), hidden - q * LANES)


@instruction
def back_through_steps(words, chunk, scratch):
    """Backpropagate TOGETHER sequences through time."""
    kind, steps, batch, hidden = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    gates, first, blocks = word_at(words, GATED), chunk * TOGETHER, (hidden + LANES - 1) // LANES
    rows, size, width = min(TOGETHER, batch - first), blocks * TOGETHER * STEP, word_at(words, PANELS) * PANEL * BYTES
    carried, inner, products = scratch, scratch + size, scratch + (1 + gates) * size
    for r in range(rows):
        for q in range(blocks):
            left, place = hidden - q * LANES, (q * TOGETHER + r) * STEP
            copy_in(row_of(word_at(words, GCN), first + r, hidden, q), carried + place, left)
            copy_in(row_of(word_at(words, GHN), first + r, hidden, q), products + r * width + q * STEP, left)
    for k in range(steps - 1, -1, -1):
        here, behind = k * batch + first, (k - 1) * batch + first
        if word_at(words, REVERSED):
            here, behind = (steps - 1 - k) * batch + first, (steps - k) * batch + first
        h, c = word_at(words, Y), word_at(words, CELLS)
        if k == 0:
            behind, h, c = first, word_at(words, H0), word_at(words, C0)
        for r in range(rows):
            row, old, own = here + r, behind + r, products + r * width
            for q in range(blocks):
                place = (q * TOGETHER + r) * STEP
                backward(
                    kind,
                    hidden,
                    hidden - q * LANES,
                    row_of(word_at(words, GY), row, hidden, q),
                    own + q * STEP,
                    row_of(word_at(words, Y), row, hidden, q),
                    row_of(word_at(words, VALUES), 4 * row, hidden, q),
                    row_of(word_at(words, CELLS), row, hidden, q),
                    row_of(h, old, hidden, q),
                    row_of(c, old, hidden, q),
                    carried + place,
                    inner + place,
                    size,
                    row_of(word_at(words, INNER), gates * row, hidden, q),
                    row_of(word_at(words, THREAD_SCRATCH), gates * row, hidden, q),
                    row_of(word_at(words, BEFORE), row, hidden, q),
                )
        all_panels(words, rows, gates * blocks, inner, products)
    for r in range(rows):
        for q in range(blocks):
            left, carry = hidden - q * LANES, carried + (q * TOGETHER + r) * STEP
            grad = load(products + r * width + q * STEP)
            grad = add(grad, load(carry)) if kind == GRU else grad
            store_some(row_of(word_at(words, GH), first + r, hidden, q), left, grad)
            copy_out(carry, row_of(word_at(words, GC), first + r, hidden, q), left)


# ---- builders --------------------------------------------------------------------------------------------------------


def fits(arrays: Sequence, outs: Sequence, x: np.ndarray, sizes: tuple) -> bool:
    """True for contiguous float32, except the input, whose time steps may have any strides; and not empty."""
    return (
        not sizes
        and flat(*[a for a in arrays if a is not x], *outs)
        and x.dtype == np.float32
        and min([a.size for a in (x, *outs)]) > 0
    )


def packed_weight(w: np.ndarray, gates: int, turned: bool, room: Workspace) -> tuple[list[Task], list]:
    """Build the tasks that pack w_hh as the right side for states, or (turned) for their gradients.

    Also returns the words TABLE to PANELS.
    """
    hidden = w.shape[1]
    blocks = -(-hidden // LANES)
    depth, width = (blocks, gates * hidden) if not turned else (gates * blocks, hidden)
    far, panels = (depth + 1) * TILE * VECTORS, -(-width // PANEL)
    place = room.take(panels * far)
    parts = np.split(w, gates) if turned else [w.T]  # the sum of each gate is padded to whole vectors
    steps = [
        packing(
            part,
            side(part.shape, part.strides, ()),
            *part.shape,
            place + k * blocks * TILE * VECTORS * BYTES,
            PANEL,
            LANES,
            far,
        )
        for k, part in enumerate(parts)
    ]
    return steps, [np.arange(depth, dtype="i8") * (TOGETHER * LANES), place, far, panels]


def scratch_of(blocks: int, panels: int) -> int:
    return TOGETHER * (blocks * LANES + panels * PANEL)


def layer(
    kind: int, arrays: Sequence, outs: Sequence, room: Workspace, sizes: tuple, reverse: bool
) -> list[Task] | None:
    x, h0, *c0, w_ih, w_hh, b_ih, b_hh = arrays
    if not fits(arrays, outs, x, sizes):
        return None
    (count, batch, _), hidden = x.shape, h0.shape[1]
    y, hn = outs[:2]
    cn, values, cells = {LSTM: outs[2:], GRU: (0, *outs[2:], 0)}.get(kind, (0, 0, 0))
    arriving = {LSTM: values}.get(kind, y) if kind != GRU else room.array((count * batch, 3 * hidden))
    steps = product(x, w_ih.T, arriving.reshape(count * batch, -1), room, b_ih)
    if steps is None:
        return None
    packs, words = packed_weight(w_hh, GATES[kind], False, room)
    last = through_steps(
        -(-batch // TOGETHER),
        kind,
        count,
        batch,
        hidden,
        reverse,
        multiply.address,
        *words,
        h0,
        *(c0 or [0]),
        y,
        values,
        cells,
        arriving,
        GATES[kind] * hidden,
        b_hh,
        hn,
        cn,
        scratch=scratch_of(2 * -(-hidden // LANES), words[-1]),
    )
    return [*steps, *packs, last]


def layer_grad(
    kind: int, arrays: Sequence, outs: Sequence, room: Workspace, sizes: tuple, reverse: bool
) -> list[Task] | None:
    gy, ghn, *rest = arrays
    gcn = rest.pop(0) if kind == LSTM else 0
    x, h0, *rest = rest
    c0 = rest.pop(0) if kind == LSTM else 0
    w_ih, w_hh, y, *rest = rest
    values, cells = (*rest, 0, 0)[:2]
    gx, gh, *rest = outs
    gc = rest.pop(0) if kind == LSTM else 0
    gw_ih, gw_hh, *biases = rest
    if not fits(arrays, outs, x, sizes):
        return None
    (count, batch, _), hidden, gates = x.shape, h0.shape[1], GATES[kind]
    rows, steps = count * batch, []
    if not x.flags.c_contiguous:
        steps, x = clone([x], [whole := room.array((rows, x.shape[2])).reshape(x.shape)], room), whole
    before, inner = room.array((rows, hidden)), room.array((rows, gates * hidden))
    own = room.array((rows, gates * hidden)) if kind == GRU else inner
    packs, words = packed_weight(w_hh, gates, True, room)
    back = back_through_steps(
        -(-batch // TOGETHER),
        kind,
        count,
        batch,
        hidden,
        reverse,
        multiply.address,
        *words,
        h0,
        c0,
        y,
        values,
        cells,
        gates,
        gy,
        ghn,
        gcn,
        inner,
        own,
        before,
        gh,
        gc,
        scratch=scratch_of((gates + 1) * -(-hidden // LANES), words[-1]),
    )
    shared, place = packed_rows(inner.T, room) if own is inner else ([], 0)  # both gradients of weights read it
    steps = [*steps, *packs, back, *shared]
    for a, b, out, packed in (
        (inner, w_ih, gx.reshape(rows, -1), 0),
        (inner.T, x.reshape(rows, -1), gw_ih, place),
        (own.T, before, gw_hh, place),
    ):
        steps += product(a, b, out, room, packed_a=packed)
    return steps + [
        sum_rows(-(-bias.size // COLUMNS), grads, bias, rows, bias.size, COLUMNS)
        for grads, bias in zip((inner, own), biases)
    ]


def of_kind(run: Callable, kind: int) -> Callable:
    """Return a builder for one kind of layer; an `rnn` has the activation among its attrs."""

    def build(
        arrays: Sequence, outs: Sequence, room: Workspace, sizes: tuple, reverse: bool, relu: bool = False
    ) -> list[Task] | None:
        return run(RELU if relu else kind, arrays, outs, room, sizes, reverse)

    return build


rnn, lstm, gru = [of_kind(layer, kind) for kind in (TANH, LSTM, GRU)]
rnn_grad, lstm_grad, gru_grad = [of_kind(layer_grad, kind) for kind in (TANH, LSTM, GRU)]


lowers(OPS["rnn"], rnn)
lowers(OPS["rnn_grad"], rnn_grad)
lowers(OPS["lstm"], lstm)
lowers(OPS["lstm_grad"], lstm_grad)
lowers(OPS["gru"], gru)
lowers(OPS["gru_grad"], gru_grad)
