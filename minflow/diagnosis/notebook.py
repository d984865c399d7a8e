"""The one place that asks IPython and the front end: is this a notebook, which one, show this, which cell runs.

IPython is found where the user runs in it, and never imported otherwise; without it every answer is no.
Read next: `ipython.py`, which shows the card of an error.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from ..core.base.display import register_notebook

EVERY = 0.1  # seconds between two updates of one display, at least
RATE = 400_000  # bytes a second that a display sends, at most: the server cuts a connection off above 1 MB/s
KERNEL = os.getpid()
SHELL_FRAMES = ("IPython/core/", "ipykernel/")  # files whose frames run a cell


# ---- where the program runs ------------------------------------------------------------------------------------------


def ipython() -> Any:
    """IPython's shell, in a notebook or a terminal; None in plain Python."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None


def offer_every_name() -> None:
    """Tab cuts a list of names after 500, by the alphabet and without a word; `flow.` has more."""
    completer: Any = sys.modules.get("IPython.core.completer")
    if completer is not None:
        completer.MATCHES_LIMIT = max(getattr(completer, "MATCHES_LIMIT", 0), 2000)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process, so that rich output goes somewhere."""
    return getattr(ipython(), "kernel", None) is not None


def prints_into_cell(stream: str = "stdout") -> bool:
    """Whether what is printed now goes into a notebook's cell: not where the program redirected its output, nor in a
    process that was forked from the kernel, which has no connection of its own."""
    file = getattr(sys, stream)
    return in_notebook() and type(file).__module__.startswith("ipykernel") and os.getpid() == KERNEL


def live() -> bool:
    """Whether a display may change while a cell runs; with MINFLOW_LIVE=0 only what stays at the end is shown."""
    return os.environ.get("MINFLOW_LIVE", "1") != "0"


def one_page() -> bool:
    """Whether the script of a widget that is not displayed runs, and finds other outputs: in JupyterLab and Notebook,
    not in VS Code and Colab, which load widgets with their output, or give each output a page of its own."""
    in_code = "__vsc_ipynb_file__" in getattr(ipython(), "user_ns", ()) or "VSCODE_PID" in os.environ
    return not (in_code or "google.colab" in sys.modules)


def running_cell() -> tuple[str, str]:
    """The id of the cell that runs, which stays when its text is changed, and of this run of it; two empty texts where
    the front end sends none."""
    try:
        parent = ipython().kernel.get_parent("shell")
        return str(parent["metadata"].get("cellId") or ""), str(parent["header"]["msg_id"])
    except Exception:  # no IPython, another kernel, another front end
        return "", ""


def cell_name(path: str) -> str | None:
    """`In[4]` for the source file of a cell; None for any other file."""
    label = getattr(getattr(ipython(), "compile", None), "format_code_name", lambda _: None)(path)
    return label[1] if label else None


# ---- what is shown in it ---------------------------------------------------------------------------------------------


def display(x: Any, **how: Any) -> Any:
    """IPython's display."""
    from IPython.display import display

    return display(x, **how)


def show_bundle(bundle: Callable[[], dict[str, str]]) -> bool:
    """Show a bundle, mime type -> data, below the running cell; False where there is no notebook."""
    if not in_notebook():
        return False
    display(bundle(), raw=True)
    return True


register_notebook(sys.modules[__name__])


class LiveDisplay:
    """One display that changes while a cell runs: at most 10 updates a second, and the last one always comes.

    bundle: gives the bundle of the moment; called only where an update goes out.
    """

    def __init__(self, bundle: Callable[[], dict[str, str]], clock: Callable[[], float] = time.monotonic):
        self.bundle, self.clock = bundle, clock
        self.handle: Any = None
        self.next = 0.0
        self.pending = False
        self.updates = 0

    def changed(self, last: bool = False) -> None:
        """There is something new. Goes out now, or with a later change. last: nothing comes after it."""
        self.pending = True
        if not last and (not live() or self.clock() < self.next):
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
        self.next = self.clock() + max(EVERY, sum(map(len, bundle.values())) / RATE)


# ---- cells -----------------------------------------------------------------------------------------------------------


def follow_cells(starts: Callable[..., None], ends: Callable[..., None]) -> bool:
    """In IPython, call `starts` before and `ends` after each cell; whether this is IPython."""
    shell = ipython()
    if shell is None:
        return False
    shell.events.register("pre_run_cell", starts)
    shell.events.register("post_run_cell", ends)
    return True


def show_traceback(error: BaseException) -> None:
    """Show an error as that of the running cell."""
    ipython().showtraceback((type(error), error, None))
