"""Generate the tables of docs/performance.md and of the README from the recorded runs in `results/`.

    python benchmarks/tables.py           # write them
    python benchmarks/tables.py --check   # exit status 1, with the first difference, if a page is not up to date

A page marks the place of a table by `<!-- table: NAME -->` and `<!-- end -->`. Below a table is where its figures come
from: the command, the commit, the day and the machine. A test runs `--check`, so a figure in a table is one of a run.
"""

from __future__ import annotations

import difflib
import re
import statistics
import sys
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import record
from timing import human

PAGES = (record.FOLDER.parent / "docs" / "performance.md", record.FOLDER.parent / "README.md")
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
Row = dict[str, Any]
Rows = list[Row]


class Table(NamedTuple):
    """A table of one run.

    run: name of the file in `results/`.  corner: the first header.  lines: label -> fields of the rows of this line;
    None for a line per name.  columns: header -> (fields of the rows of this column, function that shows the rows with
    the fields of both).  after: function of all rows that returns a sentence about them.
    """

    run: str
    corner: str
    lines: dict[str, Row] | None
    columns: dict[str, tuple[Row, Callable[[Rows], str]]]
    after: Callable[[Rows], str] | None = None

    def text(self) -> str:
        run = record.load(record.RESULTS / f"{self.run}.json")
        rows = [row for row in run["rows"] if "unavailable" not in row]
        lines = self.lines or {name: {"name": name} for name in dict.fromkeys(row["name"] for row in rows)}
        table = [[self.corner, *self.columns], ["---"] * (1 + len(self.columns))]
        for label, fields in lines.items():
            cells = [show(select(rows, **fields, **where)) for where, show in self.columns.values()]
            table.append([label, *cells])
        text = "".join(f"| {' | '.join(line)} |\n" for line in table).replace("| --- ", "|---").replace("--- |", "---|")
        said = f"{self.after(rows)} " if self.after else ""
        source = textwrap.fill(f"{said}{record.provenance(run)}", 140, break_long_words=False, break_on_hyphens=False)
        return f"{text}\n{source}\n"


def select(rows: Rows, **fields: Any) -> Rows:
    """Rows with these fields. A tuple allows each of its values."""
    allowed = {key: value if isinstance(value, tuple) else (value,) for key, value in fields.items()}
    return [row for row in rows if all(row.get(key) in values for key, values in allowed.items())]


# ---- cells -----------------------------------------------------------------------------------------------------------


def one(show: Callable[[Row], str]) -> Callable[[Rows], str]:
    """Show the only row of a cell; an empty cell if there is none. Several rows are an error of the table."""

    def cell(rows: Rows) -> str:
        if len(rows) > 1:
            raise ValueError(f"{len(rows)} rows for one cell: {rows[0]} and {rows[1]}")
        return show(rows[0]) if rows else ""

    return cell


def text(field: str, form: str = "{}", scale: float = 1.0) -> Callable[[Rows], str]:
    """A field in this form."""
    return one(lambda row: "" if field not in row else form.format(scaled(row[field], scale)))


def scaled(value: Any, scale: float) -> Any:
    return value if scale == 1.0 else value * scale


def several(form: str) -> Callable[[Rows], str]:
    """Some fields of a row in a form that names them."""
    return one(lambda row: form.format(**row))


def ratio_of(row: Row) -> float | None:
    """The median ratio of processor time, which other programs do not change, or what a page stated."""
    return row["processors_ratio"][1] if "processors_ratio" in row else row.get("median_ratio")


def of_each(*contestants: str) -> Callable[[Rows], str]:
    """The ratios of some contestants, separated by slashes."""

    def cell(rows: Rows) -> str:
        found = {row["contestant"]: f"{ratio_of(row):.2f}" for row in rows}
        return " / ".join(found.get(name, "-") for name in contestants) if found else ""

    return cell


def ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def spread(row: Row) -> str:
    """Milliseconds, with the smallest and largest if they differ much."""
    ends = f" ({ms(row['low'])} to {ms(row['high'])})" if "low" in row and row["high"] > 1.1 * row["low"] else ""
    size = f", {row['bytes'] / 1e3:,.1f} kB" if "bytes" in row else ""
    return f"{ms(row['ms'])} ms{ends}{size}"


def rival(row: Row) -> str:
    if "median_ratio" not in row:
        return spread(row)
    return f"{row['median_ratio']:.2g}, {row['bytes'] / 1e3:,.0f} kB"


time = one(lambda row: human(row["processors"]))
peer_time = one(lambda row: human(row["peer_processors"]))
ratio = one(lambda row: f"{ratio_of(row):.2f}")
quartiles = one(lambda row: "{0:.2f}-{2:.2f}".format(*row["processors_ratio"]))
aim = text("aim")


# ---- sentences about all rows ----------------------------------------------------------------------------------------


def middle_and_worst(rows: Rows) -> str:
    """The median and the worst of the ratios, for each case."""
    said = []
    for case in dict.fromkeys(row.get("case", "") for row in rows):
        ratios = {row["name"]: ratio_of(row) for row in rows if row.get("case", "") == case}
        worst = max(ratios, key=ratios.get)
        middle = statistics.median(ratios.values())
        said.append(f"{case + ': ' if case else ''}median {middle:.2f}, worst {ratios[worst]:.2f} ({worst})")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


def outliers(rows: Rows) -> str:
    """Operations whose graph with compiled kernels takes more than 1.5 of PyTorch's time."""
    ratios = {f"{r['name']}, {r['case']}": ratio_of(r) for r in select(rows, contestant="graph, compiled")}
    worst = sorted(((value, name) for name, value in ratios.items() if value > 1.5), reverse=True)
    below = sum(value <= 1 for value in ratios.values())
    named = "; ".join(f"{name} {value:.1f}" for value, name in worst)
    return (
        f"In {below} of {len(ratios)} rows a graph with compiled kernels takes at most PyTorch's time. "
        f"{len(worst)} are above 1.5{': ' * bool(worst)}{named}."
    )


# ---- tables ----------------------------------------------------------------------------------------------------------

MODELS = {
    "mlp": "MLP 784-512-10, batch 100",
    "lenet": "LeNet, batch 100",
    "mobilenet": "MobileNetV2 on 3x32x32, batch 64",
    "gpt": "small GPT",
}
SMALL_OPS = {
    "add": "add of 10 floats, with gradient",
    "add, no grad": "add of 10 floats, without",
    "mul": "mul of 10 floats, with gradient",
    "chain": "`((a+b)*a).sum()` forward and backward",
    "slice": "`a[2:5]`",
    "reshape": "`a.reshape(2, 5)`",
    "transpose": "`m.T`",
    "matmul 8x8": "8x8 matmul",
}
EAGER = {"minflow": ({}, time), "PyTorch": ({}, peer_time), "ratio": ({}, ratio), "quartiles": ({}, quartiles)}
GRAPH, COMPILED = {"contestant": "graph"}, {"contestant": "graph, compiled"}
STEPS = {
    f"{label}, {said}": {"name": name, "case": case}
    for name, label in MODELS.items()
    for case, said in (("train", "train step"), ("predict", "predict"))
}
GRAPHS = {label: {"name": name} for name, label in MODELS.items()}
GRAPHS["ten elementwise ops on 10M floats"] = {"name": "chain"}
OPERATIONS = (
    "RNN", "LSTM", "GRU", "leaky_relu", "gelu", "add", "add of a row", "softmax", "layer_norm", "group_norm",
    "BatchNorm1d", "sum of rows", "slice", "gather", "cumsum", "topk", "embedding", "conv2d 3x3", "conv2d 1x1",
    "conv2d stride 2", "conv2d dilated", "conv2d of groups", "conv2d depthwise", "conv1d", "conv_transpose2d",
    "conv_transpose2d stride 1", "interpolate nearest", "interpolate bilinear", "SGD", "Adam",
)  # fmt: skip
TITLES = {"lenet": "LeNet", "mobilenet": "MobileNetV2", "deep": "1,000 layers"}
LOADERS = {"numpy": "numpy augment", "zlib": "zlib decode", "sleep": "sleep", "python": "pure Python"}
GAINS = one(lambda row: f"{100 * row['best']:.0f} / {100 * row['median']:.0f} %")

TABLES: dict[str, Table] = {
    "eager": Table(
        "eager",
        "one thread",
        {label: {"name": name, "threads": 1} for name, label in (MODELS | SMALL_OPS).items() if name != "gpt"},
        {**EAGER, "aim": ({}, aim)},
    ),
    "eager_numpy": Table(
        "eager_numpy", "NumPy's kernels", {MODELS[n]: {"name": n} for n in ("lenet", "mobilenet")}, EAGER
    ),
    "import": Table(
        "import",
        "processor time",
        {"import, fresh process, with cached byte code": {"name": "import"}},
        {name: ({"case": name}, one(lambda row: human(row["seconds"]))) for name in ("minflow", "numpy", "torch")},
    ),
    "few_positions": Table(
        "few_positions",
        "images, filters",
        None,
        {
            case: ({"case": case}, several("{before_ms:g}, now {ms:g}; PyTorch {peer_ms:g}"))
            for case in ("result", "gradient of images", "of filters")
        },
    ),
    "networks": Table(
        "networks",
        "minflow / PyTorch",
        None,
        {"train step": ({"case": "train"}, ratio), "prediction": ({"case": "predict"}, ratio)},
        middle_and_worst,
    ),
    "programs": Table("programs", "a round", None, EAGER, middle_and_worst),
    "page_faults": Table(
        "page_faults",
        "eager train step: page faults, ms of the system",
        None,
        {
            header: ({"case": case}, several(form))
            for case, header, form in (
                ("default", "default of glibc", "{faults:,}, {system_ms:g} of {total_ms:,.0f}"),
                ("retained", "retained", "{faults:,}, {system_ms:g}"),
                ("PyTorch", "PyTorch", "{faults:,}, {system_ms:g}"),
            )
        },
    ),
    "compiled": Table(
        "compiled",
        "one thread, of PyTorch's best",
        STEPS,
        {
            "graph, compiled": (COMPILED, one(lambda row: f"**{ratio_of(row):.2f}**")),
            "quartiles": (COMPILED, quartiles),
            "aim": (COMPILED, aim),
            "graph": (GRAPH, ratio),
            "eager, compiled": ({"contestant": "eager, compiled"}, ratio),
            "eager": ({"contestant": "eager"}, ratio),
            "time": (COMPILED, time),
            "floor": (COMPILED, one(lambda row: human(row["floor"]))),
        },
    ),
    "speed": Table(
        "compiled",
        "PyTorch = 1.0",
        {
            f"{said}, {mode}": {"case": case, "contestant": contestant}
            for case, said in (("train", "training step"), ("predict", "prediction"))
            for mode, contestant in (("graph", "graph, compiled"), ("eager", "eager, compiled"))
        },
        {
            title: ({"name": name}, ratio)
            for name, title in (
                ("mlp", "MLP"),
                ("lenet", "LeNet"),
                ("mobilenet", "MobileNetV2, 32x32"),
                ("gpt", "small GPT"),
            )
        },
    ),
    "winograd": Table(
        "winograd", "LeNet's step, processor time", None, {"before": ({}, text("before")), "after": ({}, text("after"))}
    ),
    "attention": Table(
        "attention",
        "batch, heads, keys, width",
        None,
        {
            header: ({"case": case}, several("{kernel:.2f} / {without:.2f}"))
            for case, header in (
                ("forward", "forward"),
                ("causal", "causal"),
                ("gradient", "with gradient"),
                ("causal gradient", "causal, with gradient"),
            )
        },
    ),
    "thin": Table(
        "thin",
        "rows, terms, columns",
        None,
        {"compiled": ({}, text("compiled", "{:.2f}")), "BLAS": ({}, text("blas", "{:.2f}"))},
    ),
    "ops": Table(
        "ops",
        "graph with compiled kernels / without",
        {name: {"name": name} for name in OPERATIONS},
        {
            "small": ({"case": "small forward"}, of_each("graph, compiled", "graph")),
            "with gradient": ({"case": ("small backward", "small optimizer")}, of_each("graph, compiled", "graph")),
            "large": ({"case": "large forward"}, of_each("graph, compiled", "graph")),
            "large, with gradient": (
                {"case": ("large backward", "large optimizer")},
                of_each("graph, compiled", "graph"),
            ),
        },
        outliers,
    ),
    "graph": Table(
        "graph",
        "one thread",
        GRAPHS | {"`x + 1` on 10 floats, the whole call": {"name": "x + 1"}},
        {
            "graph": ({"peer": "eager"}, time),
            "graph / eager": ({"peer": "eager"}, ratio),
            "graph / PyTorch": ({"peer": "PyTorch"}, ratio),
        },
    ),
    "first_call": Table(
        "first_call",
        "first call, processor time",
        {
            "linear layers, SGD": {"name": "sgd"},
            "linear layers, Adam": {"name": "adam"},
            "linear layers, two accumulated gradients": {"name": "accumulation"},
            "residual blocks with layer norm": {"name": "residual"},
            "the same blocks as checkpoints": {"name": "checkpoints"},
            "prediction by linear layers": {"name": "predict"},
        },
        {
            f"{n:,} layers": ({"case": f"{n} layers"}, one(lambda row: human(row["processors"])))
            for n in (500, 1000, 2000)
        },
    ),
    "sizes": Table(
        "sizes",
        "training, 40 sizes",
        {"LeNet, batch sizes": {"name": "lenet"}, "GPT, lengths": {"name": "gpt"}},
        {
            "runs of build": ({}, text("builds")),
            "a plan": ({}, one(lambda row: human(row["processors"]))),
            "/ plan of a fresh graph": ({}, one(lambda row: f"{row['processors_ratio'][1]:.2f}")),
            "/ first plan of a process": ({}, one(lambda row: f"{row['processors'] / row['process']:.2f}")),
        },
    ),
    "graph_memory": Table(
        "graph",
        "MB, gradients kept",
        GRAPHS,
        {
            "eager's peak": ({"case": "memory"}, text("eager", "{:.2f}", 1e-6)),
            "arena": ({"case": "memory"}, text("arena", "{:.2f}", 1e-6)),
            "new outputs": ({"case": "memory"}, text("outputs", "{:.2f}", 1e-6)),
            "ratio": ({"case": "memory"}, text("share", "{:.2f}")),
            "arena without kept gradients": ({"case": "memory"}, text("arena_without_gradients", "{:.2f}", 1e-6)),
        },
    ),
    "torch_compile": Table(
        "torch_compile",
        "one thread",
        GRAPHS | {"`x + 1` on 10 floats": {"name": "x + 1"}},
        {"graph / torch.compile": ({}, ratio), "first call of torch.compile": ({}, text("first_call", "{:g} s"))},
    ),
    "overlap": Table(
        "async",
        "free cores",
        {label: {"loader": loader, "cores": "idle"} for loader, label in LOADERS.items()},
        {
            f"{title}: {share:g}x": ({"name": model, "share": share}, GAINS)
            for model, title in (("mlp", "MLP"), ("lenet", "LeNet"))
            for share in (0.3, 1.0, 2.0)
        },
    ),
    "overlap_busy": Table(
        "async",
        "every core busy, 1x",
        {label: {"loader": loader, "cores": "busy", "share": 1.0} for loader, label in LOADERS.items()},
        {"MLP": ({"name": "mlp"}, GAINS), "LeNet": ({"name": "lenet"}, GAINS)},
    ),
    "ranks": Table(
        "ranks",
        "1 process to 2: efficiency",
        {
            "DistributedDataParallel": {"contestant": "minflow"},
            "`nn.Graph`, global tensors": {"contestant": "minflow graph"},
            "PyTorch's DistributedDataParallel": {"contestant": "torch"},
        },
        {
            title: (
                {"name": name},
                one(lambda row: f"{human(row['one'])} to {human(row['two'])}: {row['efficiency']:.2f}"),
            )
            for name, title in (("mlp", "MLP"), ("lenet", "LeNet"), ("gpt", "GPT"))
        },
    ),
    "curves": Table(
        "widgets",
        "update",
        {
            **{f"`LossCurve`, three series of {int(n):,}": {"case": n} for n in ("500", "20000", "1000000")},
            "livelossplot 0.6": {"contestant": "livelossplot"},
            "fastprogress 1.1": {"contestant": "fastprogress"},
        },
        {
            "time": ({"name": "updates"}, text("ms", "{:.3g} ms")),
            "processor": ({"name": "updates"}, text("cpu_ms", "{:.3g} ms")),
            "bytes": ({"name": "updates"}, text("bytes", "{:.1f} kB", 1e-3)),
        },
    ),
    "watching": Table(
        "watching",
        "ms of processor time per second",
        {
            f"{name}, {steps:,} steps/s": {"name": name, "rate": steps}
            for name in ("`watch(graph)`", "`watch(model, optimizer)`", "`watch(job)`, sync", "`watch(job)`, async")
            for steps in (100, 1000)
        },
        {
            "total": ({}, several("{total} ({low} to {high})")),
            "runs": ({}, text("runs")),
            "updates": ({}, text("updates")),
            "for updates": ({}, text("for_updates")),
            "per step": ({}, text("step_us", "{:g} us")),
            "whole seconds in pairs": ({}, text("pairs")),
        },
    ),
    "explorer": Table(
        "explorers",
        "`explore(graph, x, y)`",
        {
            "run and record a step, and draw": {"case": "make"},
            "draw, without inputs": {"case": "bare"},
            "send": {"case": "send"},
            "open a module": {"case": "open"},
            "select a node": {"case": "select"},
            "move the slider to a pass": {"case": "pass"},
            "step through the plan": {"case": "step"},
        },
        {title: ({"name": name}, one(spread)) for name, title in TITLES.items()},
    ),
    "explorer_bytes": Table(
        "explorers",
        "bytes",
        {title: {"name": name, "case": "sizes"} for name, title in TITLES.items()},
        {
            "operations of the step": ({}, text("nodes", "{:,}")),
            "stays in the notebook": ({}, text("saved", "{:.1f} kB", 1e-3)),
            "goes only to the page": ({}, text("page", "{:.1f} kB", 1e-3)),
            "of it the script": ({}, text("script", "{:.1f} kB", 1e-3)),
        },
    ),
    "cards": Table(
        "explorers",
        "card",
        {
            name: {"name": name, "case": "card"}
            for name in (
                "timeline, 33 steps",
                "timeline, a live update",
                "error card, with the build that fails",
                "tensor of 20x20",
                "tensor of 1000x1000",
                "16 images of 3x32x32",
            )
        },
        {"time, bytes in all forms": ({}, one(spread))},
    ),
    "rivals": Table(
        "rivals",
        "other / ours",
        {
            "ours": {"contestant": "ours"},
            "torchvista 0.2.13": {"contestant": "torchvista"},
            "torchview 0.2.7, SVG of Graphviz": {"contestant": "torchview"},
            "torchlens 2.36.1, SVG of Graphviz": {"contestant": "torchlens"},
            "Model Explorer 0.1.34": {"contestant": "Model Explorer"},
            "netron 9.3.3": {"contestant": "netron"},
        },
        {title: ({"name": name}, one(rival)) for name, title in TITLES.items()}
        | {"loads from elsewhere": ({"name": "lenet"}, text("loads"))},
    ),
}


def updated(page: str) -> str:
    """A page with its tables generated again. Raises KeyError for the name of an unknown table."""
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match[2]].text()}{match[3]}", page)


def main() -> int:
    parser = record.parser(__doc__, writes=False)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    for file in PAGES:
        before = file.read_text(encoding="utf-8")
        after = updated(before)
        if options.check and before != after:
            difference = [*difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0)][2:8]
            print(
                f"{file.name} differs from the recorded runs; python benchmarks/tables.py writes it:",
                *difference,
                sep="\n",
            )
            return 1
        if not options.check:
            file.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
