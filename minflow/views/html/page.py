"""Records as HTML that works in dark themes, in saved and in untrusted notebooks, without scripts.

Pictures are an `<img>` with embedded SVG (in an untrusted notebook, an inline `<svg>` is stripped to loose text);
trees are nested `<details>` with inline styles. Text has the color of the page, backgrounds are transparent and rules
half transparent, so that they are visible on any page. No ids: equal records give equal HTML. Read next: `../show.py`.
"""

from __future__ import annotations

import base64
import functools
import re
import zlib
from html import escape
from pathlib import Path

from ..draw.theme import PALE_RED, RED_TEXT
from ..records.module import ModuleRecord, rows_of, rows_with_errors
from ..text.listing import clean, count, cut, module_totals
from ..text.trees import MAX_BYTES, outer_lines, outer_rows, within_limit
from ..words import say
from .script import lean, with_script

RULE_COLOR = "rgba(125,133,144,.55)"  # color of borders and rules
CARD_STYLE = (
    f"background:transparent;color:inherit;border:1px solid {RULE_COLOR};border-radius:6px;padding:8px;"
    "display:inline-block;max-width:100%;box-sizing:border-box"
)
# for an error inside a tree: readable red on a light plate
ERROR_STYLE = f"color:{RED_TEXT};background:{PALE_RED};margin:0;padding:2px 6px;border-radius:4px;white-space:pre-wrap"
NO_MATH = 'class="mathjax_ignore tex2jax_ignore"'  # without it, notebooks would typeset $x$ in names
ROW_STYLE = "font-family:monospace;font-size:12.5px;line-height:1.6;overflow-wrap:anywhere"
FAINT_STYLE = "opacity:.75"
# of a summary: continued lines align with its text
SUMMARY_STYLE = "cursor:pointer;padding-left:1.1em;text-indent:-1.1em"
# Smallest scale of a picture, at which letters of 11 pixels are 8 pixels high; and the least width of a cell.
MIN_SCALE, MIN_CELL_WIDTH = 0.75, 600
MAX_OUTPUT_SHAPES = 3  # output shapes listed between those of the first and the last call
MAX_OWN_TENSORS, MAX_NAME_CHARS = 12, 100  # tensors of a module that are listed; characters of a name or of specs
OPEN_LEVELS = 2  # levels of a module tree that are initially open
# Widths in em: of a module tree that ran, of one that did not, of its columns.
TREE_WIDTH, UNRUN_TREE_WIDTH, OUTPUT_WIDTH, PARAMETERS_WIDTH = 74, 44, 17, 9
CLEAR_FLOATS = '<br style="clear:both">'  # makes a row as high as its columns


@functools.cache
def picture_script() -> str:
    """The script that takes over a picture."""
    return lean(Path(__file__).with_name("picture.js").read_text(encoding="utf-8"))


def picture_card(svg: str, alt: str, text: str = "", live: bool = False, opened: str = "") -> str:
    """The picture on a card; `text` is folded below it.

    live: True if a script adds zoom, words at the pointer (`<title>`) and frames that fold, where scripts run.  opened:
    the picture with fewer boxes folded, for that script.
    It shrinks to the width of the cell, but not below the scale MIN_SCALE; a wider one scrolls.
    """
    data = base64.b64encode(svg.encode("utf-8", "replace")).decode()
    size = re.match(r'<svg[^>]*? width="([\d.]+)', svg)
    least = round(MIN_SCALE * float(size[1])) if size else 0
    look = "max-width:100%;height:auto" + (f";min-width:{least}px" if least > MIN_CELL_WIDTH else "")
    image = f'<img alt="{escape(clean(alt), True)}" style="{look}" src="data:image/svg+xml;base64,{data}">'
    image = f'<div style="overflow-x:auto">{image}</div>'
    below = ""
    if text:
        look = "color:inherit;background:transparent;margin:4px 0 0;overflow-x:auto;font-size:12px;line-height:1.35"
        pre = f'<pre style="{look}">{escape(text)}</pre>'
        fold = f'<summary style="cursor:pointer;font-size:12px;{FAINT_STYLE}">{say("as text")}</summary>'
        below = f"<details>{fold}{pre}</details>"
    card = f'<div {NO_MATH} style="{CARD_STYLE}">{image}{below}</div>'
    packed = base64.b64encode(zlib.compress(opened.encode("utf-8", "replace"), 9)).decode() if opened else None
    return with_script(card, picture_script(), packed) if live else card


def picture_bundle(
    svg: str, alt: str, text: str, fold_text: bool = False, live: bool = False, opened: str = ""
) -> dict[str, str]:
    """A picture in all MIME types: HTML for notebooks, SVG for other readers, text for terminals and screen readers."""
    html = picture_card(svg, alt, text if fold_text else "", live, opened)
    return {"text/html": html, "image/svg+xml": svg, "text/plain": text}


def folded_below(title: str, below: str) -> str:
    """Details of the output above, initially closed."""
    return (
        f'<details {NO_MATH}><summary style="cursor:pointer;font-size:12.5px;line-height:1.6">'
        f"{escape(clean(title))}</summary>{below}</details>"
    )


def with_listing(bundle: dict[str, str]) -> dict[str, str]:
    """Add the listing that is an object's repr to its HTML, folded below the picture, where lines do not wrap; the HTML
    and the text are cut to the size of a tree.
    """
    text = bundle["text/plain"]
    look = "white-space:pre;overflow:auto;max-height:40em;font-size:12px;line-height:1.35;margin:4px 0 0"
    pre = f'<pre style="{look}">{escape(outer_lines(text, MAX_BYTES // 2))}</pre>'
    html = bundle.get("text/html", "")
    below = folded_below("the listing that print gives", pre) if html else f"<div {NO_MATH}>{pre}</div>"
    return {**bundle, "text/html": html + below, "text/plain": outer_lines(text)}


def module_html(record: ModuleRecord) -> str:
    """The module tree as nested `<details>` under a header: layer, output, parameters; totals below. Two levels are
    open.

    The columns are aligned at the right edge, which all levels share, so they do not depend on the size of a browser's
    triangle.
    """
    rows, ran = rows_of(record), record.calls is not None
    lines = [module_line(module, ran) for _, module, _ in rows]
    head = (
        f'<div style="border-bottom:1px solid {RULE_COLOR};font-weight:bold">'
        f"{module_columns('output', 'parameters', 'MACs', ran)}layer{CLEAR_FLOATS}</div>"
    )
    total = escape(module_totals(record)).replace("\n", "<br>")
    total = f'<div style="border-top:1px solid {RULE_COLOR}">{total}</div>'
    around = (
        f'<div {NO_MATH} style="{ROW_STYLE};width:{TREE_WIDTH if ran else UNRUN_TREE_WIDTH}em;max-width:100%">{head}',
        f"{total}</div>",
    )
    return within_limit(lambda most: module_rows(rows, lines, most).join(around))


def module_rows(rows: list[tuple[int, ModuleRecord, int]], lines: list[str], most: int) -> str:
    """Append at most `most` rows of a module tree to `lines`, the children of a module in its `<details>`."""
    parts: list[str] = []
    fails, open_ = rows_with_errors(rows), [-1]  # depths of the `<details>` that are still open
    for i, depth, hidden in outer_rows([depth for depth, _, _ in rows], most, sorted(fails)):
        while open_[-1] >= depth:
            open_.pop()
            parts.append("</div></details>")
        module = rows[i][1]
        if hidden:
            more = count(sum(times for _, _, times in rows[i : i + hidden]), "more module")
            parts.append(f'<div style="{FAINT_STYLE};padding-left:1.1em">... {more}</div>')
        elif not module.children and not module.own:
            parts.append(f'<div style="padding-left:1.1em">{lines[i]}</div>')
        else:
            opened = " open" if depth == 0 or (depth < OPEN_LEVELS and module.children) or i in fails else ""
            own = [
                f"{escape(cut(clean(name), MAX_NAME_CHARS))} {escape(spec)}"
                for name, spec in module.own[:MAX_OWN_TENSORS]
            ]
            own += (
                [f"... {len(module.own) - MAX_OWN_TENSORS:,} more tensors"] if len(module.own) > MAX_OWN_TENSORS else []
            )
            own = [f'<div style="{FAINT_STYLE};padding-left:1.1em">{"<br>".join(own)}</div>'] if own else []
            parts += [
                f'<details{opened}><summary style="{SUMMARY_STYLE}">{lines[i]}</summary>',
                '<div style="padding-left:1.4em">',
                *own,
            ]
            open_.append(depth)
    return "".join(parts) + "</div></details>" * (len(open_) - 1)


def module_columns(output: str, parameters: str, macs: str, ran: bool) -> str:
    """The columns at the right of a row, from escaped text. The first float is the rightmost."""
    numbers = [macs] * ran + [parameters]
    look = "float:right;text-indent:0"
    right = "".join(f'<span style="{look};width:{PARAMETERS_WIDTH}em;text-align:right">{n}</span>' for n in numbers)
    return right + (f'<span style="{look};width:{OUTPUT_WIDTH}em;padding-left:1em">{output}</span>' if ran else "")


def module_line(module: ModuleRecord, ran: bool) -> str:
    name = f"<b>{escape(cut(clean(module.name), MAX_NAME_CHARS))}</b>: " if module.name else ""
    times, each = (f"<b>{module.count:,} x</b> ", " each") if module.count > 1 else ("", "")
    extra = escape(cut(clean(module.extra), 4 * MAX_NAME_CHARS))
    text = f"{name}{times}{escape(cut(clean(module.kind), MAX_NAME_CHARS))}" + (f"({extra})" if extra else "")
    frozen = module.params - module.trainable
    parameters = "shared" if module.shared else f"{module.params:,}{each}" if module.params else "-"
    parameters += f"<br>{frozen:,} frozen" if frozen and not module.shared else ""
    output = "<br>".join(escape(cut(clean(part), MAX_NAME_CHARS)) for part in module_output(module))
    macs = f"{module.macs:,}{each}" if module.macs and not module.shared else "-"
    line = f"{module_columns(output, parameters, macs, ran)}{text}{CLEAR_FLOATS}"
    if module.error:
        line += f'<pre style="{ERROR_STYLE}">{escape(module.error)}</pre>'
    return line


def module_output(module: ModuleRecord) -> list[str]:
    """`→ float32[50, 10]`; for several calls, their number and each new output shape, in lines."""
    if not module.calls:
        return ["not reached"]
    if not module.outputs:
        return ["did not finish"]
    shapes = [", ".join(outputs) or "no tensor" for outputs in (*module.earlier, module.outputs)]
    lines = [f"→ {shapes[0]}"]
    if len(shapes) > 1:
        lines += [f"then {shape}" for shape in shapes[1:-1][:MAX_OUTPUT_SHAPES]]
        lines += [f"and {len(shapes) - 2 - MAX_OUTPUT_SHAPES} more"] if len(shapes) - 2 > MAX_OUTPUT_SHAPES else []
        lines += [f"last: {shapes[-1]}"]
    return [*lines, f"ran {module.calls} times"] if module.calls > 1 else lines
