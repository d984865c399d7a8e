"""Views of global tensors and ranks: choices of sbp, pictures, and timelines. Values come from the graph."""

import itertools
import re

import pytest

import minflow as flow
from minflow import distributed as dist, nn
from minflow.core.base.placement import Placement, broadcast as B, partial_sum as P, split
from minflow.views.draw import theme
from minflow.views.draw.boxes import sbp_key
from minflow.views.renderers.ranks import COLORS, ranks_svg
from minflow.views.show import picture
from tests.distributed.graph_programs import STRATEGIES, prepared, spread


def on_ranks(size, program, *args):
    """The results of a program on virtual ranks."""
    with flow.virtual_ranks(size) as ranks:
        return ranks.run(program, *args)


def trained_graph(strategy, size):
    graph, x, y = prepared(strategy, size)
    graph(x, y)
    return graph


# ---- explain_sbp -----------------------------------------------------------------------------------------------------


class Product(nn.Graph):
    def build(self, x, w):
        return x @ w


def product_choice(sbp_of_x, sbp_of_w, rows=64):
    """The explanation of a product of x [rows, 32] and w [32, 16] on two ranks."""

    def program():
        placement = Placement("cpu", [0, 1])
        graph = Product()
        graph(
            spread(flow.ones(rows, 32).numpy(), placement, [sbp_of_x]),
            spread(flow.ones(32, 16).numpy(), placement, [sbp_of_w]),
        )
        return graph.explain_sbp("matmul-0")

    one, other = on_ranks(2, program)
    assert one.record == other.record  # all ranks choose alike
    return one


def test_rows_and_bytes():
    report = product_choice(split(0), split(1))
    (call,) = report.record.calls
    (choice,) = call.choices
    assert choice.have == ("S(0)", "S(1)")
    assert [name for name, *_ in call.inputs] == ["a", "b"]
    rows = {(row.inputs, row.outputs): row for row in choice.rows}
    x, w = 64 * 32 * 4, 32 * 16 * 4  # bytes
    assert rows[("S(0)", "B"), ("S(0)",)].nbytes == (0, w / 2)  # all-gather: half of it
    assert rows[("S(1)", "S(0)"), ("P",)].nbytes == (x / 4, w / 4)  # all-to-all: a quarter
    assert rows[("B", "S(1)"), ("S(1)",)].nbytes == (x / 2, 0)
    assert rows[("B", "B"), ("B",)].total == x / 2 + w / 2
    assert [row for row in choice.rows if row.chosen] == [rows[("S(0)", "B"), ("S(0)",)]]
    assert [row.total for row in choice.rows] == sorted(row.total for row in choice.rows)
    assert choice.why == "fewest bytes"
    assert "S(0), B -> S(0)  [chosen]" in report.text and "S(1) -> B, 1.0 kB" in report.text
    assert "S(1) \u2192 B, 1.0 kB" in report._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    "x, w, chosen, why",
    [
        (B, B, ("B", "B"), "fewer inputs are boxed"),
        (split(0), B, ("S(0)", "B"), "fewest bytes"),
        (split(1), split(0), ("S(1)", "S(0)"), "fewest bytes"),
        (P, B, ("P", "B"), "fewest bytes"),
    ],
)
def test_reasons(x, w, chosen, why):
    (choice,) = product_choice(x, w).record.calls[0].choices
    assert [row.inputs for row in choice.rows if row.chosen] == [chosen] and why in choice.why
    assert choice.rows[0].chosen


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_every_choice_of_a_training(strategy, size):
    """The row that is explained is the one of the node, along each axis of ranks; the bytes are those of the cheapest
    one.
    """

    def program():
        graph = trained_graph(strategy, size)
        (part,) = graph._last.parts
        checked = 0
        for node in part.stages[0].graph.nodes:
            spec = node.out_specs[0]
            if spec.placement is None or node.op.distributes:
                continue
            (call,) = graph.explain_sbp(part.name_of(node)).record.calls
            assert len(call.choices) == len(spec.placement.hierarchy)
            for axis, choice in enumerate(call.choices):
                (chosen,) = [row for row in choice.rows if row.chosen]
                sbp = spec.sbp[axis]
                assert chosen.outputs[0] == {"split": f"S({sbp.dim})", "broadcast": "B", "partial_sum": "P"}[sbp.kind]
                assert chosen.total == min(row.total for row in choice.rows)
            checked += 1
        return checked

    assert min(on_ranks(size, program)) > 15


def test_a_boxing_of_the_program_is_not_part_of_a_choice():
    class Graph(nn.Graph):
        def build(self, x, w):
            return x.to_global(sbp=B) @ w

    def program():
        placement = Placement("cpu", [0, 1])
        graph = Graph()
        graph(spread(flow.ones(8, 4).numpy(), placement, [split(0)]), spread(flow.ones(4, 4).numpy(), placement, [B]))
        return graph.explain_sbp("matmul").record.calls[0].choices[0].have

    assert on_ranks(2, program) == [("B", "B")] * 2


def test_mistakes():
    def program():
        graph = trained_graph(STRATEGIES[1], 2)
        with pytest.raises(flow.GraphError, match="model-matmul-7(.|\n)*Try: one of model-matmul-"):
            graph.explain_sbp("model-matmul-7")
        (part,) = graph._last.parts
        boxing = next(node for node in part.stages[0].graph.nodes if node.op.name == "boxing")
        with pytest.raises(flow.GraphError, match=r"has no rows(.|\n)*Try: graph.explain_sbp\('.*'\), which reads it"):
            graph.explain_sbp(part.name_of(boxing))

    on_ranks(2, program)
    graph = Product()
    with pytest.raises(flow.GraphError, match="Product_0 has not been called yet"):
        graph.explain_sbp("matmul-0")
    graph(flow.ones(2, 2), flow.ones(2, 2))
    with pytest.raises(flow.GraphError, match="no operation on global tensors(.|\n)*Try: x.to_global"):
        graph.explain_sbp("matmul-0")


# ---- bytes of boxing -------------------------------------------------------------------------------------------------


def test_bytes_sent():
    def program():
        placement = Placement("cpu", [0, 1])
        x = spread(flow.ones(64, 32).numpy(), placement, [split(0)])
        before = dist.bytes_sent()
        x.to_global(sbp=B)
        return dist.bytes_sent() - before

    assert on_ranks(2, program) == [64 * 32 * 4 / 2] * 2
    assert isinstance(dist.bytes_sent(), int)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_debug_prints_the_bytes_that_a_step_sends(strategy, size, capsys):
    """The bytes of all boxings of the log, without those that a pass removes, are what a call sends."""

    def program():
        graph, x, y = prepared(strategy, size)
        graph.debug(2, ranks=size - 1)
        graph(x, y)
        before = dist.bytes_sent()
        graph(x, y)
        return dist.bytes_sent() - before

    sent = on_ranks(size, program)[-1]
    lines = [line for line in capsys.readouterr().out.splitlines() if "boxing" in line and "sends" in line]
    listed = [int(n) for line in lines for n in re.findall(r"sends (\d+) B\)$", line)]
    assert len(listed) == len(lines) > 3
    assert sum(listed) == sent > 0


# ---- the picture -----------------------------------------------------------------------------------------------------


def size_of(whole, part):
    """The size of a part of an axis, written as a slice."""
    return whole if part == ":" else int(part.partition(":")[2]) - int(part.partition(":")[0])


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_picture(strategy, size):
    def program():
        graph, x, y = prepared(strategy, size)
        graph(x, y)
        before = dist.bytes_sent()
        graph(x, y)
        return (
            picture(graph, boxes=99),
            dist.bytes_sent() - before,
            {name: p for name, p in graph.model.named_parameters()},
        )

    results = on_ranks(size, program)
    view, _, parameters = results[0]
    records = {node.label: node for node in view.record.nodes}
    assert "in_order" not in records
    for name, parameter in parameters.items():  # the logical shape, and the slice of each rank
        record = records[f"model.{name}"]
        assert record.outs[0].startswith(f"float64{list(parameter.shape)} (")
        held = dict(re.findall(r"(?:^|; )ranks? ([\d, ]+): (.*?)(?=;|$)", record.holders))
        assert sorted(int(rank) for ranks in held for rank in ranks.split(",")) == list(range(size))
        for ranks, index in held.items():
            sizes = [
                size_of(*pair) for pair in zip(parameter.shape, index.strip("[]").replace("all", ":, :").split(", "))
            ]
            for rank in ranks.split(", "):
                assert sizes == list(results[int(rank)][2][name].to_local().shape)
    boxings = [node for node in view.record.nodes if node.label == "boxing"]
    listed = [re.search(r", ([\d.]+) (k?)B$", node.attrs).groups() for node in boxings]
    total = sum(float(n) * (1000 if kilo else 1) for n, kilo in listed)  # rounded: 1.2 kB
    assert len(boxings) > 3 and 1.05 * total >= max(sent for _, sent, _ in results) > 0
    boxes = {box.id: box for box in view.diagram.boxes}
    for node in view.record.nodes:
        if node.sbp and node.id in boxes:
            assert (boxes[node.id].fill, boxes[node.id].color) == theme.SBP_COLORS[sbp_key(node.sbp)]
            assert boxes[node.id].title.endswith(node.holders)
    words = [words.partition(":")[0] for words, *_ in view.diagram.legend]
    assert {"B", "P", "boxing"} <= set(words) and all(f">{word}: " in view.svg for word in words)
    assert re.search(r"\nranks? 0(, \d+)*: [^<]*</title>", view.svg)
    assert "who holds which slice:" in view.text


def test_folded_boxes_have_the_bytes_of_the_boxing_in_them():
    def program():
        graph = trained_graph(STRATEGIES[1], 4)
        return [picture(graph, boxes=boxes) for boxes in (99, 8)]

    whole, folded = on_ranks(4, program)[0]
    sent = sum(node.sent for node in whole.record.nodes)
    boxes = [line for box in folded.diagram.boxes for line in box.lines if "boxing sends" in line]
    assert len(folded.diagram.boxes) <= 8 < len(whole.diagram.boxes) and boxes
    units = [re.fullmatch(r"boxing sends ([\d.]+) (k?)B", line).groups() for line in boxes]
    assert sum(float(n) * (1000 if kilo else 1) for n, kilo in units) == pytest.approx(sent, rel=0.05)


def test_a_local_graph_has_no_legend():
    graph = Product()
    graph(flow.ones(2, 2), flow.ones(2, 2))
    view = picture(graph)
    assert (
        not view.diagram.legend
        and "who holds" not in view.text
        and "ranks 0" not in view.svg
        and "rank 0" not in view.svg
    )


@pytest.mark.parametrize("one, other", [*itertools.combinations(["S(0)", "S(1)", "B", "P"], 2)])
def test_colors_of_sbp_differ_without_red_and_without_green(one, other):
    """The projections of a protanope and a deuteranope (Vienot 1999) leave blue and a mix of red and green."""
    colors = [[int(theme.SBP_COLORS[sbp][0][i : i + 2], 16) for i in (1, 3, 5)] for sbp in (one, other)]
    for red in (0.11, 0.29):
        seen = [(red * r + (1 - red) * g, b) for r, g, b in colors]
        assert max(abs(a - b) for a, b in zip(*seen)) > 20
    assert all(theme.contrast(theme.TEXT_COLOR, fill) >= 4.5 for fill, _ in theme.SBP_COLORS.values())
    assert {rim for _, rim in theme.SBP_COLORS.values()} <= set(theme.LINE_COLORS)


# ---- the timeline of ranks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_rank_lanes(size, accumulate):
    def program():
        graph, x, y = prepared(STRATEGIES[1], size, accumulate=accumulate)
        graph(x, y)
        graph.profile()
        before = dist.bytes_sent()
        graph(x, y)
        sent = dist.bytes_sent() - before
        calls = [
            (part.names[node], node.op.communicates)
            for part in graph._last.parts
            for node in part.plan.nodes * (accumulate if part is graph._last.parts[0] else 1)
        ]
        return graph.rank_timeline(), sent, calls

    results = on_ranks(size, program)
    report = results[0][0]
    record = report.record
    assert all(other.record == record for other, *_ in results)
    assert list(record.sent) == [sent for _, sent, _ in results] and min(record.sent) > 0
    for rank, (_, _, calls) in enumerate(results):
        bars = [bar for bar in record.bars if bar.rank == rank]
        assert [(bar.name, bar.communicates) for bar in bars] == calls
        assert all(0 <= bar.start <= bar.stop <= record.seconds for bar in bars)
        assert all(a.stop <= b.start for a, b in itertools.pairwise(bars))
        assert 0 < record.busy(rank, True) < record.seconds and 0 < record.busy(rank, False) < record.seconds
    assert f"{size} ranks, " in report.text and "% of the step is communication" in report.text
    picture_of_ranks = ranks_svg(record)
    assert all(f">rank {rank}<" in picture_of_ranks for rank in range(size))
    assert all(fill in picture_of_ranks for colors in COLORS.values() for fill in colors)


def test_an_all_reduce_of_ddp_is_communication():
    def program():
        model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
        graph = Plain(model, flow.optim.SGD(model.parameters(), lr=0.1))
        graph(flow.ones(3, 4))
        graph.profile()
        graph(flow.ones(3, 4))
        return graph.rank_timeline().record

    record, _ = on_ranks(2, program)
    assert any(bar.communicates for bar in record.bars) and record.busy(0, True) > 0


class Plain(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


def test_ranks_that_have_not_been_profiled():
    def program():
        graph, x, y = prepared(STRATEGIES[1], 2)
        graph(x, y)
        if dist.get_rank() == 0:
            graph.profile()
        graph(x, y)
        with pytest.raises(flow.GraphError, match=r"on the ranks \[1\](.|\n)*Try: graph.profile\(\) on all ranks"):
            graph.rank_timeline()

    on_ranks(2, program)
