"""Answers without the work: constants, the argument itself, remembered cases, right results in another form.

None may pass the check of an exercise. Mutants of the solution (mutants.py) are the other kind. Read next: `proof.py`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..compare import form
from ..definition import Exercise
from ..judge import Reference, definition_value
from ..runner import run_case

CONSTANTS: tuple[Any, ...] = (0, 1, -1, 2, 10, 100, 0.5, math.inf, math.nan, None, True, False, "", "a", [], {})


def shortcuts(exercise: Exercise, given: tuple = ()) -> Iterator[tuple[str, Any]]:
    """Yield (description, answer). given: variables that the check takes after a value."""
    if exercise.make_cases is None:
        yield from values(exercise, given)
    elif callable(exercise.right) and not isinstance(exercise.right, type):
        yield from functions(exercise)


def values(exercise: Exercise, given: tuple) -> Iterator[tuple[str, Any]]:
    right = definition_value(exercise.right, given)
    others = [right, *(definition_value(one, given) for one in exercise.other_solutions)]
    for value in (*CONSTANTS, *neighbors(right)):
        if not any(same(value, other) for other in others):
            yield f"the value {value!r:.60}", value


def neighbors(right: Any) -> Iterator[Any]:
    """Values that are nearly the right one."""
    if isinstance(right, bool | str):
        yield from (not right,) if isinstance(right, bool) else (right + "x", right[:-1], [right], (right, right))
    elif isinstance(right, int | float):
        yield from (right + 1, right - 1, 2 * right, -right, str(right), [right, right], {"value": right})
        if right:
            yield 1 / right
    elif isinstance(right, tuple | list):
        kind = type(right)
        yield from (right[:-1], kind([*right, *right[:1]]), kind(reversed(right)), kind([*right[1:], *right[:1]]))
        for i, item in enumerate(right):
            if isinstance(item, int | float) and not isinstance(item, bool):
                yield kind([*right[:i], item + 1, *right[i + 1 :]])
    elif isinstance(right, dict):
        for key, value in right.items():
            yield {other: item for other, item in right.items() if other != key}
            for near in neighbors(value):
                yield {**right, key: near}


def same(value: Any, other: Any) -> bool:
    try:
        return bool(type(value) is type(other) and value == other) or (
            isinstance(value, int | float) and isinstance(other, int | float) and float(value) == float(other)
        )
    except Exception:  # arrays have no single truth value
        return False


def functions(exercise: Exercise) -> Iterator[tuple[str, Callable]]:
    for value in CONSTANTS:
        yield f"always {value!r}", always(value)
    yield "its first argument", lambda *args, **kwargs: args[0]
    yield "its last argument", lambda *args, **kwargs: args[-1]
    remembered = {}
    for case in Reference(exercise, 1).shown:  # a check has another seed
        result = run_case(case, exercise.right, 10 * exercise.time_limit)
        if result.error is None and case.run is None:
            remembered[repr((case.args, case.kwargs))] = result.value
            yield f"always the result of {case.text or 'a case'}", always(result.value)
    if remembered:
        yield (
            "the remembered results of the cases of another seed",
            lambda *args, **kwargs: remembered.get(repr((args, kwargs))),
        )
    for what, change in CHANGES.items():
        yield f"the right result, {what}", changed(exercise.right, change)


def always(value: Any) -> Callable:
    return lambda *args, **kwargs: copy.deepcopy(value)


def changed(right: Callable, change: Callable) -> Callable:
    return lambda *args, **kwargs: change(right(*args, **kwargs))


class Unchanged(Exception):
    """A change that does nothing to this kind of result, so that the answer is wrong all the same."""


def by_form(**changes: Callable) -> Callable:
    """A change for results of the named forms; it raises Unchanged for others."""

    def change(result: Any) -> Any:
        if form(result) not in changes:
            raise Unchanged
        return changes[form(result)](result)

    return change


def tensor(value: Any) -> Any:
    import minflow as flow

    return flow.tensor(value)


CHANGES: dict[str, Callable] = {
    "as a list": by_form(tensor=lambda x: x.tolist(), array=lambda x: x.tolist(), number=lambda x: [x]),
    "as an array": by_form(tensor=lambda x: x.detach().numpy(), number=lambda x: np.array([x])),
    "as a tensor": by_form(number=tensor, array=tensor, list=lambda x: tensor(np.asarray(x))),
    "as a text": by_form(number=str, list=str, tensor=str, array=str),
    "all at once": by_form(generator=list),
    "with one axis more": by_form(tensor=lambda x: x[None], array=lambda x: x[None]),
    "plus 1": by_form(tensor=lambda x: x + 1, array=lambda x: x + 1, number=lambda x: x + 1),
    "0.1 percent too large": by_form(tensor=lambda x: x * 1.001, array=lambda x: x * 1.001, number=lambda x: x * 1.001),
    "negative": by_form(tensor=lambda x: -x, array=lambda x: -x, number=lambda x: -x),
    "without its last entry": by_form(list=lambda x: x[:-1], tensor=lambda x: x[:-1], array=lambda x: x[:-1]),
}
