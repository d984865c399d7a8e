"""Error cards, comparison records and debug trees: their contents, and resistance to hostile names."""

import base64
import re
from html.parser import HTMLParser

import pytest

from minflow.diagnosis.card import CardRecord, card_bundle, card_html, card_text
from minflow.diagnosis.notebook import LiveDisplay
from minflow.views.draw import theme
from minflow.views.draw.boxes import diagram_of
from minflow.views.draw.dot import dot_text
from minflow.views.draw.fold import MIN_MODULE_BOXES, NEARBY_BOXES, fold_near_end
from minflow.views.records.graph import GraphRecord, Input, NodeRecord
from minflow.views.records.tape import TapeRecord
from minflow.views.renderers.debug_lines import Line
from minflow.views.renderers.debug_tree import MAX_LINES, debug_bundle, debug_html, plain_text
from minflow.views.renderers.divergence import ComparedOperation, GraphComparison, comparison_html
from minflow.views.text.listing import graph_text
from tests.svg_checks import without_scripts

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></details>",
    "a\nb\x1b[31m",
    "&lt;b&gt;",
    "' onload='x",
    "\\N\\l{|}",
    "😀" * 40,
]


class Tags(HTMLParser):
    """Collects the tags and attributes of a text; true if every open tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.attrs = [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attrs += [name for name, _ in attrs]
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def chain(n, scope=lambda i: "", mark="failed", notes=()):
    """x -> relu -> ... -> the marked node."""
    nodes = [NodeRecord("n0", "input", "x", ("float32[4, 8]",))]
    nodes += [
        NodeRecord(f"n{i}", "op", "relu", ("float32[4, 8]",), (Input("x", f"n{i - 1}"),), scope=scope(i))
        for i in range(1, n)
    ]
    nodes.append(NodeRecord("f", "op", "matmul", (), (Input("a", f"n{n - 1}"),), mark=mark, notes=notes))
    return GraphRecord(tuple(nodes), (), (), "graph")


def test_card_has_four_parts_and_details():
    record = CardRecord(
        "ShapeError in model.fc",
        "linear: 3136 and 512",
        (("fc.weight", "float32[10, 512]"), ("input", "as got")),
        (("input", "float32[4, 3136]"),),
        "input  float32[4, 512]",
        "in model.fc, called at In[1]:3",
        "nn.Linear(3136, 10)",
        "JobError: the work of step 3",
        chain(3),
    )
    text = card_text(record).split("\n")
    assert text[0] == "ShapeError in model.fc" and text[1] == "  linear: 3136 and 512"
    rows = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in text[2:8]]
    assert rows == [
        ["got", "input  float32[4, 3136]"], ["with", "fc.weight  float32[10, 512]"],
        ["expected", "input  float32[4, 512]"],
        ["where", "in model.fc, called at In[1]:3"], ["try", "nn.Linear(3136, 10)"],
        ["came as", "JobError: the work of step 3"],
    ]  # fmt: skip
    html = card_html(record)
    red = "red: ShapeError in model.fc, got input float32[4, 3136], expected input float32[4, 512]"
    assert f'alt="graph; {red}"' in html
    assert set(card_bundle(record)) == {"text/html", "text/plain"}


def test_failing_node_is_marked_by_sign_shape_and_color():
    record = chain(3, notes=("got a float32[4, 8]", "expected a float32[4, 9]", "try: " + "long words " * 40))
    line = next(line for line in dot_text(diagram_of(record)).split("\n") if line.startswith('  "f" ['))
    assert "\u2717 matmul" in line and "penwidth=3" in line and theme.RED in line and "expected a float32[4, 9]" in line
    assert "..." in line and len(line) < 700
    assert graph_text(record).split("\n")[-1].startswith("\u2717 - = matmul(%2) -> fails")


@pytest.mark.parametrize("scope", [lambda i: "", lambda i: f"model.{i // 4}", lambda i: "model"])
def test_picture_of_a_large_graph_ends_at_the_failing_node(scope):
    record = fold_near_end(chain(300, scope))
    assert len(record.nodes) <= NEARBY_BOXES and [n.mark for n in record.nodes].count("failed") == 1
    failing = next(n for n in record.nodes if n.mark == "failed")
    assert failing.kind == "op" and failing.inputs[0].ref in {n.id for n in record.nodes}
    assert sum(n.count for n in record.nodes if n.kind != "input") >= 299


def test_tape_ends_at_the_failing_node():
    graph = chain(100)
    tape = TapeRecord(graph.nodes, "f", 0, "the tape up to the failed operation")
    assert fold_near_end(tape).nodes[-1].mark == "failed"
    assert "matmul fails" in card_text(CardRecord("E", "what", graph=tape))


@pytest.mark.parametrize("evil", EVIL)
def test_hostile_names_are_escaped(evil):
    node = NodeRecord(
        "f", "op", evil, (), (Input(evil, "n0"),), evil, f"model.{evil}", evil, mark="failed", notes=(evil,), count=3
    )
    graph = GraphRecord((NodeRecord("n0", "input", evil, ("float32[2]",)), node), (), (), evil)
    card = card_html(
        CardRecord(
            evil,
            evil,
            ((evil, evil),),
            (("x" + evil, evil),),
            evil,
            evil,
            evil,
            evil,
            graph,
            evil,
            (evil, evil),
            (evil, f"{evil}\n{evil}"),
        ),
        evil,
    )
    row = ComparedOperation(evil, evil, evil, "differs", evil, float("nan"))
    part = comparison_html(GraphComparison(evil, (row,), False, 0, ((evil, evil),), None, (evil,), (None, 1e-5), graph))
    lines = [Line(0, evil), Line(1, f"(MODULE:{evil}:{evil}())", error=f"{evil}\nat {evil}")]
    lines.append(Line(2, f"(OPERATOR: {evil}({evil}) -> (float32[2]))", (compile("1", evil, "eval"), 0)))
    tree = debug_html(evil, lines, evil)
    for html in (card, part, tree):
        tags = Tags(without_scripts(html))
        assert set(tags.found) <= {"div", "table", "tr", "td", "br", "img", "details", "summary", "pre", "span", "b"}
        assert set(tags.attrs) <= {"style", "alt", "src", "open", "class", "title"} and "\x1b" not in html
    svg = base64.b64decode(re.search(r"base64,([^\"]*)", card)[1]).decode()
    assert "<script" not in svg and "onerror=alert" not in re.sub(r">[^<]*<", "><", svg)


def to_lines(pairs):
    return [Line(*pair) for pair in pairs]


def test_debug_tree_has_every_line_and_counts_children():
    lines = [(0, "(GRAPH:G_0:G) start building graph modules."), (1, "(MODULE:model:Net())"), (2,
              "(MODULE:model.fc:Linear(4, 2))"),
             (3, "(OPERATOR: model.fc-matmul-0(x: float32[3, 4]) -> (float32[3, 2]), device=cpu:0, sbp=(B))"),
             (4, "at net.py:3"),
             (2, "(OUTPUT:_model-output_0:tensor(...))"), (0, "(GRAPH:G_0:G) end building graph modules."), (0,
              "done\n")]  # fmt: skip
    html = debug_html("G_0", to_lines(lines))
    Tags(html)
    assert "2 modules, 1 operation" in html and "end building" not in html and html.count("<details") == 3
    assert "matmul-0</b>(x: float32[3, 4]) -&gt; (float32[3, 2])<" in html and ">graph modules <" in html
    assert plain_text(to_lines(lines)).split("\n")[:4] == [
        "(GRAPH:G_0:G) start building graph modules.",
        "  (MODULE:model:Net())",
        "    (MODULE:model.fc:Linear(4, 2))",
        "      (OPERATOR: model.fc-matmul-0(x: float32[3, 4]) -> (float32[3, 2]), device=cpu:0, sbp=(B))",
    ]
    assert debug_bundle("G_0", to_lines(lines))["text/plain"] == plain_text(to_lines(lines))


def test_backward_and_optimizer_are_one_branch_each():
    names = [f"fc-matmul_grad-{i}" for i in range(9)]
    ops = [
        (1, f"(OPERATOR: model.{name}(x: float32[2]) -> (float32[2]), {phase}, device=cpu:0, sbp=(B))")
        for name, phase in [*((name, "backward") for name in names), ("fc.weight_optimizer", "optimizer")]
    ]
    html = debug_html("G_0", to_lines([(0, "(GRAPH:G_0:G) start building graph modules."), *ops]))
    assert html.count("<details") == 3 and html.count("<details open>") == 1 and ">backward <" in html
    assert "9 operations" in html


def test_large_debug_tree_is_truncated_and_deep_one_needs_no_recursion():
    many = [(i % 3, f"(MODULE:m{i}:X())") for i in range(MAX_LINES + 10)]
    html = debug_html("G", to_lines(many))
    assert (
        "10 lines more" in html and f"m{MAX_LINES - 1}<" in html and f"m{MAX_LINES + 9}" in plain_text(to_lines(many))
    )
    deep = debug_html("G", [Line(i, f"line {i}") for i in range(2000)])
    assert deep.count("<details") == deep.count("</details>") == 1999


def test_debug_tree_truncates_a_huge_line_in_the_middle():
    html = debug_html(
        "G",
        to_lines(
            [
                (0, "(GRAPH:G_0:G) start"),
                (1, f"(MODULE:big:Big({'<i>y</i>' * 100_000}))"),
                (2, "(MODULE:big.last:X())"),
            ]
        ),
    )
    assert len(html) < 10_000 and "<b>big</b>: Big(" in html and " ... " in html and "last</b>: X()" in html


class Handle:
    def __init__(self, log, clock):
        self.log, self.clock = log, clock

    def display(self, bundle, raw):
        self.log.append(("display", self.clock(), bundle))

    update = display


@pytest.fixture
def shown(monkeypatch):
    """The displays (verb, time, bundle), and the clock."""
    display = pytest.importorskip("IPython.display")
    log, now = [], [0.0]
    monkeypatch.setattr(display, "DisplayHandle", lambda: Handle(log, lambda: now[0]))
    return log, now


def test_display_updates_at_most_ten_times_a_second_plus_the_last(shown, monkeypatch):
    log, now = shown
    monkeypatch.setenv("MINFLOW_LIVE", "1")
    told = []
    changing = LiveDisplay(lambda: {"text/plain": f"{len(told)}"}, clock=lambda: now[0])
    for _ in range(1000):
        told.append(1)
        changing.update()
        now[0] += 0.001
    assert 8 <= len(log) <= 11
    changing.update(last=True)
    assert log[-1][2] == {"text/plain": "1000"} and changing.updates == len(log)
    big = LiveDisplay(lambda: {"text/plain": "x" * 4_000_000}, clock=lambda: now[0])
    start = len(log)
    for _ in range(100):
        big.update()
        now[0] += 0.1
    assert len(log) - start == 1, "a large tree is sent less often: 10 s at 400 kB per second"


def test_without_live_displays_only_the_end_is_shown(shown, monkeypatch):
    log, now = shown
    monkeypatch.setenv("MINFLOW_LIVE", "0")
    changing = LiveDisplay(lambda: {"text/plain": "x"}, clock=lambda: now[0])
    for _ in range(10):
        changing.update()
        now[0] += 1
    assert log == []
    changing.update(last=True)
    assert len(log) == 1


def test_huge_parts_are_truncated():
    lines = "\n".join(f"line {i}" for i in range(100_000))
    values = tuple((f"value {i}", "x" * 100_000) for i in range(1000))
    record = CardRecord(
        "Error in " + "model." * 10_000 + "last", lines, values, (), "e" * 10**6, "in " + "a." * 10**6 + "end", lines
    )
    bundle = card_bundle(record)
    assert len(bundle["text/html"]) < 120_000 and len(bundle["text/plain"]) < 140_000
    for text in bundle.values():
        assert "model.last" in text and ".end" in text, "both ends of a long name are shown"
        assert "... 980 more" in text and "line 3" in text and "line 50000" not in text


def test_picture_of_a_thousand_layers_keeps_the_last_ones():
    record = fold_near_end(chain(1000, lambda i: f"model.{i}"))
    assert MIN_MODULE_BOXES <= len(record.nodes) <= NEARBY_BOXES and record.nodes[-1].mark == "failed"
    assert {n.scope for n in record.nodes} >= {"model.999", "model.995"}


def test_long_code_wraps_at_its_own_indent():
    code = "for batch in loader(" + "a_long_argument=1, " * 8 + "):"
    lines = card_text(CardRecord("CallError", "what", where="at In[2]:1", code=code)).split("\n")
    assert lines[3].startswith(" " * 16 + "for batch") and lines[4].startswith(" " * 16 + "a_long")
