"""A save killed at each of its lines: the old or the new state is there, whole, and the next save leaves nothing of it.

A process of its own forks a child for each line; the child's tracer ends it there, as a kill -9 would.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent.parent

PROGRAM = """
import json, os, sys
from pathlib import Path
import numpy as np
import minflow as flow
from minflow.core.base.errors import CheckpointError, GraphFormatError
from minflow.deploy import folder as saved_graph
from minflow.io import atomic

top, form = Path(sys.argv[1]), sys.argv[2]
OURS = os.path.dirname(flow.__file__)
ROOMS = tuple(os.path.join(OURS, room) for room in ("core/files", "io", "job", "deploy/folder.py"))
if form == "graph by moving files":
    atomic.exchange = lambda a, b: False

def state(n):
    return {"n": np.full(3, n), "w": np.full((50, 20), n, "f4"), "v/u": np.ones(n, "i4")}

def save(path, n):
    if form.startswith("job"):
        flow.checkpoint.save(path, state(n))
    elif form.startswith("graph"):
        head = {"format": "minflow.graph", "version": 1, "n": n}
        saved_graph.write(path, head | {"states": [{"name": k, "spec": ""} for k in state(n)]}, head, state(n))
    else:
        flow.save(state(n), path)

def load(path):
    '''The number of the state that is there, None if none is; an error if it is neither.'''
    try:
        if form.startswith("job"):
            found = {name: v.numpy() for name, v in flow.checkpoint.get(path).items()}
            assert (path / "snapshot_done").is_file() == bool(found)
        elif form.startswith("graph"):
            graph, meta, found = saved_graph.read(path)
            assert graph["n"] == meta["n"] == int(found["n"][0])
        else:
            found = flow.load(path)
    except (CheckpointError, GraphFormatError) as error:
        assert any(text in str(error) for text in ("there is no", "did not finish", "no checkpoint")), str(error)
        return None
    if not found:
        return None
    n = int(found["n"][0])
    wanted = state(n)
    assert found.keys() == wanted.keys() and all(np.array_equal(found[k], wanted[k]) for k in wanted), found
    return n

def killed_at(line, path):
    "Save in a child that ends before its line number `line`; did it come to its end?"
    child = os.fork()
    if child == 0:
        count = 0
        def trace(frame, event, arg):
            nonlocal count
            if not frame.f_code.co_filename.startswith(ROOMS):
                return None
            if event == "line":
                count += 1
                if count == line:
                    os._exit(7)
            return trace
        sys.settrace(trace)
        save(path, 2)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def tree(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))

line, seen, left = 0, {}, 0
while True:
    line += 1
    folder = top / str(line)
    folder.mkdir()
    path = folder / ("x.mf" if form == "file" else "x")
    if form in ("file", "folder", "graph", "graph by moving files"):
        save(path, 1)
    elif form == "job in an empty folder":
        path.mkdir()
    old = load(path)
    done = killed_at(line, path)
    new = load(path)
    assert new in (old, 2), (line, new)
    assert done == (new == 2) or not done, line
    seen[str(new)] = seen.get(str(new), 0) + 1
    left += any(name.rpartition("/")[2].startswith(".minflow") for name in tree(folder))
    if form.startswith("job") and new == 2:  # a checkpoint is never written over another
        try:
            save(path, 3)
        except CheckpointError as error:
            assert "not empty" in str(error)
        path = folder / "y"
    save(path, 3)
    assert load(path) == 3
    names = [name for name in tree(folder) if ".minflow" in name]
    assert not names, (line, names)
    if done:
        break
print(json.dumps({"lines": line, "seen": seen, "left": left}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child for each line is a fork")
@pytest.mark.parametrize("form", ["file", "folder", "job", "job in an empty folder", "graph", "graph by moving files"])
def test_killed_at_each_line(tmp_path, form):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), form]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout)
    assert found["lines"] > 100 and set(found["seen"]) == {"None" if form.startswith("job") else "1", "2"}
    assert found["left"] > 10  # many of them died while something of theirs lay there
