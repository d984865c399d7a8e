"""Turns of BLAS: kernels on one thread run side by side, those on all threads alone, and the user's number of threads
is restored. The library is a stand-in whose number of threads belongs to the process, or to the thread.
"""

import ast
import os
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import minflow as flow
from minflow.compat.namespaces.threads import Settings
from minflow.core.host import blas
from minflow.core.host.blas import Blas, ThreadLocalBlas, on_all_threads, on_one_thread, single_threaded
from tests.clocks import LONG, until
from tests.interrupts import Interrupter
from tests.sources import MINFLOW, tree_of
from tests.threads import run_in_threads

THREADS = 4


class Library:
    """A BLAS whose number of threads belongs to the process."""

    kind = Blas

    def __init__(self):
        self.count = THREADS
        self.turns = self.kind(self.get, self.set)

    def get(self):
        return self.count

    def set(self, number):
        self.count = number


class LocalLibrary(Library):
    """A BLAS whose number of threads belongs to the thread."""

    kind, local = ThreadLocalBlas, threading.local()

    @property
    def count(self):
        return getattr(self.local, "count", THREADS)

    @count.setter
    def count(self, number):
        self.local.count = number


@pytest.fixture(params=[Library, LocalLibrary])
def library(request, monkeypatch):
    library = request.param()
    monkeypatch.setattr(blas, "FOUND", [library.turns])
    yield library
    library.set(THREADS)


@pytest.fixture
def of_process(monkeypatch):
    library = Library()
    monkeypatch.setattr(blas, "FOUND", [library.turns])
    return library


def test_number_of_threads_is_limited_and_restored(library):
    def kernel(scale, more=0):
        return library.get(), scale + more

    assert on_one_thread(kernel)(2, more=3) == (1, 5)
    assert library.get() == THREADS
    assert on_all_threads(kernel, 2, more=3) == (THREADS, 5)


def test_number_of_threads_is_restored_after_an_error(library):
    with pytest.raises(ZeroDivisionError):
        on_one_thread(lambda: 1 / 0)()
    with pytest.raises(ZeroDivisionError):
        on_all_threads(lambda: 1 / 0)
    assert on_one_thread(library.get)() == 1
    assert on_all_threads(library.get) == THREADS


def test_kernels_on_one_thread_run_side_by_side(library):
    """The first to end leaves the others limited."""
    met, ended = threading.Barrier(3), threading.Event()

    def kernel(number):
        met.wait(LONG)
        if number:
            assert ended.wait(LONG)
        return library.get()

    def body(number):
        found = on_one_thread(kernel)(number)
        if not number:
            ended.set()
        return found

    assert run_in_threads(3, body) == [1, 1, 1]
    assert library.get() == THREADS


def test_kernel_on_all_threads_runs_alone(of_process):
    """Each of four threads alternates both kinds; counts of running kernels are taken while they run."""
    lock, running = threading.Lock(), {"one": 0, "all": 0}

    def kernel(kind):
        with lock:
            running[kind] += 1
            alone = running == {"one": 0, "all": 1} if kind == "all" else not running["all"]
        seen = [of_process.get() for _ in range(20)]
        with lock:
            running[kind] -= 1
        return alone and set(seen) == {1 if kind == "one" else THREADS}

    def body(number):
        one, every = on_one_thread(kernel), kernel
        return [one("one") if (number + k) % 3 else on_all_threads(every, "all") for k in range(200)]

    assert all(map(all, run_in_threads(4, body)))
    assert of_process.get() == THREADS


def test_waiting_kernel_on_all_threads_is_next(of_process):
    """Kernels on one thread that begin later wait for it, or they could delay it forever."""
    order, begun, go = [], threading.Event(), threading.Event()
    first = threading.Thread(target=on_one_thread(lambda: (begun.set(), go.wait(LONG), order.append("first"))))
    second = threading.Thread(target=on_all_threads, args=(lambda: order.append("all"),))
    third = threading.Thread(target=on_one_thread(lambda: order.append("later")))
    first.start(), begun.wait(LONG), second.start()
    until(of_process.turns.queue.locked)
    third.start()
    third.join(0.05)
    assert not order
    go.set()
    for thread in (first, second, third):
        thread.join(LONG)
    assert order == ["first", "all", "later"]


@pytest.mark.parametrize("wrap", [on_one_thread, lambda call: lambda: on_all_threads(call)])
def test_with_one_blas_thread_all_kernels_run_side_by_side(library, wrap):
    met = threading.Barrier(3)

    def body(number):
        library.set(1)
        return wrap(lambda: met.wait(LONG))()

    assert sorted(run_in_threads(3, body)) == [0, 1, 2]


def test_number_set_during_a_kernel_is_kept(of_process):
    on_one_thread(of_process.set)(7)
    assert of_process.get() == 7
    blas.set_threads(3)
    assert of_process.get() == on_all_threads(of_process.get) == 3
    assert on_one_thread(of_process.get)() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_process_is_not_limited(of_process):
    """Forked while other threads run or wait: its kernels neither wait for them nor keep their limit."""
    begun, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=on_one_thread(lambda: (begun.set(), go.wait(LONG))))
    thread.start(), begun.wait(LONG)
    child = os.fork()
    if not child:
        good = of_process.get() == on_all_threads(of_process.get) == THREADS and on_one_thread(of_process.get)() == 1
        os._exit(0 if good else 1)
    _, status = os.waitpid(child, 0)
    go.set(), thread.join(LONG)
    assert status == 0


@pytest.mark.parametrize("wrap", [on_one_thread, lambda call: partial(on_all_threads, call)])
def test_ctrl_c_at_any_line_stops_no_turns(library, wrap):
    call = wrap(library.get)
    traced = Interrupter([blas.__file__])
    traced.run(call)
    for place in traced.places():
        assert Interrupter([blas.__file__], place).run(call)
        assert library.get() == THREADS
        for free in (library.turns.queue, library.turns.free):
            assert not free.locked()
    assert call() == wrap(library.get)()


def test_set_num_threads_works_in_every_thread(monkeypatch):
    """threadpoolctl sets a number only in the first thread that has set one."""
    library = blas.library()
    if library is None:
        pytest.skip("this BLAS has no number of threads")
    before = library.count()
    monkeypatch.setattr(Settings, "threads", None)
    for number in (2, 3):
        flow.set_num_threads(number)
        assert library.count() == number
        run_in_threads(1, lambda thread: flow.set_num_threads(1))
        assert library.count() == 1
    flow.set_num_threads(before)


@pytest.mark.parametrize(
    ("n", "k", "p", "run"),
    [
        (64, 64, 64, None),
        (64, 65, 64, single_threaded),
        (256, 128, 256, single_threaded),
        (256, 129, 256, on_all_threads),
        (1, 64, 128, None),
        (1, 65, 128, single_threaded),
        (129, 64, 1, single_threaded),
        (1025, 1024, 1, on_all_threads),
    ],
)
def test_threads_depend_on_the_size(n, k, p, run):
    assert blas.runner(n, k, p) is run


@pytest.mark.parametrize(("rows", "threads"), [(32, THREADS), (256, 1), (1025, THREADS)])
def test_product_runs_on_the_threads_of_its_size(library, rows, threads):
    """A stand-in for NumPy notes the number of threads; OpenBLAS itself uses one for the smallest."""
    seen = []
    xp = SimpleNamespace(matmul=lambda a, b, out: seen.append(library.get()))
    blas.product(xp, np.ones((rows, 128), "float32"), np.ones((128, 64), "float32"))
    assert seen == [threads]
    assert library.get() == THREADS


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_small_products_use_one_thread(dtype):
    """OpenBLAS gives the largest products without a runner the same bits with any number of threads."""
    rng, library = np.random.default_rng(0), blas.library()
    before, found = library and library.count(), []
    products = []
    for n, k, p in [(64, 64, 64), (512, 2, 256), (2, 8192, 16), (32, 32, 32), (1, 90, 90), (90, 90, 1), (1, 8192, 1)]:
        a, b = (rng.standard_normal((*shape, 2)).astype("float64") @ [1, 1j] for shape in ((n, k), (k, p)))
        a, b = (x.real.astype(dtype) if dtype[0] == "f" else x.astype(dtype) for x in (a, b))
        if blas.runner_of(a, b) is None:
            products += [(a, b), (a, a.T)] if n == p else [(a, b)]
    assert products
    try:
        for number in (1, THREADS):
            blas.set_threads(number)
            found.append([(a @ b).tobytes() for a, b in products])
    finally:
        blas.set_threads(before)
    assert found[0] == found[1]


def direct_products(function):
    """Lines of a kernel that call BLAS or LAPACK outside of their turns."""
    lambdas = [node for node in ast.walk(function) if isinstance(node, ast.Lambda)]  # called by `call_lapack`
    within = {id(node) for each in lambdas for node in ast.walk(each)}
    for node in ast.walk(function):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) and id(node) not in within else ""
        operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        if operator or name in ("xp.matmul", "xp.dot", "np.matmul", "np.dot") or name.startswith("xp.linalg."):
            yield node.lineno


def test_kernels_call_blas_in_turns():
    found = [
        (path.name, line)
        for path in MINFLOW
        if path.match("core/ops/*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and [arg.arg for arg in node.args.args[:1]] == ["xp"]
        for line in direct_products(node)
    ]
    assert not found, "use product or on_all_threads of core/host/blas.py"


@pytest.mark.parametrize("line", ["a @ b", "xp.matmul(a, b)", "xp.linalg.inv(a)", "x = xp.dot(a, b)"])
def test_direct_products_are_found(line):
    assert [*direct_products(ast.parse(f"def _(xp, a, b):\n    {line}"))] == [2]
