"""Runs recorded on disk: a table in a common format, written during the run, and never at its cost."""

import csv
import errno
import json
import os
import subprocess
import sys
import textwrap
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from minflow_widgets import LossCurve, watch
from minflow_widgets.runs import log as log_module
from minflow_widgets.runs.log import file_name, merge_by_step

import minflow as flow
from minflow.core.base.errors import MinflowError, MinflowWarning
from minflow.utils.data import DataLoader, TensorDataset
from tests.graph_models import Step
from tests.widgets.watching import X, eager_step, job, model_and_optimizer, until

pytestmark = pytest.mark.usefixtures("front")

INF, NAN = float("inf"), float("nan")


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def about(path):
    return json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))


def train(tmp_path, epochs=2, **more):
    model, optimizer = model_and_optimizer(lr=0.25)
    loader = DataLoader(TensorDataset(flow.from_numpy(np.ones((12, 3), np.float32))), batch_size=4)
    with watch(model, optimizer, log=tmp_path / "runs", **more) as curve:
        for _ in range(epochs):
            for (x,) in loader:
                eager_step(model, optimizer, x)
            curve.add(val_loss=7.5)
    return curve


def test_one_row_per_step_with_all_its_values(tmp_path):
    curve = train(tmp_path, name="lr 0.25", config=Namespace(batch=4, device=None))
    [path] = curve.paths
    assert path == tmp_path / "runs" / "lr 0.25.csv" and f"kept in {path}" in curve.text()
    table = rows(path)
    assert list(table[0]) == ["step", "epoch", "loss", "lr", "gradient norm", "val_loss", "loss_epoch_mean", "seconds"]
    assert [row["step"] for row in table] == ["1", "2", "3", "4", "5", "6"]
    assert [row["epoch"] for row in table] == ["1"] * 3 + ["2"] * 3
    assert [float(row["loss"]) for row in table] == curve.data["loss"][1].tolist(), "read again exactly"
    assert [row["val_loss"] for row in table] == ["", "", "7.5", "", "", "7.5"]
    means = [float(row["loss_epoch_mean"] or 0) for row in table]
    assert means == [0, 0, curve.epochs["loss"][1][0], 0, 0, curve.epochs["loss"][1][1]]
    seconds = [float(row["seconds"]) for row in table]
    assert seconds == sorted(seconds) and seconds[0] >= 0
    data = about(path)
    assert data["name"] == "lr 0.25" and data["minflow"] == flow.__version__ and data["note"] == "" and data["ended"]
    config = data["config"]
    assert (config["optimizer"], config["lr"], config["batch"], config["device"]) == ("SGD", 0.25, 4, None)


def test_runs_are_not_overwritten(tmp_path):
    names = [train(tmp_path, 1, name=name).paths[0].name for name in ("a", "A", None, None, None)]
    (tmp_path / "runs" / "mine.json").write_text("{}")
    names += [train(tmp_path, 1, name="mine").paths[0].name]
    assert names == ["a.csv", "A-2.csv", "run.csv", "run-2.csv", "run-3.csv", "mine-2.csv"]
    assert (tmp_path / "runs" / "mine.json").read_text() == "{}"
    assert about(tmp_path / "runs" / "run-3.csv")["name"] == "run-3"


def test_names_invalid_in_file_systems(tmp_path):
    names = 'a/b\\c:d*?"<>|', "con", "NUL.tar", "com1 ", "..", " x. ", "\x00\n", "損失 🙂", "contact"
    assert [file_name(name) for name in names] == [
        "a-b-c-d------",
        "_con",
        "_NUL.tar",
        "_com1",
        "run",
        "x",
        "--",
        "損失 🙂",
        "contact",
    ]
    assert len(file_name("損" * 300).encode()) <= 120 and file_name("\ud800") == "-"
    curve = train(tmp_path, 1, name="../../up: 損失")
    assert curve.paths[0].parent == tmp_path / "runs" and about(curve.paths[0])["name"] == "../../up: 損失"


def test_table_is_written_during_the_run(tmp_path):
    curve = LossCurve(log=tmp_path)
    for step in range(1, 4):
        curve.add(step, loss=1 / step)
    until(lambda: curve.paths and len(rows(curve.paths[0])) == 3)
    curve.add(3, accuracy=0.5)
    until(lambda: rows(curve.paths[0])[-1].get("accuracy") == "0.5")
    assert len(rows(curve.paths[0])) == 3, "up to the current step"
    curve.add(4, loss=NAN)
    curve.add(5, loss=-INF)
    until(lambda: len(rows(curve.paths[0])) == 5)
    assert [row["loss"] for row in rows(curve.paths[0])][3:] == ["nan", "-inf"]
    assert "ended" not in about(curve.paths[0])
    curve.finish("stopped")
    assert about(curve.paths[0])["note"] == "stopped" and len(rows(curve.paths[0])) == 5


def test_killed_program_leaves_written_rows(tmp_path):
    """Killed in the middle; and ended without the end of the curve."""
    program = textwrap.dedent("""
        import os, sys, time
        from minflow_widgets import LossCurve
        curve = LossCurve(log=sys.argv[1], name=sys.argv[2])
        for step in range(1, 51):
            curve.add(step, loss=1.0)
        if sys.argv[2] == "killed":
            while not curve.paths or not os.path.getsize(curve.paths[0]) > 300: time.sleep(0.01)
            os._exit(9)
    """)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "MINFLOW_LIVE": "0"}
    for name, code in (("killed", 9), ("left", 0)):
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path), name], env=env, timeout=120)
        assert done.returncode == code and len(rows(tmp_path / f"{name}.csv")) == 50


@pytest.mark.parametrize("what", ["a file", "no permission", "a null"])
def test_unwritable_folder_is_refused_before_training(tmp_path, monkeypatch, what):
    folder = tmp_path / "file"
    if what == "a file":
        folder.write_text("")
    elif what == "a null":
        folder = "a\0b"
    else:

        def refused(*args, **more):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(log_module.tempfile, "TemporaryFile", refused)
    model, optimizer = model_and_optimizer()
    because = {"a file": "File exists", "no permission": "Permission denied", "a null": "null"}[what]
    with pytest.raises(MinflowError, match=f"(?s)cannot be kept.*because +.*{because}.*Try: log="):
        watch(model, optimizer, log=folder)


def test_full_disk_is_reported_once_and_training_continues(tmp_path, monkeypatch):
    full = [True]

    def write(self, news, epochs, write=log_module.RunFile.write):
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, news, epochs)

    monkeypatch.setattr(log_module.RunFile, "write", write)
    with pytest.warns(MinflowWarning) as caught, LossCurve(log=tmp_path) as curve:
        for step in range(20):
            curve.add(step, loss=1.0)
            curve._log.write(curve)
    [words] = [str(one.message) for one in caught]
    assert "No space left on device" in words and "curve.csv" in words
    assert "the run is not kept: No space left on device" in curve.text() and len(curve.data["loss"][0]) == 20
    full[0] = False
    curve._log.write(curve)
    assert len(rows(curve.paths[0])) == 20, "nothing is lost"


def test_partial_row_on_a_full_disk_is_rewritten(tmp_path, monkeypatch):
    curve = LossCurve(log=tmp_path)
    curve.add(1, loss=1.0)
    until(lambda: curve.paths)
    curve._update_thread.stop()
    curve._log.write(curve)
    with open(curve.paths[0], "ab") as file:
        file.write(b"2,0.1234")
    for step in (1, 2, 3):
        curve.add(step, **{"val_loss" if step == 1 else "loss": 2.0})
        curve._log.write(curve)
    assert [(row["step"], row["loss"], row["val_loss"]) for row in rows(curve.paths[0])] == [
        ("1", "1", "2"),
        ("2", "2", ""),
        ("3", "2", ""),
    ]
    curve.finish()


def test_several_objects_have_separate_tables(tmp_path):
    with LossCurve(log=tmp_path, name="try") as curve:
        for lr in (0.1, 0.01):
            model, optimizer = model_and_optimizer(lr=lr)
            graph = Step(model, optimizer)
            with watch(graph, name=f"lr {lr}", config={"seed": 3}, into=curve):
                for _ in range(3):
                    graph(flow.from_numpy(X))
    assert sorted(path.name for path in curve.paths) == ["try lr 0.01.csv", "try lr 0.1.csv"]
    for path in curve.paths:
        assert list(rows(path)[0]) == ["step", "loss", "lr", "gradient norm", "seconds"] and len(rows(path)) == 3
        assert about(path)["config"]["lr"] == float(path.stem.split()[-1]) and about(path)["config"]["seed"] == 3
    with pytest.raises(MinflowError, match="(?s)belong to the curve.*'runs'.*LossCurve"):
        watch(graph, log="runs", into=curve)


def test_jobs_and_runs_are_recorded(tmp_path, front):
    one = job()
    with watch(one, log=tmp_path, name="job") as curve:
        for _ in range(3):
            one(X)
    assert [row["step"] for row in rows(curve.paths[0])] == ["1", "2", "3"]
    curve = watch(flow.start(one, [X] * 4, epochs=2), log=tmp_path, name="run")
    until(lambda: len(front.left) == 2 and "ended" in about(curve.paths[0]))
    assert [row["epoch"] for row in rows(curve.paths[0])] == ["1"] * 4 + ["2"] * 4


def test_values_may_arrive_in_any_order():
    parts = {"loss": np.array([[1.0, 2, 1], [5.0, 6, 7], [0.1, 0.2, 0.5]]), "norm": np.array([[2.0], [9.0], [0.3]])}
    last = {"step": 1.0, "seconds": 0.0, "norm": 4.0}
    assert merge_by_step(last, parts) == [
        {"step": 1.0, "seconds": 0.0, "norm": 4.0, "loss": 5.0},
        {"step": 2.0, "seconds": 0.2, "loss": 6.0, "norm": 9.0},
        {"step": 1.0, "seconds": 0.5, "loss": 7.0},
    ]
    assert last == {"step": 1.0, "seconds": 0.0, "norm": 4.0}, "it may be called again"


def test_hostile_names_of_columns(tmp_path):
    names = ['a "quoted", name', "two\nlines", "\ud800", "損失", "<b>"]
    with LossCurve(log=tmp_path) as curve:
        for _ in range(2):
            curve.add(**dict.fromkeys(names, 1.0))
    header = list(rows(curve.paths[0])[0])
    assert header == ["step", 'a "quoted", name', "two\nlines", "\\ud800", "損失", "<b>", "seconds"]


@pytest.mark.parametrize("wrong", [{"name": 3}, {"name": " "}, {"config": [1]}, {"config": 0.1}])
def test_invalid_names_and_configs(tmp_path, wrong):
    [(key, value)] = wrong.items()
    with pytest.raises(MinflowError, match=f"(?s){key}.*got +{value!r}".replace("[", r"\[").replace("]", r"\]")):
        LossCurve(**wrong)
    model, optimizer = model_and_optimizer()
    with pytest.raises(MinflowError, match=key):
        watch(model, optimizer, log=tmp_path, **wrong)
    curve = LossCurve(config={"t": flow.tensor(2.5), "a": np.float32(0.5), "n": NAN, "o": [1, 2], 3: True})
    assert curve.configs[""] == {"t": 2.5, "a": 0.5, "n": "nan", "o": "[1, 2]", "3": True}
