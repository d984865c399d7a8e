"""Support for `out=` of public functions, which `../functions/out.py` implements and registers here.

No function has this parameter, so a call with `out=` first fails, and the handler of the error calls this module; calls
without `out=` pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NAMES: set[str] = set()  # names of the functions that support `out=`
IMPLEMENTATION: list[Callable] = []  # empty, or the implementation


def wants_out(name: str, options: Mapping[str, Any]) -> bool:
    """True if `out` is passed to a public function ("add", "linalg.norm") that supports it."""
    namespaces = ("linalg.", "special.", "fft.")
    return "out" in options and (name.removeprefix("flow.") in NAMES or name.startswith(namespaces))


def run_into(name: str, function: Callable, args: tuple, options: Mapping[str, Any]) -> Any:
    """Run the function without `out`, and write its result there."""
    return IMPLEMENTATION[0](name, function, args, options)
