"""Folder of a saved graph: three readable files, written all or nothing, never over foreign files; and a complete error
for each kind of damage.
"""

import errno
import json
import os
import random
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import CheckpointError, GraphFormatError
from minflow.deploy import folder
from minflow.deploy.folder import read, write
from minflow.io import atomic, container
from minflow.io.files import GRAPH, META, SAVED_GRAPH, WEIGHTS
from tests.deploy.saved import graph, number

TOP = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def old(tmp_path):
    write(tmp_path / "model", *graph(1))
    return tmp_path / "model"


@pytest.fixture(params=["in one step", "by moving files"])
def way(request, monkeypatch):
    if request.param == "by moving files":
        monkeypatch.setattr(atomic, "exchange", lambda a, b: False)
    return request.param


def whole(path, n):
    """Assert that graph n is there, and nothing else, there or beside it."""
    assert number(read(path)) == n
    assert sorted(os.listdir(path)) == sorted(SAVED_GRAPH) and os.listdir(path.parent) == [path.name]


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_text_has_one_line_per_entry(tmp_path):
    write(tmp_path / "1" / "2" / "model", *graph(2))
    text = (tmp_path / "1/2/model" / GRAPH).read_text(encoding="utf-8")
    assert json.loads(text) == graph(2)[0]
    lines = text.splitlines()
    assert '    {"value": "%4", "op": "add", "in": ["%3", "%2"], "out": ["float32[2,4]"]},' in lines
    assert '    {"name": "model.偏", "kind": "parameter", "spec": "float32[4]"}' in lines
    assert '    "matmul": 1,' in lines and '  "axes": {},' in lines
    meta = json.loads((tmp_path / "1/2/model" / META).read_text(encoding="utf-8"))
    assert set(meta["sha256"]) == set(SAVED_GRAPH)


def test_same_graph_gives_the_same_bytes(tmp_path):
    write(tmp_path / "a", *graph())
    time.sleep(0.01)
    write(tmp_path / "b", *graph())
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in SAVED_GRAPH)


def test_weights_are_a_safetensors_file(old):
    safetensors = pytest.importorskip("safetensors.numpy")
    there = safetensors.load_file(old / WEIGHTS)
    assert there.keys() == {"model.weight", "model.偏"} and there["model.weight"].tolist() == [[1] * 4] * 3
    assert flow.load(old / WEIGHTS)["model.偏"].tolist() == [1] * 4


def test_every_dtype_and_shape(tmp_path):
    data, meta, _ = graph()
    arrays = {
        f"w{i}": np.zeros(shape, dtype)
        for i, (shape, dtype) in enumerate(
            [((), "f8"), ((0, 3), "f4"), ((2,), "?"), ((3, 1), "i8"), ((5,), "u1"), ((1,), "f2"), ((2, 2), "c8")]
        )
    }
    arrays["w9"] = flow.ones(3, dtype=flow.bfloat16).array
    data["states"] = [{"name": name, "spec": "x"} for name in arrays]
    write(tmp_path / "x", data, meta, arrays)
    again = read(tmp_path / "x")[2]
    assert all(np.array_equal(again[k], x) and again[k].dtype == x.dtype for k, x in arrays.items())


def test_graph_without_weights(tmp_path):
    data, meta, _ = graph()
    data["states"] = []
    write(tmp_path / "x", data, meta, {})
    assert read(tmp_path / "x")[2] == {}


@pytest.mark.parametrize(
    "entry, words",
    [
        (float("nan"), "not JSON compliant"),
        (2**63, "beyond 64 bits"),
        ({1, 2}, "not JSON serializable"),
        ("\ud800", "surrogates not allowed"),
        ("x" * (1 << 19), "at most 524,288 bytes"),
    ],
)
def test_unreadable_graphs_are_not_written(tmp_path, entry, words):
    data, meta, arrays = graph()
    data["nodes"].append({"value": entry})
    with pytest.raises(GraphFormatError, match=rf"graph.json: nodes\[3\] must be .*{words}"):
        write(tmp_path / "x", data, meta, arrays)
    assert os.listdir(tmp_path) == []


# ---- overwriting ----------------------------------------------------------------------------------------------------


def test_overwriting_an_older_graph(old, way):
    before = os.stat(old).st_ino
    write(old, *graph(2))
    whole(old, 2)
    assert (os.stat(old).st_ino == before) == (way == "by moving files")


def test_empty_folder_and_working_directory_keep_their_inode(old, tmp_path, monkeypatch):
    empty = tmp_path / "empty"
    empty.mkdir()
    for place, path in ((empty, empty), (old, ".")):
        before = os.stat(place).st_ino
        monkeypatch.chdir(place)
        write(path, *graph(2))
        assert number(read(path)) == number(read(place)) == 2 and os.stat(place).st_ino == before
        assert sorted(os.listdir(place)) == sorted(SAVED_GRAPH)


def test_file_modes_and_links_are_kept(old, tmp_path, way):
    (tmp_path / "link").symlink_to("model")
    old.chmod(0o750)
    (old / META).chmod(0o640)
    write(tmp_path / "link", *graph(2))
    assert (tmp_path / "link").is_symlink() and number(read(old)) == number(read(tmp_path / "link")) == 2
    assert stat.S_IMODE(old.stat().st_mode) == 0o750
    assert way == "by moving files" or stat.S_IMODE((old / META).stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "names, change",
    [
        ("notes.txt", lambda old: (old / "notes.txt").write_text("mine")),
        ("1", lambda old: (old / "1").mkdir()),
        (META, lambda old: ((old / META).unlink(), (old / META).symlink_to("graph.json"))),
        (WEIGHTS, lambda old: ((old / WEIGHTS).unlink(), (old / WEIGHTS).mkdir())),
        ("graph.json, weights.safetensors", lambda old: (old / META).unlink()),  # a part of a graph is not ours
    ],
)
def test_foreign_files_are_never_lost(old, names, change):
    change(old)
    before = sorted((p.name, p.lstat().st_mode, p.lstat().st_ino) for p in old.iterdir())
    with pytest.raises(CheckpointError, match=f"(?s)nothing is written.*holds {names}, which would be lost.*path"):
        write(old, *graph(2))
    assert sorted((p.name, p.lstat().st_mode, p.lstat().st_ino) for p in old.iterdir()) == before
    assert os.listdir(old.parent) == ["model"]


def test_path_is_a_file(tmp_path):
    (tmp_path / "x").write_text("mine")
    for path in (tmp_path / "x", tmp_path / "x" / "model"):
        with pytest.raises(CheckpointError, match="is a file, and|Not a directory|File exists"):
            write(path, *graph())
    assert (tmp_path / "x").read_text() == "mine"


def test_files_created_during_a_save_are_kept(old, monkeypatch, way):
    sync = atomic.sync_folder

    def late(path):
        if path != old.parent:
            (old / "notes.txt").write_text("mine")
        sync(path)

    monkeypatch.setattr(atomic, "sync_folder", late)
    with pytest.raises(CheckpointError, match="notes.txt"):
        write(old, *graph(2))
    assert number(read(old)) == 1 and (old / "notes.txt").read_text() == "mine" and os.listdir(old.parent) == ["model"]


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 5])
def test_full_disk(old, monkeypatch, after, way):
    calls, put = [], container.write_all

    def full(file, data):
        calls.append(data)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        put(file, data)

    monkeypatch.setattr(container, "write_all", full)
    if after < 5:
        with pytest.raises(CheckpointError, match="(?s)No space left.* bytes.*old graph  unchanged.*df -h"):
            write(old, *graph(2))
    else:
        write(old, *graph(2))
    monkeypatch.undo()
    whole(old, 1 if after < 5 else 2)


@pytest.mark.parametrize("name", ["fsync", "replace", "mkdir"])
def test_failing_calls(old, monkeypatch, name, way):
    def fail(*args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, name, fail)
    try:
        write(old, *graph(2))
    except CheckpointError as error:
        assert "Input/output error" in str(error) and error.values["old graph"] == "unchanged"
    monkeypatch.undo()
    whole(old, 2 if name == "replace" and way == "in one step" else 1)


def test_read_only_weights_are_not_replaced(old, monkeypatch, way):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != WEIGHTS)
    with pytest.raises(CheckpointError, match="(?s)Permission denied.*unchanged"):
        write(old, *graph(2))
    monkeypatch.undo()
    whole(old, 1)


SAVING = """
import sys
from minflow.deploy.folder import write
from minflow.io import atomic
from tests.deploy.saved import graph
if sys.argv[2] == "by moving files":
    atomic.exchange = lambda a, b: False
print("ready", flush=True)
for n in range(15):
    write(sys.argv[1], *graph(n % 7))
"""


def saving(path, way):
    command = [sys.executable, "-c", SAVING, str(path), way]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    return process


def test_one_of_two_concurrent_saves_wins(tmp_path, way):
    path = tmp_path / "model"
    both = [saving(path, way) for _ in range(2)]
    seen = set()
    while any(process.poll() is None for process in both):
        if path.is_dir():
            seen.add(number(read(path)))
    errors = [process.communicate()[1].decode() for process in both]
    assert not any(errors) and seen <= set(range(7)), errors
    whole(path, number(read(path)))


@pytest.mark.parametrize("which", range(1, 6))
def test_load_retries_if_the_folder_is_replaced(old, monkeypatch, which):
    """A save deletes the files of the replaced folder while another process lists them."""
    listdir, listed = os.listdir, []
    monkeypatch.setattr(atomic, "LOCK_TIMEOUT", 0.01)

    def late(path="."):
        names = listdir(path)
        listed.extend([path] * (path == old))
        if path == old and len(listed) == which:
            write(old, *graph(3))
            return names[1:]
        return names

    monkeypatch.setattr(os, "listdir", late)
    write(old, *graph(2))
    monkeypatch.undo()
    whole(old, 2)


def test_lock_that_is_never_released(old, monkeypatch, way):
    """Anyone who may read the parent folder can hold its lock: a save waits a while, and then works without it or
    reports it.
    """
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(atomic, "LOCK_TIMEOUT", 0.01)
    handle = os.open(old.parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    if way == "in one step":
        write(old, *graph(2))
    else:
        with pytest.raises(CheckpointError, match="(?s)another process is saving to it and does not finish.*unch"):
            write(old, *graph(2))
    os.close(handle)
    whole(old, 2 if way == "in one step" else 1)


def test_files_are_copied_without_hard_links(old, monkeypatch):
    """File systems such as exFAT have no hard links."""

    def fail(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(atomic, "exchange", lambda a, b: False)
    monkeypatch.setattr(os, "link", fail)
    replace, seen = os.replace, []

    def spy(a, b):
        if Path(b).name in SAVED_GRAPH:
            seen.append(number(read(old)))
        replace(a, b)

    monkeypatch.setattr(os, "replace", spy)
    write(old, *graph(2))
    assert seen == [1, 1, 1]  # before each of its moves a reader finds the older graph
    monkeypatch.undo()
    whole(old, 2)


# ---- reading ---------------------------------------------------------------------------------------------------------


def test_wrong_paths_are_explained(tmp_path):
    flow.save({"w": flow.ones(2)}, tmp_path / "state.safetensors")
    flow.save({"w": flow.ones(2)}, tmp_path / "state")
    (tmp_path / "net.onnx").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    for name, words in [
        ("state.safetensors", "is a file.*flow.load"),
        ("state", "not a saved graph.*flow.load"),
        ("net.onnx", "is a file.*onnx.show"),
        ("empty", "it holds  nothing.*flow.save"),
        ("none", "no folder.*getcwd"),
    ]:
        with pytest.raises(GraphFormatError, match=f"(?s){words}"):
            read(tmp_path / name)
    for x in (None, 3, "a\0b", ""):
        with pytest.raises(GraphFormatError, match="path"):
            read(x)


def test_load_of_a_saved_graph_suggests_load_graph(old):
    with pytest.raises(CheckpointError, match="(?s)a saved graph.*flow.load_graph"):
        flow.load(old)


def rehashed(path):
    """Recompute the hashes, as an attacker would."""
    meta = json.loads((path / META).read_bytes())
    meta["sha256"] = {GRAPH: sha(path / GRAPH), WEIGHTS: sha(path / WEIGHTS)}
    plain = folder.dumps({k: x for k, x in meta.items() if k != "sha256"}, "", indent=1)
    meta["sha256"][META] = folder.hashlib.sha256(plain.encode()).hexdigest()
    (path / META).write_text(json.dumps(meta), encoding="utf-8")


def sha(path):
    return folder.hashlib.sha256(path.read_bytes()).hexdigest()


def refused(path, *words):
    with pytest.raises(GraphFormatError) as caught:
        read(path)
    error = caught.value
    assert error.what and error.values and error.where and error.hint and len(str(error)) < 3000
    assert all(word in str(error) for word in words), str(error)


@pytest.mark.parametrize("name", SAVED_GRAPH)
def test_missing_and_special_files(old, tmp_path, name):
    data = (old / name).read_bytes()
    (old / name).unlink()
    refused(old, "half of a saved graph", name)
    (tmp_path / "outside").write_bytes(data)
    (old / name).symlink_to(tmp_path / "outside")
    refused(old, "is a link", name)
    (old / name).unlink()
    os.mkfifo(old / name)
    refused(old, "is a pipe", name)
    (old / name).unlink()
    (old / name).mkdir()
    refused(old, "is a folder", name)


@pytest.mark.parametrize("name", SAVED_GRAPH)
def test_every_changed_byte_is_detected(old, name):
    """Flipped, truncated, duplicated: the hash detects it, or the loaded graph is the same."""
    data, rng = (old / name).read_bytes(), random.Random(3)
    for _ in range(60):
        i = rng.randrange(len(data))
        changed = rng.choice(
            [
                data[:i],
                data[:i] + bytes([data[i] ^ (1 << rng.randrange(8))]) + data[i + 1 :],
                data[i:],
                data[:i] + data[i:] * 2,
                data[:i] + bytes(8) + data[i + 8 :],
                b"",
            ]
        )
        (old / name).write_bytes(changed)
        try:
            assert number(read(old)) == 1 and name == META  # white space
        except GraphFormatError as error:
            assert error.values and error.where and error.hint


def test_swapped_files(old, tmp_path):
    write(tmp_path / "other", *graph(2))
    os.replace(tmp_path / "other" / WEIGHTS, old / WEIGHTS)
    refused(old, f"the sha256 of {WEIGHTS} differs", "another folder")
    os.replace(tmp_path / "other" / GRAPH, old / GRAPH)
    refused(old, f"the sha256 of {GRAPH} and {WEIGHTS} differs")
    os.replace(old / GRAPH, old / "x"), os.replace(old / WEIGHTS, old / GRAPH), os.replace(old / "x", old / WEIGHTS)
    refused(old, GRAPH, WEIGHTS)


DEEP = 100_000


@pytest.mark.parametrize(
    "text, words",
    [
        (b"", "only {"),
        (b"[]\n", "only {"),
        (b"\xef\xbb\xbf{\n}\n", "only {"),
        (b"null\n", "only {"),
        (b'{\n  "a": \xff\n}\n', "line 2 must be UTF-8 (invalid start byte at byte 7"),
        (b'{\n  "a": NaN\n}\n', "NaN is not a JSON number"),
        (b'{\n  "a": [\n    -Infinity\n  ]\n}\n', "line 3 must be JSON (-Infinity"),
        (b'{\n  "a": 1e999\n}\n', "beyond a float64"),
        (b'{\n  "a": 9223372036854775808\n}\n', "beyond 64 bits"),
        (b'{\n  "a": -%s\n}\n' % (b"9" * 10_000), "beyond 64 bits"),
        (b'{\n  "a": 1,\n  "a": 2\n}\n', "line 3 must be a name that does not occur twice"),
        (b'{\n  "a": {"b": {"c": 1, "c": 2}}\n}\n', "'c' occurs twice"),
        (b'{\n  "a": {\n    "b": 1,\n    "b": 2\n  }\n}\n', "line 5 must be an object without duplicate names"),
        (b'{\n  "a": {\n    "b": 1, "c": 2\n  }\n}\n', "one name and its value"),
        (b'{\n  "a": [\n    1\n    2\n  ]\n}\n', "line 4 must be ]"),
        (b'{\n  "a": [\n    1,\n  ]\n}\n', "line 4 must be an entry"),
        (b'{\n  "a": [\n    1, 2\n  ]\n}\n', "line 3 must be JSON (Extra data"),
        (b'{\n  "a": 1,\n}\n', "line 3 must be the end"),
        (b'{\n  "a": 1\n  "b": 1\n}\n', "line 3 must be a name"),
        (b'{\n  "a": 1\n}\nx\n', "line 4 must be the end"),
        (b'{\n  "a": 1\n', "line 3 must be a name"),
        (b'{\n  "a": [\n    1', "line 4 must be ]"),
        (b'{\n  "a": "%s"\n}\n' % (b"x" * (1 << 20)), "at most 524,288 bytes"),
        (b'{\n  "a": %s\n}\n' % (b"[" * DEEP), "at most 200 nested lists"),
        (b'{\n  "a": %s1%s\n}\n' % (b'{"a":[' * 150, b"]}" * 150), "at most 200 nested lists"),
        (b'{\n  "a": ["%s"]\n}\n' % (b'\\"' * DEEP), "graph.json: format must be"),
        (b'{\n  "a": "%s\n}\n' % (b"\\" * DEEP), "JSON ("),
        (b'{\n  "a": 1\n}\n', "format must be one of minflow.graph"),
        (b'{\n  "format": "minflow.graph",\n  "version": "1"\n}\n', "version must be a whole number"),
        (b'{\n  "format": "minflow.graph",\n  "version": 2\n}\n', "is of version 2 of the format, this minflow reads"),
    ],
)
def test_hostile_text(old, text, words):
    (old / GRAPH).write_bytes(text)
    rehashed(old)
    refused(old, words)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda meta: meta.pop("sha256"), "sha256 must be an object"),
        (lambda meta: meta["sha256"].pop(GRAPH), "graph.json"),
        (lambda meta: meta["sha256"].update({"../x": "0"}), "nothing else"),
        (lambda meta: meta["sha256"].update({GRAPH: 3}), "sha256.graph.json must be a text of 64"),
        (lambda meta: meta.update(format=None), "format must be"),
        (lambda meta: meta.update(version=True), "version must be"),
        (lambda meta: meta.update(version=9), "version 9"),
        (lambda meta: meta.update(n=2), "the sha256 of meta.json differs"),
        (lambda meta: meta.update(x="y" * (1 << 20)), "at most 1,048,576 bytes"),
    ],
)
def test_damaged_meta(old, change, words):
    meta = json.loads((old / META).read_bytes())
    change(meta)
    (old / META).write_text(json.dumps(meta), encoding="utf-8")
    refused(old, words)


@pytest.mark.parametrize(
    "text, words",
    [
        (b"[]", "an object with format"),
        (b"\xff", "UTF-8"),
        (b"{", "JSON"),
        (b"", "JSON"),
        (b'{"format": "minflow.graph", "format": 1}', "occurs twice"),
        (b"[" * 999 + b"]" * 999, "at most 200"),
        (b"[" * 1_000_000, "few parts for its size"),
        (b"NaN", "NaN"),
    ],
)
def test_hostile_meta(old, text, words):
    (old / META).write_bytes(text)
    refused(old, words)


def test_weights_that_do_not_fit(old):
    data = (old / WEIGHTS).read_bytes()
    for changed, words in [
        (data[:-1], "ends before its data does"),
        (data + b"0", "belong to no array"),
        (b"", "0 bytes"),
        (data.replace(b"F32", b"F99"), "F99"),
        (data.replace(b"[3,4]", b"[3,5]"), "its shape needs"),
        (b"\xff" * 8 + data[8:], "longer than the file"),
    ]:
        (old / WEIGHTS).write_bytes(changed)
        rehashed(old)
        refused(old, words, WEIGHTS)
    flow.save({"model.weight": flow.ones(3, 4), "model.偏": flow.ones(4)}, old / WEIGHTS)
    rehashed(old)
    refused(old, "not the weights of graph.json", "model.weight")
