"""Frames of modules in pictures: members keep a margin to the frame, other boxes are outside; labels of boxes."""

import re
import shutil

import pytest

import minflow as flow
from minflow import nn
from minflow.views.draw.boxes import diagram_of
from minflow.views.draw.dot import dot_text
from minflow.views.draw.engines import ENGINES, render_svg
from minflow.views.records.graph import attrs_text, graph_record
from minflow.views.records.tape import tape_record
from tests.graph_models import Predict


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 8))
        self.skip, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.blocks(x) + self.skip(x))


def nested_modules():
    model = Nested()
    return diagram_of(tape_record(model(flow.ones(3, 4, requires_grad=True))), 60)


def dot_of(x):
    return dot_text(diagram_of(tape_record(x)))


@pytest.mark.parametrize("engine", ENGINES)
def test_frames_contain_only_their_members(engine):
    if engine == "dot" and shutil.which("dot") is None:
        pytest.skip("no program dot")
    svg, used = render_svg(nested_modules(), (engine,))
    assert used == engine
    number = r'="(-?[\d.]+)"'
    frames = [
        tuple(map(float, m)) for m in re.findall(rf'<rect x{number} y{number} width{number} height{number} rx="6"', svg)
    ]
    boxes = [
        tuple(map(float, m)) for m in re.findall(rf'<rect x{number} y{number} width{number} height{number} rx="5"', svg)
    ]
    boxes += [
        (x - rx, y - ry, 2 * rx, 2 * ry)
        for x, y, rx, ry in (
            map(float, m) for m in re.findall(rf"<ellipse cx{number} cy{number} rx{number} ry{number}", svg)
        )
    ]
    assert len(frames) == 8 and len(boxes) == 19  # Nested, blocks, 0, its 0 and 1, 1, skip, head
    for i, (x, y, w, h) in enumerate(frames):
        held = 0
        for a, b, c, d in (*boxes, *frames[i + 1 :]):
            inside = a >= x + 5 and b >= y + 5 and a + c <= x + w - 5 and b + d <= y + h - 5
            outside = a >= x + w or b >= y + h or a + c <= x or b + d <= y
            around = a <= x and b <= y and a + c >= x + w and b + d >= y + h
            assert inside or outside or around, ((x, y, w, h), (a, b, c, d))
            held += inside
        assert held


def test_arrows_have_names_only_if_the_order_of_inputs_matters():
    a, b = flow.ones(2, 2, requires_grad=True), flow.ones(2, 2, requires_grad=True)
    for both in (a + b, a * b, flow.maximum(a, b)):
        assert 'label="a"' not in dot_of(both)
    for both in (a - b, a / b, a @ b, a**b):
        assert '[label="a"]' in dot_of(both) and '[label="b"]' in dot_of(both)


def test_default_attributes_are_omitted():
    for attrs, text in [
        ({"ta": False, "tb": True}, "b transposed"),
        ({"axis": None, "keepdims": False}, ""),
        ({"axis": (1,), "keepdims": True}, "axis=(1,), keepdims"),
        ({"axis": 0, "value": False, "count_include_pad": False}, "axis=0, value=False, count_include_pad=False"),
        ({"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "groups": 1}, "stride=(2, 2)"),
        ({"groups": True, "padding": 0}, "groups=True, padding=0"),
        ({"stride": (1, 1), "padding": (1, 1)}, "padding=(1, 1)"),
        # the default stride of a pool is its kernel size
        ({"kernel_size": (3, 3), "stride": (1, 1)}, "kernel_size=(3, 3), stride=(1, 1)"),
        ({"loss": "cross_entropy", "classes": 10, "ignore_index": -(2**31)}, "classes=10"),
    ]:
        assert attrs_text(attrs) == text
    assert attrs_text({"shape": tuple(range(50))}, 24) == "shape=" + str(tuple(range(50)))[:21] + "..."


def test_parameters_are_labeled_with_module_and_name():
    graph, x = Predict(Nested()), flow.ones(3, 4)
    ir = graph.compiled_for((x,), {}).parts[0].stages[0].graph
    for text in (dot_text(diagram_of(graph_record(ir), 60)), dot_text(nested_modules())):
        labels = {m.partition("\\n")[0] for m in re.findall(r'\[label="([^"]+)" shape=ellipse', text)}
        assert {"blocks.0.0.weight", "blocks.1.bias", "skip.weight", "head.bias"} <= labels, "numbers with units"
        assert not any("model" in label or "Nested" in label for label in labels)


def test_boxes_of_a_sequential_have_index_and_description():
    model = nn.Sequential(
        *[nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.BatchNorm2d(1), nn.ReLU()) for _ in range(3)]
    )
    text = dot_text(diagram_of(tape_record(model(flow.randn(2, 1, 4, 4)).sum()), 12))
    for i in range(3):
        assert f'label="Sequential.{i}.0\\nconv2d, reshape, add, 2 parameters\\n' in text
        assert f'label="Sequential.{i}.1\\nbatch_norm, 2 parameters\\n' in text
        assert f'label="Sequential.{i}.2: relu\\n' in text


def test_ops_of_a_module_are_in_the_frame_of_its_layers():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            return self.out(((q @ k.transpose(-2, -1)) / 3).softmax(-1) @ v)

    model = nn.Sequential(*[Attention() for _ in range(3)])
    diagram = diagram_of(tape_record(model(flow.ones(2, 4, 8)).sum()))
    around = {box.lines[0]: [diagram.frames[frame] for frame in box.frames] for box in diagram.boxes}
    for i in "012":
        assert around[f"Sequential.{i}"] == ["Sequential", i], around
