"""Run a composite op: by its decomposition, or by the kernels that this ran for an equal call.

As for gradients (`replay.py`), the second of equal calls is recorded, and later ones run the kernels on the arrays
directly, with the same bits. The tape of their decomposition is built when something reads it, which is rare: most
gradients are replayed, too.
Read next: `replay.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..autograd import run_decomposition
from ..dispatch import refuse_symbolic
from ..functionalize import save, version_counter_of
from ..ir import NUMBERS, InnerTape, Node, Value, VersionCounter, Where, new_value, nodes_between, outputs_of
from ..kernels import ON_CHANGE
from ..mode import DEFAULT, using
from ..op import Op
from ..source_location import caller
from ..spec import DEPENDS_ON_DEFAULT, Spec, cpu
from ..tensor import Tensor, new_tensor
from .replay import RECORDING_LIMIT, SEEN, Log

PROGRAMS: dict = {}  # key of a call -> SEEN, its Program, or None if it cannot be replayed; bounded
DEPENDS_ON_DEFAULT.append(PROGRAMS.clear)
ON_CHANGE.append(PROGRAMS.clear)
UNWRITTEN = VersionCounter()  # of all arrays that only an inner tape has


class Output(NamedTuple):
    """An output of an inner node; if node is None, an input of the composite op."""

    node: int | None
    number: int


class InnerNode(NamedTuple):
    """A node of the tape of a decomposition.

    inputs: an Output for each Value, else a Spec or a number.  saved: index among the entries of each saved form, or
    None.  scope: below that of the composite op.
    """

    op: Op
    inputs: list
    attrs: Mapping
    out_specs: Any
    needs: int
    saved: list[int | None]
    scope: str


class Program(NamedTuple):
    """The kernels that compute a composite op. The registers are `numbers`, the arrays of the inputs, then the results.

    calls: (kernel, function of the registers that gives its arguments, True if it has several results).
    outs: (register, spec) of each result.
    entries: (register, the input whose version counter it shares, or None) of each array that the inner tape saves.
    outputs: of each result that needs a gradient; else None.
    """

    numbers: list
    calls: list[tuple[Callable, Callable, bool]]
    outs: list[tuple[int, Spec]]
    entries: list[tuple[int, int | None]]
    nodes: list[InnerNode]
    outputs: list[Output | None]


def run_composite(mode: Any, op: Op, inputs: Sequence, values: Any, attrs: Mapping, specs: Any, needs: int) -> Any:
    """Run a composite op. It is one Node, which saves the tape of the decomposition."""
    refuse_symbolic(inputs)
    needs = needs & op.differentiable if mode.grad else 0
    place = (mode.place or caller(5)) if needs else None
    outs: Any
    scope = f"{mode.scope}/{op.name}"
    key = key_of(mode, op, inputs, attrs, needs)
    program: Any = None if key is None else PROGRAMS.get(key)
    registers = run(program, inputs) if program.__class__ is Program else None
    if registers is not None:
        outs = [new_tensor(registers[k], spec) for k, spec in program.outs]
        if needs:
            entries = entries_of(program, registers, inputs)
            tape = InnerTape(functools.partial(build, program, entries, values, scope, place), None, entries)
    else:
        log = Log([x.array for x in inputs if isinstance(x, Tensor)]) if program is SEEN else None
        inside = mode if log is None else mode.recorder(log)
        with using(inside.replace(scope=scope, place=place, low=None)):  # autocast has cast the inputs
            outs = run_decomposition(op, inputs, attrs)
        if needs:
            tape = InnerTape([out._value if out._needs else None for out in outs], None)
        if log is not None:
            PROGRAMS[key] = program_of(log, inputs, outs, nodes_between(values, tape) if needs else [], values, scope)
        elif key is not None and key not in PROGRAMS:
            if len(PROGRAMS) >= RECORDING_LIMIT:
                PROGRAMS.clear()
            PROGRAMS[key] = SEEN
        if needs:
            outs = [new_tensor(out.array, out.spec) for out in outs]
    if needs:
        tape.saved = [save(inputs[i]) for i in op.saves[needs]]
        node = Node(op, values, attrs, specs, needs, tape, mode.scope, place)
        flags = [x is not None for x in (program.outputs if registers is not None else tape.outputs)]
        for i, flag in enumerate(flags):
            if flag:
                outs[i]._value, outs[i]._needs = new_value(Value, (node, i, outs[i].spec)), True
    return outs if op.many else outs[0]


def key_of(mode: Any, op: Op, inputs: Sequence, attrs: Mapping, needs: int) -> tuple | None:
    """The key of a call in PROGRAMS; None if a mode must see the ops of the decomposition, or for rare inputs: equal
    arrays, which registers would confuse, and attrs without a hash.
    """
    if mode.__class__ is not DEFAULT.__class__ or op.custom:
        return None
    parts, arrays = [], set()
    for x in inputs:
        if x.__class__ in NUMBERS:
            parts.append(exact(x))
        elif id(x.array) in arrays or x.spec.device is not cpu or x.spec.placement is not None:
            return None
        else:
            arrays.add(id(x.array))
            parts.append(x.spec if x._alias is None else (x.spec, x.array.strides))
    key = op, needs, *parts, *map(exact, attrs.values())
    try:
        hash(key)
    except TypeError:
        return None
    return key


def exact(x: Any) -> Any:
    """A key that is different for 0.0 and -0.0, and for 1, 1.0 and True."""
    return repr(x) if x.__class__ is float and not x else (x.__class__, x)


def run(program: Program, inputs: Sequence) -> list | None:
    """The registers after the kernels; None if one raised: the decomposition raises the error."""
    registers = [*program.numbers, *[x.array for x in inputs if x.__class__ not in NUMBERS]]
    try:
        for call, arguments, many in program.calls:
            result = call(*arguments(registers))
            registers.extend(result) if many else registers.append(result)
    except Exception:
        return None
    return registers


def reader(arguments: Sequence[int]) -> Callable:
    """The function of the registers that gives those with these numbers."""
    few = slice(arguments[0], arguments[0] + 1) if arguments else slice(0)
    return operator.itemgetter(*arguments) if len(arguments) > 1 else operator.itemgetter(few)


def entries_of(program: Program, registers: Sequence, inputs: Sequence) -> list[tuple]:
    """(array, version counter, version) of each array that the inner tape saves."""
    entries = []
    for register, source in program.entries:
        counter = UNWRITTEN if source is None else version_counter_of(inputs[source])
        entries.append((registers[register], counter, counter.version))
    return entries


def build(program: Program, entries: Sequence, values: Sequence, scope: str, where: Where | None) -> list[Value | None]:
    """The Values of the results on a tape like that which was recorded. values: the inputs of the composite Node."""
    nodes: list[Node] = []

    def value_of(x: Any) -> Any:
        if x.__class__ is not Output:
            return x
        return values[x.number] if x.node is None else outputs_of(nodes[x.node])[x.number]

    for op, inputs, attrs, specs, needs, saved, below in program.nodes:
        forms = [None if k is None else entries[k] for k in saved]
        nodes.append(Node(op, [value_of(x) for x in inputs], attrs, specs, needs, forms, scope + below, where))
    return [value_of(x) for x in program.outputs]


def program_of(
    log: Log, inputs: Sequence, outs: Sequence, nodes: Sequence[Node], values: Any, scope: str
) -> Program | None:
    """The Program of the kernels in a log; None if it has not seen all, or if a result is an input or a view.

    nodes: those of the inner tape.  values: the inputs of the composite Node.
    """
    first = len(log.numbers)
    registers = {x: first + k for x, k in log.registers.items()}
    place = {value: Output(i, k) for i, node in enumerate(nodes) for k, value in enumerate(outputs_of(node))}
    place |= {x: Output(None, i) for i, x in reversed([*enumerate(values or ())]) if x.__class__ is Value}
    created = all([log.registers.get(id(out.array), 0) >= log.known and out._alias is None for out in outs])
    if not log.complete or not created or any([node.saved.__class__ is InnerTape for node in nodes]):
        return None
    counters = {id(x._version_counter): i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._version_counter}
    entries: list[tuple[int, int | None]] = []
    program: list[InnerNode] = []
    for node in nodes:
        saved: list[int | None] = []
        for entry in node.saved:
            saved.append(None if entry is None else len(entries))
            if entry is not None:
                if id(entry[0]) not in registers:
                    return None
                entries.append((registers[id(entry[0])], counters.get(id(entry[1]))))
        sources = [place.get(x) if x.__class__ is Value else x for x in node.inputs]
        if None in sources:
            return None
        below = node.scope.removeprefix(scope)
        program.append(InnerNode(node.op, sources, node.attrs, node.out_specs, node.needs, saved, below))
    calls = [
        (kernel, reader([~k if k < 0 else first + k for k in arguments]), len(results) > 1)
        for kernel, arguments, results, _ in log.calls
    ]
    results = [(registers[id(out.array)], out.spec) for out in outs]
    return Program(log.numbers, calls, results, entries, program, [place.get(out._value) for out in outs])
