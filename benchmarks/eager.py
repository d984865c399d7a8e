"""Benchmark eager minflow against eager PyTorch, alternating in one run: median times and their ratio.

    python benchmarks/eager.py              # all rows, with one thread and with all
    python benchmarks/eager.py mlp add      # some rows
    python benchmarks/eager.py --seconds 4  # longer, for a busy machine

Without PyTorch, only minflow's times are printed. Rows: train steps of an MLP 784-512-10 and of LeNet at batch
100, of MobileNetV2 on 3x32x32 images at batch 64; add, mul and ((a+b)*a).sum() forward and backward on 10 floats;
views; a small matmul; the import in a fresh process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import threadpoolctl
import trainings

BURST = 3e-4  # seconds of small calls between two clock readings: most bursts are not interrupted by another program
AIMS = {
    "add": 1.0,
    "add, no grad": 1.0,
    "mul": 1.0,
    "chain": 1.3,
    "slice": 2,
    "reshape": 2,
    "transpose": 2,
    "matmul 8x8": 1.3,
    "mlp": 1.3,
    "lenet": 1.0,
    "mobilenet": 1.0,
}


def train_step(library, name: str) -> Callable[[], None]:
    training = trainings.make(library, name)
    model, loss_fn, optimizer = training.model, training.loss_fn, training.optimizer
    images, labels = training.batch

    def step():
        loss = loss_fn(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def small(what: str):
    def make(library):
        lib = library[0]
        a, b = lib.ones(10, requires_grad=True), lib.ones(10, requires_grad=True)
        c, m = lib.ones(10), lib.ones(8, 8)

        def chain():
            a.grad = b.grad = None
            ((a + b) * a).sum().backward()

        return {
            "add": lambda: a + b,
            "add, no grad": lambda: c + c,
            "mul": lambda: a * b,
            "chain": chain,
            "slice": lambda: a[2:5],
            "reshape": lambda: a.reshape(2, 5),
            "transpose": lambda: m.T,
            "matmul 8x8": lambda: m @ m,
        }[what]

    return make


ROWS: dict[str, Callable] = {name: partial(train_step, name=name) for name in ("mlp", "lenet", "mobilenet")}
ROWS |= {name: small(name) for name in AIMS if name not in ROWS}


def rounds(steps: list[Callable], seconds: float) -> list[list[float]]:
    """Times of one call of each step, measured alternately until the time is up."""
    counts = []
    for step in steps:
        step(), step()
        start = time.perf_counter()
        step()
        counts.append(max(1, int(BURST / max(time.perf_counter() - start, 1e-9))))
    times: list[list[float]] = [[] for _ in steps]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for step, count, row in zip(steps, counts, times):
            start = time.perf_counter()
            for _ in range(count):
                step()
            row.append((time.perf_counter() - start) / count)
    return times


def human(seconds: float) -> str:
    return f"{seconds * 1e6:9.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:9.2f} ms"


def import_time(module: str) -> float:
    """Seconds of `import module` in a fresh process: the median of five."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return statistics.median(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))


def compare(names: list[str], libraries: list, threads: int, seconds: float) -> None:
    print(
        f"\n{threads} thread{'s' * (threads > 1)}: median of one call, and minflow / PyTorch (quartiles of the paired "
        f"ratio)"
    )
    for name in names:
        steps = [ROWS[name](library) for library in libraries]
        times = rounds(steps, seconds)
        line = f"  {name:14}{human(statistics.median(times[0]))}"
        if len(times) > 1:
            paired = sorted(mine / other for mine, other in zip(*times))
            low, middle, high = (paired[len(paired) * q // 4] for q in (1, 2, 3))
            aim = AIMS[name]
            line += f" {human(statistics.median(times[1]))}   {middle:5.2f}  [{low:.2f}, {high:.2f}]   aim {aim}"
            line += "" if middle <= aim else "  missed"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(ROWS)}, import")
    parser.add_argument("--seconds", type=float, default=2.0, help="per row and thread count")
    parser.add_argument("--threads", type=int, nargs="*", default=sorted({1, os.cpu_count() or 1}))
    options = parser.parse_args()
    names = [name for name in ROWS if not options.rows or name in options.rows]
    libraries = [trainings.flow_library()]
    try:
        libraries.append(trainings.torch_library())
    except ImportError:
        print("PyTorch is not installed: minflow's own figures only")
    print(
        f"numpy {np.__version__}, {os.cpu_count()} cores"
        + (f", PyTorch {libraries[1][0].__version__}" if len(libraries) > 1 else "")
    )
    for threads in options.threads:
        if len(libraries) > 1:
            libraries[1][0].set_num_threads(threads)
        with threadpoolctl.threadpool_limits(threads, "blas"):
            compare(names, libraries, threads, options.seconds)
    if not options.rows or "import" in options.rows:
        modules = ["minflow", "numpy"] + ["torch"] * (len(libraries) > 1)
        print("\nimport, s: " + "  ".join(f"{module} {import_time(module):.2f}" for module in modules))


if __name__ == "__main__":
    main()
