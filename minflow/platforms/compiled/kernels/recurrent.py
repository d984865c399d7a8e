"""Recurrent layers: one product for the inputs of all time steps, then a loop over time per chunk of sequences.

The gradients of the weights are single products, too. In between, a thread takes some sequences through all time steps
without synchronizing with others. States stay in the cache as [block][sequence][16], the layout of a packed left side;
the recurrent weight, the right side, is packed once. Packed sequences and projections are left to NumPy. Semantics,
within float32 rounding: `core/ops/rnn.py`, `core/ops/lstm.py`, `core/ops/gru.py`. Read next: `gemm.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ....core.op import OPS
from ..codegen import llvm, vector_math
from ..codegen.jit import compiled
from ..codegen.llvm import LANES, function
from ..codegen.micro_kernels import PANEL, ROWS, VECTORS
from ..codegen.vectors import BYTES, below, filled, load, load_some, masked_load, masked_store, store, store_some
from ..lowering import lowers
from ..runtime.instructions import instruction, run_routine
from ..runtime.tasks import Task, Workspace
from .data_movement import clone
from .elementwise import COLUMNS, flat, sum_rows
from .gemm import PackedMatrix, layout_of, packed_rows, packing, product
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

    stride: elements from gate to gate.  left: number of lanes that exist; others are read as 0.
    """

    def __init__(self, builder, stride, left):
        self.builder, self.stride, self.mask = builder, stride, below(builder, left)

    def of_gate(self, base, gate: int):
        return self.builder.add(base, self.builder.mul(self.stride, llvm.word(gate * BYTES)))

    def read(self, base, gate: int = 0) -> RegisterValue:
        return RegisterValue(self, masked_load(self.builder, self.of_gate(base, gate), self.mask, llvm.filled(0)))

    def write(self, base, *values: RegisterValue) -> None:
        """Write one value per gate."""
        for gate, x in enumerate(values):
            masked_store(self.builder, x.value, self.of_gate(base, gate), self.mask)

    def packed(self, place) -> RegisterValue:
        return RegisterValue(self, llvm.load(self.builder, place))

    def write_packed(self, place, x: RegisterValue) -> None:
        """Write all 16 lanes of a packed state."""
        llvm.store(self.builder, self.builder.select(self.mask, x.value, llvm.filled(0)), place)

    def write_blocks(self, place, stride, values: Sequence[RegisterValue]) -> None:
        """Write packed values, `stride` bytes apart."""
        for x in values:
            self.write_packed(place, x)
            place = self.builder.add(place, stride)


def tanh_forward(cell, x, own, bias, state, memory, values, y, cells):
    h = (cell.read(x) + cell.read(own) + cell.read(bias)).tanh()
    cell.write_packed(state, h)
    cell.write(y, h)


def relu_forward(cell, x, own, bias, state, memory, values, y, cells):
    h = cell.read(x) + cell.read(own) + cell.read(bias)
    h = h.where_above(h)
    cell.write_packed(state, h)
    cell.write(y, h)


def lstm_forward(cell, x, own, bias, state, memory, values, y, cells):
    i, f, g, o = [cell.read(x, k) + cell.read(own, k) + cell.read(bias, k) for k in range(4)]
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    c = f * cell.packed(memory) + i * g
    h = o * c.tanh()
    cell.write_packed(state, h)
    cell.write_packed(memory, c)
    cell.write(values, i, f, g, o)
    cell.write(cells, c)
    cell.write(y, h)


def gru_forward(cell, x, own, bias, state, memory, values, y, cells):
    r, z, scaled = [cell.read(own, k) + cell.read(bias, k) for k in range(3)]
    r, z = (cell.read(x, 0) + r).sigmoid(), (cell.read(x, 1) + z).sigmoid()
    n = (cell.read(x, 2) + r * scaled).tanh()
    h = (cell.packed(state) - n) * z + n
    cell.write_packed(state, h)
    cell.write(values, r, z, n, scaled)
    cell.write(y, h)


def tanh_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, stride, inner, at_state, before):
    gh = cell.read(gy) + cell.read(own)
    gh = gh * (1 - cell.read(y) * cell.read(y))
    cell.write(inner, gh)
    cell.write_packed(blocks, gh)
    cell.write(before, cell.read(h))


def relu_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, stride, inner, at_state, before):
    gh = (cell.read(gy) + cell.read(own)).where_above(cell.read(y))
    cell.write(inner, gh)
    cell.write_packed(blocks, gh)
    cell.write(before, cell.read(h))


def lstm_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, stride, inner, at_state, before):
    gh, seen = cell.read(gy) + cell.read(own), cell.read(cells).tanh()
    i, f, g, o = [cell.read(values, k) for k in range(4)]
    gc = cell.packed(carried) + gh * o * (1 - seen * seen)
    grads = (gc * g * i * (1 - i), gc * cell.read(c) * f * (1 - f), gc * i * (1 - g * g), gh * seen * o * (1 - o))
    cell.write_packed(carried, gc * f)
    cell.write(inner, *grads)
    cell.write_blocks(blocks, stride, grads)
    cell.write(before, cell.read(h))


def gru_backward(cell, gy, own, y, values, cells, h, c, carried, blocks, stride, inner, at_state, before):
    gh, old = cell.read(gy) + cell.read(own) + cell.packed(carried), cell.read(h)
    r, z, n, scaled = [cell.read(values, k) for k in range(4)]
    of_n = gh * (1 - z) * (1 - n * n)
    of_r, of_z = of_n * scaled * r * (1 - r), gh * (old - n) * z * (1 - z)
    cell.write_packed(carried, gh * z)
    cell.write(inner, of_r, of_z, of_n)
    cell.write(at_state, of_r, of_z, of_n * r)
    cell.write_blocks(blocks, stride, (of_r, of_z, of_n * r))
    cell.write(before, old)


def by_kind(name: str, places: int, *bodies: Callable) -> Callable:
    """Dispatch (kind, stride, left, *places) to the function of a kind of layer."""

    @function(name, 3 + places, inline=False)
    def chosen(builder, kind, stride, left, *addresses):
        done = builder.append_basic_block("done")
        choice = builder.switch(kind, done)
        for number, body in enumerate(bodies):
            block = builder.append_basic_block("case")
            choice.add_case(llvm.word(number), block)
            builder.position_at_end(block)
            body(RecurrentCell(builder, stride, left), *addresses)
            builder.branch(done)
        builder.position_at_end(done)

    return chosen


forward = by_kind("cell_forward", 8, tanh_forward, relu_forward, lstm_forward, gru_forward)
backward = by_kind("cell_backward", 13, tanh_backward, relu_backward, lstm_backward, gru_backward)


# ---- loops over time -------------------------------------------------------------------------------------------------


class PackedWeight(NamedTuple):
    """The recurrent weight as the right side of products, as a parameter of an instruction.

    table: offsets of each 16 elements of a packed state.  packed: address of its panels, `panel` elements each.
    """

    table: np.ndarray
    packed: int
    panel: int
    panels: int


class RecurrentSizes(NamedTuple):
    """Kind and sizes of a layer. reverse: 1 to start at the last step. multiply: the routine."""

    kind: int
    steps: int
    batch: int
    hidden: int
    reverse: int
    multiply: int


class States(NamedTuple):
    """Arrays of a layer; those that a kind of layer does not have are 0.

    h0, c0: (batch, hidden).  y, cells: (steps, batch, hidden).  values: of the gates, (steps, batch, 4, hidden).
    """

    h0: np.ndarray
    c0: np.ndarray | int
    y: np.ndarray
    values: np.ndarray | int
    cells: np.ndarray | int


@compiled
def all_panels(multiply, weight, rows, blocks, left, out):
    """Multiply `blocks` blocks of a packed state by the packed weight, row by row."""
    for j in range(weight.panels):
        run_routine(
            multiply,
            rows,
            left,
            weight.packed + j * weight.panel * BYTES,
            weight.table,
            blocks,
            LANES * PANEL,
            LANES,
            out + j * PANEL * BYTES,
            weight.panels * PANEL,
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
def run_steps(chunk, scratch, sizes: RecurrentSizes, weight: PackedWeight, s: States, x, x_row, bias, hn, cn):
    """Run TOGETHER sequences through all time steps.

    x: products of the input, `x_row` elements per row.  bias: of the state, all gates.  hn, cn: (batch, hidden); 0 for
    none.
    """
    kind, steps, batch, hidden = sizes.kind, sizes.steps, sizes.batch, sizes.hidden
    first, blocks = chunk * TOGETHER, (hidden + LANES - 1) // LANES
    rows, size = min(TOGETHER, batch - first), blocks * TOGETHER * STEP
    states, memory, products = scratch, scratch + size, scratch + 2 * size
    for r in range(rows):
        for q in range(blocks):
            place = (q * TOGETHER + r) * STEP
            copy_in(row_of(s.h0, first + r, hidden, q), states + place, hidden - q * LANES)
            copy_in(row_of(s.c0, first + r, hidden, q), memory + place, hidden - q * LANES)
    for k in range(steps):
        here = (steps - 1 - k if sizes.reverse else k) * batch + first
        all_panels(sizes.multiply, weight, rows, blocks, states, products)
        for r in range(rows):
            row, own, x_row_r = here + r, products + r * weight.panels * PANEL * BYTES, x + (here + r) * x_row * BYTES
            for q in range(blocks):
                place = (q * TOGETHER + r) * STEP
                forward(
                    kind,
                    hidden,
                    hidden - q * LANES,
                    x_row_r + q * STEP,
                    own + q * STEP,
                    bias + q * STEP,
                    states + place,
                    memory + place,
                    row_of(s.values, 4 * row, hidden, q),
                    row_of(s.y, row, hidden, q),
                    row_of(s.cells, row, hidden, q),
                )
    for r in range(rows):
        for q in range(blocks):
            place = (q * TOGETHER + r) * STEP
            copy_out(states + place, row_of(hn, first + r, hidden, q), hidden - q * LANES)
            copy_out(memory + place, row_of(cn, first + r, hidden, q), hidden - q * LANES)


@compiled
def grads_in(rows, blocks, first, hidden, width, gcn, ghn, carried, products):
    """Load the gradients of the last states of some sequences."""
    for r in range(rows):
        for q in range(blocks):
            left, place = hidden - q * LANES, (q * TOGETHER + r) * STEP
            copy_in(row_of(gcn, first + r, hidden, q), carried + place, left)
            copy_in(row_of(ghn, first + r, hidden, q), products + r * width + q * STEP, left)


@compiled
def grads_out(kind, rows, blocks, first, hidden, width, products, carried, gh, gc):
    """Write the gradients of the first states of some sequences."""
    for r in range(rows):
        for q in range(blocks):
            left, carry = hidden - q * LANES, carried + (q * TOGETHER + r) * STEP
            grad = load(products + r * width + q * STEP)
            grad = grad + load(carry) if kind == GRU else grad
            store_some(row_of(gh, first + r, hidden, q), left, grad)
            copy_out(carry, row_of(gc, first + r, hidden, q), left)


@instruction
def run_steps_backward(
    chunk,
    scratch,
    sizes: RecurrentSizes,
    weight: PackedWeight,
    s: States,
    gates,
    gy,
    ghn,
    gcn,
    inner,
    at_state,
    before,
    gh,
    gc,
):
    """Backpropagate TOGETHER sequences through time.

    gates: number of gates.  gy, ghn, gcn, gh, gc: gradients of y, hn, cn, h0, c0.  inner: gradients of the arguments of
    the gates, (steps, batch, gates, hidden).  at_state: those of the products with a state, if they differ.  before:
    the states at the start of each step.
    """
    kind, steps, batch, hidden = sizes.kind, sizes.steps, sizes.batch, sizes.hidden
    first, blocks = chunk * TOGETHER, (hidden + LANES - 1) // LANES
    rows, size, width = min(TOGETHER, batch - first), blocks * TOGETHER * STEP, weight.panels * PANEL * BYTES
    carried, packed, products = scratch, scratch + size, scratch + (1 + gates) * size
    grads_in(rows, blocks, first, hidden, width, gcn, ghn, carried, products)
    for k in range(steps - 1, -1, -1):
        here, behind = k * batch + first, (k - 1) * batch + first
        if sizes.reverse:
            here, behind = (steps - 1 - k) * batch + first, (steps - k) * batch + first
        h, c = s.y, s.cells
        if k == 0:
            behind, h, c = first, s.h0, s.c0
        for r in range(rows):
            row, old, own = here + r, behind + r, products + r * width
            for q in range(blocks):
                place = (q * TOGETHER + r) * STEP
                backward(
                    kind,
                    hidden,
                    hidden - q * LANES,
                    row_of(gy, row, hidden, q),
                    own + q * STEP,
                    row_of(s.y, row, hidden, q),
                    row_of(s.values, 4 * row, hidden, q),
                    row_of(s.cells, row, hidden, q),
                    row_of(h, old, hidden, q),
                    row_of(c, old, hidden, q),
                    carried + place,
                    packed + place,
                    size,
                    row_of(inner, gates * row, hidden, q),
                    row_of(at_state, gates * row, hidden, q),
                    row_of(before, row, hidden, q),
                )
        all_panels(sizes.multiply, weight, rows, gates * blocks, packed, products)
    grads_out(kind, rows, blocks, first, hidden, width, products, carried, gh, gc)


# ---- builders --------------------------------------------------------------------------------------------------------


def fits(arrays: Sequence, outs: Sequence, x: np.ndarray, sizes: tuple) -> bool:
    """True for contiguous float32, except the input, whose time steps may have any strides; and not empty."""
    return (
        not sizes
        and flat(*[a for a in arrays if a is not x], *outs)
        and x.dtype == np.float32
        and min([a.size for a in (x, *outs)]) > 0
    )


def packed_weight(w: np.ndarray, gates: int, transposed: bool, workspace: Workspace) -> tuple[list[Task], PackedWeight]:
    """Build the tasks that pack w_hh as the right side for states, or (transposed) for their gradients."""
    hidden = w.shape[1]
    blocks = -(-hidden // LANES)
    depth, width = (blocks, gates * hidden) if not transposed else (gates * blocks, hidden)
    panel, panels = (depth + 1) * TILE * VECTORS, -(-width // PANEL)
    packed = workspace.take(panels * panel)
    parts = np.split(w, gates) if transposed else [w.T]  # the sum of each gate is padded to whole vectors
    tasks = []
    for k, part in enumerate(parts):
        layout, target = layout_of(part.shape, part.strides, ()), packed + k * blocks * TILE * VECTORS * BYTES
        tasks.append(packing(part, layout, *part.shape, target, PANEL, LANES, panel))
    return tasks, PackedWeight(np.arange(depth, dtype="i8") * (TOGETHER * LANES), packed, panel, panels)


def scratch_of(blocks: int, panels: int) -> int:
    return TOGETHER * (blocks * LANES + panels * PANEL)


def layer(
    kind: int, arrays: Sequence, outs: Sequence, workspace: Workspace, sizes: tuple, reverse: bool
) -> list[Task] | None:
    x, h0, *c0, w_ih, w_hh, b_ih, b_hh = arrays
    if not fits(arrays, outs, x, sizes):
        return None
    (count, batch, _), hidden = x.shape, h0.shape[1]
    y, hn = outs[:2]
    cn, values, cells = {LSTM: outs[2:], GRU: (0, *outs[2:], 0)}.get(kind, (0, 0, 0))
    inputs = {LSTM: values}.get(kind, y) if kind != GRU else workspace.array((count * batch, 3 * hidden))
    steps = product(x, w_ih.T, inputs.reshape(count * batch, -1), workspace, b_ih)
    if steps is None:
        return None
    packs, weight = packed_weight(w_hh, GATES[kind], False, workspace)
    last = run_steps(
        -(-batch // TOGETHER),
        RecurrentSizes(kind, count, batch, hidden, reverse, multiply.address),
        weight,
        States(h0, *(c0 or [0]), y, values, cells),
        inputs,
        GATES[kind] * hidden,
        b_hh,
        hn,
        cn,
        scratch=scratch_of(2 * -(-hidden // LANES), weight.panels),
    )
    return [*steps, *packs, last]


def layer_grad(
    kind: int, arrays: Sequence, outs: Sequence, workspace: Workspace, sizes: tuple, reverse: bool
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
        steps, x = clone([x], [whole := workspace.array((rows, x.shape[2])).reshape(x.shape)], workspace), whole
    before, inner = workspace.array((rows, hidden)), workspace.array((rows, gates * hidden))
    own = workspace.array((rows, gates * hidden)) if kind == GRU else inner
    packs, weight = packed_weight(w_hh, gates, True, workspace)
    back = run_steps_backward(
        -(-batch // TOGETHER),
        RecurrentSizes(kind, count, batch, hidden, reverse, multiply.address),
        weight,
        States(h0, c0, y, values, cells),
        gates,
        gy,
        ghn,
        gcn,
        inner,
        own,
        before,
        gh,
        gc,
        scratch=scratch_of((gates + 1) * -(-hidden // LANES), weight.panels),
    )
    steps = [*steps, *packs, back]
    sides: list[np.ndarray | PackedMatrix] = [inner.T, own.T]
    if own is inner:  # both gradients of weights read it
        shared, packed = packed_rows(inner.T, workspace)
        sides, steps = [packed, packed], [*steps, *shared]
    for a, b, out in (
        (inner, w_ih, gx.reshape(rows, -1)),
        (sides[0], x.reshape(rows, -1), gw_ih),
        (sides[1], before, gw_hh),
    ):
        steps += product(a, b, out, workspace)
    return steps + [
        sum_rows(-(-bias.size // COLUMNS), grads, bias, rows, bias.size, COLUMNS)
        for grads, bias in zip((inner, own), biases)
    ]


def of_kind(run: Callable, kind: int) -> Callable:
    """Return a builder for one kind of layer; an `rnn` has the activation among its attrs."""

    def build(
        arrays: Sequence, outs: Sequence, workspace: Workspace, sizes: tuple, reverse: bool, relu: bool = False
    ) -> list[Task] | None:
        return run(RELU if relu else kind, arrays, outs, workspace, sizes, reverse)

    return build


rnn, lstm, gru = [of_kind(layer, kind) for kind in (TANH, LSTM, GRU)]
rnn_grad, lstm_grad, gru_grad = [of_kind(layer_grad, kind) for kind in (TANH, LSTM, GRU)]


lowers(OPS["rnn"], rnn)
lowers(OPS["rnn_grad"], rnn_grad)
lowers(OPS["lstm"], lstm)
lowers(OPS["lstm_grad"], lstm_grad)
lowers(OPS["gru"], gru)
lowers(OPS["gru_grad"], gru_grad)
