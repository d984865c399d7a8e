"""Each pass alone: what it removes, what it must keep, and that the bits stay the same."""

import numpy as np
import pytest
from fusion_checks import names, same_bits
from graph_models import Step

import minflow as flow
from minflow import nn
from minflow.compiler.passes import PASSES, run_passes
from minflow.compiler.passes.common_subexpressions import common_subexpressions, exact_key
from minflow.compiler.passes.constant_folding import constant_folding
from minflow.compiler.passes.dead_code import dead_code
from minflow.compiler.passes.rewrite import rewrite
from minflow.compiler.plan import Plan
from minflow.core.ir import CONSTANT, outputs_of
from minflow.core.trace import trace
from tests.reference import execute
from tests.sampling import sampled


def traced(program, *inputs):
    return trace(program, inputs)[0]


X = flow.tensor([[1.0, -2.0], [3.0, 4.0]])


def test_dead_code_elimination_keeps_updates():
    weight = flow.ones(2)

    def program(x):
        (x * 3).exp().sum()
        weight.add_(x[0])
        return x + 1

    graph = traced(program, X)
    after = dead_code(graph)
    assert names(graph) != names(after) and set(names(after)) == {"getitem", "add"} and len(after.updates) == 1
    assert "exp" in names(graph), "a pass is pure: its input graph is unchanged"


def test_dead_states_are_removed_but_generators_advance():
    unused = flow.ones(2)

    def program(x):
        unused * 2
        nn.functional.dropout(x, 0.5)
        return x + 1

    graph, mode = trace(program, [X])
    after = dead_code(graph)
    assert names(after) == ["add"] and len(after.states) == 1 < len(graph.states)
    (generator,) = mode.draws
    before = generator.counter
    execute(after, [X.numpy()])
    assert generator.counter == before + 1


def test_constant_folding_uses_the_runtime_kernel():
    def program(x):
        table = flow.arange(2).float() * 0.1 + flow.tensor([1.0, 2.0])
        return x * table.exp() + flow.zeros(3000, 30).sum()

    graph = traced(program, X)
    after = dead_code(constant_folding(graph))
    assert names(after) == ["mul", "full", "sum", "add"], (
        "360 kB of zeros are allocated at each call, small constants are not"
    )
    assert sum(s.op is CONSTANT for s in after.states) == 1
    same_bits(graph, after, X.numpy())


def test_mutable_values_are_not_folded():
    captured = flow.tensor([2.0, 3.0])
    graph = traced(lambda x: x + captured * 2 + flow.rand(2), X)
    assert names(constant_folding(graph)) == names(graph)


def test_constant_written_in_build_is_reset_at_each_call():
    def program(x):
        total = flow.tensor([0.0, 0.0])
        total += x[0]
        total[1] = 5.0
        return total * 1

    graph = traced(program, X)
    assert not graph.updates
    for _ in range(2):
        assert Plan(run_passes(graph, PASSES)[-1].graph).run([X.numpy()])[0].tolist() == [1.0, 5.0]


def test_common_subexpressions():
    def program(x):
        a, b = (x * 2).exp(), (x * 2).exp()
        return a + b, x.sum(0) + x.sum(1) + x.sum(0), x.t() @ x.t()

    graph = traced(program, X)
    after = common_subexpressions(graph)
    assert names(after).count("exp") == 1 and names(after).count("sum") == 2 and names(after).count("permute") == 1
    same_bits(graph, after, X.numpy())


def test_cse_keeps_different_values_apart():
    def program(x):
        dropped = [nn.functional.dropout(x, 0.5) for _ in range(2)]
        return x * 0.0 + x * -0.0, x + 1, x + True, x.sum(0), x.sum(0, keepdims=True), *dropped

    graph = traced(program, X)
    assert names(common_subexpressions(graph)) == names(graph)
    assert exact_key(1) != exact_key(1.0) != exact_key(True) and exact_key(0.0) != exact_key(-0.0)
    assert exact_key({"a": (1, [2.0])}) == exact_key({"a": (1, [2.0])}) != exact_key({"a": (1, [2])})


def test_memory_pass_schedules_updates_early():
    flow.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(6)])
    graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.1), lambda x: model(x).sum(), keep_gradients=False)
    graph(flow.ones(4, 64))
    stages = {stage.name: stage.graph for stage in graph._last.parts[0].stages}
    before, after = stages["common_subexpressions"], stages["reduce_memory"]
    phases = [node.phase for node in after.nodes]
    assert phases.index("optimizer") < len(phases) - 1 - phases[::-1].index("backward")
    assert sorted(names(before)) == sorted(names(after)) and len(after.updates) == 12
    plans = [Plan(dead_code(g)) for g in (before, after)]
    assert plans[1].arena_bytes < 0.7 * plans[0].arena_bytes
    assert all(len(plan.in_place) == 12 and not plan.copies for plan in plans)


def test_memory_pass_keeps_old_state_for_its_users():
    """Two states swap their values, a third is used after its update is known: no user may see a new value early."""
    a, b, c = flow.tensor([1.0]), flow.tensor([2.0]), flow.tensor([3.0])

    def program(x):
        old_a, old_c = a * 1, c * 1
        a.copy_(b)
        b.copy_(old_a)
        c.add_(x)
        return old_c + c, a + 0, b + 0

    graph = traced(program, flow.tensor([10.0]))
    plan = Plan(run_passes(graph, PASSES)[-1].graph)
    assert [r.item() for r in plan.run([np.array([10.0], "float32")])] == [16.0, 2.0, 1.0]
    assert (a.item(), b.item(), c.item()) == (2.0, 1.0, 13.0)


def test_rewriting_keeps_nodes_and_follows_chains():
    graph = traced(lambda x: ((x + 1) * 2).exp() + x, X)
    add, mul = graph.nodes[:2]
    after = rewrite(
        graph,
        graph.nodes[2:],
        {outputs_of(mul)[0]: outputs_of(add)[0], outputs_of(add)[0]: graph.outputs[0].node.inputs[1]},
    )
    assert names(after) == ["exp", "add"] and after.nodes[0].number == graph.nodes[2].number
    assert execute(after, [X.numpy()])[0].tolist() == (X.exp() + X).tolist()
    assert names(graph) == ["add", "mul", "exp", "add"]


def test_gradients_stay_linked_to_their_forward_nodes():
    model = nn.Linear(2, 2)

    def program(x):
        y = model(x * 1.0)
        (y.relu() + y.relu()).sum().backward()
        return model.weight.grad

    graph = traced(program, X)
    after = run_passes(graph, PASSES)[-1].graph
    backward = [node for node in after.nodes if node.phase == "backward"]
    assert backward
    assert all(node.origin in after.nodes for node in backward if node.origin.op.name in ("relu", "matmul"))


ACTIONS = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a.t(),
    lambda a, b: (a @ b).tanh(),
    lambda a, b: a.relu(),
    lambda a, b: a.sum(0, keepdims=True) + b,
    lambda a, b: flow.where(a > b, a, b),
]


def test_passes_keep_the_results_of_random_programs():
    for seed in sampled(range(60), 0.4):

        def program(x, seed=seed):
            rng = np.random.default_rng(seed)
            values = [x, flow.tensor([[1.0, 2.0], [3.0, 4.0]]), x * 1]
            for _ in range(14):
                a, b = (values[i] for i in rng.integers(len(values), size=2))
                values.append(ACTIONS[rng.integers(len(ACTIONS))](a, b))
            return values[-1] * 1, values[-3] * 1, values[-5].t()

        graph = traced(program, X)
        for stage in run_passes(graph, PASSES)[1:]:
            same_bits(graph, stage.graph, X.numpy())


@pytest.mark.parametrize("step", PASSES[:2] + PASSES[2:3] + PASSES[4:])
def test_passes_are_pure(step):
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))

    def program(x):
        loss = model(x).sum() + flow.arange(3).float().sum()
        loss.backward()
        return loss, model[0].weight.grad

    graph = traced(program, X)
    before = str(graph), [(n, tuple(n.inputs), n.origin) for n in graph.nodes], list(graph.states)
    step(graph)
    assert (str(graph), [(n, tuple(n.inputs), n.origin) for n in graph.nodes], list(graph.states)) == before


def test_old_names_of_passes_work_with_a_warning():
    from minflow.compiler import passes
    from minflow.compiler.passes import node_order
    from minflow.compiler.passes.rewrite import rewritten

    graph, _ = trace(lambda x: x * 2.0, [X])
    with pytest.warns(DeprecationWarning, match="reduce_memory"):
        assert passes.memory is node_order.memory is node_order.reduce_memory
    with pytest.warns(DeprecationWarning, match="rewritten is now rewrite"):
        assert names(rewritten(graph, graph.nodes, instead={})) == names(graph)
