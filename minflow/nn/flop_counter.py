"""`flow.utils.flop_counter`: count the floating-point operations of a program, by module and op.

Read next: `summary.py`, whose mode it extends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.messages.suggestions import name_hints as _name_hints
from ..core.mode import MODE, using
from .hooks import register_module_forward_hook, register_module_forward_pre_hook
from .module import Module
from .summary import CountingMode

__all__ = ["FlopCounterMode"]
GLOBAL = "Global"  # the row of the whole program


class ModuleCounts(CountingMode):
    """Eager mode that counts, by name of the modules around an op, twice its multiply-accumulates."""

    counts: dict[str, dict[str, int]]
    names: list[str]

    def __init__(self, mode: Any, counts: dict[str, dict[str, int]], names: list[str]):
        super().__init__(mode, {}, [])
        self.__dict__.update(counts=counts, names=names)

    def add(self, op: Any, macs: int, nbytes: int) -> None:
        for name in {GLOBAL, *self.names} if macs else ():
            counts = self.counts.setdefault(name, {})
            counts[op.name] = counts.get(op.name, 0) + 2 * macs


class FlopCounterMode:
    """Count operations in a `with` block: 2 for each multiply-accumulate of a matrix product or convolution.

    mods: accepted; every module that is called in the block is counted.  depth: levels of modules in the table, None
    for all.  display: print the table at the end.  Operations of backward count for the whole program only.
    """

    def __init__(self, mods: Module | Iterable[Module] | None = None, depth: int | None = 2, display: bool = True):
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = {}
        self.names: list[str] = []  # of the modules that are being called, outermost first
        self.paths: dict[int, str] = {}  # by id of module

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.handles = [register_module_forward_pre_hook(self.enter), register_module_forward_hook(self.leave)]
        self.scope = using(ModuleCounts(MODE.get(), self.flop_counts, self.names))
        self.scope.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.scope.__exit__(*error)
        for handle in self.handles:
            handle.remove()
        self.names.clear()
        if self.display:
            print(self.get_table(self.depth))

    def enter(self, module: Module, args: tuple) -> None:
        """Note a module that begins; the parts of the outermost one are named by their path in it."""
        if id(module) not in self.paths:
            top = type(module).__name__
            self.paths.update({id(part): f"{top}.{name}".rstrip(".") for name, part in module.named_modules()})
        self.names.append(self.paths[id(module)])

    def leave(self, module: Module, args: tuple, output: Any) -> None:
        """Note the end of a module, and of those inside it that raised an error."""
        while self.names and self.names.pop() != self.paths[id(module)]:
            pass

    def get_total_flops(self) -> int:
        """Return the operations of the whole program."""
        return sum(self.flop_counts.get(GLOBAL, {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Return {module: {op: operations}}; "Global" is the whole program."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts as a table, down to `depth` levels of modules."""
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for name, counts in sorted(self.flop_counts.items(), key=lambda item: (item[0] != GLOBAL, item[0])):
            if name == GLOBAL or depth is None or name.count(".") < depth:
                for label, flops in [(name, sum(counts.values())), *[(f" - {op}", n) for op, n in counts.items()]]:
                    rows.append((label, f"{flops:,}", f"{100 * flops / total:.2f}%"))
        first, second = (max(len(row[i]) for row in rows) for i in (0, 1))
        return "\n".join(f"{a:{first}}  {b:>{second}}  {c:>8}" for a, b, c in rows)


__getattr__ = _name_hints("flow.utils.flop_counter", globals())
