"""Convert anything that can be shown to its record. Higher packages register recorders of their classes.

Read next: `graph.py`, `tape.py` and `module.py`, the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.ir import Graph

if TYPE_CHECKING:
    from .graph import GraphRecord, PartsRecord
    from .module import ModuleRecord
    from .tape import TapeRecord

    Record = TapeRecord | GraphRecord | PartsRecord | ModuleRecord
RECORDERS: dict[type, Callable[..., Record]] = {}


def recorder(kind: type):
    """Register a recorder for a class of a higher package: `@recorder(Module) def module_record(module, **_): ...`.

    It gets `opening`, the composite operations to open, or None.
    """

    def register(function):
        RECORDERS[kind] = function
        return function

    return register


def record_of(x: Any, **options) -> Record | None:
    """Record of a Tensor, a Graph, a Module, another engine's value, or a record itself; None for anything else."""
    from .foreign_tape import foreign_record, is_foreign_value
    from .graph import GraphRecord, PartsRecord, graph_record
    from .module import ModuleRecord
    from .tape import TapeRecord, tape_record

    if isinstance(x, TapeRecord | GraphRecord | PartsRecord | ModuleRecord):
        return x
    if isinstance(x, Graph):
        return graph_record(x, opening=options.get("opening"))
    for kind in type(x).__mro__:
        if kind in RECORDERS:
            return RECORDERS[kind](x, opening=options.get("opening"))
    if hasattr(x, "spec") and hasattr(x, "_value"):
        return tape_record(x, **options)
    return foreign_record(x, options.get("tensors")) if is_foreign_value(x) else None
