"""The checks can be trusted: an empty answer earns nothing, right ones all, wrong ones are caught and named."""

import gc
import linecache

import pytest

from minflow.exercises import cells, learner
from minflow.exercises.definition import NOT_GIVEN, POINTS
from minflow.exercises.find import course, find, of_lesson
from minflow.exercises.judge import judge

ALL = [one.name for one in course()]
CODE = [one.name for one in course() if one.make is not None]
SEEDS = range(5)
FEW = range(2)  # for wrong answers, of which there are hundreds; the slow test of the page takes all
FEWEST_WRONG, OWN_HINT = 5, 0.95


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setenv("MINFLOW_PROGRESS", "0")


def given_to(exercise):
    """What a check takes behind a value: drawn, or an example that the definition has."""
    from minflow.exercises.checker import draw

    if exercise.draws is not None:
        return (draw(exercise.name),)
    return tuple(exercise.examples) if exercise.given else ()


def as_typed(exercise, text):
    """The answer that a cell of this text gives, with its source as a notebook keeps it."""
    import numpy as np

    import minflow as flow
    import minflow.typing as tp
    from minflow.exercises import draw

    file = f"<ipython-input-{exercise.name}-{abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    from minflow.compiler.passes.rewrite import rewritten
    from minflow.core.ir import outputs_of

    names = {name: __import__(name) for name in ("math", "os", "statistics", "time")}  # as a lesson's first cell does
    names |= {"np": np, "rewritten": rewritten, "outputs_of": outputs_of}
    names |= dict(zip(exercise.given, given_to(exercise))) | {
        "flow": flow, "nn": flow.nn, "tp": tp, "draw": draw, "__name__": "__main__"}
    exec(compile(text, file, "exec"), names)
    return names[exercise.answer]


def test_names_and_numbers():
    every = course()
    assert len({one.name for one in every}) == len(every)
    assert len({one.number for one in every}) == len(every)
    for lesson in {one.lesson for one in every}:
        numbers = [int(one.number.partition(".")[2]) for one in of_lesson(lesson) if one.points]
        assert numbers == list(range(1, len(numbers) + 1)), lesson


@pytest.mark.parametrize("name", ALL)
def test_an_empty_answer_earns_nothing(name):
    exercise = find(name)
    empty = as_typed(exercise, cells.answer_cell(name))
    verdict = judge(exercise, empty, given_to(exercise))
    assert not verdict.ok
    assert exercise.start is not NOT_GIVEN or verdict.outcome == "not started"


@pytest.mark.parametrize("name", ALL)
def test_the_solution_earns_all(name):
    exercise = find(name)
    answer = as_typed(exercise, cells.solved_cell(name)) if exercise.make is not None or not exercise.given else (
        exercise.right(*given_to(exercise)) if callable(exercise.right) else exercise.right)
    for seed in SEEDS if exercise.make is not None else [0]:
        verdict = judge(exercise, answer, given_to(exercise), seed)
        assert verdict.ok, (seed, verdict.outcome, verdict.case, verdict.got, verdict.wanted, verdict.result)
    assert exercise.level in POINTS and exercise.question


def test_memory_is_judged_alike_if_garbage_is_collected_seldom():
    """Python 3.13 lets three times as many objects wait for the garbage collector as 3.11."""
    before = gc.get_threshold()
    gc.set_threshold(1_000_000)
    try:
        test_the_solution_earns_all("spiral_by_you")
        test_wrong_answers_are_caught_and_named("spiral_by_you")
        assert gc.get_threshold()[0] == 1_000_000
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize("name", CODE)
def test_right_answers_of_other_styles_pass(name):
    exercise = find(name)
    assert len(exercise.also) >= 2
    for answer in exercise.also:
        for seed in SEEDS:
            verdict = judge(exercise, answer, (), seed)
            assert verdict.ok, (seed, verdict.outcome, verdict.case, verdict.got, verdict.wanted, verdict.result)


@pytest.mark.parametrize("name", [name for name in ALL if find(name).points])
def test_wrong_answers_are_caught_and_named(name):
    """Each by its own name."""
    exercise = find(name)
    assert len(exercise.wrongs) >= FEWEST_WRONG
    named = 0
    for wrong in exercise.wrongs:
        assert wrong.hints and all(wrong.hints), wrong.name
        for seed in FEW if exercise.make is not None else [0]:
            given = given_to(exercise)
            answer = wrong.answer(*given) if exercise.make is None and callable(wrong.answer) else wrong.answer
            verdict = judge(exercise, answer, given, seed)
            assert not verdict.ok, f"{wrong.name!r} passes"
            assert verdict.outcome in ("nearly", "wrong", "stopped", "refused"), verdict.outcome
            known = verdict.name is wrong or verdict.outcome == "refused" and bool(exercise.forbidden)
            assert known, f"{wrong.name!r} is taken for {verdict.name and verdict.name.name!r} (seed {seed})"
            named += known
    assert named >= OWN_HINT * len(exercise.wrongs)


@pytest.mark.parametrize("name", [name for name in CODE if callable(find(name).right)])
def test_a_solution_is_read_as_it_is_written(name):
    """Its source is found, and an empty answer is told from it."""
    exercise = find(name)
    own = learner.written(as_typed(exercise, cells.solved_cell(name)))
    assert own.node is not None and not learner.only_placeholder(own.node)
    assert len(list(exercise.make(__import__("numpy").random.default_rng(0)))) >= 5
