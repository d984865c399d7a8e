"""The text forms of a graph's records, from records with given numbers: golden texts."""

from minflow.views.records.reports import (
    Block, Change, Frozen, GraphTree, Lane, Lanes, MemoryMap, Operation, PlanRow, StageRow, Stages, Timeline,
    TreeRow, Why,
)
from minflow.views.text.reports import Report, cell, nbytes_text

TREE = GraphTree("G_0: modules", (
    TreeRow("model", 0, "Net", "", ("float32[4, 20]",), ("float32[4, 5]",), 2_965, 1),
    TreeRow("model.blocks", 1, "Block", "width=8", ("float32[4, 20]",), ("float32[4, 20]",), 420, 1, (), 7),
    TreeRow(
        "model.blocks.fc", 2, "Linear", "in_features=20, out_features=20, bias=True", ("float32[4, 20]",),
        ("float32[4, 20]",), 420, 2
    ),
    TreeRow(
        "model.haed", 1, "Linear", "in_features=20, out_features=5, bias=True", (), (), 105, 0,
        ("never ran", "no gradient")
    ),
    TreeRow("<b>x</b>\x1b", 0, "Evil", "a\nb", (), (), 0, None, ("frozen",)),
))  # fmt: skip
STAGES = Stages(
    "G_0: passes", (StageRow("trace", 31, 0, 0, 10_240, 0.0), StageRow("dead_code", 28, 3, 0, 9_216, 0.00123))
)
CHANGE = Change("G_0: dead_code, 6 operations before, 5 after", (
    (" ", "a-0(x) -> float32[2]"), (" ", "b-0(x) -> float32[2]"), (" ", "c-0(x) -> float32[2]"),
    ("-", "d-0(x) -> float32[2]"),
    (" ", "e-0(x) -> float32[2]"), (" ", "f-0(x) -> float32[2]"), ("+", "g" * 200),
))  # fmt: skip
LANES = Lanes(
    "G_0: one step",
    (Lane("forward", 13, 4_900, 0.004), Lane("backward", 11, 11_200, 0.006), Lane("optimizer", 6, 0, None)),
    (
        Operation("model.features.0.0-conv2d-0", "forward", "In[3]:12", "float32[4, 8]", 128, 0.003),
        Operation(
            "model.features.0.0-conv2d_weight_grad-0", "backward", "net.py:9", "float32[4, 8]", 1_280_000, 0.0011
        ),
    ),
)
MEMORY = MemoryMap("G_0: memory", 1_200, 1_100, 3_000, 9, 5_000_000, 6, 0, (
    Block("a-0", "float32[100]", 0, 400, 0, 3), Block("b-0", "float32[200]", 400, 800, 2, 9),
    Block("c-0", "float32[100]", 0, 400, 5, 6),
))  # fmt: skip
TIMELINE = Timeline(
    "G_0: the first call", (("trace", 0.010), ("dead_code", 0.001), ("plan", 0.004), ("first run", 0.005))
)
FROZEN = Frozen(
    "G_0: what is frozen", (("all modules", "train()"), ("SGD", "momentum=0.9")), (("learning rate", "0.1"),)
)
WHY = Why("G_0: 2 plans made, 2 kept", (
    PlanRow(0, (("x", "float32[4]"),), 30, 0.0033, (), ()),
    PlanRow(1, (), 28, 0.0025,
            (("x", "float32[4]", "float32[2]"), *[(f"m{i}.training", "True", "False") for i in range(9)]),
            ("drop_last",)),
))


def test_texts(golden):
    records = (TREE, STAGES, CHANGE, LANES, MEMORY, TIMELINE, FROZEN, WHY)
    text = "\n\n".join(repr(Report(record)) for record in records)
    assert all(len(line) <= 120 for line in text.split("\n")) and "\x1b" not in text
    golden("graph_reports", text)


def test_empty_records():
    for record in (
        GraphTree("t", ()),
        Stages("t", ()),
        Change("t", ()),
        Lanes("t", (), ()),
        MemoryMap("t", 0, 0, 0, 0, 0, 0, 0, ()),
        Timeline("t", ()),
        Frozen("t", (), ()),
        Why("t", ()),
    ):
        assert repr(Report(record)).startswith("t")


def test_numbers():
    assert [nbytes_text(n) for n in (0, 999, 1_000, 12_340_000, 5 * 10**9)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12.3 MB",
        "5.0 GB",
    ]
    assert [cell(x) for x in (0, 0.04, 0.05, 0.5, 0.94, 1.0)] == [" ", " ", "1", "5", "9", "#"]
