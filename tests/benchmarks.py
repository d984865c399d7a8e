"""The programs in benchmarks/, for the tests of what they compute, and that their smallest configuration runs."""

import importlib.util
import json
from types import ModuleType
from typing import Any

from tests.processes import output
from tests.sources import TOP

FOLDER = TOP / "benchmarks"


def loaded(name: str) -> ModuleType:
    """The module benchmarks/NAME.py; `async` is not a name that can be imported."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(name: str, words: str, folder: Any) -> tuple[Any, str]:
    """Run benchmarks/NAME.py with these words: the JSON that it writes, and what it prints."""
    file = folder / "figures.json"
    said = output(FOLDER / f"{name}.py", *words.split(), "--json", file)
    return json.loads(file.read_text()), said
