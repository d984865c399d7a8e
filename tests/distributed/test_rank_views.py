"""Views of global tensors and ranks: choices of sbp, pictures, and timelines. Values come from the graph."""

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.placement import Placement, broadcast as B, partial_sum as P, split
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
