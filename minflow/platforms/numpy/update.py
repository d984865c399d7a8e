"""Fast kernels of update rules, `../../core/ops/update.py`: in place, and in chunks that stay in cache."""

from __future__ import annotations

import math

from ...core.host.float_warnings import silent
from ...core.kernels import kernel
from ...core.ops.update import adam, adam_amsgrad, sgd, sgd_dampened, sgd_momentum

CHUNK = 1 << 17  # bytes of a chunk of one array, so that those of the four or five arrays of a rule stay in cache
TOLERANCE = 8  # constants are rounded once, products have a different order


def chunks(xp, scratch: int, *arrays):
    """Chunks of these arrays, which have one shape, each with `scratch` work arrays of the chunk's shape.

    The work arrays are reused, so that the loop over the chunks allocates nothing.
    """
    first = arrays[0]
    if first.nbytes <= CHUNK or xp.__name__ != "numpy" or not all([a.flags.c_contiguous for a in arrays]):
        return ((*arrays, *[xp.empty_like(first) for _ in range(scratch)]),)
    return split_chunks(xp, scratch, [a.reshape(-1) for a in arrays], max(CHUNK // first.itemsize, 1))


def split_chunks(xp, scratch: int, flat: list, step: int):
    work = [xp.empty(step, flat[0].dtype) for _ in range(scratch)]
    for start in range(0, flat[0].size, step):
        end = min(start + step, flat[0].size)
        yield (*[a[start:end] for a in flat], *[w[: end - start] for w in work])


def outputs_for(xp, out, *arrays) -> list:
    """The output arrays of a rule: `out`, or new arrays like these."""
    return [xp.empty_like(a) for a in arrays] if out is None else list(out)


def direction(xp, p, grad, weight_decay: float, maximize: bool, work):
    """The descent direction: the gradient, negated to maximize, plus weight decay. May be `grad` itself."""
    if not weight_decay:
        return xp.negative(grad, out=work) if maximize else grad
    xp.multiply(p, p.dtype.type(weight_decay), out=work)
    return xp.subtract(work, grad, out=work) if maximize else xp.add(work, grad, out=work)


@kernel(sgd, platform="numpy", tolerance=TOLERANCE)
def _(xp, p, grad, lr, weight_decay, maximize, out=None):
    new = xp.empty_like(p) if out is None else out
    rate = p.dtype.type(-float(lr))
    with silent():
        for w, g, place, work in chunks(xp, 1, p, grad, new):
            xp.multiply(direction(xp, w, g, weight_decay, maximize, work), rate, out=work)
            xp.add(w, work, out=place)
    return new


def with_momentum(xp, p, grad, buf, lr, keep: float, take: float, nesterov, weight_decay, maximize, new_p, new_buf):
    """Compute buf = keep * buf + take * direction and p -= lr * (buf, or with Nesterov direction + keep * buf)."""
    rate, keep, take = p.dtype.type(-float(lr)), p.dtype.type(keep), p.dtype.type(take)
    with silent():
        for w, g, b, w_place, b_place, work, more in chunks(xp, 2, p, grad, buf, new_p, new_buf):
            down = direction(xp, w, g, weight_decay, maximize, work)
            xp.multiply(b, keep, out=more)
            taken = down if take == 1 else xp.multiply(down, take, out=work)
            xp.add(more, taken, out=b_place)
            if nesterov:
                xp.multiply(b_place, keep, out=more)
                xp.add(down, more, out=more)
                xp.multiply(more, rate, out=more)
            else:
                xp.multiply(b_place, rate, out=more)
            xp.add(w, more, out=w_place)


@kernel(sgd_momentum, platform="numpy", tolerance=TOLERANCE)
def _(xp, p, grad, buf, lr, momentum, nesterov, weight_decay, maximize, out=None):
    out = outputs_for(xp, out, p, buf)
    with_momentum(xp, p, grad, buf, lr, momentum, 1.0, nesterov, weight_decay, maximize, *out)
    return out


@kernel(sgd_dampened, platform="numpy", tolerance=TOLERANCE)
def _(xp, p, grad, buf, step, lr, momentum, dampening, weight_decay, maximize, out=None):
    out, now = outputs_for(xp, out, p, buf, step), float(step) + 1
    take = 1 - dampening if now > 1 else 1.0
    with_momentum(xp, p, grad, buf, lr, momentum, take, False, weight_decay, maximize, *out[:2])
    out[2].fill(now)
    return out


def adam_step(
    xp,
    p,
    grad,
    exp_avg,
    exp_avg_sq,
    most,
    step,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    decoupled,
    corrected,
    maximize,
    out,
):
    """Compute one step of Adam; return the step count. most: AMSGrad's largest second moment so far, or None."""
    now, rate = float(step) + 1, float(lr)
    fix1, fix2 = (1 - beta1**now, 1 - beta2**now) if corrected else (1.0, 1.0)
    real = p.dtype.type
    keep1, take1, keep2, take2 = real(beta1), real(1 - beta1), real(beta2), real(1 - beta2)
    shrink, root, size, tiny = real(1 - rate * weight_decay), real(1 / math.sqrt(fix2)), real(-rate / fix1), real(eps)
    arrays = [a for a in (p, grad, exp_avg, exp_avg_sq, *out, most) if a is not None]
    with silent():
        for w, g, m, v, w_place, m_place, v_place, *rest in chunks(xp, 2, *arrays):
            work, more = rest[-2:]
            g = direction(xp, w, g, 0.0 if decoupled else weight_decay, maximize, work)
            xp.multiply(g, take1, out=more)
            xp.multiply(m, keep1, out=m_place)
            xp.add(m_place, more, out=m_place)
            xp.multiply(g, g, out=more)
            xp.multiply(more, take2, out=more)
            xp.multiply(v, keep2, out=v_place)
            xp.add(v_place, more, out=v_place)
            if most is not None:
                xp.maximum(rest[1], v_place, out=rest[0])
            xp.sqrt(v_place if most is None else rest[0], out=more)
            if corrected:
                xp.multiply(more, root, out=more)
            xp.add(more, tiny, out=more)
            xp.divide(m_place, more, out=more)
            xp.multiply(more, size, out=more)
            if decoupled and weight_decay:
                xp.multiply(w, shrink, out=w_place)
                w = w_place
            xp.add(w, more, out=w_place)
    return now


@kernel(adam, platform="numpy", tolerance=TOLERANCE)
def _(xp, p, grad, exp_avg, exp_avg_sq, step, lr, out=None, **attrs):
    out = outputs_for(xp, out, p, exp_avg, exp_avg_sq, step)
    out[3].fill(adam_step(xp, p, grad, exp_avg, exp_avg_sq, None, step, lr, **attrs, out=out[:3]))
    return out


@kernel(adam_amsgrad, platform="numpy", tolerance=TOLERANCE)
def _(xp, p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, out=None, **attrs):
    out = outputs_for(xp, out, p, exp_avg, exp_avg_sq, max_exp_avg_sq, step)
    out[4].fill(adam_step(xp, p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, **attrs, out=out[:4]))
    return out
