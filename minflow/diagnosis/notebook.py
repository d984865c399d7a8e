"""What views ask of IPython: is this a notebook, show this, tell me of an error in a cell. Without IPython all of it is
nothing.

IPython is never imported here at import time, only found where the user runs in it. Read next: `card.py`,
`../views/kinds/debug_tree.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

EVERY = 0.1  # seconds between two updates of one display, at least
RATE = 400_000  # bytes a second that a display sends, at most: the server cuts a connection off above 1 MB/s


def notebook() -> Any:
    """IPython's shell, where a kernel serves a notebook; None in a terminal or a script."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return shell if getattr(shell, "kernel", None) is not None else None


def streams_here() -> bool:
    """Whether what is printed now goes into a notebook's cell: not where the program redirected its output."""
    return notebook() is not None and type(sys.stdout).__module__.startswith("ipykernel")


def live() -> bool:
    """Whether a display may change while a cell runs; with MINFLOW_LIVE=0 only what stays at the end is shown."""
    return os.environ.get("MINFLOW_LIVE", "1") != "0"


def show_bundle(bundle: dict[str, str]) -> None:
    """Show a bundle, mime type -> data, below the cell that runs."""
    from IPython.display import display

    display(bundle, raw=True)


class Changing:
    """One display that changes while a cell runs: at most 10 updates a second, and the last one always comes.

    make: gives the bundle of the moment; called only where an update goes out.
    """

    def __init__(self, make: Callable[[], dict[str, str]], clock: Callable[[], float] = time.monotonic):
        self.make, self.clock = make, clock
        self.handle: Any = None
        self.next = 0.0
        self.waits = False
        self.updates = 0

    def changed(self, last: bool = False) -> None:
        """There is something new. Goes out now, or with a later change. last: nothing comes after it."""
        self.waits = True
        if not last and (not live() or self.clock() < self.next):
            return
        self.waits = False
        bundle = self.make()
        if self.handle is None:
            from IPython.display import DisplayHandle

            self.handle = DisplayHandle()
            self.handle.display(bundle, raw=True)
        else:
            self.handle.update(bundle, raw=True)
        self.updates += 1
        self.next = self.clock() + max(EVERY, sum(map(len, bundle.values())) / RATE)


# ---- errors ----------------------------------------------------------------------------------------------------------


class Watcher:
    """Is told by IPython of every cell that ended, and hands the error of one that failed to `handler`.

    The event comes after the traceback was shown, and takes nothing away from it. Nothing that goes wrong here is
    raised.
    """

    def __init__(self, handler: Callable[[BaseException], None]):
        self.handler = handler

    def __call__(self, result: Any = None) -> None:
        error = getattr(result, "error_in_exec", None)
        if isinstance(error, Exception):
            with contextlib.suppress(Exception):  # it must never stand in the way of the user's own error
                self.handler(error)


def on_error(handler: Callable[[BaseException], None]) -> bool:
    """In a notebook, call `handler` with the error of each cell that fails; whether this is one. A second call replaces
    the first one's handler."""
    shell = notebook()
    if shell is None:
        return False
    off_error()
    shell.events.register("post_run_cell", Watcher(handler))
    return True


def off_error() -> bool:
    """Take the handler away again; whether there was one."""
    shell = notebook()
    mine = [f for f in shell.events.callbacks["post_run_cell"] if type(f).__qualname__ == Watcher.__qualname__
            and type(f).__module__ == __name__] if shell is not None else []  # fmt: skip
    for f in mine:
        shell.events.unregister("post_run_cell", f)
    return bool(mine)
