"""Unforeseen mistakes: nearly all generated mutants of each solution are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minflow.exercises import cells
from minflow.exercises.judge import judge
from minflow.exercises.registry import find
from tests.exercises.answers import from_cell
from tests.exercises.mutants import mutants

TOP = Path(__file__).parents[2]
CAUGHT = 0.95  # of all; some mutants are equivalent to the original
NAMED = 8  # the column of wrong answers with their own hint
LIMIT = 0.5  # seconds, for mutants that never end


def survivors(name):
    """Return (number of mutants, changes of those that pass)."""
    exercise = find(name)
    limit, count, alive = exercise.time_limit, 0, []
    exercise.time_limit = max(LIMIT, limit / 4)
    try:
        for what, text in mutants(cells.solved_cell(name)):
            count += 1
            try:
                answer = from_cell(exercise, text)
            except Exception:  # a mutant that cannot be defined
                continue
            if judge(exercise, answer, (), 0).ok:
                alive.append(what)
    finally:
        exercise.time_limit = limit
    return count, alive


@pytest.mark.slow
def test_page_matches_the_checks():
    """docs/exercises.md: empty, right and wrong answers with all seeds, and mutants, nearly all of which are caught.

    It runs in a separate process, like the program that writes the page: next to gigabytes of other tests, garbage
    collection alone uses up the time limit of answers to 14.2.
    """
    from tests.exercises.checks_page import PAGE, table_of

    program = (
        "import json; from tests.exercises.checks_page import rows\n"
        "faults = []; print(json.dumps([list(rows(faults)), faults]))"
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
    pairs = [[int(number) for number in row[-1].split(" of ")] for row in table if row[-1]]
    caught, every = map(sum, zip(*pairs))
    assert caught >= CAUGHT * every, f"{every - caught} of {every} mutants pass"
    named, of = map(sum, zip(*[[int(number) for number in row[NAMED].split(" of ")] for row in table]))
    assert named >= CAUGHT * of, "\n".join(faults)
    # Endless answers are stopped by a clock: on busy cores the last two columns may differ by one.
    written = table_of(PAGE.read_text(encoding="utf-8"))
    assert [row[:NAMED] for row in written] == [row[:NAMED] for row in table], "\n".join(
        ["write it with: python -m tests.exercises.checks_page", *faults]
    )


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
