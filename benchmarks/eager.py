"""Eager minflow against eager PyTorch, in alternation in one run: median times and their ratio.

    python benchmarks/eager.py              # all rows, with one thread and with all
    python benchmarks/eager.py mlp add      # some rows
    python benchmarks/eager.py --seconds 4  # longer, for a noisy machine

Without PyTorch only minflow's own figures are printed. Rows: train steps of an MLP 784-512-10 and of LeNet at batch 100, of
MobileNetV2 on 3x32x32 images at batch 64; add, mul and ((a+b)*a).sum() forward and backward on 10 floats; views; a small
matmul; the import in a fresh process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import threadpoolctl

AIMS = {"add": 1.3, "add, no grad": 1.3, "mul": 1.3, "chain": 1.3, "slice": 4, "reshape": 4, "transpose": 4, "matmul 8x8": 4,
        "mlp": 1.3, "lenet": 2.5, "mobilenet": 3}  # fmt: skip


def flow_library():
    import minflow as flow
    from minflow import nn

    return flow, nn, lambda num_classes: mobilenet_v2(nn, num_classes)


def torch_library():
    import torch
    from torch import nn

    return torch, nn, lambda num_classes: mobilenet_v2(nn, num_classes)


def mobilenet_v2(nn, num_classes: int):
    """MobileNetV2 (Sandler et al. 2018, table 2) in the layers that both libraries have."""

    def conv_bn(a, b, kernel, stride=1, groups=1):
        return [nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(b), nn.ReLU6(inplace=True)]

    class Block(nn.Module):
        def __init__(self, a, b, stride, expand):
            super().__init__()
            mid = a * expand
            layers = conv_bn(a, mid, 1) if expand != 1 else []
            layers += [*conv_bn(mid, mid, 3, stride, mid), nn.Conv2d(mid, b, 1, bias=False), nn.BatchNorm2d(b)]
            self.conv, self.add = nn.Sequential(*layers), stride == 1 and a == b

        def forward(self, x):
            return x + self.conv(x) if self.add else self.conv(x)

    layers, a = conv_bn(3, 32, 3, 2), 32
    for t, c, n, s in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(n):
            layers.append(Block(a, c, s if i == 0 else 1, t))
            a = c
    layers += [*conv_bn(320, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, num_classes)]
    return nn.Sequential(*layers)


def train_step(library, model, shape) -> Callable[[], None]:
    lib, nn = library[:2]
    rng = np.random.default_rng(0)
    images = lib.from_numpy(rng.standard_normal(shape).astype("f4"))
    labels = lib.from_numpy(rng.integers(0, 10, shape[0]))
    loss_fn, optimizer = nn.CrossEntropyLoss(), lib.optim.SGD(model.parameters(), lr=0.01)
    model.train()

    def step():
        loss = loss_fn(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def mlp(library):
    nn = library[1]
    return train_step(library, nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), (100, 784))


def lenet(library):
    nn = library[1]
    layers = [nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
              nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10)]  # fmt: skip
    return train_step(library, nn.Sequential(*layers), (100, 1, 28, 28))


def mobilenet(library):
    return train_step(library, library[2](num_classes=10), (64, 3, 32, 32))


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


ROWS: dict[str, Callable] = {"mlp": mlp, "lenet": lenet, "mobilenet": mobilenet}
ROWS |= {name: small(name) for name in AIMS if name not in ROWS}


def rounds(steps: list[Callable], seconds: float) -> list[list[float]]:
    """Times of one call of each step, measured in alternation until the time is up."""
    counts = []
    for step in steps:
        step(), step()
        start = time.perf_counter()
        step()
        counts.append(max(1, int(0.01 / max(time.perf_counter() - start, 1e-9))))
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
    print(f"\n{threads} thread{'s' * (threads > 1)}: median of one call, and minflow / PyTorch (quartiles of the paired ratio)")
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
    libraries = [flow_library()]
    try:
        libraries.append(torch_library())
    except ImportError:
        print("PyTorch is not installed: minflow's own figures only")
    print(f"numpy {np.__version__}, {os.cpu_count()} cores" + (f", PyTorch {libraries[1][0].__version__}" if len(libraries) > 1 else ""))
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
