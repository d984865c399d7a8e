"""Answers for tests: typed as in a notebook, and exercises made of a solution."""

from minflow.exercises.authoring.proof import run_cell
from minflow.exercises.definition import Exercise, case


def typed(text, name, **names):
    """Run a cell with this text and return its variable `name`, whose source is kept as in a notebook."""
    return run_cell(text, names)[name]


def exercise_of(solution, inputs, time_limit=60.0):
    """Return an exercise named after its solution, with a case for each input (a tuple: several arguments)."""
    one = Exercise("99.1", solution.__name__, kind="write", level="core", question="?", fact="", time_limit=time_limit)
    one.solution(solution)
    one.cases(lambda rng: [case(*x) if isinstance(x, tuple) else case(x) for x in inputs])
    return one
