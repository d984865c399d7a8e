"""Products by cuBLAS: the arguments of its calls, from which the stand-in reads the operands, and calls by ctypes."""

import ctypes
import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import InternalError
from minflow.core.kernels import call_on
from minflow.core.ops.linalg import matmul
from minflow.platforms.cupy import cublas
from minflow.platforms.cupy.gemm import MOST_CALLS, Gemm, Stored, gemms
from tests.cases import Cases
from tests.strict_backend import StrictArray, StrictBackend


def dense(shape):
    return np.random.default_rng(0).normal(size=shape).astype("f4")


def layouts(shape):
    """Arrays of this shape and several strides, by name."""
    *batch, n, k = shape
    yield "contiguous", dense(shape)
    yield "transposed", dense((*batch, k, n)).swapaxes(-1, -2)
    yield "part of rows", dense((*batch, n, k + 3))[..., 1 : k + 1]
    yield "reversed", dense(shape)[..., ::-1]
    yield "every second column", dense((*batch, n, 2 * k))[..., ::2]
    yield "part of columns", dense((*batch, k + 2, n)).swapaxes(-1, -2)[..., :k]
    if batch:
        yield "batch inside", np.moveaxis(dense((n, *batch, k)), 0, -2)
        yield "every second matrix", dense((2 * batch[0], *shape[1:]))[::2]
        yield "batch expanded", np.broadcast_to(dense((n, k)), shape)


@pytest.mark.parametrize(
    "shapes", [((5, 7), (7, 3)), ((4, 5, 7), (4, 7, 3)), ((2, 3, 5, 7), (2, 3, 7, 3)), ((6, 1), (1, 9))]
)
def test_layouts(cuda_kernels, shapes):
    with Cases() as case:
        for (name, a), (other, b) in itertools.product(*map(layouts, shapes)):
            for out in (None, "strided"):
                with case(f"{name} @ {other} into {out}"):
                    expected = a.astype("f8") @ b.astype("f8")
                    place = np.full((*expected.shape[:-1], 2 * expected.shape[-1]), np.nan, "f4")[..., ::2]
                    got = product(a, b, place if out else None)
                    np.testing.assert_allclose(got, expected, atol=1e-5)


def product(a, b, out=None):
    """a @ b by the kernel, which gets these strides."""
    arrays = [None if x is None else StrictArray(x) for x in (a, b, out)]
    return call_on(matmul, "cupy", "cuda")(*arrays[:2], ta=False, tb=False, out=arrays[2]).inner


def described(x):
    return x.shape, x.strides


@pytest.mark.parametrize(
    "a, b, count",
    [
        (dense((8, 5, 7)), dense((7, 3)), [(40, 1)]),  # rows of a batch are rows of one product
        (dense((8, 5, 7)), dense((8, 7, 3)), [(5, 8)]),
        (dense((8, 5, 7)).transpose(0, 2, 1), dense((8, 3, 5)).transpose(0, 2, 1), [(7, 8)]),
        (dense((2, 5, 4, 7)).transpose(0, 2, 1, 3), dense((2, 4, 7, 3)), [(5, 4)] * 2),  # heads inside
        (dense((1, 5, 7)), dense((8, 7, 3)), [(5, 8)]),
        (dense((3, 1, 5, 7)), dense((9, 7, 3)), [(5, 9)] * 3),
        (dense((MOST_CALLS + 1, 5, 9, 7)).transpose(0, 2, 1, 3), dense((MOST_CALLS + 1, 9, 7, 3)), None),
        (dense((5, 14))[:, ::2], dense((7, 3)), None),
    ],
)
def test_number_of_calls(a, b, count):
    """(rows of a, products) of each call; None if copies take less time or are needed."""
    out = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), "f4")
    calls = gemms(*map(described, (a, b, out)), 4)
    assert (calls and [(x.n, x.batch) for x in calls]) == count


def test_the_stand_in_checks_arguments(cuda_kernels):
    x = flow.ones(3, 4, device="cuda").array
    side, backend = Stored(0, False, 4, 0), StrictBackend(None)
    backend.gemm(Gemm(4, 3, 3, 1, side, Stored(0, False, 3, 0), side), x, flow.ones(3, 3, device="cuda").array, x)
    for wrong in (Stored(0, False, 3, 0), Stored(4, False, 4, 0), Stored(0, False, 5, 0), Stored(-4, False, 4, 0)):
        with pytest.raises(AssertionError):
            backend.gemm(Gemm(4, 3, 3, 1, wrong, Stored(0, False, 3, 0), side), x, x, x)


# ---- calls by ctypes -------------------------------------------------------------------------------------------------


class Library:
    """A library that records its calls, as (name, arguments that C would get). status: what they return."""

    def __init__(self):
        self.calls, self.status = [], 0
        for name, types in cublas.ARGUMENTS.items():
            kind = ctypes.CFUNCTYPE(ctypes.c_int, *types)
            setattr(self, name, kind(lambda *args, name=name: self.calls.append((name, args)) or self.status))

    def cublasGetStatusName(self, status):
        return b"CUBLAS_STATUS_NOT_SUPPORTED"

    def since(self):
        calls, self.calls = self.calls, []
        return calls


def new_handle(library=None):
    addresses = itertools.count(1000)
    return cublas.Handle(library or Library(), lambda size: SimpleNamespace(ptr=next(addresses)), 64)


ONE_CALL = Gemm(3, 5, 7, 1, Stored(4, False, 3, 0), Stored(8, True, 9, 0), Stored(0, False, 3, 0))


def test_workspace_of_each_stream():
    handle = new_handle(library := Library())
    assert [name for name, _ in library.since()] == ["cublasCreate_v2", "cublasSetMathMode"]
    used = []
    for stream in (0, 7, 7, 0):
        handle.use(stream)
        used.append([(name, args[1:]) for name, args in library.since()])
    set_stream, set_workspace = "cublasSetStream_v2", "cublasSetWorkspace_v2"
    assert used == [
        [(set_stream, (None,)), (set_workspace, (1000, 64))],  # a null pointer
        [(set_stream, (7,)), (set_workspace, (1001, 64))],
        [],
        [(set_stream, (None,)), (set_workspace, (1000, 64))],
    ]


def numbers(address, kind, count=2):
    return list((kind * count).from_address(address))


def test_arguments():
    handle = new_handle(library := Library())
    handle.use(0)
    library.since()
    handle.gemm(0, cublas.TYPES["float32"], ONE_CALL, 100, 200, 300)
    ((name, args),) = library.since()
    assert name == "cublasGemmEx" and args[1:6] == (0, 1, 3, 5, 7)
    assert numbers(args[6], ctypes.c_float) == [1, 0] and numbers(args[13], ctypes.c_float) == [0, 0]
    assert args[7:13] == (104, 0, 3, 208, 0, 9) and args[14:] == (300, 0, 3, cublas.COMPUTE_32F, -1)
    many = ONE_CALL._replace(batch=6, left=Stored(0, False, 3, 21), out=Stored(0, False, 3, 15))
    handle.gemm(0, cublas.TYPES["complex128"], many, 100, 200, 300)
    ((name, args),) = library.since()
    assert name == "cublasGemmStridedBatchedEx" and numbers(args[6], ctypes.c_double) == [1, 0]
    assert args[7:15] == (100, 5, 3, 21, 208, 5, 9, 0) and numbers(args[15], ctypes.c_double) == [0, 0]
    assert args[16:] == (300, 5, 3, 15, 6, cublas.COMPUTE_64F, -1)


def test_tf32():
    handle = new_handle(library := Library())
    found, flags = [], flow.backends.cuda.matmul

    def record(dtype="float32"):
        handle.gemm(0, cublas.TYPES[dtype], ONE_CALL, 100, 200, 300)
        found.append(
            (library.since()[-1][1][-2], flags.allow_tf32, flags.fp32_precision, flow.get_float32_matmul_precision())
        )

    try:
        record()
        flags.allow_tf32 = True
        record()
        record("float16")
        flow.set_float32_matmul_precision("medium")
        record()
        flags.fp32_precision = "ieee"
        with flags.flags(allow_tf32=True):
            record()
        record()
    finally:
        flags.allow_tf32 = False
    exact, fast = (cublas.COMPUTE_32F, False, "ieee", "highest"), (cublas.COMPUTE_32F_FAST_TF32, True, "tf32", "high")
    assert found == [exact, fast, (cublas.COMPUTE_32F, *fast[1:]), (*fast[:3], "medium"), fast, exact]


def test_status_is_named():
    handle = new_handle(library := Library())
    library.status = 15
    with pytest.raises(InternalError, match="cublasGemmEx has returned CUBLAS_STATUS_NOT_SUPPORTED"):
        handle.stream = 0
        handle.gemm(0, cublas.TYPES["float32"], ONE_CALL, 100, 200, 300)


def test_one_handle_per_thread():
    handles = cublas.Handles(lambda: new_handle())
    found = [handles.current(), handles.current()]
    barrier = threading.Barrier(2)

    def run():
        found.append(handles.current())
        barrier.wait()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] and len({*map(id, found)}) == 3
    assert {*map(id, handles.spare)} == {*map(id, found[2:])}  # for the next threads
