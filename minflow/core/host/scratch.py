"""Scratch memory for kernels: one growing buffer per thread and purpose, to avoid page faults in every step."""

from __future__ import annotations

import math
import threading

import numpy as np

MAX_CACHED_BYTES = 64 << 20  # bytes; larger buffers are allocated at each use and not kept
LOCAL = threading.local()


def buffer(purpose: str, shape: tuple[int, ...], dtype) -> np.ndarray:
    """An uninitialized C-contiguous array in this thread's scratch memory, valid until the next call for `purpose`."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_CACHED_BYTES:
        return np.empty(shape, dtype)
    held = LOCAL.__dict__.setdefault("buffers", {})
    memory = held.get(purpose)
    if memory is None or memory.size < size:
        memory = held[purpose] = np.empty(size, "uint8")
    return memory[:size].view(dtype).reshape(shape)
