"""The finder behind `import oneflow`: a module of another library's name is ours, the same object."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..core.base.errors import StateError
from ..core.source_location import fail

# Library -> what its names are here, and those that come with it: theirs only where they are not installed.
LIBRARIES = {
    "oneflow": {"oneflow": "minflow", "flowvision": "minflow.vision"},
    "torch": {"torch": "minflow", "torchvision": "minflow.vision"},
}


class Borrowed:
    """Finds `torch.nn` as `minflow.nn` for the library names in `borrowed`."""

    borrowed: dict[str, str] = {}

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        room = name.partition(".")[0]
        return ModuleSpec(name, cls, is_package=True) if room in cls.borrowed else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        room, dot, inner = module.__name__.partition(".")
        name = f"{cls.borrowed[room]}{dot}{inner}"
        importlib.import_module(name)
        sys.modules[module.__name__] = sys.modules[name]  # a module may put another in its place while it is imported


def installed(library: str) -> bool:
    """Is the real one there? Our own finder is not asked."""
    if library in Borrowed.borrowed:
        return False
    return importlib.util.find_spec(library) is not None


def borrow(library: str) -> None:
    """From here on `import oneflow` or `import torch` is minflow, also where the real library is installed.

    Raises StateError if the program has imported the real one already: two libraries would share one name.
    """
    for name, ours in LIBRARIES[library].items():
        if name in Borrowed.borrowed:
            continue
        if name == library and name in sys.modules:
            fail(
                StateError,
                f"compat: the real {name} is imported already",
                f"import minflow.compat.{name} before it",
                file=getattr(sys.modules[name], "__file__", name),
            )
        if name == library or library == "torch" or not installed(name):
            Borrowed.borrowed = {**Borrowed.borrowed, name: ours}
    if Borrowed not in sys.meta_path:
        sys.meta_path.insert(0, Borrowed)  # type: ignore[arg-type]
