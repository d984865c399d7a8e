"""Records as HTML that survives everywhere: in dark themes, in saved and in untrusted notebooks, without scripts.

Pictures are an `<img>` with the SVG inside (an inline `<svg>` is stripped to loose text where a notebook is not
trusted); trees are nested `<details>` with inline styles. Text has the colour of the page, and nothing a ground of its
own: rules are half transparent, which is seen on any page. No ids, the same text for the same record. Read next:
`../show.py`.
"""

from __future__ import annotations

import base64
from html import escape

from ..draw.theme import PALE_RED, RED_INK
from ..records.module import ModuleRecord
from ..text.listing import clean, module_totals

RULE = "rgba(125,133,144,.55)"  # the colour of rims and rules
CARD = (
    f"background:transparent;color:inherit;border:1px solid {RULE};border-radius:6px;padding:8px;"
    "display:inline-block;max-width:100%;box-sizing:border-box"
)
# of an error inside a tree: a light plate, red on which is read
ERROR = f"color:{RED_INK};background:{PALE_RED};margin:0;padding:2px 6px;border-radius:4px;white-space:pre-wrap"
NO_MATH = 'class="mathjax_ignore tex2jax_ignore"'  # names are no formulas: notebooks would typeset $x$ in them
ROW = "font-family:monospace;font-size:12.5px;line-height:1.6"
FAINT = "opacity:.75"
NAMED = 3  # outputs of a layer between its first and its last call that are named
OPEN = 2  # levels of a module tree that stand open at first
# of a module tree that ran, of one that did not, of its columns; in em
WIDTH, NARROW, OUTPUT, PARAMETERS = 74, 44, 17, 9
END = '<br style="clear:both">'  # a row is as tall as its columns


def picture_card(svg: str, alt: str, text: str = "") -> str:
    """The picture on a card; `text` is offered below it, folded."""
    data = base64.b64encode(svg.encode("utf-8", "replace")).decode()
    image = (f'<img alt="{escape(clean(alt), True)}" style="max-width:100%;height:auto" '
             f'src="data:image/svg+xml;base64,{data}">')
    below = ""
    if text:
        look = "color:inherit;background:transparent;margin:4px 0 0;overflow-x:auto;font-size:12px;line-height:1.35"
        pre = f'<pre style="{look}">{escape(text)}</pre>'
        below = (f'<details><summary style="cursor:pointer;font-size:12px;{FAINT}">as text</summary>{pre}</details>')
    return f'<div {NO_MATH} style="{CARD}">{image}{below}</div>'


def picture_bundle(svg: str, alt: str, text: str, fold_text: bool = False) -> dict[str, str]:
    """All forms of a picture: HTML for notebooks, SVG for other readers, text for terminals and screen readers."""
    return {"text/html": picture_card(svg, alt, text if fold_text else ""), "image/svg+xml": svg, "text/plain": text}


def folded_below(title: str, card: str) -> str:
    """A card under another one, to open."""
    return (f'<details {NO_MATH}><summary style="cursor:pointer;font-size:12.5px;line-height:1.6">'
            f'{escape(clean(title))}</summary>{card}</details>')


def module_html(record: ModuleRecord) -> str:
    """The module tree as nested `<details>` under a header: layer, output, parameters; the totals below. Two levels are
    open.

    The columns hang at the right edge, which all levels share: how wide a browser's triangle is moves nothing.
    """
    ran = record.calls is not None
    parts: list[str] = []
    stack: list = [(record, 0)]
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            parts.append(entry)
            continue
        module, level = entry
        line = module_line(module, ran)
        if not module.children and not module.own:
            parts.append(f'<div style="padding-left:1.1em">{line}</div>')
            continue
        opened = " open" if level == 0 or (level < OPEN and module.children) or fails(module) else ""
        parts.append(f'<details{opened}><summary style="cursor:pointer">{line}</summary><div '
                     'style="padding-left:1.4em">')
        parts += [f'<div style="{FAINT};padding-left:1.1em">{escape(clean(name))} {escape(spec)}</div>'
                  for name, spec in module.own]
        stack.append("</div></details>")
        stack += [(child, level + 1) for child in reversed(module.children)]
    head = (f'<div style="border-bottom:1px solid {RULE};font-weight:bold">'
            f'{module_columns("output", "parameters", "MACs", ran)}layer{END}</div>')
    total = escape(module_totals(record)).replace("\n", "<br>")
    total = f'<div style="border-top:1px solid {RULE}">{total}</div>'
    return (f'<div {NO_MATH} style="{ROW};width:{WIDTH if ran else NARROW}em;max-width:100%">'
            f'{head}{"".join(parts)}{total}</div>')


def module_columns(output: str, parameters: str, macs: str, ran: bool) -> str:
    """The columns at the right of a row, of escaped text: what floats first stands at the edge."""
    numbers = [macs] * ran + [parameters]
    right = "".join(f'<span style="float:right;width:{PARAMETERS}em;text-align:right">{n}</span>' for n in numbers)
    return right + (f'<span style="float:right;width:{OUTPUT}em">{output}</span>' if ran else "")


def fails(module: ModuleRecord) -> bool:
    """Whether an error stands in it or inside it."""
    stack = [module]
    while stack:
        module = stack.pop()
        if module.error:
            return True
        stack += module.children
    return False


def module_line(module: ModuleRecord, ran: bool) -> str:
    name = f"<b>{escape(clean(module.name))}</b>: " if module.name else ""
    extra = escape(clean(module.extra))
    text = f"{name}{escape(clean(module.kind))}({extra})" if extra else f"{name}{escape(clean(module.kind))}"
    frozen = module.params - module.trainable
    parameters = "shared" if module.shared else f"{module.params:,}" if module.params else "-"
    parameters += f"<br>{frozen:,} frozen" if frozen and not module.shared else ""
    output = "<br>".join(escape(clean(part)) for part in module_output(module))
    macs = f"{module.macs:,}" if module.macs and not module.shared else "-"
    line = f"{module_columns(output, parameters, macs, ran)}{text}{END}"
    if module.error:
        line += f'<pre style="{ERROR}">{escape(module.error)}</pre>'
    return line


def module_output(module: ModuleRecord) -> list[str]:
    """`→ float32[50, 10]`; of a layer that ran several times how often, and each other shape that it gave, in lines."""
    if not module.calls:
        return ["not reached"]
    if not module.outputs:
        return ["did not finish"]
    shapes = [", ".join(outputs) or "no tensor" for outputs in (*module.earlier, module.outputs)]
    lines = [f"→ {shapes[0]}"]
    if len(shapes) > 1:
        lines += [f"then {shape}" for shape in shapes[1:-1][:NAMED]]
        lines += [f"and {len(shapes) - 2 - NAMED} more"] if len(shapes) - 2 > NAMED else []
        lines += [f"last: {shapes[-1]}"]
    return [*lines, f"ran {module.calls} times"] if module.calls > 1 else lines
