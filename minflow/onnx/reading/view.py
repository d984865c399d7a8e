"""`flow.onnx.show(path)`: draw an ONNX file of any program in the explorer. Nothing in it is run.

Read next: `contents.py`, the contents of the file; `../../introspection/graph/explore/session.py`, the state of the
picture.
"""

from __future__ import annotations

import os
from html import escape

from ...core.host import HostArray
from ...introspection.graph.explore.explorer_model import ExplorerModel
from ...introspection.graph.explore.session import ExplorerSession
from ...views.html.page import CARD_STYLE, FAINT_STYLE, NO_MATH, picture_card
from ...views.html.table import inner_picture, table
from ...views.records.step import StepRecord
from ...views.show import View
from ...views.text.listing import clean
from .contents import read
from .describe import numbers_of
from .records import OnnxFile, Records

HINT = ".open(name) opens a module of this picture; minflow_widgets.explore(path) is one that opens by clicks."


class OnnxExplorerModel(ExplorerModel):
    """An ONNX file in the explorer: its graph and the elements of its parameters, without passes and times."""

    runs = False

    def __init__(self, file: OnnxFile):
        super().__init__(file.step.title, (), file.step.modules, {}, lambda name, ran=False: None, file.step.note)
        self.file = file
        self.arenas[0] = None  # its memory is not planned

    def record(self, stage: int) -> StepRecord:
        return self.file.step

    def state_array(self, name: str) -> HostArray | None:
        """The elements of a parameter; None if they are in another file."""
        array = numbers_of(self.file.tensors[name]) if name in self.file.tensors else None
        return array if array is None or array.dtype.kind in "fiub" else None


class OnnxView(View):
    """The picture of an ONNX file: it displays itself in a notebook, and prints as text.

    `.text`, `.svg`: the explorer's output. `.dot`: boxes and arrows, for Graphviz. `.head`: facts about the file as a
    whole, by name. `.open(name)` opens a module, `.save(path)` writes the picture (.svg, .html, .txt; .dot, and with
    Graphviz .png, .pdf).

    `minflow_widgets.explore(view)`, or `explore(path)`, is the interactive version, with the elements of parameters.
    """

    def __init__(self, file: OnnxFile):
        super().__init__(file.step)
        self.head: dict[str, str] = dict(file.head)
        self.explorer_model = OnnxExplorerModel(file)
        self.session = ExplorerSession(self.explorer_model)

    def open(self, name: str) -> OnnxView:
        """Open the module, operation or parameter of this name. Raises GraphError if there is none."""
        self.session.open(name)
        return self

    @property
    def text(self) -> str:
        """Facts about the file, followed by the rows of the picture."""
        width = max(map(len, self.head))
        lines = [f"{what:<{width}}  {clean(text)}" for what, text in self.head.items()]
        return "\n".join([*lines, "", self.session.text()])

    @property
    def svg(self) -> str:
        """The explorer's picture."""
        return self.session.svg()

    def bundle(self) -> dict[str, str]:
        """mime type -> data."""
        svg, text = self.svg, self.text
        head = table([(what, escape(clean(said)), "") for what, said in self.head.items()])
        picture = inner_picture(picture_card(svg, f"the graph of {self.explorer_model.title}", text, live=True))
        hint = f'<div style="font-size:12px;margin:8px 0 4px;{FAINT_STYLE}">{HINT}</div>'
        html = f'<div {NO_MATH} style="{CARD_STYLE}">{head}{hint}{picture}</div>'
        return {"text/html": html, "image/svg+xml": svg, "text/plain": text}


def show(path: str | os.PathLike[str]) -> OnnxView:
    """Draw an ONNX file of any exporter: its modules, operations, shapes and parameters, and facts about the whole
    file. The result displays itself in a notebook, and prints as text.

    Modules follow from the file's metadata or the names of its nodes; a nested graph (If, Loop, Scan) and a function
    are one box that summarizes its contents; dynamic sizes are shown by name. Nothing is run. Tensors in other files
    are shown only by location; those files are not opened.

    Raises GraphFormatError if the file cannot be read or is not an ONNX file, MissingDependencyError without the
    package onnx. Source: onnx.ai/onnx/repo-docs/IR.html.
    """
    return OnnxView(Records(read(path)).result())


__all__ = ["OnnxView", "show"]
