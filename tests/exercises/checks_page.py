"""docs/exercises.md: the answers that each check was tried with.

`python -m tests.exercises.checks_page` writes the page; a test compares it.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from minflow.exercises import cells
from minflow.exercises.judge import judge
from minflow.exercises.registry import all_exercises, find
from tests.exercises.answers import from_cell, given_to, trials

PAGE = Path(__file__).parents[2] / "docs" / "exercises.md"
HEAD = """# The exercises, and why their checks can be trusted

`from minflow.exercises import check` checks the answer in the cell above it; each exercise is one file of
[minflow/exercises/lessons/](../minflow/exercises/lessons). A test generates this page. For each exercise it runs

- **empty**: the cell as the learner finds it, and the points that it earns: an empty notebook earns none;
- **right**: the solution and other right answers, five times with different numbers: all pass;
- **wrong**: typical wrong answers, five times too: how many are caught, and how many of those get the hint that was
  written for this mistake;
- **mutants**: the solution with one small random mistake (another comparison or operator, a number increased by one,
  two arguments swapped, a line deleted): how many are caught. A mutant that is not caught is equivalent to the
  solution, or nearly so.

Cases are visible or hidden; the hidden ones catch answers that only reproduce the visible numbers. They are not
secret from readers of the package: this is for learning.

"""


def rows(faults=None):
    """Return one row of the table per exercise, as texts. faults: a list to which each fault is added as a sentence."""
    from tests.exercises.test_checks_page import survivors

    for exercise in all_exercises():
        if not exercise.points:
            continue
        name, code = exercise.name, exercise.make_cases is not None
        empty = judge(exercise, from_cell(exercise, cells.answer_cell(name)), given_to(exercise))
        every = list(trials(exercise, every=True))
        passed = [not some for wrong, _, some in every if wrong is None]
        caught = [not any(one.ok for one in verdicts) for wrong, verdicts, _ in every if wrong]
        named = sum(not some for wrong, _, some in every if wrong)
        if faults is not None:
            faults += [fault for *_, some in every for fault in some]
        cases = list(exercise.make_cases(np.random.default_rng(0))) if code else []
        shown = f"{sum(not one.hidden for one in cases)} + {sum(one.hidden for one in cases)}" if code else "a value"
        mutants = ""
        if code and callable(exercise.right):
            count, alive = survivors(name)
            mutants = f"{count - len(alive)} of {count}"
        yield [
            exercise.number,
            f"`{name}`",
            exercise.kind,
            str(exercise.points) if exercise.level != "stretch" else f"{exercise.points} extra",
            shown,
            str(exercise.points if empty.ok else 0),
            f"{sum(passed)} of {len(passed)}",
            f"{sum(caught)} of {len(caught)}",
            f"{named} of {sum(caught)}",
            mutants,
        ]


TITLES = [
    "no.",
    "exercise",
    "kind",
    "points",
    "cases",
    "empty",
    "right",
    "wrong, caught",
    "by their own hint",
    "mutants, caught",
]


def page() -> str:
    table = list(rows())
    lines = ["| " + " | ".join(TITLES) + " |", "|" + "---|" * len(TITLES)]
    lines += ["| " + " | ".join(row) + " |" for row in table]
    return f"{HEAD}{totals(table)}\n\n" + "\n".join(lines) + "\n"


def totals(table) -> str:
    def added(column):
        pairs = [row[column].split(" of ") for row in table if " of " in row[column]]
        return " of ".join(str(sum(int(one[i]) for one in pairs)) for i in (0, 1))

    points = sum(find(row[1].strip("`")).points for row in table if "extra" not in row[3])
    extra = sum(find(row[1].strip("`")).points for row in table if "extra" in row[3])
    return (
        f"{len(table)} exercises, {points} points and {extra} extra. An empty notebook earns "
        f"{sum(int(row[5]) for row in table)}. Right answers that pass: {added(6)}. "
        f"Wrong answers caught: {added(7)}, by their own hint: {added(8)}. Mutants caught: {added(9)}."
    )


def table_of(text: str) -> list[list[str]]:
    """Return the rows of the page."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and line[2].isdigit()
    ]


if __name__ == "__main__":
    os.environ["MINFLOW_PROGRESS"] = "0"
    PAGE.write_text(page(), encoding="utf-8")
