"""The SummaryWriter of tensorboardX takes tensors; without the package it is refused at the call."""

import importlib
import sys
from types import ModuleType

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import GraphError, MissingDependencyError, MissingModuleError


class Recorder:
    """The methods of tensorboardX's SummaryWriter that the test calls."""

    def __init__(self, logdir=None, **options):
        self.logdir, self.calls = logdir, []

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.calls.append((tag, scalar_value, global_step))

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None):
        self.calls.append((main_tag, tag_scalar_dict, global_step))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def add_graph(self, model):
        self.calls.append(model)


def imported(monkeypatch, writer):
    """The module, with this class as tensorboardX's; None: without tensorboardX."""
    package = ModuleType("tensorboardX")
    package.SummaryWriter, package.summary = writer, ModuleType("tensorboardX.summary")
    monkeypatch.setitem(sys.modules, "tensorboardX", package if writer else None)
    module = sys.modules.pop("minflow.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "minflow.utils.tensorboard", module)
    del sys.modules["minflow.utils.tensorboard"]
    return importlib.import_module("minflow.utils.tensorboard")


def test_tensors_are_written_as_arrays(monkeypatch):
    with imported(monkeypatch, Recorder).SummaryWriter("logs") as writer:
        writer.add_scalar("loss", flow.tensor(2.5, requires_grad=True), 1)
        writer.add_scalars("errors", {"train": flow.ones(1), "test": 0.5}, global_step=2)
        writer.add_scalar("rate", flow.tensor(0.5, dtype=flow.bfloat16))
    (tag, loss, step), (_, errors, _), (_, rate, _) = writer.calls
    assert (tag, step, writer.log_dir) == ("loss", 1, "logs") and isinstance(loss, np.ndarray)
    assert (loss, rate) == (2.5, 0.5)
    assert isinstance(errors["train"], np.ndarray) and errors["test"] == 0.5
    with pytest.raises(GraphError, match="no graph of a model") as caught:
        writer.add_graph(flow.nn.Linear(1, 1))
    assert "flow.show" in caught.value.hint


def test_without_the_package(monkeypatch):
    module = imported(monkeypatch, None)
    with pytest.raises(
        MissingDependencyError, match=r"unlike flow.watch .* needs the package 'tensorboardX'"
    ) as caught:
        module.SummaryWriter("logs")
    assert "tensorboardX" in caught.value.hint
    with pytest.raises(MissingModuleError, match="hparams") as caught:
        exec("from minflow.utils.tensorboard.summary import hparams", {})
    assert "flow.watch" in caught.value.hint
