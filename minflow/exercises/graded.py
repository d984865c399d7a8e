"""The check of graded editions (nbgrader, otter), which earlier cells of the same kernel cannot replace by assignment.

A check cell executes this file from disk: `run_module("minflow.exercises.graded")["check"]`. It compares the functions
of the checker with their source files, reads the exercise again, and restores the environment. Code that attacks Python
or IPython itself still gets past it: see docs/teaching/grading.md.
"""

from __future__ import annotations

import builtins
import inspect
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

# Absolute, since this file runs outside the package; from the modules, since attributes of the package may be replaced.
from minflow.exercises.checker import SEED_VARIABLE, WORD_VARIABLE, check as original_check
from minflow.exercises.external import VARIABLE
from minflow.exercises.i18n import say
from minflow.exercises.isolation import NAMESPACES
from minflow.exercises.registry import forget

PACKAGE = "minflow.exercises"
FOLDER = Path(__file__).parent
__path__: list[str] = []  # or runpy warns, and nbgrader gives no points, after a cell has imported this file
GRADING_VARIABLES = ("NBGRADER_EXECUTION", "MINFLOW_GRADING", SEED_VARIABLE, WORD_VARIABLE, VARIABLE)


class ReplacedError(AssertionError):
    """Raised instead of judging, if something that judges was replaced. Its text names it."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(name: str, answer: Any, *given: Any) -> Any:
    """Check an answer as `checker.check` does, with the functions and the exercise that are on disk.

    Raises ReplacedError if a function of the checker, of minflow or of Python was replaced.
    """
    __tracebackhide__ = True
    if found := find_replaced():
        text = say("{what} has been replaced. Nothing was checked.", what=found)
        raise ReplacedError(f"{text} {say('Kernel > Restart Kernel, then run the cells again.')}")
    forget()  # a list of cases or a tolerance may have been changed
    first = initial_environment()
    os.environ.update({variable: first[variable] for variable in GRADING_VARIABLES if variable in first})
    return original_check(name, answer, *given)


def initial_environment() -> dict[str, str]:
    """The environment at the start of the process, which cells do not change; {} if the system does not have it."""
    try:
        lines = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return {name: value for name, sign, value in (os.fsdecode(line).partition("=") for line in lines)}


def find_replaced() -> str:
    """Name of the first function that is not the one in its file, or that a notebook defined; "" if there is none."""
    for name, module in list(sys.modules.items()):
        if name == PACKAGE or (name.startswith(f"{PACKAGE}.") and ".lessons." not in name):
            base = FOLDER.joinpath(*name.removeprefix(PACKAGE).split(".")[1:])
            file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
            if file.is_file() and (changed := changed_function(module, file) or notebook_object(module)):
                return f"{name}.{changed}"
    for name, space in {**NAMESPACES, "builtins": builtins}.items():
        if changed := notebook_object(space):
            return f"{name}.{changed}"
    return ""


def changed_function(module: ModuleType, file: Path) -> str:
    """Name of the first function or method of a module whose code differs from the file; "" if none does."""
    codes: dict[str, list[CodeType]] = {}
    for code in function_codes(SourceFileLoader(module.__name__, str(file)).get_code(module.__name__)):
        codes.setdefault(code.co_qualname, []).append(code)  # a property has several
    for name, known in codes.items():
        found: Any = module
        for part in name.split("."):
            found = vars(found).get(part) if hasattr(found, "__dict__") else None
        if not any(code in known for code in codes_of(found)):
            return name
    return ""


def function_codes(code: CodeType | None) -> Iterator[CodeType]:
    """Codes of the functions of a module or class, without nested ones."""
    for constant in code.co_consts if code else ():
        if isinstance(constant, CodeType) and not constant.co_name.startswith("<"):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            else:  # the body of a class
                yield from function_codes(constant)


def codes_of(value: Any) -> list[CodeType]:
    """Codes of a function below its decorators, or of the functions of a property."""
    parts = [getattr(value, name, None) for name in ("fget", "fset", "func", "__func__")]
    functions = [inspect.unwrap(part) for part in (*parts, value) if callable(part)]
    return [function.__code__ for function in functions if hasattr(function, "__code__")]


def notebook_object(space: Any) -> str:
    """Name of the first attribute that is a function or class of the notebook; "" if there is none."""
    for name, value in list(vars(space).items()):
        if callable(value) and (getattr(value, "__module__", "") == "__main__" or type(value).__module__ == "__main__"):
            return name
    return ""
