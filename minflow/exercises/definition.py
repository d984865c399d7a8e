"""What an exercise is: a right answer, wrong answers that have names, and the cases that tell them apart.

A file of `lessons/lNN` defines one exercise. Its answers stand there as code, under decorators, each by the name that
learners give to theirs: the check runs the learner's, the right one and, where these differ, the wrong ones on the same
cases. Nothing here runs an answer: that is for judge.py.

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
from collections.abc import Callable, Iterable
from typing import Any

KINDS = ("write", "complete", "mend", "measure", "predict", "read", "explain", "recall")
VALUES = ("predict", "read", "explain", "recall")  # of these the answer is a value, not code
POINTS = {"warm-up": 1, "core": 2, "stretch": 3, "recall": 0}
NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda self: "NOT_GIVEN"})()


@dataclasses.dataclass(frozen=True)
class Case:
    """One question that is put to an answer. args, kwargs: what it is called with, copied afresh for each call.

    text: what the learner sees of it, one line; made from the arguments if "".
    run: `run(answer, *args, **kwargs)` in place of the plain call, for what a call alone does not show: how often a
    function was called, whether an argument was changed, what a second step gives. What it returns is compared.
    wanted: what is right; what the solution gives if NOT_GIVEN.
    held: held back from the cases that are shown: its numbers are never printed, only a hint.
    """

    args: tuple
    kwargs: dict[str, Any]
    text: str = ""
    run: Callable | None = None
    wanted: Any = NOT_GIVEN
    held: bool = False


def case(
    *args: Any, text: str = "", run: Callable | None = None, wanted: Any = NOT_GIVEN, held: bool = False, **kwargs: Any
) -> Case:
    """A case; see `Case`. The smallest come first: the first that fails is the one that is shown."""
    return Case(args, kwargs, text, run, wanted, held)


@dataclasses.dataclass(frozen=True)
class Wrong:
    """A wrong answer that has a name. hints: one for each changed attempt that ends here, each sharper than the last.

    answer: the code; or the value, or a function of what is given that computes it.
    when: of values, `when(value, *given)` in place of equality: a whole range.
    """

    name: str
    answer: Any
    hints: tuple[str, ...]
    when: Callable | None = None


class Exercise:
    """An exercise. Its decorators fill it.

    number: "02.1", lesson and place.  name: what `check` is called with; unique in the course.
    kind, level: of KINDS and POINTS.  question: one line, for lists.
    answer: the learner's name for the answer, if not `name`: a function, a class or a variable ("share").
    value: is the answer a value? By its kind, if not given.
    fact: "Worth knowing", said after a right answer.  sibling: a related problem, worked, in Markdown: the last help.
    hint: what is said of a failure that has no name.
    allowed: (absolute, relative) error of floats; (0, 0): exact.  exact_types: is float32 for float64 an error?
    limit: seconds for one case.  forbidden: name in the code -> why not; loops are "for" and "while".
    given: names of the notebook's variables that `check` takes behind the answer: check("mixed_up", pair, matrix).
    examples: such variables, for tests.
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
        allowed: tuple[float, float] = (1e-6, 1e-5),
        exact_types: bool = False,
        limit: float = 2.0,
        forbidden: dict[str, str] | None = None,
        given: Iterable[str] = (),
        examples: Iterable[Any] = (),
    ) -> None:
        if kind not in KINDS or level not in POINTS:
            raise ValueError(f"{name}: kind {kind!r} of {KINDS}, level {level!r} of {tuple(POINTS)}")
        self.number, self.name, self.kind, self.level, self.question = number, name, kind, level, question
        self.answer, self.value = answer or name, kind in VALUES if value is None else value
        self.fact, self.sibling, self.hint = fact, sibling, hint
        self.allowed, self.exact_types, self.limit = allowed, exact_types, limit
        self.forbidden, self.given, self.examples = dict(forbidden or {}), tuple(given), tuple(examples)
        self.right: Any = NOT_GIVEN
        self.also: list[Any] = []
        self.wrongs: list[Wrong] = []
        self.start: Any = NOT_GIVEN
        self.make: Callable | None = None
        self.accepts: Callable | None = None
        self.draws: Callable | None = None

    @property
    def lesson(self) -> str:
        """ "02" """
        return self.number.partition(".")[0]

    @property
    def points(self) -> int:
        return POINTS[self.level]

    # ---- answers ---------------------------------------------------------------------------------------------------

    def solution(self, answer: Any) -> Any:
        """The right answer: code; or a value, or a function of what is given that computes it. Comments in the code
        name its steps: it is shown after success, and in the teacher's edition."""
        self.right = answer
        return answer

    def also_right(self, answer: Any) -> Any:
        """A right answer that is written otherwise, which the check must not refuse. Code has two of them at least;
        of values it is another value that is right."""
        self.also.append(answer)
        return answer

    def stub(self, answer: Any) -> Any:
        """What the cell holds at first where that is more than an empty answer: code with a mistake, or with holes."""
        self.start = answer
        return answer

    def wrong(self, name: str, *hints: str) -> Callable:
        """A decorator of code that is wrong in a way that has a name."""

        def keep(answer: Any) -> Any:
            self.wrongs.append(Wrong(name, answer, hints))
            return answer

        return keep

    def wrong_value(self, name: str, value: Any, *hints: str, when: Callable | None = None) -> None:
        """A value that is wrong in a way that has a name; a function of what is given computes it. With
        `when(value, *given)`, a range of which `value` is an example."""
        self.wrongs.append(Wrong(name, value, hints, when))

    # ---- how they are judged ---------------------------------------------------------------------------------------

    def cases(self, make: Callable[..., Iterable[Case]]) -> Callable:
        """`make(rng)` yields five to nine cases that are shown, smallest first, and two to four that are held back.
        rng: a NumPy Generator, seeded anew for each attempt."""
        self.make = make
        return make

    def accept(self, accepts: Callable) -> Callable:
        """Of a value: `accepts(value, *given)`, where equality with the solution is too strict."""
        self.accepts = accepts
        return accepts

    def drawn(self, draws: Callable) -> Callable:
        """`draws(rng)`: what a question is about (a model, a graph), drawn for each learner. `draw(name)` gives it to
        the notebook; behind the value it goes to accept, to the solution and to wrong answers."""
        self.draws = draws
        return draws


def recall(number: str, *questions: tuple[str, str, str]) -> Exercise:
    """Three questions about earlier lessons that open a lesson. number: "05.0". Each question: (short text, the right
    letter, where to look again)."""
    lesson = number.partition(".")[0]
    result = Exercise(
        number,
        f"recall_{lesson}",
        kind="recall",
        level="recall",
        answer="recall",
        fact="",
        question="What is left of the lessons before?",
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
                and value[:i] == right[:i]
                and value[i] != right[i]
            ),
        )
    return result
