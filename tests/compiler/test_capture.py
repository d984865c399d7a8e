"""Captured plans: what their launches repeat, what stays single, and the order on streams of the stand-in for a GPU."""

import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.capture import VARIABLE, CapturedCalls
from minflow.core.backend import backend_of
from tests.graph_models import FunctionGraph
from tests.nn.test_models_on_a_device import (
    MODELS,
    OPTIMIZERS,
    Training,
    bits,
    reference_kernels,  # noqa: F401
)
from tests.strict_streams import delayed


def plan_of(graph):
    return graph._plans.last.parts[0].plan


def launches(graph):
    return [unit for unit in plan_of(graph).units[0] if isinstance(unit, CapturedCalls)]


def steps(name, device, batches):
    """(losses, parameters and buffers, the graph) of a step on each of these batches."""
    flow.manual_seed(0)
    model = MODELS[name][0]().to(device)
    graph = Training(model, OPTIMIZERS[name](model.parameters(), lr=0.01))
    losses = [graph(x.to(device), y.to(device)) for x, y in batches]
    return [bits(t) for t in losses], [bits(t) for t in model.state_dict().values()], graph


@pytest.mark.parametrize("order", ["", "others", "all"])
@pytest.mark.parametrize("name", MODELS)
def test_captured_steps_have_the_bits_of_the_cpu(name, order, cuda):
    flow.manual_seed(1)
    batches = [MODELS[name][1]() for _ in range(4)]
    here = steps(name, "cpu", batches)
    backend = backend_of(cuda)
    before = backend.stream()
    with delayed(order):
        backend.use_stream(backend.new_stream() if order == "others" else before)
        try:
            there = steps(name, "cuda", batches)
        finally:
            backend.use_stream(before)
    assert there[:2] == here[:2]
    assert launches(there[2]) and {call.reason for call in plan_of(there[2]).capture.single} <= {
        "it reads values on the CPU"
    }


def test_updates_follow_the_launch_of_all_other_calls(cuda):
    *_, graph = steps("MLP", "cuda", [MODELS["MLP"][1]() for _ in range(2)])
    first, *updates = plan_of(graph).units[0]
    assert isinstance(first, CapturedCalls) and {node.op.name for node in plan_of(graph).units[1][1:]} == {"adam"}
    assert len(updates) == 4


def test_the_listing_of_a_plan_says_what_is_captured(cuda):
    x, y = (t.to("cuda") for t in MODELS["MLP"][1]())
    *_, graph = steps("MLP", "cuda", [(x, y)])
    assert "captured" not in str(graph.plan)
    graph(x, y)
    assert str(graph.plan).splitlines()[-2:] == [
        "14 of 18 calls are captured in 1 CUDA graph",
        "not captured: adam (it reads values on the CPU)",
    ]


def scaled(x):
    return (x * 2 + 1).exp().sum(0)


def test_all_calls_are_one_launch_from_the_second_run_on(cuda):
    graph, xs = FunctionGraph(scaled), [flow.randn(40, 300) for _ in range(4)]
    found = []
    for x in xs:
        assert bits(graph(x.to("cuda"))) == bits(scaled(x))
        found.append(len(launches(graph)))
    assert found == [0, 1, 1, 1] and len(plan_of(graph).units[0]) == 1


def test_capture_can_be_turned_off(cuda, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    graph, x = FunctionGraph(scaled), flow.randn(2, 3)
    assert [bits(graph(x.to("cuda"))) for _ in range(3)] == [bits(scaled(x))] * 3
    assert not launches(graph)


def test_a_call_that_waits_stays_single(cuda):
    graph, x = FunctionGraph(scaled), flow.randn(2, 3)
    graph(x.to("cuda"))
    plan = plan_of(graph)
    call, array = plan.calls[1], plan.inputs[0][1]
    plan.calls[1] = lambda: (call(), array.sum().item())
    assert [bits(graph(x.to("cuda"))) for _ in range(3)] == [bits(scaled(x))] * 3
    (single,) = plan.capture.single
    assert single.node is plan.nodes[1] and "CaptureError: operation not permitted" in single.reason
    assert len(launches(graph)) == 2


def test_kernels_of_the_cpu_and_functions_of_the_program_stay_single(cuda):
    def solved(x):
        return flow.linalg.cholesky(x @ x.T + flow.eye(3, device=x.device)).exp()

    graph, x = FunctionGraph(solved), flow.randn(3, 3)
    there = [bits(graph(x.to("cuda"))) for _ in range(3)]
    assert there == [bits(solved(x))] * 3
    assert [(call.node.op.name, call.reason) for call in plan_of(graph).capture.single] == [
        ("cholesky", "its kernel is for the CPU")
    ]


def test_checks_of_a_captured_call_are_those_of_each_run(cuda):
    graph = FunctionGraph(lambda x, y: nn.functional.cross_entropy(x, y))
    x, labels = flow.randn(2, 3).to("cuda"), flow.tensor([0, 2], device="cuda")
    for _ in range(3):
        graph(x, labels).item()
    loss = graph(x, flow.tensor([0, 5], device="cuda"))
    graph(x, labels)  # which overwrites the numbers of the check
    with pytest.raises(IndexError, match="5"):
        loss.item()
    assert graph(x, labels).item() > 0


def test_another_stream_waits_for_the_last_run_and_captures_anew(cuda):
    backend, graph = backend_of(cuda), FunctionGraph(scaled)
    xs = [flow.randn(4, 300) for _ in range(6)]
    before, results = backend.stream(), []
    with delayed("all"):
        on_device = [x.to("cuda") for x in xs]
        backend.synchronize()
        try:
            for k, x in enumerate(on_device):
                if k % 3 == 0:
                    backend.use_stream(backend.new_stream())
                results.append(graph(x))
                assert len(launches(graph)) == (k % 3 > 0)
        finally:
            backend.use_stream(before)
        backend.synchronize()
        assert [bits(t) for t in results] == [bits(scaled(x)) for x in xs]


def test_a_timed_call_runs_all_calls(cuda):
    graph, x = FunctionGraph(scaled), flow.randn(2, 3)
    for _ in range(3):
        graph(x.to("cuda"))
    plan = plan_of(graph)
    graph._plans.last.run(graph, [x.to("cuda").array], timed=True)
    assert len(plan.seconds) == len(plan.calls) > 1


@pytest.mark.usefixtures("cuda_kernels")
def test_a_captured_step_draws_anew():
    flow.manual_seed(0)
    graph, x = FunctionGraph(lambda x: nn.functional.dropout(x, 0.5)), flow.ones(50)
    there = [graph(x.to("cuda")).cpu().numpy().tobytes() for _ in range(4)]
    assert [type(unit) for unit in plan_of(graph).units[0]][1:] == [CapturedCalls]
    flow.manual_seed(0)
    assert there == [nn.functional.dropout(x, 0.5).numpy().tobytes() for _ in range(4)] and len(set(there)) == 4


@pytest.mark.usefixtures("cuda_kernels")
@pytest.mark.parametrize("name", MODELS)
def test_kernels_in_cuda_c_have_the_same_bits_when_they_are_late(name):
    flow.manual_seed(1)
    batches = [MODELS[name][1]() for _ in range(3)]
    at_once = steps(name, "cuda", batches)
    with delayed("all"):
        late = steps(name, "cuda", batches)
    assert late[:2] == at_once[:2] and launches(late[2])
