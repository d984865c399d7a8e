"""Ctrl-C at every line of inspecting, tracing and compiling leaves nothing behind, and the next call is right."""

import builtins
import random
import time
from pathlib import Path

import numpy as np
import pytest
from graph_models import TrainGraph, bits, state_bits

import minflow as flow
from minflow import nn
from minflow.compiler import plan_cache
from minflow.compiler.executor import holds_lock
from minflow.core.mode import MODE
from minflow.nn import graph as room
from tests.interrupts import Interrupter
from tests.sampling import sampled

FILES = {plan_cache.__file__, *map(str, Path(room.__file__).parent.glob("*.py"))}
X, Y = flow.tensor(np.random.default_rng(1).standard_normal((4, 3)).astype("float32")), flow.tensor([0, 1, 1, 0])


def places(function, wanted=None):
    """Places to interrupt: every line that ran (in functions of these names), at its first and its last execution."""
    tracer = Interrupter(FILES)
    assert not tracer.run(function)
    return tracer.places(wanted)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.drop, self.out = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)
        self.scale, self.calls = 1.0, 0

    def forward(self, x):
        self.calls += 1
        self.last = self.fc(x)
        x = self.drop(self.norm(self.last)) * self.scale
        del self.last
        return self.out(x)


def trained():
    flow.manual_seed(0)
    model = Net()
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
    return model, optimizer, TrainGraph(model, nn.CrossEntropyLoss(), optimizer)


def frozen(model, optimizer):
    model.fc.requires_grad_(False)


def evaluated(model, optimizer):
    model.eval()


def decayed(model, optimizer):
    optimizer.param_groups[0]["weight_decay"] = 0.5


def replaced(model, optimizer):
    model.norm = nn.Tanh()
    optimizer.param_groups[0]["params"] = list(model.parameters())


def nothing(model, optimizer):
    pass


def outcome(model, optimizer, graph):
    """Two steps and the resulting state."""
    losses = [bits(graph(X, Y)), bits(graph(X, Y))]
    return losses, state_bits(model, optimizer), flow.get_rng_state().tolist()


PATCHED = [(builtins, "print"), (random, "random"), (np.random, "rand"), (time, "time")]


def check(change, called, wanted_in=None):
    """Interrupt `compiled_for` at every line (in functions of these names), and compare the rest with an uninterrupted
    run.

    Returns the number of lines.
    """

    def ready():
        made = trained()
        for _ in range(called):
            made[2](X, Y)
        change(*made[:2])
        return made

    originals = [getattr(*place) for place in PATCHED]
    wanted = outcome(*ready())
    graph = ready()[2]
    at = places(lambda: graph.compiled_for((X, Y), {}), wanted_in)
    for i in sampled(at, 0.35, lambda i: f"{change.__name__} {i}"):
        model, optimizer, graph = ready()
        tracer = Interrupter(FILES, i)
        tracer.run(lambda: graph.compiled_for((X, Y), {}))  # noqa: B023
        code, line = tracer.lines[i]
        place = f"{Path(code.co_filename).name}:{line} in {code.co_name}"
        assert MODE.get().trace is None and MODE.get().watch is None and not holds_lock(), place
        assert [getattr(*p) for p in PATCHED] == originals, place
        assert outcome(model, optimizer, graph) == wanted, place
    return len(at)


@pytest.mark.filterwarnings("ignore:TrainGraph")  # Net counts its calls, and the graph warns that it will not
@pytest.mark.parametrize("change", [evaluated, frozen, decayed])
def test_interrupt_during_the_key_check(change):
    assert (
        check(
            change, 1, ("prepare", "find", "look", "compile", "compile_graph", "add", "record_side_effects", "restore")
        )
        > 20
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TrainGraph")
@pytest.mark.parametrize("called, change", [(0, nothing), (1, evaluated), (1, replaced)])
def test_interrupt_at_any_line_before_the_step(called, change):
    assert check(change, called) > 300
