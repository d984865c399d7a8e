"""Benchmark the explorer and the cards: time to make and send them, bytes of an output, time of a click; and other
tools.

    python benchmarks/explorers.py                      # about two minutes
    python benchmarks/explorers.py --rivals FOLDER   # with rivals: pip install --target FOLDER
                                                        # torchvista torchview torchlens ai-edge-model-explorer netron
    python benchmarks/explorers.py --output result.json # the figures as JSON

Everything runs in a real IPython kernel, so that messages are made and sent; no browser is open. Bytes are those of the
messages: `saved` stays in the notebook, `page` goes only to the page (the script and the first picture). An action is
timed from the page's request until the answer is sent. Other tools draw the same model in PyTorch, alternating with
ours; a ratio is the median of the pairs, other / ours. Ours is all of `explore(graph, x, y)`, with its recorded
training step, displayed; theirs is the time until the output exists, forward only. `loads`: hosts from which an output
would load; none for ours. Live curves are in `widgets.py`. Read next: `trainings.py`, the models.
"""

import argparse
import contextlib
import io
import json
import os
import re
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import record

TOP = Path(__file__).resolve().parent.parent
MODELS = "lenet", "mobilenet", "deep"
BATCH = 8  # rows of a batch: recording the step is part of the time
CLOCK = time.perf_counter
LOADS = re.compile(
    r"""(?:<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)\s*=\s*|\bfetch\(|\bimport\(?\s*|url\()["']?https?://([\w.-]+)"""
)


# ---- in the kernel ---------------------------------------------------------------------------------------------------


def training(library, name: str, layers: int):
    """Model, loss, optimizer and a batch. "deep": `layers` layers, Linear and ReLU alternating."""
    import numpy as np
    import trainings

    lib, nn = library
    if name != "deep":
        made = trainings.make(library, name)
        return made._replace(batch=tuple([part[:BATCH] for part in made.batch]))
    model = nn.Sequential(*[layer for _ in range(layers // 2) for layer in (nn.Linear(8, 8), nn.ReLU())])
    rng = np.random.default_rng(0)
    batch = lib.from_numpy(rng.standard_normal((2, 8)).astype("f4")), lib.from_numpy(rng.integers(0, 8, 2))
    return trainings.Training(model, nn.CrossEntropyLoss(), lib.optim.SGD(model.parameters(), lr=0.01), batch)


def graph(name: str, layers: int) -> tuple:
    """A compiled nn.Graph, and its inputs."""
    import trainings
    from graph import graph_of

    made = training(trainings.flow_library(), name, layers)
    train = graph_of(trainings.flow_library()[1], made)
    train(*made.batch)
    return train, made.batch


def spent(do: Callable[[], Any]) -> float:
    """Milliseconds."""
    start = CLOCK()
    do()
    return 1e3 * (CLOCK() - start)


def figures(times: list[float]) -> dict[str, float]:
    return {"ms": statistics.median(times), "low": min(times), "high": max(times), "n": len(times)}


def explorer(name: str, layers: int, rounds: int, acts: int) -> dict[str, Any]:
    """Times of `explore(graph, x, y)` (make), without inputs (bare), of displaying it (send), and of each action."""
    from minflow_widgets import explore

    train, batch = graph(name, layers)
    made, bare, sent = [], [], []
    for _ in range(rounds):
        made.append(spent(lambda: explore(train, *batch)))
        bare.append(spent(lambda: explore(train)))
        shown = explore(train, *batch)
        sent.append(spent(shown._ipython_display_))
        shown.end()  # more than a few live ones would end each other, which takes time and sends pictures
    shown = explore(train, *batch)
    shown._ipython_display_()
    found = {
        "make": figures(made),
        "bare": figures(bare),
        "send": figures(sent),
        "acts": acted(shown, acts),
        "nodes": len(shown.session.model.record(shown.session.model.stages).nodes),
    }
    shown.end()
    return found


def acted(shown, count: int) -> dict[str, dict[str, float]]:
    """Times of the four actions of a reader, each at most `count` times."""
    widget = shown.shown[0][0]

    def ask(**want: Any) -> tuple[float, int]:
        before = widget.picture
        took = spent(lambda: shown.asked({"new": json.dumps({**want, "n": CLOCK()})}))
        changed = widget.picture if widget.picture != before else ""
        return took, len((changed + widget.detail).encode())

    def rows() -> list:
        return json.loads(widget.picture)["rows"]

    stages, steps = shown.session.model.stages, len(shown.session.model.instructions)
    found: dict[str, list] = {"open": [], "select": [], "pass": [], "pass again": [], "step": []}
    for id in [row[0] for row in rows() if row[5] == 0][:count]:
        found["open"].append(ask(do="toggle", id=id))
        ask(do="toggle", id=id)
    boxes = [(row[0], box[0]) for row in rows() for box in row[7]][:count]
    found["select"] = [ask(do="select", id=id, column=column) for id, column in boxes]
    found["step"] = [ask(do="step", to=i * steps // count) for i in range(count)]
    for what in ("pass", "pass again"):  # the memory of a pass is planned when it is first shown
        found[what] = [ask(do="stage", to=k) for k in range(stages - 1, -1, -1)]
        ask(do="stage", to=stages)
    return {
        what: {**figures([took for took, _ in each]), "bytes": int(statistics.median([size for _, size in each]))}
        for what, each in found.items()
    }


def cards(rounds: int) -> dict[str, dict[str, float]]:
    """The timeline, the error card and tensors: time until the output exists, and the bytes of all its forms."""
    import numpy as np
    from minflow_widgets import watch_timeline

    import minflow as flow
    import minflow.typing as tp
    from minflow import nn
    from minflow.diagnosis.card import card_bundle
    from minflow.diagnosis.card_record import card_of
    from minflow.views.show import picture

    def function(x: tp.Numpy.Placeholder((64, 64))) -> tp.Numpy:
        return flow.math.relu(flow.matmul(x, x))

    function.__name__ = "job"
    job, ones = flow.global_function(type="predict")(function), np.ones((64, 64), "f4")
    flow.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        live = watch_timeline()
        live.start()
        for _ in range(40):
            job(ones)
        live.update_thread.stop()

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(500, 10))

        def build(self, x):
            return self.model(x)

    def failed() -> dict[str, str]:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                Train()(flow.ones(8, 784))
        except flow.MinflowError as error:
            return card_bundle(card_of(error))
        raise AssertionError("it was to fail")

    def updated() -> bytes:
        live.front.update(live)
        return live.encode()

    small, large, images = flow.randn(20, 20), flow.randn(1000, 1000), flow.rand(16, 3, 32, 32)
    shown: dict[str, Callable[[], Any]] = {
        "timeline, 33 steps": lambda: flow.timeline()._repr_mimebundle_(),
        "timeline, a live update": updated,
        "error card, with the build that fails": failed,
        "tensor of 20x20": lambda: small._repr_mimebundle_(),
        "tensor of 1000x1000": lambda: large._repr_mimebundle_(),
        "16 images of 3x32x32": lambda: picture(images, images=True)._repr_mimebundle_(),
    }
    result = {}
    for what, make in shown.items():
        made = make()
        size = len(made) if isinstance(made, bytes) else sum([len(text.encode()) for text in made.values()])
        result[what] = {**figures([spent(make) for _ in range(rounds)]), "bytes": size}
    live.finish()
    return result


# ---- rivals, in the kernel too ---------------------------------------------------------------------------------------


def vista(model, x) -> str:
    """Run torchvista: a page with its scripts, shown in the notebook."""
    from IPython.utils.capture import capture_output
    from torchvista import trace_model

    with capture_output() as seen:
        trace_model(model, (x,))
    texts = [output.data["text/html"] for output in seen.outputs if "text/html" in output.data]
    if not texts:
        raise RuntimeError((seen.stdout + seen.stderr).strip()[-200:] or "no output")
    return max(texts, key=len)


def view(model, x) -> str:
    """Run torchview: an SVG of Graphviz."""
    from torchview import draw_graph

    return draw_graph(model, input_data=x, device="cpu").visual_graph.pipe("svg").decode()


def lens(model, x) -> str:
    """Run torchlens: an SVG of Graphviz."""
    import torchlens

    with tempfile.TemporaryDirectory() as folder:
        torchlens.trace(model, x).draw(vis_outpath=f"{folder}/graph", vis_fileformat="svg", vis_save_only=True)
        return next(Path(folder).rglob("*.svg")).read_text(encoding="utf-8")


def model_explorer(model, x) -> str:
    """Run Model Explorer: its page, and the graphs that the page requests from its server."""
    import dataclasses

    import model_explorer as package
    import torch

    config = package.config()
    config.add_model_from_pytorch("model", torch.export.export(model, (x,)))
    data = json.dumps(
        config.graphs_list, default=lambda o: dataclasses.asdict(o) if dataclasses.is_dataclass(o) else vars(o)
    )
    return data + (Path(package.__file__).parent / "web_app" / "index.html").read_text(encoding="utf-8")


def netron(model, x) -> str:
    """Run netron: the program as a file, and the page of its server."""
    import urllib.request

    import netron as package
    import torch

    with tempfile.TemporaryDirectory() as folder:
        torch.export.save(torch.export.export(model, (x,)), f"{folder}/model.pt2")
        address = package.start(f"{folder}/model.pt2", browse=False)
        try:
            with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/") as page:
                return page.read().decode() + Path(f"{folder}/model.pt2").read_bytes().decode("latin-1")
        finally:
            package.stop(address)


RIVALS = {"torchvista": vista, "torchview": view, "torchlens": lens, "Model Explorer": model_explorer, "netron": netron}


def compare_with_rivals(name: str, layers: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Alternate our explorer with each other tool; report the error if it cannot draw the model."""
    import torch
    import trainings
    from minflow_widgets import explore

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    train, batch = graph(name, layers)
    other = training(trainings.torch_library(), name, layers)
    ours: list[float] = []
    found: dict[str, dict[str, Any]] = {what: {"times": [], "ratios": []} for what in RIVALS}

    def whole() -> None:
        shown = explore(train, *batch)
        shown._ipython_display_()
        for widget, _ in shown.shown:
            widget.close()

    whole()
    for i in range(rounds + 1):
        for what, draw in RIVALS.items():
            row = found[what]
            if "unavailable" in row:
                continue
            mine = spent(whole)
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    start = CLOCK()
                    text = draw(other.model, other.batch[0])
                    took = 1e3 * (CLOCK() - start)
            except Exception as error:  # a tool that is not installed, or fails
                row["unavailable"] = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
                continue
            if i:  # the first one imports it
                ours.append(mine)
                row["times"].append(took)
                row["ratios"].append(took / mine)
                row |= {"bytes": len(text.encode()), "loads": sorted(set(LOADS.findall(text)))}
    for row in found.values():
        times, ratios = row.pop("times"), row.pop("ratios")
        if times:
            row |= {**figures(times), "median_ratio": statistics.median(ratios)}
    return {"ours": figures(ours) if ours else {}, **found}


def show(name: str, layers: int) -> dict[str, int]:
    """Display an explorer; its bytes are counted in the messages. script: bytes that all explorers have in common."""
    from minflow_widgets import explore
    from minflow_widgets.explorer.explorer import widget_class

    train, batch = graph(name, layers)
    explore(train, *batch)._ipython_display_()
    return {"script": len((widget_class()._esm + widget_class()._css).encode())}


# ---- in the parent process -------------------------------------------------------------------------------------------


def in_kernel(client, call: str) -> tuple[Any, dict[str, int]]:
    """Call a function of this module in the kernel. Returns its result and the bytes that it sent: `saved` in a
    notebook, and only to the `page`.
    """
    texts, sent = [], {"saved": 0, "page": 0}

    def heard(message: dict) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            texts.append(content["text"])
        elif kind == "error":
            sys.exit("\n".join(content["traceback"]))
        elif kind in ("comm_open", "comm_msg"):
            sent["page"] += len(json.dumps(content, ensure_ascii=False).encode()) + sum(
                map(len, message.get("buffers", ()))
            )
        elif kind in ("display_data", "update_display_data"):
            sent["saved"] += len(json.dumps(content["data"], ensure_ascii=False).encode())

    source = f'import json, explorers\nprint("RESULT " + json.dumps(explorers.{call}), flush=True)'
    client.execute_interactive(source, output_hook=heard, timeout=900)
    return json.loads("".join(texts).rpartition("RESULT ")[2].splitlines()[0]), sent


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    from jupyter_client.manager import start_new_kernel

    path = [str(TOP / "benchmarks"), str(TOP), str(TOP / "widgets"), *([asked.rivals] if asked.rivals else [])]
    clean = {k: v for k, v in os.environ.items() if k != "MINFLOW_LIVE"}
    path.append(os.environ.get("PYTHONPATH", ""))
    manager, client = start_new_kernel(env=clean | {"PYTHONPATH": os.pathsep.join(path), "OPENBLAS_NUM_THREADS": "1"})
    layers, rounds, acts = (40, 2, 4) if asked.quick else (1000, 7, 25)
    found: dict[str, Any] = {"models": {}, "rivals": {}}
    try:
        for name in asked.only:
            static, sent = in_kernel(client, f"show({name!r}, {layers})")
            found["models"][name] = (
                in_kernel(client, f"explorer({name!r}, {layers}, {rounds}, {acts})")[0] | sent | static
            )
        found["cards"] = in_kernel(client, f"cards({rounds})")[0]
        for name in asked.only if asked.rivals else ():
            found["rivals"][name] = in_kernel(client, f"compare_with_rivals({name!r}, {layers}, {min(rounds, 5)})")[0]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return found


def tell(found: dict[str, Any]) -> None:
    def ms(row: dict) -> str:
        return f"{row['ms']:.3g} ms ({row['low']:.3g} to {row['high']:.3g})"

    for name, row in found["models"].items():
        print(
            f"{name}, {row['nodes']} operations: make {ms(row['make'])}, without inputs {ms(row['bare'])}, send "
            f"{ms(row['send'])}; "
            f"{row['saved'] / 1e3:.1f} kB saved, {row['page'] / 1e3:.1f} kB to the page, of which "
            f"{row['script'] / 1e3:.1f} the script"
        )
        for what, act in row["acts"].items():
            print(f"    {what}: {ms(act)}, {act['bytes'] / 1e3:.1f} kB")
    for what, row in found["cards"].items():
        print(f"{what}: {ms(row)}, {row['bytes'] / 1e3:.1f} kB")
    for name, rows in found["rivals"].items():
        print(f"{name}: ours {ms(rows['ours'])}" if rows["ours"] else f"{name}: no rival")
        for what, row in rows.items():
            if what != "ours":
                line = row.get("unavailable") or (
                    f"{ms(row)}, {row['median_ratio']:.2f} times ours, {row['bytes'] / 1e3:,.0f} kB; "
                    f"loads from {', '.join(row['loads']) or 'nowhere else'}"
                )
                print(f"    {what}: {line}")


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--rivals", help="folder of other tools, see above")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, help="these models")
    parser.add_argument("--quick", action="store_true", help="few rounds, and 40 layers for 1,000")
    asked = parser.parse_args()
    run = record.Run("explorers", asked)
    found = measure(asked)
    tell(found)
    for name, row in found["models"].items():
        acts = {what: row.pop(what) for what in ("make", "bare", "send")} | row.pop("acts")
        run.add(name=name, case="sizes", **row)
        for what, act in acts.items():
            run.add(name=name, case=what, **act)
    for what, row in found["cards"].items():
        run.add(name=what, case="card", **row)
    for name, rows in found["rivals"].items():
        for what, row in rows.items():
            run.add(name=name, case="whole", contestant=what, **row)
    run.finish()


if __name__ == "__main__":
    main()
