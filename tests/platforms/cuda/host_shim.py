"""Compile sources of the platform "cupy" for the CPU: `host_shim.h` defines the part of CUDA C that they use.

A call raises KernelError if threads wait at different barriers, or if the kernel leaves its arrays.
"""

import contextlib
import ctypes
import functools
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from minflow.platforms.cupy.device_code import C_NAMES

SHIM = Path(__file__).with_name("host_shim.h")
KERNEL = re.compile(r'extern "C" __global__ void(?: __launch_bounds__\([^)]*\))? (\w+)\(([^)]*)\)')
# Shared memory belongs to one library, also that of a template of which others have another.
COMPILE = "g++ -std=c++17 -O1 -fPIC -w -ffp-contract=off -fvisibility=hidden -fno-gnu-unique -fsanitize=bounds".split()
NUMBERS = {float: ("double", ctypes.c_double), bool: ("bool", ctypes.c_bool), int: ("long long", ctypes.c_longlong)}
ORDERS = [False]  # the last one: True to run blocks and threads backwards


@functools.cache
def struct(size: int) -> type[ctypes.Structure]:
    return type("Struct", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_char * size)]})


class KernelError(Exception):
    """An error of CUDA C that a GPU may not report."""


@contextlib.contextmanager
def backwards():
    """Run blocks and threads in reverse order in this block."""
    ORDERS.append(True)
    try:
        yield
    finally:
        ORDERS.pop()


def folder() -> Path:
    """The folder of compiled libraries, which all processes of the tests share."""
    path = Path(tempfile.gettempdir(), f"minflow-host-kernels-{os.getuid()}")
    path.mkdir(mode=0o700, exist_ok=True)
    return path


@functools.cache
def header() -> Path:
    """A copy of the shim, beside which is its precompiled form."""
    text = SHIM.read_bytes()
    copy = folder() / f"{hashlib.sha256(' '.join(COMPILE).encode() + text).hexdigest()}.h"
    precompiled = copy.with_suffix(".h.gch")
    if not precompiled.exists():
        part = copy.with_suffix(f".{os.getpid()}")
        part.write_bytes(text)
        part.replace(copy)
        subprocess.run([*COMPILE, "-x", "c++-header", "-o", part, copy], check=True)
        part.replace(precompiled)
    return copy


def entry(name: str, parameters: str) -> str:
    """C code that runs a kernel for all blocks and threads."""
    names = ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))
    head = "const dim3* grid, const dim3* block, size_t shared, int reverse"
    return (
        f'extern "C" __attribute__((visibility("default"))) const char* run_{name}({head}, {parameters}) {{\n'
        f"  return host_run(*grid, *block, shared, reverse, [=] {{ {name}({names}); }});\n}}\n"
    )


def build(text: str, library: Path) -> None:
    part = library.with_suffix(f".{os.getpid()}")
    # linked by another command, which adds no library of sanitizers
    for command in ([*COMPILE, "-x", "c++", "-c", "-o", f"{part}.o", "-"], ["g++", "-shared", "-o", part, f"{part}.o"]):
        done = subprocess.run(command, input=text, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr[:4000]
    Path(f"{part}.o").unlink()
    part.replace(library)


@functools.cache
def compile_for_host(source: str) -> Callable[[str], Callable]:
    """Compile a source; return a function from the name of a kernel to `f(grid, block, args, shared)`.

    args: arrays of the stand-in, and Python numbers. Skips the test without a compiler.
    """
    if sys.platform != "linux" or shutil.which("g++") is None:
        pytest.skip("CUDA C is compiled for the CPU by g++ on Linux, which is not here")
    found = KERNEL.findall(source)
    text = f'#include "{header()}"\n#line 1 "source"\n{source}\n{"".join([entry(*kernel) for kernel in found])}'
    key = hashlib.sha256(" ".join([*COMPILE, text]).encode()).hexdigest()
    library = folder() / f"{key}.so"
    if not library.exists():
        build(text, library)
    loaded = ctypes.PyDLL(str(library))  # which keeps the GIL: the calls of a library share their threads and memory
    macros = dict(reversed(re.findall(r"^#define (\w+) (.*)$", source, re.M)))  # the first one counts
    types = {name: [c_type(x, macros) for x in given.split(",")] for name, given in found}

    def function(name: str) -> Callable:
        run = getattr(loaded, f"run_{name}")
        run.restype = ctypes.c_char_p

        def call(grid, block, args, shared=0):
            assert len(args) == len(types[name]), f"{name} takes {len(types[name])} arguments, got {len(args)}"
            assert 0 < math.prod(block) <= 1024 and all([0 < n < 1 << 31 for n in grid]), (grid, block)
            assert all([n < 1 << 16 for n in grid[1:]]) and shared <= 48 << 10, (grid, shared)
            three = [(ctypes.c_uint * 3)(*n, *(1,) * (3 - len(n))) for n in (grid, block)]
            converted = [as_c(name, x, type) for x, type in zip(args, types[name])]
            error = run(*map(ctypes.byref, three), ctypes.c_size_t(shared), ORDERS[-1], *converted)
            if error:
                raise KernelError(f"{name}: {with_line(error.decode(), source)}")

        return call

    return function


def c_type(parameter: str, macros: dict[str, str]) -> str:
    """The type of a parameter without its qualifiers: "float*", "long long"."""
    words = re.sub(r"\b(const|__restrict__)\b", "", parameter).replace("*", " * ").split()[:-1]
    return " ".join([macros.get(word, word) for word in words]).replace(" *", "*")


def as_c(kernel: str, x, expected: str):
    """An argument as the kernel takes it. Fails if its dtype is not that of the parameter."""
    if x.__class__ in NUMBERS:
        type, convert = NUMBERS[x.__class__]
        assert type == expected, f"{kernel}: a parameter is {expected}, the argument {x} is {type}"
        return convert(x)
    if x is None:
        assert expected.endswith("*"), f"{kernel}: a parameter is {expected}, the argument is None"
        return ctypes.c_void_p()
    if isinstance(x, np.ndarray):  # a struct
        assert x.size == 1 and x.nbytes <= 4096 and "*" not in expected, (
            f"{kernel}: a parameter is {expected}, got {x.dtype}"
        )
        return struct(x.nbytes).from_buffer_copy(x)
    elements = expected.removesuffix("*").strip()
    known = elements in C_NAMES.values() and (x.dtype.name, elements) != ("bool", "unsigned char")
    assert not known or elements == C_NAMES[x.dtype.name], f"{kernel}: a parameter is {expected}, got {x.dtype}"
    return ctypes.c_void_p(x.inner.ctypes.data)


def with_line(error: str, source: str) -> str:
    """An error with the line of the source that it names."""
    found = re.match(r"source:(\d+)", error)
    return f"{error}: {source.splitlines()[int(found[1]) - 1].strip()}" if found else error
