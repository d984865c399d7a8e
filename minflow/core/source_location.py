"""The current line of the user's program, and the errors and warnings that report it.

`caller` finds the line, `describe` formats a value, `fail` raises a four-part error, `need` imports an optional
package, and `warn` issues a four-part warning, once per line. Read next: `infer.py`, whose errors `explain` completes.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .base.errors import MinflowError, MinflowWarning, MissingDependencyError, shown
from .base.optional import import_optional
from .context import Context, PerContext
from .ir import Where, line_number, where_text
from .mode import MODE

# the code object of Module.__call__, registered by nn: `caller` stops at it
MODULE_CALL: list = []


class MinflowFiles(dict):
    """Cache: file name -> True if the file belongs to minflow, or is called between the user's line and minflow."""

    def __missing__(self, name: str) -> bool:
        self[name] = result = name.startswith(SKIPPED_PREFIXES) or WIDGETS_FOLDER in name
        return result


ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
NUMPY_FOLDER = os.path.join(os.path.dirname(np.__file__), "")
# also files between the user's line and ours on the stack: the import system, copy.deepcopy, functions of numpy
SKIPPED_PREFIXES = ROOT, "<frozen importlib", importlib.__file__, copy.__file__, NUMPY_FOLDER
WIDGETS_FOLDER = f"{os.sep}minflow_widgets{os.sep}"  # the widgets package, wherever it is installed
IS_MINFLOW_FILE = MinflowFiles()
frame_at = sys._getframe  # bound once: every op on the tape looks for its line


def caller(depth: int = 2) -> Where | None:
    """(code, instruction offset) of the first frame outside minflow, from `depth` frames up; None if there is none.

    Entering a Module stores its caller in the mode, so the search ends at the nearest Module.__call__.
    """
    frame = frame_at(depth)
    while IS_MINFLOW_FILE[(code := frame.f_code).co_filename]:
        if code in MODULE_CALL:
            return MODE.get().entered
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return code, frame.f_lasti


def here() -> str:
    """The place for an error: "in LeNet.fc1, called at In[9]:5"."""
    scope, line = MODE.get().scope.lstrip("/"), where_text(caller(2))
    return f"in {scope}, called at {line}" if scope else f"at {line}"


Context.here = here


def name_of(x: Any, otherwise: str) -> str:
    """The user's name of an input: "fc1.weight" for a Parameter inside fc1, else the given name."""
    try:
        label = getattr(x, "_label", "")
    except Exception:  # raised by a special method of the user's object
        return otherwise
    if not isinstance(label, str) or not label:
        return otherwise
    module = MODE.get().scope.rpartition(".")[2]
    return f"{module}.{label}" if module else label


def describe(x: Any) -> str:
    """Text of a value for an error: spec and line of a tensor, else a short repr. Never raises."""
    try:
        return describe_or_raise(x)
    except Exception:  # raised by a special method of the user's object
        return one_line(x)


def one_line(x: Any) -> str:
    """The repr of any object, shortened to 80 characters."""
    text = " ".join(shown(x).split())
    return text if len(text) <= 80 else text[:77] + "..."


def describe_or_raise(x: Any) -> str:
    spec = getattr(x, "spec", None)
    if spec is None:
        return one_line(x)
    node = x._value.node if getattr(x, "_value", None) is not None else None
    text = str(spec) if getattr(spec, "placement", None) is None else f"{spec} {distribution_text(spec)}"
    if getattr(x, "array", x) is None and node is not None and not node.inputs and getattr(node, "name", ""):
        return f"{text}  ({node.op} {node.name})"
    return f"{text}  (created at {where_text(node.where)})" if node is not None and node.where else text


def distribution_text(spec: Any) -> str:
    """The distribution of a global tensor: `split(0), broadcast on ranks [[0, 1], [2, 3]]`."""
    kinds = [f"split({sbp.dim})" if sbp.kind == "split" else sbp.kind for sbp in spec.sbp]
    return f"{', '.join(kinds)} on ranks {spec.placement.ranks.tolist()}"


def input_names(op: Any, inputs: Sequence) -> Sequence[str]:
    """The names of the inputs of an op; "tensors[0]", ... for a variadic op."""
    return [f"{op.inputs[0][1:]}[{i}]" for i in range(len(inputs))] if op.variadic else op.inputs


def explain(error: MinflowError, op: Any, inputs: Sequence) -> MinflowError:
    """Complete the error of a shape rule with names, values, module and line; return it."""
    marks = input_names(op, inputs)
    names = {mark: name_of(x, mark) for mark, x in zip(marks, inputs)}
    if len(set(names.values())) < len(names):
        names = {mark: mark for mark in names}
    # a Parameter moves with its module: `weight.to(device)` would give a tensor that no optimizer updates
    names |= {f"owner of {mark}": "model" if name_of(x, "") else names[mark] for mark, x in zip(marks, inputs)}
    error.renamed(names)
    if not error.values:
        error.values = {names[mark]: describe(x) for mark, x in zip(marks, inputs)}
    error.where = error.where or here()
    return error


def fail(kind: type[MinflowError], what: str, hint: str = "", /, **values) -> NoReturn:
    """Raise a four-part error with these values by name, and with the module and line of the user's program."""
    raise kind(what, values={name_of(x, name): describe(x) for name, x in values.items()}, where=here(), hint=hint)


def need(module: str, what_for: str) -> Any:
    """Import a module of an optional package on first use. Raises MissingDependencyError with the user's line."""
    try:
        return import_optional(module, what_for)
    except MissingDependencyError as error:
        error.where = here()
        raise


warned_lines: PerContext[set] = PerContext(set)  # (kind, line) of the warnings of each rank


class Notices:
    """on: True if likely mistakes are reported. See `messages/training_warnings.py`."""

    on = os.environ.get("MINFLOW_NOTICES", "1") != "0"


NOTICES = Notices()


def warn(what: str, hint: str = "", /, **values) -> None:
    """Warn once per line of the user's program, with the four parts of an error."""
    if NOTICES.on:
        warn_at(what, hint, values, caller(2), here())


def warn_at(what: str, hint: str, values: Mapping, where: Where | None, place: str, kind: str = "") -> None:
    """Warn at the given line, once per line and kind."""
    key = kind or what.partition(":")[0], where
    if key in (warned := warned_lines()) or not NOTICES.on:
        return
    if len(warned) > 10_000:
        warned.clear()
    warned.add(key)
    parts = MinflowError(what, values={name_of(x, n): describe(x) for n, x in values.items()}, where=place, hint=hint)
    warning = MinflowWarning(str(parts))
    warning.parts = parts
    file, line = ("minflow", 1) if where is None else (where[0].co_filename, line_number(where))
    warnings.warn_explicit(warning, MinflowWarning, file, line)
