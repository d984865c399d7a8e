"""The state at the time of an error, read from its traceback: the failed node, its inputs, the graph up to it.

Costs nothing until an error is raised: the frames of its traceback still hold the op and its inputs, the module and the
build. Higher packages register readers of their frames with `register_build_reader`. Read next: `shape_suggestions.py`.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..compiler.executor import run
from ..core import functions, methods
from ..core.autograd import backprop
from ..core.base.errors import MinflowError
from ..core.dispatch import apply
from ..core.infer import infer
from ..core.ir import Graph, Node, Source, file_name, line_number, where_text
from ..core.op import Op
from ..core.source_location import IS_MINFLOW_FILE, MODULE_CALL
from ..core.tensor import Tensor
from .creation_site import SITE_ATTRIBUTE
from .frames import stopped_line, traceback_entries
from .shape_suggestions import expected_of_op
from .source_lines import PUBLIC_FOLDERS, is_library, source_line

MAX_INPUTS = 4  # maximum number of tensors listed as "got"
OP_FUNCTIONS = {apply.__code__, infer.__code__}


class RecordedGraph(NamedTuple):
    """The graph recorded by a build so far. title: title of the picture.  name: returns the name of a source."""

    title: str
    graph: Graph
    name: Callable[[Source], str]


# code of a build function -> reader of its locals
BUILD_READERS: dict[CodeType, Callable[[Mapping[str, Any]], RecordedGraph]] = {}


def register_build_reader(code: CodeType):
    """Decorator: register a function that finds the graph of a build in the locals of the function with this code:
    `@builds(compile_graph.__code__)`.
    """

    def register(function):
        BUILD_READERS[code] = function
        return function

    return register


@dataclass
class Failure:
    """The contents of the frames of one traceback. `inputs` has pairs (name, tensor)."""

    error: BaseException
    scope: str = ""
    module: Any = None
    label: str = ""  # label of the failed node
    attrs: str = ""
    inputs: list[tuple[str, Tensor]] = field(default_factory=list)
    visible_tensors: list[Tensor] = field(default_factory=list)  # tensors visible to the failed line
    user_line: str = ""  # the innermost one, such as "In[3]:7"
    code: str = ""
    # line and source line that created the module, if its class is not the learner's
    created_at: tuple[str, ...] = ()
    recorded_graph: RecordedGraph | None = None
    node: Node | None = None  # an existing node that failed when run, or in backward
    plan: Any = None
    expected: str = ""

    @property
    def is_located(self) -> bool:
        """True if the error was raised inside a node, a module or a build."""
        return bool(self.label or self.scope or self.node or self.recorded_graph)


def read_failure(error: BaseException) -> Failure:
    """Read all frames of the traceback from the outermost; inner frames override outer ones."""
    failure = Failure(error)
    function: FrameType | None = None
    for trace in traceback_entries(error.__traceback__):
        frame, code = trace.tb_frame, trace.tb_frame.f_code
        if code in MODULE_CALL:
            read_module_call(failure, frame)
            function = None
        elif code in BUILD_READERS:
            with contextlib.suppress(Exception):
                failure.recorded_graph = BUILD_READERS[code](frame.f_locals)
        elif code in OP_FUNCTIONS:
            read_op_call(failure, frame)
        elif code is backprop.__code__ or code is run.__code__:
            read_run(failure, frame)
        elif not IS_MINFLOW_FILE[code.co_filename] and not is_library(code.co_filename):
            read_user_line(failure, frame, stopped_line(trace))
            function = None
        elif function is None and is_public(code):
            function = frame
    if not failure.label and function is not None and failure.node is None:
        failure.label = function.f_code.co_name
        failure.inputs = tensors_in(arguments(function)) or failure.inputs
    if not failure.label and failure.module is not None:
        failure.label = f"{type(failure.module).__name__}.forward"
    return failure


def read_module_call(failure: Failure, frame: FrameType) -> None:
    """Read a call of a module: its scope, and its arguments by the parameter names of its forward."""
    own = frame.f_locals
    failure.module, failure.scope = own.get("self"), own.get("scope", "")
    failure.label, failure.attrs, failure.node, failure.visible_tensors = "", "", None, []
    failure.created_at = creation_lines(failure.module)
    args, kwargs = own.get("args", ()), own.get("kwargs", {})
    names = list(inspect.signature(type(failure.module).forward).parameters)[1:]
    names += [f"input {i}" for i in range(len(names), len(args))]
    failure.inputs = tensors_in({**dict(zip(names, args)), **kwargs})


def creation_lines(module: Any) -> tuple[str, ...]:
    """("In[5]:5", source line) of the user line that created a module; empty if unknown."""
    site = getattr(module, "__dict__", {}).get(SITE_ATTRIBUTE)
    if not site or is_library(site[0].co_filename):
        return ()
    return where_text(site), *filter(None, [source_line(site[0].co_filename, line_number(site))])


def read_op_call(failure: Failure, frame: FrameType) -> None:
    """Read a call of an op: its attrs, its inputs, and the input that would have fit."""
    from ..views.records.graph import attrs_text

    own = frame.f_locals
    op, inputs = own.get("op"), own.get("inputs", ())
    if not isinstance(op, Op):
        return
    names = [f"{op.inputs[0][1:]}[{i}]" for i in range(len(inputs))] if op.variadic else list(op.inputs)
    failure.label, failure.node = op.name, None
    attrs = {k: v for k, v in own.get("attrs", {}).items() if isinstance(v, int | float | str | tuple)}
    failure.attrs = attrs_text(attrs)[:80]
    failure.inputs = [(name_of(failure, x, name), x) for name, x in zip(names, inputs) if isinstance(x, Tensor)]
    place = expected_of_op(op, inputs, own.get("attrs", {})) if isinstance(failure.error, MinflowError) else None
    if place is not None:
        i, spec = place
        failure.expected = f"{name_of(failure, inputs[i], names[i])}  {spec}"


def read_run(failure: Failure, frame: FrameType) -> None:
    """Read a backward pass or the run of a plan, in which the node exists already."""
    own = frame.f_locals
    plan = own.get("plan")
    node = own.get("node") if plan is None else plan.failed
    if isinstance(node, Node) and not isinstance(node, Source):
        failure.node, failure.plan, failure.created_at = node, plan, ()
        if plan is not None:
            failure.code = source_line(node.where[0].co_filename, line_number(node.where)) if node.where else ""
        failure.label = str(node.op) if plan is not None else f"gradient of {node.op}"
        failure.scope, failure.attrs = node.scope, ""
        failure.inputs, failure.expected = [], ""


def read_user_line(failure: Failure, frame: FrameType, number: int) -> None:
    """Read a user line: its place and source, and the tensors visible to it."""
    name = frame.f_code.co_filename
    failure.user_line, failure.code = f"{file_name(name)}:{number}", source_line(name, number)
    failure.created_at = ()
    if failure.node is None:  # in backward, a user's function is shown as the gradient's node
        failure.label, failure.attrs, failure.expected = "", "", ""
    seen = {k: v for k, v in frame.f_locals.items() if not k.startswith("_")}
    failure.visible_tensors = [x for _, x in tensors_in(seen)] if frame.f_code.co_name != "<module>" else []


def is_public(code: CodeType) -> bool:
    """True for a public function or method of minflow; False for the wrapper of a decorator."""
    named = not code.co_name.startswith(("_", "<")) and "<locals>" not in code.co_qualname
    return named and code.co_filename.startswith((*functions.__path__, *methods.__path__, *PUBLIC_FOLDERS))


def arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    return {name: frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}


def tensors_in(named: Mapping[str, Any]) -> list[tuple[str, Tensor]]:
    """(name, tensor) for tensors among the values, and inside lists and tuples."""
    pairs: list[tuple[str, Tensor]] = []
    for name, x in named.items():
        if isinstance(x, Tensor):
            pairs.append((name, x))
        elif isinstance(x, list | tuple) and len(x) <= 16:
            pairs += [(f"{name}[{i}]", t) for i, t in enumerate(x) if isinstance(t, Tensor)]
    return pairs


def name_of(failure: Failure, x: Any, otherwise: str) -> str:
    """ "fc1.weight" for a parameter of the failed module, else `otherwise`."""
    label = getattr(x, "_label", "")
    module = failure.scope.rpartition(".")[2]
    return (f"{module}.{label}" if module else label) if label else otherwise
