"""The modules that a call enters, in order, for five typical calls; no call returns to a package that it has left.

The calls are repeated ones, so everything is built. `call_paths.py` records them.
"""

import json

import pytest

from tests import call_paths
from tests.processes import output
from tests.sources import TOP

CALLS = ["x + 1", "graph(x)", "job(x)", "show(x)", "event"]


@pytest.fixture(scope="module")
def recorded():
    return json.loads(output("-m", "tests.call_paths", cwd=TOP))


def test_modules_entered(recorded, golden):
    """If a call takes another path than before, the golden file changes: check that the new path is better."""
    rows = [
        [name, *[f"  {thread}: {' > '.join(way)}" for thread, way in recorded[name]["modules"].items()]]
        for name in CALLS
    ]
    golden("call_paths", "\n".join([line for row in rows for line in row]))


@pytest.mark.parametrize("name", CALLS)
def test_no_call_returns_to_a_package(recorded, name):
    """A package has been left if it has called another one. No package that it calls, directly or not, may call it
    back.
    """
    assert recorded[name]["returns"] == []


def test_return_to_a_package_is_detected():
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
