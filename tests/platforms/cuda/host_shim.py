"""Compile sources of the platform "cupy" for the CPU: `host_shim.h` defines the part of CUDA C that they use."""

import ctypes
import functools
import hashlib
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

SHIM = Path(__file__).with_name("host_shim.h")
KERNEL = re.compile(r'extern "C" __global__ void(?: __launch_bounds__\([^)]*\))? (\w+)\(([^)]*)\)')
# The functions of one library share their threads and shared memory.
COMMAND = "g++ -std=c++17 -O1 -fPIC -shared -x c++ -w -ffp-contract=off".split()


def folder() -> Path:
    """The folder of compiled libraries, which all processes of the tests share."""
    path = Path(tempfile.gettempdir(), f"minflow-host-kernels-{os.getuid()}")
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def entry(name: str, parameters: str) -> str:
    """C code that runs a kernel for all blocks and threads."""
    names = ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))
    call = f"host_run(*grid, *block, shared, [=] {{ {name}({names}); }});"
    return (
        f'extern "C" void run_{name}(const dim3* grid, const dim3* block, size_t shared, {parameters}) {{ {call} }}\n'
    )


@functools.cache
def compile_for_host(source: str) -> Callable[[str], Callable]:
    """Compile a source; return a function from the name of a kernel to `f(grid, block, args, shared)`.

    args: arrays of the stand-in, and Python numbers.
    """
    found = KERNEL.findall(source)
    text = f'#include "{SHIM}"\n{source}\n{"".join([entry(*kernel) for kernel in found])}'
    key = hashlib.sha256((text + SHIM.read_text()).encode()).hexdigest()
    library = folder() / f"{key}.so"
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*COMMAND, "-o", part, "-"], input=text, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr[:4000]
        part.replace(library)
    loaded = ctypes.CDLL(str(library))
    parameters = {name: given.count(",") + 1 for name, given in found}

    def function(name: str) -> Callable:
        run = getattr(loaded, f"run_{name}")

        def call(grid, block, args, shared=0):
            assert len(args) == parameters[name], f"{name} takes {parameters[name]} arguments, got {len(args)}"
            assert 0 < math.prod(block) <= 1024 and all([0 < n < 1 << 31 for n in grid]), (grid, block)
            assert all([n < 1 << 16 for n in grid[1:]]) and shared <= 48 << 10, (grid, shared)
            three = [(ctypes.c_uint * 3)(*n, *(1,) * (3 - len(n))) for n in (grid, block)]
            run(*map(ctypes.byref, three), ctypes.c_size_t(shared), *map(as_c, args))

        return call

    return function


def as_c(x):
    """An argument as the kernel takes it."""
    if isinstance(x, float):
        return ctypes.c_double(x)
    if isinstance(x, int):
        return ctypes.c_longlong(x)
    return ctypes.c_void_p(x.inner.ctypes.data)
