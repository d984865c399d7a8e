"""Benchmark nn.Graph against eager minflow, eager PyTorch and torch.compile, alternating in one run; then memory and
compile time.

    python benchmarks/graph.py                    # all rows, 20 rounds, one thread
    python benchmarks/graph.py --only mlp gpt     # some rows
    python benchmarks/graph.py --no-compile       # without torch.compile, which takes minutes for MobileNetV2
    python benchmarks/graph.py --output result.json # the figures as JSON

A round times every contestant once, one after the other; a ratio is the median, with quartiles, over rounds that time
both. Rows: train steps of the models in `trainings.py`; a chain of ten elementwise ops over
ten million floats; one call of a graph `x + 1` on 10 floats.

Memory is measured in a separate run: the peak of live allocations of an eager step (tracemalloc, gradients included)
against the arena and new outputs of the plan.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import record
import timing
from timing import human

TRAININGS = ("mlp", "lenet", "mobilenet", "gpt")
ROWS = (*TRAININGS, "chain", "x + 1")
CONTESTANTS = ("graph", "eager", "PyTorch", "torch.compile")
RATIO, MEMORY, SMALL_US = 1.05, 0.8, 20.0  # the aims: graph / eager, arena / eager's peak, us of the smallest graph
LENGTH = 10_000_000  # of the chain


class Row(NamedTuple):
    """One benchmark. steps: contestant -> one step.  graph: the nn.Graph.  inputs: inputs of a call.  clear: drops
    eager gradients.
    """

    steps: dict[str, Callable[[], Any]]
    graph: Any
    inputs: tuple
    clear: Callable[[], Any]


def parse() -> argparse.Namespace:
    parser = record.parser(__doc__, rounds=20)
    parser.add_argument("--only", nargs="*", choices=ROWS, default=ROWS, metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS and of PyTorch (default 1)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    return parser.parse_args()


def chain(lib) -> Callable:
    def ten_ops(x):
        h = (x * 0.5 + 1.0).exp() * x - 2.0
        return lib.relu(lib.tanh(h) * 3.0 + x) / 4.0

    return ten_ops


# ---- contestants -----------------------------------------------------------------------------------------------------


def eager_step(training) -> Callable[[], Any]:
    model, loss_fn, optimizer, (x, y) = training

    def step():
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def graph_of(nn, training):
    class TrainGraph(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.loss_fn = training.model, training.loss_fn
            self.add_optimizer(training.optimizer)

        def build(self, x, y):
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            return loss

    return TrainGraph()


def function_graph(nn, function):
    class Function(nn.Graph):
        def build(self, x):
            return function(x)

    return Function()


def make_row(name: str, flow_library, torch_library, compiling: bool) -> tuple[Row, dict[str, str]]:
    """The row, and the reason for each contestant that cannot run here."""
    import numpy as np
    import trainings

    flow, nn = flow_library
    steps: dict[str, Callable[[], Any]] = {}
    without: dict[str, str] = {}
    if name in TRAININGS:
        training = trainings.make(flow_library, name)
        graph, inputs = graph_of(nn, training), training.batch
        other = trainings.make(flow_library, name)  # eager trains its own model
        steps["eager"], clear = eager_step(other), lambda: other.optimizer.zero_grad()
    else:
        numbers = np.random.default_rng(0).standard_normal(LENGTH if name == "chain" else 10).astype("f4")
        function = chain(flow) if name == "chain" else lambda x: x + 1
        inputs = (flow.from_numpy(numbers),)
        graph = function_graph(nn, function)
        steps["eager"], clear = lambda: function(*inputs), lambda: None
    steps = {"graph": lambda: graph(*inputs), **steps}
    if torch_library is None:
        return Row(steps, graph, inputs, clear), dict.fromkeys(CONTESTANTS[2:], "PyTorch is not installed")
    torch = torch_library[0]
    if name in TRAININGS:
        steps["PyTorch"] = eager_step(trainings.make(torch_library, name))
        third = trainings.make(torch_library, name)
        compiled = eager_step(third._replace(model=torch.compile(third.model))) if compiling else None
    else:
        tensor = torch.from_numpy(numbers)
        plain = chain(torch) if name == "chain" else lambda x: x + 1
        steps["PyTorch"] = lambda: plain(tensor)
        quick = torch.compile(plain) if compiling else None
        compiled = (lambda: quick(tensor)) if compiling else None
    if compiled is None:
        without["torch.compile"] = "left out by --no-compile"
    else:
        try:
            start = time.perf_counter()
            compiled()
            print(f"  {name}: torch.compile took {time.perf_counter() - start:.1f} s to its first result", flush=True)
            steps["torch.compile"] = compiled
        except Exception as error:  # no C++ compiler, or a program that it refuses: reported in the output
            without["torch.compile"] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:140]}"
    return Row(steps, graph, inputs, clear), without


# ---- measurements ----------------------------------------------------------------------------------------------------


def compile_times(graph, inputs: tuple) -> dict[str, float]:
    """Seconds of the first call of a graph, by phase."""
    gc.collect()
    start = time.perf_counter()
    compiled = graph.compiled_for(inputs, {})
    middle = time.perf_counter()
    graph(*inputs)
    found = {phase: compiled.seconds[phase] for phase in ("trace", "passes", "plan")}
    found["other"] = max(0.0, middle - start - sum(found.values()))
    found["first_run"] = time.perf_counter() - middle
    return found


def peak(step: Callable[[], Any]) -> int:
    """Peak of live bytes of a step, beyond those alive before it."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def memory(row: Row) -> dict[str, int]:
    """Bytes: peak of an eager step and of a graph call; the plan's arena and new outputs, the least possible arena, and
    the arena without kept gradients.
    """
    row.steps["eager"]()
    row.clear()
    found = {"eager": peak(row.steps["eager"])}
    found["graph_call"] = peak(row.steps["graph"])
    found["arena"], found["outputs"], found["least"] = held(row)
    row.graph.config.keep_gradients(False)
    found["arena_without_gradients"] = held(row)[0]
    row.graph.config.keep_gradients(True)
    return found


def held(row: Row) -> tuple[int, int, int]:
    """Bytes of the plan's arena and of the outputs allocated at each call: a lower bound for any buffer assignment."""
    from minflow.compiler.arena import least

    plans = [part.plan for part in row.graph.compiled_for(row.inputs, {}).parts]
    outputs = sum(v.spec.nbytes for plan in plans for v in plan.fresh)
    return sum(plan.arena_bytes for plan in plans), outputs, sum(least(plan.needs) for plan in plans)


def verdict(value: float, aim: float) -> str:
    return f"aim {aim:g}" + ("" if value <= aim else "  MISSED")


def measure(run: record.Run, name: str, flow_library, torch_library, options) -> None:
    """Measure one row, and print each figure when it is known."""
    row, without = make_row(name, flow_library, torch_library, not options.no_compile)
    phases = compile_times(row.graph, row.inputs)
    nodes = sum(len(part.graph.nodes) for part in row.graph.compiled_for(row.inputs, {}).parts)
    times = timing.rounds(row.steps, options.rounds)
    print(f"  {name}")
    for contestant in CONTESTANTS[1:]:
        if contestant in without:
            run.add(name=name, contestant="graph", peer=contestant, unavailable=without[contestant])
            print(f"    {contestant:15}not available: {without[contestant]}")
            continue
        found = run.add(name=name, threads=options.threads, **timing.figures(times, "graph", contestant))
        ratio = found["processors_ratio"]
        aim = "   " + verdict(ratio[1], RATIO) if contestant == "eager" and name != "x + 1" else ""
        print(
            f"    {contestant:14} {human(found['peer_seconds']):>10}   graph {human(found['seconds']):>10}   "
            f"{timing.shown(found['ratio'])}   processors {timing.shown(ratio)}{aim}"
        )
    if name == "x + 1":
        print(f"    graph          {verdict(found['seconds'] * 1e6, SMALL_US)}")
    run.add(name=name, case="first call", nodes=nodes, seconds=sum(phases.values()), **phases)
    print(
        "    first call     "
        + "  ".join(f"{key} {human(value)}" for key, value in phases.items())
        + f"  ({nodes} nodes)"
    )
    if name != "x + 1":
        bytes_ = memory(row)
        share = (bytes_["arena"] + bytes_["outputs"]) / bytes_["eager"]
        run.add(name=name, case="memory", share=share, **bytes_)
        mega = ", ".join(f"{key} {count / 1e6:.2f}" for key, count in bytes_.items())
        print(f"    memory, MB     {mega}; (arena + outputs) / eager {share:.3f}   {verdict(share, MEMORY)}")
    sys.stdout.flush()


def main() -> None:
    options = parse()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(options.threads))
    import threadpoolctl
    import trainings

    run = record.Run("graph", options)
    flow_library, *others = trainings.libraries()
    torch_library = others[0] if others else None
    if torch_library:
        torch_library[0].set_num_threads(options.threads)
    run.say("graph / contestant: median [quartiles], in wall and in processor time")
    with threadpoolctl.threadpool_limits(options.threads, "blas"):
        for name in options.only:
            measure(run, name, flow_library, torch_library, options)
    run.finish()


if __name__ == "__main__":
    main()
