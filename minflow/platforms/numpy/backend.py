"""The backend of the CPU: NumPy's arrays in the memory of the host."""

from __future__ import annotations

import time
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...core.backend import Backend, register_backend
from ...core.host.float_warnings import silent
from ...core.source_location import need
from . import plan_calls


class NumPyBackend(Backend):
    """Arrays of NumPy. `storage_key` is an address: libraries that share memory have an owner of it each."""

    namespace = np
    array_type = np.ndarray
    empty = staticmethod(np.empty)
    to_host = staticmethod(np.asarray)
    event = staticmethod(time.perf_counter)  # a number, since the cycle collector would count an object per call
    seconds_between = staticmethod(lambda before, after: after - before)  # kernels have ended when they return
    bare = staticmethod(plan_calls.bare)
    bind = staticmethod(plan_calls.bind)
    direct = staticmethod(plan_calls.direct)

    @classmethod
    def count(cls) -> int:
        return 1

    def copy(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, order="C")

    from_host = copy

    def is_writable(self, array: np.ndarray) -> bool:
        return array.flags.writeable

    def owner(self, array: np.ndarray) -> object:
        owner: object = array
        while (base := getattr(owner, "base", None)) is not None:
            owner = base
        return owner

    def storage_key(self, array: np.ndarray) -> Hashable:
        return array.__array_interface__["data"][0]

    def byte_bounds(self, array: np.ndarray) -> tuple[int, int]:
        return np.lib.array_utils.byte_bounds(array)

    def special(self, by: str) -> Any:
        return need("scipy.special", by)  # not at module import: importing it takes longer than all of minflow

    def silent(self) -> AbstractContextManager:
        return silent()


register_backend("cpu", NumPyBackend)
