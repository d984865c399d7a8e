"""In IPython an error of ours shows the learner's own frames: what lies between them is the engine's business.

MINFLOW_TRACEBACK=full shows every frame, as plain Python always does. Read next: `cards.py`, which installs this.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

from ..core.errors import MinflowError
from ..core.op import OURS

SHELL = ("IPython/core/", "ipykernel/")  # frames of who runs the cell


def learners(traceback: TracebackType | None) -> tuple[TracebackType | None, int]:
    """The traceback without the frames of minflow and of the shell, and how many frames of minflow that leaves out."""
    kept, left_out = [], 0
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if OURS[file]:
            left_out += 1
        elif not any(part in file.replace("\\", "/") for part in SHELL):
            kept.append(traceback)
        traceback = traceback.tb_next
    chain = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain, left_out


def render(error: MinflowError) -> list[str]:
    """What IPython prints for the error (it asks an exception that has `_render_traceback_`): a list of texts."""
    shell = sys.modules["IPython"].get_ipython()
    if os.environ.get("MINFLOW_TRACEBACK") == "full":
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=1)
    chain, left_out = learners(error.__traceback__)
    causes: list[tuple[BaseException, Any]] = []
    cause = error.__cause__ or error.__context__
    try:
        while cause is not None and len(causes) < 20:
            causes.append((cause, cause.__traceback__))
            cause.__traceback__, more = learners(cause.__traceback__)
            left_out += more
            cause = cause.__cause__ or cause.__context__
        lines = list(shell.InteractiveTB.structured_traceback(type(error), error, chain, tb_offset=0))
    finally:
        for known, traceback in causes:
            known.__traceback__ = traceback
    if left_out:
        lines.append(f"({left_out} frames inside minflow are left out; MINFLOW_TRACEBACK=full shows them)")
    return lines


def install() -> None:
    """From now on IPython shows errors of ours so."""
    MinflowError._render_traceback_ = render  # type: ignore[attr-defined]
