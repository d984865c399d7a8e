"""Benchmark single operations at two sizes against PyTorch, alternating in one run: sorted ratios, outliers marked.

    python benchmarks/ops.py --pin                                 # all operations, on one core
    python benchmarks/ops.py --only conv2d LSTM --sizes large      # those whose names contain one of the words
    python benchmarks/ops.py --output result.json                  # the figures as JSON

The operations are those of the models in `trainings.py`, in `minflow/models` and in the notebooks. Small inputs take
PyTorch 3 to 80 us, large ones 0.1 to 10 ms. A row is the computation without gradients, or forward and backward with a
random cotangent, for gradients of inputs and parameters; for an optimizer it is a whole step whose loss is the dot
product of its parameter and an input. Ours run eagerly and as nn.Graph, each with compiled kernels off and on. A ratio
is one of processor time, to the better of PyTorch's eager modes, plain and (for images) channels_last: the median over
rounds; the file of `--output` has quartiles, too.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import record
import timing
from compiled import OURS, TORCH, Unavailable, our_step, rows_of, set_threads, switch, torch_step
from timing import human
from trainings import Training, flow_library, libraries, torch_library

KINDS = ("forward", "backward")  # backward: both
SIZES = ("small", "large")
MAX_GOOD_RATIO = 1.5
CONTESTANTS = (*OURS, *TORCH[:2])
OPTIMIZER = "optimizer"  # the kind of a row that is a whole step


class Ints(NamedTuple):
    """An input of integers below `high`; a `high` of 2 is a mask of bools."""

    high: int
    shape: tuple[int, ...]


class Row(NamedTuple):
    """An operation. make: (package, its nn) -> a function of the inputs.  small, large: one entry per input, a shape of
    floats or Ints.
    """

    make: Callable[[Any, Any], Callable]
    small: tuple
    large: tuple
    kinds: tuple[str, ...] = KINDS


def layer(name: str, *args, **options):
    return lambda lib, nn: getattr(nn, name)(*args, **options)


def first_output(name: str, *args, **options):
    """A layer of which only the first result is used."""

    def make(lib, nn):
        inner = getattr(nn, name)(*args, **options)
        run = lambda *inputs: inner(*inputs)[0]
        run.parameters = inner.parameters
        return run

    return make


def stateless(function: Callable):
    """An operation without parameters. function: (package, *inputs) -> the result."""
    return lambda lib, nn: lambda *inputs: function(lib, *inputs)


def of_nn(name: str, **options):
    return stateless(lambda lib, *inputs: getattr(lib.nn.functional, name)(*inputs, **options))


def image_row(make, small: tuple = (1, 32, 8, 8), large: tuple = (8, 32, 56, 56), kinds: tuple = KINDS) -> Row:
    return Row(make, (small,), (large,), kinds)


def elementwise_row(make, kinds: tuple = KINDS, count: int = 1) -> Row:
    """An elementwise operation, or one over rows of 1,000."""
    return Row(make, ((32, 32),) * count, ((1000, 1000),) * count, kinds)


def optimizer(name: str, **options) -> Row:
    def make(lib, nn):
        class Vector(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(lib.ones(1))

            def forward(self, x):
                return lib.dot(self.weight, x)

        def training(x):
            model = Vector()
            model.weight = nn.Parameter(lib.ones(*x.shape))
            return Training(
                model, lambda loss, _: loss, getattr(lib.optim, name)(model.parameters(), **options), (x, x)
            )

        return training

    return Row(make, ((1000,),), ((1_000_000,),), (OPTIMIZER,))


FORWARD = ("forward",)
SEQUENCE = ((4, 1, 128),), ((64, 32, 128),)
LOOKUP = Ints(1000, (32,)), Ints(1000, (256, 64))
SCORES = ((32, 100), Ints(100, (32,))), ((4096, 256), Ints(256, (4096,)))
ROWS: dict[str, Row] = {
    "matmul": Row(stateless(lambda lib, a, b: a @ b), ((64, 64),) * 2, ((512, 512),) * 2),
    "matmul of batches": Row(stateless(lambda lib, a, b: a @ b), ((4, 32, 32),) * 2, ((64, 128, 128),) * 2),
    "Linear": Row(layer("Linear", 256, 256), ((8, 256),), ((2048, 256),)),
    "conv2d 3x3": image_row(layer("Conv2d", 32, 32, 3, padding=1)),
    "conv2d 1x1": image_row(layer("Conv2d", 32, 64, 1)),
    "conv2d 5x5": image_row(layer("Conv2d", 32, 32, 5, padding=2), large=(4, 32, 56, 56)),
    "conv2d 5x5 of one channel": image_row(layer("Conv2d", 1, 32, 5, padding=2), (1, 1, 14, 14), (64, 1, 28, 28)),
    "conv2d depthwise": image_row(layer("Conv2d", 32, 32, 3, padding=1, groups=32)),
    "conv2d of groups": image_row(layer("Conv2d", 32, 32, 3, padding=1, groups=4)),
    "conv2d dilated": image_row(layer("Conv2d", 32, 32, 3, padding=2, dilation=2)),
    "conv2d stride 2": image_row(layer("Conv2d", 32, 32, 3, stride=2, padding=1), large=(16, 32, 56, 56)),
    "conv1d": image_row(layer("Conv1d", 32, 32, 3, padding=1), (1, 32, 64), (32, 32, 1024)),
    "conv_transpose2d": image_row(layer("ConvTranspose2d", 32, 32, 4, stride=2, padding=1), large=(8, 32, 28, 28)),
    "conv_transpose2d stride 1": image_row(layer("ConvTranspose2d", 32, 32, 3, padding=1)),
    "max_pool2d": image_row(layer("MaxPool2d", 2)),
    "max_pool2d 3x3": image_row(layer("MaxPool2d", 3, 2, 1)),
    "avg_pool2d": image_row(layer("AvgPool2d", 2)),
    "adaptive_avg_pool2d": image_row(layer("AdaptiveAvgPool2d", 1)),
    "batch_norm": image_row(layer("BatchNorm2d", 32)),
    "BatchNorm1d": Row(layer("BatchNorm1d", 256), ((8, 256),), ((4096, 256),)),
    "layer_norm": Row(layer("LayerNorm", 256), ((8, 256),), ((4096, 256),)),
    "group_norm": image_row(layer("GroupNorm", 8, 32)),
    "instance_norm": image_row(layer("InstanceNorm2d", 32)),
    "relu": elementwise_row(stateless(lambda lib, x: lib.relu(x))),
    "relu6": elementwise_row(of_nn("relu6")),
    "gelu": elementwise_row(of_nn("gelu")),
    "silu": elementwise_row(of_nn("silu")),
    "leaky_relu": elementwise_row(of_nn("leaky_relu")),
    "sigmoid": elementwise_row(stateless(lambda lib, x: lib.sigmoid(x))),
    "tanh": elementwise_row(stateless(lambda lib, x: lib.tanh(x))),
    "exp": elementwise_row(stateless(lambda lib, x: lib.exp(x))),
    "log1p of squares": elementwise_row(stateless(lambda lib, x: lib.log1p(x * x))),
    "sqrt of squares": elementwise_row(stateless(lambda lib, x: lib.sqrt(x * x + 1))),
    "softmax": elementwise_row(of_nn("softmax", dim=-1)),
    "log_softmax": elementwise_row(of_nn("log_softmax", dim=-1)),
    "cross_entropy": Row(of_nn("cross_entropy"), *SCORES),
    "mse_loss": elementwise_row(of_nn("mse_loss"), count=2),
    "binary_cross_entropy_with_logits": elementwise_row(
        stateless(lambda lib, x: lib.nn.functional.binary_cross_entropy_with_logits(x, lib.zeros_like(x)))),
    "dropout": elementwise_row(layer("Dropout", 0.5)),
    "embedding": Row(layer("Embedding", 1000, 128), *[(one,) for one in LOOKUP]),
    "interpolate nearest": image_row(of_nn("interpolate", scale_factor=2, mode="nearest"), large=(8, 32, 28, 28)),
    "interpolate bilinear": image_row(of_nn("interpolate", scale_factor=2, mode="bilinear"), large=(8, 32, 28, 28)),
    "pad": image_row(of_nn("pad", pad=(1, 1, 1, 1))),
    "cat": elementwise_row(stateless(lambda lib, a, b: lib.cat([a, b], 1)), count=2),
    "stack": elementwise_row(stateless(lambda lib, a, b: lib.stack([a, b])), count=2),
    "slice": elementwise_row(stateless(lambda lib, x: x[:, 2:-2].contiguous())),
    "index": Row(stateless(lambda lib, x, i: x[i]),
                 ((100, 32), Ints(100, (32,))), ((10_000, 128), Ints(10_000, (8192,)))),
    "gather": Row(stateless(lambda lib, x, i: lib.gather(x, 1, i)), ((32, 32), Ints(32, (32, 8))),
                  ((1000, 1000), Ints(1000, (1000, 500)))),
    "permute, contiguous": Row(stateless(lambda lib, x: x.permute(0, 2, 1, 3).contiguous()), ((2, 8, 4, 16),),
                               ((16, 128, 8, 64),)),
    "transpose, contiguous": elementwise_row(stateless(lambda lib, x: x.T.contiguous())),
    "sum": elementwise_row(stateless(lambda lib, x: x.sum())),
    "sum of rows": elementwise_row(stateless(lambda lib, x: x.sum(1))),
    "sum of columns": elementwise_row(stateless(lambda lib, x: x.sum(0))),
    "mean": elementwise_row(stateless(lambda lib, x: x.mean())),
    "var of rows": elementwise_row(stateless(lambda lib, x: x.var(1))),
    "max": elementwise_row(stateless(lambda lib, x: x.max())),
    "max of rows": elementwise_row(stateless(lambda lib, x: x.max(1)[0])),
    "argmax of rows": elementwise_row(stateless(lambda lib, x: x.argmax(1)), FORWARD),
    "sort": Row(stateless(lambda lib, x: lib.sort(x)[0]), ((8, 32),), ((100, 1000),)),
    "topk": Row(stateless(lambda lib, x: lib.topk(x, 5)[0]), ((8, 100),), ((400, 1000),)),
    "cumsum": elementwise_row(stateless(lambda lib, x: lib.cumsum(x, 1))),
    "where": Row(stateless(lambda lib, m, a, b: lib.where(m, a, b)), (Ints(2, (32, 32)), (32, 32), (32, 32)),
                 (Ints(2, (1000, 1000)), (1000, 1000), (1000, 1000))),
    "masked_fill": Row(stateless(lambda lib, m, x: x.masked_fill(m, -1e9)), (Ints(2, (32, 32)), (4, 32, 32)),
                       (Ints(2, (128, 128)), (64, 128, 128))),
    "clamp": elementwise_row(stateless(lambda lib, x: x.clamp(-1, 1))),
    "add": elementwise_row(stateless(lambda lib, a, b: a + b), count=2),
    "add of a row": Row(stateless(lambda lib, a, b: a + b), ((32, 32), (32,)), ((1000, 1000), (1000,))),
    "mul": elementwise_row(stateless(lambda lib, a, b: a * b), count=2),
    "mul of a column": Row(stateless(lambda lib, a, b: a * b), ((32, 32), (32, 1)), ((1000, 1000), (1000, 1))),
    "pow": elementwise_row(stateless(lambda lib, x: x ** 2)),
    "tril": elementwise_row(stateless(lambda lib, x: lib.tril(x))),
    "one_hot": Row(stateless(lambda lib, i: lib.nn.functional.one_hot(i, 100)), (Ints(100, (32,)),),
                   (Ints(100, (10_000,)),), FORWARD),
    "einsum": Row(stateless(lambda lib, a, b: lib.einsum("bik,bjk->bij", a, b)),
                  ((4, 32, 32),) * 2, ((64, 128, 128),) * 2),
    "RNN": Row(first_output("RNN", 128, 128), *SEQUENCE),
    "LSTM": Row(first_output("LSTM", 128, 128), *SEQUENCE),
    "GRU": Row(first_output("GRU", 128, 128), *SEQUENCE),
    "scaled_dot_product_attention": Row(of_nn("scaled_dot_product_attention"), ((1, 2, 16, 32),) * 3,
                                        ((8, 4, 128, 32),) * 3),
    "MultiheadAttention": Row(first_output("MultiheadAttention", 128, 4, batch_first=True), ((1, 16, 128),) * 3,
                              ((8, 128, 128),) * 3),
    "SGD": optimizer("SGD", lr=1e-3),
    "SGD with momentum": optimizer("SGD", lr=1e-3, momentum=0.9),
    "Adam": optimizer("Adam", lr=1e-3),
    "AdamW": optimizer("AdamW", lr=1e-3),
}  # fmt: skip


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = record.parser(__doc__, rounds=10)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="operations whose name holds one of these")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--threads", type=int, default=1, help="threads of each contestant (default 1)")
    parser.add_argument("--pin", action="store_true", help="at one thread, stay on one core (Linux)")
    parser.add_argument("--no-torch", action="store_true", help="minflow's own figures only")
    return parser.parse_args(words)


def selected_rows(options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """(operation, kind, size) of each selected measurement."""
    names = [name for name in ROWS if not options.only or any(word in name for word in options.only)]
    return [
        (name, kind, size)
        for name in names
        for kind in ROWS[name].kinds
        for size in options.sizes
        if kind in (*options.kinds, OPTIMIZER)
    ]


# ---- contestants -----------------------------------------------------------------------------------------------------


def make_inputs(inputs: tuple) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    found = []
    for one in inputs:
        if isinstance(one, Ints):
            array = rng.integers(0, one.high, one.shape)
            found.append(array == 1 if one.high == 2 else array)
        else:
            found.append(rng.standard_normal(one).astype("f4"))
    return found


def parameters(function: Callable) -> list:
    return list(function.parameters()) if hasattr(function, "parameters") else []


def step_of(name: str, kind: str, size: str, contestant: str) -> Callable[[], Any]:
    """One computation of a contestant, after a first run. Raises Unavailable."""
    row, ours = ROWS[name], contestant in OURS
    lib, nn = (flow_library if ours else torch_library)()
    switch(contestant)
    inputs = [lib.from_numpy(array) for array in make_inputs(getattr(row, size))]
    try:
        if kind == OPTIMIZER:
            training = row.make(lib, nn)(*inputs)
            step = (
                our_step(training, "train", contestant.startswith("graph"))
                if ours
                else torch_step(training, "train", contestant)
            )
        else:
            step = operation_step(lib, nn, row.make(lib, nn), inputs, kind, contestant)
        step()
    except (RuntimeError, TypeError, AttributeError) as error:
        raise Unavailable(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:140]}") from error
    return step


def operation_step(lib, nn, function: Callable, inputs: list, kind: str, contestant: str) -> Callable[[], Any]:
    if contestant == "PyTorch channels_last":
        if inputs[0].ndim != 4 or (not any(hasattr(function, "to") for _ in inputs) and len(inputs) > 1):
            raise Unavailable("no images")
        inputs = [x.to(memory_format=lib.channels_last) for x in inputs]
        if hasattr(function, "to"):
            function.to(memory_format=lib.channels_last)
    whole = forward_of if kind == "forward" else backward_of
    computed = whole(lib, function)
    if kind == "backward":
        with lib.no_grad():
            inputs = [lib.randn_like(function(*inputs)), *inputs]
    if contestant.startswith("graph"):
        computed = graph_of(nn, function, computed)
        with warnings.catch_warnings():  # a change of the result would go unnoticed
            warnings.simplefilter("ignore")
            computed(*inputs)
    return lambda: computed(*inputs)


def forward_of(lib, function: Callable) -> Callable:
    def forward(*inputs):
        with lib.no_grad():
            return function(*inputs)

    return forward


def backward_of(lib, function: Callable) -> Callable:
    def backward(cotangent, *inputs):
        inputs = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
        needs_grad = [x for x in inputs if x.is_floating_point()] + parameters(function)
        return lib.autograd.grad(function(*inputs), needs_grad, cotangent)

    return backward


def graph_of(nn, function: Callable, computed: Callable):
    class Operation(nn.Graph):
        def __init__(self):
            super().__init__()
            if isinstance(function, nn.Module):
                self.layer = function

        def build(self, *inputs):
            return computed(*inputs)

    return Operation()


# ---- measurements ----------------------------------------------------------------------------------------------------


def measure(run: record.Run, name: str, kind: str, size: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one operation."""
    place = {"name": name, "case": f"{size} {kind}", "threads": options.threads}
    steps, found = {}, {"name": name, "kind": kind, "size": size, "contestants": {}, "without": {}}
    for contestant in OURS if options.no_torch else CONTESTANTS:
        try:
            steps[contestant] = step_of(name, kind, size, contestant)
        except Unavailable as error:
            found["without"][contestant] = str(error)
            run.add(**place, contestant=contestant, unavailable=str(error))
    for row in rows_of(timing.rounds(steps, options.rounds, switch)):
        found["contestants"][row["contestant"]] = run.add(**place, **row)
        found["best"] = row.get("peer")
    switch("graph")
    gc.collect()
    return found


def ratio(row: dict[str, Any], contestant: str) -> float | None:
    """Median of the contestant's time divided by that of PyTorch's best mode."""
    pair = row["contestants"].get(contestant, {}).get("processors_ratio")
    return pair[1] if pair else None


def worst_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort by the smallest ratio of a graph; rows without one come last."""
    return sorted(rows, key=lambda row: -min([r for c in OURS[:2] if (r := ratio(row, c)) is not None], default=0.0))


def cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}{'!' if value > MAX_GOOD_RATIO else ''}"


def line(row: dict[str, Any]) -> str:
    both = [row["contestants"].get(one) for one in (OURS[0], row.get("best"))]
    shown = [f"{human(one['processors']):>10}" if one else " " * 10 for one in both]
    kind = {"forward": "fwd", "backward": "fwd+bwd", OPTIMIZER: "step"}[row["kind"]]
    return (
        f"  {row['name']:33} {kind:8} {row['size']:6}"
        + "".join(f"{cell(ratio(row, one)):>8}" for one in OURS)
        + ("  ".join(["", *shown]))
        + ("  channels_last" if row.get("best") == TORCH[1] else "")
    )


HEADER = (
    f"  {'':49}"
    + "".join(f"{title:>8}" for title in ("graph,m", "graph", "eager,m", "eager"))
    + (f"  {'graph,c':>10}  {'PyTorch':>10}")
)


def main() -> None:
    options = parse()
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    run = record.Run("ops", options)
    options.no_torch = len(libraries(not options.no_torch)) == 1
    set_threads(options.threads, options.pin, not options.no_torch)
    run.say(f"minflow / the best of PyTorch's modes, ! above {MAX_GOOD_RATIO}\n{HEADER}")
    rows, start = [], time.perf_counter()
    for name, kind, size in selected_rows(options):
        rows.append(measure(run, name, kind, size, options))
        print(
            line(rows[-1]),
            *[f"\n      {one}: {reason}" for one, reason in rows[-1]["without"].items() if one != TORCH[1]],
            flush=True,
        )
    order = worst_first(rows)
    print(f"\nsorted ({time.perf_counter() - start:.0f} s)\n{HEADER}", *map(line, order), sep="\n")
    cliffs = sum(any((ratio(row, one) or 0) > MAX_GOOD_RATIO for one in OURS) for row in rows)
    print(f"{cliffs} of {len(rows)} rows have a ratio above {MAX_GOOD_RATIO}")
    run.finish()


if __name__ == "__main__":
    main()
