"""Take the pictures of README.md from JupyterLab in Chromium, and write them to docs/images.

`python -m docs.pictures [curve|tape|explorer|wrong ...]`. Each picture shows a cell that has just run, in the light and
in the dark theme; the animation is the training of lesson 00, whose cells are read from its notebook. Needs what the
browser tests need (`.ci/run browser` installs it) and uses their helpers. Read next: `../tests/browser/actions.mjs`.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageOps

TOP = Path(__file__).resolve().parent.parent
IMAGES = TOP / "docs/images"
sys.path.insert(0, str(TOP / "tests/browser"))

from pages import act, choose, write  # noqa: E402

import conftest  # noqa: E402

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
LIMIT = {".png": 150_000, ".webp": 400_000}  # bytes of a file
MARGIN, INSET = 8, 3  # CSS pixels: around the picture; cut off above and below the cells
COLORS, EXACT = 40, 8  # of the animation: approximate ones, and the most frequent ones
METHOD = Image.Quantize.MAXCOVERAGE
PERIOD = 180  # milliseconds between two pictures of it, at least
LAST = 4000  # milliseconds for which the last picture of the animation stays

TAPE = """\
import minflow as flow

x = flow.tensor([1.0, 2.0, 3.0])
w = flow.tensor([0.5, -1.0, 2.0], requires_grad=True)
loss = ((w * x).sum() - 3) ** 2
loss.backward()
flow.show(loss, values=True)"""
CHECK = "from minflow.exercises import check"
WRONG = """\
def out_size(n, k, stride=1, padding=0):
    return (n + padding - k) // stride + 1

check("out_size", out_size)"""
MODEL = """\
import minflow as flow
from minflow import nn
from minflow.utils.data import DataLoader
from minflow.vision import datasets, transforms
from minflow_widgets import explore

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 16, 10)

    def forward(self, x):
        x = nn.functional.relu(self.conv1(x))
        x = nn.functional.max_pool2d(nn.functional.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))

class Training(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss

flow.manual_seed(0)
loader = DataLoader(datasets.Digits(transform=transforms.ToTensor()), batch_size=50, shuffle=True)
graph = Training(Net())
for x, y in loader:
    loss = graph(x, y)
x, y = x[:4], y[:4]
graph(x, y);"""
EXPLORE = "explore(graph, x, y)"
# The training takes a second. Every batch waits, so that there is time for pictures; the losses are the same.
SLOW = """\
import time

class Slow(list):
    started = False
    def __iter__(self):
        time.sleep(0 if self.started else 2)
        self.started = True
        for batch in super().__iter__():
            time.sleep(0.002)
            yield batch

examples = Slow(examples)"""
HIDE_PROMPTS = """void document.head.append(Object.assign(document.createElement('style'), { textContent:
  '.jp-InputPrompt, .jp-OutputPrompt, .jp-Collapser { display: none !important }' }))"""
TO_FIRST = "void (window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0)"
NO_LONGER_LIVE = """(() => { const live = !!document.querySelector('.jp-OutputArea canvas');
  window.wasLive ||= live; return window.wasLive && !live; })()"""


def lesson(*names: str) -> list[str]:
    """The sources of cells of lesson 00."""
    (file,) = (TOP / "notebooks").glob("00_*.ipynb")
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]}
    return [cells[f"program-{name}"] for name in names]


def cell(index: int) -> str:
    """CSS of a cell, with its outputs."""
    return f'.jp-Cell[data-windowed-list-index="{index}"]'


def save(picture: Image.Image, name: str) -> None:
    file = IMAGES / f"{name}.png"
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    check(file)


def animate(pictures: Sequence[Image.Image], durations: Sequence[int], name: str) -> None:
    """Save an animation in few colors, which makes it small."""
    samples = np.concatenate([np.asarray(pictures[i]) for i in (len(pictures) // 3, -1)])
    palette = np.array(Image.fromarray(samples).quantize(COLORS, METHOD).getpalette()[: 3 * COLORS]).reshape(-1, 3)
    often, counts = np.unique(samples.reshape(-1, 3), axis=0, return_counts=True)
    palette = np.concatenate([palette, often[counts.argsort()[-EXACT:]]])
    first, *others = [nearest(picture, palette) for picture in pictures]
    file = IMAGES / f"{name}.webp"
    options = {"duration": list(durations), "loop": 0, "lossless": True, "quality": 80, "method": 4}
    first.save(file, save_all=True, append_images=others, **options)
    check(file)


def nearest(picture: Image.Image, palette: np.ndarray) -> Image.Image:
    """Replace each color by the nearest of the palette; Pillow approximates this, and white becomes blue."""
    pixels = np.asarray(picture).astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    packed, where = np.unique(pixels, return_inverse=True)
    colors = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], 1).astype(int)
    chosen = ((colors[:, None] - palette) ** 2).sum(2).argmin(1)
    return Image.fromarray(palette[chosen][where.reshape(pixels.shape)].astype(np.uint8))


def check(file: Path) -> None:
    size = file.stat().st_size
    print(f"{file.relative_to(TOP)}: {size // 1000} kB, {Image.open(file).size}")
    assert size <= LIMIT[file.suffix], f"{file} must be at most {LIMIT[file.suffix]} bytes, got {size}"


class Studio:
    """A JupyterLab and a browser, in one theme."""

    def __init__(self, url: str, home: Path, folder: Path, browser: str, theme: str):
        self.lab, self.home, self.folder, self.theme = (url, folder, browser), home, folder, theme
        choose(home, "apputils-extension/themes", {"theme": THEMES[theme]})
        choose(home, "notebook-extension/tracker", {"windowingMode": "none"})

    def act(self, sources: Sequence[str], actions: Sequence[Sequence], width: int, scale: float) -> list:
        write(self.folder, *sources)
        start = [
            ["size", width, 1400],
            ["eval", "void window.jupyterapp.commands.execute('application:toggle-left-area')"],
        ]
        report = act(self.lab, self.folder, [*start, *actions], scale=scale, pictures=True)
        assert report["errors"] == [], report["errors"]
        return report["values"][1:]

    def still(self, name: str, sources: Sequence[str], width: int, actions: Sequence[Sequence] = ()) -> None:
        """Run the cells, do the actions, and show the last cell."""
        last = cell(len(sources) - 1)
        prepare = [["run"], ["idle"], ["wait", 1000], ["eval", HIDE_PROMPTS]]
        shoot = [["eval", TO_FIRST], ["wait", 300], ["top", last], ["wait", 500], ["box", last], ["shot", "whole"]]
        box = self.act(sources, [*prepare, *actions, *shoot], width, scale=2)[-1]
        save(crop(self.folder / "whole.png", box, 2), f"{name}-{self.theme}")

    def curve(self, scale: float = 1.5) -> None:
        """The cell of lesson 00 that trains, with its live curve."""
        *before, train = lesson("01", "03", "09", "14", "16", "20")
        before.append(SLOW)
        this = cell(len(before))
        actions = [
            *[["cell", i] for i in range(len(before))],
            ["idle"],
            ["cell", len(before)],
            ["eval", TO_FIRST],
            ["wait", 100],
            ["top", this],
            ["record", "frame", NO_LONGER_LIVE, this],
        ]
        seen = self.act([*before, train], actions, 860, scale)[-1]
        kept = [0]
        for i, at in enumerate(seen["times"]):
            if at - seen["times"][kept[-1]] >= PERIOD:
                kept.append(i)
        pictures = [crop(self.folder / f"frame-{i:03d}.png", seen["box"], scale) for i in kept]
        background = Image.new("RGB", pictures[-1].size, pictures[-1].getpixel((0, 0)))
        *_, bottom = ImageChops.difference(pictures[-1], background).getbbox()
        pictures = [one.crop((0, 0, one.width, bottom + round(scale * MARGIN))) for one in pictures]
        starts = [seen["times"][i] for i in kept]
        animate(pictures, [*(b - a for a, b in itertools.pairwise(starts)), LAST], f"curve-{self.theme}")


def crop(file: Path, box: Sequence[float], scale: float) -> Image.Image:
    """Cut the box out of a screenshot, and put a margin around it."""
    left, top, right, bottom = box
    inner = [round(scale * one) for one in (left, top + INSET, right, bottom - INSET)]
    picture = Image.open(file).convert("RGB").crop(inner)
    return ImageOps.expand(picture, round(scale * MARGIN), picture.getpixel((0, 0)))


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as place, conftest.chromium() as browser:
        top = Path(place)
        home, courses = top / "home", top / "courses"
        courses.mkdir()
        settings = {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "JUPYTER_CONFIG_DIR": str(home / "config")}
        words = ["jupyterlab", f"--ServerApp.root_dir={courses}"]
        with conftest.serving(words, home, top / "lab.log", **settings) as url:
            for theme in THEMES:
                folder = courses / theme
                folder.mkdir()
                studio = Studio(url, home, folder, browser, theme)
                if "tape" in names:
                    studio.still("tape", ["", TAPE], 560)
                if "wrong" in names:
                    studio.still("wrong", [CHECK, WRONG], 560)
                if "explorer" in names:
                    box = '.mfx .row[aria-label^="conv1"] g[data-column="0"]'
                    studio.still("explorer", [MODEL, EXPLORE], 1140, [["click", box], ["wait", 1500]])
                if "curve" in names:
                    studio.curve()


if __name__ == "__main__":
    main(sys.argv[1:] or ["curve", "tape", "explorer", "wrong"])
