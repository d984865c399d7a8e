"""Helpers for tests of mistakes: check an error or a warning and its side effects. Read next:
`test_mistakes_graph.py`.
"""

import inspect
import os
import re
from contextlib import contextmanager

import pytest
from graph_models import MLP, TrainGraph, bits, eager_step, state_bits

import minflow as flow
from minflow import nn


class Setup:
    """A small model with loss, optimizer and batch; the optimizer has a moment, so that there is state to lose."""

    def __init__(self):
        flow.manual_seed(7)
        self.model, self.loss_fn = MLP(), nn.CrossEntropyLoss()
        self.optimizer = flow.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.x, self.y = flow.randn(4, 20), flow.tensor([0, 1, 2, 3])
        eager_step(self.model, self.loss_fn, self.optimizer, self.x, self.y)
        self.optimizer.zero_grad()

    def graph(self, build, *optimizers, **attributes):
        """A graph `Learner` with this build, the model, the loss, and any further attributes."""

        class Learner(nn.Graph):
            def __init__(inner):
                super().__init__()
                inner.model, inner.loss_fn = self.model, self.loss_fn
                for name, value in attributes.items():
                    setattr(inner, name, value)
                for optimizer in optimizers:
                    inner.add_optimizer(optimizer)

        Learner.build = build
        return Learner()

    def state(self):
        assert all(p.grad is None for p in self.model.parameters()), "the build left a gradient"
        return (
            state_bits(self.model, self.optimizer),
            set(vars(self.model)),
            [repr(g) for g in self.optimizer.param_groups],
        )

    def check_next_step(self):
        """Assert that a new graph of the model and the optimizer takes a step equal to eager's."""
        twin = MLP()
        twin.load_state_dict(self.model.state_dict())
        optimizer = flow.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
        optimizer.load_state_dict(self.optimizer.state_dict())
        wanted = eager_step(twin, self.loss_fn, optimizer, self.x, self.y)
        found = TrainGraph(self.model, self.loss_fn, self.optimizer)(self.x, self.y)
        assert bits(found) == bits(wanted) and state_bits(self.model, self.optimizer) == state_bits(twin, optimizer)


def line_of(place) -> str:
    """Location `file.py:12` of a lambda, or of a function's line marked `# here`, or else of its first line."""
    code = place.__code__
    if code.co_name == "<lambda>":
        return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    lines, first = inspect.getsourcelines(place)
    marked = [first + i for i, text in enumerate(lines) if text.rstrip().endswith("# here")]
    assert len(marked) <= 1, marked
    return f"{os.path.basename(code.co_filename)}:{(marked or [code.co_firstlineno + 1])[0]}"


def assert_fails(call, kind, what, values, hint, at=None):
    """Assert that a call fails with exactly this error class, and that patterns match its sentence, all its values, its
    line and its hint.

    at: the function whose line it is, see `line_of`; the call itself by default. Returns the error.
    """
    with pytest.raises(kind) as caught:
        call()
    error, line = caught.value, line_of(at or call)
    assert type(error) is kind, type(error)
    assert re.search(what, error.what), error.what
    assert list(error.values) == list(values), error.values
    for name, pattern in values.items():
        assert re.search(f"^{pattern}$", error.values[name]), error.values[name]
    assert re.search(rf"\b{re.escape(line)}$", error.where), (error.where, line)
    assert hint in error.hint, error.hint
    assert str(error).count("\n") == len(values) + 2 and "\n  Try: " in str(error)
    return error


@contextmanager
def assert_warns(*patterns, at):
    """Assert exactly these warnings, in any order, each at its line and with a hint."""
    with pytest.warns(flow.MinflowWarning) as records:
        yield records
    assert len(records) == len(patterns), [str(r.message) for r in records]
    for pattern in patterns:
        found = [r for r in records if re.search(pattern, str(r.message))]
        assert len(found) == 1, (pattern, [str(r.message) for r in records])
        text = str(found[0].message)
        assert f"at {line_of(at)}" in text and "\n  Try: " in text, text
        assert f"{os.path.basename(found[0].filename)}:{found[0].lineno}" == line_of(at)
