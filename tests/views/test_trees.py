"""Trees stay small for any model: equal adjacent layers share a row, and omitted rows are counted."""

import random
import re

import pytest

import minflow as flow
from minflow import nn
from minflow.introspection.graph.listing.build_log import BuildLog
from minflow.views.records.module import folded, rows_of
from minflow.views.renderers.debug_lines import Line
from minflow.views.renderers.debug_tree import MAX_OPEN_ROWS, debug_bundle, debug_html
from minflow.views.text.trees import MAX_BYTES, outer_lines, outer_rows, within_limit
from tests.cases import Cases
from tests.graphs import Predict

MOST = 60_000  # maximum bytes of a tree


class Block(nn.Module):
    """Like a transformer block: functional attention, then two layers."""

    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.q, self.k, self.v, self.out = [nn.Linear(size, size) for _ in range(4)]
        self.mlp = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.out(flow.softmax(self.q(y) @ self.k(y).mT, -1) @ self.v(y))
        return x + self.mlp(x)


def linears(n):
    return nn.Sequential(*[nn.Linear(2, 2) for _ in range(n)])


def nested(n):
    model = nn.Linear(2, 2)
    for _ in range(n):
        model = nn.Sequential(model)
    return model


def irregular(n, seed=0):
    """Layers of different sizes, randomly nested."""
    rng, size, layers = random.Random(seed), 4, []
    for _ in range(n):
        layers.append(nn.Linear(size, size := rng.randint(2, 6)))
    while len(layers) > 300:
        at = rng.randrange(len(layers) - 1)
        end = at + rng.randint(2, 5)
        layers[at:end] = [nn.Sequential(*layers[at:end])]
    return nn.Sequential(*layers)


MODELS = {
    "1,000 linears": (lambda: linears(1000), (1, 2)),
    "50 blocks": (lambda: nn.Sequential(*[Block(8) for _ in range(50)]), (2, 3, 8)),
    "pairs": (lambda: nn.Sequential(*[f() for _ in range(500) for f in (lambda: nn.Linear(2, 2), nn.ReLU)]), (1, 2)),
    "2,000 levels": (lambda: nested(2000), (1, 2)),
    "1,000 at random": (lambda: irregular(1000), (1, 4)),
    "1,000 in a row": (lambda: nn.Sequential(*[nn.Linear(2 + i % 7, 2 + (i + 1) % 7) for i in range(1000)]), (1, 2)),
}


@pytest.fixture
def build_lines(monkeypatch):
    """`build_lines(graph, shape, level)` calls a graph and returns the lines of its build, as passed to a notebook's
    tree.
    """
    lines = []
    monkeypatch.setattr(
        BuildLog,
        "log",
        lambda log, level, text, indent=0, where=None: (
            lines.append(Line(indent, text, where)) if log.level >= level else None
        ),
    )

    def call(graph, shape, level):
        lines.clear()
        graph.debug(level)
        graph(flow.ones(*shape))
        return list(lines)

    return call


@pytest.mark.parametrize("name", MODELS)
def test_trees_are_small(name, build_lines):
    make, shape = MODELS[name]
    model = make()
    graph, summary = Predict(model), flow.summary(model, shape)
    trees = {
        "repr": repr(model),
        "module": model._repr_mimebundle_()["text/html"],
        "summary": repr(summary),
        "summary in HTML": summary._repr_mimebundle_()["text/html"],
        "listing before": graph._repr_mimebundle_()["text/html"],
    }
    debug = debug_bundle("graph", build_lines(graph, shape, 3))
    tree, bundle = graph.tree(), graph._repr_mimebundle_()
    trees |= {
        "debug": debug["text/plain"],
        "debug in HTML": debug["text/html"],
        "graph": bundle["text/plain"],
        "tree": repr(tree),
        "tree in HTML": tree._repr_mimebundle_()["text/html"],
    }
    total = sum(p.numel() for p in model.parameters())
    with Cases() as case:
        for kind, text in trees.items():
            with case(f"size of {kind}"):
                assert len(text.encode()) < MOST
        with case("size of the whole listing"):
            assert len(repr(graph)) <= 500_000 and len(bundle["image/svg+xml"]) < 100_000
        for kind in ("summary", "summary in HTML"):
            with case(f"count of {kind}"):
                assert f"\n{total:,} parameters, all trainable;" in trees[kind].replace("<", "\n").replace(">", "\n")
        for kind in ("summary in HTML", "debug in HTML"):
            for tag in ("details", "div", "summary", "b", "span"):
                with case(f"<{tag}> in {kind}"):
                    assert len(re.findall(rf"<{tag}[ >]", trees[kind])) == trees[kind].count(f"</{tag}>")
        with case("end of debug"):
            assert "building plan Done!" in debug["text/html"] or "lines more" in debug["text/html"]


def test_equal_layers_are_one_row():
    summary = flow.summary(linears(1000), (3, 2))
    assert re.search(r"\n└─ 0-999: 1,000 x Linear\(\S+.*\) +float32\[3, 2\] +6 each +6 each +12 each\n", repr(summary))
    assert "6,000 parameters" in repr(summary) and "12,000 multiply-accumulates" in repr(summary)
    html = summary._repr_mimebundle_()["text/html"]
    assert "<b>0-999</b>: <b>1,000 x</b> Linear(" in html and ">6 each<" in html and ">12 each<" in html
    assert len(html) < 2_000
    assert repr(linears(1000)) == ("Sequential(\n  (0-999): 1000 x Linear(in_features=2, out_features=2, bias=True)\n)")
    assert len(summary.record.children) == 1000  # the record remains complete


def test_equal_blocks_are_one_row_with_the_contents_of_one():
    summary = flow.summary(nn.Sequential(Block(4), Block(4), nn.Linear(4, 1)), (2, 3, 4))
    lines = repr(summary).split("\n")
    assert [line.split("  ")[0] for line in lines[2:5]] == ["Sequential", "├─ 0-1: 2 x Block", "│"]
    assert sum("Linear" in line for line in lines) == 4 + 2 + 1


def test_differences_that_split_a_row():
    """Another size, a frozen layer, a name that is not an index, only two layers; and different shapes."""
    layers = [nn.Linear(2, 2) for _ in range(8)]
    layers[4] = nn.Linear(2, 2, bias=False)
    for p in layers[7].parameters():
        p.requires_grad = False
    names = [child.name for child in folded(flow.summary(nn.Sequential(*layers), (1, 2)).record).children]
    assert names == ["0-3", "4", "5", "6", "7"]
    shapes = flow.summary(nn.Sequential(*[nn.AvgPool2d(2) for _ in range(4)]), (1, 1, 32, 32)).record
    assert [child.name for child in folded(shapes).children] == ["0", "1", "2", "3"]
    still = flow.summary(nn.Sequential(*[nn.AvgPool2d(2) for _ in range(4)])).record
    assert [child.name for child in folded(still).children] == ["0-3"]
    named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.ReLU(), "c": nn.ReLU()})
    assert [child.name for child in folded(flow.summary(named).record).children] == ["a", "b", "c"]


def test_layer_used_in_several_places():
    layer = nn.Linear(2, 2)
    summary = flow.summary(nn.Sequential(*[layer] * 5), (1, 2))
    assert "6 parameters" in repr(summary) and re.search(r"1-4: 4 x Linear.*shared", repr(summary))


def test_omitted_rows_are_counted_and_a_failing_layer_is_shown():
    model = nn.Sequential(*[nn.Linear(2 + i % 2, 2 + (i + 1) % 2) for i in range(1000)])
    model[700] = nn.Linear(7, 2)
    with pytest.raises(flow.MinflowError, match="7") as error:
        flow.summary(model, (1, 2))
    table = error.value.__notes__[-1]
    rows = [line for line in table.split("\n") if "─ " in line]
    hidden = sum(int(n.replace(",", "")) for n in re.findall(r"─ \.\.\. ([\d,]+) more modules?", table))
    shown = sum("Linear(" in line and " x " not in line for line in rows)
    shown += sum(int(n.replace(",", "")) for n in re.findall(r": ([\d,]+) x Linear", table))
    assert shown + hidden == 1000 and hidden > 300
    assert re.search(r"├─ 700: Linear\(in_features=7.*\n│     !! fails here\n", table)
    times = [times for _, _, times in rows_of(flow.summary(model).record)]
    assert sum(times) == 1001


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_shown_with_their_neighbors_or_counted(seed):
    rng, depths = random.Random(seed), [0]
    for _ in range(rng.randrange(60)):
        depths.append(rng.randint(1, depths[-1] + 1))
    most = rng.randint(1, 40)
    shown, counted = [], []
    for row, depth, hidden in outer_rows(depths, most):
        assert depth == (min(depths[row : row + hidden]) if hidden else depths[row])
        (counted if hidden else shown).extend(range(row, row + max(hidden, 1)))
    assert sorted(shown + counted) == list(range(len(depths))) and len(shown) == min(most, len(depths))
    for row in shown:
        outer = next((i for i in range(row, -1, -1) if depths[i] < depths[row]), 0)
        assert outer in shown
    wanted = rng.randrange(len(depths))
    assert (wanted, depths[wanted], 0) in list(outer_rows(depths, most, [wanted]))


def test_text_is_truncated_to_its_outer_lines():
    lines = ["head"] + ["  row", "    inside"] * 2000
    cut = outer_lines("\n".join(lines), 10_000)
    assert len(cut) <= 10_000 and cut.startswith("head\n  row\n    ... 1 more line\n  row") and "inside" not in cut
    short = "\n".join(lines[:100])
    assert outer_lines(short) is short and within_limit(lambda most: "x" * 1000 * most, 5_000) == "x" * 4_000
    assert MAX_BYTES < MOST


def test_listing_does_not_wrap_in_a_notebook():
    graph = Predict(nn.Linear(3, 2))
    before = graph._repr_mimebundle_()
    assert set(before) == {"text/html", "text/plain"} and before["text/plain"] == repr(graph)
    assert "white-space:pre;overflow:auto" in before["text/html"] and "(MODULE:model:Linear(" in before["text/html"]
    graph(flow.ones(4, 3))
    after = graph._repr_mimebundle_()
    picture_, listing = after["text/html"].split(">the listing that print gives<")
    assert "<img" in picture_ and "white-space:pre;overflow:auto" in listing and "<img" not in listing
    assert "(OUTPUT:_model-output_0:tensor(..., is_lazy=&#x27;True&#x27;, size=(4, 2), dtype=minflow.float32" in listing


# ---- the log of a build ----------------------------------------------------------------------------------------------


def test_equal_modules_of_a_build_are_one_row(build_lines):
    def html_of(model, shape, level):
        return debug_html("graph", build_lines(Predict(model), shape, level))

    html = html_of(linears(1000), (3, 2), 2)
    assert "1</b>: Linear(in_features=2, out_features=2, bias=True) <b>x999</b>, to model.999" in html
    assert "2 operations (each)" in html and "1,001 modules, 2,000 operations" in html and len(html) < 8_000
    blocks = html_of(nn.Sequential(*[Block(4) for _ in range(5)]), (2, 3, 4), 2)
    assert "1</b>: Block() <b>x4</b>, to model.4" in blocks
    assert " x" not in html_of(nn.Sequential(*[nn.AvgPool2d(2) for _ in range(4)]), (1, 1, 32, 32), 1)


def test_level_3_is_open_down_to_its_lines(build_lines):
    graph = Predict(nn.Sequential(*[Block(8) for _ in range(20)]))
    html = debug_html("graph", build_lines(graph, (2, 3, 8), 3))
    seen, open_ = [], []
    for tag, word in re.findall(r"<(details open|details|/details)>|>(at test_trees\.py:\d+)", html):
        if word:
            seen += [word] * all(open_)
        elif tag == "/details":
            open_.pop()
        else:
            open_.append(tag == "details open")
    assert 3 <= len(seen) <= MAX_OPEN_ROWS and not open_


def test_parts_of_an_operation_are_inside_it():
    """Closed to a count, which the module around does not include; source lines stay below the operation."""
    lines = [
        (0, "(MODULE:model:Net())"),
        (1, "(OPERATOR: model-gelu-0(x: float32[3]) -> (float32[3]), device=cpu:0, sbp=(B))"),
        (3, "at net.py:3 in forward | gelu(x)"),
        (2, "(OPERATOR: model/gelu-erf-0(x: float32[3]) -> (float32[3]), device=cpu:0, sbp=(B))"),
        (2, "(OPERATOR: model/gelu-mul-0(x: float32[3]) -> (float32[3]), device=cpu:0, sbp=(B))"),
        (1, "(OPERATOR: model-add-0(x: float32[3]) -> (float32[3]), device=cpu:0, sbp=(B))"),
    ]
    html = debug_html("graph", [Line(*line) for line in lines])
    module, _, rest = html.partition("gelu-0</b>")
    assert "2 operations" in module and html.count("<details") == 2
    head, _, inside = rest.partition("</summary>")
    assert "2 operations" in head and "at net.py:3" in head and inside.index("erf-0") < inside.index("</details>")
    assert inside.index("</details>") < inside.index("add-0</b>")
