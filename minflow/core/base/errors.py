"""The error classes, in four parts: what went wrong, the values by name, where, and what to try.

Every mistake of a user raises one of these. `str(error)` is the four-part text; the parts are attributes, so that a
notebook can draw them. Must not depend on tensors: values are formatted by `str`.
Read next: `source_location.fail`, which adds the values, the line and the module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

# largest number of characters of a name (the limit for file names), a line, a part of an error
MAX_NAME, MAX_LINE, MAX_PART = 255, 10_000, 20_000
DISTRIBUTION = "minflow-learn"  # name on PyPI, where `minflow` is another project
PUBLIC_MODULE = "minflow"  # module in tracebacks: minflow.ShapeError
LONG_NAME = re.compile(rf"[^\s/]{{{MAX_NAME + 1},}}")


def clean(text: str) -> str:
    """Escape characters that would break a line, a terminal or the text direction, since names come from users and
    files; and leave out the middle of a long line.
    """
    if len(text) <= MAX_NAME and text.isprintable():
        return text
    text = LONG_NAME.sub(lambda found: cut(found[0], MAX_NAME), cut(text, MAX_LINE))
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text)


def cut(text: str, most: int) -> str:
    """Leave out the middle of a text of more than `most` characters."""
    half = (most - 16) // 2
    return text if len(text) <= most else f"{text[:half]}...{len(text) - 2 * half} more...{text[-half:]}"


def clean_lines(text: str) -> str:
    """`clean` for each line of a text."""
    return "\n".join(map(clean, cut(text, MAX_PART).split("\n")))


IN_MESSAGE: ContextVar[bool] = ContextVar("in_message", default=False)  # then a repr must not wait for other ranks


def shown(value: Any, text: Callable[[Any], str] = repr, name: str = "") -> str:
    """The repr of any object for a message. Never raises, so that a broken `__repr__` does not hide the error.

    text: repr, str or another function.  name: its name for the message, if it is not a special method.
    """
    token = IN_MESSAGE.set(True)
    try:
        return str.__str__(text(value))
    except Exception as error:
        name = name or f"__{text.__name__}__"
        return f"<{type(value).__name__}, whose {name} raised {type(error).__name__}>"
    finally:
        IN_MESSAGE.reset(token)


def with_article(x: Any) -> str:
    """The kind of an object with its article: "an int", "the class SGD", "None"."""
    if x is None or issubclass(type(x), type):
        return "None" if x is None else f"the class {x.__name__}"
    kind = type(x).__name__
    spelled = kind[:2].isupper() and kind[0] in "FHLMNRSX"  # an MLP, an SGD
    return f"an {kind}" if kind[0] in "aeiouAEIO" or spelled or kind == "ndarray" else f"a {kind}"


class MinflowError(Exception):
    """A mistake, explained in four parts.

    what: one sentence.  values: name -> any object with a short `str`, shown as `name  value`.
    where: `"in LeNet.fc1, called at In[9]:5"`.  hint: what to try.
    raw: the error of Python or numpy that this one replaces, or None if minflow found the mistake itself.
    """

    raw: BaseException | None = None
    __module__ = PUBLIC_MODULE

    def __init_subclass__(cls):
        if cls.__module__ == __name__:
            cls.__module__ = PUBLIC_MODULE

    def __init__(self, what: str, *, values: Mapping[str, object] | None = None, where: str = "", hint: str = ""):
        super().__init__(what)
        self.what = what
        self.values = {name: shown(value, str) for name, value in (values or {}).items()}
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        values = {cut(clean(name), MAX_NAME): clean_lines(value) for name, value in self.values.items()}
        width = max(map(len, values), default=0)
        lines = [clean_lines(self.what), *(f"  {name:<{width}}  {value}" for name, value in values.items())]
        if self.where:
            lines.append(f"  {clean_lines(self.where)}")
        if self.hint:
            lines.append(f"  Try: {clean_lines(self.hint)}")
        return "\n".join(lines)

    def __reduce__(self):
        return rebuild, (type(self), self.what, self.values, self.where, self.hint)

    def renamed(self, names: Mapping[str, str]) -> MinflowError:
        """Replace the marks `{input}` in the texts of a shape rule by the user's names; return the error."""
        for mark, name in names.items():
            self.what = self.what.replace("{" + mark + "}", name)
            self.hint = self.hint.replace("{" + mark + "}", name)
        return self


def rebuild(kind, what, values, where, hint):
    return kind(what, values=values, where=where, hint=hint)


class ShapeError(MinflowError, ValueError, RuntimeError):
    """Incompatible shapes. PyTorch raises ValueError for some and RuntimeError for others."""


class DTypeError(MinflowError, TypeError, RuntimeError):
    """A tensor or number of the wrong dtype, or an argument of the wrong type. PyTorch raises either base class."""


class CallError(MinflowError, TypeError):
    """A call with unknown arguments, or without required ones."""


class MissingNameError(MinflowError, AttributeError):
    """A public name that does not exist."""


class OutOfRangeError(MinflowError, IndexError, ValueError):
    """An index, label or axis out of range (IndexError in PyTorch), or another number out of range (ValueError)."""


class DivisionError(MinflowError, ZeroDivisionError):
    """Integer division by 0."""


class LinAlgError(MinflowError, RuntimeError):
    """A matrix without an inverse, or without the requested factorization."""


class DeviceError(MinflowError, RuntimeError):
    """Tensors on different devices, or a device that does not exist."""


class OutOfMemoryError(MinflowError, MemoryError, RuntimeError):
    """A request for more memory than is free."""


class GradError(MinflowError, RuntimeError):
    """A gradient that cannot be computed as requested."""


class NonFiniteError(MinflowError, ArithmeticError):
    """NaN or infinity in place of a finite number (detect_anomaly)."""


class TraceError(MinflowError, RuntimeError):
    """An operation that is allowed in eager mode but not while tracing."""


class ContextError(MinflowError, RuntimeError):
    """A thread whose rank is unknown, or an object of another rank."""


class RankError(MinflowError, RuntimeError):
    """A collective that not all ranks have called, or a rank that does not exist."""


class GraphError(MinflowError, RuntimeError):
    """A graph that is malformed or misused."""


class SbpError(MinflowError, ValueError):
    """Incompatible placements or splits."""


class JobError(MinflowError, RuntimeError):
    """A job function that is defined or called incorrectly.

    step: index of the step that failed.  problems: the mistakes of a build that has several.
    """

    step: int
    problems: tuple


class ModuleError(MinflowError, RuntimeError, TypeError):
    """A Module that is defined or used incorrectly. PyTorch raises RuntimeError or TypeError."""


class NestingError(MinflowError, RecursionError):
    """Infinite recursion of modules, or nesting deeper than the stack of the thread allows."""


class OptimError(MinflowError, ValueError, TypeError):
    """An optimizer or scheduler that is configured incorrectly. PyTorch raises either base class."""


class FileError(MinflowError, OSError):
    """A file that cannot be written, because the disk is full or the folder is protected."""


class FormatError(MinflowError, ValueError):
    """A file with unexpected contents."""


class CheckpointError(FormatError):
    """A checkpoint that cannot be written, read, or trusted."""


class MissingFileError(CheckpointError, FileNotFoundError):
    """A checkpoint that does not exist, or whose folder does not."""


class StateError(CheckpointError, RuntimeError):
    """A state dict that does not match the object that loads it; nothing of it was loaded."""


class GraphFormatError(FormatError):
    """A saved graph that cannot be read."""


class DataError(FormatError):
    """A data file that is missing, damaged, or of the wrong kind."""


class LoaderError(MinflowError, ValueError):
    """A DataLoader, sampler or dataset that is configured incorrectly."""


class WorkerError(MinflowError, RuntimeError):
    """A worker of a DataLoader that died, or an error in a worker that cannot be sent to this process."""


class MissingDependencyError(MinflowError, ImportError):
    """A package that this call needs is not installed."""


class MissingModuleError(MinflowError, ModuleNotFoundError):
    """A module of another library that minflow leaves out on purpose."""


class InternalError(MinflowError, RuntimeError):
    """A bug in minflow itself: please report it with the text shown."""


class MinflowWarning(UserWarning):
    """A warning about a likely mistake in code that still runs. parts: the same as an error."""

    parts: MinflowError | None = None
    __module__ = PUBLIC_MODULE
