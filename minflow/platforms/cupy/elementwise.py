"""CUDA C of elementwise loops, generated from the formulas of ops (`core/scalar.py`).

A source depends on dtypes and on the layout of the arrays, not on their sizes, which are arguments. A loop computes
float16 and bfloat16 in float and rounds the result of each op once. Read next: `kernels/elementwise.py`, which launches
the loops of single ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.backend import Array
from ...core.op import Op
from ...core.ops.elementwise import where
from ...core.ops.shape import cast
from ...core.scalar import CONDITIONS, ScalarBuilder, UnsupportedOperation
from .device_code import C_NAMES, FLOATS

SMALL_INDEX = 1 << 30  # elements; an index of fewer, and that plus the number of threads, is an int
TEMPLATES = {  # operation of a formula -> CUDA C, if it is not a function of that name
    "add": "{} + {}", "sub": "{} - {}", "mul": "product({}, {})", "div": "{} / {}", "neg": "-{}", "abs": "fabs({})",
    "max": "larger({}, {})", "min": "smaller({}, {})", "round": "rint({})",
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}",
    "isnan": "{0} != {0}", "isinf": "fabs({}) == INFINITY", "isfinite": "fabs({}) < INFINITY",
    "signbit": "copysign(1.0f, (float){}) < 0",
    "and_": "{} && {}", "or_": "{} || {}", "not_": "!{}", "select": "{} ? {} : {}",
}  # fmt: skip


class CudaFormula(ScalarBuilder):
    """Builds formulas as statements of CUDA C. A value is the name of a variable.

    lines: the statements, to which this appends.  dtype: of the values.  prefix: of new names.
    """

    def __init__(self, lines: list[str], dtype: str, prefix: str = "v"):
        self.lines, self.dtype, self.type, self.prefix = lines, dtype, computing_type(dtype), prefix

    def emit(self, operation: str, *values: Any) -> str:
        if operation == "nextafter" and self.type != C_NAMES[self.dtype]:
            raise UnsupportedOperation(operation)
        if operation == "pow" and values[1] in (2, 3):
            square = self.emit("mul", values[0], values[0])
            return square if values[1] == 2 else self.emit("mul", square, values[0])
        names = [self.literal(x) for x in values]
        template = TEMPLATES.get(operation)
        code = f"{operation}({', '.join(names)})" if template is None else template.format(*names)
        return self.variable("bool" if operation in CONDITIONS else self.type, code)

    def literal(self, x: Any) -> str:
        return x if isinstance(x, str) else number_text(x, self.type)

    def variable(self, kind: str, code: str) -> str:
        """A new variable of a C type."""
        name = f"{self.prefix}{len(self.lines)}"
        self.lines.append(f"const {kind} {name} = {code};")
        return name

    def rounded(self, x: Any) -> str:
        """A value with the precision of the dtype."""
        name = C_NAMES[self.dtype]
        return self.literal(x) if name == self.type else self.variable(self.type, converted(self.literal(x), name))


def formula_dtype(op: Op, inputs: Sequence[str], result: str) -> str | None:
    """The dtype in which the formula of an op, or a cast, computes; None if it does not hold for these dtypes.

    inputs: dtypes of its arrays.  result: that of the result.
    """
    if op is cast:
        return result if {inputs[0], result} <= C_NAMES.keys() else None
    if op is where:
        return result if {*inputs[1:], result} == {result} and result in C_NAMES else None
    same = "bool" if op.elementwise == "bool" else inputs[0]
    return inputs[0] if {*inputs} == {inputs[0]} <= FLOATS and result == same else None


def computing_type(dtype: str) -> str:
    """The C type in which elements of a dtype are computed."""
    return "float" if dtype in ("float16", "bfloat16") else C_NAMES[dtype]


def number_text(x: Any, kind: str) -> str:
    """A Python number in a C type."""
    if kind not in ("float", "double"):
        return f"({kind}){int(x)}"
    x = float(x)
    return f"({kind}){x!r}" if math.isfinite(x) else "(-INFINITY)" if x < 0 else "INFINITY" if x > 0 else "NAN"


def converted(name: str, to: str, source: str = "float") -> str:
    """C code that converts a value to a C type, as a cast of NumPy does."""
    if to == source or (source == "bool" and to in ("float", "double")):
        return name
    if to == "bool":
        return f"{name} != 0"
    if to == "f16" and source == "double":
        return f"f16_of({name})"
    if to in ("f16", "bf16"):
        return f"{to}((float){name})"
    if to in ("short", "signed char", "unsigned char") and source in ("float", "double"):
        return f"({to})(long long){name}"  # of a number out of range, the lower bits
    return f"({to}){name}"


# ---- layouts ---------------------------------------------------------------------------------------------------------


class Access(NamedTuple):
    """How a loop over an index reads or writes an array: its dtype, and the axes along which its address moves; None
    if the elements are in the order of the loop.
    """

    dtype: str
    axes: tuple[int, ...] | None


class Loop(NamedTuple):
    """A loop over the elements of a result: the sizes of its axes, and the strides of each array, in elements."""

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    def accesses(self, arrays: Sequence[Array]) -> list[Access]:
        whole = contiguous(self.sizes)
        return [
            Access(x.dtype.name, None if strides == whole else tuple([k for k, n in enumerate(strides) if n]))
            for x, strides in zip(arrays, self.strides)
        ]


def contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    """The strides of a C-contiguous array, in elements."""
    return tuple([math.prod(sizes[k + 1 :]) for k in range(len(sizes))])


def loop_over(arrays: Sequence[Array]) -> Loop | None:
    """The loop over the last of these arrays, the result, with as few axes as possible; None if a stride is not a
    number of elements.
    """
    shape = arrays[-1].shape
    padded = []
    for x in arrays:
        if any([stride % x.itemsize for stride in x.strides]):
            return None
        own = [0 if n == 1 else stride // x.itemsize for n, stride in zip(x.shape, x.strides)]
        padded.append([0] * (len(shape) - x.ndim) + own)
    sizes: list[int] = []
    moves: list[tuple[int, ...]] = []  # for each axis, the strides of all arrays
    for n, move in zip(shape, zip(*padded)):
        if n == 1:
            continue
        if sizes and moves[-1] == tuple([n * stride for stride in move]):  # one axis with the one before
            sizes[-1] *= n
            moves[-1] = move
        else:
            sizes.append(n)
            moves.append(move)
    return Loop(tuple(sizes), tuple(zip(*moves)) if moves else ((),) * len(arrays))


class LoopWriter:
    """Writes a kernel: a loop over elements, each of which is computed by one thread.

    Its arguments are the number of elements, what `load`, `number` and `store` have added, in order, and
    `sizes_and_strides`. A loop over fewer than SMALL_INDEX elements has an index of 32 bits.
    """

    def __init__(self, axes: int, small: bool):
        self.axes, self.index = axes, "int" if small else "long long"
        self.parameters = ["long long count"]
        self.accesses: list[Access] = []
        self.lines: list[str] = []

    def element(self, access: Access, qualifier: str = "") -> str:
        name = f"a{len(self.accesses)}"
        self.accesses.append(access)
        self.parameters.append(f"{qualifier}{C_NAMES[access.dtype]}* {name}")
        if access.axes is None:
            return f"{name}[i]"
        return f"{name}[{' + '.join([f'x{axis} * (index){name}_{axis}' for axis in access.axes]) or 0}]"

    def load(self, access: Access) -> str:
        """The element of the next array."""
        name, place = f"e{len(self.accesses)}", self.element(access, "const ")
        self.lines.append(f"const {computing_type(access.dtype)} {name} = {place};")
        return name

    def store(self, access: Access, value: str, kind: str) -> None:
        """Write a value of a C type to the element of the next array."""
        self.lines.append(f"{self.element(access)} = {converted(value, C_NAMES[access.dtype], kind)};")

    def number(self, dtype: str) -> str:
        """The next number, rounded to a dtype. It is a Python float if the dtype is floating, and otherwise an int."""
        name, given = f"c{len(self.parameters)}", "double" if dtype in FLOATS else "long long"
        self.parameters.append(f"{given} given_{name}")
        kind, value = computing_type(dtype), converted(f"given_{name}", C_NAMES[dtype], given)
        self.lines.append(f"const {kind} {name} = ({kind}){value};")
        return name

    def source(self, name: str) -> str:
        """The source of the kernel."""
        used = {axis for access in self.accesses for axis in access.axes or ()}
        first = min(used, default=self.axes)
        coordinates = ["index rest = i;"] if used else []
        for axis in reversed(range(first, self.axes)):
            if axis in used:
                coordinates.append(f"const index x{axis} = rest{f' % (index)n{axis}' * (axis > 0)};")
            if axis > first:
                coordinates.append(f"rest /= (index)n{axis};")
        sizes = [f"n{axis}" for axis in range(max(first, 1), self.axes)]
        strides = [f"a{k}_{axis}" for k, access in enumerate(self.accesses) for axis in access.axes or ()]
        parameters = ", ".join([*self.parameters, *[f"long long {x}" for x in (*sizes, *strides)]])
        body = "\n".join([f"    {line}" for line in (*coordinates, *self.lines)])
        return f"""
extern "C" __global__ void {name}({parameters}) {{
  typedef {self.index} index;
  for (index i = blockIdx.x * (index)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (index)blockDim.x) {{
{body}
  }}
}}
"""


def sizes_and_strides(loop: Loop, accesses: Sequence[Access]) -> list[int]:
    """The last arguments of a kernel of LoopWriter, whose arrays have these accesses, in order."""
    first = min([axis for access in accesses for axis in access.axes or ()], default=len(loop.sizes))
    strides = [n for access, row in zip(accesses, loop.strides) if access.axes is not None for n in row if n]
    return [*loop.sizes[max(first, 1) :], *strides]
