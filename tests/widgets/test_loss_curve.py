"""LossCurve without a browser: recorded values, messages, and cleanup. tests/browser tests the drawing."""

import json
import sys
import threading

import numpy as np
import pytest
from minflow_widgets import LossCurve
from minflow_widgets.curve import live_curve
from minflow_widgets.curve.downsampling import WindowMeans, decimate
from minflow_widgets.curve.panels import encode
from minflow_widgets.curve.series import MAX_POINTS, Series

import minflow as flow
from minflow.core.base.errors import DTypeError
from tests.clocks import until
from tests.svg_checks import svg_in


def test_all_values_are_kept_and_few_updates_sent(front):
    with LossCurve() as curve:
        for step in range(5000):
            curve.add(step, loss=1 / (step + 1), accuracy=step / 5000)
    steps, values = curve.data["loss"]
    assert len(steps) == 5000 and values[4] == 0.2 and len(curve.data["accuracy"][0]) == 5000
    assert len(front.left) == 1 and len(front.sent) < 50
    assert "loss 0.0002 · lowest 0.0002 at step 4999" in repr(curve)
    assert set(front.left[0]) >= {"text/html", "image/svg+xml", "text/plain"}
    assert "<svg" not in front.left[0]["text/html"] and "data:image/svg+xml;base64," in front.left[0]["text/html"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_error_ends_the_curve_cleanly(front, kind):
    with pytest.raises(kind), LossCurve() as curve:
        curve.add(1, loss=2.0)
        raise kind("stop")
    assert len(front.left) == 1 and f"stopped by {kind.__name__}" in repr(curve)
    assert not curve._update_thread.thread.is_alive()
    curve.add(2, loss=1.0)
    assert len(curve.data["loss"][0]) == 2 and len(front.left) == 1


def test_values_of_all_kinds(front):
    with LossCurve() as curve:
        curve.add(1, loss=flow.tensor(0.5, requires_grad=True), other=np.float32(2))
        curve.add(loss=np.array(0.25))
        curve.add(3, loss=float("nan"))
        curve.add(4, loss=float("inf"))
        with pytest.raises(DTypeError, match=r"loss must be one number, got shape \(2,\)"):
            curve.add(5, loss=flow.ones(2))
        with pytest.raises(DTypeError, match="loss must be one number, got str"):
            curve.add(5, loss="low")
    assert curve.data["loss"][0].tolist() == [1, 2, 3, 4]
    assert "NaN from step 3" in curve.line()


def test_curve_from_a_thread(front):
    with LossCurve() as curve:
        threads = [
            threading.Thread(target=lambda k=k: [curve.add(i, **{f"s{k}": i}) for i in range(500)]) for k in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert all(len(curve.data[f"s{k}"][0]) == 500 for k in range(4))


def test_unreferenced_curve_ends_its_thread(front):
    LossCurve().add(1, loss=1.0)
    until(lambda: not [t for t in threading.enumerate() if t.name == "minflow LossCurve"])


def test_downsampling_keeps_every_spike():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(100_000)
    values[[777, 50_001]] = 1e6, -1e6
    values[123] = np.nan
    at = decimate(values, MAX_POINTS)
    assert len(at) <= MAX_POINTS and {0, 777, 50_001, 99_999} <= set(at.tolist()) and (np.diff(at) > 0).all()
    assert decimate(np.full(5000, np.nan), 100).size <= 100
    table = np.stack([np.arange(1000.0), np.full(1000, 3.0), np.arange(1000.0)])
    steps, means, _, window = WindowMeans().means(table, 200)
    assert len(steps) <= 200 and np.allclose(means, 3.0) and window > 1


def test_messages_are_small_and_readable():
    series = [Series("loss"), Series("val_loss"), Series("accuracy")]
    for s in series:
        for i in range(20_000):
            s.add(i, np.sin(i / 500))
    data = encode(series, "running")
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    assert header["panels"] == ["loss", "accuracy"] and [s["panel"] for s in header["series"]] == [0, 0, 1]
    numbers = np.frombuffer(data[4 + size :], "<f4")
    assert len(numbers) == sum(2 * s["n"] + 2 * s["m"] for s in header["series"]) and len(data) < 3 * 8 * 1000 + 2000
    assert all(s["n"] + s["m"] <= 1000 for s in header["series"])


def test_lines_in_a_terminal_and_elsewhere(monkeypatch, capsys):
    monkeypatch.setenv("MINFLOW_LIVE", "1")
    with LossCurve() as curve:
        for step in range(50):
            curve.add(step, loss=1.0 / (step + 1))
    out = capsys.readouterr().out
    assert "loss 0.02" in out and "\r" not in out
    monkeypatch.setenv("MINFLOW_LIVE", "0")
    with LossCurve() as curve:
        curve.add(1, loss=0.5)
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and "loss 0.5" in out


def test_without_anywidget_a_picture_is_shown(notebook, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    live_curve.widget_class.cache_clear()
    with LossCurve() as curve:
        curve.add(1, loss=0.5)
    live_curve.widget_class.cache_clear()
    (left,) = notebook.now
    assert "loss 0.5" in svg_in(left["text/html"]) and "loss 0.5" in left["text/plain"]
