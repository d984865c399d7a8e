"""Trees of a build: facts that are written once, branches that are open, places of the program, and a bounded cost."""

import re

import pytest

from minflow.views.renderers.debug_lines import Line, line_html, shared_facts
from minflow.views.renderers.debug_tree import (
    FIRST_LINES,
    LATEST_LINES,
    debug_bundle,
    debug_html,
    latest_lines,
    live_bundle,
)
from tests.cases import Cases

HEAD = "(GRAPH:G_0:G)"
ON_CPU = "device=cpu:0, sbp=(B)"
LAZY = "tensor(..., is_lazy='True', size=(3, 4), dtype=minflow.float32)"
# as the code of a cell: its third line is `y = f(x)`
CODE = compile("\n\ny = f(x)", "net.py", "exec")
WHERE = (CODE, next(start for start, _, line in CODE.co_lines() if line == 3))


def module(name, indent=1, **more):
    return [Line(indent, f"(MODULE:{name}:Linear(4, 4))", **more)] + [
        Line(indent + 1, f"({kind}:_{name}-{kind.lower()}_0:{LAZY})") for kind in ("INPUT", "OUTPUT")
    ]


def operation(name, indent=2, facts=ON_CPU, **more):
    return Line(indent, f"(OPERATOR: {name}(x: float32[3, 4]) -> (float32[3, 4]), {facts})", **more)


def text_of(html):
    return re.sub(r"<[^>]*>", "", html.replace("&#x27;", "'").replace("&gt;", ">"))


def open_rows(html):
    """The text of the visible rows that are open."""
    seen, around = [], []
    for opened, head, end in re.findall(r"<details( open)?><summary[^>]*>(.*?)</summary>|(</details>)", html, re.S):
        if end:
            around.pop()
        else:
            around.append(bool(opened))
            seen += [text_of(head)] * all(around)
    return seen


def test_shared_facts_are_written_once():
    lines = [Line(0, f"{HEAD} start building graph modules."), *module("model"), operation("model-matmul-0")]
    html = debug_html(
        "G_0", [*lines, operation("model-add-0"), operation("model-add_grad-0", facts=f"backward, {ON_CPU}")]
    )
    text = text_of(html)
    assert text.count("device=") == text.count("is_lazy=") == 1
    assert f"operations: {ON_CPU}; inputs and outputs of modules: is_lazy='True'" in text
    assert "module model: Linear(4, 4) float32[3, 4] → float32[3, 4] · 3 operations" in text
    assert "input_0" not in text and "backward 1 operation" in text  # the row of the module has its shapes


def test_facts_that_differ_stay_in_their_lines():
    other = "device=cuda:1, sbp=(S(0)), sends 4 bytes"
    lines = [operation("model-matmul-0"), operation("model-add-0"), operation("model-boxing-0", facts=other)]
    text = text_of(debug_html("G_0", lines))
    assert f"operations: {ON_CPU}, unless a line has others" in text and text.count("cpu:0") == 1
    assert "boxing-0(x: float32[3, 4]) -> (float32[3, 4]), device=cuda:1, sbp=(S(0)), sends 4 bytes" in text


@pytest.mark.parametrize("devices", [("cuda:0", "cuda:0"), ("cuda:0", "cuda:1")])
def test_device_of_tensors(devices):
    lines = [
        Line(1, f"(PARAMETER:model.{i}:tensor(...,\n       device='{device}', size=(4,), dtype=minflow.int64))")
        for i, device in enumerate(devices)
    ]
    facts = shared_facts(line.text for line in lines)
    shown = [text_of(line_html(line.text, facts)) for line in lines]
    if len(set(devices)) == 1:
        assert facts.note == "tensors: device='cuda:0'" and shown == [
            "parameter model.0: int64[4]",
            "parameter model.1: int64[4]",
        ]
    else:
        assert facts.note == "" and shown[1] == "parameter model.1: int64[4], device='cuda:1'"


def test_lines_that_are_not_understood_are_kept():
    facts = shared_facts([])
    with Cases() as case:
        for text, shown in {
            "[WARNING](INPUT:_G_0-input_0:<class 'int'>)": "[WARNING](INPUT:_G_0-input_0:<class 'int'>)",
            "(OPERATOR: odd)": "operator odd",
            "(BUFFER:b:tensor([], size=(0, 3), dtype=minflow.float32))": "buffer b: float32[0, 3], empty",
            "(PARAMETER:p:tensor(..., size=(), dtype=minflow.float32, requires_grad=True))": (
                "parameter p: float32[], requires_grad=True"
            ),
            f"{HEAD} building plan Done! Cost time: 0.10s.": "building plan Done! Cost time: 0.10s.",
            "pass dead_code (step): 21 -> 20 operations": "pass dead_code (step): 21 -> 20 operations",
        }.items():
            with case(text):
                assert text_of(line_html(text, facts).replace("&lt;", "‹")).replace("‹", "<") == shown


def blocks(n=60, **of):
    """Modules of different names, so that none are merged. of: index -> seconds or error of one of them."""
    lines = [
        Line(0, f"{HEAD} start building graph modules."),
        Line(1, "(MODULE:model:Net())", seconds=sum(of.get("seconds", {}).values())),
    ]
    for i in range(n):
        more = {name: values[i] for name, values in of.items() if i in values}
        lines += [Line(2, f"(MODULE:model.{i}:Layer({i}))", **more), operation(f"model.{i}-relu-{i}", 3)]
    return lines


def test_failing_branch_alone_is_open():
    message = "ShapeError: takes <4>\nat In[5]:9 < return x >"
    html = debug_html(
        "G_0 could not be built",
        [Line(0, f"{HEAD} start building graph inputs."), *module("x"), *blocks(error={57: message})],
    )
    rows = open_rows(html)
    assert [row.split(" ")[1] for row in rows] == ["modules", "model:", "model.57:"]
    assert (
        '✗ ShapeError: takes &lt;4&gt;\nat <span title="In[5]:9: return x">In[5]:9</span> &lt; return x &gt;</pre>'
        in html
    )
    assert "✗ fails in <b>model.57</b>" in html


def test_failing_branch_is_in_view():
    """Not below hundreds of modules, which are folded."""
    html = debug_html("G_0 could not be built", blocks(error={57: "ValueError: no"}))
    inside = html.partition("earlier <span")[2].partition("<b>52</b>")[0]
    assert inside.count("relu-") == 52 and "52 modules, 52 operations" in inside
    assert [row.split(" ")[1] for row in open_rows(html)] == ["modules", "model:", "model.57:"]


def test_failure_beyond_the_limit_of_lines_is_shown(monkeypatch):
    monkeypatch.setattr("minflow.views.renderers.debug_tree.MAX_LINES", 20)
    html = debug_html("G_0", blocks(error={57: "ValueError: late"}))
    assert "✗ ValueError: late" in html and "102 lines more" in html and "fails in <b>model.57</b>" in html


def test_slowest_branch_is_open_and_named():
    seconds = {i: 0.002 for i in range(60)} | {50: 0.08}
    html = debug_html("G_0", blocks(seconds=seconds))
    assert "slowest to build: <b>model.50</b>, 80 ms of 198 ms" in html
    assert any(row.startswith("module model.50:") and "built in 80 ms" in row for row in open_rows(html))
    assert text_of(html).count("built in") == 2  # not of the fast ones
    assert "relu-50" in html and open_rows(html)[0].startswith("graph modules")


@pytest.mark.parametrize("seconds", [{}, {i: 0.002 for i in range(60)}, {i: 1e-5 for i in range(60)} | {50: 5e-4}])
def test_nothing_is_said_if_no_module_is_slow(seconds):
    html = debug_html("G_0", blocks(seconds=seconds))
    assert "slowest" not in html and not any("model.50:" in row for row in open_rows(html))


def test_own_build_time_counts_without_the_modules_inside():
    lines = [
        Line(0, f"{HEAD} start building graph modules."),
        Line(1, "(MODULE:model:Net())", seconds=1.0),
        Line(2, "(MODULE:model.a:Net())", seconds=0.7),
        Line(3, "(MODULE:model.a.b:Net())", seconds=0.6),
        operation("model.a.b-relu-0", 4),
    ]
    assert "slowest to build: <b>model.a.b</b>, 600 ms of 1.00 s" in debug_html("G_0", lines)


def test_places_are_titles_and_repeated_ones_arrows(monkeypatch):
    monkeypatch.setattr("linecache.getline", lambda file, number: f"{file} has line {number}\n")
    lines = [*module("model", where=WHERE), operation("model-exp-0", where=WHERE)]
    html = debug_html("G_0", lines)
    assert '<span title="net.py:3: net.py has line 3">net.py:3</span>' in html
    assert '<span title="net.py:3: net.py has line 3">↗</span>' in html


def test_source_lines_are_not_repeated():
    places = [Line(4, "at In[2]:3 in forward < y = f(x) >"), Line(4, "at In[3]:6 in build < return self.model(x) >")]
    lines = [*module("model"), operation("model-exp-0"), *places, operation("model-sin-0"), *places]
    html = debug_html("G_0", [*lines, operation("model-cos-0"), places[1]])
    assert html.count('at <span title="In[2]:3: y = f(x)">In[2]:3</span> in forward &lt; y = f(x) &gt;') == 1
    assert html.count("In[3]:6</span> in build") == 2  # the last operation has other lines


def test_script_gets_the_graph_and_the_number_of_hidden_rows():
    layers = [Line(1, f"(MODULE:model.{i}:Layer({i}))") for i in range(1000)]
    bundle = debug_bundle("G_0", [Line(0, f"{HEAD} start building graph modules."), *layers], "G_0")
    hidden = int(re.search(r'"graph":"G_0","hidden":(\d+)\}', bundle["text/html"])[1])
    assert hidden + bundle["text/html"].count("module model.") == 1000 and hidden > 500
    assert len(bundle["text/html"]) < 60_000 and "<script>" in bundle["text/html"]


# ---- during a build --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, FIRST_LINES, FIRST_LINES + LATEST_LINES, 300, 30_000])
def test_lines_of_a_build_are_bounded_and_counted(n):
    lines = [Line(min(i, 3), f"line {i}") for i in range(n)]
    shown = latest_lines(lines)
    left_out = sum(int(line.text.split()[1].replace(",", "")) for line in shown if line.text.startswith("..."))
    assert len(shown) <= FIRST_LINES + LATEST_LINES + 4 and shown[-1] == lines[-1] and shown[0] == lines[0]
    assert left_out + sum(not line.text.startswith("...") for line in shown) == n


def test_latest_lines_are_below_the_modules_around_them():
    lines = blocks(300)
    deep = [Line(3, "(MODULE:model.last:Deep())"), *(operation(f"model.last-add-{i}", 4) for i in range(LATEST_LINES))]
    shown = latest_lines([*lines, Line(2, "(MODULE:model.outer:Deep())"), *deep])
    assert [line.text for line in shown[FIRST_LINES + 1 : -LATEST_LINES]] == [
        "(MODULE:model.outer:Deep())",
        "(MODULE:model.last:Deep())",
    ]


def test_live_tree_is_small_and_has_no_script():
    live = live_bundle("G_0 is being built", blocks(5000), "5,000 modules so far")
    assert len(live["text/html"]) < 12_000 and "<script" not in live["text/html"]
    assert "G_0 is being built" in live["text/html"] and "5,000 modules so far" in live["text/html"]
    assert "relu-4999" in live["text/html"] and "relu-4999" in live["text/plain"]
    assert open_rows(live["text/html"])[-1].startswith("module model.4999")
