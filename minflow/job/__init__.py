"""Job functions: OneFlow's way of before eager code, over the same trace, passes and plans as nn.Graph.

This file says which public name stands where; nothing is imported before its first use. Read next: `function.py` (what
a job is), `build.py` (how it is traced), `stream.py` (how it runs), `legacy/meanings.py` (names that two generations
share).
"""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

NAMES = {  # flow.name -> where it is, in this room
    **{name: f"function.{name}" for name in (
        "global_function", "get_variable", "clear_default_session", "sync_default_session", "jobs")},
    **{name: f"run.{name}" for name in ("start", "Run")},
    "timeline": "look.timeline.timeline",
    **{name: f"config.{name}" for name in ("function_config", "FunctionConfig", "config")},
    "enable_eager_execution": "config.no_eager_switch",
    **{name: f"look.blob_watch.{name}" for name in ("watch", "watch_diff")},
    **{name: f"saving.manager.{name}" for name in ("get_all_variables", "load_variables")},
    **{name: f"legacy.initializers.{name}" for name in (
        "constant_initializer", "zeros_initializer", "ones_initializer", "random_uniform_initializer",
        "random_normal_initializer", "truncated_normal_initializer", "truncated_normal", "variance_scaling_initializer",
        "glorot_uniform_initializer", "glorot_normal_initializer", "xavier_uniform_initializer", "xavier_normal_initializer",
        "kaiming_initializer")},
}  # fmt: skip
ROOMS = {  # flow.name -> the module here
    "scope": "scope", "optimizer": "train.optimizer",
    **{name: f"legacy.{name}" for name in ("layers", "math", "regularizers", "distribute", "random", "unittest")},
}  # fmt: skip
GROUPS = {
    "train": {"CheckPoint": "saving.manager.CheckPoint", "SimpleCheckPointManager": "saving.manager.SimpleCheckPointManager"},
    "checkpoint": {"get": "saving.manager.get", "save": "saving.manager.save"},
}


def found(path: str) -> Any:
    """What "file.name" of this room is."""
    file, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f".{file}", __name__), name)


def public(name: str) -> Any:
    """The object behind `flow.name`; raises AttributeError with the modern equivalent where there is none."""
    from .legacy.meanings import NEW

    if name in NAMES or name in NEW:
        return found(NAMES.get(name) or f"legacy.{NEW[name]}")
    if name in ROOMS:
        return importlib.import_module(f".{ROOMS[name]}", __name__)
    if name in GROUPS:
        return SimpleNamespace(**{key: found(path) for key, path in GROUPS[name].items()})
    from .legacy.missing import of_flow

    raise of_flow(name)


def of_nn(name: str) -> Any:
    """The function behind `flow.nn.name`, of names that modern classes do not have."""
    if name[:2] == "__":
        raise AttributeError(name)
    from .legacy.nn import CAPITALS, LEGACY

    if name in LEGACY or name in CAPITALS:
        return LEGACY.get(name) or CAPITALS[name]
    from .legacy.missing import of_nn as missing

    raise missing(name)


def dropout(x: Any, rate: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Any:
    """0 with probability rate, else x / (1 - rate); x itself in a predict job. More is told at
    `minflow.job.legacy.nn.dropout`."""
    from .legacy.nn import dropout as drop

    return drop(x, rate, noise_shape, seed, name)


def loss_of(name: str, first: Any) -> Any:
    """The function that had the name of a class of today, flow.nn.MSELoss(input, target), if `first` is a Blob."""
    from .blob import Blob
    from .legacy.nn import CAPITALS

    return CAPITALS.get(name) if isinstance(first, Blob) else None


def extend(flow: ModuleType) -> None:
    """Give the package the names of job functions: those that modern functions share now, the others when they are
    used."""
    from .legacy.meanings import merge

    merge(vars(flow))
    flow.nn.__getattr__ = of_nn
    flow.nn.dropout = dropout  # over the file of that name, which holds the Dropout layer
    flow.nn.modules.loss.Loss.of_blobs = staticmethod(loss_of)


def listed() -> list[str]:
    """All names that `public` knows."""
    from .legacy.meanings import NEW

    return sorted({*NAMES, *NEW, *ROOMS, *GROUPS})
