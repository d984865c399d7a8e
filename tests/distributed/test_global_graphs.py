"""nn.Graph on global tensors, on virtual ranks: results, memory, and the order in which ranks communicate."""

import contextlib
import re

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import distributed as dist, nn
from minflow.compiler.passes.node_order import topological_order
from minflow.core.base.placement import Placement, broadcast as B, partial_sum as P, split
from minflow.core.context import current_context
from minflow.core.ir import Graph
from minflow.nn.parallel import DistributedDataParallel
from tests.distributed.graph_programs import (
    OPTIMIZERS,
    STRATEGIES,
    Training,
    X,
    elements,
    equals_one_rank,
    job_losses,
    pipeline_equals_one_rank,
    pipeline_training,
    prepared,
    prepared_modules_train_in_graphs,
    spread,
)


@pytest.fixture(autouse=True)
def double():
    flow.set_default_dtype(flow.float64)
    yield
    flow.set_default_dtype(flow.float32)


def run(size, program, *args, **options):
    with flow.virtual_ranks(size) as ranks:
        return ranks.run(program, *args, **options)


def boxings(graph):
    """The nodes of a called graph that communicate, in order."""
    return [node for node in graph.nodes if node.op.communicates]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_training(strategy, size, optimizer):
    run(size, equals_one_rank, strategy, size, optimizer=optimizer)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_gradient_accumulation(strategy):
    run(4, equals_one_rank, strategy, 4, accumulate=3)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_checkpointing(strategy):
    run(4, equals_one_rank, strategy, 4, checkpointing=True)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_autocast(strategy):
    run(4, equals_one_rank, strategy, 4, lower=flow.bfloat16, atol=0.1)


@pytest.mark.parametrize("result", [tp.Numpy, tp.Callback[tp.Numpy]], ids=["sync", "async"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_jobs(strategy, result):
    (alone,) = run(1, job_losses, None, 1, tp.Numpy)
    for losses in run(4, job_losses, strategy, 4, result):
        assert np.allclose(losses, alone, rtol=0, atol=1e-12)


def test_uneven_parts():
    run(5, equals_one_rank, STRATEGIES[0], 5)
    run(3, equals_one_rank, STRATEGIES[1], 3)


def test_results_are_global():
    placement = Placement("cpu", [0, 1])

    class Product(nn.Graph):
        def build(self, x, w):
            return x @ w, x.to_global(placement, [B])

    def program():
        graph, w = Product(), spread(np.ones((6, 3)), placement, [B])
        for sbp in ([split(0)], [B], [split(0)], [P]):  # a plan for each, made once
            product, whole = graph(spread(X, placement, sbp), w)
            assert (product.shape, product.placement) == ((24, 3), placement) and whole.sbp == (B,)
            assert np.allclose(elements(product), X @ np.ones((6, 3)), rtol=0, atol=1e-12)
            assert np.allclose(whole.to_local().numpy(), X, rtol=0, atol=1e-12)
        assert len(graph._history) == 3
        graph.config.static_inputs(True)
        with pytest.raises(flow.ShapeError, match=r"float64\[24, 6\] split\(1\) on ranks \[0, 1\] now"):
            graph(spread(X, placement, [split(1)]), w)

    run(2, program)


def test_a_batch_must_have_equal_parts():
    placement = Placement("cpu", [0, 1])

    def program():
        graph, _, _ = prepared(STRATEGIES[0], 2, accumulate=3)
        with pytest.raises(flow.ShapeError, match="9 along axis 0, .* into 3 equal parts on each of 2 ranks"):
            graph(*[spread(np.ones((9, n)), placement, [split(0)]) for n in (6, 4)])

    run(2, program)


# ---- ZeRO ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_zero(strategy, stage, accumulate, optimizer):
    run(4, equals_one_rank, strategy, 4, zero=stage, accumulate=accumulate, optimizer=optimizer)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_zero_splits(stage):
    def program():
        graph, x, y = prepared(STRATEGIES[0], 3, zero=stage)  # of w1 [6, 8], b1 [8], w2 [8, 4] and b2 [4]
        graph(x, y)
        ((optimizer, _),) = graph.optimizers
        states = sum(t.array.nbytes for state in optimizer.state.values() for t in state.values())
        gradients = sum(g.array.nbytes for g in graph.grads.values())
        return states, gradients, sum(p.array.nbytes for p in graph.model.parameters())

    whole = 8 * (48 + 8 + 32 + 4)
    parts = [8 * (rows * 8 + b1 + b1 * 4 + b2) for rows, b1, b2 in [(2, 3, 2), (2, 3, 1), (2, 2, 1)]]
    for held, part in zip(run(3, program), parts):
        assert held == tuple([part if stage >= least else whole for least in (1, 2, 3)])


def test_zero_moves_slices():
    """The weights of two layers: gathered in forward, and what a gradient reads again in backward."""

    def program(stage):
        graph, x, y = prepared(STRATEGIES[0], 2, zero=stage)
        graph(x, y)
        kinds = [(n.phase, n.attrs["shape"], n.attrs["source"][1], n.attrs["target"][1]) for n in boxings(graph)]
        return [(phase, before, after) for phase, shape, (before,), (after,) in kinds if shape in [(6, 8), (8, 4)]]

    forward, reduced = ("forward", split(0), B), ("forward", P, split(0))
    moves = {stage: run(2, program, stage)[0] for stage in (0, 2, 3)}
    assert moves[0] == [("forward", P, B)] * 2
    assert moves[2] == [reduced] * 2 + [("optimizer", B, split(0)), ("optimizer", split(0), B)] * 2
    assert moves[3] == [forward] * 2 + [("backward", split(0), B)] + [reduced] * 2


def test_small_parameters_stay_whole():
    def program():
        graph, x, y = prepared(STRATEGIES[0], 4)
        graph.config.enable_zero(stage=3, shard_min_size=8)
        graph(x, y)
        return [p.sbp[0].kind for p in graph.model.parameters()]

    assert run(4, program) == [["split", "broadcast", "split", "broadcast"]] * 4


def test_zero_of_local_tensors_warns():
    graph, x, y = prepared(None, 1, zero=2)
    with pytest.warns(flow.MinflowWarning, match="enable_zero has no effect: the graph trains no global tensors"):
        graph(x, y)
    for mistake in ({"stage": 4}, {"shard_min_size": 0}):
        with pytest.raises(flow.GraphError, match=re.escape(str(next(iter(mistake.values()))))):
            graph.config.enable_zero(**mistake)


# ---- pipelines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_pipeline(accumulate):
    run(2, pipeline_equals_one_rank, Placement("cpu", [0]), Placement("cpu", [1]), accumulate)


def test_a_pipeline_of_several_ranks_per_stage():
    run(4, pipeline_equals_one_rank, Placement("cpu", [0, 1]), Placement("cpu", [2, 3]), 1, split(0))
    run(5, pipeline_equals_one_rank, Placement("cpu", [3, 0]), Placement("cpu", [1, 2, 4]))


def test_a_pipeline_with_checkpointing():
    run(2, pipeline_equals_one_rank, Placement("cpu", [0]), Placement("cpu", [1]), checkpointing=(0, 1))


def logged_halves(graph, x, y):
    """("forward", part of the batch), ... of a call, in order; and the ops of each part of the plan."""
    compiled, ran = graph.compiled_for((x, y), {}), []
    for part in compiled.parts:
        whole = part.plan.run

        def logged(*args, name=part.name, whole=whole):
            ran.append((name, compiled.build.micro))
            return whole(*args)

        part.plan.run = logged
    graph(x, y)
    return ran, [{str(node.op) for node in part.graph.nodes} for part in compiled.parts]


def test_stages_overlap():
    """The first of two stages is one forward ahead of the last."""

    def program():
        return logged_halves(*pipeline_training((Placement("cpu", [0]), Placement("cpu", [1])), accumulate=3))

    (ran, first), (ran_too, second) = run(2, program)
    forward, backward = [[(name, k) for k in range(3)] for name in ("forward", "backward")]
    alternating = [half for pair in zip(forward, backward) for half in pair]
    assert ran == [
        forward[0],
        *[half for pair in zip(forward[1:], backward) for half in pair],
        backward[2],
        ("update", 0),
    ]
    assert ran_too == [*alternating, ("update", 0)]
    assert "tanh" in first[0] and "square" not in first[0] and "tanh" not in second[0] and "square" in second[0]


def test_four_stages():
    def program(stages):
        flow.manual_seed(0)
        model = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.Tanh()).double() for _ in range(4)])
        x, places = flow.tensor(X), [Placement("cpu", [rank]) for rank in range(4)]
        if stages:
            for rank, layer in enumerate(model):
                layer.to_global(places[rank], [B]).to(nn.graph.GraphModule).set_stage(rank, places[rank])
            x = spread(X, places[0], [B])
        graph = Training(model, OPTIMIZERS["Adam"](model.parameters()), accumulate=6)
        losses = [graph(x, x.to_global(places[3], [B]) if stages else x) for _ in range(5)]
        return [loss.to_local().tolist() for loss in losses] if stages else [loss.tolist() for loss in losses]

    (alone,) = run(1, program, False)
    assert run(4, program, True) == [[[]] * 5] * 3 + [alone]


def test_forwards_run_first_if_stages_meet():
    """A collective of the ranks of both stages runs in one order on all ranks."""

    def program():
        graph, x, y = pipeline_training((Placement("cpu", [0]), Placement("cpu", [1])), accumulate=3)
        both = Placement("cpu", [0, 1])
        graph.model.register_forward_hook(lambda module, inputs, out: out.to_global(both, [B]))
        y = y.to_global(both, [B])
        return logged_halves(graph, x, y)[0]

    halves = [(name, k) for name in ("forward", "backward") for k in range(3)]
    assert run(2, program) == [[*halves, ("update", 0)]] * 2


@pytest.mark.parametrize(
    "arguments, error, match",
    [
        ((-1,), flow.GraphError, "the stage of a pipeline is an int of 0 or more(?s:.*)-1"),
        ((0, "cpu"), flow.DTypeError, "the placement of a stage must be a flow.placement"),
    ],
)
def test_stages_are_checked(arguments, error, match):
    with pytest.raises(error, match=match):
        nn.Linear(2, 2).to(nn.graph.GraphModule).set_stage(*arguments)


# ---- DistributedDataParallel -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_prepared_modules(size, accumulate):
    run(size, prepared_modules_train_in_graphs, accumulate)


def test_gradients_without_reduction():
    """A plan is made for each: no_sync() turns the reduction off."""

    def program():
        model = DistributedDataParallel(nn.Linear(2, 1))
        graph, x = Summed(model), flow.full((1, 2), dist.get_rank() + 1.0)
        gradients = []
        for context in (contextlib.nullcontext, model.no_sync, contextlib.nullcontext):
            with context():
                graph(x)
            gradients.append(graph.grads["model.weight"].tolist())
        return gradients

    mean = [[1.5, 1.5]]
    assert run(2, program) == [[mean, [[1.0, 1.0]], mean], [mean, [[2.0, 2.0]], mean]]


class Summed(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.0))

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


def test_unused_parameters_are_named():
    def program():
        model = nn.Sequential(nn.Linear(2, 1))
        model.spare = nn.Linear(2, 1)
        model.forward = lambda x: model[0](x)
        Summed(DistributedDataParallel(model))(flow.ones(1, 2))

    with pytest.raises(flow.GradError, match=r"(?s)2 parameters got no gradient.*spare.bias, spare.weight"):
        run(2, program)


class Writing(nn.Module):
    """Writes parts of a tensor one after the other, and assigns and writes buffers."""

    def __init__(self):
        super().__init__()
        for name in ("mean", "row", "part"):
            self.register_buffer(name, flow.zeros(4, dtype=flow.float64))

    def forward(self, x):
        self.mean = self.mean * 0.9 + x.mean(0)
        self.row = x[1] + 0
        self.part[1:3] += x.sum(0)[1:3]
        self.part.mul_(x[:, 0])
        x = x.clone()
        x[1:3] = 0.0
        x[:, 1] = self.mean
        x[0] = x[3]
        return x * self.row


@pytest.mark.parametrize("sbp", [B, split(0), split(1)], ids=str)
def test_writes_keep_the_distribution(sbp):
    def program():
        placement, alone = Placement.all("cpu"), Writing()
        own = Writing().to_global(placement, B)

        class Written(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = own

            def build(self, x):
                return self.model(x)

        graph = Written()
        for step in range(3):
            array = np.arange(16.0).reshape(4, 4) + step
            expected, result = alone(flow.tensor(array)), graph(spread(array, placement, sbp))
            assert np.allclose(elements(result), expected.numpy(), atol=1e-12)
            for (name, mine), buffer in zip(own.named_buffers(), alone.buffers()):
                assert mine.sbp == (B,) and np.allclose(elements(mine), buffer.numpy(), atol=1e-12), name

    run(3, program)


def test_elements_cannot_be_read_in_build():
    class Reading(nn.Graph):
        def build(self, x):
            return x * scale.item()

    placement = Placement("cpu", [0, 1])

    def program():
        nonlocal scale
        scale = spread(np.array(2.0), placement, [B])
        Reading()(spread(X, placement, [split(0)]))

    scale = None
    with pytest.raises(flow.TraceError, match=r"item\(\) reads all elements of a global tensor while a graph is built"):
        run(2, program)


# ---- the order of communication --------------------------------------------------------------------------------------


def backward_order(graph):
    """A pass that keeps inputs before users, and otherwise reverses the order, on odd ranks only."""
    if current_context().rank % 2 == 0:
        return graph
    return Graph(graph.inputs, topological_order(graph.nodes[::-1]), graph.outputs, graph.states, graph.updates)


class Exchanges(nn.Graph):
    """Moves parts of different sizes between ranks; some results have no users, and some ranks have no part."""

    def __init__(self):
        super().__init__()
        self.passes.append(backward_order)

    def build(self, x, y):
        first, second = Placement("cpu", [0, 1]), Placement("cpu", [2])
        unused = x.to_global(first, [B]) * 2
        there = (x * 3).to_global(second, [split(0)])
        again = y.to_global(first, [B]) + y.to_global(first, [B])
        back = (there + 1).to_global(first, [split(0)])
        del unused
        return back + x, again, there.sum()


def test_all_ranks_communicate_in_one_order():
    placement, x, y = Placement("cpu", [0, 1]), np.arange(15.0).reshape(5, 3), np.arange(7.0).reshape(1, 7)

    def program():
        graph = Exchanges()
        results = graph(spread(x, placement, [split(0)]), spread(y, placement, [split(1)]))
        wanted = x * 4 + 1, y * 2, (x * 3).sum()
        here = current_context().rank
        for result, array in zip(results, wanted):
            if here in result.placement.order:
                assert np.array_equal(elements_here(result), array)
        return [(str(node.op), node.attrs["source"], node.attrs["target"]) for node in boxings(graph)]

    def elements_here(x):
        return x.to_global(x.placement, [B]).to_local().numpy()

    first, *others = run(3, program)
    assert len(first) == 3 and others == [first, first]  # the unused one is gone, and two are one


def test_a_node_on_other_ranks_disappears():
    def program():
        graph = Exchanges()
        placement = Placement("cpu", [0, 1])
        graph(spread(np.ones((5, 3)), placement, [split(0)]), spread(np.ones((1, 7)), placement, [B]))
        return {str(node.op) for node in graph.nodes}

    first, second, third = run(3, program)
    assert "mul" in first and "sum" not in first and first == second
    assert "mul" not in third and "sum" in third


# ---- listings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks, count", [(None, 1), (1, 1), ([0, 2], 2), (-1, 4)])
def test_debug_prints_distributions(ranks, count, capsys):
    def program():
        graph, x, y = prepared(STRATEGIES[2], 4)
        graph.debug(2, ranks=ranks)
        graph(x, y)
        graph.repr_style = "v1"
        return repr(graph)

    listings = run(4, program)
    text, place = capsys.readouterr().out, 'minflow.placement(type="cpu", ranks=[[0, 1], [2, 3]])'
    update = "(OPERATOR: model.w1_optimizer(model.w1: float64[6, 8] (B, S(1)), boxing-"
    assert text.count(update) == text.count(" start building plan.") == count
    assert re.search(r"boxing-\d\(.*?: float64.* \(.*P.*\)\) -> \(float64", text) and place in text
    assert len(set(listings)) == 1  # on all ranks the same program, with logical shapes
    matmul = r"model.w1/out:\(sbp=\(B, S\(1\)\), size=\(6, 8\), .*? -> \(.*?sbp=\(S\(0\), S\(1\)\), size=\(24, 8\)"
    assert re.search(matmul, listings[0]) and f"placement=({place})" in listings[0]
    assert re.search(r"OPERATOR: .*boxing-\d\(.*sbp=\(.*P.*\) -> ", listings[0])
