"""benchmarks/compiled.py: its counts and computations, and a run of the smallest configuration."""

import pytest

from tests import benchmarks


@pytest.fixture
def bench():
    with benchmarks.loaded("compiled") as module:
        yield module


@pytest.mark.parametrize(("op", "shapes", "count"), [
    ("matmul", [(5, 7, 3), (5, 7, 4), (5, 3, 4)], 5 * 3 * 7 * 4),
    ("conv2d", [(2, 6, 8, 8), (4, 3, 5, 5), (2, 4, 4, 4)], 2 * 4 * 16 * 3 * 25),  # in two groups
    ("conv2d_input_grad", [(2, 4, 4, 4), (4, 3, 5, 5), (2, 6, 8, 8)], 2 * 4 * 16 * 3 * 25),
    ("conv2d_weight_grad", [(2, 4, 4, 4), (2, 6, 8, 8), (4, 3, 5, 5)], 2 * 4 * 16 * 3 * 25),
])  # fmt: skip
def test_multiplications_of_matmul(bench, op, shapes, count):
    assert bench.multiplications(op, shapes, {"ta": True}) == count


def test_lower_bound_is_compute_or_memory_time(bench):
    assert bench.floor([(8.0, 1.0), (2.0, 6.0)], flops=2.0, moved=1.0) == (10.0, 7.0, 5.0, 7.0, 4.0 + 6.0)


def test_ratios_use_pytorchs_best_mode_of_the_round(bench):
    times = {
        "graph": [(1.0, 2.0), (4.0, 3.0), (2.0, 2.0)],
        "PyTorch": [(9.0, 9.0)] * 3,
        "PyTorch channels_last": [(2.0, 2.0), (4.0, 2.0), (8.0, 2.0)],
    }
    ours, _, best = bench.rows_of(times)
    assert ours == {
        "contestant": "graph",
        "samples": 3,
        "seconds": 2.0,
        "processors": 2.0,
        "peer": "PyTorch channels_last",
        "peer_seconds": 4.0,
        "peer_processors": 2.0,
        "ratio": [0.25, 0.5, 1.0],
        "processors_ratio": [1.0, 1.0, 1.5],
    }
    assert best["ratio"] == [1.0, 1.0, 1.0]
    assert "ratio" not in bench.rows_of({"graph": times["graph"]})[0]


def test_arguments_select_contestants(bench):
    options = bench.parse_options(["--compile", "--onnx", "--threads", "1"])
    assert bench.contestant_names(options, "train") == [*bench.OURS, *bench.TORCH]
    assert bench.contestant_names(options, "predict") == [*bench.OURS, *bench.TORCH, "onnxruntime"]
    assert bench.contestant_names(bench.parse_options(["--no-torch"]), "train") == [*bench.OURS]
    assert (options.threads, options.rounds, options.pin) == ([1], 20, False)


@pytest.mark.slow
def test_smallest_configuration_runs(bench, tmp_path):
    pytest.importorskip("numba")
    rows, _ = benchmarks.figures("compiled", "--only mlp --rounds 2 --threads 1 --no-torch --no-memory", tmp_path)
    peak, *rows = rows
    assert peak["name"] == "peak" and peak["flops"] > 1e9 and peak["bytes"] > 1e8
    contestants = ["graph, compiled", "graph", "eager, compiled", "eager"]
    assert [(row["case"], row["contestant"]) for row in rows] == [(k, c) for k in bench.KINDS for c in contestants]
    predicted = 2 * 100 * (784 * 512 + 512 * 10)
    flops = {"train": 3 * predicted - 2 * 100 * 784 * 512, "predict": predicted}  # no gradient of the images
    for row in rows:
        assert row["flops"] == pytest.approx(flops[row["case"]], rel=1e-4) and row["floor"] > 0
        assert row["seconds"] > 0 and row["processors"] > 0 and "peer" not in row and row["samples"] == 2
