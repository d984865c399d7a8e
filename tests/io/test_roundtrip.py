"""load returns what save wrote, and other programs can read it."""

import json
import math
import shutil
import struct
from collections import OrderedDict

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CheckpointError
from tests.strict_backend import counted


def header(path):
    data = path.read_bytes()
    return json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, flow.Tensor):
        assert a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b) and list(map(type, a)) == list(map(type, b))
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    else:
        assert a == b or (a != a and b != b)
        assert not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b)


OBJECTS = {
    "a tensor": lambda: flow.tensor([[1.0, 2.0], [3.0, 4.0]]),
    "every dtype": lambda: [
        flow.tensor([0, 1, 1], dtype=getattr(flow, d))
        for d in "bool uint8 int8 int32 int64 float16 float32 float64".split()
    ],
    "0-d and 0-size": lambda: (
        flow.tensor(3.5),
        flow.tensor(7),
        flow.zeros(0),
        flow.zeros(3, 0, 2),
        flow.zeros(0, dtype=flow.bool),
    ),
    "not finite": lambda: flow.tensor([float("nan"), float("inf"), -0.0]),
    "numbers": lambda: {
        "i": -3,
        "big": 10**300,
        "f": 0.1,
        "nan": math.nan,
        "inf": math.inf,
        "less": -math.inf,
        "zero": -0.0,
        "b": True,
        "n": None,
    },
    "texts": lambda: ["", "ä\n\"'\\ \0 中", "a.b"],
    "keys": lambda: {0: "int", "0": "text", 1.5: "float", None: "none", (1, "a"): "tuple", True: "bool", "": "empty"},
    "nested": lambda: {
        "model": OrderedDict(w=flow.ones(2), b=flow.zeros(2)),
        "opt": [{"lr": 0.1, "betas": (0.9, 0.999)}],
        "e": {},
        "l": [],
        "t": (),
    },
    "names that meet": lambda: {
        "a.b": flow.ones(1),
        "a": {"b": flow.zeros(1)},
        "__metadata__": flow.ones(2),
        "tensor": flow.ones(3),
    },
    "numpy": lambda: {"a": np.arange(6).reshape(2, 3), "s": np.float32(0.5).item()},
    "not contiguous": lambda: flow.arange(12).reshape(3, 4).t(),
    "requires grad": lambda: flow.tensor([1.0], requires_grad=True),
    "parameter": lambda: nn.Parameter(flow.ones(2, 2)),
    "frozen parameter": lambda: nn.Parameter(flow.ones(2), requires_grad=False),
    "dtype": lambda: flow.float16,
    "only numbers": lambda: 7,
    "90 levels": lambda: deep(90),
}


def deep(n):
    x = [1]
    for _ in range(n):
        x = [x]
    return x


@pytest.mark.parametrize("name", OBJECTS)
def test_roundtrip(name, tmp_path):
    x = OBJECTS[name]()
    flow.save(x, tmp_path / "x.safetensors")
    same(x, flow.load(tmp_path / "x.safetensors"))


def test_same_state_gives_the_same_bytes(tmp_path):
    for name in ("a.mf", "b.mf"):
        flow.save({"w": flow.arange(5.0), "n": 3}, tmp_path / name)
    assert (tmp_path / "a.mf").read_bytes() == (tmp_path / "b.mf").read_bytes()


def test_numpy_scalars_become_python_numbers(tmp_path):
    flow.save([np.int64(3), np.float32(0.5), np.bool_(True)], tmp_path / "x.mf")
    assert flow.load(tmp_path / "x.mf") == [3, 0.5, True]


def test_path_without_suffix_is_a_folder(tmp_path):
    folder = tmp_path / "checkpoint"
    flow.save({"w": flow.ones(2)}, str(folder))
    assert [f.name for f in folder.iterdir()] == ["data.safetensors"]
    flow.save({"w": flow.zeros(2)}, str(folder))
    assert flow.load(str(folder))["w"].tolist() == [0, 0]
    shutil.rmtree(folder)
    with pytest.raises(CheckpointError, match="checkpoint"):
        flow.load(folder)
    folder.write_text("x")
    flow.save(1, folder)
    assert folder.is_file() and flow.load(folder) == 1


def test_foreign_folder(tmp_path):
    from safetensors.numpy import save_file

    with pytest.raises(CheckpointError, match="none"):
        flow.load(tmp_path)
    save_file({"w": np.ones(2, "f4")}, tmp_path / "model.safetensors")
    assert flow.load(tmp_path)["w"].tolist() == [1, 1]
    save_file({"w": np.ones(2, "f4")}, tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError, match="model.safetensors, other.safetensors"):
        flow.load(tmp_path)


def test_tied_tensors_are_stored_once_and_stay_tied(tmp_path):
    w = flow.arange(1000.0)
    flow.save({"a": w, "b": w, "c": w.detach(), "d": flow.arange(1000.0), "n": w.numpy()}, tmp_path / "x.safetensors")
    assert set(header(tmp_path / "x.safetensors")) == {"__metadata__", "a", "d"}
    x = flow.load(tmp_path / "x.safetensors")
    assert x["a"] is x["b"] and x["a"] is not x["c"]
    x["a"][0] = 7
    assert x["c"][0].item() == 7 and x["d"][0].item() == 0 and x["n"][0] == 7
    y = x["c"].requires_grad_()
    z = (y * y).sum()
    with flow.no_grad():
        x["a"].mul_(2)
    with pytest.raises(flow.errors.GradError if hasattr(flow, "errors") else RuntimeError, match="changed in place"):
        z.backward()


def test_tied_parameters_stay_one_object(tmp_path):
    p = nn.Parameter(flow.ones(3))
    flow.save([p, p, p.detach()], tmp_path / "x.mf")
    a, b, c = flow.load(tmp_path / "x.mf")
    assert a is b and isinstance(a, nn.Parameter) and type(c) is flow.Tensor
    with flow.no_grad():
        c.add_(1)
    assert a.tolist() == [2, 2, 2]


def test_safetensors_library_reads_saved_files(tmp_path):
    from safetensors.numpy import load_file

    model = nn.Linear(3, 2)
    flow.save(model.state_dict(), tmp_path / "m.safetensors")
    found = load_file(tmp_path / "m.safetensors")
    assert set(found) == {"weight", "bias"}
    np.testing.assert_array_equal(found["weight"], model.weight.detach().numpy())


def test_plain_safetensors(tmp_path):
    from safetensors.numpy import save_file

    arrays = {
        "w": np.arange(6, dtype="f4").reshape(2, 3),
        "n": np.array(5),
        "h": np.ones(2, "f2"),
        "s": np.array([-3], "i2"),
        "u": np.array([2**32 - 1], "u4"),
        "b": np.array([True]),
        "e": np.zeros((0, 2), "f8"),
    }
    save_file(arrays, tmp_path / "x.safetensors", metadata={"format": "np"})
    found = flow.load(tmp_path / "x.safetensors")
    assert {k: v.dtype.name for k, v in found.items()} == {
        "w": "float32",
        "n": "int64",
        "h": "float16",
        "s": "int16",
        "u": "uint32",
        "b": "bool",
        "e": "float64",
    }
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name].numpy(), array)


def write_plain(path, entries, data):
    text = json.dumps(
        {name: {"dtype": d, "shape": s, "data_offsets": o} for name, (d, s, o) in entries.items()}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_plain_bfloat16(tmp_path):
    write_plain(tmp_path / "x.safetensors", {"w": ("BF16", [2], [0, 4])}, struct.pack("<HH", 0x3F80, 0xC000))
    found = flow.load(tmp_path / "x.safetensors")["w"]
    assert found.dtype is flow.bfloat16 and found.tolist() == [1.0, -2.0]
    write_plain(tmp_path / "x.safetensors", {"w": ("F8_E4M3", [2], [0, 2])}, b"xx")
    with pytest.raises(CheckpointError, match="F8_E4M3"):
        flow.load(tmp_path / "x.safetensors")


def test_npz(tmp_path):
    arrays = {
        "w": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(3, dtype=">i4"),
        "s": np.array([7], "i2"),
        "z": np.float32(2),
    }
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "x.npz", **arrays)
        found = flow.load(tmp_path / "x.npz")
        assert {k: v.dtype.name for k, v in found.items()} == {
            "w": "float64",
            "big": "int32",
            "s": "int16",
            "z": "float32",
        }
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name].numpy(), array)
    model = nn.Linear(3, 2)
    np.savez(tmp_path / "m.npz", weight=np.ones((2, 3), "f4"), bias=np.zeros(2, "f4"))
    model.load_state_dict(flow.load(tmp_path / "m.npz"))
    assert model.weight.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_map_location(tmp_path):
    flow.save({"a": [flow.ones(1)], "b": (1, OrderedDict(c=flow.ones(2)))}, tmp_path / "x.mf")
    found = flow.load(tmp_path / "x.mf", map_location="cpu")
    assert found["b"][1]["c"].tolist() == [1, 1] and isinstance(found["b"][1], OrderedDict)


def test_tensors_on_a_device_share_one_array(tmp_path, cuda):
    x = flow.arange(6.0).reshape(2, 3).to(cuda)
    with counted() as copies:
        flow.save({"x": x, "same": x, "row": x[1]}, tmp_path / "x.safetensors")
    assert sum(copies.values()) == len(header(tmp_path / "x.safetensors")) - 1 == 2
    read = flow.load(tmp_path / "x.safetensors")
    assert read["x"] is read["same"] and read["x"].tolist() == [[0, 1, 2], [3, 4, 5]] == [
        [0, 1, 2],
        read["row"].tolist(),
    ]
