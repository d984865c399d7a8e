"""Saving is all or nothing: full disks, forbidden folders, killed processes, concurrent writers."""

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import CheckpointError
from minflow.core.base.locks import exclusive_lock
from minflow.core.files import temporary
from minflow.deploy import folder as saved_graph
from minflow.io import atomic, container
from tests.deploy.saved import graph
from tests.measuring import peak

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

    monkeypatch.setattr(container, "write_all", put)
    with pytest.raises(CheckpointError, match="(?s)No space left.*4,194,364 bytes.*unchanged.*df -h"):
        flow.save({"a": flow.ones(1 << 20), "b": flow.ones(15)}, old)
    monkeypatch.undo()
    unchanged(old)


@pytest.mark.parametrize(
    ("owner", "name", "raised", "seen", "said"),
    [
        (os, "fsync", OSError(errno.EIO, os.strerror(errno.EIO)), CheckpointError, "Input/output error"),
        (os, "replace", OSError(errno.EIO, os.strerror(errno.EIO)), CheckpointError, "Input/output error"),
        (container, "write_all", KeyboardInterrupt(), KeyboardInterrupt, ""),
    ],
    ids=["fsync", "replace", "an interrupt"],
)
def test_failing_calls(old, monkeypatch, owner, name, raised, seen, said):
    def fail(*args):
        raise raised

    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(seen, match=said or None):
        flow.save({"w": flow.ones(4)}, old)
    monkeypatch.undo()
    unchanged(old)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="root may write everywhere, and Windows has other permissions",
)
def test_unwritable_folder(old):
    old.parent.chmod(0o500)
    try:
        with pytest.raises(CheckpointError, match="(?s)Permission denied.*unchanged"):
            flow.save({"w": flow.ones(4)}, old)
    finally:
        old.parent.chmod(0o700)
    unchanged(old)


def test_unwritable_even_for_root(tmp_path):
    """/proc accepts no files, not even from root."""
    if not Path("/proc/self").is_dir():
        pytest.skip("no /proc")
    with pytest.raises(CheckpointError, match="there is none"):
        flow.save({"w": flow.ones(4)}, "/proc/minflow.safetensors")


def test_stale_temporaries_are_swept(old):
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    folder, here, random = old.parent, temporary.host(), "0123456789abcdef"
    stale = [f".minflow.{here}.{dead.pid}.{random}.tmp", f".minflow.{here}.{os.getpid()}.{random}.tmp"]
    others = [
        f".minflow.{here}.{os.getppid()}.{random}.tmp",
        f".minflow.00000000.{dead.pid}.{random}.tmp",
        f".minflow.{here}.{dead.pid}.0123abcd.tmp",
        f".x.safetensors.{here}.{dead.pid}.{random}.tmp",
        ".x.safetensors.tmp",
    ]
    for name in stale + others:
        (folder / name).write_bytes(b"half")
    for number in "12":  # a killed process left its folder before and after it put the inner one in place
        outer = folder / stale[0].replace(random, number * 16)
        outer.mkdir(0o700)
        if number == "1":
            (outer / outer.name / "w").mkdir(parents=True)
    flow.save({"w": flow.zeros(4)}, old)
    assert sorted(f.name for f in folder.iterdir()) == sorted([*others, old.name])


def test_temporaries_of_this_process_are_kept(old):
    def write(file):
        flow.save({"w": flow.ones(4)}, old)  # for example a concurrent save of another thread
        file.write(b"later")

    atomic.replace(old, write)
    assert old.read_bytes() == b"later" and [f.name for f in old.parent.iterdir()] == [old.name]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a lock is inherited by a fork")
def test_child_process_inherits_no_lock(tmp_path):
    """A worker that is forked while another thread saves outlives the save."""
    ends, end = os.pipe()
    with exclusive_lock(tmp_path) as free:
        assert free
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(ends, 1)
            os._exit(0)
        with exclusive_lock(tmp_path, wait=0.01) as again:
            assert not again
    with exclusive_lock(tmp_path, wait=False) as free:
        assert free
    os.close(end)
    os.close(ends)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("form", ["file", "graph"])
def test_file_systems_without_ownership(tmp_path, monkeypatch, form):
    """On an exFAT stick, or if root is mapped to another user, our own files seem to belong to another user."""
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    for n in (1, 2):
        if form == "file":
            flow.save({"n": n}, tmp_path / "x.mf")
        else:
            saved_graph.write(tmp_path / "x.mf", *graph(n))
    with pytest.raises(ZeroDivisionError):
        atomic.replace(tmp_path / "y", lambda file: file.write(b"1" * (1 // 0)))
    assert os.listdir(tmp_path) == ["x.mf"]


def test_memory_of_a_save_and_a_load(tmp_path):
    """Elements are hashed, written and read in chunks, without a second copy."""
    w, path, little = flow.ones(4_000_000), tmp_path / "x.mf", 4 << 20
    assert peak(lambda: flow.save({"w": w}, path), below=little) < little
    assert peak(lambda: flow.load(path), below=w.nbytes + little) < w.nbytes + little
    assert flow.load(path)["w"].sum().item() == 4_000_000


# ---- obstacles in a path ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_file_mode_is_kept(old, mode):
    old.chmod(mode)
    try:
        flow.save({"w": flow.ones(2)}, old)
    except CheckpointError as error:
        # a read-only file is protected deliberately; root may write it all the same
        assert mode == 0o444 and "Permission denied" in str(error)
        unchanged(old)
    assert stat.S_IMODE(old.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_file_owner_is_kept(old):
    os.chown(old, 12345, 54321)
    flow.save({"w": flow.ones(2)}, old)
    assert (old.stat().st_uid, old.stat().st_gid) == (12345, 54321)


@pytest.mark.parametrize("form", ["file", "folder", "job"])
@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u6f22"])
def test_unusual_file_names(tmp_path, form, letter):
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    suffix = ".mf" if form == "file" else ""

    def name(room):
        return letter * ((room - len(suffix)) // len(letter.encode())) + suffix

    def save(path):
        flow.checkpoint.save(path, {"w": np.ones(2, "f4")}) if form == "job" else flow.save({"w": flow.ones(2)}, path)

    def load(path):
        return flow.checkpoint.get(path)["w"].numpy() if form == "job" else flow.load(path)["w"]

    path = tmp_path / name(longest)
    save(path)
    assert load(path).tolist() == [1, 1]
    for call in (save, load):
        with pytest.raises(CheckpointError, match=letter):
            call(tmp_path / name(longest + 4))
    assert os.listdir(tmp_path) == [path.name]


def test_links(tmp_path, old):
    """A link stays a link, to a file, a folder or nothing yet; a cycle is reported."""
    (tmp_path / "link.mf").symlink_to(old)
    flow.save({"w": flow.ones(4)}, tmp_path / "link.mf")
    assert (tmp_path / "link.mf").is_symlink() and flow.load(old)["w"].sum().item() == 4
    (tmp_path / "new.mf").symlink_to(tmp_path / "target.mf")
    flow.save({"w": flow.ones(4)}, tmp_path / "new.mf")
    assert (tmp_path / "new.mf").is_symlink() and (tmp_path / "target.mf").is_file()
    (tmp_path / "target").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "target")
    flow.save({"w": flow.ones(4)}, tmp_path / "folder")
    assert flow.load(tmp_path / "target")["w"].sum().item() == 4
    (tmp_path / "circle.mf").symlink_to(tmp_path / "circle.mf")
    for call in (flow.load, lambda path: flow.save(1, path)):
        with pytest.raises(CheckpointError, match="circle.mf"):
            call(tmp_path / "circle.mf")


def test_file_and_folder_conflict(tmp_path):
    (tmp_path / "folder.mf").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe.mf")
    os.mkfifo(tmp_path / "pipe")
    for name, text in [
        ("folder.mf", "is a folder"),
        ("pipe.mf", "a pipe"),
        ("pipe", "pipe"),
        ("file/x.mf", "Not a directory"),
        ("file/x", "Not a directory"),
    ]:
        with pytest.raises(CheckpointError, match=text):
            flow.save(1, tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.mf", "pipe", "pipe.mf"]


def test_working_directory_may_change_during_a_save(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    put = container.write_all
    monkeypatch.setattr(container, "write_all", lambda file, data: (os.chdir(tmp_path / "b"), put(file, data)))
    flow.save({"w": flow.ones(2)}, "x.mf")
    assert (os.listdir(tmp_path / "a"), os.listdir(tmp_path / "b")) == (["x.mf"], [])


# ---- special files ---------------------------------------------------------------------------------------------------


def special(folder):
    """Files that make their reader wait or fail."""
    os.mkfifo(folder / "pipe.safetensors")
    yield folder / "pipe.safetensors", "a pipe"
    yield "/dev/zero", "a device"
    yield "/dev/tty", "a device"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "s"))
    yield folder / "s", "a socket"
    server.close()
    (folder / "in" / "data.safetensors").mkdir(parents=True)
    yield folder / "in", "directory|is not a file"
    (folder / "pipes").mkdir()
    os.mkfifo(folder / "pipes" / "one.safetensors")
    yield folder / "pipes", "a pipe"
    yield "/proc/self/mem", "Input/output error|0 bytes"
    yield "/proc/kmsg", "0 bytes|not permitted|Permission"
    yield f"/proc/{os.getpid()}/status", "0 bytes"


def test_special_files_do_not_block(tmp_path):
    for path, text in special(tmp_path):
        if os.path.lexists(path):
            with pytest.raises(CheckpointError, match=text):
                flow.load(path)


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EIO, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE, errno.ENOTDIR]
)
@pytest.mark.parametrize("name", ["stat", "open", "listdir"])
def test_operating_system_errors(tmp_path, monkeypatch, number, name):
    """Every system call before the data may fail, for a file and for a folder."""
    flow.save(1, tmp_path / "folder")
    flow.checkpoint.save(tmp_path / "job", {"w": np.ones(2, "f4")})
    real, text = getattr(os, name), os.strerror(number)

    def fail(path, *args, **options):
        if not isinstance(path, int) and str(tmp_path) in os.fspath(path):
            raise OSError(number, text, path)
        return real(path, *args, **options)

    monkeypatch.setattr(os, name, fail)
    refused = 0
    for call in (
        lambda: flow.load(tmp_path / "folder"),
        lambda: flow.load(tmp_path / "folder" / "data.safetensors"),
        lambda: flow.checkpoint.get(tmp_path / "job")["w"].numpy(),
        lambda: flow.save(1, tmp_path / "folder"),
        lambda: flow.checkpoint.save(tmp_path / "other", {"w": np.ones(2, "f4")}),
    ):
        try:
            call()
        except CheckpointError as error:
            refused += 1
            assert str(tmp_path) in str(error)
    assert refused or name == "listdir"


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x.mf", "\ud800", "a\0b", "", 3, b"x.mf"], ids=repr)
def test_empty_path(path):
    for call in (
        flow.load,
        lambda path: flow.save(1, path),
        flow.checkpoint.get,
        lambda path: flow.checkpoint.save(path, {}),
    ):
        with pytest.raises(CheckpointError, match="path|home folder"):
            call(path)
