"""The folder of a checkpoint: its layout, all or nothing, and errors for damaged or hostile ones."""

import errno
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from builders import raised_error

from minflow.core.base.errors import CheckpointError
from minflow.core.spec import as_dtype
from minflow.job.saving import folder
from minflow.job.saving.folder import FileVariable, meta_text, parse, variables_in, write
from tests.cases import in_cases
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


def test_completion_mark_is_written_last(tmp_path, monkeypatch):
    """A folder that must be kept is filled entry by entry; a concurrent reader sees that it is unfinished."""
    seen, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append(Path(b).name), replace(a, b)))
    (tmp_path / "m").mkdir()
    before = (tmp_path / "m").stat().st_ino
    monkeypatch.chdir(tmp_path / "m")
    write(Path("."), {"a": ARRAYS["step"], "z": ARRAYS["step"]}, "save")
    assert seen == ["a", "z", "snapshot_done"] and (tmp_path / "m").stat().st_ino == before


def test_values_are_read_lazily(saved):
    variable = FileVariable(saved / "fc1-weight")
    (saved / "fc1-weight" / "out").write_bytes(np.ones(6, "<f4").tobytes())
    assert variable.numpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert np.asarray(variable, "float64").sum() == 6
    assert repr(variable).startswith("<variable fc1-weight in a file: float32[2, 3]")
    (saved / "fc1-weight" / "out").write_bytes(b"12345")
    raised_error(variable.numpy, CheckpointError, "(?s)fc1-weight.*truncated: 5 bytes, and float32.2, 3. has 24")


def test_without_meta(saved):
    (saved / "fc1-weight" / "meta").unlink()
    variable = variables_in(saved)["fc1-weight"]
    assert variable.shape is None and variable.dtype is None and variable.ndim is None
    raised_error(variable.numpy, CheckpointError, "(?s)fc1-weight.*no meta.*load_variables")
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
    raised_error(variables_in, CheckpointError, text, saved)


def test_hostile_sizes(saved):
    """A meta file that claims 4 TB, or an empty array with a huge axis, is refused before memory is allocated."""
    meta, numbers = saved / "fc1-weight" / "meta", saved / "fc1-weight" / "out"

    def reads():
        meta.write_text("shape { dim: 1000000 dim: 1000000 } data_type: kFloat")
        raised_error(
            variables_in,
            CheckpointError,
            "(?s)truncated: 24 bytes, and float32.1000000, 1000000. has 4,000,000,000,000",
            saved,
        )
        for damaged, text in ((b"#" * 70_000, "65,536 bytes"), (b"\xff\xfe", "meta cannot be read")):
            meta.write_bytes(damaged)
            raised_error(variables_in, CheckpointError, text, saved)
        meta.write_text("shape { dim: 0 dim: 100000000000000000 dim: 100000000000000000 } data_type: kFloat")
        numbers.write_bytes(b"")
        raised_error(variables_in(saved)["fc1-weight"].numpy, CheckpointError, "cannot be read")

    assert peak(reads, below=10_000_000) < 10_000_000


def test_links_cannot_leave_the_folder(saved, tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 24)
    out = saved / "fc1-weight" / "out"
    for put, text in [
        (lambda: out.symlink_to(tmp_path / "secret"), "(?s)out is a link that leads out.*secret"),
        (lambda: out.symlink_to(saved / "step" / "out"), "truncated: 8 bytes"),  # inside: its size is checked
        (lambda: os.mkfifo(out), "out is not a plain file"),  # reading it would block
        (lambda: out.symlink_to(saved / "nowhere"), "there is no file out"),
    ]:
        out.unlink()
        put()
        raised_error(variables_in, CheckpointError, text, saved)
    out.unlink()
    for name, target in (("more", tmp_path), ("loop", saved)):
        (saved / name).symlink_to(target)
        raised_error(
            variables_in, CheckpointError, f"(?s)'{name}' of the checkpoint is a link to a folder.*leads to", saved
        )
        (saved / name).unlink()


NO_PLACE = {
    "outside": ["../escape", "a/../../b", "/etc/x", "~/x", "C:x"],
    "empty": ["", "a//b", "a/", "./a"],
    "characters": ["a\0b", "a\\b", "a\nb", "\ud800"],
    "marks a finished": ["snapshot_done", "snapshot_done/a"],
    "file of variable 'ok'": ["ok/out", "ok/meta/b"],
    "255 bytes": ["x" * 256, "ü" * 128],
    "nested too deeply": ["/".join("a" * 65)],
    "temporary": [".a.tmp"],
    "must be strings": [3],
}


@in_cases("reason, name", [(reason, name) for reason, names in NO_PLACE.items() for name in names])
def test_invalid_variable_names(tmp_path, name, reason):
    raised_error(
        write,
        CheckpointError,
        f"(?s)cannot be the name of a variable.*{reason}",
        tmp_path / "m",
        {"ok": ARRAYS["step"], name: ARRAYS["step"]},
        "save",
    )
    assert not any(tmp_path.iterdir())


def test_unusual_valid_variable_names(tmp_path):
    names = [
        "out",
        "meta",
        "dense1-weight",
        "a.b",
        "größe",
        "A",
        "a",
        "x" * 255,
        "..a",
        "a..",
        "a b",
        "fc/out",
        "fc/meta/x",
        "fc/out/x",
    ]
    write(tmp_path / "m", dict.fromkeys(names, ARRAYS["step"]), "save")
    assert sorted(variables_in(tmp_path / "m")) == sorted(names)


def test_existing_folder_is_not_overwritten(saved):
    arrays = {"w": ARRAYS["step"]}
    error = raised_error(lambda: write(saved, arrays, "CheckPoint.save"), CheckpointError, "CheckPoint.save")
    for text in ("not empty", "block, bytes", "shutil.rmtree", "test_job_folder.py"):
        assert text in str(error)
    (saved / "snapshot_done").unlink()
    raised_error(write, CheckpointError, "a save that did not finish", saved, arrays, "save")
    raised_error(write, CheckpointError, "must be a folder", saved / "step" / "out", arrays, "save")
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
    raised_error(
        write, CheckpointError, "(?s)No space left.*8 variables.*nothing.*df -h", tmp_path / "m", ARRAYS, "save"
    )
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["m"] * bool(there)


@pytest.mark.parametrize("there", [False, True, "the working directory"])
@pytest.mark.parametrize(("name", "after"), [("rename", 0), ("replace", 0), ("replace", 2), ("fsync", 3), ("mkdir", 0)])
def test_interrupt_at_any_system_call(tmp_path, monkeypatch, there, name, after):
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
        return write(tmp_path / "m", ARRAYS, "save")  # the other writer has done it
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "m", ARRAYS, "save")
    monkeypatch.undo()
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["m"] * bool(there)


def test_missing_permissions(tmp_path):
    (tmp_path / "f").write_text("")
    raised_error(
        write,
        CheckpointError,
        "cannot be written: (Not a directory|File exists)",
        tmp_path / "f" / "m",
        {"w": ARRAYS["step"]},
        "save",
    )


@pytest.mark.parametrize("path", [3, None, "", "a\0b", b"bytes"])
def test_invalid_path(path):
    raised_error(folder.check_path, CheckpointError, r"(?s)save: .*save\(.*models_1", path, "save")
