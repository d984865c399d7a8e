"""Functions shared by all figures: axes, literal names, conversion to arrays, and grids of images.

Like all static pictures, our figures have no background: lines are drawn on the notebook's page, and words are on
plates. matplotlib is imported for the first figure. Read next: `history.py`.
"""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError
from minflow.core.source_location import need
from minflow.views.draw import theme
from minflow.views.html.page import picture_bundle
from minflow.views.text.listing import clean

COLORS = theme.BLUE, theme.AMBER, theme.GREEN, theme.VIOLET
GRID_STYLE = {"color": theme.LINE, "linewidth": 0.5, "linestyle": (0, (1, 3))}
PLATE_STYLE = {"facecolor": theme.TEXT_PLATE, "linewidth": 0, "boxstyle": "round,pad=0.3"}  # of text outside any axis
GAP_COLOR = "#8c959f"  # between images, and for NaN or infinity: a gray that is in no color scale
DEFAULT_TILES = 64  # filters or channels that are drawn


def axes(ax: Any, what_for: str, size: tuple[float, float] = (7.2, 3.6)) -> Any:
    """The Axes to draw into: `ax`, or new ones."""
    if ax is not None:
        return ax
    pyplot = need("matplotlib.pyplot", what_for)
    return transparent(pyplot.figure(figsize=size, layout="constrained", FigureClass=captioned_figure()))


def detached_axes(what_for: str, size: tuple[float, float]) -> Any:
    """New Axes in a figure unknown to pyplot, so that a notebook does not show it automatically."""
    need("matplotlib.figure", what_for)
    return transparent(captioned_figure()(figsize=size, layout="constrained"))


def transparent(figure: Any) -> Any:
    ax = figure.subplots()
    figure.patch.set_visible(False)  # matplotlib_inline would paint white behind a transparent facecolor
    figure.add_artist(plate_artist()(zorder=-1))
    ax.set_facecolor("none")
    return style_axes(ax)


@functools.cache
def captioned_figure():
    """Figure class whose `said` (alt text, text) replaces the default display in notebooks."""
    from matplotlib.figure import Figure

    class Spoken(Figure):
        said: tuple[str, str] | None = None  # (the result in a sentence, the full text)

        def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
            return picture_bundle(svg_of(self), *self.said, fold_text=True) if self.said else {}

    Spoken.__name__ = Figure.__name__  # terminals print the class name
    return Spoken


def set_caption(ax: Any, alt: str, text: str) -> Any:
    """Attach these words to the figure of the Axes if it is ours. Returns the Axes."""
    if isinstance(ax.figure, captioned_figure()):
        ax.figure.said = alt, text
    return ax


def svg_of(figure: Any) -> str:
    """The figure as deterministic SVG; letters are paths, so that no font is needed."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "minflow"}):
        figure.savefig(file, format="svg", dpi=150, metadata={"Date": None, "Creator": None})
    return "<svg" + file.getvalue().partition("<svg")[2]


def style_axes(ax: Any) -> Any:
    """Style Axes of our own figures with colors that are readable on any page; others are unchanged."""
    if not ax.figure.patch.get_visible():
        for spine in ax.spines.values():
            spine.set_color(theme.LINE)
        ax.tick_params(color=theme.LINE, labelcolor=theme.TEXT_COLOR)
        for words in (ax.title, ax.xaxis.label, ax.yaxis.label):
            words.set_color(theme.TEXT_COLOR)
    return ax


@functools.cache
def plate_artist():
    """The class of the artist that draws plates behind all words of a figure, sized when they are drawn."""
    from matplotlib.artist import Artist
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.transforms import IdentityTransform

    class Plates(Artist):
        def __init__(self, zorder: float):
            super().__init__()
            self.set(zorder=zorder, in_layout=False)

        def draw(self, renderer) -> None:
            for ax in self.figure.axes:
                ax.get_tightbbox(renderer)  # lays out the axes and their title
                legend = ax.get_legend()
                said: list[Any] = [ax.title] * bool(ax.get_title()) + [legend] * (legend is not None)
                boxes = [words.get_window_extent(renderer) for words in said]
                for box in [*boxes, *[axis.get_tightbbox(renderer) for axis in (ax.xaxis, ax.yaxis)]]:
                    if box is not None and box.width and box.height:
                        look: dict[str, Any] = {
                            "facecolor": theme.TEXT_PLATE,
                            "linewidth": 0,
                            "boxstyle": "round,pad=3,rounding_size=4",
                        }
                        plate = FancyBboxPatch(box.p0, box.width, box.height, transform=IdentityTransform(), **look)
                        plate.set_figure(self.figure)
                        plate.draw(renderer)

    return Plates


def literal(x: Any) -> str:
    """A name that matplotlib shows literally: no control characters, and no leading underscore, which hides it."""
    text = clean(str(x))
    return " " + text if text.startswith("_") else text


def font_families(text: str) -> list[str]:
    """Font families for a text: if the default ones lack a letter, such as Chinese, also an installed font that has all
    of them; empty if there is none.
    """
    from matplotlib import rcParams

    usual = rcParams["font.family"]
    return list(covering_families("".join(sorted(set(text))), tuple(usual)))


@functools.cache
def covering_families(letters: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    from matplotlib import font_manager as fonts, ft2font

    def lacks(file: str) -> bool:
        known = ft2font.FT2Font(file).get_charmap()
        return any(ord(letter) not in known for letter in letters)

    if letters.isascii() or not lacks(fonts.findfont(fonts.FontProperties(family=list(usual)))):
        return usual
    others = [font for font in fonts.fontManager.ttflist if font.style == "normal" and "Last Resort" not in font.name]
    return next(((*usual, font.name) for font in others if not lacks(font.fname)), ())


def array_of(x: Any) -> np.ndarray:
    """The array of a tensor, an array, or lists."""
    return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)


def numbers_of(x: Any, what: str, hint: str) -> np.ndarray:
    """A copy as float64. Raises DTypeError for anything but real numbers."""
    try:
        array = array_of(x)
        if array.dtype.kind == "c":
            raise TypeError
        return np.array(array, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(f"{what} must be numbers", values={"got": describe(x)}, hint=hint) from error


def describe(x: Any) -> str:
    if isinstance(x, type):
        return f"the class {x.__name__}"
    dtype = getattr(x, "dtype", None)
    more = f" of {dtype}" if dtype is not None else f" {x!r}" if isinstance(x, str | int | float | list | tuple) else ""
    return clean(type(x).__name__ + more)[:60]


def evaluate(model: Any, x: Any) -> Any:
    """Output of the model for x without gradients, a Module in eval mode. Restores the mode."""
    from minflow import no_grad

    flags = [(module, module.training) for module in model.modules()] if hasattr(model, "modules") else []
    try:
        if flags:
            model.eval()
        with no_grad():
            return model(x)
    finally:
        for module, training in flags:
            module.training = training


def check_first(first: Any, what: str) -> int:
    """Check `first`, the number of tiles to draw."""
    if isinstance(first, bool) or not isinstance(first, int | np.integer) or first < 1:
        values = {"got": describe(first)}
        raise DTypeError(f"{what}: first must be a positive integer", values=values, hint=f"first={DEFAULT_TILES}")
    return int(first)


def mosaic(tiles: np.ndarray, columns: int) -> np.ndarray:
    """Arrange tiles (n, H, W) or (n, H, W, 3) in rows of `columns`, separated by lines of NaN."""
    n, height, width = tiles.shape[:3]
    rows = -(-n // columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1, *tiles.shape[3:]), np.nan)
    for k, tile in enumerate(tiles):
        y, x = k // columns * (height + 1), k % columns * (width + 1)
        sheet[y : y + height, x : x + width] = tile
    return sheet


def draw_tiles(ax: Any, tiles: np.ndarray, columns: int, title: str, what: str) -> Any:
    """Draw the tiles as one image: RGB if they have three channels, else blue below zero and red above.

    what: name of one element, for the color bar.
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
        scale = {"cmap": "viridis", "vmin": 0, "vmax": most or 1.0}
        if signed:
            scale = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
        picture = ax.imshow(np.where(np.isfinite(sheet := mosaic(tiles, columns)), sheet, np.nan), **scale)
        style_axes(ax.figure.colorbar(picture, ax=ax, shrink=0.8, label=what).ax)
    ax.set_facecolor(GAP_COLOR)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title + (f"; {bad} elements are NaN or infinite" if bad else ""), parse_math=False, fontsize=10)
    return ax
