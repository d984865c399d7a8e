"""Front ends for live displays: a widget, a picture that is redrawn, lines of text, or nothing.

Each has `update(shown)`, called at most ten times per second from one thread at a time, and `finish(shown)`, which
leaves the final output. A missing anywidget is not an error. Read next: `curve/live_curve.py`.
"""

from __future__ import annotations

import signal
import sys
import threading
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path

from minflow.diagnosis import notebook
from minflow.views.text.listing import clean

ENDED_WIDGETS: deque = deque()  # recently ended widgets that are still open
SHOWN_WIDGETS: deque = deque()  # the same, for widgets without a static picture on the page


def choose_frontend(widget, lines=None):
    """The best front end of this process: the result of `widget()`, a picture, or `lines`, which writes text.
    `MINFLOW_LIVE=0` leaves only the final static output.
    """
    live = notebook.live_updates_enabled()
    if notebook.in_notebook():
        if not live:
            return StaticPicture()
        try:
            return widget()
        except Exception:  # anywidget is missing or does not fit this notebook: pictures need neither
            return StaticPicture(live=True)
    return (lines or Lines)(sys.stdout, live)


def script(*files: str) -> str:
    """JavaScript for a page: the files, given by paths in this package, concatenated."""
    return "".join([Path(__file__).parent.joinpath(file).read_text("utf-8") for file in files])


def finish_safely(front, shown) -> None:
    """Finish a display. Its failure must not hide an error of the user that may be the reason for it."""
    try:
        front.finish(shown)
    except Exception:
        with suppress(Exception):
            notebook.show_bundle(shown.bundle)


class RestrictedTraits:
    """A widget that accepts from a page only the traits in `accepted_traits`, all strings. Other messages would show
    an error in the notebook, or change the state for other pages.
    """

    accepted_traits: tuple[str, ...] = ()

    def _handle_msg(self, msg) -> None:
        data = msg["content"].get("data")
        method = data.get("method") if isinstance(data, dict) else None
        if method == "request_state":
            super()._handle_msg(msg)  # type: ignore[misc]  # a mixin of ipywidgets.Widget
        elif method in ("update", "custom"):  # a custom message does not wait for the answer to an earlier one
            self.set_state(data.get("state" if method == "update" else "content"))

    def set_state(self, sync_data) -> None:
        state = sync_data if isinstance(sync_data, dict) else {}
        heard = {name: state[name] for name in self.accepted_traits if isinstance(state.get(name), str)}
        super().set_state(heard)  # type: ignore[misc]


@contextmanager
def delay_interrupts():
    """Delay interrupts until the end of the block: a second press of the button must not cost the picture."""
    came, before = [], signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():  # only Python's main thread has any
        yield
        return
    signal.signal(signal.SIGINT, lambda *frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[-1])


def accept_messages(widget):
    """Let the widget receive messages from pages that were reloaded or opened again, and return it.

    A page asks the kernel to handle its messages on a thread of the page's own (a subshell), so that clicks count while
    a cell runs. The Python kernel 7.4 instead routes a message to the subshell that last changed the widget. Here that
    is our update thread, which follows the last message from any page; JupyterLab ends that page's subshell soon after
    a page is loaded, and from then on every click is lost ("Cannot handle comm_msg: Unknown subshell_id" in the log of
    the server). So the message stays where the page has put it. Other versions have no such route to turn off.
    """
    comm = getattr(widget, "comm", None)
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda data, default: default
    return widget


def retire(widget, ended: deque = ENDED_WIDGETS, most: int = 8) -> None:
    """Close the widget later, after `most` others: a page reloaded in the meantime has nothing else to show."""
    ended.append(widget)
    if len(ended) > most:
        close(ended.popleft())


def retire_with_owner(owner, widget) -> weakref.finalize:
    """Retire the widget when its owner is collected: ipywidgets would hold it until the kernel ends."""
    dropped = weakref.finalize(owner, retire, widget, SHOWN_WIDGETS, 16)
    dropped.atexit = False
    return dropped


def close(widget) -> None:
    """Close the widget and its layout, a separate model, which `widget.close()` would leak."""
    widget.layout.close()
    widget.close()


class Widget:
    """A live canvas. At the end the static picture replaces it in all outputs, under the same display ids."""

    def __init__(self, shown, widget):
        self.widget, self.handles = widget, []
        self.dropped = retire_with_owner(shown, widget)
        self.show(shown)

    def show(self, shown) -> None:
        """Also show it in the running cell."""
        self.handles.append(notebook.display(self.widget, display_id=True))

    def update(self, shown) -> None:
        self.widget.data = shown.encode()

    def finish(self, shown) -> None:
        # The widget's model dies with the kernel, so a static picture replaces it in the saved notebook. A page that
        # was reloaded meanwhile does not know the output and keeps showing the model, so that stays open for a while.
        self.widget.data, bundle = shown.encode(), shown._repr_mimebundle_()
        for handle in self.handles:
            handle.update(bundle, raw=True)
        self.dropped.detach()
        retire(self.widget)


class StaticPicture:
    """The static picture under a display id, redrawn if `live`, else shown once at the end."""

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
            notebook.display(bundle, raw=True)  # no display id, so that executed notebooks are reproducible


class Lines:
    """Text: one line that is overwritten in a terminal, a line per second elsewhere."""

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
        elif self.updates % 10 == 0:  # there are ten updates per second
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
