"""Generated loops of ops with a formula: CUDA C, compiled for the CPU, against the same ops in float64."""

import contextlib
import itertools

import numpy as np
import pytest

import minflow as flow
from minflow.core.backend import empty
from minflow.core.kernels import KERNELS
from minflow.core.op import OPS
from minflow.core.ops.shape import cast
from minflow.core.scalar import UnsupportedOperation, operations_of
from minflow.core.spec import Spec
from minflow.platforms.cupy.device_code import C_NAMES, FLOATS, source_text
from minflow.platforms.cupy.elementwise import Access, loop_over
from minflow.platforms.cupy.kernels.elementwise import source_of

NUMBERS = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 6, 7, 3e4, -3e4, 1e-3, np.inf, -np.inf, np.nan]


def loops():
    """The ops with a formula."""
    return [op for op in OPS.values() if (op, "cupy") in KERNELS and operations_of(op)]


@pytest.mark.wheels
@pytest.mark.parametrize("dtype", sorted(FLOATS))
def test_registers_are_not_spilled(dtype):
    from tests.platforms.cuda.test_cuda_resources import ARCHITECTURES, compiled

    parts = [source_text("elementwise.cuh")]
    for op, axes in itertools.product(loops(), (None, (0, 1, 2))):
        reads = [Access("bool" if (op.name, i) == ("where", 0) else dtype, axes) for i in range(len(op.inputs))]
        result = Access("bool" if op.elementwise == "bool" else dtype, axes)
        with contextlib.suppress(UnsupportedOperation):
            body = source_of(op, dtype, tuple(reads), result, len(axes or "1"), axes is None, ())
            parts.append(body.replace("loop_", f"loop_{len(parts)}_", 1))
    for architecture in ARCHITECTURES:
        found = compiled("".join(parts), architecture)
        assert len(found) == len(parts) - 1 > 100
        assert not any([x.spills for x in found.values()])
        assert max([x.registers for x in found.values()]) <= 64  # four blocks of 256 threads on a multiprocessor


def operands_of(op, dtype, form):
    """Tensors and numbers on the CPU, ragged and of several strides; with one special number at least in each pair."""
    rng = np.random.default_rng(0)
    n, count = len(NUMBERS), len(op.inputs)
    if form == "contiguous":
        pairs = np.array([*itertools.product(NUMBERS, NUMBERS)]).T
        arrays = [*pairs, *pairs[:, ::-1].copy()][:count]
        arrays = [np.concatenate([x, rng.normal(size=300) * 3]) for x in arrays]
    else:
        arrays = [rng.normal(size=shape) * 3 for shape in ((n, 3, 5), (n, 1, 5), (3, 1), (n, 1, 1))[:count]]
        arrays[0][:, 0, 0] = NUMBERS
    found = [flow.tensor(x).to(dtype) for x in arrays]
    if form == "strided":
        found[0] = found[0].transpose(0, 2).contiguous().transpose(0, 2) if count == 1 else found[0][:, :, ::2]
        found[1:] = [x[..., ::2] if x.shape[-1] == 5 else x for x in found[1:]]
    if form == "numbers":
        found[-1] = 3 if count == 2 else 0.1
    if op.name == "where":
        found[0] = found[0] > 0
    return found


def run_loop(op, operands, result, **attrs):
    """The result of the loop of an op, as a tensor on the CPU; None if it declines."""
    specs = [x.spec for x in operands if isinstance(x, flow.Tensor)]
    shape = np.broadcast_shapes(*[spec.shape for spec in specs])
    device = flow.device("cuda")
    arrays = [x.to("cuda") if isinstance(x, flow.Tensor) else x for x in operands]
    out = empty(Spec(shape, result, device))
    if KERNELS[op, "cupy"].call(*[getattr(x, "array", x) for x in arrays], out=out, **attrs) is NotImplemented:
        return None
    return flow.tensor(out.inner) if result is not flow.bfloat16 else flow.tensor(out.inner.astype("f4"))


@pytest.mark.parametrize("dtype", [flow.float32, flow.float64, flow.float16, flow.bfloat16], ids=str)
def test_every_formula(compiled_together, dtype):
    def program(collect):
        for op, form in itertools.product(loops(), ("contiguous", "strided", "numbers")):
            if form == "numbers" and len(op.inputs) == 1:
                continue
            operands = operands_of(op, dtype, form)
            out = flow.bool if op.elementwise == "bool" else dtype
            collect(op, form, operands, run_loop(op, operands, out))

    ran = set()
    for op, form, operands, got in compiled_together(program):
        if got is None:
            assert op.name == "nextafter" and dtype.itemsize == 2
            continue
        wide = [x.double() if getattr(x, "spec", None) and x.dtype is dtype else x for x in operands]
        number = flow.tensor(operands[-1], dtype=flow.float64).to(dtype).double().item() if form == "numbers" else None
        want = op(*(wide if number is None else [*wide[:-1], number]))
        if op.name in ("nextafter", "trunc_divide") and dtype.itemsize > 2:  # they jump, so the dtype matters
            want = op(*operands)
        want = want.to(got.dtype if dtype is not flow.bfloat16 or got.dtype is flow.bool else dtype).double().numpy()
        got = got.double().numpy()
        if op.name in ("relu_grad", "relu6_grad"):  # the reference multiplies by 0, also infinity and NaN
            want = np.where(~np.isfinite(wide[0].numpy()) & (got == 0), 0, want)
        with np.errstate(invalid="ignore"):
            allowed = KERNELS[op, "cupy"].tolerance * flow.finfo(dtype).eps * np.fmax(np.abs(want), 1)
            right = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= allowed)
        wrong = np.argwhere(~right)[:3]
        assert not len(wrong), (op, form, wrong, got[~right][:3], want[~right][:3])
        ran.add(op)
    assert len(ran) > 50


def test_casts(compiled_together):
    dtypes = [getattr(flow, name) for name in C_NAMES]
    x = flow.tensor([0, 1, -1, 2.5, -2.5, 100.7, 65504, 1e-7, 3.0e4, 0.1])

    def program(collect):
        for a, b in itertools.product(dtypes, dtypes):
            source = (x.clamp(-1 if a is not flow.uint8 else 0, 100) if not a.floating else x).to(a)
            if b in (flow.uint8, flow.int8, flow.int16):  # other numbers depend on the machine
                source = source.double().clamp(0, 100).to(a)
            collect(a, b, source.to(b), run_loop(cast, [source], b, dtype=b))

    for a, b, want, got in compiled_together(program):
        assert flow.equal(want.double(), got.double()), (a, b)


def test_no_elements(cuda_kernels):
    assert (flow.zeros(0, 3, device="cuda") + 1).shape == (0, 3)


def test_calls_that_have_no_loop(cuda_kernels):
    """Integers, for which formulas do not hold, run as the reference kernel."""
    x = flow.tensor([7, -7], device="cuda")
    assert (x / 2).tolist() == [3.5, -3.5]
    assert (x % 4).tolist() == [3, 1]
    assert flow.where(x > 0, x, 2**60 + 1).tolist() == [7, 2**60 + 1]


def test_a_large_loop_has_an_index_of_64_bits():
    access = Access("float32", (0,))
    texts = [source_of(OPS["add"], "float32", (access, None), access, 1, small, ()) for small in (True, False)]
    assert ["typedef int index" in text for text in texts] == [True, False]
    assert ["typedef long long index" in text for text in texts] == [False, True]


def test_axes_are_merged():
    x = np.zeros((2, 3, 4), "f4")
    assert loop_over([x, x]).sizes == (24,)
    assert loop_over([x[:, :1], x[:, :1]]).sizes == (2, 4)
    assert loop_over([x[0, 0], x]) == ((6, 4), ((0, 1), (4, 1)))
    assert loop_over([x.transpose(2, 0, 1), np.zeros((4, 2, 3), "f4")]) == ((4, 6), ((1, 4), (6, 1)))
    assert loop_over([x[0, 0, 0], x[0, 0, 0]]) == ((), ((), ()))
