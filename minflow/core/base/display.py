"""The mixin that gives a class its rich repr in notebooks; the renderer is registered by views/.

A repr never raises: where the picture fails, the reason is put into the plain text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RENDERERS: list[Callable[[Any], dict[str, str]]] = []  # the one renderer, once views/ has registered it


def register(renderer: Callable[[Any], dict[str, str]]) -> None:
    """`renderer(obj)` gives the bundle: mime type -> data."""
    RENDERERS[:] = [renderer]


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
