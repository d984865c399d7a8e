"""The five walks of a student: the modules that a call enters, in order, and that none returns to a room it has left.

A walk is that of a call which is not the first: what is built once is built. `call_paths.py` records it.
"""

import json

import pytest

from tests import call_paths
from tests.processes import output
from tests.sources import TOP

WALKS = ["x + 1", "graph(x)", "job(x)", "show(x)", "event"]


@pytest.fixture(scope="module")
def recorded():
    return json.loads(output("-m", "tests.call_paths", cwd=TOP))


def test_modules_entered(recorded, golden):
    """Where a call goes another way than before, its golden file changes: is the new way the better one?"""
    rows = [
        [walk, *[f"  {thread}: {' > '.join(way)}" for thread, way in recorded[walk]["modules"].items()]]
        for walk in WALKS
    ]
    golden("call_paths", "\n".join([line for row in rows for line in row]))


@pytest.mark.parametrize("walk", WALKS)
def test_no_walk_returns(recorded, walk):
    """A room has been left when it has called another one. None of those that it calls, near or far, calls it back."""
    assert recorded[walk]["returns"] == []


def test_a_return_is_seen():
    recorder = call_paths.Recorder.__new__(call_paths.Recorder)
    recorder.modules, recorder.returns, recorder.on, recorder.waiting = {}, set(), True, False

    def frame(file, back):
        code = type("Code", (), {"co_filename": str(TOP / "minflow" / file), "co_name": "f"})
        return type("Frame", (), {"f_code": code, "f_back": back})

    down = frame("core/dispatch.py", frame("nn/module.py", frame("core/tensor.py", None)))
    recorder.event(frame("core/dispatch.py", frame("nn/module.py", None)), "call", None)
    assert not recorder.returns
    recorder.event(down, "call", None)
    assert recorder.returns == {"core.dispatch.f: core < nn < core"}
