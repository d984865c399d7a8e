"""Proof of an exercise: its check is tried with the answers of its definition, and with mutants of its solution.

The empty answer earns nothing, right answers pass with every seed, each named wrong answer is caught and gets its own
hint, and nearly no mutant passes. `minflow exercises try` prints it; the tests of the course use its parts. Unlike in
grading, answers run in this process: they are the author's. Read next: `mutants.py`, `shortcuts.py`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import linecache
import textwrap
import types
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import cells, record
from ..card import card_text, make_card
from ..checker import draw
from ..definition import NOT_GIVEN, Exercise, NamedWrongAnswer
from ..judge import Verdict, definition_value, judge
from ..registry import lesson_exercises
from .mutants import mutants
from .shortcuts import shortcuts

NUMBERS = itertools.count(1)
SEEDS = range(5)
FEWEST_RIGHT, FEWEST_WRONG, FEWEST_CASES = 3, 5, 5
MUTANT_SECONDS = 0.5  # least limit of a case, for mutants that never end
CAUGHT = 0.95  # share of the mutants; some are equivalent to the solution


# ---- answers as cells -----------------------------------------------------------------------------------------------


def run_cell(text: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a cell with variables and return its variables. Its source is found by tracebacks and by the checker."""
    text = textwrap.dedent(text)
    file = f"<ipython-input-{next(NUMBERS)}-0>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"__name__": "__main__", **names}
    # without our own __future__ annotations, which would turn a job's annotations into strings
    exec(compile(text, file, "exec", dont_inherit=True), space)
    return space


def lesson_names(exercise: Exercise) -> dict[str, Any]:
    """Variables of a cell: the imports of lessons, the modules that the definition imports, and the given variables."""
    import minflow as flow
    from minflow.compiler.passes.rewrite import rewrite
    from minflow.core.ir import outputs_of

    names: dict[str, Any] = {name: __import__(name) for name in ("math", "os", "statistics", "time")}
    names |= {"flow": flow, "nn": flow.nn, "np": np, "tp": flow.typing, "draw": draw}
    names |= {"rewrite": rewrite, "outputs_of": outputs_of}
    for name, value in getattr(exercise.make_cases, "__globals__", {}).items():
        if isinstance(value, types.ModuleType):
            names.setdefault(name, value)
    return names | dict(zip(exercise.given, given_to(exercise)))


def from_cell(exercise: Exercise, text: str) -> Any:
    """Answer of a cell with this text, run after the imports of its lesson. Raises what the cell raises."""
    return run_cell(text, lesson_names(exercise))[exercise.answer]


def given_to(exercise: Exercise) -> tuple:
    """Arguments that a check takes after a value: random ones, or the definition's examples."""
    if exercise.draw_object is not None:
        return (draw(exercise.name),)
    return tuple(exercise.examples) if exercise.given else ()


# ---- the answers of a definition ------------------------------------------------------------------------------------


def fault(verdict: Verdict, wrong: NamedWrongAnswer | None) -> str:
    """Describe an unexpected verdict, "" if it is as expected.

    A right answer (wrong is None) must pass; a wrong one must get its hint, or be refused by a rule of the exercise.
    """
    if wrong is None:
        return "" if verdict.ok else f"is not right: {reply(verdict)}"
    if verdict.ok:
        return "passes"
    if verdict.wrong is wrong or (verdict.outcome == "refused" and verdict.exercise.forbidden):
        return ""
    return f"is taken for {verdict.wrong.name!r}" if verdict.wrong else f"gets no hint of its own: {reply(verdict)}"


def reply(verdict: Verdict) -> str:
    """Outcome of a verdict in one line, with the failing case."""
    where = f", case {verdict.number}" if verdict.number else ""
    case = f" ({verdict.case.text})" if verdict.case and verdict.case.text else ""
    error = verdict.result.error if verdict.result else None
    why = verdict.message or (f"{error.name}: {error.text}" if error else "")
    return f"{verdict.outcome}{where}{case}{': ' if why else ''}{why}"


@contextlib.contextmanager
def patient(exercise: Exercise, times: float = 20) -> Iterator[None]:
    """Allow more time per case, so that verdicts do not depend on other programs on this machine."""
    limit = exercise.time_limit
    exercise.time_limit = times * limit
    try:
        yield
    finally:
        exercise.time_limit = limit


def trials(
    exercise: Exercise, every: bool = False
) -> Iterator[tuple[str, NamedWrongAnswer | None, list[Verdict], list[str]]]:
    """Yield (name, wrong answer or None, verdicts, faults) for each answer in an exercise's definition.

    every: judge it with every seed, not with one that depends on its name.
    """
    given, code = given_to(exercise), exercise.make_cases is not None
    value = (lambda one: one) if code else lambda one: definition_value(one, given)
    by_cell = code or not exercise.given
    solution = from_cell(exercise, cells.solved_cell(exercise.name)) if by_cell else value(exercise.right)
    answers: list[tuple[str, NamedWrongAnswer | None, Any]] = [("the solution", None, solution)]
    answers += [(f"right answer {number}", None, value(one)) for number, one in enumerate(exercise.other_solutions, 2)]
    answers += [(wrong.name, wrong, value(wrong.answer)) for wrong in exercise.wrongs]
    for name, wrong, answer in answers:
        one = zlib.crc32(f"{exercise.name} {name}".encode()) % len(SEEDS)
        seeds = [0] if not code else SEEDS if every else [one]
        verdicts, faults = [], []
        for seed in seeds:
            verdict = judge(exercise, answer, given, seed)
            if fault(verdict, wrong):  # possibly just too slow; answers that never end cost this only once
                with patient(exercise):
                    verdict = judge(exercise, answer, given, seed)
            verdicts.append(verdict)
            if what := fault(verdict, wrong):
                faults.append(f"{name!r} (seed {seed}) {what}")
        yield name, wrong, verdicts, faults


def survivors(exercise: Exercise) -> tuple[int, list[str]]:
    """Number of mutants of the solution, and the changes of those that pass."""
    count, alive = 0, []
    with patient(exercise, max(MUTANT_SECONDS, exercise.time_limit / 4) / exercise.time_limit):
        for what, text in mutants(cells.solved_cell(exercise.name)):
            count += 1
            try:
                answer = from_cell(exercise, text)
            except Exception:  # a mutant that cannot be defined
                continue
            if judge(exercise, answer, (), 0).ok:
                alive.append(what)
    return count, alive


def passing_shortcuts(exercise: Exercise) -> list[str]:
    """Answers without the work that pass, such as a constant or the right result in another form."""
    given = given_to(exercise)
    return [what for what, answer in shortcuts(exercise, given) if judge(exercise, answer, given, 0).ok]


def gaps(exercise: Exercise) -> list[str]:
    """Parts that the definition lacks, as sentences."""
    code = exercise.make_cases is not None
    cases = list(exercise.make_cases(np.random.default_rng(0))) if exercise.make_cases else []
    hintless = [wrong.name for wrong in exercise.wrongs if not wrong.hints or not all(wrong.hints)]
    right, wrong = 1 + len(exercise.other_solutions), len(exercise.wrongs)
    found = {
        "it has no solution": exercise.right is NOT_GIVEN,
        "it has no question": not exercise.question,
        f"it has {wrong} wrong answers; write at least {FEWEST_WRONG}": exercise.points and wrong < FEWEST_WRONG,
        f"these wrong answers have no hint: {', '.join(hintless)}": hintless,
        f"it has {right} right answers; write at least {FEWEST_RIGHT}, in different ways": code
        and right < FEWEST_RIGHT,
        f"it has {len(cases)} cases; write at least {FEWEST_CASES}": code and len(cases) < FEWEST_CASES,
        **{
            f"its number {exercise.number} is also that of {other.name}": True
            for other in lesson_exercises(exercise.lesson)
            if other.number == exercise.number and other.name != exercise.name and not exercise.task  # not a variant
        },
        "it has no hidden case: an answer that knows the visible numbers passes": code
        and not any(one.hidden for one in cases),
    }
    return [sentence for sentence, is_missing in found.items() if is_missing]


# ---- the whole proof ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Proof:
    """Outcome of all trials of an exercise.

    empty_points: points that the empty answer earns. right, wrong: faults of each answer. caught: number of wrong
    answers that do not pass. mutants: number of mutants. alive: changes of the mutants that pass. shortcuts:
    answers without the work that pass. cases: numbers of visible and hidden cases, (0, 0) for a value. gaps: what the
    definition lacks.
    """

    exercise: Exercise
    empty_points: int = 0
    right: list[list[str]] = dataclasses.field(default_factory=list)
    wrong: list[list[str]] = dataclasses.field(default_factory=list)
    caught: int = 0
    mutants: int = 0
    alive: list[str] = dataclasses.field(default_factory=list)
    shortcuts: list[str] = dataclasses.field(default_factory=list)
    cases: tuple[int, int] = (0, 0)
    gaps: list[str] = dataclasses.field(default_factory=list)

    @property
    def many_pass(self) -> bool:
        """True if more mutants pass than a few that may be equivalent to the solution."""
        return len(self.alive) > 1 + (1 - CAUGHT) * self.mutants

    @property
    def faults(self) -> list[str]:
        """Faults to mend, as sentences."""
        found = [*self.gaps, *(["the empty answer passes"] if self.empty_points else [])]
        found += [line for lines in (*self.right, *self.wrong) for line in lines]
        found += [f"it passes: {what}" for what in self.shortcuts]
        if self.many_pass:
            found.append(f"{len(self.alive)} of {self.mutants} mutants pass: add cases that tell them apart")
        return found


def prove(exercise: Exercise, progress: Callable[[str], Any] = lambda line: None) -> Proof:
    """Try the check of an exercise with all its answers and all seeds. progress: gets the name of each trial."""
    result = Proof(exercise, gaps=gaps(exercise))
    if exercise.right is NOT_GIVEN:
        return result
    if exercise.make_cases is not None:
        cases = list(exercise.make_cases(np.random.default_rng(0)))
        hidden = sum(one.hidden for one in cases)
        result.cases = len(cases) - hidden, hidden
    progress("the empty answer")
    empty = judge(exercise, from_cell(exercise, cells.answer_cell(exercise.name)), given_to(exercise))
    result.empty_points = exercise.points if empty.ok else 0
    for name, wrong, verdicts, faults in trials(exercise, every=True):
        progress(name)
        (result.wrong if wrong else result.right).append(faults)
        result.caught += bool(wrong) and not any(verdict.ok for verdict in verdicts)
    progress("constants and right results in another form")
    result.shortcuts = passing_shortcuts(exercise)
    if exercise.make_cases is not None and callable(exercise.right):
        progress("mutants of the solution")
        result.mutants, result.alive = survivors(exercise)
    return result


# ---- as text -------------------------------------------------------------------------------------------------------


def report(proof: Proof) -> str:
    """Proof of an exercise as lines: what was tried, and the faults to mend."""
    exercise = proof.exercise
    code, points = any(proof.cases), f"{exercise.points} {'point' if exercise.points == 1 else 'points'}"
    own_hint, right = ([not faults for faults in some] for some in (proof.wrong, proof.right))
    seeds = f", each with {len(SEEDS)} seeds" if code else ""
    lines = [
        (not proof.gaps, "the definition is complete" if not proof.gaps else "the definition is not complete"),
        (not proof.empty_points, f"the empty answer earns {proof.empty_points} points"),
        (all(right), f"{sum(right)} of {len(right)} right answers pass{seeds}"),
        (proof.caught == len(proof.wrong), f"{proof.caught} of {len(proof.wrong)} wrong answers are caught{seeds}"),
        (all(own_hint), f"{sum(own_hint)} of {len(own_hint)} wrong answers get their own hint"),
    ]
    count = len(proof.shortcuts)
    lines.append((not count, f"{count or 'none'} of the answers without the work (constants, other forms) pass"))
    if proof.mutants:
        caught = proof.mutants - len(proof.alive)
        lines.append((not proof.many_pass, f"{caught} of {proof.mutants} mutants of the solution are caught"))
    shown = [f"{record.MARKS['right'] if fine else chr(10007)} {text}" for fine, text in lines]
    shown += [f"  a mutant that passes: {change.replace(':', ' of the solution:', 1)}" for change in proof.alive]
    if code:
        shown.append("  cases: {} visible, {} hidden".format(*proof.cases))
    head = f"{exercise.name}   {exercise.number}   {exercise.kind}, {exercise.level}, {points}"
    end = ["To mend:", *(f"- {fault}" for fault in proof.faults)] if proof.faults else ["The check can be used."]
    return "\n".join([head, "", *shown, "", *end])


def answer_card(exercise: Exercise, file: Path) -> str:
    """Card that a learner would see for the answer in a file. Raises what its code raises."""
    answer = from_cell(exercise, file.read_text(encoding="utf-8"))
    return card_text(make_card(judge(exercise, answer, given_to(exercise))))
