"""Judge an answer: run it and the right answer on the cases, and, if it fails, the named wrong answers too.

Shows and records nothing: see card.py and record.py. Read next: `compare.py`, `isolation.py`.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
import sys
import time
import types
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import answer_source, cells, isolation
from .compare import Difference, difference, to_array, type_text
from .definition import NOT_GIVEN, Case, Exercise, NamedWrongAnswer
from .i18n import say
from .limits import OutOfTime, limited

ARGUMENT_ERROR = re.compile(r"\(\) (takes|missing|got) ")  # in a TypeError: arguments do not match the parameters
NEARLY_RIGHT_ERROR = 0.01  # largest relative error of a nearly right answer
NEARLY_RIGHT_SHARE = 1 / 3  # or the largest share of failing cases
VARYING_PART = re.compile(r"'[^']*'|\"[^\"]*\"|/\S+|\S*\d\S*")  # of an error message: names, paths, numbers
MAX_RESULT_BYTES = 100_000_000  # bytes of a result after which no more cases run


@dataclasses.dataclass
class Result:
    """Outcome of one call: a value, or the error it raised. timed_out: True if the time limit stopped it.

    method: method of the answer, a class, that raised the error; "" for others.
    """

    value: Any = None
    error: BaseException | None = None
    method: str = ""
    seconds: float = 0.0
    printed: list[str] = dataclasses.field(default_factory=list)
    omitted_lines: int = 0
    warned: list[str] = dataclasses.field(default_factory=list)

    @property
    def timed_out(self) -> bool:
        return isinstance(self.error, OutOfTime)


@dataclasses.dataclass
class Verdict:
    """Verdict on an answer.

    outcome: "right", "nearly", "wrong", "stopped" (raised or took too long), "not started", "refused" (not an answer,
    or it uses something forbidden), "changed" (minflow itself was modified).
    right, total: counts of the shown cases. hidden: (right, total) of the hidden ones, which run once all shown cases
    are right. number, case, got, expected, difference, result: the first failing case. wrong: the named wrong answer
    that it matches. largest_difference: over the cases that are right. message: a sentence, if no case failed.
    source: source of the answer.
    """

    exercise: Exercise
    outcome: str
    right: int = 0
    total: int = 0
    hidden: tuple[int, int] = (0, 0)
    number: int = 0
    case: Case | None = None
    got: Any = None
    expected: Any = None
    difference: Difference | None = None
    result: Result | None = None
    wrong: NamedWrongAnswer | None = None
    largest_difference: float = 0.0
    seconds: float = 0.0
    message: str = ""
    source: answer_source.AnswerSource | None = None

    @property
    def ok(self) -> bool:
        return self.outcome == "right"


def judge(exercise: Exercise, answer: Any, given: tuple = (), seed: int | None = None) -> Verdict:
    """Judge an answer.

    given: the variables that the exercise takes after a value. seed: seed of the cases; None derives it from the source
    of the answer, so that each attempt gets other numbers.
    """
    begun = time.perf_counter()
    if answer is NOT_GIVEN or len(given) != len(exercise.given) + (exercise.draw_object is not None):
        call = f"`{cells.check_cell(exercise.name)}`"
        return Verdict(exercise, "refused", message=say("This check is called as {call}.", call=call))
    if touched := isolation.replaced_attribute():
        return Verdict(exercise, "changed", message=touched)
    verdict = (
        judge_value(exercise, answer, given) if exercise.make_cases is None else judge_code(exercise, answer, seed)
    )
    if touched := isolation.replaced_attribute():  # changed while it ran, so the comparison is worthless
        return Verdict(exercise, "changed", message=touched)
    verdict.seconds = time.perf_counter() - begun
    return verdict


# ---- values ---------------------------------------------------------------------------------------------------------


def judge_value(exercise: Exercise, value: Any, given: tuple) -> Verdict:
    """Judge a value: it is right if the exercise accepts it or if it equals the solution."""
    if value is ... or (isinstance(value, tuple | list) and any(item is ... for item in value)):
        return Verdict(exercise, "not started")
    if exercise.kind == "recall":
        value = normalize_letters(value)
    with isolation.isolated():
        right = definition_value(exercise.right, given)
        try:
            if exercise.accepts_value is not None:
                fine = bool(exercise.accepts_value(value, *given))
            else:
                fine = any(
                    matches_value(value, definition_value(right_value, given), exercise)
                    for right_value in (right, *exercise.other_solutions)
                )
        except Exception:  # a value of the wrong kind
            fine = False
        verdict = Verdict(exercise, "right" if fine else "wrong", right=int(fine), total=1, got=value, expected=right)
        if not fine:
            verdict.difference = difference(value, right, exercise.tolerance)
            verdict.wrong = next(
                (wrong for wrong in exercise.wrongs if matches_wrong(wrong, value, given, exercise)), None
            )
    return verdict


def definition_value(answer: Any, given: tuple) -> Any:
    """Value of a definition; a function is called with the given variables."""
    return answer(*copy.copy(given)) if callable(answer) and not isinstance(answer, type) else answer


def matches_value(value: Any, expected: Any, exercise: Exercise) -> bool:
    """True if the value is as expected. 64.0 equals 64 unless the exercise asks for exact types."""
    if type(expected) is int and not exercise.exact_types:
        expected = float(expected)
    return difference(value, expected, exercise.tolerance, exercise.exact_types) is None


def normalize_letters(value: Any) -> Any:
    """Normalize an answer of letters: "bca", "B, C, A" and ["b", "c", "a"] are the same."""
    if isinstance(value, str):
        value = [letter for letter in value if letter.isalnum()]
    if isinstance(value, list | tuple):
        return tuple(letter.strip(" ()").lower() if isinstance(letter, str) else letter for letter in value)
    return value


def matches_wrong(wrong: NamedWrongAnswer, value: Any, given: tuple, exercise: Exercise) -> bool:
    try:
        if wrong.when is not None:
            return bool(wrong.when(value, *given))
        return matches_value(value, definition_value(wrong.answer, given), exercise)
    except Exception:  # the value has a different kind than this wrong answer
        return False


# ---- code -----------------------------------------------------------------------------------------------------------


def judge_code(exercise: Exercise, answer: Any, seed: int | None) -> Verdict:
    own = answer_source.find_source(answer) if callable(answer) else None
    if refused := reject(exercise, answer, own):
        refused.source = own
        return refused
    if seed is None:
        seed = zlib.crc32(answer_source.fingerprint(answer).encode())
    every = list(exercise.make_cases(np.random.default_rng([seed, zlib.crc32(exercise.name.encode())])))
    shown, hidden = [[case for case in every if case.hidden is side] for side in (False, True)]
    verdict = Verdict(exercise, "right", total=len(shown), hidden=(0, 0), source=own)
    results, failures = run_cases(verdict, shown, answer)
    verdict.right = len(results) - len(failures)
    if results and all(is_unwritten(result) for result in results):
        return Verdict(exercise, "not started", source=own)
    if not failures:
        results, failures = run_cases(verdict, hidden, answer)
        verdict.hidden = len(results) - len(failures), len(hidden)
    if failures:
        missed_cases = {number for number, *_ in failures}
        cases = hidden if verdict.hidden[1] else shown
        explain_failure(
            verdict,
            failures,
            [
                (case, result)
                for number, (case, result) in enumerate(zip(cases, results), 1)
                if number not in missed_cases
            ],
        )
        missed = 1 - verdict.right / verdict.total
        if not isinstance(verdict.result.error, BaseException) and not verdict.case.hidden:  # type: ignore[union-attr]
            small = max((diff.relative for *_, diff in failures if diff), default=1.0) <= NEARLY_RIGHT_ERROR
            kinds = {diff.kind for *_, diff in failures if diff}
            close = (small and kinds <= {"value", "dtype"}) or kinds == {"dtype"}
            verdict.outcome = "nearly" if close or missed <= NEARLY_RIGHT_SHARE else "wrong"
    return verdict


def reject(exercise: Exercise, answer: Any, own: answer_source.AnswerSource | None) -> Verdict | None:
    """Verdict on something that is not an answer yet or must not run; None for an answer."""
    if answer is ... or (own and answer_source.is_placeholder(own.node)) or answer_source.is_empty_class(answer):
        return Verdict(exercise, "not started")
    if exercise.value:
        return None
    kind = say("class") if isinstance(exercise.right, type) else say("function")
    if not callable(answer):
        return Verdict(
            exercise,
            "refused",
            message=say(
                "check needs the {kind} itself, not its result: {call}.",
                kind=kind,
                call=f'check("{exercise.name}", {exercise.answer})',
            ),
        )
    if isinstance(exercise.right, type) and not isinstance(answer, type):
        return Verdict(
            exercise,
            "refused",
            message=say("The answer must be a class: {call}.", call=f'check("{exercise.name}", {exercise.answer})'),
        )
    if (
        own
        and own.text
        and exercise.starter is not NOT_GIVEN
        and exercise.kind == "complete"
        and answer_source.same_program(own.text, cells.definition_source(exercise.starter))
    ):
        return Verdict(exercise, "not started")
    if own and (used := answer_source.find_forbidden(own.node, exercise.forbidden)):
        name, line = used
        return Verdict(
            exercise,
            "refused",
            message=say(exercise.forbidden[name]) + " " + say("(Line {line} uses '{name}'.)", line=line, name=name),
        )
    return None


def is_unwritten(result: Result) -> bool:
    """True if the call only reached the placeholder."""
    return isinstance(result.error, NotImplementedError)


def run_cases(verdict: Verdict, cases: list[Case], answer: Any) -> tuple[list, list]:
    """Run cases until one takes too long. Returns results and failures: (number, case, result, expected, diff)."""
    exercise, results, failures = verdict.exercise, [], []
    for number, case in enumerate(cases, 1):
        result = run_case(case, answer, exercise.time_limit)
        expected = expected_result(case, exercise)
        diff = None if result.error else compare_safely(result.value, expected, exercise)
        results.append(result)
        if result.error or diff:
            failures.append((number, case, result, expected, diff))
        else:
            verdict.largest_difference = max(verdict.largest_difference, largest_difference(result.value, expected))
        if isinstance(result.error, OutOfTime | KeyboardInterrupt) or is_huge(result.value):
            break
    return results, failures


def is_huge(value: Any) -> bool:
    """True if several values of this size might not fit into the memory of a small computer."""
    kinds = str, bytes, list, tuple, dict, set, np.ndarray
    return issubclass(type(value), kinds) and sys.getsizeof(value) > MAX_RESULT_BYTES


def run_case(case: Case, answer: Any, limit: float) -> Result:
    """Run the answer on a case in isolation, whatever it raises, prints or changes, with a time limit in seconds."""
    result = Result()
    args, kwargs = copy.deepcopy((case.args, case.kwargs))
    call: Callable = case.run or (lambda answer, *args, **kwargs: answer(*args, **kwargs))
    begun = time.perf_counter()
    with isolation.isolated() as alone:
        try:
            result.value = limited(limit, lambda: call(answer, *args, **kwargs))
            if type(result.value) is types.CoroutineType:
                result.value.close()  # avoids the warning that it was never awaited
        except BaseException as error:  # SystemExit too: an answer must not end the check
            result.error, result.method = error, answer_source.raising_method(error, answer)
    result.seconds = time.perf_counter() - begun
    result.printed, result.omitted_lines, result.warned = alone.printed, alone.omitted_lines, alone.warned
    return result


def expected_result(case: Case, exercise: Exercise) -> Any:
    if case.expected is not NOT_GIVEN:
        return case.expected
    result = run_case(case, exercise.right, 10 * exercise.time_limit)
    if result.error:
        raise RuntimeError(f"the solution of {exercise.name} fails: please report this") from result.error
    return result.value


def compare_safely(got: Any, expected: Any, exercise: Exercise) -> Difference | None:
    try:
        return difference(got, expected, exercise.tolerance, exercise.exact_types)
    except (Exception, SystemExit) as error:  # the learner's own object raises when it is inspected
        return Difference("type", say("It cannot be compared: {error}.", error=f"{type(error).__name__}: {error}"))


def largest_difference(got: Any, expected: Any) -> float:
    """Largest difference between the elements of two results that agree."""
    mine, right = to_array(got), to_array(expected)
    if mine is None or right is None or mine.shape != right.shape or "b" in (mine.dtype.kind, right.dtype.kind):
        return 0.0
    with np.errstate(all="ignore"):
        distance = np.abs(mine.astype(np.complex128) - right.astype(np.complex128))
    return float(np.max(distance, where=np.isfinite(distance), initial=0.0))


def explain_failure(verdict: Verdict, failures: list, passed: list) -> None:
    """Fill in the first failure and the named wrong answer that fails alike. passed: (case, result) of the others."""
    verdict.number, verdict.case, result, verdict.expected, verdict.difference = failures[0]
    verdict.result, verdict.got = result, result.value
    verdict.outcome = "stopped" if result.error else "wrong"
    if isinstance(result.error, TypeError) and ARGUMENT_ERROR.search(str(result.error)) and not answer_line(verdict):
        verdict.message = signature_text(verdict)
    else:
        verdict.wrong = find_named_wrong(verdict.exercise, failures, passed)
    if (
        result.error
        and verdict.source
        and answer_source.returns_nothing(verdict.source.node)
        and not answer_line(verdict)
        and not verdict.wrong
        and not verdict.message
    ):  # the check raised the error: it inspected the result None
        verdict.outcome, verdict.difference = "wrong", Difference("type", type_text(None, verdict.expected))


def answer_line(verdict: Verdict) -> int:
    """Line where the learner's code raised; 0 if it was not running."""
    return answer_source.error_line(verdict.result.error, verdict.source or answer_source.AnswerSource("", "", None))[0]


def find_named_wrong(exercise: Exercise, failures: list, passed: list) -> NamedWrongAnswer | None:
    """Find the named wrong answer with the same results in all failing cases, preferably also in the passed ones.

    If the shown case does not raise, cases that do may be ignored: they may show another mistake.
    """

    def same(some: list) -> list:
        return [
            wrong
            for wrong in exercise.wrongs
            if all(
                same_result(run_case(case, wrong.answer, exercise.time_limit), result, exercise)
                for number, case, result, expected, diff in some
            )
        ]

    alike = same(failures)
    if not alike and not failures[0][2].error:
        alike = same([failure for failure in failures if not failure[2].error])
    return next(
        (
            wrong
            for wrong in alike
            if all(
                same_result(run_case(case, wrong.answer, exercise.time_limit), result, exercise)
                for case, result in passed
            )
        ),
        next(iter(alike), None),
    )


def same_result(theirs: Result, mine: Result, exercise: Exercise) -> bool:
    if theirs.error or mine.error:
        return theirs.method == mine.method and error_kind(theirs.error) == error_kind(mine.error)
    try:
        return difference(mine.value, theirs.value, exercise.tolerance, exercise.exact_types) is None
    except Exception:
        return False


def error_kind(error: BaseException | None) -> tuple:
    """Type and first line of an error, without its numbers and quoted names; and whether an attribute of None is "
    "missing.

    Errors of the same type may be different mistakes, with different hints.
    """
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # the learner's own __str__
        text = ""
    return type(error), VARYING_PART.sub("", text), getattr(error, "obj", "") is None


def signature_text(verdict: Verdict) -> str:
    """Sentence for a call that does not match the answer's parameters."""
    expected = f"{verdict.exercise.answer}{inspect.signature(verdict.exercise.right)}"
    return say("It is called as {expected}.", expected=expected)
