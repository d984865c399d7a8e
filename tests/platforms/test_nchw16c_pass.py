"""The NCHW16c pass: what it blocks, what stays unblocked, and equal results where NumPy runs both."""

import numpy as np
import pytest
from graph_models import Predict, TrainGraph

import minflow as flow
from minflow import nn
from minflow.compiler.passes import PASSES, decompose
from minflow.compiler.passes.decomposition import expand, is_decomposed
from minflow.compiler.passes.rewrite import rewrite
from minflow.core.ir import Node, outputs_of
from minflow.core.kernels import CALLS, HOST_PLATFORMS
from minflow.core.op import OPS
from minflow.core.ops import elementwise
from minflow.introspection.graph.listing.reports import operation_text
from minflow.nn import functional as F
from minflow.platforms.compiled.config import CompiledKernelConfig
from minflow.platforms.compiled.passes import nchw16c
from minflow.platforms.compiled.passes.layout import layout

WITH_LAYOUT = [*PASSES[:-1], layout, PASSES[-1]]


class Convolved(nn.Module):
    """A net with many layouts: see `forward`."""

    def __init__(self, *names, channels=20):
        super().__init__()
        self.names = names
        self.first = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.grouped = nn.Conv2d(channels, channels, 3, padding=1, groups=2)
        self.fours = nn.Conv2d(channels, channels, 3, padding=1, groups=channels // 4)
        self.line = nn.Conv1d(channels, channels, 3, padding=1)
        self.norm, self.other_norm = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.pool, self.bordered = nn.MaxPool2d(2), nn.MaxPool2d(3, 2, padding=1)
        self.mean = nn.AvgPool2d(3, 2, padding=1, ceil_mode=True, count_include_pad=False)
        self.meeting = nn.MaxPool2d(3, 2)
        self.average, self.average_4 = nn.AdaptiveAvgPool2d(1), nn.AdaptiveAvgPool2d(4)
        self.relu, self.relu6, self.sigmoid = nn.ReLU(), nn.ReLU6(), nn.Sigmoid()
        self.last = nn.LazyLinear(5)

    def forward(self, x):
        kept = []
        for name in self.names:
            if name == "keep":
                kept.append(x)
            elif name == "join":
                x = x + kept.pop()
            elif name == "cat":
                x = flow.cat([x, kept.pop()], 1)
            elif name == "part":
                x = x[:, 16:]
            elif name == "shift":
                x = x * 2 + 1
            elif name == "line":
                x = self.line(x.flatten(2))
            else:
                x = getattr(self, name)(x)
        return self.last(x.flatten(1))


@pytest.fixture
def default_limits():
    """Keep the smallest sizes at which the pass applies; other tests use tiny arrays."""


@pytest.fixture(autouse=True)
def no_size_limits(request, monkeypatch):
    if "default_limits" not in request.fixturenames:
        monkeypatch.setattr("minflow.platforms.compiled.passes.layout.LEAST", 1)


NETS = {
    "bias, activation, pool": ("first", "relu", "pool", "second", "relu", "average"),
    "norm and activation": ("first", "norm", "relu6", "depthwise", "other_norm", "relu", "second"),
    "norm alone": ("first", "norm", "second", "other_norm", "pool"),
    "branches": ("first", "norm", "keep", "relu", "second", "other_norm", "join", "relu", "average"),
    "read twice": ("first", "keep", "relu", "second", "join", "pool"),
    "outside between": ("first", "grouped", "relu", "second", "sigmoid", "second", "shift", "depthwise", "average_4"),
    "small groups": ("first", "fours", "relu", "second", "fours"),
    "a line": ("first", "relu", "line"),
    "side by side": ("first", "keep", "relu", "cat", "relu6", "part", "average"),
    "pool and pool": ("first", "relu", "pool", "second", "relu", "pool"),
    "windows that meet": ("first", "relu", "meeting", "second", "relu", "average"),
    "a bordered pool": ("first", "relu", "bordered", "second", "relu6", "bordered"),
    "means of windows": ("first", "relu", "mean", "second", "mean", "mean"),
}


class Train(nn.Graph):
    def __init__(self, model, passes, train):
        super().__init__()
        self.model, self.passes = model, passes
        if train:
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.5))

    def build(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        if self.training:
            loss.backward()
        return loss


def run(names, passes, mode, steps=2):
    flow.manual_seed(3)
    model = Convolved(*names, channels=32 if "cat" in names else 20)
    x, y = flow.randn(6, 3, 24, 22), flow.tensor([0, 1, 2, 3, 4, 0])
    model(x)
    model.train(mode != "predict")
    if mode == "frozen":
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
    graph = Train(model, passes, mode != "predict")
    losses = [graph(x, y).numpy() for _ in range(steps)]
    return graph, losses, {name: t.numpy().copy() for name, t in model.state_dict().items()}


@pytest.mark.parametrize("mode", ["train", "predict", "frozen"])
@pytest.mark.parametrize("net", NETS)
def test_results_are_unchanged(net, mode):
    """The NCHW kernels define the meaning of blocked operations: results are equal, except for the order of sums in the
    other layout and for the scale of a predicting batch norm, which is folded into the filters.
    """
    _, losses, state = run(NETS[net], [*PASSES], mode)
    graph, now, other = run(NETS[net], WITH_LAYOUT, mode)
    np.testing.assert_allclose(now, losses, rtol=1e-5)
    for name, array in state.items():
        np.testing.assert_allclose(other[name], array, rtol=1e-4, atol=1e-6, err_msg=name)
    found = [node.op.name for node in graph.nodes]
    assert {"blocks_conv2d", "blocks_conv2d_max_pool2d"} & {*found}
    if mode == "train":
        assert {"blocks_conv2d_weight_grad", "blocks_max_pool2d_weight_grad"} & {*found}


def graph_of(net, mode="train"):
    return run(NETS[net], WITH_LAYOUT, mode, 1)[0]


def ops(net, mode="train"):
    nodes = graph_of(net, mode).nodes
    return [node.op.name for node in nodes], nodes


def activations(nodes, op):
    return [node.attrs["act"] for node in nodes if node.op is op]


def test_images_are_reordered_once():
    """Blocked where few channels become many, unblocked before the dense layer; and once on the way back."""
    for net in (
        "bias, activation, pool",
        "norm and activation",
        "norm alone",
        "branches",
        "a bordered pool",
        "means of windows",
    ):
        found, _ = ops(net)
        assert (found.count("to_blocks"), found.count("from_blocks")) == (1, 1), net


def test_convolution_fuses_its_epilogue():
    found, nodes = ops("bias, activation, pool")
    assert activations(nodes, nchw16c.blocks_conv2d_max_pool2d) == activations(nodes, nchw16c.blocks_conv2d) == ["relu"]
    assert "relu" not in found
    found, nodes = ops("norm and activation")
    assert activations(nodes, nchw16c.blocks_batch_norm) == ["relu6", "relu"]
    assert activations(nodes, nchw16c.blocks_batch_norm_grad) == ["relu", "relu6"]
    assert not {"relu6", "relu6_grad", "relu_grad"} & {*found}
    found, nodes = ops("norm and activation", "predict")  # the convolution applies its scale and bias
    assert "batch_norm" not in found and "relu6" not in found
    assert activations(nodes, nchw16c.blocks_conv2d) == ["relu6", "relu", ""]
    assert all(n.inputs[2] != 0 for n in nodes[:-1] if n.op is nchw16c.blocks_conv2d and n.attrs["act"])


def test_convolution_fuses_max_pool():
    """If its result has no other users; the filter gradient of the first convolution computes its own cotangent."""
    found, nodes = ops("bias, activation, pool")
    assert "blocks_max_pool2d" not in found and "blocks_max_pool2d_grad" not in found
    (pooled,) = [node for node in nodes if node.op is nchw16c.blocks_conv2d_max_pool2d]
    assert [part.op.name for part in pooled.parts] == ["conv2d", "add", "relu", "max_pool2d"]
    (filters,) = [node for node in nodes if node.op is nchw16c.blocks_max_pool2d_weight_grad]
    assert [part.op.name for part in filters.parts] == ["max_pool2d_grad", "conv2d_weight_grad"]
    sums = [node for node in nodes if node.op is nchw16c.blocks_channel_sum]
    assert sums[-1].inputs[0].spec is pooled.out_specs[0], "the spread cotangent is summed before spreading"
    found, nodes = ops("pool and pool")
    assert found.count("blocks_conv2d_max_pool2d") == 2 and found.count("blocks_max_pool2d_weight_grad") == 1
    assert found.count("blocks_max_pool2d_grad") == 1, "the gradient of images uses it too"
    assert "blocks_conv2d_max_pool2d" not in ops("windows that meet")[0], "the ReLU gradient reads all pixels"
    assert "blocks_conv2d_max_pool2d" in ops("windows that meet", "predict")[0]


def test_small_groups_stay_blocked():
    found, nodes = ops("small groups")
    assert (found.count("to_blocks"), found.count("from_blocks")) == (1, 1) and "conv2d" not in found
    assert [n.attrs["groups"] for n in nodes if n.op is nchw16c.blocks_conv2d] == [1, 5, 1, 5]


def test_first_convolution_reads_unblocked_images():
    found, nodes = ops("a line", "predict")
    *_, line = [n for n in nodes if n.op is nchw16c.blocks_conv2d]
    assert line.inputs[0].spec.ndim == 4 and line.inputs[2] != 0 and "to_blocks" not in found


def test_values_with_other_users_are_not_fused():
    _, nodes = ops("read twice")
    assert activations(nodes, nchw16c.blocks_conv2d) == ["", ""]


def test_other_graphs_are_unchanged():
    flow.manual_seed(0)
    graph = Train(nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 5)), [*PASSES, layout], True)
    graph(flow.randn(4, 7), flow.tensor([0, 1, 2, 3]))
    before, after = graph._last.parts[0].stages[-2:]
    assert [a.op for a in before.graph.nodes] == [b.op for b in after.graph.nodes]
    assert all(a is b for a, b in zip(before.graph.nodes, after.graph.nodes))


@pytest.mark.usefixtures("default_limits")
def test_small_convolutions_are_not_blocked():
    graph = Predict(nn.Conv2d(16, 16, 3))
    graph.passes = [*PASSES, layout]
    graph(flow.randn(1, 16, 5, 5))
    assert not [node for node in graph.nodes if node.op.name in nchw16c.BLOCKED]


class Alone(nn.Graph):
    """One operation and its gradient."""

    def __init__(self, function, *numbers):
        super().__init__()
        self.function, self.numbers, self.passes = function, numbers, WITH_LAYOUT

    def build(self, x, grad):
        x = x.detach().requires_grad_()
        return flow.autograd.grad(self.function(x, *self.numbers), [x], grad)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda x: F.avg_pool2d(x, (3, 2), (2, 3), padding=1),
    ],
)
def test_single_operation(function, monkeypatch):
    """A single operation is blocked and unblocked again if it is large and has many channels."""
    for shape, least, inside in (((2, 20, 40, 31), 1, True), ((2, 4, 40, 31), 1, False), ((2, 8, 9, 8), 10**6, False)):
        monkeypatch.setattr("minflow.platforms.compiled.passes.layout.ALONE", least)
        x = flow.randn(*shape)
        grad, graph = flow.randn(*function(x).shape), Alone(function)
        found = graph(x, grad)[0].numpy()
        names = {node.op.name for node in graph.nodes}
        assert inside == bool(names & {*nchw16c.BLOCKED})
        x.requires_grad_()
        np.testing.assert_allclose(found, flow.autograd.grad(function(x), [x], grad)[0].numpy(), 1e-6, 1e-6)


def decompose_others(graph):
    """Decompose all but interpolations, for which the reference platform has no kernel."""
    kept = (OPS["interpolate"], OPS["interpolate"].gradient)
    return expand(graph, lambda node: node.op not in kept and is_decomposed(node, HOST_PLATFORMS))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_interpolation_joins_convolutions(place, mode):
    """It is in blocks beside a convolution, with its gradient, and alone in NCHW."""
    resize = nn.Upsample((13, 17), mode=mode)
    layers = [nn.Conv2d(20, 20, 3, padding=1), nn.ReLU(), nn.Conv2d(20, 16, 1), nn.ReLU()]
    model = nn.Sequential(*layers[:place], resize, *layers[place:], nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x, y = flow.randn(2, 20, 8, 9), flow.tensor([3, 1])
    state, losses, names = {k: t.clone() for k, t in model.state_dict().items()}, [], []
    for passes in (PASSES, [decompose_others if step is decompose else step for step in WITH_LAYOUT]):
        model.load_state_dict(state)
        graph = Train(model, [*passes], True)
        losses.append([graph(x, y).item() for _ in range(3)])
        names.append({node.op.name for node in graph.nodes})
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert "blocks_interpolate" in names[1] and not {"take", "interpolate"} & names[1]
    assert ("blocks_interpolate_grad" in names[1]) == (place > 0)
    alone = Alone(resize)
    alone.passes = [decompose_others if step is decompose else step for step in WITH_LAYOUT]
    alone(x, flow.randn(2, 20, 13, 17))
    assert [node.op.name for node in alone.nodes if node.op.name != "detach"] == ["interpolate_grad"]


@pytest.mark.parametrize("number, inside", [(2.0, True), (np.inf, False), (-np.inf, False), (np.nan, False)])
def test_blocked_images_are_scaled_by_finite_literals(number, inside):
    """Otherwise zeros of unused lanes would become NaN, and so would all results of the next convolution."""
    first, second = nn.Conv2d(3, 20, 1), nn.Conv2d(20, 5, 1)
    graph = Alone(lambda x, number: second(flow.relu(first(x)) * number), number)
    graph(flow.randn(1, 3, 6, 6), flow.ones(1, 5, 6, 6))
    dims = {node.out_specs[0].ndim for node in graph.nodes if node.op.name == "mul"}
    assert dims == {3 if inside else 4}


def test_phases_and_source_lines_are_kept():
    """Fused operations too keep module, source line, phase, and the link from a gradient to its forward node."""
    graph = graph_of("norm and activation")
    for node in graph.nodes:
        if node.op.name in nchw16c.BLOCKED:
            assert node.scope.startswith("model"), node
            if node.op not in (nchw16c.to_blocks, nchw16c.from_blocks):
                assert (node.phase == "backward") == (node.op.name.endswith(("grad", "channel_sum"))), node
            assert node.where is not None or node.phase == "backward"
            assert node.phase != "backward" or node.origin in graph.nodes, node


@pytest.mark.parametrize("shape", [(2, 20, 5, 3), (1, 16, 4, 8), (3, 1, 1, 1), (0, 4, 2, 2), (5, 33)])
def test_blocking_at_inputs_and_outputs(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    inside = CALLS[nchw16c.to_blocks](x)
    assert inside.shape == nchw16c.blocked(shape) and inside.shape[1] % 32 == 16
    assert not inside[-1, : x.size // max(shape[1], 1), shape[1] % 16 or 16 :].any()
    np.testing.assert_array_equal(CALLS[nchw16c.from_blocks](inside, shape=shape), x)


def test_node_text_describes_its_operations():
    graph = graph_of("norm and activation")
    part = graph._last.parts[0]
    said = {node.op.name: operation_text(node, part).partition(", for ")[2] for node in reversed(graph.nodes)}
    assert "keeps images in blocks" in str(graph.stages())
    assert said["blocks_conv2d"] == "model.first-conv2d-0, model.first-add-0"
    assert said["blocks_batch_norm"] == "model.norm-batch_norm-0, model.relu6-relu6-0"
    assert said["to_blocks"] == said["sgd_momentum"] == ""
    assert all(one.where for node in graph.nodes for one in node.parts if one.phase == "forward")


@pytest.fixture
def compiled_passes(monkeypatch):
    monkeypatch.setattr(CompiledKernelConfig, "graphs", "all")
    monkeypatch.setattr(CompiledKernelConfig, "passes", (layout,))


def test_compare_with_eager_allows_rounding(compiled_passes):
    """For a graph built with a pass for compiled kernels, which config.exact disables."""
    flow.manual_seed(0)
    x, y = flow.randn(6, 3, 24, 22), flow.tensor([0, 1, 2, 3, 4, 0])
    model = Convolved(*NETS["norm and activation"])
    model(x)
    model.eval()  # folding the scale of a norm into the filters rounds
    graph = Train(model, [*PASSES], True)
    graph(x, y)
    assert [s.name for s in graph._last.parts[0].stages][-2:] == ["layout", "reduce_memory"]
    assert "agree" in graph.compare_eager(x, y).title
    graph.config.exact(True)
    graph(x, y)
    assert "layout" not in [s.name for s in graph._last.parts[0].stages]
    assert "bit for bit" in graph.compare_eager(x, y).title
    assert "exact=True" in repr(graph.config)


def normed(name):
    """A training graph in which the gradient of the convolution's bias is 0 except for rounding, because a batch norm
    follows; and a batch.
    """
    flow.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 20, 3, padding=1), nn.BatchNorm2d(20), nn.ReLU(), nn.Flatten(), nn.Linear(20 * 64, 5)
    )
    return (
        TrainGraph(model, nn.CrossEntropyLoss(), ADAPTIVE[name](model.parameters())),
        flow.randn(6, 3, 8, 8),
        flow.tensor([0, 1, 2, 3, 4, 0]),
    )


def of_bias(change):
    """A pass that changes the inputs and attrs of the update of that bias."""

    def wrong(graph):
        def changed(node):
            if node.phase != "optimizer" or node.inputs[0].node.name != "model.0.bias":
                return [node]
            return change(graph, node)

        nodes = [changed(node) for node in graph.nodes]
        last = {old: new[-1] for old, new in zip(graph.nodes, nodes) if new != [old]}
        instead = {a: b for old, new in last.items() for a, b in zip(outputs_of(old), outputs_of(new))}
        return rewrite(graph, [node for new in nodes for node in new], instead)

    return wrong


def other_rate(graph, node):
    return [node.replace([*node.inputs[:-1], 0.0102], node.origin)]


def other_gradient(graph, node):
    grad = node.inputs[1]
    more = Node(elementwise.add, [grad, 1e-3], {}, (grad.spec,), scope=node.scope, where=node.where)
    more.origin = node.origin
    return [more, node.replace([node.inputs[0], outputs_of(more)[0], *node.inputs[2:]], node.origin)]


ADAPTIVE = {
    "Adam": lambda p: flow.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: flow.optim.AdamW(p, lr=0.01),
    "RMSprop": lambda p: flow.optim.RMSprop(p, lr=0.01),
    "Adagrad": lambda p: flow.optim.Adagrad(p, lr=0.01),
}


@pytest.mark.parametrize("name", ADAPTIVE)
def test_gradient_of_pure_rounding_is_not_a_difference(name, compiled_passes):
    graph, x, y = normed(name)
    for _ in range(2):
        found = graph.compare_eager(x, y)
        assert found.equal and "agree" in found.title, found
        row = next(row for row in found.rows if row.name == "model.0.bias_optimizer")
        assert row.state == "equal" and row.difference < 1e-6
        graph(x, y)


@pytest.mark.parametrize("change", [other_rate, other_gradient])
def test_wrong_update_is_a_difference(change, compiled_passes):
    """Wrong by 2 % of the learning rate, or by a gradient that is not only rounding."""
    graph, x, y = normed("Adam")
    graph.passes = [*PASSES, of_bias(change)]
    found = graph.compare_eager(x, y)
    assert not found.equal and "model.0.bias_optimizer" in [row.name for row in found.rows if row.state == "differs"]
