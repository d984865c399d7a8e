"""Benchmark live widgets: time per update, processor time per second of training, slow-down of a loop, bytes.

    python benchmarks/widgets.py                        # about six minutes
    python benchmarks/widgets.py --rivals FOLDER        # also livelossplot and fastprogress, installed there by
                                                        # pip install --target FOLDER livelossplot fastprogress
    python benchmarks/widgets.py --output result.json   # the figures as JSON

Everything runs in a real IPython kernel, so that messages are made and sent; no browser is open. Processor time is that
of the whole kernel process, all threads. update: 40 consecutive updates of a curve with 500 values. A second of
training: a loop that sleeps between steps, with updates at their own rate (at most ten per second); a graph, eager
code, a synchronous and an asynchronous job, at 100 and 1,000 steps per second. The cost of a second has two parts,
whose sum is reported with median and quartiles: the time of all threads that do not train, and, in those that do, the
difference between twentieths of a second with and without listeners, which alternate. Whole seconds with and without
the curve are reported too; they scatter by more than the budget. slow-down: pairs of blocks of a loop that never
sleeps, with and without the curve, in alternating order; median and quartiles.
"""

import json
import os
import statistics
import sys
from pathlib import Path

import record

TOP = Path(__file__).resolve().parent.parent
BUDGET = 20.0  # ms of processor time in a second of training, at ten updates a second

COMMON = """
import gc, json, statistics, time
import numpy as np
import minflow as flow
from minflow import nn
from minflow_widgets import LossCurve, watch

def graph(hidden):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01)
    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.loss = model, nn.CrossEntropyLoss()
            self.add_optimizer(optimizer)
        def build(self, x, y):
            loss = self.loss(self.model(x), y)
            loss.backward()
            return loss
    train = Train()
    x, y = flow.randn(64, 64), flow.randint(0, 10, (64,))
    for _ in range(20):
        train(x, y)
    return train, x, y
"""

UPDATES = """
def filled(values):
    curve = LossCurve(panels=("loss", "lr", "norm"))
    for i in range(values):
        curve.put(i, {"loss": 1 / (1 + i), "lr": 0.1, "gradient norm": 1.0})
    return curve
def update(values):
    curve = filled(values)
    curve._pump.stop()
    def once(i):
        curve.put(values + i, {"loss": 1.0, "lr": 0.1, "gradient norm": 1.0})
        curve._update()
    found = timed(once)
    size = len(curve.encode())
    start = time.perf_counter()
    curve.finish()
    return found | {"bytes": size, "finish_ms": 1e3 * (time.perf_counter() - start)}
def timed(once, n=40):
    for i in range(3):
        once(i)
    start, cpu = time.perf_counter(), time.process_time()
    for i in range(n):
        once(i)
    time.sleep(0.2)
    return {"ms": 1e3 * (time.perf_counter() - start - 0.2) / n, "cpu_ms": 1e3 * (time.process_time() - cpu) / n}
result = {str(n): update(n) for n in (500, 20_000, 1_000_000)}
"""

SECOND = """
import threading
import minflow.typing as tp
from minflow.core.base import events
from minflow.job.queue.stream import STREAM
def in_graph():
    train, x, y = graph(8)
    return lambda: train(x, y), (train,), lambda: None
def in_eager():
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
    optimizer, loss_of = flow.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss()
    x, y = flow.randn(64, 64), flow.randint(0, 10, (64,))
    def step():
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
    return step, (model, optimizer), lambda: None
def in_job(annotation, name):
    def train(x: tp.Numpy.Placeholder((64, 64)), y: tp.Numpy.Placeholder((64,), dtype=flow.int32)) -> annotation:
        hidden = flow.layers.dense(x, 8, activation=flow.nn.relu, name=name + "-1")
        logits = flow.layers.dense(hidden, 10, name=name + "-2")
        loss = flow.math.reduce_mean(flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.01])).minimize(loss)
        return loss
    train.__name__ = name
    job = flow.global_function(type="train")(train)
    x, y = np.random.randn(64, 64).astype("f"), np.random.randint(0, 10, 64).astype("i")
    if annotation is tp.Numpy:
        return lambda: job(x, y), (job,), lambda: None
    return lambda: job(x, y)(lambda loss: None), (job,), flow.sync_default_session
def second(kind, rate, seconds=12):
    step, things, wait = KINDS[kind]()
    due = [time.perf_counter()]
    def steps(n):
        for _ in range(n):
            step()
            due[0] = max(due[0] + 1 / rate, time.perf_counter() - 0.005)
            time.sleep(max(due[0] - time.perf_counter(), 0))
        wait()
    steps(rate)
    threads = [t for t in (threading.current_thread(), STREAM.thread) if t is not None and t.is_alive()]
    trainers = [time.pthread_getcpuclockid(t.ident) for t in threads]
    def training():
        return sum(map(time.clock_gettime, trainers))
    def measured():
        start, whole, mine = time.perf_counter(), time.process_time(), training()
        steps(rate)
        whole, mine = time.process_time() - whole, training() - mine
        return [1e3 * x / (time.perf_counter() - start) for x in (whole, whole - mine, 1e-3 * rate)]
    pairs, others, alone, each, shown, reached = [], [], [], [], [], []
    with LossCurve(panels=("loss", "norm")) as curve:
        show = curve._update
        curve._update = lambda: (shown.append(1), show())
        for i in range(seconds):
            for watched in ((True, False) if i % 2 else (False, True)):
                if watched:
                    with watch(*things, into=curve):
                        on = measured()
                else:
                    time.sleep(0.2)
                    off = measured()
            pairs.append(on[0] - off[0])
            others.append(on[1] - off[1])
            alone.append(off[0])
            reached.append(on[2])
        updates = len(shown) / sum(rate / r for r in reached)
        with watch(*things, into=curve):
            heard = dict(events.LISTENERS)
            for _ in range(seconds):
                spent = [0.0, 0.0]
                for i in range(20):
                    events.LISTENERS.clear()
                    events.LISTENERS.update(heard if i % 2 else {})
                    before = training()
                    steps(rate // 20)
                    spent[i % 2] += training() - before
                each.append(2e3 * (spent[1] - spent[0]))
            events.LISTENERS.update(heard)
    return {"ms": [a + b for a, b in zip(others, each)], "others": others, "each": each, "pairs": pairs,
            "steps": statistics.median(reached), "alone": statistics.median(alone), "updates": updates}
KINDS = {"graph": in_graph, "eager": in_eager,
         "sync job": lambda: in_job(tp.Numpy, "now"), "async job": lambda: in_job(tp.Callback[tp.Numpy], "later")}
result = {f"{kind} {rate}": second(kind, rate) for kind in KINDS for rate in (100, 1000)}
"""

SLOWDOWN = """
def slowdown(hidden, pairs=15, seconds=0.6):
    train, x, y = graph(hidden)
    def block():
        start, steps = time.perf_counter(), 0
        while (spent := time.perf_counter() - start) < seconds:
            train(x, y)
            steps += 1
        return steps / spent
    found = []
    with LossCurve(panels=("loss", "lr", "norm")) as curve:
        for i in range(pairs):
            rates = {}
            for watched in ((True, False) if i % 2 else (False, True)):
                if watched:
                    with watch(train, into=curve):
                        rates[True] = block()
                else:
                    time.sleep(0.15)
                    rates[False] = block()
            found.append(100 * (1 - rates[True] / rates[False]))
    q = statistics.quantiles(found, n=4)
    return {"percent": q[1], "low": q[0], "high": q[2], "steps": rates[False]}
result = {str(hidden): slowdown(hidden) for hidden in (32, 512)}
"""

RIVALS = """
get_ipython().run_line_magic("matplotlib", "inline")  # as in a notebook: figures become pictures
import warnings
warnings.simplefilter("ignore")
result = {}
def timed(once, n=10):
    once(0)
    start, cpu = time.perf_counter(), time.process_time()
    for i in range(n):
        once(i + 1)
    return {"ms": 1e3 * (time.perf_counter() - start) / n, "cpu_ms": 1e3 * (time.process_time() - cpu) / n}
try:
    from livelossplot import PlotLosses
    plot = PlotLosses()
    for i in range(500):
        plot.update({"loss": 1 / (1 + i), "acc": i / 500})
    def once(i):
        plot.update({"loss": 1.0, "acc": 0.5})
        plot.send()
    result["livelossplot"] = timed(once)
except ImportError as error:
    result["livelossplot"] = str(error)
try:
    from fastprogress.fastprogress import master_bar
    bar = master_bar(range(1))
    for _ in bar:
        xs, ys = np.arange(500.0), 1 / (1 + np.arange(500.0))
        result["fastprogress"] = timed(lambda i: bar.update_graph([[xs, ys], [xs, ys + 1]]))
except ImportError as error:
    result["fastprogress"] = str(error)
"""


def in_kernel(client, source: str):
    """Run `source` in the kernel. Returns its variable `result`."""
    texts = []

    def heard(message):
        if message["msg_type"] == "stream":
            texts.append(message["content"]["text"])
        if message["msg_type"] == "error":
            sys.exit("\n".join(message["content"]["traceback"]))

    client.execute_interactive(
        COMMON + source + '\nprint("RESULT " + json.dumps(result), flush=True)', output_hook=heard, timeout=1200
    )
    return json.loads("".join(texts).rpartition("RESULT ")[2])


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--rivals", help="folder with livelossplot and fastprogress")
    asked = parser.parse_args()
    run = record.Run("widgets", asked)
    from jupyter_client.manager import start_new_kernel

    path = os.pathsep.join(
        [str(TOP), str(TOP / "widgets"), *([asked.rivals] if asked.rivals else []), os.environ.get("PYTHONPATH", "")]
    )
    environment = {k: v for k, v in os.environ.items() if k != "MINFLOW_LIVE"} | {
        "PYTHONPATH": path,
        "OPENBLAS_NUM_THREADS": "1",
    }
    manager, client = start_new_kernel(env=environment)
    try:
        found = {
            "updates": in_kernel(client, UPDATES),
            "second": in_kernel(client, SECOND),
            "slowdown": in_kernel(client, SLOWDOWN),
        }
        if asked.rivals:
            found["rivals"] = in_kernel(client, RIVALS)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    for values, row in found["updates"].items():
        print(
            f"update, 3 series of {int(values):>9,} values: {row['ms']:6.2f} ms, {row['cpu_ms']:6.2f} ms of processor, "
            f"{row['bytes'] / 1e3:5.1f} kB; the picture at the end {row['finish_ms']:.0f} ms"
        )
    for name, row in found["second"].items():
        (low, middle, high), kind = statistics.quantiles(row["ms"], n=4), name.rpartition(" ")[0]
        parts = [statistics.median(row[part]) for part in ("others", "each", "pairs")]
        print(
            f"a second of training, {kind:9} at {row['steps']:5.0f} steps/s: {middle:5.1f} ms of processor ({low:.1f} "
            f"to {high:.1f}), "
            f"budget {BUDGET:g}: {parts[0]:.1f} for {row['updates']:.1f} updates, {1e3 * parts[1] / row['steps']:.1f} "
            f"us a step; "
            f"whole process in pairs {parts[2]:.1f}, {row['alone']:.0f} without"
        )
    for hidden, row in found["slowdown"].items():
        print(
            f"slow-down of a loop at {row['steps']:6.0f} steps/s (MLP 64-{hidden}-10): {row['percent']:.1f} % "
            f"({row['low']:.1f} to {row['high']:.1f})"
        )
    for name, row in found.get("rivals", {}).items():
        line = row if isinstance(row, str) else f"{row['ms']:.0f} ms an update, {row['cpu_ms']:.0f} ms of processor"
        print(f"{name}: {line}")
    for what in ("updates", "second", "slowdown"):
        for case, row in found[what].items():
            run.add(name=what, case=case, **row)
    for name, row in found.get("rivals", {}).items():
        run.add(name="updates", contestant=name, **({"unavailable": row} if isinstance(row, str) else row))
    run.finish()


if __name__ == "__main__":
    main()
