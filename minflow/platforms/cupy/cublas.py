"""Calls of cuBLAS, which CuPy's own wrappers refuse while a stream is captured in a CUDA graph.

Numbers of enumerations are those of `cublas_api.h` and `library_types.h`.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from ctypes import byref, c_char_p, c_double, c_float, c_int, c_longlong, c_size_t, c_void_p
from typing import Any

from ...core.base.dtypes import MatmulPrecision
from ...core.base.errors import InternalError
from .gemm import Gemm

DISALLOW_REDUCED_PRECISION_REDUCTION = 16  # cublasMath_t: all sums of half precision are float32, also across blocks
COMPUTE_32F, COMPUTE_64F, COMPUTE_32F_FAST_TF32 = 68, 70, 77  # cublasComputeType_t
GEMM_DEFAULT = -1  # cublasGemmAlgo_t
FLOAT32 = 0  # cudaDataType
TYPES: dict[str, tuple[int, int, Any]] = {  # dtype -> cudaDataType, cublasComputeType_t, and the type of alpha and beta
    "float32": (FLOAT32, COMPUTE_32F, c_float),
    "float64": (1, COMPUTE_64F, c_double),
    "float16": (2, COMPUTE_32F, c_float),
    "bfloat16": (14, COMPUTE_32F, c_float),
    "complex64": (4, COMPUTE_32F, c_float),
    "complex128": (5, COMPUTE_64F, c_double),
}
ONE, ZERO = [{kind: byref((kind * 2)(x, 0)) for kind in (c_float, c_double)} for x in (1, 0)]  # complex: two numbers
THREE, MATRIX, BATCH = [c_int] * 3, [c_void_p, c_int, c_int], [c_void_p, c_int, c_int, c_longlong]
ARGUMENTS = {  # by function
    "cublasCreate_v2": [c_void_p],
    "cublasSetStream_v2": [c_void_p, c_void_p],
    "cublasSetWorkspace_v2": [c_void_p, c_void_p, c_size_t],
    "cublasSetMathMode": [c_void_p, c_int],
    "cublasGemmEx": [c_void_p, c_int, c_int, *THREE, c_void_p, *MATRIX, *MATRIX, c_void_p, *MATRIX, c_int, c_int],
    "cublasGemmStridedBatchedEx": [
        *[c_void_p, c_int, c_int, *THREE],
        *[c_void_p, *BATCH, *BATCH],
        *[c_void_p, *BATCH, c_int, c_int, c_int],
    ],
}


@functools.cache
def type_of(dtype: Any) -> tuple[int, int, Any] | None:
    """The entry of an array's dtype in TYPES; None if cuBLAS does not multiply it."""
    return TYPES.get(dtype.name)


@functools.cache
def library() -> ctypes.CDLL:
    """The cuBLAS that CuPy loads."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return typed(ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path))


def typed(library: Any) -> Any:
    """Declare the arguments of the functions that are called. Raises AttributeError if the library lacks one."""
    for name, types in ARGUMENTS.items():
        getattr(library, name).argtypes = types
    library.cublasGetStatusName.argtypes, library.cublasGetStatusName.restype = [c_int], c_char_p
    return library


def call(library: Any, name: str, *args: Any) -> None:
    """Call a function. Raises InternalError with the name of the status if it fails."""
    if status := getattr(library, name)(*args):
        status_name = library.cublasGetStatusName(status).decode()
        raise InternalError(f"{name} has returned {status_name}", hint="nvidia-smi: is memory of the GPU left?")


class Handle:
    """The state of cuBLAS for one thread: its stream, and a workspace for each stream, which a CUDA graph may use.

    allocate: a function from bytes to memory of the device with the address `ptr`.  workspace: bytes.
    """

    def __init__(self, library: Any, allocate: Callable[[int], Any], workspace: int):
        self.library, self.allocate, self.workspace = library, allocate, workspace
        self.value, self.stream, self.workspaces = c_void_p(), -1, dict[int, Any]()
        call(library, "cublasCreate_v2", byref(self.value))
        call(library, "cublasSetMathMode", self.value, DISALLOW_REDUCED_PRECISION_REDUCTION)

    def use(self, stream: int) -> None:
        """Submit the next calls to this stream."""
        if stream == self.stream:
            return
        if stream not in self.workspaces:
            self.workspaces[stream] = self.allocate(self.workspace)
        call(self.library, "cublasSetStream_v2", self.value, stream)  # which forgets the workspace
        call(self.library, "cublasSetWorkspace_v2", self.value, self.workspaces[stream].ptr, self.workspace)
        self.stream = stream

    def gemm(self, stream: int, type: Any, x: Gemm, left: int, right: int, out: int) -> None:
        """Run a call, whose operands begin at these addresses. type: entry of TYPES."""
        self.use(stream)
        kind, compute, scalar = type
        if kind == FLOAT32 and MatmulPrecision.tf32():
            compute = COMPUTE_32F_FAST_TF32
        batched = x.batch > 1
        sides = []
        for side, address in ((x.left, left), (x.right, right), (x.out, out)):
            sides.append([address + side.offset, kind, side.leading, *[side.step] * batched])
        call(
            self.library,
            "cublasGemmStridedBatchedEx" if batched else "cublasGemmEx",
            *(self.value, x.left.transposed, x.right.transposed, x.m, x.n, x.k),
            *(ONE[scalar], *sides[0], *sides[1], ZERO[scalar], *sides[2]),
            *[x.batch] * batched,
            *(compute, GEMM_DEFAULT),
        )


class Handles:
    """The handles of one device: one per thread. Those of threads that have ended are used again."""

    def __init__(self, new: Callable[[], Handle]):
        self.new, self.spare, self.local = new, list[Handle](), threading.local()

    def current(self) -> Handle:
        """The handle of this thread."""
        if (loan := getattr(self.local, "loan", None)) is None:
            self.local.loan = loan = Loan(self)
        return loan.handle


class Loan:
    """The use of a handle by one thread."""

    def __init__(self, handles: Handles):
        self.spare = handles.spare
        try:
            self.handle = self.spare.pop()
        except IndexError:
            self.handle = handles.new()

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.spare.append(self.handle)
