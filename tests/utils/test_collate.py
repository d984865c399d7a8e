"""default_collate: forms, dtypes, and what it says about samples that do not fit together."""

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
    ([], LoaderError, "no sample"),
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


def test_a_picture_says_what_to_do():
    image = pytest.importorskip("PIL.Image").new("L", (4, 4))
    with pytest.raises(DTypeError, match=r"transforms.ToTensor\(\)"):
        default_collate([(image, 1)])


def test_convert():
    out = default_convert({"x": np.ones(2), "y": (1, "a", np.float32(2))})
    assert isinstance(out["x"], flow.Tensor) and out["y"][:2] == [1, "a"] and isinstance(out["y"][2], flow.Tensor)
