"""Check several cases in one test, and report every one that fails.

    with Cases() as case:
        for x in (0.0, -0.0, 1.0):
            with case(f"relu({x})"):
                assert relu(x) == max(x, 0)

A failing case does not end the test: the others run, and the error at the end lists each failure with its traceback.
`in_cases` is like `pytest.mark.parametrize`, with the cases in one test.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception)


class Cases:
    """Collect failures: `with Cases() as case`, and in it `with case(name)` around the assertions of each case."""

    def __init__(self) -> None:
        self.count, self.failed = 0, list[tuple[str, BaseException]]()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.count += 1
        try:
            yield
        except FAILURES as error:
            error.add_note(f"in the case {name}")
            self.failed.append((name, error.with_traceback(error.__traceback__.tb_next)))

    def __enter__(self) -> Cases:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        if isinstance(error, FAILURES):
            self.failed.append(("outside the cases", error))
        if self.failed and not isinstance(error, KeyboardInterrupt):
            names = ", ".join(dict.fromkeys(name for name, _ in self.failed))
            reasons = "".join(f"\n  {name}: {reason(error)}" for name, error in self.failed)
            message = f"{len(self.failed)} of {self.count} cases fail: {names}{reasons}"
            raise BaseExceptionGroup(message, [error for _, error in self.failed]) from None


def reason(error: BaseException) -> str:
    """Return the first line of an error message, with the class unless it is an assertion."""
    line = next(iter(str(error).strip().splitlines()), "")
    return line if isinstance(error, AssertionError) and line else f"{type(error).__name__}: {line}"


def in_cases(names: str, rows: Iterable[Any]) -> Callable:
    """Run the decorated test for each row: `@in_cases("x, y", [(1, 2), (3, 4)])`. The cases share fixtures."""
    keys, rows = names.replace(",", " ").split(), list(rows)

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def every_case(**fixtures: Any) -> None:
            with Cases() as case:
                for row in rows:
                    given = dict(zip(keys, row if len(keys) > 1 else (row,), strict=True))
                    with case(", ".join(f"{key}={getattr(x, '__name__', repr(x))}" for key, x in given.items())):
                        test(**fixtures, **given)

        left = [p for p in inspect.signature(test).parameters.values() if p.name not in keys]
        every_case.__signature__ = inspect.Signature(left)
        return every_case

    return decorate
