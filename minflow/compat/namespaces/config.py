"""`flow.__config__`: what the numbers are computed with."""

from __future__ import annotations

import numpy as np

from .threads import get_num_threads


def show() -> str:
    """The array library and its version, as a text."""
    return f"minflow on NumPy {np.__version__}: see numpy.show_config() for its BLAS"


def parallel_info() -> str:
    """How many threads a matrix product uses."""
    return f"threads of matrix products: {get_num_threads()}"
