"""The graph explorer in a real browser: boxes that open, values, passes, help texts, keys, and the saved notebook."""

import pytest
from pages import PLACE, act, shots_folder, write

pytestmark = pytest.mark.browser

MODEL = """
import minflow as flow
from minflow import nn
from minflow_widgets import explore

class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss

flow.manual_seed(0)
"""
LENET = """
from minflow.vision.models import lenet
graph, x, y = Train(lenet()), flow.randn(8, 1, 28, 28), flow.randint(0, 10, (8,))
graph(x, y)
explore(graph, x, y)
"""
DEEP = """
layers = [layer for _ in range(500) for layer in (nn.Linear(8, 8), nn.ReLU())]
graph = Train(nn.Sequential(*layers))
graph(flow.randn(2, 8), flow.tensor([1, 2]))
explore(graph, flow.randn(2, 8), flow.tensor([1, 2]))
"""
COMPOSITE = """
from minflow.compiler.passes import decompose
graph = Train(nn.ModuleDict({"norm": nn.LayerNorm(16), "fc": nn.Linear(16, 10)}))
graph.model.forward = lambda x: graph.model["fc"](nn.functional.gelu(graph.model["norm"](x)))
graph.passes.remove(decompose)  # one call for each composite operation, as with compiled kernels
x, y = flow.randn(8, 16), flow.randint(0, 10, (8,))
graph(x, y)
explore(graph, x, y)
"""
ROWS = "document.querySelectorAll('.mfx .row').length"
TOLD = "document.querySelector('.mfx .details').textContent"
SAID = "[...document.querySelectorAll('.mfx .bar span')].map((x) => x.textContent).join(' | ')"
FOCUS = "document.activeElement.closest('.row')?.getAttribute('aria-label') ?? document.activeElement.tagName"
FOUND = "document.querySelectorAll('.mfx .found button').length"
IMAGES = "[...document.querySelectorAll('.jp-OutputArea-output img')]"
PICTURES = f"{IMAGES}.filter((x) => x.naturalWidth > 400 && x.alt.includes('Train_')).length"
LOST = "/Error displaying widget/.test(document.querySelector('.jp-Notebook').innerText)"
KEY = "document.querySelector('.mfx').innerText.includes('values kept for backward')"
INK = "getComputedStyle(document.querySelector('.mfx td')).color"
KEEP = '.mfx button[aria-label^="put a still picture"]'
KEPT = "document.querySelector('.mfx [role=status]').textContent.startsWith('Kept')"
FORGET = "(document.querySelector('.mfx [role=status]').textContent = '')"  # the next answer repeats it
FOCUSED = "document.activeElement.textContent === 'keep as picture'"
SEARCHED = (
    "[document.querySelector('.mfx input[type=search]').value, document.querySelectorAll('.mfx .found li').length]"
)
SEARCH = [["focus", ".mfx input[type=search]"]]
SHOWN = [["run"], ["until", f"{ROWS} > 3"], ["idle"], ["see", ".mfx"]]


def step(way):
    return f'.mfx button[aria-label="one instruction {way}"]'


def box(name, column=0):
    return f'.mfx .row[aria-label^="{name}"] g[data-column="{column}"]'


def sign(name):
    """Return the triangle of a module."""
    return f'.mfx .row[aria-label^="{name}"] .sign'


def test_open_look_search_and_step(lab, tmp_path):
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer"), [
        *SHOWN, ["eval", ROWS], ["eval", KEY], ["shot", "1-open"],
        ["click", box("conv1")], ["until", f"{ROWS} > 20"], ["shot", "2-conv1"],
        ["click", box("conv2d", 1)], ["until", f"{TOLD}.includes('conv2d_weight_grad')"], ["eval", TOLD],
        ["click", box("weight", 2)], ["until", f"{TOLD}.includes('gradient norm')"],
        ["eval", "document.querySelectorAll('.mfx .details svg rect').length"], ["shot", "3-weight"],
        ["click", sign("conv1")], ["until", f"{ROWS} < 20"], *SEARCH, ["press", "f"], ["press", "c"], ["press", "2"],
        ["press", "Enter"], ["until", f"{TOLD}.includes('model.fc2')"], ["shot", "4-found"], ["eval", SEARCHED],
        ["click", step("on")], ["until", f"{TOLD}.startsWith('Instruction 1:')"],
        ["click", step("on")], ["until", f"{TOLD}.startsWith('Instruction 2:')"],
        ["click", step("back")], ["until", f"{TOLD}.startsWith('Instruction 1:')"], ["shot", "5-step"],
        ["click", box("conv1", 1)], ["until", f"{TOLD}.startsWith('conv1')"],
        ["click", step("on")], ["until", f"{TOLD}.startsWith('Instruction 2:')"],
        ["focus", '.mfx .row[tabindex="0"]'], ["press", "["], ["until", f"{SAID}.includes('after reduce_memory')"],
        ["wait", 500], ["eval", SAID], ["shot", "6-pass"],
        *[["click", KEEP], ["until", f"{KEPT} && {FOCUSED} && !{FORGET}"]] * 2,
        ["click", KEEP], ["until", f"{KEPT} && {FOCUSED}"], ["eval", ROWS], ["shot", "7-kept"],
        ["click", box("fc2")], ["until", f"!{KEPT} && {TOLD}.startsWith('fc2')"],
        ["save"], ["wait", 500], ["restart"], ["reload"], ["until", f"{PICTURES} == 1"], ["wait", 500], ["save"],
        ["reopen"],
        ["eval", PICTURES], ["eval", LOST], ["eval", f"{IMAGES}.map((x) => x.alt).join()"], ["shot", "8-reopened"],
    ])  # fmt: skip
    rows, key, told, bars, searched, said, kept, pictures, lost, alt = report["values"]
    assert kept > 5 and "after reduce_memory" in alt, "the live one continues; the saved one is unchanged"
    assert report["errors"] == [] and 10 < rows <= 25 and searched == ["", 0], (
        "the hit is shown, and the search is over"
    )
    assert "output" in told and bars > 20 and "moved" in said and "of memory" in said
    assert key and pictures == 1 and not lost


def test_details_stay_in_view_and_clicks_select(lab, tmp_path):
    """In a laptop's window: the selected box, with its cards below or beside it; a second click closes nothing, only
    the triangle does, and Escape and the button leave the details.
    """
    view = """(() => {
      const at = (node) => { const r = node.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
      return ['.mfx .scroll', '.mfx h4', '.mfx rect[stroke-width="3"]'].map((css) => at(document.querySelector(css)));
    })()"""
    whole = f"{TOLD}.startsWith('The whole step')"
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-laptop"), [
        ["size", 1280, 720], *SHOWN, ["click", box("conv1")], ["until", f"{ROWS} > 20"], ["wait", 600], ["eval", ROWS],
        ["click", box("conv1")], ["wait", 600], ["eval", ROWS], ["eval", TOLD], ["eval", view],
        ["double", box("conv1")], ["wait", 800], ["eval", ROWS], ["eval", TOLD],
        ["press", "Escape"], ["until", whole], ["eval", FOCUS], ["click", box("fc1")], ["until", f"{TOLD}.startsWith('fc1')"],
        ["click", ".mfx .leave"], ["until", whole], ["double", sign("conv1")], ["until", f"{ROWS} < 22"], ["wait", 600],
        ["eval", ROWS], ["double", sign("conv1")], ["until", f"{ROWS} > 22"],
        *[["click", step("on")]] * 20, ["until", f"{TOLD}.startsWith('Instruction 20:')"], ["wait", 600], ["eval", view], ["shot", "step"],
        ["size", 900, 720], ["wait", 300], ["click", step("on")], ["wait", 600], ["eval", view], ["shot", "narrow"],
        ["size", 1700, 720], ["wait", 300], ["click", step("on")], ["wait", 600], ["eval", view], ["shot", "wide"],
    ])  # fmt: skip
    opened, still, told, clicked, again, shown, focus, closed, stepped, narrow, wide = report["values"]
    assert opened == still == again > 20 and told.startswith("conv1") and "values of the result" in told
    assert shown == told and focus.startswith("conv1") and closed < opened, "fc1 is open, conv1 closed"
    for (left, top, right, bottom), name, chosen in (clicked, stepped, narrow, wide):
        assert top <= chosen[1] and chosen[3] <= bottom and chosen[0] < right, "the box is visible in the picture"
        assert name[1] >= 90 and bottom < 700, "and both are in the window"
    below, beside = ([view[1][at] > view[0][at + 2] for view in (clicked, stepped, narrow, wide)] for at in (1, 0))
    assert below[2] and beside[3] and below[:2] == [not x for x in beside[:2]], (
        "Notebook 7 has more room in the same window"
    )
    assert PLACE.startswith("notebooks") or below[:2] == [True, True]


@pytest.mark.parametrize("fonts", ["browser", "dejavu"])
def test_all_columns_are_visible_with_their_names(lab, fonts, request, tmp_path):
    """In a window of 1280 pixels, with long shapes: no horizontal scrolling, and no text exceeds its box."""
    lab = *lab[:2], request.getfixturevalue(fonts)
    seen = """(() => {
      const scroll = document.querySelector('.mfx .scroll'), frame = scroll.getBoundingClientRect();
      const heads = [...document.querySelectorAll('.mfx .heads text')].map((x) => x.getBoundingClientRect());
      let out = [];
      for (const box of document.querySelectorAll('.mfx .row g[data-column]')) {
        const own = box.querySelector('rect').getBoundingClientRect();
        for (const text of box.querySelectorAll('text')) if (text.getBoundingClientRect().right > own.right + 1) out.push(text.textContent);
      }
      return [scroll.scrollWidth - scroll.clientWidth, scroll.scrollLeft,
              heads.filter((x) => x.top >= frame.top && x.right <= frame.right).length, out];
    })()"""
    down = "(() => { const scroll = document.querySelector('.mfx .scroll'); scroll.scrollTop = 500; return scroll.scrollTop; })()"
    only = (
        LENET
        + "class Only(nn.Graph):\n    def __init__(self):\n        super().__init__()\n        self.model = lenet()\n"
        "    def build(self, x):\n        return self.model(x)\nexplore(Only(), x)"
    )
    write(lab[1], MODEL + LENET.replace("(8", "(50"))
    report = act(lab, shots_folder(tmp_path, f"explorer-fits-{fonts}"), [
        ["size", 1280, 720], *SHOWN, ["eval", seen], ["eval", down], ["eval", seen], ["shot", "down"],
        ["click", box("conv1")], ["until", f"{ROWS} > 20"], ["wait", 600], ["eval", seen], ["shot", "opened"],
        *[["click", step("on")]] * 9, ["wait", 600], ["eval", seen], ["shot", "stepped"],
        ["click", box("pool1", 1)], ["until", f"{TOLD}.startsWith('pool1')"], ["shot", "maps"],
        ["eval", "document.querySelector('.mfx .maps').getAttribute('aria-label')"],
    ])  # fmt: skip
    first, top, *others, maps = report["values"]
    assert maps.startswith("maps of outgoing gradient: maps [0, 0] to [0, 31] of 50 × 32, each 28 × 28"), maps
    assert top > 100, "the column names stay while the picture is scrolled down"
    assert all(view == [0, 0, 3, []] for view in (first, *others)), report["values"]
    write(lab[1], MODEL + only)
    report = act(lab, shots_folder(tmp_path, f"explorer-fits-{fonts}"), [*SHOWN, ["eval", seen], ["eval", KEY], ["shot", "forward"],
        ["eval", "document.querySelector('.mfx .details').getBoundingClientRect().left"],
        ["eval", "document.querySelector('.mfx .scroll').getBoundingClientRect().right"]])  # fmt: skip
    view, key, told, right = report["values"]
    assert view == [0, 0, 2, []] and told > right and not key, "two columns, with the details beside them"


def test_zoom_pan_and_fit(lab, tmp_path):
    """By buttons, by keys and by the wheel; a drag pans and is not a click."""
    at = """(() => { const scroll = document.querySelector('.mfx .scroll'), svg = scroll.querySelector('svg[role=tree]');
      return [svg.getBoundingClientRect().width, svg.viewBox.baseVal.width, scroll.scrollTop, scroll.scrollHeight - scroll.clientHeight]; })()"""
    wheel = """(() => { const scroll = document.querySelector('.mfx .scroll'), r = scroll.getBoundingClientRect();
      scroll.dispatchEvent(new WheelEvent('wheel', { deltaY: -200, ctrlKey: true, bubbles: true, cancelable: true, clientX: r.left + 50, clientY: r.top + 50 })); })()"""
    drag = """(() => { const scroll = document.querySelector('.mfx .scroll'), row = scroll.querySelectorAll('.row')[3];
      const before = scroll.scrollTop, r = row.getBoundingClientRect(), point = (type, y) => row.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, buttons: 1, pointerId: 1, pointerType: 'mouse', clientX: r.left, clientY: r.top - y }));
      scroll.setPointerCapture = () => {}; point('pointerdown', 0); point('pointermove', 40); point('pointerup', 40);
      row.querySelector('rect').dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
      return scroll.scrollTop - before; })()"""
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-zoom"), [
        ["size", 1280, 720], *SHOWN, ["eval", at],
        ["click", ".mfx .tools button[title^=larger]"], ["eval", at], ["press", "+"], ["eval", at], ["shot", "larger"],
        ["press", "0"], ["eval", at], ["press", "f"], ["wait", 200], ["eval", at], ["shot", "fit"],
        ["press", "0"], ["eval", ROWS], ["eval", wheel], ["eval", at], ["press", "0"], ["press", "Home"], ["wait", 500],
        ["eval", drag], ["wait", 500], ["eval", ROWS], ["press", "?"],
        ["eval", "[...document.querySelectorAll('.mfx .keys dt')].filter((x) => x.offsetHeight).length"],
        ["see", ".mfx .keys"], ["shot", "keys"],
    ])  # fmt: skip
    natural, larger, again, back, fit, rows, _, wheeled, dragged, still, keys = report["values"]
    width = natural[1]
    assert [round(view[0] / width, 2) for view in (natural, larger, again, back)] == [1, 1.25, 1.56, 1]
    assert fit[0] < width and fit[3] <= 1 and wheeled[0] > 1.5 * width, (
        "everything is visible; then larger at the pointer"
    )
    assert dragged == 40 and rows == still and keys >= 15 and report["errors"] == []


def test_maps_are_enlarged_and_closed_by_keys(lab, tmp_path):
    """With the scale of their colors and the element under the pointer; the focus returns to its previous place."""
    large = """(() => { const dialog = document.querySelector('.mfx dialog[open]'), canvas = dialog?.querySelector('canvas');
      return dialog && [dialog.querySelector('.range').textContent, dialog.querySelector('.readout').textContent,
        canvas.getBoundingClientRect().height / canvas.height, dialog.getBoundingClientRect().bottom <= innerHeight]; })()"""
    sizes = (
        """[...document.querySelectorAll('.mfx .map canvas')].map((x) => x.getBoundingClientRect().width / x.width)"""
    )
    readout = "document.querySelector('.mfx .sheet .readout').textContent"
    on = "document.activeElement.getAttribute('aria-label')"
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-maps"), [
        ["size", 1280, 720], *SHOWN, ["click", box("pool1")], ["until", f"{TOLD}.startsWith('pool1')"], ["wait", 500],
        ["eval", sizes], ["hover", ".mfx .map:nth-child(4)", 42, 32], ["eval", readout],
        ["focus", ".mfx .row[aria-label^=pool1]"],
        ["press", "m"], ["until", f"{large} != null"], ["wait", 300], ["eval", large], ["shot", "large"],
        ["press", "ArrowDown"], ["press", "ArrowRight"], ["press", "PageDown"], ["eval", large],
        ["press", "Escape"], ["until", f"{large} == null"], ["eval", FOCUS], ["eval", TOLD],
        ["click", ".mfx .map:nth-child(3)"], ["until", f"{large} != null"], ["eval", large],
        ["click", ".mfx dialog .range button:last-child"], ["until", f"{large} == null"],
        ["focus", ".mfx .map"], ["press", "ArrowRight"], ["press", "ArrowDown"], ["press", "ArrowLeft"], ["eval", on],
        ["press", "Enter"], ["until", f"{large} != null"], ["press", "Escape"], ["until", f"{large} == null"],
        ["click", box("conv2")], ["until", f"{TOLD}.startsWith('conv2')"],
        ["click", ".mfx .row[aria-label^=conv2] ~ .row[aria-label^=weight] g"], ["until", f"{TOLD}.includes('of 64 × 32')"],
        ["eval", readout], ["click", ".mfx .pages button:last-child"], ["until", f"{readout}.includes('[2, 0]')"],
        ["eval", "document.activeElement.dataset.focus"], ["shot", "filters"],
    ])  # fmt: skip
    sizes, read, first, moved, focus, told, third, button, filters, turned = report["values"]
    assert set(sizes) == {5} and len(sizes) == 64, "all 32 maps of 14 × 14 and their gradients, in 70 pixels"
    assert read.startswith("[0, 3] row 6, column 8: ")
    assert first[0].endswith("close (Esc)") and first[1].startswith("[0, 0] row 0, column 0: ") and first[3]
    assert first[2] == round(first[2]) > 20, "crisp pixels"
    assert moved[1].startswith("[0, 1] row 1, column 1: ") and third[1].startswith("[0, 2] row ")
    assert focus.startswith("pool1") and told.startswith("pool1") and report["errors"] == []
    assert button == "enlarge map [0, 11]" or button.startswith("enlarge map [0, 1"), button
    assert filters.startswith("maps [0, 0] to [1, 31] of 64 × 32") and turned == "weight now the next maps"


def test_value_gradient_and_update_are_seen_without_scrolling(lab, tmp_path):
    """In a cell of 900 pixels; only the picture scrolls by itself."""
    seen = """(() => { const cards = [...document.querySelectorAll('.mfx .card')];
      const shown = (x) => { const r = x.getBoundingClientRect(); return r.top >= 90 && r.bottom <= innerHeight - 25; };
      return cards.filter(shown).map((x) => x.querySelector('b').textContent); })()"""
    inner = """[...document.querySelectorAll('.mfx, .mfx *')].filter((x) =>
      /auto|scroll/.test(getComputedStyle(x).overflowY) && x.scrollHeight > x.clientHeight + 1).map((x) => x.className)"""
    width = "document.querySelector('.jp-OutputArea-output .mfx').getBoundingClientRect().width"
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-fold"), [
        ["size", 1330, 720], *SHOWN, ["eval", width], ["click", box("conv1")], ["until", f"{ROWS} > 20"], ["wait", 700],
        ["click", box("conv2d")], ["until", f"{TOLD}.includes('conv2d-0')"], ["wait", 700], ["eval", seen], ["shot", "op"],
        ["click", box("weight", 2)], ["until", f"{TOLD}.includes('update norm')"], ["wait", 700], ["eval", seen],
        ["eval", inner], ["shot", "weight"],
    ])  # fmt: skip
    wide, operation, weight, scrolled = report["values"]
    assert 780 < wide < 920 and operation == ["values", "gradient of the result"]
    assert weight == ["weight now", "gradient of weight", "update of weight", "momentum_buffer now"]
    assert scrolled == ["scroll"] and report["errors"] == []


def test_another_view_selects_an_operation_by_its_name(lab, tmp_path):
    """By an event on the explorer's element, as a line of a debug tree sends it."""
    send = """(name) => document.querySelector('.mfx[data-graph^="Train_"]').dispatchEvent(
      new CustomEvent('minflow-select', { detail: { name } }))"""
    status = "document.querySelector('.mfx [role=status]').textContent"
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-select"), [
        *SHOWN, ["eval", f"({send})('model.fc1-matmul-0')"], ["until", f"{TOLD}.startsWith('model.fc1-matmul-0')"],
        ["eval", FOCUS], ["eval", f"({send})('model.fc9')"], ["until", f"{status}.includes('fc9')"], ["eval", TOLD],
        ["eval", f"({send})('model.conv1.weight')"], ["until", f"{TOLD}.startsWith('weight')"], ["shot", "selected"],
    ])  # fmt: skip
    _, focus, _, told, _ = report["values"]
    assert focus.startswith("matmul") and told.startswith("model.fc1-matmul-0") and report["errors"] == []


def test_keyboard_only_operation(lab, tmp_path):
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-keys"), [
        *SHOWN, ["focus", '.mfx .row[tabindex="0"]'],
        ["press", "ArrowDown"], ["press", "ArrowDown"], ["wait", 400], ["eval", FOCUS],
        ["press", "ArrowRight"], ["until", f"{ROWS} > 18"], ["wait", 200], ["eval", FOCUS],
        ["press", "Shift+ArrowRight"], ["wait", 400], ["eval", TOLD],
        ["press", "ArrowLeft"], ["until", f"{ROWS} < 20"],
        ["press", "."], ["until", f"{TOLD}.startsWith('Instruction 1:')"],
        ["press", "."], ["until", f"{TOLD}.startsWith('Instruction 2:')"],
        ["press", ","], ["until", f"{TOLD}.startsWith('Instruction 1:')"],
        ["press", "/"], ["eval", "document.activeElement.type"],
        ["eval", "window.jupyterapp.shell.currentWidget.content.widgets.length"], ["shot", "keys"],
    ])  # fmt: skip
    on, after, told, field, cells = report["values"]
    assert on.startswith("conv1") and after.startswith("conv1") and "conv1" in told and field == "search"
    assert cells == 1, "a key reached the notebook"


def test_a_composite_operation_opens_in_place(lab, dejavu, tmp_path):
    """By a click and by keys, with shapes and with values inside; it closes again, and its numbers stay."""
    lab = *lab[:2], dejavu
    write(lab[1], MODEL + COMPOSITE)
    row = "document.querySelector('.mfx .row[aria-label^=\"layer_norm\"]').getAttribute"
    report = act(lab, shots_folder(tmp_path, "explorer-composite"), [
        ["size", 1280, 720], *SHOWN, ["click", box("norm")], ["until", f"{ROWS} > 9"], ["wait", 300],
        ["eval", f"{row}('aria-expanded')"], ["eval", ROWS], ["shot", "1-closed"],
        ["click", box("layer_norm")], ["until", f"{row}('aria-expanded') == 'true'"], ["wait", 600],
        ["eval", ROWS], ["eval", TOLD], ["shot", "2-open"],
        ["click", box("rsqrt")], ["until", f"{TOLD}.includes('rsqrt-0')"], ["wait", 300], ["eval", TOLD],
        ["eval", "document.querySelectorAll('.mfx .details svg rect').length"], ["shot", "3-values"],
        ["press", "ArrowLeft"], ["until", f"{TOLD}.startsWith('layer_norm')"], ["eval", FOCUS],
        ["press", "ArrowLeft"], ["until", f"{row}('aria-expanded') == 'false'"], ["wait", 300], ["eval", ROWS],
        ["press", "Enter"], ["until", f"{row}('aria-expanded') == 'true'"], ["wait", 300],
        ["press", "["], ["until", f"{SAID}.includes('after')"], ["wait", 300], ["eval", f"{row}('aria-expanded')"],
        ["press", "]"], ["until", f"{SAID}.includes('as it runs')"], ["theme", "JupyterLab Dark"], ["wait", 300], ["shot", "4-dark"],
        ["click", sign("layer_norm")], ["until", f"{row}('aria-expanded') == 'false'"], ["eval", ROWS],
    ])  # fmt: skip
    closed, before, opened, told, inside, bars, focus, again, stays, last = report["values"]
    assert closed == "false" and opened == before + 9 and again == last == before and report["errors"] == []
    assert "layer_norm(axes=(-1,), eps=1e-05)" in told and "values of the result" in told
    assert "part of" in inside and "values" in inside and bars > 5
    assert focus.startswith("layer_norm") and stays == "true"


def test_search_ends_with_another_action(lab, tmp_path):
    """Hits stay while they are visited in turn; Escape, stepping and a click on a box end the search."""
    typed = [*SEARCH, ["press", "f"], ["press", "c"], ["until", f"{FOUND} > 1"]]
    hit = ".mfx .found li:nth-child({}) button"
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-search"), [
        *SHOWN, *typed, ["click", hit.format(1)], ["until", f"{TOLD}.includes('model.fc1')"],
        ["eval", "document.activeElement.textContent"],
        ["click", hit.format(2)], ["wait", 500], ["eval", SEARCHED], ["shot", "hits"],
        ["press", ".", ".mfx .row[tabindex='0']"], ["until", f"{TOLD}.startsWith('Instruction 1:')"],
        ["eval", SEARCHED], ["click", box("conv1")], ["until", f"{ROWS} > 20"], ["eval", SEARCHED],
        *typed, ["press", "Escape"], ["until", f"{FOUND} == 0"], ["wait", 500], ["eval", SEARCHED],
        ["click", sign("conv1")], ["until", f"{ROWS} < 23"], ["wait", 300], ["eval", SEARCHED],
    ])  # fmt: skip
    focus, hits, *over = report["values"]
    assert focus.startswith("fc1") and hits[0] == "fc" and hits[1] > 1 and over == [["", 0]] * 4
    assert report["errors"] == []


def test_few_rows_of_a_thousand_layers_are_drawn(lab, tmp_path):
    """benchmarks/explorers.py measures the time of a click."""
    write(lab[1], MODEL + DEEP)
    first = '.mfx .row[data-open="0"] g[data-column="0"]'
    report = act(lab, shots_folder(tmp_path, "explorer-deep"), [
        *SHOWN, ["eval", ROWS], ["click", first], ["until", f"{ROWS} > 10"], ["wait", 300], ["shot", "1"],
        ["click", first], ["until", f"{ROWS} > 20"], ["wait", 300], ["click", first], ["until", f"{ROWS} > 25"],
        ["eval", ROWS], ["shot", "2"],
    ])  # fmt: skip
    rows, more = report["values"]
    assert rows <= 25 and 25 < more < 200


def test_reload_theme_and_a_saved_notebook(lab, tmp_path):
    write(lab[1], MODEL + LENET)
    report = act(lab, shots_folder(tmp_path, "explorer-saved"), [
        *SHOWN, ["click", box("conv1")], ["until", f"{ROWS} > 20"], ["save"], ["reload"], ["until", f"{ROWS} > 20"],
        ["see", ".mfx"], ["click", sign("conv1")], ["until", f"{ROWS} < 20"], ["wait", 300], ["shot", "maps"],
        ["click", box("fc1", 1)], ["until", f"{TOLD}.startsWith('fc1')"], ["theme", "JupyterLab Dark"],
        ["shot", "dark"], ["eval", "getComputedStyle(document.querySelector('.mfx')).backgroundColor"],
        ["eval", INK], ["save"], ["wait", 500], ["reopen"], ["eval", PICTURES], ["eval", LOST], ["shot", "reopened"],
    ])  # fmt: skip
    assert report["values"] == ["rgb(17, 17, 17)", "rgb(255, 255, 255)", 1, False], "the page's colors"


def test_rerun_cells_and_restarted_kernel(lab, tmp_path):
    """Two explorers on a page, each in its own output; a page that is loaded without their kernel has their static
    pictures.
    """
    write(lab[1], MODEL + LENET + "from IPython.display import display\ndisplay(explore(graph))\nexplore(graph, x, y)")
    titles = "document.querySelectorAll('.mfx .title').length"
    still = "document.querySelectorAll('minflow-live img').length"
    said = "[...document.querySelectorAll('.mfx')].map((x) => x.textContent.includes('to step through values')).join()"
    report = act(lab, shots_folder(tmp_path, "explorer-again"), [
        *SHOWN, ["eval", titles], ["eval", said], ["click", box("conv1")], ["until", f"{ROWS} > 35"],
        ["run"], ["idle"], ["until", f"{titles} == 2"], ["wait", 500], ["eval", said], ["eval", still], ["save"],
        ["restart"], ["until", f"{still} == 2 && {titles} == 0"], ["reload"],
        ["until", f"{PICTURES} == 2"], ["wait", 1500], ["eval", titles], ["eval", LOST], ["shot", "restarted"],
        ["run"], ["until", f"{titles} == 2"], ["idle"], ["eval", still],
    ])  # fmt: skip
    assert report["values"] == [2, "true,false", "true,false", 0, 0, False, 0] and report["errors"] == []


FILE = """
import numpy as np
import onnx
from onnx import helper, numpy_helper
from minflow_widgets import explore

def tensor(name, *shape):
    return numpy_helper.from_array(np.random.default_rng(0).normal(size=shape).astype("float32"), name)

branch = lambda kind: helper.make_graph([helper.make_node(kind, ["b"], ["t"])], kind, [], [
    helper.make_tensor_value_info("t", 1, None)])
nodes = [helper.make_node("Conv", ["x", "conv1.weight", "conv1.bias"], ["a"], name="/features/conv1/Conv"),
         helper.make_node("Relu", ["a"], ["b"], name="/features/relu/Relu"),
         helper.make_node("If", ["go"], ["y"], then_branch=branch("Neg"), else_branch=branch("Identity"))]
inputs = [helper.make_tensor_value_info("x", 1, ["batch", 3, 8, 8]), helper.make_tensor_value_info("go", 9, [])]
graph = helper.make_graph(nodes, "net", inputs, [helper.make_tensor_value_info("y", 1, None)],
                          [tensor("conv1.weight", 4, 3, 3, 3), tensor("conv1.bias", 4)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), "net.onnx")
"""


def test_onnx_file_is_explored(lab, tmp_path):
    """Modules open, parameters have values, and there is nothing to step through."""
    write(lab[1], FILE + 'explore("net.onnx")', 'import minflow as flow; flow.onnx.show("net.onnx")')
    controls = "[...document.querySelectorAll('.mfx .bar [hidden]')].filter((x) => !x.offsetParent).length"
    report = act(lab, shots_folder(tmp_path, "explorer-onnx"), [
        *SHOWN, ["shot", "1-open"], ["eval", controls], ["eval", SAID],
        ["click", box("conv1", 2)], ["until", "document.querySelectorAll('.mfx .card').length == 2"], ["shot", "2-weight"],
        ["click", box("If")], ["until", f"{TOLD}.includes('then_branch: 1 operation (Neg)')"], ["eval", TOLD],
        ["shot", "3-if"],
    ])  # fmt: skip
    hidden, said, told = report["values"]
    assert report["errors"] == [] and hidden == 5 and "3 operations" in said
    assert "holds" in told and not any(word in told for word in ("time", "line", "phase"))
