"""Update rules of optimizers in one pass over the parameters, with the operations, and so the bits, of NumPy's kernels.

Eager mode keeps NumPy's kernels, which have less overhead for one call; plans run these. Semantics:
`core/ops/update.py`. Read next: `platforms/numpy/update.py`, which these mirror.
"""

from __future__ import annotations

import numpy as np

from ....core.op import OPS
from ..codegen.jit import float32
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import add, divide, filled, load_some, multiply, root, store_some
from ..lowering import lowers
from ..runtime.instructions import instruction, real_at, word_at
from ..runtime.tasks import Task

BYTES = 4
CHUNK = 1 << 14  # elements


@instruction
def descend(words, chunk, scratch):
    """SGD: p += -lr * direction, or with momentum first buf = momentum * buf + direction.

    words: p, grad, buf, the new p and buf, lr (float64), elements of a chunk, elements; three flags: momentum,
    nesterov, maximize; momentum, weight decay.
    """
    first = chunk * word_at(words, 6) * BYTES
    end = min(first + word_at(words, 6) * BYTES, word_at(words, 7) * BYTES)
    p, grad, buf, new_p, new_buf = (
        word_at(words, 0),
        word_at(words, 1),
        word_at(words, 2),
        word_at(words, 3),
        word_at(words, 4),
    )
    rate = filled(float32(-real_at(word_at(words, 5), 0)))
    moving, nesterov, sign = word_at(words, 8), word_at(words, 9), filled(float32(-1 if word_at(words, 10) else 1))
    momentum, decay = filled(float32(real_at(words, 11))), filled(float32(real_at(words, 12)))
    decays, zeros = real_at(words, 12) != 0, filled(float32(0))
    for i in range(first, end, LANES * BYTES):
        count = (end - i) // BYTES
        w, down = load_some(p + i, count, zeros), multiply(load_some(grad + i, count, zeros), sign)
        if decays:
            down = add(multiply(w, decay), down)
        if moving:
            new = add(multiply(load_some(buf + i, count, zeros), momentum), down)
            store_some(new_buf + i, count, new)
            down = add(down, multiply(new, momentum)) if nesterov else new
        store_some(new_p + i, count, add(w, multiply(down, rate)))


@instruction
def move(words, chunk, scratch):
    """One step of Adam.

    words: p, grad, both moments, the new p and moments, step (float32), lr (float64), elements of a chunk, elements;
    three flags: decoupled weight decay, bias correction, maximize; beta1, beta2, eps, weight decay.
    """
    first = chunk * word_at(words, 9) * BYTES
    end = min(first + word_at(words, 9) * BYTES, word_at(words, 10) * BYTES)
    p, grad, mean, square = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    new_p, new_mean, new_square = word_at(words, 4), word_at(words, 5), word_at(words, 6)
    now, lr = np.float64(number_at(word_at(words, 7), 0)) + 1, real_at(word_at(words, 8), 0)
    decoupled, corrected = word_at(words, 11), word_at(words, 12)
    sign = filled(float32(-1 if word_at(words, 13) else 1))
    beta1, beta2, decay = real_at(words, 14), real_at(words, 15), real_at(words, 17)
    fix1, fix2 = (1 - beta1**now, 1 - beta2**now) if corrected else (1.0, 1.0)
    keep1, take1 = filled(float32(beta1)), filled(float32(1 - beta1))
    keep2, take2 = filled(float32(beta2)), filled(float32(1 - beta2))
    shrink, size = filled(float32(1 - lr * decay)), filled(float32(-lr / fix1))
    wider, tiny = filled(float32(1 / np.sqrt(fix2))), filled(float32(real_at(words, 16)))
    decays, zeros, decay_of = decay != 0, filled(float32(0)), filled(float32(decay))
    for i in range(first, end, LANES * BYTES):
        count = (end - i) // BYTES
        w, down = load_some(p + i, count, zeros), multiply(load_some(grad + i, count, zeros), sign)
        if decays and not decoupled:
            down = add(multiply(w, decay_of), down)
        m = add(multiply(load_some(mean + i, count, zeros), keep1), multiply(down, take1))
        v = add(multiply(load_some(square + i, count, zeros), keep2), multiply(multiply(down, down), take2))
        store_some(new_mean + i, count, m)
        store_some(new_square + i, count, v)
        way = root(v)
        if corrected:
            way = multiply(way, wider)
        way = multiply(divide(m, add(way, tiny)), size)
        if decays and decoupled:
            w = multiply(w, shrink)
        store_some(new_p + i, count, add(w, way))


@instruction
def count_on(words, chunk, scratch):
    """Increment the step counter: words old and new counter, float32."""
    put(word_at(words, 1), 0, number_at(word_at(words, 0), 0) + float32(1))


def fits(outs, lr, *arrays) -> bool:
    """True if all arrays are contiguous float32, and the rate is one float64."""
    return (
        isinstance(lr, np.ndarray)
        and lr.dtype == np.float64
        and lr.size == 1
        and arrays[0].size > 0
        and all([a.dtype == np.float32 and a.flags.c_contiguous for a in (*outs, *arrays)])
    )


def chunks_of(p) -> int:
    return -(-p.size // CHUNK)


def sgd(arrays, outs, room, weight_decay, maximize) -> list[Task] | None:
    p, grad, lr = arrays
    if not fits(outs, lr, p, grad):
        return None
    return [
        descend(
            chunks_of(p), p, grad, 0, outs[0], 0, lr, CHUNK, p.size, False, False, maximize, 0.0, float(weight_decay)
        )
    ]


def sgd_momentum(arrays, outs, room, momentum, nesterov, weight_decay, maximize) -> list[Task] | None:
    p, grad, buf, lr = arrays
    if not fits(outs, lr, p, grad, buf):
        return None
    return [
        descend(
            chunks_of(p),
            p,
            grad,
            buf,
            *outs,
            lr,
            CHUNK,
            p.size,
            True,
            nesterov,
            maximize,
            float(momentum),
            float(weight_decay),
        )
    ]


def adam(arrays, outs, room, beta1, beta2, eps, weight_decay, decoupled, corrected, maximize) -> list[Task] | None:
    *moments, step, lr = arrays
    if not fits(outs, lr, *moments, step):
        return None
    p = moments[0]
    moved = move(
        chunks_of(p),
        *moments,
        *outs[:3],
        step,
        lr,
        CHUNK,
        p.size,
        decoupled,
        corrected,
        maximize,
        *map(float, (beta1, beta2, eps, weight_decay)),
    )
    return [moved, count_on(1, step, outs[3])]


lowers(OPS["sgd"], sgd, eager=False, tolerance=0)
lowers(OPS["sgd_momentum"], sgd_momentum, eager=False, tolerance=0)
lowers(OPS["adam"], adam, eager=False, tolerance=0)
