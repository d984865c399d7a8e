"""What a lesson's cells call: `check`, `hint` and `draw`. Start at `check`."""

from __future__ import annotations

import inspect
import os
import zlib
from typing import Any

import numpy as np

from . import cells, isolation, answer_source, record, welcome
from .card import Card, Shown, card_of, text_of
from .definition import NOT_GIVEN, Exercise
from .registry import course, find, of_lesson
from .judge import Result, Verdict, judge
from .limits import OutOfTime, limited
from .i18n import say

WORD = "MINFLOW_WORD"  # a teacher's word: another one gives a class other questions where they are drawn
OWN = 5  # limits of one case that a check may take for all but the calls of answers
SEED = "MINFLOW_SEED"  # a teacher's number: of the cases when answers are graded


class WrongAnswer(AssertionError):
    """What `check` raises in grading, where a card would count as right. Its text is the card's."""


class Checked(Shown):
    """What `check` gives. ok: is it right? case: the number of the first case that fails, else 0. name: of the wrong
    answer that it is, else "". points: what it earns."""

    def __init__(self, verdict: Verdict, card: Card) -> None:
        self.card, self.verdict = card, verdict
        self.ok, self.case = verdict.ok, verdict.number
        self.name = verdict.name.name if verdict.name else ""
        self.points = verdict.exercise.points if verdict.ok else 0


def check(name: str, answer: Any, *given: Any) -> Any:
    """Check your answer to an exercise, and say what is right, nearly right or wrong with it.

    name: of the exercise, such as "slope".  answer: your function, class or value.  given: what else the question is
    about, as its cell shows.  Of all cases the first, smallest one that fails is shown, with a hint; a changed answer
    that fails in the same way gets a sharper one. What you have tried is kept beside the notebook.

    In grading (nbgrader, or MINFLOW_GRADING=1) it gives the points as a float, and raises WrongAnswer for what is not
    right. Raises LookupError where there is no such exercise.
    """
    __tracebackhide__ = True
    exercise = find(name)
    if exercise.draws is not None and not given:
        given = (draw(name),)
    if isolation.running():
        raise RuntimeError("check is called by an answer that is being checked")
    try:
        with isolation.ONE:  # also what is read of an answer: the recursion limit is of all threads
            return limited(OWN * exercise.limit, lambda: checked(exercise, answer, given))
    except OutOfTime as error:  # what the answer gave cannot be compared or shown: its methods do not end
        late = Verdict(exercise, "stopped", result=Result(error=error))
        if grading():
            raise WrongAnswer(text_of(card_of(late))) from None
        return Checked(late, card_of(late))


def checked(exercise: Exercise, answer: Any, given: tuple) -> Any:
    if grading():
        verdict = judge(exercise, answer, given, int(os.environ.get(SEED, "0")))
        if not verdict.ok:
            raise WrongAnswer(text_of(card_of(verdict)))
        return float(exercise.points)
    unread = answer_source.unread(exercise.answer)
    verdict = Verdict(exercise, "refused", says=unread) if unread else judge(exercise, answer, given)
    if unread or verdict.outcome in ("changed", "not started"):
        return Checked(verdict, card_of(verdict))
    tried = record.keep(
        exercise.name,
        verdict.outcome,
        verdict.name.name if verdict.name else "",
        verdict.seconds,
        answer_source.fingerprint(answer),
    )
    if verdict.ok:
        welcome.refresh()
    return Checked(
        verdict,
        card_of(
            verdict,
            record.level(tried),
            record.stuck(tried) and not verdict.ok,
            standing(exercise) if verdict.ok else "",
        ),
    )


def grading() -> bool:
    """Are answers marked, not taught? Then nothing is shown or kept, and what is wrong raises."""
    return os.environ.get("NBGRADER_EXECUTION") in ("autograde", "validate") or os.environ.get(
        "MINFLOW_GRADING", "0"
    ) not in ("", "0")


def standing(exercise: Exercise) -> str:
    """ "lesson 02: 1 of 4, course: 9 of 60"; "" of what is no lesson."""
    states = record.states()
    lesson = [one for one in of_lesson(exercise.lesson) if one.points]
    if not lesson:
        return ""
    every = [one for one in course() if one.points]
    done, all_done = (sum(states.get(one.name) == "right" for one in some) for some in (lesson, every))
    return say(
        "lesson {lesson}: {done} of {of}, course: {all_done} of {all_of}",
        lesson=exercise.lesson,
        done=done,
        of=len(lesson),
        all_done=all_done,
        all_of=len(every),
    )


def draw(name: str) -> Any:
    """What the question of an exercise is about: a model, a graph, a table. The same at each call; $MINFLOW_WORD, a
    teacher's word, gives a class one of its own."""
    exercise = find(name)
    if exercise.draws is None:
        raise LookupError(f"nothing is drawn for {name!r}")
    word = os.environ.get(WORD, "")
    return exercise.draws(np.random.default_rng([zlib.crc32(word.encode()), zlib.crc32(name.encode())]))


class Help(Shown):
    """What `hint` gives."""

    def __init__(self, card: Card) -> None:
        self.card = card


def hint(name: str) -> Help:
    """Help with an exercise: the next hint for your last attempt; after a right answer all hints and the solution."""
    exercise = find(name)
    tried = [one for one in record.attempts() if one["exercise"] == name]
    card = Card("not started", name, say("help"))
    if any(one["outcome"] == "right" for one in tried):
        card.headline = say("all hints, and the solution")
        for wrong in exercise.wrongs:
            card.rows.append((say(wrong.name), say(wrong.hints[0])))
        card.folded.append((say("the solution"), solution(exercise)))
        return Help(card)
    last = tried[-1] if tried else None
    wrong = next((one for one in exercise.wrongs if last and one.name == last["wrong"]), None)
    if wrong:
        card.paragraphs += [say(text) for text in wrong.hints]
    elif exercise.hint:
        card.paragraphs.append(say(exercise.hint))
    if exercise.sibling and last:
        card.folded.append((say("A related problem, worked"), say(exercise.sibling)))
    if not card.paragraphs and not card.folded:
        card.paragraphs.append(say("Write an answer first, and check it: the hint is about what you have written."))
    return Help(card)


def solution(exercise: Exercise) -> str:
    if exercise.value and callable(exercise.right):
        return inspect.cleandoc(cells.code(exercise.right))
    return cells.solved_cell(exercise.name) if exercise.right is not NOT_GIVEN else ""
