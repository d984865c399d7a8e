"""Recorded results of PyTorch for each public name, and minflow's differences from them. `record.py` wrote the record;
PyTorch is not needed here. Deliberate differences are in docs/differences.md. Read next: `test_oracle.py`.
"""

from functools import cache
from pathlib import Path

import minflow
from tests.fuzz import differences
from tests.fuzz.comparison import Finding, compare, limited, reproduction
from tests.oracle import store
from tests.sampling import sampled

SHARE = 0.25  # fraction of a name's cases without --complete
ROWS = differences.read()
OPEN = {  # names and kinds, to be fixed
    tuple(line.split()) for line in (Path(__file__).parent / "open.txt").read_text().splitlines()
}
cases = cache(store.read)  # takes 2 seconds, so not in each process that collects tests


def difference(name: str, case: dict) -> Finding | None:
    """Unintended difference of minflow, or None. A case with a program of its own gives the result in double
    precision.
    """
    double = lambda: store.unpack(case["t"]) if "t" in case else None
    found = compare(name, case["p"], limited(minflow, case["p"]), store.unpack(case), double)
    return None if found is None or any(row.fits(found) for row in ROWS) else found


def as_recorded(name: str) -> None:
    """Values, dtypes, gradients and refusals at kinks and edges match PyTorch."""
    chosen = sampled(cases().get(name, ()), SHARE, lambda case: "\n".join([name, *case["p"]]))
    assert_same([f for case in chosen if (f := difference(name, case)) and (name, f.kind) not in OPEN])


def assert_same(found: list[Finding]) -> None:
    """Fail with a program for each difference."""
    assert not found, "\n\n".join(
        f"{f.name} {f.kind}\n{reproduction(f)}\n# minflow: {f.ours}\n# PyTorch: {f.theirs}" for f in found
    )
