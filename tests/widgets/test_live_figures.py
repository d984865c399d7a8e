"""Figures that grow while a loop runs: updated below the cell, static at its end; with MINFLOW_LIVE=0 only at the
end.
"""

from minflow_widgets.figures import Landscape, growing

SETUP = """
from minflow_widgets.figures import Landscape
land = Landscape(lambda w, b: w * w + b * b, (-2, 2), (-2, 2))
"""


def walk():
    return Landscape(lambda w, b: w * w + b * b, (-2, 2), (-2, 2))


def test_steps_redraw_one_figure_and_the_last_remains(notebook, monkeypatch):
    monkeypatch.setattr(growing, "clock", iter(range(100)).__next__)
    land = walk()
    for w in (1.5, 1.0, 0.5):
        land.step(w, w)
    assert len(notebook.shown) == 1 and "1.5" in notebook.shown[0]["text/plain"]
    land.finish()
    assert notebook.now[0]["text/plain"] == land.text() and "after 2 steps" in land.text()
    land._ipython_display_()  # the last line of the same cell
    assert len(notebook.shown) == 1
    notebook.cell = ("other", "2")
    land._ipython_display_()
    assert len(notebook.shown) == 2
    land.step(0.25, 0.25)
    assert len(notebook.shown) == 3 and "after 3 steps" in notebook.shown[2]["text/plain"]


def test_drawing_takes_at_most_a_fifth_of_the_time(notebook, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(growing, "clock", lambda: now[0])
    land, bundle, drawn = walk(), Landscape.bundle, []

    def slow(self):
        now[0] += 0.1
        drawn.append(now[0])
        return bundle(self) if len(drawn) == 1 else {"text/plain": ""}

    monkeypatch.setattr(Landscape, "bundle", slow)
    for _ in range(100):
        land.step(1, 1)
        now[0] += 0.05
    assert 9 <= len(drawn) <= 14 and len(drawn) * 0.1 <= 0.22 * now[0]


def test_pause_shows_each_step(notebook, monkeypatch):
    slept = []
    monkeypatch.setattr(growing.time, "sleep", slept.append)
    land = walk()
    land.pause = 0.5
    for w in (1.5, 1.0, 0.5):
        land.step(w, w)
    assert slept == [0.5] * 3 and len(notebook.shown) == 1 and len(notebook.updates) == 2
    monkeypatch.setenv("MINFLOW_LIVE", "0")
    land.step(0, 0)
    assert len(slept) == 3


def test_without_live_displays_only_the_end_is_shown(notebook, monkeypatch):
    monkeypatch.setenv("MINFLOW_LIVE", "0")
    with walk() as land:
        for w in (1.5, 1.0, 0.5):
            land.step(w, w)
        assert not notebook.shown
    assert [bundle["text/plain"] for bundle in notebook.shown] == [land.text()] and not notebook.updates


def test_failing_figure_does_not_stop_the_loop(notebook, monkeypatch):
    monkeypatch.setattr(Landscape, "plot", lambda self, ax: 1 / 0)
    land = walk()
    land.step(1, 1)
    land.finish()
    assert "no picture: ZeroDivisionError" in notebook.shown[0]["text/plain"]


def test_terminal_prints_the_end(capsys):
    with walk() as land:
        land.step(1, 1)
    assert capsys.readouterr().out == land.text() + "\n"
    walk().step(1, 1)
    assert not capsys.readouterr().out


def test_live_figure_ends_with_its_cell(real_kernel):
    real_kernel.fresh(SETUP)
    status, shown = real_kernel.run("land.step(1, 1)\nland.step(0.5, 0.5)\nland")
    assert status == "ok" and [kind for kind, _ in shown] == ["display_data", "update_display_data"], shown
    assert "after 1 step" in shown[1][1]["data"]["text/plain"] and "<img alt=" in shown[1][1]["data"]["text/html"]
    status, shown = real_kernel.run("land.step(0, 0)\n1 / 0")
    assert status == "error" and [kind for kind, _ in shown] == ["display_data", "error", "update_display_data"]
    assert "after 2 steps" in shown[2][1]["data"]["text/plain"]
    assert [kind for kind, _ in real_kernel.run("land")[1]] == ["display_data"]


def test_kernel_shows_figure_with_text(real_kernel):
    real_kernel.fresh("from minflow_widgets.figures import landscape")
    status, shown = real_kernel.run("landscape(lambda w, b: w * w + b * b, (-2, 2), (-2, 2));")
    assert status == "ok" and len(shown) == 1
    data = shown[0][1]["data"]
    assert '<img alt="The loss over w from -2 to 2' in data["text/html"] and "image/png" in data
