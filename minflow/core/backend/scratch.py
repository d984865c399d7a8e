"""Scratch memory for kernels: one growing buffer per thread and purpose, so that no step pays for fresh pages.

What `buffer` gives is uninitialised, and good until the same thread asks for the same purpose again.
"""

from __future__ import annotations

import math
import threading

import numpy as np

LIMIT = 64 << 20  # bytes; what is larger is allocated anew each time and given back
LOCAL = threading.local()


def buffer(purpose: str, shape: tuple[int, ...], dtype) -> np.ndarray:
    """An uninitialised C-contiguous array in this thread's scratch memory."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size > LIMIT:
        return np.empty(shape, dtype)
    held = LOCAL.__dict__.setdefault("buffers", {})
    memory = held.get(purpose)
    if memory is None or memory.size < size:
        memory = held[purpose] = np.empty(size, "uint8")
    return memory[:size].view(dtype).reshape(shape)
