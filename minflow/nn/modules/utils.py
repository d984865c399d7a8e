"""Helpers for arguments that are one value or several, which layers of other programs import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """Make a function that repeats a single value `n` times, and turns several values into a tuple."""

    def several(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    several.__name__ = name
    return several


_single, _pair, _triple, _quadruple = [_ntuple(n) for n in (1, 2, 3, 4)]


def consume_prefix_in_state_dict_if_present(state_dict: MutableMapping[str, Any], prefix: str) -> None:
    """Remove a prefix such as "module." from the names of a state_dict, and of its metadata, in place."""
    for entries, start in ((state_dict, prefix), (getattr(state_dict, "_metadata", {}), prefix.rstrip("."))):
        for name in [name for name in entries if name.startswith(start) and name != ""]:
            value = entries.pop(name)
            entries[name[len(start) :].removeprefix("." if start != prefix else "")] = value
