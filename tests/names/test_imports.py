"""Every module and name that PyTorch or OneFlow documents can be imported, or the error says what to use.

torch-modules.tsv lists the modules of PyTorch and their names (`collect.py`), oneflow-modules.tsv those that a page of
OneFlow's documentation, from 0.3 to 1.0, or its examples import.
"""

import importlib
import json
import textwrap
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest

import minflow
from minflow.core.base.errors import MissingModuleError, MissingNameError
from tests.names.coverage import kernels, listed
from tests.processes import python

HERE = Path(__file__).parent


def modules(file):
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    return [(path, names.split()) for path, _, names in (line.partition("\t") for line in lines)]


def imports(library):
    """The imports of a program that uses everything."""
    for path, names in modules(f"{library}-modules.tsv"):
        yield f"import {path}"
        for name in names:
            yield f"from {path} import {name}"
    for _, name in listed("oneflow-1.0.tsv") if library == "oneflow" else ():
        home, _, last = f"oneflow.{name}".rpartition(".")
        if home == home.lower():  # not a member of a class
            yield f"from {home} import {last}"


def run_imports(statements):
    """(statements that worked, those that raise anything but an error with a suggestion)."""
    worked, bare = [], []
    for statement in statements:
        try:
            exec(statement, {})
            worked.append(statement)
        except MissingModuleError as error:
            last = statement.split()[-1].rpartition(".")[2]
            kernel = any(fnmatchcase(name, it) for it in kernels() for name in (last, f"torch.{last}"))
            if not kernel and (not error.hint or error.hint.startswith("dir(")):
                bare.append(f"{statement}: nothing to use instead")
        except Exception as error:
            bare.append(f"{statement}: {type(error).__name__}")
    return worked, bare


def attributes(library):
    """The documented paths that raise anything but our error as attributes."""
    bare = []
    for path, names in modules(f"{library}-modules.tsv"):
        for full in (path, *(f"{path}.{name}" for name in names)) if "._" not in path else ():
            it = minflow
            try:
                for part in full.split(".")[1:]:
                    it = getattr(it, part)
            except AttributeError as error:
                if not isinstance(error, MissingNameError) and isinstance(it, ModuleType):
                    bare.append(f"{full}: {error}")
    return bare


def found(expression, before=""):
    """Value of an expression in a process of its own: an imported module becomes an attribute of its package."""
    program = f"""
        import json, warnings
        warnings.simplefilter("ignore")
        {before}
        from tests.names.test_imports import attributes, imports, run_imports
        print(json.dumps({expression}))
    """
    done = python("-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("library, least", [("torch", 1400), ("oneflow", 500)])
def test_documented_names_are_there_or_refused_with_a_substitute(library, least):
    statements = f"[text.replace({library!r}, 'minflow', 1) for text in imports({library!r})]"
    worked, bare = found(f"run_imports({statements})")
    assert not bare
    assert len(worked) >= least


@pytest.mark.parametrize("library", ["torch", "oneflow"])
def test_documented_names_under_compat(library):
    """A program that catches ImportError, as for an optional dependency, goes on."""
    worked, bare = found(f"run_imports(imports({library!r}))", f"import minflow.compat.{library}")
    assert not bare and f"import {library}" in {text[: len(f"import {library}")] for text in worked}


@pytest.mark.parametrize("library", ["torch", "oneflow"])
def test_documented_attributes(library):
    """`torch.jit.save` as well as `from torch.jit import save`."""
    assert not found(f"attributes({library!r})")


def test_an_unknown_name_is_an_import_error():
    for path, name in [("minflow", "nowhere"), ("minflow.nn", "Lineal"), ("minflow.linalg", "_secret")]:
        with pytest.raises(ImportError, match=rf"no module or name {path}.{name}") as caught:
            exec(f"from {path} import {name}", {})
        assert caught.value.hint and isinstance(caught.value, MissingModuleError)
    with pytest.raises(MissingModuleError, match="Lineal") as caught:
        importlib.import_module("minflow.nn.Lineal")
    assert "flow.nn.Linear" in caught.value.hint
    with pytest.raises(MissingModuleError, match="no module or name minflow.Tensor") as caught:
        importlib.import_module("minflow.Tensor")
    assert caught.value.hint == "from minflow import Tensor: it is not a module"
