"""`flow.__config__`: the libraries that minflow computes with, and their threads."""

from __future__ import annotations

from ...core.backend import namespace
from .threads import get_num_threads


def show() -> str:
    """Return the array library and its version as text."""
    return f"minflow on NumPy {namespace().__version__}: see numpy.show_config() for its BLAS"


def parallel_info() -> str:
    """Return the number of threads of a matrix product as text."""
    return f"threads of matrix products: {get_num_threads()}"
