"""The fuzzer itself: it covers every public name, and the table of deliberate differences is well formed."""

import pytest

import minflow
from tests.fuzz import differences
from tests.fuzz.__main__ import BAD, report, run, smallest
from tests.fuzz.calls import call_of, public_names, why_not
from tests.fuzz.comparison import Finding, compare_with_torch


def test_every_public_name_is_called_or_has_a_reason():
    """A new name needs its arguments' names in ARGUMENTS, or a line in CALLS or UNCALLED."""
    for name in public_names():
        if why_not(name) is None:
            assert call_of(name, 0)[-1].startswith("r = "), name


def test_calls_are_deterministic_per_seed():
    for name in ("add", "Tensor.add_", "F.conv2d", "nn.Linear", "optim.Adam"):
        assert call_of(name, 3) == call_of(name, 3)
    assert len({tuple(call_of("add", seed)) for seed in range(20)}) > 15


class Wrong:
    """minflow instead of PyTorch, with a clamp that ignores its upper limit."""

    def __getattr__(self, name):
        return (lambda x, low=None, high=None, **kw: x.clamp(low)) if name == "clamp" else getattr(minflow, name)


def test_fault_is_found_and_minimized():
    found = next(
        f
        for seed in range(200)
        if (f := compare_with_torch("clamp", call_of("clamp", seed, valid=True), Wrong())) and f.kind == "value"
    )
    least = smallest(found, [], Wrong(), examples=15)
    assert least.kind == "value" and sum(map(len, least.lines)) < sum(map(len, found.lines))
    assert compare_with_torch("clamp", list(least.lines), Wrong()).kind == "value"
    assert compare_with_torch("clamp", list(least.lines), minflow) is None


def test_differences_are_well_formed():
    rows = differences.read()
    assert rows and all(row.reason and row.ours and row.theirs for row in rows)
    finding = Finding("add", "accepted", ("r = L.add(1, 2)",), "3", "\"x\" not implemented for 'Half'")
    assert any(row.fits(finding) for row in rows)
    assert not any(row.fits(finding._replace(kind="value")) for row in rows)


@pytest.mark.parametrize(
    "line", ["| `add` | wrong | always | a | b | c |", "| `add` | value | often | a | b | c |", "| `add` | value |"]
)
def test_malformed_row_is_refused(line):
    with pytest.raises(ValueError, match="add"):
        differences.read(line)


@pytest.mark.slow
def test_no_unlisted_difference():
    """Also, no call accepts what PyTorch refuses, and only our errors are raised."""
    pytest.importorskip("torch")
    found, _ = run(2000, seed=0)
    bad = [f for f in found if f.kind in BAD]
    assert not bad, "\n".join(f"{f.name}: {f.kind}\n{report(f)}" for f in bad)
