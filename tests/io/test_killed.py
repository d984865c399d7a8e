"""A save killed at any moment: the old or the new state is complete, and the next save cleans up.

A kill leaves only what is on the disk, so lines that change nothing there need not be tried. A child is forked for each
change of the disk, and its tracer ends it at the next line, as kill -9 would.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent.parent

PROGRAM = """
import json, os, sys, traceback
from pathlib import Path
import numpy as np
import minflow as flow
from minflow.core.base.errors import CheckpointError, GraphFormatError
from minflow.deploy import folder as saved_graph
from minflow.io import atomic

OURS = os.path.dirname(flow.__file__)
os.fsync = lambda file: None  # a kill, unlike a power cut, loses nothing without it
ROOMS = tuple(os.path.join(OURS, room) for room in ("core/files", "io", "job", "deploy/folder.py"))

def state(n):
    return {"n": np.full(3, n), "w": np.full((50, 20), n, "f4"), "v/u": np.ones(n, "i4")}

def save(form, path, n):
    if form.startswith("job"):
        flow.checkpoint.save(path, state(n))
    elif form.startswith("graph"):
        head = {"format": "minflow.graph", "version": 1, "n": n}
        saved_graph.write(path, head | {"states": [{"name": k, "spec": ""} for k in state(n)]}, head, state(n))
    else:
        flow.save(state(n), path)

def load(form, path):
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
        assert any(text in str(error) for text in ("there is no", "did not finish", "not a checkpoint")), str(error)
        return None
    if not found:
        return None
    n = int(found["n"][0])
    wanted = state(n)
    assert found.keys() == wanted.keys() and all(np.array_equal(found[k], wanted[k]) for k in wanted), found
    return n

def before(form, folder):
    '''The path to save to, with an old state if the form has one.'''
    folder.mkdir()
    path = folder / ("x.mf" if form == "file" else "x")
    if not form.startswith("job"):
        save(form, path, 1)
    elif form == "job in an empty folder":
        path.mkdir()
    return path

def disk(folder):
    "All that a kill leaves."
    found = []
    for top, folders, files in os.walk(folder):
        for name in folders + files:
            about = os.lstat(os.path.join(top, name))
            found.append((top, name, about.st_ino, about.st_mode, about.st_size, about.st_mtime_ns))
        for name in files:
            with open(os.path.join(top, name), "rb") as file:
                found.append(file.read())
    return found

def killed_at(change, form, path):
    "Save in a child that ends at our first line after `change` changes of the disk. True if it came to its end."
    child = os.fork()
    if child == 0:
        last, count = None, -1  # the first line is no change
        def trace(frame, event, arg):
            nonlocal last, count
            if not frame.f_code.co_filename.startswith(ROOMS):
                return None
            if event == "line" and (now := disk(path.parent)) != last:
                last, count = now, count + 1
                if count == change:
                    os._exit(7)
            return trace
        sys.settrace(trace)
        save(form, path, 2)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def tree(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))

def check_recovery(form, top):
    change, seen, left, done = 0, {}, 0, False
    top.mkdir()
    while not done:
        folder = top / str(change)
        path = before(form, folder)
        old = load(form, path)
        done = killed_at(change, form, path)
        new = load(form, path)
        assert new in (old, 2) and (new == 2 or not done), (change, new)
        seen[str(new)] = seen.get(str(new), 0) + 1
        left += any(name.rpartition("/")[2].startswith(".minflow") for name in tree(folder))
        if form.startswith("job") and new == 2:  # a checkpoint is never written over another
            try:
                save(form, path, 3)
            except CheckpointError as error:
                assert "not empty" in str(error)
            path = folder / "y"
        save(form, path, 3)
        assert load(form, path) == 3
        names = [name for name in tree(folder) if ".minflow" in name]
        assert not names, (change, names)
        change += 1
    return {"changes": change, "seen": seen, "left": left}

result, exchange = {}, atomic.exchange
for form in sys.argv[2:]:
    atomic.exchange = (lambda a, b: False) if form == "graph by moving files" else exchange
    try:
        result[form] = check_recovery(form, Path(sys.argv[1], form))
    except Exception:
        result[form] = traceback.format_exc()
print(json.dumps(result))
"""
# Form -> minimum number of kills that leave a temporary of the save: fewer would mean too few moments were tried.
LEFT = {"file": 3, "folder": 3, "job": 15, "job in an empty folder": 15, "graph": 11, "graph by moving files": 13}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Outcomes of the saves of each form: counts, or the text of an error."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("killed")), *LEFT]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child for each line is a fork")
@pytest.mark.parametrize("form", LEFT)
def test_killed_at_each_change(found, form):
    one = found[form]
    assert isinstance(one, dict), one
    assert set(one["seen"]) == {"None" if form.startswith("job") else "1", "2"}
    assert one["left"] >= LEFT[form]
