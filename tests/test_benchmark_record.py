"""benchmarks/record.py: files of runs, their checks, and what is said about a run."""

import json

import pytest

from tests import benchmarks


@pytest.fixture
def bench():
    with benchmarks.loaded("record") as module:
        yield module


@pytest.fixture
def run(bench, tmp_path):
    """A finished run of two rows, and its file."""
    options = bench.parser("Doc.").parse_args(["--output", str(tmp_path / "run.json")])
    run = bench.Run("eager", options)
    run.add(name="mlp", seconds=0.00272, samples=9, peer="PyTorch", ratio=[1.11, 1.14, 1.16], aim=None)
    run.add(name="mlp", contestant="graph", unavailable="no graph")
    run.finish()
    return tmp_path / "run.json"


def test_a_run_is_read_as_it_was_written(bench, run):
    found = bench.load(run)
    assert found["rows"] == [
        {"name": "mlp", "seconds": 0.00272, "samples": 9, "peer": "PyTorch", "ratio": [1.11, 1.14, 1.16]},
        {"name": "mlp", "contestant": "graph", "unavailable": "no graph"},
    ]
    machine = found["machine"]
    assert machine["processor"] and machine["cores"] >= 1 and machine["packages"]["numpy"] and len(machine["load"]) == 2
    assert found["source"] == "measured" and (found["commit"] is None or len(found["commit"]["hash"]) == 40)


@pytest.mark.parametrize(("place", "value", "fault"), [
    (("schema",), 2, "schema must be 1, got 2"),
    (("source",), "memory", "source must be ('measured', 'page'), got 'memory'"),
    (("date",), "", "date must be a text, got ''"),
    (("rows",), {}, "rows must be a list, got {}"),
    (("commit",), {"hash": "12"}, """commit must be null or {"hash": text, "dirty": boolean}, got {'hash': '12'}"""),
    (("machine", "cores"), 0, "machine.cores must be a whole number of at least 1, got 0"),
    (("rows", 0), 3, "rows[0] must be an object, got 3"),
    (("rows", 0, "seconds"), "2 ms", "rows[0].seconds must be a number above 0, got '2 ms'"),
    (("rows", 0, "seconds"), float("inf"), "rows[0].seconds must be a number above 0, got inf"),
    (("rows", 0, "ratio"), [2, 1, 3], "rows[0].ratio must be three rising numbers above 0, got [2, 1, 3]"),
    (("rows", 0, "peak"), {"mb": 1}, "rows[0].peak must be a text, a number or a list of them, got {'mb': 1}"),
    (("rows", 1), {"name": "mlp", "peer": "PyTorch"}, "rows[1] has the same name, case and contestant as rows[0]"),
    (("rows", 1), {"case": "train"}, "rows[1].name is missing"),
])  # fmt: skip
def test_a_damaged_file_is_refused(bench, run, place, value, fault):
    facts = json.loads(run.read_text())
    inner = facts
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    run.write_text(json.dumps(facts))
    with pytest.raises(bench.DamagedRun) as caught:
        bench.load(run)
    assert fault in str(caught.value) and str(run) in str(caught.value) and "--record writes it" in str(caught.value)


def test_half_a_file_is_refused(bench, run):
    run.write_text(run.read_text()[:200])
    with pytest.raises(bench.DamagedRun, match="cannot be read as JSON"):
        bench.load(run)


def test_a_script_cannot_write_a_damaged_file(bench, tmp_path):
    file = tmp_path / "run.json"
    run = bench.Run("eager", bench.parser("Doc.").parse_args(["--output", str(file)]))
    run.add(name="mlp", seconds=-1.0)
    with pytest.raises(bench.DamagedRun, match=r"rows\[0\]\.seconds must be a number above 0, got -1\.0"):
        run.finish()
    assert not file.exists()


def test_a_recorded_run_goes_to_the_results(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    for words, name in ((["--record"], "eager"), (["--record", "eager_numpy"], "eager_numpy")):
        assert bench.Run("eager", bench.parser("Doc.").parse_args(words)).files == [tmp_path / f"{name}.json"]
    assert bench.Run("eager", bench.parser("Doc.").parse_args([])).files == []


def test_provenance_states_command_commit_and_machine(bench):
    machine = {
        "processor": "AMD EPYC",
        "cores": 2,
        "python": "3.11.7",
        "packages": {"torch": "2.13.0"},
        "load": [0.5, 2],
    }
    run = {"source": "measured", "script": "eager", "date": "2026-11-08", "machine": machine}
    run |= {"arguments": ["--only", "x + 1"], "settings": {"MINFLOW_MACHINE": "0"}}
    run |= {"commit": {"hash": "0123456789abcdef", "dirty": False}}
    where = "AMD EPYC, 2 cores, load 0.5 to 2.0, Python 3.11.7, PyTorch 2.13.0"
    command = "`MINFLOW_MACHINE=0 python benchmarks/eager.py --only 'x + 1'`"
    assert bench.provenance(run) == f"Measured by {command} at commit 01234567 on 8 November 2026: {where}."
    changed = run | {"commit": {"hash": "0123456789abcdef", "dirty": True}, "arguments": [], "settings": {}}
    assert "`python benchmarks/eager.py` at commit 01234567 with changes on" in bench.provenance(changed)
    assert bench.provenance({**run, "source": "page", "note": "Busy cores."}).startswith("Stated by this page on 8")
    assert bench.provenance({**run, "source": "page", "note": "Busy cores."}).endswith("PyTorch 2.13.0. Busy cores.")


def test_where_a_run_is_written_is_not_an_argument(bench):
    assert bench.without_output(["mlp", "--output", "a.json", "--rounds", "3"]) == ["mlp", "--rounds", "3"]
    assert bench.without_output(["--output=a.json", "mlp"]) == ["mlp"]
