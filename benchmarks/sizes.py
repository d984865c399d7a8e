"""Benchmark graphs that are called with many sizes: the time of a plan for another size, against a first call.

    python benchmarks/sizes.py              # 40 batch sizes of LeNet, 40 lengths of a GPT: two minutes
    python benchmarks/sizes.py --only gpt   # one of them

A plan follows from a trace with symbolic sizes; `builds` counts the runs of build for all sizes, without that trace,
whose effects (here: an entry of `builds`) are undone. A ratio compares the processor time of making a plan with that of
a fresh graph, which runs build, at the same size, in alternation; running the plan is not included. `process` is the
first plan of a process, which also loads what graphs need.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import record
from timing import human, quartiles

import minflow as flow
from minflow import nn
from minflow.models.gpt import GPT, GPTConfig
from minflow.vision.models import LeNet

SIZES = range(2, 42)
BATCH = 4  # of texts


class Train(nn.Graph):
    def __init__(self, model: nn.Module, loss: Callable):
        super().__init__()
        self.model, self.loss = model, loss
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.01))

    def build(self, x, y):
        builds.append(self.name)
        loss = self.loss(self.model, x, y)
        loss.backward()
        return loss


builds: list[str] = []  # a name for each run of a build


def lenet() -> tuple[Callable[[], Train], Callable[[int], tuple]]:
    model, entropy = LeNet(), nn.CrossEntropyLoss()
    return (
        lambda: Train(model, lambda model, x, y: entropy(model(x), y)),
        lambda n: (flow.randn(n, 1, 28, 28), flow.randint(0, 10, (n,))),
    )


def gpt() -> tuple[Callable[[], Train], Callable[[int], tuple]]:
    model = GPT(GPTConfig(block_size=64, vocab_size=65, n_layer=4, n_head=4, n_embd=64))
    return (
        lambda: Train(model, lambda model, x, y: model(x, y)[1]),
        lambda n: (flow.randint(0, 65, (BATCH, n)), flow.randint(0, 65, (BATCH, n))),
    )


ROWS = {"lenet": lenet, "gpt": gpt}


def plan_time(graph: Train, inputs: tuple) -> float:
    """Seconds of the processor for the plan of these inputs."""
    start = time.process_time()
    graph.compiled_for(inputs, {})
    return time.process_time() - start


def first_in_process(name: str) -> float:
    """Seconds of the processor for the first plan of a new process."""
    program = f"import sizes; make, batch = sizes.{name}(); print(sizes.plan_time(make(), batch(8)))"
    return float(subprocess.check_output([sys.executable, "-c", program], cwd=record.FOLDER, text=True))


def measure(name: str) -> dict[str, Any]:
    make, batch = ROWS[name]()
    make()(*batch(SIZES[0]))  # loads what the first graph of a process needs
    graph = make()
    for n in SIZES[:2]:
        graph(*batch(n))
    derived, fresh = [], []
    for n in SIZES[2:]:
        inputs = batch(n)
        for times, program in ((derived, graph), (fresh, make())):
            times.append(plan_time(program, inputs))
    return {
        "processors": statistics.median(derived),
        "peer": "fresh graph",
        "peer_processors": statistics.median(fresh),
        "processors_ratio": quartiles(derived, fresh),
        "samples": len(derived),
        "sizes": len(SIZES),
        "builds": builds.count(graph.name),
        "process": statistics.median([first_in_process(name) for _ in range(3)]),
    }


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=[*ROWS], metavar="ROW", help=f"of {', '.join(ROWS)}")
    options = parser.parse_args()
    run = record.Run("sizes", options)
    for name in options.only:
        row = run.add(name=name, **measure(name))
        print(
            f"  {name:8}{row['sizes']} sizes   {row['builds']} builds   a plan {human(row['processors'])}, "
            f"{row['processors_ratio'][1]:.2f} of a fresh graph, {row['processors'] / row['process']:.2f} of the first "
            "call of a process",
            flush=True,
        )
    run.finish()


if __name__ == "__main__":
    main()
