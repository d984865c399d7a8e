"""Weights go from PyTorch to minflow and back, by the lines of docs/loading-weights.md."""

import re
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import CheckpointError
from tests.pytorch import LazyModule, needs_torch, torch

pytestmark = needs_torch
safetensors_torch = LazyModule("safetensors.torch")

PAGE = (Path(__file__).parent.parent.parent / "docs" / "loading-weights.md").read_text(encoding="utf-8")


def net(nn):
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 5 * 5, 6),
        nn.LayerNorm(6),
    )


def outputs(mine, theirs):
    x = np.random.default_rng(0).standard_normal((3, 2, 5, 5)).astype("f4")
    with torch.no_grad():
        return mine.eval()(flow.tensor(x)).detach().numpy(), theirs.eval()(torch.tensor(x)).numpy()


def trained():
    torch.manual_seed(0)
    theirs = net(torch.nn)
    theirs(torch.randn(8, 2, 5, 5))  # updates the running statistics
    return theirs


def line(beginning):
    """Line of the page with this beginning, without its comment."""
    (found,) = re.findall(rf"^{re.escape(beginning)}.*$", PAGE, re.M)
    return found.partition("   #")[0]


def fill(theirs, path):
    """Write a file of this suffix with the weights of PyTorch's model."""
    state = theirs.state_dict()
    if path.suffix == ".safetensors":
        safetensors_torch.save_file(state, path)
    elif path.suffix == ".pt":
        torch.save(state, path)
    else:
        np.savez(path, **{name: t.numpy() for name, t in state.items()})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("torch_model.safetensors", line('model.load_state_dict(flow.load("torch_model')),
        ("model.pt", line('model.load_state_dict(flow.load("model.pt')),
        ("m.npz", 'model.load_state_dict(flow.load("m.npz"))'),
    ],
)
def test_from_a_file(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs, model = trained(), net(flow.nn)
    fill(theirs, tmp_path / name)
    exec(words, {"flow": flow, "model": model})
    np.testing.assert_allclose(*outputs(model, theirs), rtol=1e-4, atol=1e-5)


def test_from_an_old_pt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs, model = trained(), net(flow.nn)
    torch.save(theirs.state_dict(), "model.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(CheckpointError) as caught:
        flow.load("model.pt")
    two = [row.strip() for row in str(caught.value).splitlines() if row.strip().startswith(("import", "safetensors"))]
    assert len(two) == 2 and all(line(row) == row for row in two), "the page and the error show the same lines"
    exec("\n".join(two), {})
    model.load_state_dict(flow.load("model.safetensors"))
    np.testing.assert_allclose(*outputs(model, theirs), rtol=1e-4, atol=1e-5)


def test_to_torch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, theirs = net(flow.nn), trained()
    flow.save(model.state_dict(), "model.safetensors")
    exec(line("torch_model.load_state_dict("), {"safetensors": __import__("safetensors.torch"), "torch_model": theirs})
    np.testing.assert_allclose(*outputs(model, theirs), rtol=1e-4, atol=1e-5)


def test_half_precision(tmp_path):
    safetensors_torch.save_file(
        {"w": torch.tensor([1.5, -2.0]).bfloat16(), "h": torch.tensor([0.5]).half()}, tmp_path / "x.safetensors"
    )
    found = flow.load(tmp_path / "x.safetensors")
    assert found["w"].tolist() == [1.5, -2.0] and found["w"].dtype is flow.bfloat16 and found["h"].dtype is flow.float16
