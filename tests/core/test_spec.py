"""Specs are one object if equal; dtypes, devices and their limits."""

import copy
import gc
import pickle

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DeviceError, DTypeError
from minflow.core.spec import Spec, as_dtype, cpu, float32, float64, int32, int64, promote, spec_of, uint8


def test_interning():
    a = Spec((2, 3), float32)
    assert a is Spec((2, 3), float32, cpu) is spec_of(np.zeros((2, 3), "float32")) is a.replace(shape=(2, 3))
    assert copy.deepcopy(a) is a and pickle.loads(pickle.dumps(a)) is a
    assert a.replace(dtype=float64) is not a
    assert (a.size, a.nbytes, a.ndim, str(a)) == (6, 24, 2, "float32[2, 3]")
    assert Spec((), int64).size == 1


def test_sweep_keeps_specs_in_use():
    kept = [Spec((977, n), float32) for n in range(50)]
    for n in range(50):
        Spec((978, n), float32)
    limit = Spec.limit
    try:
        gc.collect()
        Spec.sweep()
    finally:
        Spec.limit = limit
    assert all(Spec((977, n), float32) is spec for n, spec in enumerate(kept))
    assert not any(key[0][:1] == (978,) for key in Spec.table)


def test_promotion_is_commutative():
    vector, scalar = Spec((2,), int32), Spec((), float32)
    assert promote(vector, scalar) is promote(scalar, vector) is float32
    assert promote(Spec((2,), float32), Spec((), float64)) is float32
    assert promote(vector, int) is int32
    assert promote(vector, float) is float32
    assert promote(Spec((2,), uint8), Spec((2,), flow.int8)) is flow.int16


def test_dtypes():
    assert flow.float is flow.float32 and flow.double is flow.float64 and flow.half is flow.float16
    assert flow.int is flow.int32 and flow.long is flow.int64
    assert repr(flow.float32) == "minflow.float32"
    assert as_dtype("int64") is as_dtype(int) is as_dtype(np.int64) is as_dtype(np.dtype("int64")) is int64
    assert copy.deepcopy(float32) is float32 is pickle.loads(pickle.dumps(float32))
    assert float32.is_floating_point and not uint8.is_signed
    for wrong in (3, "x", "int24", np.longdouble, object):
        with pytest.raises(DTypeError, match="has no dtype"):
            as_dtype(wrong)


def test_default_dtype_and_back():
    """Cached inferences are repeated."""
    x = flow.tensor([1, 2])
    inferred = lambda: {y.dtype for y in (x + 0.5, x.sqrt(), flow.tensor(1.5), flow.zeros(2), flow.rand(2))}
    assert inferred() == {flow.float32}
    try:
        flow.set_default_dtype(flow.float64)
        assert flow.get_default_dtype() is flow.float64 and inferred() == {flow.float64}
    finally:
        flow.set_default_dtype(flow.float32)
    assert inferred() == {flow.float32}
    with pytest.raises(DTypeError, match="must be floating, got int64"):
        flow.set_default_dtype(flow.int64)


def test_limits():
    assert flow.finfo(flow.float32).eps == 2.0**-23 and flow.finfo().bits == 32
    assert flow.finfo(flow.float64).max == np.finfo("float64").max
    assert (flow.iinfo(flow.uint8).min, flow.iinfo(flow.uint8).max, flow.iinfo(flow.int64).max) == (0, 255, 2**63 - 1)
    with pytest.raises(DTypeError, match="flow.iinfo"):
        flow.finfo(flow.int32)
    with pytest.raises(DTypeError, match="flow.finfo"):
        flow.iinfo(flow.float32)


def test_devices():
    assert flow.device("cpu") is flow.device(flow.device("cpu", 0)) is pickle.loads(pickle.dumps(cpu)) is cpu
    assert (flow.device("cuda:1").type, flow.device("cuda", 1).index) == ("cuda", 1)
    for wrong in ("gpu", "cuda:x", ""):
        with pytest.raises(DeviceError, match="there is no device"):
            flow.device(wrong)


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_long_unsigned_dtypes(name, tmp_path):
    dtype, most = getattr(flow, name), 2 ** int(name.removeprefix("uint")) - 1
    x = flow.tensor(np.array([1, 2, most], name))
    assert x.dtype is dtype and x.tolist() == [1, 2, most] and flow.iinfo(dtype).max == most and not dtype.is_signed
    assert flow.tensor([most], dtype=dtype).item() == most and flow.arange(3, dtype=dtype).tolist() == [0, 1, 2]
    assert flow.from_numpy(x.numpy()).equal(x) and x.numpy().dtype == name
    assert (x == 2).tolist() == [False, True, False] and x[flow.tensor([2, 0])].tolist() == [most, 1]
    assert (x + 1).tolist() == [2, 3, 0] and (x + 0.5).dtype is flow.float32 and x.sum().dtype is flow.int64
    assert flow.tensor([3.0]).to(dtype).item() == 3 and x[:2].double().tolist() == [1, 2]
    flow.save({"x": x}, tmp_path / "x")
    assert flow.load(tmp_path / "x")["x"].equal(x)
    assert x.type() == f"minflow.UInt{dtype.itemsize * 8}Tensor"
    with pytest.raises(DTypeError, match=f"{name} and int64 have no common dtype"):
        x + flow.tensor([1])

    class Plus(flow.nn.Graph):
        def build(self, x):
            return x * 2 + 1, x.float()

    assert [y.tolist() for y in Plus()(x[:2])] == [[3, 5], [1, 2]]
