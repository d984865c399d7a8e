"""Curves in a real browser: drawing while a cell runs, buttons, pointer and keys, and the saved picture."""

import re
import subprocess

import nbformat
import pytest
from minflow_widgets import LossCurve
from nbconvert import HTMLExporter
from pages import CHROMIUM, REST, act, shots_folder, write

pytestmark = pytest.mark.browser


GRAPH = (
    REST
    + """
import minflow as flow
from minflow import nn
from minflow_widgets import LossCurve, watch

flow.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = flow.optim.SGD(model.parameters(), lr=0.05)
scheduler = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300)

class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x, y):
        loss = (self.model(x) - y).square().mean()
        loss.backward()
        return loss

train = Train()
"""
)

LOOP = """
flow.manual_seed(1)
with watch(train, total=300, epoch=50) as curve:
    for epoch in range(6):
        for i in range(50):
            x = flow.randn(16, 8)
            train(x, x.sum(1, keepdim=True))
            rest(0.05)
        curve.add(val_loss=(model(x) - x.sum(1, keepdim=True)).square().mean())
"""

NOTEBOOK = "window.jupyterapp.shell.currentWidget.content"
STATUS = (
    "document.querySelector('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)')?.getAttribute('aria-label') ?? ''"
)
BUTTONS = (
    "[...document.querySelectorAll('.jp-OutputArea button')].map((b) => [b.textContent, b.disabled, b.hidden, b.title])"
)
# the kernel has answered, so clicks arrive
PRESSABLE = f"{BUTTONS}.filter(([name, disabled]) => ['pause', 'stop'].includes(name) && !disabled).length === 2"
INK = """(() => { const canvas = document.querySelector('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)'); if (!canvas?.width) return 0;
    const words = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return words.filter((word) => word !== words[0]).length; })()"""
EDGE = """(() => { const canvas = document.querySelector('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)');
    const words = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, 4, canvas.height).data.buffer);
    return words.filter((word) => word !== words[0]).length; })()"""
BOX = "(() => { const r = document.querySelector('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)').getBoundingClientRect(); return [r.width, r.height]; })()"
LEFT = """(() => { const images = [...document.querySelectorAll('.jp-OutputArea-output img')];
    return { images: images.filter((i) => i.complete && i.naturalWidth > 0).length, alts: images.map((i) => i.alt),
             canvases: document.querySelectorAll('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)').length,
             lost: /Error displaying widget|Loading widget/.test(document.querySelector('.jp-Notebook').innerText) }; })()"""


def test_watched_graph(lab, tmp_path):
    write(lab[1], GRAPH, LOOP)
    report = act(
        lab,
        shots_folder(tmp_path, "curve-graph"),
        [
            ["run"],
            ["until", f"{INK} > 2000 && /step ([5-9]|[1-9][0-9]+) of/.test({STATUS}) && {PRESSABLE}"],
            ["eval", STATUS],
            ["eval", BUTTONS],
            ["eval", BOX],
            ["eval", INK],
            ["see", "canvas"],
            ["shot", "live"],
            ["hover", ".jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)", 120, 120],
            ["wait", 200],
            ["shot", "hover"],
            [
                "eval",
                "document.querySelector('.jp-OutputArea [aria-live=polite]:not(.jp-RenderedHTMLCommon *)').textContent",
            ],
            ["click", "button:text('log y')"],
            ["wait", 300],
            ["shot", "log"],
            ["click", "button:text('time x')"],
            ["wait", 300],
            ["shot", "time"],
            [
                "eval",
                "[...document.querySelectorAll('button[aria-pressed]')].map((b) => b.getAttribute('aria-pressed'))",
            ],
            ["until", f"/step [12][0-9][0-9] of/.test({STATUS})"],
            ["eval", BOX],
            ["eval", STATUS],
            ["hurry"],
            ["idle"],
            ["see", ".jp-OutputArea-output img"],
            ["shot", "end"],
            ["eval", LEFT],
            ["save"],
            ["reopen"],
            ["see", ".jp-OutputArea-output img"],
            ["shot", "again"],
            ["eval", LEFT],
        ],
    )
    before, buttons, box, ink, hovered, pressed, box_later, later, left, again = report["values"]
    assert "of 300" in before and "steps/s" in before and "left" in before and "loss" in before and "lowest" in before
    assert [b for b in buttons if b[0] in ("pause", "stop")] == [
        ["pause", False, False, ""],
        ["stop", False, False, ""],
    ]
    assert "loss " in hovered and "lr " in hovered and pressed == ["true", "true"]
    assert box == box_later, "the height does not jump"
    assert before != later and ink > 2000
    assert left["images"] == 1 and left["canvases"] == 0 and "val_loss" in left["alts"][0]
    assert again == left and not again["lost"]


def test_long_numbers_fit(lab, tmp_path):
    """Nothing is cut at the left edge; a constant rate is in the status and has no strip."""
    cell = (
        REST
        + """
import math
from minflow_widgets import LossCurve
with LossCurve(panels=("loss",)) as curve:
    for step in range(1, 400):
        curve.add(step, loss=-1234567 - 1000 * math.sin(step / 9), lr=0.001)
        rest(0.02)
"""
    )
    write(lab[1], cell)
    report = act(
        lab,
        shots_folder(tmp_path, "curve-numbers"),
        [
            ["run"],
            ["until", f"{INK} > 2000 && /step [1-9][0-9]/.test({STATUS})"],
            ["see", "canvas"],
            ["shot", "live"],
            ["eval", EDGE],
            ["eval", INK],
            ["eval", STATUS],
            ["eval", BOX],
            ["hurry"],
            ["idle"],
            ["see", ".jp-OutputArea-output img"],
            ["shot", "end"],
            ["eval", LEFT],
        ],
    )
    edge, ink, status, box, left = report["values"]
    assert ink > 2000 and edge == 0, "a number is cut off on the left"
    assert "lr 0.001" in status and box[1] == 230 and "lr 0.001" in left["alts"][0]


LIVE_ONE = """
from minflow_widgets import LossCurve
curve = LossCurve()
for step in range(40):
    curve.add(step, loss=1 / (step + 1), val_accuracy=step / 40)
"""
SHADES = """(() => { const canvas = document.querySelector('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)'), box = canvas.parentElement;
    const p = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; let low = 255, high = 0;
    for (let i = 0; i < p.length; i += 4) if (p[i + 3] === 255) { const v = (p[i] + p[i + 1] + p[i + 2]) / 3; low = Math.min(low, v); high = Math.max(high, v); }
    return [getComputedStyle(box).color, Math.round(low), Math.round(high)]; })()"""


def test_live_curve_follows_the_theme_of_the_page(lab, tmp_path):
    write(lab[1], LIVE_ONE)
    report = act(lab, shots_folder(tmp_path, "curve-theme"), [
        ["run"], ["until", f"{INK} > 1000 && {SHADES}[2] > 100"], ["eval", SHADES], ["shot", "light"],  # with its lines
        ["theme", "JupyterLab Dark"], ["until", f"{SHADES}[0] === 'rgb(230, 230, 230)'"], ["eval", SHADES], ["shot", "dark"],
        ["theme", "JupyterLab Light"], ["until", f"{SHADES}[0] === 'rgb(36, 41, 47)'"], ["eval", SHADES]])  # fmt: skip
    light, dark, again = report["values"]
    assert light == again and light[1] < 60 and dark[2] > 220 and dark[0] != light[0]


def test_rerun_of_a_cell_keeps_the_previous_run(lab, tmp_path):
    """The same cell twice: the first run stays faint in the background. Dark theme, and values read by keys."""
    cell = (
        REST
        + """
import math
from minflow_widgets import LossCurve
n = globals().get("n", 0) + 1
with LossCurve(total=400, epoch=100, panels=("loss", "accuracy")) as curve:
    for step in range(1, 401):
        loss = math.exp(-step * n / 150) * (1 + 0.2 * math.sin(step * 1.7))
        curve.add(step, loss=float("nan") if n == 2 and step == 60 else loss)
        if step % 50 == 0:
            curve.add(val_loss=1.1 * math.exp(-step * n / 150), accuracy=1 - math.exp(-step / 90))
        rest(0 if n == 1 else 0.05)
"""
    )
    write(lab[1], cell)
    report = act(
        lab,
        shots_folder(tmp_path, "curve-again"),
        [
            ["run"],
            ["idle"],
            ["run"],
            ["until", f"/step [12][0-9][0-9]/.test({STATUS})"],
            ["see", "canvas"],
            ["shot", "second"],
            ["theme", "JupyterLab Dark"],
            ["shot", "dark"],
            ["eval", STATUS],
            ["focus", "canvas"],
            ["press", "Home"],
            ["press", "ArrowRight"],
            ["press", "ArrowRight"],
            ["wait", 200],
            [
                "eval",
                "document.querySelector('.jp-OutputArea [aria-live=polite]:not(.jp-RenderedHTMLCommon *)').textContent",
            ],
            ["hurry"],
            ["idle"],
            ["see", ".jp-OutputArea-output img"],
            ["shot", "end"],
            ["eval", LEFT],
        ],
    )
    dark, keys, left = report["values"]
    assert "NaN first at step 60" in dark and keys.startswith("step 3: loss ") and "val_loss 0.5648 at 50" in keys
    assert left["images"] == 1 and left["canvases"] == 0 and "NaN first at step 60" in left["alts"][0]


RATES = (
    REST
    + """
import minflow as flow
from minflow import nn
from minflow.utils.data import DataLoader, TensorDataset
from minflow_widgets import compare, watch

flow.manual_seed(1)
x = flow.randn(64, 8)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)

def train(lr, pause=0.0):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = flow.optim.SGD(model.parameters(), lr=lr)
    with watch(model, optimizer, name=f"lr {lr}", log="runs/", compare="runs/") as curve:
        for epoch in range(5):
            for batch, truth in loader:
                loss = (model(batch) - truth).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                rest(pause)
            curve.add(val_loss=loss.item())
"""
)


def test_runs_are_compared_live_and_later(lab, tmp_path):
    """Three rates, the last one live beside the others; recorded runs in one picture; the same in another kernel."""
    write(lab[1], RATES, "train(0.1)\ntrain(0.01)", "train(5.0, 0.1)", 'compare("runs/")', 'compare("runs/").explore()')
    report = act(
        lab,
        shots_folder(tmp_path, "curve-runs"),
        [
            ["run"],
            ["until", f"/lr 0.01 loss .*/.test({STATUS}) && /step [12][0-9]/.test({STATUS})"],
            ["see", "canvas"],
            ["shot", "live"],
            ["theme", "JupyterLab Dark"],
            ["wait", 300],
            ["shot", "live-dark"],
            ["eval", STATUS],
            ["hurry"],
            ["idle"],
            ["see", ".jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)"],
            ["shot", "end-dark"],
            ["eval", LEFT],
            ["hover", ".jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)", 220, 140],
            ["wait", 200],
            [
                "eval",
                "document.querySelector('.jp-OutputArea [aria-live=polite]:not(.jp-RenderedHTMLCommon *)').textContent",
            ],
            ["shot", "hover-dark"],
            ["theme", "JupyterLab Light"],
            ["wait", 300],
            ["shot", "end"],
            ["eval", STATUS],
        ],
    )
    live, left, hovered, explored = report["values"]
    assert "lr 0.1 loss " in live and "lr 0.01 loss " in live and "lower the learning rate (5)" in live
    assert left["images"] == 4 and left["canvases"] == 1
    assert "epochs 1 to 5" in left["alts"][0] and "3 runs" in left["alts"][3] and "lr 5.0: " in left["alts"][3]
    assert "lr 0.1 loss " in hovered and "lr 0.01 loss " in hovered and "3 runs" in explored
    kept = sorted((lab[1] / "runs").glob("*.csv"))
    assert [path.stem for path in kept] == ["lr 0.01", "lr 0.1", "lr 5.0"]
    assert all(len(path.read_text().splitlines()) == 41 for path in kept)


JOBS = """
import time
import numpy as np
import minflow as flow
import minflow.typing as tp
from minflow_widgets import watch

def job(annotation, name):
    def train(x: tp.Numpy.Placeholder((16, 8))) -> annotation:
        y = flow.layers.dense(x, 1, name="fc-" + name)
        loss = flow.math.reduce_mean(flow.math.square(y - flow.math.reduce_sum(x, axis=1, keepdims=True)))
        flow.optimizer.SGD(flow.optimizer.CosineScheduler(0.02, 4000)).minimize(loss)
        return loss
    train.__name__ = name
    return flow.global_function(type="train")(train)

later = job(tp.Callback[tp.Numpy], "train_later")
X = [np.random.default_rng(i).standard_normal((16, 8)).astype("f") for i in range(40)]
"""


def test_buttons_of_a_run(lab, tmp_path):
    write(
        lab[1],
        JOBS,
        "run = flow.start(later, X, epochs=100, callback=lambda loss: time.sleep(0.005))\ncurve = watch(run)",
        "print(run)\ncurve.explore()",
    )
    report = act(
        lab,
        shots_folder(tmp_path, "curve-run"),
        [
            ["cell", 0],
            ["idle"],
            ["cell", 1],
            ["until", f"/step [1-9][0-9][0-9]/.test({STATUS})"],
            ["see", "canvas"],
            ["shot", "live"],
            ["eval", BUTTONS],
            ["click", "button:text-is('pause')"],
            ["until", f"/paused/.test({STATUS})"],
            ["wait", 500],
            ["eval", STATUS],
            ["wait", 1000],
            ["eval", STATUS],
            ["shot", "paused"],
            ["click", "button:text-is('resume')"],
            ["until", f"!/paused/.test({STATUS})"],
            ["wait", 1500],
            ["eval", STATUS],
            ["eval", "performance.now()"],
            ["click", "button:text-is('stop')"],
            ["until", "!document.querySelector('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)')"],
            ["eval", "performance.now()"],
            ["cell", 2],
            ["idle"],
            ["until", f"{INK} > 2000"],
            ["see", "canvas"],
            ["shot", "stopped"],
            ["eval", LEFT],
            ["eval", "window.jupyterapp.shell.currentWidget.content.widgets[2].model.outputs.toJSON()[0].text"],
            ["eval", "[...document.querySelectorAll('.jp-OutputArea canvas')].map((c) => c.parentElement.innerText)"],
        ],
    )
    buttons, paused, still, resumed, pressed, stopped, left, run, words = report["values"]
    assert len(words) == 2 and all(text.rstrip().endswith("\nstopped") for text in words), "the canvas says so, too"
    print(f"stop to picture: {stopped - pressed:.0f} ms")
    assert [b[:3] for b in buttons if b[0] in ("pause", "stop")] == [["pause", False, False], ["stop", False, False]]
    step = lambda text: float(text.split()[1].replace(",", ""))
    assert step(paused) == step(still) < step(resumed) and "of 4000" in paused
    assert left["images"] == 1 and "stopped" in left["alts"][0] and "stopped" in str(run)
    assert left["canvases"] == 1, "explore() displays it again, as a canvas"


def test_sync_beside_async_and_an_interrupt(lab, tmp_path):
    loop = """
now = job(tp.Numpy, "train_now")
with watch(now, later, names=["sync", "async"]) as curve:
    for x in X * 3:
        time.sleep(0.004)
        now(x)
    for x in X * 3:
        time.sleep(0.004)
        later(x)(lambda loss: time.sleep(0.003))
"""
    endless = "with watch(later) as curve:\n    while True:\n        later(X[0])(lambda loss: time.sleep(0.01))"
    write(lab[1], JOBS, loop, endless)
    report = act(
        lab,
        shots_folder(tmp_path, "curve-jobs"),
        [
            ["cell", 0],
            ["idle"],
            ["cell", 1],
            ["idle"],
            ["see", ".jp-OutputArea-output img"],
            ["shot", "side-by-side"],
            ["eval", LEFT],
            ["cell", 2],
            ["until", f"/step [1-9][0-9]+/.test({STATUS})"],
            ["see", "canvas"],
            ["shot", "endless"],
            ["interrupt"],
            ["idle"],
            ["shot", "interrupted"],
            ["eval", LEFT],
        ],
    )
    side, left = report["values"]
    assert "sync loss" in side["alts"][0] and "async loss" in side["alts"][0]
    assert left["images"] == 2 and left["canvases"] == 0 and "stopped by KeyboardInterrupt" in left["alts"][1]
    assert [error.split(":")[0] for error in report["errors"]] == ["KeyboardInterrupt"]


def test_buttons_of_a_reloaded_page(lab, tmp_path):
    """During a run: the whole curve is back at once and continues. Among many other widgets the page takes long
    enough to load that its messages cross (see `answering`).
    """
    many = "import ipywidgets\nothers = [ipywidgets.IntSlider() for _ in range(150)]"
    write(
        lab[1],
        many,
        JOBS,
        "run = flow.start(later, X, epochs=100, callback=lambda loss: time.sleep(0.01))\ncurve = watch(run)",
        "run",
    )
    again = [["reload"], ["until", f"{INK} > 2000 && /step [1-9][0-9][0-9]/.test({STATUS})"]]
    press = lambda name, then: [["click", f".jp-OutputArea button:text-is('{name}')"], ["until", then]]
    over = f"{BUTTONS}.every(([name, , hidden]) => hidden || !['pause', 'resume', 'stop'].includes(name))"
    report = act(lab, shots_folder(tmp_path, "curve-reload-buttons"), [
        ["cell", 0], ["cell", 1], ["cell", 2], ["until", f"/step [1-9][0-9][0-9]/.test({STATUS})"], ["save"], *again,
        ["eval", STATUS], ["wait", 2500], ["eval", STATUS], *press("pause", f"/paused/.test({STATUS})"), ["wait", 500], ["eval", STATUS], ["shot", "paused"],
        ["wait", 1000],
        *again, ["eval", STATUS],
        *press("resume", f"!/paused/.test({STATUS})"), *press("stop", over), ["shot", "stopped"], ["cell", 3], ["idle"],
        ["eval", f"{NOTEBOOK}.widgets[3].model.outputs.toJSON()[0].data['text/plain']"]], seconds=60)  # fmt: skip
    first, second, paused, reloaded, run = report["values"]
    assert first != second, "it does not continue"
    assert paused.split()[1] == reloaded.split()[1] and "paused" in reloaded, "a pause survives a reload"
    assert "stopped" in str(run)


def test_page_reloaded_while_a_cell_trains(lab, tmp_path):
    """The kernel tells the page about the curve after the cell has ended; its variable gives the picture."""
    write(lab[1], GRAPH, LOOP, "curve")
    report = act(lab, shots_folder(tmp_path, "curve-reload-cell"), [
        ["cell", 0], ["idle"], ["cell", 1], ["until", f"/step [2-9][0-9] of/.test({STATUS})"], ["save"], ["reload"], ["wait", 3000], ["hurry"],
        ["until", f"/step 300 of 300/.test({STATUS}) && {INK} > 2000"], ["eval", LEFT], ["shot", "after"],
        ["cell", 2], ["until", "document.querySelector('.jp-OutputArea-output img')"], ["idle"], ["eval", LEFT]], seconds=60)  # fmt: skip
    after, asked = report["values"]
    assert after == {"images": 0, "alts": [], "canvases": 1, "lost": False} and asked["images"] == 1
    assert "val_loss" in asked["alts"][0]


def test_page_reloaded_without_saving(lab, tmp_path):
    """The browser asks; then the display of the curve is lost, but neither the curve nor the run that it follows."""
    run = "run = flow.start(later, X, epochs=100, callback=lambda loss: time.sleep(0.01))\ncurve = watch(run)"
    write(lab[1], JOBS, run, "curve.explore()")
    report = act(lab, shots_folder(tmp_path, "curve-reload-unsaved"), [
        ["cell", 0], ["idle"], ["save"], ["cell", 1], ["until", f"/step [1-9][0-9][0-9]/.test({STATUS})"], ["reload"],
        ["wait", 2000],
        ["eval", LEFT], ["cell", 2], ["until", f"/step [1-9][0-9][0-9]/.test({STATUS})"], ["eval", STATUS],
        ["wait", 1500], ["eval", STATUS],
        ["click", ".jp-OutputArea button:text-is('stop')"],
        ["until", "document.querySelector('.jp-OutputArea-output img')"],
        ["wait", 500], ["eval", LEFT], ["shot", "end"]])  # fmt: skip
    lost, first, second, left = report["values"]
    assert report["dialogs"] and lost["canvases"] == 0 and first != second
    assert left["images"] == 1 and left["canvases"] == 0 and "stopped" in left["alts"][0]


def test_steps_that_restart_have_a_time_axis(lab, tmp_path):
    """Over time the line grows to the right, epoch by epoch; small values are readable under the pointer, too."""
    cell = (
        REST
        + """
from minflow_widgets import LossCurve
with LossCurve(x="time") as curve:
    for epoch in range(4):
        for step in range(60):
            curve.add(step, loss=1.2345e-5 / (1 + epoch) + 1e-7 * step)
            rest(0.03)
"""
    )
    write(lab[1], cell)
    times = "document.querySelectorAll('.jp-OutputArea button[aria-pressed]')[1]"
    value = "document.querySelector('.jp-OutputArea [aria-live=polite]:not(.jp-RenderedHTMLCommon *)').textContent"
    report = act(
        lab,
        shots_folder(tmp_path, "curve-again"),
        [
            ["run"],
            ["until", f"{INK} > 1500 && /· [3-9][.][0-9] s( |;|$)/.test({STATUS})"],
            ["see", "canvas"],
            ["eval", f"[{times}.disabled, {times}.getAttribute('aria-pressed')]"],
            ["shot", "live"],
            ["focus", ".jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)"],
            ["press", "End"],
            ["wait", 150],
            ["eval", value],
            ["hurry"],
            ["idle"],
            ["see", ".jp-OutputArea-output img"],
            ["shot", "end"],
            ["eval", LEFT],
        ],
    )
    pressed, said, left = report["values"]
    assert pressed == [False, "true"]
    seconds = float(said.removeprefix("at ").partition(" s:")[0])
    assert seconds > 2.0 and "e-0" in said, said  # epochs of at least 1.8 seconds; no step is after the 60th
    assert left["images"] == 1 and "e-0" in left["alts"][0]


def test_automatic_scale(lab, tmp_path):
    """A huge first loss: log, as the button shows, which still toggles; one value before NaN is a dot."""
    cell = (
        REST
        + """
import math
from minflow_widgets import LossCurve
with LossCurve(panels=("loss", "accuracy"), epoch=20) as curve:
    for step in range(1, 300):
        curve.add(step, loss=9e5 if step == 1 else 2 + math.sin(step / 9), accuracy=0.9 if step == 1 else float("nan"))
        rest(0.03)
"""
    )
    write(lab[1], cell)
    pressed = "[...document.querySelectorAll('button[aria-pressed]')].map((b) => b.getAttribute('aria-pressed'))"
    dots = """(() => { const canvas = document.querySelector('.jp-OutputArea canvas:not(.jp-RenderedHTMLCommon *)'), half = canvas.width / 2;
        const words = canvas.getContext('2d').getImageData(half + 40, 60, half - 60, canvas.height - 120).data;
        let found = 0; for (let i = 0; i < words.length; i += 4)
            found += words[i + 3] > 200 && words[i + 2] - words[i] > 100 && words[i] < 80; return found; })()"""
    report = act(
        lab,
        shots_folder(tmp_path, "curve-scale"),
        [
            ["run"],
            ["until", f"{INK} > 2000 && /step [3-9][0-9]/.test({STATUS})"],
            ["see", "canvas"],
            ["shot", "live"],
            ["eval", pressed],
            ["eval", dots],
            ["click", "button:text('log y')"],
            ["wait", 300],
            ["eval", pressed],
            ["shot", "linear"],
            ["click", "button:text('log y')"],
            ["wait", 300],
            ["eval", pressed],
            ["hurry"],
            ["idle"],
            ["see", ".jp-OutputArea-output img"],
            ["shot", "end"],
            ["eval", LEFT],
        ],
    )
    by_itself, dot, linear, chosen, left = report["values"]
    assert by_itself == ["true", "false"] and linear == ["false", "false"] and chosen == ["true", "false"]
    assert 3 < dot < 60 and left["images"] == 1


STILL = "document.querySelector('.jp-RenderedHTMLCommon canvas')"
SAVED = """
import math
from minflow_widgets import LossCurve
with LossCurve(epoch=100) as curve:
    for step in range(1, 401):
        curve.add(step, loss=2 * math.exp(-step / 90) + 0.2 + 0.1 * math.sin(step))
        if step % 100 == 0:
            curve.add(val_loss=2 * math.exp(-step / 90) + 0.35)
"""
SAID = "document.querySelector('.jp-RenderedHTMLCommon [aria-live=polite]').textContent"
RESET = (
    "[...document.querySelectorAll('.jp-RenderedHTMLCommon button')].find((b) => b.textContent === 'all steps').hidden"
)
PIXELS = f"{STILL}.toDataURL()"


PLACE = f"""(() => {{
    const canvas = {STILL}, full = !!document.fullscreenElement;
    return {{ full, wide: canvas.clientWidth, tall: canvas.clientHeight, screen: innerHeight }};
}})()"""


def test_saved_picture_has_values_and_zoom_without_a_kernel(lab, tmp_path):
    """In a notebook that is opened again, and trusted because it ran here; zoom by drag and by keys, log scale, both themes."""
    write(lab[1], SAVED)
    canvas = ".jp-RenderedHTMLCommon canvas"
    report = act(lab, shots_folder(tmp_path, "curve-saved"), [
        ["run"], ["idle"], ["save"], ["reopen"], ["until", f"!!{STILL}"], ["see", canvas], ["wait", 300], ["shot", "opened"],
        ["eval", LEFT], ["hover", canvas, 400, 120], ["wait", 200], ["eval", SAID], ["shot", "hover"],
        ["drag", canvas, 300, 500, 120], ["wait", 200], ["eval", RESET], ["shot", "zoomed"], ["focus", canvas], ["press", "Home"], ["wait", 200],
        ["eval", SAID], ["press", "Escape"], ["wait", 200], ["eval", RESET], ["press", "End"], ["press", "+"], ["wait", 200], ["eval", RESET],
        ["double", canvas], ["wait", 200], ["eval", RESET], ["eval", PIXELS],
        ["hover", canvas, 60, 46], ["click", canvas, 60, 46], ["wait", 200], ["eval", SAID], ["shot", "hidden"], ["hover", canvas, 400, 120],
        ["wait", 200], ["eval", SAID], ["focus", canvas], ["press", "2"], ["wait", 200], ["click", ".jp-RenderedHTMLCommon button:text('log y')"],
        ["wait", 200], ["eval", PIXELS], ["theme", "JupyterLab Dark"], ["wait", 600], ["shot", "log-dark"], ["eval", PIXELS],
        ["focus", canvas], ["eval", PLACE], ["press", "f"], ["wait", 500], ["eval", PLACE], ["shot", "full-screen"], ["press", "f"], ["wait", 500],
        ["eval", PLACE]])  # fmt: skip
    left, hovered, zoomed, first, whole, nearer, again, linear, toggled, alone, log, dark, small, large, closed = (
        report["values"]
    )
    assert not small["full"] and closed == small and large["full"]
    assert large["wide"] > 1.2 * small["wide"] and 0.85 < large["tall"] / large["screen"] < 1, (small, large)
    assert left["images"] == 1 and left["canvases"] == 0 and not left["lost"]
    assert hovered.startswith("step 2") and "loss " in hovered and "val_loss " in hovered
    assert zoomed is False and first.startswith("step 1: loss ") and whole is True and nearer is False and again is True
    assert toggled == "val_loss: click to show" and "val_loss" not in alone and " · mean " in alone
    assert len({linear, log, dark}) == 3 and report["errors"] == []


def test_page_of_nbconvert_has_values_and_zoom(tmp_path):
    with LossCurve() as curve:
        for step in range(1, 101):
            curve.add(step, loss=1 / step)
    output = nbformat.v4.new_output("display_data", curve.bundle())
    page, _ = HTMLExporter().from_notebook_node(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])])
    )
    (tmp_path / "page.html").write_text(page)
    words = [CHROMIUM, "--headless", "--no-sandbox", "--virtual-time-budget=5000", "--dump-dom", tmp_path / "page.html"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    assert 'role="img"' in shown and "step 100; loss 0.01" in shown and ">log y</button>" in shown
    assert re.search(r"mathjax_ignore[^>]*display: none", shown), "the picture is hidden"


def test_untrusted_notebook_keeps_the_plain_picture(lab, tmp_path):
    write(lab[1], SAVED)
    seen = "[!!document.querySelector('.jp-OutputArea-output img')?.offsetWidth, document.querySelectorAll('canvas').length]"
    act(lab, shots_folder(tmp_path, "curve-trusted"), [["run"], ["idle"], ["save"]])
    notebook = nbformat.read(lab[1] / "small.ipynb", 4)
    notebook.metadata["title"] = "changed by another program: its signature does not fit any more"
    nbformat.write(notebook, lab[1] / "small.ipynb")
    report = act(lab, shots_folder(tmp_path, "curve-untrusted"), [
        ["until", "document.querySelector('.jp-OutputArea-output img')?.naturalWidth > 0"],
        ["wait", 500], ["eval", seen], ["shot", "untrusted"]])  # fmt: skip
    assert report["values"] == [[True, 0]]
