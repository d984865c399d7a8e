"""`show(x, open=...)`: composite operations are drawn as the operations that they consist of, in a frame of their own.

The decomposition itself is tested in tests/core/test_composites.py and tests/compiler/test_decomposition.py.
"""

from collections import Counter

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.passes import dead_code, decompose
from minflow.core.base.errors import DTypeError, GradError
from minflow.core.dispatch import apply
from minflow.core.ir import InnerTape, inner_nodes
from minflow.core.op import OPS
from minflow.core.ops.examples import cases
from minflow.diagnosis.card_record import card_of
from minflow.nn import functional as F
from minflow.views.draw.fold import fold
from minflow.views.show import picture
from tests.cases import Cases

COMPOSITES = [op for op in OPS.values() if op.decompose]
every_composite = pytest.mark.parametrize("op", COMPOSITES, ids=lambda op: op.name)


class Block(nn.Module):
    """Two normalizations and two activations in one module, so that their frames must differ."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(flow.ones(8))
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        x = F.gelu(self.fc(F.layer_norm(x, (8,), self.weight)))
        return F.gelu(F.layer_norm(x, (8,)))


class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = Block()
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


BLOCK = Block()


def loss():
    return BLOCK(flow.ones(4, 8)).sum()


def traced():
    """The graph of a training step before all passes."""
    graph = Train()
    graph(flow.ones(4, 8))
    return graph._last.parts[0].stages[0].graph


def ops(record):
    return Counter(node.label for node in record.nodes if node.kind == "op")


def reached(record):
    """The operations that a gradient reaches from the result."""
    known, stack, found = {n.id: n for n in record.nodes}, [record.root], {}
    while stack:
        node = known[stack.pop()]
        if node.kind == "op" and node.needs and node.id not in found:
            found[node.id] = node
            stack += [x.ref for x in node.inputs if x.ref]
    return found.values()


def all_inner(node):
    """The nodes of the tape of a decomposition, also of composite operations in it."""
    for inner in inner_nodes(node):
        yield from all_inner(inner) if inner.saved.__class__ is InnerTape else [inner]


@every_composite
def test_a_tape_opens_into_the_tape_of_the_decomposition(op, kernels_of_numpy):
    """With a gradient for all inputs, and for each one alone."""
    with Cases() as case:
        for i, example in enumerate(cases(op)):
            arrays = example.arrays()
            floats = [k for k, x in enumerate(arrays) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
            for needed in [floats, *[[k] for k in floats]]:
                with case(f"example {i}, gradients for {needed}"):
                    inputs = [flow.tensor(x) if isinstance(x, np.ndarray) else x for x in arrays]
                    for k in needed:
                        inputs[k].requires_grad_()
                    outs = apply(op, *inputs, **example.attrs)
                    for out in outs if isinstance(outs, tuple | list) else [outs]:
                        if not out.requires_grad:
                            continue
                        view = picture(out, open=True, boxes=1000)
                        node = out._value.node
                        if node.op is op and node.saved.__class__ is InnerTape and len(node.out_specs) == 1:
                            expected = Counter(str(inner.op) for inner in all_inner(node))
                            assert Counter(n.label for n in reached(view.record) if n.needs) == expected
                        assert op.name not in ops(view.record)
                        assert view.dot and view.text


def test_a_graph_opens_like_the_pass_decompose():
    graph = traced()
    record = picture(graph, open=True).record
    assert ops(record) == Counter(str(node.op) for node in dead_code(decompose(graph, ())).nodes)
    assert not ops(record) & Counter(op.name for op in OPS.values() if op.composite)


def test_each_operation_has_its_own_frame():
    frames = picture(traced(), open=True).diagram.frames
    parts = ["layer_norm", "layer_norm 2", "gelu", "gelu 2"]
    assert sorted(frames) == sorted(
        [
            "model",
            "fc",
            *parts,
            *[x.replace("norm", "norm_grad") for x in parts[:2]],
            *[x.replace("gelu", "gelu_grad") for x in parts[2:]],
        ]
    )
    assert set(picture(loss(), open=True).diagram.frames) == {"Block", "fc", *parts}


def test_parameters_are_outside_of_the_frame():
    view = picture(loss(), open=True)
    leaf = next(node for node in view.record.nodes if node.kind == "leaf" and "weight" in node.label)
    assert leaf.scope == "Block"
    state = next(node for node in picture(traced(), open=True).record.nodes if node.label == "model.weight")
    assert state.scope == "model"


def test_names_choose():
    graph = traced()

    def closed(**options):
        return sorted(
            x for x in ops(picture(graph, **options).record) if x.partition("_grad")[0] in OPS and OPS[x].composite
        )

    assert closed() == ["gelu", "gelu_grad", "layer_norm", "layer_norm_grad"]
    assert closed(open="gelu") == ["layer_norm", "layer_norm_grad"]
    assert closed(open=["gelu_grad"]) == ["gelu", "layer_norm", "layer_norm_grad"]
    assert closed(open=["gelu", "layer_norm"]) == closed(open="model") == closed(open=True) == []
    assert closed(open=False) == closed()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_name_that_a_pass_has_opened_already_is_known(compiled, request):
    """The same cell works with and without compiled kernels."""
    if not compiled:
        request.getfixturevalue("kernels_of_numpy")
    graph = Train()
    graph(flow.ones(4, 8))
    assert "gelu" not in ops(picture(graph, open="gelu").record)


def test_mistakes_name_what_there_is():
    with pytest.raises(DTypeError, match=r"(?s)'relu'.*layer_norm, gelu"):
        picture(loss(), open="relu")
    with pytest.raises(DTypeError, match="(?s)'gelu'.*has none"):
        picture(nn.Linear(2, 2), open="gelu")
    with pytest.raises(DTypeError, match="got 3"):
        picture(loss(), open=3)
    with pytest.raises(DTypeError, match="open is for tapes and graphs"):
        picture(flow.ones(3), open=True, numbers=True)


def test_an_input_without_a_gradient_is_one_box():
    """Tapes keep only its spec, which each user would otherwise repeat."""
    x, weight = flow.ones(4, 8), flow.ones(8).requires_grad_()
    view = picture(F.layer_norm(x, (8,), weight).sum(), open=True)
    (constant,) = [node for node in view.record.nodes if node.kind == "constant"]
    assert (constant.label, constant.outs) == ("x", ("float32[4, 8]",))
    assert "x float32[4, 8], no gradient" in view.text
    edges = [edge for edge in view.diagram.edges if edge.source == constant.id]
    assert len(edges) == 2 and {edge.style for edge in edges} == {"dashed"}


def test_values_of_opened_results():
    h = F.gelu(flow.ones(3).requires_grad_())
    out = (h * 2).sum()
    text = picture(out, values=True, open=True, names={"h": h, "out": out}).text
    assert "value h = [0.8413, 0.8413, 0.8413]" in text


def test_after_backward_and_with_a_kernel(kernels_of_numpy):
    """The tape of the decomposition is freed by backward, and does not exist if a kernel ran."""
    out = loss()
    before = ops(picture(out, open=True).record)
    out.backward()
    assert ops(picture(out, open=True).record) == before


def test_a_listing_indents_the_parts():
    lines = picture(traced(), open="layer_norm").text.splitlines()
    head = next(
        i for i, line in enumerate(lines) if line.startswith("layer_norm(axes=(-1,), eps=1e-05) -> float32[4, 8]:")
    )
    assert lines[head].endswith("  model")
    assert lines[head + 1].startswith("  %") and "= mean(" in lines[head + 1]
    assert lines[head + 1].split()[-2].endswith("model/layer_norm")


@pytest.mark.parametrize("limit", [15, 8])
def test_opened_operations_are_not_folded(limit):
    """By module with 15 boxes beside them; with 8, all but the last ones."""
    graph = traced()
    view = picture(graph, open="layer_norm", boxes=limit)
    shown = fold(view.record, limit)
    boxes = {box.id for box in view.diagram.boxes}
    parts = {node.id for node in view.record.nodes if node.whole}
    assert parts <= boxes and len(boxes) < len(view.record.nodes)
    assert ("by module" in shown.note) == (limit == 15)
    if limit == 15:
        assert len(boxes - parts) <= limit
    assert len(picture(graph, open=True, boxes=3).diagram.boxes) <= 12  # too many parts: folded as well


def test_without_opening_nothing_changes():
    graph = traced()
    assert picture(graph, open=[]).text == picture(graph).text


def test_a_place_in_an_operation_outside_of_modules_has_no_slash(kernels_of_numpy):
    """In a listing, and in an error: "in gelu"."""
    x = flow.ones(3).requires_grad_()
    assert all("/gelu" not in line for line in picture(F.gelu(x).sum(), open=True).text.splitlines())
    y = x * 1
    loss = F.gelu(y).sum()
    y.add_(1)
    with pytest.raises(GradError, match=r"in gelu\b") as caught:
        loss.backward()
    card = card_of(caught.value)
    assert "in gelu" in card.where and [n.label for n in card.graph.nodes][-1] == "gradient of gelu"


def test_fused_parts_are_said():
    """A fused operation is not opened, and the text says why."""
    from minflow.platforms.compiled.passes.elementwise_fusion import clusters

    graph = Train()
    graph.passes.insert(-1, clusters)
    graph(flow.ones(4, 8))
    view = picture(graph, open="gelu")
    assert "cluster" in ops(view.record)
    assert "(parts of gelu, gelu_grad are fused with others; explore(graph) opens them)" in view.text
    assert "fused" not in picture(graph).text and "fused" not in picture(traced(), open=True).text
