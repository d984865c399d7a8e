"""Filtering of tracebacks: in IPython, a minflow error shows only user lines.

MINFLOW_TRACEBACK=full shows every frame, as plain Python always does. Below a card only user lines are
printed; the card contains the whole traceback, folded. Read next: `ipython.py`, which decides.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from ..core.base.display import cell_name
from ..core.base.errors import MinflowError, MissingNameError
from ..core.ir import file_name, where_text
from ..core.messages.suggestions import attribute_hint
from ..core.source_location import IS_MINFLOW_FILE, describe
from .notebook import SHELL_FRAMES, ipython, raise_completion_limit
from .source_lines import is_library, source_line

MAX_CHAIN = 20  # maximum length of a chain of errors
MAX_USER_LINES = 8  # user lines printed below a card; if there are more, the middle is left out
FRAME_HEADER = re.compile(r'File "([^"\n]+)", line (\d+)')


def traceback_entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback, innermost last."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def stopped_line(at: TracebackType) -> int:
    """Line at which a frame stopped.

    An interrupt or a time limit can stop it at an instruction without a line, such as a jump that the compiler added,
    for which `tb_lineno` is None (-1 in Python 3.11.2); then the line of the last instruction before it.
    """
    if (at.tb_lineno or -1) > 0:
        return at.tb_lineno
    code = at.tb_frame.f_code
    return [code.co_firstlineno, *(line for start, _, line in code.co_lines() if line and start <= at.tb_lasti)][-1]


def innermost_user_entry(trace: TracebackType | None) -> TracebackType | None:
    """The innermost entry that is a user line."""
    result = None
    for at in traceback_entries(trace):
        file = at.tb_frame.f_code.co_filename
        result = result if IS_MINFLOW_FILE[file] or is_library(file) else at
    return result


def raised_at(error: BaseException) -> str:
    """ "at In[3]:2": the outermost user line, for an error in a callback; "" if only minflow ran."""
    entries = traceback_entries(error.__traceback__)
    at = next((at for at in entries if not IS_MINFLOW_FILE[at.tb_frame.f_code.co_filename]), None)
    return f"at {where_text((at.tb_frame.f_code, at.tb_lasti))}" if at is not None else ""


def message_of(error: BaseException) -> str:
    """The text of any error, even if its `__str__` fails."""
    try:
        return str(error)
    except Exception as another:
        return f"(its message cannot be formatted: {type(another).__name__})"


def user_frames(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """(the traceback without frames of minflow, of the standard library called by minflow, and of the shell; the number
    of frames left out, not counting the shell's).
    """
    kept, left_out, inside = [], 0, False
    for at in traceback_entries(trace):
        file = at.tb_frame.f_code.co_filename
        inside = IS_MINFLOW_FILE[file] or (inside and is_library(file))
        if inside:
            left_out += 1
        elif not is_shell_frame(at):
            kept.append(at)
    chain = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, stopped_line(entry))
    return chain, left_out


def is_shell_frame(at: TracebackType) -> bool:
    """True for a frame of IPython that runs a cell."""
    return any(part in at.tb_frame.f_code.co_filename.replace("\\", "/") for part in SHELL_FRAMES)


def cause_of(error: BaseException) -> BaseException | None:
    """The cause or context of an error that Python would show."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The error, then the errors that it was raised from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < MAX_CHAIN:
        seen.add(id(link))
        yield link
        link = cause_of(link)


def repeats_cause(cause: BaseException, error: BaseException) -> bool:
    """True if the error contains the text of its cause: a minflow error that was raised again without a user line in
    between.
    """
    ours = isinstance(cause, MinflowError) and isinstance(error, MinflowError)
    return ours and bool(cause.what) and cause.what in error.what


def lines_below_card(error: MinflowError) -> list[str]:
    """Lines printed below the card of an error: user lines, and the class of the error. Nothing that the card
    shows is repeated.
    """
    lines: list[str] = []
    for link in reversed(list(chain_of(error))):
        own = user_lines(link)
        said = message_of(link).partition("\n")[0]
        said = "" if said in error.what else f": {said}"
        if link is error:
            lines += [*own, f"{type(error).__name__}: see the card above"]
        elif own or (said and not repeats_cause(link, error)):
            lines += [*own, type(link).__name__ + said, ""]
    return lines


def user_lines(error: BaseException) -> list[str]:
    """`In[3]:7 in Net.forward` and the source line, for each user frame."""
    lines = []
    for at in traceback_entries(user_frames(error.__traceback__)[0]):
        code = at.tb_frame.f_code
        inside = "" if code.co_name == "<module>" else f" in {code.co_qualname}"
        line = stopped_line(at)
        source = source_line(code.co_filename, line)
        lines.append(f"{file_name(code.co_filename)}:{line}{inside}" + (f"\n    {source}" if source else ""))
    half = MAX_USER_LINES // 2
    left_out = len(lines) - MAX_USER_LINES
    return lines if left_out <= 0 else [*lines[:half], f"... {left_out} more ...", *lines[-half:]]


def full_traceback(error: BaseException) -> str:
    """The traceback as Python prints it, without the shell's frames and with names of cells."""
    start = next((at for at in traceback_entries(error.__traceback__) if not is_shell_frame(at)), None)
    import traceback

    text = "".join(traceback.format_exception(type(error), error, start))
    return FRAME_HEADER.sub(lambda found: f"{cell_name(found[1]) or found[1]}:{found[2]}", text)


def uses_default_format() -> bool:
    """True unless the user changed the traceback format by %xmode or MINFLOW_TRACEBACK."""
    return os.environ.get("MINFLOW_TRACEBACK") != "full" and ipython().InteractiveTB.mode == "Context"


def render(error: BaseException) -> list[str]:
    """The list of texts that IPython prints for the error."""
    shell = ipython()
    if os.environ.get("MINFLOW_TRACEBACK") == "full":
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=1)
    chain, left_out = user_frames(error.__traceback__)
    before: list[tuple[BaseException, Any, Any, bool]] = []
    link, cause = error, cause_of(error)
    try:
        while cause is not None and len(before) < 40:
            before.append((cause, cause.__traceback__, cause.__cause__, cause.__suppress_context__))
            cause.__traceback__, more = user_frames(cause.__traceback__)
            left_out += more
            if cause.__traceback__ is None and repeats_cause(cause, link):
                before.append((link, link.__traceback__, link.__cause__, link.__suppress_context__))
                link.__cause__ = cause = cause_of(cause)  # also sets __suppress_context__
                continue
            link, cause = cause, cause_of(cause)
        lines = list(shell.InteractiveTB.structured_traceback(type(error), error, chain, tb_offset=0))
    finally:
        for known, trace, its_cause, suppress in reversed(before):
            known.__traceback__, known.__cause__, known.__suppress_context__ = trace, its_cause, suppress
    if left_out:
        lines.append(f"({left_out} frames inside minflow are left out; MINFLOW_TRACEBACK=full shows them)")
    return lines


def custom_handler(
    shell: Any, kind: type, error: BaseException, trace: TracebackType, tb_offset: int | None = None
) -> None:
    """IPython's handler of interrupts (Kernel > Interrupt, Ctrl-C), which points at the user's line if minflow was
    running, and of missing attributes and names, which it explains.
    """
    if isinstance(error, AttributeError | NameError):
        error = next(filter(None, (explain(error) for explain in EXPLANATIONS)), error)
        kind = type(error)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return
    chain, left_out = user_frames(trace)
    if chain is not None and left_out:
        error._render_traceback_ = functools.partial(render, error)  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), running_compiled_code=True)


def missing_attribute(error: Any) -> MinflowError | None:
    """Our error for an AttributeError of an object of minflow, with the object by its name where it was raised."""
    if not (hint := attribute_hint(error)):
        return None
    place, name = error.__traceback__, "object"
    while place is not None:
        names = place.tb_frame.f_locals
        name = next((key for key, value in names.items() if value is error.obj and not key.startswith("_")), name)
        place = place.tb_next
    return MissingNameError(str(error), values={name: describe(error.obj)}, hint=hint).with_traceback(
        error.__traceback__
    )


# Functions error -> our error for it, or None, for errors that Python raises. Other packages add theirs.
EXPLANATIONS: list[Callable[[BaseException], MinflowError | None]] = [missing_attribute]


def debugger_at_user_line(debugger: Any) -> type:
    """IPython's debugger, starting at the innermost user line after an error inside minflow; `down`
    continues into minflow.
    """

    class Debugger(debugger):
        def setup(self, frame: Any, trace: TracebackType | None) -> Any:
            done = super().setup(frame, trace)
            stop, own = self.stack[self.curindex][0].f_code.co_filename, innermost_user_entry(trace)
            if own is not None and IS_MINFLOW_FILE[stop]:
                self.curindex = next(i for i, (at, _) in enumerate(self.stack) if at is own.tb_frame)
                self.curframe = own.tb_frame
                self.curframe_locals = own.tb_frame.f_locals
            return done

    return Debugger


def install(renderer: Callable[[BaseException], list[str]]) -> None:
    """Make IPython show minflow errors through `renderer` (as `_render_traceback_`), and interrupts unless the
    user has a handler for them.
    """
    MinflowError._render_traceback_ = renderer  # type: ignore[attr-defined]
    shell = ipython()
    if shell is not None and hasattr(getattr(shell, "InteractiveTB", None), "debugger_cls"):
        shell.InteractiveTB.debugger_cls = debugger_at_user_line(shell.InteractiveTB.debugger_cls)
    if shell is not None and getattr(shell, "custom_exceptions", None) == ():
        shell.set_custom_exc((KeyboardInterrupt, AttributeError, NameError), custom_handler)
    if shell is not None:
        raise_completion_limit()
