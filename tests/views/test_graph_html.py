"""Reports of a graph in a notebook: tables whose bars match their numbers, and the memory map."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.passes import PASSES, pass_name
from minflow.views.draw.lanes import round_step
from minflow.views.html.page import picture_card
from minflow.views.html.reports import MAX_BAR_WIDTH, cell_html
from minflow.views.html.table import inner_picture
from minflow.views.records.reports import (
    Block,
    FirstCallTimeline,
    FrozenValues,
    GraphTree,
    KernelCall,
    KernelListing,
    Lane,
    Lanes,
    MemoryMap,
    Operation,
    PlanCall,
    PlanListing,
    Roofline,
    RooflinePeaks,
    Stages,
    ThreadBar,
    Threads,
    TreeRow,
)
from minflow.views.renderers.memory_map import MAX_TITLES, PHASE_STYLES, WIDTH, hatch_path, visible_ends
from minflow.views.renderers.roofline import LEFT, MAX_NAMED_CALLS, PLOT_HEIGHT, RIGHT, TOP, WIDTH as WHOLE
from minflow.views.text.numbers import shares
from minflow.views.text.plan import MAX_CALLS
from minflow.views.text.reports import Report, memory_sentences, peak, peak_text, values_at_peak
from minflow.views.text.tables import Cell
from minflow.vision.models import mobilenet_v2
from tests.graph_models import Step
from tests.measuring import calls
from tests.svg_checks import svg_in, texts_without_background

EVIL = "<img src=x onerror=alert(1)>\x1b"
SVG = "{http://www.w3.org/2000/svg}"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 40)
        self.haed = nn.Linear(6, 4)
        self.fc2 = nn.Linear(40, 4)

    def forward(self, x):
        return self.fc2(self.fc1(x).relu())


@pytest.fixture(scope="module")
def graph():
    model = Net()
    graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    for _ in range(2):
        graph(flow.randn(8, 6))
    return graph


def html(record) -> str:
    return Report(record)._repr_mimebundle_()["text/html"]


class Cells(HTMLParser):
    """Collects the cell texts of all tables, row by row, and the names of all elements."""

    def __init__(self, text: str):
        super().__init__()
        self.rows, self.tags, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
            self.inside = True
        elif tag == "br":
            self.rows[-1][-1] += "\n"

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "td"

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def picture(text: str) -> ET.Element:
    return ET.fromstring(svg_in(text))


def widths(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"width:(\d+)px;height:12px", text)]


def test_shares_sum_to_100_percent():
    assert shares([40.6, 57.5, 1.9]) == [41, 57, 2], "rounded independently they would sum to 101"
    assert shares([58.4, 1.3, 40.3]) == [59, 1, 40], "and here 99"
    assert shares([1, 1, 1]) == [34, 33, 33] and shares([0, 0]) == [0, 0] and shares([]) == []
    assert shares([2.0]) == [100]


def test_lanes():
    record = Lanes(
        "t",
        (Lane("forward", 3, 10, 0.0405), Lane("backward", 4, 20, 0.0585), Lane("optimizer", 1, 5, 0.0010)),
        (
            Operation("model.fc-add-0", "forward", "In[1]:2", "float32[2]", 8, 0.03, "model.fc"),
            Operation("weight_optimizer", "optimizer", "In[1]:3", "float32[2]", 8, 0.01, "model.fc"),
        ),
        2,
    )
    rows = Cells(html(record)).rows
    assert sum(int(row[4].removesuffix("%")) for row in rows[1:4]) == 100
    assert rows[4][:4] == ["step", "8", "35 B", "100.00 ms"]
    assert rows[6][:2] == ["model.fc-add-0", "forward"] and rows[6][-1] == "In[1]:2 in model.fc"
    assert rows[7][:2] == ["weight_optimizer", "optimizer"] and rows[7][-1] == "In[1]:3 in model.fc"
    first, second, third = widths(html(record))[:3]
    assert first == round(MAX_BAR_WIDTH * 0.405) and abs(second - MAX_BAR_WIDTH * 0.585) <= 1 and third == 1
    assert "2 of the operations are views" in html(record)
    assert "In[1]:2 in model.fc" in repr(Report(record))
    assert "overflow-wrap:anywhere" in html(record), "long names wrap, so that the card fits"


def test_lanes_before_a_timed_run():
    rows = Cells(html(Lanes("t", (Lane("forward", 3, 10, None),), ()))).rows
    assert rows[1][:5] == ["forward", "3", "10 B", "-", "-"]


def test_stages_describe_each_pass(graph):
    record = graph.stages().record
    assert all(row.does for row in record.rows), [row.name for row in record.rows if not row.does]
    assert {pass_name(step) for step in PASSES} <= {row.name for row in record.rows}
    rows = Cells(html(record)).rows
    assert ("dead_code", "removes operations without users") in [(row[0], row[-1]) for row in rows]
    assert "removes operations without users" in repr(Report(record))


def test_bars_of_the_first_call_follow_each_other():
    text = html(FirstCallTimeline("t", (("trace", 0.010), ("plan", 0.010), ("first run", 0.020))))
    assert [int(n) for n in re.findall(r"margin-left:(\d+)px;width", text)] == [
        0,
        MAX_BAR_WIDTH // 4,
        MAX_BAR_WIDTH // 2,
    ]
    assert widths(text) == [MAX_BAR_WIDTH // 4, MAX_BAR_WIDTH // 4, MAX_BAR_WIDTH // 2]


def test_tree(graph):
    text = html(graph.tree().record)
    assert re.search(r"border:1px solid #dc4a3c[^>]*>never ran<", text) and re.search(r">no gradient<", text)
    assert "overflow-wrap:anywhere" in text, "long names wrap, so that the columns to their right are visible"
    rows = Cells(
        html(
            GraphTree(
                "t", (TreeRow("m.block", 1, "Block", params=1_408, count=2), TreeRow("m.act", 1, "ReLU", count=3))
            )
        )
    ).rows
    assert rows[1][:2] == ["  block: Block  x2 (each)", "1,408"] and rows[2][0] == "  act: ReLU  x3"
    assert ["8×6 → 8×40"] in [row[2:] for row in Cells(text).rows]


def test_unregistered_module_is_marked():
    outside = nn.Linear(4, 4)

    class Predict(nn.Graph):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def build(self, x):
            return outside(self.fc(x)) + nn.ReLU()(x)

    graph = Predict()
    graph(flow.ones(2, 4))
    badges = {row.path: row.badges for row in graph.tree().record.rows}
    assert badges["fc"] == () and [path for path, marks in badges.items() if "not registered" in marks] == ["Linear"]
    assert re.search(r"color:#8f1d14[^>]*>not registered<", html(graph.tree().record))


MAP = MemoryMap("m", 1_200, 1_200, 2_000, 9, 50, 1, 7, (
    Block("a-0", "float32[100]", 0, 400, 0, 3, "forward"), Block("b-0", "float32[200]", 400, 800, 2, 9, "backward"),
    Block("over", "float32[100]", 0, 400, 3, 4, "forward"), Block("c-0", "float32[100]", 0, 400, 6, 8, "optimizer"),
))  # fmt: skip


def test_peak_counts_overwritten_values_once():
    assert peak(MAP) == (2, 1_200)
    assert peak(MemoryMap("m", 0, 0, 0, 0, 0, 0, 0, ())) == (0, 0)


def test_values_alive_at_the_peak_are_named():
    assert [b.name for b in values_at_peak(MAP)] == ["b-0", "a-0"] and values_at_peak(
        MemoryMap("m", 0, 0, 0, 0, 0, 0, 0, ())
    ) == []
    assert peak_text(MAP) == "The largest at the peak: b-0 800 B, a-0 400 B."
    assert peak_text(MAP, 1).endswith("b-0 800 B and 1 smaller one.")
    over = MemoryMap(
        "m",
        800,
        800,
        1_600,
        9,
        0,
        0,
        0,
        (Block("a", "float32[100]", 0, 400, 0, 3), Block("b", "float32[200]", 0, 800, 3, 9)),
    )
    assert peak(over) == (3, 800) and [b.name for b in values_at_peak(over)] == ["b"], "it overwrites a"
    assert peak_text(MAP) in html(MAP) and peak_text(MAP) in [t.text for t in picture(html(MAP)).iter(f"{SVG}text")]


def test_peak_of_a_large_plan_is_found_quickly():
    """Values saved for backward are live for thousands of calls."""
    n = 20_000
    blocks = tuple(Block(f"v{i}", "float32[4]", i * 64, 64, i, 2 * n - i, "forward") for i in range(n))
    memory = MemoryMap("m", n * 64, 0, n * 64, 2 * n, 0, 0, 0, blocks)
    assert peak(memory) == (n - 1, n * 64)
    assert calls(lambda: peak(memory)) < 20 * n


def test_peak_of_a_real_plan_matches_its_arena(graph):
    record = graph.memory().record
    assert 0.95 * record.least <= peak(record)[1] <= record.least <= record.arena, "except for alignment"
    assert sum(block.nbytes for block in values_at_peak(record)) == peak(record)[1]
    assert {block.phase for block in record.blocks} <= set(PHASE_STYLES) and len(
        {block.phase for block in record.blocks}
    ) > 1


def rectangles(root, phase: str) -> list[tuple[float, ...]]:
    """Return (x, y, width, height) of the values of a phase."""
    shapes = [*root.findall(f"{SVG}path"), *root.findall(f"{SVG}g")]
    filled = [shape for shape in shapes if shape.get("fill") == PHASE_STYLES[phase][0]]
    paths = [path.get("d") for shape in filled for path in shape.iter(f"{SVG}path")]
    found = [re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-([\d.]+)z", path) for path in paths]
    assert all(wide == back for part in found for _, _, wide, _, back in part)
    return [tuple(map(float, place[:4])) for part in found for place in part]


def test_memory_map_is_to_scale():
    root = picture(html(MAP))
    rects = {phase: rectangles(root, phase) for phase in PHASE_STYLES}
    assert [len(found) for found in rects.values()] == [2, 1, 0, 1]
    (a, over), (b,), (c,) = rects["forward"], rects["backward"], rects["optimizer"]
    assert b[3] == pytest.approx(2 * a[3], abs=0.2) and over[3] == a[3]
    assert b[1] < a[1], "addresses go upwards"
    assert b[2] / c[2] == pytest.approx(8 / 3, abs=0.01)
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert "b-0" in words and "peak: 1.2 kB at step 2" in words
    assert " ".join(memory_sentences(MAP)) in " ".join(words)
    titles = [t.text for t in root.iter(f"{SVG}title")]
    assert len(titles) == 4 and "b-0\nfloat32[200], 800 B, steps 2 to 9" in titles, "one for each value"
    assert {"forward", "backward", "optimizer"} <= set(words) and "recompute" not in words
    assert all(x + wide <= WIDTH for found in rects.values() for x, _, wide, _ in found)


def test_overwriting_value_does_not_overlap_the_old_one():
    assert visible_ends(MAP.blocks) == [2, 9, 4, 8], "the first one ends where the next begins"


def test_values_of_a_real_plan_do_not_overlap(graph):
    blocks = graph.memory().record.blocks
    places = [(b, range(b.first, last + 1)) for b, last in zip(blocks, visible_ends(blocks))]
    for i, (a, steps) in enumerate(places):
        for b, others in places[:i]:
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            assert apart or not set(steps) & set(others), (a, b)


def test_hatching_differs_and_stays_inside_its_rectangle():
    signs = {phase: hatch_path(10, 20, 40, 30, phase) for phase in PHASE_STYLES}
    assert len(set(signs.values())) == 4 and not signs["forward"], "phases are distinguishable without colors"
    for text in filter(None, signs.values()):
        for x1, y1, x2, y2 in re.findall(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", text):
            assert 10 <= float(x1) <= float(x2) <= 50 and min(float(y1), float(y2)) >= 20
            assert max(float(y1), float(y2)) <= 50


def test_reports_of_a_large_model_are_small():
    """Notebooks contain several: for MobileNetV2, with 153 modules and 600 values, each takes less than 80 kB."""
    model = mobilenet_v2(num_classes=10)
    graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.1))
    graph(flow.randn(2, 3, 32, 32))
    assert len(graph.tree().record.rows) > 150 and len(graph.memory().record.blocks) > 500
    sizes = {name: len(html(getattr(graph, name)().record)) for name in ("tree", "stages", "lanes", "memory")}
    sizes["plan"] = len(html(graph.plan.record))
    assert all(size < 80_000 for size in sizes.values()), sizes


# 100 GFLOP/s; copies at 100 GB/s in cache and 10 GB/s in memory: ridge points at 1 and 10 operations per byte
LIMITS = RooflinePeaks(1e11, ((1_000, 1e11), (10**9, 1e10)))


def call(step, flops, moved, seconds, phase="forward", name="m.fc-matmul-0"):
    return PlanCall(
        step,
        name,
        "matmul",
        "compiled",
        phase,
        "m.fc",
        "In[1]:2",
        ("float32[2]",),
        ("float32[2]",),
        64,
        "",
        8,
        flops,
        moved,
        seconds,
        ("gemm_pack", "gemm_chunk", "gemm_chunk"),
    )


def test_plan_is_a_table():
    record = PlanListing(
        "t", (call(0, 10**8, 1_000, 0.002), call(7, 0, 1_000, None, "optimizer", "w_optimizer")), 64, LIMITS
    )
    rows = Cells(html(record)).rows
    operation = "m.fc-matmul-0\n2 → 2 (gemm_pack, gemm_chunk)"
    assert rows[1][:6] == ["0", operation, "compiled", "64 B", "8 B", "2,000"]
    assert rows[1][6:] == ["50.0", "0.0", "50 %", "", "In[1]:2"]
    assert rows[2][1].startswith("w_optimizer\n2 → 2") and rows[2][5:9] == ["-"] * 4 and "m.fc" in rows[2][-1]
    assert widths(html(record)) == [MAX_BAR_WIDTH // 2, 0] and "the share is of 100.0 GFLOP/s" in html(record)


def test_kernels_are_a_table():
    call = KernelCall("matmul", "compiled", ("float32[2, 3]", "float32[3]"), ("float32[2]",), 2_000)
    shown = html(KernelListing("t", (call,) * (MAX_CALLS + 2)))
    rows = Cells(shown).rows
    assert rows[:2] == [
        ["operation", "inputs → result", "platform", "calls"],
        ["matmul", "2×3, 3 → 2", "compiled", "2,000"],
    ]
    assert len(rows) == MAX_CALLS + 1 and "t: 104,000 compiled" in shown and "... 2 more rows" in shown


def test_roofline_is_to_scale():
    record = Roofline(
        "t",
        LIMITS,
        (
            call(0, 10**8, 10**6, 0.01),
            call(1, 10**7, 10**7, 0.01, "backward"),
            call(2, 10**6, 10**6, 0.0001, "optimizer"),
            call(3, 0, 100, 0.001),
        ),
    )
    root = picture(html(record))
    lines = [line.get("d") for line in root.findall(f"{SVG}path") if line.get("stroke-width") == "2"]
    cache, memory, level = [list(map(float, re.findall(r"[\d.]+", line))) for line in lines]
    top, wide = level[1], (WHOLE - LEFT - RIGHT) / 4  # from 0.1 to 1000 operations per byte
    assert cache[3] == memory[3] == top and memory[2] - cache[2] == pytest.approx(wide, abs=0.2), "a tenth of the speed"
    assert cache[2] == pytest.approx(LEFT + wide, abs=0.1) and level[0] == cache[2], (
        "ridge point at 1 operation per byte"
    )
    x, y = next((float(mark.get("cx")), float(mark.get("cy"))) for mark in root.iter(f"{SVG}circle"))
    tall = memory[1] - cache[1]  # at the left edge they differ by a factor of ten
    assert x == pytest.approx(LEFT + 3 * wide, abs=0.1), "100 operations per byte"
    assert y - top == pytest.approx(tall, abs=0.2), "10 of 100 GFLOP/s"
    assert memory[0] == cache[0] == LEFT and PLOT_HEIGHT / tall == pytest.approx(round(PLOT_HEIGHT / tall), abs=0.01)
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert {"computing: 100.0 GFLOP/s", "cache: 100.0 GB/s", "memory: 10.0 GB/s"} <= set(words)
    assert {"forward", "backward", "optimizer"} <= set(words) and "recompute" not in words
    assert any("it only moves data" in word for word in words if word)
    long = replace(record, note=f"{'<b>kernels</b> ' * 12}Try: minflow warmup")
    lines = [t.text for t in picture(html(long)).iter(f"{SVG}text")]
    assert lines[-2:] == [" ".join(["<b>kernels</b>"] * 7), " ".join(["<b>kernels</b>"] * 5) + " Try: minflow warmup"]
    assert not texts_without_background(svg_in(html(record)))


def test_labels_of_coinciding_marks_are_side_by_side():
    record = Roofline("t", LIMITS, tuple(call(i, 10**8, 10**6, 0.01) for i in range(MAX_NAMED_CALLS + 2)))
    words = [t.text for t in picture(html(record)).iter(f"{SVG}text")]
    assert ", ".join(str(i + 1) for i in range(MAX_NAMED_CALLS)) in words


def test_call_far_below_the_roofline_is_at_the_bottom():
    slow = Roofline("t", LIMITS, (call(0, 1, 10**6, 100.0), call(1, 10**8, 10**6, 0.01)))
    heights = [float(mark.get("cy")) for mark in picture(html(slow)).iter(f"{SVG}circle")]
    assert heights[0] == TOP + PLOT_HEIGHT > heights[1] > TOP


THREADS = Threads(
    "t",
    2,
    2,
    0.004,
    (
        ThreadBar(-1, "m.conv-conv2d-0", "forward", 0.0, 0.001),
        ThreadBar(0, "m.conv-conv2d-0", "forward", 0.0, 0.001),
        ThreadBar(-1, "m.fc-matmul-0", "backward", 0.001, 0.004),
        ThreadBar(0, "m.fc-matmul-0", "backward", 0.001, 0.002),
        ThreadBar(1, "m.fc-matmul-0", "backward", 0.002, 0.003),
        ThreadBar(1, "m.fc-matmul-0", "backward", 0.003, 0.004),
    ),
)


def test_threads_are_to_scale():
    root, text = picture(html(THREADS)), html(THREADS)
    named = {
        box.get("fill"): [float(box.get(k)) for k in ("x", "y", "width", "height")]
        for box in root.iter(f"{SVG}rect")
        if box.get("stroke-width")
    }
    call, fc = (named[PHASE_STYLES[phase][0]] for phase in ("forward", "backward"))
    (caller,), (first, second) = (rectangles(root, phase) for phase in ("forward", "backward"))
    assert call[0] == caller[0] and call[2] == caller[2] and call[1] < caller[1], "the call above the thread"
    assert fc[2] == pytest.approx(3 * call[2], abs=0.3) and fc[0] == pytest.approx(call[0] + call[2], abs=0.2)
    assert first[2] == pytest.approx(call[2], abs=0.2) and second[2] == pytest.approx(2 * call[2], abs=0.2), "as one"
    assert second[1] - first[1] == first[1] - fc[1] > fc[3], "lanes do not touch"
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert {"conv-conv2d-0", "calls", "thread 0, the caller", "thread 1", "50 % of the step", "4"} <= set(words)
    assert "as text" in text and 'alt="t: 2 threads at a time, 4.00 ms: they worked 50 % of it"' in text
    assert not texts_without_background(svg_in(text))


def test_boxes_of_threads_have_tooltips():
    titles = [t.text for t in picture(html(THREADS)).iter(f"{SVG}title")]
    assert sorted(titles) == sorted(
        2 * ["m.conv-conv2d-0: 1.00 ms"]
        + ["m.fc-matmul-0: 3.00 ms", "m.fc-matmul-0: 1.00 ms", "m.fc-matmul-0: 2.00 ms"]
    )
    small = [ThreadBar(lane, f"f{i}", "forward", i * 1e-6, (i + 1) * 1e-6) for i in range(5) for lane in (-1, 0)]
    long = ThreadBar(-1, "last", "forward", 5e-6, 0.004)
    titles = [t.text for t in picture(html(replace(THREADS, bars=(*small, long)))).iter(f"{SVG}title")]
    assert titles.count("f0: 1.0 µs\nf1: 1.0 µs\nf2: 1.0 µs\nand 2 more calls") == 2, "small ones are one box"
    many = [
        ThreadBar(lane, f"f{i}", ("forward", "backward")[i % 2], i * 1e-5, (i + 1) * 1e-5)
        for i in range(400)
        for lane in (-1, 0)
    ]
    titles = [t.text for t in picture(html(replace(THREADS, bars=tuple(many)))).iter(f"{SVG}title")]
    assert len(titles) == 400, "if there are many boxes, those of the calls alone"


def test_many_chunks_make_a_small_file():
    """One step of MobileNetV2 has about 10,000 chunks."""
    bars = [ThreadBar(i % 2, "m", "forward", i * 1e-6, (i + 2) * 1e-6) for i in range(20_000)]
    whole = ThreadBar(-1, "m", "forward", 0.0, 0.02)
    assert len(html(Threads("t", 2, 2, 0.02, (whole, *bars)))) < 75_000


def test_memory_map_has_a_description(graph):
    text = html(MAP)
    assert f'alt="m. {" ".join(memory_sentences(MAP))}"' in text
    assert "as text" in text and "the largest values" in text
    assert "text/html" not in Report(MemoryMap("m", 0, 0, 0, 0, 0, 0, 0, ()))._repr_mimebundle_()


def test_memory_is_related_in_numbers():
    """Every number of the map, of its arena, and outside it."""
    record = replace(MAP, arena=1_300, inputs=20, workspace=3_000)
    assert memory_sentences(record) == [
        "The arena has 1.3 kB, for 4 values of 2.0 kB in all: at the peak, in step 2 of 9, 1.2 kB of it are in use and "
        "100 B are gaps.",
        "Outside it: parameters, buffers and other states 50 B, inputs 20 B, workspace of the kernels 3.0 kB, "
        "new outputs of each call 7 B. Together 4.4 kB.",
    ]
    assert memory_sentences(MemoryMap("m", 0, 0, 0, 0, 0, 0, 0, ())) == ["The arena is empty."]


def test_large_map_names_its_largest_values():
    blocks = tuple(Block(f"v{i}", "float32[4]", i * 64, i + 1, 0, 9, "forward") for i in range(2 * MAX_TITLES))
    root = picture(html(MemoryMap("m", 64 * len(blocks), 0, 0, 9, 0, 0, 0, blocks)))
    titles = [t.text.split("\n")[0] for t in root.iter(f"{SVG}title")]
    assert titles == [f"v{i}" for i in range(MAX_TITLES, 2 * MAX_TITLES)] and len(rectangles(root, "forward")) == len(
        blocks
    )


def test_ticks():
    for whole in (1, 8, 9, 62, 991, 123_456):
        assert whole / round_step(whole, 8) <= 8 and f"{round_step(whole, 8):g}".strip("0.") in ("1", "2", "5")


def test_reports_keep_their_text(graph):
    reports = [
        graph.tree(),
        graph.stages(),
        graph.lanes(),
        graph.memory(),
        graph.timeline(),
        graph.plan,
        flow.roofline(graph),
        graph.frozen(),
        graph.why(),
        graph.changes(0),
    ]
    for report in reports:
        bundle = report._repr_mimebundle_()
        assert bundle["text/plain"] == repr(report) and "no picture" not in bundle["text/plain"]
        assert ("text/html" in bundle) == (reports.index(report) < 7)


def test_empty_reports_do_not_fail():
    for record in (
        GraphTree("t", ()),
        Stages("t", ()),
        Lanes("t", (), ()),
        FirstCallTimeline("t", ()),
        FrozenValues("t", (), ()),
    ):
        assert "no picture" not in Report(record)._repr_mimebundle_()["text/plain"]


def test_wide_picture_shrinks_to_three_quarters_then_scrolls():
    def card(width):
        return picture_card(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="80"></svg>', "a graph")

    assert "min-width" not in card(780)
    assert "max-width:100%;height:auto;min-width:1098px" in card(1464)
    assert '<div style="overflow-x:auto"><img alt="a graph"' in card(1464)
    assert "max-height:900px" in inner_picture(card(780))
    assert "min-width:1098px" in inner_picture(card(1464)) and "max-height" not in inner_picture(card(1464))


def test_narrow_columns_keep_short_words_whole():
    looks = [cell_html(Cell("", page=words), first=False) for words in ("fused loop of relu", "x" * 40)]
    assert [look.partition(";")[0] for look in looks] == ['<div style="min-width:5ch', '<div style="min-width:10ch']
