"""Pictures of graphs and of their steps in a real JupyterLab: zoom, drag, folded modules and words at the pointer, also in a notebook that
was saved and opened again; where scripts do not run, the picture is an `<img>`.
"""

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from pages import act, shots_folder, write

import minflow as flow
from minflow import nn
from minflow.views.show import picture

pytestmark = pytest.mark.browser

TAPE = """
import minflow as flow
from minflow import nn
body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
head = nn.Linear(8, 2)
loss = head(body(flow.ones(3, 4, requires_grad=True))).sum()
flow.show(loss)
"""
TAKEN = "document.querySelector('.jp-OutputArea-output [role=group] > svg')"
VIEW = '.jp-OutputArea-output [role="group"]'
# Parts in sight: frames and boxes by the first line of their titles, the size of the view, the scale.
LOOK = """(() => {
    const view = document.querySelector('.jp-OutputArea-output [role="group"]'), svg = view.firstElementChild;
    const shown = (css) => [...svg.querySelectorAll(css)].filter((e) => getComputedStyle(e).display !== 'none');
    const [x, y, width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
    return { boxes: shown('[data-box]').length, edges: shown('[data-ends]').length, x, y, scale: svg.clientWidth / width,
        names: shown('[data-name]').map((e) => [e.getAttribute('aria-label'), e.getAttribute('aria-expanded')]),
        tall: view.clientHeight, titles: shown('[data-box]').map((e) => e.firstChild.textContent),
        focus: document.activeElement.getAttribute('data-name'), images: document.querySelectorAll('.jp-OutputArea-output img').length };
})()"""
NAMED = "[data-name='0'] > text"
# An edge that ends in a box or a frame touches it: the distance of each arrow's tip from the nearest side in sight.
LOOSE = """(() => {
    const svg = document.querySelector('.jp-OutputArea-output [role="group"] > svg');
    const shown = (e) => getComputedStyle(e).display !== 'none';
    const sides = [...svg.querySelectorAll('[data-box], [data-name] > g')].filter((e) => shown(e) && shown(e.parentElement))
        .map((e) => e.querySelector('rect, ellipse').getBoundingClientRect());
    return [...svg.querySelectorAll('[data-ends]')].filter(shown).flatMap((e) => {
        const { x, y } = e.lastChild.getPointAtLength(0).matrixTransform(svg.getScreenCTM());
        const far = Math.min(...sides.map((s) => Math.hypot(Math.max(s.left - x, x - s.right, 0), Math.max(s.top - y, y - s.bottom, 0))));
        return far > 2 ? [far] : [];
    });
})()"""


def wheel(**keys) -> str:
    """JavaScript: True if the picture used the wheel, False if the page scrolls."""
    told = "".join(f", {key}: {str(value).lower()}" for key, value in keys.items())
    return f"""!document.querySelector('{VIEW}').dispatchEvent(new WheelEvent('wheel',
        {{ bubbles: true, cancelable: true, clientX: 300, clientY: 300{told} }}))"""


def test_zoom_drag_fold_and_titles(lab, tmp_path):
    write(lab[1], TAPE)
    report = act(
        lab,
        shots_folder(tmp_path, "pictures"),
        [
            ["run"], ["until", TAKEN], ["idle"], ["see", VIEW], ["eval", LOOK], ["eval", LOOSE], ["shot", "0"],
            ["click", NAMED], ["eval", LOOK], ["eval", LOOSE], ["shot", "folded"],
            ["press", "Enter", "[data-name='0']"], ["eval", LOOK],
            ["eval", wheel(deltaY=100)], ["eval", LOOK],
            ["eval", wheel(deltaY=-100, ctrlKey=True)], ["eval", LOOK],
            ["press", "1", VIEW], ["eval", LOOK], ["press", "+", VIEW], ["press", "+", VIEW], ["press", "+", VIEW],
            ["eval", LOOK], ["drag", VIEW, 0, -90], ["eval", LOOK], ["shot", "near"],
            ["press", "ArrowUp", VIEW], ["eval", LOOK], ["press", "0", VIEW], ["eval", LOOK],
            ["eval", "document.querySelector('.jp-Notebook .jp-mod-editMode') === null"],
            ["theme", "JupyterLab Dark"], ["shot", "dark"],
            ["eval", f"(() => {{ const s = getComputedStyle(document.querySelector(`{NAMED}`)); return [s.fill, s.stroke]; }})()"],
            ["save"], ["reopen"], ["until", TAKEN], ["see", VIEW], ["eval", LOOK], ["click", NAMED], ["eval", LOOK],
        ],
    )  # fmt: skip
    (
        usual,
        loose,
        folded,
        still,
        opened,
        plain,
        scrolled,
        used,
        larger,
        full,
        near,
        dragged,
        up,
        fit,
        lab_,
        dark,
        again,
        last,
    ) = report["values"]
    assert report["console"] == [] and usual["images"] == 0
    assert usual["names"][0][0].startswith("Sequential, 4 operations") or "operations" in usual["names"][0][0]
    assert usual["names"][0][1] == "true" and usual["scale"] == pytest.approx(1, abs=0.01)
    assert any("float32[3, 4]" in title and "→" in title for title in usual["titles"]), usual["titles"]
    assert folded["names"][0][1] == "false" and folded["boxes"] < usual["boxes"] and folded["edges"] < usual["edges"]
    assert folded["tall"] < usual["tall"] - 50 and loose == still == []
    assert opened == {**usual, "focus": "0"}, "Enter opens it again"
    assert not plain and scrolled["scale"] == usual["scale"], "the wheel alone scrolls the page"
    assert used and larger["scale"] > 1.2 * usual["scale"]
    assert full["scale"] == pytest.approx(1, abs=0.01) and near["scale"] == pytest.approx(1.25**3, abs=0.02)
    assert dragged["y"] == pytest.approx(near["y"] + 90 / near["scale"], abs=1) and dragged["names"] == near["names"]
    assert up["y"] < dragged["y"] and fit["scale"] < near["scale"]
    assert lab_ is True, "the keys did not reach JupyterLab"
    assert dark[0] != dark[1] and dark[1] == "rgb(17, 17, 17)"
    assert again["names"] == usual["names"] and last["names"] == folded["names"]


def test_picture_that_is_not_trusted_is_an_image(lab, home, tmp_path):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    output = nbformat.v4.new_output("display_data", data=picture(model(flow.ones(3, 4)).sum(), names={}).bundle())
    notebook = write(lab[1], nbformat.v4.new_code_cell("flow.show(y)", outputs=[output], execution_count=1))
    drawn = "(() => { const i = document.querySelector('.jp-OutputArea-output img'); return !!i && i.naturalWidth > 50; })()"
    look = ["eval", f"[{drawn}, !!{TAKEN}, document.querySelectorAll('.jp-OutputArea-output script').length]"]
    report = act(lab, shots_folder(tmp_path, "untrusted"), [["until", drawn], ["wait", 500], look])
    assert report["values"] == [[True, False, 0]]
    NotebookNotary(data_dir=str(home / "data")).sign(notebook)
    report = act(lab, shots_folder(tmp_path, "trusted"), [["until", TAKEN], look])
    assert report["values"] == [[False, True, 1]]


STEP = """
import minflow as flow
from minflow import nn

class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss

train, x = Train(), flow.ones(8, 64)
train(x)
train.profile()
train(x)
"""
# The names at the middle of each box with a tooltip, as the pointer finds them; the least side of a box.
AT_BOXES = """(() => {
    const svg = document.querySelector('.jp-OutputArea-output [role=group] > svg');
    const boxes = [...svg.querySelectorAll('title')].map((title) => title.parentElement);
    boxes[0].scrollIntoView({ block: 'center' });
    const said = boxes.map((box) => {
        const { x, y, width, height } = box.getBoundingClientRect();
        const hit = document.elementFromPoint(x + width / 2, y + height / 2)?.closest('*:has(> title)');
        return [Math.min(width, height), box.querySelector('title').textContent, hit === box];
    });
    return { boxes: said.length, hit: said.filter(([, , hit]) => hit).length, words: said.map(([, words]) => words),
        smallest: Math.min(...said.map(([width]) => width)) };
})()"""


@pytest.mark.parametrize("view, name", [("threads", "model.0"), ("memory", "float32")])
def test_small_boxes_of_a_step_have_names(lab, tmp_path, view, name):
    write(lab[1], STEP, f"train.{view}()")
    report = act(lab, shots_folder(tmp_path, view), [["run"], ["idle"], ["until", TAKEN], ["eval", AT_BOXES]])
    (found,) = report["values"]
    assert found["boxes"] > 5 and found["hit"] > 0.7 * found["boxes"], "boxes below others are hidden by them"
    assert any(name in words for words in found["words"]) and found["smallest"] < 20


FOLDED = """
import minflow as flow
from minflow import nn
model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)) for _ in range(4)])
loss = model(flow.ones(3, 4, requires_grad=True)).sum()
flow.show(loss)
"""


def test_folded_box_opens_and_the_rest_stays_folded(lab, tmp_path):
    write(lab[1], FOLDED)
    box = "[data-inside='Sequential.1.0']"
    report = act(
        lab,
        shots_folder(tmp_path, "opened"),
        [
            ["run"], ["until", TAKEN], ["idle"], ["see", VIEW], ["eval", LOOK], ["focus", box], ["shot", "0"],
            ["press", "Enter", box], ["until", f"!document.querySelector(`{box}`)"], ["wait", 200],
            ["see", VIEW], ["eval", LOOK], ["eval", LOOSE], ["shot", "1"],
        ],
    )  # fmt: skip
    before, after, loose = report["values"]
    assert report["console"] == [] and loose == []
    assert not any("Linear" in title or "matmul" in title.split("\n")[0] for title in before["titles"])
    opened = {name.split(",")[0]: expanded for name, expanded in after["names"]}
    assert opened["Sequential.1.0"] == opened["Sequential.1"] == "true" and opened["Sequential.0.0"] == "false"
    assert sum("matmul" in title for title in after["titles"]) == 1, "of the module that was opened"
