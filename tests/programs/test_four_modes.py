"""One program in five modes: eager, as a graph that is called or submitted, as a sync job and as an async job.

In all modes each step uses, bit for bit, the values that its captures had when it was called; minflow warns about a
value that a plan cannot track, or refuses it. The programs are in `tests/fuzz/modes.py`.
"""

import warnings

import pytest

import minflow as flow
from minflow import nn
from tests.fuzz import modes
from tests.fuzz.modes import MODES, THINGS, Program, outcome, results, same


def expected(name: str, use: str, write: str, mode: str) -> str:
    """Return words for what a program does in a mode; each is part of the result of one `outcome`."""
    if "backward()" in use and mode != "eager":
        return "refuses"  # a graph without an optimizer, a predict job
    if "total[0].item()" in use and mode != "eager":
        return "refuses"  # a Python number read from a tensor that the plan may write
    writes_captured = name == "own" and ("total." in use or "count +=" in use)
    if mode in ("sync", "async") and (writes_captured or "autograd.grad" in use):
        return "refuses"  # a predict job
    return "warns" if name == "containers" and "graph" in mode else "gives"


CASES = [
    case
    for name, thing in THINGS.items()
    for case in [
        *((name, thing.uses[0], write) for write in thing.writes),
        *((name, use, thing.writes[0]) for use in thing.uses[1:]),
    ]
]


@pytest.mark.parametrize(("name", "use", "write"), CASES)
def test_single_kinds_of_uses_and_writes(name, use, write):
    program = Program((name,), (use,), (write,) * 5)
    _, wanted = outcome("eager", program)
    for mode in MODES:
        kind, found = outcome(mode, program)
        assert kind == expected(name, use, write, mode), (mode, found)
        assert kind == "refuses" or same(found, wanted), mode


@pytest.mark.parametrize("write", THINGS["containers"].unfollowed)
def test_job_tracks_values_that_a_graph_warns_about(write):
    program = Program(("containers",), THINGS["containers"].uses[:1], (write,) * 5)
    _, wanted = outcome("eager", program)
    for mode in ("sync", "async"):
        kind, found = outcome(mode, program)
        assert kind == "gives" and same(found, wanted), mode
    with pytest.warns(flow.MinflowWarning, match="build uses .* while it is built, and not again at each call"):
        assert not same(results("graph", modes.maker(program)), wanted)


@pytest.mark.parametrize("share", range(4))
def test_random_programs(share):
    for seed in range(share * 10, share * 10 + 10):
        program = modes.draw(seed)
        found = modes.fault(program)
        assert found is None, modes.report(program, found)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(20))
def test_many_random_programs(share):
    for seed in range(1000 + share * 100, 1100 + share * 100):
        program = modes.draw(seed)
        found = modes.fault(program)
        assert found is None, modes.report(program, found)


# ---- values that are not tracked ------------------------------------------------------------------------------------


class Settings:
    rate = 1.0


def setting():
    settings = Settings()
    return (lambda x: x * settings.rate), lambda i: setattr(settings, "rate", float(i))


def counter():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x * calls

    return f, lambda i: None


def learning_rate(how: str):
    def make():
        optimizer = flow.optim.SGD([nn.Parameter(flow.ones(1))], 0.5)
        scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 1)
        if how == "param_groups":
            return (lambda x: x * optimizer.param_groups[0]["lr"]), lambda i: None
        return (lambda x: x * scheduler.get_last_lr()[0]), lambda i: None

    return make


UNFOLLOWED = {
    "an attribute": (setting, r"settings \(an object of class Settings\).* a later change is not seen"),
    "a counter": (counter, r"uses calls \(1\) while it is built, and not again at each call"),
    **{
        how: (learning_rate(how), rf"{how} \(the learning rate of .*a later change is not seen")
        for how in ("param_groups", "get_last_lr")
    },
}


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("value", UNFOLLOWED)
def test_untracked_value_warns(value, mode):
    make, notice = UNFOLLOWED[value]

    def program():
        f, write = make()
        return f, [lambda i=i: write(i) for i in range(3)], []

    with pytest.warns(flow.MinflowWarning, match=notice):
        results(mode, program)


def test_tracked_value_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("module", "tensors", "arrays", "read modules"):
            for mode in MODES:
                results(mode, modes.maker(Program((name,), THINGS[name].uses[:1], ("None",) * 2)))


# ---- the runner itself ---------------------------------------------------------------------------------------------


def test_difference_is_found_and_minimized(monkeypatch):
    """With a kernel that is wrong only in plans, like a compiler bug."""
    program = Program(
        ("tensors", "own"),
        ("y = y * t + view + shared", "z = y.clone(); z.mul_(2); y = z"),
        ("t.mul_({i})", "count.fill_({i})", "None"),
    )
    right = modes.caller

    def wrong(mode, f, trained=None):
        call = right(mode, f, trained)
        return lambda x: (lambda step: lambda: step() + (mode == "sync") * step().any())(call(x))

    assert modes.fault(program) is None
    monkeypatch.setattr(modes, "caller", wrong)
    assert modes.fault(program) == "sync: differs"
    least = modes.minimized(program, "sync: differs")
    assert (least.things, least.body, len(least.writes)) == ((), (), 1)
    assert "def make():" in modes.report(program, "sync: differs")
