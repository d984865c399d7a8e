"""Checks are reliable: an empty answer earns nothing, right ones everything, wrong ones are caught and named.

Each answer is judged with the cases of one seed; the slow test in test_checks_page.py takes all seeds.
"""

import gc

import pytest

from minflow.exercises import answer_source, cells
from minflow.exercises.authoring.proof import from_cell, gaps, given_to, passing_shortcuts, patient, trials
from minflow.exercises.definition import NOT_GIVEN, POINTS
from minflow.exercises.judge import judge
from minflow.exercises.registry import all_exercises, find, lesson_exercises
from tests.cases import Cases

# Answers without the work that pass for a good reason.
ACCEPTED = {
    "fair_race": {"the right result, 0.1 percent too large"},  # a measured time
    "fit_line": {"the right result, as a tensor"},  # a pair of tensors is as good as a pair of numbers
    "race": {"the right result, as a tensor"},  # a mean of arrays
    "other_answers": {"the value 'dropoutx'"},  # any text that names this cause and no other
}
ALL = [one.name for one in all_exercises()]


def test_names_and_indices():
    every = all_exercises()
    assert len({one.name for one in every}) == len({one.number for one in every}) == len(every)
    for lesson in {one.lesson for one in every}:
        numbers = [int(one.number.partition(".")[2]) for one in lesson_exercises(lesson) if one.points]
        assert numbers == list(range(1, len(numbers) + 1)), lesson


@pytest.mark.parametrize("name", ALL)
def test_exercise(name):
    """It has a question, enough answers and hints, and the expected verdict for each of them."""
    exercise = find(name)
    with Cases() as case:
        with case("it is whole"):
            assert exercise.level in POINTS and not gaps(exercise)
        if exercise.make_cases is not None and callable(exercise.right):
            with case("the source of its solution is read as it is written"):
                own = answer_source.find_source(from_cell(exercise, cells.solved_cell(name)))
                assert own.node is not None and not answer_source.is_placeholder(own.node)
        with case("an empty answer earns nothing"):
            verdict = judge(exercise, from_cell(exercise, cells.answer_cell(name)), given_to(exercise))
            assert not verdict.ok
            assert exercise.starter is not NOT_GIVEN or verdict.outcome == "not started"
        with case("answers without the work fail"):
            assert set(passing_shortcuts(exercise)) <= ACCEPTED.get(name, set())
        for answer, _, _, faults in trials(exercise):
            with case(answer):
                assert not faults, "\n".join(faults)


def test_memory_verdicts_do_not_depend_on_garbage_collection():
    """Python 3.13 collects garbage after three times as many objects as 3.11."""
    exercise, before = find("spiral_by_you"), gc.get_threshold()
    (climbs,) = [one for one in exercise.wrongs if one.name == "update on the tape"]
    gc.set_threshold(1_000_000)
    try:
        with patient(exercise):
            assert judge(exercise, exercise.right, (), 0).ok
            assert judge(exercise, climbs.answer, (), 0).wrong is climbs
        assert gc.get_threshold()[0] == 1_000_000
    finally:
        gc.set_threshold(*before)
