"""Names that look the same to each rank and differ: its output, `os.environ` and `__main__`."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from ..core.base.errors import ContextError
from ..core.context import Context, current_context


def context_of_thread() -> Context | None:
    """The Context of this thread; None in a thread that belongs to no rank, such as one that a library has started."""
    try:
        return current_context()
    except ContextError:
        return None


class RankedOutput:
    """A stream that begins each line with the rank of the thread that writes it, if it has one."""

    def __init__(self, stream: Any):
        self.stream, self.begun, self.lock = stream, dict[str, str](), threading.Lock()

    def write(self, text: str) -> int:
        context = context_of_thread()
        start = f"[{context.rank}] " if context else ""
        with self.lock:
            *lines, rest = (self.begun.get(start, "") + text).split("\n")
            self.begun[start] = rest
            for line in lines:
                self.stream.write(f"{start}{line}\n")
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        """Write the last lines, if they have no end."""
        for start in [start for start, rest in self.begun.items() if rest]:
            self.stream.write(f"{start}{self.begun.pop(start)}\n")
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class RankedEnvironment(os._Environ):
    """The class of os.environ while virtual ranks run: each reads its own RANK, LOCAL_RANK and WORLD_SIZE."""

    def __getitem__(self, name: str) -> str:
        if name in ("RANK", "LOCAL_RANK", "WORLD_SIZE") and (context := context_of_thread()):
            return str(context.world_size if name == "WORLD_SIZE" else context.rank)
        return super().__getitem__(name)


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

    So a rank pickles its own classes, and unpickles them as its own. A thread of no rank sees the module of rank 0.
    """

    def __init__(self, modules: Sequence[ModuleType]):
        super().__init__("__main__")
        super().__setattr__("modules", modules)

    def __getattribute__(self, name: str) -> Any:
        context = context_of_thread()
        return getattr(super().__getattribute__("modules")[context.rank if context else 0], name)

    def __setattr__(self, name: str, value: Any) -> None:
        context = context_of_thread()
        setattr(super().__getattribute__("modules")[context.rank if context else 0], name, value)


@contextlib.contextmanager
def ranked_main(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Let each virtual rank have its own `__main__` in the block."""
    plain = sys.modules["__main__"]
    try:
        sys.modules["__main__"] = RankedMain(modules)
        yield
    finally:
        sys.modules["__main__"] = plain
