"""What is printed while a graph is built: `graph.debug(level)`, and the tree so far where a build fails.

Levels: 0 phases with their times; 1 also each module as it is called, with its inputs, tensors and outputs; 2 also each
operation as it is recorded; 3 also the lines of the program that it comes from. Lines go out at once, so they are there
when something fails. Knows nothing of passes. Read next: `listing.py`, whose lines these are.
"""

from __future__ import annotations

import linecache
import sys
import time
from typing import Any

from ...core.errors import GraphError
from ...core.ir import INPUT, Node, Source, Value, file_name, outputs_of, where_text
from ...core.op import OURS, fail
from ...core.tensor import Tensor
from . import listing
from .names import Names
from .tree import leaves

LEVELS = range(-1, 4)
SHOWN = 4  # modules of a run of equal ones that a failed build's tree shows one by one


def switch(graph: Any, v_level: int, ranks: Any, max_py_stack_depth: int, other: dict) -> None:
    """Check and keep what `graph.debug` was given. OneFlow's further options are accepted: there is nothing to say more."""
    if not isinstance(v_level, int) or isinstance(v_level, bool) or v_level not in LEVELS:
        fail(GraphError, f"{graph.name}.debug: there is no level {v_level!r}",
             "0 phases, 1 modules, 2 operations, 3 lines of the program, -1 nothing", v_level=v_level)  # fmt: skip
    listed = ranks if isinstance(ranks, list | tuple) else [0 if ranks is None else ranks]
    if not all(isinstance(r, int) and not isinstance(r, bool) and r >= -1 for r in listed):
        fail(GraphError, f"{graph.name}.debug: ranks is {ranks!r}", "an int or a list of ints; -1 for all", ranks=ranks)
    if not isinstance(max_py_stack_depth, int) or max_py_stack_depth < 0:
        fail(GraphError, f"{graph.name}.debug: max_py_stack_depth is {max_py_stack_depth!r}", "how many lines to tell: 0 or more",
             max_py_stack_depth=max_py_stack_depth)  # fmt: skip
    unknown = [name for name in other if name not in ("only_user_py_stack", "op_repr_with_py_stack", "mode")]
    if unknown:
        fail(GraphError, f"{graph.name}.debug has no option {unknown[0]!r}", "v_level, ranks, max_py_stack_depth", option=unknown[0])
    on = (0 in listed or -1 in listed) and other.get("mode", True)
    graph.__dict__.update(_level=v_level if on else -1, _debug={"depth": max_py_stack_depth})


class Debugger:
    """Told of everything that happens while one build runs; prints what the graph's level asks for."""

    def __init__(self, graph: Any, build: Any):
        self.graph, self.build, self.level = graph, build, graph._level
        self.depth = graph._debug.get("depth", 2)
        self.head = listing.graph_head(graph)
        self.style = graph.repr_style
        self.names = Names(self.source_name)
        self.start = self.middle = time.perf_counter()
        self.tensor_names: dict[int, str] = {}

    def say(self, level: int, text: str, indent: int = 0) -> None:
        if self.level >= level:
            pad = "  " * indent
            print(pad + text.replace("\n", "\n" + pad), flush=True)

    # ---- phases ------------------------------------------------------------------------------------------------------

    def started(self) -> None:
        self.start = time.perf_counter()
        self.say(0, f"{self.head} start building graph.")

    def inputs(self, build: Any) -> None:
        self.say(1, f"{self.head} start building graph inputs.")
        if self.level >= 1:
            args, kwargs = build.given()
            for line in listing.io_lines("INPUT", self.graph.name, args, kwargs, False, self.style):
                self.say(1, line)
        self.say(1, f"{self.head} end building graph inputs.")
        if self.level >= 2:
            self.tensor_names = {id(t.array): name for t, name in self.graph.named_tensors()}

    def modules(self, build: Any) -> None:
        self.say(1, f"{self.head} start building graph modules.")

    def outputs(self, build: Any) -> None:
        self.say(1, f"{self.head} end building graph modules.")
        if self.level >= 1:
            self.say(1, f"{self.head} start building graph outputs.")
            output = listing.outputs_as_args(build.top.output, True)
            for line in listing.io_lines("OUTPUT", self.graph.name, output, {}, False, self.style):
                self.say(1, line)
            self.say(1, f"{self.head} end building graph outputs.")

    def traced(self) -> None:
        self.middle = time.perf_counter()
        self.say(0, f"{self.head} building graph Done! Cost time: {self.middle - self.start:.2f}s.\n")
        self.say(0, f"{self.head} start building plan.")

    def compiled(self, compiled: Any) -> None:
        now = time.perf_counter()
        for part in compiled.parts:
            before, after = len(part.stages[0].graph.nodes), len(part.graph.nodes)
            self.say(1, f"{self.head} {part.name}: {before} operations, {after} after {len(part.stages) - 1} passes, "
                        f"{part.plan.arena_bytes:,} bytes in one arena.")  # fmt: skip
        self.say(0, f"{self.head} building plan Done! Cost time: {now - self.middle:.2f}s.\n")
        self.say(0, f"{self.head}'s total time to build graph and plan : {now - self.start:.2f}s.\n")

    # ---- modules and operations --------------------------------------------------------------------------------------

    def entered(self, call: Any) -> None:
        if self.level < 1:
            return
        indent = len(self.build.stack) - 2
        self.say(1, listing.module_head(call.path, call.module), indent)
        for line in listing.io_lines("INPUT", call.path, call.args, call.kwargs, True, self.style):
            self.say(1, line, indent + 1)
        for line in listing.tensor_lines(call.path, call.module):
            self.say(1, line.removesuffix(": ()"), indent + 1)

    def left(self, call: Any) -> None:
        if self.level < 1:
            return
        indent = len(self.build.stack) - 1
        for line in listing.io_lines("OUTPUT", call.path, listing.outputs_as_args(call.output, False), {}, True, self.style):
            self.say(1, line, indent + 1)

    def added(self, node: Node) -> None:
        if self.level < 2:
            return
        indent = len(self.build.stack) - 1
        ins = ", ".join([f"{self.name_of(x)}:{x.spec}" if x.__class__ is Value else repr(x) for x in node.inputs])
        outs = ", ".join([str(v.spec) for v in outputs_of(node)])
        phase = "" if node.phase == "forward" else f"{node.phase}, "
        name = self.names.of(node)
        line = f"(OPERATOR: {name}({ins}) -> ({outs}), {phase}device={node.out_specs[0].device}, sbp=(B))"
        if self.level >= 3:
            line += "".join(f"\n    at {text}" for text in self.places(node))
        self.say(2, line, indent)

    def name_of(self, x: Value) -> str:
        return self.source_name(x.node) if isinstance(x.node, Source) else self.names.of(x.node)

    def source_name(self, source: Source) -> str:
        """How a source is called while its graph is being built; `Build.name_states` names them all at the end."""
        if source.op is INPUT:
            return source.name
        read = "lr" if source.array is not None and not source.array.ndim else "generator"
        return self.tensor_names.get(id(source.array)) or source.name or (read if source.read is not None else "constant")

    def places(self, node: Node) -> list[str]:
        """The learner's lines that this operation comes from, innermost first; of a gradient the line of its forward."""
        if node.phase == "backward" and node.where is not None:
            code, instruction = node.where
            number = next((n for first, end, n in code.co_lines() if first <= instruction < end), code.co_firstlineno)
            return [f"{where_text(node.where)} {source_of(code.co_filename, number)}".rstrip()][: self.depth]
        found = []
        frame = sys._getframe(2)
        while frame is not None and len(found) < self.depth:
            code = frame.f_code
            if OURS[code.co_filename]:
                if code is type(self.build).run.__code__:
                    break  # what stands above called the graph, and did not build it
            else:
                line = f"{file_name(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
                found.append(f"{line} {source_of(code.co_filename, frame.f_lineno)}".rstrip())
            frame = frame.f_back
        return found


def source_of(file: str, number: int | None) -> str:
    """`< return x @ w >`: linecache has the cells of a notebook too."""
    line = linecache.getline(file, number or 0).strip()
    return f"< {line} >" if line else ""


# ---- a build that fails ----------------------------------------------------------------------------------------------


def failed(graph: Any, build: Any, error: BaseException) -> None:
    """Print the tree of modules so far with the failing line marked, and note it on the error, which goes on its way."""
    if not isinstance(error, Exception):  # an interrupt is no mistake in the program
        return
    try:
        place, line = failing_line(build, error)
        call = build.failed
        where = f"in {call.path} ({type(call.module).__name__})" if call is not None else "in build"
        print("\n".join(tree_so_far(graph, build, error, place, line)), flush=True)
        error.add_note(f"while building {graph.name}: {where}, at {place}" + (f" {line}" if line else ""))
    except Exception:  # what went wrong in the program must not be hidden by what goes wrong in telling of it
        error.add_note(f"while building {graph.name}")


def failing_line(build: Any, error: BaseException) -> tuple[str, str]:
    """(file.py:12, its source) of the innermost line of the learner's in the traceback, inside build."""
    inside, found = False, None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code is type(build).run.__code__:
            inside = True
        elif inside and not OURS[code.co_filename]:
            found = code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    if found is None:
        code = type(build.graph).build.__code__
        found = code.co_filename, code.co_firstlineno
    return f"{file_name(found[0])}:{found[1]}", source_of(*found)


def tree_so_far(graph: Any, build: Any, error: BaseException, place: str, line: str) -> list[str]:
    on_path = {id(call) for call in build.top.walk() if not call.done}
    said = str(getattr(error, "what", error)).partition("\n")[0]
    message = f"{type(error).__name__}: {said}"[:100]
    rows = [f"{listing.graph_head(graph)} was built up to here:"]
    stack = [(call, 1) for call in reversed(build.top.children)]
    run: list = []
    while stack:
        call, depth = stack.pop()
        if call.done and not call.children:
            alike = run and (type(run[-1].module) is type(call.module)) and shape_text(run[-1]) == shape_text(call)
            run = [*run, call] if alike else [call]
            if len(run) == SHOWN:
                rows.append("   " + "  " * depth + f"... and further {type(call.module).__name__} alike")
            if len(run) >= SHOWN:
                continue
        else:
            run = []
        mark = ">>>" if call is build.failed else "   "
        title = f"{call.path}: {type(call.module).__name__}({call.module.extra_repr()})"
        rows.append(f"{mark}{'  ' * depth}{title}  {shape_text(call)}".rstrip())
        if call is build.failed:
            rows.append(f">>>{'  ' * depth}  at {place} {line}".rstrip())
            rows.append(f">>>{'  ' * depth}  {message}")
        if id(call) in on_path or len(call.children) <= 2 * SHOWN:
            stack += [(child, depth + 1) for child in reversed(call.children)]
        elif call.children:
            rows.append("   " + "  " * (depth + 1) + f"({sum(1 for _ in call.walk()) - 1} modules inside)")
    if build.failed is None:
        rows += [f">>>  at {place} {line}".rstrip(), f">>>  {message}"]
    return rows


def shape_text(call: Any) -> str:
    """`float32[4, 7] -> float32[4, 3]`, or up to the arrow where it did not return."""
    ins = ", ".join([str(x.spec) for _, x in leaves([*call.args, *call.kwargs.values()]) if isinstance(x, Tensor)])
    if not call.done:
        return f"{ins} ->"
    outs = ", ".join([str(x.spec) for _, x in leaves(call.output) if isinstance(x, Tensor)])
    return f"{ins} -> {outs}"
