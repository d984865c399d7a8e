"""PyTorch's own files: read without running their pickle; files that lie, and mutants of one that does not."""

import io
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from tests.pytorch import needs_torch, torch

FILE = Path(__file__).parent / "files" / "state.pth"  # written by torch.save of PyTorch 2.13


def entries():
    with zipfile.ZipFile(FILE) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def written(path, contents: dict) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


def zipped(path, program: bytes, **storages) -> Path:
    return written(path, {"x/data.pkl": program, **{f"x/data/{key[1:]}": data for key, data in storages.items()}})


def test_a_state_is_read():
    state = flow.load(FILE)
    model = state["model"]
    w = np.arange(6, dtype="float32").reshape(2, 3)
    for name, want in {"fc.weight": w, "fc.bias": np.zeros(2), "turned": w.T, "part": w[1:, ::2], "param": w + 1,
                       "half": [0.5, 1.5], "long": [1, 2**40], "int": [3], "short": [-3], "byte": [255], "char": [-1],
                       "bool": [True, False], "double": 0.1, "empty": np.zeros((0, 3))}.items():
        np.testing.assert_array_equal(model[name].numpy(), want, err_msg=name)
    dtypes = {"half": flow.float16, "long": flow.int64, "int": flow.int32, "short": flow.int16, "byte": flow.uint8,
              "char": flow.int8, "bool": flow.bool, "double": flow.float64, "bf16": flow.bfloat16}
    assert {name: model[name].dtype for name in dtypes} == dtypes
    assert model["bf16"].float().tolist() == [1.5, -2.0]
    assert model["tied"] is model["fc.weight"]
    assert {k: v for k, v in state.items() if k != "model"} == {
        "epoch": 3, "lr": 0.1, "name": "résumé", "best": None, "flags": [True, (1, -2.5)]}


def test_from_an_open_file_and_to_a_device():
    assert flow.load(io.BytesIO(FILE.read_bytes()), map_location="cpu", weights_only=True)["epoch"] == 3


def test_it_loads_into_a_model():
    fc = flow.nn.Linear(3, 2)
    state = {name.removeprefix("fc."): x for name, x in flow.load(FILE)["model"].items() if name.startswith("fc.")}
    assert str(fc.load_state_dict(state)) == "<All keys matched successfully>"
    assert fc.weight.tolist() == [[0, 1, 2], [3, 4, 5]]


@needs_torch
def test_what_pytorch_writes_today(tmp_path):
    """A model with its optimizer, trained for a step."""
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
    np.testing.assert_array_equal(state["optimizer"]["state"][0]["exp_avg"].numpy(),
                                  optimizer.state_dict()["state"][0]["exp_avg"].numpy())
    torch.save(net, tmp_path / "whole.pt")
    with pytest.raises(flow.CheckpointError, match=r"(?s)names 'torch.nn.modules.container.Sequential'.*state_dict"):
        flow.load(tmp_path / "whole.pt")


# ---- programs ------------------------------------------------------------------------------------------------------


class Called:
    """What it writes when it is unpickled: nothing may."""

    def __reduce__(self):
        return Path.touch, (Path("called"),)


STORAGE = b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
TENSOR = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE


def tensor(offset=b"K\x00", shape=b"K\x04\x85", strides=b"K\x01\x85", end=b"\x89}tR.") -> bytes:
    return TENSOR + offset + shape + strides + end


def test_a_tensor_by_hand(tmp_path):
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
    "a key that is a list": (b"\x80\x02}]K\x01s.", "damaged"),
    "a bare storage": (b"\x80\x02" + STORAGE[1:] + b".", "a Storage stands where"),
    "beyond its numbers": (tensor(shape=b"K\x05\x85"), "reaches to number 4 of 4"),
    "an offset beyond": (tensor(offset=b"K\x02"), "reaches to number 5 of 4"),
    "a negative stride": (tensor(strides=b"J\xff\xff\xff\xff\x85"), "damaged"),
    "a text as shape": (tensor(shape=b"X\x01\x00\x00\x00a"), "damaged"),
    "a truth value as size": (tensor(shape=b"\x88\x85"), "damaged"),
    "more axes than strides": (tensor(shape=b"K\x01K\x01\x86"), "damaged"),
    "an immense view": (tensor(shape=b"J\xff\xff\xff\x7f\x85", strides=b"K\x00\x85"), "far larger than the file"),
    "a storage of nothing": (TENSOR.replace(b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x009") +
                             b"K\x00K\x04\x85K\x01\x85\x89}tR.", "not in the file"),
    "a storage that is longer": (tensor().replace(b"K\x04tQ", b"K\x09tQ"), "has 16 bytes, 36 are wanted"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_runs_and_lies_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, said = PROGRAMS[name]
    with pytest.raises(flow.CheckpointError) as caught:
        flow.load(zipped(tmp_path / "x.pth", program, _0=np.arange(4, dtype="<f4").tobytes()))
    assert said in str(caught.value), str(caught.value)
    assert not Path("called").exists()


def test_a_packed_entry_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", tensor())
        archive.writestr("x/data/0", bytes(16))
    with pytest.raises(flow.CheckpointError, match="packed"):
        flow.load(tmp_path / "x.pth")


def test_numbers_of_the_other_byte_order(tmp_path):
    contents = {"x/data.pkl": tensor(), "x/byteorder": b"big", "x/data/0": np.arange(4, dtype=">f4").tobytes()}
    assert flow.load(written(tmp_path / "x.pth", contents)).tolist() == [0, 1, 2, 3]


def mutant(rng, data: bytearray) -> bytes:
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(data)))
        kind = rng.integers(4)
        if kind == 0:
            data[at] = int(rng.integers(256))
        elif kind == 1:
            del data[at : at + int(rng.integers(1, 40))]
        elif kind == 2:
            data[at:at] = bytes(rng.integers(0, 256, int(rng.integers(1, 9)), dtype="uint8"))
        else:
            data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


@pytest.mark.parametrize("part", ["file", "pickle"])
def test_mutants(part, tmp_path):
    """Each is read or refused with a CheckpointError; half of them have a pickle that is changed in a whole archive."""
    rng, refused = np.random.default_rng(0), 0
    contents = entries()
    pickled = next(name for name in contents if name.endswith("data.pkl"))
    for _ in range(400):
        path = tmp_path / "x.pth"
        if part == "file":
            path.write_bytes(mutant(rng, bytearray(FILE.read_bytes())))
        else:
            written(path, {**contents, pickled: mutant(rng, bytearray(contents[pickled]))})
        try:
            flow.load(path)
        except flow.CheckpointError:
            refused += 1
    assert refused > 100


def test_a_copy_under_another_name(tmp_path):
    shutil.copy(FILE, tmp_path / "weights.bin")
    assert flow.load(tmp_path / "weights.bin")["epoch"] == 3
