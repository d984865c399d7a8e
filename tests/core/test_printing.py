"""Printed tensors: PyTorch's format with our names."""

import pytest

import minflow as flow
from tests.measuring import peak


def test_texts():
    assert repr(flow.tensor([[1.0, 1.0]])) == "tensor([[1., 1.]], dtype=minflow.float32)"
    assert repr(flow.tensor([1, 20])) == "tensor([ 1, 20], dtype=minflow.int64)"
    assert repr(flow.tensor(True)) == "tensor(True, dtype=minflow.bool)"
    assert repr(flow.zeros(2, 0)) == "tensor([], size=(2, 0), dtype=minflow.float32)"
    assert repr(flow.tensor([])) == "tensor([], dtype=minflow.float32)"
    x = flow.tensor([1.5], requires_grad=True)
    assert repr(x) == "tensor([1.5000], dtype=minflow.float32, requires_grad=True)"
    assert repr(x * 2) == "tensor([3.], dtype=minflow.float32, grad_fn=<MulBackward>)"
    assert repr(flow.nn.Parameter(flow.ones(1))) == (
        "Parameter containing:\ntensor([1.], dtype=minflow.float32, requires_grad=True)"
    )


def test_many_elements():
    assert repr(flow.arange(2000)) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999], dtype=minflow.int64)"
    lines = repr(flow.zeros(40, 40)).splitlines()
    assert len(lines) == 7 and lines[3].strip() == "...,"


def test_formats():
    loss = flow.tensor(2.5)
    assert f"{loss:>7f} {loss} {loss:.1f} {flow.tensor([1.5]):.2f}" == "2.500000 2.5 2.5 1.50"
    assert f"{flow.tensor([1, 2])}" == "tensor([1, 2], dtype=minflow.int64)"


def test_size():
    size = flow.ones(2, 3).shape
    assert repr(size) == "minflow.Size([2, 3])" and size == (2, 3) and size.numel() == 6
    assert isinstance(size[:1], flow.Size) and isinstance((1,) + size, flow.Size)  # noqa: RUF005
    assert size + (1,) == (2, 3, 1)  # noqa: RUF005


@pytest.mark.parametrize("shape", [(10**9,), (3000, 3000), (7,) * 8, (2,) * 28, (6,) * 9, (1, 10**6, 1, 1)])
def test_repr_reads_few_elements(shape):
    x, texts = flow.ones(1).expand(shape), []
    assert peak(lambda: texts.append(repr(x)), below=1_000_000) < 1_000_000
    assert "..." in texts[0] and len(texts[0]) < 200_000
