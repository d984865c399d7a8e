"""Chunks taken by threads: each once, all before it returns, whoever takes them; errors and Ctrl-C lose nothing."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from minflow.accepted.threads import Settings
from minflow.machine import threads


@pytest.fixture
def two(monkeypatch):
    monkeypatch.setattr(Settings, "threads", 2)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("chunks", [0, 1, 2, 7, 100])
def test_each_chunk_once(monkeypatch, count, chunks):
    monkeypatch.setattr(Settings, "threads", count)
    taken = []
    threads.split(chunks, taken.append)
    assert sorted(taken) == list(range(chunks))


def test_both_threads_work(two):
    """One chunk waits for the other: only two threads can do both."""
    meeting, names = threading.Barrier(2, timeout=30), set()

    def do(chunk):
        names.add(threading.current_thread().name)
        meeting.wait()

    threads.split(2, do)
    assert len(names) == 2 and "minflow machine" in names


def test_an_error_is_raised_when_nobody_writes_any_more(two):
    running, begun = [], []

    def do(chunk):
        begun.append(chunk)
        running.append(chunk)
        time.sleep(0.002)
        running.remove(chunk)
        if chunk == 3:
            raise ValueError("chunk 3")

    with pytest.raises(ValueError, match="chunk 3"):
        threads.split(1000, do)
    assert running == [] and len(begun) < 100
    taken = []
    threads.split(5, taken.append)
    assert sorted(taken) == [0, 1, 2, 3, 4]


def test_an_interrupt_waits_for_the_chunks_in_hand(two):
    running, begun = [], []

    def do(chunk):
        begun.append(chunk)
        running.append(chunk)
        if chunk == 5:
            os.kill(os.getpid(), signal.SIGINT)
        for _ in range(20):
            time.sleep(0.001)
        running.remove(chunk)

    with pytest.raises(KeyboardInterrupt):
        threads.split(1000, do)
    for _ in range(1000):  # the chunk that the main thread was in has ended there
        if len(running) <= 1:
            break
        time.sleep(0.01)
    assert len(running) <= 1 and len(begun) < 100


def test_a_second_caller_works_alone(two):
    seen = []

    def outer(chunk):
        threads.split(3, lambda inner: seen.append((chunk, inner)))

    threads.split(2, outer)
    assert sorted(seen) == [(i, j) for i in range(2) for j in range(3)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own(two):
    threads.split(4, lambda chunk: None)
    child = os.fork()
    if child == 0:
        taken = []
        threads.split(6, taken.append)
        os._exit(0 if sorted(taken) == list(range(6)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_number_of_threads(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Settings, "threads", None)
    assert 1 <= threads.number() <= os.cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.number() == 3
    monkeypatch.setattr(Settings, "threads", 5)
    assert threads.number() == 5


@pytest.mark.parametrize("size, channels", [(5, 16), (3, 16), (4, 16), (5, 1)])
def test_the_same_bits_with_any_number_of_threads(monkeypatch, size, channels):
    pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")
    from minflow.machine import kernels

    rng = np.random.default_rng(0)
    x = rng.standard_normal((23, channels, 14, 14)).astype("f4")
    weight = rng.standard_normal((32, channels, size, size)).astype("f4")
    rest = (1, 1), (1, 1), (1, 1), 1
    found = []
    for count in (1, 2, 3, 8):
        monkeypatch.setattr(Settings, "threads", count)
        y = kernels.conv2d(x, weight, *rest)
        found.append([y, kernels.conv2d_weight_grad(y, x, weight.shape, *rest)])
        if channels > 1:
            found[-1].append(kernels.conv2d_input_grad(y, weight, x.shape, *rest))
    for others in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], others))
