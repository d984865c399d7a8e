"""The five walks of a student: the modules that a call enters, in order, and that none returns to a room it has left.

A walk is that of a call which is not the first: what is built once is built. `walking.py` records it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
WALKS = ["x + 1", "graph(x)", "job(x)", "show(x)", "event"]


@pytest.fixture(scope="module")
def recorded():
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "widgets")])}
    done = subprocess.run([sys.executable, "-m", "tests.walking"], cwd=TOP, capture_output=True, text=True, env=env,
                          timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_modules_entered(recorded, golden):
    """Where a call goes another way than before, its golden file changes: is the new way the better one?"""
    rows = [[walk, *[f"  {thread}: {' > '.join(way)}" for thread, way in recorded[walk]["modules"].items()]]
            for walk in WALKS]
    golden("walks", "\n".join([line for row in rows for line in row]))


@pytest.mark.parametrize("walk", WALKS)
def test_no_walk_returns(recorded, walk):
    """A room has been left when it has called another one. None of those that it calls, near or far, calls it back."""
    assert recorded[walk]["returns"] == []


def test_a_return_is_seen():
    from tests import walking

    recorder = walking.Recorder.__new__(walking.Recorder)
    recorder.modules, recorder.returns, recorder.on, recorder.waiting = {}, set(), True, False

    def frame(file, back):
        code = type("Code", (), {"co_filename": str(TOP / "minflow" / file), "co_name": "f"})
        return type("Frame", (), {"f_code": code, "f_back": back})

    down = frame("core/door.py", frame("nn/module.py", frame("core/tensor.py", None)))
    recorder.event(frame("core/door.py", frame("nn/module.py", None)), "call", None)
    assert not recorder.returns
    recorder.event(down, "call", None)
    assert recorder.returns == {"core.door.f: core < nn < core"}


def test_the_files_of_walking_are_there():
    from tests import walking

    assert all(home.is_dir() for home in walking.HOMES)
    assert all((TOP / "minflow" / file).is_file() for file in walking.WRAPPERS)
