"""Import finder that serves minflow's own module objects under the names of another library."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, NoReturn

from ..core.base.errors import StateError
from ..core.source_location import fail
from .namespaces import version
from .namespaces.version import FOLLOWED, TorchVersion

# Library -> its modules and their companions -> our modules. An installed companion is left alone, except torchvision.
LIBRARIES = {
    "oneflow": {"oneflow": "minflow", "flowvision": "minflow.vision"},
    "torch": {"torch": "minflow", "torchvision": "minflow.vision"},
}


class LibraryFinder:
    """Meta path finder: `torch.nn` is `minflow.nn` for the library names in `aliases`."""

    aliases: dict[str, str] = {}

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        library = name.partition(".")[0]
        if name in ALIAS_PACKAGE and "torch" in cls.aliases:
            spec = PathFinder.find_spec(name, path)
            if spec is not None and spec.origin is not None:
                spec.loader = PackageLoader(name, spec.origin)
            return spec
        return ModuleSpec(name, cls, is_package=True) if library in cls.aliases else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        library, dot, inner = module.__name__.partition(".")
        name = f"{cls.aliases[library]}{dot}{inner}"
        importlib.import_module(name)
        sys.modules[module.__name__] = sys.modules[
            name
        ]  # the import system returns what is in sys.modules after exec_module

    @classmethod
    def find_distributions(cls, context: Any) -> Iterator[Followed]:
        """The distributions that `importlib.metadata.version("torch")` finds."""
        return iter([Followed(context.name)] if context.name in cls.aliases and context.name in FOLLOWED else [])


def alias_in_autoray(names: dict[str, Any]) -> None:
    names["register_backend_alias"]("minflow", "torch")


def alias_in_eagerpy(names: dict[str, Any]) -> None:
    package_of = names["_get_module_name"]
    names["_get_module_name"] = lambda x: package_of(x).replace("minflow", "torch")


# Modules that go by the package of a tensor's class -> the function after which they take ours for PyTorch's.
ALIAS_PACKAGE: dict[str, Callable[[dict[str, Any]], None]] = {
    "autoray.autoray": alias_in_autoray,
    "eagerpy.astensor": alias_in_eagerpy,
}


class PackageLoader(SourceFileLoader):
    """Loader of a module of ALIAS_PACKAGE."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        ALIAS_PACKAGE[module.__name__](vars(module))


class Followed(importlib.metadata.Distribution):
    """The distribution of a library whose names minflow serves: its name and the version of those names."""

    def __init__(self, library: str):
        self.library = library

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Name: {self.library}\nVersion: {FOLLOWED[self.library]}\nSummary: minflow, under this name\n"

    def locate_file(self, path: Any) -> NoReturn:
        raise FileNotFoundError(f"{path}: the files of {self.library} are those of minflow")


def is_installed(library: str) -> bool:
    """True if the real library is installed, regardless of the modules that this finder serves."""
    if library in LibraryFinder.aliases:
        return False
    return importlib.util.find_spec(library) is not None


def alias_library(library: str) -> None:
    """Make `import oneflow` or `import torch` return minflow from now on, even if the real library is installed.

    Raises StateError if the program has already imported the real library: two libraries would share one name.
    """
    for name, ours in LIBRARIES[library].items():
        if name in LibraryFinder.aliases:
            continue
        if name == library and name in sys.modules:
            what = f"compat: the real {name} is already imported"
            hint = f"import minflow.compat.{name} before it"
            fail(StateError, what, hint, file=getattr(sys.modules[name], "__file__", name))
        if name == library or library == "torch" or not is_installed(name):
            LibraryFinder.aliases = {**LibraryFinder.aliases, name: ours}
    if library == "torch":
        importlib.import_module("multiprocessing.connection")  # PyTorch imports it, and programs read the attribute
    if LibraryFinder not in sys.meta_path:
        sys.meta_path.insert(0, LibraryFinder)
    followed = TorchVersion(FOLLOWED["torch" if "torch" in LibraryFinder.aliases else library])
    vars(version)["__version__"] = vars(importlib.import_module("minflow"))["__version__"] = followed


def alias_libraries(force_torch: bool) -> None:
    """Alias oneflow, and torch unless it is installed, here and in Python processes that this one starts.

    force_torch: even then.
    """
    alias_library("oneflow")
    if force_torch or not is_installed("torch"):
        alias_library("torch")
    children = os.path.join(os.path.dirname(__file__), "children")
    folders = [os.path.join(children, library) for library in LIBRARIES if library in LibraryFinder.aliases]
    sys.path[1:1] = folders  # which multiprocessing and joblib hand on; other children read the variable
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])


def import_in_child(name: str, library: str) -> None:
    """Replace a module of the folder `children` by ours, in the process of its `import`."""
    del sys.modules[name]
    alias_library(library)
    importlib.import_module(name)
