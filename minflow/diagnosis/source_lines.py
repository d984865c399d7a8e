"""Whose line of code is it, and what stands there. Read next: `frames.py`."""

from __future__ import annotations

import functools
import linecache
import os

import numpy as np

from ..core.ir import Where, file_name, line_number


PUBLIC: list[str] = []  # folders of functions that a learner calls by their names, besides those of core


def public_functions(folder: str) -> None:
    """The functions in this folder are called by learners: `public_functions(__path__[0])`."""
    PUBLIC.append(folder)


@functools.cache
def library(file: str) -> bool:
    """Is it Python's own or numpy's? A line of theirs says little; packages of models are as the learner's own."""
    import sysconfig

    inside = sysconfig.get_path("stdlib") + os.sep
    packages = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
    if file.startswith(os.path.dirname(np.__file__) + os.sep) or file.startswith("<frozen "):
        return True
    return file.startswith(inside) and not file.startswith(packages) and "site-packages" not in file


def source_line(file: str, number: int | None) -> str:
    """`return x @ w`: linecache has the cells of a notebook too."""
    return linecache.getline(file, number or 0).strip()


def source_of(file: str, number: int | None) -> str:
    """`< return x @ w >`"""
    line = source_line(file, number)
    return f"< {line} >" if line else ""


def line_of(where: Where) -> str:
    """`net.py:12 in forward < return x @ w >` of a place that a node remembers."""
    code, number = where[0], line_number(where)
    return f"{file_name(code.co_filename)}:{number} in {code.co_name} {source_of(code.co_filename, number)}".rstrip()
