"""Tensors in other libraries: NumPy's functions, DLPack both ways, pickle and copies."""

import copy
import pickle

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import CallError, DTypeError, GradError, GraphError, ShapeError
from minflow.core.methods.interop import BY_UFUNC
from tests.cases import in_cases

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], "float32")
FUNCTIONS = {
    "mean": lambda x: np.mean(x), "mean of an axis": lambda x: np.mean(x, axis=0), "sum": lambda x: np.sum(x, axis=1),
    "sum that keeps axes": lambda x: np.sum(x, axis=1, keepdims=True), "median": np.median,
    "max": np.max, "argmax": np.argmax, "sort": np.sort, "cumsum": np.cumsum,
    "concatenate": lambda x: np.concatenate([x, x]),
    "stack": lambda x: np.stack([x, x]), "dot": lambda x: np.dot(x, x.T),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "where": lambda x: np.where(x > 2, x, 0.0), "clip": lambda x: np.clip(x, 1, 2), "norm": np.linalg.norm,
    "transpose": lambda x: np.transpose(x, (1, 0)), "interp": lambda x: np.interp(1.5, x[0], x[1]),
    "histogram": lambda x: np.histogram(x)[0], "unique": np.unique, "percentile": lambda x: np.percentile(x, 50),
    "outer": lambda x: np.add.outer(x[0], x[1]), "reduce": np.add.reduce, "cbrt": np.cbrt,
    "list": lambda x: np.array(list(x)),
    "exp": np.exp, "hypot": lambda x: np.hypot(x, 2.0), "isnan": np.isnan, "abs": np.abs,
    "logical": lambda x: np.logical_not(x > 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@in_cases("needs", [False, True])
def test_numpy_functions_take_tensors(name, needs):
    found = FUNCTIONS[name](flow.tensor(A, requires_grad=needs))
    np.testing.assert_allclose(np.asarray(found), FUNCTIONS[name](A), rtol=1e-6)


def test_numpy_ufuncs_return_tensors_with_gradients():
    x = flow.tensor([0.25, 0.5, 0.75])
    for name in BY_UFUNC:
        ufunc = getattr(np, name)
        assert ufunc.__name__ == name
        if ufunc in (np.matmul, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift):
            continue
        for args in [(x,), (x, x.numpy()), (x, 0.5), (x.numpy(), x), (np.float32(0.5), x)]:
            if len(args) == ufunc.nin:
                with np.errstate(invalid="ignore"):
                    found, wanted = ufunc(*args), ufunc(*map(np.asarray, args))
                assert isinstance(found, flow.Tensor), ufunc
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7, err_msg=ufunc.__name__)
    leaf = flow.tensor([0.5], requires_grad=True)
    np.exp(leaf).backward()
    assert leaf.grad.item() == pytest.approx(np.exp(0.5))
    out = np.empty(3, "float32")
    np.add(x, 1, out=out)
    assert out.tolist() == [1.25, 1.5, 1.75]


def test_tensor_as_an_array():
    x = flow.tensor(A)
    assert np.shares_memory(np.asarray(x), x.numpy()) and not np.shares_memory(np.array(x), x.numpy())
    assert np.array(x, "float64").dtype == "float64" and np.asarray(x, dtype=int).tolist() == A.astype(int).tolist()
    assert np.asarray(x, copy=False) is not None
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype="float64", copy=False)
    assert not np.asarray(flow.tensor(A, requires_grad=True)).flags.writeable
    with pytest.raises(DTypeError, match=r"(?s)bfloat16.*x.float"):
        np.asarray(x.bfloat16())
    np.testing.assert_array_equal(x, A)
    np.testing.assert_allclose(flow.tensor(A, requires_grad=True), A)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(x + 1, A)


def test_dlpack_shares_memory_both_ways():
    array = np.zeros(3, "float32")
    x = flow.from_dlpack(array)
    x.add_(1)
    assert array.tolist() == [1, 1, 1]
    assert np.shares_memory(np.from_dlpack(x), array) and np.from_dlpack(x.reshape(1, 3).T).shape == (3, 1)
    own = flow.from_dlpack(array, copy=True, device="cpu")
    own.add_(1)
    assert array.tolist() == [1, 1, 1] and own.tolist() == [2, 2, 2]
    assert flow.from_dlpack(flow.utils.dlpack.to_dlpack(x)).tolist() == [1, 1, 1]  # a capsule
    assert x.__dlpack_device__() == (1, 0) and x.__dlpack__(stream=-1, max_version=(1, 0), copy=True)
    for dtype in ("bool", "uint8", "int64", "float16", "complex64"):
        assert np.from_dlpack(x.to(flow.tensor(np.zeros(1, dtype)).dtype)).dtype == dtype


def test_python_buffers():
    memory = bytearray(np.arange(4, dtype="int32").tobytes())
    x = flow.frombuffer(memory, dtype=flow.int32, count=2, offset=4)
    assert x.tolist() == [1, 2]
    x.add_(1)
    assert np.frombuffer(memory, "int32").tolist() == [0, 2, 3, 3]
    assert flow.frombuffer(np.ones(2, "float32"), dtype=flow.float32, requires_grad=True).requires_grad
    for wrong, kind in (((b"abc", flow.int32), ShapeError), (([1], flow.uint8), DTypeError)):
        with pytest.raises(kind, match=f"frombuffer of {type(wrong[0]).__name__}.*"):
            flow.frombuffer(wrong[0], dtype=wrong[1])


def test_dlpack_refuses():
    with pytest.raises(GradError, match=r"(?s)requires grad.*float32\[2\].*detach"):
        np.from_dlpack(flow.ones(2, requires_grad=True))
    assert np.from_dlpack(flow.ones(2, requires_grad=True).detach()).tolist() == [1, 1]
    with pytest.raises(DTypeError, match="list"):
        flow.from_dlpack([1])
    with pytest.raises(CallError, match="copi"):
        flow.from_dlpack(A, copi=True)
    fixed = np.zeros(3, "float32")
    fixed.flags.writeable = False
    with pytest.raises(ShapeError, match="read-only"):
        flow.from_dlpack(fixed).add_(1)


# ---- pickle and copies -------------------------------------------------------------------------------------------


def again(it):
    return pickle.loads(pickle.dumps(it))


@pytest.mark.parametrize("way", [again, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_pickle_and_copy(way):
    for dtype in (flow.bool, flow.int16, flow.float16, flow.bfloat16, flow.float64, flow.complex64):
        x = flow.arange(4).to(dtype)
        twin = way(x)
        assert way(dtype) is dtype is twin.dtype and twin.tolist() == x.tolist() and twin.data_ptr() != x.data_ptr()
    shape = way(flow.ones(2, 3).shape)
    assert type(shape) is flow.Size and shape == (2, 3) and way(flow.device("cpu")) == flow.device("cpu")
    assert way(flow.exp) is flow.exp and way(flow.nn.functional.relu) is flow.nn.functional.relu
    assert way(flow.FloatTensor) is flow.FloatTensor and way(flow.cuda.FloatTensor) is flow.cuda.FloatTensor
    generator = flow.Generator().manual_seed(3)
    flow.rand(2, generator=generator)
    assert flow.rand(2, generator=way(generator)).tolist() == flow.rand(2, generator=generator).tolist()
    weight = flow.nn.Parameter(flow.ones(2))
    weight.note = "mine"
    assert type(way(weight)) is flow.nn.Parameter and way(weight).requires_grad and way(weight).note == "mine"
    pair = way([weight, weight])
    assert pair[0] is pair[1] is not weight
    values, _ = way(flow.ones(2, 2).max(0))
    assert values.tolist() == [1, 1]


class Doubled(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = flow.nn.Sequential(flow.nn.Linear(3, 2), flow.nn.BatchNorm1d(2))
        self.inner.register_forward_hook(double)

    def forward(self, x):
        return self.inner(x)


def double(module, inputs, output):
    return output * 2


@pytest.mark.parametrize("way", [again, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_model_and_optimizer_are_copied_together(way):
    x, model = flow.tensor(A), Doubled()
    adam = flow.optim.Adam(model.parameters(), lr=0.1)
    schedule = flow.optim.lr_scheduler.StepLR(adam, 2)

    def step(model, optimizer, schedule):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        schedule.step()
        return [p.tolist() for p in model.parameters()]

    step(model, adam, schedule)
    twins = way((model, adam, schedule))
    assert twins[1].param_groups[0]["params"][0] is twins[0].inner[0].weight is not model.inner[0].weight
    assert [step(*twins) for _ in range(3)] == [step(model, adam, schedule) for _ in range(3)]


def test_tensor_with_history_cannot_be_deepcopied():
    w = flow.ones(2, requires_grad=True)
    with pytest.raises(GradError, match=r"(?s)deepcopy.*float32\[2\].*at test_interop.py.*x.detach\(\)"):
        copy.deepcopy(w * 2)
    with pytest.raises(GradError, match="deepcopy"):
        copy.deepcopy({"losses": [w.sum()]})
    assert copy.deepcopy((w * 2).detach()).tolist() == [2, 2] and not copy.deepcopy((w * 2).detach()).requires_grad
    w.sum().backward()
    assert copy.deepcopy(w).grad.tolist() == [1, 1] and copy.deepcopy(w).is_leaf


def test_graph_cannot_be_copied():
    class Half(flow.nn.Graph):
        def build(self, x):
            return x / 2

    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(GraphError, match=r"Half_\d+.*neither copied nor pickled"):
            way(Half())
