"""`explore(graph)`: a graph, job or model as a picture that opens module by module, with passes, values and
instructions.

The widget only carries requests and answers: `minflow.introspection.graph.explore.session` decides what is shown,
`explorer.js` draws it. The output that is displayed, and therefore saved, is a static picture; `place.js` draws the
live one over it. Read next: `explorer.js`.
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
from minflow.core.source_location import IS_MINFLOW_FILE, fail, here
from minflow.diagnosis import notebook
from minflow.introspection.graph.explore.explorer_model import ExplorerModel, graph_explorer_model
from minflow.introspection.graph.explore.session import ExplorerSession
from minflow.introspection.job.explore import job_explorer_model
from minflow.job.function import Job
from minflow.nn.graph import Graph
from minflow.nn.module import Module
from minflow.views.html.page import NO_MATH, picture_card
from minflow.views.html.script import lean

from ..frontends import accept_messages, close, script

IS_MINFLOW_FILE[__file__] = True  # errors here are attributed to the line of the caller
MAX_LIVE_EXPLORERS = 8  # live explorers at once
SCRIPTS = [
    f"explorer/{name}.js"
    for name in ("place", "nodes", "numbers", "maps", "picture", "zoom", "details", "search", "controls", "explorer")
]
LIVE_EXPLORERS: deque = deque()  # live explorers, oldest first


@functools.cache
def widget_class():
    """The anywidget class. name: its id, carried by the places where it is drawn.  picture, detail: data to draw, as
    JSON.  ask: the reader's request, as JSON.
    """
    import anywidget
    import traitlets

    class GraphExplorer(anywidget.AnyWidget):
        _esm, _css = lean(script(*SCRIPTS)), script("explorer/explorer.css")
        name = traitlets.Unicode("").tag(sync=True)
        picture = traitlets.Unicode("").tag(sync=True)
        detail = traitlets.Unicode("{}").tag(sync=True)
        ask = traitlets.Unicode("").tag(sync=True)

        def __repr__(self) -> str:  # without the address, so that executed notebooks are reproducible
            return "GraphExplorer (live)"

    return GraphExplorer


class OutputSlot:
    """Output of an explorer on a page: a live picture, drawn over a static one or above it.

    handle: display handle of the live picture.  still: display handle of a separate static one, or None.
    """

    def __init__(self, name: str, handle: Any, still: Any = None):
        self.name, self.handle, self.still = name, handle, still

    def keep(self, bundle: dict[str, str]) -> None:
        """Replace the static picture. The live one continues: a page draws it over the new one as over the first."""
        if self.still is not None:
            self.still.update(folded_bundle(bundle), raw=True)
        else:
            self.handle.update(live_bundle(bundle, self.name), raw=True)

    def end(self, bundle: dict[str, str]) -> None:
        """Replace the live picture with the static one."""
        self.handle.update(bundle, raw=True)


def live_bundle(bundle: dict[str, str], name: str) -> dict[str, str]:
    """The picture as the place where the widget of that name is drawn."""
    inside = bundle.get("text/html", "")
    live = f'<minflow-live {NO_MATH} data-name="{name}">{inside}</minflow-live>'
    return {"text/html": live, "text/plain": bundle["text/plain"]}


def folded_bundle(bundle: dict[str, str]) -> dict[str, str]:
    """The picture for the output below a widget."""
    head = '<details><summary style="cursor:pointer">still picture, for when no kernel runs</summary>'
    return {"text/html": f"{head}{bundle.get('text/html', '')}</details>", "text/plain": bundle["text/plain"]}


class Explorer:
    """Interactive view of a graph, live in a notebook while the kernel runs. A saved notebook holds a static picture of
    the state at first display. `keep()`, or the button "keep as picture", replaces it with the current state, and the
    live one continues; `end()` does the same and ends the live one. Elsewhere it prints as text. `text`, `svg`: the
    current picture.

    At most MAX_LIVE_EXPLORERS are live: the oldest one becomes static and releases its graph, possibly the last
    reference to it. While the graph exists, the explorer can be used again, without the recorded values.

    session: the state: open items, selected pass, selected instruction.
    """

    def __init__(self, target: Any, args: tuple = (), kwargs: dict | None = None):
        self.name = type(target).__name__
        # explorer_model_of raises an error for other objects
        self.refer = weakref.ref(target) if isinstance(target, Graph | Job) or has_explorer_model(target) else None
        self.target: Any = target
        self.session: ExplorerSession = ExplorerSession(explorer_model_of(target, args, kwargs or {}))
        self.shown: list[tuple[Any, OutputSlot]] = []  # (widget, its place) for each display
        self.still: dict[str, str] | None = None  # the static picture after release

    def __getattr__(self, name: str) -> Any:
        """Reacquire the graph of a released explorer on use, if it still exists."""
        if name not in ("target", "session"):
            raise AttributeError(f"an explorer has no {name!r}")
        target = self.refer() if self.refer is not None else None
        if target is None:
            why = f"{MAX_LIVE_EXPLORERS} newer ones were shown, and the graph is gone"
            fail(
                GraphError,
                f"this explorer of a {self.name} is a still picture: {why}",
                "explore(graph, x, y) once more, with a graph that is still held",
            )
        self.session = ExplorerSession(explorer_model_of(target, (), {}))
        self.target, self.still = target, None
        return self.__dict__[name]

    @property
    def text(self) -> str:
        """The current picture as lines of text."""
        return self.session.text()

    @property
    def svg(self) -> str:
        """The current picture."""
        return self.session.svg()

    def open(self, name: str) -> Explorer:
        """Show the module, operation or parameter of that name, opening it and all modules around it. Raises GraphError
        if there is none.
        """
        self.session.open(name)
        self.send(True)
        return self

    def record(self, *args: Any, **kwargs: Any) -> Explorer:
        """Run one step with these inputs from the current state of the training, and show its values; open items stay
        open.
        """
        fresh = ExplorerSession(explorer_model_of(self.target, args, kwargs, True))
        fresh.opened, fresh.selected = self.session.opened, self.session.selected
        fresh.update_layout()
        self.session = fresh
        self.send(True, True)
        return self

    def keep(self) -> None:
        """Keep the current picture in the notebook, where it survives saving and the end of the kernel; the live one
        continues.

        A page that was reloaded since then no longer has the output: it keeps the initial picture.
        """
        for _, place in list(self.shown):
            place.keep(self._repr_mimebundle_())

    def end(self) -> None:
        """Replace the live pictures with the current static one, and end them."""
        shown, self.shown = self.shown, []
        for widget, place in shown:
            place.end(self._repr_mimebundle_())
            close(widget)
        if self in LIVE_EXPLORERS:
            LIVE_EXPLORERS.remove(self)

    def release(self) -> None:
        """Keep the current picture, and release the graph."""
        self.end()
        self.still = self._repr_mimebundle_()
        del self.target, self.session

    # ---- the live picture --------------------------------------------------------------------------------------------

    def send(self, changed: bool, arena: bool = False, answer: str = "", note: str = "") -> None:
        """Send data to the widgets. answer: id of the request that it answers.  note: a line for the reader."""
        picture = compact(self.session.picture(arena)) if changed else ""
        detail = compact({**self.session.detail(), "n": answer, "said": note})
        for widget, _ in self.shown:
            with widget.hold_sync():
                widget.picture, widget.detail = picture or widget.picture, detail

    def asked(self, change: Any) -> None:
        """Handle a request from the reader. Never raises, whatever a page sends."""
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
        self.send(changed, answer=answer, note=self.session.said)
        if changed and ask.get("do") == "stage":  # the memory of a pass takes longer to compute than its picture
            self.send(True, True, answer)

    def live(self) -> Any:
        """The widget. Raises ImportError without anywidget, and any error of one that does not fit this notebook."""
        self.session.prepare()
        picture, detail = compact(self.session.picture(arena=True)), compact(self.session.detail())
        name = uuid.uuid4().hex
        widget = widget_class()(model_id=name, name=name, picture=picture, detail=detail)
        widget.observe(self.asked, "ask")
        return accept_messages(widget)

    def _ipython_display_(self) -> None:
        if not notebook.in_notebook():
            print(self.text)
            return
        if self.still is not None and self.refer is not None and self.refer() is not None:
            _ = self.session
        bundle, widget = self._repr_mimebundle_(), None
        if self.still is None and notebook.live_updates_enabled():
            try:
                widget = self.live()
            except ImportError:
                pass  # without anywidget there is only the static picture
            except Exception as error:  # a failed display must not break the cell
                print(f"explore: no live picture, {type(error).__name__}: {error}")
        if widget is None:
            notebook.display(bundle, raw=True)
            return
        if self not in LIVE_EXPLORERS:
            LIVE_EXPLORERS.append(self)
        while len(LIVE_EXPLORERS) > MAX_LIVE_EXPLORERS:
            LIVE_EXPLORERS[0].release()
        if notebook.scripts_share_page():
            handle, still = notebook.display(live_bundle(bundle, widget.name), raw=True, display_id=True), None
        else:
            handle = notebook.display(widget, display_id=True)
            still = notebook.display(folded_bundle(bundle), raw=True, display_id=True)
        self.shown.append((widget, OutputSlot(widget.name, handle, still)))

    # ---- static picture ----------------------------------------------------------------------------------------------

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self.still is not None:
            return self.still
        text = self.text
        try:
            svg = self.svg
            card = picture_card(svg, text.partition("\n")[0], text)
            return {"text/html": card, "image/svg+xml": svg, "text/plain": text}
        except Exception as error:  # a failed display must not break the cell
            return {"text/plain": f"{text}\n(no picture: {type(error).__name__}: {error})"}

    def __repr__(self) -> str:
        return self.still["text/plain"] if self.still is not None else self.text


def compact(data: dict) -> str:
    """Compact JSON. Names may contain lone surrogates, which cannot be sent."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


class Forward(Graph):
    """A graph of a model only: its outputs for given inputs."""

    def __init__(self, model: Module):
        super().__init__()
        self.model = model


def forward_of(model: Module) -> Forward:
    """A graph that runs the model, with the name of its class and the same parameter names."""

    def build(self, *args: Any, **kwargs: Any) -> Any:
        return self.model(*args, **kwargs)

    with contextlib.suppress(TypeError, ValueError):  # forward without a signature
        build.__signature__ = inspect.signature(type(model).forward)  # type: ignore[attr-defined]
    return type(type(model).__name__, (Forward,), {"build": build, "__doc__": Forward.__doc__})(model)


def explore(x: Any, /, *args: Any, **kwargs: Any) -> Explorer:
    """Explore an nn.Graph or a job function: `explore(graph)`, or with inputs `explore(graph, x, y)`; a model with
    inputs, `explore(model, x)`, which runs only forward; an ONNX file, `explore("model.onnx")` or
    `explore(flow.onnx.show(path))`, which runs nothing.

    With inputs, one step is run from the current state and recorded, with time and values of every operation;
    parameters, buffers, optimizer and generator are then restored. Without, shapes, bytes, passes, parameters and their
    last gradients are shown. Modules and composite operations open in place; values inside an operation are computed
    when it is looked into. Raises GraphError if a graph was never called and there are no inputs.
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


def has_explorer_model(x: Any) -> bool:
    """True for an ONNX file that was opened for display."""
    return isinstance(getattr(x, "explorer_model", None), ExplorerModel)


def explorer_model_of(x: Any, args: tuple, kwargs: dict, step: bool = False) -> ExplorerModel:
    if isinstance(x, Graph):
        model = graph_explorer_model(x, args, kwargs, step)
        if isinstance(x, Forward):
            model.note = (
                "Forward only: explore an nn.Graph that calls backward and has an optimizer to see the rest of a step."
            )
        return model
    if isinstance(x, Job):
        return job_explorer_model(x, args, kwargs, step)
    if has_explorer_model(x):
        if args or kwargs or step:
            fail(
                GraphError,
                f"explore: no operation of {x.explorer_model.title} is run, so it takes no inputs",
                'explore("model.onnx"); onnxruntime runs such a file',
            )
        return x.explorer_model
    hint = "explore(graph) of an nn.Graph, explore(job) of a job function, explore(model, x) of a model, "
    hint += "explore(path) of an ONNX file; "
    hint += "show(x) draws a tensor's tape"
    what = f"got {type(x).__name__}"
    if isinstance(x, type):
        what = f"got the class {x.__name__}; create an object of it first"
    raise GraphError(f"explore takes a graph, a job or a model, {what}", where=here(), hint=hint)
