"""Clusters of elementwise ops on GPUs: generated kernels, compiled for the CPU, against the same ops one by one."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.capture import CapturedCalls
from minflow.compiler.executor import run
from minflow.compiler.passes import PASSES, run_passes
from minflow.compiler.plan import Plan
from minflow.core.kernels import KERNELS
from minflow.core.trace import trace
from minflow.platforms.cupy.device_code import source_text
from minflow.platforms.cupy.fusion import cuda_clusters
from minflow.platforms.cupy.kernels.clusters import RegionWriter
from tests.fusion_programs import inputs_of, random_program
from tests.graph_models import FunctionGraph
from tests.nn.test_models_on_a_device import MODELS, OPTIMIZERS, Training

SHAPES = [(4, 7, 16), (3, 33), (2, 3, 5, 5), (17, 1), (5, 300)]


def graphs_of(program, inputs):
    """The graph of a program on the device, and that with clusters."""
    graph = run_passes(trace(program, [x.to("cuda") for x in inputs])[0], PASSES[:-1])[-1].graph
    return graph, cuda_clusters(graph)


def clusters_of(graph):
    return [node.attrs["code"] for node in graph.nodes if node.op.name == "cluster"]


def results(graph, inputs):
    """The results of the second run of a plan, which is captured."""
    plan, arrays = Plan(graph), [x.to("cuda").array for x in inputs]
    run(plan, arrays)
    return [x.inner.copy() for x in run(plan, arrays)]


def in_dtype(arrays, dtype):
    return [flow.tensor(x).to(dtype) if x.dtype.kind == "f" else flow.tensor(x) for x in arrays]


@pytest.mark.parametrize("dtype", [flow.float32, flow.float64, flow.float16, flow.bfloat16], ids=str)
def test_elementwise_ops_keep_their_bits(compiled_together, dtype):
    def program(collect):
        for seed, shape in enumerate(SHAPES):
            inputs = in_dtype(inputs_of(shape, seed), dtype)
            graph, fused = graphs_of(random_program(seed, False), inputs)
            assert len(clusters_of(fused)) and len(fused.nodes) < len(graph.nodes)
            collect(results(graph, inputs), results(fused, inputs))

    for expected, found in compiled_together(program):
        assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]


@pytest.mark.parametrize("dtype", [flow.float32, flow.float64, flow.float16], ids=str)
def test_programs_with_sums_of_rows(compiled_together, dtype):
    def program(collect):
        for seed in 9, 10, 12, 20, 34:  # the last four have sums within clusters
            inputs = in_dtype(inputs_of(SHAPES[seed % len(SHAPES)], seed), dtype)
            graph, fused = graphs_of(random_program(seed, True), inputs)
            collect(results(graph, inputs), results(fused, inputs), clusters_of(fused))

    summing, tolerance = 0, 64 * flow.finfo(dtype).eps
    for expected, found, clusters in compiled_together(program):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        summing += sum(["mean" in repr(code) or "sum" in repr(code) for code in clusters])
    assert summing == 4


def normalized(x, scale):
    """Two sums, of which the second depends on the first; a result per row, one per element, and a bool."""
    centered = x - x.mean(-1, keepdim=True)
    deviation = flow.sqrt((centered * centered).mean(-1, keepdim=True) + 1e-5)
    return centered / deviation * scale, deviation, x > 0


def test_rows_of_each_width(compiled_together):
    def program(collect):
        for rows, columns in [(1, 2), (7, 5), (13, 33), (3, 256), (5, 257), (2, 1000)]:
            rng = np.random.default_rng(columns)
            inputs = [flow.tensor(rng.normal(size=shape).astype("f4")) for shape in ((rows, columns), (columns,))]
            _, fused = graphs_of(normalized, inputs)
            assert [node.op.name for node in fused.nodes] == ["cluster"]
            collect([x.double() for x in inputs], results(fused, inputs))

    for inputs, found in compiled_together(program):
        for a, b in zip(found, normalized(*inputs), strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)


def test_operands_that_are_repeated(compiled_together):
    """Channels of images, and leading axes that are broadcast."""

    def scaled(x, channels, images, number):
        return (x * channels + images) * number + channels

    def program(collect):
        rng = np.random.default_rng(0)
        shapes = (2, 3, 4, 5), (3, 1, 1), (3, 4, 5), ()
        inputs = [flow.tensor(rng.normal(size=shape).astype("f4")) for shape in shapes]
        _, fused = graphs_of(scaled, inputs)
        assert [node.op.name for node in fused.nodes] == ["cluster"]
        collect(scaled(*inputs), results(fused, inputs))

    for expected, (found,) in compiled_together(program):
        assert np.array_equal(found, expected.numpy())


def test_slices_of_rows(compiled_together):
    """A mask of the longest sequence, and a slice of three axes; other slices are read by kernels of their own."""

    def masked(scores, mask, other):
        weights = flow.where(mask[:5, 2:9], -1e9, scores / 3)
        return weights + other[1:3, :, :7], (weights - weights.sum(-1, keepdim=True)) * 2

    def program(collect):
        rng = np.random.default_rng(0)
        shapes = (2, 5, 7), (12, 12), (3, 5, 8)
        inputs = [flow.tensor(rng.normal(size=shape).astype("f4")) for shape in shapes]
        inputs[1] = inputs[1] > 0
        _, fused = graphs_of(masked, inputs)
        assert [node.op.name for node in fused.nodes if not node.op.is_view] == ["cluster"]
        _, other = graphs_of(lambda x: x[:, 1:3] * 2 + 1, inputs[:1])
        assert [node.op.name for node in other.nodes if not node.op.is_view] == ["mul", "add"]
        collect(masked(*inputs), results(fused, inputs))

    for expected, found in compiled_together(program):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5)


@pytest.mark.parametrize("columns", [40, 300])
def test_result_of_rows_in_the_place_of_an_operand(columns, cuda_kernels):
    x, column = flow.randn(5, columns), flow.randn(5, 1)
    _, fused = graphs_of(lambda x, column: (x * column).sum(-1, keepdim=True) * column, [x, column])
    (node,) = fused.nodes
    place = column.to("cuda").array
    arrays = [x.to("cuda").array if v.spec.shape == x.shape else place for v in node.attrs["code"].inputs]
    KERNELS[node.op, "cupy"].call(*arrays, out=place, **node.attrs)
    np.testing.assert_allclose(place.inner, ((x * column).sum(-1, keepdim=True) * column).numpy(), rtol=1e-4)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: (x * 2).sum(0),  # over rows
        lambda x, y: (x.t() * 2).sin(),  # not contiguous
        lambda x, y: (x.int() + 1) * 2,  # formulas hold for floats
        lambda x, y: flow.nextafter(x.half(), y.half()) * 2,
    ],
)
def test_nodes_outside_of_clusters(program, cuda_kernels):
    x = flow.ones(4, 6)
    graph, fused = graphs_of(program, [x, x])
    left = [node.op.name for node in fused.nodes if node.op.name != "cluster"]
    assert {"sum", "sin", "add", "nextafter"} & {*left}
    assert [x.tolist() for x in results(fused, [x, x])] == [x.tolist() for x in results(graph, [x, x])]


def test_graphs_and_jobs_on_the_device_have_clusters(cuda_kernels):
    def function(x):
        return flow.exp(x * 2) + 1

    x = flow.ones(3, 5, device="cuda")
    for exact in (False, True):
        graph = FunctionGraph(function)
        graph.config.exact(exact)
        assert flow.allclose(graph(x).cpu(), function(x).cpu())
        nodes = graph._plans.last.parts[0].plan.nodes
        assert [node.op.name for node in nodes] == (["mul", "exp", "add"] if exact else ["cluster"])


def test_gradients_of_a_model(cuda_kernels):
    def step(device):
        flow.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 4), nn.Tanh()).to(device)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        class Training(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = model
                self.add_optimizer(optimizer)

            def build(self, x):
                loss = (self.model(x) ** 2).mean()
                loss.backward()
                return loss

        graph, x = Training(), flow.linspace(-1, 1, 48).reshape(8, 6).to(device)
        losses = [graph(x).item() for _ in range(3)]
        return losses, [p.detach().cpu().numpy() for p in model.parameters()]

    (here, weights), (there, others) = step("cpu"), step("cuda")
    np.testing.assert_allclose(there, here, rtol=1e-5)
    for a, b in zip(others, weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.wheels
@pytest.mark.parametrize("dtype", [flow.float32, flow.float64, flow.float16, flow.bfloat16], ids=str)
def test_registers_are_not_spilled(dtype, cuda_kernels):
    from tests.platforms.cuda.test_cuda_resources import ARCHITECTURES, compiled

    parts = [source_text("elementwise.cuh")]
    for seed in range(20):
        inputs = in_dtype(inputs_of(SHAPES[seed % len(SHAPES)], seed), dtype)
        for code in clusters_of(graphs_of(random_program(seed, True), inputs)[1]):
            kernel = RegionWriter(code).kernel()
            parts.append(kernel.source.replace(f" {kernel.name}(", f" {kernel.name}_{len(parts)}(", 1))
    for architecture in ARCHITECTURES:
        found = compiled("".join(parts), architecture)
        assert len(found) == len(parts) - 1 > 20
        assert not any([x.spills for x in found.values()])
        assert max([x.registers for x in found.values()]) <= 64


LAUNCHES = {  # model -> most launches of a training step, and at least how many clusters save
    "MLP": (28, 1),
    "LeNet": (136, 4),
    "GPT": (209, 45),
}


def launches(graph):
    """The number of launches of a step of a captured plan, whose single calls count as one each."""
    units = graph._plans.last.plan.units[0]
    return sum([len(unit.launch.args[0]) if isinstance(unit, CapturedCalls) else 1 for unit in units])


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_of_a_training_step(name, cuda_kernels):
    found = []
    for exact in (True, False):
        flow.manual_seed(0)
        make, data = MODELS[name]
        model, (x, y) = make().to("cuda"), data()
        graph = Training(model, OPTIMIZERS[name](model.parameters(), lr=0.01))
        graph.config.exact(exact)
        losses = [graph(x.to("cuda"), y.to("cuda")).item() for _ in range(3)]
        found.append((launches(graph), losses))
    (before, expected), (after, losses) = found
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    most, saved = LAUNCHES[name]
    assert after <= most and before - after >= saved, (before, after)
