"""benchmarks/networks.py: its networks, and a run of the smallest configuration."""

import numpy as np
import pytest

import minflow as flow
from minflow import vision
from tests import benchmarks


@pytest.fixture
def bench():
    with benchmarks.loaded("networks") as module:
        yield module


def test_every_model_is_measured(bench):
    assert set(vision.models.list_models()) - {"neural_style_transfer"} <= bench.NETWORKS.keys()


def test_arguments_select_networks(bench):
    assert bench.parse_options([]).only == [*bench.NETWORKS]
    quick = bench.parse_options(["--quick"])
    assert {"resnet18", "unet", "gpt", "LSTM"} <= set(quick.only) and "resnet152" not in quick.only
    assert quick.rounds == 3 and bench.parse_options(["--quick", "--only", "vae", "--rounds", "5"]).only == ["vae"]


def test_definitions_are_built_from_another_library(bench):
    class Library:
        __name__, Tensor = "other", object

        class nn:
            class Module:
                def eval(self):
                    return "eval"

            Conv2d = Linear = MaxPool2d = ReLU = Flatten = Dropout = Sequential = lambda *args, **kwargs: args

    names = bench.definitions("minflow.vision.models.lenet", Library())
    assert issubclass(names.LeNet, Library.nn.Module) and names.lenet().eval() == "eval"
    assert bench.definitions("minflow.vision.models.lenet", flow).LeNet is vision.models.LeNet


@pytest.mark.parametrize("name", ["lenet", "vit_tiny", "gpt", "GRU", "TransformerEncoder", "conv1d", "vae"])
def test_step_and_results_of_a_network(bench, name):
    training = bench.training((flow, flow.nn), name)
    before = [p.numpy().copy() for p in training.model.parameters()]
    assert np.isfinite(bench.compiled.our_step(training, "train", False)().item())
    assert any((a != b.numpy()).any() for a, b in zip(before, training.model.parameters()))
    results = bench.results(training)
    assert {"prediction", "loss"} < results.keys() and all(array.dtype == np.float64 for array in results.values())
    assert results["loss"] == bench.results(training)["loss"]  # without dropout


@pytest.mark.parametrize("name", ["lenet", "mobilenet_v2", "vit_tiny", "gpt", "LSTM", "TransformerEncoder", "vae"])
def test_networks_are_the_same_in_pytorch(bench, name):
    torch = pytest.importorskip("torch")
    pair = [bench.training((lib, lib.nn), name) for lib in (flow, torch)]
    assert bench.difference(*pair) <= bench.TOLERANCE


def test_summary_names_the_worst_network(bench):
    rows = [
        {"name": name, "case": "train", "peer": "PyTorch", "processors_ratio": [0.0, ratio, 9.0]}
        for name, ratio in [("a", 0.5), ("b", 3.0), ("c", 1.0)]
    ]
    assert bench.summary(rows) == {"train": {"median": 1.0, "worst": 3.0, "network": "b"}}


@pytest.mark.slow
def test_smallest_configuration_runs(tmp_path):
    pytest.importorskip("numba")
    rows, said = benchmarks.figures("networks", "--only autoencoder vae --rounds 1 --no-torch", tmp_path)
    kinds = [(name, kind) for name in ("autoencoder", "vae") for kind in ("train", "predict")]
    assert [(row["name"], row["case"]) for row in rows] == kinds
    assert all(row["contestant"] == "minflow" and row["processors"] > 0 and "peer" not in row for row in rows)
    assert "autoencoder" in said
