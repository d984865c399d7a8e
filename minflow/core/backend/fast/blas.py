"""How many threads the BLAS behind numpy may use.

A product too small to be worth four threads is slower with them, and on a machine whose cores are taken by others it
waits for the last thread each time: a convolution of 33 ms took 4 s. So kernels that make many small products ask for
one.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def libraries() -> list[Any]:
    """The BLAS libraries of this process, through threadpoolctl; none without it."""
    try:
        import threadpoolctl
    except ImportError:  # slower, with the same results
        return []
    return [library for library in threadpoolctl.ThreadpoolController().lib_controllers if library.user_api == "blas"]


def on_one_thread(kernel):
    """A kernel whose BLAS calls use one thread; the count is put back afterwards (1.3 us in all)."""

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
