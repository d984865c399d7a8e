"""Each kernel of the platform "cupy" against the reference kernel of its op: CUDA C, compiled for the CPU.

The reference computes in float64.
"""

import contextlib
import math

import numpy as np
import pytest

import minflow as flow
from minflow.core.kernels import KERNELS, observed
from minflow.platforms.cupy.device_code import FLOATS
from tests.cases import Cases
from tests.guard_pages import at_page_edge
from tests.platforms.cuda.host_shim import backwards
from tests.platforms.cuda.kernel_calls import KERNEL_OPS, PLATFORM, calls
from tests.platforms.cuda.ragged_cases import RAGGED
from tests.strict_backend import StrictArray, StrictBackend, strict

pytestmark = pytest.mark.usefixtures("reference_kernels")
CREATION = "empty", "empty_like", "zeros", "zeros_like", "full", "full_like"  # of the namespace


def compare(got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Assert that arrays differ by at most `tolerance`, in units of eps times the largest element."""
    assert got.shape == expected.shape
    if got.dtype.name not in FLOATS:
        np.testing.assert_array_equal(got, expected)
        return
    with np.errstate(over="ignore"):
        rounded = expected.astype(got.dtype).astype("float64")
    finite = np.isfinite(rounded)
    eps = flow.finfo(getattr(flow, got.dtype.name)).eps
    np.testing.assert_array_equal(got[~finite].astype("float64"), rounded[~finite])
    got, rounded = got[finite].astype("float64"), rounded[finite]
    largest, error = [np.abs(x).max(initial=0) for x in (rounded, got - rounded)]
    assert error <= tolerance * eps * largest, f"{error / (eps * largest or math.nan):.1f} eps, {tolerance} are allowed"


@pytest.mark.parametrize("op", KERNEL_OPS, ids=lambda op: op.name)
def test_kernel(op, cuda_kernels):
    assert op.elementwise or op.name in RAGGED, f"ragged_cases.py has no line for {op.name}"
    ran = []
    with Cases() as case, observed(lambda op, platform, *_: ran.append((op, platform))):
        for k, call in enumerate(calls(op)):
            with case(f"{k}: {call}"):
                check_call(call, ran)
    assert (op, PLATFORM) in ran, "the kernel has declined all of these calls"


def check_call(call, ran: list) -> None:
    """Compare the results of a call with the reference, unless the op does not take the dtype or the kernel declines.

    They have the same bits in another order of threads and blocks, and with arrays at other edges of pages.
    ran: gets the kernels that run, as (op, platform).
    """
    before = len(ran)
    try:
        with guarded(begins=False):
            got = call.run("cuda")
    except flow.DTypeError:
        return
    if (call.op, PLATFORM) not in ran[before:]:
        return
    with guarded(begins=True), backwards():
        again = call.run("cuda")
    for i, (one, other) in enumerate(zip(got, call.in_float64().run("cpu"), strict=True)):
        if call.op.gradient_of is None or call.attrs["needs"] >> i & 1:
            compare(one, other, KERNELS[call.op, PLATFORM].tolerance)
            assert one.tobytes() == again[i].tobytes(), "the bits depend on the order of threads"


@contextlib.contextmanager
def guarded(begins: bool):
    """Let new arrays of the device begin, or end, at an unreadable page; empty ones are NaN."""

    def guarding(make):
        def allocate(*args, **options):
            x = make(*args, **options)
            if not x.flags.c_contiguous:
                return x
            x = StrictArray(at_page_edge(x.inner, begins))
            if make.__name__.startswith("empty"):
                x.inner.reshape(-1).view("u1").fill(0xFF)
            return x

        return allocate

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((StrictBackend, "empty"), (StrictBackend, "from_host"), *[(strict, x) for x in CREATION]):
            patch.setattr(owner, name, guarding(getattr(owner, name)))
        yield


def test_each_line_has_a_kernel():
    assert sorted(RAGGED) == list(RAGGED) and set(RAGGED) <= {op.name for op in KERNEL_OPS}


def test_comparison():
    x = np.array([1.0, -2.0, np.nan, np.inf])
    compare(x.astype("f4"), x, 0)
    compare(x.astype("f4") + np.float32(2e-7), x, 1)
    for other in (x + 1e-6, x[:2], np.array([1.0, -2.0, 0.0, np.inf])):
        with pytest.raises(AssertionError):
            compare(other.astype("f4"), x, 1)
