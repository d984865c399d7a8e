"""Values that become tensors, batches, dtypes of in-place writes, writes before backward: against PyTorch's results.

`python -m tests.oracle.record --families` recorded them. Deliberate differences are in docs/differences.md. A write
that PyTorch refuses in backward may pass if the gradient is right all the same: minflow saves less in some places.
"""

import re

import numpy as np
import pytest

import minflow
from tests.fuzz.comparison import Outcome, compare, differs, limited
from tests.oracle import families, store
from tests.oracle.recorded import ROWS, assert_same

CASES = store.read(store.FAMILIES)


def right_gradients(program: list[str], ours: Outcome, unwritten: Outcome) -> bool:
    """True if the gradients are those of the program without the write, or of its result times a factor."""
    if "zero_()" in program[-1]:
        factor = 0.0
    else:
        changed = differs(ours.seen["r"], unwritten.seen["r"], False, 0.0)
        factor = 2.0 if changed else 1.0
    for key, g in unwritten.grads.items():
        got = ours.grads.get(key)
        with np.errstate(invalid="ignore"):
            want = None if g is None else (np.zeros_like(g) if not factor else np.asarray(g * factor, g.dtype))
        if (got is None) != (want is None) or (got is not None and differs(got, want, False, 1e-3)):
            return False
    return True


def unexpected(cases: list[dict]) -> list:
    """Differences from PyTorch that no row of docs/differences.md explains."""
    found, unwritten = [], None
    for case in cases:
        ours = limited(minflow, case["p"])
        unwritten = ours if not case.get("w", 1) else unwritten
        finding = compare(case["n"], case["p"], ours, store.unpack(case), lambda: None)
        if finding is None or any(row.fits(finding) for row in ROWS):
            continue
        if finding.kind == "accepted" and case.get("w") and right_gradients(case["p"], ours, unwritten):
            continue
        found.append(finding)
    return found


@pytest.mark.parametrize("family", ["constructors", "collate", "dtypes"])
def test_results_match_the_record(family):
    assert_same(unexpected(CASES[family]))


@pytest.mark.parametrize("part", range(4))
def test_writes_before_backward(part):
    """Where PyTorch can run backward, minflow can too, with the same gradients."""
    names = list(dict.fromkeys(case["n"] for case in CASES["writes"]))[part::4]
    assert_same(unexpected([case for case in CASES["writes"] if case["n"] in set(names)]))


@pytest.mark.parametrize("family", families.FAMILIES)
def test_all_programs_are_recorded(family):
    """`python -m tests.oracle.record --families` records them again."""
    assert [[case["n"], case["p"]] for case in CASES[family]] == [list(p) for p in families.FAMILIES[family]()]


def test_most_writes_are_accepted_and_refused_by_pytorch():
    cases = [case for case in CASES["writes"] if case["w"]]
    refused = sum("b" in case or "e" in case for case in cases)
    assert len({case["n"] for case in cases}) > 700 and 400 < refused < len(cases) / 2


def test_wrong_gradient_after_a_write_is_detected():
    """The test can fail: for a gradient that ignores the write, a refusal, and an accepted call that PyTorch
    refuses.
    """
    base, *_, zeroed, read = [case for case in CASES["writes"] if case["n"] == "sin"]
    assert unexpected([base, zeroed, read]) == [] and "b" in read and re.search("zero_", zeroed["p"][-1])
    assert [f.kind for f in unexpected([base, {**zeroed, "g": base["g"]}])] == ["gradient"]
    assert [f.kind for f in unexpected([base, {**zeroed, "b": "RuntimeError: no", "g": {}}])] == []
    assert [f.kind for f in unexpected([base, {**read, "g": base["g"], "b": None}])] == ["refused"]
