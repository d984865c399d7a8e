"""`minflow slides 05`: a lesson as slides, without the answers of its exercises.

A heading starts a slide, and so does prose after code. By default the result is one page without network or scripts:
each slide fills the window, Page Down advances, and printing gives one page per slide. `--reveal` writes nbconvert's
slides instead, which load reveal.js, its fonts and MathJax from the network.
"""

from __future__ import annotations

import base64
import html
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from .... import course
from ....io import atomic
from .. import build as building, notebook as nb

SECONDS = 600  # limit of one cell
MATH = re.compile(r"(```.*?```|`[^`\n]+`)|\$\$(.+?)\$\$|(?<![\\$\w])\$(?=[^\s$])([^$\n]*?[^\s\\$])\$(?!\d)", re.DOTALL)


def write(name: str, path: Path | None = None, reveal: str | None = None, run: bool = True) -> Path:
    """Write the slides of a lesson and return the file.

    name: number, name or path of the lesson. path: file to write; by default `05_eyes.slides.html` in the working
    directory. reveal: URL of reveal.js, "" for the default one; None writes a page without it. run: execute the lesson.
    Raises LookupError for an unknown lesson, NotebookError, and RuntimeError if a cell fails.
    """
    import nbformat

    file = course.find_notebook(name)
    if file is None:
        raise LookupError(f"there is no notebook {name!r}")
    solved = nbformat.from_dict(building.with_solutions(nb.read(file)))  # cells below an exercise may call its answer
    if run:
        execute(solved, file)
    notebook = nbformat.from_dict(slide_cells(solved))
    title = next((cell.source.split("\n")[0].lstrip("# ") for cell in notebook.cells), file.stem)
    text = standalone_page(notebook, title) if reveal is None else reveal_page(notebook, reveal)
    path = path or Path(f"{file.stem}.slides.html")
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, text)
    return path


def slide_cells(notebook: dict[str, Any]) -> dict[str, Any]:
    """Remove answers and checks, and add slide metadata to each cell."""
    known = nb.exercise_cells(notebook)
    cells: list[dict[str, Any]] = []
    for cell in notebook["cells"]:
        if (
            any(known.get(name, (None, "task"))[1] != "task" for name in nb.cell_ids(cell))
            or not cell["source"].strip()
        ):
            continue
        kind = slide_type(cell, cells[-1] if cells else None)
        cells.append({**cell, "metadata": {**cell["metadata"], "slideshow": {"slide_type": kind}}})
    return {**notebook, "cells": cells}


def slide_type(cell: dict[str, Any], before: dict[str, Any] | None) -> str:
    """Slide type: "slide" for titles and sections, "subslide" for lower headings and prose after code, else "-"."""
    if before is None:
        return "slide"
    if cell["cell_type"] != "markdown":
        return "-"
    if re.match(r"##? ", cell["source"]):
        return "slide"
    return "subslide" if cell["source"].startswith("#") or before["cell_type"] == "code" else "-"


def execute(notebook: Any, file: Path) -> None:
    """Run the notebook and fill in its outputs, with static pictures. Raises RuntimeError with a cell's error."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    settings = {"MINFLOW_LIVE": "0", "MINFLOW_PROGRESS": "0"}
    with tempfile.TemporaryDirectory(prefix="minflow-slides-", ignore_cleanup_errors=True) as folder:
        importing = f"__import__('sys').path.insert(1, {str(file.resolve().parent)!r})"
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            store_widget_state=False,
            extra_arguments=["--IPKernelApp.log_level=ERROR", f"--IPKernelApp.exec_lines={importing}"],
        )
        try:
            client.execute(env=os.environ | settings)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise RuntimeError(f"a cell of {file.name} fails: {str(error).strip().splitlines()[-1]}") from error


def reveal_page(notebook: Any, address: str) -> str:
    """Export nbconvert's slides, which load reveal.js from `address`."""
    from nbconvert.exporters import SlidesExporter

    settings = {"reveal_url_prefix": address} if address else {}
    return SlidesExporter(**settings).from_notebook_node(notebook)[0]


def standalone_page(notebook: Any, title: str) -> str:
    """Export one self-contained page."""
    import nbformat
    from nbconvert.exporters import HTMLExporter
    from pygments.formatters import HtmlFormatter

    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    slides: list[list[Any]] = []
    for cell in notebook.cells:
        if cell.metadata.slideshow.slide_type != "-":
            slides.append([])
        if cell.cell_type == "markdown":
            cell = nbformat.from_dict({**cell, "source": MATH.sub(draw_formula, cell.source)})
        slides[-1].append(cell)
    parts = []
    for i, cells in enumerate(slides, 1):
        body = exporter.from_notebook_node(nbformat.from_dict({**notebook, "cells": cells}))[0]
        place = f"{i} / {len(slides)}"
        parts.append(f'<section aria-label="{place}">\n{body}\n<footer>{place}</footer></section>')
    return PAGE.format(
        title=html.escape(title),
        body="\n".join(parts),
        colors=HtmlFormatter(style="default").get_style_defs(".highlight"),
    )


def draw_formula(match: re.Match[str]) -> str:
    """Draw a formula as a picture, since MathJax needs the network. Code, and formulas that fail, stay text."""
    from matplotlib.mathtext import math_to_image

    code, display, inline = match.groups()
    if code:
        return code
    text, file = " ".join((display or inline).split()), io.BytesIO()
    try:
        math_to_image(f"${text}$", file, format="svg", dpi=72)
    except (ValueError, RuntimeError):
        return f"<code>{html.escape(text)}</code>"
    data = base64.b64encode(file.getvalue()).decode()
    kind = "display" if display else "inline"
    return f'<img class="math {kind}" alt="{html.escape(text)}" src="data:image/svg+xml;base64,{data}">'


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{colors}
html {{ scroll-snap-type: y proximity; color-scheme: light; background: white; color: #1f2328; }}
body {{ font: 22px/1.5 system-ui, sans-serif; margin: 0; }}
section {{ min-height: 100vh; box-sizing: border-box; padding: 4vh 7vw; scroll-snap-align: start; position: relative;
  border-bottom: 1px solid #8884; overflow-x: auto; }}
section footer {{ position: absolute; right: 2vw; bottom: 1vh; font-size: 14px; opacity: .75; }}
h1 {{ font-size: 2em; }} h2 {{ font-size: 1.6em; }} h3 {{ font-size: 1.25em; }}
.anchor-link {{ display: none; }}
pre, code {{ font: .82em/1.45 ui-monospace, monospace; }}
.highlight {{ background: #f6f8fa; padding: .2em .8em; border-radius: 6px; }}
.output_subarea img, .output_subarea svg {{ max-width: 100%; }}
img.math.inline {{ height: 1.1em; vertical-align: middle; }}
img.math.display {{ display: block; height: 1.6em; margin: .6em auto; }}
table {{ border-collapse: collapse; font-size: .85em; }} th, td {{ padding: 3px 10px; }}
@media print {{ section {{ break-after: page; border: 0; }} }}
@page {{ size: A4 landscape; margin: 8mm; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
