"""Text forms of a graph's records with given values, compared with golden files."""

from dataclasses import replace

import pytest

from minflow.views.records.reports import (
    Block,
    Change,
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
    PlanReasons,
    PlanRow,
    Roofline,
    RooflinePeaks,
    StageRow,
    Stages,
    ThreadBar,
    Threads,
    TreeRow,
)
from minflow.views.text.numbers import nbytes_text
from minflow.views.text.plan import MAX_CALLS, limit_share
from minflow.views.text.reports import PlanReport, Report, cell
from minflow.views.text.threads import busy_seconds, idle_calls

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
    ("-", "d-0(x) -> float32[2]"), (" ", "e-0(x) -> float32[2]"), (" ", "f-0(x) -> float32[2]"), ("+", "g" * 200),
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
TIMELINE = FirstCallTimeline(
    "G_0: the first call", (("trace", 0.010), ("dead_code", 0.001), ("plan", 0.004), ("first run", 0.005))
)
FROZEN = FrozenValues(
    "G_0: frozen values", (("all modules", "train()"), ("SGD", "momentum=0.9")), (("learning rate", "0.1"),)
)
WHY = PlanReasons(
    "G_0: 2 plans made, 2 kept",
    (
        PlanRow(0, (("x", "float32[4]"),), 30, 0.0033, (), ()),
        PlanRow(
            1,
            (),
            28,
            0.0025,
            (("x", "float32[4]", "float32[2]"), *[(f"m{i}.training", "True", "False") for i in range(9)]),
            ("drop_last",),
            "build ran again: it depends on x.shape[0] < 4, at net.py:9",
        ),
    ),
)
# 100 GFLOP/s; copies of about 1 MB at 50 GB/s, of about 100 MB at 20 GB/s
LIMITS = RooflinePeaks(1e11, ((1_000_000, 5e10), (100_000_000, 2e10)), 2, True)
CALLS = (
    PlanCall(
        0,
        "model.fc1-matmul-0",
        "matmul",
        "compiled",
        "forward",
        "model.fc1",
        "In[3]:12",
        ("float32[100, 784]", "float32[512, 784]"),
        ("float32[100, 512]",),
        4_096,
        "",
        204_800,
        80_281_600,
        2_124_032,
        1e-3,
    ),
    PlanCall(
        1,
        "model.relu-relu-0",
        "relu",
        "compiled",
        "forward",
        "model.relu",
        "net.py:9",
        ("float32[100, 512]",),
        ("float32[100, 512]",),
        4_096,
        "",
        204_800,
        51_200,
        409_600,
        2e-5,
    ),
    PlanCall(
        2,
        "model.features.0.0.conv-permute-copy-0",
        "cast",
        "numpy",
        "backward",
        "",
        "?",
        ("int64[100]",),
        ("float32[100]", "float32[7]"),
        None,
        "new",
        400,
        0,
        1_200,
        1e-6,
    ),
    PlanCall(
        3,
        "model.fc1.weight_optimizer",
        "sgd",
        "reference",
        "optimizer",
        "model.fc1",
        "net.py:4",
        ("float32[512, 784]", "0.1"),
        ("float32[512, 784]",),
        None,
        "state",
        1_605_632,
        None,
        4_816_896,
    ),
)

KERNELS = KernelListing(
    "kernels of train",
    (
        KernelCall("matmul", "compiled", ("float32[100, 784]", "float32[512, 784]"), ("float32[100, 512]",), 12),
        KernelCall("sort", "numpy", ("float64[8]",), ("float64[8]", "int64[8]"), 1),
        KernelCall("full", "reference", (), ("float32[]",), 1_000),
    ),
)


THREADS = Threads(
    "G_0: threads of one step",
    2,
    2,
    0.01,
    (
        ThreadBar(-1, "model.fc1-matmul-0", "forward", 0.0, 0.002),
        ThreadBar(0, "model.fc1-matmul-0", "forward", 0.0, 0.002),
        ThreadBar(-1, "model.conv-conv2d-0", "backward", 0.002, 0.01),
        ThreadBar(0, "model.conv-conv2d-0", "backward", 0.002, 0.008),
        ThreadBar(1, "model.conv-conv2d-0", "backward", 0.003, 0.005),
        ThreadBar(1, "model.conv-conv2d-0", "backward", 0.005, 0.01),
    ),
)


def test_thread_times_are_summed():
    assert busy_seconds(THREADS) == pytest.approx([0.008, 0.007])
    (conv, pieces, left), (_matmul, one, rest) = idle_calls(THREADS)
    assert (conv.name, pieces, one) == ("model.conv-conv2d-0", 3, 1)
    assert left == pytest.approx(2 * 0.008 - 0.013) and rest == pytest.approx(0.002)
    assert "2 threads at a time, 10.00 ms: they worked 75 % of it" in repr(Report(THREADS))


def test_shares_match_hand_computation():
    matmul, relu, copy, update = CALLS
    assert LIMITS.min_seconds(matmul) == 80_281_600 / 1e11 > 2_124_032 / 5e10
    assert limit_share(matmul, LIMITS) == 80_281_600 / 1e11 / 1e-3
    assert LIMITS.min_seconds(relu) == 409_600 / 5e10 > 51_200 / 1e11
    assert limit_share(copy, LIMITS) == 1_200 / 5e10 / 1e-6
    assert limit_share(update, LIMITS) == limit_share(matmul, None) == 0, "not timed, or not measured"
    assert [LIMITS.copy_rate(n) for n in (0, 9_000_000, 11_000_000)] == [5e10, 5e10, 2e10], (
        "the closer limit as a factor"
    )


def test_slowest_calls_of_a_plan():
    report = PlanReport(PlanListing("G_0: plan", CALLS, 1, LIMITS))
    assert [call.step for call in report.slowest(2).record.calls] == [0, 1]
    assert "the 2 slowest take 100 % of the time" in repr(report.slowest(2))
    assert [call.step for call in report.record.calls] == [0, 1, 2, 3], "in execution order"
    assert "... 4 more calls: .slowest(10)" in repr(PlanReport(PlanListing("t", CALLS[:1] * (MAX_CALLS + 4), 1)))


def test_texts(golden):
    records = (
        TREE,
        STAGES,
        CHANGE,
        LANES,
        MEMORY,
        TIMELINE,
        FROZEN,
        WHY,
        PlanListing("G_0: plan", CALLS, 1, LIMITS),
        KERNELS,
        Roofline("G_0: roofline", LIMITS, CALLS),
        Roofline("peaks of this processor", LIMITS, note=f"{'kernels are compiled later ' * 6}Try: minflow warmup"),
        THREADS,
        replace(THREADS, count=1, bars=THREADS.bars[:2]),
    )
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
        FirstCallTimeline("t", ()),
        FrozenValues("t", (), ()),
        PlanReasons("t", ()),
        PlanListing("t", (), 0),
        KernelListing("t", ()),
        Threads("t", 1, 1, 0.0, ()),
        Threads("t", 2, 2, 0.0, ()),
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
