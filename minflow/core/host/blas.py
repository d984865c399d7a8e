"""Threads of NumPy's BLAS. Their number belongs to the process, whichever thread of Python sets it.

BLAS divides a product among its threads, which changes the bits. A large matrix product gains by it; a convolution
computes many small products, each of which would wait for the last thread: on busy cores, 33 ms became 4 s. So there
are two kinds, which take turns: products on one thread run side by side, one on all threads runs alone. Then every
thread of Python computes the same bits, whatever the others do.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from ..base.locks import new_lock

# Multiplications that OpenBLAS computes on one thread in any case: half of its limit for matrices, 8/9 for a vector.
MATRIX_LIMIT, VECTOR_LIMIT = 1 << 18, 1 << 13
# Multiplications up to which we compute a product on one thread: at most 0.2 ms. On busy cores, a second thread may
# have to wait for its turn: a product of 12 us took 2.5 ms.
MATRIX_SINGLE, VECTOR_SINGLE = 1 << 23, 1 << 20
COMPLEX = 8  # real multiplications as which a complex one counts; 4 in OpenBLAS
FOUND: list[Blas | None] = []  # the library, when it has been looked for
LOADING = new_lock()


class Blas:
    """Turns of the two kinds of products. get, set: read and change the number of threads."""

    queue: Any
    free: Any

    def __init__(self, get: Callable[[], int], set: Callable[[int], Any]):
        self.get, self.set = get, set
        self.reset()

    def reset(self) -> None:
        """Begin without running products."""
        self.counting = threading.Lock()  # guards `running`, `threads` and the number of threads
        self.queue = threading.Lock()  # held by a product that waits for its turn
        self.free = threading.Lock()  # held by the product on all threads, or for all products on one thread
        self.running, self.threads = 0, 1  # products on one thread, and the number of threads after them

    def count(self) -> int:
        """The number of threads that the user or the environment has set."""
        with self.counting:
            return self.threads if self.running else self.get()

    def begin(self) -> None:
        """Wait for the product on all threads, and limit BLAS to one thread."""
        with self.queue, self.counting:
            if not self.running:
                self.free.acquire()  # free, since a product on all threads would hold `queue`, too
                self.threads = self.get()
                self.set(1)
            self.running += 1

    def end(self) -> None:
        """After the last product on one thread, restore the number of threads unless the user has changed it."""
        with self.counting:
            self.running -= 1
            if not self.running:
                if self.get() == 1:
                    self.set(self.threads)
                self.free.release()

    def after_fork(self) -> None:
        """Forget running products of a forked process, which lacks their threads."""
        limited, threads = self.running, self.threads
        self.reset()
        if limited:
            self.set(threads)


class NoLock(nullcontext):
    """A lock that is always free."""

    def locked(self) -> bool:
        return False


class ThreadLocalBlas(Blas):
    """A BLAS whose number of threads belongs to the calling thread, as with OpenMP: its products need no turns."""

    def reset(self) -> None:
        self.local = threading.local()
        self.queue = self.free = NoLock()

    def count(self) -> int:
        return self.get()

    def begin(self) -> None:
        self.local.threads = self.get()
        self.set(1)

    def end(self) -> None:
        self.set(self.local.threads)

    def after_fork(self) -> None:
        """The thread that has forked was not limited."""


def single_threaded(call: Callable, *args: Any, **options: Any) -> Any:
    """Call a function of BLAS on one thread, beside those of other threads of Python."""
    blas = FOUND[0] if FOUND else library()
    if blas is None or blas.count() == 1:
        return call(*args, **options)
    with uninterrupted():  # Ctrl-C within `begin` or `end` would stop the turns
        blas.begin()
        try:
            return call(*args, **options)
        finally:
            blas.end()


def on_one_thread(kernel: Callable) -> Callable:
    """Decorator: run the BLAS calls of a kernel on one thread, beside those of other threads of Python."""

    @functools.wraps(kernel)
    def limited(*args: Any, **options: Any) -> Any:
        return single_threaded(kernel, *args, **options)

    return limited


def on_all_threads(call: Callable, *args: Any, **options: Any) -> Any:
    """Call a function of BLAS or LAPACK, which may use all threads, while no other kernel uses BLAS."""
    blas = FOUND[0] if FOUND else library()
    if blas is None or (blas.queue.locked() and blas.count() == 1):  # with one thread, all run side by side
        return call(*args, **options)
    with blas.queue, blas.free:
        return call(*args, **options)


def runner(n: int, k: int, p: int) -> Callable | None:
    """The function that calls BLAS for a product (n, k) @ (k, p): `single_threaded`, `on_all_threads`, or None if BLAS
    uses one thread in any case.
    """
    least, most = (MATRIX_LIMIT, MATRIX_SINGLE) if n > 1 < p else (VECTOR_LIMIT, VECTOR_SINGLE)
    size = n * k * p
    return None if size <= least else single_threaded if size <= most else on_all_threads


def runner_of(a: Any, b: Any) -> Callable | None:
    """The function that calls BLAS for the matrix products of two arrays; see `runner`."""
    kind, (n, k) = a.dtype.kind, a.shape[-2:]
    return runner(n, k * COMPLEX if kind == "c" else k, b.shape[-1]) if kind in "fc" else None


def product(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    """`xp.matmul`, on as many threads of BLAS as its size is worth."""
    run = runner_of(a, b)
    return xp.matmul(a, b, out=out) if run is None else run(xp.matmul, a, b, out=out)


def set_threads(number: int) -> None:
    """Change the number of threads of all products."""
    blas = library()
    if blas is not None:
        with blas.queue, blas.free:
            blas.set(number)


# ---- the library -----------------------------------------------------------------------------------------------------


def library() -> Blas | None:
    """NumPy's BLAS; None if its threads cannot be set."""
    if not FOUND:
        with LOADING:
            if not FOUND:
                FOUND.append(find_library())
    return FOUND[0]


def find_library() -> Blas | None:
    try:
        import threadpoolctl
    except ImportError:
        return None
    found = [x for x in threadpoolctl.ThreadpoolController().lib_controllers if x.user_api == "blas"]
    ours = os.path.dirname(np.__file__)  # SciPy and others may bring their own
    found.sort(key=lambda x: not x.filepath.startswith(ours))
    if not found:
        return None
    if getattr(found[0], "threading_layer", None) == "openmp":
        return ThreadLocalBlas(found[0].get_num_threads, found[0].set_num_threads)
    get, set = openblas_function(found[0], "get_num_threads"), openblas_function(found[0], "set_num_threads")
    return Blas(get or found[0].get_num_threads, set or found[0].set_num_threads)


def openblas_function(found: Any, name: str) -> Callable | None:
    """A function of OpenBLAS; None of another library.

    threadpoolctl 3.8 sets a number of threads only in the first thread of Python that has set one.
    """
    for prefix, suffix in itertools.product(("", "scipy_"), ("", "64_", "_64")):
        if function := getattr(found.dynlib, f"{prefix}openblas_{name}{suffix}", None):
            return function
    return None


def after_fork() -> None:
    """Restore BLAS in a forked process."""
    for blas in filter(None, FOUND):
        blas.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
