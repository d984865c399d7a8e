"""The mixin that gives a class its rich repr in notebooks, and what a notebook answers.

views/ registers the renderer, diagnosis/ the notebook: the engine itself knows neither. A repr never raises: where the
picture fails, the reason is put into the plain text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

RENDERERS: list[Callable[[Any], dict[str, str]]] = []  # the one renderer, once views/ has registered it


def register(renderer: Callable[[Any], dict[str, str]]) -> None:
    """`renderer(obj)` gives the bundle: mime type -> data."""
    RENDERERS[:] = [renderer]


class Notebook(Protocol):
    """What the engine asks of a notebook."""

    def cell_name(self, path: str) -> str | None:
        """`In[4]` for the source file of a cell; None for any other file."""

    def show_bundle(self, bundle: Callable[[], dict[str, str]]) -> bool:
        """Show a bundle below the running cell; False where there is no notebook."""


NOTEBOOK: list[Notebook] = []  # the one that was registered


def register_notebook(notebook: Any) -> None:
    NOTEBOOK[:] = [notebook]


def cell_name(path: str) -> str | None:
    return NOTEBOOK[0].cell_name(path) if NOTEBOOK else None


def show_bundle(bundle: Callable[[], dict[str, str]]) -> bool:
    return bool(NOTEBOOK) and NOTEBOOK[0].show_bundle(bundle)


class Display:
    """Gives `_repr_mimebundle_`: `text/plain` is always `repr(self)`."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"text/plain": repr(self)}
        if RENDERERS:
            try:
                bundle |= RENDERERS[0](self)
            except Exception as error:  # the promise of this class: showing a thing must not break a cell
                bundle["text/plain"] += f"\n(no picture: {type(error).__name__}: {error})"
        return bundle
