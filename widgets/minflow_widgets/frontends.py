"""The places where a curve can be shown: a live widget, a picture that is drawn anew, lines of text, or nothing.

Each has `update(curve)`, called at most ten times a second from one thread at a time, and `finish(curve)`, which leaves
what is to stay. IPython and anywidget are imported here only, when a curve is first shown; a missing one is no error.
Read next: `loss_curve.py`, which chooses and calls them.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path


def choose():
    """The best front end that this process has. `MINFLOW_LIVE=0` leaves only the final static output."""
    live = os.environ.get("MINFLOW_LIVE", "1") != "0"
    if in_notebook():
        if not live:
            return Still()
        try:
            return Widget()
        except Exception:  # no anywidget, or one that does not fit this notebook: pictures need neither
            return Still(live=True)
    return Lines(sys.stdout, live)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process, so that rich output goes somewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


@functools.cache
def widget_class():
    """The anywidget: one trait holds the whole decimated curve, so a page loaded again shows it again."""
    import anywidget
    import traitlets

    class LiveCurve(anywidget.AnyWidget):
        _esm = Path(__file__).with_name("loss_curve.js").read_text(encoding="utf-8")
        data = traitlets.Bytes(b"").tag(sync=True)

        def __repr__(self) -> str:  # without the address, so that checked notebooks stay equal
            return "LossCurve (live)"

    return LiveCurve


class Widget:
    """A live canvas. At the end the static picture takes its place under the same display id."""

    def __init__(self):
        from IPython.display import display

        self.widget = widget_class()()
        self.handle = display(self.widget, display_id=True)

    def update(self, curve) -> None:
        self.widget.data = curve.encode()

    def finish(self, curve) -> None:
        # The widget's model dies with the kernel: what a saved notebook must show is put in its place.
        self.handle.update(curve._repr_mimebundle_(), raw=True)
        self.widget.close()


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
        from IPython.display import display

        bundle = curve._repr_mimebundle_()
        if self.handle is not None:
            self.handle.update(bundle, raw=True)
        elif self.live:
            self.handle = display(bundle, raw=True, display_id=True)
        else:
            display(bundle, raw=True)  # no display id: the same output each time it runs


class Lines:
    """Text: one line that is written over in a terminal, a line a second elsewhere."""

    def __init__(self, stream, live: bool = True):
        self.stream, self.live = stream, live
        self.terminal = bool(getattr(stream, "isatty", lambda: False)())
        self.width, self.updates = 0, 0

    def update(self, curve) -> None:
        if not self.live:
            return
        if self.terminal:
            line = curve.line()[: terminal_width() - 1]
            self.write("\r" + line.ljust(self.width))
            self.width = len(line)
        elif self.updates % 10 == 0:  # updates come ten times a second
            self.write(curve.line() + "\n")
        self.updates += 1

    def finish(self, curve) -> None:
        if self.terminal and self.width:
            self.write("\r" + " " * self.width + "\r")
        self.write(curve.text() + "\n")

    def write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # a closed or full stream must not stop a training run
            pass


def terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size().columns
