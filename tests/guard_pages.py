"""Arrays next to an unreadable page: a kernel that reads out of bounds crashes the process."""

import ctypes
import math
import mmap

import numpy as np

PAGE = mmap.PAGESIZE


def at_page_edge(x, begins):
    """Copy an array so that it begins, or ends, at an unreadable page."""
    x = np.ascontiguousarray(x)
    size = math.ceil(x.nbytes / PAGE) * PAGE
    memory = mmap.mmap(-1, size + 2 * PAGE)
    whole = np.frombuffer(memory, np.uint8)
    start = PAGE if begins else PAGE + size - x.nbytes
    out = whole[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    out[...] = x
    protect = ctypes.CDLL(None).mprotect
    for page in (0, PAGE + size):
        assert protect(ctypes.c_void_p(whole.ctypes.data + page), ctypes.c_size_t(PAGE), 0) == 0
    return out
