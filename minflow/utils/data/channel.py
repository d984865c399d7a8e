"""Objects between processes: small ones through a pipe, large ones through memory that both look at.

An object is pickled with its arrays' buffers apart (pickle protocol 5). From `inline` bytes on, everything is written
once into an anonymous file in memory whose descriptor travels through the pipe; the receiver's arrays lie in that
memory and free it when they die. It has no name, so nothing is left behind when a process is killed. Read next:
`workers.py`.
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

SHARES = sys.platform != "win32"
ALIGN = 64  # bytes: arrays begin at a cache line


def send(pipe: Connection, thing: Any, inline: int) -> None:
    """Send an object. Raises what pickling raises before anything was sent."""
    from multiprocessing import reduction

    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(text), *(b.raw() for b in buffers)]
    if not SHARES or sum(p.nbytes for p in parts) < inline:
        pipe.send((False, [bytes(p) for p in parts]))
        return
    spans, end = [], 0
    for part in parts:
        spans.append((end, part.nbytes))
        end += -(-part.nbytes // ALIGN) * ALIGN
    with uninterrupted():  # a bare descriptor would be closed by nobody
        file = open(memory_file(), "r+b", buffering=0)
    with file:
        os.ftruncate(file.fileno(), end)
        with mmap.mmap(file.fileno(), end) as memory:
            for (start, length), part in zip(spans, parts):
                memory[start : start + length] = part
        pipe.send((True, (end, spans)))
        reduction.send_handle(pipe, file.fileno(), None)


def memory_file() -> int:
    """The descriptor of a new file that nobody else can find."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("minflow-batch", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile(buffering=0) as file:
        return os.dup(file.fileno())


def receive(pipe: Connection) -> Any:
    """The next object. Raises EOFError or OSError when the other side is gone."""
    from multiprocessing import reduction

    shared, rest = pipe.recv()
    if not shared:
        # Arrays on bytes could not be written to.
        return pickle.loads(rest[0], buffers=map(bytearray, rest[1:]))
    end, spans = rest
    pipe.poll(None)  # here Ctrl-C may come: until the descriptor is there, or the other side is gone
    with uninterrupted():
        handle = reduction.recv_handle(pipe)
        try:
            memory = memoryview(mmap.mmap(handle, end))
        finally:
            os.close(handle)
    text, *buffers = (memory[start : start + length] for start, length in spans)
    return pickle.loads(text, buffers=buffers)
