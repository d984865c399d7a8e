"""docs/exercises.md: the answers that each check was tried with.

`python -m tests.exercises.checks_page` tries the exercises whose definition has changed since their row was written, as
proved.tsv knows, and writes their rows; with `--all` it tries all. A test compares the page.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from minflow.exercises import registry
from minflow.exercises.authoring.proof import Proof, prove
from minflow.exercises.registry import all_exercises, find

HASHES = Path(__file__).with_name("proved.tsv")
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


def row(proof: Proof) -> list[str]:
    """Row of the table, as texts."""
    exercise = proof.exercise
    own_hint, right = ([not faults for faults in some] for some in (proof.wrong, proof.right))
    return [
        exercise.number,
        f"`{exercise.name}`",
        exercise.kind,
        str(exercise.points) if exercise.level != "stretch" else f"{exercise.points} extra",
        "{} + {}".format(*proof.cases) if any(proof.cases) else "a value",
        str(proof.empty_points),
        f"{sum(right)} of {len(right)}",
        f"{proof.caught} of {len(proof.wrong)}",
        f"{sum(own_hint)} of {proof.caught}",
        f"{proof.mutants - len(proof.alive)} of {proof.mutants}" if proof.mutants else "",
    ]


def exercises():
    """Exercises of the page: those of the course that give points."""
    return [exercise for exercise in all_exercises() if exercise.points]


def definition_hash(exercise) -> str:
    """Hash of the file that defines an exercise."""
    return hashlib.sha256(registry.course_file(exercise.name).read_bytes()).hexdigest()[:12]


def written_hashes() -> dict[str, str]:
    """Exercise -> hash of the definition from which its row was made."""
    return dict(line.split("\t") for line in HASHES.read_text(encoding="utf-8").splitlines())


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


def page(table: list[list[str]]) -> str:
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


def update(every: bool = False) -> list[str]:
    """Write the rows of changed definitions, or all. Returns the exercises that were tried."""
    rows = {row[1].strip("`"): row for row in table_of(PAGE.read_text(encoding="utf-8"))}
    hashes = {exercise.name: definition_hash(exercise) for exercise in exercises()}
    kept = {} if every else written_hashes()
    tried = [name for name in hashes if name not in rows or kept.get(name) != hashes[name]]
    for name in tried:
        proof = prove(find(name))
        rows[name] = row(proof)
        print(" | ".join(rows[name]), *proof.faults, sep="\n  ", flush=True)
    PAGE.write_text(page([rows[name] for name in hashes]), encoding="utf-8")
    HASHES.write_text("".join(f"{name}\t{hashes[name]}\n" for name in sorted(hashes)), encoding="utf-8")
    return tried


if __name__ == "__main__":
    os.environ["MINFLOW_PROGRESS"] = "0"
    print(f"{len(update('--all' in sys.argv))} rows of {PAGE.name} were written")
