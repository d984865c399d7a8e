"""compare: several runs in one picture, recorded and live ones, whole folders, and files that are not runs."""

import os
import warnings
from xml.dom import minidom

import numpy as np
import pytest
from minflow_widgets import LossCurve, compare, watch
from minflow_widgets.runs.saved_runs import read

import minflow as flow
from minflow.core.base.errors import FormatError, MinflowError, MinflowWarning
from minflow.core.source_location import warned_lines
from tests.graph_models import Step
from tests.widgets.watching import X, header, legend, model_and_optimizer

pytestmark = pytest.mark.usefixtures("front")

INF, NAN = float("inf"), float("nan")


def keep(folder, name=None, steps=20, lr=0.1, values=None, **config):
    with LossCurve(log=folder, name=name, config={"lr": lr, **config}) as curve:
        for step in range(1, steps + 1):
            curve.put(step, {"loss": values[step - 1] if values else lr / step, "gradient norm": 1.0 / step, "lr": lr})
            if step % 10 == 0:
                curve.put(step, {"val_loss": 2 * lr / step})
    return curve


@pytest.fixture
def folder(tmp_path):
    for lr in (0.1, 0.01, 0.001):
        path = keep(tmp_path / "runs", f"lr {lr}", lr=lr, seed=1).paths[0]
        os.utime(path, (1e9 - lr, 1e9 - lr))  # in sequence
    return tmp_path / "runs"


def test_runs_of_a_folder(folder, tmp_path):
    runs = compare(folder)
    words = runs.text().splitlines()
    assert words[0] == "3 runs" and len(words) == 4 and repr(runs) == runs.text()
    assert words[1] == (
        "  lr 0.1: loss 0.005 · lowest 0.005 at step 20; gradient norm 0.05; lr 0.1; "
        "val_loss 0.01 · lowest 0.01 at step 20"
    )
    head = header(runs.encode())
    assert head["panels"] == ["loss", "norm", "val_loss"]
    assert [(s["name"], s["style"]) for s in head["series"][:3]] == [
        ("lr 0.1 loss", 0),
        ("lr 0.1 gradient norm", 0),
        ("lr 0.1 val_loss", 0),
    ]
    assert legend(runs) == [
        ["", "last", "lowest", "at step"],
        ["lr 0.1", "0.005", "0.005", "20"],
        ["lr 0.01", "0.0005", "0.0005", "20"],
        ["lr 0.001", "5e-05", "5e-05", "20"],
    ]
    svg = runs.svg()
    assert minidom.parseString(svg) and all(f">lr {lr}<" in svg for lr in (0.1, 0.01, 0.001)) and "loss by step" in svg
    assert set(runs.bundle()) == {"text/html", "image/svg+xml", "text/plain"}
    by_time = compare(str(folder), x="time", log=True)
    assert "loss by seconds" in by_time.svg() and by_time.svg() != svg
    single = compare(folder / "lr 0.1.csv", folder / "lr 0.01.csv")
    assert [run.name for run in single.runs] == ["lr 0.1", "lr 0.01"]
    with pytest.raises(MinflowError, match="(?s)have ended.*runs +3"):
        runs.add(loss=1.0)
    with pytest.raises(MinflowError), runs:
        pass


def test_value_contained_in_the_name_is_not_repeated(tmp_path):
    for lr, batch in ((500.0, 32.0), (0.5, 8.0)):
        keep(tmp_path / "runs", f"lr {lr:g}", lr=lr, batch=batch)
    names = {run.name for run in compare(tmp_path / "runs").runs}
    assert names == {"lr 500 (batch 32)", "lr 0.5 (batch 8)"}


def test_loaded_runs_equal_recorded_ones(folder):
    curve = keep(folder, "odd", 6, values=[1.0, NAN, -INF, 1e-300, 0.1 + 0.2, 12345678901234567.0])
    columns = read(curve.paths[0]).columns
    assert set(columns) == {"loss", "gradient norm", "lr"}
    for name, (steps, values) in curve.data.items():
        assert np.array_equal(columns[name][0], steps) and np.array_equal(columns[name][1], values, equal_nan=True)
    assert "NaN first at step 2: lower the learning rate (0.1)" in compare(curve.paths[0]).text()


def test_curves_are_named_by_differing_settings(tmp_path):
    one = keep(tmp_path, "a", lr=0.1, momentum=0.9)
    two = keep(tmp_path, "b", 5, lr=0.1, momentum=0.5)
    live = LossCurve(config={"lr": 0.1})
    live.add(1, loss=3.0)
    runs = compare(one, two, live)
    assert [run.name for run in runs.runs] == ["a (momentum 0.9)", "b (momentum 0.5)", "run 3"]
    assert [len(run.columns["loss"][0]) for run in runs.runs] == [20, 5, 1]
    live.add(2, loss=NAN)
    assert len(compare([one, live]).runs[1].columns["loss"][0]) == 2, "up to the current step"
    live.finish()
    same = compare(one, one, one)
    assert [run.name for run in same.runs] == ["a", "a #2", "a #3"]


def test_objects_watched_in_one_curve_are_runs():
    with LossCurve() as curve:
        for lr in (0.1, 0.01):
            model, optimizer = model_and_optimizer(lr=lr)
            graph = Step(model, optimizer)
            with watch(graph, name="same" if lr == 0.1 else "other", into=curve):
                graph(flow.from_numpy(X))
    assert [run.name for run in compare(curve).runs] == ["same (lr 0.1)", "other (lr 0.01)"]


def test_thousands_of_runs_give_a_small_picture(folder):
    text = (folder / "lr 0.1.csv").read_text()
    for i in range(2000):
        path = folder / f"old {i}.csv"
        path.write_text(text if i % 50 == 0 else "not,read\n")
        os.utime(path, (1, 1 + i))
    assert compare(folder / "lr 0.1.csv").runs
    with pytest.warns(MinflowWarning, match="old 1999.csv, old 1998.csv, old 1997.csv and [0-9]+ more"):
        runs = compare(folder)
    assert len(runs.runs) == 10 and [run.name for run in runs.runs][-1] == "lr 0.001"
    assert len(runs.svg()) < 150_000 and "further runs are not shown" in runs.text()
    assert runs._status().startswith("10 runs; 1,650 older or further runs")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "it has no column `step`"),
        ("epoch,accuracy\n1,0.5\n", "(?s)no column `step`.*columns +epoch, accuracy"),
        ("step,epoch,seconds\n1,1,1\n", "no column of numbers"),
        ("step,loss\n", "it has no row"),
        ("step,loss\n1,0.5\n2\n3,0.5\n", "row 3 is broken: 1 values for 2 columns"),
        ("step,loss\n1,abc\n", "(?s)not a number.*'abc'"),
        ("step;loss\n1;0,5\n", "no column `step`"),
        (b"PK\x03\x04\xff\xfe\x00\n", "cannot be read"),
    ],
)
def test_invalid_runs(folder, text, words):
    path = folder / "wrong.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FormatError, match=f"(?s){words}.*Try: "):
        compare(path)
    warned_lines().clear()
    with pytest.warns(MinflowWarning, match="compare: skipped wrong.csv") as caught:
        runs = compare(folder)
    assert len(runs.runs) == 3 and len(caught) == 1


def test_run_being_written(folder):
    path = folder / "going.csv"
    path.write_text("step,loss\n1,0.5\n2,0.25\n3,0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", DeprecationWarning)
        assert compare(path).runs[0].columns["loss"].tolist() == [[1, 2], [0.5, 0.25], [1, 2]]
    (folder / "going.json").write_text('{"name": "half wri')
    assert compare(path).runs[0].name == "going"
    (folder / "going.json").write_text("[1]")
    assert compare(path).runs[0].name == "going"
    path.write_bytes(b"\xef\xbb\xbfstep,loss\r\n1,0.5\r\n2,\r\n")  # saved by a spreadsheet
    assert compare(path).runs[0].columns["loss"].tolist() == [[1], [0.5], [1]]


@pytest.mark.parametrize(
    "things, words",
    [
        ((), "looked in +nothing"),
        (("nowhere/at/all",), "(?s)cannot be read.*because +No such file"),
        ((3,), "takes runs.*\n +got +3"),
    ],
)
def test_missing_runs(tmp_path, things, words):
    with pytest.raises(MinflowError, match=f"(?s){words}.*at test_compare.py.*Try: "):  # the learner's line, not ours
        compare(*things)
    with pytest.raises(MinflowError, match="no run here"):
        compare(tmp_path)
    with pytest.raises(MinflowError, match="x must be the axis"):
        compare(tmp_path, x="epoch")


def test_live_run_beside_recorded_ones(folder, front):
    seen = []
    for lr, others in ((0.5, 3), (0.25, 4), (0.125, 4)):
        model, optimizer = model_and_optimizer(lr=lr)
        graph = Step(model, optimizer)
        with watch(graph, name=f"lr {lr}", log=folder, compare=folder) as curve:
            for _ in range(3):
                graph(flow.from_numpy(X))
        seen.append(curve)
        assert len({s.shown for s in curve._others}) == others
    before = header(curve.encode_before())
    assert before["series"][0]["style"] == 1 and {s["style"] for s in before["series"]} == {1, 2, 3, 4}
    assert ">lr 0.125<" in curve.svg() and ">lr 0.25<" in curve.svg() and "val_loss" not in curve.svg()
    assert list(curve.data) == ["loss", "lr", "gradient norm"] and "lr 0.25" not in curve.text()
    assert "older or further runs" not in seen[0]._status() and "1 older or further run is not shown" in curve._status()
    assert list(read(curve.paths[0]).columns) == ["loss", "lr", "gradient norm"], "only its own values are recorded"


def test_first_run_has_nothing_to_compare_with(tmp_path):
    with LossCurve(log=tmp_path / "new", compare=tmp_path / "new") as curve:
        curve.add(loss=1.0)
    assert not curve._others and curve.encode_before() == b""
    with pytest.raises(FormatError, match="No such file"):
        LossCurve(compare=tmp_path / "nowhere")


def test_diverged_run_does_not_flatten_the_others(folder):
    wild = [10.0**k for k in range(0, 38, 2)] + [INF]
    keep(folder, "wild", values=wild, lr=5.0)
    runs = compare(folder)
    assert header(runs.encode())["logs"] == header(compare(*sorted(folder.glob("lr*.csv"))).encode())["logs"]
    assert "1e+3" not in runs.svg() and "diverged runs leave the scale" in runs.svg()
    assert "inf from step 20: lower the learning rate (5)" in runs.text()
    alone = compare(folder / "wild.csv")
    assert "what diverged" not in alone.svg() and "1e+3" in alone.svg()
    with LossCurve(compare=folder) as curve:
        for step in (1, 2):
            curve.add(step, loss=0.05)
    assert "1e+3" not in curve.svg() and header(curve.encode())["logs"] == header(runs.encode())["logs"]


def test_hostile_names(tmp_path):
    for name in ('<b>"x"&', "a\nb", "損失" * 40, "\u202egnp"):
        keep(tmp_path, name, 3)
    runs = compare(tmp_path)
    with LossCurve(log=tmp_path, name="columns") as curve:
        curve.add(**{'a "b", c': 1.0, "two\nlines": 2.0})
    assert set(read(curve.paths[0]).columns) == {'a "b", c', "two\nlines"}
    assert minidom.parseString(compare(curve.paths[0]).svg())
    assert minidom.parseString(runs.svg()) and "<b>" not in runs.svg() and "\u202e" not in runs.svg() + runs.text()
    assert len(runs.text().splitlines()) == 5
