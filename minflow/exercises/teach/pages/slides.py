"""`minflow slides 05`: a lesson as slides, without the answers of its exercises.

A heading starts a slide, and so do prose after code and the cell that answers a guess. By default
the result is one page without network or scripts: each slide fills a window of 16:9, one with too much is continued on
the next, Page Down advances, and printing gives one page per slide. `--reveal` writes nbconvert's slides instead, which
load reveal.js, its fonts and MathJax from the network.
"""

from __future__ import annotations

import base64
import html
import io
import math
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from .... import course
from ....io import atomic
from ...i18n import language, say
from ...i18n.width import width
from .. import build as building, notebook as nb

SECONDS = 600  # limit of one cell
ROOM = 610.0  # height of a slide without its margins
PICTURE, MOST_OUTPUT = 280.0, 380.0  # height that a picture needs at least; the most that outputs beside code get
GUESS = re.compile(r"guess\w* = ")  # a cell in which learners write their guess; the next one shows the answer
MATH = re.compile(r"(```.*?```|`[^`\n]+`)|\$\$(.+?)\$\$|(?<![\\$\w])\$(?=[^\s$])([^$\n]*?[^\s\\$])\$(?!\d)", re.DOTALL)


def write(name: str, path: Path | None = None, reveal: str | None = None, run: bool = True) -> Path:
    """Write the slides of a lesson and return the file.

    name: number, name or path of the lesson. path: file to write; by default `05_eyes.slides.html` in the working
    directory, in another language than English `05_eyes.zh.slides.html`. reveal: URL of reveal.js, "" for
    the default one; None writes a page without it. run: execute the lesson.
    Raises LookupError for an unknown lesson, NotebookError, and RuntimeError if a cell fails.
    """
    import nbformat

    file = course.find_notebook(name)
    if file is None:
        known = ", ".join(lesson.stem for lesson in course.lessons())
        raise LookupError(say("there is no notebook {name}; there are: {known}", name=repr(name), known=known))
    original = next((path for path in course.lessons() if path.name == file.name and not os.path.isfile(name)), None)
    lesson = nb.read_release(original) if original and language() != "en" else nb.read(file)
    solved = nbformat.from_dict(building.with_solutions(lesson))  # cells below an exercise may call its answer
    if run:
        execute(solved, file)
    notebook = nbformat.from_dict(slide_cells(solved))
    title = next((cell.source.split("\n")[0].lstrip("# ") for cell in notebook.cells), file.stem)
    text = standalone_page(notebook, title) if reveal is None else reveal_page(notebook, reveal)
    translated = "" if language() == "en" else f".{language()}"
    path = path or Path(f"{file.stem}{translated}.slides.html")
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
    """Slide type: "slide" for titles and sections, "subslide" for other beginnings, "-" for cells that continue."""
    if before is None:
        return "slide"
    if cell["cell_type"] != "markdown":
        return "subslide" if GUESS.match(before["source"]) else "-"
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

    whole, outputs = (
        HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True, exclude_input=part)
        for part in (False, True)
    )

    def exported(cell: Any) -> str:
        exporter = outputs if is_output(cell) else whole
        return exporter.from_notebook_node(nbformat.from_dict({**notebook, "cells": [drawn(cell)]}))[0]

    slides: list[list[Any]] = []
    for cell in notebook.cells:
        if cell.metadata.slideshow.slide_type != "-":
            slides.append([])
        slides[-1] += map(nbformat.from_dict, blocks(cell))
    slides = [part for slide in slides for part in fitting(slide)]
    parts = []
    for i, cells in enumerate(slides, 1):
        body = "".join(f'<div style="--scale: {scale(cell):.2f}">{exported(cell)}</div>' for cell in cells)
        alone = " class=alone" * (len(cells) == 1)
        place = f"{i} / {len(slides)}"
        parts.append(f'<section aria-label="{place}"{alone}>\n{body}\n<footer>{place}</footer></section>')
    return PAGE.format(
        language=language(),
        title=html.escape(title),
        body="\n".join(parts),
        colors=HtmlFormatter(style="default").get_style_defs(".highlight"),
    )


# ---- slides that fit ------------------------------------------------------------------------------------------------
# Sizes in pixels of a window of 1280 x 720, in which a text line has 30, a line of code 22. Outputs shrink or scroll.


def blocks(cell: Any) -> list[dict[str, Any]]:
    """Parts of a cell that may be on different slides: paragraphs of Markdown, the code, each output."""
    if cell.cell_type == "markdown":
        sources = [cell.source] if re.search(r"```|<", cell.source) else re.split(r"\n{2,}", cell.source)
        return [{**cell, "source": source} for source in sources]
    if not cell.get("outputs"):
        return [cell]
    return [{**cell, "outputs": []}, *({**cell, "outputs": [output]} for output in cell.outputs)]


def is_output(cell: Any) -> bool:
    """True if a block is an output of a cell, without its code."""
    return bool(cell.get("outputs"))


def height(cell: Any) -> float:
    """Estimated height of a block."""
    if is_output(cell):
        return min(output_height(cell.outputs[0]), MOST_OUTPUT)
    lines = cell.source.splitlines()
    if cell.cell_type == "code":
        return min(22 * len(lines) + 26, ROOM)
    if cell.source.startswith("#"):
        return 66.0 + 30 * (len(lines) - 1)
    return sum(30 * math.ceil(width(line) / 92 or 1) for line in lines) + 20.0


def output_height(output: Any) -> float:
    """Estimated height of an output."""
    data = output.get("data", {})
    text = output.get("text") or "\n".join(output.get("traceback", ())) or data.get("text/plain", "")
    return (
        MOST_OUTPUT if {"text/html", "image/png", "image/svg+xml"} & set(data) else 22.0 * len(text.splitlines()) + 10
    )


def scale(cell: Any) -> float:
    """Size of a block's code: less than 1 for code that does not fit a slide."""
    return min(1.0, ROOM / (22 * len(cell.source.splitlines()) + 24)) if cell.cell_type == "code" else 1.0


def fitting(slide: list[Any]) -> list[list[Any]]:
    """Split the blocks of a slide into slides that fit. A heading stays with the block below it."""
    result: list[list[Any]] = [[]]
    for cell in slide:
        if result[-1] and sum(map(height, result[-1])) + height(cell) > ROOM:
            heads = [] if not result[-1][-1].source.startswith("#") or len(result[-1]) == 1 else [result[-1].pop()]
            result.append(heads)
        result[-1].append(cell)
    return result


def drawn(cell: Any) -> Any:
    """The block with its formulas drawn."""
    return {**cell, "source": MATH.sub(draw_formula, cell.source)} if cell.cell_type == "markdown" else cell


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
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{colors}
html {{ scroll-snap-type: y proximity; color-scheme: light; background: white; color: #1f2328; }}
body {{ font: min(1.5625vw, 2.7778vh)/1.5 system-ui, sans-serif; margin: 0; }}
section {{ height: 100vh; box-sizing: border-box; padding: 2em 3.2em; scroll-snap-align: start; position: relative;
  border-bottom: 1px solid #8884; overflow: hidden; display: flex; flex-direction: column; align-items: flex-start;
  gap: .4em; }}
section div:has(.text_cell_render, .highlight, .output_subarea) {{ display: contents; }}
section footer {{ position: absolute; right: 1.5em; bottom: .5em; font-size: .7em; opacity: .75; }}
.text_cell_render {{ flex: none; max-width: 50em; }}
.text_cell_render > * {{ margin: .3em 0; }}
h1, h2, h3 {{ line-height: 1.2; }} h1 {{ font-size: 1.9em; }} h2 {{ font-size: 1.5em; }} h3 {{ font-size: 1.25em; }}
.anchor-link {{ display: none; }}
pre, code {{ font: .8em/1.4 ui-monospace, monospace; }}
pre {{ margin: 0; font-size: calc(.8em * var(--scale)); }}
.highlight {{ flex: none; max-width: 100%; overflow-x: auto; box-sizing: border-box; background: #f6f8fa;
  padding: .4em .8em; border-radius: 6px; }}
.output_subarea {{ flex: 0 20 auto; min-height: 0; max-width: 100%; overflow: auto; }}
.output_stream, .output_text {{ flex-shrink: 1; }}
.output_subarea pre {{ font-size: .8em; }}
.output_subarea img, .output_subarea svg {{ max-width: 100%; max-height: 42vh; width: auto; }}
.alone img, .alone svg {{ max-height: 74vh; }}
.output_png, .output_svg {{ display: flex; overflow: hidden; }}
.output_png img, .output_svg svg {{ max-height: 100%; object-fit: contain; }}
img.math.inline {{ height: 1.1em; vertical-align: middle; }}
img.math.display {{ display: block; height: 1.6em; margin: .6em auto; }}
table {{ border-collapse: collapse; font-size: .85em; }} th, td {{ padding: 3px 10px; }}
@media print {{ section {{ break-after: page; border: 0; }} }}
@page {{ size: 320mm 180mm; margin: 0; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
