"""Load and run the programs of benchmarks/ in tests."""

import importlib.util
import json
from types import ModuleType
from typing import Any

from tests.processes import output
from tests.sources import TOP

FOLDER = TOP / "benchmarks"


def loaded(name: str) -> ModuleType:
    """Import benchmarks/NAME.py as a module. `async` cannot be imported by name."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(name: str, words: str, folder: Any) -> tuple[Any, str]:
    """Run benchmarks/NAME.py with these arguments. Return its JSON output and its printed text."""
    file = folder / "figures.json"
    said = output(FOLDER / f"{name}.py", *words.split(), "--json", file)
    return json.loads(file.read_text()), said
