"""Launch functions that are written in CUDA C: `sources/*.cu`.

    launch("softmax.cu", "softmax_rows", rows, 128, x, out, rows, columns, types={"T": x.dtype})

Sources include nothing of CUDA. A dtype is a macro, so that a source is compiled once per dtype that is used. Their
functions take arrays as pointers, and numbers as `long long` and `double`. Tests compile the same sources for the CPU.
Read next: `sources/common.cuh`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...core.backend import Array, Backend, backend_of_array
from ...core.memory import MIN_CHECKED_BYTES
from .gemm import Gemm

SOURCES = Path(__file__).with_name("sources")
C_NAMES = {  # dtype -> its type in sources
    "float64": "double",
    "float32": "float",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
FLOATS = frozenset(["float64", "float32", "float16", "bfloat16"])
WARP = 32


class CudaBackend(Backend):
    """The backend of a device type that runs CUDA C. capability: that of computation, 75 for 7.5."""

    capability: int

    def compile(self, source: str) -> Callable[[str], Callable]:
        """Compile a source; return a function from the name of a function in it to `f(grid, block, args, shared)`:
        numbers of blocks and threads as tuples, arrays and Python numbers, and bytes of dynamic shared memory. A struct
        is a NumPy array of one element of its size.
        """
        raise NotImplementedError

    def address(self, array: Array) -> int:
        """The address of the first element, as a source takes it in a table of arrays."""
        raise NotImplementedError

    def gemm(self, call: Gemm, left: Array, right: Array, out: Array) -> None:
        """Compute out = left @ right for matrices that `call` describes. left, right, out: arrays that begin at its
        offsets 0, of one dtype: a float or complex one.
        """
        raise NotImplementedError

    def reset_peak(self) -> None:
        """Let `memory().peak` begin anew."""
        raise NotImplementedError

    def empty_cache(self) -> None:
        """Return memory that no array uses to the driver."""
        raise NotImplementedError

    def limit_memory(self, fraction: float) -> None:
        """Let arrays use at most this fraction of the memory of the device."""
        raise NotImplementedError

    def properties(self) -> dict[str, Any]:
        """Facts about this device, under the names of CUDA's `cudaDeviceProp`, and `name` as a string."""
        raise NotImplementedError

    def free_bytes_if_short(self, needed: int) -> int | None:
        if needed <= MIN_CHECKED_BYTES:
            return None
        memory = self.memory()
        free = memory.free + memory.reserved - memory.allocated
        return None if needed <= free else free

    @functools.cache  # noqa: B019  (a backend lives as long as the process)
    def function(self, file: str, name: str, macros: tuple[tuple[str, str], ...]) -> Callable:
        """A function of a source with these macros."""
        return self.module(file, macros)(name)

    @functools.cache  # noqa: B019
    def module(self, file: str, macros: tuple[tuple[str, str], ...]) -> Callable[[str], Callable]:
        return self.compile(with_macros(file, macros))

    @functools.cache  # noqa: B019
    def generated(self, source: str, name: str) -> Callable:
        """A function of generated source, which may use `elementwise.cuh`."""
        return self.compile(source_text("elementwise.cuh") + source)(name)


def with_macros(file: str, macros: tuple[tuple[str, str], ...]) -> str:
    """A source with these macros. They are not options of the compiler, since its own headers use names such as T."""
    return "".join([f"#define {key} {value}\n" for key, value in macros]) + source_text(file)


@functools.cache
def source_text(file: str) -> str:
    """A source after its includes, which are all in the same folder."""
    lines = (SOURCES / file).read_text(encoding="utf-8").splitlines()
    return "\n".join([source_text(x.split('"')[1]) if x.startswith('#include "') else x for x in lines]) + "\n"


def cuda_backend_of(array: Array) -> CudaBackend:
    """The backend of the device of an array, which runs CUDA C."""
    backend = backend_of_array(array)
    assert isinstance(backend, CudaBackend)
    return backend


def launch(
    file: str,
    name: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *args: Array | int | float | None,
    types: Mapping[str, Any],
    shared: int = 0,
    **macros: int | str,
) -> None:
    """Run a function of a source on the device of its first argument.

    grid, block: number of blocks and of threads per block.  args: arrays, Python numbers, and None for a null pointer.
    types: dtypes by macro.  shared: bytes of dynamic shared memory.  macros: other macros.
    """
    named = [(key, C_NAMES[name_of(x)]) for key, x in types.items()]
    named += [(key, str(value)) for key, value in macros.items()]
    run = cuda_backend_of(args[0]).function(file, name, tuple(named))
    run((grid,) if isinstance(grid, int) else grid, (block,) if isinstance(block, int) else block, args, shared)


def supported(*arrays: Array, dtypes=FLOATS) -> bool:
    """True if arrays are C-contiguous, not empty, and of these dtypes."""
    return all([x.flags.c_contiguous and x.size > 0 and name_of(x.dtype) in dtypes for x in arrays])


@functools.cache
def name_of(dtype: Any) -> str:
    """The name of a dtype, or the name itself. NumPy composes it anew for each call, which takes microseconds."""
    return getattr(dtype, "name", dtype)


def threads_for(columns: int, most: int = 256) -> int:
    """The number of threads of a block that works on a row: whole warps, at most `most`."""
    return min(most, -(-columns // WARP) * WARP)


def blocks_for(size: int, block: int = 256, most: int = 1 << 16) -> int:
    """The number of blocks of a loop over `size` elements, whose threads may take several."""
    return min(most, -(-size // block))
