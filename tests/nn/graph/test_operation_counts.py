"""Operations and bytes of a call, compared with counts worked out by hand."""

import pytest
from graph_models import TrainGraph

import minflow as flow
from minflow import nn
from minflow.core.ir import LEAF, Node, Source, Value
from minflow.core.op import OPS
from minflow.core.spec import Spec, float32, int64
from minflow.introspection.graph.listing.work import bytes_moved, flops
from minflow.platforms.compiled.passes.nchw16c import BLOCKED


def value(*shape, dtype=float32):
    source = Source(LEAF, Spec(shape, dtype))
    return Value(source, 0, source.out_specs[0])


def node(op, *inputs, **attrs):
    op = BLOCKED[op] if op in BLOCKED else OPS[op]
    given = [x.spec if isinstance(x, Value) else type(x) for x in inputs]
    out = op.infer(*given, **attrs)
    return Node(op, inputs, attrs, out if op.many else (out,))


GEOMETRY = dict(stride=(1, 1), padding=(2, 2), dilation=(1, 1), groups=1)
FILTERS, IMAGES = (64, 32, 5, 5), (10, 32, 14, 14)
BLOCKS, RESULT = value(2, 1968, 16), value(4, 1968, 16)  # these images and the output of the convolution, blocked
CONV = 2 * 10 * 64 * 14 * 14 * 32 * 5 * 5
LABELS = dict(ignore_index=-100, reduction="mean")
COUNTED = {
    "a product of matrices": (node("matmul", value(3, 4), value(4, 5), ta=False, tb=False), 2 * 3 * 4 * 5),
    "turned": (node("matmul", value(4, 3), value(5, 4), ta=True, tb=True), 2 * 3 * 4 * 5),
    "of many at once": (node("matmul", value(7, 3, 4), value(7, 4, 5), ta=False, tb=False), 7 * 2 * 3 * 4 * 5),
    "conv2d": (node("conv2d", value(*IMAGES), value(*FILTERS), **GEOMETRY), CONV),
    "its images": (node("conv2d_input_grad", value(10, 64, 14, 14), value(*FILTERS), shape=IMAGES, **GEOMETRY), CONV),
    "its filters": (node("conv2d_weight_grad", value(10, 64, 14, 14), value(*IMAGES), shape=FILTERS, **GEOMETRY), CONV),
    "in blocks": (node("blocks_conv2d", BLOCKS, value(*FILTERS), 0, shape=IMAGES, act="", **GEOMETRY), CONV),
    "images in blocks": (node("blocks_conv2d_input_grad", RESULT, value(*FILTERS), shape=IMAGES, **GEOMETRY), CONV),
    "filters in blocks": (
        node("blocks_conv2d_weight_grad", RESULT, BLOCKS, shape=FILTERS, images=IMAGES, **GEOMETRY),
        CONV,
    ),
    "channel by channel": (
        node("conv2d", value(2, 8, 6, 6), value(8, 1, 3, 3), stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=8),
        2 * 2 * 8 * 6 * 6 * 9,
    ),
    "a sum of two": (node("add", value(6, 5), value(5)), 30),
    "exp counts as one": (node("exp", value(6, 5)), 30),
    "all numbers": (node("sum", value(6, 5), axis=None, keepdims=False), 30),
    "three by three": (
        node(
            "max_pool2d",
            value(1, 2, 9, 9),
            kernel_size=(3, 3),
            stride=(3, 3),
            padding=(0, 0),
            dilation=(1, 1),
            ceil_mode=False,
        ),
        2 * 3 * 3 * 9,
    ),
    "w - lr * g": (node("sgd", value(4, 4), value(4, 4), value(), weight_decay=0.0, maximize=False), 2 * 16),
    "softmax": (node("softmax", value(6, 5), dim=1), 4 * 30),
    "the loss": (node("softmax_cross_entropy", value(6, 5), value(6, dtype=int64), **LABELS), 4 * 30),
    "a copy": (node("clone", value(6, 5)), 0),
    "rows of a table": (node("take", value(1000, 5), value(3, dtype=int64), axis=0, by=()), 0),
    "a view": (node("reshape", value(6, 5), shape=(30,)), 0),
    "nobody has counted it": (node("sort", value(6), axis=0, descending=False), None),
}


@pytest.mark.parametrize("what", COUNTED)
def test_operations(what):
    it, count = COUNTED[what]
    assert flops(it) == count


def test_recurrent_layers():
    """7 steps of 3 rows: each of these 21 is multiplied by each weight once in forward, and twice in backward."""
    x, state, y, gates = value(7, 3, 8), value(3, 16), value(7, 3, 16), value(7, 3, 64)
    weights, lstm = (value(16, 8), value(16, 16)), (value(64, 8), value(64, 16))

    def counted(name, *inputs):
        return flops(Node(OPS[name], inputs, dict(sizes=None, reverse=False), (y.spec,)))

    assert counted("rnn", x, state, *weights, value(16), value(16)) == 2 * 21 * (16 * 8 + 16 * 16)
    assert counted("rnn_grad", y, state, x, state, *weights, y) == 4 * 21 * (16 * 8 + 16 * 16)
    assert counted("lstm", x, state, state, *lstm, value(64), value(64)) == 2 * 21 * (64 * 8 + 64 * 16)
    assert counted("lstm_grad", y, state, state, x, state, state, *lstm, y, gates, y) == 4 * 21 * (64 * 8 + 64 * 16)
    assert counted("lstm_projected_grad", y, state, state, x, state, state, *lstm, y, gates, y, value(4, 16)) == (
        4 * 21 * (64 * 8 + 64 * 16 + 4 * 16)
    )


def test_bytes():
    x, w = value(3, 4), value(4, 5)
    assert bytes_moved(node("matmul", x, w, ta=False, tb=False)) == 4 * (12 + 20 + 15)
    assert bytes_moved(node("add", x, x)) == 4 * (12 + 12), "repeated operands count once"
    assert bytes_moved(node("mul", x, 2.0)) == 4 * (12 + 12), "a Python number takes no memory"
    assert bytes_moved(node("reshape", x, shape=(12,))) == 0, "a view moves no data"
    assert bytes_moved(node("take", value(1000, 5), value(3, dtype=int64), axis=0, by=())) == 4 * 15 + 8 * 3 + 4 * 15


def test_fused_operations_count_as_their_parts():
    x, w = value(10, 32, 14, 14), value(64, 32, 5, 5)
    conv = node("conv2d", x, w, **GEOMETRY)
    fused = node("blocks_conv2d", BLOCKS, w, 0, shape=IMAGES, act="relu", **GEOMETRY)
    fused.parts = conv, node("relu", value(10, 64, 14, 14))
    assert flops(fused) == CONV + 10 * 64 * 14 * 14
    fused.parts += (node("sort", value(6), axis=0, descending=False),)
    assert flops(fused) is None


def test_expanded_operands_count_their_storage():
    row = value(1, 5)
    wide = node("expand", row, shape=(100, 5))
    add = node("add", value(100, 5), Value(wide, 0, wide.out_specs[0]))
    roots = {Value(wide, 0, wide.out_specs[0]): row}
    assert bytes_moved(add, lambda x: roots.get(x, x)) == 4 * (500 + 5 + 500)


def test_training_step_is_counted():
    """For a network as in the lessons, no call is omitted."""
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(72, 10),
    )
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.Adam(model.parameters(), lr=0.01))
    graph.config.exact(True)
    graph(flow.rand(4, 1, 8, 8), flow.tensor([1, 2, 3, 4]))
    calls = graph.plan.record.calls
    assert len(calls) > 25 and not [call.name for call in calls if call.flops is None]
