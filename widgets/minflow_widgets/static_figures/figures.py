"""Figures with matplotlib where people expect them: the history of a run, a confusion matrix, filters, activations.

Each function draws into `ax`, or into a new figure, and returns the Axes, so that everything can be changed afterwards;
each has a form in plain text for terminals. matplotlib is imported at the first figure. Names are drawn as they are,
never as formulas. Read next: `../curve/loss_curve.py`, the curve that moves while a run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError, ShapeError, need
from minflow.views.text.sparkline import curve_line, table
from minflow.views.text.listing import clean

from ..curve.arguments import as_number

COLORS = ("#1f5fa8", "#b5470b", "#1d7a46", "#7b3fa0")
STYLES = ("-", "--", ":", "-.")
RED = "#b42318"
GRID = "#d0d7de"
GAP = "#8c959f"  # between images, and where a number is NaN or infinite: a grey that no scale has
DOTS_BELOW = 50  # values, below which each is a dot on its line
SMOOTH_FROM = 5  # values in the window of a mean; a shorter one smooths nothing
WINDOWS = 40  # windows side by side in a line: how much of it a mean takes
FIRST = 64  # filters or channels that are drawn
SAMPLE = 100_000  # numbers of an activation, of which its quantiles are taken
CLASSES = 10_000  # in a confusion matrix, which has a number for each pair
WRITTEN = 20  # classes, up to which the numbers are written into the cells


def axes(ax: Any, what_for: str, size: tuple[float, float] = (7.2, 3.6)) -> Any:
    """The Axes to draw into: those given, else new ones."""
    if ax is not None:
        return ax
    pyplot = need("matplotlib.pyplot", what_for, "matplotlib")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def plain(x: Any) -> str:
    """A name as matplotlib shows it: no control characters, and no leading underscore, which would hide it."""
    text = clean(str(x))
    return " " + text if text.startswith("_") else text


def array_of(x: Any) -> np.ndarray:
    """The numbers of a tensor, an array, or lists."""
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)


def numbers_of(x: Any, what: str, hint: str) -> np.ndarray:
    """The same as float64, a copy; DTypeError for what is no numbers, and for complex ones."""
    try:
        array = array_of(x)
        if array.dtype.kind == "c":
            raise TypeError
        return np.array(array, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(f"{what}: these are no numbers", values={"got": described(x)}, hint=hint) from error


def described(x: Any) -> str:
    if isinstance(x, type):
        return f"the class {x.__name__}"
    dtype = getattr(x, "dtype", None)
    told = f" of {dtype}" if dtype is not None else f" {x!r}" if isinstance(x, str | int | float | list | tuple) else ""
    return clean(type(x).__name__ + told)[:60]


def several(first: Any, what: str) -> int:
    """How many are drawn at most."""
    if isinstance(first, bool) or not isinstance(first, int | np.integer) or first < 1:
        raise DTypeError(f"{what}: first is how many are drawn", values={"got": described(first)}, hint=f"first={FIRST}")
    return int(first)


# ---- history ---------------------------------------------------------------------------------------------------------


def grown(steps: np.ndarray, values: np.ndarray, step: float, value: float) -> tuple[np.ndarray, np.ndarray]:
    """Both with one number more: views of an array that has room for as many again, so that a long run costs no more
    per step."""
    n, table = steps.size, steps.base
    mine = isinstance(table, np.ndarray) and table is values.base and table.shape[:1] == (3,) and table.dtype == np.float64
    # somebody else's, or full, or another History has gone on in it
    if not mine or n == table.shape[1] or table[2, 0] != n:
        table = np.empty((3, max(2 * n, 64)))
        table[0, :n], table[1, :n] = steps, values
    table[0, n], table[1, n], table[2, 0] = step, value, n + 1
    return table[0, : n + 1], table[1, : n + 1]


class History:
    """Numbers of a run by name, to be drawn and told: `History(curve).plot()`.

    source: a curve (anything with `.data`), or a mapping of names to values, or to (steps, values). Without a source it
    is empty: `history.add(step, loss=0.5)` fills it.

    >>> History({"loss": [0.9, 0.5, 0.6]})
    loss █▁▂ 0.6  min 0.5 at 1, max 0.9 at 0
    """

    def __init__(self, source: Any = None):
        self.data: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        mapping = getattr(source, "data", source)
        if mapping is not None and not isinstance(mapping, Mapping):
            raise DTypeError(f"History: a {type(source).__name__} has no series", hint="a curve, or {'loss': [0.9, 0.5]}")
        for name, entry in (mapping or {}).items():
            pair = isinstance(entry, tuple) and len(entry) == 2 and all(np.ndim(part) == 1 for part in entry)
            what, hint = f"History: {clean(str(name))}", "{'loss': [0.9, 0.5]}, or {'loss': (steps, values)}"
            values = numbers_of(entry[1] if pair else entry, what, hint)
            steps = numbers_of(entry[0], what, hint) if pair else np.arange(values.size, dtype=np.float64)
            if values.ndim != 1 or steps.shape != values.shape:
                raise ShapeError(f"History: {name} has values of shape {list(values.shape)} and steps of shape {list(steps.shape)}",
                                 hint="as many steps as values, in one row each")  # fmt: skip
            self.data[str(name)] = steps, values

    def add(self, step: float | None = None, **values: float) -> None:
        """Append one number a name at `step` (default: the next one)."""
        last = max((steps[-1] for steps, _ in self.data.values() if steps.size), default=-1.0)
        at = last + 1 if step is None else as_number("step", step, "History.add")
        for name, value in {name: as_number(name, value, "History.add") for name, value in values.items()}.items():
            self.data[name] = grown(*self.data.get(name, (np.empty(0), np.empty(0))), at, value)

    def plot(self, *names: str, ax: Any = None, log: bool = False) -> Any:
        """The series as lines; returns the Axes (of the first series).

        names: which ones (default: all).  log: logarithmic scale of the first axis. Series whose names end in the same
        word (`loss`, `val_loss`) share an axis; each further word has an axis of its own at the right. From 200 values
        on the raw line is faint under its mean, whose window the legend tells; the first NaN is marked.
        """
        unknown = [name for name in names if name not in self.data]
        if unknown:
            raise DTypeError(f"History.plot: there is no series {unknown[0]!r}", hint=f"there are {', '.join(self.data) or 'none'}")
        first = axes(ax, "history.plot()")
        scales: dict[str, Any] = {}
        handles = []
        for k, name in enumerate(names or self.data):
            word = name.lower().rsplit("_", 1)[-1].rsplit(" ", 1)[-1]
            if word not in scales:
                scales[word] = self.scale(first, len(scales), plain(word))
            handles += self.line(scales[word], name, COLORS[k % len(COLORS)], STYLES[(k + k // len(COLORS)) % len(STYLES)])
        # without one there is no such scale
        if log and any((line.get_ydata() > 0).any() for line in first.get_lines()):
            first.set_yscale("log")
        first.set_xlabel("step")
        first.grid(True, alpha=0.3)
        if handles:
            # Above the plot: axes at the right are drawn over what stands inside.
            legend = first.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=9, frameon=False)
            for text in legend.get_texts():
                text.set_parse_math(False)
        return first

    @staticmethod
    def scale(first: Any, number: int, word: str) -> Any:
        """The axis for a word: the first one's own, then others at the right, each further out."""
        ax = first if number == 0 else first.twinx()
        if number > 1:
            ax.spines["right"].set_position(("axes", 1 + 0.16 * (number - 1)))
        ax.set_ylabel(word, parse_math=False)
        return ax

    def line(self, ax: Any, name: str, color: str, style: str) -> list:
        """One series; what the legend shall tell of it."""
        steps, values = self.data[name]
        finite = np.isfinite(values)
        shown = np.where(finite, values, np.nan)
        label = plain(name)
        handles = []
        window = values.size // WINDOWS
        if window >= SMOOTH_FROM and finite.any():
            means_at, means = smooth(steps, shown, window)
            ax.plot(steps, shown, color=color, alpha=0.25, linewidth=1)
            handles += ax.plot(means_at, means, color=color, linestyle=style, linewidth=2, label=f"{label}, mean of {window}")
        else:
            marker = "." if values.size < DOTS_BELOW else ""
            handles += ax.plot(steps, shown, color=color, linestyle=style, marker=marker, label=label)
        if not finite.all():
            at = float(steps[np.argmin(finite)])
            what = "NaN" if np.isnan(values[np.argmin(finite)]) else "inf"
            handles.append(ax.axvline(at, color=RED, linestyle=":", label=f"{label} is {what} from step {at:g}"))
        return handles

    def text(self) -> str:
        """A line for each series: bars, the last value, the least and the greatest with their steps."""
        return "\n".join(curve_line(name, steps, values) for name, (steps, values) in self.data.items()) or "no values"

    def __repr__(self) -> str:
        return self.text()


def smooth(steps: np.ndarray, values: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Means over `window` values, without those that are NaN; steps and values of the same windows: no false start."""
    ones = np.ones(window)
    good = np.isfinite(values)
    with np.errstate(all="ignore"):
        means = np.convolve(np.where(good, values, 0.0), ones, "valid") / np.convolve(good, ones, "valid")
    return np.convolve(steps, ones, "valid") / window, means


# ---- confusion matrix ------------------------------------------------------------------------------------------------


def confusion_counts(targets: Any, predictions: Any, classes: int | None = None) -> np.ndarray:
    """int64 (classes, classes): row i, column j says how often class i was taken for class j.

    targets: (N,) integers.  predictions: (N,) integers, or (N, classes) scores, of which the greatest counts.
    """
    true, guess = whole(targets, "targets"), array_of(predictions)
    if guess.ndim == 2 and guess.shape[1] > 1:
        classes = max(classes or 0, guess.shape[1])
        guess = guess.argmax(axis=1)
    guess = whole(guess, "predictions")
    if true.shape != guess.shape:
        raise ShapeError(f"confusion_matrix: {true.size} targets and {guess.size} predictions", hint="one prediction for each target")
    least, most = (min(true.min(), guess.min()), max(true.max(), guess.max())) if true.size else (0, -1)
    classes = max(classes or 0, int(most) + 1)
    if least < 0 or not classes:
        raise DTypeError(f"confusion_matrix: classes are 0, 1, 2, ...; got {int(least)}" if true.size else "confusion_matrix: no targets")
    if classes > CLASSES:
        raise DTypeError(f"confusion_matrix: {classes} classes are more than {CLASSES}", hint="number the classes 0, 1, 2, ...")
    return np.bincount(true * classes + guess, minlength=classes * classes).reshape(classes, classes)


def whole(x: Any, what: str) -> np.ndarray:
    """One class for each sample, int64; DTypeError for shares, words and NaN, which would else count for another
    class."""
    hint = "integers; for a probability (p > 0.5).int(), for words np.unique(words, return_inverse=True)[1]"
    numbers = numbers_of(x, f"confusion_matrix: {what}", hint).reshape(-1)
    if not (np.isfinite(numbers) & (numbers == np.round(numbers)) & (abs(numbers) < 2**53)).all():
        raise DTypeError(f"confusion_matrix: {what} are whole numbers", values={"got": described(x)}, hint=hint)
    return numbers.astype(np.int64)


def how_many(names: Sequence[Any] | None) -> int | None:
    """How many classes have names, where they have."""
    if names is not None and not hasattr(names, "__len__"):
        raise DTypeError("confusion_matrix: names is a list", values={"got": described(names)}, hint='names=["cat", "dog"]')
    return len(names) if names is not None else None


def class_names(names: Sequence[Any] | None, classes: int) -> list[str]:
    if names is not None and len(names) < classes:
        raise ShapeError(f"confusion_matrix: {len(names)} names for {classes} classes", hint="a name for each class, in their order")
    return [plain(name) for name in names[:classes]] if names is not None else [str(i) for i in range(classes)]


def confusion_matrix(
    targets: Any, predictions: Any, names: Sequence[Any] | None = None, *, normalize: bool = False, ax: Any = None
) -> Any:
    """How often class i (row) was taken for class j (column); returns the Axes.

    targets, predictions: see `confusion_counts`.  names: of the classes.  normalize: shares of each row, not counts.
    Right answers are blue, mistakes orange on a scale of their own: one mistake in a thousand is seen as well.
    """
    counts = confusion_counts(targets, predictions, how_many(names))
    words, n = class_names(names, len(counts)), len(counts)
    rows = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(rows, 1)
    side = min(3.0 + 0.34 * n, 9.0)
    ax = axes(ax, "confusion_matrix()", (side + 0.8, side))
    right, most = np.eye(n, dtype=bool), shares[~np.eye(n, dtype=bool)].max(initial=0.0)
    ax.imshow(np.where(right, shares, np.nan), cmap="Blues", vmin=0, vmax=1)
    ax.imshow(np.where(right | (counts == 0), np.nan, shares), cmap="Oranges", vmin=-most / 2, vmax=most * 2 or 1)
    if n <= WRITTEN:
        for edge in range(1, n):
            ax.axhline(edge - 0.5, color=GRID, linewidth=0.5)
            ax.axvline(edge - 0.5, color=GRID, linewidth=0.5)
    every = range(0, n, max(1, n // 40))
    turned = 0 if max(map(len, words)) <= 3 else 60
    ax.set_xticks(list(every), [words[i] for i in every], parse_math=False, rotation=turned)
    ax.set_yticks(list(every), [words[i] for i in every], parse_math=False)
    if n <= WRITTEN:
        for i in range(n):
            for j in range(n):
                if counts[i, j]:
                    content = f"{shares[i, j]:.2f}" if normalize else str(counts[i, j])
                    color = "white" if i == j and shares[i, j] > 0.5 else "black"
                    ax.text(j, i, content, ha="center", va="center", color=color, fontsize=9 if n <= 12 else 7)
    ax.set_xlabel("predicted\nblue: right, orange: wrong; dark: often in its row")
    ax.set_ylabel("true")
    ax.set_title(f"{np.trace(counts)} of {counts.sum()} right ({np.trace(counts) / max(counts.sum(), 1):.1%})")
    return ax


def confusion_text(targets: Any, predictions: Any, names: Sequence[Any] | None = None) -> str:
    """The confusion matrix as a table."""
    counts = confusion_counts(targets, predictions, how_many(names))
    words = class_names(names, len(counts))
    rows = [[word, *[str(n) if n else "." for n in row]] for word, row in zip(words, counts.tolist(), strict=True)]
    lines = table(["true \\ predicted", *words], rows, right=range(1, len(words) + 1))
    return "\n".join([*lines, f"{np.trace(counts)} of {counts.sum()} right"])


# ---- filters and activations -----------------------------------------------------------------------------------------


def mosaic(tiles: np.ndarray, columns: int) -> np.ndarray:
    """Tiles (n, H, W) or (n, H, W, 3) in rows of `columns`, a line of NaN between them."""
    n, height, width = tiles.shape[:3]
    rows = -(-n // columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1, *tiles.shape[3:]), np.nan)
    for k, tile in enumerate(tiles):
        y, x = k // columns * (height + 1), k % columns * (width + 1)
        sheet[y : y + height, x : x + width] = tile
    return sheet


def draw_tiles(ax: Any, tiles: np.ndarray, columns: int, title: str, what: str) -> Any:
    """The tiles as one image: colours where they have three channels, else blue below zero and red above it.

    what: one number of a tile, in a word, for the colour bar.
    """
    bad = int((~np.isfinite(tiles)).sum())
    finite = tiles[np.isfinite(tiles)]
    if tiles.ndim == 4:
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        sheet = (mosaic(tiles, columns) - low) / ((high - low) or 1.0)
        ax.imshow(np.nan_to_num(sheet, nan=0.57, posinf=1.0, neginf=0.0))
    else:
        most = float(np.abs(finite).max()) if finite.size else 1.0
        signed = bool(finite.size) and finite.min() < 0
        scale = {"cmap": "RdBu_r", "vmin": -most, "vmax": most} if signed else {"cmap": "viridis", "vmin": 0, "vmax": most or 1.0}
        picture = ax.imshow(np.where(np.isfinite(sheet := mosaic(tiles, columns)), sheet, np.nan), **scale)
        ax.figure.colorbar(picture, ax=ax, shrink=0.8, label=what)
    ax.set_facecolor(GAP)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title + (f"; {bad} numbers are NaN or infinite" if bad else ""), parse_math=False, fontsize=10)
    return ax


def filters(layer: Any, *, shape: tuple[int, ...] | None = None, first: int = FIRST, ax: Any = None) -> Any:
    """The filters of a convolution as images; returns the Axes.

    layer: a module with a `weight`, or the weights: (F, C, H, W) or (F, H, W). With one channel or three (colours) each
    filter is an image; with others a row of images, one for each channel.  shape: of each row of a Linear's weights as
    an image, such as (28, 28).  first: how many filters, and channels, at most.
    """
    hint, first = "a layer with a weight, such as model.conv1, or its weights", several(first, "filters")
    weights = numbers_of(getattr(layer, "weight", layer), "filters", hint)
    if isinstance(shape, int):
        shape = (1, shape)
    if shape is not None and weights.ndim == 2:
        if int(np.prod(shape)) != weights.shape[1]:
            raise ShapeError(f"filters: rows of {weights.shape[1]} numbers are no images of shape {list(shape)}",
                             hint="shape=(height, width) or (channels, height, width)")  # fmt: skip
        weights = weights.reshape(-1, *shape)
    weights = weights[:, None] if weights.ndim == 3 else weights
    if weights.ndim != 4 or not weights.size:
        raise ShapeError(f"filters: weights of shape {list(weights.shape)} are no filters",
                         hint="(filters, channels, height, width); of a Linear: filters(layer, shape=(28, 28))")  # fmt: skip
    many, channels, height, width = weights.shape
    shown = weights[:first]
    title = f"weights: {many} filters of {channels} x {height} x {width}" + (f", the first {first}" if many > first else "")
    if channels in (1, 3):
        tiles = shown[:, 0] if channels == 1 else shown.transpose(0, 2, 3, 1)
        columns = int(np.ceil(np.sqrt(len(tiles))))
        title += "; its three channels as colours" if channels == 3 else ""
    else:
        shown = weights[: min(first, 24), : min(first, 24)]
        title = f"weights: {many} filters (rows) of {channels} channels (columns), {height} x {width} each"
        title += f", the first {shown.shape[0]} and {shown.shape[1]}" if shown.shape[:2] != weights.shape[:2] else ""
        tiles, columns = shown.reshape(-1, height, width), shown.shape[1]
    return draw_tiles(axes(ax, "filters()", (6.0, 5.0)), tiles, columns, title, "weight")


def outputs_of(model: Any, x: Any) -> dict[str, list[np.ndarray]]:
    """The results of each innermost layer, by its name, from one run without gradients in eval mode; nothing stays
    changed."""
    from minflow import no_grad

    if isinstance(model, type) or not hasattr(model, "named_modules"):
        raise DTypeError("activations: this is no model", values={"got": described(model)}, hint="activations(model, x), an nn.Module")
    found: dict[str, list[np.ndarray]] = {}
    modules = dict(model.named_modules())
    flags = [(module, module.training) for module in modules.values()]
    handles = []

    def keep(name: str):
        def hook(module, args, output):
            if hasattr(output, "numpy"):
                found.setdefault(name, []).append(array_of(output).copy())

        return hook

    try:
        for name, module in modules.items():
            if len(modules) == 1 or name and not any(other.startswith(name + ".") for other in modules):
                handles.append(module.register_forward_hook(keep(name or type(module).__name__)))
        model.eval()
        with no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in flags:
            module.training = training
    return found


def activations(model: Any, x: Any, layer: str | None = None, *, first: int = FIRST, ax: Any = None) -> Any:
    """What the layers of a model give for `x`; returns the Axes.

    Without `layer`: for each innermost layer where its numbers lie: a box for the middle half, a line from the 5th to
    the 95th percentile, a stroke at the median, and the share of zeros in words. With the name of a layer
    ("features.0"): its channels for the first image, or (N, F) results as a matrix; of a layer that ran several times,
    its last call.
    """
    first, found = several(first, "activations"), outputs_of(model, x)
    if layer is None:
        return draw_ranges(found, ax)
    layer = next((name for name, module in model.named_modules() if module is layer), str(layer) if isinstance(layer, int) else layer)
    if layer not in found:
        raise DTypeError(f"activations: no layer {layer!r} ran", hint=f"these did: {', '.join(map(clean, found)) or 'none'}")
    numbers = found[layer][-1].astype(np.float64)
    if numbers.ndim == 4:
        tiles, what = numbers[0, :first], f"{numbers.shape[1]} channels of {numbers.shape[2]} x {numbers.shape[3]}"
        what += f", the first {first}" if numbers.shape[1] > first else ""
        what += f", for image 0 of {numbers.shape[0]}"
        columns = int(np.ceil(np.sqrt(len(tiles))))
    elif numbers.ndim == 2:
        tiles, columns, what = numbers[None, :first], 1, f"{numbers.shape[0]} samples (rows) x {numbers.shape[1]} features"
    else:
        raise ShapeError(f"activations: {layer} gives shape {list(numbers.shape)}", hint="(N, C, H, W) and (N, F) can be drawn")
    what += f"; call {calls} of {calls}" if (calls := len(found[layer])) > 1 else ""
    return draw_tiles(axes(ax, "activations()", (6.0, 5.0)), tiles, columns, f"{plain(layer)}: {what}", "activation")


def ranges(found: dict[str, list[np.ndarray]]) -> list[tuple[str, np.ndarray, float, int]]:
    """(name, percentiles 5, 25, 50, 75, 95, share of zeros, how many numbers are not finite) for each layer."""
    rows = []
    for name, arrays in found.items():
        flat = np.concatenate([np.asarray(a).reshape(-1) for a in arrays]).astype(np.float64)
        finite = flat[np.isfinite(flat)]
        some = finite[:: max(1, -(-finite.size // SAMPLE))]
        points = np.percentile(some, (5, 25, 50, 75, 95)) if some.size else np.full(5, np.nan)
        rows.append((name, points, float((finite == 0).mean()) if finite.size else 0.0, int(flat.size - finite.size)))
    return rows


def notes(zeros: float, bad: int) -> str:
    return ", ".join(([f"{zeros:.0%} zeros"] if zeros >= 0.005 else []) + ([f"{bad} NaN or inf"] if bad else []))


def called(name: str, calls: int) -> str:
    """`relu (3 calls)`: the numbers of all of them are taken together."""
    return plain(name) + (f" ({calls} calls)" if calls > 1 else "")


def draw_ranges(found: dict[str, list[np.ndarray]], ax: Any) -> Any:
    rows = ranges(found)
    ax = axes(ax, "activations()", (7.2, min(1.2 + 0.3 * len(rows), 14.0)))
    for y, (_, points, zeros, bad) in enumerate(rows):
        if np.isfinite(points).all():
            ax.hlines(y, points[0], points[4], color=COLORS[0])
            ax.barh(y, points[3] - points[1], left=points[1], height=0.6, color="#b9d2ee", edgecolor=COLORS[0])
            ax.plot([points[2]] * 2, [y - 0.3, y + 0.3], color=COLORS[1], linewidth=2)
        if notes(zeros, bad):
            place, color = (1.01, y), RED if bad else "#57606a"
            ax.annotate(notes(zeros, bad), place, xycoords=("axes fraction", "data"), va="center", color=color, fontsize=9)
    ax.set_yticks(range(len(rows)), [called(name, len(found[name])) for name, *_ in rows], parse_math=False)
    ax.set_title("what each layer gives", fontsize=10)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.axvline(0, color="#57606a", linewidth=0.8, linestyle=":")
    ax.set_xlabel("value\nbox: middle half of the numbers; line: 5 % to 95 %; stroke: median")
    return ax


def activations_text(model: Any, x: Any) -> str:
    """The ranges of `activations(model, x)` as a table."""
    found = outputs_of(model, x)
    rows = ranges(found)
    cells = [[called(name, len(found[name])), *[f"{p:.4g}" for p in points], notes(zeros, bad)] for name, points, zeros, bad in rows]
    return "\n".join(table(["layer", "5 %", "25 %", "median", "75 %", "95 %", ""], cells, right=range(1, 6)))
