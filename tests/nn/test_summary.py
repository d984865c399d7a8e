"""Counts of `summary`: multiply-accumulates against values computed by hand, and against PyTorch's counter."""

import re

import pytest

import minflow as flow
from minflow import nn
from minflow.platforms import compiled as compiled_kernels


class Attention(nn.Module):
    """Attention made of functions: no module computes the scores and their sum."""

    def __init__(self, size, heads):
        super().__init__()
        self.q, self.k, self.v, self.out = [nn.Linear(size, size) for _ in range(4)]
        self.heads = heads

    def forward(self, x):
        n, t, size = x.shape
        q, k, v = [f(x).reshape(n, t, self.heads, -1).permute(0, 2, 1, 3) for f in (self.q, self.k, self.v)]
        weights = flow.softmax(q @ k.transpose(-2, -1) / (size // self.heads) ** 0.5, -1)
        return self.out(flow.einsum("bhqk,bhkd->bqhd", weights, v).reshape(n, t, size))


def macs(model, shape):
    return flow.summary(model, shape).record.macs


def test_lenet_layer_by_layer():
    shapes = (50 * 6 * 28 * 28 * 25, 50 * 16 * 10 * 10 * 6 * 25, 50 * 400 * 120, 50 * 120 * 84, 50 * 84 * 10)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))  # fmt: skip
    found = flow.summary(model, (50, 1, 28, 28))
    assert tuple(child.macs for child in found.record.children if child.macs) == shapes
    assert found.record.macs == sum(shapes) == 20_826_000
    assert re.search(r"3: Conv2d.*2,416 +2,416 +12,000,000\n", repr(found))
    assert "input float32[50, 1, 28, 28]: 20,826,000 multiply-accumulates (MACs)" in repr(found)
    assert ">12,000,000<" in found._repr_mimebundle_()["text/html"]


def test_attention_counts_functional_operations():
    n, t, size, heads = 2, 5, 16, 4
    record = flow.summary(Attention(size, heads), (n, t, size)).record
    assert [child.macs for child in record.children] == [n * t * size * size] * 4
    assert record.macs == 4 * n * t * size * size + 2 * n * heads * t * t * (size // heads)


def test_mobilenet_matches_the_300_million_of_its_paper():
    assert macs(flow.vision.models.mobilenet_v2(), (1, 3, 224, 224)) == 300_774_272


class Products(nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program

    def forward(self, x):
        return self.program(x)


@pytest.mark.parametrize("program, wanted", [
    (lambda x: x @ flow.ones(7, 3), 4 * 5 * 7 * 3), (lambda x: x @ flow.ones(7), 4 * 5 * 7),
    (lambda x: flow.bmm(x, flow.ones(4, 7, 2)), 4 * 5 * 7 * 2),
    (lambda x: x.transpose(1, 2)[:, ::2] @ flow.ones(5, 2), 4 * 4 * 5 * 2),
    (lambda x: flow.einsum("bij,kj->bik", x, flow.ones(6, 7)), 4 * 5 * 7 * 6),
    (lambda x: nn.functional.linear(x, flow.ones(3, 7)), 4 * 5 * 7 * 3),
    (lambda x: x.double() @ flow.ones(7, 3), 4 * 5 * 7 * 3),
    (lambda x: nn.functional.conv2d(x, flow.ones(3, 4, 2, 2)), 3 * 4 * 6 * 4 * 4),
    (lambda x: flow.core.ops.conv.conv2d_input_grad(flow.ones(2, 3, 4, 4), flow.ones(3, 5, 2, 2), shape=(2, 5, 8, 8),
                                                    stride=(2, 2), padding=(0, 0), dilation=(1, 1), groups=1),
     2 * 3 * 4 * 4 * 5 * 4),
    (lambda x: (x * 2 + 1).relu().sum(), 0),
])  # fmt: skip
def test_functions_are_counted(program, wanted):
    assert macs(Products(program), (4, 5, 7)) == wanted


def test_reused_layer_counts_operations_twice_and_parameters_once():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)

        def forward(self, x):
            return self.fc(self.fc(x))

    record = flow.summary(Twice(), (3, 6)).record
    assert record.macs == record.children[0].macs == 2 * 3 * 6 * 6 and record.params == 42


def test_result_bytes():
    """A product and a sum of 3 x 8, and its relu; a reshape is a view."""
    record = flow.summary(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Flatten(0)), (3, 4)).record
    assert record.written == 3 * (3 * 8 * 4) and record.children[0].written == 2 * (3 * 8 * 4)


@pytest.mark.parametrize("compiled", [False, True])
def test_composite_op_counts_its_parts(compiled, kernels_of_numpy):
    """The same with a kernel for the op, which computes the five results of the size of x in one."""
    if compiled:
        pytest.importorskip("numba")
        compiled_kernels.use()
    record = flow.summary(nn.Sequential(nn.LayerNorm(8)), (16, 8)).record
    means_and_roots = 4 * 16 * 4  # mean, variance, + eps, rsqrt
    assert record.macs == 0 and record.written == 5 * 16 * 8 * 4 + means_and_roots


@pytest.mark.parametrize("name", ["create_summary_writer", "scalar", "histogram"])
def test_oneflows_writers_are_refused_with_what_to_use(name):
    with pytest.raises(flow.MissingNameError, match=f"flow.summary has no {name}") as caught:
        getattr(flow.summary, name)("folder")
    assert "flow.watch" in caught.value.hint
