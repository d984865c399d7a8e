"""Benchmark synchronous and asynchronous job functions: the gain while a loader prepares the next batch.

    python benchmarks/async.py                            # all rows: about twenty minutes
    python benchmarks/async.py --only mlp zlib            # rows of some models and loaders
    python benchmarks/async.py --shares 1 --cores idle    # loader as long as the step, with idle cores
    python benchmarks/async.py --quick                    # a quick look: the MLP, a few short rounds
    python benchmarks/async.py --output result.json       # the figures as JSON

A row trains one model with one loader whose time is a given share of a step. A round trains it synchronously and
asynchronously, in alternating order, with the same initial weights and seed; the losses of all runs must be
bit-identical.
The time of a run is measured from the end of its first step to the end of its last one, per step, so filling the queue
is not included. The ideal speed-up is (load + compute) / max(load, compute), both timed inside the synchronous runs;
the gain is (synchronous / asynchronous - 1) / (ideal - 1). best: from the shortest runs. median: over rounds, each of
which is a pair. busy: while an endless process runs on each core.
"""

import argparse
import gc
import os
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import record
from timing import busy

BATCH, SHAPE = 100, (100, 1, 28, 28)
MODELS = ("mlp", "lenet")
LOADERS = ("numpy", "zlib", "sleep", "python")
LOADER_SHARES = (0.3, 1.0, 2.0)
CORES = ("idle", "busy")
TARGET_GAIN_SHARE = 0.8  # share of the ideal gain, best run, loader as long as the step, with a free core
GIL_FREE_LOADERS = ("numpy", "zlib", "sleep")  # loaders that release the GIL
STEPS = {"mlp": 60, "lenet": 6}  # steps of one run
clock = time.perf_counter


class Run(NamedTuple):
    """Seconds per step: in total, of the loader, and of the job call.  losses: the losses of all steps, as bytes."""

    step: float
    load: float
    call: float
    losses: bytes


# ---- figures ---------------------------------------------------------------------------------------------------------


def ideal(load: float, compute: float) -> float:
    """Speed-up of perfect overlap of two parts."""
    return (load + compute) / max(load, compute)


def gain(synchronous: float, asynchronous: float, load: float, compute: float) -> float:
    """Share of the ideal gain: 0 is as slow as synchronous, 1 as fast as the longer part alone."""
    return (synchronous / asynchronous - 1) / (ideal(load, compute) - 1)


def figures(pairs: list[tuple[Run, Run]]) -> dict[str, Any]:
    """The figures of a row. pairs: (synchronous, asynchronous) of each round."""
    plain, overlapped = zip(*pairs)
    load, compute = (statistics.median(getattr(run, part) for run in plain) for part in ("load", "call"))
    shortest = [min(run.step for run in runs) for runs in (plain, overlapped)]
    least = [min(getattr(run, part) for run in plain) for part in ("load", "call")]
    return {
        "load": load,
        "compute": compute,
        "ideal": ideal(load, compute),
        "synchronous": statistics.median(run.step for run in plain),
        "asynchronous": statistics.median(run.step for run in overlapped),
        "best": gain(*shortest, *least),
        "median": statistics.median(gain(a.step, b.step, a.load, a.call) for a, b in pairs),
        "same losses": len({run.losses for pair in pairs for run in pair}) == 1,
    }


def verdict(row: dict[str, Any], loader: str, share: float, cores: str) -> str:
    """Whether a row meets the aims, as text."""
    words = [] if row["same losses"] else ["LOSSES DIFFER"]
    if loader in GIL_FREE_LOADERS and share == 1 and cores == "idle":
        words.append(f"aim {TARGET_GAIN_SHARE:.0%}" + ("" if row["best"] >= TARGET_GAIN_SHARE else "  MISSED"))
    return "  ".join(words)


# ---- models ----------------------------------------------------------------------------------------------------------


def mlp(flow, images):
    hidden = flow.layers.dense(
        flow.reshape(images, [BATCH, -1]),
        512,
        activation=flow.nn.relu,
        name="dense1",
        kernel_initializer=flow.truncated_normal(0.1),
    )
    return flow.layers.dense(hidden, 10, name="dense2", kernel_initializer=flow.truncated_normal(0.1))


def lenet(flow, images):
    start = flow.truncated_normal(0.1)
    conv1 = flow.layers.conv2d(
        images, 32, 5, padding="SAME", activation=flow.nn.relu, name="conv1", kernel_initializer=start
    )
    pool1 = flow.nn.max_pool2d(conv1, ksize=2, strides=2, padding="SAME")
    conv2 = flow.layers.conv2d(
        pool1, 64, 5, padding="SAME", activation=flow.nn.relu, name="conv2", kernel_initializer=start
    )
    pool2 = flow.nn.max_pool2d(conv2, ksize=2, strides=2, padding="SAME")
    hidden = flow.layers.dense(
        flow.reshape(pool2, [BATCH, -1]), 512, activation=flow.nn.relu, name="dense1", kernel_initializer=start
    )
    return flow.layers.dense(flow.nn.dropout(hidden, rate=0.5), 10, name="dense2", kernel_initializer=start)


def make_jobs(model: str) -> tuple[Any, Any]:
    """Two train jobs of one model that share variables: one returns tp.Numpy, one tp.Callback[tp.Numpy]."""
    import minflow as flow
    import minflow.typing as tp

    network = {"mlp": mlp, "lenet": lenet}[model]

    def train(images: tp.Numpy.Placeholder(SHAPE), labels: tp.Numpy.Placeholder((BATCH,), dtype=flow.int32)):
        logits = network(flow, images)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.01]), momentum=0).minimize(loss)
        return loss

    jobs = []
    for name, result in (("synchronous", tp.Numpy), ("asynchronous", tp.Callback[tp.Numpy])):
        train.__name__, train.__annotations__["return"] = f"{model}_{name}", result
        jobs.append(flow.global_function(type="train")(train))
    return tuple(jobs)


# ---- loaders ---------------------------------------------------------------------------------------------------------


class Loader:
    """Makes the batch of a step. kind: a key of LOADERS.  amount: images to process, some batches more than once; for
    "sleep" the seconds. The batch depends only on the index of the step and the amount.
    """

    def __init__(self, kind: str, amount: float = BATCH):
        import numpy as np

        self.np, self.kind, self.amount = np, kind, amount
        rng = np.random.default_rng(0)
        self.raw = rng.integers(0, 256, SHAPE, dtype=np.uint8)
        self.raw[:, :, ::2] = 0  # so that zlib can compress it, like digits
        self.labels = rng.integers(0, 10, BATCH, dtype=np.int32)
        self.ready = self.raw.astype("f4") / 255
        self.packed = [zlib.compress(part.tobytes()) for part in self.raw.reshape(4, -1)]
        self.rows = [list(image.tobytes()) for image in self.raw]
        self.work: Callable[[int, Any], None] = getattr(self, kind)

    def __call__(self, index: int) -> tuple[Any, Any]:
        images = self.ready.copy()
        self.work(index, images)
        return images, self.labels

    def numpy(self, index: int, images: Any) -> None:
        """Shift, flip, add noise and change contrast, one batch at a time."""
        np, rng = self.np, self.np.random.default_rng(index)
        for start in range(0, int(self.amount), BATCH):
            part = self.raw[: min(BATCH, int(self.amount) - start)]
            part = np.roll(part[..., :: 1 - 2 * (index % 2)], index % 5 - 2, -1).astype("f4")
            part *= 1 / 255
            part += 0.1 * rng.standard_normal(part.shape, dtype="f4")
            images[: len(part)] = np.clip(part, 0, 1)

    def zlib(self, index: int, images: Any) -> None:
        """Decompress, a quarter of a batch at a time."""
        size = BATCH // 4
        for i in range(max(1, int(self.amount) // size)):
            part = self.np.frombuffer(zlib.decompress(self.packed[(index + i) % 4]), "u1").reshape(-1, *SHAPE[1:])
            images[i % 4 * size :][:size] = part

    def sleep(self, index: int, images: Any) -> None:
        """Wait, as for a disk or a network."""
        time.sleep(self.amount)

    def python(self, index: int, images: Any) -> None:
        """Process pixel by pixel in Python, which holds the GIL."""
        for i in range(int(self.amount)):
            row = [(pixel + index & 255) / 255 for pixel in self.rows[i % BATCH]]
            images[i % BATCH].reshape(-1)[:] = row


# ---- runs ------------------------------------------------------------------------------------------------------------


class Bench:
    """The two jobs of a model, and the variables that every run starts from."""

    def __init__(self, model: str, steps: int):
        import minflow as flow

        flow.clear_default_session()
        flow.manual_seed(0)
        self.flow, self.steps = flow, steps
        self.jobs = make_jobs(model)
        for job in self.jobs:
            job.compile()
        self.start = {name: tensor.numpy().copy() for name, tensor in flow.get_all_variables().items()}

    def run(self, loader: Loader, asynchronous: bool) -> Run:
        flow, job = self.flow, self.jobs[asynchronous]
        flow.load_variables(self.start)
        flow.manual_seed(1)  # of dropout
        losses, ends, load, call = [], [], 0.0, 0.0

        def ended(loss):
            losses.append(loss)
            ends.append(clock())

        for index in range(self.steps):
            start = clock()
            images, labels = loader(index)
            middle = clock()
            if asynchronous:
                job(images, labels)(ended)
            else:
                ended(job(images, labels))
            if index:
                load, call = load + middle - start, call + clock() - middle
        flow.sync_default_session()
        count = self.steps - 1
        return Run(
            (ends[-1] - ends[0]) / count, load / count, call / count, b"".join(loss.tobytes() for loss in losses)
        )

    def fit(self, loader: Loader, share: float) -> None:
        """Give the loader work that takes the given share of a step; every run times it again."""
        if loader.kind == "sleep":
            loader.amount = 1e-3
        for _ in range(2):
            run = self.run(loader, False)
            loader.amount *= share * run.call / run.load

    def rounds(self, loader: Loader, count: int) -> list[tuple[Run, Run]]:
        """(synchronous, asynchronous) of each round; every second round starts with the asynchronous run."""
        self.run(loader, True)
        gc.collect()
        pairs = []
        for i in range(count):
            found = {asynchronous: self.run(loader, asynchronous) for asynchronous in (bool(i % 2), not i % 2)}
            pairs.append((found[False], found[True]))
        return pairs


def measure(run: record.Run, model: str, options: argparse.Namespace) -> None:
    """Measure the rows of one model, and print each when it is done."""
    bench = Bench(model, max(4, STEPS[model] // 4) if options.quick else STEPS[model])
    print(f"\n{model}: {bench.steps} steps a run, {options.rounds} rounds")
    print("  loader   share  cores    load, ms compute, ms    sync, ms   async, ms   ideal  gain: best  median")
    for kind in options.loaders:
        for share in options.shares:
            loader = Loader(kind)
            bench.fit(loader, share)
            for cores in options.cores:
                with busy(os.cpu_count() or 1 if cores == "busy" else 0):
                    row = figures(bench.rounds(loader, options.rounds))
                row |= {"name": model, "loader": kind, "share": share, "cores": cores, "samples": options.rounds}
                parts = "".join(
                    f"{row[part] * 1e3:12.2f}" for part in ("load", "compute", "synchronous", "asynchronous")
                )
                line = (
                    f"  {kind:8}{share:5.1f}x  "
                    f"{cores}{parts}{row['ideal']:8.2f}{row['best']:12.0%}{row['median']:8.0%}   "
                )
                print((line + verdict(row, kind, share, cores)).rstrip(), flush=True)
                run.add(**row, load_average=record.load_average())


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = record.parser(__doc__)
    words = (*MODELS, *LOADERS)
    parser.add_argument("--only", nargs="*", choices=words, default=(), metavar="WORD", help=f"of {', '.join(words)}")
    parser.add_argument(
        "--shares", nargs="*", type=float, metavar="SHARE", help="time of the loader, in steps (default 0.3 1 2)"
    )
    parser.add_argument("--cores", nargs="*", choices=CORES, help="default: both")
    parser.add_argument("--rounds", type=int, help="rounds of alternation (default 7)")
    parser.add_argument(
        "--quick", action="store_true", help="the MLP, loaders as long as the step, idle cores, 3 short rounds"
    )
    options = parser.parse_args(arguments)
    options.models = [name for name in MODELS if name in options.only] or list(MODELS[: 1 if options.quick else None])
    options.loaders = [name for name in LOADERS if name in options.only] or list(LOADERS)
    options.shares = options.shares or ((1.0,) if options.quick else LOADER_SHARES)
    options.cores = options.cores or (CORES[:1] if options.quick else CORES)
    options.rounds = options.rounds or (3 if options.quick else 7)
    return options


def main() -> int:
    """Return 1 if losses differ, else 0: a missed aim is reported but is not an error."""
    options = parse()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import threadpoolctl

    run = record.Run("async", options)
    run.say("one BLAS thread; gain relative to perfect overlap of loader and step")
    with threadpoolctl.threadpool_limits(1, "blas"):
        for model in options.models:
            measure(run, model, options)
    run.finish()
    same = all(row["same losses"] for row in run.rows)
    print("\nlosses: " + ("the same bits in every run of every row" if same else "DIFFERENT BITS"))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
