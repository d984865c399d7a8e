"""Kernels that move elements: the bits of numpy's functions, at sizes that are not multiples of a band."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import OutOfRangeError
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from tests.cases import in_cases

RNG = np.random.default_rng(0)


def numbers(*shape, dtype="f4"):
    x = RNG.standard_normal(shape) * 10
    if dtype == "f4" and x.size > 2:
        x.flat[:3] = np.nan, np.inf, -0.0
    return x.astype(dtype)


def same(found, wanted):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape and found.flags.c_contiguous
    assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()


def out_or_none(spec, into):
    return np.full(spec.shape, 7, spec.dtype) if into else None


@in_cases("into", [False, True])
@in_cases("dtype", ["f4", "f8", "i8", "?", "c8"])
@in_cases("shape", [(0, 3), (3, 0), (1, 1), (5, 7), (2, 64, 64), (63, 130), (130, 65), (2, 1, 129, 3)])
def test_triangles(shape, dtype, into):
    x = numbers(*shape, dtype=dtype)
    for diagonal in (-200, -65, -1, 0, 2, 64, 200):
        for name in ("tril", "triu"):
            wanted = getattr(np, name)(x, diagonal)
            same(CALLS[OPS[name]](x, diagonal=diagonal, out=out_or_none(x, into)), wanted)
            place = x.copy()
            same(CALLS[OPS[name]](place, diagonal=diagonal, out=place), wanted)
            same(CALLS[OPS[name]](x.copy("F"), diagonal=diagonal), wanted)


@in_cases("shape", [(0,), (), (1,), (5,), (3, 70), (2, 1, 3)])
@in_cases("dtype", ["i8", "i4", "u1"])
@in_cases("classes", [9, 200])
def test_one_hot(shape, dtype, classes):
    index = RNG.integers(0, classes, shape).astype(dtype)
    wanted = np.eye(classes, dtype="i8")[index.astype("i8")]
    same(CALLS[OPS["one_hot"]](index, num_classes=classes), wanted)
    same(CALLS[OPS["one_hot"]](index, num_classes=classes, out=np.full(wanted.shape, 7)), wanted)
    wide = np.full((*shape, 2 * classes), 7)[..., ::2]
    assert np.array_equal(CALLS[OPS["one_hot"]](index, num_classes=classes, out=wide), wanted)
    assert CALLS[OPS["one_hot"]](index[..., None][..., :0], num_classes=0).shape == (*shape, 0, 0)


@in_cases("dtype", ["f4", "f8", "i8", "?"])
@in_cases("kind", ["i8", "i4", "i1", "u1"])
@in_cases(
    "shape, taken, dim",
    [
        ((5,), (9,), 0),
        ((4, 100), (4, 33), 1),
        ((90, 5), (40, 3), 0),
        ((3, 7, 5), (2, 4, 5), 1),
        ((3, 7, 1), (3, 7, 4), 2),
        ((0, 3), (0, 2), 1),
        ((2, 0), (1, 0), 1),
    ],
)
def test_gather_and_its_gradient(shape, taken, dim, kind, dtype):
    x, src = numbers(*shape, dtype=dtype), numbers(*taken, dtype=dtype)
    size = shape[dim]
    index = RNG.integers(0, max(size, 1), taken).astype(kind)
    inside = x[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(taken))]
    wanted = np.take_along_axis(inside, index.astype("i8"), dim)
    for given in (x, x.copy("F")):
        same(CALLS[OPS["gather"]](given, index, dim=dim), wanted)
        same(CALLS[OPS["gather"]](given, index, dim=dim, out=out_or_none(wanted, True)), wanted)
        if kind[0] == "i":
            same(CALLS[OPS["gather"]](given, index - np.int8(size), dim=dim, by="take_along_dim"), wanted)
    summed = x.copy()
    for place in np.ndindex(*taken):
        there = *place[:dim], index[place], *place[dim + 1 :]
        summed[there] = summed[there] + src[place]
    same(CALLS[OPS["scatter_add"]](x, index, src, dim=dim), summed)
    same(CALLS[OPS["scatter_add"]](x.copy("F"), index, src.copy("F"), dim=dim), summed)


@in_cases("kind", ["int64", "int32", "int8"])
@in_cases("wrong", [-1, 4, 100, -128])
def test_index_out_of_range_is_named(kind, wrong):
    index = flow.tensor([[0, 1], [wrong, 3]], dtype=getattr(flow, kind))
    x = flow.ones(2, 4)
    for function in (
        lambda: flow.gather(x, 1, index),
        lambda: flow.nn.functional.one_hot(index, 4),
        lambda: x.scatter_add(1, index, flow.ones(2, 2)),
    ):
        with pytest.raises(OutOfRangeError, match=rf"index {wrong} \(at position \(1, 0\) of the index\) is outside"):
            function()
    if not -4 <= wrong < 4:
        with pytest.raises(OutOfRangeError, match=rf"index {wrong} "):
            x[:, index]


@in_cases("dtype", ["f4", "f8", "i8", "?", "c16"])
def test_copies_of_views(dtype):
    x = numbers(7, 18, 33, dtype=dtype)
    for view in (
        x[:, 2:-2],
        x[:, :, ::-1],
        x[::-2, :, 1::3],
        x.transpose(2, 0, 1),
        x[:, :0],
        x[3, 4, 5, None],
        np.broadcast_to(x[:, :1], x.shape),
    ):
        same(CALLS[OPS["clone"]](view), view)
        same(CALLS[OPS["clone"]](view, out=out_or_none(view, True)), view)


@in_cases("shape, dim", [((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((3, 0), 0), ((2, 0, 3), 2)])
def test_gather_from_an_empty_axis(shape, dim):
    x, index = flow.zeros(shape, requires_grad=True), flow.zeros(shape, dtype=flow.int64)
    found = x.gather(dim, index)
    assert found.shape == shape
    found.sum().backward()
    assert x.grad.shape == shape


def test_pad_by_zero_takes_any_value():
    x = flow.tensor([1, 2], dtype=flow.int8)
    found = flow.nn.functional.pad(x, (0, 0), value=float("nan"))
    assert found.tolist() == [1, 2] and found.data_ptr() != x.data_ptr()


@in_cases("dtype", ["uint8", "int8", "int16", "int32"])
def test_small_index_dtype_into_a_long_axis(dtype):
    x = flow.arange(3000).reshape(3, 1000)
    i, j = (flow.tensor(values, dtype=getattr(flow, dtype)) for values in ([0, 2], [100, 3]))
    assert x[i.long(), j.long()].tolist() == [100, 2003]
    assert CALLS[OPS["ravel_index"]](i.numpy(), j.numpy(), shape=(3, 1000)).tolist() == [100, 2003]


def test_pad_takes_a_scalar():
    x = flow.tensor([[1.0, 2.0]])
    assert flow.nn.functional.pad(x, (1, 0), value=flow.tensor(3.0)).tolist() == [[3.0, 1.0, 2.0]]
    for value in (np.ones(2), np.ones(()), "1", [1.0]):
        with pytest.raises(flow.DTypeError, match=r"pad: value must be a number, got .*(?s:.)*value=1.5"):
            flow.nn.functional.pad(x, (1, 0), value=value)
        with pytest.raises(flow.DTypeError, match="must be a number"):
            flow.nn.functional.pad(x, (), value=value)
