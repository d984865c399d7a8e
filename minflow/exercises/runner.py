"""Run an answer on cases, and describe the answer and its errors as plain data.

This is the half of a check that needs the answer's process; judge.py compares the results, possibly in another process.
Read next: `judge.py`.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from ..core.base.errors import MinflowError
from . import answer_source, isolation
from .answer_source import AnswerSource
from .compare import to_array
from .definition import Case
from .limits import OutOfTime, limited

MAX_RESULT_BYTES = 100_000_000  # bytes of a result after which no more cases run
MAX_ERROR_CHARS = 10_000
TEXT_LIMIT = 0.2  # seconds for describing an error


@dataclasses.dataclass(frozen=True)
class RaisedError:
    """Error that an answer raised.

    name: name of its class. kind: the same with its module. bases: names of its classes that Python or minflow defines.
    text: its message, "" if it cannot be shown. line: (number, source) where the learner's code raised, (0, "") if it
    was not running. missing: the unknown name of a NameError. of_none: True if an attribute of None is missing.
    """

    name: str
    kind: str = ""
    bases: tuple[str, ...] = ()
    text: str = ""
    line: tuple[int, str] = (0, "")
    missing: str = ""
    of_none: bool = False

    def is_a(self, *names: str) -> bool:
        return not set(names).isdisjoint(self.bases)


@dataclasses.dataclass
class Result:
    """Outcome of one call: a value, or the error it raised. timed_out: True if the time limit stopped it.

    method: method of the answer, a class, that raised the error; "" for others. changed: positions of the arguments
    whose elements the call changed.
    """

    value: Any = None
    error: RaisedError | None = None
    method: str = ""
    changed: tuple[int, ...] = ()
    seconds: float = 0.0
    printed: list[str] = dataclasses.field(default_factory=list)
    omitted_lines: int = 0
    warned: list[str] = dataclasses.field(default_factory=list)

    @property
    def timed_out(self) -> bool:
        return self.error is not None and self.error.is_a("OutOfTime")

    @property
    def ends_run(self) -> bool:
        """True if no more cases run: it took too long, or several values of this size might not fit into memory."""
        kinds = str, bytes, list, tuple, dict, set, np.ndarray
        huge = issubclass(type(self.value), kinds) and sys.getsizeof(self.value) > MAX_RESULT_BYTES
        return huge or (self.error is not None and self.error.is_a("OutOfTime", "KeyboardInterrupt"))


class Runner(Protocol):
    """An answer that can be run, here or in another process.

    kind: "class", "function" (anything callable), "value", or "nothing" for a placeholder. source: of a class or
    function.
    """

    kind: str
    source: AnswerSource | None

    def results(self, cases: Iterable[Case]) -> Iterator[Result]:
        """Yield the result of each case, in order; none after one that ends the run."""


class LocalRunner:
    """Runs an answer in this process. limit: seconds per case."""

    def __init__(self, answer: Any, limit: float) -> None:
        self.answer, self.limit = answer, limit
        self.source = answer_source.find_source(answer) if callable(answer) else None
        self.kind = answer_kind(answer)

    def results(self, cases: Iterable[Case]) -> Iterator[Result]:
        for case in cases:
            result = run_case(case, self.answer, self.limit)
            yield result
            if result.ends_run:
                break


def answer_kind(answer: Any) -> str:
    if answer is ... or answer_source.is_empty_class(answer):
        return "nothing"
    return "class" if isinstance(answer, type) else "function" if callable(answer) else "value"


def run_case(case: Case, answer: Any, limit: float) -> Result:
    """Run the answer on a case in isolation, whatever it raises, prints or changes, with a time limit in seconds."""
    result = Result()
    args, kwargs = copy.deepcopy((case.args, case.kwargs))
    call: Callable = case.run or (lambda answer, *args, **kwargs: answer(*args, **kwargs))

    def outcome() -> tuple:
        value = call(answer, *args, **kwargs)
        if type(value) is types.CoroutineType:
            value.close()  # avoids the warning that it was never awaited
        return value, changed_arguments(case, args)

    begun = time.perf_counter()
    with isolation.isolated() as alone:
        isolation.seed_random_states()
        try:
            result.value, result.changed = limited(limit, outcome)
        except BaseException as error:  # SystemExit too: an answer must not end the check
            result.error, result.method = describe(error, answer), answer_source.raising_method(error, answer)
    result.seconds = time.perf_counter() - begun
    result.printed, result.omitted_lines, result.warned = alone.printed, alone.omitted_lines, alone.warned
    return result


def changed_arguments(case: Case, args: tuple) -> tuple[int, ...]:
    """Positions of the arrays, tensors and lists of numbers among the arguments that are not as the case has them."""
    pairs = [(to_array(before), to_array(after)) for before, after in zip(case.args, args)]
    return tuple(
        i
        for i, (before, after) in enumerate(pairs)
        if before is not None
        and (after is None or not np.array_equal(before, after, equal_nan=before.dtype.kind in "fc"))
    )


def describe(error: BaseException, answer: Any) -> RaisedError:
    """Describe an error that an answer raised. Its class is the learner's too, and may raise or never return."""
    own = answer_source.find_source(answer) if callable(answer) else AnswerSource("", "", None)
    line = answer_source.error_line(error, own)
    try:
        return limited(TEXT_LIMIT, lambda: dataclasses.replace(description(error), line=line))
    except BaseException:
        return RaisedError(object.__getattribute__(type(error), "__name__"), line=line)


def description(error: BaseException) -> RaisedError:
    kind = type(error)
    try:
        text = str.__str__(str(error))[:MAX_ERROR_CHARS]
    except (Exception, OutOfTime):
        text = ""
    missing = getattr(error, "name", None) if isinstance(error, NameError) else ""
    return RaisedError(
        kind.__name__,
        f"{kind.__module__}.{kind.__qualname__}",
        tuple(base.__name__ for base in kind.__mro__ if base.__module__.partition(".")[0] in ("builtins", "minflow")),
        text if isinstance(error, MinflowError) else text.partition("\n")[0],
        missing=missing if isinstance(missing, str) else "",
        of_none=getattr(error, "obj", "") is None,
    )
