"""The places where something live can be shown: a widget, a picture that is drawn anew, lines of text, or nothing.

Each has `update(shown)`, called at most ten times a second from one thread at a time, and `finish(shown)`, which leaves
what is to stay. A missing anywidget is no error. Read next: `curve/live_curve.py`.
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

ENDED: deque = deque()  # widgets that have ended last, which still live
SHOWN: deque = deque()  # the same of those for which no picture stands on the page


def choose(widget, lines=None):
    """The best front end that this process has: what `widget()` gives, a picture or `lines`, which write text.
    `MINFLOW_LIVE=0` leaves only the final static output."""
    live = notebook.live()
    if notebook.in_notebook():
        if not live:
            return Still()
        try:
            return widget()
        except Exception:  # no anywidget, or one that does not fit this notebook: pictures need neither
            return Still(live=True)
    return (lines or Lines)(sys.stdout, live)


def script(*files: str) -> str:
    """What a page runs: the files, by their places in this package, one after the other."""
    return "".join([Path(__file__).parent.joinpath(file).read_text("utf-8") for file in files])


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
        state = sync_data if isinstance(sync_data, dict) else {}
        super().set_state({name: state[name] for name in self.hears if isinstance(state.get(name), str)})


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


def answering(widget):
    """The widget, which now hears what a page sends, also a page that was loaded or opened again.

    A page asks the kernel to hear it on a thread of the page's own (a subshell), so that clicks count while a cell
    runs. The Python kernel 7.4 sends a message to where the widget was last changed from instead. Here that is a thread
    of ours, which goes by the last message from any page; JupyterLab ends the subshell of that one soon after a page is
    loaded, and from then on every click is lost ("Cannot handle comm_msg: Unknown subshell_id" in the log of the
    server). So the message stays where the page has put it. Other versions have no such route, and nothing to turn off.
    """
    comm = getattr(widget, "comm", None)
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda data, default: default
    return widget


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


class Widget:
    """A live canvas. At the end the static picture takes its place under the same display id, wherever it was shown."""

    def __init__(self, shown, widget):
        self.widget, self.handles = widget, []
        self.dropped = when_dropped(shown, widget)
        self.show(shown)

    def show(self, shown) -> None:
        """In the running cell too."""
        self.handles.append(notebook.display(self.widget, display_id=True))

    def update(self, shown) -> None:
        self.widget.data = shown.encode()

    def finish(self, shown) -> None:
        # The widget's model dies with the kernel: what a saved notebook must show is put in its place. A page that was
        # loaded again meanwhile does not know the place and goes on showing the model, so that lives on for a while.
        self.widget.data, bundle = shown.encode(), shown._repr_mimebundle_()
        for handle in self.handles:
            handle.update(bundle, raw=True)
        self.dropped.detach()
        retire(self.widget)


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
