"""A tree of modules as a record; `nn/summary.py` makes it. Read next: `../text/listing.py`, the tree as text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleRecord:
    """A module and those inside it. params, trainable, nbytes: of the module and all inside it, each tensor once.

    own: names and specs of its own parameters and buffers.  outputs: of its last call.  earlier: those of calls before
    it, where the next call gave others.  calls: how often it ran (None: nobody looked).  macs, written: multiply-
    accumulates of all that ran in it, and the bytes of their results.
    error: what went wrong in it, at the layer where it did.
    """

    name: str
    kind: str
    extra: str = ""
    own: tuple[tuple[str, str], ...] = ()
    params: int = 0
    trainable: int = 0
    nbytes: int = 0
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    earlier: tuple[tuple[str, ...], ...] = ()
    calls: int | None = None
    macs: int = 0
    written: int = 0
    error: str = ""
    shared: bool = False
    children: tuple[ModuleRecord, ...] = ()
