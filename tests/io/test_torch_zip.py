"""PyTorch's files: read without running their pickle, and files with false claims. Mutants: `test_hostile_files.py`."""

import io
import os
import pickle
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.io import torch_zip
from tests.pytorch import needs_torch, torch

FILE = Path(__file__).parent / "files" / "state.pth"  # written by torch.save of PyTorch 2.13


def written(path, contents: dict) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


def zipped(path, program: bytes, **storages) -> Path:
    return written(path, {"x/data.pkl": program, **{f"x/data/{key[1:]}": data for key, data in storages.items()}})


def test_state_is_read(tmp_path):
    """From a file of any name, and from an open one."""
    shutil.copy(FILE, tmp_path / "weights.bin")
    assert flow.load(tmp_path / "weights.bin")["epoch"] == 3
    state = flow.load(io.BytesIO(FILE.read_bytes()), map_location="cpu", weights_only=True)
    model = state["model"]
    w = np.arange(6, dtype="float32").reshape(2, 3)
    for name, want in {
        "fc.weight": w,
        "fc.bias": np.zeros(2),
        "turned": w.T,
        "part": w[1:, ::2],
        "param": w + 1,
        "half": [0.5, 1.5],
        "long": [1, 2**40],
        "int": [3],
        "short": [-3],
        "byte": [255],
        "char": [-1],
        "bool": [True, False],
        "double": 0.1,
        "empty": np.zeros((0, 3)),
    }.items():
        np.testing.assert_array_equal(model[name].numpy(), want, err_msg=name)
    dtypes = {
        "half": flow.float16,
        "long": flow.int64,
        "int": flow.int32,
        "short": flow.int16,
        "byte": flow.uint8,
        "char": flow.int8,
        "bool": flow.bool,
        "double": flow.float64,
        "bf16": flow.bfloat16,
    }
    assert {name: model[name].dtype for name in dtypes} == dtypes
    assert model["bf16"].float().tolist() == [1.5, -2.0]
    assert model["tied"] is model["fc.weight"]
    assert {k: v for k, v in state.items() if k != "model"} == {
        "epoch": 3,
        "lr": 0.1,
        "name": "résumé",
        "best": None,
        "flags": [True, (1, -2.5)],
    }


@needs_torch
def test_files_of_current_pytorch(tmp_path):
    """A model with its optimizer, after one training step."""
    layers = torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 2)
    net = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(3, 1, 4, 4)).sum().backward()
    optimizer.step()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "run.pt")
    state = flow.load(tmp_path / "run.pt")
    for name, want in net.state_dict().items():
        np.testing.assert_array_equal(state["net"][name].numpy(), want.numpy())
    assert state["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.999)
    np.testing.assert_array_equal(
        state["optimizer"]["state"][0]["exp_avg"].numpy(), optimizer.state_dict()["state"][0]["exp_avg"].numpy()
    )
    torch.save(net, tmp_path / "whole.pt")
    with pytest.raises(flow.CheckpointError, match=r"(?s)names 'torch.nn.modules.container.Sequential'.*state_dict"):
        flow.load(tmp_path / "whole.pt")


# ---- programs ------------------------------------------------------------------------------------------------------


class Called:
    """Unpickling this would write a file, which must not happen."""

    def __reduce__(self):
        return Path.touch, (Path("called"),)


STORAGE = b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
TENSOR = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE


def tensor(offset=b"K\x00", shape=b"K\x04\x85", strides=b"K\x01\x85", end=b"\x89}tR.") -> bytes:
    return TENSOR + offset + shape + strides + end


def test_handmade_tensor(tmp_path):
    numbers = np.arange(4, dtype="<f4").tobytes()
    assert flow.load(zipped(tmp_path / "x.pth", tensor(), _0=numbers)).tolist() == [0, 1, 2, 3]
    wide = flow.load(zipped(tmp_path / "y.pth", tensor(shape=b"K\x02K\x03\x86", strides=b"K\x01K\x00\x86"), _0=numbers))
    assert wide.tolist() == [[0, 0, 0], [1, 1, 1]]


LAUGHS = b"\x80\x02]q\x00K\x01a" + b"".join(b"0]q%c(%se" % (k + 1, b"h%c" % k * 9) for k in range(60)) + b"."
PROGRAMS = {
    "a function": (pickle.dumps(Called()), "its pickle names"),
    "a system call": (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "its pickle names 'os.system'"),
    "a function by protocol 4": (pickle.dumps(Called(), 4), "its pickle names"),
    "a name of the table, called": (b"\x80\x02ctorch\nFloatStorage\n)R.", "calls 'torch.FloatStorage'"),
    "a class of torch": (b"\x80\x02ctorch.nn\nLinear\n)\x81.", "its pickle names 'torch.nn.Linear'"),
    "an extension": (b"\x80\x02\x82\x01.", "its pickle has a EXT1"),
    "a new object": (b"\x80\x02ctorch\nSize\n)\x81.", "its pickle has a NEWOBJ"),
    "an instance": (b"(ios\nsystem\n.", "its pickle has a INST"),
    "itself": (b"\x80\x02]q\x00h\x00a.", "hold each other without end"),
    "lists of lists": (LAUGHS, "hold each other without end"),
    "no end": (b"\x80\x02}q\x00", "damaged"),
    "nothing": (b"", "damaged"),
    "text": (b"hello", "damaged"),
    "two results": (b"\x80\x02}}.", "damaged"),
    "an unknown place": (b"\x80\x02h\x05.", "damaged"),
    "no mark": (b"\x80\x02t.", "damaged"),
    "a key that is a list": (b"\x80\x02}]K\x01s.", "a key that is a list"),
    "a bare storage": (b"\x80\x02" + STORAGE[1:] + b".", "got a Storage"),
    "beyond its numbers": (tensor(shape=b"K\x05\x85"), "reaches element 4 of 4"),
    "an offset beyond": (tensor(offset=b"K\x02"), "reaches element 5 of 4"),
    "a negative stride": (tensor(strides=b"J\xff\xff\xff\xff\x85"), "damaged"),
    "a text as shape": (tensor(shape=b"X\x01\x00\x00\x00a"), "damaged"),
    "a truth value as size": (tensor(shape=b"\x88\x85"), "damaged"),
    "more axes than strides": (tensor(shape=b"K\x01K\x01\x86"), "damaged"),
    "an immense view": (tensor(shape=b"J\xff\xff\xff\x7f\x85", strides=b"K\x00\x85"), "far larger than the file"),
    "a storage of nothing": (
        TENSOR.replace(b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x009") + b"K\x00K\x04\x85K\x01\x85\x89}tR.",
        "not in the file",
    ),
    "a storage that is longer": (tensor().replace(b"K\x04tQ", b"K\x09tQ"), "must have 36 bytes, got 16"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_code_runs_and_false_claims_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, said = PROGRAMS[name]
    with pytest.raises(flow.CheckpointError) as caught:
        flow.load(zipped(tmp_path / "x.pth", program, _0=np.arange(4, dtype="<f4").tobytes()))
    assert said in str(caught.value), str(caught.value)
    assert not Path("called").exists()


# ---- small files that grow when they are hashed, compared or formatted ---------------------------------------------

TEXT = b"X\x01\x00\x00\x00a"
ORDERED = b"ccollections\nOrderedDict\n"
KEYS = 4_000


def doubled(step: bytes, first: bytes = b")") -> bytes:
    """An object that contains the previous one twice, 40 levels deep. step: opcodes; X is replaced by the previous
    object.
    """
    return first + b"".join(b"q%c0" % k + step.replace(b"X", b"h%c" % k) for k in range(40))


def number(n: int) -> bytes:
    data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def colliding(key) -> bytes:
    return b"}(" + b"".join(key(k) + b"N" for k in range(KEYS)) + b"u"


TUPLES = doubled(b"XX\x86")
LARGE = b"](" + b"K\x01K\x02\x86" * 1000 + b"eq\xff"  # a list of a thousand pairs, memoised
GROWING = {
    "a nested tuple as a key": b"}" + TUPLES + b"K\x01s",
    "a nested tuple as a key of many": b"}(" + TUPLES + b"K\x01u",
    "a nested tuple as a key of a dict": b"(" + TUPLES + b"K\x01d",
    "a nested tuple as a key of an OrderedDict": ORDERED + b"](]" + TUPLES + b"aK\x01ae\x85R",
    "a nested tuple as an entry": TUPLES,
    "nested lists": doubled(b"(XXl", b"]"),
    "nested dicts": doubled(b"(K\x01XK\x02Xd", b"}"),
    "two nested tuples that are compared": b"}" + TUPLES + b"K\x01s" + TUPLES + b"K\x01s",
    "a nested tuple in an error": TUPLES + b"Q",
    "a nested tuple as the kind of a storage": b"(" + TUPLES + TEXT * 3 + b"K\x01tQ",
    "a nested tuple as the key of a storage": STORAGE[1:15] + b"ctorch\nFloatStorage\n" + TUPLES + TEXT + b"K\x04tQ",
    "a nested tuple as a name": TUPLES + TEXT + b"\x93",
    "a nested tuple as the module of a name": TEXT + TUPLES + b"\x93",
    "a nested tuple as a function": TUPLES + b")R",
    "a nested tuple as a size": b"ctorch\nSize\n" + TUPLES + b"\x85R",
    "a nested tuple as a device": b"ctorch\ndevice\n" + TUPLES + b"\x85R",
    "a nested tuple as a state": b"ccollections\nOrderedDict\n)R" + TUPLES + b"b",
    "a nested tuple as a shape": TENSOR[2:] + b"K\x00" + TUPLES + b"K\x01\x85\x89}tR",
    "a nested tuple as the state of a tensor": TUPLES + b"N\x85b",
    "OrderedDicts of one list": LARGE + b"](" + (ORDERED + b"h\xff\x85R") * 20_000 + b"e",
    "sizes of one list": LARGE + b"](" + b"ctorch\nSize\nh\xff\x85R" * 20_000 + b"e",
    "sizes of one text": b"X"
    + (1 << 16).to_bytes(4, "little")
    + b"a" * (1 << 16)
    + b"q\xff]("
    + b"ctorch\nSize\nh\xff\x85R" * 20_000
    + b"e",
    "marks on a long stack": b"N" * 50_000 + b"(t0" * 50_000,
    "numbers with one hash": colliding(lambda k: number(k * (2**61 - 1))),
    "tuples with one hash": colliding(lambda k: number(k * (2**61 - 1)) + b"\x85"),
    "a mark that is taken away": b"(0(0t",
    "tuples without an end": b")" + b"\x85" * 100_000,
    "tuples without an end as a key": b"})" + b"\x85" * 100_000 + b"Ns",
    "a frozenset": b"(K\x01\x91",
    "a set": b"\x8f(K\x01\x90",
    "a number of four megabytes": b"\x8b" + (1 << 22).to_bytes(4, "little") + b"\x01" * (1 << 22),
    "the same object again, by DUP": b"]2\x86",
}
ATTACKS = """
import resource, sys
from pathlib import Path
import minflow as flow
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        flow.load(path)
        print("read", path.name, flush=True)
    except flow.CheckpointError as error:
        assert len(str(error)) < 1_000, len(str(error))
        print("refused", path.name, flush=True)
"""


def attacked(folder) -> list[str]:
    """Load each file of a folder in a process of its own, with limited memory and processor time."""
    ended = subprocess.run([sys.executable, "-c", ATTACKS, str(folder)], capture_output=True, text=True)
    assert ended.returncode == 0, f"after {ended.stdout.splitlines()[-1:]}: {ended.returncode} {ended.stderr[-2000:]}"
    return ended.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of processor time")
def test_small_files_stay_small(tmp_path):
    """None of them hangs, or takes gigabytes. Before opcodes were counted, a file of 240 bytes could not be
    interrupted.
    """
    for name, program in GROWING.items():
        zipped(tmp_path / name, b"\x80\x02" + program + b".", _0=bytes(16))
    assert [line for line in attacked(tmp_path) if line.startswith("read")] == ["read a nested tuple as a state"]


PARTS = [
    b"(",
    b")",
    b"]",
    b"}",
    b"N",
    b"K\x01",
    b"\x88",
    TEXT,
    b"a",
    b"e",
    b"s",
    b"u",
    b"t",
    b"l",
    b"d",
    b"\x85",
    b"\x86",
    b"\x87",
    b"0",
    b"R",
    b"b",
    b"\x94",
    b"Q",
    ORDERED,
    b"ctorch\nSize\n",
    b"ctorch\ndevice\n",
    STORAGE,
    TENSOR[2:],
    TENSOR[2:] + b"K\x00K\x04\x85K\x01\x85\x89}tR",
    TUPLES,
    ORDERED + b")R",
    *[b"h%c" % k for k in range(6)] * 2,
]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of processor time")
def test_random_programs(tmp_path):
    """Any order of opcodes gives data or a CheckpointError."""
    rng = np.random.default_rng(1)
    for k in range(int(os.environ.get("MINFLOW_TEST_PROGRAMS", "150"))):
        chosen = rng.integers(0, len(PARTS), int(rng.integers(1, 40)))
        program = b"}\x94]\x94" + b"".join(PARTS[n] for n in chosen)
        zipped(tmp_path / f"{k}", b"\x80\x02" + program + b".", _0=bytes(16))
    assert len(attacked(tmp_path)) == len(list(tmp_path.iterdir()))


def test_opcodes_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(torch_zip, "MAX_OPCODES", 1000)
    with pytest.raises(flow.CheckpointError, match="more than 1,000 opcodes"):
        flow.load(zipped(tmp_path / "x.pth", b"\x80\x02" + b"N0" * 500 + b"N."))


def test_keys_of_all_kinds(tmp_path):
    """Strings, numbers, None, booleans and tuples of them, as torch.save writes them."""
    state = {"a": 1, 2: 3, None: 4, 0.5: 5, ("a", 1, (True, None)): 6, -7: 8, (): 9}
    assert flow.load(zipped(tmp_path / "x.pth", pickle.dumps(state, 2))) == state


def test_duplicate_name(tmp_path):
    path = tmp_path / "x.pth"
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for name in ("x/data.pkl", *[f"x/{k}" for k in range(2000)], "x/1999"):
            archive.writestr(name, b"")
    with pytest.raises(flow.CheckpointError, match="occurs twice") as caught:
        flow.load(path)
    assert "'x/1999'" in str(caught.value) and "2,002" in str(caught.value)


def test_compressed_entry_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", tensor())
        archive.writestr("x/data/0", bytes(16))
    with pytest.raises(flow.CheckpointError, match="compressed"):
        flow.load(tmp_path / "x.pth")


def test_big_endian_data(tmp_path):
    contents = {"x/data.pkl": tensor(), "x/byteorder": b"big", "x/data/0": np.arange(4, dtype=">f4").tobytes()}
    assert flow.load(written(tmp_path / "x.pth", contents)).tolist() == [0, 1, 2, 3]
