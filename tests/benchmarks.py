"""Load and run the programs of benchmarks/ in tests."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tests.processes import output
from tests.sources import TOP

FOLDER = TOP / "benchmarks"


@contextmanager
def loaded(name: str) -> Iterator[ModuleType]:
    """Import benchmarks/NAME.py, which imports others; at the end they are forgotten. `async` has no other way."""
    before = {*sys.modules}
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FOLDER))
        for other in FOLDER.glob("*.py"):
            if other.stem not in before:
                sys.modules.pop(other.stem, None)


def figures(name: str, words: str, folder: Any) -> tuple[list[dict[str, Any]], str]:
    """Run benchmarks/NAME.py with these arguments. Return the rows of its file and its printed text."""
    file = folder / "figures.json"
    said = output(FOLDER / f"{name}.py", *words.split(), "--output", file)
    with loaded("record") as record:
        return record.load(file)["rows"], said
