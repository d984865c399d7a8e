"""benchmarks/explorers.py: its list of network requests, and its smallest configuration in a notebook kernel."""

import sys

import pytest

from tests import benchmarks

ACTS = {"open", "select", "pass", "pass again", "step"}


@pytest.fixture(scope="module")
def bench():
    with benchmarks.loaded("explorers") as module:
        yield module


@pytest.mark.parametrize(("text", "hosts"), [
    ('<script src="https://cdn.example/a.js">', ["cdn.example"]),
    ("<link rel='stylesheet' href='http://fonts.example/x'>", ["fonts.example"]),
    ("@font-face { src: url(https://files.example/f.woff2) }", ["files.example"]),
    ('fetch("https://api.example/v1"); import("https://esm.example/m.js")', ["api.example", "esm.example"]),
    ('<a href="https://read.example">more</a> <svg xmlns="http://www.w3.org/2000/svg"></svg>', []),
    ('<img src="data:image/svg+xml;base64,aGk=">', []),
])  # fmt: skip
def test_external_requests_of_a_page(bench, text, hosts):
    assert bench.LOADS.findall(text) == hosts


@pytest.mark.slow
def test_smallest_configuration_runs(tmp_path):
    pytest.importorskip("jupyter_client")
    pytest.importorskip("anywidget")
    rows, text = benchmarks.figures("explorers", "--quick --only lenet deep", tmp_path)
    models = {"lenet": {}, "deep": {}}
    for row in rows:
        if row["name"] in models:
            models[row["name"]][row["case"]] = row
    for cases in models.values():
        assert cases.keys() == ACTS | {"sizes", "make", "bare", "send"}
        assert all(
            0 < cases[what]["low"] <= cases[what]["ms"] <= cases[what]["high"] for what in ("make", "bare", "send")
        )
        sizes = cases["sizes"]
        assert sizes["nodes"] > 40 and 5_000 < sizes["saved"] < 60_000 and sizes["script"] < sizes["page"] < 60_000
        assert all(cases[act]["n"] > 0 and cases[act]["ms"] > 0 and cases[act]["bytes"] > 100 for act in ACTS)
        assert cases["open"]["bytes"] > cases["select"]["bytes"], "a box that opens changes the picture"
    cards = [row for row in rows if row["case"] == "card"]
    assert len(cards) == 6 and all(card["ms"] > 0 and card["bytes"] > 1000 for card in cards)
    assert "lenet, " in text and "error card" in text


def test_missing_rival_is_reported(bench, monkeypatch):
    """In this process, with stubs for the two libraries and the explorer."""

    def missing(model, x):
        raise ImportError("no such package")

    widgets, torch = type(sys)("minflow_widgets"), type(sys)("torch")
    shown = type("Shown", (), {"shown": (), "_ipython_display_": lambda self: None})
    widgets.explore, torch.set_num_threads = lambda *args: shown(), lambda n: None
    monkeypatch.setitem(sys.modules, "minflow_widgets", widgets)
    monkeypatch.setitem(sys.modules, "torch", torch)
    trainings = type(sys)("trainings")
    trainings.torch_library = lambda: None
    monkeypatch.setitem(sys.modules, "trainings", trainings)
    made = type("Training", (), {"model": None, "batch": (None,)})
    monkeypatch.setattr(bench, "graph", lambda name, layers: (None, (None,)))
    monkeypatch.setattr(bench, "training", lambda library, name, layers: made)
    monkeypatch.setattr(
        bench, "RIVALS", {"absent": missing, "there": lambda model, x: "<script src='https://a.example/x'></script>"}
    )
    found = bench.compare_with_rivals("lenet", 4, 2)
    assert found["absent"] == {"unavailable": "ImportError: no such package"}
    assert found["there"]["loads"] == ["a.example"] and found["there"]["bytes"] == 43
    assert found["there"]["n"] == 2 == found["ours"]["n"]
    bench.tell({"models": {}, "cards": {}, "rivals": {"lenet": found}})
