"""The plan: offsets in the arena, in-place updates, and what is copied."""

import gc
import weakref

import numpy as np
import pytest
from fusion_checks import plan_of
from hypothesis import given, settings, strategies as st

import minflow as flow
from minflow import nn
from minflow.compiler import arena
from minflow.compiler.arena import ALIGN, BufferRequest, least, place
from minflow.compiler.executor import run
from minflow.compiler.plan import COPIED, Plan
from minflow.core.trace import trace
from tests import sampling

NEEDS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 30)), max_size=40)


@given(NEEDS)
@settings(deadline=None, max_examples=150 if sampling.complete else 50, derandomize=True)
@pytest.mark.parametrize("many", [arena.MANY, 10], ids=["few", "many"])
def test_live_values_do_not_overlap(many, rows):
    needs = {i: BufferRequest(size, min(a, b), max(a, b)) for i, (size, a, b) in enumerate(rows)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arena, "MANY", many)
        offsets, total = place(needs)
    assert offsets.keys() == needs.keys() and least(needs) <= total <= sum(n.nbytes + ALIGN for n in needs.values())
    for i, a in needs.items():
        assert offsets[i] % ALIGN == 0 and offsets[i] + a.nbytes <= total
        for j, b in needs.items():
            if i < j and a.first <= b.last and b.first <= a.last and a.nbytes and b.nbytes:
                assert offsets[i] + a.nbytes <= offsets[j] or offsets[j] + b.nbytes <= offsets[i]


def test_chain_needs_two_buffers():
    needs = {i: BufferRequest(ALIGN * 10, i, i + 1) for i in range(20)}
    assert place(needs)[1] == 2 * ALIGN * 10 == least(needs)


BIG = flow.rand(100, 100)


def test_elementwise_chain_uses_one_buffer():
    plan = plan_of(lambda x: (((x + 1) * 2).exp() - 3).relu().sum(), BIG)
    assert plan.arena_bytes <= BIG.nbytes + 2 * ALIGN
    (got,) = run(plan, [BIG.numpy()])
    assert got == (((BIG + 1) * 2).exp() - 3).relu().sum().numpy()


def test_views_need_no_calls_or_memory():
    plan = plan_of(lambda x: (x + 1).t().reshape(-1, 50)[3:].t() * 2, BIG)
    assert [node.op.name for node in plan.nodes] == ["add", "clone", "mul"]
    (got,) = run(plan, [BIG.numpy()])
    assert got.tobytes() == ((BIG + 1).t().reshape(-1, 50)[3:].t() * 2).contiguous().numpy().tobytes()


def test_updates_are_in_place_if_old_values_have_no_users():
    state, read = flow.zeros(100, 100), flow.zeros(100, 100)

    def program(x):
        total = (read.t() + 1).sum()
        state.add_(x)
        read.add_(x)
        return total

    graph = trace(program, [BIG])[0]
    assert len(Plan(graph).in_place) == 2
    graph.nodes.insert(0, graph.nodes.pop())  # as a pass might do
    assert graph.nodes[0] is next(v.node for s, v in graph.updates.items() if s.array is read.array)
    plan = Plan(graph.verify())
    assert {s.array is state.array for s in plan.in_place.values()} == {True}
    assert len(plan.copies) == 1  # `read` is used, through a view, after its update is known
    (got,) = run(plan, [BIG.numpy()])
    assert got == 10_000 and np.array_equal(state.numpy(), BIG.numpy()) and np.array_equal(read.numpy(), BIG.numpy())


def test_large_outputs_are_allocated_and_small_ones_copied():
    plan = plan_of(lambda x: (x + 1, x.sum(), x + 2), BIG)
    assert len(plan.fresh) == 2 and BIG.nbytes > COPIED
    first, second = run(plan, [BIG.numpy()]), run(plan, [BIG.numpy()])
    for a, b in zip(first, second):
        assert a is not b and not np.may_share_memory(a, b) and not np.may_share_memory(a, plan.arena)
        assert a.tobytes() == b.tobytes() and a.base is None


def test_inputs_and_outputs_are_released():
    plan = plan_of(lambda x: x + 1, BIG)
    array = BIG.numpy().copy()
    results = run(plan, [array])
    gone = weakref.ref(array), weakref.ref(results[0])
    del array, results
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


def test_kept_values_live_until_the_next_run():
    def program(x):
        hidden = (x * 2).exp()
        return hidden.relu().sum(), hidden

    graph = trace(program, [BIG])[0]
    plan = Plan(graph, keep=1)
    assert len(run(plan, [BIG.numpy()])) == 1
    assert plan.array_of(graph.outputs[1]).tobytes() == (BIG * 2).exp().numpy().tobytes()


def test_error_names_the_module_and_the_line():
    table = nn.Embedding(5, 3)
    plan = plan_of(lambda i: table(i) * 1, flow.tensor([1, 2]))
    with pytest.raises(flow.MinflowError, match="index 7") as caught:
        run(plan, [np.array([1, 7])])
    assert "Embedding" in caught.value.where and "test_plan.py:" in caught.value.where
    assert run(plan, [np.array([1, 4])])[0].shape == (2, 3)


def test_computed_labels_are_checked_at_each_call():
    def program(x, y):
        return nn.functional.cross_entropy(x, y + 1)

    x, y = flow.rand(4, 5), flow.tensor([0, 1, 2, 3])
    plan = plan_of(program, x, y)
    assert run(plan, [x.numpy(), y.numpy()])[0] == nn.functional.cross_entropy(x, y + 1).numpy()
    with pytest.raises(flow.MinflowError, match="5 classes"):
        run(plan, [x.numpy(), y.numpy() + 1])


def test_zero_sizes_and_scalars_and_every_dtype():
    for dtype in (flow.float16, flow.float32, flow.float64, flow.int8, flow.int32, flow.int64, flow.uint8, flow.bool):
        for shape in ((), (0, 3), (1,), (70, 70)):
            x = flow.ones(*shape).to(dtype) if shape else flow.ones(()).to(dtype)
            plan = plan_of(lambda x: (x.reshape(-1), x * x, (x == x).sum(), x), x)
            expected = [x.reshape(-1), x * x, (x == x).sum(), x]
            for got, want in zip(run(plan, [x.numpy()]), expected):
                assert got.dtype == want.numpy().dtype and got.shape == want.numpy().shape
                assert got.tobytes() == want.numpy().tobytes()


def test_timed_and_observed_runs_have_the_same_results():
    plan = plan_of(lambda x: ((x + 1).exp() @ x).sum(0), BIG)
    plain = run(plan, [BIG.numpy()])[0].tobytes()
    assert run(plan, [BIG.numpy()], timed=True)[0].tobytes() == plain and len(plan.seconds) == len(plan.nodes) == 4
    seen = []
    assert (
        run(plan, [BIG.numpy()], watch=lambda node, arrays: seen.append((node.op.name, arrays[0].shape)))[0].tobytes()
        == plain
    )
    assert [name for name, _ in seen] == ["add", "exp", "matmul", "sum"]


def test_duplicated_output_is_two_arrays():
    graph, _ = trace(lambda x: (y := x + 2, y), [flow.ones(70_000)])
    first, second = run(Plan(graph), [np.ones(70_000, "float32")])
    first[:] = 0
    assert (second == 3).all()
