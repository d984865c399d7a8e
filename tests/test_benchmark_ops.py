"""benchmarks/ops.py: selection, sorting and marking of rows, and a run of all rows."""

import pytest

from tests import benchmarks


@pytest.fixture
def bench():
    with benchmarks.loaded("ops") as module:
        yield module


def row(name, size="small", kind="forward", **ratios):
    contestants = {
        one.replace("_", ", "): {"processors_ratio": [0.0, r, 9.0], "processors": 1e-3} for one, r in ratios.items()
    }
    return {
        "name": name,
        "size": size,
        "kind": kind,
        "best": "PyTorch",
        "contestants": {**contestants, "PyTorch": {"processors_ratio": [1.0, 1.0, 1.0], "processors": 2e-3}},
    }


def test_arguments_select_rows(bench):
    options = bench.parse(["--only", "argmax", "Adam", "--sizes", "large"])
    assert bench.selected_rows(options) == [
        ("argmax of rows", "forward", "large"),
        ("Adam", "optimizer", "large"),
        ("AdamW", "optimizer", "large"),
    ]
    assert bench.selected_rows(bench.parse(["--only", "LSTM", "--kinds", "backward"])) == [
        ("LSTM", "backward", "small"),
        ("LSTM", "backward", "large"),
    ]


def test_worst_graph_comes_first(bench):
    rows = [row("a", graph=0.5, eager=9.0), row("b", graph_compiled=3.0, graph=2.0), row("c", graph=1.5)]
    assert [one["name"] for one in bench.worst_first(rows)] == ["b", "c", "a"]
    assert bench.worst_first([{"name": "d", "contestants": {}}, rows[0]])[0]["name"] == "a"


def test_cliffs_are_marked(bench):
    assert bench.cell(1.5) == "1.50" and bench.cell(1.51) == "1.51!" and bench.cell(None) == "-"
    assert bench.line(row("a", graph=1.6)).split() == ["a", "fwd", "small", "-", "1.60!", "-", "-", "2.00", "ms"]


@pytest.mark.parametrize("contestant", ["graph", "eager"])
def test_every_row_is_valid_minflow_code(bench, contestant):
    everything = bench.selected_rows(bench.parse(["--sizes", "small"]))
    assert len({name for name, _, _ in everything}) > 70
    for row in everything:
        assert bench.step_of(*row, contestant)() is not None, row


@pytest.mark.slow
def test_smallest_configuration_runs(bench, tmp_path):
    pytest.importorskip("numba")
    rows, _ = benchmarks.figures("ops", "--rounds 1 --only cumsum AdamW --no-torch", tmp_path)
    cumsum = [("cumsum", f"{size} {kind}") for kind in bench.KINDS for size in bench.SIZES]
    assert sorted({(one["name"], one["case"]) for one in rows}) == sorted(
        [("AdamW", "large optimizer"), ("AdamW", "small optimizer"), *cumsum]
    )
    assert len(rows) == 6 * 4 and not [one["unavailable"] for one in rows if "unavailable" in one]
