"""Words that several threads read and write, and what a thread does that waits: for code that numba compiles.

Every access is in one order for all threads. Addresses are int64, in bytes. Read next:
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
    """The word there."""
    return types.int64(types.int64), lambda context, builder, _, a: builder.load_atomic(word_of(builder, *a), ORDER, 8)


@intrinsic
def publish(context, address, word):
    """Write it."""

    def code(context, builder, signature, a):
        builder.store_atomic(a[1], word_of(builder, a[0]), ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic
def add_to(context, address, number):
    """Add to the word there; what it was before."""
    return types.int64(types.int64, types.int64), lambda context, builder, _, a: builder.atomic_rmw(
        "add", word_of(builder, a[0]), a[1], ORDER
    )


@intrinsic
def exchange(context, address, old, new):
    """Write `new` where the word still is `old`; was it?"""

    def code(context, builder, signature, a):
        return builder.extract_value(builder.cmpxchg(word_of(builder, a[0]), a[1], a[2], ORDER, ORDER), 1)

    return types.boolean(types.int64, types.int64, types.int64), code


@intrinsic
def pause(context):
    """Some dozen cycles in which a thread that spins leaves the core to its neighbour."""

    def code(context, builder, signature, a):
        if PAUSE:
            called(builder, PAUSE, ir.VoidType())
        return context.get_dummy_value()

    return types.void(), code
