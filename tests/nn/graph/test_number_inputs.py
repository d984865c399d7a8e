"""A 0-d tensor in place of a number, in a graph: the bits of eager code, or an error that names the argument.

As in PyTorch, no gradient reaches a tensor that takes the place of a Python number.
"""

import pytest

import minflow as flow
import minflow.nn.functional as F
from minflow import nn
from minflow.core.base.errors import TraceError

X = flow.arange(6.0).reshape(2, 3) / 2 - 1
POSITIVE = X.abs() + 1
FIRST, LABELS = flow.tensor([0]), flow.tensor([0, 1])

WORKS = {
    "full": lambda x, v: flow.full((3,), v),
    "full of a dtype": lambda x, v: flow.full((2, 3), v, dtype=flow.int64),
    "full of an integer": lambda x, v: flow.full((2,), v.long()),
    "full of a bool": lambda x, v: flow.full((2,), v > 0),
    "full_like": lambda x, v: flow.full_like(x, v),
    "full_like of integers": lambda x, v: flow.full_like(x.long(), v),
    "new_full": lambda x, v: x.new_full((2,), v),
    "tensor": lambda x, v: flow.tensor([v, v]),
    "tensor of both": lambda x, v: flow.tensor([[v, 1.0], [2, v]]),
    "tensor of integers": lambda x, v: flow.tensor([v.long(), 3]),
    "tensor of a dtype": lambda x, v: flow.tensor([v, 1], dtype=flow.float64),
    "as_tensor": lambda x, v: flow.as_tensor([v, v]),
    "new_tensor": lambda x, v: x.new_tensor([v, v]),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "pad and crop": lambda x, v: F.pad(x, (1, -1, 0, 2), value=v),
    "pad of integers": lambda x, v: F.pad(x.long(), (1, 1), value=v),
    "add": lambda x, v: flow.add(x, x, alpha=v),
    "add of integers": lambda x, v: flow.add(x, x.long(), alpha=v.long()),
    "add_": lambda x, v: x.clone().add_(x, alpha=v),
    "sub": lambda x, v: x.sub(x + 1, alpha=v),
    "sub_": lambda x, v: x.clone().sub_(x, alpha=v),
    "rsub": lambda x, v: flow.rsub(x, x + 1, alpha=v),
    "addmm": lambda x, v: flow.addmm(x[:, :2], x, x.T, beta=v, alpha=v / 3),
    "addmv": lambda x, v: flow.addmv(x[:, 0], x, x[0], beta=v, alpha=v),
    "addbmm": lambda x, v: flow.addbmm(x[:, :2], x[None], x.T[None], beta=v, alpha=v),
    "baddbmm": lambda x, v: flow.baddbmm(x[None, :, :2], x[None], x.T[None], beta=v, alpha=v),
    "addr": lambda x, v: flow.addr(x, x[:, 0], x[0], beta=v, alpha=v),
    "addcmul": lambda x, v: flow.addcmul(x, x, x, value=v),
    "addcdiv": lambda x, v: flow.addcdiv(x, x, x + 5, value=v),
    "index_add": lambda x, v: flow.index_add(x, 0, FIRST, x[:1], alpha=v),
    "index_fill": lambda x, v: x.index_fill(0, FIRST, v),
    "linspace": lambda x, v: flow.linspace(0, v, 5),
    "linspace from": lambda x, v: flow.linspace(v, 4.0, 7),
    "linspace of one": lambda x, v: flow.linspace(v, v + 1, 1),
    "logspace": lambda x, v: flow.logspace(0, v, 5),
    "clamp": lambda x, v: x.clamp(min=-v, max=v / 2),
    "clamp_": lambda x, v: x.clone().clamp_(max=v / 2),
    "masked_fill": lambda x, v: x.masked_fill(x > 0, v),
    "fill_": lambda x, v: x.clone().fill_(v),
    "lerp": lambda x, v: flow.lerp(x, x + 1, v),
    "where": lambda x, v: flow.where(x > 0, v, 0.0),
    "threshold": lambda x, v: F.threshold(x, v / 4, v),
    "leaky_relu": lambda x, v: F.leaky_relu(x, v),
    "elu": lambda x, v: F.elu(x, v),
    "celu": lambda x, v: F.celu(x, v),
    "softplus": lambda x, v: F.softplus(x, v),
    "hardtanh": lambda x, v: F.hardtanh(x, -1.0, v / 4),
    "hardshrink": lambda x, v: F.hardshrink(x, v / 4),
    "softshrink": lambda x, v: F.softshrink(x, v / 4),
    "huber_loss": lambda x, v: F.huber_loss(x, 2 * x, delta=v / 2),
    "smooth_l1_loss": lambda x, v: F.smooth_l1_loss(x, 2 * x, beta=v / 2),
    "margin_ranking_loss": lambda x, v: F.margin_ranking_loss(x, 2 * x, x.sign(), margin=v),
    "gumbel_softmax": lambda x, v: F.gumbel_softmax(x, tau=v),
    "attention": lambda x, v: F.scaled_dot_product_attention(x[None], x[None], x[None], scale=v),
    "pow": lambda x, v: POSITIVE.pow(v) + 2**v * x,
    "dropout": lambda x, v: F.dropout(x, p=v / 4),
    "dropout of all": lambda x, v: F.dropout(x, p=v / v),
    "dropout in evaluation": lambda x, v: F.dropout(x, p=v / 4, training=False) + v,
    "dropout2d": lambda x, v: F.dropout2d(x[None, :, None], p=v / 4),
    "dropout of attention": lambda x, v: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=v / 4),
    "cross_entropy": lambda x, v: F.cross_entropy(x, LABELS, label_smoothing=v / 4),
    "cross_entropy with weights": lambda x, v: F.cross_entropy(x, LABELS, POSITIVE[0], label_smoothing=v / 4),
    "cross_entropy of probabilities": lambda x, v: F.cross_entropy(x, POSITIVE / 9, label_smoothing=v / 4),
    "triplet_margin_loss": lambda x, v: F.triplet_margin_loss(x, x + 1, x - 1, margin=v),
    "bernoulli": lambda x, v: flow.bernoulli(flow.ones_like(x) * v / 4),
}  # fmt: skip


def graph_of(function):
    class Numbers(nn.Graph):
        def build(self, x, v):
            return function(x, v)

    graph = Numbers()
    graph.config.exact(True)
    return graph


@pytest.mark.parametrize("name", WORKS)
def test_graph_gives_the_bits_of_eager_code(name):
    graph = graph_of(WORKS[name])
    for number in (2.0, 0.7, 3.0):
        v = flow.tensor(number)
        flow.manual_seed(1)
        wanted = WORKS[name](X.clone(), v)
        flow.manual_seed(1)
        found = graph(X.clone(), v)
        assert found.dtype is wanted.dtype and found.shape == wanted.shape
        if name == "attention":  # its scale is a number of a kernel
            assert flow.allclose(found, wanted, rtol=1e-6)
        else:
            assert found.numpy().tobytes() == wanted.numpy().tobytes()
    assert len(graph._history) == 1, "one plan for all numbers"


GRADIENTS = {
    "add": lambda x, v: flow.add(x, x, alpha=v),
    "full": lambda x, v: x * flow.full((3,), v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v) * 2,
    "addmm": lambda x, v: flow.addmm(x[:, :2], x, x.T, beta=v, alpha=v),
    "elu": lambda x, v: F.elu(x, v),
    "tensor": lambda x, v: x * flow.tensor([v, v, 1.0]),
    "clamp": lambda x, v: x.clamp(min=v),
    "where": lambda x, v: flow.where(x > 0, v, x),
    "masked_fill": lambda x, v: x.masked_fill(x > 0, v),
    "lerp": lambda x, v: flow.lerp(x, x * 2, v),
}


class Gradients(nn.Graph):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.config.exact(True)

    def build(self, x, v):
        x, v = x * 1, v * 1
        x.requires_grad_(), v.requires_grad_()
        return flow.autograd.grad(self.function(x, v).square().sum(), (x, v), allow_unused=True)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_eager_code(name):
    x, v = X.clone().requires_grad_(), flow.tensor(0.6, requires_grad=True)
    wanted = flow.autograd.grad(GRADIENTS[name](x, v).square().sum(), (x, v), allow_unused=True)
    found = Gradients(GRADIENTS[name])(X, flow.tensor(0.6))
    assert (found[1] is None) == (wanted[1] is None) == (name not in ("clamp", "where", "masked_fill", "lerp"))
    for a, b in zip(found, wanted):
        assert b is None or flow.allclose(a, b, rtol=1e-6)


REFUSED = {
    "arange": (lambda x, v: flow.arange(v), r"arange: end .*flow.arange\(MAX\) < n"),
    "item": (lambda x, v: x * v.item(), r"item\(\) reads .*x \* n"),
    "float": (lambda x, v: x * float(v), r"float\(\) reads .*x \* n"),
    "bool": (lambda x, v: x if v > 0 else -x, r"bool\(\) reads .*flow.where"),
    "a slice": (lambda x, v: x[: v.long()], r"index\(\) reads .*known before the call"),
    "alpha_dropout": (lambda x, v: F.alpha_dropout(x, v, training=True), "alpha_dropout: p must be"),
    "group_norm": (lambda x, v: F.group_norm(x[None], 2, eps=v), "group_norm: eps must be"),
    "normal_": (lambda x, v: x.clone().normal_(0, v), r"normal_: std must be .*randn_like"),
    "uniform_": (lambda x, v: x.clone().uniform_(0, v), r"uniform_: high must be .*rand_like"),
    "nan_to_num": (lambda x, v: flow.nan_to_num(x, nan=v), "nan_to_num: nan must be .*attribute of the graph"),
    "norm": (lambda x, v: flow.norm(x, p=v), "norm: p must be"),
    "cdist": (lambda x, v: flow.cdist(x, x, p=v), "cdist: p must be"),
    "interpolate": (lambda x, v: F.interpolate(x[None], scale_factor=v), "interpolate: scale_factor must be"),
    "topk": (lambda x, v: x.topk(v.long()), "topk: k must be .*known before the call"),
    "sum": (lambda x, v: x.sum(dim=v.long()), "sum: dim must be .*known before the call"),
    "std": (lambda x, v: x.std(correction=v), "std: correction must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_numbers_are_refused_by_name(name):
    function, said = REFUSED[name]
    with pytest.raises(TraceError, match=f"(?s){said}") as caught:
        graph_of(function)(X, flow.tensor(1.0))
    shown = " ".join(caught.value.values.values())
    assert ("float32[]" in shown or "int64[]" in shown or "bool[]" in shown) and caught.value.hint
