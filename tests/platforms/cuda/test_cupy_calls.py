"""Calls of the array namespace `xp`, compared with CuPy: with its names and parameters, and with its wheel.

`pytest --wheel` also checks each call that the stand-in receives while other tests run.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import minflow
from tests.cases import Cases
from tests.strict_backend import NAMES, strict

PACKAGE = Path(minflow.__file__).parent
ON_HOST = {  # calls for NumPy's arrays, of names or keywords that CuPy lacks
    "compiler/arena.py": {"maximum.accumulate"},
    "core/ops/checks.py": {"maximum.reduce"},
    "core/ops/examples.py": {"random.default_rng"},
    "core/ops/index.py": {"take"},
    "core/ops/softmax.py": {"maximum.reduce"},
}
KNOWN = {name: (kind, parameters) for name, kind, *parameters in map(str.split, NAMES.read_text().splitlines())}


def calls(file):
    """(name, number of arguments, keywords) of each call `xp.name(...)` in a file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and (name := re.fullmatch(r"xp\.([\w.]+)", ast.unparse(node.func))):
            yield name[1], len(node.args), [word.arg for word in node.keywords if word.arg]


def fault(name, count, keywords) -> str:
    kind, parameters = KNOWN.get(name, ("", ()))
    if kind == "function":
        many = count > len(parameters) and not any(p.startswith("*") for p in parameters)
        unknown = [word for word in keywords if word not in parameters and "**kwargs" not in parameters]
        return "arguments" * many + ", ".join(unknown)
    if kind == "ufunc":
        return ", ".join([word for word in keywords if word not in ("out", "dtype", "casting")])
    ufunc, _, method = name.rpartition(".")
    has = kind or method == "outer" or (ufunc in KNOWN and method in KNOWN[ufunc][1])
    return "" if has else "there is no such name"


def test_names_and_keywords_in_the_source():
    """Also those of calls that no test reaches on a device."""
    found, faults = 0, {}
    for file in PACKAGE.rglob("*.py"):
        place = file.relative_to(PACKAGE).as_posix()
        if place.startswith(("platforms/numpy/", "platforms/compiled/", "exercises/")):
            continue
        for name, *rest in calls(file):
            found += 1
            if wrong := fault(name, *rest):
                faults.setdefault(place, {})[name] = wrong
    assert found > 600
    assert {place: set(names) for place, names in faults.items()} == ON_HOST, faults


@pytest.mark.wheels
def test_names_and_parameters_of_the_wheel():
    from tests.platforms.cuda.wheel import names

    assert NAMES.read_text() == names()


REFUSED = {
    "NotImplementedError": lambda x: ("maximum.reduce", (x,), {}),
    "keyword argument 'mode'": lambda x: ("take", (x, strict.asarray([0])), {"mode": "clip"}),
    "keyword argument 'initial'": lambda x: ("ndarray.sum", (x,), {"initial": 0}),
    "Wrong arguments": lambda x: ("add", (x, x), {"where": x}),
    "its loops are": lambda x: ("bitwise_and", (x, x), {}, x),
    "the result is float64, not float32": lambda x: ("sqrt", (x,), {}, strict.ones(2, "float32")),
    "non-scalar": lambda x: ("ndarray.__setitem__", (x, 0, [1, 2, 3]), {}),
}


@pytest.mark.wheels
def test_calls_that_the_wheel_refuses(monkeypatch):
    from tests.platforms.cuda import wheel

    monkeypatch.setattr(wheel, "PASSED", set())
    x = strict.asarray(np.zeros((2, 3)))
    wheel.check("add", (x, 1), {}, x)
    with Cases() as case:
        for message, call in REFUSED.items():
            with case(message), pytest.raises(AssertionError, match=message):
                name, args, options, *result = call(x)
                wheel.check(name, args, options, result[0] if result else None)
