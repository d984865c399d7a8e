"""Functions that the cells of a lesson call: `check`, `hint` and `draw`.

Runs answers through judge.py, records attempts (record.py) and shows a card (card.py). Read next: `judge.py`.
"""

from __future__ import annotations

import inspect
import os
import zlib
from typing import Any

import numpy as np

from . import answer_source, cell_runs, cells, isolation, record, welcome
from .card import Card, CardDisplay, card_text, make_card
from .definition import NOT_GIVEN, Exercise
from .i18n import say
from .judge import CHECK_LIMIT, Verdict, judge
from .limits import OutOfTime, limited
from .registry import all_exercises, find, lesson_exercises
from .runner import Result, describe

WORD_VARIABLE = "MINFLOW_WORD"  # variable with a teacher's word: drawn questions depend on it
SEED_VARIABLE = "MINFLOW_SEED"  # variable with a teacher's seed for the cases in grading


class WrongAnswer(AssertionError):
    """Raised by `check` in grading, where returning a card would count as right. Its text is the card's."""

    def _render_traceback_(self) -> list[str]:
        """Traceback in IPython, and so in nbgrader's feedback: the card, without the frames of the checker."""
        return str(self).splitlines()


class CheckResult(CardDisplay):
    """Result of `check`.

    ok: True if the answer is right. case: number of the first failing case, else 0. name: name of the wrong answer that
    it matches, else "". points: points earned.
    """

    def __init__(self, verdict: Verdict, card: Card) -> None:
        self.card, self.verdict = card, verdict
        self.ok, self.case = verdict.ok, verdict.number
        self.name = verdict.wrong.name if verdict.wrong else ""
        self.points = verdict.exercise.points if verdict.ok else 0


def check(name: str, answer: Any = NOT_GIVEN, *given: Any) -> Any:
    """Check your answer to an exercise.

    The result shows the first, smallest case that fails, with a hint; a changed answer that fails in the same way gets
    a more specific hint. Your attempts are recorded next to the notebook.

    name: name of the exercise, such as "slope". answer: your function, class or value. given: other variables that the
    question is about, as the cell shows.
    In grading (nbgrader, or MINFLOW_GRADING=1) it returns the points as a float, and raises WrongAnswer for an answer
    that is not right. Raises UnknownExercise for an unknown name.
    """
    exercise = find(name)
    if exercise.draw_object is not None and not given:
        given = (draw(name),)
    if isolation.is_running():
        raise RuntimeError("check is called by an answer that is being checked")
    try:
        with isolation.ONE_AT_A_TIME:  # the whole check, since the recursion limit is shared by all threads
            return limited(CHECK_LIMIT * exercise.time_limit, lambda: run_check(exercise, answer, given))
    except OutOfTime as error:  # comparing or showing the result does not end: its methods do not return
        late = Verdict(exercise, "stopped", result=Result(error=describe(error, answer)))
        if is_grading():
            raise WrongAnswer(card_text(make_card(late))) from None
        return CheckResult(late, make_card(late))


def run_check(exercise: Exercise, answer: Any, given: tuple) -> Any:
    if is_grading():
        verdict = judge(exercise, answer, given, int(os.environ.get(SEED_VARIABLE, "0")))
        if not verdict.ok:
            raise WrongAnswer(card_text(make_card(verdict)))
        return float(exercise.points)
    stale = cell_runs.stale_answer(exercise, answer)
    verdict = Verdict(exercise, "refused", message=stale) if stale else judge(exercise, answer, given)
    if stale or answer is NOT_GIVEN or verdict.outcome in ("changed", "not started"):
        return CheckResult(verdict, make_card(verdict))
    tried = record.add_attempt(
        exercise.name,
        verdict.outcome,
        verdict.wrong.name if verdict.wrong else "",
        verdict.seconds,
        answer_source.fingerprint(answer),
    )
    if verdict.ok:
        welcome.refresh()
    return CheckResult(
        verdict,
        make_card(
            verdict,
            record.level(tried),
            record.stuck(tried) and not verdict.ok,
            progress_line(exercise) if verdict.ok else "",
        ),
    )


def is_grading() -> bool:
    """True if answers are graded: nothing is shown or recorded, and wrong answers raise."""
    return os.environ.get("NBGRADER_EXECUTION") in ("autograde", "validate") or os.environ.get(
        "MINFLOW_GRADING", "0"
    ) not in ("", "0")


def progress_line(exercise: Exercise) -> str:
    """Progress such as "lesson 02: 1 of 4, course: 9 of 60"; "" outside lessons."""
    states = record.states()
    lesson = [other for other in lesson_exercises(exercise.lesson) if other.points]
    if not lesson:
        return ""
    every = [other for other in all_exercises() if other.points]
    done, all_done = (sum(states.get(other.name) == "right" for other in some) for some in (lesson, every))
    return say(
        "lesson {lesson}: {done} of {of}, course: {all_done} of {all_of}",
        lesson=exercise.lesson,
        done=done,
        of=len(lesson),
        all_done=all_done,
        all_of=len(every),
    )


def draw(name: str) -> Any:
    """Return the object that the question of an exercise is about: a model, a graph, a table.

    The same at each call. $MINFLOW_WORD, a teacher's word, gives each class its own. Raises LookupError if the exercise
    draws nothing.
    """
    exercise = find(name)
    if exercise.draw_object is None:
        raise LookupError(f"nothing is drawn for {name!r}")
    return draw_for(exercise, os.environ.get(WORD_VARIABLE, ""))


def draw_for(exercise: Exercise, word: str) -> Any:
    """Object of a drawn question for a teacher's word."""
    seed = [zlib.crc32(text.encode()) for text in (word, exercise.name)]
    return exercise.draw_object(np.random.default_rng(seed))  # type: ignore[misc]


class HintResult(CardDisplay):
    """Result of `hint`."""

    def __init__(self, card: Card) -> None:
        self.card = card


def hint(name: str) -> HintResult:
    """Show help with an exercise: the hints for your last attempt; after a right answer all hints and the solution."""
    exercise = find(name)
    tried = [attempt for attempt in record.attempts() if attempt["exercise"] == name]
    card = Card("not started", name, say("help"))
    if any(attempt["outcome"] == "right" for attempt in tried):
        card.headline = say("all hints, and the solution")
        card.rows += [(exercise.say(known.name), say(known.hints[0])) for known in exercise.wrongs]
        card.folded.append((say("the solution"), solution(exercise)))
        return HintResult(card)
    last = tried[-1] if tried else None
    wrong = next((wrong for wrong in exercise.wrongs if last and wrong.name == last["wrong"]), None)
    if wrong:
        card.paragraphs += [say(text) for text in wrong.hints]
    elif exercise.hint:
        card.paragraphs.append(say(exercise.hint))
    if exercise.sibling and last:
        card.folded.append((say("A related problem, worked"), say(exercise.sibling)))
    if not card.paragraphs and not card.folded:
        card.paragraphs.append(say("Write an answer first, and check it: the hint is about what you have written."))
    return HintResult(card)


def solution(exercise: Exercise) -> str:
    if exercise.value and callable(exercise.right):
        return inspect.cleandoc(cells.definition_source(exercise.right))
    return cells.solved_cell(exercise.name) if exercise.right is not NOT_GIVEN else ""


cell_runs.follow()
