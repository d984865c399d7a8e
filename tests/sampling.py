"""Sweeps of which the short test command runs a share, and `pytest --complete`, as in `.ci/run`, every case.

    @pytest.mark.parametrize("case", sampled(CASES, 0.2))  # or in a loop: for case in sampled(CASES, 0.2)

A case is kept if the hash of its name is below the share: the same ones in every run, whatever other cases there are.
At least one is kept. Cases that find faults that no other finds belong outside: `[*KINKS, *sampled(REST, 0.1)]`.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

complete = False  # conftest.py sets it from --complete, before any test file is imported


def sampled(cases: Iterable[Any], share: float, name: Callable[[Any], str] | None = None) -> list[Any]:
    """Cases whose name, `name(case)`, hashes below `share`, in their order; all of them with `--complete`.

    By default the name is the case if it is text, the id of a `pytest.param`, else the repr. Give a function if that
    has an address in it, or to make two sweeps over the same cases choose different ones.
    """
    cases = list(cases)
    places = [place((name or shown)(case)) for case in cases]
    bound = max([share, *sorted(places)[:1]])
    return [case for case, where in zip(cases, places) if complete or where <= bound]


def shown(case: Any) -> str:
    text = case if isinstance(case, str) else getattr(case, "id", None) or repr(getattr(case, "values", case))
    if " at 0x" in text:
        raise ValueError(f"sampled: {text} differs between runs; pass a function `name`")
    return text


def place(name: str) -> float:
    """A number from 0 to 1 that depends on the name alone."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64
