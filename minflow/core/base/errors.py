"""The error family: what went wrong, the values by name, where, and what to try.

Every mistake of a user ends in one of these. `str(error)` is the four-part text; the parts stay readable
as attributes, so that a notebook can draw them. Nothing here knows tensors: values are shown by `str`.
Read next: `where.fail`, which fills in the values, the line and the module from what is running.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

# characters shown of a name (as many as a file's can have), a line, a part of an error
NAME, LINE, PART = 255, 10_000, 20_000
DISTRIBUTION = "minflow-learn"  # the name to install; `minflow` is a project of others
PUBLIC = "minflow"  # where programs find these classes, as a traceback shows: minflow.ShapeError
LONG = re.compile(rf"[^\s/]{{{NAME + 1},}}")


def clean(text: str) -> str:
    """A line without characters that break a line, a terminal or the order of letters; names come from users and files.

    Of what is too long the middle is left out.
    """
    if len(text) <= NAME and text.isprintable():
        return text
    text = LONG.sub(lambda found: cut(found[0], NAME), cut(text, LINE))
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text)


def cut(text: str, most: int) -> str:
    half = (most - 16) // 2
    return text if len(text) <= most else f"{text[:half]}...{len(text) - 2 * half} more...{text[-half:]}"


def clean_lines(text: str) -> str:
    """The same of a text whose lines are kept."""
    return "\n".join(map(clean, cut(text, PART).split("\n")))


def shown(value: object, text: Callable[[object], str] = repr, name: str = "") -> str:
    """The repr of any object for a message. An object whose `__repr__` raises does not replace the error that shows it.

    text: repr, str or another function, whose name is `name`.
    """
    try:
        return str.__str__(text(value))
    except Exception as error:
        name = name or f"__{text.__name__}__"
        return f"<{type(value).__name__}, whose {name} raised {type(error).__name__}>"


def with_article(x: Any) -> str:
    """ "an int", "the class SGD", "None": what kind of thing it is."""
    if x is None or issubclass(type(x), type):
        return "None" if x is None else f"the class {x.__name__}"
    kind = type(x).__name__
    spelled = kind[:2].isupper() and kind[0] in "FHLMNRSX"  # an MLP, an SGD
    return f"an {kind}" if kind[0] in "aeiouAEIO" or spelled or kind == "ndarray" else f"a {kind}"


class MinflowError(Exception):
    """A mistake, explained in four parts.

    what: one sentence.  values: name -> anything with a short `str`, shown as `name  value`.
    where: `"in LeNet.fc1, called at In[9]:5"`.  hint: what to try.
    raw: the error of Python or numpy that this one tells of, where nobody had looked for the mistake.
    """

    raw: BaseException | None = None
    __module__ = PUBLIC

    def __init_subclass__(cls):
        if cls.__module__ == __name__:
            cls.__module__ = PUBLIC

    def __init__(self, what: str, *, values: Mapping[str, object] | None = None, where: str = "", hint: str = ""):
        super().__init__(what)
        self.what = what
        self.values = {name: shown(value, str) for name, value in (values or {}).items()}
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        values = {cut(clean(name), NAME): clean_lines(value) for name, value in self.values.items()}
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
        """Put the learner's names in place of `{input}` marks that a shape rule left in its texts."""
        for mark, name in names.items():
            self.what = self.what.replace("{" + mark + "}", name)
            self.hint = self.hint.replace("{" + mark + "}", name)
        return self


def rebuild(kind, what, values, where, hint):
    return kind(what, values=values, where=where, hint=hint)


class ShapeError(MinflowError, ValueError, RuntimeError):
    """Shapes that do not fit together. PyTorch raises ValueError for some and RuntimeError for others."""


class DTypeError(MinflowError, TypeError, RuntimeError):
    """A tensor or number of the wrong dtype, or an argument of the wrong type. In PyTorch either of both."""


class CallError(MinflowError, TypeError):
    """A call with arguments that the function does not have, or without some that it needs."""


class MissingNameError(MinflowError, AttributeError):
    """A public name that is not there."""


class OutOfRangeError(MinflowError, IndexError, ValueError):
    """An index, label or axis outside its range (IndexError in PyTorch), or another number (ValueError)."""


class DivisionError(MinflowError, ZeroDivisionError):
    """Integers divided by 0."""


class LinAlgError(MinflowError, RuntimeError):
    """A matrix that has no inverse, or no such factors."""


class DeviceError(MinflowError, RuntimeError):
    """Tensors on different devices, or a device that is not there."""


class OutOfMemoryError(MinflowError, MemoryError, RuntimeError):
    """More memory asked for than there is."""


class GradError(MinflowError, RuntimeError):
    """A gradient that cannot be computed as asked."""


class NonFiniteError(MinflowError, ArithmeticError):
    """NaN or infinity where numbers were expected (detect_anomaly)."""


class TraceError(MinflowError, RuntimeError):
    """Something that a program may do eagerly but not while it is traced."""


class GraphError(MinflowError, RuntimeError):
    """A graph that is not well formed, or used in the wrong way."""


class SbpError(MinflowError, ValueError):
    """Placements or splits that do not fit together."""


class JobError(MinflowError, RuntimeError):
    """A job function defined or called in the wrong way."""


class ModuleError(MinflowError, RuntimeError):
    """A Module defined or used in the wrong way."""


class NestingError(MinflowError, RecursionError):
    """Modules that call each other without an end, or deeper than the stack of the thread allows."""


class OptimError(MinflowError, ValueError):
    """An optimizer or scheduler set up in the wrong way."""


class FileError(MinflowError, OSError):
    """A file that cannot be written: the disk is full, or the folder is protected."""


class FormatError(MinflowError, ValueError):
    """A file that is not what it should be."""


class CheckpointError(FormatError):
    """A checkpoint that cannot be written, read, or trusted."""


class StateError(CheckpointError, RuntimeError):
    """A state_dict that does not fit what it is loaded into: then nothing of it was loaded."""


class GraphFormatError(FormatError):
    """A saved graph that cannot be read."""


class DataError(FormatError):
    """A data file that is missing, damaged, or of another kind."""


class LoaderError(MinflowError, ValueError):
    """A DataLoader, sampler or dataset set up in a way that cannot work."""


class WorkerError(MinflowError, RuntimeError):
    """A worker of a DataLoader that died, or an error in one that cannot be shown as it was."""


class MissingDependencyError(MinflowError, ImportError):
    """A package that this call needs and that is not installed."""


class MissingModuleError(MinflowError, ModuleNotFoundError):
    """A module of other libraries that is not here on purpose."""


class InternalError(MinflowError, RuntimeError):
    """A bug in minflow itself: please report it with the text shown."""


class MinflowWarning(UserWarning):
    """A likely mistake that runs all the same. parts: what an error would say."""

    parts: MinflowError | None = None
    __module__ = PUBLIC
