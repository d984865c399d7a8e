"""Atomics and thread waiting for compiled code: shared words, spin hints, mutex and condition variable.

Every access is sequentially consistent. Addresses are int64, in bytes. Read next:
`platforms/compiled/runtime/task_scheduler.py`.
"""

from __future__ import annotations

import platform

from .jit import emits, ir, types
from .llvm import WORD, called

ORDER = "seq_cst"
PAUSE = {"x86_64": "llvm.x86.sse2.pause", "AMD64": "llvm.x86.sse2.pause"}.get(platform.machine())
yield_core = types.ExternalFunction("sched_yield", types.int32())
lock = types.ExternalFunction("pthread_mutex_lock", types.int32(types.int64))
unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(types.int64))
sleep_until_woken = types.ExternalFunction("pthread_cond_wait", types.int32(types.int64, types.int64))
wake_all = types.ExternalFunction("pthread_cond_broadcast", types.int32(types.int64))


def word_of(builder: ir.IRBuilder, address):
    return builder.inttoptr(address, WORD.as_pointer())


@emits(types.int64, types.int64)
def fetch(builder, address):
    """Load a word atomically."""
    return builder.load_atomic(word_of(builder, address), ORDER, 8)


@emits(types.void, types.int64, types.int64)
def publish(builder, address, word):
    """Store a word atomically."""
    builder.store_atomic(word, word_of(builder, address), ORDER, 8)


@emits(types.int64, types.int64, types.int64)
def add_to(builder, address, number):
    """Add to a word atomically; return its old value."""
    return builder.atomic_rmw("add", word_of(builder, address), number, ORDER)


@emits(types.boolean, types.int64, types.int64, types.int64)
def exchange(builder, address, old, new):
    """Compare-and-swap: store `new` if the word equals `old`; return whether it did."""
    return builder.extract_value(builder.cmpxchg(word_of(builder, address), old, new, ORDER, ORDER), 1)


@emits(types.void)
def pause(builder):
    """Pause a spinning thread for some dozen cycles, which go to the other hardware thread of its core."""
    if PAUSE:
        called(builder, PAUSE, ir.VoidType())
