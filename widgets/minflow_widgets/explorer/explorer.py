"""`explore(graph)`: a graph, job or model as a picture that opens module by module, with its passes, numbers and
instructions.

The widget only carries asks and answers: `minflow.nn.graph.explore.session` decides what is shown, `explorer.js` draws
it. What is displayed, and so saved, is a still picture; `place.js` draws the live one over it. Read next:
`explorer.js`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import uuid
import weakref
from collections import deque
from typing import Any

from minflow.core.base.errors import GraphError
from minflow.core.source_location import OURS, fail, here
from minflow.diagnosis import notebook
from minflow.job.inspect.explore import job_subject
from minflow.job.function import Job
from minflow.nn.graph.explore.session import ExplorerSession
from minflow.nn.graph.explore.subject import Subject, graph_subject
from minflow.nn.graph import Graph
from minflow.nn.module import Module
from minflow.views.html.page import NO_MATH, picture_card

from ..frontends import answering, close, script

OURS[__file__] = True  # an error here happened at the line of the program that called
MOST = 8  # explorers that are live at once
SCRIPTS = [f"explorer/{name}.js" for name in ("place", "numbers", "picture", "zoom", "explorer")]
SHOWN: deque = deque()  # those that are live, the oldest first


@functools.cache
def widget_class():
    """The anywidget. name: its id, which the places bear where it is drawn.  picture, detail: what is drawn, as JSON.
    ask: what the reader wants, as JSON."""
    import anywidget
    import traitlets

    class GraphExplorer(anywidget.AnyWidget):
        _esm, _css = script(*SCRIPTS), script("explorer/explorer.css")
        name = traitlets.Unicode("").tag(sync=True)
        picture = traitlets.Unicode("").tag(sync=True)
        detail = traitlets.Unicode("{}").tag(sync=True)
        ask = traitlets.Unicode("").tag(sync=True)

        def __repr__(self) -> str:  # without the address, so that checked notebooks stay equal
            return "GraphExplorer (live)"

    return GraphExplorer


class Place:
    """Where an explorer stands on a page: a live picture, over a still one or with it in the output below.

    handle: of the live picture.  still: of the other, or None.
    """

    def __init__(self, name: str, handle: Any, still: Any = None):
        self.name, self.handle, self.still = name, handle, still

    def keep(self, bundle: dict[str, str]) -> None:
        """Put another still picture there. The live one goes on: a page draws it over the new one as over the first."""
        if self.still is not None:
            self.still.update(folded(bundle), raw=True)
        else:
            self.handle.update(living(bundle, self.name), raw=True)

    def end(self, bundle: dict[str, str]) -> None:
        """Put the still picture in the place of the live one."""
        self.handle.update(bundle, raw=True)


def living(bundle: dict[str, str], name: str) -> dict[str, str]:
    """The picture as the place where the widget of that name is drawn."""
    inside = bundle.get("text/html", "")
    live = f'<minflow-live {NO_MATH} data-name="{name}">{inside}</minflow-live>'
    return {"text/html": live, "text/plain": bundle["text/plain"]}


def folded(bundle: dict[str, str]) -> dict[str, str]:
    """The picture for below a widget."""
    head = '<details><summary style="cursor:pointer">still picture, for when no kernel runs</summary>'
    return {"text/html": f"{head}{bundle.get('text/html', '')}</details>", "text/plain": bundle["text/plain"]}


class Explorer:
    """A graph to look at. In a notebook it is live as long as the kernel is. A saved notebook holds a still picture, as
    it was when it was first shown; `keep()`, or the button "keep as picture", puts the present one there, and the live
    one goes on. `end()` does that and ends the live one. Elsewhere it prints as text. `text`, `svg`: the present
    picture.

    At most MOST are live: the oldest is then kept as it is, and lets go of its graph, which may be the last thing that
    holds it. While the graph lives it can be used again, without what was recorded.

    session: the state: what is open, which pass, which instruction.
    """

    def __init__(self, target: Any, args: tuple = (), kwargs: dict | None = None):
        self.name = type(target).__name__
        # subject_of says what is wrong with others
        self.refer = weakref.ref(target) if isinstance(target, Graph | Job) or has_subject(target) else None
        self.target: Any = target
        self.session: ExplorerSession = ExplorerSession(subject_of(target, args, kwargs or {}))
        self.shown: list[tuple[Any, Place]] = []  # (widget, its place), one for each time that it is shown
        self.still: dict[str, str] | None = None  # what is left of one that has let go

    def __getattr__(self, name: str) -> Any:
        """An explorer that has let go takes its graph up again where it is used, if that is still there."""
        if name not in ("target", "session"):
            raise AttributeError(f"an explorer has no {name!r}")
        target = self.refer() if self.refer is not None else None
        if target is None:
            why = f"{MOST} newer ones were shown, and the graph is gone"
            fail(
                GraphError,
                f"this explorer of a {self.name} is a still picture: {why}",
                "explore(graph, x, y) once more, with a graph that is still held",
            )
        self.session = ExplorerSession(subject_of(target, (), {}))
        self.target, self.still = target, None
        return self.__dict__[name]

    @property
    def text(self) -> str:
        """The present picture as lines of text."""
        return self.session.text()

    @property
    def svg(self) -> str:
        """The present picture."""
        return self.session.svg()

    def open(self, name: str) -> Explorer:
        """Show the module, operation or parameter of that name, with all that it is in opened. Raises GraphError if
        there is none."""
        self.session.open(name)
        self.send(True)
        return self

    def record(self, *args: Any, **kwargs: Any) -> Explorer:
        """Run one step with these inputs, from where the training stands now, and show its values; what is open stays
        open."""
        fresh = ExplorerSession(subject_of(self.target, args, kwargs, True))
        fresh.opened, fresh.selected = self.session.opened, self.session.selected
        fresh.arranged()
        self.session = fresh
        self.send(True, True)
        return self

    def keep(self) -> None:
        """Keep the present picture in the notebook, where it survives saving and the end of the kernel; the live one
        goes on.

        A page that was loaded again since has forgotten where it stands: there the picture of the beginning stays.
        """
        for _, place in list(self.shown):
            place.keep(self._repr_mimebundle_())

    def end(self) -> None:
        """Put the present picture, still, in the place of the live ones, and end those."""
        shown, self.shown = self.shown, []
        for widget, place in shown:
            place.end(self._repr_mimebundle_())
            close(widget)
        if self in SHOWN:
            SHOWN.remove(self)

    def let_go(self) -> None:
        """Keep the present picture, and hold the graph no longer."""
        self.end()
        self.still = self._repr_mimebundle_()
        del self.target, self.session

    # ---- the live picture --------------------------------------------------------------------------------------------

    def send(self, changed: bool, arena: bool = False, answer: str = "", note: str = "") -> None:
        """Send the widgets what to draw. answer: to which ask.  note: a line for the reader."""
        picture = compact(self.session.picture(arena)) if changed else ""
        detail = compact({**self.session.detail(), "n": answer, "said": note})
        for widget, _ in self.shown:
            with widget.hold_sync():
                widget.picture, widget.detail = picture or widget.picture, detail

    def asked(self, change: Any) -> None:
        """The reader wants something. Nothing that a page sends can raise here."""
        with contextlib.suppress(Exception):
            ask = json.loads(change["new"])
            if isinstance(ask, dict) and self.still is None:
                self.answer(ask)

    def answer(self, ask: dict) -> None:
        number = ask.get("n", "")
        answer = str(number)[:40] if isinstance(number, int | float | str) else ""
        if ask.get("do") == "keep":
            self.keep()
            self.send(False, answer=answer, note="Kept: a saved notebook shows this picture.")
            return
        changed = self.session.act(ask)
        self.send(changed, answer=answer)
        if changed and ask.get("do") == "stage":  # the memory of a pass takes longer to know than its picture
            self.send(True, True, answer)

    def live(self) -> Any:
        """The widget. Raises ImportError without anywidget, and what one raises that does not fit this notebook."""
        self.session.prepare()
        picture, detail = compact(self.session.picture(arena=True)), compact(self.session.detail())
        name = uuid.uuid4().hex
        widget = widget_class()(model_id=name, name=name, picture=picture, detail=detail)
        widget.observe(self.asked, "ask")
        return answering(widget)

    def _ipython_display_(self) -> None:
        if not notebook.in_notebook():
            print(self.text)
            return
        if self.still is not None and self.refer is not None and self.refer() is not None:
            _ = self.session
        bundle, widget = self._repr_mimebundle_(), None
        if self.still is None and notebook.live():
            try:
                widget = self.live()
            except ImportError:
                pass  # without anywidget the still picture is all
            except Exception as error:  # showing a thing must not break a cell
                print(f"explore: no live picture, {type(error).__name__}: {error}")
        if widget is None:
            notebook.display(bundle, raw=True)
            return
        if self not in SHOWN:
            SHOWN.append(self)
        while len(SHOWN) > MOST:
            SHOWN[0].let_go()
        if notebook.one_page():
            handle, still = notebook.display(living(bundle, widget.name), raw=True, display_id=True), None
        else:
            handle = notebook.display(widget, display_id=True)
            still = notebook.display(folded(bundle), raw=True, display_id=True)
        self.shown.append((widget, Place(widget.name, handle, still)))

    # ---- what stays --------------------------------------------------------------------------------------------------

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self.still is not None:
            return self.still
        text = self.text
        try:
            svg = self.svg
            card = picture_card(svg, text.partition("\n")[0], text)
            return {"text/html": card, "image/svg+xml": svg, "text/plain": text}
        except Exception as error:  # showing a thing must not break a cell
            return {"text/plain": f"{text}\n(no picture: {type(error).__name__}: {error})"}

    def __repr__(self) -> str:
        return self.still["text/plain"] if self.still is not None else self.text


def compact(data: dict) -> str:
    """As JSON. Names may hold half a surrogate pair, which no message can carry."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


class Forward(Graph):
    """A model by itself as a graph: its outputs for the inputs."""

    def __init__(self, model: Module):
        super().__init__()
        self.model = model


def forward_of(model: Module) -> Forward:
    """A graph that runs the model, called as the model's class is and with inputs of the same names."""

    def build(self, *args: Any, **kwargs: Any) -> Any:
        return self.model(*args, **kwargs)

    with contextlib.suppress(TypeError, ValueError):  # a forward without a signature
        build.__signature__ = inspect.signature(type(model).forward)  # type: ignore[attr-defined]
    return type(type(model).__name__, (Forward,), {"build": build, "__doc__": Forward.__doc__})(model)


def explore(x: Any, /, *args: Any, **kwargs: Any) -> Explorer:
    """An nn.Graph or a job function to explore: `explore(graph)`, or with inputs `explore(graph, x, y)`; a model with
    inputs, `explore(model, x)`, which is run forward only; an ONNX file, `explore("model.onnx")` or
    `explore(flow.onnx.show(path))`, of which nothing is run.

    With inputs, one step is run from the present state and recorded, with the time and the values of every operation;
    parameters, buffers, optimizer and generator are then put back. Without, shapes, bytes, passes, parameters and their
    last gradients are there. Raises GraphError if a graph was never called and there are no inputs.
    """
    if isinstance(x, str | os.PathLike):
        from minflow.onnx import show

        x = show(x)
    if isinstance(x, Module):
        if not args and not kwargs:
            what = f"explore: a model is run forward to be explored, and the input of {type(x).__name__} is missing"
            hint = "explore(model, x); or explore(graph) of the nn.Graph that trains it, with backward and update"
            fail(GraphError, what, hint)
        x = forward_of(x)
    return Explorer(x, args, kwargs)


def has_subject(x: Any) -> bool:
    """Is it an ONNX file that is shown?"""
    return isinstance(getattr(x, "subject", None), Subject)


def subject_of(x: Any, args: tuple, kwargs: dict, step: bool = False) -> Subject:
    if isinstance(x, Graph):
        subject = graph_subject(x, args, kwargs, step)
        if isinstance(x, Forward):
            subject.note = (
                "Forward only: explore an nn.Graph that calls backward and has an optimizer to see the rest of a step."
            )
        return subject
    if isinstance(x, Job):
        return job_subject(x, args, kwargs, step)
    if has_subject(x):
        if args or kwargs or step:
            fail(
                GraphError,
                f"explore: nothing of {x.subject.title} is run, so that it takes no inputs",
                'explore("model.onnx"); onnxruntime runs such a file',
            )
        return x.subject
    hint = "explore(graph) of an nn.Graph, explore(job) of a job function, explore(model, x) of a model, "
    hint += "explore(path) of an ONNX file; "
    hint += "show(x) draws a tensor's tape"
    what = f"but of type {type(x).__name__}"
    if isinstance(x, type):
        what = f"but the class {x.__name__}, and one is made of it first"
    raise GraphError(f"explore: this is no graph, no job and no model, {what}", where=here(), hint=hint)
