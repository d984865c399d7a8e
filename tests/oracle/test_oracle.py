"""The record of PyTorch's results for every public name is complete, and a wrong result is detected.

Comparison with minflow: `../test_public_calls.py`. `python -m tests.oracle.record` wrote the record.
"""

import numpy as np
import pytest

from tests.fuzz.calls import call_of, called_names
from tests.fuzz.comparison import Outcome
from tests.oracle import store
from tests.oracle.record import agrees, equally_accurate
from tests.oracle.recorded import OPEN, cases, difference


def test_every_public_name_has_cases():
    missing = [name for name in called_names() if not cases().get(name)]
    assert not missing, f"no cases of {', '.join(missing)}: python -m tests.oracle.record --only {','.join(missing)}"
    gone = cases().keys() - set(called_names())
    assert not gone, f"no longer public: {', '.join(gone)}: python -m tests.oracle.record --only none"


def test_most_names_have_results_and_gradients():
    """Not only refusals; and gradients of differentiable functions."""
    assert [name for name, rows in cases().items() if not any("r" in case for case in rows)] == []
    assert sum("g" in case for rows in cases().values() for case in rows) > 3000


def test_wrong_value_dtype_or_gradient_is_detected():
    """The test can fail: each kind of difference, put into a record, is found."""
    case = next(case for case in cases()["mul"] if case.get("g", {}).get("x0", {"s": [0]})["s"] == [2, 3])
    assert difference("mul", case) is None
    for part, key, field, value in (
        ("r", "r", "v", [7.0] * 6),
        ("r", "r", "d", "float64"),
        ("r", "r", "s", [3, 2]),
        ("g", "x0", "v", [7.0] * 6),
    ):
        wrong = {**case, part: {**case[part], key: {**case[part][key], field: value}}}
        assert difference("mul", wrong) is not None
    assert difference("mul", {"p": case["p"], "e": "RuntimeError: no"}).kind == "accepted"
    assert difference("mul", {**case, "p": ["r = L.mul('x', 'y')"]}).kind in ("refused", "raw")


def test_record_is_small_and_deterministic():
    assert store.FILE.stat().st_size < 3_500_000 and store.FAMILIES.stat().st_size < 400_000
    some = {name: cases()[name] for name in ("add", "F.conv2d", "nn.BatchNorm1d")}
    for rows in some.values():
        for case in rows:
            packed = store.pack(store.unpack(case))
            assert all(packed[part] == case[part] or "nan" in str(case[part]) for part in packed)


def test_kinks_are_covered():
    """A recorded name is called with infinities, NaN, zeros of both signs, no elements, and no axes."""
    text = {name: " ".join(line for case in rows for line in case["p"]) for name, rows in cases().items()}
    for word in ("inf", "nan", "-0.0", "L.zeros(0", "float16", "int8", "bool", ".mT", "::2"):
        assert word in text["exp"], word
    assert call_of("exp", "oracle 1 0", valid=True, grad=True, profile="kinks", dtype="float32")[-1] == "r = L.exp(x0)"


@pytest.mark.slow
def test_open_differences_are_not_stale():
    """Fixed differences are removed from open.txt, so that they cannot return."""
    open_still = {
        (name, f.kind) for name, rows in cases().items() for case in rows if (f := difference(name, case)) is not None
    }
    assert OPEN - open_still == set()


def test_results_that_round_differently_on_other_processors():
    """A record may err as much as PyTorch does here; texts of complex numbers may differ in signs and last digits."""

    def outcome(r):
        return Outcome({"r": r}, None, {})

    exact, rounded, wrong = (outcome(np.array([x, 0.5], "float32")) for x in (-299.0, -300.0, -310.0))
    assert not agrees("dot", exact, rounded) and equally_accurate(exact, rounded, exact)
    assert not equally_accurate(wrong, rounded, exact) and not equally_accurate(wrong, exact, exact)
    eig, turned, other = (
        outcome([f"tensor([{x}])"])
        for x in ("1.25+0.00j, 0.5-2.00j", "-1.2501+0.00j, -0.5+2.00j", "1.35+0.00j, 0.5-2.00j")
    )
    assert equally_accurate(eig, turned, eig) and not equally_accurate(eig, other, eig)
