"""Machine code of the micro-kernels for AVX2, AVX-512 and ARM: vector products, and no register spills.

It is compiled for processors other than this one. The kernels have never run on ARM; this is the only check there.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

binding = pytest.importorskip("llvmlite.binding")
pytest.importorskip("numba")
from llvmlite import ir
from numba.core import codegen

from minflow.platforms.compiled.codegen import llvm, micro_kernels

X86, ARM, APPLE = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx"
MACHINES = [  # triple, processor, has 32 vector registers of 16 elements, elements in a vector register
    (X86, "haswell", False, 8),
    (X86, "znver3", False, 8),
    (X86, "skylake-avx512", True, 16),
    (X86, "znver4", True, 16),
    (ARM, "cortex-a76", False, 4),
    (ARM, "neoverse-n1", False, 4),
    (APPLE, "apple-m1", False, 4),
]
PRODUCT = {16: r"vfmadd\d+ps\s.*%zmm", 8: r"vfmadd\d+ps\s.*%ymm", 4: r"fmla(\.4s)?\s+v\d+(\.4s)?,"}
JUMP = re.compile(r"(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s.*?(\.?L\w+)$")
# A store names its destination in parentheses; on ARM the opcode does. `lea` and jumps have no such form.
STORE = re.compile(r".*\)$|st[rpu]\w*\s|st\d\b")
STACK = re.compile(r".*(%rsp|\[sp\b)")


def kernels(family):
    """(rows, vectors, further arguments of `instructions`) of all kernels that a processor of this family runs."""
    vectors = sorted({family.vectors, 1})
    for v in vectors:
        for rows in family.rows:
            yield rows, v, micro_kernels.along_pixels(family)
        yield family.deep, v, micro_kernels.ALONG_CHANNELS


def assembly(triple, processor, body):
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = ir.Module("kernel")
    module.triple = triple
    llvm.define(module, "kernel", micro_kernels.ARGUMENTS, body, inline=False)
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(3))  # numba's level
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)


def inner_loops(text):
    """Instructions of each block that ends in a jump to its own start."""
    loops, label, lines = [], None, []
    for line in text.splitlines():
        line = re.split(r"[#;]|//", line)[0].strip()
        if begins := re.match(r"([.\w]+):", line):
            label, lines = begins[1], []
        elif line and not line.startswith("."):
            lines.append(line)
            if (jump := JUMP.match(line)) and jump[1] == label:
                loops.append(lines)
                label, lines = None, []
    return loops


@pytest.mark.parametrize(("triple", "processor", "wide", "numbers"), MACHINES)
def test_inner_loops_use_vector_fma_without_spills(triple, processor, wide, numbers):
    for rows, vectors, distances in kernels(micro_kernels.FAMILIES[wide]):
        text = assembly(triple, processor, micro_kernels.instructions(rows, vectors, **distances))
        what = f"{processor}: {rows} x {vectors}, {distances}\n{text}"
        loops = inner_loops(text)
        each = rows * vectors * (llvm.LANES // numbers) * distances["unroll"]
        assert loops, what
        for lines in loops:
            products = sum(bool(re.match(PRODUCT[numbers], line)) for line in lines)
            assert products and products % each == 0, what  # LLVM may unroll the loop
            assert not [line for line in lines if STORE.match(line) or STACK.match(line)], what
            assert products >= len(lines) / 3 or rows < 4, what  # the remaining instructions: loads and broadcasts


def test_register_spills_are_detected():
    """The check itself works: a tile with twice the rows spills."""
    body = micro_kernels.instructions(12, 1, **micro_kernels.along_pixels(micro_kernels.FAMILIES[False]))
    [lines] = inner_loops(assembly(X86, "haswell", body))
    assert [line for line in lines if STORE.match(line)] and [line for line in lines if STACK.match(line)]


def test_this_processor_is_a_known_family():
    assert micro_kernels.HERE is micro_kernels.FAMILIES[llvm.WIDE]
    assert {*micro_kernels.PIXELS} == {(p, v) for p in micro_kernels.ROWS for v in {micro_kernels.VECTORS, 1}}


@pytest.mark.slow
def test_avx2_convolutions_pass_on_any_processor(tmp_path):
    """The tests of convolutions, loops and fused regions pass with kernels compiled for a processor without AVX-512."""
    here = codegen.get_host_cpu_features()
    if "+avx2" not in here or "+fma" not in here:
        pytest.skip("this processor has no AVX2")
    features = "+avx,+avx2,+bmi,+bmi2,+fma,+sse4.2"
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": features,
        "MINFLOW_KERNELS": str(tmp_path),
    }
    program = (
        "from minflow.platforms.compiled.codegen import llvm; assert not llvm.WIDE; "
        "import pytest, sys; sys.exit(pytest.main())"
    )
    names = "nchw_conv", "nchw16c_conv", "nchw_kernels", "elementwise_fusion"
    files = [str(Path(__file__).with_name(f"test_{name}.py")) for name in names]
    done = subprocess.run(
        [sys.executable, "-c", program, "-q", "-n0", *files],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=850,  # less than that of a hanging test
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
