"""benchmarks/ranks.py: its text, and a run of the smallest configuration."""

import importlib.util

import pytest

from tests import benchmarks

mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed (extra mpi)")


@mpi
@pytest.mark.slow
def test_smallest_run(tmp_path):
    rows, said = benchmarks.figures("ranks", "--quick --only mlp --modes minflow", tmp_path)
    (row,) = rows
    assert row["name"] == "mlp" and row["contestant"] == "minflow" and row["one"] > 0 and row["two"] > 0
    assert row["efficiency"] == pytest.approx(row["one"] / row["two"], rel=1e-3) and f"{row['efficiency']:.2f}" in said


def test_a_missed_aim_is_marked():
    figures = {"name": "mlp", "one": 1.0, "two": 1.25, "efficiency": 0.8}
    with benchmarks.loaded("ranks") as bench:
        _, ours, theirs = bench.text_of([{**figures, "contestant": m} for m in ("minflow", "torch")]).splitlines()
    assert ours.endswith("0.80  aim MISSED") and theirs.endswith("1250.00 ms        0.80")
