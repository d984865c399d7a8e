"""Judge an answer: compare its results with those of the right answer, and, if it fails, of the named wrong answers.

The answer is run by runner.py, possibly in another process. Shows and records nothing: see card.py and record.py. Read
next: `compare.py`, `isolation.py`.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
import time
import zlib
from typing import Any

import numpy as np

from . import answer_source, cells, isolation, slips
from .compare import Difference, clue, difference, form, form_difference, to_array, type_text
from .definition import NOT_GIVEN, Case, Exercise, NamedWrongAnswer
from .i18n import say
from .limits import limited
from .runner import LocalRunner, RaisedError, Result, Runner, run_case

ARGUMENT_ERROR = re.compile(r"\(\) (takes|missing|got) ")  # in a TypeError: arguments do not match the parameters
CHECK_LIMIT = 5  # limit of a whole check, in limits of one case
NEARLY_RIGHT_ERROR = 0.01  # largest relative error of a nearly right answer
NEARLY_RIGHT_SHARE = 1 / 3  # or less than this share of the cases fails
VARYING_PART = re.compile(r"'[^']*'|\"[^\"]*\"|/\S+|\S*\d\S*")  # of an error message: names, paths, numbers


class Reference:
    """The cases of an exercise for a seed, and the results of its own answers, each computed once."""

    def __init__(self, exercise: Exercise, seed: int) -> None:
        self.exercise = exercise
        every = list(exercise.make_cases(np.random.default_rng([seed, zlib.crc32(exercise.name.encode())])))  # type: ignore
        self.shown, self.hidden = [[case for case in every if case.hidden is side] for side in (False, True)]
        self.known: dict[tuple[int, int], Result] = {}

    def result(self, case: Case, answer: Any, limit: float) -> Result:
        """Result of an answer of the definition."""
        key = id(case), id(answer)
        if key not in self.known:
            self.known[key] = finished(run_case(case, answer, limit), case)
        return self.known[key]

    def expected(self, case: Case) -> Any:
        if case.expected is not NOT_GIVEN:
            return case.expected
        result = self.result(case, self.exercise.right, 10 * self.exercise.time_limit)
        if result.error:
            name, error = self.exercise.name, result.error
            raise RuntimeError(f"the solution of {name} fails: please report this ({error.name}: {error.text})")
        return result.value


def finished(result: Result, case: Case) -> Result:
    """Apply the case's `finish` to the value."""
    if case.finish is not None and result.error is None:
        result.value = case.finish(result.value)
    return result


@dataclasses.dataclass
class Verdict:
    """Verdict on an answer.

    outcome: "right", "nearly", "wrong", "stopped" (raised or took too long), "not started", "refused" (not an answer,
    or it uses something forbidden), "changed" (minflow itself was modified).
    right, total: counts of the shown cases. hidden: (right, total) of the hidden ones, which run once all shown cases
    are right. number, case, got, expected, difference, result: the first failing case. wrong: the named wrong answer
    that it matches. slip: a sentence about the source that comes before hints. clue: a pattern in all wrong results, or
    what the source may show, for answers without a named mistake. largest_difference: over the cases that are right.
    message: a sentence, if no case failed.
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
    slip: str = ""
    clue: str = ""
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
    if exercise.make_cases is None:
        verdict = judge_value(exercise, answer, given)
    else:
        if seed is None:
            seed = zlib.crc32(answer_source.fingerprint(answer).encode())
        verdict = judge_code(Reference(exercise, seed), LocalRunner(answer, exercise.time_limit))
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
    with isolation.isolated():  # the inner limit ends before the states are restored, the check's would interrupt that
        return limited(CHECK_LIMIT * exercise.time_limit, lambda: compare_value(exercise, value, given))


def compare_value(exercise: Exercise, value: Any, given: tuple) -> Verdict:
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
        verdict.wrong = next((wrong for wrong in exercise.wrongs if matches_wrong(wrong, value, given, exercise)), None)
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
        return tuple(letter.strip(" ().").lower() if isinstance(letter, str) else letter for letter in value)
    return value


def matches_wrong(wrong: NamedWrongAnswer, value: Any, given: tuple, exercise: Exercise) -> bool:
    try:
        if wrong.when is not None:
            return bool(wrong.when(value, *given))
        return matches_value(value, definition_value(wrong.answer, given), exercise)
    except Exception:  # the value has a different kind than this wrong answer
        return False


# ---- code -----------------------------------------------------------------------------------------------------------


def judge_code(reference: Reference, runner: Runner) -> Verdict:
    exercise, own = reference.exercise, runner.source
    if refused := reject(exercise, runner):
        refused.source = own
        return refused
    shown, hidden = reference.shown, reference.hidden
    verdict = Verdict(exercise, "right", total=len(shown), source=own)
    results, failures = compare_cases(verdict, reference, shown, runner)
    verdict.right = len(results) - len(failures)
    if results and all(is_unwritten(result) for result in results):
        return Verdict(exercise, "not started", source=own)
    if not failures:
        results, failures = compare_cases(verdict, reference, hidden, runner)
        verdict.hidden = len(results) - len(failures), len(hidden)
    if failures:
        missed_cases = {number for number, *_ in failures}
        cases = hidden if verdict.hidden[1] else shown
        explain_failure(
            verdict,
            reference,
            failures,
            [
                (case, result)
                for number, (case, result) in enumerate(zip(cases, results), 1)
                if number not in missed_cases
            ],
        )
        missed = (verdict.total - verdict.right) / verdict.total
        if not verdict.result.error and not verdict.case.hidden:  # type: ignore[union-attr]
            small = max((diff.relative for *_, diff in failures if diff), default=1.0) <= NEARLY_RIGHT_ERROR
            kinds = {diff.kind for *_, diff in failures if diff}
            close = (small and kinds <= {"value", "dtype"}) or kinds == {"dtype"}
            verdict.outcome = "nearly" if close or missed < NEARLY_RIGHT_SHARE else "wrong"
    return verdict


def reject(exercise: Exercise, runner: Runner) -> Verdict | None:
    """Verdict on something that is not an answer yet or must not run; None for an answer."""
    own = runner.source
    if runner.kind == "nothing" or (own and answer_source.is_placeholder(own.node)):
        return Verdict(exercise, "not started")
    if exercise.value:
        return None
    kind = say("class") if isinstance(exercise.right, type) else say("function")
    if runner.kind == "value":
        return Verdict(
            exercise,
            "refused",
            message=say(
                "check needs the {kind} itself, not its result: {call}.",
                kind=kind,
                call=f'check("{exercise.name}", {exercise.answer})',
            ),
        )
    if isinstance(exercise.right, type) and runner.kind != "class":
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
    return result.error is not None and result.error.is_a("NotImplementedError")


def compare_cases(verdict: Verdict, reference: Reference, cases: list[Case], runner: Runner) -> tuple[list, list]:
    """Compare results of cases. Returns results and failures: (number, case, result, expected, diff)."""
    exercise, results, failures = reference.exercise, [], []
    for number, (case, result) in enumerate(zip(cases, runner.results(cases)), 1):
        expected = reference.expected(case)
        diff = None if result.error else compare_safely(result, case, expected, exercise)
        if not result.error and not diff and (kept := argument_changed(reference, case, result)):
            diff = Difference("argument", say("Your code changes its argument {name}: compute with a copy.", name=kept))
        results.append(result)
        if result.error or diff:
            failures.append((number, case, result, expected, diff))
        else:
            verdict.largest_difference = max(verdict.largest_difference, largest_difference(result.value, expected))
    return results, failures


def argument_changed(reference: Reference, case: Case, result: Result) -> str:
    """Name of an argument that the answer changed and the solution does not; "" if there is none."""
    if not result.changed:
        return ""
    right = reference.result(case, reference.exercise.right, 10 * reference.exercise.time_limit)
    names = [] if case.run else list(inspect.signature(reference.exercise.right).parameters)
    more = [i for i in result.changed if i not in right.changed]
    return next((f"`{names[i]}`" if i < len(names) else str(i + 1) for i in more), "")


def compare_safely(result: Result, case: Case, expected: Any, exercise: Exercise) -> Difference | None:
    try:
        got = finished(result, case).value
        stated = case.expected is NOT_GIVEN or hasattr(expected, "detach")  # other given results are numbers for short
        if stated and (other_form := form_difference(got, expected)):
            return other_form
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


def explain_failure(verdict: Verdict, reference: Reference, failures: list, passed: list) -> None:
    """Fill in the first failure and the named wrong answer that fails alike. passed: (case, result) of the others."""
    verdict.number, verdict.case, result, verdict.expected, verdict.difference = failures[0]
    verdict.result, verdict.got = result, result.value
    verdict.outcome = "stopped" if result.error else "wrong"
    outside = result.error and not result.error.line[0]  # the learner's code was not running
    if outside and result.error.is_a("TypeError") and ARGUMENT_ERROR.search(result.error.text):
        verdict.message = signature_text(verdict)
    else:
        verdict.wrong = find_named_wrong(reference, failures, passed)
    if verdict.wrong and result.value is None and forgets_return(verdict.source):
        verdict.wrong = verdict.wrong if forgets_return(answer_source.find_source(verdict.wrong.answer)) else None
    if (
        outside and forgets_return(verdict.source) and not verdict.wrong and not verdict.message
    ):  # the check raised the error: it inspected the result None
        verdict.outcome, verdict.difference = "wrong", Difference("type", type_text(None, verdict.expected))
    explain_by_source(verdict, failures, passed)


def explain_by_source(verdict: Verdict, failures: list, passed: list) -> None:
    """Fill in `slip` and `clue`."""
    own, error = verdict.source, verdict.result and verdict.result.error
    right = answer_source.find_source(verdict.exercise.right)
    verdict.slip = slips.certain_slip(own, right) or (slips.slip_of_error(error, own) if error else "")
    if not error and verdict.got is None and own and own.node and not answer_source.returns_nothing(own.node):
        text = "" if verdict.wrong else slips.none_text(own)  # a hint that names the mistake is enough
        verdict.difference = dataclasses.replace(verdict.difference, text=text)  # type: ignore
    if verdict.wrong is None and not error:
        verdict.clue = common_clue(failures) or slips.possible_slip(own, right, len(passed))


def common_clue(failures: list) -> str:
    """A pattern in the wrong results of all failing cases that can be shown; "" if they have none in common."""
    clues = {clue(result.value, expected, diff) for _, case, result, expected, diff in failures if diff}
    return clues.pop() if len(clues) == 1 and not failures[0][1].hidden else ""


def forgets_return(source: answer_source.AnswerSource | None) -> bool:
    """True for a function that gives None for whatever it gets; it is no other mistake that gives None in this case."""
    return source is not None and answer_source.returns_nothing(source.node)


def find_named_wrong(reference: Reference, failures: list, passed: list) -> NamedWrongAnswer | None:
    """Find the named wrong answer with the same results in all failing cases, preferably also in the passed ones.

    If the shown case does not raise, cases that do may be ignored: they may show another mistake.
    """
    exercise = reference.exercise

    def same(some: list) -> list:
        return [
            wrong
            for wrong in exercise.wrongs
            if all(
                same_result(theirs := reference.result(case, wrong.answer, exercise.time_limit), result, exercise)
                and not (diff and diff.kind == "type" and form(theirs.value) != form(result.value))
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
                same_result(reference.result(case, wrong.answer, exercise.time_limit), result, exercise)
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


def error_kind(error: RaisedError | None) -> tuple | None:
    """Class and first line of an error, without its numbers and quoted names; and whether an attribute of None is
    missing.

    Errors of the same class may be different mistakes, with different hints.
    """
    if error is None:
        return None
    text = "" if error.is_a("RecursionError") else error.text.partition("\n")[0]  # it says where the depth was reached
    return error.kind, VARYING_PART.sub("", text), error.of_none


def signature_text(verdict: Verdict) -> str:
    """Sentence for a call that does not match the answer's parameters."""
    expected = f"{verdict.exercise.answer}{inspect.signature(verdict.exercise.right)}"
    return say("It is called as {expected}.", expected=expected)
