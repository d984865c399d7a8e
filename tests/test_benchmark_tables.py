"""benchmarks/tables.py: the tables of docs/performance.md and the README are those of the recorded runs."""

import json
import re

import pytest

from tests import benchmarks
from tests.sources import TOP


@pytest.fixture
def bench():
    with benchmarks.loaded("tables") as module:
        yield module


@pytest.fixture
def small(bench, monkeypatch, tmp_path):
    """A page with one table, of a run of two rows; (module, page)."""
    rows = [
        {"name": "mlp", "contestant": "graph", "processors": 0.00123, "processors_ratio": [0.4, 0.5, 0.6]},
        {"name": "gpt", "contestant": "graph", "unavailable": "no memory"},
    ]
    run = {"schema": 1, "script": "x", "source": "measured", "date": "2026-11-28", "arguments": [], "settings": {}}
    run |= {"commit": None, "machine": {"processor": "CPU"}, "rows": rows}
    (tmp_path / "x.json").write_text(json.dumps(run))
    lines = {"the MLP": {"name": "mlp"}, "the GPT": {"name": "gpt"}}
    columns = {"time": ({"contestant": "graph"}, bench.time), "of PyTorch": ({}, bench.ratio)}
    monkeypatch.setattr(bench, "TABLES", {"x": bench.Table("x", "model", lines, columns, bench.middle_and_worst)})
    monkeypatch.setattr(bench.record, "RESULTS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- table: x -->\nold\n<!-- end -->\nText.\n")
    monkeypatch.setattr(bench, "PAGES", (page,))
    return bench, page


def run(bench, monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["tables.py", *words])
    return bench.main()


def test_pages_are_up_to_date(bench):
    for page in bench.PAGES:
        text = page.read_text(encoding="utf-8")
        assert bench.updated(text) == text, f"python benchmarks/tables.py writes {page.name}"


def test_every_table_and_run_is_used_once(bench):
    text = "".join(page.read_text(encoding="utf-8") for page in bench.PAGES)
    assert sorted(name for _, name, _ in bench.BLOCK.findall(text)) == sorted(bench.TABLES)
    assert {table.run for table in bench.TABLES.values()} == {file.stem for file in bench.record.RESULTS.glob("*.json")}


def test_every_table_of_the_performance_page_is_generated(bench):
    by_hand = bench.BLOCK.sub("", (TOP / "docs/performance.md").read_text(encoding="utf-8"))
    assert not re.findall(r"^\|.*", by_hand, re.MULTILINE)


def test_no_table_has_an_empty_line(bench):
    for name, table in bench.TABLES.items():
        for line in table.text().split("\n\n")[0].splitlines():
            assert any(cell.strip() for cell in line.split("|")[2:-1]), f"{name}: {line}"


def test_a_table_is_written_with_its_origin(small, monkeypatch):
    bench, page = small
    assert run(bench, monkeypatch) == 0
    assert page.read_text() == (
        "# Page\n\n<!-- table: x -->\n| model | time | of PyTorch |\n|---|---|---|\n| the MLP | 1.23 ms | 0.50 |\n"
        "| the GPT |  |  |\n\nMedian 0.50, worst 0.50 (mlp). "
        "Measured by `python benchmarks/x.py` on 28 November 2026: CPU.\n"
        "<!-- end -->\nText.\n"
    )
    assert run(bench, monkeypatch, "--check") == 0


def test_a_changed_figure_is_found(small, monkeypatch, capsys):
    bench, page = small
    run(bench, monkeypatch)
    page.write_text(page.read_text().replace("1.23 ms", "1.13 ms"))
    assert run(bench, monkeypatch, "--check") == 1
    said = capsys.readouterr().out
    assert "page.md differs from the recorded runs" in said
    assert "-| the MLP | 1.13 ms | 0.50 |" in said and "+| the MLP | 1.23 ms | 0.50 |" in said
    assert "1.13 ms" in page.read_text(), "--check writes nothing"


def test_two_rows_for_a_cell_are_an_error(bench):
    with pytest.raises(ValueError, match="2 rows for one cell"):
        bench.ratio([{"name": "a", "median_ratio": 1.0}, {"name": "a", "median_ratio": 2.0}])


def test_outliers_are_named(bench):
    rows = [
        {"name": name, "case": "large", "contestant": "graph, compiled", "median_ratio": ratio}
        for name, ratio in (("a", 0.5), ("b", 1.8), ("c", 1.2), ("d", 2.0))
    ]
    said = bench.outliers(rows)
    assert said.startswith("In 1 of 4 rows") and said.endswith("2 are above 1.5: d, large 2.0; b, large 1.8.")


def test_cells_of_several_contestants(bench):
    rows = [{"contestant": "graph", "median_ratio": 0.5}, {"contestant": "eager", "processors_ratio": [1.0, 1.5, 2.0]}]
    assert bench.of_each("graph", "eager", "other")(rows) == "0.50 / 1.50 / -"
    assert bench.of_each("graph")([]) == ""
