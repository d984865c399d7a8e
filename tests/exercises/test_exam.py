"""Variants for exams have the proof of the exercises of the course, and an answer to one is wrong for another."""

import itertools
import re

import pytest

from minflow.exercises import cells
from minflow.exercises.authoring.proof import CAUGHT, from_cell, gaps, given_to, survivors, trials
from minflow.exercises.exam import plans, variants
from minflow.exercises.judge import judge
from minflow.exercises.registry import all_exercises, find
from tests.cases import Cases

HAVING, MISSING = plans.coverage()
SEEDS = range(6)
# Changes that leave every result of a solution the same; two negative times have the ratio of the positive ones.
EQUIVALENT = re.compile(r"swapped (arguments in (np\.maximum|zip)\(|sides in time\.perf_counter\(\) - start)")
# Their questions draw an object at random, so that the answers of two variants may be equal.
DRAWN = {name for name in HAVING if find(name).draw_object is not None}


def every_variant(name):
    """One variant for each change; for values, those of some seeds."""
    known = variants.family(name)
    if callable(known.variants):
        return [find(f"{name}_{variants.key_of(seed, name)}") for seed in SEEDS]
    return [find(f"{name}_{index:08x}") for index in range(len(known.variants))]


def real(faults):
    """Faults, without those of two wrong answers whose results are the same in a variant: both get a name."""
    return [fault for fault in faults if " is taken for " not in fault]


@pytest.mark.parametrize("name", HAVING)
def test_variants(name):
    """Right answers pass, wrong ones are caught by name, an empty answer earns nothing, and copies fail."""
    every = every_variant(name)
    with Cases() as case:
        for exercise in every:
            with case(exercise.name):
                assert exercise.answer in exercise.task() and gaps(exercise) == []
                assert not judge(exercise, from_cell(exercise, cells.answer_cell(exercise.name)), given_to(exercise)).ok
                assert real([fault for *_, faults in trials(exercise) for fault in faults]) == []
    if name in DRAWN:
        return
    sources = {cells.solved_cell(exercise.name): exercise for exercise in every}
    assert len(sources) > 1, "all variants have the same answer"
    for exercise in sources.values():
        for other in (*sources.values(), find(name)):
            if other is not exercise and not (callable(other.right) and other.make_cases is None):
                verdict = judge(exercise, other.right, given_to(exercise), 0)
                assert not verdict.ok, f"the answer of {other.name} is right for {exercise.name}"


@pytest.mark.slow
@pytest.mark.parametrize("name", HAVING)
def test_proof_of_variants(name):
    """With all seeds, and mutants of the solution."""
    with Cases() as case:
        for exercise in every_variant(name):
            with case(exercise.name):
                assert real([fault for *_, faults in trials(exercise, every=True) for fault in faults]) == []
                if exercise.make_cases is not None:
                    count, alive = survivors(exercise)
                    alive = [change for change in alive if not EQUIVALENT.search(change)]
                    assert len(alive) <= (1 - CAUGHT) * count + 1, alive


def test_consecutive_seeds_have_other_code_and_seeds_stay_secret():
    for name in HAVING:
        keys = [variants.key_of(seed, name) for seed in range(4)]
        assert len(set(keys)) == 4 and all(re.fullmatch("[0-9a-f]{8}", key) for key in keys)
        if not callable(variants.family(name).variants) and name not in DRAWN:
            answers = [cells.solved_cell(f"{name}_{key}") for key in keys]
            assert all(one != other for one, other in itertools.pairwise(answers)), name


def test_unknown_variants():
    with pytest.raises(LookupError, match="recall_02 has no variants"):
        find("recall_02_0000000a")
    with pytest.raises(LookupError, match="there is no exercise 'nothing_0000000a'"):
        find("nothing_0000000a")


def test_an_edit_that_does_not_occur_is_an_error():
    change = variants.Change("slope", "", edits={"not there": "", "rise": "climb"})
    with pytest.raises(ValueError, match=r"not in the definition: \['not there'\]"):
        variants.edited('rise = "not there"\n', find("slope"), change)


def test_edits_leave_texts_alone():
    source = 'def slope(f):\n    """slope, rise"""\n    return "slope rise", f.slope(rise), slope\n'
    change = variants.Change("climb", "", edits={"rise": "up"})
    assert variants.edited(source, find("slope"), change) == (
        'def climb(f):\n    """slope, rise"""\n    return "slope rise", f.slope(up), climb\n'
    )


def test_mid_term_and_final():
    """They fit their time, come from the lessons that they are about, and have variants."""
    lessons_of = {name: {find(one).lesson for one in plan.exercises} for name, plan in plans.PLANS.items()}
    assert max(lessons_of["midterm"]) <= "06" and len(lessons_of["midterm"]) >= 5
    assert len(lessons_of["final"]) >= 6 and max(lessons_of["final"]) >= "09"
    for plan in plans.PLANS.values():
        minutes = [plans.minutes(exercise) for exercise in plan.variants(0)]
        assert 60 <= sum(minutes) <= 120, plan.name


def test_every_exercise_of_the_first_lessons_has_variants():
    assert [name for name in MISSING if find(name).lesson <= "06"] == []
    assert len(HAVING) + len(MISSING) == sum(bool(one.points) for one in all_exercises())
