"""Tensors as programs of PyTorch and OneFlow use them: storages, NumPy's functions, old spellings."""

import importlib
import pickle

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CallError, DTypeError


def test_new_takes_a_shape_or_data():
    x = flow.ones(2, 3, dtype=flow.float64)
    assert x.new().shape == (0,) and x.new(4, 1).shape == x.new(flow.Size([4, 1])).shape == x.new(size=(4, 1)).shape
    assert x.new([1, 2]).tolist() == [1, 2] and x.new([1]).dtype is flow.float64 and x.new(x) is not x
    assert x.to("meta").new(3).is_meta


def test_storages_show_the_memory_of_all_views():
    x = flow.arange(6.0).reshape(2, 3)
    row = x[1]
    typed, raw = row.storage(), row.untyped_storage()
    assert typed.tolist() == list(x.t().storage()) == [0, 1, 2, 3, 4, 5] and typed[4] == 4 and typed[1:3] == [1, 2]
    assert len(typed) == typed.size() == 6 and len(raw) == raw.nbytes() == typed.nbytes() == 24
    assert typed.data_ptr() == raw.data_ptr() == x.data_ptr() == x.detach().untyped_storage().data_ptr()
    assert row.clone().untyped_storage().data_ptr() != raw.data_ptr() and typed.untyped().tolist() == raw.tolist()
    assert bytes(raw.tolist()) == x.numpy().tobytes() and typed.dtype is x.dtype and raw.device == x.device
    typed[0] = 7
    assert x[0, 0] == 7 and typed.fill_(2) is typed and x.tolist() == [[2, 2, 2]] * 2
    assert typed.copy_(flow.arange(6.0).storage()) is typed and x.sum() == 15
    assert type(typed) is flow.TypedStorage and type(raw) is flow.UntypedStorage and flow.is_storage(raw)
    assert not flow.is_storage(x) and not isinstance(raw, flow.TypedStorage)
    assert repr(raw) == "UntypedStorage of 24 elements, float32, 24 bytes, cpu:0"
    for wrong in (
        lambda: raw.fill_(1), lambda: raw.__setitem__(0, 1), lambda: typed.resize_(0), lambda: flow.UntypedStorage(0)
    ):  # fmt: skip
        with pytest.raises(DTypeError, match="read-only|cannot be resized, to 0|takes a tensor"):
            wrong()


@pytest.mark.parametrize("name", flow._IN_PLACE)
def test_in_place_functions_are_the_methods(name):
    others = {"clamp_": {"max": 0.5}, "clip_": {"min": 0.1}, "clamp_max_": {"max": 0.5}, "clamp_min_": {"min": 0.5}}
    tensors = {"addmv_": ["matrix", "vector"], "resize_as_": ["vector"], "xlogy_": ["x"], "ldexp_": ["x"]}
    known = {"x": flow.tensor([0.25, 0.75]), "matrix": flow.eye(2), "vector": flow.ones(2)}
    args = [known[key] for key in tensors.get(name, [])]
    options = others.get(name, {})
    here, there = [known["x"].clone() + (1 if name == "acosh_" else 0) for _ in range(2)]
    if name in ("fill_", "gcd_", "lcm_", "index_put_"):
        here, there = here.mul(8).long(), there.mul(8).long()
        args = [(flow.tensor([1]),), flow.tensor(5)] if name == "index_put_" else [flow.tensor(4)]
    assert getattr(flow, name)(here, *args, **options) is here
    assert flow.equal(here, getattr(there, name)(*args, **options)) or bool(here.isnan().any())
    with pytest.raises(DTypeError, match="input must be a tensor, got list"):
        getattr(flow, name)([1.0])
    assert name in dir(flow) and pickle.loads(pickle.dumps(getattr(flow, name))) is getattr(flow, name)


def test_numpy_names_of_arguments():
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.unsqueeze(axis=0).shape == flow.unsqueeze(x, axis=0).shape == (1, 2, 2)
    assert flow.squeeze(x[:1], axis=0).shape == x[:1].squeeze(axis=0).shape == (2,)
    assert flow.amax(a=x, axis=1, keepdims=True).tolist() == [[2], [4]] and flow.exp(a=x).equal(x.exp())
    assert flow.sub(x1=x, x2=x).sum() == 0 and flow.mul(x, x2=2).sum() == 20 and flow.tril(x=x).sum() == 8
    assert (
        flow.repeat_interleave(x, 2, axis=0).shape == (4, 2) and flow.take_along_dim(x, x.long() * 0, axis=1).sum() == 8
    )
    assert flow.tensordot(x, x, axes=([0, 1], [0, 1])) == 30
    with pytest.raises(CallError, match="has no argument 'axis'"):
        flow.tril(x, axis=0)


def test_end_of_the_tape_has_its_variable():
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    ((node, index),) = y.grad_fn.next_functions
    assert node.variable is x and index == 0 and not hasattr(y.grad_fn, "variable")
    assert node.name() == "AccumulateGrad" and repr(node) == "<AccumulateGrad>"
    assert flow.cat([x, x], 0).grad_fn._saved_dim == 0 and not hasattr(y.grad_fn, "_saved_dim")


def test_dense_tensors_as_one_vector():
    utilities = importlib.import_module("minflow._utils")
    parts = [flow.tensor([[1.0, 2.0]]), flow.tensor(3.0), flow.tensor([4.0, 5.0])]
    flat = utilities._flatten_dense_tensors(parts)
    assert flat.tolist() == [1, 2, 3, 4, 5]
    back = utilities._unflatten_dense_tensors(flat * 2, parts)
    assert [x.tolist() for x in back] == [[[2, 4]], 6, [8, 10]]


def test_proxies_of_oneflow_are_the_things_themselves():
    x, layer = flow.ones(2), nn.Linear(2, 2)
    assert x.to(flow.Tensor) is x and layer.to(nn.Module) is layer and layer.weight.to(flow.Tensor) is layer.weight


X = flow.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
TENSORS = {  # functions whose result is a tensor, as in PyTorch
    "clip": lambda x: np.clip(x, 0, 1), "round": lambda x: np.round(x, 1), "exp": np.exp, "cbrt": np.cbrt,
    "sum": lambda x: np.sum(x, axis=1), "mean": lambda x: np.mean(x, axis=0, keepdims=True), "std": np.std,
    "var": lambda x: np.var(x, axis=1, ddof=1), "max": np.max, "prod": np.prod, "any": lambda x: np.any(x > 2),
    "argmax": np.argmax, "argsort": lambda x: np.argsort(x, axis=1), "cumsum": lambda x: np.cumsum(x, axis=1),
    "squeeze": lambda x: np.squeeze(x[:1]), "where": lambda x: np.maximum(x, 0), "hypot": lambda x: np.hypot(x, 1),
    "reshape": lambda x: np.reshape(x, (3, 2)), "transpose": np.transpose, "repeat": lambda x: np.repeat(x, 2),
    "take": lambda x: np.take(x, [0, 4]), "swapaxes": lambda x: np.swapaxes(x, 0, 1), "left": lambda x: np.ones(3) * x,
    "divmod": lambda x: np.divmod(x, 2)[0], "reduce": np.add.reduce, "inv": lambda x: np.linalg.inv(x @ x.T),
}  # fmt: skip
GRADIENTS = "clip round exp sum mean std var max prod cumsum squeeze where hypot left swapaxes".split()
IN_GRAPHS = [*GRADIENTS, "argmax", "any", "argsort"]


@pytest.mark.parametrize("name", TENSORS)
def test_numpy_functions_return_tensors(name):
    function = TENSORS[name]
    found, wanted = function(X), function(X.numpy())
    assert isinstance(found, flow.Tensor) and np.allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
    leaf = X.clone().requires_grad_()
    with_grad = function(leaf)
    assert getattr(with_grad, "requires_grad", False) is (name in GRADIENTS)  # an array, if no gradient can flow


@pytest.mark.parametrize("name", IN_GRAPHS)
def test_numpy_functions_in_graphs(name):
    class Apply(nn.Graph):
        def __init__(self):
            super().__init__()
            self.function = name

        def build(self, x):
            return TENSORS[self.function](x)

    assert Apply()(X).tolist() == TENSORS[name](X).tolist()


@pytest.mark.parametrize("function", [
    lambda x: np.concatenate([x, x]), lambda x: np.stack([x, x]), lambda x: np.where(x > 0, x, 0), np.sort, np.unique,
    lambda x: np.add(x, 1, out=np.zeros((2, 3))),
])  # fmt: skip
def test_other_numpy_functions_return_arrays(function):
    assert type(function(X)) is np.ndarray and np.array_equal(function(X), function(X.numpy()))


def test_zero_d_tensors_count_as_vectors_of_one_element():
    x, zero, two = flow.tensor(3.0, requires_grad=True), flow.tensor(0), flow.tensor(2.0)
    for found, wanted in [
        (x.gather(0, zero), 3), (x.index_select(0, zero.reshape(1)), 3), (x.index_add(0, zero, two), 5),
        (x.scatter(0, zero, two), 2), (x.scatter_add(0, zero, two), 5), (x.scatter_reduce(0, zero, two, "prod"), 6),
        (x.movedim(0, 0), 3), (x.index_copy(0, zero, two), 2),
    ]:  # fmt: skip
        assert found.shape == () and found.item() == wanted and found.requires_grad
    assert x.gather(0, flow.tensor([0, 0])).tolist() == [3, 3]


def test_nothing_has_the_logsumexp_and_the_median_of_pytorch():
    assert flow.zeros(0).logsumexp(0).item() == -np.inf and flow.zeros(0, 3).logsumexp(0).tolist() == [-np.inf] * 3
    assert flow.zeros(0, 3).logsumexp(1).shape == (0,) and bool(flow.zeros(0).median().isnan())
    assert flow.zeros(0, dtype=flow.int64).median().item() == -(2**63)
    assert flow.zeros(0, dtype=flow.int64).floor_divide(0).shape == (0,) and flow.zeros(0).split(0)[0].shape == (0,)
    assert flow.linalg.matrix_norm(flow.zeros(0, 3), 2).item() == flow.linalg.cond(flow.zeros(0, 0)).item() == 0


def test_tensordot_repeats_axes_of_size_1():
    a, b = flow.rand(1, 3, requires_grad=True), flow.rand(2, 4, requires_grad=True)
    found = flow.tensordot(a, b, dims=([0], [0]))
    assert flow.allclose(found, a.T @ b.sum(0, keepdim=True)) and found.requires_grad
    assert flow.allclose(flow.tensordot(b, a, dims=([0], [0])), b.sum(0, keepdim=True).T @ a)


def test_old_orders_of_arguments():
    x, m = flow.ones(2, 2), flow.arange(4.0).reshape(2, 2)
    assert x.clone().add_(-0.5, m).equal(x - m / 2) and flow.sub(x, 2, m).equal(x - 2 * m)
    assert x.clone().addcmul_(0.5, m, m).equal(x + m * m / 2) and x.addcdiv(3, m, x).equal(x + 3 * m)
    assert flow.addmm(0.5, x, 2, m, m).equal(x / 2 + 2 * m @ m) and x.addmm(0.5, m, m).equal(x / 2 + m @ m)
    assert x[:1].squeeze(0, 1).shape == (2,) and flow.ones(2).broadcast_to(3, 2).shape == (3, 2)
    assert m.count_nonzero(0, 1).item() == 3 and flow.var_mean(m, False)[0].item() == 1.25
    for wrong in (
        lambda: x.add_(1, m, m),
        lambda: x.addcmul_(1, 2, m, m),
        lambda: x.mul(1, m),
        lambda: x.squeeze(0, "1"),
    ):
        with pytest.raises(TypeError, match="positional argument"):
            wrong()


def test_sign_of_truth_values_in_every_mode():
    class Sign(nn.Graph):
        def build(self, x):
            return x.sign()

    x = flow.tensor([True, False])
    assert x.sign().tolist() == Sign()(x).tolist() == [True, False] and flow.sgn(x).dtype is flow.bool
    assert flow.tensor([1.0, 2.0]).half().norm(dtype=flow.float64).dtype is flow.float64


def test_functions_with_the_arguments_of_kernels():
    x, weight, bias = flow.rand(4, 3), flow.rand(3), flow.rand(3)
    mean, var = flow.zeros(3), flow.ones(3)
    assert flow.equal(flow.layer_norm(x, [3], weight, bias), nn.functional.layer_norm(x, (3,), weight, bias))
    found = flow.batch_norm(x, weight, bias, mean, var, False, 0.1, 1e-5, False)
    assert flow.equal(found, nn.functional.batch_norm(x, mean, var, weight, bias))
    image = x.reshape(2, 2, 3)
    found = flow.instance_norm(image, None, None, None, None, True, 0.1, 1e-5, False)
    assert flow.equal(found, nn.functional.instance_norm(image))
    assert flow.embedding(x, flow.tensor([2, 0])).equal(x[[2, 0]]) and flow.constant_pad_nd(x, (1, 0), 7)[0, 0] == 7
    assert flow.vmap(lambda row: row.sum())(x).allclose(x.sum(1)) and flow.get_device(x) == -1
    array = np.zeros(2, np.float32)
    flow.asarray(array).fill_(1), flow.asarray(array, copy=True).fill_(2)
    assert array.tolist() == [1, 1] and flow.asarray([1.0], requires_grad=True).requires_grad
    assert flow.scalar_tensor(2).dtype is flow.float32 and flow.scalar_tensor(2, dtype=flow.int64).shape == ()
    assert [flow.typename(it) for it in (x, 3, nn.Linear)] == [
        "minflow.FloatTensor",
        "int",
        "minflow.nn.modules.linear.Linear",
    ]
    with pytest.raises(CallError, match="flow.layer_norm also needs normalized_shape"):
        flow.layer_norm(x)


def test_dtypes_that_no_tensor_has_can_be_compared():
    x = flow.ones(2)
    others = [flow.complex32, flow.chalf, flow.qint8, flow.quint8, flow.qint32, flow.float8_e4m3fn, flow.float8_e5m2]
    assert [it.is_floating_point for it in others] == [False] * 5 + [True] * 2 and others[0].is_complex
    assert [it.itemsize for it in others] == [4, 4, 1, 1, 4, 1, 1] and [it.is_signed for it in others].count(False) == 1
    limits = flow.finfo(flow.float8_e4m3fn)
    assert (limits.max, limits.min, limits.eps, limits.tiny, limits.bits) == (448.0, -448.0, 0.125, 0.015625, 8)
    assert x.dtype not in others and repr(flow.chalf) == "minflow.complex32"
    for dtype in others:
        with pytest.raises(DTypeError, match=f"no dtype {dtype.name}"):
            x.to(dtype)
        with pytest.raises(DTypeError, match=f"no dtype {dtype.name}"):
            flow.zeros(2, dtype=dtype)
