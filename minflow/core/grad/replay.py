"""Replay: compute the gradients of a node by the kernels that its rules ran for an equal node.

Rules are programs on Tensors, and for small arrays running ops takes longer than computing. A loop has thousands of
equal nodes: for the second of them the kernels are recorded, and for later ones they run on the arrays directly, with
the same bits. This is possible since rules cannot depend on elements: they also run while a graph is traced, where
there are none.
Read next: `autograd.py`, whose `pass_back` asks the mode for a replay.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..autograd import fit, input_gradients
from ..backend import Array
from ..functionalize import Alias, new_alias, root_of, version_counter_of
from ..infer import infer
from ..ir import NUMBERS, InnerTape, Node, Value, inner_nodes
from ..kernels import CALLS, DECOMPOSED, ON_CHANGE, prepared, select
from ..memory import MIN_CHECKED_BYTES
from ..mode import using
from ..op import Op
from ..ops.shape import detach, view_write
from ..spec import DEPENDS_ON_DEFAULT, Spec, cpu
from ..tensor import Tensor, new_tensor

RECORDING_LIMIT = 4000
MANY_RESULTS = 8
SEEN = object()  # in place of a Recording: one node with this key has been differentiated
RECORDINGS: dict = {}  # key of a node -> SEEN, its Recording, or None if it cannot be replayed; bounded
DEPENDS_ON_DEFAULT.append(RECORDINGS.clear)
ON_CHANGE.append(RECORDINGS.clear)


class Result(NamedTuple):
    """The gradient of an input of a node: an arriving gradient, or a tensor of a register; then viewed.

    place: index of the input.  arriving: index among the arriving gradients, or None.  spec: that of the tensor in the
    register; None if there is neither, and so no gradient.  views: None, or the arguments of `viewed`.
    """

    place: int
    arriving: int | None = None
    register: int = 0
    spec: Spec | None = None
    views: tuple | None = None


class Recording(NamedTuple):
    """The kernels that compute the gradients of a node.

    The registers are `numbers`, then the arrays of the arriving gradients and the saved arrays, then the results.
    calls: (kernel, registers of its arguments, number of its results).  run: see `program_of`.
    """

    numbers: list
    calls: list[tuple[Callable, list[int], int]]
    results: list[Result]
    run: Any = None


def replay(mode: Any, node: Node, gs: list) -> list[tuple[int, Any]] | None:
    """(input index, gradient in the spec of the input) for each input that needs one, or None if the rules must run."""
    op, entries = node.op, node.saved
    if op.custom or op.custom_backward is not None:
        return None
    if entries and (entries.__class__ is not list or None in entries):
        entries = saved_entries(node)
    if entries is None:
        return None
    parts = [op, node.needs, node.saved.__class__, tuple(node.attrs.items()) if node.attrs else ()]
    for x in node.inputs:  # without comprehensions, which are calls
        parts.append(x.spec if x.__class__ is Value else x)
    for g in gs:
        parts.append(None if g is None else g.spec if g._alias is None else (g.spec, g.array.strides))
    if (count := len(entries)) > 1:
        parts.append(shared_arrays(entries) if count > 2 or entries[0][0] is entries[1][0] else ())
    try:
        recording = RECORDINGS.get(key := tuple(parts), key)
    except TypeError:  # an unhashable attr
        return None
    if recording.__class__ is Recording:
        return recording.run(gs, entries)
    if recording is SEEN:
        specs = [g.spec for g in gs if g is not None] + [x.spec for x in node.inputs if x.__class__ is Value]
        if any([spec.device is not cpu or spec.placement is not None for spec in specs]):
            RECORDINGS[key] = None  # ranks would call collectives in different orders: one records, another runs rules
            return None
        saved = [array for array, _, _ in entries]
        if {id(array) for array in saved}.intersection([id(g.array) for g in gs if g is not None]):
            return None  # it would be unclear which of the two a kernel reads
        found, RECORDINGS[key] = record(mode, node, gs, saved)
        return found
    if recording is key:
        if len(RECORDINGS) >= RECORDING_LIMIT:
            RECORDINGS.clear()
        RECORDINGS[key] = SEEN
    return None


def saved_entries(node: Node) -> list[tuple] | None:
    """(array, version counter, version) of each array that a node has saved; those of the decomposition of a composite
    op. None if a hook has packed them, or if the op contains another composite op.
    """
    if node.saved.__class__ is InnerTape and node.saved.entries is not None:
        return node.saved.entries
    nodes = inner_nodes(node) if node.saved.__class__ is InnerTape else [node]
    entries: list[tuple] = []
    for each in nodes:
        if each.saved.__class__ not in (list, tuple):
            return None
        entries.extend([entry for entry in each.saved if entry is not None])
    return entries


def shared_arrays(entries: Sequence[tuple]) -> tuple[int, ...]:
    """Index of the first equal array, for each entry; () if all arrays differ. In x * x, both are one array."""
    ids = list(map(id, map(operator.itemgetter(0), entries)))
    return () if len(set(ids)) == len(ids) else tuple([ids.index(each) for each in ids])


def program_of(recording: Recording, gs: Sequence, saved: int) -> Callable[[Sequence, Sequence], list | None]:
    """The function `run(gs, entries)` of a recording: (input index, gradient) pairs; None if an array was written or a
    kernel raised, since then the rules raise the error. It is Python that is written for the recording, without loops.

    saved: number of entries.
    """
    numbers, calls, results = recording.numbers, recording.calls, recording.results
    if not saved and len(results) > MANY_RESULTS and all([r.arriving is not None and r.views for r in results]):
        # of `stack`: compiling them takes longer than a loop
        parts = [(r.place, r.arriving, r.views) for r in results if r.arriving is not None and r.views]
        return lambda gs, entries: [(place, viewed(gs[k], *views)) for place, k, views in parts]
    arrays = [f"gs[{i}].array" for i, g in enumerate(gs) if g is not None] + [f"a{i}" for i in range(saved)]
    names = [f"n{i}" for i in range(len(numbers))] + arrays
    lines, tried = [], []
    if saved:
        lines.append("".join([f"(a{i}, c{i}, v{i}), " for i in range(saved)]) + "= entries")
        lines.append("if " + " or ".join([f"c{i}.version != v{i}" for i in range(saved)]) + ": return None")
    for i, (_, arguments, outs) in enumerate(calls):
        found = [f"r{len(names) + k}" for k in range(outs)]
        tried.append(f"{', '.join(found)} = k{i}({', '.join([names[k] for k in arguments])})")
        names += found
    if tried:
        lines += ["try:", *[f"    {line}" for line in tried], "except Exception: return None"]
    pairs = []
    for i, (place, arriving, register, spec, views) in enumerate(results):
        result = "None" if spec is None else f"new_tensor({names[register]}, s{i})"
        result = result if arriving is None else f"gs[{arriving}]"
        pairs.append(f"({place}, {f'viewed({result}, *w{i})' if views else result})")
    lines.append(f"return [{', '.join(pairs)}]")
    constants = {f"n{i}": x for i, x in enumerate(numbers)} | {f"k{i}": call[0] for i, call in enumerate(calls)}
    for i, one in enumerate(results):
        constants |= {f"s{i}": one.spec} if one.views is None else {f"s{i}": one.spec, f"w{i}": one.views}
    text = "\n        ".join([f"def make({', '.join(constants)}):\n    def run(gs, entries):", *lines])
    return factory_of(f"{text}\n    return run")(**constants)


@functools.lru_cache(RECORDING_LIMIT)
def factory_of(text: str) -> Callable:
    """The function `make` that this source defines. Recordings of one form have one source."""
    names: dict[str, Any] = {"new_tensor": new_tensor, "viewed": viewed}
    exec(compile(text, __file__, "exec"), names)
    return names["make"]


def viewed(x: Any, kernels: Sequence[Callable], path: Sequence[tuple[Op, Mapping]], spec: Spec) -> Tensor:
    """The view of x that `Eager.run` makes by these ops one after another. spec: of the result."""
    array = x.array
    for kernel in kernels:
        array = kernel(array)
    view, (root, before) = new_tensor(array, spec), root_of(x)
    view._alias = new_alias(Alias, (root, (*before, *path), root._value))
    view._version_counter = version_counter_of(x)
    return view


def record(mode: Any, node: Node, gs: list, saved: Sequence[Array]) -> tuple[list[tuple[int, Any]], Recording | None]:
    """The gradients by the rules, and the Recording of the kernels, which is None if they cannot be replayed."""
    log = Log([*[g.array for g in gs if g is not None], *saved])
    mode = mode.recorder(log)
    with using(mode):
        found = [(i, g if g is None else fit(g, node.inputs[i].spec)) for i, g in input_gradients(mode, node, gs)]
    numbers = [x for x in node.inputs if x.__class__ in NUMBERS]
    if 0 in numbers or 0.0 in [x for x in node.attrs.values() if x.__class__ is float]:
        log.complete = False  # the keys of 0.0 and -0.0 are equal
    return found, log.recording(found, gs)


class Log:
    """The kernels that a Recorder has seen. known: the arrays before.

    registers: id of an array -> its register; that of number k is ~k.  complete: False if something else than a kernel
    has run, or if a kernel returned an array that it got: it would be unclear which register a later kernel reads.
    """

    def __init__(self, known: Sequence[Array]):
        self.arrays: list[Array] = []  # kept, so that their ids stay unique
        self.registers: dict[int, int] = {}
        self.numbers: list = []
        # (kernel, registers, registers of results, function that writes into its first register or None)
        self.calls: list[tuple[Callable, list[int], list[int], Callable | None]] = []
        # id of the array of a view -> its source, kernel, op and attrs
        self.views: dict[int, tuple[Tensor, Callable, Op, Mapping]] = {}
        self.own: set[int] = set()  # registers whose arrays share no memory with earlier ones
        self.complete = True
        self.known = len(known)
        self.arrays.extend(known)
        for k, array in enumerate(known):
            self.registers.setdefault(id(array), k)

    def add_results(self, arrays: Sequence[Array]) -> list[int]:
        """Append the results of a kernel; return their registers."""
        if any([id(array) in self.registers for array in arrays]):
            self.complete = False
        first = len(self.arrays)
        self.arrays.extend(arrays)
        self.registers.update({id(array): first + k for k, array in enumerate(arrays)})
        return list(range(first, len(self.arrays)))

    def add(self, op: Op, inputs: Sequence, attrs: Mapping, results: Sequence) -> None:
        """Append the kernel of an op that has run."""
        if not all([x.__class__ in NUMBERS or isinstance(x, Tensor) for x in inputs]) or op.custom:
            self.complete = False
            return
        dtype, specs, ready = infer(op, inputs, attrs)
        if dtype is not None or ready is DECOMPOSED:
            return  # the ops that it consists of are in the log
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        if None in specs or sum([spec.nbytes for spec in specs]) > MIN_CHECKED_BYTES:
            self.complete = False  # a shape that depends on elements, or memory that must be checked at each call
            return
        if runs_without_infer(op, inputs, tensors) and not any([x._alias is not None for x in tensors]):
            ready = CALLS[op]
        if ready is None:
            ready = prepared(op, [x.array if isinstance(x, Tensor) else x for x in inputs], attrs, specs)
        arguments: list = []
        for x in inputs:
            if not isinstance(x, Tensor):
                arguments.append(~len(self.numbers))
                self.numbers.append(x)
            elif id(x.array) in self.registers:
                arguments.append(self.registers[id(x.array)])
            else:
                self.complete = False
                return
        overwrite = (
            overwriting(inputs[0].spec, attrs["path"]) if op is view_write and arguments[0] in self.own else None
        )
        outs = self.add_results([x.array for x in results])
        self.calls.append((ready, arguments, outs, overwrite))
        if op.takes_out:
            self.own.update(outs)
        if op.is_view and op is not detach and len(op.inputs) == 1:  # a link of a view path
            self.views[id(results[0].array)] = inputs[0], ready, op, attrs

    def recording(self, found: Sequence[tuple[int, Any]], gs: Sequence) -> Recording | None:
        """The Recording, if these gradients are results of the kernels or arriving gradients, or views of such."""
        possible = [self.result(i, g, gs) for i, g in found]
        results = [r for r in possible if r is not None]
        created = [r.register for r in results if r.spec is not None]
        if not self.complete or len(results) < len(possible) or len(set(created)) < len(created):
            return None
        needed, kept = set(created), []
        for call in reversed(self.calls):
            if needed.intersection(call[2]):
                kept.append(call)
                needed.update(call[1])
        first = len(self.numbers)
        moved = {~k: k for k in range(first)} | {k: first + k for k in range(self.known)}
        calls = []
        uses = Counter(itertools.chain(created, *[arguments for _, arguments, *_ in kept]))
        for kernel, arguments, outs, overwrite in reversed(kept):
            if overwrite is not None and uses[arguments[0]] == 1:
                kernel = overwrite
            calls.append((kernel, [moved[k] for k in arguments], len(outs)))
            moved |= {k: len(moved) + n for n, k in enumerate(outs)}
        placed = [r._replace(register=moved.get(r.register, 0)) for r in results]
        recording = Recording(self.numbers, calls, placed)
        return recording._replace(run=program_of(recording, gs, self.known - len([g for g in gs if g is not None])))

    def result(self, place: int, g: Any, gs: Sequence) -> Result | None:
        """The Result that gives this gradient; None if there is none."""
        if g is None:
            return Result(place)
        steps: list[tuple[Callable, tuple[Op, Mapping]]] = []
        spec = g.spec
        while True:
            views = (*zip(*reversed(steps)), spec) if steps else None
            for k, arriving in enumerate(gs):
                if arriving is g:
                    return Result(place, k, views=views)
            if id(g.array) not in self.registers:
                return None
            if g._alias is None:
                return Result(place, None, self.registers[id(g.array)], g.spec, views)
            if id(g.array) not in self.views:
                return None
            g, kernel, op, attrs = self.views[id(g.array)]
            steps.append((kernel, (op, attrs)))


def overwriting(spec: Spec, path: Sequence[tuple[Op, Mapping]]) -> Callable | None:
    """The function (base, value) that writes a value through a view into the array of the base, and returns it; None if
    there are several views. spec: of the base.
    """
    (op, attrs), *others = path
    specialize = select(op).specialize
    view = None if others or specialize is None else specialize(spec, **attrs)
    if view is None:
        return None

    def overwrite(base: Array, value: Array) -> Array:
        view(base)[...] = value
        return base

    return overwrite


def runs_without_infer(op: Op, inputs: Sequence, tensors: Sequence[Tensor]) -> bool:
    """True if `Eager.run` calls the kernel of an op without inference."""
    specs = {x.spec for x in tensors}
    if not op.fast_path or len(specs) > 1 or complex in [x.__class__ for x in inputs]:
        return False
    return all([spec.plain >= op.fast_path for spec in specs])


class Recorder:
    """A mode that notes in `log` which kernels run; a base class beside the mode that runs them."""

    log: Log

    def run(self, op: Op, inputs: Sequence, attrs: Mapping) -> Any:
        result = super().run(op, inputs, attrs)  # type: ignore[misc]  # of the mode
        self.log.add(op, inputs, attrs, result if op.many else [result])
        return result

    def write(self, *args: Any) -> None:
        self.log.complete = False
        super().write(*args)  # type: ignore[misc]

    def update(self, *args: Any) -> None:
        self.log.complete = False
        super().update(*args)  # type: ignore[misc]

    def draw(self, generator: Any) -> tuple:
        self.log.complete = False
        return super().draw(generator)  # type: ignore[misc]
