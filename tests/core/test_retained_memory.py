"""The memory of freed arrays is reused, and returned to the system before a large allocation is refused."""

import pytest

from minflow.core import memory
from tests.processes import output

NEEDS_GLIBC = pytest.mark.skipif(memory.glibc() is None, reason="mallopt and malloc_trim are functions of glibc")
PROGRAM = """
import os, resource, sys
import numpy as np
from minflow.core import memory

resident = lambda: int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
memory.free_bytes = lambda: 1 << 31
print(sys.argv[1] == "True" and memory.retain_freed_memory())
for _ in range(3):
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(40 << 20, "u1")[::2] for _ in range(2)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
retained = resident()
memory.release_freed_memory()
print(retained - resident())
"""


def run(retain: bool, **settings: str) -> tuple[bool, int, int]:
    """(whether memory is retained, page faults of arrays of 80 MiB allocated again, bytes returned by a release)."""
    done, faults, returned = output("-c", PROGRAM, str(retain), NUMPY_MADVISE_HUGEPAGE="0", **settings).split()
    return done == "True", int(faults), int(returned)


@NEEDS_GLIBC
def test_freed_arrays_are_reused():
    retained, faults, returned = run(True)
    assert retained and faults < 100 and returned > 79 << 20
    retained, faults, returned = run(False)
    assert not retained and faults > 10_000 and returned < 40 << 20


@NEEDS_GLIBC
def test_setting_of_the_user_has_priority():
    assert run(True, MALLOC_TRIM_THRESHOLD_="131072")[0] is False


class Libc:
    """Record the calls."""

    def __init__(self):
        self.calls = []

    def mallopt(self, parameter, value):
        self.calls.append((parameter, value))
        return 1

    def malloc_trim(self, pad):
        self.calls.append(pad)
        return 1


@pytest.mark.parametrize(("free", "calls"), [
    (1 << 40, [(-3, 1 << 29), (-1, 1 << 30)]),
    (1 << 32, [(-3, 1 << 28), (-1, 1 << 29)]),
    (1 << 29, []),  # 64 MiB, which glibc retains by itself
    (None, []),
])  # fmt: skip
def test_retained_bytes_are_bounded_by_the_free_memory(free, calls, monkeypatch):
    libc = Libc()
    monkeypatch.setattr(memory, "SETTINGS", ())
    monkeypatch.setattr(memory, "glibc", lambda: libc)
    monkeypatch.setattr(memory, "free_bytes", lambda: free)
    assert memory.retain_freed_memory() is bool(calls) and libc.calls == calls


@pytest.mark.parametrize(("free", "short"), [([100, 250], None), ([100, 150], 150), ([100, None], None), ([250], None)])
def test_retained_memory_counts_as_free(free, short, monkeypatch):
    libc = Libc()
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "glibc", lambda: libc)
    monkeypatch.setattr(memory, "free_bytes", iter(free).__next__)
    assert memory.free_bytes_if_short(200) == short and libc.calls == [0] * (len(free) - 1)


def test_other_systems_are_unchanged(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    assert memory.glibc() is None and not memory.retain_freed_memory() and not memory.release_freed_memory()
