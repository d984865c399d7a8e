"""Benchmark an exported graph in onnxruntime against the graph itself, alternating in one run.

    python benchmarks/exported.py                    # all rows, 20 rounds, one thread
    python benchmarks/exported.py --only gpt         # some rows
    python benchmarks/exported.py --json result.json # the same figures as JSON

Rows: MobileNetV2 for one image of 96x96, the small GPT of `trainings.py` for 8 texts, and an LSTM of two layers for 16
sequences of 64 steps; all in eval mode. A ratio is the median, with quartiles, over rounds that time both. Also
measured: seconds of export and loading, the size of the file, and the largest difference of the results.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = ("mobilenet", "gpt", "lstm")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=ROWS, default=ROWS, metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of alternation (default 20)")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS and of onnxruntime (default 1)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
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


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one row, and print each figure when it is known."""
    import numpy as np
    from graph import human, quartiles, rounds

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
        times = rounds({"graph": lambda: graph(x), "onnxruntime": lambda: session.run(None, inputs)}, options.rounds)
    found = {
        "seconds": {c: statistics.median(t) for c, t in times.items()},
        "ratio": quartiles(times["graph"], times["onnxruntime"]),
        "export": exported - start,
        "load": loaded - exported,
        "bytes": size,
        "error": float(np.abs(ours - theirs).max() / np.abs(ours).max()),
    }
    low, middle, high = found["ratio"]
    print(f"  {name}")
    print(f"    graph        {human(found['seconds']['graph']):>10}")
    print(
        f"    onnxruntime  {human(found['seconds']['onnxruntime']):>10}   graph / it {middle:5.3f}  "
        f"[{low:.3f}, {high:.3f}]"
    )
    print(
        f"    export {human(found['export'])}   load {human(found['load'])}   {size / 1e6:.2f} MB   "
        f"error {found['error']:.1e} of the largest value"
    )
    sys.stdout.flush()
    return found


def main() -> None:
    options = parse()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(options.threads))
    import numpy as np
    import onnxruntime
    import threadpoolctl

    print(
        f"numpy {np.__version__}, onnxruntime {onnxruntime.__version__}, {os.cpu_count()} cores; {options.threads} "
        f"thread{'s' * (options.threads > 1)}, {options.rounds} rounds in alternation; ratios: median [quartiles]"
    )
    with threadpoolctl.threadpool_limits(options.threads, "blas"):
        found = {name: measure(name, options) for name in options.only}
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"threads": options.threads, "rounds": options.rounds, "rows": found}, file, indent=1)


if __name__ == "__main__":
    main()
