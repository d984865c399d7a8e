"""Rank and world size (`flow.env`). A program that was started alone is rank 0 of 1.

Also the settings of a cluster, of OneFlow's job functions. The launcher starts and connects the ranks, so they only
state what it has done: they are compared with it, and recorded in SETTINGS.
"""

from __future__ import annotations

from typing import Any

from .core.base.placement import Placement as _Placement
from .core.messages.suggestions import name_hints as _name_hints
from .distributed.world import check_machines as _check_machines, check_port as _check_port, world as _world

SETTINGS: dict[str, Any] = {}


def get_rank() -> int:
    """Return the rank of this process, or of this virtual rank."""
    return _world().rank


def get_local_rank() -> int:
    """Return the rank of this process among those of this machine."""
    return _world().local_rank


def get_world_size() -> int:
    """Return the number of ranks."""
    return _world().size


def get_node_size() -> int:
    """Return the number of machines."""
    return _world().machines


def all_device_placement(device_type: str) -> _Placement:
    """Return the placement on all ranks, `flow.placement.all(device_type)`."""
    return _Placement.all(device_type)


def init() -> bool:
    """Accepted: there is nothing to initialize. Returns True."""
    return True


def current_resource() -> dict[str, Any]:
    """Return the recorded settings."""
    return dict(SETTINGS)


def machine(*machines: Any) -> None:
    """State the machines, each `{"addr": "192.168.1.1"}`. Raises RankError unless the ranks are on as many."""
    one_list = len(machines) == 1 and isinstance(machines[0], list | tuple)
    stated = list(machines[0] if one_list else machines)
    _check_machines("flow.env.machine", len(stated))
    SETTINGS["machine"] = stated


def ctrl_port(port: int) -> None:
    """Record the control port. Raises RankError for anything but a port."""
    _check_port("flow.env.ctrl_port", port)
    SETTINGS["ctrl_port"] = port


def data_port(port: int) -> None:
    """Record the data port. Raises RankError for anything but a port."""
    _check_port("flow.env.data_port", port)
    SETTINGS["data_port"] = port


def grpc_use_no_signal(on: bool = True) -> None:
    """Record gRPC's signal setting; ranks do not use gRPC."""
    SETTINGS["grpc_use_no_signal"] = on


def log_dir(path: str) -> None:
    """Record the log folder; `minflow launch --logdir` writes log files."""
    SETTINGS["log_dir"] = path


def logtostderr(on: bool) -> None:
    """Record where logs go; `minflow launch` redirects output."""
    SETTINGS["logtostderr"] = on


def logbuflevel(level: int) -> None:
    """Record the log buffering level; there is no buffer."""
    SETTINGS["logbuflevel"] = level


__all__ = [
    "all_device_placement",
    "ctrl_port",
    "current_resource",
    "data_port",
    "get_local_rank",
    "get_node_size",
    "get_rank",
    "get_world_size",
    "grpc_use_no_signal",
    "init",
    "log_dir",
    "logbuflevel",
    "logtostderr",
    "machine",
]
__getattr__ = _name_hints("flow.env", globals())
