"""Each kernel of the platform "cupy" against the reference kernel of its op: CUDA C, compiled for the CPU.

The inputs are the examples of the op and `ragged_cases.py`, in each float dtype. The reference computes in float64.
"""

import contextlib
import math

import numpy as np
import pytest

import minflow as flow
from minflow.core.dispatch import apply
from minflow.core.kernels import KERNELS, observed
from minflow.core.op import OPS
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401  (define the ops of optimizers)
from minflow.core.ops.examples import Case, Maker, cases, floats
from minflow.core.source_location import input_names
from minflow.core.spec import Device
from minflow.platforms.cupy import kernels  # noqa: F401  (registers them)
from minflow.platforms.cupy.device_code import FLOATS
from tests.cases import Cases
from tests.guard_pages import at_page_edge
from tests.platforms.cuda.host_shim import backwards
from tests.platforms.cuda.ragged_cases import RAGGED
from tests.strict_backend import StrictArray, StrictBackend, strict

pytestmark = pytest.mark.usefixtures("reference_kernels")
PLATFORM = "cupy"
CREATION = "empty", "empty_like", "zeros", "zeros_like", "full", "full_like"  # of the namespace
KERNEL_OPS = [op for op in OPS.values() if (op, PLATFORM) in KERNELS]


def ragged(op) -> list[Case]:
    """The calls of `ragged_cases.py`; by default of elementwise ops, equal shapes and broadcasting."""
    if op.name in RAGGED or not op.elementwise:
        return RAGGED[op.name]
    attrs = cases(op)[0].attrs
    makers = [x if isinstance(x, Maker) else floats() for x in cases(op)[0].inputs]
    shapes = [(1000,)] * len(makers), [(3, 7, 11)[i % 2 :] for i in range(len(makers))]
    return [Case(tuple(m(shape=s) for m, s in zip(makers, one)), attrs) for one in shapes]


def in_dtype(case: Case, dtype: str) -> Case:
    """The call with floats of this dtype. 0-d ones, such as learning rates, keep theirs beside larger arrays."""
    large = any([isinstance(x, Maker) and x.shape for x in case.inputs])
    changed = [isinstance(x, Maker) and x.floating and (x.shape or not large) for x in case.inputs]
    return Case(tuple(x(dtype=dtype) if change else x for x, change in zip(case.inputs, changed)), case.attrs)


def on_device(op, arrays, device) -> list:
    """Inputs as tensors on the device, apart from Python numbers and those that the op reads on the host."""
    names = [name.partition("[")[0] for name in input_names(op, arrays)]
    return [
        flow.tensor(x, device="cpu" if name in op.host_inputs else device) if isinstance(x, np.ndarray) else x
        for x, name in zip(arrays, names)
    ]


def results_of(op, arrays, attrs, device: str) -> list[np.ndarray]:
    inputs = on_device(op, arrays, device)
    results = apply(op, *inputs, **attrs | ({"device": Device(device)} if "device" in op.attrs else {}))
    for before, x in zip(arrays, inputs):
        assert not isinstance(x, flow.Tensor) or x.cpu().array.tobytes() == before.tobytes(), "an input was written"
    return [t.cpu().array for t in (results if op.many else [results])]


def in_float64(x):
    return x.astype("float64") if isinstance(x, np.ndarray) and x.dtype.name in FLOATS and x.ndim else x


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
        for k, example in enumerate([*cases(op), *ragged(op)]):
            for dtype in sorted(FLOATS):
                arrays = in_dtype(example, dtype).arrays()
                with case(f"{k} in {dtype}: {[getattr(x, 'shape', x) for x in arrays]} {example.attrs}"):
                    check_call(op, arrays, example.attrs, ran)
    assert (op, PLATFORM) in ran, "the kernel has declined all of these calls"


def check_call(op, arrays, attrs, ran: list) -> None:
    """Compare the results of a call with the reference, unless the op does not take the dtype or the kernel declines.

    They have the same bits in another order of threads and blocks, and with arrays at other edges of pages.
    ran: gets the kernels that run, as (op, platform).
    """
    before = len(ran)
    try:
        with guarded(begins=False):
            got = results_of(op, arrays, attrs, "cuda")
    except flow.DTypeError:
        return
    if (op, PLATFORM) not in ran[before:]:
        return
    with guarded(begins=True), backwards():
        again = results_of(op, arrays, attrs, "cuda")
    expected = results_of(op, [in_float64(x) for x in arrays], attrs, "cpu")
    for i, (one, other) in enumerate(zip(got, expected, strict=True)):
        if op.gradient_of is None or attrs["needs"] >> i & 1:
            compare(one, other, KERNELS[op, PLATFORM].tolerance)
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
