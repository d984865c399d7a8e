"""Names that look the same to each rank and differ: its output, `os.environ` and `__main__`."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from ..core.context import current_context


class RankedOutput:
    """A stream that begins each line with the rank of the thread that writes it."""

    def __init__(self, stream: Any):
        self.stream, self.begun, self.lock = stream, dict[int, str](), threading.Lock()

    def write(self, text: str) -> int:
        rank = current_context().rank
        with self.lock:
            *lines, rest = (self.begun.get(rank, "") + text).split("\n")
            self.begun[rank] = rest
            for line in lines:
                self.stream.write(f"[{rank}] {line}\n")
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        """Write the last lines, if they have no end."""
        for rank in [rank for rank, rest in self.begun.items() if rest]:
            self.stream.write(f"[{rank}] {self.begun.pop(rank)}\n")
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class RankedEnvironment(os._Environ):
    """The class of os.environ while virtual ranks run: each reads its own RANK, LOCAL_RANK and WORLD_SIZE."""

    def __getitem__(self, name: str) -> str:
        context = current_context()
        own = {"RANK": context.rank, "LOCAL_RANK": context.rank, "WORLD_SIZE": context.world_size}
        return str(own[name]) if name in own else super().__getitem__(name)


@contextlib.contextmanager
def ranked_environment() -> Iterator[None]:
    """Let each virtual rank read its own RANK in the block. os.environ stays the same object, which others hold."""
    plain = type(os.environ)
    try:
        os.environ.__class__ = RankedEnvironment
        yield
    finally:
        os.environ.__class__ = plain


class RankedMain(ModuleType):
    """`sys.modules["__main__"]` while virtual ranks run a program: the module of the rank that looks at it.

    So a rank pickles its own classes, and unpickles them as its own.
    """

    def __init__(self, modules: Sequence[ModuleType]):
        super().__init__("__main__")
        super().__setattr__("modules", modules)

    def __getattribute__(self, name: str) -> Any:
        return getattr(super().__getattribute__("modules")[current_context().rank], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(super().__getattribute__("modules")[current_context().rank], name, value)


@contextlib.contextmanager
def ranked_main(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Let each virtual rank have its own `__main__` in the block."""
    plain = sys.modules["__main__"]
    try:
        sys.modules["__main__"] = RankedMain(modules)
        yield
    finally:
        sys.modules["__main__"] = plain
