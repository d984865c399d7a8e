"""Attention weights as a picture, with a row for each query, and as text: `attention(weights, symbols)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minflow.core.base.errors import ShapeError
from minflow.views.draw import theme
from minflow.views.text.tables import ruled_table

from .drawing import GAP_COLOR, axes, describe, font_families, literal, numbers_of, set_caption

MAX_WRITTEN_POSITIONS = 16  # up to this many positions, shares are written into the cells
# up to this many positions, the text has a column for each; beyond, the three strongest of each row
MAX_TABLE_POSITIONS = 24
MAX_POSITIONS = 128  # positions that are drawn, at most
WEIGHTS_HINT = "weights (T, T) or (heads, T, T), as softmax gives them; head=0 for one of them"


class AttentionTable:
    """The checked arguments: `shares` float64 (T, T), `masked` bool (T, T), `words`, the names of the positions."""

    def __init__(self, weights: Any, symbols: Any, head: int | None, mask: Any):
        shares = numbers_of(weights, "attention: weights", WEIGHTS_HINT)
        if shares.ndim == 4 and len(shares) == 1:
            shares = shares[0]
        if (
            shares.ndim not in (2, 3)
            or shares.shape[-1] != shares.shape[-2]
            or not 0 < shares.shape[-1] <= MAX_POSITIONS
        ):
            values = {"weights": f"shape {list(shares.shape)}"}
            raise ShapeError(
                f"attention: weights must be square, with at most {MAX_POSITIONS} positions",
                values=values,
                hint=WEIGHTS_HINT,
            )
        self.heads = "" if shares.ndim == 2 else f", mean of {len(shares)} heads"
        if head is not None:
            heads = len(shares) if shares.ndim == 3 else 1
            if isinstance(head, bool) or not isinstance(head, int | np.integer) or not 0 <= head < heads:
                raise ShapeError(
                    "attention: there is no such head",
                    values={"head": describe(head)},
                    hint=f"head=0 to {heads - 1}",
                )
            self.heads, shares = f", head {head}", shares[head] if shares.ndim == 3 else shares
        self.shares = shares = shares.mean(axis=0) if shares.ndim == 3 else shares
        n = len(shares)
        if symbols is None:
            symbols = range(n)
        if not hasattr(symbols, "__len__") or len(symbols) != n:
            got = f"{len(symbols)} of them" if hasattr(symbols, "__len__") else describe(symbols)
            values = {"weights": f"shape {list(shares.shape)}", "symbols": got}
            raise ShapeError(
                "attention: symbols must have one entry for each position", values=values, hint='symbols="3+4=7"'
            )
        self.words = [repr(str(s)) if str(s).isspace() else literal(s) for s in symbols]
        above = np.triu(np.ones((n, n), bool), 1)
        if mask is None:  # if no position attends to a later one, the weights are causal
            self.masked = above & (not shares[above].any())
        else:
            masked = numbers_of(mask, "attention: mask", "True where a position must not attend")
            if masked.shape != (n, n):
                values = {"weights": f"shape {list(shares.shape)}", "mask": f"shape {list(masked.shape)}"}
                raise ShapeError(
                    "attention: the mask must have the shape of the weights", values=values, hint="mask (T, T)"
                )
            self.masked = masked != 0

    def position_text(self, position: int) -> str:
        """A position as named in sentences."""
        return f"{self.words[position]} (position {position})"

    def strongest(self) -> str:
        """The result: the strongest attention among positions that have a choice."""
        n = len(self.shares)
        choice = (~self.masked).sum(axis=1) > 1
        known = np.where(np.isfinite(self.shares) & choice[:, None], self.shares, -np.inf)
        if not np.isfinite(known).any():
            return "no position has a choice"
        row, column = divmod(int(known.argmax()), n)
        whom = "itself" if row == column else self.position_text(column)
        return f"{self.position_text(row)} attends to {whom} with {self.shares[row, column]:.0%}, more than any other"

    def notes(self) -> list[str]:
        """Notes about rows that do not sum to 1, and about masked positions that are attended to."""
        sums = self.shares.sum(axis=1)
        bad = ~(np.abs(sums - 1) < 1e-3)
        through = int((self.masked & (self.shares != 0)).sum())
        notes = [f"{bad.sum()} of {len(sums)} rows do not sum to 1"] * bool(bad.any())
        return notes + [f"{through} masked positions are attended to"] * bool(through)

    def sentence(self) -> str:
        n, masked = len(self.shares), int(self.masked.sum())
        seen = f"{masked} of {n * n} pairs are masked" if masked else "each may attend to all"
        if masked and (self.masked == np.triu(np.ones((n, n), bool), 1)).all():
            seen = "each may attend to itself and those before it"
        return (
            "; ".join([f"Attention between {n} positions{self.heads}: {seen}", self.strongest(), *self.notes()]) + "."
        )

    def text(self) -> str:
        """The table of shares, then the sentence."""
        n = len(self.shares)
        cells = np.where(self.masked & (self.shares == 0), "x", np.char.mod("%.2f", self.shares))
        if n <= MAX_TABLE_POSITIONS:
            rows = [[str(i), word, *cells[i]] for i, word in enumerate(self.words)]
            lines = ruled_table(["", "attends to", *self.words], rows, right=range(2, n + 2))
        else:
            best = np.argsort(-np.nan_to_num(self.shares), axis=1, kind="stable")[:, :3]
            rows = [
                [
                    str(i),
                    word,
                    ", ".join(f"{self.position_text(j)} {cells[i, j]}" for j in best[i] if not self.masked[i, j]),
                ]
                for i, word in enumerate(self.words)
            ]
            lines = ruled_table(["", "who", "attends most to"], rows)
        return "\n".join([*lines, self.sentence()])


def attention(
    weights: Any,
    symbols: Sequence[Any] | str | None = None,
    *,
    head: int | None = None,
    mask: Any = None,
    ax: Any = None,
) -> Any:
    """Draw which position attends to which, darker for more; returns the Axes.

    weights: (T, T), the share that position i (row) gives to position j (column); or (heads, T, T), drawn as the
    mean, or one of them with `head`. Up to 128 positions.  symbols: a string of T letters, or a list of T names.
    mask: (T, T), True where a position must not attend, drawn hatched; default: causal if no position attends to a
    later one.
    The title names the strongest attention, and rows that do not sum to 1 or a violated mask.
    """
    looks = AttentionTable(weights, symbols, head, mask)
    alt, text = looks.sentence(), looks.text()
    look = {"parse_math": False, "fontfamily": font_families("".join(looks.words))}
    if not look["fontfamily"]:  # no font has these letters: show their positions instead
        looks.words = [str(i) for i in range(len(looks.words))]
        look["fontfamily"] = None
    n, words = len(looks.words), looks.words
    side = min(3.0 + 0.28 * n, 9.0)
    ax = axes(ax, "attention()", (side + 1.0, side))
    shown = np.ma.masked_invalid(np.where(looks.masked & (looks.shares == 0), np.nan, looks.shares))
    picture = ax.imshow(shown, cmap="Blues", vmin=0, vmax=max(1.0, shown.max() if shown.count() else 1.0))
    ax.set_facecolor(theme.PLATE)
    if looks.masked.any():
        hatch_cells(ax, looks.masked)
    if n <= MAX_WRITTEN_POSITIONS:
        for i, j in zip(*np.nonzero(~np.ma.getmaskarray(shown)), strict=True):
            content = f"{looks.shares[i, j]:.2f}".removeprefix("0")
            if content != ".00":
                color = theme.text_color_on("#" + bytes(picture.to_rgba(looks.shares[i, j], bytes=True)[:3]).hex())
                ax.text(j, i, content, ha="center", va="center", color=color, fontsize=9 if n <= 10 else 7)
    every = range(0, n, max(1, n // 40))
    ax.set_xticks(list(every), [words[i] for i in every], rotation=60 if max(map(len, words)) > 3 else 0, **look)
    ax.set_yticks(list(every), [words[i] for i in every], **look)
    ax.set_xlabel("attended position" + "\nhatched: masked" * bool(looks.masked.any()))
    ax.set_ylabel("attending position")
    title = "\n".join([looks.strongest(), *looks.notes()])
    ax.set_title(title, fontsize=9, **look)
    return set_caption(ax, alt, text)


def attention_text(
    weights: Any, symbols: Sequence[Any] | str | None = None, *, head: int | None = None, mask: Any = None
) -> str:
    """Attention weights as a table, x where masked; beyond 24 positions the three strongest of each row."""
    return AttentionTable(weights, symbols, head, mask).text()


def hatch_cells(ax: Any, cells: np.ndarray) -> None:
    """Hatch the selected cells."""
    from matplotlib.collections import PolyCollection

    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    squares = [corners + np.array((j, i)) for i, j in zip(*np.nonzero(cells), strict=True)]
    look: dict[str, Any] = {
        "facecolors": "none",
        "edgecolors": GAP_COLOR,
        "linewidths": 0,
        "hatch": "///",
        "rasterized": True,
    }
    ax.add_collection(PolyCollection(squares, **look))
