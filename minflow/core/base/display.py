"""The mixin for rich reprs in notebooks, and the engine's interface to a notebook.

views/ registers the renderer and diagnosis/ the notebook; the engine must not import either. A repr never raises: if
the picture fails, the plain text contains the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

RENDERERS: list[Callable[[Any], dict[str, str]]] = []  # the one renderer, once views/ has registered it


def register(renderer: Callable[[Any], dict[str, str]]) -> None:
    """Set the renderer: `renderer(obj)` returns a MIME bundle, MIME type -> data."""
    RENDERERS[:] = [renderer]


class Notebook(Protocol):
    """The interface of a notebook that the engine uses."""

    def cell_name(self, path: str) -> str | None:
        """`In[4]` for the source file of a cell, None for any other file."""

    def show_bundle(self, bundle: Callable[[], dict[str, str]]) -> bool:
        """Show a bundle below the running cell; return False outside a notebook."""


NOTEBOOK: list[Notebook] = []  # empty, or the registered notebook


def register_notebook(notebook: Any) -> None:
    """Set the notebook."""
    NOTEBOOK[:] = [notebook]


def cell_name(path: str) -> str | None:
    """`In[4]` for the source file of a cell, None for any other file and outside a notebook."""
    return NOTEBOOK[0].cell_name(path) if NOTEBOOK else None


def show_bundle(bundle: Callable[[], dict[str, str]]) -> bool:
    """Show a bundle below the running cell; return False outside a notebook."""
    return bool(NOTEBOOK) and NOTEBOOK[0].show_bundle(bundle)


class BundleDisplay:
    """Mixin that defines `_repr_mimebundle_` for objects with a method `bundle()`: MIME type -> data."""

    bundle: Callable[[], dict[str, str]]

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        try:
            return self.bundle()
        except Exception as error:  # showing an object must not break a cell
            return {"text/plain": f"{self!r}\n(no picture: {type(error).__name__}: {error})"}


class Display:
    """Mixin that defines `_repr_mimebundle_`; its `text/plain` is always `repr(self)`."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"text/plain": repr(self)}
        if RENDERERS:
            try:
                bundle |= RENDERERS[0](self)
            except Exception as error:  # showing an object must not break a cell
                bundle["text/plain"] += f"\n(no picture: {type(error).__name__}: {error})"
        return bundle
