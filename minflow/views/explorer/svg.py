"""The explorer's picture as SVG for saved notebooks, and as text for terminals and screen readers. Pure functions.

The widget's script draws the same data with the same sizes and colours. Read next: `../html/page.py`.
"""

from __future__ import annotations

from functools import partial
from html import escape

from .fit import fitted_words
from .layout import Layout, counted, forward_words, mark_text, update_words
from ..text.listing import clean, columns

FILLS = ("#eaf2fb", "#fdf1e7", "#eaf6ee")  # forward, backward, update
STROKES = ("#1f5fa8", "#b5470b", "#1d7a46")
LINES = {"f": ("#1f5fa8", ""), "b": ("#b5470b", "6 3"), "u": ("#1d7a46", ""), "k": ("#6e5494", "2 3"),
         "bh": ("#b5470b", ""), "kh": ("#6e5494", "")}  # fmt: skip
INK, FAINT = "#24292f", "#57606a"
# kind of line -> what it is, where there is one
KEYS = {"k": "dotted: values kept for backward", "b": "dashed: gradients"}


def key_of(view: dict) -> str:
    """What the lines of this picture are, other than the plain ones; nothing for a graph without backward."""
    kinds = {kind for kind, _ in view["paths"]}
    said = "; ".join(words for kind, words in KEYS.items() if kind in kinds)
    return said and f"{said[0].upper()}{said[1:]}."


def svg_of(view: dict, title: str, note: str = "") -> str:
    """The picture. title: what it is called by a screen reader.  note: a line under it."""
    below = [line for line in (key_of(view), clean(note)) if line]
    width, height = view["w"], view["h"] + 2 + 16 * len(below)
    parts = [f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for x, y, w, h, level in view["frames"]:
        fill = "#f6f8fa" if level % 2 == 0 else "#ffffff"
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" fill="{fill}" stroke="#b6bfca"/>')
    for kind, d in view["paths"]:
        color, dash = LINES[kind]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<path d="{d}" fill="none" stroke="{color}"{dashed}/>')
    for x, words in view["heads"]:
        parts.append(f'<text x="{x:g}" y="17" font-weight="bold">{escape(words)}</text>')
    for _, kind, y, h, _, _, _, boxes in view["rows"]:
        for column, x, w, *texts in boxes:
            parts.append(box_svg(kind, column, x, y, w, h, *texts))
    for i, line in enumerate(below):
        parts.append(f'<text x="12" y="{view["h"] + 10 + 16 * i}" fill="{FAINT}">{escape(line)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(clean(title), True)}" font-family="Helvetica, Arial, sans-serif" font-size="11" fill="{INK}">'
        + "".join(parts)
        + "</svg>"
    )


def box_svg(kind: str, column: int, x: float, y: float, w: float, h: float, bold: str, faint: str, second: str, mark: str,
            third: str) -> str:  # fmt: skip
    out = ""
    if kind != "open":
        fill, stroke = ("#f6f8fa", "#57606a") if kind in ("input", "output") else (FILLS[column], STROKES[column])
        if kind == "state":
            fill, stroke = FILLS[2], STROKES[2]
        dash = ' stroke-dasharray="6 3"' if column == 1 or mark == "gone" else ""
        round_ = h / 2 if kind in ("input", "output", "state") and h < 30 else 4
        out = f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{round_:g}" fill="{fill}" stroke="{stroke}"{dash}/>'
    line = y + (15 if h > 30 else h / 2 + 4)
    faint_part = f'<tspan dx="8" fill="{FAINT}">{escape(faint)}</tspan>' if faint else ""
    out += f'<text x="{x + 8:g}" y="{line:g}" xml:space="preserve"><tspan font-weight="bold">{escape(bold)}</tspan>{faint_part}</text>'
    for below, words in ((29, second), (42, third)):
        out += f'<text x="{x + 8:g}" y="{y + below:g}">{escape(words)}</text>' if words else ""
    if mark:
        out += f'<text x="{x + w - 6:g}" y="{line:g}" text-anchor="end" font-weight="bold" fill="#7a45d6">{escape(mark)}</text>'
    return out


def text_of(layout: Layout, title: str) -> str:
    """The same rows as lines: name, shapes, how many backward operations, what is updated."""
    record = layout.record
    lines: list[tuple[str, str]] = []
    for row in layout.rows:
        name, what, shapes = forward_words(record, row)
        what = fitted_words(what, 220)
        sign = "▾ " if row.is_open else "▸ " if row.item.kind in ("module", "fold") else "· "
        left = "  " * min(row.level, 20) + sign + f"{name}  {what}".rstrip()
        right = "" if row.is_open else shapes
        if row.parts[1].nodes and not row.is_open:
            right += f"; backward {counted(len(row.parts[1].nodes), 'op')}" + (f" before {row.ahead}" if row.ahead else "")
        if not row.is_open and row.states and row.item.kind in ("module", "fold", "op"):
            right += "; " + ": ".join(x for x in update_words(record, row) if x)
        elif row.item.kind in ("state", "rest") and row.parts[2].nodes:
            right += ("; " if right else "") + update_words(record, row)[1]
        signs = [f"{word} {sign}" for word, sign in zip(("forward", "backward", "update"), map(partial(mark_text, row), range(3))) if sign]
        right += f"  [{', '.join(signs)}]" if signs else ""
        lines.append((clean(left), clean(right)))
    return "\n".join([clean(title), *columns(lines)])
