"""When the card of an error is shown: in a notebook, below the traceback of a cell that failed; elsewhere never.

`install` runs when minflow is imported in a notebook; `error_cards(False)` takes it away. Read next: `failure.py`.
"""

from __future__ import annotations

import os

from . import frames, notebook
from .card import card_bundle
from .card_record import card_of


def show_card(error: BaseException) -> bool:
    """Show the card of an error in the cell that runs; whether there was one. Never raises; nothing outside a
    notebook."""
    try:
        card = card_of(error) if notebook.in_notebook() else None
        return card is not None and notebook.show_bundle(lambda: card_bundle(card))
    except Exception:  # an error of the user's must not be followed by one of ours
        return False


def error_cards(on: bool = True) -> bool:
    """Show errors as cards in this notebook from now on, or no longer; whether cards are now shown."""
    if not on:
        notebook.off_error()
        return False
    return notebook.on_error(show_card)


def install() -> None:
    """At import: cards are on in a notebook, unless MINFLOW_CARDS=0; IPython leaves our own frames out of
    tracebacks."""
    frames.install()
    if os.environ.get("MINFLOW_CARDS", "1") != "0":
        error_cards()
