"""Hostile names in every view of tests/hostile_views.py, in a real JupyterLab: nothing runs, nothing is injected.

Two notebooks in one: every output with a harmless name precedes the one with the hostile name, and both must have the
same elements. Trusted (signed, as if this Lab had created it) and not trusted; live widgets with a kernel.
"""

import nbformat
import pytest
from hostile_views import LIVE, NAMES, VIEWS, bundles, harmless, shows
from nbformat.sign import NotebookNotary
from pages import TOP, act, shots_folder, write

from minflow.views.draw import engines as engines
from tests.cases import Cases

pytestmark = pytest.mark.browser
PARTS = [list(VIEWS)[i::6] for i in range(6)]  # a page has hundreds of pictures
TIMED = {"timeline", "timeline that was live"}
WRAPPED = {"file name", "ONNX file"}  # lines of a picture: their number depends on the width of the letters in a name
# Returns elements with their attribute names for each output of a cell. Lab itself turns URLs in plain text into links;
# whether a box has a tooltip depends on the width of its name.
LOOK = """(() => {
    const parts = (output) => [...output.querySelectorAll('*')].filter((e) => !e.closest('[data-mime-type="text/plain"] a'))
        .filter((e) => e.localName !== 'title' || e.attributes.length || e.children.length)
        .map((e) => e.localName + ' ' + [...e.attributes].map((a) => a.name).filter((a) => a !== 'open').sort().join(' '));
    const told = (output) => (output.textContent + [...output.querySelectorAll('[alt], [aria-label], [title]')]
        .map((e) => ['alt', 'aria-label', 'title'].map((a) => e.getAttribute(a) ?? '').join(' ')).join(' ')).replace(/\\s/g, '');
    return [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')].map((cell) =>
        [...cell.querySelectorAll('.jp-OutputArea-output')].map((output) => [parts(output), told(output).slice(0, 40000)]));
})()"""
HURT = """(() => {
    const all = [...document.querySelectorAll('.jp-OutputArea-output *')], images = all.filter((e) => e.localName === 'img');
    const never = ['script', 'iframe', 'object', 'embed', 'form', 'base', 'link', 'meta'];
    const ours = all.filter((e) => !e.closest('[data-mime-type="text/plain"], [data-mime-type^="application/vnd.jupyter"]'));
    return {
        ran: window.__pwned ?? null,
        handlers: all.filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length,
        never: all.filter((e) => never.includes(e.localName) && !e.textContent.startsWith('(()=>{const box=document.currentScript')).length,
        links: ours.filter((e) => e.localName === 'a').map((a) => a.getAttribute('href')),
        math: all.filter((e) => e.localName.startsWith('mjx-') || e.localName === 'math').length,
        images: images.length + document.querySelectorAll('.jp-OutputArea-output [role=group] > svg').length,
        broken: images.filter((i) => !i.naturalWidth).map((i) => i.src.slice(0, 60)),
        foreign: all.filter((e) => e.hasAttribute('src') && !e.getAttribute('src').startsWith('data:image/')).length,
        lost: /Error displaying widget|model not found/i.test(document.querySelector('.jp-Notebook').innerText),
    };
})()"""
LOADED = "[...document.querySelectorAll('.jp-OutputArea-output img')].every((i) => i.complete)"
UNHURT = {"ran": None, "handlers": 0, "never": 0, "links": [], "math": 0, "broken": [], "foreign": 0, "lost": False}


def by_name(shown):
    """Return the outputs of each name."""
    each = len(shown) // len(NAMES)
    assert len(shown) == each * len(NAMES) and each >= 2
    return [shown[k * each : (k + 1) * each] for k in range(len(NAMES))]


def compare(name, usual, hostile, timed=None, wrapped=False):
    """Assert that outputs with a hostile name have the same elements as with a harmless one, and contain the name.

    timed: elements of all outputs with harmless names, if run times decide which an output has.  wrapped: the number of
    elements depends on the width of the letters.
    """
    for (plain, _), (parts, _) in zip(usual, hostile, strict=True):
        same = set(parts) == set(plain) if wrapped else parts == plain
        assert same if timed is None else set(parts) <= timed, (name, set(parts) - (timed or set(plain)))
    assert any(shows(text, name) for _, text in hostile), name


def unhurt(report, expected=UNHURT) -> dict:
    """Assert that nothing ran and nothing was fetched; return the counts."""
    seen = report["values"][0]
    assert {key: seen[key] for key in expected} == expected
    assert report["dialogs"] == [] and report["errors"] == []
    # The second: Notebook 7's own, with any notebook. The third: more than anywidget's two seconds, on a busy machine.
    known = "Failed to load resource", "(reading 'schema')", "[anywidget] Failed to initialize model."
    wrong = [line for line in report["console"] if not any(part in line for part in known)]
    assert wrong == [], wrong
    return seen


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_saved_outputs(lab, every_output, home, tmp_path, monkeypatch, part):
    monkeypatch.setattr(engines, "ENGINES", dict.fromkeys(engines.ENGINES, engines.layout_svg))
    cells = []
    for what in PARTS[part]:
        outputs = []
        for name in NAMES.values():
            for pair in zip(bundles(what, harmless(name)), bundles(what, name)):
                outputs += [nbformat.v4.new_output("display_data", data=bundle) for bundle in pair]
        cells.append(nbformat.v4.new_code_cell(f"# {what}", outputs=outputs, execution_count=1))
    notebook = write(lab[1], *cells)
    nbformat.validate(notebook)
    with Cases() as case:
        for trusted in (False, True):
            if trusted:
                NotebookNotary(data_dir=str(home / "data")).sign(notebook)
            report = act(
                lab,
                shots_folder(tmp_path, f"hostile-{part}-{'trusted' if trusted else 'untrusted'}"),
                [
                    ["wait", 1500],
                    ["until", LOADED],
                    ["eval", HURT],
                    ["eval", LOOK],
                    ["shot", "1"],
                    ["eval", "window.jupyterapp.shell.currentWidget.model.cells.get(0).trusted"],
                ],
                seconds=120,
            )
            assert report["values"][2] is trusted
            assert unhurt(report)["images"] > 50
            for what, cell, shown in zip(PARTS[part], cells, report["values"][1]):
                with case(f"{what}, trusted={trusted}"):
                    assert len(shown) == len(cell.outputs)
                    timed = set().union(*[parts for parts, _ in shown[::2]]) if what in TIMED else None
                    for name, outputs in zip(NAMES.values(), by_name(shown)):
                        compare(name, outputs[::2], outputs[1::2], timed, what in WRAPPED)


CELL = f"""
import sys
sys.path.insert(0, {str(TOP / "tests")!r})
from hostile_views import LIVE, NAMES, harmless
from minflow_widgets.explorer import explorer
explorer.MAX_LIVE_EXPLORERS = 2 * len(NAMES)  # live at once
kept = []
for name in NAMES.values():
    kept += [LIVE[what](harmless(name)), LIVE[what](name)]
"""


@pytest.mark.parametrize("what", LIVE)
def test_live_widgets(lab, every_output, tmp_path, what):
    write(lab[1], f"what = {what!r}{CELL}")
    widgets = (
        "document.querySelectorAll('.jp-OutputArea-output :is(canvas, .mfx):not(.jp-RenderedHTMLCommon canvas)').length"
    )
    report = act(
        lab,
        shots_folder(tmp_path, f"hostile-live-{what}"),
        [
            ["run"],
            ["until", f"{widgets} >= {2 * len(NAMES)}"],
            ["idle"],
            ["wait", 1500],
            ["eval", HURT],
            ["eval", LOOK],
            ["shot", "1"],
        ],
        seconds=120,
    )
    unhurt(report)
    for name, outputs in zip(NAMES.values(), by_name(report["values"][1][0])):
        half = len(outputs) // 2
        compare(name, outputs[:half], outputs[half:])
