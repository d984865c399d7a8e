"""default_collate: forms, dtypes, and errors for samples that do not fit together."""

from collections import OrderedDict, UserDict, defaultdict, deque
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, LoaderError, ShapeError
from minflow.utils.data import default_collate, default_convert


class Pair(NamedTuple):
    image: object
    label: int


def test_forms():
    batch = default_collate(
        [{"x": (flow.ones(2), [i, 0.5 * i]), "name": f"n{i}", "pair": Pair(np.full(3, i), i)} for i in range(3)]
    )
    x, (count, half) = batch["x"]
    assert (
        x.shape == (3, 2) and count.dtype is flow.int64 and half.dtype is flow.float64 and half.tolist() == [0, 0.5, 1]
    )
    assert batch["name"] == ["n0", "n1", "n2"] and isinstance(batch["pair"], Pair)
    assert batch["pair"].image.tolist() == [[0] * 3, [1] * 3, [2] * 3] and batch["pair"].label.tolist() == [0, 1, 2]


@pytest.mark.parametrize("sample, dtype", [
    (True, "bool"), (3, "int64"), (0.5, "float64"), (np.float32(1), "float32"), (np.uint8(3), "uint8"),
    (np.bool_(True), "bool"),
    (np.zeros(2, "int32"), "int32"), (np.array(1.5), "float64"), (flow.zeros(2, dtype=flow.float16), "float16"),
])  # fmt: skip
def test_dtypes(sample, dtype):
    batch = default_collate([sample, sample])
    assert batch.dtype.name == dtype and batch.shape[0] == 2


def test_gradients_are_kept():
    x = flow.ones(2, requires_grad=True)
    default_collate([x, x * 2]).sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.parametrize("samples, kind, said", [
    ([], LoaderError, "samples must not be empty"),
    ([(flow.ones(3, 2, 2), 1), (flow.ones(3, 2, 2), 1), (flow.ones(3, 2, 4), 1)], ShapeError,
     r"sample\[0\][\s\S]*\[3, 2, 2\][\s\S]*sample 2  \[3, 2, 4\]"),
    ([{"a": 1}, {"b": 1}], LoaderError, r"\['a'\][\s\S]*\['b'\]"),
    ([(1, 2), (1, 2, 3)], ShapeError, "3 parts in sample 1, and 2 in sample 0"),
    ([{"a": [object()]}] * 2, DTypeError, r"sample\['a'\]\[0\] is a object"),
    ([flow.ones(1), 3], DTypeError, "Tensor in sample 0 of the batch and a int in sample 1"),
    ([1, None], DTypeError, "not a number"),
    ([None], DTypeError, "is a NoneType"),
])  # fmt: skip
def test_mistakes(samples, kind, said):
    with pytest.raises(kind, match=said):
        default_collate(samples)


def test_picture_error_has_a_suggestion():
    image = pytest.importorskip("PIL.Image").new("L", (4, 4))
    with pytest.raises(DTypeError, match=r"transforms.ToTensor\(\)"):
        default_collate([(image, 1)])


def test_convert():
    out = default_convert({"x": np.ones(2), "y": (1, "a", np.float32(2))})
    assert isinstance(out["x"], flow.Tensor) and out["y"][:2] == [1, "a"] and isinstance(out["y"][2], flow.Tensor)


@pytest.mark.parametrize("samples, dtype, numbers", [
    ([0, 0.7], "float32", [0, 0.7]), ([0.7, 0], "float64", [0.7, 0]), ([True, 2], "int64", [1, 2]),
    ([1, flow.tensor(2.5)], "float32", [1, 2.5]), ([np.float32(1), 0.7], "float32", [1, 0.7]),
    ([flow.tensor(1), flow.tensor(2.5)], "float32", [1, 2.5]), ([np.array(1), np.array(2.5)], "float64", [1, 2.5]),
    ([np.array([1], "int32"), np.array([2.5], "float32")], "float32", [[1], [2.5]]),
])  # fmt: skip
def test_mixed_dtypes_are_promoted(samples, dtype, numbers):
    batch = default_collate(samples)
    assert batch.dtype.name == dtype and np.allclose(batch.numpy(), numbers)
    (in_a_dict,) = default_collate([{"a": x} for x in samples]).values()
    assert in_a_dict.dtype.name == dtype and default_collate([(x,) for x in samples])[0].dtype.name == dtype


class Named(dict):
    """A custom mapping."""


class Listed(list):
    """A custom list."""


def test_containers_keep_their_class():
    """As in PyTorch: tuples become lists, and classes that cannot be reconstructed become dicts."""
    for first in (OrderedDict(a=1), defaultdict(list, a=1), Named(a=1), UserDict(a=1)):
        for made in (default_collate([first, first]), default_convert(first)):
            assert type(made) is type(first) and list(made) == ["a"]
    assert default_collate([defaultdict(list, a=1)]).default_factory is list
    for first in (Listed([1]), deque([1])):
        assert type(default_collate([first, first])) is type(default_convert(first)) is type(first)
    assert default_collate([(1, 2), (3, 4)])[1].tolist() == [2, 4] and default_convert((1, 2)) == [1, 2]
    assert type(default_collate([MappingProxyType({"a": 1})])) is MappingProxyType
    pair = default_convert(Pair(np.float32(1), 2))
    assert isinstance(pair, Pair) and pair.image.dtype is flow.float32 and pair.label == 2
