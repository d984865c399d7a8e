"""Shared fixtures and options: golden texts, a seed per test, `--complete` sweeps (`tests/sampling.py`), slow threads
on request.
"""

import gc
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests import sampling

# Before numpy is loaded, here and in the kernels of notebooks: threads that wait for taken cores make tests slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MINFLOW_LIVE", "0")
# Tests that compare bits expect NumPy's. The tests of compiled kernels switch those on themselves.
os.environ.setdefault("MINFLOW_MACHINE", "0")
os.environ.setdefault("MINFLOW_PROGRESS", "0")  # lessons that tests run are not recorded as attempts

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
# --disturb: slows down about half of the threads of a test. In these files they sleep after one in OFTEN lines, calls
# and returns for up to LONGEST seconds; and at half of the MEETINGS (where a thread starts, starts another, notifies
# another or has waited) for up to five times that.
THREADED = [
    str(TESTS),
    *(
        str(TESTS.parent / part)
        for part in (
            "minflow/job/",
            "minflow/utils/data/",
            "minflow/core/base/events.py",
            "minflow/compiler/executor.py",
            "widgets/",
        )
    ),
]
MEETINGS = {(threading.__file__, name) for name in ("start", "run", "set", "wait", "join")}
OFTEN, LONGEST, IN_ALL = 100, 0.05, 4.0


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/*.txt; then review the diff")
    parser.addoption(
        "--seed", type=int, default=0, help="of each test's random numbers; others find what holds for one alone"
    )
    parser.addoption(
        "--disturb",
        type=int,
        metavar="SEED",
        help="make some threads slow: finds what holds in one order of them alone",
    )
    parser.addoption("--complete", action="store_true", help="run every case of the sweeps that are sampled otherwise")
    parser.addoption(
        "--sample",
        type=int,
        metavar="COUNT",
        help="run this many of the selected tests, chosen by a hash of their names: the same ones at each run",
    )
    parser.addoption(
        "--wheel",
        action="store_true",
        help="run the tests that use the stand-in for a GPU, and check its calls with CuPy, which must find no GPU",
    )


def pytest_configure(config):
    sampling.complete = config.getoption("--complete")
    if config.getoption("--wheel"):
        from tests import strict_backend
        from tests.platforms.cuda import wheel

        strict_backend.CHECKS.append(wheel.check)


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config, items):
    count = config.getoption("--sample")
    if config.getoption("--wheel"):
        keep(config, items, {item for item in items if item.get_closest_marker("wheels") or uses_stand_in(item)})
    if count is None:
        return
    tests = [item for item in items if item.path.suffix != ".ipynb"]  # a cell needs the cells before it
    keep(config, items, set(sorted(tests, key=lambda item: sampling.place(ascii(item.nodeid)))[:count]))


def keep(config, items, chosen) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def uses_stand_in(item) -> bool:
    return "cuda" in getattr(item, "fixturenames", ()) or hasattr(getattr(item, "module", None), "StrictArray")


def seed_random_states(config) -> None:
    """Seed all random states by --seed: no test depends on chance, on the tests before it or on its process."""
    import numpy as np

    import minflow

    seed = config.getoption("--seed")
    minflow.manual_seed(seed), np.random.seed(seed), random.seed(seed)


def pytest_collectstart(collector):
    if isinstance(collector, pytest.Module):  # some draw tensors when they are imported
        seed_random_states(collector.config)


ran, known = None, None  # the file whose tests run; the ops of the package


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Reset global state before the fixtures of a test, also module fixtures.

    Removes ops that an earlier file has defined, and the answers that earlier tests have recorded.
    """
    global ran, known
    from minflow.core.op import OPS
    from minflow.exercises import record

    if item.path != ran:
        ran, known = item.path, known or set(OPS)
        for name in set(OPS) - known:
            del OPS[name]
    record.MEMORY.clear()
    seed_random_states(item.config)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    seed = item.config.getoption("--disturb")
    if seed is not None:
        trace = disturbing(random.Random(f"{seed} {item.nodeid}"))
        threading.settrace(trace), sys.settrace(trace)
    yield
    if seed is not None:
        threading.settrace(None), sys.settrace(None)


def disturbing(chances: random.Random):
    """Return a function for sys.settrace. IN_ALL bounds the total delay of a test."""
    left, known, slow = IN_ALL, {}, {}

    def rest(seconds):
        nonlocal left
        if left > 0 and slow.setdefault(threading.get_ident(), chances.random() < 0.5):  # or all would be equally late
            left -= seconds
            time.sleep(seconds)

    def somewhere(frame, event, arg):
        if chances.random() < 1 / OFTEN:
            rest(LONGEST * (1.0 if chances.random() < 0.1 else chances.random() / 20))  # most are short
        return somewhere

    def meeting(frame, event, arg):
        if event != "line" and chances.random() < 0.5:
            rest(LONGEST * chances.choice((1, 5)))  # also longer than a first call, which builds
        return meeting

    def enter(frame, event, arg):
        code = frame.f_code
        if code not in known:
            ours = code.co_filename.startswith(tuple(THREADED))
            known[code] = meeting if (code.co_filename, code.co_name) in MEETINGS else somewhere if ours else None
        return known[code] and known[code](frame, event, arg)

    return enter


@pytest.fixture
def golden(request):
    """`golden("tape_small", text)` compares with tests/golden/tape_small.txt; --update-golden rewrites the file."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / f"{name.removesuffix('.txt')}.txt"
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if not file.exists():
            pytest.fail(f"{file.name} does not exist: write it with --update-golden, then review it. Got:\n{text}")
        assert text == file.read_text(encoding="utf-8"), f"differs from {file.name}; --update-golden rewrites it"

    return check


@pytest.fixture
def kernels_of_numpy():
    """Use NumPy's kernels, also in graphs and if MINFLOW_MACHINE asks for others."""
    from minflow.platforms import compiled

    before = compiled.used()
    compiled.use(False)
    yield
    compiled.use(before)


@pytest.fixture
def reference_kernels():
    """Use the reference kernels on the CPU, which other devices have too: others may add in another order."""
    from minflow.core.kernels import EAGER_PLATFORMS, REFERENCE, use_platforms

    before = EAGER_PLATFORMS["cpu"]
    use_platforms("cpu", [REFERENCE])
    yield
    use_platforms("cpu", before)


@pytest.fixture
def collector_off():
    """No garbage collection: Python loses an interrupt in a callback of the collector, and hypothesis has one."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def cuda():
    """The device "cuda", which is the stand-in of `strict_backend.py`."""
    from tests.strict_backend import strict_cuda

    with strict_cuda() as device:
        yield device


@pytest.fixture
def cuda_kernels():
    """The device "cuda" as in `cuda`, which runs the kernels of the platform "cupy", compiled for the CPU."""
    from tests.strict_backend import strict_cuda

    with strict_cuda(kernels=True) as device:
        yield device


@pytest.fixture
def clock(monkeypatch):
    """The clock that job functions and curves measure with; only the test advances it."""
    from tests.clocks import set_clock

    with set_clock(monkeypatch) as clock:
        yield clock


@pytest.fixture(scope="session")
def real_kernel():
    """A real notebook kernel, started once. `real_kernel.fresh(code)` resets it and runs `code`."""
    pytest.importorskip("jupyter_client")
    from tests.notebook_kernel import Kernel

    one = Kernel()
    yield one
    one.stop()


@pytest.fixture(scope="session")
def uv():
    """The program that the README's command installs."""
    from tests import resolve_dependencies

    return resolve_dependencies.uv()


@pytest.fixture(scope="session")
def built(uv, tmp_path_factory):
    """The sdist, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([uv, "build", "-q", "-o", str(folder), str(TESTS.parent)], check=True, timeout=300)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


@pytest.fixture
def no_notices():
    """Silence notices, for tests with intended NaN and infinity."""
    import minflow

    before = minflow.notices(False)
    yield
    minflow.notices(before)
