"""HTML pages for teachers and students: without scripts and network, light and dark, for phones and paper."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

from ...card import markdown_to_html
from ...i18n import language, say


class Html(str):
    """Text of a table cell that is HTML already."""


def page(title: str, body: str) -> str:
    """Page in the language of the command. title: text. body: HTML."""
    return PAGE.format(title=html.escape(title), body=body, language=language())


def table(caption: str, head: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    """HTML table whose first column has the row headers. Texts may contain Markdown's `code` and *emphasis*."""
    lines = []
    for first, *others in rows:
        cells = "".join(
            f"<td{' class=number' * isinstance(value, int | float)}>{as_html(value)}</td>" for value in others
        )
        lines.append(
            f'<tr><th scope="row">{first if isinstance(first, Html) else html.escape(str(first))}</th>{cells}</tr>'
        )
    if not lines:
        return f"<p>{html.escape(say('None.'))}</p>"
    heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(caption)}"><table>'
        f"<caption>{html.escape(caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n"
        + "\n".join(lines)
        + "\n</tbody></table></div>"
    )


def as_html(value: Any) -> str:
    return value if isinstance(value, Html) else markdown_to_html(str(value))


PAGE = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; background: Canvas; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }}
h1, h2, p {{ overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
caption {{ text-align: left; padding: 4px 0; }}
.wide th, .wide td {{ border: 1px solid #8888; padding: 3px 9px; text-align: left; vertical-align: top;
  font-weight: normal; }}
.wide thead th {{ font-weight: 600; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
section {{ max-width: 46em; margin: 1.6em 0; break-inside: avoid; }}
section h2 {{ font-size: 1.1em; margin: 0 0 .4em; display: flex; gap: 1em; justify-content: space-between; }}
section h2 span {{ white-space: nowrap; font-variant-numeric: tabular-nums; }}
section h2 + * {{ margin-top: 0; }}
@media print {{ body {{ margin: 0; max-width: none; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""
