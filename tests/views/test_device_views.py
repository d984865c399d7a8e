"""Views of programs on a device: the device of each node, copies as edges with their bytes, the memory of its pool."""

import numpy as np

import minflow as flow
from minflow import nn, typing as tp
from minflow.views.draw.boxes import diagram_of
from minflow.views.records.graph import graph_record
from minflow.views.records.tape import tape_record


class Moving(nn.Graph):
    """A graph that computes on the device and returns to the host."""

    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 3).to("cuda")

    def build(self, x):
        return self.model(x.to("cuda")).relu().cpu() + 1


def labels(diagram) -> list[str]:
    return [edge.label for edge in diagram.edges if "copy" in edge.label]


def lines(diagram) -> list[str]:
    return [line for box in diagram.boxes for line in box.lines]


def test_copies_in_a_graph_are_edges_with_their_bytes(cuda):
    graph = Moving()
    graph(flow.ones(2, 4))
    diagram = diagram_of(graph_record(graph._last.parts[0].stages[0].graph))
    assert labels(diagram) == ["a: copy to cuda:0, 32 B", "copy to cpu, 24 B"]
    assert "copy_to" not in lines(diagram) and "float32[2, 3] on cuda:0" in lines(diagram)
    assert "float32[2, 3]" in lines(diagram)


def test_copies_on_a_tape_are_edges_and_a_copied_result_is_a_box(cuda):
    x = flow.ones(2, requires_grad=True)
    y = (x.cuda() * 2).cpu()
    diagram = diagram_of(tape_record(y + 1))
    assert sorted(labels(diagram)) == ["copy to cpu, 8 B", "copy to cuda:0, 8 B"]
    assert any(["copy_to" in line for line in lines(diagram_of(tape_record(y)))])


def test_the_memory_of_a_plan_tells_the_pool(cuda):
    graph = Moving()
    graph(flow.ones(2, 4))
    text = str(graph.memory())
    assert "cuda:0: arrays 1.0 MB, the pool holds 3.1 MB; 3.2 GB of 4.3 GB are free for all processes" in text


def test_the_timeline_of_a_job_has_a_lane_for_the_gpu(cuda):
    config = flow.function_config()
    config.default_placement_scope(flow.scope.placement("gpu", "0:0"))

    @flow.global_function(function_config=config)
    def double(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        return x * 2

    for _ in range(3):
        double(np.ones(2, "f4"))
    timeline = flow.timeline(double, steps=3)
    assert all([s.compute[0] <= s.gpu[0] <= s.gpu[1] <= s.compute[1] for s in timeline.record.steps])
    assert "\n  GPU      " in timeline.text and ">GPU<" in timeline.svg
    assert "its stream" in timeline.svg
