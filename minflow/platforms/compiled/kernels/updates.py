"""Update rules of optimizers in one pass over the parameters, with the operations, and so the bits, of NumPy's kernels.

Eager mode keeps NumPy's kernels, which have less overhead for one call; plans run these. Semantics:
`core/ops/update.py`. Read next: `platforms/numpy/update.py`, which these mirror.
"""

from __future__ import annotations

import numpy as np

from ....core.op import OPS
from ..codegen.jit import float32
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import filled, load_some, root, store_some
from ..lowering import MEDIUM, SMALL, lowers
from ..runtime.instructions import instruction, real_at
from ..runtime.tasks import Task

BYTES = 4
CHUNK = 1 << 14  # elements


@instruction
def sgd_step(
    chunk,
    scratch,
    p,
    grad,
    buf,
    new_p,
    new_buf,
    lr,
    chunk_size,
    size,
    has_momentum,
    nesterov,
    maximize,
    momentum: float,
    weight_decay: float,
):
    """SGD: new_p = p - lr * direction, or with momentum first new_buf = momentum * buf + direction.

    lr: address of a float64.  chunk_size, size: elements.  has_momentum, nesterov, maximize: 1 or 0.
    """
    first = chunk * chunk_size * BYTES
    end = min(first + chunk_size * BYTES, size * BYTES)
    rate = filled(float32(-real_at(lr, 0)))
    sign = filled(float32(-1 if maximize else 1))
    keep, decay = filled(float32(momentum)), filled(float32(weight_decay))
    decays, zeros = weight_decay != 0, filled(float32(0))
    for i in range(first, end, LANES * BYTES):
        count = (end - i) // BYTES
        w, down = load_some(p + i, count, zeros), load_some(grad + i, count, zeros) * sign
        if decays:
            down = w * decay + down
        if has_momentum:
            new = load_some(buf + i, count, zeros) * keep + down
            store_some(new_buf + i, count, new)
            down = down + new * keep if nesterov else new
        store_some(new_p + i, count, w + down * rate)


@instruction
def adam_step(
    chunk,
    scratch,
    p,
    grad,
    mean,
    square,
    new_p,
    new_mean,
    new_square,
    step,
    lr,
    chunk_size,
    size,
    decoupled,
    corrected,
    maximize,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
):
    """One step of Adam.

    mean, square: the moments.  step: address of a float32, the steps before this one.  lr: address of a
    float64.  chunk_size, size: elements.  decoupled: 1 for decoupled weight decay.  corrected: 1 for bias
    correction.  maximize: 1 or 0.
    """
    first = chunk * chunk_size * BYTES
    end = min(first + chunk_size * BYTES, size * BYTES)
    now, rate = np.float64(number_at(step, 0)) + 1, real_at(lr, 0)
    sign = filled(float32(-1 if maximize else 1))
    fix1, fix2 = (1 - beta1**now, 1 - beta2**now) if corrected else (1.0, 1.0)
    keep1, take1 = filled(float32(beta1)), filled(float32(1 - beta1))
    keep2, take2 = filled(float32(beta2)), filled(float32(1 - beta2))
    shrink, down_by = filled(float32(1 - rate * weight_decay)), filled(float32(-rate / fix1))
    wider, tiny = filled(float32(1 / np.sqrt(fix2))), filled(float32(eps))
    decays, zeros, decay_of = weight_decay != 0, filled(float32(0)), filled(float32(weight_decay))
    for i in range(first, end, LANES * BYTES):
        count = (end - i) // BYTES
        w, down = load_some(p + i, count, zeros), load_some(grad + i, count, zeros) * sign
        if decays and not decoupled:
            down = w * decay_of + down
        m = load_some(mean + i, count, zeros) * keep1 + down * take1
        v = load_some(square + i, count, zeros) * keep2 + down * down * take2
        store_some(new_mean + i, count, m)
        store_some(new_square + i, count, v)
        way = root(v)
        if corrected:
            way = way * wider
        way = m / (way + tiny) * down_by
        if decays and decoupled:
            w = w * shrink
        store_some(new_p + i, count, w + way)


@instruction
def increment_counter(chunk, scratch, old, new):
    """Increment a step counter (float32)."""
    put(new, 0, number_at(old, 0) + float32(1))


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


def sgd(arrays, outs, workspace, weight_decay, maximize) -> list[Task] | None:
    p, grad, lr = arrays
    if not fits(outs, lr, p, grad):
        return None
    return [sgd_task(p, grad, 0, outs[0], 0, lr, 0.0, False, weight_decay, maximize)]


def sgd_momentum(arrays, outs, workspace, momentum, nesterov, weight_decay, maximize) -> list[Task] | None:
    p, grad, buf, lr = arrays
    if not fits(outs, lr, p, grad, buf):
        return None
    return [sgd_task(p, grad, buf, outs[0], outs[1], lr, momentum, nesterov, weight_decay, maximize)]


def sgd_task(p, grad, buf, new_p, new_buf, lr, momentum, nesterov, weight_decay, maximize) -> Task:
    """Task of SGD; without momentum if `buf` is 0."""
    return sgd_step(
        chunks_of(p),
        *(p, grad, buf, new_p, new_buf, lr),
        chunk_size=CHUNK,
        size=p.size,
        has_momentum=isinstance(buf, np.ndarray),
        nesterov=nesterov,
        maximize=maximize,
        momentum=momentum,
        weight_decay=weight_decay,
    )


def adam(arrays, outs, workspace, beta1, beta2, eps, weight_decay, decoupled, corrected, maximize) -> list[Task] | None:
    *moments, step, lr = arrays
    if not fits(outs, lr, *moments, step):
        return None
    p = moments[0]
    stepped = adam_step(
        chunks_of(p),
        *moments,
        *outs[:3],
        step,
        lr,
        chunk_size=CHUNK,
        size=p.size,
        decoupled=decoupled,
        corrected=corrected,
        maximize=maximize,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        weight_decay=weight_decay,
    )
    return [stepped, increment_counter(1, step, outs[3])]


lowers(OPS["sgd"], sgd, eager=lambda p, *rest: p.size >= MEDIUM, tolerance=0)
lowers(OPS["sgd_momentum"], sgd_momentum, eager=lambda p, *rest: p.size >= MEDIUM, tolerance=0)
lowers(OPS["adam"], adam, eager=lambda p, *rest: p.size >= SMALL, tolerance=0)
