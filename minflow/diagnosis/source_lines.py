"""Source lines and their origin: the learner, a library or minflow. Read next: `frames.py`."""

from __future__ import annotations

import functools
import linecache
import os

from ..core.backend import namespace
from ..core.ir import Where, file_name, line_number

PUBLIC_FOLDERS: list[str] = []  # folders of functions that learners call by name, besides those of core


def register_public_folder(folder: str) -> None:
    """Register a folder of functions that learners call: `register_public_folder(__path__[0])`."""
    PUBLIC_FOLDERS.append(folder)


@functools.cache
def is_library(file: str) -> bool:
    """True for files of Python or NumPy, whose lines explain little; packages of models count as the learner's code."""
    import sysconfig

    inside = sysconfig.get_path("stdlib") + os.sep
    packages = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
    if file.startswith(os.path.dirname(namespace().__file__) + os.sep) or file.startswith("<frozen "):
        return True
    return file.startswith(inside) and not file.startswith(packages) and "site-packages" not in file


def source_line(file: str, number: int | None) -> str:
    """The source line, such as `return x @ w`; linecache also contains the cells of a notebook."""
    return linecache.getline(file, number or 0).strip()


def source_of(file: str, number: int | None) -> str:
    """The source line in the form of error messages: `< return x @ w >`."""
    line = source_line(file, number)
    return f"< {line} >" if line else ""


def line_of(where: Where) -> str:
    """`net.py:12 in forward < return x @ w >` for the place stored in a node."""
    code, number = where[0], line_number(where)
    return f"{file_name(code.co_filename)}:{number} in {code.co_name} {source_of(code.co_filename, number)}".rstrip()
