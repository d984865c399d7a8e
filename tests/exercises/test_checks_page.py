"""docs/exercises.md is up to date, and unforeseen mistakes, mutants of each solution, are nearly all refused."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minflow.exercises.authoring.mutants import mutants
from minflow.exercises.authoring.proof import CAUGHT
from tests.exercises import checks_page

TOP = Path(__file__).parents[2]
PARTS = 4
NAMED = 8  # the column of wrong answers with their own hint


def counted(rows, column):
    """The sums of a column of "6 of 7"."""
    pairs = [[int(number) for number in row[column].split(" of ")] for row in rows if row[column]]
    return tuple(map(sum, zip(*pairs)))


def test_nearly_all_mutants_and_mistakes_are_named():
    written = checks_page.table_of(checks_page.PAGE.read_text(encoding="utf-8"))
    for column in (NAMED, -1):
        caught, of = counted(written, column)
        assert caught >= CAUGHT * of


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_page_matches_the_checks(part):
    """docs/exercises.md: empty, right and wrong answers with all seeds, and mutants; a part of the exercises.

    It runs in a separate process, like the program that writes the page: next to gigabytes of other tests, garbage
    collection alone uses up the time limit of answers to 14.2.
    """
    program = (
        "import json; from tests.exercises.checks_page import exercises, prove, row\n"
        f"proofs = [prove(exercise) for exercise in exercises()[{part}::{PARTS}]]\n"
        "print(json.dumps([[row(proof) for proof in proofs], [line for proof in proofs for line in proof.faults]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=TOP,
        env={**os.environ, "MINFLOW_PROGRESS": "0"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    table, faults = json.loads(done.stdout.splitlines()[-1])
    written = checks_page.table_of(checks_page.PAGE.read_text(encoding="utf-8"))[part::PARTS]
    hint = "\n".join(["write it with: python -m tests.exercises.checks_page --all", *faults])
    assert [row[:NAMED] for row in written] == [row[:NAMED] for row in table], hint
    # Endless answers are stopped by a clock: on busy cores the last two columns may differ by one.
    for ours, page in zip(table, written):
        for column in (NAMED, -1):
            pairs = [counted([row], column) for row in (ours, page)]
            assert pairs[0] == pairs[1] or all(abs(x - y) <= 1 for x, y in zip(*pairs)), (ours, hint)


def test_which_changes_are_made():
    source = "def f(x, y=1):\n    '''Doc 1.'''\n    if x < y:\n        x = x - 2\n    return g(x, y)\n"
    changed = dict(mutants(source))
    assert set(changed) == {
        "line 1: 1 + 1",
        "line 1: without if x < y:",
        "line 3: other comparison in x < y",
        "line 3: without x = x - 2",
        "line 4: other operator in x - 2",
        "line 4: swapped sides in x - 2",
        "line 4: 2 + 1",
        "line 5: swapped arguments in g(x, y)",
    }
    assert all("Doc 1." in text for text in changed.values())


def test_rows_are_written_from_the_definitions_of_today():
    """The quick check of the page: each row was written after the last change of its exercise."""
    today = {exercise.name: checks_page.definition_hash(exercise) for exercise in checks_page.exercises()}
    stale = sorted(name for name, _ in checks_page.written_hashes().items() ^ today.items())
    assert not stale, f"write them with: python -m tests.exercises.checks_page {set(stale)}"


def test_only_changed_rows_are_written(tmp_path, monkeypatch):
    for name in ("PAGE", "HASHES"):
        copy = tmp_path / getattr(checks_page, name).name
        copy.write_bytes(getattr(checks_page, name).read_bytes())
        monkeypatch.setattr(checks_page, name, copy)
    names = [exercise.name for exercise in checks_page.exercises()]
    hashes = dict.fromkeys(names, "today")
    monkeypatch.setattr(checks_page, "definition_hash", lambda exercise: hashes[exercise.name])
    checks_page.HASHES.write_text("".join(f"{name}\ttoday\n" for name in names if name != "blind"))
    before = checks_page.PAGE.read_text(encoding="utf-8")
    checks_page.PAGE.write_text(re.sub(r"\| `blind`.*", "| `blind` | old |", before), encoding="utf-8")
    assert checks_page.update() == ["blind"]
    assert checks_page.PAGE.read_text(encoding="utf-8") == before
    assert checks_page.update() == []
