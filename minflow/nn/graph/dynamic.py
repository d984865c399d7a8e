"""Plans for other sizes of the inputs, without another run of build.

The first call of a graph is traced as it is. At the first call with other sizes, build is traced once more, with
symbols for the sizes that differ and without side effects; from then on the trace at any other size follows from that
one, as long as its guards hold. Read next: `../../compiler/dynamic_shapes/symbolic_program.py`.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cached_property
from types import CodeType
from typing import Any, NamedTuple

from ...compiler.dynamic_shapes.symbolic_program import Instance, SymbolicProgram, difference, too_small
from ...compiler.plan_cache import Part
from ...core.base.errors import clean
from ...core.grad.hooks import functions_on
from ...core.ir import Source, Value
from ...core.source_location import IS_MINFLOW_FILE, here
from ...core.spec import Spec
from ...core.symbolic_shapes import ShapeEnv
from ...core.tensor import Tensor, new_tensor
from ..buffer_links import BufferLink
from .build import Build, ModuleCall, Observer, TraceResult
from .python_state import BuildReads
from .undo import undoing_side_effects

MAX_PROGRAMS = 4  # symbolic programs, and plain traces to compare with, that a graph keeps
MAX_FAILURES = 3  # after this many symbolic traces in vain, builds are as they are


class PlainTrace(NamedTuple):
    """A trace without symbols. specs: those of the inputs.  build, parts: the result of the build.  reads, number: see
    `CompiledGraph`.  code: what the code of the build names.
    """

    specs: tuple[Spec, ...]
    build: Build
    parts: list[Part]
    reads: list
    number: int
    code: BuildReads


class Refused(Exception):
    """A symbolic program cannot be used. The message says why."""


class SymbolicBuild(Build):
    """A trace of build with symbolic sizes."""

    def __init__(self, graph: Any, tree: Any, inputs: list[Tensor], specs: Sequence[Spec], env: ShapeEnv):
        super().__init__(graph, tree, inputs)
        self.trace.shape_env = env
        self.observer, self.input_specs = Observer(), list(specs)


class DerivedBuild(Build):
    """The result of a build at other sizes, which has not run. base: the build whose trace has symbols."""

    def __init__(self, base: Build, instance: Instance, build: Build):
        own = base.__dict__.copy()
        del own["top"]
        self.__dict__.update(own, inputs=build.inputs, input_specs=build.input_specs, observer=build.observer)
        self.base, self.instance = base, instance
        self.outputs = list(map(instance.value, base.outputs))
        nodes, updates, gradients = base.traced
        self.traced = TraceResult(
            nodes,
            {self.source(state): instance.value(value) for state, value in updates.items()},
            {key: instance.value(value) for key, value in gradients.items()},
        )
        self.loss = None if base.loss is None else instance.value(base.loss)
        draws = {generator: [count, self.symbols_in(state)] for generator, (count, state) in base.trace.draws.items()}
        leaves = self.leaves(base.trace.leaves)
        self.trace = base.trace.replace(graph=instance.graphs[0], leaves=leaves, draws=draws)

    def source(self, source: Source) -> Source:
        return self.instance.nodes[source]  # type: ignore[return-value]  # the copy of a Source is one

    def leaves(self, leaves: Mapping[Value, Tensor]) -> dict[Value, Tensor]:
        nodes = self.instance.nodes
        return {self.instance.value(value): tensor for value, tensor in leaves.items() if value.node in nodes}

    @cached_property
    def top(self) -> ModuleCall:  # type: ignore[override]
        """The calls of modules, with the symbols of this size."""
        calls = {id(call): self.call_at(call) for call in self.base.top.walk()}
        for call in self.base.top.walk():
            calls[id(call)].children = [calls[id(child)] for child in call.children]
        return calls[id(self.base.top)]

    def call_at(self, call: ModuleCall) -> ModuleCall:
        value = self.instance.value
        args, kwargs, output = map(self.symbols_in, (call.args, call.kwargs, call.output))
        values = [*map(value, call.input_values)], [*map(value, call.output_values)]
        return dataclasses.replace(
            call, args=args, kwargs=kwargs, output=output, input_values=values[0], output_values=values[1]
        )

    def symbols_in(self, x: Any) -> Any:
        """A structure with the symbolic tensors of this size."""
        kind = x.__class__
        if isinstance(x, Tensor):
            if x.array is not None or x._value is None or x._value.node not in self.instance.nodes:
                return x
            value = self.instance.value(x._value)
            return new_tensor(None, value.spec, value)
        if kind is tuple or kind is list:
            return kind(map(self.symbols_in, x))
        if kind is dict:
            return {key: self.symbols_in(y) for key, y in x.items()}
        return self.instance.evaluate(x)


class DynamicProgram:
    """A symbolic program of a graph. names: the symbol of each axis that varies, as (input, axis) -> name.

    specs: those of the inputs at the traced sizes.
    """

    def __init__(
        self, build: Build, parts: Sequence[Part], env: ShapeEnv, names: dict, plain: PlainTrace, specs: tuple
    ):
        self.build, self.parts, self.names, self.plain, self.specs = build, list(parts), names, plain, specs
        self.program = SymbolicProgram([part.graph for part in parts], env)
        # `program` keeps the arrays alive, so that their ids are not used again
        self.captured = [(tensor, captured_state(tensor)) for _, tensor in build.captured]

    def sizes_of(self, specs: Sequence[Spec]) -> dict[str, int] | None:
        """The size of each symbol in inputs of these specs; None if they differ elsewhere, or in one symbol."""
        if axes_except(specs, self.names) != axes_except(self.specs, self.names):
            return None
        sizes: dict[str, int] = {}
        for (i, axis), name in self.names.items():
            if sizes.setdefault(name, specs[i].shape[axis]) != specs[i].shape[axis]:
                return None
        return sizes

    def derive(self, build: Build, sizes: Mapping[str, int]) -> tuple[DerivedBuild, list[Part]]:
        """The build and its parts at these sizes, which satisfy the guards."""
        start = time.perf_counter()
        instance = self.program.at(sizes)
        derived = DerivedBuild(self.build, instance, build)
        parts = []
        for part, graph in zip(self.parts, instance.graphs):
            parts.append(Part(part.name, graph, derived.leaves(part.leaves), part.results, dict(part.kept)))
        derived.links = [self.link_at(link, derived.source(link.source)) for link in self.build.links]
        derived.seconds = {"trace": time.perf_counter() - start}
        return derived, parts

    def link_at(self, link: BufferLink, source: Source) -> BufferLink:
        """The link of a buffer to its state in another plan, which starts with the tensor bound now."""
        copy = BufferLink(link.buffers, link.name, source, link.assigned, link.unshared)
        source.array = link.tensor.array
        source.link = None if source.link is None else copy
        return copy

    def stale(self) -> bool:
        """True if a captured tensor has another storage, hooks or requires_grad than when it was traced."""
        return any([captured_state(t) != state for t, state in self.captured])


def captured_state(tensor: Tensor) -> tuple:
    return id(tensor.array), tensor._needs, functions_on(tensor)


def axes_except(specs: Sequence[Spec], names: Mapping[tuple[int, int], str]) -> list:
    """dtype, device and sizes of the inputs, without the sizes of these axes."""
    return [
        (s.dtype, s.device, s.placement, [n for axis, n in enumerate(s.shape) if (i, axis) not in names], s.ndim)
        for i, s in enumerate(specs)
    ]


class DynamicShapes:
    """Symbolic programs of a graph for one fingerprint and structure of the inputs.

    traces: plain traces, the last one first.  programs: symbolic ones.  reason: why build has to run for the last call,
    or "".  refused: why the last symbolic trace was refused.  failures: how many were, of programs without a mistake.
    """

    def __init__(self) -> None:
        self.traces: list[PlainTrace] = []
        self.programs: list[DynamicProgram] = []
        self.failures = 0
        self.tried = False  # whether the last call tried to trace with symbols
        self.reason = self.refused = ""

    def add(self, trace: PlainTrace) -> None:
        """Note a plain trace, which was made since no program applied."""
        self.failures += self.tried
        self.traces = [trace, *self.traces][:MAX_PROGRAMS]

    def derive(self, build: Build) -> tuple[DerivedBuild, list[Part], PlainTrace] | None:
        """The build at the sizes of the inputs of `build`, its parts, and the plain trace that it agrees with.

        None if build has to run.
        """
        specs = tuple([t.spec for t in build.inputs])
        self.reason, self.tried = "", False
        self.programs = [dynamic for dynamic in self.programs if not dynamic.stale()]
        for dynamic in self.programs:
            if (sizes := dynamic.sizes_of(specs)) is not None:
                self.reason = too_small(sizes) or dynamic.program.broken_guard(sizes)
                if not self.reason:
                    return *dynamic.derive(build, sizes), dynamic.plain
        if not self.traces or self.failures >= MAX_FAILURES:
            self.reason = self.reason or self.refused
            return None
        try:
            dynamic = self.trace(build, specs)
        except Refused as refused:
            self.refused, self.tried = str(refused), True
            self.reason = self.reason or self.refused
            return None
        self.programs = [dynamic, *self.programs][:MAX_PROGRAMS]
        sizes = dynamic.sizes_of(specs)
        return *dynamic.derive(build, sizes or {}), dynamic.plain

    def trace(self, build: Build, specs: tuple[Spec, ...]) -> DynamicProgram:
        """Trace build with symbols for the sizes that differ from those of an earlier trace, and compare with it."""
        plain = next(
            (t for t in self.traces if axes_except(t.specs, every(t.specs)) == axes_except(specs, every(specs))), None
        )
        if plain is None:
            raise Refused("the inputs have other dtypes, devices or numbers of axes")
        names, symbols = names_of(build, plain.specs, specs)
        if small := too_small(symbols):
            raise Refused(small)
        check_supported(build, plain)
        env = ShapeEnv(symbols, here, lambda frame: IS_MINFLOW_FILE[frame.f_code.co_filename])
        shapes = [
            s.replace(shape=tuple([env.symbol(names[i, a]) if (i, a) in names else n for a, n in enumerate(s.shape)]))
            for i, s in enumerate(specs)
        ]
        symbolic = SymbolicBuild(build.graph, build.tree, build.inputs, shapes, env)
        try:
            owners = [("self", build.graph), *build.graph.all_modules()]
            with undoing_side_effects(owners, plain.code) as undo, symbolic_len():
                parts = copy_context().run(symbolic.run)
            dynamic = DynamicProgram(symbolic, parts, env, names, plain, specs)
            before = {name: plain.specs[i].shape[axis] for (i, axis), name in names.items()}
            what = difference(dynamic.program.at(before).graphs, [part.graph for part in plain.parts])
        except Exception as error:  # an error of the program is raised by the build that follows
            said = str(error).partition("\n")[0]
            raise Refused(
                clean(f"build cannot be traced with symbolic sizes: {type(error).__name__}: {said}")
            ) from None
        finally:
            env.active = False
        broken = dynamic.program.broken_guard(before)
        if what:
            raise Refused(broken or what)
        if undo.sized or (undo.changed and broken):
            raise Refused(f"build sets {undo.sized}, which depends on a size" if undo.sized else broken)
        return dynamic


BUILTIN_LEN = len


def length(x: Any, /) -> int:
    """`len`; of a symbolic tensor a SymInt, since the interpreter makes the result of `x.__len__()` a plain int."""
    if isinstance(x, Tensor) and x.array is None and x.spec.ndim:
        return x.spec.shape[0]
    return BUILTIN_LEN(x)


@contextmanager
def symbolic_len() -> Iterator[None]:
    """Context manager: `len` of a symbolic tensor is a SymInt. Builds do not overlap, and to others it is `len`."""
    try:
        builtins.len = length
        yield
    finally:
        builtins.len = BUILTIN_LEN


def every(specs: Sequence[Spec]) -> dict[tuple[int, int], str]:
    return {(i, axis): "" for i, s in enumerate(specs) for axis in range(s.ndim)}


def names_of(build: Build, before: Sequence[Spec], now: Sequence[Spec]) -> tuple[dict[tuple[int, int], str], dict]:
    """(input, axis) -> symbol for the axes whose size differs, and symbol -> size now. Axes that change together have
    one symbol.
    """
    labels = build.graph.input_names(build.tree)
    pairs: dict[tuple[int, int], str] = {}
    names: dict[tuple[int, int], str] = {}
    for i, (one, other) in enumerate(zip(before, now)):
        for axis, pair in enumerate(zip(one.shape, other.shape)):
            if pair[0] != pair[1]:
                names[i, axis] = pairs.setdefault(pair, f"{labels[i]}.shape[{axis}]")
    return names, {name: pair[1] for pair, name in pairs.items()}


def check_supported(build: Build, plain: PlainTrace) -> None:
    """Raise Refused for graphs whose traces are not compared."""
    graph = build.graph
    if drawn := [n for n in plain.build.notices if n.kind in ("random", "time")]:
        raise Refused(drawn[0].text)
    if graph.config.accumulation > 1:
        raise Refused("gradients are accumulated")
    if plain.build.halves is not None or any(spec.placement for part in plain.parts for spec in specs_in(part)):
        raise Refused("the graph has global tensors")
    if any(plain.build.layouts) or plain.build.inner_names:
        raise Refused("an input is a view" if any(plain.build.layouts) else "a value within a composite op is kept")
    modules = {type(call.module) for call in plain.build.top.walk() if call.module is not graph}
    if any(map(asks_type, (type(graph).build, *[module.forward for module in modules]))):
        raise Refused("build calls type(), to which a symbolic size is not an int, as it is to isinstance()")
    if custom := [node for part in plain.parts for node in part.graph.nodes if node.op.custom or "ctx" in node.attrs]:
        raise Refused(f"{custom[0].op} is an op of the program")


def asks_type(function: Any) -> bool:
    """True if a function of the program, or one inside it, calls `type`."""
    codes = [getattr(function, "__code__", None)]
    for code in codes:
        if not isinstance(code, CodeType) or IS_MINFLOW_FILE[code.co_filename]:
            continue
        codes += code.co_consts
        steps = dis.get_instructions(code) if "type" in code.co_names else ()  # it may be an attribute: `x.device.type`
        if any(step.opname == "LOAD_GLOBAL" and step.argval == "type" for step in steps):
            return True
    return False


def specs_in(part: Part) -> list[Spec]:
    sources = (*part.graph.inputs, *part.graph.states)
    return [spec for node in (*sources, *part.graph.nodes) for spec in node.out_specs]
