"""All queries to IPython and the front end (kind of notebook, running cell), and display in them.

IPython is never imported, only looked up if the program runs in it; elsewhere no query reports a notebook.
Read next: `ipython.py`, which shows error cards.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from ..core.base.display import register_notebook

UPDATE_INTERVAL = 0.1  # minimum seconds between two updates of one display
MAX_BYTES_PER_SECOND = 400_000  # bytes per second that a display may send; the server closes a connection above 1 MB/s
KERNEL_PID = os.getpid()
SHELL_FRAMES = ("IPython/core/", "ipykernel/")  # files with the frames that run a cell


# ---- where the program runs ------------------------------------------------------------------------------------------


def ipython() -> Any:
    """IPython's shell, in a notebook or a terminal; None in plain Python."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None


def raise_completion_limit() -> None:
    """Raise the completion limit: Tab silently cuts a list after 500 names, and `flow.` has more."""
    completer: Any = sys.modules.get("IPython.core.completer")
    if completer is not None:
        completer.MATCHES_LIMIT = max(getattr(completer, "MATCHES_LIMIT", 0), 2000)


def in_notebook() -> bool:
    """True if a Jupyter kernel runs this process, so that rich output is displayed."""
    return getattr(ipython(), "kernel", None) is not None


def prints_into_cell(stream: str = "stdout") -> bool:
    """True if printed text goes into a notebook's cell. False if output is redirected, and in a process forked from the
    kernel, which has no connection.
    """
    file = getattr(sys, stream)
    return in_notebook() and type(file).__module__.startswith("ipykernel") and os.getpid() == KERNEL_PID


def live_updates_enabled() -> bool:
    """True if displays may change while a cell runs; with MINFLOW_LIVE=0 only the final state is shown."""
    return os.environ.get("MINFLOW_LIVE", "1") != "0"


def scripts_share_page() -> bool:
    """True if the script of a hidden widget runs and can find other outputs: in JupyterLab and Notebook, not in VS Code
    and Colab, which load widgets with their output or isolate each output in its own page.
    """
    in_code = "__vsc_ipynb_file__" in getattr(ipython(), "user_ns", ()) or "VSCODE_PID" in os.environ
    return not (in_code or "google.colab" in sys.modules)


def running_cell() -> tuple[str, str]:
    """(id of the running cell, which survives edits; id of this run), or two empty strings if the front end sends
    none.
    """
    try:
        parent = ipython().kernel.get_parent("shell")
        return str(parent["metadata"].get("cellId") or ""), str(parent["header"]["msg_id"])
    except Exception:  # no IPython, or another kernel or front end
        return "", ""


def cell_name(path: str) -> str | None:
    """`In[4]` for the source file of a cell; None for any other file."""
    label = getattr(getattr(ipython(), "compile", None), "format_code_name", lambda _: None)(path)
    return label[1] if label else None


# ---- display ---------------------------------------------------------------------------------------------------------


def display(x: Any, **how: Any) -> Any:
    """IPython's display."""
    from IPython.display import display

    return display(x, **how)


def show_bundle(bundle: Callable[[], dict[str, str]]) -> bool:
    """Show a bundle, MIME type -> data, below the running cell. Return False outside a notebook."""
    if not in_notebook():
        return False
    display(bundle(), raw=True)
    return True


register_notebook(sys.modules[__name__])


class LiveDisplay:
    """A display that changes while a cell runs: at most 10 updates per second, and always the last one.

    bundle: returns the current bundle; called only when an update is sent. interval: least seconds between two updates.
    """

    def __init__(
        self,
        bundle: Callable[[], dict[str, str]],
        clock: Callable[[], float] = time.monotonic,
        interval: float = UPDATE_INTERVAL,
    ):
        self.bundle, self.clock, self.interval = bundle, clock, interval
        self.handle: Any = None
        self.next_update = 0.0
        self.pending = False
        self.updates = 0

    def update(self, last: bool = False) -> None:
        """Request an update; it is sent now or with a later one. last: True if no update follows."""
        self.pending = True
        if not last and (not live_updates_enabled() or self.clock() < self.next_update):
            return
        self.pending = False
        bundle = self.bundle()
        if self.handle is None:
            from IPython.display import DisplayHandle

            self.handle = DisplayHandle()
            self.handle.display(bundle, raw=True)
        else:
            self.handle.update(bundle, raw=True)
        self.updates += 1
        self.next_update = self.clock() + max(self.interval, sum(map(len, bundle.values())) / MAX_BYTES_PER_SECOND)


# ---- cells -----------------------------------------------------------------------------------------------------------


def follow_cells(starts: Callable[..., None], ends: Callable[..., None]) -> bool:
    """In IPython, call `starts` before and `ends` after each cell. Return False outside IPython."""
    shell = ipython()
    if shell is None:
        return False
    shell.events.register("pre_run_cell", starts)
    shell.events.register("post_run_cell", ends)
    return True


def show_traceback(error: BaseException) -> None:
    """Show an error as that of the running cell."""
    ipython().showtraceback((type(error), error, None))
