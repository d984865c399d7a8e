"""Measurements of minflow alone, with one thread, by which `compare.py` compares two commits.

STEPS: name -> function that prepares and returns a step; a process runs it often, and the fastest run counts.
FIRST_CALLS: name -> the same, but the step runs once in a process: imports, and the compile time of graphs.
PREPARE: arguments of Python that run once in each checkout before.

To add a measurement, add an entry. The functions run in both commits, in this order, so they import minflow themselves
and use only names that both have; one that fails in a commit is reported and not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

PREPARE = ("-m", "minflow", "warmup")


def importing() -> Callable[[], Any]:
    import numpy  # noqa: F401  (its import is not ours)

    return lambda: __import__("minflow")


def small(name: str) -> Callable[[], Any]:
    import eager
    import trainings

    return eager.small(name)(trainings.flow_library())


def eager_step(name: str) -> Callable[[], Any]:
    import eager
    import trainings

    return eager.train_step(trainings.flow_library(), name)


def graph_step(name: str) -> Callable[[], Any]:
    import graph
    import trainings

    library = trainings.flow_library()
    training = trainings.make(library, name)
    program = graph.graph_of(library[1], training)
    return lambda: program(*training.batch)


def small_graph() -> Callable[[], Any]:
    import graph
    import trainings

    flow, nn = trainings.flow_library()
    program, x = graph.function_graph(nn, lambda x: x + 1), flow.ones(10)
    return lambda: program(x)


def program(name: str) -> Callable[[], Any]:
    import small_ops

    import minflow

    return small_ops.PROGRAMS[name](minflow)


def deep_graph(layers: int = 400) -> Callable[[], Any]:
    """A training step of many linear layers, whose first call is compile time."""
    import graph
    import trainings

    flow, nn = trainings.flow_library()
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(layers)])
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01)
    batch = flow.ones(4, 8), flow.zeros(4, dtype=flow.int64)
    program = graph.graph_of(nn, trainings.Training(model, nn.CrossEntropyLoss(), optimizer, batch))
    return lambda: program(*batch)


FIRST_CALLS: dict[str, Callable[[], Callable]] = {
    "import": importing,
    "first call, GPT": partial(graph_step, "gpt"),
    "first call, MobileNetV2": partial(graph_step, "mobilenet"),
    "first call, 400 layers": deep_graph,
}
STEPS: dict[str, Callable[[], Callable]] = {
    **{f"op, {name}": partial(small, name) for name in ("add", "chain", "slice", "matmul 8x8")},
    **{f"eager, {name}": partial(eager_step, name) for name in ("mlp", "lenet")},
    **{f"program, {name}": partial(program, name) for name in ("char_lstm", "gpt", "vae")},
    "graph, x + 1": small_graph,
    **{f"graph, {name}": partial(graph_step, name) for name in ("mlp", "lenet", "mobilenet", "gpt")},
}
