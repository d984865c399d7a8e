"""Send objects between processes: small ones through a pipe, large ones through shared memory.

An object is pickled with its arrays' buffers out of band (pickle protocol 5). If all of it is `inline` bytes or more,
it is written once to an anonymous memory file whose descriptor is sent through the pipe; the receiver's arrays use that
memory and free it. The file has no name, so nothing is left behind when a process is killed. Read next: `workers.py`.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any

from ...core.base.interrupts import uninterrupted

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SHARES_MEMORY = sys.platform != "win32"
ALIGN = 64  # bytes; arrays are aligned to cache lines


def send(pipe: Connection, payload: Any, inline: int) -> None:
    """Send an object. Pickling errors are raised before anything is sent."""
    from multiprocessing import reduction

    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(payload, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(text), *(b.raw() for b in buffers)]
    if not SHARES_MEMORY or sum(p.nbytes for p in parts) < inline:
        pipe.send((False, [bytes(p) for p in parts]))
        return
    spans, end = [], 0
    for part in parts:
        spans.append((end, part.nbytes))
        end += -(-part.nbytes // ALIGN) * ALIGN
    with uninterrupted():  # an interrupt would leak the bare descriptor
        file = open(memory_file(), "r+b", buffering=0)
    with file:
        os.ftruncate(file.fileno(), end)
        with mmap.mmap(file.fileno(), end) as memory:
            for (start, length), part in zip(spans, parts):
                memory[start : start + length] = part
        pipe.send((True, (end, spans)))
        reduction.send_handle(pipe, file.fileno(), None)


def memory_file() -> int:
    """Return the descriptor of a new anonymous file."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("minflow-batch", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile(buffering=0) as file:
        return os.dup(file.fileno())


def receive(pipe: Connection) -> Any:
    """Receive the next object. Raises EOFError or OSError if the other side is gone."""
    from multiprocessing import reduction

    shared, rest = pipe.recv()
    if not shared:
        # Arrays over bytes would be read-only.
        return pickle.loads(rest[0], buffers=map(bytearray, rest[1:]))
    end, spans = rest
    pipe.poll(None)  # Ctrl-C is allowed here, until the descriptor arrives or the other side is gone
    with uninterrupted():
        handle = reduction.recv_handle(pipe)
        try:
            memory = memoryview(mmap.mmap(handle, end))
        finally:
            os.close(handle)
    text, *buffers = (memory[start : start + length] for start, length in spans)
    return pickle.loads(text, buffers=buffers)
