"""A curve on a page: the widget, its messages from the reader, and the static picture that replaces it.

anywidget is imported only here, when a curve is first shown. Read next: `loss_curve.js`.
"""

from __future__ import annotations

import base64
import functools
import json
import sys
import weakref
import zlib

from minflow.diagnosis import notebook
from minflow.views.html.script import lean, with_script

from .. import frontends
from .arguments import CONTROL_METHODS

SMOOTHINGS = 5  # choices of the slider, the first without a smoothed line: SMOOTHINGS in curve_panel.js
SCRIPTS = (
    "page_theme.js",
    "curve/curve_data.js",
    "curve/legend.js",
    "curve/curve_panel.js",
    "curve/range_zoom.js",
    "curve/buttons.js",
    "curve/loss_curve.js",
)


def start_frontend(curve):
    """Choose the front end that shows this curve from now on."""
    return frontends.choose_frontend(lambda: frontends.Widget(curve, live_widget(curve)))


@functools.cache
def widget_class():
    """The anywidget class. All state is in traits, so that a reloaded page shows it again.

    data: the whole downsampled curve.  before: that of the previous run.  look: the reader's choices as JSON,
    {"log": bool or null, "x": "step" or "time", "smooth": 0 to 4}.  wish: the last message of a page, such as
    "pause 4f.2": a verb and the number of this message. The verb of a page that has just been shown is "hello". `data`
    has the numbers of the last messages that arrived, so a page knows if its clicks do.
    """
    import anywidget
    import traitlets

    class LiveCurve(frontends.RestrictedTraits, anywidget.AnyWidget):
        accepted_traits = "look", "wish"
        _esm = frontends.script(*SCRIPTS) + "export default { render };\n"
        data = traitlets.Bytes(b"").tag(sync=True)
        before = traitlets.Bytes(b"").tag(sync=True)
        look = traitlets.Unicode("{}").tag(sync=True)
        wish = traitlets.Unicode("").tag(sync=True)

        def __repr__(self) -> str:  # without the address, so that executed notebooks are reproducible
            return "LossCurve (live)"

    return LiveCurve


def look_of(curve) -> str:
    return json.dumps({"log": curve.log, "x": curve.x, "smooth": curve.smooth})


def still(curve, html: str) -> str:
    """The HTML of a finished curve with its data, drawn as the same canvas without a kernel if scripts run."""
    data = {"code": canvas_script(), "data": deflated(curve.encode()), "before": deflated(curve.encode_before())}
    return with_script(html, lean(frontends.script("curve/still_curve.js")), {**data, "look": look_of(curve)})


@functools.cache
def canvas_script() -> str:
    return deflated(lean(frontends.script(*SCRIPTS)).encode())


def deflated(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def live_widget(curve):
    """A widget that shows the curve and reacts to its buttons."""
    mine = weakref.ref(curve)
    widget = widget_class()(data=curve.encode(), before=curve.encode_before(), look=look_of(curve))

    def looked(change) -> None:
        curve = mine()
        try:
            chosen = json.loads(change["new"])
        except (ValueError, RecursionError):
            return
        if curve is not None and isinstance(chosen, dict):
            log = chosen.get("log")  # null: not chosen
            curve.log, curve.x = None if log is None else bool(log), "time" if chosen.get("x") == "time" else "step"
            smooth = chosen.get("smooth")
            curve.smooth = smooth if type(smooth) is int and 0 <= smooth < SMOOTHINGS else 1

    def wished(change) -> None:
        curve, (wish, _, number) = mine(), change["new"].partition(" ")
        if curve is None:
            return
        if wish in CONTROL_METHODS:
            getattr(curve.control, wish, lambda: None)()
        curve._heard.append(number[:20])
        if curve._update_thread is not None:
            curve._update_thread.wake()  # shows the new state even if no further step comes

    widget.observe(looked, "look")
    widget.observe(wished, "wish")
    return frontends.accept_messages(widget)


def explore(curve) -> None:
    """Show a curve again: the live one while it runs, then a widget that stays; a picture without widgets."""
    if not notebook.in_notebook():
        frontends.Lines(sys.stdout).finish(curve)
        return
    if isinstance(curve._front, frontends.Widget) and not curve._finished:
        curve._front.show(curve)
        return
    try:
        widget = live_widget(curve)
        notebook.display(widget)
        frontends.retire(widget, frontends.SHOWN_WIDGETS, 16)
    except Exception:
        notebook.display(curve.bundle(), raw=True)
