"""Streams, CUDA graphs and jobs on a real GPU: `pytest -m gpu`. All else is tested on the stand-in."""

import os

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.capture import VARIABLE
from minflow.core.backend import backend_of
from tests.compiler.test_capture import launches, plan_of, scaled, steps
from tests.core.test_cuda_forks import result_of_child
from tests.graph_models import FunctionGraph
from tests.job.test_jobs_on_a_gpu import train
from tests.nn.test_models_on_a_device import MODELS

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def gpu():
    if not flow.cuda.is_available():
        pytest.skip("there is no GPU here, or CuPy is not installed: flow.cuda.is_available() is False")
    return backend_of(flow.device("cuda"))


def elements(found):
    return [np.frombuffer(x[-1], x[0].np).astype("f8") for x in found]


@pytest.mark.parametrize("name", MODELS)
def test_captured_steps_have_the_results_of_the_cpu_and_of_single_calls(name, monkeypatch):
    flow.manual_seed(1)
    batches = [MODELS[name][1]() for _ in range(5)]
    captured = steps(name, "cuda", batches)
    # updates that are not last, and products of CuPy, are single calls between launches
    assert 1 <= len(launches(captured[2])) <= 10, plan_of(captured[2]).capture.single
    # Not the parameters: a gradient near zero that changes its sign moves one by twice the learning rate. And not later
    # losses: MobileNetV2's grow, and differences with them.
    np.testing.assert_allclose(elements(captured[0])[:3], elements(steps(name, "cpu", batches)[0])[:3], rtol=1e-2)
    monkeypatch.setenv(VARIABLE, "0")
    assert captured[:2] == steps(name, "cuda", batches)[:2]


def test_a_copy_from_the_host_is_not_captured(gpu):
    graph, x = FunctionGraph(scaled), flow.randn(2, 3).to("cuda")
    expected = graph(x)
    plan = plan_of(graph)
    call = plan.calls[0]
    plan.calls[0] = lambda: (call(), gpu.from_host(np.ones(3)))
    assert [graph(x).tolist() for _ in range(3)] == [expected.tolist()] * 3
    (single,) = plan.capture.single
    assert single.node is plan.nodes[0] and "from the host" in single.reason


def test_a_call_that_waits_is_not_captured(gpu):
    graph, x = FunctionGraph(scaled), flow.randn(2, 3).to("cuda")
    expected = graph(x)
    plan = plan_of(graph)
    call = plan.calls[0]
    plan.calls[0] = lambda: (call(), float(plan.inputs[0][1].sum()))
    assert [graph(x).tolist() for _ in range(3)] == [expected.tolist()] * 3
    assert [single.node for single in plan.capture.single] == [plan.nodes[0]]
    assert (x + 1).tolist() == (x.cpu() + 1).tolist()  # the error has left nothing behind


def test_many_launches_on_two_streams(gpu):
    graph, xs = FunctionGraph(scaled), [flow.randn(64, 4096).to("cuda") for _ in range(12)]
    flow.cuda.synchronize()
    results = []
    for k, stream in enumerate([flow.cuda.Stream(), flow.cuda.Stream()] * 2):
        with flow.cuda.stream(stream):
            results += [graph(x) for x in xs[3 * k : 3 * k + 3]]
    flow.cuda.synchronize()
    for x, y in zip(xs, results):
        np.testing.assert_allclose(y.cpu().numpy(), scaled(x.cpu()).numpy(), rtol=1e-4)


def test_events_measure_and_order():
    side, before, after = flow.cuda.Stream(), *[flow.cuda.Event(enable_timing=True) for _ in range(2)]
    x = flow.ones(2048, 2048).to("cuda")
    side.wait_stream(flow.cuda.current_stream())
    with side:
        before.record()
        y = x
        for _ in range(50):
            y = y @ x / 2048
        after.record()
    x.record_stream(side)
    del x
    flow.cuda.current_stream().wait_event(after)
    assert (y + 1).min().item() == (y + 1).max().item() == 2.0
    assert after.query() and side.query() and before.elapsed_time(after) > 0.1


@pytest.mark.parametrize("asynchronous", [False, True])
def test_jobs_have_the_results_of_the_cpu(asynchronous):
    here, there = train("cpu", asynchronous), train("gpu", asynchronous)
    assert here[1].keys() == there[1].keys()
    for one, other in zip([*here[0], *here[1].values()], [*there[0], *there[1].values()]):
        np.testing.assert_allclose(np.frombuffer(one, "f4"), np.frombuffer(other, "f4"), rtol=1e-3, atol=1e-5)
    assert there == train("gpu", not asynchronous)


def test_captured_dropout_has_the_bits_of_the_cpu():
    flow.manual_seed(0)
    graph, x = FunctionGraph(lambda x: nn.functional.dropout(x, 0.5)), flow.ones(5000)
    there = [graph(x.to("cuda")).cpu().numpy().tobytes() for _ in range(4)]
    flow.manual_seed(0)
    assert there == [nn.functional.dropout(x, 0.5).numpy().tobytes() for _ in range(4)]


def test_pinned_tensors_are_copied():
    x = flow.randn(1000, 1000)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.numpy().tobytes() == x.numpy().tobytes()
    copies = [pinned.to("cuda", non_blocking=True) for _ in range(5)]
    assert [copy.cpu().numpy().tobytes() for copy in copies] == [x.numpy().tobytes()] * 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_is_refused():
    x = flow.ones(3).to("cuda")
    assert "a forked process uses cuda:0" in result_of_child(lambda: str(x + 1))
    assert (x + 1).tolist() == [2.0] * 3
