"""Tensor types by name: `flow.LongTensor`, `x.type("FloatTensor")`, `flow.Tensor`; limits and casts."""

import numpy as np
import pytest

import minflow as flow
from minflow import DeviceError, DTypeError, OutOfRangeError, ShapeError
from tests.core.refusals import refusals

CLASSES = {
    "BoolTensor": flow.bool, "ByteTensor": flow.uint8, "CharTensor": flow.int8, "ShortTensor": flow.int16,
    "IntTensor": flow.int32, "LongTensor": flow.int64, "HalfTensor": flow.float16, "FloatTensor": flow.float32,
    "DoubleTensor": flow.float64,
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_tensor_type_constructs_and_checks_tensors(name):
    kind, dtype = getattr(flow, name), CLASSES[name]
    x = kind([0, 1])
    assert x.dtype is dtype is kind.dtype and x.tolist() == [0, 1] and type(x) is flow.Tensor
    assert kind(2, 3).shape == kind(flow.Size([2, 3])).shape == (2, 3) and kind().shape == (0,)
    assert kind(np.array([[1, 0]], dtype.np)).dtype is dtype and kind((2, 3)).shape == (2,)
    assert isinstance(x, kind)
    assert [other for other in CLASSES if isinstance(x, getattr(flow, other))] == [name]
    assert not isinstance(x, getattr(flow.cuda, name))
    assert x.type() == f"minflow.{name}" and repr(kind) == f"<class 'minflow.{name}'>"
    for prefix in ("", "torch.", "oneflow.", "flow.", "minflow."):
        assert flow.ones(1).type(prefix + name).dtype is dtype
    assert flow.ones(1).type(kind).dtype is flow.ones(1).type(dtype).dtype is dtype


def test_gpu_tensor_type_says_there_is_no_gpu():
    for call in (
        lambda: flow.cuda.FloatTensor(2, 3),
        lambda: flow.ones(2).type("torch.cuda.FloatTensor"),
        lambda: flow.ones(2).type(flow.cuda.LongTensor),
        lambda: flow.Tensor([1.0], device="cuda"),
        lambda: flow.set_default_tensor_type("torch.cuda.FloatTensor"),
    ):
        with pytest.raises(DeviceError, match="no device cuda:0 here"):
            call()
    assert repr(flow.cuda.FloatTensor) == "<class 'minflow.cuda.FloatTensor'>"


test_mistakes = refusals(
    [
        (DTypeError, lambda: flow.ones(2).type("minflow.FlaotTensor"), "no type minflow.FlaotTensor"),
        (DTypeError, lambda: flow.ones(2).type("torch.sparse.FloatTensor"), "no type torch.sparse.FloatTensor"),
        (ShapeError, lambda: flow.FloatTensor(3.5), "FloatTensor takes a list"),
        (ShapeError, lambda: flow.Tensor([1.0], [2.0]), "Tensor takes a list"),
        (OutOfRangeError, lambda: flow.ByteTensor([300]), "300"),
        (OutOfRangeError, lambda: flow.tensor([40000], dtype=flow.int16), "40000"),
    ]
)


def test_floats_are_truncated_to_integers():
    assert flow.LongTensor([1.5, -2.5]).tolist() == [1, -2]
    assert flow.FloatTensor(np.ones(2)).dtype is flow.float32
    assert flow.FloatTensor(flow.ones(2).long()).dtype is flow.float32


def test_tensor_of_a_tensor_shares_its_storage():
    x = flow.ones(2)
    y = flow.Tensor(x)
    y[0] = 5
    assert x.tolist() == [5, 1] and flow.Tensor(flow.tensor([1, 2])).dtype is flow.int64
    assert flow.Tensor([1, 2], device="cpu").tolist() == [1, 2] and flow.Tensor().shape == (0,)
    assert flow.Tensor(2, 3).shape == (2, 3) and flow.Tensor([[1]]).dtype is flow.float32


def test_default_tensor_type():
    try:
        for kind in ("torch.DoubleTensor", flow.DoubleTensor, "DoubleTensor"):
            flow.set_default_tensor_type(kind)
            assert flow.tensor(1.0).dtype is flow.Tensor([1]).dtype is flow.float64
            assert flow.ones(2).half().type(flow.Tensor).dtype is flow.float64
            flow.set_default_tensor_type("minflow.FloatTensor")
        with pytest.raises(DTypeError, match="must be floating, got int64"):
            flow.set_default_tensor_type(flow.LongTensor)
    finally:
        flow.set_default_dtype(flow.float32)


NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
# PyTorch 2.13's promote_types: a row per dtype, with columns in the order of NAMES, as indices into NAMES.
PROMOTED = """
0 1 2 3 4 5 6 7 8 9 10 11 / 1 1 3 3 4 5 6 7 8 9 10 11 / 2 3 2 3 4 5 6 7 8 9 10 11 / 3 3 3 3 4 5 6 7 8 9 10 11
/ 4 4 4 4 4 5 6 7 8 9 10 11 / 5 5 5 5 5 5 6 7 8 9 10 11 / 6 6 6 6 6 6 6 8 8 9 10 11 / 7 7 7 7 7 7 8 7 8 9 10 11
/ 8 8 8 8 8 8 8 8 8 9 10 11 / 9 9 9 9 9 9 9 9 9 9 11 11 / 10 10 10 10 10 10 10 10 10 11 10 11
/ 11 11 11 11 11 11 11 11 11 11 11 11"""


def test_promote_types():
    table = [[NAMES[int(k)] for k in row.split()] for row in PROMOTED.split("/")]
    assert table == [[flow.promote_types(getattr(flow, a), getattr(flow, b)).name for b in NAMES] for a in NAMES]


def test_can_cast():
    kinds = {name: 0 if name == "bool" else 3 if name[0] == "c" else 2 if "float" in name else 1 for name in NAMES}
    for a in NAMES:
        for b in NAMES:
            assert flow.can_cast(getattr(flow, a), getattr(flow, b)) is (kinds[a] <= kinds[b]), (a, b)


def test_dtype_attributes():
    for name, floating, complicated, signed, size, real in [
        ("bool", False, False, False, 1, "bool"), ("uint8", False, False, False, 1, "uint8"),
        ("int16", False, False, True, 2, "int16"), ("bfloat16", True, False, True, 2, "bfloat16"),
        ("float64", True, False, True, 8, "float64"), ("complex64", False, True, True, 8, "float32"),
        ("complex128", False, True, True, 16, "float64"),
    ]:  # fmt: skip
        d = getattr(flow, name)
        assert (d.is_floating_point, d.is_complex, d.is_signed, d.itemsize) == (floating, complicated, signed, size)
        assert d.to_real().name == real
    with pytest.raises(DTypeError, match="int64 has no complex dtype"):
        flow.int64.to_complex()
    assert flow.bfloat16.to_complex() is flow.complex64 and flow.float64.to_complex() is flow.complex128
    assert flow.short is flow.int16 and flow.cfloat is flow.complex64 and flow.cdouble is flow.complex128
    assert flow.is_floating_point(flow.ones(1)) and not flow.is_floating_point(flow.tensor(1))


def test_limits_print_as_in_pytorch():
    assert repr(flow.finfo(flow.bfloat16)) == (
        "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, "
        "eps=0.0078125, smallest_normal=1.17549e-38, tiny=1.17549e-38, "
        "dtype=bfloat16)"
    )
    assert repr(flow.iinfo(flow.int16)) == "iinfo(min=-32768, max=32767, dtype=int16)"
    assert flow.finfo(flow.complex64).dtype == "float32" and flow.finfo(flow.float16).resolution == 0.001


def test_int16():
    x = flow.tensor([1, -2, 300], dtype=flow.int16)
    assert (x + x).dtype is (x * 2).dtype is flow.int16
    assert (x / 2).dtype is flow.float32 and x.sum().dtype is flow.int64
    assert repr(x) == "tensor([  1,  -2, 300], dtype=minflow.int16)"
    assert flow.tensor([1, 2]).short().dtype is flow.ones(2, dtype=flow.short).dtype is flow.int16
    assert flow.from_numpy(np.arange(3, dtype="int16")).dtype is flow.int16
