"""flow.kernels: the kernels of eager code and their platforms."""

import threading

import pytest

import minflow as flow
from minflow import nn
from minflow.core.kernels import OBSERVERS
from minflow.views.records.reports import KernelCall

pytestmark = pytest.mark.usefixtures("kernels_of_numpy")


def test_training_step():
    """Forward, backward and optimizer; equal calls are one row, and views are left out."""
    model = nn.Sequential(nn.Linear(6, 4), nn.Flatten(), nn.Linear(4, 4))
    optimizer, x = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), flow.ones(100, 6)

    def train():
        model(x).sum().backward()
        optimizer.step()

    report = flow.kernels(train)
    calls = report.record.calls
    products = [call.inputs for call in calls if call.op == "matmul"]
    assert products[:2] == [("float32[100, 6]", "float32[4, 6]"), ("float32[100, 4]", "float32[4, 4]")]
    assert sum([call.count for call in calls if call.op == "matmul"]) == 5
    assert {call.platform for call in calls} == {"numpy", "reference"}
    bias = "float32[4]"
    assert KernelCall("sgd_momentum", "numpy", (bias, bias, bias, "float64[]"), (bias, bias), 2) in calls
    assert not any(flow.core.op.OPS[call.op].is_view for call in calls)
    assert repr(report).startswith("kernels of train: ") and " numpy" in repr(report)


def test_platform_depends_on_the_arrays():
    """NumPy's faster kernel declines small arrays, also within one run."""
    calls = flow.kernels(lambda x, y: (x.mean(), y.mean()), flow.ones(4), flow.ones(1 << 13)).record.calls
    assert [(call.inputs, call.platform) for call in calls] == [
        (("float32[4]",), "reference"),
        (("float32[8192]",), "numpy"),
    ]


def test_other_threads_are_left_out():
    def work(**options):
        thread = threading.Thread(target=lambda: flow.ones(3).exp())
        thread.start()
        thread.join()
        return flow.ones(options["size"]).sin()

    assert [call.op for call in flow.kernels(work, size=2).record.calls] == ["full", "sin"]


def test_nothing_is_observed_after_an_error():
    with pytest.raises(flow.ShapeError):
        flow.kernels(nn.Linear(3, 2), flow.ones(4))
    assert not OBSERVERS


def test_graph_has_its_own_listing():
    class Double(nn.Graph):
        def build(self, x):
            return x * 2

    graph = Double()
    graph(flow.ones(3))
    assert repr(flow.kernels(graph, flow.ones(3))) == (
        "kernels of Double: none ran in eager mode; graph.plan lists those of a graph"
    )
