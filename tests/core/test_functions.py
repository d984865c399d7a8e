"""Public functions: errors, numpy's argument names, accuracy, graphs."""

import numpy as np
import pytest
from scipy import special

import minflow as flow
from minflow.core.base.errors import DTypeError, OutOfRangeError, ShapeError

X = flow.arange(12.0).reshape(3, 4)


def refused(kind, program, *words: str) -> None:
    """Assert an error of this class at this file's line, with these words in its text (names, values, remedies)."""
    with pytest.raises(kind) as caught:
        program()
    text = str(caught.value)
    for word in (*words, "Try: ", "test_functions.py:"):
        assert word in text, f"{word!r} is not in:\n{text}"


# ---- errors ------------------------------------------------------------------------------------------------------


def test_shapes_that_do_not_multiply():
    x, w = flow.zeros(64, 784), flow.zeros(512, 784)
    refused(ShapeError, lambda: x @ w, "784 (axis 1 of a)", "512 (axis 0 of b)", "float32[64, 784]", "a @ b.T")
    refused(ShapeError, lambda: w.T @ x.T.T, "512 (axis 1 of a)", "64 (axis 0 of b)")
    refused(ShapeError, lambda: flow.zeros(3, 4) @ flow.zeros(3, 5), "4 (axis 1 of a)", "3 (axis 0 of b)", "a.T @ b")
    refused(ShapeError, lambda: flow.zeros(3) @ flow.zeros(4), "3 (axis 0 of a)", "4 (axis 0 of b)")
    refused(ShapeError, lambda: flow.zeros(2, 3, 4) @ flow.zeros(3, 4, 5), "2 (axis 0 of a)", "3 (axis 0 of b)")
    refused(ShapeError, lambda: flow.tensor(2.0) @ x, "a * b")
    refused(ShapeError, lambda: flow.mm(x, flow.zeros(784)), "argument 2", "flow.matmul")
    refused(ShapeError, lambda: flow.bmm(flow.zeros(2, 3, 4), flow.zeros(3, 4, 5)), "2 matrices and 3")
    refused(ShapeError, lambda: flow.einsum("ij,jk->ik", x, w), "'j' is 784", "512", "ij,jk->ik")
    refused(ShapeError, lambda: flow.einsum("ijk->i", x), "3 axes", "2")
    refused(ShapeError, lambda: flow.einsum("ij->ii", x), "'ij->ii'")
    refused(ShapeError, lambda: flow.einsum(x, [0, 52]), "from 0 to 51", "[0, 52]")
    refused(ShapeError, lambda: flow.einsum(x, w), "followed by a list of numbers")


def test_shapes_that_do_not_broadcast():
    refused(ShapeError, lambda: X + flow.zeros(3), "4 (axis 1 of a)", "3 (axis 0 of b)", "b[:, None]")
    refused(ShapeError, lambda: X * flow.zeros(4, 3), "4 (axis 1 of a)", "3 (axis 1 of b)", "b.T")
    refused(ShapeError, lambda: flow.zeros(2, 5) < X, "lt", "5 (axis 1 of a)", "4 (axis 1 of b)")
    refused(ShapeError, lambda: flow.where(X > 0, X, flow.zeros(5)), "where", "5 (axis 0 of b)")


def test_dtypes():
    refused(DTypeError, lambda: flow.tensor([True]) - flow.tensor([False]), "sub", "bool[1]", "logical_xor")
    refused(DTypeError, lambda: -flow.tensor([True]), "neg", "~x")
    refused(DTypeError, lambda: flow.tensor([1, 2]).mean(), "int64", "x.float()")
    refused(DTypeError, lambda: flow.tensor([1, 2]).var(), "int64", ".float()")
    refused(DTypeError, lambda: flow.tensor([1, 2]).norm(), "int64", ".float()")
    refused(DTypeError, lambda: flow.tensor([2]) ** -1, "-1", ".float()")
    refused(DTypeError, lambda: flow.pow(flow.tensor([2]), -1), "-1", "input.float() ** -1")
    refused(DTypeError, lambda: flow.tensor([2]) ** flow.tensor([-1]), "int64[1]", "a.float() ** b")
    refused(DTypeError, lambda: X @ flow.tensor([[1], [2], [3], [4]]), "float32", "int64", "b.float()")
    refused(DTypeError, lambda: X & X, "bitwise_and", "float32")
    refused(DTypeError, lambda: flow.where(X, X, 0), "float32", "x > 0")
    refused(DTypeError, lambda: X.masked_select(X), "float32", "x > 0")
    refused(OutOfRangeError, lambda: flow.tensor([1]).masked_fill(flow.tensor([True]), float("-inf")), "int64", "-inf")
    refused(DTypeError, lambda: X.gather(1, X), "index", "float32", ".long()")
    refused(DTypeError, lambda: flow.exp([1.0]), "list", "flow.tensor")
    refused(DTypeError, lambda: X.sum(1.5), "dim", "float")
    refused(DTypeError, lambda: flow.div(X, 2, rounding_mode="up"), "'up'", "floor")
    refused(DTypeError, lambda: flow.cat(X), "list or tuple")


def test_axes_and_sizes():
    refused(OutOfRangeError, lambda: X.sum(2), "dim 2", "2 axes", "-2 to 1", "float32[3, 4]")
    refused(OutOfRangeError, lambda: X.sum((0, -2)), "twice")
    refused(OutOfRangeError, lambda: X.unsqueeze(4), "dim 4", "3 axes")
    refused(OutOfRangeError, lambda: X.topk(9), "k is 9", "size 4")
    refused(OutOfRangeError, lambda: X.narrow(1, 3, 2), "2 elements from 3", "size 4")
    refused(OutOfRangeError, lambda: flow.one_hot(flow.tensor([0, 5]), 3), "index 5", "position 1", "size 3")
    refused(OutOfRangeError, lambda: X.gather(1, flow.tensor([[7]])), "index 7", "axis 1", "size 4")
    refused(OutOfRangeError, lambda: X.index_select(0, flow.tensor([0, -4])), "index -4", "position 1", "size 3")
    refused(OutOfRangeError, lambda: X.chunk(0), "chunks must be at least 1, got 0")
    refused(ShapeError, lambda: X.reshape(5, -1), "12 elements", "(5, -1)")
    refused(ShapeError, lambda: X.reshape(5, 2), "12 elements", "(5, 2)", "10")
    refused(ShapeError, lambda: X.reshape(-1, -1), "(-1, -1)")
    refused(ShapeError, lambda: X.T.view(12), "contiguous", "reshape")
    refused(ShapeError, lambda: X.split([1, 1]), "[1, 1]", "3")
    refused(ShapeError, lambda: X.expand(2, 4), "(3, 4)", "(2, 4)")
    refused(ShapeError, lambda: X.repeat(2), "(2,)", "2 axes")
    refused(ShapeError, lambda: flow.stack([X, X.T]), "(4, 3)", "(3, 4)")
    refused(ShapeError, lambda: flow.cat([X, X.T]), "(4, 3)", "(3, 4)")
    refused(ShapeError, lambda: flow.zeros(0).max(), "no elements")
    refused(ShapeError, lambda: flow.zeros(3, 0).amin(1), "along axis 1")
    refused(ShapeError, lambda: flow.zeros(3, 0).argmax(1), "no elements")
    refused(ShapeError, lambda: flow.tensor(1.0).unbind(), "item()")
    refused(ShapeError, lambda: X.gather(0, flow.tensor([1])), "(1,)", "(3, 4)")


# ---- accepted arguments ------------------------------------------------------------------------------------------


def test_numpy_argument_names():
    assert flow.sum(X, axis=1, keepdims=True).shape == (3, 1) and X.sum(axis=(0, 1)).shape == ()
    assert X.mean(axis=0).shape == (4,) and flow.max(X, axis=1).values.shape == (3,) and X.argmax(axis=0).shape == (4,)
    assert flow.cat([X, X], axis=1).shape == (3, 8) and X.std(axis=1, keepdims=True).shape == (3, 1)


def test_named_results():
    found = X.max(1)
    assert type(found).__name__ == "max" and found.values.tolist() == [3, 7, 11] and found.indices.tolist() == [3, 3, 3]
    _values, indices = X.sort(1, descending=True)
    assert indices[0].tolist() == [3, 2, 1, 0] and X.topk(1).values.shape == (3, 1)


def test_arrays_and_numbers_as_operands():
    a = np.ones((3, 4), "float32")
    assert flow.equal(flow.add(X, a, alpha=2), X + 2) and flow.maximum(X, a).dtype is flow.float32
    assert flow.where(X > 5, 1.0, 0.0).dtype is flow.float32 and flow.where(X > 5, 1, 0).dtype is flow.int64
    assert flow.pow(2, flow.tensor([1, 2])).tolist() == [2, 4] and flow.allclose(X, X.numpy())


def test_op_functions_take_pytorchs_keywords():
    assert flow.exp(input=X).shape == X.shape and flow.maximum(X, other=X * 2)[0, 1].item() == 2
    assert flow.mul(input=X, other=2)[0, 1].item() == 2 and "sine" in flow.sin.__doc__
    refused(DTypeError, lambda: flow.maximum(X), "takes 2 inputs, got 1", "maximum(a, b)")
    refused(DTypeError, lambda: flow.exp(X, X), "takes 1 input, got 2")


def test_infinities_do_not_warn():
    zero = flow.zeros(2)
    assert (zero / 0).isnan().all() and flow.log(zero).isinf().all() and (flow.exp(zero + 1000)).isinf().all()
    assert flow.zeros(0).mean().isnan() and flow.tensor([-1.0]).sqrt().isnan().all()
    assert flow.logsumexp(flow.full((2,), -np.inf), 0).item() == -np.inf
    assert flow.sigmoid(flow.tensor([-200.0, 200.0])).tolist() == [0, 1]


def test_values_out_of_integer_range():
    x, mask = flow.zeros(3, dtype=flow.uint8), flow.tensor([True, False, True])
    for call, op in (
        (lambda: x.masked_fill(mask, 300), "masked_fill"),
        (lambda: x.masked_fill_(mask, -1), "masked_fill"),
        (lambda: flow.where(mask, 300, x), "where"),
        (lambda: flow.where(mask, x, -1), "where"),
    ):
        with pytest.raises(OutOfRangeError, match=rf"(?s)^{op}: (300|-1) does not fit into uint8.*uint8\[3\]"):
            call()
    assert x.tolist() == [0, 0, 0]
    assert flow.where(mask, 255, x).tolist() == x.masked_fill(mask, 255).tolist() == [255, 0, 255]
    assert flow.where(mask, 300, 7).tolist() == [300, 7, 300] and x.masked_fill(mask, True).tolist() == [1, 0, 1]


def test_gradients_at_singular_points():
    for program in (
        lambda x: x.norm(),
        lambda x: x.std(),
        lambda x: x.norm(p=3),
        lambda x: (x**0).sum(),
        lambda x: x.abs().sum(),
    ):
        x = flow.zeros(3, requires_grad=True)
        program(x).backward()
        assert x.grad.tolist() == [0, 0, 0]
    x = flow.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [0, 6, 0]
    x = flow.tensor([1.0, 3.0, 3.0], requires_grad=True)
    x.max().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]
    x.grad = None
    x.max(0).values.backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_accuracy():
    x = np.random.default_rng(0).random(1_000_000).astype("float32")
    np.testing.assert_allclose(flow.from_numpy(x).sum().item(), x.sum(dtype="float64"), rtol=1e-6)
    half = flow.ones(5000, dtype=flow.float16)
    assert half.sum().item() == 5000 and half.mean().item() == 1 and half.cumsum(0)[-1].item() == 5000
    assert (half.reshape(1, 5000) @ half.reshape(5000, 1)).item() == 5000
    far = flow.from_numpy(np.array([1e8, 1e8 + 1, 1e8 + 2]))
    np.testing.assert_allclose(far.var().item(), 1.0)
    np.testing.assert_allclose(flow.logsumexp(flow.tensor([1000.0, 1000.0]), 0).item(), 1000 + np.log(2), rtol=1e-6)
    t = np.linspace(-3, 3, 50)
    np.testing.assert_allclose(flow.erf(flow.from_numpy(t)).numpy(), special.erf(t), rtol=1e-14)
