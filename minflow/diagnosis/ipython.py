"""What IPython shows of an error of ours, and a notebook of a MinflowWarning: a card, once.

In a notebook the card comes first, and the error below it has the learner's own lines only; its name and its whole text
are in the message, for programs that run notebooks. Where nobody looks at a page (no cell has an id), it is shown whole
too. `install` runs when minflow is imported; `error_cards(False)` leaves cards out. Read next: `failure.py`.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from . import frames, notebook

SHOWN = "_card_shown_in"  # of an error: the run of a cell


class Cards:
    """on: are errors and warnings shown as cards?  others: shows the warnings of others."""

    on = os.environ.get("MINFLOW_CARDS", "1") != "0"
    others: Any = None


def with_cards() -> bool:
    """Whether an error that ends a cell is shown as a card."""
    return Cards.on and notebook.in_notebook()


def error_cards(on: bool = True) -> bool:
    """Show errors and warnings as cards in this notebook from now on, or no longer; whether cards are now shown."""
    Cards.on = bool(on)
    return with_cards()


def show_card(error: BaseException) -> bool:
    """Show the card of an error in the cell that runs, once in each run of a cell; whether there is one. Never raises;
    nothing outside a notebook."""
    try:
        if not with_cards():
            return False
        from .card import card_bundle
        from .card_record import card_of

        card = card_of(error)
        if card is None:
            return False
        run = notebook.running_cell()[1]
        if run and vars(error).get(SHOWN) == run:  # IPython also asks for the text that it keeps in its history
            return True
        vars(error)[SHOWN] = run
        return notebook.show_bundle(lambda: card_bundle(card, frames.whole(error)))
    except Exception:  # an error of the user's must not be followed by one of ours
        return False


def render(error: BaseException) -> list[str]:
    """What IPython prints for an error of ours. Its card is shown first."""
    if not (show_card(error) and notebook.running_cell()[0] and frames.in_default_form()):
        return frames.render(error)
    notebook.ipython().InteractiveTB.tb = frames.learners(error.__traceback__)[0]  # of this error, not of one before
    return frames.below_card(error)


def show_warning(message: Any, category: type, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    """In place of `warnings.showwarning`, asked after all filters: a MinflowWarning is a card, others are as ever."""
    try:
        parts = getattr(message, "parts", None)
        if parts is not None and file is None and with_cards() and notebook.prints_into_cell("stderr"):
            from .card import card_bundle
            from .card_record import warning_record

            record = warning_record(parts, filename, lineno)
            if notebook.show_bundle(lambda: card_bundle(record)):
                return
    except Exception:  # it is shown all the same, as text
        pass
    Cards.others(message, category, filename, lineno, file, line)


def install() -> None:
    """At import: IPython shows errors so, and in a notebook a MinflowWarning is a card, unless MINFLOW_CARDS=0."""
    frames.install(render)
    if notebook.in_notebook() and getattr(warnings.showwarning, "__module__", "") != __name__:  # imported once only
        Cards.others, warnings.showwarning = warnings.showwarning, show_warning
