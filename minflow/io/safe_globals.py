"""Classes and functions of the program that a plain `load` may use, as in PyTorch. Read next: `objects.py`."""

from __future__ import annotations

from typing import Any

SAFE_GLOBALS: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` build objects of these classes, and use these functions, from any file."""
    SAFE_GLOBALS.extend(x[0] if isinstance(x, tuple) else x for x in safe_globals)


def get_safe_globals() -> list[Any]:
    """The classes and functions that were declared safe."""
    return list(SAFE_GLOBALS)


def clear_safe_globals() -> None:
    """Forget all classes and functions that were declared safe."""
    SAFE_GLOBALS.clear()


class safe_globals:
    """Context in which `add_safe_globals` applies to these classes and functions."""

    def __init__(self, safe_globals: list[Any]):
        self.inside = list(safe_globals)

    def __enter__(self) -> None:
        self.before = get_safe_globals()
        add_safe_globals(self.inside)

    def __exit__(self, *error: Any) -> None:
        SAFE_GLOBALS[:] = self.before
