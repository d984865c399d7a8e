"""CUDA C that the kernels launch, compiled for three architectures: registers, spills and shared memory.

A table per op in `tests/golden/cuda`, of all calls of `kernel_calls.py`. Numbers are those of NVRTC 13.5.
"""

import contextlib
import functools
import math
import re
from typing import NamedTuple

import pytest

import minflow as flow
from minflow.platforms.cupy.device_code import with_macros
from tests.platforms.cuda.kernel_calls import KERNEL_OPS, calls
from tests.strict_backend import StrictBackend

pytestmark = [pytest.mark.wheels, pytest.mark.usefixtures("reference_kernels")]
ARCHITECTURES = "sm_75", "sm_80", "sm_90"
SPILLS = {  # function -> why it may keep registers in memory
    name: "a few bytes, so that another block fits into a multiprocessor"
    for name in ("attend", "attend_statistics", "attend_grad_queries", "attend_grad_keys")
}
REGISTERS = 65_536  # of a multiprocessor
SHARED = 48 << 10  # bytes of a block


class Resources(NamedTuple):
    """The needs of a function. registers: per thread.  stack, spills: bytes per thread.  shared: bytes per block."""

    registers: int
    stack: int
    spills: int
    shared: int

    @property
    def text(self) -> str:
        memory = [f", {n} bytes of {what}" for n, what in ((self.stack, "stack"), (self.spills, "spills")) if n]
        return f"{self.registers} registers" + "".join(memory)


def launched(op) -> dict[tuple, tuple[int, int]]:
    """(file, function, macros) of all launches of an op -> most threads of a block, most bytes of dynamic memory.

    Nothing is launched.
    """
    found: dict[tuple, tuple[int, int]] = {}

    def function(backend, file, name, macros):
        def record(grid, block, args, shared=0):
            most = found.get((file, name, macros), (0, 0))
            found[file, name, macros] = tuple(map(max, most, (math.prod(block), shared)))

        return record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StrictBackend, "function", function)
        for call in calls(op):
            with contextlib.suppress(flow.DTypeError):
                call.run("cuda")
    return found


@functools.cache
def compiled(source: str, architecture: str) -> dict[str, Resources]:
    """The resources of the functions of a source. Raises NVRTCError with the compiler's messages."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "source", (), ())
    options = "--std=c++17", f"--gpu-architecture={architecture}", "--ptxas-options=-v"
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError as error:
        error.add_note(nvrtc.getProgramLog(program))
        raise
    parts = re.split(r"Compiling entry function '(\w+)'", nvrtc.getProgramLog(program))
    return {name: resources(log) for name, log in zip(parts[1::2], parts[2::2])}


def resources(log: str) -> Resources:
    def number(before_it: str, after: str) -> int:
        found = re.search(rf"{before_it}(\d+) {after}", log)
        return int(found[1]) if found else 0

    spills = number("", "bytes spill stores") + number("", "bytes spill loads")
    return Resources(number("Used ", "registers"), number("", "bytes stack frame"), spills, number("", "bytes smem"))


@pytest.mark.parametrize("op", KERNEL_OPS, ids=lambda op: op.name)
def test_resources(op, cuda_kernels, golden):
    lines = []
    for (file, name, macros), (threads, dynamic) in sorted(launched(op).items()):
        call = f"{name} of {file}, {' '.join([f'{key}={value}' for key, value in macros])}"
        each = {x: compiled(with_macros(file, macros), x)[name] for x in ARCHITECTURES}
        shared = max([x.shared for x in each.values()])
        for architecture, found in each.items():
            assert not found.spills or name in SPILLS, f"{call}: registers are spilled on {architecture}"
            assert -(-found.registers // 8) * 8 * threads <= REGISTERS, f"{call}: a block has too many registers"
        assert shared + dynamic <= SHARED, f"{call}: too much shared memory"
        lines += [call, f"    threads {threads}, shared bytes {shared} + {dynamic} dynamic"]
        lines += [f"    {x}: {found.text}" for x, found in each.items()]
    if lines:
        golden(f"cuda/{op.name}", "\n".join(lines))
