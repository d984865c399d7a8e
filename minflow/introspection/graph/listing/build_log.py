"""The log printed while a graph is built: `graph.debug(level)`.

Levels: 0 phases with their times; 1 also modules with their inputs, tensors and outputs; 2 also operations; 3 also
their source lines. Lines are flushed at once, so none is lost when something fails; in a notebook, from level 1, they
become a tree. An error in printing ends the log, never the build. Independent of passes.
Read next: `text.py` (its lines), `build_failure.py` (a failed build), `build_tree.py` (in a notebook).
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....compiler.names import Names
from ....core.base.errors import GraphError
from ....core.context import current_context
from ....core.ir import INPUT, OPTIMIZER, Node, Source, Value, Where, file_name, outputs_of
from ....core.ops.global_tensors import as_global, as_local, boxing
from ....core.source_location import IS_MINFLOW_FILE, ROOT, caller, fail
from ....core.spec import Spec
from ....diagnosis.notebook import prints_into_cell
from ....diagnosis.source_lines import line_of, source_of
from ....nn.graph.build import Observer
from ....views.records.opening import Opening
from ....views.text.numbers import nbytes_text
from ..ranks.shards import sent_bytes
from . import text as listing
from .build_failure import calls_of, error_text, failed_line, report_failed_build

if TYPE_CHECKING:
    from .build_tree import BuildTree

LEVELS = range(-1, 4)
GLOBAL_OPS = boxing, as_global, as_local
# folders whose frames are never printed
ENGINE_FOLDERS = tuple(os.path.join(ROOT, *place, "") for place in (["core"], ["nn", "graph"], ["introspection"]))
ONEFLOW_OPTIONS = "only_user_py_stack", "op_repr_with_py_stack", "mode"  # further options of OneFlow's versions


def set_debug_options(graph: Any, v_level: int, ranks: Any, max_py_stack_depth: int, other: dict) -> None:
    """Check and store the arguments of `graph.debug`, for the next build.

    ranks: the ranks that print, None for rank 0. other: OneFlow's further options:
    mode=False turns it off, only_user_py_stack=False prints the lines of minflow's layers too,
    op_repr_with_py_stack=True adds a source line to each OPERATOR of the v1 listing. open, an option of our own: list
    the parts of composite operations below them, in this listing too; True for all, or names as in `show(x, open=)`.
    """
    if not is_count(v_level) or v_level not in LEVELS:
        hint = "0 phases, 1 modules, 2 operations, 3 lines of the program, -1 nothing"
        fail(GraphError, f"{graph.name}.debug: there is no level {v_level!r}", hint, v_level=v_level)
    listed = ranks if isinstance(ranks, list | tuple) else [0 if ranks is None else ranks]
    if not all(is_count(r) and r >= -1 for r in listed):
        fail(GraphError, f"{graph.name}.debug: ranks is {ranks!r}", "an int or a list of ints; -1 for all", ranks=ranks)
    if not is_count(max_py_stack_depth) or max_py_stack_depth < 0:
        what = f"{graph.name}.debug: max_py_stack_depth is {max_py_stack_depth!r}"
        fail(GraphError, what, "the number of lines to print, 0 or more", max_py_stack_depth=max_py_stack_depth)
    unknown = [name for name in other if name not in (*ONEFLOW_OPTIONS, "open")]
    if unknown:
        hint = "v_level, ranks, max_py_stack_depth, open"
        fail(GraphError, f"{graph.name}.debug has no option {unknown[0]!r}", hint, option=unknown[0])
    on = (current_context().rank in listed or -1 in listed) and other.get("mode", True)
    minflow_lines, located = not other.get("only_user_py_stack", True), bool(other.get("op_repr_with_py_stack", False))
    options: dict[str, Any] = {"depth": max_py_stack_depth, "minflow_lines": minflow_lines, "located": located}
    options["opening"] = Opening(other["open"], f"{graph.name}.debug") if other.get("open") else None
    graph.__dict__.update(_level=v_level if on else -1, _debug=options)


def is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def never_raises(method: Callable) -> Callable:
    """Wrap a method that only prints: an error in it is reported once, and the build continues."""

    @functools.wraps(method)
    def guarded(self: BuildLog, *args: Any) -> None:
        if self.level < 0:
            return
        try:
            method(self, *args)
        except Exception as error:
            self.level = -1
            try:
                self.finish("is built, and no longer logged")
                print(f"{self.head} debug stopped: {type(error).__name__}: {error}", flush=True)
            except Exception:  # there is nowhere to print to
                return

    return guarded


class BuildLog(Observer):
    """Receives the events of one build, and prints those of the graph's level."""

    def __init__(self, graph: Any, build: Any):
        self.graph, self.build, self.level = graph, build, graph._level
        self.depth, self.minflow_lines = graph._debug.get("depth", 2), graph._debug.get("minflow_lines", False)
        self.head = listing.graph_head(graph)
        self.style = graph.repr_style
        self.build_start = self.plan_start = time.perf_counter()
        self.names, self.part_names = Names(self.source_name), Names(self.source_name)
        self.opening: Opening | None = graph._debug.get("opening")
        self.tensor_names: dict[int, str] | None = None
        self.lines: dict[Node, list[str]] = {}  # level 3: forward operation -> its lines, which its gradients show too
        self.phase = ""
        self.traced_whole = False
        self.tree: BuildTree | None = None
        if self.level >= 1 and prints_into_cell():
            from .build_tree import BuildTree

            self.tree = BuildTree(self.head, graph.name)

    @property
    def shows(self) -> bool:  # type: ignore[override]
        """True if this build is printed."""
        return self.level >= 0

    def log(self, level: int, text: str, indent: int = 0, where: Where | None = None) -> None:
        if self.level < level:
            return
        if self.tree is None:
            print_lines(indent, text)
            return
        try:
            self.tree.add(indent, text, where)
        except Exception:
            self.print_tree()

    def print_tree(self) -> None:
        """Print the lines so far, since the tree cannot be displayed."""
        tree, self.tree = self.tree, None
        for line in tree.lines if tree is not None else ():
            print_lines(line.indent, line.text)

    def failed(self, error: BaseException) -> None:
        """The build raised this."""
        self.mark_failed(error)
        self.finish("could not be built" if isinstance(error, Exception) else "was interrupted")
        report_failed_build(self.graph, self.build, error)

    @never_raises
    def mark_failed(self, error: BaseException) -> None:
        """Add the error to the line of its module in the tree."""
        if self.tree is None:
            return
        place, source = failed_line(self.graph, error.__traceback__)
        at = f"at {place} {source}".rstrip() if place else ""
        calls = calls_of(self.build, error.__traceback__)
        self.tree.fail(calls[-1] if calls else None, f"{error_text(error)}\n{at}".strip())

    def finish(self, state: str) -> None:
        """Stop printing. state: how the build ended."""
        if self.tree is None:
            return
        try:
            self.tree.finish(state)
            self.tree = None
        except Exception:
            self.print_tree()

    # ---- phases ------------------------------------------------------------------------------------------------------

    @never_raises
    def started(self) -> None:
        self.build_start = time.perf_counter()
        number = self.graph._plan_count
        if number:  # in the words of newer OneFlow versions when they fill their cache of graphs
            names = self.graph.input_names(self.build.tree)
            inputs = ", ".join([f"{name}: {x.spec}" for name, x in zip(names, self.build.inputs)])
            self.log(0, f"{self.head} makes plan number {number}, for {inputs or 'no inputs'}.")
        self.log(0, f"{self.head} start building graph.")

    @never_raises
    def inputs_ready(self) -> None:
        self.log(1, f"{self.head} start building graph builders of parameters and buffers.")
        self.log(1, f"{self.head} end building graph builders of parameters and buffers.")
        self.log(1, f"{self.head} start building graph inputs.")
        if self.level >= 1:
            for line in listing.graph_inputs(self.build, self.style):
                self.log(1, line, 1)
        self.log(1, f"{self.head} end building graph inputs.")

    @never_raises
    def build_entered(self) -> None:
        self.log(1, f"{self.head} start building graph modules.")

    @never_raises
    def build_returned(self) -> None:
        self.log(1, f"{self.head} end building graph modules.")
        self.log(1, f"{self.head} start building graph outputs.")
        if self.level >= 1:
            for line in listing.graph_outputs(self.build, self.style):
                self.log(1, line, 1)
        self.log(1, f"{self.head} end building graph outputs.")

    def traced(self) -> None:
        self.traced_whole = True
        self.plan_start = time.perf_counter()
        self.print_traced()

    @never_raises
    def print_traced(self) -> None:
        if self.phase:
            self.log(2, f"{self.head} end building graph {self.phase}.")
        spent = seconds_text(self.plan_start - self.build_start)
        self.log(0, f"{self.head} building graph Done! Cost time: {spent}.\n")
        self.log(0, f"{self.head} start building plan.")

    @never_raises
    def compiled(self, compiled: Any) -> None:
        now = time.perf_counter()
        if self.level >= 2 and self.opening is not None and (wrong := self.opening.mistake()):
            self.log(2, str(wrong))
        self.log(1, f"{self.head} start building graph with compile passes.")
        for part in compiled.parts:
            for before, after in zip(part.stages, part.stages[1:]):
                counts = f"{len(before.graph.nodes)} -> {len(after.graph.nodes)} operations"
                self.log(1, f"pass {after.name} ({part.name}): {counts}", 1)
            memory = f"{part.plan.arena_bytes:,} bytes in one arena"
            self.log(1, f"{part.name}: {len(part.graph.nodes)} operations, {memory}", 1)
        self.log(1, f"{self.head} end building graph with compile passes.")
        self.log(0, f"{self.head} building plan Done! Cost time: {seconds_text(now - self.plan_start)}.\n")
        self.log(0, f"{self.head}'s total time to build graph and plan : {seconds_text(now - self.build_start)}.\n")
        if self.level >= 1 and self.style == "v1" and self.tree is None:  # a tree has the operations in their modules
            text = listing.listing_text(self.graph, self.style, compiled)
            self.log(1, f"{self.graph.name} with operators:\n{text}")
        self.finish(f"was built in {seconds_text(now - self.build_start)}")

    # ---- modules and operations --------------------------------------------------------------------------------------

    @never_raises
    def module_entered(self, call: Any) -> None:
        if self.level < 1:
            return
        indent = len(self.build.stack) - 1
        self.log(1, listing.module_head(call.path, call.module), indent, None if self.tree is None else caller())
        if self.tree is not None:
            self.tree.enter(call)
        for line in (*listing.module_inputs(call, self.style), *listing.tensor_lines(call.path, call.module)):
            self.log(1, line, indent + 1)

    @never_raises
    def module_exited(self, call: Any) -> None:
        if self.level < 1:
            return
        for line in listing.module_outputs(call, self.style):
            self.log(1, line, len(self.build.stack) + 1)
        if self.tree is not None:
            self.tree.leave(call)

    @never_raises
    def node_added(self, node: Node) -> None:
        if self.level < 2:
            return
        if node.number == 0:  # the update of accumulated gradients is a separate graph with its own numbers
            self.names, self.part_names = Names(self.source_name), Names(self.source_name)
        if node.phase == OPTIMIZER and not self.phase:
            self.phase = "optimizer"
            self.log(2, f"{self.head} start building graph {self.phase}.")
        indent = len(self.build.stack)
        self.log(2, self.operator_text(node), indent, node.where)
        if self.level >= 3:
            for place in self.user_lines(node)[: self.depth]:
                self.log(3, f"at {place}", indent + 2)
        for part in listing.opened_parts(node, self.opening):
            self.log(2, self.operator_text(part), indent + 1)

    def operator_text(self, node: Node) -> str:
        ins = [f"{self.name_of(x)}: {spec_text(x.spec)}" if x.__class__ is Value else repr(x) for x in node.inputs]
        attrs = [] if node.op in GLOBAL_OPS else attr_texts(node.attrs)  # their attrs are in the specs
        outs = ", ".join([spec_text(v.spec) for v in outputs_of(node)])
        phase, spec = "" if node.phase == "forward" else f"{node.phase}, ", node.out_specs[0]
        place = f"device={spec.device}" if spec.placement is None else listing.placement(spec)
        place = f"{phase}{place}, sbp=({listing.sbp_text(spec)})"
        if node.op is boxing:
            place += f", sends {nbytes_text(sent_bytes(node, current_context().rank))}"
        return f"(OPERATOR: {self.names_for(node).of(node)}({', '.join(ins + attrs)}) -> ({outs}), {place})"

    def names_for(self, node: Node) -> Names:
        """Parts of opened operations are numbered by themselves."""
        return self.names if node.whole is None else self.part_names

    def name_of(self, x: Value) -> str:
        if isinstance(x.node, Source):
            return self.source_name(x.node)
        return self.names_for(x.node).of(x.node) + (f"/{x.node.op.outputs[x.index]}" if x.index else "")

    def source_name(self, source: Source) -> str:
        """The name of a source while its graph is being built; `Build.name_states` names them all at the end."""
        if source.op is INPUT:
            return source.name
        if source.read is not None:
            if source.array is None or source.array.ndim:
                return "generator"
            return "micro-step number" if self.build.accumulators and source in self.build.trace.graph.states else "lr"
        if self.tensor_names is None or id(source.array) not in self.tensor_names:  # perhaps of a new module
            build, result = self.build, self.build.nonmember_paths()
            parameters = self.graph.parameter_names(result)
            self.tensor_names = {id(t.array): name for t, name in self.graph.named_tensors(result)}
            for key, total in build.accumulators.items():
                self.tensor_names[id(total.array)] = f"{parameters.get(key, 'parameter')}-gradient"
        return self.tensor_names.setdefault(id(source.array), source.name or str(source.op))

    def user_lines(self, node: Node) -> list[str]:
        """The user's lines that this operation comes from, innermost first; for a gradient the lines of its forward.

        Operations of the optimizer have none, since the graph adds them.
        """
        if node.phase == "backward":
            lines = self.lines.get(node.origin)
            return lines if lines is not None else [line_of(node.where)] if node.where else []
        lines, frame = [], sys._getframe(2)
        while frame is not None and len(lines) < self.depth:
            code = frame.f_code
            if code is type(self.build).run.__code__:
                break  # frames above called the graph and are not part of its build
            engine = code.co_filename.startswith(ENGINE_FOLDERS)
            if not IS_MINFLOW_FILE[code.co_filename] or (self.minflow_lines and not engine):
                line = f"{file_name(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
                lines.append(f"{line} {source_of(code.co_filename, frame.f_lineno)}".rstrip())
            frame = frame.f_back
        self.lines[node] = lines
        return lines


def print_lines(indent: int, text: str) -> None:
    print("\n".join(["  " * indent + listing.clean(line) if line else "" for line in text.split("\n")]), flush=True)


def spec_text(spec: Spec) -> str:
    """`float64[12, 6]`; of a global tensor `float64[12, 6] (S(0), B)`."""
    return str(spec) if spec.placement is None else f"{spec} ({listing.sbp_text(spec)})"


def attr_texts(attrs: Any) -> list[str]:
    """`name=value` of the attributes that fit on a line, except those that are False."""
    small = {name: x for name, x in attrs.items() if isinstance(x, int | float | str | tuple) and x is not False}
    return [f"{name}={x!r}" for name, x in small.items() if len(repr(x)) <= 40]


def seconds_text(x: float) -> str:
    """Seconds in OneFlow's form, "0.51s"; with two more digits if that would be 0.00."""
    return f"{x:.2f}s" if x >= 0.1 else f"{x:.4f}s"
