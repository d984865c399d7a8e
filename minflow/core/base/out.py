"""`out=` of public functions: who is asked for a call that has one. `../functions/out.py` registers itself.

A function that is called with `out=` fails at first, since none takes it; only then is this asked, so that a call
without it pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NAMES: set[str] = set()  # the functions that have an `out`
RUN: list[Callable] = []  # what runs them, once it has registered itself


def wants_out(name: str, options: Mapping[str, Any]) -> bool:
    """Is this a call of a public function ("add", "linalg.norm") with an `out` that it has?"""
    rooms = ("linalg.", "special.", "fft.")
    return "out" in options and (name.removeprefix("flow.") in NAMES or name.startswith(rooms))


def run_into(name: str, function: Callable, args: tuple, options: Mapping[str, Any]) -> Any:
    """The function without its `out`, and its result written there."""
    return RUN[0](name, function, args, options)
