"""Benchmark an exported graph in onnxruntime against the graph itself, alternating in one run.

    python benchmarks/exported.py                    # all rows, 20 rounds, one thread
    python benchmarks/exported.py --only gpt         # some rows
    python benchmarks/exported.py --output result.json # the figures as JSON

Rows: MobileNetV2 for one image of 96x96, the small GPT of `trainings.py` for 8 texts, and an LSTM of two layers for 16
sequences of 64 steps; all in eval mode. A ratio is the median, with quartiles, over rounds that time both. Also
measured: seconds of export and loading, the size of the file, and the largest difference of the results.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import record
import timing
from timing import human

ROWS = ("mobilenet", "gpt", "lstm")


def parse() -> argparse.Namespace:
    parser = record.parser(__doc__, rounds=20)
    parser.add_argument("--only", nargs="*", choices=ROWS, default=ROWS, metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS and of onnxruntime (default 1)")
    return parser.parse_args()


def make(name: str) -> tuple[Any, Any]:
    """(model, example)."""
    import numpy as np
    import trainings

    flow, nn = library = trainings.flow_library()
    numbers = np.random.default_rng(0)
    if name == "gpt":
        training = trainings.make(library, "gpt")
        return training.model, training.batch[0]
    if name == "mobilenet":
        return flow.vision.models.mobilenet_v2(), flow.from_numpy(numbers.standard_normal((1, 3, 96, 96)).astype("f4"))
    model = nn.LSTM(64, 128, num_layers=2)
    return model, flow.from_numpy(numbers.standard_normal((64, 16, 64)).astype("f4"))


def graph_of(model):
    from minflow import nn

    class Predict(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            out = self.model(x)
            return out[0] if isinstance(out, tuple) else out

    return Predict()


def runner(path: Path, threads: int):
    """A session of onnxruntime with default optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def measure(run: record.Run, name: str, options: argparse.Namespace) -> None:
    """Measure one row, and print each figure when it is known."""
    import numpy as np

    import minflow as flow

    model, x = make(name)
    graph = graph_of(model.eval())
    with tempfile.TemporaryDirectory() as folder, flow.no_grad():
        path = Path(folder) / "model.onnx"
        ours = graph(x).numpy()
        start = time.perf_counter()
        flow.onnx.export(graph, f=path)
        exported = time.perf_counter()
        session = runner(path, options.threads)
        loaded, size = time.perf_counter(), path.stat().st_size
        inputs = {session.get_inputs()[0].name: x.numpy()}
        theirs = session.run(None, inputs)[0]
        steps = {"graph": lambda: graph(x), "onnxruntime": lambda: session.run(None, inputs)}
        times = timing.rounds(steps, options.rounds)
    found = run.add(
        name=name,
        threads=options.threads,
        **timing.figures(times, "graph", "onnxruntime"),
        export=exported - start,
        load=loaded - exported,
        bytes=size,
        error=float(np.abs(ours - theirs).max() / np.abs(ours).max()),
    )
    print(
        f"  {name:10} graph {human(found['seconds']):>9}   onnxruntime {human(found['peer_seconds']):>9}   "
        f"{timing.shown(found['ratio'])}   processors {timing.shown(found['processors_ratio'])}\n"
        f"    export {human(found['export'])}   load {human(found['load'])}   {size / 1e6:.2f} MB   "
        f"error {found['error']:.1e} of the largest value",
        flush=True,
    )


def main() -> None:
    options = parse()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(options.threads))
    import threadpoolctl

    run = record.Run("exported", options)
    run.say("graph / onnxruntime: median [quartiles], in wall and in processor time")
    with threadpoolctl.threadpool_limits(options.threads, "blas"):
        for name in options.only:
            measure(run, name, options)
    run.finish()


if __name__ == "__main__":
    main()
