"""The version that a program of PyTorch or OneFlow sees when its `import torch` returns minflow."""

from __future__ import annotations

import re
from typing import Any


class TorchVersion(str):
    """A version that compares with texts, tuples and other versions by its numbers: `TorchVersion("2.13.0") > "1.8"`."""

    def __lt__(self, other: Any) -> bool:
        return numbers(self) < numbers(other)

    def __le__(self, other: Any) -> bool:
        return numbers(self) <= numbers(other)

    def __gt__(self, other: Any) -> bool:
        return numbers(self) > numbers(other)

    def __ge__(self, other: Any) -> bool:
        return numbers(self) >= numbers(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str | tuple) and numbers(self) == numbers(other)

    __hash__ = str.__hash__


def numbers(version: Any) -> tuple[int, ...]:
    """The release of a version, without zeros at its end: (2, 13) for "2.13.0+cpu" and for (2, 13, 0)."""
    text = version if isinstance(version, str) else ".".join(map(str, version))
    release = re.match(r"[0-9.]*", text.removeprefix("v"))
    parts = [int(n) for n in release.group().split(".") if n] if release else []
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)
