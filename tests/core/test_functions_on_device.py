"""Check functions that compute constants on the host: their results are on the device, with the bits of the CPU.

The device is the stand-in of `strict_backend.py`. No call copies elements to the host.
"""

import numpy as np
import pytest

import minflow as flow
import minflow.nn.functional as F
from minflow.core.backend import to_host
from tests.strict_backend import StrictArray, counted

A = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")
MADE = {
    "tensor": lambda d: flow.tensor([[1.0, 2.0]], device=d),
    "tensor of an array": lambda d: flow.tensor(A, device=d),
    "as_tensor": lambda d: flow.as_tensor(A, device=d),
    "zeros": lambda d: flow.zeros(2, 3, device=d),
    "ones": lambda d: flow.ones(2, 3, device=d),
    "full": lambda d: flow.full((2, 3), 1.5, device=d),
    "full of one element": lambda d: flow.full((), 1.5, device=d),
    "zeros_like": lambda d: flow.zeros_like(flow.ones(2, device=d)),
    "full_like": lambda d: flow.full_like(flow.ones(2), 3.0, device=d),
    "eye": lambda d: flow.eye(2, 3, device=d),
    "arange": lambda d: flow.arange(1, 7, 2, device=d),
    "arange of floats": lambda d: flow.arange(0.0, 1.0, 0.1, device=d),
    "linspace": lambda d: flow.linspace(0, 1, 7, device=d),
    "linspace of integers": lambda d: flow.linspace(0, 9, 4, dtype=flow.int32, device=d),
    "logspace": lambda d: flow.logspace(0, 2, 5, device=d),
    "hann_window": lambda d: flow.hann_window(8, device=d),
    "hamming_window": lambda d: flow.hamming_window(8, periodic=False, device=d),
    "blackman_window": lambda d: flow.blackman_window(8, device=d),
    "bartlett_window": lambda d: flow.bartlett_window(8, device=d),
    "kaiser_window": lambda d: flow.kaiser_window(8, device=d),
    "tril_indices": lambda d: flow.tril_indices(3, 4, -1, device=d),
    "triu_indices": lambda d: flow.triu_indices(3, 2, 1, dtype=flow.int32, device=d),
    "rfftfreq": lambda d: flow.fft.rfftfreq(8, device=d),
    "new_tensor": lambda d: flow.ones(2, device=d).new_tensor([1, 2]),
    "new_full": lambda d: flow.ones(2, device=d).new_full((2,), np.float32(2)),
    "FloatTensor of data": lambda d: typed(d, "FloatTensor")([1.5, 2.0]),
    "FloatTensor of a tensor": lambda d: typed(d, "FloatTensor")(flow.ones(2)),
    "DoubleTensor of an array": lambda d: typed(d, "DoubleTensor")(A),
    "new_zeros": lambda d: flow.ones(2, device=d).new_zeros(3),
    "rand": lambda d: flow.rand(5, device=d, generator=flow.Generator(3)),
    "rand_like": lambda d: flow.rand_like(flow.ones(3, device=d), generator=flow.Generator(3)),
    "randint_like": lambda d: flow.randint_like(flow.ones(3, device=d), 9, generator=flow.Generator(3)),
    "normal": lambda d: flow.normal(flow.ones(3, device=d), 2.0, generator=flow.Generator(3)),
    "randperm": lambda d: flow.randperm(5, device=d, generator=flow.Generator(3)),
}
COMPUTED = {
    "index of a list": lambda x: x[[1, 0]],
    "index of an array": lambda x: x[:, np.array([2, 0])],
    "indices of two axes": lambda x: x[[0, 1], :, [3, 2]],
    "x[list] = number": lambda x: x.clone().index_fill_(1, flow.tensor([0, 2]), 1.0),
    "x[list] = array": lambda x: assigned(x, [1, 0], A),
    "x[lists] = number": lambda x: assigned(x, ([1, 0], slice(None), [2, 0]), 3.0),
    "x[mask] = number": lambda x: assigned(x, A > 0, 0.0),
    "x[mask] = scalar of numpy": lambda x: assigned(x, x > 0, np.float32(2)),
    "combinations": lambda x: flow.combinations(x[0, 0, 0], 2),
    "cartesian_prod": lambda x: flow.cartesian_prod(x[0, 0, 0], x[0, 0, 1]),
    "repeat_interleave": lambda x: x.repeat_interleave(3, dim=1),
    "quantile": lambda x: x.quantile(0.3),
    "quantiles": lambda x: x[0, 0].quantile([0.25, 0.5], dim=1),
    "fill_diagonal_": lambda x: x[0, 0].clone().fill_diagonal_(7.0),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x),
    "masked_fill": lambda x: x.masked_fill(x > 0, 2.0),
    "index_copy": lambda x: x.index_copy(0, flow.tensor([1, 0]), x),
    "put_": lambda x: flow.put(x, flow.tensor([3, 4]), x[0, 0, 0, :2]),
    "as_strided": lambda x: flow.as_strided(x, (2, 2), (3, 1), 1),
    "unfold": lambda x: x.unfold(3, 3, 1),
    "vander": lambda x: flow.vander(x[0, 0, 0], 3),
    "pad, reflected": lambda x: F.pad(x, (2, 1, 0, 1), mode="reflect"),
    "pad, replicated": lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"),
    "pad, circular": lambda x: F.pad(x, (2, 1, 1, 1), mode="circular"),
    "interpolate, nearest": lambda x: F.interpolate(x, size=(7, 3)),
    "interpolate, bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "interpolate, bicubic": lambda x: F.interpolate(x, size=(3, 3), mode="bicubic", antialias=True),
    "grid": lambda x: F.affine_grid(x[0, :2, :2, :3].contiguous(), (2, 1, 3, 4)),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg_pool2d, without padding": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (3, 2)),
    "pdist": lambda x: F.pdist(x[0, 0]),
    "sum": lambda x: x.sum(1),
    "matmul": lambda x: x[0, 0] @ x[0, 0].T,
    "trace": lambda x: x[0, 0].trace(),
    "diagonal": lambda x: x.diagonal(0, 2, 3),
    "nansum": lambda x: x.nansum(),
    "one_hot": lambda x: flow.one_hot((x[0, 0] > 0).long(), 3, 0.9, 0.1),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "embedding_bag": lambda x: F.embedding_bag(places(x), x[0, 0], mode="mean"),
    "embedding_bag with offsets": lambda x: F.embedding_bag(places(x)[0], x[0, 0], offsets=places(x)[1], mode="sum"),
    "pad_sequence": lambda x: flow.nn.utils.rnn.pad_sequence([x[0, 0], x[0, 0, :2]], padding_value=1.0),
    "Categorical": lambda x: flow.distributions.Categorical(logits=x[0, 0]).enumerate_support(),
    "OneHotCategorical": lambda x: flow.distributions.OneHotCategorical(logits=x[0, 0]).enumerate_support(),
    "Bernoulli": lambda x: flow.distributions.Bernoulli(logits=x[0, 0]).enumerate_support(),
    "ufunc of numpy": lambda x: np.exp(x),
    "scalar of numpy": lambda x: np.float32(2) * x,
    "gradient of as_strided": lambda x: gradient(lambda y: flow.as_strided(y, (2, 2), (3, 1), 1), x),
    "gradient of unfold": lambda x: gradient(lambda y: y.unfold(3, 3, 1), x),
    "gradient of trace": lambda x: gradient(lambda y: y[0, 0].trace(), x),
}


RANDOM = {
    "dropout2d": lambda x: seeded(F.dropout2d, x),
    "feature_alpha_dropout": lambda x: seeded(F.feature_alpha_dropout, x, 0.5, True),
}
CLOSE = {  # those for which NumPy on the CPU has another kernel
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x),
    "group_norm": lambda x: F.group_norm(x, 3),
}


ALL = COMPUTED | RANDOM | CLOSE


class Program(flow.nn.Graph):
    """A graph of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def build(self, x):
        return self.function(x)


def seeded(function, x, *args):
    flow.manual_seed(3)
    return function(x, *args)


def places(x):
    return flow.tensor([[0, 2, 1], [0, 1, 3]], device=x.device)


def typed(device, name):
    return getattr(flow if device == "cpu" else flow.cuda, name)


def assigned(x, index, value):
    y = x.clone()
    y[index] = value
    return y


def gradient(function, x):
    y = x.clone().requires_grad_()
    out = function(y)
    return flow.autograd.grad(out, y, flow.ones_like(out))[0]


def same(got, want, rtol=0.0):
    assert got.device.type == "cuda" and isinstance(got.array, StrictArray)
    assert got.dtype is want.dtype and tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(to_host(got.array), want.array, rtol, atol=rtol)


@pytest.mark.parametrize("name", MADE)
def test_tensors_are_made_on_the_named_device(name, cuda):
    want = MADE[name]("cpu")
    with counted() as copies:
        got = MADE[name](cuda)
    same(got, want)
    assert not copies


@pytest.mark.parametrize("name", ALL)
def test_functions_compute_on_the_device_of_their_input(name, cuda):
    function = ALL[name]
    want = function(flow.tensor(A))
    x = flow.tensor(A, device=cuda)
    with counted() as copies:
        got = function(x)
    same(got, want, 1e-6 if name in CLOSE else 0.0)
    assert not copies


@pytest.mark.parametrize("name", [*COMPUTED, *CLOSE])
def test_graphs_have_their_constants_on_the_device(name, cuda):
    x, graph = flow.tensor(A, device=cuda), Program(ALL[name])
    graph(x)
    with counted() as copies:
        got = graph(x)
    same(got, ALL[name](flow.tensor(A)), 1e-6)
    assert not copies


READ = {  # what a program reads, and the number of copies to the host
    "repr": (repr, 1),
    "apply_": (lambda x: x.clone().apply_(lambda element: 2 * element), 1),
    "tensor of tensors": (lambda x: flow.tensor([x[0, 0, 0, 0], x[0, 0, 0, 1]]), 2),
    "state of a generator": (lambda x: flow.Generator(3).set_state(flow.tensor([5, 6], device=x.device)).counter, 1),
}


@pytest.mark.parametrize("name", READ)
def test_reading_copies_once(name, cuda):
    read, count = READ[name]
    want = read(flow.tensor(A))
    x = flow.tensor(A, device=cuda)
    with counted() as copies:
        got = read(x)
    assert sum(copies.values()) == count
    text = str(got.to("cpu") if isinstance(got, flow.Tensor) else got)
    assert text.replace("device='cuda:0', ", "") == str(want) if name != "repr" else "device='cuda:0'" in text


def test_gradcheck_on_a_device(cuda):
    x = flow.tensor(A[0, 0], dtype=flow.float64, device=cuda, requires_grad=True)
    assert flow.autograd.gradcheck(lambda y: (y * y).sum(1), (x,))
    with pytest.raises(flow.GradError, match=r"d output 0\[0\] / d input 0\[0, 0\]"):
        flow.autograd.gradcheck(lambda y: y.detach() * y, (x,))
