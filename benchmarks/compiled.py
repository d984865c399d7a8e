"""Benchmark compiled kernels on and off against PyTorch's modes, train steps and predictions, alternating in one run.

    python benchmarks/compiled.py                                      # the four models, one and two threads
    python benchmarks/compiled.py --only lenet --kinds train --pin     # one row; at one thread, on one core
    python benchmarks/compiled.py --compile --onnx                     # and torch.compile, onnxruntime
    python benchmarks/compiled.py --busy 1                             # while another process keeps a core busy
    python benchmarks/compiled.py --output result.json                 # the figures as JSON

A round runs every contestant once untimed, so that caches filled and threads left spinning by the previous contestant
do not count, and once timed. A ratio is the median, with quartiles, of a contestant's time divided by that of PyTorch's
best mode (the one with the lowest median) in the same round. Processor time is the sum over all threads; if other
programs use the cores, its ratio at one thread is the more reliable one.

The floor is a lower bound from matrix products and convolutions alone: each takes the longer of its multiplications at
the rate of a large product on this processor and its bytes at the rate of a copy. Winograd's algorithm multiplies less,
so it can be faster.

Peak memory is measured in a separate process for each contestant: the memory of three steps beyond that of the imports
and of a step of a small model (Linux only).
"""

from __future__ import annotations

import argparse
import gc
import io
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import record
import timing
from timing import busy, human, timed

KINDS = ("train", "predict")
OURS = ("graph, compiled", "graph", "eager, compiled", "eager")
TORCH = ("PyTorch", "PyTorch channels_last", "torch.compile")
OTHER_RUNTIMES = ("onnxruntime",)
PRODUCTS = ("matmul", "conv2d", "conv2d_input_grad", "conv2d_weight_grad")
AIMS = {  # of graphs with compiled kernels, relative to PyTorch's best mode
    ("mlp", "train"): 0.85,
    ("mlp", "predict"): 0.95,
    ("lenet", "train"): 0.5,
    ("lenet", "predict"): 0.7,
    ("mobilenet", "train"): 0.5,
    ("mobilenet", "predict"): 0.65,
    ("gpt", "train"): 0.8,
    ("gpt", "predict"): 0.95,
}
STEPS = 3  # steps over which the peak memory is measured


class Unavailable(Exception):
    """A contestant cannot run here; the message says why."""


class Floor(NamedTuple):
    """Lower bound of one step: flops and bytes of its products, and seconds of each and of both."""

    flops: float
    bytes: float
    computing: float
    moving: float
    seconds: float


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    from graph import TRAININGS

    parser = record.parser(__doc__, rounds=20)
    parser.add_argument(
        "--only", nargs="+", choices=TRAININGS, default=TRAININGS, metavar="MODEL", help=f"of {', '.join(TRAININGS)}"
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="train steps, predictions")
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1, 2], help="threads of each contestant (default 1 2)"
    )
    parser.add_argument("--pin", action="store_true", help="at one thread, stay on one core (Linux)")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="cores that another process keeps busy")
    parser.add_argument("--no-torch", action="store_true", help="minflow's own figures only")
    parser.add_argument("--compile", action="store_true", help="torch.compile too: minutes for MobileNetV2")
    parser.add_argument("--onnx", action="store_true", help="onnxruntime too, for predictions")
    parser.add_argument("--no-memory", action="store_true", help="leave out peak memory: a process each")
    parser.add_argument("--peak-of", nargs=4, help=argparse.SUPPRESS)  # model, kind, contestant, threads
    return parser.parse_args(words)


# ---- contestants -----------------------------------------------------------------------------------------------------


def contestant_names(options: argparse.Namespace, kind: str) -> list[str]:
    torch = [] if options.no_torch else TORCH[: 2 + options.compile]
    return [*OURS, *torch, *(OTHER_RUNTIMES if options.onnx and kind == "predict" else ())]


def switch(contestant: str) -> None:
    """Switch compiled kernels as this contestant needs them; a graph keeps those that it was built with."""
    if contestant in OURS:
        from minflow.platforms import compiled

        compiled.use(contestant.endswith("compiled"))


def step_of(model: str, kind: str, contestant: str, threads: int) -> Callable[[], Any]:
    """One step of a contestant, after a first run. Raises Unavailable."""
    import trainings

    try:
        if contestant in OURS:
            switch(contestant)
            step = our_step(trainings.make(trainings.flow_library(), model), kind, contestant.startswith("graph"))
        elif contestant in OTHER_RUNTIMES:
            step = onnx_step(trainings.make(trainings.flow_library(), model), threads)
        else:
            step = torch_step(trainings.make(trainings.torch_library(), model), kind, contestant)
        step()
    except (ImportError, RuntimeError, OSError) as error:
        raise Unavailable(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:140]}") from error
    return step


def our_step(training, kind: str, as_graph: bool) -> Callable[[], Any]:
    import graph as graphs

    import minflow as flow
    from minflow import nn

    x, y = training.batch
    if kind == "train":
        if not as_graph:
            return graphs.eager_step(training)
        program = graphs.graph_of(nn, training)
        step = lambda: program(x, y)
        step.graph = program, (x, y)
        return step

    class Prediction(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = training.model

        def build(self, x):
            return self.model(x)

    training.model.eval()
    predict = Prediction() if as_graph else training.model

    def step():
        with flow.no_grad():
            return predict(x)

    if as_graph:
        step.graph = predict, (x,)
    return step


def torch_step(training, kind: str, contestant: str) -> Callable[[], Any]:
    import graph as graphs
    import torch

    x, y = training.batch
    if contestant == "PyTorch channels_last":
        if x.ndim != 4:
            raise Unavailable("no images")
        x = x.to(memory_format=torch.channels_last)
        training.model.to(memory_format=torch.channels_last)
    training.model.train(kind == "train")
    model = torch.compile(training.model) if contestant == "torch.compile" else training.model
    if kind == "train":
        return graphs.eager_step(training._replace(model=model, batch=(x, y)))

    def step():
        with torch.inference_mode():
            return model(x)

    return step


def onnx_step(training, threads: int) -> Callable[[], Any]:
    import onnxruntime

    import minflow as flow

    x = training.batch[0]
    file = io.BytesIO()
    flow.onnx.export(training.model.eval(), (x,), file)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    inputs = {session.get_inputs()[0].name: x.numpy()}
    return lambda: session.run(None, inputs)


# ---- measurements ----------------------------------------------------------------------------------------------------


def set_threads(threads: int, pin: bool, with_torch: bool) -> None:
    import minflow as flow

    flow.set_num_threads(threads)
    if with_torch:
        import torch

        torch.set_num_threads(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(CORES)[:1] if pin and threads == 1 else CORES)


CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def peak_rates(threads: int) -> tuple[float, float]:
    """Peak rates per second: multiplications and additions of a large product, bytes read or written by a copy.

    They are relative to processor time, which other programs do not change.
    """
    import numpy as np

    seconds = lambda function: timed(function, time.process_time) / threads

    a = np.ones((1024, 1024), "f4")
    product = a @ a
    flops = max(2 * 1024**3 / seconds(lambda: np.matmul(a, a, out=product)) for _ in range(8))
    source = np.ones((threads, 1 << 22), "f4")
    target = np.empty_like(source)
    with ThreadPoolExecutor(threads) as pool:
        copy = lambda: list(pool.map(np.copyto, target, source))
        copy()
        moved = max(2 * source.nbytes / seconds(copy) for _ in range(8))
    return flops, moved


def products_of_step(step: Callable) -> list[tuple[float, float]]:
    """(multiplications and additions, bytes) of each product of a graph's step."""
    from minflow.compiler.passes import PASSES

    program, inputs = step.graph
    found = []
    for part in program.compiled_for(inputs, {}).parts:
        for node in part.stages[len(PASSES) - 1].graph.nodes:  # before the passes that fuse products
            if node.op.name in PRODUCTS:
                specs = [value.spec for value in node.inputs] + list(node.out_specs)
                found.append(
                    (
                        2.0 * multiplications(node.op.name, [s.shape for s in specs], node.attrs),
                        float(sum(math.prod(s.shape) * s.dtype.itemsize for s in specs)),
                    )
                )
    return found


def multiplications(op: str, shapes: list[tuple], attrs: dict[str, Any]) -> int:
    """Multiplications of a product whose operands and result have these shapes."""
    if op == "matmul":
        return math.prod(shapes[2]) * shapes[0][-2 if attrs["ta"] else -1]
    results = shapes[2] if op == "conv2d" else shapes[0]  # or their gradients
    filters = shapes[2] if op == "conv2d_weight_grad" else shapes[1]
    return math.prod(results) * math.prod(filters[1:])


def floor(parts: list[tuple[float, float]], flops: float, moved: float) -> Floor:
    total, size = sum(f for f, _ in parts), sum(b for _, b in parts)
    return Floor(total, size, total / flops, size / moved, sum(max(f / flops, b / moved) for f, b in parts))


def peak(model: str, kind: str, contestant: str, threads: int) -> int:
    """Peak memory of this process during a few steps, in bytes, beyond that of the imports. Linux only."""
    import trainings
    from graph import eager_step

    set_threads(threads, False, contestant in TORCH)
    switch(contestant)
    lib, nn = (trainings.torch_library if contestant in TORCH else trainings.flow_library)()
    small = nn.Linear(4, 4)  # its step triggers everything that a library loads on its first step
    eager_step(
        trainings.Training(
            small,
            nn.CrossEntropyLoss(),
            lib.optim.SGD(small.parameters(), lr=0.1),
            (lib.ones(2, 4), lib.zeros(2, dtype=lib.int64)),
        )
    )()
    gc.collect()
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # reset the peak
    step = step_of(model, kind, contestant, threads)
    for _ in range(STEPS - 1):
        step()
    return status("VmHWM") - before


def status(what: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what))


def peak_in_subprocess(*words: str) -> int | None:
    if not os.path.exists("/proc/self/clear_refs"):
        return None
    done = subprocess.run([sys.executable, __file__, "--peak-of", *words], capture_output=True, text=True)
    last = done.stdout.split()[-1:]
    return int(last[0]) if done.returncode == 0 and last and last[0].isdigit() else None


def rows_of(times: timing.Times) -> list[dict[str, Any]]:
    """The figures of each contestant, relative to the best of PyTorch's modes."""
    best = timing.fastest(times, TORCH)
    return [timing.figures(times, name, best) for name in times]


def measure(
    run: record.Run, model: str, kind: str, threads: int, options: argparse.Namespace, rate: tuple[float, float]
) -> None:
    """Measure a model, and print the figures of each contestant."""
    steps = {}
    for name in contestant_names(options, kind):
        try:
            steps[name] = step_of(model, kind, name, threads)
        except Unavailable as error:
            run.add(name=model, case=kind, contestant=name, threads=threads, unavailable=str(error))
            print(f"    {name:22}not available: {error}")
    parts = next(products_of_step(step) for step in steps.values() if hasattr(step, "graph"))
    least = floor(parts, *rate)
    print(
        f"  {model}, {kind}, {threads} thread{'s' * (threads > 1)}: floor {human(least.seconds)} "
        f"({least.flops / 1e9:.2f} GFLOP {human(least.computing)}, {least.bytes / 1e6:.1f} MB {human(least.moving)})"
    )
    for row in rows_of(timing.rounds(steps, options.rounds, switch)):
        used = None if options.no_memory else peak_in_subprocess(model, kind, row["contestant"], str(threads))
        aim = AIMS[model, kind] if row["contestant"] == OURS[0] else None
        facts = {"floor": least.seconds, "flops": least.flops, "peak": used, "aim": aim}
        run.add(name=model, case=kind, threads=threads, **facts, **row)
        print(
            f"    {row['contestant']:22}{human(row['seconds']):>10}  {row['seconds'] / least.seconds:5.2f} of the floor"
            f"   {timing.shown(row.get('ratio'))}   processors {human(row['processors']):>9}  "
            f"{timing.shown(row.get('processors_ratio'))}" + ("" if used is None else f"   {used / 1e6:7.1f} MB"),
            flush=True,
        )
    switch("graph")


def main() -> None:
    options = parse_options()
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(max(options.threads))
    if options.peak_of:
        model, kind, contestant, threads = options.peak_of
        print(peak(model, kind, contestant, int(threads)))
        return
    import trainings

    run = record.Run("compiled", options)
    options.no_torch = len(trainings.libraries(not options.no_torch)) == 1
    run.say("ratios to the best of PyTorch's modes: median [quartiles]")
    with busy(options.busy):
        for threads in options.threads:
            set_threads(threads, options.pin, not options.no_torch)
            rate = peak_rates(threads)
            run.add(name="peak", threads=threads, flops=rate[0], bytes=rate[1])
            print(
                f"  {threads} thread{'s' * (threads > 1)}: {rate[0] / 1e9:.0f} GFLOP/s in a large product, "
                f"{rate[1] / 1e9:.1f} GB/s in a copy"
            )
            for model in options.only:
                for kind in options.kinds:
                    measure(run, model, kind, threads, options, rate)
    run.finish()


if __name__ == "__main__":
    main()
