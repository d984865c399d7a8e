"""Limit the threads of numpy's BLAS.

A matrix product that is too small for four threads is slower with them, and on a busy machine it waits for the last
thread each time: a convolution of 33 ms took 4 s. So kernels that compute many small products use one thread.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def libraries() -> list[Any]:
    """The BLAS libraries of this process, found by threadpoolctl; empty without it."""
    try:
        import threadpoolctl
    except ImportError:  # slower, but with the same results
        return []
    return [library for library in threadpoolctl.ThreadpoolController().lib_controllers if library.user_api == "blas"]


def on_one_thread(kernel):
    """Decorator: run the BLAS calls of a kernel on one thread, and restore the thread count (takes 1.3 us)."""

    @functools.wraps(kernel)
    def limited(*args, **options):
        counts = [(library, library.num_threads) for library in libraries()]
        if all(n == 1 for _, n in counts):
            return kernel(*args, **options)
        for library, _ in counts:
            library.set_num_threads(1)
        try:
            return kernel(*args, **options)
        finally:
            for library, n in counts:
                library.set_num_threads(n)

    return limited
