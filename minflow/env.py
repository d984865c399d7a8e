"""Which rank of how many this process is: one process alone is rank 0 of 1. And settings of the job functions'
generation.

SETTINGS: what was set for a cluster, by name; on one machine it is recorded and has no effect.
"""

from __future__ import annotations

from typing import Any

from .core.messages.suggestions import name_hints as _name_hints

SETTINGS: dict[str, Any] = {}


def get_rank() -> int:
    """The number of this process."""
    return 0


def get_local_rank() -> int:
    """The number of this process on this machine."""
    return 0


def get_world_size() -> int:
    """How many processes work together."""
    return 1


def get_node_size() -> int:
    """How many machines work together."""
    return 1


def init() -> bool:
    """Start the environment. Accepted: there is nothing to start."""
    return True


def current_resource() -> dict[str, Any]:
    """What was set."""
    return dict(SETTINGS)


def machine(*machines: Any) -> None:
    """The machines of a cluster, each `{"addr": "192.168.1.1"}`; recorded."""
    one_list = len(machines) == 1 and isinstance(machines[0], list | tuple)
    SETTINGS["machine"] = list(machines[0] if one_list else machines)


def ctrl_port(port: int) -> None:
    """The port that machines would talk over; recorded."""
    SETTINGS["ctrl_port"] = port


def data_port(port: int) -> None:
    """The port that data would go over; recorded."""
    SETTINGS["data_port"] = port


def grpc_use_no_signal(on: bool = True) -> None:
    """Recorded."""
    SETTINGS["grpc_use_no_signal"] = on


def log_dir(path: str) -> None:
    """Recorded: there are no log files."""
    SETTINGS["log_dir"] = path


def logtostderr(on: bool) -> None:
    """Recorded."""
    SETTINGS["logtostderr"] = on


def logbuflevel(level: int) -> None:
    """Recorded."""
    SETTINGS["logbuflevel"] = level


__all__ = [
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
