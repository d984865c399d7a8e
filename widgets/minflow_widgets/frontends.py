"""The places where a curve can be shown: a live widget, a picture that is drawn anew, lines of text, or nothing.

Each has `update(curve)`, called at most ten times a second from one thread at a time, and `finish(curve)`, which leaves
what is to stay. IPython and anywidget are imported here only, when a curve is first shown; a missing one is no error.
Read next: `curve/loss_curve.py`, which chooses and calls them.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
import threading
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path

from minflow.diagnosis import notebook
from minflow.views.text.listing import clean

CURVE = Path(__file__).with_name("curve")
ENDED: deque = deque()  # widgets that have ended last, which still live
SHOWN: deque = deque()  # the same of those for which no picture stands on the page


def choose():
    """The best front end that this process has. `MINFLOW_LIVE=0` leaves only the final static output."""
    live = notebook.live()
    if notebook.in_notebook():
        if not live:
            return Still()
        try:
            return Widget()
        except Exception:  # no anywidget, or one that does not fit this notebook: pictures need neither
            return Still(live=True)
    return Lines(sys.stdout, live)


def start(curve):
    """The front end that shows this curve from now on."""
    front = choose()
    try:
        if hasattr(front, "open"):
            front.open(curve)
    except Exception:  # as above
        return Still(live=True)
    return front


def leave(front, shown) -> None:
    """The end of what is shown. A place that fails must not hide the error of the user, for which it ends, perhaps."""
    try:
        front.finish(shown)
    except Exception:
        with suppress(Exception):
            notebook.show_bundle(shown.bundle)


class Hearing:
    """A widget that hears of a page only what a page may say; anything else would show an error in the notebook, or
    change what the others see. hears: the traits, all of text, that a page may set."""

    hears: tuple[str, ...] = ()

    def _handle_msg(self, msg) -> None:
        data = msg["content"].get("data")
        method = data.get("method") if isinstance(data, dict) else None
        if method == "request_state":
            super()._handle_msg(msg)
        elif method == "update" and isinstance(data.get("state"), dict):
            self.set_state(data["state"])

    def set_state(self, sync_data) -> None:
        said = sync_data if isinstance(sync_data, dict) else {}
        super().set_state({name: said[name] for name in self.hears if isinstance(said.get(name), str)})


@contextmanager
def undisturbed():
    """Within the block no interrupt is heard: a second press of the button must not cost the picture. Then it is."""
    came, before = [], signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():  # not Python's; a thread hears none
        yield
        return
    signal.signal(signal.SIGINT, lambda *frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[-1])


@functools.cache
def widget_class():
    """The anywidget. All state is in traits, so a page loaded again shows it again.

    data: the whole decimated curve.  before: that of the previous run.  look: what the reader chose, as JSON
    {"log": bool or null, "x": "step" or "time"}.  wish: the last button that was pressed, "pause 1", "resume 2", "stop
    3".
    """
    import anywidget
    import traitlets

    class LiveCurve(Hearing, anywidget.AnyWidget):
        hears = "look", "wish"
        _esm = "".join((CURVE / name).read_text(encoding="utf-8") for name in ("curve_panel.js", "loss_curve.js"))
        data = traitlets.Bytes(b"").tag(sync=True)
        before = traitlets.Bytes(b"").tag(sync=True)
        look = traitlets.Unicode("{}").tag(sync=True)
        wish = traitlets.Unicode("").tag(sync=True)

        def __repr__(self) -> str:  # without the address, so that checked notebooks stay equal
            return "LossCurve (live)"

    return LiveCurve


def live(curve):
    """A widget that shows the curve and does what its buttons say."""
    mine = weakref.ref(curve)
    widget = widget_class()(data=curve.encode(), before=curve.encode_before(), look=json.dumps({"log": curve.log, "x": curve.x}))

    def looked(change) -> None:
        curve = mine()
        try:
            chosen = json.loads(change["new"])
        except (ValueError, RecursionError):
            return
        if curve is not None and isinstance(chosen, dict):
            log = chosen.get("log")  # null: nobody has chosen
            curve.log, curve.x = None if log is None else bool(log), "time" if chosen.get("x") == "time" else "step"

    def wished(change) -> None:
        curve, wish = mine(), change["new"].partition(" ")[0]
        if curve is not None and curve.control is not None and wish in ("pause", "resume", "stop"):
            getattr(curve.control, wish, lambda: None)()
            if curve._pump is not None:
                curve._pump.wake()  # so that the new state is seen, also where no further step comes

    widget.observe(looked, "look")
    widget.observe(wished, "wish")
    return answering(widget)


def answering(widget):
    """The widget, which now hears what a page tells it, also a page that was loaded or opened again.

    A page asks the kernel to hear it on a thread of the page's own (a subshell), so that clicks count while a cell
    runs. The Python kernel 7.4 sends a message to where the widget was last changed from instead. Here that is a thread of
    ours, which goes by the last message from any page; JupyterLab ends the subshell of that one soon after a page is
    loaded, and from then on every click is lost ("Cannot handle comm_msg: Unknown subshell_id" in the log of the
    server). So the message stays where the page has put it. Other versions have no such route, and nothing to turn off.
    """
    comm = getattr(widget, "comm", None)
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda data, default: default
    return widget


def explore(curve) -> None:
    """Show a curve once more: while it is live the same one, afterwards a widget that stays; without widgets a
    picture."""
    if not notebook.in_notebook():
        Lines(sys.stdout).finish(curve)
        return
    if isinstance(curve._front, Widget) and not curve._finished:
        curve._front.show()
        return
    try:
        widget = live(curve)
        notebook.display(widget)
        retire(widget, SHOWN, 16)
    except Exception:
        notebook.display(curve.bundle(), raw=True)


class Widget:
    """A live canvas. At the end the static picture takes its place under the same display id, wherever it was shown."""

    def __init__(self):
        widget_class()
        self.handles = []

    def open(self, curve) -> None:
        self.widget = live(curve)
        self.dropped = when_dropped(curve, self.widget)
        self.show()

    def show(self) -> None:
        self.handles.append(notebook.display(self.widget, display_id=True))

    def update(self, curve) -> None:
        self.widget.data = curve.encode()

    def finish(self, curve) -> None:
        # The widget's model dies with the kernel: what a saved notebook must show is put in its place. A page that was
        # loaded again meanwhile does not know the place and goes on showing the model, so that lives on for a while.
        self.widget.data, bundle = curve.encode(), curve.bundle()
        for handle in self.handles:
            handle.update(bundle, raw=True)
        self.dropped.detach()
        retire(self.widget)


def retire(widget, ended: deque = ENDED, most: int = 8) -> None:
    """Close it some widgets later: a page that was loaded again meanwhile has nothing else to show."""
    ended.append(widget)
    if len(ended) > most:
        close(ended.popleft())


def when_dropped(owner, widget) -> weakref.finalize:
    """Retire the widget where nobody holds what it shows any more: ipywidgets would hold it until the kernel ends."""
    dropped = weakref.finalize(owner, retire, widget, SHOWN, 16)
    dropped.atexit = False
    return dropped


def close(widget) -> None:
    """Close it with its layout, a model of its own, which `widget.close()` would leave to the kernel and the page."""
    widget.layout.close()
    widget.close()


class Still:
    """The static picture under a display id, drawn anew when `live`, else once at the end."""

    def __init__(self, live: bool = False):
        self.live, self.handle = live, None

    def update(self, curve) -> None:
        if self.live:
            self.show(curve)

    def finish(self, curve) -> None:
        self.show(curve)

    def show(self, curve) -> None:
        bundle = curve.bundle()
        if self.handle is not None:
            self.handle.update(bundle, raw=True)
        elif self.live:
            self.handle = notebook.display(bundle, raw=True, display_id=True)
        else:
            notebook.display(bundle, raw=True)  # no display id: the same output each time it runs


class Lines:
    """Text: one line that is written over in a terminal, a line a second elsewhere."""

    def __init__(self, stream, live: bool = True):
        self.stream, self.live = stream, live
        self.terminal = bool(getattr(stream, "isatty", lambda: False)())
        self.width, self.updates = 0, 0

    def update(self, curve) -> None:
        if not self.live or not curve._series:
            return
        if self.terminal:
            line = clean(curve.line())[: terminal_width() - 1]
            self.write("\r" + line.ljust(self.width))
            self.width = len(line)
        elif self.updates % 10 == 0:  # updates come ten times a second
            self.write(clean(curve.line()) + "\n")
        self.updates += 1

    def finish(self, curve) -> None:
        if self.terminal and self.width:
            self.write("\r" + " " * self.width + "\r")
        self.write(clean(curve.text()) + "\n")

    def write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # a closed or full stream must not stop a training run
            pass


def terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size().columns
