"""Refusals of save and load, and their messages."""

import io
import json
import pickle
import struct
import zipfile
from collections import namedtuple

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import CheckpointError
from minflow.io import container
from tests import sampling
from tests.measuring import peak

STATE = {"opt": {"fn": print, "ok": 1}}
Pair = namedtuple("Pair", "a b")


def itself():
    x = {"a": []}
    x["a"].append(x)
    return x


def deep(n):
    x = []
    for _ in range(n):
        x = [x]
    return x


@pytest.mark.parametrize(
    ("x", "texts"),
    [
        (lambda: STATE, ['state["opt"]["fn"]', "builtin_function_or_method"]),
        (lambda: {"a": [1, object()]}, ['state["a"][1]', "object"]),
        (lambda: [Pair(1, 2)], ["state[0]", "Pair", "_asdict"]),
        (lambda: {"o": flow.optim.SGD([flow.ones(1)])}, ['state["o"]', "SGD", "state_dict()"]),
        (lambda: flow.optim.SGD([flow.ones(1)]), ["SGD", "model.state_dict()"]),
        (lambda: {"c": 1j}, ['state["c"]', "complex"]),
        (lambda: {"c": np.array(["text"])}, ['state["c"]', "<U4"]),
        (lambda: {"c": np.array([1], "c16")}, ['state["c"]', "complex128", "view_as_real"]),
        (lambda: {b"k": 1}, ["a key of state", "bytes"]),
        (lambda: {"k": b"raw"}, ['state["k"]', "bytes"]),
        (lambda: ["\ud800"], ["state[0]", "surrogate"]),
        (lambda: [1 << 20000], ["state[0]", "4000 digits"]),
        (itself, ['state["a"][0]', "contains itself"]),
        (lambda: deep(101), ["100 levels"]),
    ],
)
def test_save_names_the_path_in_the_structure(x, texts, tmp_path):
    with pytest.raises(CheckpointError) as caught:
        flow.save(x(), tmp_path / "x.safetensors")
    for text in texts:
        assert text in str(caught.value)
    assert "test_refused.py" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_paths(tmp_path):
    with pytest.raises(CheckpointError, match="there is no file.*weights.safetensors"):
        flow.load(tmp_path / "weights.safetensors")
    flow.save(1, tmp_path / "weights.mf")
    with pytest.raises(CheckpointError, match="weights.mf"):
        flow.load(tmp_path / "weights.safetensors")
    with pytest.raises(CheckpointError, match="makedirs"):
        flow.save(1, tmp_path / "nowhere" / "x.mf")


# ---- pickles -----------------------------------------------------------------------------------------------------


class Trap:
    """An object that would end the process when unpickled."""

    def __reduce__(self):
        return exit, (3,)


def pickles():
    for protocol in range(6):
        yield f"p{protocol}.pt", pickle.dumps({"w": Trap()}, protocol)
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("model/data.pkl", pickle.dumps(Trap()))
        archive.writestr("model/data/0", b"\0" * 8)
    yield "zip.pth", zipped.getvalue()
    yield "zip_named.safetensors", zipped.getvalue()
    yield "named.safetensors", pickle.dumps(Trap())
    yield "x.pkl", b"garbage"
    objects = io.BytesIO()
    np.savez(objects, a=np.array([Trap()], object))
    yield "objects.npz", objects.getvalue()


@pytest.mark.parametrize(("name", "data"), list(pickles()), ids=lambda x: x if isinstance(x, str) else "")
def test_nothing_is_unpickled(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        flow.load(tmp_path / name)
    assert "pickl" in str(caught.value)
    if not name.endswith(".npz") and "zip" not in name:
        stem = name.rpartition(".")[0]
        line = f'save_file(torch.load("{name}", map_location="cpu", weights_only=True), "{stem}.safetensors")'
        assert line in str(caught.value)


# ---- damage ------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    state = {"w": flow.arange(6.0).reshape(2, 3), "b": flow.tensor([True, False]), "e": flow.zeros(0, 3)}
    flow.save(state | {"lr": 0.1, "s": [(1, None)]}, tmp_path / "x.safetensors")
    return tmp_path / "x.safetensors"


def test_every_flipped_bit_is_detected(saved):
    """One bit of each byte, at alternating positions; all bits with --complete."""
    whole, bits = saved.read_bytes(), 8 if sampling.complete else 1
    for place in range(len(whole)):
        for bit in range(place, place + bits):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit % 8
            saved.write_bytes(damaged)
            with pytest.raises(CheckpointError, match="x.safetensors"):
                flow.load(saved)
                pytest.fail(f"bit {bit % 8} of byte {place} of {len(whole)}")


def test_every_truncation_is_detected(saved):
    whole = saved.read_bytes()
    for length in range(len(whole)):
        saved.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="x.safetensors"):
            flow.load(saved)
    saved.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="(?s)belong to no array.*test_refused.py"):
        flow.load(saved)


def rewrite(path, change):
    """Change the header, with a valid checksum if structure and arrays allow computing one."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header = change(header) or header
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def test_checksum_is_shown(saved):
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(data)
    with pytest.raises(CheckpointError, match="(?s)saved +[0-9a-f]{64}.*read +[0-9a-f]{64}"):
        flow.load(saved)


def put(name, key, value):
    def change(header):
        header[name][key] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (put("w", "data_offsets", [0, 2**62]), "4611686018427387904"),
        (put("w", "shape", [2**40, 2**20]), "1099511627776"),
        (put("w", "shape", [2, -3]), r"\[2, -3\]"),
        (put("w", "shape", [2.0, 3]), r"\[2.0, 3\]"),
        (put("w", "shape", "23"), "shape"),
        (put("w", "shape", [1] * 70), "70 axes"),
        (put("e", "shape", [0, 2**62]), "4611686018427387904"),
        (put("e", "shape", [2**40, 0, 2**40]), "no array can have"),
        (put("w", "shape", [True, 6]), "True"),
        (put("w", "dtype", "F99"), "F99"),
        (put("w", "dtype", ["F32"]), "F32"),
        (put("w", "more", 1), "more"),
        (put("w", "data_offsets", [4, 28]), "gap|overlap"),
        (put("w", "data_offsets", [0]), r"data offsets +\[0\]"),
        (lambda h: h.update(v={"dtype": "F32", "shape": [6], "data_offsets": [0, 24]}), "overlaps"),
        (lambda h: h.update(v={"dtype": "F32", "shape": [2], "data_offsets": [16, 24]}), "overlaps"),
        (lambda h: h.update(v=[1, 2]), r"\[1, 2\]"),
        (lambda h: h.update(__metadata__=3), "metadata"),
        (lambda h: h.update(__metadata__={"a": 3}), "metadata"),
        (lambda h: h["__metadata__"].pop("sha256") and None, "sha256"),
        (lambda h: h["__metadata__"].pop("minflow") and None, "minflow"),
        (lambda h: b"{" + b'"a":' + b"[" * 200_000, "header is damaged"),
        (lambda h: b'{"a":' + b"9" * 5000 + b"}", "header is damaged"),
        (lambda h: b'{"a":NaN}', "NaN"),
        (lambda h: b'{"a":1,"a":1}', "twice"),
        (lambda h: b'["a"]', "does not begin"),
        (lambda h: b"\xff\xfe{}", "does not begin"),
        (lambda h: b"{\xff}", "header is damaged"),
    ],
)
def test_headers(saved, change, text):
    rewrite(saved, change)
    with pytest.raises(CheckpointError, match=text):
        flow.load(saved)


def test_false_sizes_allocate_no_memory(saved):
    whole = saved.read_bytes()

    def reads():
        for length in (2**63 - 1, 2**64 - 1, 10**12, 99_000_000):
            saved.write_bytes(struct.pack("<Q", length) + whole[8:])
            with pytest.raises(CheckpointError, match=f"{length} bytes"):
                flow.load(saved)
        saved.write_bytes(whole)
        rewrite(saved, lambda h: h.update(v={"dtype": "F32", "shape": [2**38], "data_offsets": [26, 26 + 2**40]}))
        with pytest.raises(CheckpointError, match=str(26 + 2**40)):
            flow.load(saved)

    assert peak(reads, below=1 << 22) < 1 << 22


TREES = [
    ["list"],
    ["list", 3],
    ["dict", [["a"]]],
    ["dict", [["a", 1], ["a", 2]]],
    ["dict", [[["list", []], 1]]],
    ["dict", "ab"],
    ["tensor", "nowhere", {}],
    ["tensor", "w", []],
    ["tensor", "w"],
    ["tensor", ["w"], {}],
    ["tensor", "w", {"object": []}],
    ["tensor", "n", {"requires_grad": True}],
    ["float", "0.5"],
    ["dtype", "complex256"],
    ["array", 3],
    ["what", 1],
    [],
    [3],
    {"a": 1},
]


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        *[(json.dumps({"version": 1, "tree": tree}), "structure text is damaged") for tree in TREES],
        ("[1]", r"\[1\]"),
        ("{", "damaged"),
        ('{"tree": 1}', "version"),
        ('{"version": 2, "tree": 1}', "version 2"),
        ('{"version": true, "tree": 1}', "version"),
        ('{"version": 1, "tree": ' + '["list",[' * 120 + "]]" * 120 + "}", "levels"),
        ('{"version": 1, "tree": ' + "[" * 200_000, "damaged"),
    ],
)
def test_structures(structure, text, tmp_path):
    """With a valid checksum: from a program with a bug, or from an attacker."""
    with open(tmp_path / "x.safetensors", "wb", buffering=0) as file:
        container.write(file, {"w": np.ones(2, "f4"), "n": np.ones(2, "i8")}, structure)
    with pytest.raises(CheckpointError, match=text):
        flow.load(tmp_path / "x.safetensors")


def test_invalid_bool(saved):
    data = struct.pack("<Q", 56) + b'{"b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}} ' + b"\x02"
    saved.write_bytes(data)
    with pytest.raises(CheckpointError, match="other than 0 and 1"):
        flow.load(saved)


# ---- npz ---------------------------------------------------------------------------------------------------------


def npy(descr, shape=(), data=b"", before=b""):
    header = before or repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


BEGINNING = b"{'descr': '<f4', 'fortran_order': False, 'shape': "


@pytest.mark.parametrize(
    ("member", "text"),
    [
        (npy("<f8", (10**12,)), "8000000000000"),
        (npy("<f8", (-1,)), "-1"),
        (npy("<f8", (1,), b"\0" * 9), "9 bytes"),
        (npy("<c32", data=b"\0" * 32), "complex256"),
        (npy("<U1", data=b"\0" * 4), "<U1"),
        (npy([("a", "<f4")], data=b"\0" * 4), "dtype"),
        (npy("<f8", (0, 2**62)), "no array can have"),
        (npy("<f8", (2**70, 0)), "no array can have"),
        (npy("<f8", (1.5,), b"\0" * 8), "header"),
        (npy("<f8", ("1",), b"\0" * 8), "header"),
        (npy([["a"]] * 9), "header"),
        *[
            (npy("", before=header), "header")
            for header in (
                b"__import__('os')._exit(3)",
                BEGINNING + b"(1,",
                BEGINNING + b"(1,)",
                BEGINNING + b'"""',
                b"(" * 3000,
                b"[" * 150 + b"]" * 150,
            )
        ],
        (b"short", "header"),
        (b"", "header"),
    ],
)
def test_npz_members(member, text, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", member)

    def read():
        with pytest.raises(CheckpointError, match=text):
            flow.load(tmp_path / "x.npz")

    assert peak(read, below=1 << 22) < 1 << 22


def test_flipped_and_truncated_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(20.0), b=np.ones(3, "f4"))
    whole = path.read_bytes()
    before = {k: v.tolist() for k, v in flow.load(path).items()}
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = flow.load(path)
        except CheckpointError:
            continue
        assert before == {k: v.tolist() for k, v in found.items()}, place  # it was in an unused field
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            flow.load(path)


def test_a_missing_file_is_also_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*net\.pt"):
        flow.load(tmp_path / "net.pt")
    with pytest.raises(FileNotFoundError, match=r"(?s)net\.pt cannot be written.*os\.makedirs"):
        flow.save({"a": 1}, tmp_path / "nowhere" / "net.pt")
