"""Error cards in IPython and notebooks: a minflow error or MinflowWarning is shown as a card, once.

In a notebook the card comes first; the error below it has only user lines. The message keeps the error's class
and whole text for programs that run notebooks. Without a page (no cell has an id), the error is also printed in full.
`install` runs when minflow is imported; `error_cards(False)` turns cards off. Read next: `failure.py`.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from . import frames, notebook

SHOWN_ATTRIBUTE = "_card_shown_in"  # attribute of an error: the run of a cell in which its card was shown


class CardState:
    """Global state of the cards.

    enabled: True if errors and warnings are shown as cards.  original_showwarning: handler of other warnings.
    """

    enabled = os.environ.get("MINFLOW_CARDS", "1") != "0"
    original_showwarning: Any = None


def shows_cards() -> bool:
    """True if an error that ends a cell is shown as a card."""
    return CardState.enabled and notebook.in_notebook()


def error_cards(on: bool = True) -> bool:
    """Turn error and warning cards in this notebook on or off. Return True if cards are now shown."""
    CardState.enabled = bool(on)
    return shows_cards()


def show_card(error: BaseException) -> bool:
    """Show the card of an error in the running cell, once per run of a cell; return True if there is one. Never raises;
    does nothing outside a notebook.
    """
    try:
        if not shows_cards():
            return False
        from .card import card_bundle
        from .card_record import card_of

        card = card_of(error)
        if card is None:
            return False
        run = notebook.running_cell()[1]
        if run and vars(error).get(SHOWN_ATTRIBUTE) == run:  # IPython renders the error again for its history
            return True
        vars(error)[SHOWN_ATTRIBUTE] = run
        return notebook.show_bundle(lambda: card_bundle(card, frames.full_traceback(error)))
    except Exception:  # a failing card must not hide the user's error
        return False


def render(error: BaseException) -> list[str]:
    """The texts that IPython prints for a minflow error. Shows its card first."""
    if not (show_card(error) and notebook.running_cell()[0] and frames.uses_default_format()):
        return frames.render(error)
    notebook.ipython().InteractiveTB.tb = frames.user_frames(error.__traceback__)[
        0
    ]  # for %debug: not an earlier error's
    return frames.lines_below_card(error)


def show_warning(message: Any, category: type, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    """Replacement for `warnings.showwarning`, after all filters: show a MinflowWarning as a card, others as before."""
    try:
        parts = getattr(message, "parts", None)
        if parts is not None and file is None and shows_cards() and notebook.prints_into_cell("stderr"):
            from .card import card_bundle
            from .card_record import warning_record

            record = warning_record(parts, filename, lineno)
            if notebook.show_bundle(lambda: card_bundle(record)):
                return
    except Exception:  # fall back to text
        pass
    CardState.original_showwarning(message, category, filename, lineno, file, line)


def install() -> None:
    """On import: hook into IPython's error display, and, unless MINFLOW_CARDS=0, show MinflowWarnings as cards."""
    frames.install(render)
    if notebook.in_notebook() and getattr(warnings.showwarning, "__module__", "") != __name__:  # install only once
        CardState.original_showwarning, warnings.showwarning = warnings.showwarning, show_warning
