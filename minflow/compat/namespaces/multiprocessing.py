"""`flow.multiprocessing`: Python's module, for programs that set a start method. `spawn` runs in this process.

Tensors are not shared between processes: their data is pickled. A DataLoader starts its own workers.
"""

from __future__ import annotations

import multiprocessing as _python
from collections.abc import Callable
from typing import Any

from ...core.base.errors import DeviceError
from ...core.messages.suggestions import missing_names as _missing_names
from ...core.source_location import fail

STRATEGY = "file_system"


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Call fn(0, *args) in this process. Raises DeviceError unless nprocs is 1."""
    if nprocs != 1:
        what = f"multiprocessing.spawn of {nprocs} processes: a program does not start its own ranks"
        hint = f"minflow launch -n {nprocs} program.py, which calls fn(flow.env.get_rank(), ...); nprocs=1"
        fail(DeviceError, what, hint, nprocs=nprocs)
    fn(0, *args)


def get_all_sharing_strategies() -> set[str]:
    """Return the only strategy; tensors are always copied between processes."""
    return {STRATEGY}


def get_sharing_strategy() -> str:
    return STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Do nothing: tensors are always copied between processes."""


_ours = _missing_names("flow.multiprocessing", globals())


def __getattr__(name: str) -> Any:
    return getattr(_python, name) if name[:1] != "_" and hasattr(_python, name) else _ours(name)
