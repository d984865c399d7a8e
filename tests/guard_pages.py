"""Arrays beside memory that nobody may read: a kernel that reads beyond them ends the process."""

import ctypes
import math
import mmap

import numpy as np

PAGE = mmap.PAGESIZE


def at_page_edge(x, begins):
    """A copy of an array that begins, or ends, at a page that cannot be read."""
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
