"""The explorer's picture as SVG for saved notebooks, and as text for terminals and screen readers. Pure functions.

The widget's script draws the same data with the same sizes and colors. Read next: `../html/page.py`.
"""

from __future__ import annotations

from functools import partial

from ..draw import svg_writer as svg
from ..draw.fonts import text_width, truncated_words, wrap_to_width
from ..draw.theme import AMBER, AMBER_TEXT, BLUE, GREEN, LINE, MUTED, PALE_AMBER, PALE_BLUE, PALE_GREEN, PLATE, VIOLET
from ..text.listing import align_columns, clean, count
from .grid import COLUMN_NAMES_Y, PADDING, TEXT_GAP, Grid, forward_words, mark_text, notes_of, update_words

COLUMN_FILLS, COLUMN_STROKES = (PALE_BLUE, PALE_AMBER, PALE_GREEN), (BLUE, AMBER, GREEN)  # forward, backward, update
LINE_STYLES = {
    "f": (BLUE, ""),
    "b": (AMBER, "6 3"),
    "u": (GREEN, ""),
    "k": (VIOLET, "2 3"),
    "bh": (AMBER, ""),
    "kh": (VIOLET, ""),
}
NOTE_WIDTH = 460  # width in pixels that a note below a narrow picture may have
# kind of line -> its legend
LEGEND_TEXTS = {"k": "dotted: values kept for backward", "b": "dashed: gradients"}


def legend_text(view: dict) -> str:
    """Legend of the lines in this picture that are not solid; empty for a graph without backward."""
    kinds = {kind for kind, _ in view["paths"]}
    said = "; ".join(words for kind, words in LEGEND_TEXTS.items() if kind in kinds)
    return said and f"{said[0].upper()}{said[1:]}."


def svg_of(view: dict, title: str, note: str = "") -> str:
    """The picture. title: its name for screen readers.  note: a line under it."""
    below = [
        line
        for words in (legend_text(view), note)
        if words
        for line in wrap_to_width(words, max(view["w"] - 24, NOTE_WIDTH))
    ]
    width = max([view["w"], *[text_width(line) + 24 for line in below]])
    parts = [svg.rect(x, y, w, h, rx=6, fill="none", stroke=LINE) for x, y, w, h, _ in view["frames"]]
    for kind, (color, dash) in LINE_STYLES.items():
        d = "".join([d for known, d in view["paths"] if known == kind])
        parts.append(svg.path(d, fill="none", stroke=color, stroke_dasharray=dash))
    parts += [svg.label(x, COLUMN_NAMES_Y, words, bold=True) for x, words in view["heads"]]
    for _, kind, y, h, _, _, _, boxes in view["rows"]:
        parts += [box_svg(kind, column, x, y, w, h, *texts) for column, x, w, *texts in boxes]
    parts += [svg.label(12, view["h"] + 12, *below, text_color=MUTED)] if below else []
    return svg.picture(parts, width, view["h"] + 6 + 15 * len(below), title, font_size=11, **{"xml:space": "preserve"})


def box_svg(
    kind: str,
    column: int,
    x: float,
    y: float,
    w: float,
    h: float,
    bold: str,
    faint: str,
    second: str,
    mark: str,
    third: str,
) -> str:
    bold = bold.lstrip("▸▾ ")  # signs to click on, which a picture that remains does not have
    line = y + (15 if h > 30 else h / 2 + 4)
    if kind == "open":  # the header of a module, which has no box
        out = svg.label(x + PADDING, line, bold, bold=True)
        at = x + PADDING + text_width(bold, bold=True) + TEXT_GAP
        return out + (svg.label(at, line, faint, text_color=MUTED) if faint else "")
    fill, stroke = (PLATE, LINE) if kind in ("input", "output") else (COLUMN_FILLS[column], COLUMN_STROKES[column])
    if kind == "state":
        fill, stroke = COLUMN_FILLS[2], COLUMN_STROKES[2]
    dash = "6 3" if column == 1 or mark == "gone" else None
    round_ = h / 2 if kind in ("input", "output", "state") and h < 30 else 4
    out = svg.rect(x, y, w, h, rx=round_, fill=fill, stroke=stroke, stroke_dasharray=dash)
    words = [svg.span(bold, font_weight="bold")] + ([svg.span(faint, dx=8, fill=MUTED)] if faint else [])
    out += svg.element("text", *words, x=x + 8, y=line)
    out += "".join([svg.text(x + 8, y + below, line) for below, line in ((29, second), (42, third)) if line])
    return out + (
        svg.text(x + w - 6, line, mark, text_anchor="end", font_weight="bold", fill=AMBER_TEXT) if mark else ""
    )


def text_of(grid: Grid, title: str) -> str:
    """The rows as lines of text: name, shapes, number of backward operations, updates."""
    record = grid.record
    lines: list[tuple[str, str]] = []
    for row in grid.rows:
        name, what, shapes = forward_words(record, row)
        what = ", ".join(x for x in (truncated_words(what, 220), notes_of(record, row)) if x)
        sign = "▾ " if row.is_open else "▸ " if row.opens else "· "
        left = "  " * min(row.level, 20) + sign + f"{name}  {what}".rstrip()
        right = "" if row.is_open else shapes
        if row.parts[1].nodes and not row.is_open:
            right += f"; backward {count(len(row.parts[1].nodes), 'op')}" + (
                f" before {row.ahead}" if row.ahead else ""
            )
        if not row.is_open and row.states and row.item.kind in ("module", "fold", "op"):
            right += "; " + ": ".join(x for x in update_words(record, row) if x)
        elif row.item.kind in ("state", "rest") and row.parts[2].nodes:
            right += ("; " if right else "") + update_words(record, row)[1]
        signs = [
            f"{word} {sign}"
            for word, sign in zip(("forward", "backward", "update"), map(partial(mark_text, row), range(3)))
            if sign
        ]
        right += f"  [{', '.join(signs)}]" if signs else ""
        lines.append((clean(left), clean(right)))
    return "\n".join([clean(title), *align_columns(lines)])
