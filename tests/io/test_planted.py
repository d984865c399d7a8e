"""Files planted among ours: a save deletes and moves nothing that this user did not create.

Anyone who may write into a folder, such as /tmp, can guess the names of temporaries. As root, the tests give planted
files to another user; otherwise they belong to this user, as after unpacking an archive.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow import course
from minflow.core.base.errors import CheckpointError, GraphFormatError
from minflow.core.files import atomic, temporary
from minflow.deploy import folder as saved_graph
from minflow.exercises.teach import commands, notebook
from minflow.io.files import SAVED_GRAPH
from minflow.views.show import picture
from tests.deploy.saved import graph, number

NOBODY = 65534
OWNERS = [
    "ours",
    pytest.param(
        "another user's",
        marks=pytest.mark.skipif(
            not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to another user"
        ),
    ),
]


@pytest.fixture(autouse=True)
def in_time():
    """A planted pipe must not block a save."""

    def stop(*_):
        raise AssertionError("the save waits")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def pid():
    """Id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return process.pid


@pytest.fixture
def public(tmp_path):
    """A folder like /tmp, with foreign files beside and in it."""
    (tmp_path / "public" / "neighbor").mkdir(parents=True)
    (tmp_path / "public" / "neighbor" / "data").write_text("precious")
    (tmp_path / "public" / "file").write_text("precious")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "data").write_text("precious")
    (tmp_path / "public").chmod(0o1777)
    return tmp_path / "public"


def names(pid, random="0123456789abcdef"):
    return [
        f".minflow.{temporary.host()}.{pid}.{random}.tmp",
        f".x.{temporary.host()}.{pid}.{random[:8]}.tmp",
        f".minflow.{temporary.host()}.{pid}.{random[:8]}.tmp",
    ]


def journal(stage, entries):
    stage.mkdir()
    (stage / ".old.tmp").mkdir()
    (stage / ".old.tmp" / "evil").write_text("evil")
    (stage / ".moving.tmp").write_text(json.dumps(entries))
    (stage / "x").write_text("")


def number_of(path):
    return os.lstat(path).st_ino if os.path.lexists(path) else 0


def same_name(stage, make):
    stage.mkdir(0o700)
    make(stage / stage.name)


def pipe(stage):
    stage.mkdir()
    os.mkfifo(stage / ".moving.tmp")


def huge(stage):
    stage.mkdir()
    with open(stage / ".moving.tmp", "wb") as file:
        file.truncate(1 << 40)


def link_in(stage):
    stage.mkdir()
    (stage / ".moving.tmp").symlink_to("/dev/zero")


def folder_in(stage):
    (stage / ".moving.tmp").mkdir(parents=True)


# Files planted under the name of a temporary. stage.parent is the folder that is saved into.
PLANTS = {
    "the folder above": lambda s: journal(s, {"..": number_of(s.parent), "x": 0}),
    "two above": lambda s: journal(s, {"../..": number_of(s.parent.parent), "x": 0}),
    "itself": lambda s: journal(s, {".": number_of(s.parent), "x": 0}),
    "a neighbor": lambda s: journal(s, {"neighbor": number_of(s.parent / "neighbor"), "x": 0}),
    "a file": lambda s: journal(s, {"file": number_of(s.parent / "file"), "x": 0}),
    "outside": lambda s: journal(s, {"../outside": number_of(s.parent.parent / "outside"), "x": 0}),
    "no dict": lambda s: journal(s, [1]),
    "a pipe in it": pipe,
    "a huge file in it": huge,
    "a link in it": link_in,
    "a folder in it": folder_in,
    "a pipe": lambda s: os.mkfifo(s),
    "a link to a neighbor": lambda s: s.symlink_to(s.parent / "neighbor"),
    "a link to nothing": lambda s: s.symlink_to(s.parent / "none"),
    "a folder that was renamed": lambda s: (s.mkdir(0o700), (s / "data").write_text("precious")),
    "a link of its own name": lambda s: same_name(s, lambda p: p.symlink_to(s.parent / "neighbor")),
    "a file of its own name and another": lambda s: same_name(
        s, lambda p: (p.mkdir(), (s / "data").write_text("precious"))
    ),
    "open to others": lambda s: (
        same_name(s, lambda p: (p.mkdir(), (p / "data").write_text("precious"))),
        s.chmod(0o777),
    ),
}
NOTEBOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def save_onnx(folder):
    pytest.importorskip("onnx")
    flow.onnx.export(flow.nn.Linear(2, 2), flow.ones(1, 2), folder / "new.onnx")


CALLS = {
    "flow.save": lambda folder: flow.save({"w": flow.ones(2)}, folder / "new.mf"),
    "flow.save of a graph": lambda folder: saved_graph.write(folder / "new", *graph(1)),
    "checkpoint.save": lambda folder: flow.checkpoint.save(folder / "new", {"w": np.ones(2, "f4")}),
    "onnx.export": save_onnx,
    "notebook.write": lambda folder: notebook.write(folder / "new.ipynb", NOTEBOOK),
    "grade --out": lambda folder: commands.written("grade", {folder / "new.csv": "a,b\n"}),
    "course": lambda folder: course.write(folder / "new.ipynb", b"{}"),
    "view.save": lambda folder: picture(flow.ones(2)).save(folder / "new.txt"),
}


def tree(folder):
    """Everything in a folder except new*: kind, owner, inode and contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.name.startswith("new") and "/new/" not in f"/{name}":
            kind = path.lstat()
            data = path.read_bytes() if path.is_file() and not path.is_symlink() and kind.st_size < 1 << 20 else b""
            found[name] = kind.st_mode, kind.st_uid, kind.st_ino, kind.st_size * path.is_file(), data
    return found


def give_away(path):
    for one in [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]:
        os.lchown(one, NOBODY, NOBODY)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("call", CALLS)
def test_foreign_files_are_never_lost(public, pid, call, owner):
    for i, plant in enumerate(PLANTS.values()):
        for stage in names(pid, f"{i:08x}" * 2):
            plant(public / stage)
            if owner != "ours":
                give_away(public / stage)
    if owner != "ours":  # and those that would be removed if they were ours
        (public / names(pid)[0]).write_text("precious")
        os.lchown(public / names(pid)[0], NOBODY, NOBODY)
        stage = public / names(pid, "f" * 16)[0]
        same_name(stage, lambda path: (path.mkdir(), (path / "data").write_text("precious")))
        give_away(stage)
    before = tree(public.parent)
    CALLS[call](public)
    assert tree(public.parent) == before
    assert [path.name for path in public.iterdir() if path.name.startswith("new")]


@pytest.mark.parametrize("plant", PLANTS)
def test_damaged_graph_is_only_read(public, pid, plant):
    path = public / "model"
    saved_graph.write(path, *graph(1))
    (path / "neighbor").mkdir()
    (path / "file").write_text("precious")
    (path / "weights.safetensors").unlink()
    PLANTS[plant](path / names(pid)[0])
    before = tree(public.parent)
    with pytest.raises(GraphFormatError, match="half of a saved graph"):
        flow.load_graph(path)
    assert tree(public.parent) == before


@pytest.mark.parametrize("way", ["in one step", "by moving files"])
@pytest.mark.parametrize("plant", PLANTS)
def test_foreign_files_in_a_graph_folder(public, pid, plant, way, monkeypatch):
    """Foreign files in an overwritten folder stay in it."""
    if way == "by moving files":
        monkeypatch.setattr("minflow.io.atomic.exchange", lambda a, b: False)
    path = public / "new"
    saved_graph.write(path, *graph(1))
    (path / "neighbor").symlink_to(public / "neighbor")
    (path / "file").symlink_to(public / "file")
    stage = path / names(pid)[0]
    PLANTS[plant](stage)
    (path / "neighbor").unlink(), (path / "file").unlink()
    before = tree(public.parent), os.lstat(stage).st_ino
    saved_graph.write(path, *graph(2))
    assert (tree(public.parent), os.lstat(stage).st_ino) == before
    assert number(saved_graph.read(path)) == 2 and sorted(os.listdir(path)) == sorted([*SAVED_GRAPH, stage.name])


def test_copy_is_verified(public, monkeypatch):
    """A backup written by another user is not what was saved."""
    path = public / "model"
    saved_graph.write(path, *graph(1))
    right = (path / "graph.json").read_bytes()
    with open(path / "meta.json", "rb") as meta:
        copy = saved_graph.atomic.kept_copy(path, "graph.json", meta)
    (path / "graph.json").write_bytes(b"{}")
    for plant in (
        lambda: copy.write_bytes(b"{}"),
        lambda: os.mkfifo(copy),
        lambda: copy.mkdir(),
        lambda: copy.symlink_to("/dev/zero"),
    ):
        plant()
        with pytest.raises(GraphFormatError, match="sha256 of graph.json differs"):
            flow.load_graph(path)
        copy.rmdir() if copy.is_dir() else copy.unlink()
    copy.write_bytes(right)
    assert number(saved_graph.read(path)) == 1


def test_locked_temporary_is_in_use(public, pid):
    """Another container has its own process ids, and may have the same host name."""
    fcntl = pytest.importorskip("fcntl")
    (public / names(pid)[0]).write_text("written now")
    with open(public / names(pid)[0]) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        CALLS["flow.save"](public)
        assert (public / names(pid)[0]).exists()
    CALLS["flow.save"](public)
    assert not (public / names(pid)[0]).exists()


# ---- links -----------------------------------------------------------------------------------------------------------

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to another user"
)


@needs_root
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("place", ["target", "parent", "further link"])
def test_foreign_links_are_not_followed(public, call, place):
    """Linux's `open` refuses them too (fs.protected_symlinks), for the last part of a path."""
    (public.parent / "outside" / "new.mf").write_text("precious")
    suffix = {
        "flow.save": "new.mf",
        "onnx.export": "new.onnx",
        "notebook.write": "new.ipynb",
        "grade --out": "new.csv",
        "course": "new.ipynb",
        "view.save": "new.txt",
    }.get(call, "new")
    if place == "target":
        (public / suffix).symlink_to(public.parent / "outside" / "data")
        link, folder = public / suffix, public
    else:
        (public / "link").symlink_to(public.parent / "outside")
        link, folder = public / "link", public / "link"
        if place == "further link":
            (public.parent / "own").symlink_to(public / "link")
            folder = public.parent / "own"
    os.lchown(link, NOBODY, NOBODY)
    before = tree(public.parent / "outside")
    if call == "grade --out":
        assert CALLS[call](folder) == 1
    elif call in ("flow.save of a graph", "checkpoint.save") and place == "target":
        with pytest.raises(CheckpointError, match="got a file|is a file"):  # the link leads to one
            CALLS[call](folder)
    else:
        with pytest.raises((flow.MinflowError, OSError), match="another user"):
            CALLS[call](folder)
    assert tree(public.parent / "outside") == before
    assert sorted(os.listdir(public.parent / "outside")) == ["data", "new.mf"]
    os.lchown(link, 0, 0)
    if place != "target":
        CALLS[call](folder)  # our own link, as before


@needs_root
def test_foreign_files_are_not_replaced(public):
    """In /tmp another user may create the file first, and would own what we write into it."""
    (public / "new.mf").write_text("theirs")
    os.lchown(public / "new.mf", NOBODY, NOBODY)
    with pytest.raises(CheckpointError, match="it belongs to another user, in a folder that all users may write"):
        CALLS["flow.save"](public)
    assert (public / "new.mf").read_text() == "theirs"
    (public / "new").mkdir()
    os.lchown(public / "new", NOBODY, NOBODY)
    for call in ("flow.save of a graph", "checkpoint.save"):
        with pytest.raises(CheckpointError, match="another user"):
            CALLS[call](public)
    assert os.listdir(public / "new") == []


@needs_root
def test_other_users_keep_their_permissions(public):
    """The owner of a sticky folder, and the owner of the link, may use it."""
    os.chown(public, NOBODY, NOBODY)
    (public / "new.mf").symlink_to(public.parent / "outside" / "new.mf")
    os.lchown(public / "new.mf", NOBODY, NOBODY)
    CALLS["flow.save"](public)
    assert (public / "new.mf").is_symlink() and flow.load(public.parent / "outside" / "new.mf")


@pytest.mark.parametrize(
    "path", ["a/b/x", "a/../a/b/x", "./a//b/x", "link/x", "link/../x", "up/a/b/x", "none/../x", "x"]
)
def test_paths_are_resolved_like_the_operating_system(tmp_path, monkeypatch, path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "b" / "x").symlink_to(tmp_path / "target")
    (tmp_path / "up").symlink_to("a/..")
    monkeypatch.chdir(tmp_path)
    for one in (path, tmp_path / path):
        assert atomic.resolved(one) == Path(os.path.realpath(one))
