"""The folder of a checkpoint: its layout, all or nothing, and what a damaged or hostile one is told."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from builders import refused

from minflow.core.files import temporary
from minflow.core.base.errors import CheckpointError
from minflow.core.spec import as_dtype
from minflow.job.saving import folder
from minflow.job.saving.folder import FileVariable, meta_text, parse, variables_in, write
from tests.measuring import peak

ARRAYS = {
    "fc1-weight": np.arange(6, dtype="float32").reshape(2, 3),
    "block/conv": np.arange(4, dtype="float64")[::-1],
    "step": np.array([7], "int64"),
    "scalar": np.array(2.5, "float16"),
    "none": np.zeros((0, 4), "int32"),
    "flags": np.array([True, False]),
    "bytes": np.array([[1], [255]], "uint8"),
    "small": np.array([-1, 1], "int8"),
}


@pytest.fixture
def saved(tmp_path):
    write(tmp_path / "m", ARRAYS, "save")
    return tmp_path / "m"


def test_layout(saved):
    assert (saved / "fc1-weight" / "out").read_bytes() == np.arange(6, dtype="<f4").tobytes()
    assert (saved / "fc1-weight" / "meta").read_text() == "shape {\n  dim: 2\n  dim: 3\n}\ndata_type: kFloat\n"
    assert (saved / "block" / "conv" / "out").read_bytes() == np.array([3, 2, 1, 0], "<f8").tobytes()
    assert (saved / "snapshot_done").read_bytes() == b""
    assert {p.name for p in saved.iterdir()} == {"block", "snapshot_done", *ARRAYS} - {"block/conv"}


@pytest.mark.parametrize("there", [False, True])
def test_round_trip(tmp_path, there):
    if there:
        (tmp_path / "m").mkdir()
        (tmp_path / "m").chmod(0o710)
    write(tmp_path / "m", ARRAYS, "save")
    found = variables_in(tmp_path / "m")
    assert list(found) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        back = found[name].numpy()
        assert np.array_equal(back, array) and back.dtype == array.dtype == found[name].dtype.np
        assert found[name].shape == array.shape and back.flags.writeable
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    assert not there or stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o710


def test_the_mark_comes_last(tmp_path, monkeypatch):
    """A folder that must keep its place is filled entry by entry; a reader meanwhile sees that it is not finished."""
    seen, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append(Path(b).name), replace(a, b)))
    (tmp_path / "m").mkdir()
    before = (tmp_path / "m").stat().st_ino
    monkeypatch.chdir(tmp_path / "m")
    write(tmp_path / "m", {"a": ARRAYS["step"], "z": ARRAYS["step"]}, "save")
    assert seen == ["a", "z", "snapshot_done"] and (tmp_path / "m").stat().st_ino == before


def test_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("."), {"w": ARRAYS["step"]}, "save")
    assert sorted(os.listdir(".")) == ["snapshot_done", "w"]


def test_read_when_asked(saved):
    variable = FileVariable(saved / "fc1-weight")
    (saved / "fc1-weight" / "out").write_bytes(np.ones(6, "<f4").tobytes())
    assert variable.numpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert np.asarray(variable, "float64").sum() == 6
    assert repr(variable).startswith("<variable fc1-weight in a file: float32[2, 3]")
    (saved / "fc1-weight" / "out").write_bytes(b"12345")
    refused(variable.numpy, CheckpointError, "(?s)fc1-weight.*truncated: 5 bytes, and float32.2, 3. has 24")


def test_without_meta(saved):
    (saved / "fc1-weight" / "meta").unlink()
    variable = variables_in(saved)["fc1-weight"]
    assert variable.shape is None and variable.dtype is None and variable.ndim is None
    refused(variable.numpy, CheckpointError, "(?s)fc1-weight.*no meta.*load_variables")
    assert variable.read((3, 2), as_dtype("float32")).tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("shape {\n  dim: 2\n}\ndata_type: kDouble\n", (2,), "float64"),
        ("data_type: 2 shape: { dim: [3, 4] }", (3, 4), "float32"),
        ("# by hand\nshape { dim: 1, dim: 2; } data_type: kChar", (1, 2), "int8"),
        ("shape {\n}\ndata_type: kInt64", (), "int64"),
        ("data_type: kBool", (), "bool"),
    ],
)
def test_meta(text, shape, dtype):
    assert parse(text) == (shape, as_dtype(dtype))
    assert parse(meta_text(shape, as_dtype(dtype))) == (shape, as_dtype(dtype))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no data_type"),
        ("shape { dim: 2", "ends too early"),
        ("shape { dim: -2 } data_type: kFloat", "-2 is not the size"),
        ("shape { dim: 99999999999999999999 } data_type: kFloat", "99999 is not the size"),
        ("shape { size: 2 } data_type: kFloat", "'size' inside shape"),
        ("shape dim: 2 } data_type: kFloat", "'shape' is neither"),
        ("shape { } data_type: kTensorBuffer", "kTensorBuffer"),
        ("shape { } data_type: 10", "10; kFloat16"),
        ("shape { } data_type", "ends too early"),
        ("shape { %s } data_type: kFloat" % ("dim: 1 " * 65), "65 axes"),
        ("\x00\x01", "unexpected '.x00' in line 1"),
        ("shape {\n@", "unexpected '@' in line 2"),
        ("shape { dim: [1 2", "ends too early"),
        ("[" * 60_000, "neither a shape"),
    ],
)
def test_damaged_meta(saved, text, reason):
    (saved / "fc1-weight" / "meta").write_text(text)
    text = f"(?s)'fc1-weight' of the checkpoint: the meta is damaged: .*{reason}"
    refused(variables_in, CheckpointError, text, saved)


def test_hostile_sizes(saved):
    """A meta claims 4 TB, or an empty array with a huge axis: told, before memory is taken."""
    meta, numbers = saved / "fc1-weight" / "meta", saved / "fc1-weight" / "out"
    whole = numbers.read_bytes()

    def reads():
        numbers.write_bytes(whole)
        meta.write_text("shape { dim: 1000000 dim: 1000000 } data_type: kFloat")
        refused(variables_in, CheckpointError,
                "(?s)truncated: 24 bytes, and float32.1000000, 1000000. has 4,000,000,000,000", saved)
        meta.write_text("shape { dim: 0 dim: 100000000000000000 dim: 100000000000000000 } data_type: kFloat")
        numbers.write_bytes(b"")
        refused(variables_in(saved)["fc1-weight"].numpy, CheckpointError, "cannot be read")
        meta.write_bytes(b"#" * 70_000)
        refused(variables_in, CheckpointError, "65,536 bytes", saved)
        meta.write_bytes(b"\xff\xfe")
        refused(variables_in, CheckpointError, "meta cannot be read", saved)

    assert peak(reads, below=10_000_000) < 10_000_000


def test_links_do_not_lead_out(saved, tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 24)
    out = saved / "fc1-weight" / "out"
    out.unlink()
    out.symlink_to(tmp_path / "secret")
    refused(variables_in, CheckpointError, "(?s)out is a link that leads out.*secret", saved)
    out.unlink()
    out.symlink_to(saved / "step" / "out")  # inside: its size is judged
    refused(variables_in, CheckpointError, "truncated: 8 bytes", saved)
    out.unlink()
    os.mkfifo(out)  # reading it would wait for ever
    refused(variables_in, CheckpointError, "out is not a plain file", saved)
    out.unlink()
    out.symlink_to(saved / "nowhere")
    refused(variables_in, CheckpointError, "there is no file out", saved)
    out.unlink()
    (saved / "more").symlink_to(tmp_path)
    refused(variables_in, CheckpointError, "(?s)'more' of the checkpoint is a link to a folder.*leads to", saved)


def test_link_to_itself(saved):
    (saved / "loop").symlink_to(saved)
    refused(variables_in, CheckpointError, "'loop' of the checkpoint is a link to a folder", saved)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../escape", "outside"), ("a/../../b", "outside"), ("/etc/x", "outside"), ("~/x", "outside"),
        ("C:x", "outside"), ("", "empty"), ("a//b", "empty"), ("a/", "empty"), ("./a", "empty"),
        ("a\0b", "characters"), ("a\\b", "characters"), ("a\nb", "characters"), ("\ud800", "characters"),
        ("snapshot_done", "marks a finished"), ("snapshot_done/a", "marks"),
        ("ok/out", "file of variable 'ok'"), ("ok/meta/b", "file of variable 'ok'"), ("x" * 256, "255 bytes"),
        ("ü" * 128, "255 bytes"),
        ("/".join("a" * 65), "too deep"), (".a.tmp", "temporary"), (3, "texts"),
    ],
)  # fmt: skip
def test_names_that_are_no_place(tmp_path, name, reason):
    refused(write, CheckpointError, f"(?s)cannot be the name of a variable.*{reason}", tmp_path / "m",
            {"ok": ARRAYS["step"], name: ARRAYS["step"]}, "save")
    assert not any(tmp_path.iterdir())


def test_names_that_are(tmp_path):
    names = [
        "out", "meta", "dense1-weight", "a.b", "größe", "A", "a", "x" * 255, "..a", "a..", "a b", "fc/out", "fc/meta/x",
        "fc/out/x"
    ]
    write(tmp_path / "m", dict.fromkeys(names, ARRAYS["step"]), "save")
    assert sorted(variables_in(tmp_path / "m")) == sorted(names)


def test_not_over_another(saved):
    arrays = {"w": ARRAYS["step"]}
    error = refused(lambda: write(saved, arrays, "CheckPoint.save"), CheckpointError, "CheckPoint.save")
    for text in ("not empty", "block, bytes", "shutil.rmtree", "test_job_folder.py"):
        assert text in str(error)
    (saved / "snapshot_done").unlink()
    refused(write, CheckpointError, "a save that did not finish", saved, arrays, "save")
    refused(write, CheckpointError, "is a file", saved / "step" / "out", arrays, "save")
    assert np.array_equal(variables_in(saved)["fc1-weight"].numpy(), ARRAYS["fc1-weight"])


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("after", [0, 1, 5, 16])
def test_full_disk(tmp_path, monkeypatch, there, after):
    calls, put = [], folder.put

    def full(file, data):
        calls.append(file)
        if len(calls) > after:
            file.write_bytes(bytes(data)[:1])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        put(file, data)

    if there:
        (tmp_path / "m").mkdir()
    monkeypatch.setattr(folder, "put", full)
    refused(write, CheckpointError, "(?s)No space left.*8 variables.*nothing.*df -h", tmp_path / "m", ARRAYS, "save")
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["m"] * bool(there)


@pytest.mark.parametrize("there", [False, True, "the working directory"])
@pytest.mark.parametrize(("name", "after"), [("rename", 0), ("replace", 0), ("replace", 2), ("fsync", 3), ("mkdir", 0)])
def test_interrupted(tmp_path, monkeypatch, there, name, after):
    """An interrupt at any of its system calls leaves nothing behind."""
    calls, real = [], getattr(os, name)

    def stop(*args, **kwargs):
        calls.append(args)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    if there:
        (tmp_path / "m").mkdir()
    if there == "the working directory":
        monkeypatch.chdir(tmp_path / "m")
    monkeypatch.setattr(os, name, stop)
    if name == ("rename" if there == "the working directory" else "replace"):
        return write(tmp_path / "m", ARRAYS, "save")  # it is done by the other one
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "m", ARRAYS, "save")
    monkeypatch.undo()
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["m"] * bool(there)


def test_killed(tmp_path):
    """A killed process leaves either the whole checkpoint or a temporary, which the next save removes."""
    program = f"""
import numpy as np
from pathlib import Path
from minflow.job.saving.folder import write
arrays = {{f"w{{i}}": np.ones(1000) for i in range(50)}}
print("ready", flush=True)
i = 0
while True:
    write(Path({str(tmp_path)!r}) / f"m{{i}}", arrays, "save")
    i += 1
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    end = time.monotonic() + 60
    while not any(p.name.endswith(".tmp") for p in tmp_path.iterdir()) and time.monotonic() < end:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    left = [p.name for p in tmp_path.iterdir()]
    for name in left:
        if not name.endswith(".tmp"):
            assert len(variables_in(tmp_path / name)) == 50 and (tmp_path / name / "snapshot_done").is_file()
    write(tmp_path / "under another name", {"w": ARRAYS["step"]}, "save")
    assert not any(p.name.endswith(".tmp") for p in tmp_path.iterdir())


def test_temporary_of_the_living_stays(tmp_path):
    mine = tmp_path / f".minflow.{temporary.host()}.{os.getppid()}.0123456789abcdef.tmp"
    mine.mkdir()
    write(tmp_path / "m", {"w": ARRAYS["step"]}, "save")
    assert mine.is_dir()


def test_forbidden(tmp_path):
    (tmp_path / "f").write_text("")
    refused(write, CheckpointError, "cannot be written: (Not a directory|File exists)", tmp_path / "f" / "m",
            {"w": ARRAYS["step"]}, "save")


@pytest.mark.parametrize("path", [3, None, "", "a\0b", b"bytes"])
def test_no_path(path):
    refused(folder.checked, CheckpointError, r"(?s)save: .*save\(.*models_1", path, "save")
