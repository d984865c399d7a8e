"""Reports of a graph: the tree with its badges, passes, lanes, memory, timeline, frozen values, recompilation
reasons.
"""

import itertools
import re

import pytest
from graph_models import MLP, Block, Predict, TrainGraph

import minflow as flow
from minflow import nn
from minflow.compiler.passes.rewrite import rewrite
from minflow.core.ir import outputs_of
from minflow.introspection.graph.listing import profiling
from minflow.introspection.graph.listing.profiling import MAX_RUNS, RecordedRun
from minflow.platforms.compiled.runtime.threads import RECORDERS
from minflow.views.draw.fold import fold
from minflow.views.records.recorders import record_of
from minflow.views.show import picture
from minflow.views.text.listing import graph_text
from minflow.views.text.numbers import ms, nbytes_text


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()) for _ in range(3)])
        self.drop, self.head, self.haed = nn.Dropout(0.5), nn.Linear(64, 3), nn.Linear(64, 7)

    def forward(self, x):
        return self.head(self.drop(self.blocks(self.stem(x)).flatten(1)))


def trained(**config):
    flow.manual_seed(0)
    model = Net()
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    for name, value in config.items():
        getattr(graph.config, name)(value)
    return graph


X, Y = flow.rand(4, 1, 4, 4), flow.tensor([0, 1, 2, 0])


def called(**config):
    graph = trained(**config)
    graph(X, Y)
    return graph


def rows_of(graph):
    return {row.path: row for row in graph.tree().record.rows}


def test_tree_before_and_after_the_first_call():
    graph = trained()
    before = rows_of(graph)
    assert before["model.haed"].badges == () and before["model.head"].calls is None
    assert before["model.head"].outputs == ()
    graph(X, Y)
    rows = rows_of(graph)
    assert rows["model.haed"].badges == ("never ran", "no gradient") and rows["model.head"].badges == ()
    assert rows["model.head"].inputs == ("float32[4, 64]",) and rows["model.head"].outputs == ("float32[4, 3]",)
    assert rows["model.blocks.0"].count == 3 and "model.blocks.1" not in rows and "model.blocks.0.0" in rows
    assert rows["model"].params == sum(p.numel() for p in graph.model.parameters())
    text = repr(graph.tree())
    assert re.search(r"haed: Linear\(.*\[never ran\] \[no gradient\]", text) and re.search(r"0: Sequential  x3", text)
    many = Predict(nn.Sequential(*[nn.Linear(1, 1) for _ in range(1200)]))
    assert "x1,200 (each)" in repr(many.tree())
    assert "haed" not in repr(graph.tree(depth=0)) and "model: Net" in repr(graph.tree(depth=0))


def test_badges_of_frozen_partly_reached_shared_and_repeated_modules():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.frozen, self.twice = nn.Linear(4, 4), nn.Linear(4, 4)
            self.frozen.requires_grad_(False)
            self.alias = self.twice
            self.part = nn.Linear(4, 4)
            self.layers = nn.ModuleList([nn.Linear(4, 4)])

        def forward(self, x):
            x = self.twice(self.twice(self.frozen(x)))
            mixed = nn.functional.linear(x, self.part.weight) + self.part.bias.detach()
            return self.layers[0](mixed)

    model = Odd()
    graph = TrainGraph(model, nn.MSELoss(), flow.optim.SGD(model.parameters(), lr=0.1))
    graph(flow.rand(4, 4), flow.rand(4, 4))
    rows = rows_of(graph)
    assert rows["model.frozen"].badges == ("frozen",) and rows["model.twice"].calls == 2
    assert rows["model.alias"].badges == ("shared",) and rows["model.layers"].badges == ()
    assert rows["model.part"].badges == ("never ran", "no gradient: bias")


def without_dropout(graph):
    dropped = [node for node in graph.nodes if node.op.name == "dropout"]
    instead = {outputs_of(node)[0]: node.inputs[0] for node in dropped}
    return rewrite(graph, [node for node in graph.nodes if node not in dropped], instead)


def test_removing_a_node_in_a_pass_updates_all_reports():
    graph = Predict(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU()))
    graph.repr_style = "v1"

    def everywhere():
        graph(flow.ones(2, 4))
        graph(flow.ones(2, 4))
        lanes = graph.lanes().record
        return [
            any(node.op.name == "dropout" for node in graph.nodes),
            "-dropout-0(" in repr(graph),
            any(n.label == "dropout" for n in record_of(graph).nodes),
            "dropout" in picture(graph).dot,
            any("dropout" in x.name for x in lanes.slowest) and lanes.lanes[0].ops == len(graph.nodes),
            any("dropout" in b.name for b in graph.memory().record.blocks),
            "generator" in {n.label for n in record_of(graph).nodes},
        ]

    assert everywhere() == [True] * 7
    graph.passes.append(without_dropout)
    assert everywhere() == [False] * 7
    change = graph.changes("without_dropout")
    assert [mark for mark, line in change.record.lines if "model.1-dropout-0(" in line] == ["-"]
    assert graph.stages().record.rows[-1].removed == 1
    assert [what for what, _, _ in graph._history[1].reason] == ["graph.passes"]
    graph.passes.remove(without_dropout)
    assert everywhere() == [True] * 7


def test_stages_and_changes():
    graph = called(exact=True)
    rows = graph.stages().record.rows
    assert [row.name for row in rows] == ["trace", *[p.__name__ for p in graph.passes]]
    assert rows[-1].nodes == len(graph.nodes) and rows[-1].arena == graph._last.parts[0].plan.arena_bytes
    assert rows[3].removed >= 1  # constants
    folding = graph.changes("constant_folding").record.lines
    assert any(mark == "-" and line.startswith("full-0()") for mark, line in folding)
    assert repr(graph.changes(0)).endswith("nothing changed") and "operations before" in repr(
        graph.changes("reduce_memory")
    )
    assert any(mark == "+" and "_optimizer(" in line for mark, line in graph.changes("reduce_memory").record.lines)
    with pytest.raises(flow.MinflowError, match="'fusion'"):
        graph.changes("fusion")


def test_lanes_and_profile():
    graph = called()
    first = graph.lanes().record
    assert [lane.phase for lane in first.lanes] == ["forward", "backward", "optimizer"]
    assert sum(lane.ops for lane in first.lanes) == len(graph.nodes)
    assert first.views == len(graph.nodes) - len(graph._last.parts[0].plan.calls) > 0
    assert f"{first.views} of the operations are views and need no call" in repr(graph.lanes())
    assert all(lane.seconds > 0 and lane.nbytes > 0 for lane in first.lanes)
    times = [x.seconds for x in first.slowest]
    assert len(times) == 10 and times == sorted(times, reverse=True)
    for _ in range(3):
        graph(X, Y)
    second = graph.lanes().record
    graph(X, Y)
    assert graph.lanes().record == second, "only the first two calls are timed"
    graph.profile()
    graph(X, Y)
    third = graph.lanes().record
    graph(X, Y)
    assert third != second and graph.lanes().record == third


def test_lanes_of_checkpointing_and_accumulation():
    flow.manual_seed(0)
    model = nn.Sequential(Block(8, 2, 4, 0.1), nn.Flatten(), nn.Linear(32, 3))
    model[0].to(nn.graph.GraphModule).activation_checkpointing = True
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1))
    graph(flow.rand(4, 4, 8), Y)
    assert [lane.phase for lane in graph.lanes().record.lanes] == ["forward", "backward", "recompute", "optimizer"]
    assert "checkpointed" in rows_of(graph)["model.0"].badges
    graph.config.set_gradient_accumulation_steps(2)
    graph(flow.rand(4, 4, 8), Y)
    assert "micro-step (of 2)" in repr(graph.lanes()) and "micro-step: dead_code" in repr(graph.stages())
    assert "memory of the update" in repr(graph.memory(1)) and "micro-step" in record_of(graph).title


def test_memory():
    graph = called()
    record = graph.memory().record
    assert record.least <= record.arena <= record.total
    assert record.in_place == len(graph._last.parts[0].plan.in_place) > 10
    assert all(b.offset + b.nbytes <= record.arena and b.first <= b.last <= record.steps for b in record.blocks)
    text = repr(graph.memory())
    assert text.count("|") >= 24 and "largest" in text
    assert any(block.where.startswith("test_reports.py:") for block in record.blocks)


def test_plan_listing():
    graph = called()
    plan, report = graph._last.parts[0].plan, graph.plan
    calls = report.record.calls
    assert [call.op for call in calls] == [node.op.name for node in plan.nodes]
    assert [call.seconds for call in calls] == plan.seconds
    placed = {call.step: call.offset for call in calls if call.offset is not None}
    assert (
        placed
        == {i: plan.places[v][0] for i, node in enumerate(plan.nodes) for v in outputs_of(node)[:1] if v in plan.places}
        and len(placed) > 20
    )
    assert {call.place for call in calls} == {"", "state"} and {call.phase for call in calls} == {
        "forward",
        "backward",
        "optimizer",
    }
    head = next(call for call in calls if call.op == "matmul")
    assert head.inputs == ("float32[4, 64]", "float32[3, 64]") and head.outputs == ("float32[4, 3]",)
    assert head.flops == 2 * 4 * 64 * 3 and head.moved == 4 * (4 * 64 + 3 * 64 + 4 * 3)
    assert head.module == "model.head" and head.where.startswith("test_reports.py:")
    slowest = report.slowest(3).record.calls
    assert [call.seconds for call in slowest] == sorted(plan.seconds, reverse=True)[:3]
    assert "GFLOP/s" in repr(report) and "model.head-matmul" in repr(report)
    assert repr(report).splitlines()[0] == (
        f"{graph.name}: plan, {len(calls)} calls, arena {nbytes_text(plan.arena_bytes)}; "
        f"{ms(sum(plan.seconds))} in one call, operation by operation; graph.profile() takes the median of seven calls"
    )


def test_plan_of_accumulation_has_both_parts():
    graph = called(set_gradient_accumulation_steps=2)
    parts = graph._last.parts
    assert len(graph.plan.record.calls) == sum(len(part.plan.calls) for part in parts)
    assert graph.plan.record.arena == sum(part.plan.arena_bytes for part in parts)


def test_plan_that_did_not_run_has_no_times(monkeypatch):
    graph = trained()
    graph.compiled_for((X, Y), {})
    monkeypatch.setattr(
        "minflow.platforms.compiled.roofline_peaks.ceilings", lambda: pytest.fail("measured for nothing")
    )
    assert graph.plan.record.peaks is None and all(call.seconds is None for call in graph.plan.record.calls)


def test_roofline():
    graph = called()
    record = flow.roofline(graph).record
    assert record.calls == graph.plan.record.calls and record.peaks == flow.roofline().record.peaks
    assert "at the ceilings all would take" in repr(flow.roofline(graph)) and not flow.roofline().record.calls
    with pytest.raises(TypeError, match="not Linear"):
        flow.roofline(nn.Linear(2, 2))


class Stateful(nn.Module):
    """Everything that a step can write: parameters, buffers, a buffer that is rebound, random numbers."""

    def __init__(self):
        super().__init__()
        self.net = Net()
        self.register_buffer("seen", flow.zeros(()))

    def forward(self, x):
        self.seen = self.seen + 1
        return self.net(x)


def stateful(**config):
    flow.manual_seed(3)
    model = Stateful()
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
    schedule = flow.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    graph = TrainGraph(model, nn.CrossEntropyLoss(), optimizer, lr_sch=schedule)
    for name, value in config.items():
        getattr(graph.config, name)(value)
    return graph


def state_of(graph):
    """All that a step leaves behind, as lists of numbers."""
    tensors = {**graph.state_dict()["model"], **{f"grad {name}": g for name, g in graph.grads.items()}}
    drawn = flow.default_generator.get_state()
    return {name: t.tolist() for name, t in tensors.items()}, drawn.tolist(), graph.lr, graph._steps


@pytest.mark.parametrize("config", [{}, {"exact": True}, {"set_gradient_accumulation_steps": 2}])
def test_repeated_runs_of_a_profiled_call_leave_no_trace(monkeypatch, config):
    monkeypatch.setattr(profiling, "MAX_SECONDS", 60.0)
    left = []
    for profiled in (False, True):
        graph, results = stateful(**config), []
        for step in range(4):
            if profiled and step in (0, 2):
                graph.profile()
            results.append(graph(X, Y).tolist())
        assert not profiled or graph._last.timing.runs == MAX_RUNS
        left.append((results, *state_of(graph)))
    assert left[0] == left[1]


def test_views_agree_on_the_median_run(monkeypatch):
    monkeypatch.setattr(profiling, "MAX_SECONDS", 60.0)
    graph = called()
    graph.profile()
    graph(X, Y)
    timing, plan = graph._last.timing, graph._last.plan
    graph(X, Y)
    assert graph._last.timing is timing and timing.least <= timing.seconds <= timing.most
    assert sum(plan.seconds) == pytest.approx(timing.seconds) and graph._last.recorded.total == timing.seconds
    assert graph.threads().record.seconds == pytest.approx(timing.seconds, abs=1e-7)
    assert sum(lane.seconds for lane in graph.lanes().record.lanes) == pytest.approx(timing.seconds)
    spread = f"the median of 7 calls ({timing.least * 1e3:.2f} to {ms(timing.most)})"
    for view in (graph.plan, graph.lanes(), graph.threads(), flow.roofline(graph)):
        assert f"{ms(timing.seconds)}, {spread}" in repr(view)
    assert spread in graph.threads()._repr_mimebundle_()["text/html"]


def test_chosen_run_is_the_median(monkeypatch):
    graph = called()
    durations, found = iter([0.5, 5.0, 1.0, 4.0, 2.0, 3.0, 7.0, 6.0]), {}

    def total(run):
        if id(run.calls) not in found:
            found[id(run.calls)] = run.calls, next(durations)
        return found[id(run.calls)][1]

    monkeypatch.setattr(RecordedRun, "total", property(total))
    graph.profile()
    graph(X, Y)
    timing = graph._last.timing
    assert (timing.seconds, timing.least, timing.most, timing.runs) == (4.0, 1.0, 7.0, 7), "without the call itself"
    assert graph._last.recorded.total == 4.0 and graph._last.plan.seconds is graph._last.recorded.seconds[0]


def test_number_of_repeated_runs(monkeypatch):
    graph = called()

    def runs(calls=1):
        graph.profile(calls)
        for _ in range(calls):
            graph(X, Y)
        return graph._last.timing.runs, graph._last.timing.note

    monkeypatch.setattr(profiling, "MAX_RUNS", 4)
    assert runs() == (3, ""), "odd, so that one of them is the median"
    assert runs(3) == (3, "")
    monkeypatch.setattr(profiling, "MAX_SECONDS", 0.0)
    assert runs() == (1, "it takes more than 0 s") and "in one call, not repeated" in repr(graph.threads())
    graph.profile(2)
    graph(X, Y)
    assert graph._last.timing.note == "the last call is repeated"


def test_own_operations_run_once():
    calls = []

    @flow.library.custom_op("noted_in_profile(x)")
    def noted(xp, x):
        calls.append(len(calls))
        return x * 2

    class Own(nn.Graph):
        def build(self, x):
            return noted(x)

    graph, x = Own(), flow.ones(3)
    graph(x)
    calls.clear()
    graph(x)
    graph.profile()
    graph(x)
    assert len(calls) == 2 and "it runs operations of your own" in graph._last.timing.note


def test_error_in_a_profiled_call_leaves_the_graph_as_it_was():
    graph = called()
    units, calls = graph._last.plan.units, graph._last.plan.calls
    graph.profile()
    with pytest.raises(flow.MinflowError):
        graph(X, flow.tensor([0, 1, 2, 9]))
    assert graph._last.plan.units is units and graph._last.plan.calls is calls and not RECORDERS
    assert graph._last.timing is None
    graph(X, Y)


def test_threads():
    graph = called()
    with pytest.raises(flow.MinflowError, match="watched"):
        graph.threads()
    plan = graph._last.parts[0].plan
    calls = plan.calls
    graph.profile()
    graph(X, Y)
    assert plan.calls is calls and not RECORDERS, "as before"
    record = graph.threads().record
    whole = [bar for bar in record.bars if bar.thread < 0]
    assert [bar.name for bar in whole] == [call.name for call in graph.plan.record.calls]
    assert (
        all(0 <= a.start <= a.stop <= b.start for a, b in itertools.pairwise(whole))
        and record.seconds == whole[-1].stop
    )
    assert [bar.stop - bar.start for bar in whole] == pytest.approx(plan.seconds, abs=1e-9)
    assert {bar.thread for bar in record.bars} == set(range(-1, record.count))
    graph(X, Y)
    assert graph.threads().record == record, "only profiled calls are observed"


def test_threads_of_accumulation_cover_all_micro_steps():
    graph = trained(set_gradient_accumulation_steps=2)
    graph.profile()
    graph(X, Y)
    micro, update = graph._last.parts
    whole = [bar.name for bar in graph.threads().record.bars if bar.thread < 0]
    assert whole == 2 * [micro.names[node] for node in micro.plan.nodes] + [update.names[n] for n in update.plan.nodes]


def test_chunks_are_within_their_calls():
    """The second call: 2 ms before the first chunk, a chunk shared by two threads, and a gap in which the
    caller works.
    """
    graph = called()
    graph._last.recorded = (
        7,
        [("a", "forward", 10.0, 11.0), ("b", "backward", 11.0, 20.0)],
        [(7, 0, 13.0, 15.0), (9, 1, 13.5, 16.0), (9, 2, 17.0, 20.0)],
        [],
    )
    bars = graph.threads().record.bars
    assert [(bar.thread, bar.name, bar.start, bar.stop) for bar in bars] == [
        (-1, "a", 0, 1),
        (0, "a", 0, 1),
        (-1, "b", 1, 10),
        (0, "b", 1, 3),
        (0, "b", 3, 5),
        (1, "b", 3.5, 6),
        (0, "b", 6, 7),
        (1, "b", 7, 10),
    ]
    assert graph.threads().record.count == 2 and bars[-1].phase == "backward"


def test_timeline():
    graph = called(exact=True)
    assert [name for name, _ in graph.timeline().record.bars] == [
        "trace",
        *[p.__name__ for p in graph.passes],
        "plan",
        "first run",
    ]
    graph(X, Y)
    bars = graph.timeline().record.bars
    assert bars[-1][0] == "second run" and all(seconds > 0 for _, seconds in bars)


def test_frozen_values():
    table = flow.tensor([1.0, 2.0, 3.0])

    class Frozen(TrainGraph):
        def build(self, x, y):
            scores = self.model(x) * table * self.factor + flow.tensor([0.5, 0.5, 0.5])
            loss = self.loss_fn(scores, y)
            loss.backward()
            return loss

    model = Net()
    graph = Frozen(model, nn.CrossEntropyLoss(), flow.optim.Adam(model.parameters(), lr=0.25, weight_decay=0.125))
    model.stem.eval()
    graph.factor = 3
    graph(X, Y)
    record = graph.frozen().record
    built_in, free = dict(record.built_in), dict(record.free)
    assert built_in["modules in eval()"] == "model.stem" and built_in["modules in train()"] == "loss_fn, model"
    assert built_in["self.factor"] == "3" and [name for name in built_in if name.startswith("self.")] == ["self.factor"]
    assert "weight_decay=0.125" in built_in["Adam"] and "constant" in built_in["constants"]
    assert free["learning rate"] == "0.25" and "float32[3]" in free["captured tensor table"]
    assert "random numbers" in free
    assert built_in["recording of gradients"] == "True" and "fixed in this plan" in repr(graph.frozen())


def test_recompilation_reasons():
    graph = called()
    graph(X[:2].clone(), Y[:2].clone())
    graph.model.eval()
    graph(X, Y)
    plans = graph.why().record.plans
    assert plans[0].reasons == () and len(plans) == 3
    assert ("x", "float32[4, 1, 4, 4]", "float32[2, 1, 4, 4]") in plans[1].reasons
    assert plans[1].note == "build did not run for these sizes: they follow from those of plan 0" and not plans[1].hints
    assert ("model.drop.training", "True", "False") in plans[2].reasons
    text = repr(graph.why())
    assert "3 plans made, 3 kept" in text and "because x: float32[4, 1, 4, 4] -> float32[2, 1, 4, 4]" in text


def test_before_the_first_call():
    graph = Predict(MLP())
    for look in (
        graph.stages,
        graph.lanes,
        graph.memory,
        graph.timeline,
        graph.frozen,
        lambda: graph.changes(0),
        lambda: graph.plan,
        lambda: flow.roofline(graph),
        graph.threads,
    ):
        with pytest.raises(flow.MinflowError, match="has not been called"):
            look()
    assert "0 plans made" in repr(graph.why()) and "not called yet" in picture(graph).text
    assert graph._repr_mimebundle_()["text/plain"] == repr(graph)


def test_graph_picture():
    graph = called()
    view = picture(graph)
    assert len(view.record.nodes) > 40 and view.dot.count("label=") and "<svg" in view.svg
    assert {"model.head.weight", "lr", "generator"} <= {n.label for n in view.record.nodes if n.kind == "state"}
    bundle = graph._repr_mimebundle_()
    assert "data:image/svg+xml" in bundle["text/html"] and bundle["text/plain"] == repr(graph)


def test_large_graph_picture_is_folded_by_module_and_phase():
    flow.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.ReLU()) for _ in range(9)])
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    graph(flow.rand(4, 6), Y)
    record = record_of(graph)
    boxes = fold(record, 10)
    labels = [n.label for n in boxes.nodes]
    assert labels == ["x", "y", "model", "loss_fn", "loss_fn backward", "model backward", "optimizer"]
    assert sum(n.count for n in boxes.nodes if n.kind in ("op", "folded")) == len(graph.nodes)
    named = {n.id: n.label for n in boxes.nodes}
    assert {(named[state], named[source]) for state, source, _ in boxes.updates} == {
        ("model", "optimizer"),
        ("optimizer", "optimizer"),
    }
    view = picture(graph, boxes=10)
    assert view.dot.count(" -> ") == 8 and "updates 18 states of other boxes" in view.dot and "<svg" in view.svg
    assert all(len(line) <= 120 for line in graph_text(record, 10).split("\n"))


def test_training_picture_opens_forward_and_folds_backward():
    flow.manual_seed(0)
    model = flow.vision.models.lenet()
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    graph.config.exact(True)
    graph(flow.rand(2, 1, 28, 28), flow.tensor([1, 2]))
    boxes = fold(record_of(graph)).nodes
    assert [n.label for n in boxes] == [
        "x", "y", "conv1", "relu", "pool1: max_pool2d", "conv2", "relu", "pool2: max_pool2d", "reshape", "fc1", "relu",
        "dropout", "fc2", "loss_fn", "loss_fn backward", "model backward", "optimizer"]  # fmt: skip
    place = {n.id: i for i, n in enumerate(boxes)}
    assert all(place[x.ref] < place[n.id] for n in boxes for x in n.inputs if x.ref), "a box reads a later one"
    assert sum(n.count for n in boxes if n.kind in ("op", "folded")) == len(graph.nodes)


def test_folded_layer_shows_its_result_without_buffer_updates():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    graph(flow.rand(4, 1, 4, 4), Y)
    record = fold(record_of(graph))
    norm = next(n for n in record.nodes if n.kind == "folded" and n.label.endswith("1"))
    assert norm.outs[0] == "float32[4, 2, 2, 2]" and "float32[2]" in norm.outs[1:]
    assert sum(state == source for state, source, _ in record.updates if state == norm.id) == 3


def test_both_graphs_of_gradient_accumulation_are_shown():
    graph = called(set_gradient_accumulation_steps=2)
    view = picture(graph, boxes=200)
    assert [part.title.partition(":")[0] for part in view.record.parts] == [
        f"{graph.name}, micro-step",
        f"{graph.name}, update",
    ]
    assert "sgd_momentum" in view.text and "conv2d" in view.text and "conv2d" in view.dot
    assert "sgd_momentum" not in view.dot
    bundle = graph._repr_mimebundle_()
    assert bundle["text/html"].count("data:image/svg+xml") == 2 and bundle["text/plain"] == repr(graph)
    once = sum(graph._last.parts[0].plan.seconds)
    assert once > 0 and len(graph._last.parts[0].plan.seconds) == len(graph._last.parts[0].plan.calls)
