"""Clusters of elementwise ops and sums along rows, each a generated kernel.

If all results are whole, a thread computes an element. Otherwise a warp or a block computes a row: in a pass for each
sum that depends on another one, it computes again what it needs from the inputs, which are in the cache then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ....compiler.fusion import CLUSTERS, FULL, ROW, SUMS, FusedRegion, Operand, base_of, seen, whole
from ....core.backend import Array
from ....core.ir import Node, Value, outputs_of
from ....core.kernels import Kernel, register
from ....core.ops.shape import cast
from ..device_code import C_NAMES, WARP, blocks_for, cuda_backend_of, threads_for
from ..elementwise import SMALL_INDEX, CudaFormula, computing_type, converted, formula_dtype
from .elementwise import THREADS, TOLERANCE

NARROW = 256  # most columns of a row that a warp computes
NAMED = 5  # ops in the name of a kernel
LOOP = """for (index i = blockIdx.x * (index)blockDim.x + threadIdx.x; i < (index)rows * (index)columns;
       i += gridDim.x * (index)blockDim.x) {"""
ROW_OF_WARP = """const index lane = threadIdx.x % 32, width = 32, row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= (index)rows) return;"""
ROW_OF_BLOCK = "const index lane = threadIdx.x, width = blockDim.x, row = blockIdx.x;"
PASS = "for (index column = lane; column < (index)columns; column += width) {"


class ClusterKernel(NamedTuple):
    """The kernel of a region. extra: its last arguments.  sliced: inputs that are not contiguous, whose distances of
    rows, in elements, follow them.
    """

    source: str
    name: str
    grid: tuple[int]
    block: tuple[int]
    extra: list[int]
    sliced: list[int]


class RegionWriter:
    """Writes the kernel of a region.

    lines: statements outside of passes.  outside: value, or (value, how it is read) -> its variable there.  levels:
    the pass from which a value can be computed.  extra: see ClusterKernel.
    """

    def __init__(self, region: FusedRegion):
        self.region, self.lines, self.extra = region, [], []  # type: tuple[FusedRegion, list[str], list[int]]
        self.sliced = [k for k, x in enumerate(region.inputs) if not whole(x)]
        self.nodes = [node for node in region.nodes if not node.op.is_view]
        self.node_of = {outputs_of(node)[0]: node for node in self.nodes}
        self.outside: dict[Any, str] = {}
        self.levels: dict[Value, int] = {}
        for node in self.nodes:
            bases = [base_of(x) for x in node.inputs if x.__class__ is Value]
            before = max([self.levels.get(x, 0) for x in bases], default=0)
            self.levels[outputs_of(node)[0]] = before + (node.op.name in SUMS)

    @functools.cached_property
    def by_rows(self) -> bool:
        return any([not self.is_whole(v) for v in self.node_of])

    def is_whole(self, v: Value) -> bool:
        """True if a value has an element for each row and column."""
        return v.spec.size == self.region.rows * self.region.columns

    def argument(self, number: int) -> str:
        self.extra.append(number)
        return f"(index)k{len(self.extra) - 1}"

    # ---- values ------------------------------------------------------------------------------------------------------

    def value(self, x: Any, node: Node, lines: list[str], known: dict, prefix: str) -> Any:
        """The variable of an input of a node, or the number. lines, known: of the pass."""
        if x.__class__ is not Value:
            return x
        base = base_of(x)
        if base in self.node_of:
            if base not in self.outside and base not in known:
                known[base] = self.statement(self.node_of[base], lines, known, prefix)
            return self.outside[base] if base in self.outside else known[base]
        operand = self.region.read(x, seen(node))
        assert operand is not None
        if operand.kind != FULL and self.by_rows:
            known, lines, prefix = self.outside, self.lines, "r"
        if (base, operand) not in known:
            known[base, operand] = self.load(base, operand, lines, prefix)
        return known[base, operand]

    def load(self, x: Value, operand: Operand, lines: list[str], prefix: str) -> str:
        name = f"{prefix}{len(lines)}"
        kind, k = computing_type(x.spec.dtype.name), self.region.inputs.index(x)
        place = self.place(operand) if k not in self.sliced else f"({self.row(operand)}) * (index)step{k} + column"
        lines.append(f"const {kind} {name} = a{k}[{place}];")
        return name

    def place(self, operand: Operand) -> str:
        """The index of the element of an operand."""
        rows = self.region.rows
        if operand.kind not in (FULL, ROW) or operand.period == 1:
            return "column" if operand.kind == FULL and self.region.columns > 1 else "0"
        if operand.period == rows:
            return "i" if operand.kind == FULL else "row"
        row = self.row(operand)
        return f"({row}) * (index)columns + column" if operand.kind == FULL else row

    def row(self, operand: Operand) -> str:
        """The row of an operand."""
        row = f"row / {self.argument(operand.repeat)}" if operand.repeat > 1 else "row"
        if operand.period * operand.repeat < self.region.rows:
            row = f"{row} % {self.argument(operand.period)}"
        return row

    def statement(self, node: Node, lines: list[str], known: dict, prefix: str) -> str:
        """The variable of the result of an elementwise op."""
        result = node.out_specs[0].dtype.name
        names = [x.spec.dtype.name for x in node.inputs if x.__class__ is Value]
        dtype = formula_dtype(node.op, names, result)
        assert dtype is not None
        formula = CudaFormula(lines, dtype, prefix)
        operands = [self.value(x, node, lines, known, prefix) for x in node.inputs]
        if node.op is cast:
            code = converted(operands[0], C_NAMES[result], computing_type(names[0]))
            return formula.variable(formula.type, code)
        if dtype != "float32":
            operands = [x if isinstance(x, str) or x in (2, 3) else formula.rounded(x) for x in operands]
        assert node.op.scalar is not None
        found = formula.literal(node.op.scalar(formula, *operands, **node.attrs))
        return found if result == "bool" else formula.rounded(found)

    # ---- the kernel --------------------------------------------------------------------------------------------------

    def store(self, v: Value, value: str, place: str) -> str:
        dtype = v.spec.dtype.name
        code = converted(value, C_NAMES[dtype], computing_type(dtype))
        return f"y{self.region.outputs.index(v)}[{place}] = {code};"

    def write_elements(self) -> None:
        lines: list[str] = []
        known: dict = {}
        for v in self.region.outputs:
            value = known[v] if v in known else self.statement(self.node_of[v], lines, known, "v")
            known[v] = value
            lines.append(self.store(v, value, "i"))
        if any(["row" in line for line in lines]):
            lines.insert(0, "const index row = i / (index)columns;")
        if any(["column" in line for line in lines]):
            lines.insert(0, "const index column = i % (index)columns;")
        self.lines += [LOOP, *[f"  {line}" for line in lines], "}"]

    def write_rows(self, narrow: bool) -> None:
        self.lines.append(ROW_OF_WARP if narrow else ROW_OF_BLOCK)
        for level in range(max(self.levels.values()) + 1):
            self.write_pass(level, "sum_of_warp" if narrow else "sum_of_block")
        rows = [v for v in self.region.outputs if not self.is_whole(v)]
        if rows:  # a result may be in the place of an operand that other threads still read
            self.lines += ["__syncwarp();" if narrow else "__syncthreads();", "if (lane == 0) {"]
            self.lines += [*[f"  {self.store(v, self.outside[v], 'row')}" for v in rows], "}"]

    def write_pass(self, level: int, total_of: str) -> None:
        """Compute the values of a level: those of rows, sums of whole values, and whole results."""
        lines, prefix = ["const index i = row * (index)columns + column;"], f"p{level}_"
        known: dict = {}
        sums: list[tuple[Node, str]] = []
        for node in self.nodes:
            (v,), summing = outputs_of(node), node.op.name in SUMS
            if self.levels[v] == level and not summing and not self.is_whole(v):
                self.outside[v] = self.statement(node, self.lines, self.outside, "r")
            elif summing and self.levels[v] == level + 1:
                total = f"sum{level}_{len(sums)}"
                sums.append((node, total))
                self.lines.append(f"{computing_type(v.spec.dtype.name)} {total} = 0;")
                lines.append(f"{total} += {self.value(node.inputs[0], node, lines, known, prefix)};")
        for v in self.region.outputs:
            if self.is_whole(v) and self.levels[v] == level:
                known[v] = known[v] if v in known else self.statement(self.node_of[v], lines, known, prefix)
                lines.append(self.store(v, known[v], "i"))
        if len(lines) > 1:
            self.lines += [PASS, *[f"  {line}" for line in lines], "}"]
        for node, total in sums:
            formula = CudaFormula(self.lines, node.out_specs[0].dtype.name, "r")
            whole = f"{total_of}({total})" + " / columns" * (node.op.name == "mean")
            self.outside[outputs_of(node)[0]] = formula.rounded(formula.variable(formula.type, whole))

    def kernel(self) -> ClusterKernel:
        region, size = self.region, self.region.rows * self.region.columns
        narrow = region.columns <= NARROW
        if self.by_rows:
            self.write_rows(narrow)
        else:
            self.write_elements()
        arrays = [f"const {C_NAMES[x.spec.dtype.name]}* a{k}" for k, x in enumerate(region.inputs)]
        arrays += [f"{C_NAMES[v.spec.dtype.name]}* y{k}" for k, v in enumerate(region.outputs)]
        extra = [*[f"k{k}" for k in range(len(self.extra))], *[f"step{k}" for k in self.sliced]]
        numbers = [f"long long {name}" for name in ("rows", "columns", *extra)]
        name = "_".join(["cluster", *[node.op.name for node in self.nodes[:NAMED]]])
        parameters = ", ".join([*numbers[:2], *arrays, *numbers[2:]])
        body = "\n".join([f"  {line}" for line in self.lines])
        index = "int" if size < SMALL_INDEX else "long long"
        source = f'extern "C" __global__ void {name}({parameters}) {{\n  typedef {index} index;\n{body}\n}}\n'
        if not self.by_rows:
            grid, block = blocks_for(size), THREADS
        elif narrow:
            grid, block = -(-region.rows * WARP // THREADS), THREADS
        else:
            grid, block = region.rows, threads_for(region.columns)
        return ClusterKernel(source, name, (grid,), (block,), self.extra, self.sliced)


def prepared(code: FusedRegion, arrays: Sequence[Array], outs: Sequence[Array]) -> Callable | None:
    """The call of a cluster; None if an array has other strides than its value says."""
    if code.program is None:
        code.program = RegionWriter(code).kernel()
    kernel: ClusterKernel = code.program
    if not all([x.flags.c_contiguous for k, x in enumerate((*arrays, *outs)) if k not in kernel.sliced]):
        return None
    steps = [arrays[k].strides[-2] // arrays[k].itemsize for k in kernel.sliced]
    run = cuda_backend_of(outs[0]).generated(kernel.source, kernel.name)
    return partial(run, kernel.grid, kernel.block, [code.rows, code.columns, *arrays, *outs, *kernel.extra, *steps])


def run_cluster(*arrays: Array, code: FusedRegion, out: Any = None) -> Any:
    outs = [out] if len(code.outputs) == 1 else out
    call = None if out is None else prepared(code, arrays, outs)
    if call is None:
        return NotImplemented
    call()
    return out


class ClusterLowering(NamedTuple):
    """Prepares the calls of a plan; see `LoopLowering`."""

    steady: int = 0
    lone: bool = True

    def __call__(self, arrays: Sequence[Array], outs: Sequence[Array], code: FusedRegion) -> Callable | None:
        return prepared(code, arrays, outs)


for op in CLUSTERS:
    register(op, "cupy", Kernel(run_cluster, None, ClusterLowering(), TOLERANCE, declines=True, bfloat16=True))
