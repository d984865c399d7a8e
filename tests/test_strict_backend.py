"""Check that the stand-in for a GPU is as strict as CuPy, and counts copies to the host."""

import numpy as np
import pytest

from minflow.core.backend import backend_of, empty, is_available, namespace_of, to_host
from minflow.core.kernels import launch
from minflow.core.op import OPS
from minflow.core.spec import Spec, as_dtype, spec_of
from tests.strict_backend import COPIES, StrictArray, counted, strict

X = np.arange(6.0).reshape(2, 3)


def device(array=X):
    return strict.asarray(array)


def same(got, want):
    assert isinstance(got, StrictArray)
    assert got.dtype == want.dtype and got.shape == want.shape and got.inner.tobytes() == np.asarray(want).tobytes()


REFUSED = {
    "numpy function": (TypeError, "numpy.sum", lambda x: np.sum(x)),
    "numpy ufunc": (TypeError, "numpy.exp", lambda x: np.exp(x)),
    "implicit conversion": (TypeError, "Implicit conversion", lambda x: np.asarray(x)),
    "array of numpy": (TypeError, "Unsupported type", lambda x: x + X),
    "array of numpy on the left": (TypeError, "numpy.add", lambda x: X + x),
    "array of numpy in a function": (TypeError, "Unsupported type", lambda x: strict.where(x > 1, X, x)),
    "array of numpy as an index": (TypeError, "Unsupported type", lambda x: x[np.array([0])]),
    "array of numpy as elements": (TypeError, "Unsupported type", lambda x: x.__setitem__(0, X[0])),
    "list as elements": (TypeError, "Unsupported type", lambda x: x.__setitem__(0, [1, 2, 3])),
    "device array as an index of numpy": (TypeError, "Implicit conversion|IndexError|only int", lambda x: X[x]),
    "device array as an axis": (TypeError, "axis must be on the host", lambda x: x.sum(axis=strict.asarray(0))),
    "device array as a size": (TypeError, "shape must be", lambda x: strict.zeros(strict.asarray(3))),
    "list in a ufunc": (TypeError, "Unsupported type", lambda x: strict.add([1], x)),
    "number in a function of arrays": (TypeError, "must be an array", lambda x: strict.sum(3.0)),
    "maximum.reduce": (NotImplementedError, "maximum.reduce", lambda x: strict.maximum.reduce(x, 0)),
    "maximum.accumulate": (NotImplementedError, "accumulate", lambda x: strict.maximum.accumulate(x, 0)),
    "logaddexp.accumulate": (NotImplementedError, "accumulate", lambda x: strict.logaddexp.accumulate(x, 0)),
    "multiply.at": (NotImplementedError, "multiply.at", lambda x: strict.multiply.at(x, 0, 2)),
    "add.at of complex": (TypeError, "complex", lambda x: strict.add.at(x.astype("complex64"), 0, 2)),
    "subtract.at of floats": (TypeError, "float64", lambda x: strict.subtract.at(x, 0, 2)),
    "add.at of int64": (TypeError, "int64", lambda x: strict.add.at(x.astype("int64"), 0, 2)),
    "initial=": (TypeError, "initial", lambda x: strict.add.reduce(x, 0, initial=0)),
    "where= of a sum": (TypeError, "where", lambda x: strict.sum(x, where=x > 0)),
    "where= of a ufunc": (TypeError, "Wrong arguments", lambda x: strict.add(x, x, where=x > 0)),
    "writeable=": (TypeError, "writeable", lambda x: strict.lib.stride_tricks.as_strided(x, (2,), writeable=False)),
    "mode= of take": (TypeError, "mode", lambda x: strict.take(x, strict.asarray([0]), mode="clip")),
    "kind of sort": (ValueError, "stable", lambda x: strict.argsort(x, kind="heapsort")),
    "out= of einsum": (TypeError, "kwargs", lambda x: strict.einsum("ij->i", x, out=x[:, 0])),
    "errstate": (AttributeError, "errstate", lambda x: strict.errstate()),
    "flags.writeable": (AttributeError, "writeable", lambda x: x.flags.writeable),
    "ctypes": (AttributeError, "ctypes", lambda x: x.ctypes),
    "hash": (TypeError, "unhashable", hash),
    "iteration over a scalar": (TypeError, "0-d", lambda x: list(x[0, 0])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_cupy(name):
    kind, message, call = REFUSED[name]
    with pytest.raises(kind, match=message):
        call(device())


COMPUTED = {
    "sum": lambda xp, x: xp.sum(x, 0),
    "0-d sum": lambda xp, x: x.sum(),
    "add.reduce": lambda xp, x: xp.add.reduce(x, 1, keepdims=True),
    "number": lambda xp, x: 2 - x * 3.0,
    "number of numpy": lambda xp, x: np.float64(2) * x + np.float32(1),
    "power": lambda xp, x: x**2,
    "comparison": lambda xp, x: (x > 1) & ~(x == 4),
    "matmul": lambda xp, x: x @ x.T,
    "index": lambda xp, x: x[1, ::2],
    "element": lambda xp, x: x[1, 2],
    "fancy index": lambda xp, x: x[:, xp.asarray([2, 0])],
    "list as index": lambda xp, x: x[[1, 0]],
    "mask": lambda xp, x: x[x > 2],
    "where": lambda xp, x: xp.where(x > 2, x, 0),
    "argmax, whose parameters have another order": lambda xp, x: xp.argmax(x, axis=1, keepdims=True),
    "concatenate": lambda xp, x: xp.concatenate([x, x], 1),
    "nested": lambda xp, x: xp.asarray([x[0, 0], x[1, 1]]) if xp is strict else np.array([0.0, 4.0]),
    "reshape": lambda xp, x: x.reshape(3, -1).transpose(1, 0),
    "linalg": lambda xp, x: xp.linalg.inv(x @ x.T),
    "frexp": lambda xp, x: xp.frexp(x)[1],
    "ogrid": lambda xp, x: xp.ogrid[:2, :3][1] + x,
    "view": lambda xp, x: x.view("int64"),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computes_the_bits_of_numpy(name):
    same(COMPUTED[name](strict, device()), COMPUTED[name](np, X))


def test_out_is_written_and_returned():
    x, out = device(), strict.empty((2, 3))
    assert strict.add(x, 1, out=out) is out and strict.multiply(out, 2, out=(out,)) is out
    same(out, (X + 1) * 2)
    x += 1
    x[0] = x[1]
    x[x > 5] = 0
    same(x, np.array([[4, 5, 0], [4, 5, 0]], "float64"))


def test_indices_outside_the_axis_wrap_around():
    x, index = device(), strict.asarray([3, -4])
    same(x[:, index], X[:, [0, 2]])
    same(strict.take(x, index, 1), X[:, [0, 2]])
    same(strict.take_along_axis(x, strict.asarray([[4], [-5]]), 1), X[[0, 1], [1, 1]][:, None])


COPYING = {
    "item": lambda x: x[0, 0].item(),
    "tolist": lambda x: x.tolist(),
    "bool": lambda x: bool(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "float": lambda x: float(x[0, 0]),
    "get": lambda x: x.get(),
    "repr": repr,
    "format": lambda x: f"{x[0, 0]:.1f}",
    "argwhere": lambda x: strict.argwhere(x),
    "where": lambda x: strict.where(x > 1),
    "the number of True": lambda x: x[x > 1],
    "the number of True ": lambda x: x.__setitem__(x > 1, 0),
    "to_host": lambda x: to_host(x),
}


@pytest.mark.parametrize("how", COPYING)
def test_copies_to_the_host_are_counted_with_their_place(how, cuda):
    with counted() as copies:
        COPYING[how](device())
    assert list(copies.values()) == [1] and set(copies) <= set(COPIES)
    assert next(iter(copies)).startswith(f"{how.strip()} at test_strict_backend.py:")


def test_other_uses_copy_nothing():
    with counted() as copies:
        x = device()
        rows = [row + 1 for row in x]
        x.sum().reshape(1), len(x), strict.shape(x), strict.isfinite(x).all(), rows[0][1]
    assert not copies


def test_the_backend_is_registered_in_a_block(cuda):
    spec = Spec((2, 3), as_dtype("float64"), cuda)
    assert is_available("cuda") and isinstance(empty(spec), StrictArray)
    x = backend_of(cuda).from_host(X)
    assert spec_of(x) is spec and namespace_of(x) is strict and to_host(x).tolist() == X.tolist()
    same(launch(OPS["exp"], (x,), {}, (spec,)), np.exp(X))
    first, second = backend_of(cuda).byte_bounds(x)
    assert second - first == X.nbytes and backend_of(cuda).storage_key(x) == backend_of(cuda).storage_key(x[0])


def test_it_is_not_available_elsewhere():
    assert not is_available("cuda")
