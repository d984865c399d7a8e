"""Benchmark nn.Graph against eager minflow, eager PyTorch and torch.compile, alternating in one run; then memory and
compile time.

    python benchmarks/graph.py                    # all rows, 20 rounds, one thread
    python benchmarks/graph.py --only mlp gpt     # some rows
    python benchmarks/graph.py --no-compile       # without torch.compile, which takes minutes for MobileNetV2
    python benchmarks/graph.py --json result.json # the same figures as JSON

A round times every contestant once, one after the other; a ratio is the median, with quartiles, over rounds that time
both. Rows: train steps of the models in `trainings.py`; a chain of ten elementwise ops over
ten million floats; one call of a graph `x + 1` on 10 floats.

Memory is measured in a separate run: the peak of live allocations of an eager step (tracemalloc, gradients included)
against the arena and new outputs of the plan.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

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
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=ROWS, default=ROWS, metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of alternation (default 20)")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS and of PyTorch (default 1)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
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
    found["first run"] = time.perf_counter() - middle
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
    """Bytes: eager's peak; arena and new outputs of the plan; these without kept gradients; peak of a graph call."""
    row.steps["eager"]()
    row.clear()
    found = {"eager": peak(row.steps["eager"])}
    found["graph call"] = peak(row.steps["graph"])
    found["arena"], found["outputs"], found["least"] = held(row)
    row.graph.config.keep_gradients(False)
    found["arena without gradients"] = held(row)[0]
    row.graph.config.keep_gradients(True)
    return found


def held(row: Row) -> tuple[int, int, int]:
    """Bytes of the plan's arena and of the outputs allocated at each call: a lower bound for any buffer assignment."""
    from minflow.compiler.arena import least

    plans = [part.plan for part in row.graph.compiled_for(row.inputs, {}).parts]
    outputs = sum(v.spec.nbytes for plan in plans for v in plan.fresh)
    return sum(plan.arena_bytes for plan in plans), outputs, sum(least(plan.needs) for plan in plans)


def rounds(steps: dict[str, Callable], count: int) -> dict[str, list[float]]:
    """Seconds of one call of each step in each of `count` rounds; short steps are repeated until they can be timed."""
    calls = {}
    for name, step in steps.items():
        step(), step()
        start = time.perf_counter()
        step()
        calls[name] = max(1, int(0.01 / max(time.perf_counter() - start, 1e-9)))
    times: dict[str, list[float]] = {name: [] for name in steps}
    gc.collect()
    for _ in range(count):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                step()
            times[name].append((time.perf_counter() - start) / calls[name])
    return times


def quartiles(mine: list[float], other: list[float]) -> list[float]:
    """[lower quartile, median, upper quartile] of the paired ratio."""
    paired = sorted(a / b for a, b in zip(mine, other))
    return [paired[min(len(paired) - 1, len(paired) * q // 4)] for q in (1, 2, 3)]


def human(seconds: float) -> str:
    return (
        f"{seconds * 1e6:.2f} us"
        if seconds < 1e-3
        else f"{seconds * 1e3:.2f} ms"
        if seconds < 10
        else f"{seconds:.1f} s"
    )


def verdict(value: float, aim: float) -> str:
    return f"aim {aim:g}" + ("" if value <= aim else "  MISSED")


def measure(name: str, flow_library, torch_library, options) -> dict[str, Any]:
    """Measure one row, and print each figure when it is known."""
    row, without = make_row(name, flow_library, torch_library, not options.no_compile)
    found: dict[str, Any] = {"compile": compile_times(row.graph, row.inputs), "without": without}
    found["nodes"] = sum(len(part.graph.nodes) for part in row.graph.compiled_for(row.inputs, {}).parts)
    times = rounds(row.steps, options.rounds)
    found["seconds"] = {c: statistics.median(t) for c, t in times.items()}
    found["ratio"] = {c: quartiles(times["graph"], t) for c, t in times.items() if c != "graph"}
    found["rounds"] = times
    print(f"  {name}")
    print(
        f"    graph          {human(found['seconds']['graph']):>10}"
        + ("   " + verdict(found["seconds"]["graph"] * 1e6, SMALL_US) if name == "x + 1" else "")
    )
    for contestant in CONTESTANTS[1:]:
        if contestant in without:
            print(f"    {contestant:15}not available: {without[contestant]}")
            continue
        low, middle, high = found["ratio"][contestant]
        aim = "   " + verdict(middle, RATIO) if contestant == "eager" and name != "x + 1" else ""
        line = (
            f"    {contestant:14} {human(found['seconds'][contestant]):>10}   graph / it {middle:5.3f}  "
            f"[{low:.3f}, {high:.3f}]"
        )
        print(line + aim)
    phases = "  ".join(f"{phase} {human(seconds)}" for phase, seconds in found["compile"].items())
    print(f"    compile        {phases}  ({found['nodes']} nodes)")
    if name != "x + 1":
        found["bytes"] = bytes_ = memory(row)
        share = (bytes_["arena"] + bytes_["outputs"]) / bytes_["eager"]
        found["memory ratio"] = share
        mega = {what: f"{count / 1e6:.2f}" for what, count in bytes_.items()}
        print(
            f"    memory, MB     eager's peak {mega['eager']}   arena {mega['arena']} + outputs {mega['outputs']}   "
            f"ratio {share:.3f}   {verdict(share, MEMORY)}"
        )
        print(
            f"                   least possible arena {mega['least']}, without kept gradients "
            f"{mega['arena without gradients']}; "
            f"a call allocates {mega['graph call']}"
        )
    sys.stdout.flush()
    return found


def main() -> None:
    options = parse()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(options.threads))
    import numpy as np
    import threadpoolctl
    import trainings

    flow_library, torch_library = trainings.flow_library(), None
    try:
        torch_library = trainings.torch_library()
        torch_library[0].set_num_threads(options.threads)
    except ImportError:
        print("PyTorch is not installed: minflow's own figures only")
    version = "" if torch_library is None else f", PyTorch {torch_library[0].__version__}"
    print(
        f"numpy {np.__version__}, {os.cpu_count()} cores{version}; {options.threads} "
        f"thread{'s' * (options.threads > 1)}, "
        f"{options.rounds} rounds in alternation; ratios: median [quartiles]"
    )
    with threadpoolctl.threadpool_limits(options.threads, "blas"):
        found = {name: measure(name, flow_library, torch_library, options) for name in options.only}
    if options.json:
        figures = {
            "threads": options.threads,
            "rounds": options.rounds,
            "aims": {"ratio": RATIO, "memory": MEMORY, "us": SMALL_US},
        }
        with open(options.json, "w") as file:
            json.dump({**figures, "rows": found}, file, indent=1)


if __name__ == "__main__":
    main()
