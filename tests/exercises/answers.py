"""Answers for tests: typed as in a notebook, and those of an exercise's definition, with their verdicts."""

import contextlib
import itertools
import linecache
import textwrap

import numpy as np

import minflow as flow
import minflow.typing as tp
from minflow.compiler.passes.rewrite import rewrite
from minflow.core.ir import outputs_of
from minflow.exercises import cells, draw
from minflow.exercises.definition import Exercise, case
from minflow.exercises.judge import definition_value, judge
from tests.sampling import place

NUMBERS = itertools.count(1)
SEEDS = range(5)


def typed(text, name, **names):
    """Run a cell with this text and return its variable `name`, whose source is kept as in a notebook."""
    text = textwrap.dedent(text)
    file = f"<ipython-input-{next(NUMBERS)}-0>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"__name__": "__main__", **names}
    exec(compile(text, file, "exec"), space)
    return space[name]


def exercise_of(solution, inputs, time_limit=60.0):
    """Return an exercise named after its solution, with a case for each input (a tuple: several arguments)."""
    one = Exercise("99.1", solution.__name__, kind="write", level="core", question="?", fact="", time_limit=time_limit)
    one.solution(solution)
    one.cases(lambda rng: [case(*x) if isinstance(x, tuple) else case(x) for x in inputs])
    return one


def given_to(exercise):
    """Return the arguments that a check takes after a value: random ones, or the definition's examples."""
    if exercise.draw_object is not None:
        return (draw(exercise.name),)
    return tuple(exercise.examples) if exercise.given else ()


def from_cell(exercise, text):
    """Return the answer of a cell with this text, run after the imports of its lesson."""
    names = {name: __import__(name) for name in ("math", "os", "statistics", "time")}
    names |= {
        "flow": flow,
        "nn": flow.nn,
        "np": np,
        "tp": tp,
        "draw": draw,
        "rewrite": rewrite,
        "outputs_of": outputs_of,
    }
    return typed(text, exercise.answer, **names, **dict(zip(exercise.given, given_to(exercise))))


def fault(verdict, wrong):
    """Describe an unexpected verdict: a right answer (wrong is None) must pass, a wrong one get its hint or be
    refused. "" if there is none.
    """
    if wrong is None:
        return "" if verdict.ok else f"is not right: {verdict}"
    if verdict.ok:
        return "passes"
    refused = verdict.outcome == "refused" and verdict.exercise.forbidden
    return (
        "" if verdict.wrong is wrong or refused else f"is taken for {verdict.wrong and verdict.wrong.name!r}: {verdict}"
    )


@contextlib.contextmanager
def patient(exercise, times=20):
    """Allow more time per case, so that verdicts do not depend on other programs on this machine."""
    limit = exercise.time_limit
    exercise.time_limit = times * limit
    try:
        yield
    finally:
        exercise.time_limit = limit


def trials(exercise, every=False):
    """Return (the wrong answer or None, verdicts, faults) for each answer in an exercise's definition.

    It is judged with every seed, or with one that depends on its name.
    """
    given, code = given_to(exercise), exercise.make_cases is not None
    value = (lambda one: one) if code else lambda one: definition_value(one, given)
    by_cell = code or not exercise.given
    solution = from_cell(exercise, cells.solved_cell(exercise.name)) if by_cell else value(exercise.right)
    answers = [("the solution", None, solution)]
    answers += [(f"right answer {number}", None, value(one)) for number, one in enumerate(exercise.other_solutions, 2)]
    answers += [(wrong.name, wrong, value(wrong.answer)) for wrong in exercise.wrongs]
    for name, wrong, answer in answers:
        one = int(place(f"{exercise.name} {name}") * len(SEEDS))
        seeds = [0] if not code else SEEDS if every else [one]
        verdicts, faults = [], []
        for seed in seeds:
            verdict = judge(exercise, answer, given, seed)
            if fault(verdict, wrong):  # possibly just too slow; answers that never end cost this only once
                with patient(exercise):
                    verdict = judge(exercise, answer, given, seed)
            verdicts.append(verdict)
            if what := fault(verdict, wrong):
                faults.append(f"{exercise.name}: {name!r} (seed {seed}) {what}")
        yield wrong, verdicts, faults
