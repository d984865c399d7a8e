"""Words of pictures in the learner's language: `say(text)`.

Pictures are below the course, so they do not import it: `minflow.exercises` sets the translation of its learners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def in_english(text: str, /, **values: Any) -> str:
    """Fill in `{name}` from the values; without values, braces stay unchanged."""
    return text.format(**values) if values else text


translation: Callable[..., str] = in_english


def translate_by(say: Callable[..., str]) -> None:
    """Let `say(text, **values)` translate the words of all pictures drawn from now on."""
    global translation
    translation = say


def say(text: str, /, **values: Any) -> str:
    """Translate a literal text of a picture and fill in `{name}` from the values. English if nothing translates it."""
    return translation(text, **values)
