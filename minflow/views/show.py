"""The View that `show(x)` and `picture(x)` make of a tensor, a graph or a module tree: a picture and a text.

Also the renderer behind `core.display.Display`. Depends on records and renderers, not on tensors.
Read next: `records/graph.py`, the records; `draw/engines.py`, how they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.base.display import BundleDisplay
from ..core.base.errors import DTypeError
from ..core.files.atomic import write
from ..core.source_location import here
from . import MAX_BOXES
from .draw.boxes import Diagram, diagram_of
from .draw.dot import dot_text
from .draw.engines import export, opened_svg, render_svg
from .draw.fold import MAX_TREE_LINES
from .html.page import folded_below, module_html, picture_bundle, picture_card
from .html.reports import report_html
from .records.graph import GraphRecord, PartsRecord
from .records.module import ModuleRecord
from .records.opening import Opening
from .records.recorders import record_of
from .records.tape import TapeRecord, names_in
from .renderers.images import ImagesRecord, images_html, images_png, images_record, images_text
from .renderers.tape_memory import (
    MemoryRecord,
    learner_tensors,
    memory_html,
    memory_record,
    memory_svg,
    memory_text,
    tensors_in,
)
from .renderers.tensor import MAX_TEXT_ELEMENTS, TensorRecord, tensor_record, tensor_text
from .renderers.tensor_picture import tensor_html, tensor_svg
from .text.listing import graph_text, module_text, parts_text, tape_text
from .text.reports import Report

if TYPE_CHECKING:
    from .records.recorders import Record


# Records of a tensor's elements, images and memory: the functions that make their text, SVG and HTML.
RENDERERS: dict[type, tuple[Callable, Callable | None, Callable]] = {
    TensorRecord: (tensor_text, tensor_svg, lambda record: tensor_html(record, always=True)),
    ImagesRecord: (images_text, None, images_html),
    MemoryRecord: (memory_text, memory_svg, memory_html),
}


class View(BundleDisplay):
    """A record in all its forms: `.text`, `.dot`, `.svg`, and a MIME bundle for notebooks. Made by `picture(x)`.

    numbers: the elements of the tensor whose tape is the record; shown first, with the tape folded below.
    """

    def __init__(
        self, record: Record, boxes: int = MAX_BOXES, lines: int = MAX_TREE_LINES, numbers: TensorRecord | None = None
    ):
        self.record, self.boxes, self.lines, self.numbers = record, boxes, lines, numbers

    @property
    def text(self) -> str:
        """The record as a text tree, listing or table."""
        text = text_of(self.record, self.lines)
        return f"{tensor_text(self.numbers)}\n\n{text}" if self.numbers else text

    @property
    def diagram(self) -> Diagram:
        """The boxes and edges of the picture; only tapes and graphs have them."""
        if type(self.record) in RENDERERS:
            raise DTypeError(
                "numbers, images and memory have no DOT text", hint="show(loss) draws the tape; .svg, .text"
            )
        if isinstance(self.record, ModuleRecord):
            raise DTypeError(
                "a tree of modules is shown as a tree, it has no DOT text", hint="show(loss) draws the tape of a result"
            )
        return diagram_of(self.record.parts[0] if isinstance(self.record, PartsRecord) else self.record, self.boxes)

    @property
    def dot(self) -> str:
        """The record as DOT text, the language of Graphviz; only tapes and graphs have one."""
        return dot_text(self.diagram)

    @property
    def svg(self) -> str:
        """The picture."""
        if type(self.record) in RENDERERS:
            draw = RENDERERS[type(self.record)][1]
            if draw is None:
                raise DTypeError("images have no SVG", hint='picture(x, images=True).save("x.png")')
            return draw(self.record)
        return render_svg(self.diagram)[0]

    def save(self, path: str | Path) -> None:
        """Write the view to a file in the format of its suffix: .svg, .dot, .txt, .html; with Graphviz also .png, .pdf.

        Raises FileError if it cannot be written; an existing file is then unchanged.
        """
        path = Path(path)
        kind = path.suffix[1:].lower()
        if kind == "png" and isinstance(self.record, ImagesRecord):
            return write(path, images_png(self.record), "save", here)
        if kind in ("png", "pdf"):
            return write(path, export(self.diagram, kind), "save", here)
        forms = {
            "svg": lambda: self.svg,
            "dot": lambda: self.dot,
            "txt": lambda: self.text + "\n",
            "html": lambda: self.bundle()["text/html"],
        }
        if kind not in forms:
            raise DTypeError(
                f"a view cannot be saved as {path.name!r}",
                hint="a name that ends in .svg, .dot, .txt, .html, .png or .pdf",
            )
        write(path, forms[kind](), "save", here)

    def bundle(self) -> dict[str, str]:
        """MIME type -> data."""
        if isinstance(self.record, ModuleRecord):
            return {"text/html": module_html(self.record), "text/plain": self.text}
        if not self.record.nodes:
            return {"text/plain": self.text}
        if type(self.record) in RENDERERS:
            return {"text/html": RENDERERS[type(self.record)][2](self.record), "text/plain": self.text}
        if isinstance(self.record, PartsRecord):
            bundles = [View(part, self.boxes, self.lines).bundle() for part in self.record.parts]
            return {
                **bundles[0],
                "text/html": "".join(b.get("text/html", "") for b in bundles),
                "text/plain": self.text,
            }
        tape = text_of(self.record, self.lines)
        alt = tape.partition("\n")[0]
        diagram = self.diagram
        svg, opened = render_svg(diagram)[0], opened_svg(self.record, len(diagram.boxes))
        bundle = picture_bundle(svg, alt, self.text, fold_text=not self.numbers, live=True, opened=opened)
        if self.numbers:
            below = folded_below(alt, picture_card(svg, alt, tape, live=True, opened=opened))
            bundle["text/html"] = tensor_html(self.numbers, always=True) + below
        return bundle

    def __repr__(self) -> str:
        return self.text


def text_of(record: Record, lines: int = MAX_TREE_LINES) -> str:
    if type(record) in RENDERERS:
        return RENDERERS[type(record)][0](record)
    if isinstance(record, ModuleRecord):
        return module_text(record)
    if isinstance(record, PartsRecord):
        return parts_text(record, lines)
    return tape_text(record, lines) if isinstance(record, TapeRecord) else graph_text(record, lines)


def picture(
    x: Any,
    *,
    values: bool = False,
    numbers: bool = False,
    images: bool = False,
    memory: bool = False,
    labels: Any = None,
    boxes: int = MAX_BOXES,
    open: bool | str | Sequence[str] = False,
    names: dict[str, Any] | None = None,
) -> View:
    """Return the View of a Tensor, Graph, Module or record without showing it. Arguments: see `show`."""
    tensors = learner_tensors() if names is None else tensors_in(names)
    if labels is not None and not images:
        raise DTypeError("show: labels are written under images", hint="show(x, images=True, labels=targets)")
    opening = None if open is False else Opening(open)
    if opening and numbers + images + memory:
        raise DTypeError("show: open is for tapes and graphs", hint="show(loss, open=True)")
    if numbers + images + memory:
        return View(tensor_view_record(x, numbers, images, memory, tensors, labels))
    elements = None
    if not values and getattr(x, "array", None) is not None and hasattr(x, "_value"):
        if x._value is None:
            return View(replace(tensor_record(x), about="no tape: none of its inputs requires a gradient"))
        if x.spec.size > 1:
            elements = tensor_record(x)
            if not x._value.node.inputs:
                return View(elements)
    record = record_of(x, values=values, names=names_in(tensors), tensors=tensors, opening=opening)
    if record is None:
        raise DTypeError(f"show: a {type(x).__name__} has no picture", hint="show a Tensor, a Module or a Graph")
    if opening:
        opening.check()
    return View(record, boxes, numbers=elements)


def tensor_view_record(x: Any, numbers: bool, images: bool, memory: bool, tensors: dict[str, Any], labels: Any = None):
    """Record of a tensor's elements, of its images, or of the memory of its tape: exactly one of the three."""
    asked = [name for name, wanted in (("numbers", numbers), ("images", images), ("memory", memory)) if wanted]
    if len(asked) > 1:
        raise DTypeError(f"show: {' and '.join(asked)} at once", hint="one call for each")
    if not (hasattr(x, "spec") and hasattr(x, "array")) and not (images and hasattr(x, "__array__")):
        raise DTypeError(
            f"show({asked[0]}=True) takes a Tensor, not {type(x).__name__}", hint="show(model(x), memory=True)"
        )
    return tensor_record(x) if numbers else images_record(x, labels) if images else memory_record(x, tensors)


def display_bundle(x: Any) -> dict[str, str]:
    """MIME bundle of an object without its text: pictures of graphs, trees of modules, cards of tensors.

    A Tensor shows its elements, a tiny one only in its repr; `show(x)` adds its tape.
    """
    if hasattr(x, "spec") and hasattr(x, "array"):
        html = tensor_html(tensor_record(x)) if x.array is None or x.spec.size > MAX_TEXT_ELEMENTS else ""
        return {"text/html": html} if html else {}
    if isinstance(x, Report):
        html = report_html(x.record)
        return {"text/html": html} if html else {}
    record = record_of(x)
    if record is None:
        return {}
    bundle = View(record).bundle()
    del bundle["text/plain"]  # the object's own repr is the text
    return bundle


__all__ = ["GraphRecord", "View", "picture"]
