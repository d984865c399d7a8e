"""`flow.multiprocessing`: Python's own, for programs that set a start method. `spawn` runs one process: this one.

Tensors go between processes by pickle, with their numbers. A DataLoader starts its workers by itself.
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
    """fn(0, *args), here. Raises DeviceError for more processes than one."""
    if nprocs != 1:
        fail(
            DeviceError,
            f"multiprocessing.spawn of {nprocs} processes: minflow trains in one",
            "nprocs=1; DataLoader(num_workers=2) loads in several",
            nprocs=nprocs,
        )
    fn(0, *args)


def get_all_sharing_strategies() -> set[str]:
    """Tensors are copied between processes."""
    return {STRATEGY}


def get_sharing_strategy() -> str:
    return STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: tensors are copied between processes."""


_ours = _missing_names("flow.multiprocessing", globals())


def __getattr__(name: str) -> Any:
    return getattr(_python, name) if name[:1] != "_" and hasattr(_python, name) else _ours(name)
