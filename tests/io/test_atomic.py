"""Saving is all or nothing: full disks, forbidden folders, killed processes, several writers."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minflow as flow
from minflow.core.errors import CheckpointError
from minflow.io import atomic, container

TOP = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def old(tmp_path):
    flow.save({"w": flow.zeros(4)}, tmp_path / "x.safetensors")
    return tmp_path / "x.safetensors"


def unchanged(path):
    assert flow.load(path)["w"].tolist() == [0, 0, 0, 0]
    assert [f.name for f in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_full_disk(old, monkeypatch, after):
    calls = []

    def put(file, data):
        calls.append(len(data))
        if len(calls) > after:
            file.write(bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file.write(data)

    monkeypatch.setattr(container, "put", put)
    with pytest.raises(CheckpointError, match="(?s)No space left.*4,194,364 bytes.*unchanged.*df -h"):
        flow.save({"a": flow.ones(1 << 20), "b": flow.ones(15)}, old)
    monkeypatch.undo()
    unchanged(old)


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_failing_calls(old, monkeypatch, name):
    def fail(*args):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(CheckpointError, match="Input/output error"):
        flow.save({"w": flow.ones(4)}, old)
    monkeypatch.undo()
    unchanged(old)


def test_interrupted(old, monkeypatch):
    def stop(file, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(container, "put", stop)
    with pytest.raises(KeyboardInterrupt):
        flow.save({"w": flow.ones(4)}, old)
    monkeypatch.undo()
    unchanged(old)


def test_file_size_limit(old):
    """The system itself says no in the middle of a write."""
    program = f"""
import resource, minflow as flow
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try: flow.save({{"w": flow.ones(100_000)}}, {str(old)!r})
except flow.errors.CheckpointError as error: print(error)
"""
    program = program.replace("flow.errors.CheckpointError", "ValueError")
    told = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert "cannot be written: File too large" in told.stdout, told.stderr
    unchanged(old)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder(old):
    old.parent.chmod(0o500)
    try:
        with pytest.raises(CheckpointError, match="(?s)Permission denied.*unchanged"):
            flow.save({"w": flow.ones(4)}, old)
    finally:
        old.parent.chmod(0o700)
    unchanged(old)


def test_unwritable_whoever_asks(tmp_path):
    """/proc takes no files, not even from root."""
    if not Path("/proc/self").is_dir():
        pytest.skip("no /proc")
    with pytest.raises(CheckpointError, match="there is none"):
        flow.save({"w": flow.ones(4)}, "/proc/minflow.safetensors")


def test_stale_temporaries_are_swept(old):
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    folder, here = old.parent, atomic.host()
    stale = [f".x.safetensors.{here}.{dead.pid}.0123abcd.tmp", f".x.safetensors.{here}.{os.getpid()}.0123abcd.tmp"]
    others = [
        f".x.safetensors.{here}.{os.getppid()}.0123abcd.tmp",
        f".x.safetensors.00000000.{dead.pid}.0123abcd.tmp",
        f".y.safetensors.{here}.{dead.pid}.0123abcd.tmp",
        ".x.safetensors.tmp",
    ]
    for name in stale + others:
        (folder / name).write_bytes(b"half")
    flow.save({"w": flow.zeros(4)}, old)
    assert sorted(f.name for f in folder.iterdir()) == sorted([*others, old.name])


def test_temporaries_of_this_process_are_left_alone(old):
    def write(file):
        flow.save({"w": flow.ones(4)}, old)  # another thread's save, say, while this one is under way
        file.write(b"later")

    atomic.replace(old, write)
    assert old.read_bytes() == b"later" and [f.name for f in old.parent.iterdir()] == [old.name]


KILLED = """
import sys, minflow as flow
print("ready", flush=True)
n = 0
while True:
    n += 1
    flow.save({"n": n, "w": flow.full((300_000,), float(n))}, sys.argv[1])
"""


def test_killed_at_any_moment(tmp_path):
    path, rng = tmp_path / "x.safetensors", random.Random(5)
    flow.save({"n": 0, "w": flow.zeros(300_000)}, path)
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], env=ENVIRONMENT, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        state = flow.load(path)
        assert state["w"].min().item() == state["w"].max().item() == state["n"]
    flow.save({"n": 0, "w": flow.zeros(1)}, path)
    assert [f.name for f in tmp_path.iterdir()] == [path.name]


def test_memory_of_a_save_and_a_load(tmp_path):
    """The numbers are hashed, written and read in pieces: no second copy of them."""
    import tracemalloc

    w = flow.ones(4_000_000)
    tracemalloc.start()
    flow.save({"w": w}, tmp_path / "x.mf")
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.reset_peak()
    found = flow.load(tmp_path / "x.mf")
    assert tracemalloc.get_traced_memory()[1] < w.nbytes + (4 << 20)
    tracemalloc.stop()
    assert found["w"].sum().item() == 4_000_000
