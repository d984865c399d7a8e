"""Answers of people who have not seen the hints: no wrong one passes, and nearly all get a hint about their mistake.

`strangers/LESSON.txt` holds the answers, each as a cell under a line `# %% exercise | what it does | verdict`. The
verdict is "right", the name of the wrong answer whose hint is shown, or another reply: "refused" by a rule of the
exercise, "slip" (the source shows a statement without effect, missing parentheses or the like), "clue" (an unused
parameter, or a pattern in the results), "error NAME" (the error says what is wrong), "type" (the comparison of types
does, or an argument was changed), "one letter for each" (the form of an answer to a recall), "generic" (the exercise's
hint, which is about something else or about everything).
"""

import re
from pathlib import Path

import pytest

from minflow.exercises.authoring.proof import from_cell, given_to, patient
from minflow.exercises.judge import judge
from minflow.exercises.registry import find
from tests.cases import Cases

FEWEST_RIGHT, FEWEST_WRONG, MOST_GENERIC = 3, 10, 0.15


def cells_of(file):
    """Return (exercise, what it does, verdict, text) of each answer."""
    parts = re.split(r"^# %% ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [(*head.split(" | "), text) for head, _, text in (part.partition("\n") for part in parts)]


ANSWERS: dict[str, list[tuple[str, str, str]]] = {}
for file in sorted((Path(__file__).parent / "strangers").glob("*.txt")):
    for exercise, what, verdict, text in cells_of(file):
        ANSWERS.setdefault(exercise, []).append((what, verdict, text))


def reply(verdict):
    """Return what the card says about an answer, in the words of the files."""
    if verdict.ok:
        return "right"
    if verdict.slip:
        return "slip"
    if verdict.wrong:
        return verdict.wrong.name
    if verdict.outcome == "refused":
        return "refused"
    if verdict.result is not None and verdict.result.error:
        return f"error {verdict.result.error.name}"
    if verdict.difference and verdict.difference.text and verdict.difference.kind in ("type", "argument"):
        return "type"
    if verdict.clue:
        return "clue"
    return "one letter for each" if verdict.exercise.kind == "recall" else "generic"


@pytest.mark.filterwarnings("ignore:.is. with:SyntaxWarning")  # of an answer that compares by `is`
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_strangers(name):
    exercise, given = find(name), given_to(find(name))
    with Cases() as case:
        for what, expected, text in ANSWERS[name]:
            with case(what), patient(exercise):
                assert reply(judge(exercise, from_cell(exercise, text), given)) == expected
        with case("the answers are enough, and few get a hint about something else"):
            verdicts = [verdict for _, verdict, _ in ANSWERS[name]]
            wrong = len(verdicts) - verdicts.count("right")
            assert verdicts.count("right") >= FEWEST_RIGHT and wrong >= FEWEST_WRONG
            assert verdicts.count("generic") <= MOST_GENERIC * wrong
