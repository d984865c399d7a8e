"""Benchmark eager minflow against eager PyTorch, alternating in one run: median times and their ratio.

    python benchmarks/eager.py              # all rows, with one thread and with all
    python benchmarks/eager.py mlp add      # some rows
    python benchmarks/eager.py --seconds 4  # longer, for a busy machine

Without PyTorch, only minflow's times are printed. Rows: train steps of an MLP 784-512-10 and of LeNet at batch
100, of MobileNetV2 on 3x32x32 images at batch 64; add, mul and ((a+b)*a).sum() forward and backward on 10 floats;
views; a small matmul; the import in a fresh process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import record
import threadpoolctl
import timing
import trainings
from timing import human

CONTESTANTS = ("minflow", "PyTorch")
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


def import_time(module: str) -> float:
    """Processor time of `import module` in a fresh process: the median of five."""
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # byte code is cached after the first of them
    run = lambda: float(subprocess.check_output([sys.executable, "-c", code], env=settings))
    return statistics.median(run() for _ in range(5))


def compare(run: record.Run, names: list[str], libraries: list, threads: int, seconds: float) -> None:
    print(f"\n{threads} thread{'s' * (threads > 1)}")
    for name in names:
        steps = {key: ROWS[name](library) for key, library in zip(CONTESTANTS, libraries)}
        times = timing.rounds(steps, 100_000, least=BURST, seconds=seconds)
        peer = CONTESTANTS[1] if len(times) > 1 else None
        row = run.add(name=name, threads=threads, aim=AIMS[name], **timing.figures(times, CONTESTANTS[0], peer))
        line = f"  {name:14}{human(row['seconds']):>10}"
        if peer:
            ratio = row["processors_ratio"]
            line += (
                f"{human(row['peer_seconds']):>10}   {timing.shown(row['ratio'])}   processors {timing.shown(ratio)}"
            )
            line += f"   aim {AIMS[name]}" + "  missed" * (ratio[1] > AIMS[name])
        print(line, flush=True)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(ROWS)}, import")
    parser.add_argument("--seconds", type=float, default=2.0, help="per row and thread count")
    parser.add_argument("--threads", type=int, nargs="*", default=sorted({1, record.cores()}))
    options = parser.parse_args()
    names = [name for name in ROWS if not options.rows or name in options.rows]
    run = record.Run("eager", options)
    libraries = trainings.libraries()
    run.say("median of one call: minflow, PyTorch, and their paired ratio [quartiles] in wall and in processor time")
    for threads in options.threads:
        if len(libraries) > 1:
            libraries[1][0].set_num_threads(threads)
        with threadpoolctl.threadpool_limits(threads, "blas"):
            compare(run, names, libraries, threads, options.seconds)
    if not options.rows or "import" in options.rows:
        for module in ["minflow", "numpy"] + ["torch"] * (len(libraries) > 1):
            row = run.add(name="import", case=module, clock="processor", seconds=import_time(module))
            print(f"import {module}: {human(row['seconds'])}")
    run.finish()


if __name__ == "__main__":
    main()
