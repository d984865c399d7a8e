"""Definition of an exercise: a right answer, named wrong answers, and the cases that tell them apart.

Each file of `lessons/lNN` defines one exercise. Its answers are decorated functions, all under the name that learners
use. A check runs the learner's answer, the right one and, if these differ, the wrong ones on the same cases. Nothing
here runs an answer: see judge.py.

    exercise = Exercise("02.1", "slope", kind="write", level="warm-up", question="How steep is a curve at one place?",
                        fact="Said after a right answer.", sibling="A related problem, worked.")

    @exercise.solution
    def slope(f, x, h=1e-3): ...

    @exercise.wrong("one side", "The error is as large as h. Do you look to both sides of x?", "A sharper hint.")
    def slope(f, x, h=1e-3): ...

    @exercise.cases
    def cases(rng):
        yield case(square, 3.0, text="f = x**2, x = 3")
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterable
from typing import Any

from .i18n import say_of_lesson

KINDS = ("write", "complete", "mend", "measure", "predict", "read", "explain", "recall")
VALUES = ("predict", "read", "explain", "recall")  # kinds whose answer is a value, not code
POINTS = {"warm-up": 1, "core": 2, "stretch": 3, "recall": 0}
NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda self: "NOT_GIVEN"})()


@dataclasses.dataclass(frozen=True)
class Case:
    """One call to compare.

    args, kwargs: arguments of the call, deep-copied for each call.
    text: description for the learner, one line; made from the arguments if "".
    run: `run(answer, *args, **kwargs)` replaces the plain call and returns the value to compare, for properties that a
    call does not show: how often a function was called, whether an argument was changed, the result of a second step.
    expected: result of the case; the solution's if NOT_GIVEN.
    hidden: True for a hidden case, whose numbers are never printed; a failure shows only a hint.
    finish: `finish(value)` replaces a value before it is compared. Grading runs answers in another process, from which
    only plain data returns: numbers, texts, lists, tuples, sets, dicts, arrays, tensors.
    """

    args: tuple
    kwargs: dict[str, Any]
    text: str = ""
    run: Callable | None = None
    expected: Any = NOT_GIVEN
    hidden: bool = False
    finish: Callable | None = None


def case(
    *args: Any,
    text: str = "",
    run: Callable | None = None,
    expected: Any = NOT_GIVEN,
    hidden: bool = False,
    finish: Callable | None = None,
    **kwargs: Any,
) -> Case:
    """Make a `Case`. Yield the smallest first: the first case that fails is shown."""
    return Case(args, kwargs, text, run, expected, hidden, finish)


@dataclasses.dataclass(frozen=True)
class NamedWrongAnswer:
    """A named wrong answer.

    answer: code; or a value, or a function of the given variables that computes the value.
    hints: one per changed attempt that ends here, each more specific than the last.
    when: for values, `when(value, *given)` replaces equality, to match a whole range.
    """

    name: str
    answer: Any
    hints: tuple[str, ...]
    when: Callable | None = None


class Exercise:
    """An exercise. Answers and cases are added by its decorators.

    number: lesson and position, "02.1". name: first argument of `check`, unique in the course.
    kind, level: from KINDS and POINTS. question: one line, for lists.
    answer: name of the learner's function, class or variable ("share"), if it differs from `name`.
    value: True if the answer is a value, not code; by default it depends on the kind.
    fact: shown as "Worth knowing" after a right answer. sibling: a worked related problem in Markdown, the last help.
    hint: shown for a failure that matches no named wrong answer.
    tolerance: (absolute, relative) error of floats; (0, 0) means exact.
    exact_types: True if dtypes and types must match.
    time_limit: seconds per case. forbidden: name in the code -> why it is forbidden; loops are "for" and "while".
    given: notebook variables that `check` takes after the answer: check("mixed_up", pair, matrix).
    examples: values of these variables, for tests.
    """

    def __init__(
        self,
        number: str,
        name: str,
        *,
        kind: str,
        level: str,
        question: str,
        fact: str,
        sibling: str = "",
        answer: str = "",
        value: bool | None = None,
        hint: str = "",
        tolerance: tuple[float, float] = (1e-6, 1e-5),
        exact_types: bool = False,
        time_limit: float = 2.0,
        forbidden: dict[str, str] | None = None,
        given: Iterable[str] = (),
        examples: Iterable[Any] = (),
    ) -> None:
        if kind not in KINDS or level not in POINTS:
            raise ValueError(f"{name}: kind {kind!r} of {KINDS}, level {level!r} of {tuple(POINTS)}")
        self.number, self.name, self.kind, self.level, self.question = number, name, kind, level, question
        self.answer, self.value = answer or name, kind in VALUES if value is None else value
        self.fact, self.sibling, self.hint = fact, sibling, hint
        self.tolerance, self.exact_types, self.time_limit = tolerance, exact_types, time_limit
        self.forbidden, self.given, self.examples = dict(forbidden or {}), tuple(given), tuple(examples)
        self.right: Any = NOT_GIVEN
        self.other_solutions: list[Any] = []
        self.wrongs: list[NamedWrongAnswer] = []
        self.starter: Any = NOT_GIVEN
        self.make_cases: Callable | None = None
        self.accepts_value: Callable | None = None
        self.draw_object: Callable | None = None
        self.task: Callable[[], str] | None = None  # of a variant for exams (exam/variants.py): the text of its task
        self.setup = ""  # of a variant: code above the answer
        self.partial: dict[str, float] = {}  # named wrong answer -> its points in an exam

    @property
    def lesson(self) -> str:
        """Lesson of the exercise, such as "02"."""
        return self.number.partition(".")[0]

    def say(self, text: str) -> str:
        """A text of this exercise in the learner's language."""
        return say_of_lesson(self.lesson, text)

    @property
    def points(self) -> int:
        return POINTS[self.level]

    # ---- answers ---------------------------------------------------------------------------------------------------

    def solution(self, answer: Any) -> Any:
        """Set the right answer: code; or a value, or a function of the given variables that computes it.

        It is shown after success and in the teacher's edition, so comments should name its steps.
        """
        self.right = answer
        return answer

    def also_right(self, answer: Any) -> Any:
        """Add a right answer that is written differently, as a test of the check; for values, another right value.

        An exercise with code has at least two of them.
        """
        self.other_solutions.append(answer)
        return answer

    def stub(self, answer: Any) -> Any:
        """Set the initial code of the cell if it is not an empty answer: code with a mistake or with gaps."""
        self.starter = answer
        return answer

    def wrong(self, name: str, *hints: str) -> Callable:
        """Decorator: add a named wrong answer. hints: see `NamedWrongAnswer`."""

        def register(answer: Any) -> Any:
            self.wrongs.append(NamedWrongAnswer(name, answer, hints))
            return answer

        return register

    def wrong_value(self, name: str, value: Any, *hints: str, when: Callable | None = None) -> None:
        """Add a named wrong value, or a function of the given variables that computes it.

        when: `when(value, *given)` matches a whole range, of which `value` is an example.
        """
        self.wrongs.append(NamedWrongAnswer(name, value, hints, when))

    # ---- how they are judged ---------------------------------------------------------------------------------------

    def cases(self, make_cases: Callable[..., Iterable[Case]]) -> Callable:
        """Decorator: `make_cases(rng)` yields five to nine shown cases, smallest first, and two to four hidden ones.

        rng: a NumPy Generator with a new seed for each attempt.
        """
        self.make_cases = make_cases
        return make_cases

    def accept(self, accepts_value: Callable) -> Callable:
        """Decorator for values: `accepts_value(value, *given)` replaces equality with the solution."""
        self.accepts_value = accepts_value
        return accepts_value

    def drawn(self, draw_object: Callable) -> Callable:
        """Decorator: `draw_object(rng)` makes the random object that the question is about, such as a graph.

        `draw(name)` returns it in the notebook. It is also passed to `accepts_value`, after the value, and to the
        solution and the wrong answers.
        """
        self.draw_object = draw_object
        return draw_object


def recall(number: str, *questions: tuple[str, str, str]) -> Exercise:
    """Make the exercise that opens a lesson: three questions about earlier lessons.

    number: such as "05.0". questions: (short text, right letter, where to look again).
    """
    lesson = number.partition(".")[0]
    result = Exercise(
        number,
        f"recall_{lesson}",
        kind="recall",
        level="recall",
        answer="recall",
        fact="",
        question="What do you remember of the earlier lessons?",
        hint='One letter for each question, such as ("a", "b", "c").',
    )
    right = tuple(letter for text, letter, again in questions)
    result.solution(right)
    for i, (text, letter, again) in enumerate(questions):
        example = (*right[:i], "-", *right[i + 1 :])
        result.wrong_value(
            text,
            example,
            again,
            when=lambda value, i=i: (
                isinstance(value, tuple)
                and len(value) == len(right)
                and all(isinstance(one, str) and len(one) == 1 for one in value)
                and value[:i] == right[:i]
                and value[i] != right[i]
            ),
        )
    return result


def as_number(value: Any) -> Any:
    """The number that a value holds: a number, or a tensor or array of one element. None for other values and bool."""
    if not isinstance(value, numbers.Real) and getattr(value, "shape", None) == ():
        value = value.item()
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else None
