"""Records as HTML that survives everywhere: in dark themes, in saved and in untrusted notebooks, without scripts.

Pictures are an `<img>` with the SVG inside (an inline `<svg>` is stripped to loose text where a notebook is not
trusted), on a light card of their own; trees are nested `<details>` with inline styles. No ids, the same text for the
same record. Read next: `show.py`.
"""

from __future__ import annotations

import base64
from html import escape

from .records import ModuleRecord
from .text import clean

CARD = (
    "background:#ffffff;color:#24292f;border:1px solid #d0d7de;border-radius:6px;padding:8px;"
    "display:inline-block;max-width:100%;box-sizing:border-box"
)
NO_MATH = 'class="mathjax_ignore tex2jax_ignore"'  # names are no formulas: notebooks would typeset $x$ in them
ROW = "font-family:monospace;font-size:12.5px;line-height:1.6"
FAINT = "opacity:.75"


def picture_card(svg: str, alt: str, text: str = "") -> str:
    """The picture on a light card; `text` is offered below it, folded."""
    data = base64.b64encode(svg.encode("utf-8", "replace")).decode()
    image = f'<img alt="{escape(clean(alt), True)}" style="max-width:100%;height:auto" src="data:image/svg+xml;base64,{data}">'
    below = ""
    if text:
        look = "color:#24292f;background:transparent;margin:4px 0 0;overflow-x:auto;font-size:12px;line-height:1.35"
        pre = f'<pre style="{look}">{escape(text)}</pre>'
        below = f'<details><summary style="cursor:pointer;font-size:12px;color:#57606a">as text</summary>{pre}</details>'
    return f'<div {NO_MATH} style="{CARD}">{image}{below}</div>'


def picture_bundle(svg: str, alt: str, text: str, fold_text: bool = False) -> dict[str, str]:
    """All forms of a picture: HTML for notebooks, SVG for other readers, text for terminals and screen readers."""
    return {"text/html": picture_card(svg, alt, text if fold_text else ""), "image/svg+xml": svg, "text/plain": text}


def module_html(record: ModuleRecord) -> str:
    """The module tree as nested `<details>`: open at the top, closed inside, opened by mouse or keyboard."""
    parts: list[str] = []
    stack: list = [(record, 0)]
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            parts.append(entry)
            continue
        module, level = entry
        line = module_line(module)
        if not module.children and not module.own:
            parts.append(f'<div style="padding-left:1.1em">{line}</div>')
            continue
        opened = " open" if level == 0 or fails(module) else ""
        parts.append(f'<details{opened}><summary style="cursor:pointer">{line}</summary><div style="padding-left:1.4em">')
        parts += [f'<div style="{FAINT};padding-left:1.1em">{escape(clean(name))} {escape(spec)}</div>' for name, spec in module.own]
        stack.append("</div></details>")
        stack += [(child, level + 1) for child in reversed(module.children)]
    return f'<div {NO_MATH} style="{ROW}">{"".join(parts)}</div>'


def fails(module: ModuleRecord) -> bool:
    """Whether an error stands in it or inside it."""
    stack = [module]
    while stack:
        module = stack.pop()
        if module.error:
            return True
        stack += module.children
    return False


def module_line(module: ModuleRecord) -> str:
    name = f"<b>{escape(clean(module.name))}</b>: " if module.name else ""
    extra = escape(clean(module.extra))
    text = f"{name}{escape(clean(module.kind))}({extra})" if extra else f"{name}{escape(clean(module.kind))}"
    notes = [escape(clean(", ".join(module.outputs)))] if module.outputs else []
    if module.params:
        frozen = module.params - module.trainable
        notes.append(f"{module.params:,} parameters" + (f", {frozen:,} frozen" if frozen else "") + (", shared" if module.shared else ""))
    if module.calls == 0:
        notes.append("not reached")
    if (module.calls or 0) > 1:
        notes.append(f"ran {module.calls} times")
    if notes:
        text += f' <span style="{FAINT}">{" · ".join(notes)}</span>'
    if module.error:
        text += f'<pre style="color:#b42318;background:#fff;margin:0;padding:2px 6px;white-space:pre-wrap">{escape(module.error)}</pre>'
    return text
