"""Mistakes that nobody thought of: of each solution's mutants, made by a machine, nearly all are refused."""

import pytest

from minflow.exercises import cells
from minflow.exercises.find import course, find
from minflow.exercises.judge import judge
from tests.exercises.mutants import mutants
from tests.exercises.test_every_exercise import as_typed

CAUGHT = 0.95  # of all; a mutant may also mean the same as what it was made from
LIMIT = 0.5  # seconds, for mutants that never end


def survivors(name):
    """(how many there were, what the ones changed that pass)."""
    exercise = find(name)
    limit, count, alive = exercise.limit, 0, []
    exercise.limit = max(LIMIT, limit / 4)
    try:
        for what, text in mutants(cells.solved_cell(name)):
            count += 1
            try:
                answer = as_typed(exercise, text)
            except Exception:  # a mutant that cannot even be defined
                continue
            if judge(exercise, answer, (), 0).ok:
                alive.append(what)
    finally:
        exercise.limit = limit
    return count, alive


@pytest.mark.slow
def test_nearly_all_mutants_are_caught(monkeypatch):
    monkeypatch.setenv("MINFLOW_PROGRESS", "0")
    from tests.exercises.page import PAGE, table_of

    found = {one.name: survivors(one.name) for one in course() if one.make is not None and callable(one.right)}
    every, alive = sum(count for count, _ in found.values()), sum(len(alive) for _, alive in found.values())
    report = "\n".join(f"{name}: {len(alive)} of {count}: {'; '.join(alive)}"
                       for name, (count, alive) in found.items() if alive)
    print(f"{every} mutants, {alive} pass\n{report}")
    assert alive <= (1 - CAUGHT) * every, report
    written = {row[1].strip("`"): row[-1] for row in table_of(PAGE.read_text(encoding="utf-8")) if row[-1]}
    assert written == {name: f"{count - len(alive)} of {count}" for name, (count, alive) in found.items()}, (
        "write docs/exercises.md with: python -m tests.exercises.page")


def test_what_is_changed():
    source = "def f(x, y=1):\n    '''Doc 1.'''\n    if x < y:\n        x = x - 2\n    return g(x, y)\n"
    changed = dict(mutants(source))
    assert set(changed) == {
        "line 1: 1 + 1", "line 1: without if x < y:", "line 3: other comparison in x < y", "line 3: without x = x - 2",
        "line 4: other operator in x - 2", "line 4: swapped sides in x - 2", "line 4: 2 + 1",
        "line 5: swapped arguments in g(x, y)"}
    assert all("Doc 1." in text for text in changed.values())
