"""Every public name at kinks and edges: values, dtypes, gradients and refusals, against what PyTorch gave.

`python -m tests.oracle.record` wrote it down; PyTorch is not needed here. What differs on purpose stands in
docs/differences.md.
"""

from pathlib import Path

import pytest

import minflow
from tests.fuzz import differences
from tests.fuzz.calls import call_of, called_names
from tests.fuzz.judge import compare, limited, reproduction
from tests.oracle import store

CASES = store.read()
ROWS = differences.read()
OPEN = {
    tuple(line.split()) for line in (Path(__file__).parent / "open.txt").read_text().splitlines()
}  # names and kinds, to mend


def difference(name: str, case: dict):
    """What minflow does otherwise and should not, or None. A case with a program of its own says what double precision
    gives."""
    double = lambda: store.unpack(case["t"]) if "t" in case else None
    found = compare(name, case["p"], limited(minflow, case["p"]), store.unpack(case), double)
    return None if found is None or any(row.fits(found) for row in ROWS) else found


@pytest.mark.parametrize("name", sorted(CASES))
def test_as_recorded(name):
    found = [f for case in CASES[name] if (f := difference(name, case)) is not None and (name, f.kind) not in OPEN]
    assert not found, "\n\n".join(
        f"{f.kind}\n{reproduction(f)}\n# minflow: {f.ours}\n# PyTorch: {f.theirs}" for f in found
    )


def test_every_public_name_has_cases():
    missing = [name for name in called_names() if not CASES.get(name)]
    assert not missing, f"no cases of {', '.join(missing)}: python -m tests.oracle.record --only {','.join(missing)}"
    gone = CASES.keys() - set(called_names())
    assert not gone, f"no longer public: {', '.join(gone)}: python -m tests.oracle.record --only none"


def test_most_names_have_results_and_gradients():
    """Not only refusals; and what is differentiable is asked for its gradient."""
    assert [name for name, cases in CASES.items() if not any("r" in case for case in cases)] == []
    assert sum("g" in case for cases in CASES.values() for case in cases) > 3000


def test_a_wrong_value_dtype_or_gradient_is_seen():
    """The test can fail: each kind of difference, put into a record, is found."""
    case = next(case for case in CASES["mul"] if case.get("g", {}).get("x0", {"s": [0]})["s"] == [2, 3])
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


def test_the_record_is_small_and_packs_the_same():
    assert store.FILE.stat().st_size < 3_500_000
    some = {name: CASES[name] for name in ("add", "F.conv2d", "nn.BatchNorm1d")}
    for cases in some.values():
        for case in cases:
            packed = store.pack(store.unpack(case))
            assert all(packed[part] == case[part] or "nan" in str(case[part]) for part in packed)


def test_kinks_are_met():
    """A recorded name meets infinities, NaN, zeros of both signs, no elements, and no axes."""
    text = {name: " ".join(line for case in cases for line in case["p"]) for name, cases in CASES.items()}
    for word in ("inf", "nan", "-0.0", "L.zeros(0", "float16", "int8", "bool", ".mT", "::2"):
        assert word in text["exp"], word
    assert call_of("exp", "oracle 1 0", valid=True, grad=True, profile="kinks", dtype="float32")[-1] == "r = L.exp(x0)"


@pytest.mark.slow
def test_no_line_of_what_is_open_is_stale():
    """What is mended is taken out of open.txt, so that it stays mended."""
    open_still = {
        (name, f.kind) for name, cases in CASES.items() for case in cases if (f := difference(name, case)) is not None
    }
    assert OPEN - open_still == set()
