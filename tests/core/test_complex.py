"""Complex numbers: dtypes, values, printing, gradients; `flow.fft`. Oracles: PyTorch, numpy and finite differences."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow import DTypeError, GradError, OutOfRangeError, ShapeError
from minflow.core.op import OPS
from tests.cases import in_cases
from tests.core.refusals import refusals
from tests.graphs import Predict
from tests.pytorch import needs_torch, torch

Z = [[1 + 2j, -0.5 + 0.25j, 0j], [3 - 1j, 0.125j, -2 + 0j]]
W = [[0.5 - 1j, 1 + 1j, 2 - 0.5j], [-1 + 0.5j, 0.75j, 1 - 3j]]
R = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.5]]

# A real loss of two complex tensors and a real one, in either library. Oracle: PyTorch's gradients.
PROGRAMS = {
    "arithmetic": lambda L, z, w, r: (z * w + z - w * 2 - r).abs().sum(),
    "division": lambda L, z, w, r: (z / w).imag.sum() + (1 / w + w.reciprocal()).real.sum(),
    "with a real": lambda L, z, w, r: (z * r).real.sum() + (r * w).imag.sum() + (r * 1j * z).real.sum(),
    "exp, log": lambda L, z, w, r: (z.exp() * w.log()).imag.sum() + w.log10().real.sum(),
    "sin, cos": lambda L, z, w, r: (z.sin() + w.cos()).abs().sum() + (z.sinh() * w.cosh()).imag.sum(),
    "tan, tanh": lambda L, z, w, r: (z.tanh() * w.tan()).imag.sum(),
    "powers": lambda L, z, w, r: (w**2 * w.square() * w.sqrt()).imag.sum() + (w**0.5 * w.rsqrt()).real.sum(),
    "angle": lambda L, z, w, r: (w.angle() * r).sum(),
    "matmul": lambda L, z, w, r: (z @ w.mH).abs().sum() + (z.H @ w).real.sum() + (z @ w[0].conj()).imag.sum(),
    "reductions": lambda L, z, w, r: z.sum(0).abs().sum() + w.mean(1).imag.sum() + w.prod().real + w.norm(),
    "shapes": lambda L, z, w, r: L.cat([z[:, 1:], w.flip(0)], 1).reshape(-1).roll(1, 0).cumsum(0).abs().sum(),
    "broadcast": lambda L, z, w, r: (z[0] * w[:, :1]).abs().sum(),
    "as real": lambda L, z, w, r: (L.view_as_real(z) ** 2).sum() + L.view_as_real(w).sum(),
    "as complex": lambda L, z, w, r: (L.view_as_complex(L.stack([r, r * 2], -1)) * z).imag.sum(),
    "of parts": lambda L, z, w, r: (L.complex(r, r * r) * w).abs().sum() + (L.polar(r.abs(), r) * w).real.sum(),
    "where": lambda L, z, w, r: L.where(r > 0, z, w).imag.sum() + (z.index_select(0, L.tensor([1, 1])) * w).real.sum(),
    "fft": lambda L, z, w, r: L.fft.fft(r).abs().sum() + (L.fft.ifft(z, 4) * 2j).real.sum(),
    "rfft": lambda L, z, w, r: L.fft.irfft(L.fft.rfft(r, 4) * z[0], 5).square().sum() + L.fft.hfft(w).sum(),
    "fftn": lambda L, z, w, r: L.fft.fftn(z, norm="ortho").abs().sum() + L.fft.irfft2(w, (3, 4)).square().sum(),
    "vdot": lambda L, z, w, r: L.vdot(z[0], w[1]).imag + L.vdot(w[0], w[0]).real,
    "sgn": lambda L, z, w, r: (z.sgn() * w + L.sgn(w)).imag.sum(),
    "complex powers": lambda L, z, w, r: (w ** (z + 1)).imag.sum() + (w**r).real.sum() + (2**z).imag.sum(),
    "cast": lambda L, z, w, r: (r.to(z.dtype) * z).imag.sum(),
}


def run(L, program, complex_dtype, real_dtype):
    leaves = [
        L.tensor(numbers, dtype=getattr(L, dtype)).requires_grad_()
        for numbers, dtype in ((Z, complex_dtype), (W, complex_dtype), (R, real_dtype))
    ]
    loss = program(L, *leaves)
    loss.backward()
    return [loss.detach()] + [None if x.grad is None else x.grad for x in leaves]


@needs_torch
@in_cases("dtypes", [("complex64", "float32"), ("complex128", "float64")])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, dtypes):
    theirs, ours = run(torch, PROGRAMS[name], *dtypes), run(flow, PROGRAMS[name], *dtypes)
    tolerance = 1e-4 if dtypes[0] == "complex64" else 1e-10
    for a, b in zip(ours, theirs):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype.name == str(b.dtype)[6:]
            np.testing.assert_allclose(a.numpy(), b.resolve_conj().numpy(), tolerance, tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_match_finite_differences(name):
    """Without PyTorch: the gradient's real part is the slope along x, its imaginary part the slope along y."""
    _value, *grads = run(flow, PROGRAMS[name], "complex128", "float64")
    numbers = [np.array(x, dtype) for x, dtype in ((Z, "c16"), (W, "c16"), (R, "f8"))]
    rng = np.random.RandomState(0)
    for k, g in enumerate(grads):
        for step in (1.0, 1j)[: 1 if k == 2 else 2]:
            way = rng.randn(*numbers[k].shape) * 1e-6
            if name in ("arithmetic", "as real") or k != 0:
                sides = []
                for sign in (1, -1):
                    moved = [x + way * step * sign if i == k else x for i, x in enumerate(numbers)]
                    sides.append(PROGRAMS[name](flow, *[flow.tensor(x) for x in moved]).item())
                wanted = (sides[0] - sides[1]) / 2
                found = 0.0 if g is None else float((g.numpy() * np.conj(way * step)).real.sum())
                assert math.isclose(found, wanted, rel_tol=1e-4, abs_tol=1e-9)


def test_second_gradients():
    z = flow.tensor([1 + 2j, -3 + 1j], dtype=flow.complex128, requires_grad=True)
    (g,) = flow.autograd.grad((z.abs() ** 2).sum(), [z], create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), 2 * z.detach().numpy())
    (h,) = flow.autograd.grad((g.real * g.imag).sum(), [z])
    np.testing.assert_allclose(h.numpy(), [8 + 4j, 4 - 12j])


def test_graph_matches_eager():
    def spectrum(x):
        return flow.fft.ifft(flow.fft.fft(x) * flow.polar(flow.ones(4), x)).abs() + (x * 1j).conj().imag

    x = flow.tensor([0.5, -1.0, 2.0, 0.25])
    assert Predict(spectrum)(x).tolist() == spectrum(x).tolist()


def test_construction_and_queries():
    x = flow.tensor([1 + 2j, 3.5])
    assert x.dtype is flow.complex64 and x.is_complex() and not x.is_floating_point() and x.tolist() == [1 + 2j, 3.5]
    assert flow.tensor(1j, dtype=flow.cdouble).item() == 1j and flow.full((2,), 1j).dtype is flow.complex64
    assert flow.zeros(2, dtype=flow.complex64).dtype is flow.eye(2, dtype=flow.complex64).dtype is flow.complex64
    assert flow.from_numpy(np.array([1j])).dtype is flow.complex128 and x.type() == "minflow.ComplexFloatTensor"
    noise = flow.randn(4000, dtype=flow.complex64)
    assert abs(noise.abs().square().mean().item() - 1) < 0.1 and abs(noise.real.std().item() - 0.5**0.5) < 0.05
    assert (x.real.tolist(), x.imag.tolist(), x.conj().tolist()) == ([1, 3.5], [2, 0], [1 - 2j, 3.5])
    assert flow.ones(2).conj().tolist() == flow.ones(2).real.tolist() == [1, 1] and not flow.is_complex(x.real)
    assert x.resolve_conj() is x and x.resolve_neg() is x and not x.is_conj()
    assert flow.isreal(x).tolist() == [False, True] and flow.isreal(flow.tensor([1])).tolist() == [True]
    assert flow.angle(flow.tensor([1.0, -1.0, 0.0])).tolist() == [0, flow.tensor(math.pi).item(), 0]
    missing = flow.tensor([math.nan], requires_grad=True)
    with pytest.warns(flow.MinflowWarning, match="the loss is nan"):
        missing.angle().backward(flow.ones(1))
    assert missing.grad.item() == 0
    assert flow.ones(2, 3, 4).mH.shape == (2, 4, 3)
    assert (x == flow.tensor([1 + 2j, 0j])).tolist() == [True, False] and (x != 3.5).tolist() == [True, False]
    assert complex(x[0]) == 1 + 2j and bool(x[0]) and x.isnan().tolist() == [False, False]
    assert x.sum().item() == 4.5 + 2j and x.mean().item() == 2.25 + 1j and x.any().item()


def test_real_and_imag_are_views():
    x = flow.tensor([1 + 2j, 3 + 4j])
    x.real[0] = 9
    x.imag = flow.tensor([0.0, -1.0])
    flow.view_as_real(x)[1, 0] = 7
    assert x.tolist() == [9, 7 - 1j] and flow.view_as_real(x).shape == (2, 2)
    pairs = flow.zeros(3, 2)
    flow.view_as_complex(pairs)[1] = 5 + 6j
    assert pairs[1].tolist() == [5, 6]
    x.real = 0.0
    assert x.tolist() == [0, -1j]


def test_promotion():
    half, single, double = (flow.ones(2, dtype=d) for d in (flow.float16, flow.float32, flow.float64))
    z = flow.tensor([1j, 2])
    assert (single * 1j).dtype is (flow.tensor([1]) * 1j).dtype is (z * 2).dtype is (z * flow.tensor(2.0)).dtype
    assert (double * 1j).dtype is (double * z).dtype is (double * z[0]).dtype is flow.complex128
    assert (z * half).dtype is flow.complex64 and flow.result_type(single, flow.tensor(1j)) is flow.complex64
    assert flow.tensor([1j, 2]).to(flow.float64).tolist() == [0, 2] and z.bool().tolist() == [True, True]


def test_printing():
    assert repr(flow.tensor([1 + 2j, -3 - 1.5j])) == "tensor([ 1.+2.0000j, -3.-1.5000j], dtype=minflow.complex64)"
    assert repr(flow.tensor(1e10 + 2j)) == "tensor(1.0000e+10+2.j, dtype=minflow.complex64)"
    assert repr(flow.tensor([complex(math.nan, -0.0)])) == "tensor([nan-0.j], dtype=minflow.complex64)"


def test_saved_and_loaded(tmp_path):
    flow.save({"z": flow.tensor([1 + 2j])}, tmp_path / "z.safetensors")
    assert flow.load(tmp_path / "z.safetensors")["z"].tolist() == [1 + 2j]


V = flow.tensor([1 + 1j, 2])
test_refused = refusals(
    [
        (DTypeError, lambda: V < 1, "lt: not defined for complex numbers"),
        (DTypeError, lambda: V.logsumexp(0), "logsumexp: not defined for complex numbers"),
        (DTypeError, lambda: V.sort(), "sort: not defined for complex numbers"),
        (DTypeError, lambda: V.max(), "amax: not defined"),
        (DTypeError, lambda: V.relu(), "relu: not defined"),
        (DTypeError, lambda: V.clamp(0, 1), "clamp: not defined"),
        (DTypeError, lambda: flow.ones(2).clamp(1j), "clamp: not defined"),
        (DTypeError, lambda: V.floor(), "floor: not defined"),
        (DTypeError, lambda: flow.nn.functional.mse_loss(V, V), "complex64"),
        (DTypeError, lambda: float(V[0]), r"float\(\) of a complex number"),
        (DTypeError, lambda: flow.ones(2).imag, "imag: x must be complex, got float32"),
        (DTypeError, lambda: flow.ones(2).mul_(1j), "mul_: the result is complex64, which float32 cannot hold"),
        (DTypeError, lambda: flow.tensor([1j], dtype=flow.float32), "complex numbers do not fit into float32"),
        (DTypeError, lambda: flow.full((2,), 1j, dtype=flow.float32), "1j does not fit into float32"),
        (GradError, lambda: V[0].requires_grad_().backward(), "a complex number has no single gradient"),
        (ShapeError, lambda: flow.view_as_complex(flow.ones(3)), "its size is 2, not 3"),
        (DTypeError, lambda: flow.view_as_complex(flow.ones(2).long()), "got int64"),
        (DTypeError, lambda: flow.complex(flow.ones(2), flow.ones(2).double()), "float32 of real and float64 of imag"),
        (DTypeError, lambda: flow.complex(flow.ones(2).half(), flow.ones(2).half()), "got float16"),
        (DTypeError, lambda: V.H, "adjoint: input must have at least 2 axes, got 1"),
        (ShapeError, lambda: flow.ones(2, 3, 4).H, "H: the tensor must be a matrix, got 3 axes"),
        (DTypeError, lambda: flow.fft.rfft(V), "rfft: the input must be real, got complex64"),
        (DTypeError, lambda: flow.fft.fft(V.real.half()), "not defined for float16"),
        (OutOfRangeError, lambda: flow.fft.fft(V, n=0), "fft: axis 0 must have at least 1 element, got 0"),
        (OutOfRangeError, lambda: flow.fft.irfft(V, n=0), "irfft: axis 0 must have at least 1 element, got 0"),
        (ShapeError, lambda: flow.fft.fft(V[0]), "fft: the tensor has no axes"),
        (ShapeError, lambda: flow.fft.rfftn(V.real[0]), "rfftn: the tensor has no axes"),
        (DTypeError, lambda: flow.fft.fft(V, norm="both"), "fft: norm is 'both'"),
        (OutOfRangeError, lambda: flow.fft.fft2(V), "-2"),
        (ShapeError, lambda: flow.fft.fftn(V, (2, 2)), "2 sizes for 2 axes of a tensor with 1"),
        (OutOfRangeError, lambda: flow.fft.fftfreq(0), "fftfreq: n must be at least 1, got 0"),
    ]
)


# ---- flow.fft ----------------------------------------------------------------------------------------------------

SIGNAL = np.random.RandomState(1).randn(3, 5)
NAMES = [kind + end for end in ("", "2", "n") for kind in ("fft", "ifft", "rfft", "irfft")] + ["hfft", "ihfft"]


@in_cases("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", NAMES)
def test_transforms(name, norm):
    """Oracle: numpy's transform; float32 gives complex64."""
    x = SIGNAL if name.startswith(("rfft", "ihfft")) else SIGNAL + 1j * SIGNAL[::-1]
    ours, theirs = getattr(flow.fft, name), getattr(np.fft, name)
    cases = [({}, {}), ({"n": 4}, {"n": 4}), ({"n": 9, "dim": 0}, {"n": 9, "axis": 0})]
    if name[-1] != "t":
        cases = [({}, {}), ({"s": (4, 3), "dim": (1, 0)}, {"s": (4, 3), "axes": (1, 0)})]
    for options, same in cases:
        wanted = theirs(x, norm=norm, **same)
        for kind, bytes_, tolerance in ((x.dtype, 1, 1e-12), ("f4" if x.dtype.kind == "f" else "c8", 2, 1e-4)):
            found = ours(flow.tensor(x.astype(kind)), norm=norm, **options)
            assert found.dtype.itemsize * bytes_ == wanted.dtype.itemsize
            np.testing.assert_allclose(found.numpy(), wanted, tolerance, tolerance)


@in_cases("n", [1, 2, 5, 8])
def test_frequencies_and_shifts(n):
    np.testing.assert_allclose(flow.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), 1e-6)
    np.testing.assert_allclose(flow.fft.rfftfreq(n, d=0.5, dtype=flow.float64).numpy(), np.fft.rfftfreq(n, 0.5))
    x = np.arange(3.0 * n).reshape(3, n)
    for dim in (None, 0, (0, 1)):
        shifted = flow.fft.fftshift(flow.tensor(x), dim)
        assert shifted.tolist() == np.fft.fftshift(x, dim).tolist()
        assert flow.fft.ifftshift(shifted, dim).tolist() == x.tolist()


def test_integers_become_floats():
    assert flow.fft.fft(flow.tensor([1, 2])).tolist() == [3, -1] and flow.fft.rfft([1, 2]).dtype is flow.complex64


def test_hermitian_transforms_of_several_axes():
    x = flow.tensor(SIGNAL)
    for name in ("hfft2", "hfftn"):
        spectrum = getattr(flow.fft, f"i{name}")(x)
        assert spectrum.shape == (3, 3)
        np.testing.assert_allclose(getattr(flow.fft, name)(spectrum, (3, 5)).numpy(), SIGNAL, 1e-10, 1e-10)


def test_every_op_declares_its_complex_support():
    assert {op.domain for op in OPS.values()} == {"real", "holomorphic", "complex"}
    assert all(op.domain != "real" and op.dtype_agnostic for op in OPS.values() if op.is_view)


def test_uniform_numbers_have_two_uniform_parts():
    flow.manual_seed(0)
    for x in (flow.rand(4000, dtype=flow.complex64), flow.zeros(4000, dtype=flow.complex128).uniform_(0, 1)):
        assert x.is_complex()
        for part in (x.real.numpy(), x.imag.numpy()):
            assert part.min() >= 0 and part.max() < 1
            np.testing.assert_allclose([part.mean(), part.var()], [1 / 2, 1 / 12], rtol=0.05)
        assert abs(np.corrcoef(x.real.numpy(), x.imag.numpy())[0, 1]) < 0.05


def test_variance_is_that_of_both_parts():
    x = flow.tensor([[1 + 2j, 3 - 1j, 0.5j], [2 + 0j, 1j, 1 + 1j]], dtype=flow.complex128)
    np.testing.assert_allclose(x.var(1).numpy(), x.numpy().var(1, ddof=1))
    np.testing.assert_allclose(x.std(unbiased=False).numpy(), x.numpy().std())


def test_training_of_complex_parameters_in_eager_code_and_in_a_graph():
    """Fit a complex matrix, as Fourier neural operators do."""

    class Product(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = flow.nn.Parameter(flow.ones(2, 3, dtype=flow.complex64))

        def forward(self, x):
            return (self.weight @ x - 1j).abs().square().sum()

    class Step(flow.nn.Graph):
        def __init__(self, model, optimizer):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = self.model(x)
            loss.backward()
            return loss

    x = flow.tensor([1 + 1j, 2, 3j], dtype=flow.complex64)
    models = [Product(), Product()]
    eager, compiled = [flow.optim.Adam(m.parameters(), lr=0.05) for m in models]
    step = Step(models[1], compiled)
    for _ in range(60):
        eager.zero_grad()
        loss = models[0](x)
        loss.backward()
        flow.nn.utils.clip_grad_norm_(models[0].parameters(), 1e6)
        eager.step()
        assert step(x).item() == loss.item()
    assert loss.item() < 0.1 < Product()(x).item()
    np.testing.assert_array_equal(*[m.weight.detach().numpy() for m in models])


def test_gradients_are_clipped_by_their_absolute_values():
    p = flow.zeros(2, dtype=flow.complex128, requires_grad=True)
    p.grad = flow.tensor([3 + 4j, 12j], dtype=flow.complex128)
    for order, total in ((2.0, 13.0), (1.0, 17.0), (float("inf"), 12.0)):
        assert flow.nn.utils.get_total_norm([p.grad], order).item() == pytest.approx(total)
    flow.nn.utils.clip_grad_norm_(p, 1.3)
    np.testing.assert_allclose(p.grad.numpy(), [0.3 + 0.4j, 1.2j], rtol=1e-6)
    flow.nn.utils.clip_grad_value_(p, 0.35)
    np.testing.assert_allclose(p.grad.numpy(), [0.3 + 0.35j, 0.35j], rtol=1e-6)


def test_layers_with_complex_weights():
    layer = flow.nn.Linear(3, 2, dtype=flow.complex64)
    assert layer.weight.imag.abs().sum() > 0
    assert flow.nn.Linear(3, 2).to(flow.complex64)(flow.ones(3, dtype=flow.complex64)).dtype is flow.complex64
    with pytest.raises(flow.ModuleError, match="int64"):
        layer.to(flow.int64)
