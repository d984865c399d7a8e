"""The types of the methods that are rows of a table, for editors and type checkers.

`python -m tests.method_stubs` writes `minflow/core/methods/forwarded.pyi`; `tests/core/test_methods.py` checks it.
"""

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from minflow.core.methods.forwarded import Forwarded
from minflow.core.tensor import Tensor
from tests.sources import TOP

STUB = TOP / "minflow/core/methods/forwarded.pyi"
HEAD = '''"""Signatures and docstrings of the methods of `forwarded.py`, written by `python -m tests.method_stubs`."""

from collections.abc import Sequence
from typing import Any

from ..base.dtypes import DTypeLike
from ..functions import return_types
from ..random import Generator
from ..tensor import Tensor

class Forwarded:
'''


def definition(name: str) -> str:
    """The method in a stub: its signature and its docstring."""
    method = getattr(Tensor, name)
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(method)))  # without quotes
    documentation = inspect.cleandoc(method.__doc__)
    return f'def {name}{signature}:\n    """{documentation}"""\n'


def stub() -> str:
    """The text of the stub, before it is formatted."""
    names = [name for name in vars(Forwarded) if name[0] != "_"]
    return HEAD + textwrap.indent("\n".join([definition(name) for name in names]), "    ")


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
    subprocess.run([Path(sys.executable).with_name("ruff"), "format", STUB], check=True)
