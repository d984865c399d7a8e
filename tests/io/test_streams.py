"""Open files and io.BytesIO instead of paths; the options of PyTorch's load and save."""

import io

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CheckpointError


def test_state_round_trips_through_memory():
    model, stream = nn.Linear(3, 2), io.BytesIO()
    flow.save(
        model.state_dict(),
        stream,
        _use_new_zipfile_serialization=False,
        pickle_protocol=flow.serialization.DEFAULT_PROTOCOL,
    )
    stream.seek(0)
    other = nn.Linear(3, 2)
    other.load_state_dict(flow.load(stream, map_location="cpu", weights_only=True))
    assert flow.equal(other.weight, model.weight) and flow.equal(other.bias, model.bias)


def test_open_files(tmp_path):
    path = tmp_path / "m.safetensors"
    with open(path, "wb") as file:
        file.write(b"head")
        flow.save({"a": flow.arange(3), "n": 3}, file)
    with open(path, "rb") as file:
        file.seek(4)
        state = flow.load(file, weights_only=False, mmap=True)
    assert state["a"].tolist() == [0, 1, 2] and state["n"] == 3


@pytest.mark.parametrize("where", ["cpu", flow.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage, None])
def test_map_location(where, tmp_path):
    flow.save({"a": flow.ones(2)}, tmp_path / "m.safetensors")
    assert str(flow.load(tmp_path / "m.safetensors", map_location=where)["a"].device) == "cpu:0"


def test_map_location_to_a_missing_gpu(tmp_path):
    flow.save({"a": flow.ones(2)}, tmp_path / "m.safetensors")
    with pytest.raises(flow.DeviceError, match="cuda:0"):
        flow.load(tmp_path / "m.safetensors", map_location="cuda")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: flow.save({}, io.StringIO()), "save: the open file cannot be written"),
        (lambda: flow.load(io.StringIO("x")), "load: the open file cannot be read"),
        (lambda: flow.load(io.BytesIO(b"abc")), "3 bytes are too few"),
        (lambda: flow.load(io.BytesIO(b"")), "0 bytes are too few"),
        (lambda: flow.load(io.BytesIO(b"\x80\x02}q\x00.")), "pickle"),
        (
            lambda: flow.save(flow.optim.SGD(nn.Linear(1, 1).parameters()), io.BytesIO()),
            "a SGD cannot be saved as an object",
        ),
    ],
)
def test_refused_streams(call, said):
    with pytest.raises(CheckpointError, match=said) as caught:
        call()
    assert "test_streams.py" in caught.value.where
