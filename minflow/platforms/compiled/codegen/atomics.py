"""Atomics and thread waiting for compiled code: shared words, spin hints, mutex and condition variable.

Every access is sequentially consistent. Addresses are int64, in bytes. Read next:
`platforms/compiled/runtime/task_scheduler.py`.
"""

from __future__ import annotations

import platform

from .jit import intrinsic, ir, types
from .llvm import WORD
from .vectors import called

ORDER = "seq_cst"
PAUSE = {"x86_64": "llvm.x86.sse2.pause", "AMD64": "llvm.x86.sse2.pause"}.get(platform.machine())
yield_core = types.ExternalFunction("sched_yield", types.int32())
lock = types.ExternalFunction("pthread_mutex_lock", types.int32(types.int64))
unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(types.int64))
sleep_until_woken = types.ExternalFunction("pthread_cond_wait", types.int32(types.int64, types.int64))
wake_all = types.ExternalFunction("pthread_cond_broadcast", types.int32(types.int64))


def word_of(builder: ir.IRBuilder, address):
    return builder.inttoptr(address, WORD.as_pointer())


@intrinsic
def fetch(context, address):
    """Load a word atomically."""
    return types.int64(types.int64), lambda context, builder, _, a: builder.load_atomic(word_of(builder, *a), ORDER, 8)


@intrinsic
def publish(context, address, word):
    """Store a word atomically."""

    def code(context, builder, signature, a):
        builder.store_atomic(a[1], word_of(builder, a[0]), ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic
def add_to(context, address, number):
    """Add to a word atomically; return its old value."""
    return types.int64(types.int64, types.int64), lambda context, builder, _, a: builder.atomic_rmw(
        "add", word_of(builder, a[0]), a[1], ORDER
    )


@intrinsic
def exchange(context, address, old, new):
    """Compare-and-swap: store `new` if the word equals `old`; return whether it did."""

    def code(context, builder, signature, a):
        return builder.extract_value(builder.cmpxchg(word_of(builder, a[0]), a[1], a[2], ORDER, ORDER), 1)

    return types.boolean(types.int64, types.int64, types.int64), code


@intrinsic
def pause(context):
    """Pause a spinning thread for some dozen cycles, which go to the other hardware thread of its core."""

    def code(context, builder, signature, a):
        if PAUSE:
            called(builder, PAUSE, ir.VoidType())
        return context.get_dummy_value()

    return types.void(), code
