"""Benchmark the first call of a graph: processor time by the number of layers, which must grow in proportion to it.

    python benchmarks/first_call.py                      # all rows at 500, 1,000 and 2,000 layers
    python benchmarks/first_call.py --only sgd --layers 1000 2000 4000
    python benchmarks/first_call.py --output result.json # the figures as JSON

Rows: training of n linear layers of 8 units with SGD, with Adam, and with two accumulated gradients; of n residual
blocks with layer norm, also as checkpoints; and a prediction by n linear layers. Each time is the least of several
graphs, a new one for each, since another process can only add to it.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import record
from timing import human

import minflow as flow
from minflow import nn

WIDTH, BATCH = 8, 4


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        return x + self.norm(flow.relu(self.linear(x)))


class Train(nn.Graph):
    def __init__(self, model, optimizer=flow.optim.SGD, accumulation: int = 1):
        super().__init__()
        self.model, self.loss = model, nn.MSELoss()
        self.config.set_gradient_accumulation_steps(accumulation)
        self.add_optimizer(optimizer(model.parameters(), lr=1e-3))

    def build(self, x):
        loss = self.loss(self.model(x), x)
        loss.backward()
        return loss


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


def linear(layers: int) -> nn.Module:
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(layers)])


def residual(layers: int) -> nn.Module:
    return nn.Sequential(*[Residual() for _ in range(layers)])


def checkpointed(layers: int) -> nn.Module:
    model = residual(layers)
    for block in model:
        block.to(nn.graph.GraphModule).activation_checkpointing = True
    return model


ROWS: dict[str, Callable[[int], nn.Graph]] = {
    "sgd": lambda n: Train(linear(n)),
    "adam": lambda n: Train(linear(n), flow.optim.Adam),
    "accumulation": lambda n: Train(linear(n), accumulation=2),
    "residual": lambda n: Train(residual(n)),
    "checkpoints": lambda n: Train(checkpointed(n)),
    "predict": lambda n: Predict(linear(n)),
}


def first_call(make: Callable[[int], nn.Graph], layers: int) -> tuple[float, float]:
    """(seconds, seconds of the processor) of the first call of a new graph."""
    graph, x = make(layers), flow.randn(BATCH, WIDTH)
    gc.collect()
    start, used = time.perf_counter(), time.process_time()
    graph(x)
    return time.perf_counter() - start, time.process_time() - used


def main() -> None:
    parser = record.parser(__doc__, rounds=3)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=[*ROWS], metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--layers", nargs="+", type=int, default=[500, 1000, 2000])
    options: argparse.Namespace = parser.parse_args()
    run = record.Run("first_call", options)
    for name in options.only:
        first_call(ROWS[name], 3)
        before = None
        for layers in options.layers:
            times = [first_call(ROWS[name], layers) for _ in range(options.rounds)]
            seconds, processors = map(min, zip(*times))
            run.add(name=name, case=f"{layers} layers", seconds=seconds, processors=processors, samples=len(times))
            growth = "" if before is None else f"   {processors / before:.2f} times the row above"
            print(f"  {name:13}{layers:6} layers   processors {human(processors):>9}{growth}", flush=True)
            before = processors
    run.finish()


if __name__ == "__main__":
    main()
