"""Tracebacks read: which lines are the learner's. In IPython an error of ours shows those alone.

MINFLOW_TRACEBACK=full shows every frame, as plain Python always does. Below a card stand the learner's lines only, and
the whole traceback is folded inside it. Read next: `ipython.py`, which decides.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from ..core.base.errors import MinflowError
from ..core.base.display import cell_name
from ..core.ir import file_name, where_text
from ..core.messages.suggestions import of_object
from ..core.source_location import OURS
from .source_lines import library, source_line
from .notebook import SHELL_FRAMES, ipython, offer_every_name


CHAIN = 20  # errors behind an error that are looked at
OWN = 8  # lines of the learner's that stand below a card; of more, those in the middle are left out
FILE = re.compile(r'File "([^"\n]+)", line (\d+)')


def entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Those of a traceback, the innermost last."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def innermost(trace: TracebackType | None) -> TracebackType | None:
    """The innermost line of the learner's."""
    result = None
    for at in entries(trace):
        file = at.tb_frame.f_code.co_filename
        result = result if OURS[file] or library(file) else at
    return result


def raised_at(error: BaseException) -> str:
    """ "at In[3]:2": the outermost line of the learner's, as that of a callback; "" where only ours ran."""
    at = next((at for at in entries(error.__traceback__) if not OURS[at.tb_frame.f_code.co_filename]), None)
    return f"at {where_text((at.tb_frame.f_code, at.tb_lasti))}" if at is not None else ""


def message_of(error: BaseException) -> str:
    """The text of any error, also of one whose text cannot be made."""
    try:
        return str(error)
    except Exception as another:
        return f"(its text cannot be made: {type(another).__name__})"


def learners(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """The traceback without the frames of minflow, of Python's library where minflow called it, and of the shell; and
    how many frames that leaves out, those of the shell not counted."""
    kept, left_out, inside = [], 0, False
    for at in entries(trace):
        file = at.tb_frame.f_code.co_filename
        inside = OURS[file] or inside and library(file)
        if inside:
            left_out += 1
        elif not of_shell(at):
            kept.append(at)
    chain = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain, left_out


def of_shell(at: TracebackType) -> bool:
    """Is it a frame of IPython's, which runs a cell?"""
    return any(part in at.tb_frame.f_code.co_filename.replace("\\", "/") for part in SHELL_FRAMES)


def cause_of(error: BaseException) -> BaseException | None:
    """The cause of an error, as Python shows it."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < CHAIN:
        seen.add(id(link))
        yield link
        link = cause_of(link)


def repeated(cause: BaseException, error: BaseException) -> bool:
    """Does the error say all that its cause would? An error of ours that no line of the learner's raised, said
    again."""
    ours = isinstance(cause, MinflowError) and isinstance(error, MinflowError)
    return ours and bool(cause.what) and cause.what in error.what


def below_card(error: MinflowError) -> list[str]:
    """What the error itself shows where its card stands above it: the learner's lines, and which error it is. What the
    card says is not said again."""
    lines: list[str] = []
    for link in reversed(list(chain_of(error))):
        own = own_lines(link)
        said = message_of(link).partition("\n")[0]
        said = "" if said in error.what else f": {said}"
        if link is error:
            lines += [*own, f"{type(error).__name__}: see the card above"]
        elif own or said and not repeated(link, error):
            lines += [*own, type(link).__name__ + said, ""]
    return lines


def own_lines(error: BaseException) -> list[str]:
    """`In[3]:7 in Net.forward` and the line of code, of each frame of the learner's."""
    lines = []
    for at in entries(learners(error.__traceback__)[0]):
        code = at.tb_frame.f_code
        inside = "" if code.co_name == "<module>" else f" in {code.co_qualname}"
        source = source_line(code.co_filename, at.tb_lineno)
        lines.append(f"{file_name(code.co_filename)}:{at.tb_lineno}{inside}" + (f"\n    {source}" if source else ""))
    half = OWN // 2
    return lines if len(lines) <= OWN else [*lines[:half], f"... {len(lines) - OWN} more ...", *lines[-half:]]


def whole(error: BaseException) -> str:
    """The traceback as Python prints it, without the shell's frames, the cells by their names."""
    start = next((at for at in entries(error.__traceback__) if not of_shell(at)), None)
    import traceback

    text = "".join(traceback.format_exception(type(error), error, start))
    return FILE.sub(lambda found: f"{cell_name(found[1]) or found[1]}:{found[2]}", text)


def in_default_form() -> bool:
    """Whether the learner left the form of tracebacks as it is, by %xmode and by MINFLOW_TRACEBACK."""
    return os.environ.get("MINFLOW_TRACEBACK") != "full" and ipython().InteractiveTB.mode == "Context"


def render(error: BaseException) -> list[str]:
    """What IPython prints for the error: a list of texts."""
    shell = ipython()
    if os.environ.get("MINFLOW_TRACEBACK") == "full":
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=1)
    chain, left_out = learners(error.__traceback__)
    before: list[tuple[BaseException, Any, Any, bool]] = []
    link, cause = error, cause_of(error)
    try:
        while cause is not None and len(before) < 40:
            before.append((cause, cause.__traceback__, cause.__cause__, cause.__suppress_context__))
            cause.__traceback__, more = learners(cause.__traceback__)
            left_out += more
            if cause.__traceback__ is None and repeated(cause, link):
                before.append((link, link.__traceback__, link.__cause__, link.__suppress_context__))
                link.__cause__ = cause = cause_of(cause)  # sets __suppress_context__ too
                continue
            link, cause = cause, cause_of(cause)
        lines = list(shell.InteractiveTB.structured_traceback(type(error), error, chain, tb_offset=0))
    finally:
        for known, trace, its_cause, suppress in reversed(before):
            known.__traceback__, known.__cause__, known.__suppress_context__ = trace, its_cause, suppress
    if left_out:
        lines.append(f"({left_out} frames inside minflow are left out; MINFLOW_TRACEBACK=full shows them)")
    return lines


def caught(shell: Any, kind: type, error: BaseException, trace: TracebackType, tb_offset: int | None = None) -> None:
    """Kernel > Interrupt, or Ctrl-C: where minflow was at work, the learner's line is where it stopped. And an
    attribute that a tensor does not have: what may be meant, which plain Python says by itself."""
    if isinstance(error, AttributeError):
        meant = of_object(error)
        if meant:
            error.add_note(f"  Try: {meant}")
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return
    chain, left_out = learners(trace)
    if chain is not None and left_out:
        error._render_traceback_ = functools.partial(render, error)  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), running_compiled_code=True)


def at_the_learners_line(debugger: Any) -> type:
    """IPython's debugger that begins at the innermost line of the learner's, after an error inside minflow; `down` goes
    on from there."""

    class Debugger(debugger):
        def setup(self, frame: Any, trace: TracebackType | None) -> Any:
            done = super().setup(frame, trace)
            stop, own = self.stack[self.curindex][0].f_code.co_filename, innermost(trace)
            if own is not None and OURS[stop]:
                self.curindex = next(i for i, (at, _) in enumerate(self.stack) if at is own.tb_frame)
                self.curframe = own.tb_frame
                self.curframe_locals = own.tb_frame.f_locals
            return done

    return Debugger


def install(shows: Callable[[BaseException], list[str]]) -> None:
    """From now on IPython shows errors of ours by `shows` (it asks an exception that has `_render_traceback_`), and
    interrupts; those only where the user shows them in no way of his own."""
    MinflowError._render_traceback_ = shows  # type: ignore[attr-defined]
    shell = ipython()
    if shell is not None and hasattr(getattr(shell, "InteractiveTB", None), "debugger_cls"):
        shell.InteractiveTB.debugger_cls = at_the_learners_line(shell.InteractiveTB.debugger_cls)
    if shell is not None and getattr(shell, "custom_exceptions", None) == ():
        shell.set_custom_exc((KeyboardInterrupt, AttributeError), caught)
    if shell is not None:
        offer_every_name()
