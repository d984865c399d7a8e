"""Symbolic tensors that stay in modules, lists and buffers, or are used after their build; and side effects of build.

After a leak the state from before the build is restored; a warning appears once, at the learner's line, and changes
nothing. Read next: `nn/graph/side_effects.py`.
"""

import builtins
import logging
import random
import sysconfig
import time
from time import perf_counter as clock

import numpy as np
import pytest
from graph_mistakes import Setup, assert_fails, assert_warns, line_of
from graph_models import Predict, bits

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GraphError, TraceError


@pytest.fixture
def setup():
    found = Setup()
    yield found
    found.check_next_step()


class Net(nn.Module):
    """A layer with places where forward may leave something."""

    def __init__(self):
        super().__init__()
        self.fc, self.last, self.seen, self.named = nn.Linear(20, 5), None, [1], {"a": [2]}
        self.register_buffer("hidden", flow.zeros(4, 5))


def net_of(forward):
    return type("Net", (Net,), {"forward": forward})()


HINT = "return it from build; or register_buffer in __init__"


def made(place, spec=r"float32\[4, 5\]"):
    return rf"{spec}  \(created at {line_of(place)}\)"


# ---- leaks -----------------------------------------------------------------------------------------------------------


def set_last(self, x):
    self.last = self.fc(x)  # here
    return self.last


def set_new(self, x):
    self.other = self.fc(x)  # here
    return self.other


def to_list(self, x):
    self.seen.append(self.fc(x))  # here
    return self.seen[-1]


def to_dict(self, x):
    self.named["b"] = self.fc(x)  # here
    return self.named["b"]


def to_inner_list(self, x):
    self.named["a"] += [self.fc(x)]  # here
    return self.named["a"][-1]


def to_tuple(self, x):
    self.last = (self.fc(x), 3)  # here
    return self.last[0]


def to_set(self, x):
    self.last = {self.fc(x)}  # here
    return next(iter(self.last))


LEAKS = [
    (set_last, "last"),
    (set_new, "other"),
    (to_list, "seen"),
    (to_dict, "named"),
    (to_inner_list, "named"),
    (to_tuple, "last"),
    (to_set, "last"),
]


@pytest.mark.parametrize("forward, name", LEAKS)
def test_leak_into_a_module(forward, name):
    net, x = net_of(forward), flow.ones(4, 20)
    graph = Predict(net)
    for _ in range(2):
        assert_fails(
            lambda: graph(x),
            TraceError,
            rf"^{graph.name}: build leaves a symbolic tensor in model\.{name}",
            {f"model.{name}": made(forward)},
            HINT,
            forward,
        )
        assert net.last in (None, set()) and not hasattr(net, "other")
        assert net.seen == [1] and net.named == {"a": [2]}
    type(net).forward = lambda self, x: self.fc(x)
    assert bits(graph(x)) == bits(net.fc(x))


def test_leak_into_the_graph(setup):
    def attribute(self, x):
        self.last = self.model(x)  # here

    def to_own_list(self, x):
        self.seen.append(x * 2)  # here
        return x

    def to_own_dict(self, x):
        self.named["a"] = {"c": x * 2}  # here
        return x

    lists = {"seen": [1], "named": {"b": [2]}}
    graph = setup.graph(attribute)
    assert_fails(
        lambda: graph(setup.x),
        GraphError,
        "^Learner: a tensor is set as the attribute 'last'",
        {"tensor": r"float32\[4, 5\]  \(created at .*\)"},
        "return it from build",
        attribute,
    )
    assert not hasattr(graph, "last")
    for build, name in ((to_own_list, "seen"), (to_own_dict, "named")):
        graph = setup.graph(build, **lists)
        values = {f"self.{name}": made(build, r"float32\[4, 20\]")}
        for _ in range(2):
            assert_fails(
                lambda: graph(setup.x),  # noqa: B023
                TraceError,
                f"build leaves a symbolic tensor in self.{name}",
                values,
                HINT,
                build,
            )
            assert lists["seen"] == [1] and lists["named"].pop("a", {}) == {} and lists["named"] == {"b": [2]}
        type(graph).build = lambda self, x: self.model(x)
        assert bits(graph(setup.x)) == bits(setup.model(setup.x))


def test_buffer_keeps_its_spec():
    def forward(self, x):
        self.hidden = self.fc(x).sum(0)  # here
        return x

    net = net_of(forward)
    before = net.hidden
    graph = Predict(net)
    values = {"buffer": r"float32\[4, 5\]", "given": made(forward, r"float32\[5\]")}
    hint = "a buffer keeps its shape and dtype"
    assert_fails(
        lambda: graph(flow.ones(4, 20)),
        TraceError,
        "^Net: the buffer 'hidden' is given another shape or dtype",
        values,
        hint,
        forward,
    )
    assert net.hidden is before and bits(before) == bits(flow.zeros(4, 5))
    type(net).forward = lambda self, x: setattr(self, "hidden", self.fc(x)) or x
    graph(flow.ones(4, 20))
    assert bits(net.hidden) == bits(net.fc(flow.ones(4, 20)))


def test_buffer_created_in_forward():
    def forward(self, x):
        self.register_buffer("fresh", self.fc(x))
        return x

    net = net_of(forward)
    match = r"(?s)build leaves a symbolic tensor in model\.fresh.*float32\[4, 5\].*register_buffer in __init__"
    with pytest.raises(TraceError, match=match):
        Predict(net)(flow.ones(4, 20))
    assert list(net._buffers) == ["hidden"]


@pytest.mark.parametrize("make", [lambda self, x: nn.Parameter(self.fc(x)), lambda self, x: nn.Linear(20, 5)])
def test_parameter_created_in_forward(make):
    def forward(self, x):
        self.p = make(self, x)
        return x

    net = net_of(forward)
    values = {"data": r"float32\[\d+, \d+\]  \(created at .*\)"}
    assert_fails(
        lambda: Predict(net)(flow.ones(4, 20)),
        TraceError,
        "a Parameter was made of a symbolic tensor",
        values,
        "make parameters in __init__",
        make,
    )
    assert list(net._parameters) == [] and list(net._modules) == ["fc"] and not hasattr(net, "p")


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.parametrize(
    "use",
    [
        lambda t, s: t.numpy(),
        lambda t, s: t.sum().item(),
        lambda t, s: t + 1,
        lambda t, s: flow.zeros(4, 5).copy_(t),
        lambda t, s: t.backward(),
        lambda t, s: bool(t),
        lambda t, s: list(t),
        lambda t, s: nn.Linear(5, 2)(t),
        lambda t, s: Predict(s.model)(t),
        lambda t, s: Predict(s.model)([t]),
    ],
)
def test_symbolic_tensor_after_its_build(use, setup):
    kept = []

    def build(self, x):
        kept.append(self.model(x) * 2)  # here
        return kept[0] + 1

    graph = setup.graph(build)
    given = graph(setup.x)
    with pytest.raises(TraceError, match="^a symbolic tensor is used outside the build that made it") as caught:
        use(kept[0], setup)
    error = caught.value
    assert line_of(build) in error.values["tensor"] and line_of(use) in error.where
    assert "return it from build" in error.hint
    assert "is_lazy='True', size=(4, 5)" in repr(kept[0]) and kept[0].shape == (4, 5)
    assert bits(graph(setup.x)) == bits(given)


@pytest.mark.filterwarnings("ignore:.*build uses")
def test_symbolic_tensor_of_an_earlier_build(setup):
    kept = []

    def first(self, x):
        kept.append(self.model(x) * 2)  # here
        return kept[0]

    def reads(self, x):
        return self.model(x) + kept[0]

    def returns(self, x):
        return kept[0]

    setup.graph(first)(setup.x)
    hint = "a tensor made in build lives until build returns"
    assert_fails(
        lambda: setup.graph(reads)(setup.x),
        TraceError,
        r"^Learner_\d+: add reads a symbolic tensor of an earlier build",
        {"tensor": made(first)},
        hint,
        reads,
    )
    with pytest.raises(
        TraceError, match=rf"(?s)build returns a symbolic tensor of an earlier build.*{made(first)}.*{hint}"
    ):
        setup.graph(returns)(setup.x)


# ---- side effects ----------------------------------------------------------------------------------------------------

CASES = {
    "print": (r"print\(\) runs while the graph is built", lambda g: print("built")),
    "random": (r"random\.randint\(\) is drawn while the graph is built", lambda g: random.randint(1, 3)),
    "numpy": (r"np\.random\.rand\(\) is drawn while the graph is built", lambda g: np.random.rand(3)),
    "other": (r"a number of random or np\.random is drawn", lambda g: random.betavariate(1, 2)),
    "time": (r"time\.time\(\) is read while the graph is built", lambda g: time.time()),
    "ns": (r"time\.monotonic_ns\(\) is read while the graph is built", lambda g: time.monotonic_ns()),
    "import": (r"time\.perf_counter\(\) is read while the graph is built", lambda g: clock()),
    "graph": (r"self\.count goes from 0 to 1 while the graph is built", lambda g: setattr(g, "count", g.count + 1)),
    "module": (r"model\.rate goes from 1\.0 to 0\.5 while the graph is built", lambda g: setattr(g.model, "rate", 0.5)),
}


@pytest.mark.parametrize("case", list(CASES))
def test_side_effects_warn_once(case, setup, capsys):
    text, act = CASES[case]
    acts = act if case in ("graph", "module") else lambda graph: (act(graph), act(graph))
    if case == "module":
        setup.model.rate = 1.0

    def build(self, x):
        acts(self)
        return self.model(x)

    graph, done = setup.graph(build, count=0), []
    watched = builtins.print, time.time, np.random.rand, random.randint, clock
    with pytest.warns(flow.MinflowWarning, match=text) as records:
        done.append(graph(setup.x))
    assert len(records) == 1 and str(records[0].message).startswith(f"{graph.name}: ")
    assert "\n  Try: " in str(records[0].message)
    line = (
        line_of(act)
        if case not in ("graph", "module", "other")
        else records[0].filename.rpartition("/")[2] + f":{records[0].lineno}"
    )
    assert f"at {line}" in str(records[0].message) and line.startswith("test_mistakes_leaks.py:")
    assert (builtins.print, time.time, np.random.rand, random.randint, clock) == watched
    done += [graph(setup.x), graph(setup.x)]  # warnings are errors here: there is no other one
    graph(setup.x[:2])  # nor for another size
    assert {bits(t) for t in done} == {bits(setup.model(setup.x))}
    assert capsys.readouterr().out.count("built") == (2 if case == "print" else 0)


def test_side_effect_warning_names_its_line():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1  # here
            return x * 2

    net = Counting()
    graph = Predict(net)
    with assert_warns(r"model\.calls goes from 0 to 1 .*not again at each call\n", at=Counting.forward):
        graph(flow.ones(2))
    graph(flow.ones(2)), graph(flow.ones(2))
    assert net.calls == 1 and len(graph._history) == 1


def test_one_warning_per_kind_of_side_effect(setup):
    def build(self, x):
        self.count, _ = 5, (print(end=""), random.random(), time.time())  # here
        return self.model(x)

    graph = setup.graph(build, count=0)
    with assert_warns(
        r"print\(\)", r"self\.count goes from 0 to 5", r"random\.random\(\)", r"time\.time\(\)", at=build
    ):
        graph(setup.x)
    graph(setup.x)


def test_no_warning_for_repeated_or_library_effects(setup):
    space, file = {"time": time}, f"{sysconfig.get_paths()['purelib']}/library.py"
    exec(compile("def look(): print(end=''); return time.time()", file, "exec"), space)
    look = space["look"]

    def build(self, x):
        logging.getLogger("of a library").debug("reads the clock")
        logging.LogRecord("a", 10, "b", 1, "c", (), None)  # this one does too, always
        look()
        self.count = 0  # its value from the build
        return self.model(x) + 0 * flow.rand(4, 5) + nn.functional.dropout(x).sum() * 0

    setup.graph(build, count=0)(setup.x)  # a warning would be an error here


def test_patched_objects_are_restored_after_a_failure(setup):
    watched = builtins.print, time.time, random.random

    def build(self, x):
        print(end="")
        raise ValueError("mine")

    graph = setup.graph(build)
    with pytest.raises(ValueError, match="mine"):
        graph(setup.x)
    assert (builtins.print, time.time, random.random) == watched
