"""What PyTorch gave for each public name, and what minflow does otherwise. `record.py` wrote it down; PyTorch is not
needed here. What differs on purpose is in docs/differences.md. Read next: `test_oracle.py`.
"""

from functools import cache
from pathlib import Path

import minflow
from tests.fuzz import differences
from tests.fuzz.comparison import Finding, compare, limited, reproduction
from tests.oracle import store
from tests.sampling import sampled

SHARE = 0.25  # of the cases of a name, without --complete
ROWS = differences.read()
OPEN = {  # names and kinds, to mend
    tuple(line.split()) for line in (Path(__file__).parent / "open.txt").read_text().splitlines()
}
cases = cache(store.read)  # 2 seconds: not in each process that collects the tests


def difference(name: str, case: dict) -> Finding | None:
    """What minflow does otherwise and should not, or None. A case with a program of its own says what double precision
    gives.
    """
    double = lambda: store.unpack(case["t"]) if "t" in case else None
    found = compare(name, case["p"], limited(minflow, case["p"]), store.unpack(case), double)
    return None if found is None or any(row.fits(found) for row in ROWS) else found


def as_recorded(name: str) -> None:
    """Values, dtypes, gradients and refusals at kinks and edges are PyTorch's."""
    chosen = sampled(cases().get(name, ()), SHARE, lambda case: "\n".join([name, *case["p"]]))
    assert_same([f for case in chosen if (f := difference(name, case)) and (name, f.kind) not in OPEN])


def assert_same(found: list[Finding]) -> None:
    """Fail with a program for each difference."""
    assert not found, "\n\n".join(
        f"{f.name} {f.kind}\n{reproduction(f)}\n# minflow: {f.ours}\n# PyTorch: {f.theirs}" for f in found
    )
