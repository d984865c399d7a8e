"""`flow.onnx.show(path)`: an ONNX file of any program as the explorer's picture. Nothing in it is run.

Read next: `contents.py`, what the file holds; `../../nn/graph/explore/session.py`, what is open in the picture.
"""

from __future__ import annotations

import os
from html import escape

import numpy as np

from ...nn.graph.explore.session import ExplorerSession
from ...nn.graph.explore.subject import Subject
from ...views.html.page import CARD, NO_MATH, picture_card
from ...views.html.table import inner_picture, table
from ...views.records.step import StepRecord
from ...views.show import View
from ...views.text.listing import clean
from .contents import read
from .describe import numbers_of
from .records import OnnxFile, Records


class OnnxSubject(Subject):
    """What the explorer shows of an ONNX file: its graph and the numbers of its parameters, no passes and no times."""

    runs = False

    def __init__(self, file: OnnxFile):
        super().__init__(file.step.title, (), file.step.modules, {}, lambda name, ran=False: None, file.step.note)
        self.file = file
        self.arenas[0] = None  # nobody plans its memory

    def record(self, stage: int) -> StepRecord:
        return self.file.step

    def state_array(self, name: str) -> np.ndarray | None:
        """The numbers of a parameter; None where they stand in another file."""
        array = numbers_of(self.file.tensors[name]) if name in self.file.tensors else None
        return array if array is None or array.dtype.kind in "fiub" else None


class OnnxView(View):
    """An ONNX file, drawn: shows itself in a notebook, and prints as text. `.text`, `.svg`: what the explorer shows.
    `.dot`: boxes and arrows, for Graphviz. `.head`: what is known of the file as a whole, by name. `.open(name)` opens
    a module, `.save(path)` writes the picture (.svg, .html, .txt; .dot, and with Graphviz .png, .pdf).

    `minflow_widgets.explore(view)`, or `explore(path)`, is the same to click through, with the numbers of parameters.
    """

    def __init__(self, file: OnnxFile):
        super().__init__(file.step)
        self.head: dict[str, str] = dict(file.head)
        self.subject = OnnxSubject(file)
        self.session = ExplorerSession(self.subject)

    def open(self, name: str) -> OnnxView:
        """Show the module, operation or parameter of that name. Raises GraphError if there is none."""
        self.session.open(name)
        return self

    @property
    def text(self) -> str:
        """What is known of the file, and below it the rows of the picture."""
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
        picture = inner_picture(picture_card(svg, f"the graph of {self.subject.title}", text))
        html = f'<div {NO_MATH} style="{CARD}">{head}<div style="height:8px"></div>{picture}</div>'
        return {"text/html": html, "image/svg+xml": svg, "text/plain": text}


def show(path: str | os.PathLike[str]) -> OnnxView:
    """The picture of an ONNX file, whoever wrote it: its modules, operations, shapes and parameters, and what is known
    of it as a whole. It shows itself in a notebook, and prints as text.

    Modules are those that the file's metadata or the names of its nodes say; a graph inside an operation (If, Loop,
    Scan) and a function are one box that says what it holds; sizes that are not fixed have their names. Nothing is run,
    and of tensors that stand in other files only the place is named: those files are not opened.

    Raises GraphFormatError if the file cannot be read or is no ONNX file, MissingDependencyError without the package
    onnx. Source: onnx.ai/onnx/repo-docs/IR.html.
    """
    return OnnxView(Records(read(path)).result())


__all__ = ["OnnxView", "show"]
