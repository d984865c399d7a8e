"""benchmarks/gpu.py: without a GPU it says so; on the stand-in it measures minflow's contestants."""

import pytest

import minflow as flow
from tests import benchmarks
from tests.processes import output


@pytest.fixture
def bench():
    with benchmarks.loaded("gpu") as module:
        yield module


def test_without_a_gpu_there_are_no_figures():
    if flow.cuda.is_available():
        pytest.skip("there is a GPU here, on which the program takes minutes")
    assert output(benchmarks.FOLDER / "gpu.py").startswith("no figures: ")


@pytest.mark.parametrize("name", ["mlp", "LSTM"])
def test_measures_minflow(bench, cuda, name):
    options = bench.parse_options(["--no-torch", "--rounds", "2", "--seconds", "0.001"])
    for kind in bench.KINDS if name == "mlp" else ("predict",):
        row = bench.measure(name, kind, options)
        assert list(row["contestants"]) == ["graph", "eager"]
        assert all([found["seconds"] > 0 and found["peak"] > 0 for found in row["contestants"].values()]), row
        assert len([*bench.lines_of(row)]) == 3


def test_missed_aims_are_said(bench):
    contestants = {name: {"seconds": 1e-3, "peak": 1 << 20, "launches": 7, "copies": 0} for name in ("graph", "eager")}
    contestants["torch.compile"] = {"unavailable": "RuntimeError: no compiler"}
    row = {"model": "mlp", "kind": "train", "contestants": contestants}
    said = [
        *bench.lines_of({**row, "ratios": {"graph / PyTorch": [0.5, 0.6, 0.7], "eager / PyTorch": [1.0, 1.1, 1.3]}})
    ]
    assert "RuntimeError: no compiler" in said[3] and "7 launches" in said[1]
    assert said[4].endswith("0.60 [0.50, 0.70]  aim 0.5 MISSED") and said[5].endswith("1.10 [1.00, 1.30]")
