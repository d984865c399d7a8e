"""Sample parametrized tests: the short test command runs a share, and `pytest --complete`, as in `.ci/run`, every case.

    @pytest.mark.parametrize("case", sampled(CASES, 0.2))  # or in a loop: for case in sampled(CASES, 0.2)

A case is kept if the hash of its name is below the share: the same cases in every run, independent of the other cases.
At least one is kept. Cases that find faults that no other case finds are listed separately: `[*KINKS, *sampled(REST,
0.1)]`.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

complete = False  # conftest.py sets it from --complete, before any test file is imported


def sampled(cases: Iterable[Any], share: float, name: Callable[[Any], str] | None = None) -> list[Any]:
    """Return the cases whose name, `name(case)`, hashes below `share`, in order; all of them with `--complete`.

    By default the name is the text itself, the id of a `pytest.param`, or the repr. Pass a function if the repr
    contains an address, or if two sweeps over the same cases shall choose different ones.
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
    """Return a number from 0 to 1 that depends only on the name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64
