"""Environment of all tests and notebooks; kernels inherit it."""

import gc
import itertools
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

# Before numpy is loaded. One BLAS thread: the same sums on every machine. No live curves: outputs are compared.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["MINFLOW_LIVE"] = "0"

# Tests start many Python processes. Where byte code is not kept (PYTHONDONTWRITEBYTECODE, in many containers), each of
# them would compile NumPy and minflow anew: keep it apart from the sources.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parent / "build" / "bytecode"))

# A shell starts what runs in the background (`pytest &`, many CI runners) with Ctrl-C ignored, and programs that the
# tests start inherit that: then no interrupt would ever arrive where a test sends one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    # Not in pyproject.toml: there pytest would import the package before the environment is set.
    config.addinivalue_line("filterwarnings", "error::minflow.core.base.errors.MinflowWarning")
    separate_ports()


def separate_ports():
    """Give the kernels of each process ports of its own, which the system assigns to no socket.

    Jupyter chooses a free port that the kernel opens half a second later. If another process gets it in the meantime,
    the kernel ends.
    """
    try:
        from jupyter_client.connect import LocalPortCache
    except ImportError:
        return
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first, start = 10_000 + worker % 20 * 1000, os.getpid() * 5 % 1000  # the start: other runs on this machine
    ports = itertools.cycle([first + (start + i) % 1000 for i in range(1000)])

    def find_available_port(cache, ip):
        for port in ports:
            with socket.socket() as tried:
                try:
                    tried.bind((ip, port))
                except OSError:  # in use
                    continue
            if port not in cache.currently_used_ports:
                cache.currently_used_ports.add(port)
                return port

    LocalPortCache.find_available_port = find_available_port


collected_for = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before a file's first test: what the files before it leave is collected; what lives on is not looked at again.

    A `gc.collect()` in a test then takes milliseconds, however many tests there are.
    """
    global collected_for
    if item.path != collected_for:
        collected_for = item.path
        gc.collect()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """All tests run in a process per core, those that are named in this one: it starts sooner, and debuggers work."""
    if config.args_source is not config.ArgsSource.TESTPATHS:
        return 0
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


SOON = "07_"  # the lesson that is run with all tests, since it is eager and has graphs; the others are slow together


def pytest_collection_modifyitems(config, items):
    every = config.args_source is config.ArgsSource.TESTPATHS  # a lesson that is named is run
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("notebook")
            if every and not item.path.name.startswith(SOON):
                item.add_marker("slow")
    # The longest first: beside them the others find room.
    items.sort(key=lambda item: item.path.suffix != ".ipynb" and item.path.name != "test_every_exercise.py")
