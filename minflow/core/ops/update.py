"""The rules of optimizers: each takes a parameter, its gradient and its state, and gives all of them anew.

No rule has a gradient. Eager runs the kernel with `out=` on the parameter's own storage; a trace records the updates of
its states. Every output may be written over the input that it replaces. Read next: `../../optim/sgd.py`.
"""

from __future__ import annotations

import math

from ..errors import DTypeError, ShapeError
from ..examples import case, floats, positive
from ..op import define, kernel
from ..spec import Spec

CHUNK = 1 << 17  # bytes of one array that are worked on at a time, so that the four or five of a rule stay in cache


def pieces(xp, scratch: int, *arrays):
    """Pieces of these arrays of one shape that fit the cache, each with `scratch` work arrays of the piece's shape.

    The work arrays are made once and used again, so that the loop over the pieces allocates nothing.
    """
    first = arrays[0]
    if first.nbytes <= CHUNK or xp.__name__ != "numpy" or not all([a.flags.c_contiguous for a in arrays]):
        return ((*arrays, *[xp.empty_like(first) for _ in range(scratch)]),)
    return cut(xp, scratch, [a.reshape(-1) for a in arrays], max(CHUNK // first.itemsize, 1))


def cut(xp, scratch: int, flat: list, step: int):
    work = [xp.empty(step, flat[0].dtype) for _ in range(scratch)]
    for start in range(0, flat[0].size, step):
        end = min(start + step, flat[0].size)
        yield (*[a[start:end] for a in flat], *[w[: end - start] for w in work])


def results(xp, out, *arrays) -> list:
    """Where a rule writes: `out`, or new arrays like these."""
    return [xp.empty_like(a) for a in arrays] if out is None else list(out)


def steepest(xp, p, grad, weight_decay: float, maximize: bool, work):
    """The gradient to go down along: negated to maximize, with the decay of weights added. May be `grad` itself."""
    if not weight_decay:
        return xp.negative(grad, out=work) if maximize else grad
    xp.multiply(p, p.dtype.type(weight_decay), out=work)
    return xp.subtract(work, grad, out=work) if maximize else xp.add(work, grad, out=work)


def rule(op: str, same: tuple[str, ...], numbers: tuple[str, ...]):
    """The shape rule: inputs `same` have the spec of p, inputs `numbers` are 0-d; the result is as the state was."""

    def infer(*specs: Spec, **attrs):
        p = specs[0]
        if not getattr(p, "floating", False):
            raise DTypeError(
                f"{op}: {{p}} is {p.dtype.name}, and only floating tensors can be trained", hint="{p}.float()"
            )
        names = ("p", *same, *numbers)
        for name, spec in zip(names[1:], specs[1:]):
            if name in same and spec is not p:
                raise ShapeError(
                    f"{op}: {{{name}}} is {spec}, {{p}} is {p}",
                    hint="gradient and state have the shape and dtype of {p}",
                )
            if name in numbers and getattr(spec, "shape", ()) != ():
                raise ShapeError(f"{op}: {{{name}}} has shape {spec.shape}, one number is wanted", hint="a 0-d tensor")
        kept = tuple(s for name, s in zip(names, specs) if name not in ("grad", "lr"))
        return kept if len(kept) > 1 else p

    return infer


def signatures(arrays: int, numbers: int, outputs: str) -> tuple:
    """On many ranks: arrays split alike or all there, numbers everywhere; outputs: S for an array, B for a number."""
    return (
        (*("S",) * arrays, *("B",) * numbers, *outputs),
        ("B",) * (arrays + numbers + len(outputs)),
    )


small, rate, count = floats(3, 4), positive((), low=0.01, high=0.1), floats((), low=1.0, high=1.0, dtype="float32")
single, empty = floats(5, dtype="float32"), floats(0, 3)


# ---- stochastic gradient descent ---------------------------------------------------------------------------------

sgd = define(
    "sgd(p, grad, lr; weight_decay, maximize) -> p",
    infer=rule("sgd", ("grad",), ("lr",)),
    alias_safe=True,
    sbp=signatures(2, 1, "S"),
    examples=[
        case(small, small(), rate, weight_decay=0.0, maximize=False),
        case(small, small(), rate, weight_decay=0.1, maximize=True),
        case(single, single(), rate, weight_decay=0.1, maximize=False),
        case(empty, empty(), rate, weight_decay=0.0, maximize=False),
    ],
    doc="p - lr * (grad + weight_decay * p).",
)


@kernel(sgd)
def _(xp, p, grad, lr, weight_decay, maximize, out=None):
    new = xp.empty_like(p) if out is None else out
    rate = p.dtype.type(-float(lr))
    with xp.errstate(all="ignore"):
        for w, g, place, work in pieces(xp, 1, p, grad, new):
            xp.multiply(steepest(xp, w, g, weight_decay, maximize, work), rate, out=work)
            xp.add(w, work, out=place)
    return new


def with_momentum(xp, p, grad, buf, lr, keep: float, take: float, nesterov, weight_decay, maximize, new_p, new_buf):
    """buf = keep * buf + take * direction; p -= lr * (buf, or with Nesterov direction + keep * buf)."""
    rate, keep, take = p.dtype.type(-float(lr)), p.dtype.type(keep), p.dtype.type(take)
    with xp.errstate(all="ignore"):
        for w, g, b, w_place, b_place, work, more in pieces(xp, 2, p, grad, buf, new_p, new_buf):
            down = steepest(xp, w, g, weight_decay, maximize, work)
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


sgd_momentum = define(
    "sgd_momentum(p, grad, buf, lr; momentum, nesterov, weight_decay, maximize) -> p, buf",
    infer=rule("sgd_momentum", ("grad", "buf"), ("lr",)),
    alias_safe=True,
    sbp=signatures(3, 1, "SS"),
    examples=[
        case(small, small(), small(), rate, momentum=0.9, nesterov=False, weight_decay=0.0, maximize=False),
        case(small, small(), small(), rate, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True),
        case(single, single(), single(), rate, momentum=0.5, nesterov=False, weight_decay=0.1, maximize=False),
        case(empty, empty(), empty(), rate, momentum=0.9, nesterov=True, weight_decay=0.0, maximize=False),
    ],
    doc="buf = momentum * buf + direction; p - lr * buf (with Nesterov: direction + momentum * buf). "
    "Sutskever et al. 2013, section 2, as PyTorch writes it.",
)


@kernel(sgd_momentum)
def _(xp, p, grad, buf, lr, momentum, nesterov, weight_decay, maximize, out=None):
    out = results(xp, out, p, buf)
    with_momentum(xp, p, grad, buf, lr, momentum, 1.0, nesterov, weight_decay, maximize, *out)
    return out


sgd_dampened = define(
    "sgd_dampened(p, grad, buf, step, lr; momentum, dampening, weight_decay, maximize) -> p, buf, step",
    infer=rule("sgd_dampened", ("grad", "buf"), ("step", "lr")),
    alias_safe=True,
    sbp=signatures(3, 2, "SSB"),
    examples=[
        case(small, small(), small(), count, rate, momentum=0.9, dampening=0.1, weight_decay=0.0, maximize=False),
        case(small, small(), small(), count, rate, momentum=0.9, dampening=0.5, weight_decay=0.1, maximize=True),
    ],
    doc="sgd_momentum, buf = momentum * buf + (1 - dampening) * direction; the first step takes the direction whole.",
)


@kernel(sgd_dampened)
def _(xp, p, grad, buf, step, lr, momentum, dampening, weight_decay, maximize, out=None):
    out, now = results(xp, out, p, buf, step), float(step) + 1
    take = 1 - dampening if now > 1 else 1.0
    with_momentum(xp, p, grad, buf, lr, momentum, take, False, weight_decay, maximize, *out[:2])
    out[2].fill(now)
    return out


# ---- Adam --------------------------------------------------------------------------------------------------------


def moments(
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
    """One step of Adam; `most` is AMSGrad's largest second moment so far, or None."""
    now, rate = float(step) + 1, float(lr)
    fix1, fix2 = (1 - beta1**now, 1 - beta2**now) if corrected else (1.0, 1.0)
    real = p.dtype.type
    keep1, take1, keep2, take2 = real(beta1), real(1 - beta1), real(beta2), real(1 - beta2)
    shrink, root, size, tiny = real(1 - rate * weight_decay), real(1 / math.sqrt(fix2)), real(-rate / fix1), real(eps)
    arrays = [a for a in (p, grad, exp_avg, exp_avg_sq, *out, most) if a is not None]
    with xp.errstate(all="ignore"):
        for w, g, m, v, w_place, m_place, v_place, *rest in pieces(xp, 2, *arrays):
            work, more = rest[-2:]
            g = steepest(xp, w, g, 0.0 if decoupled else weight_decay, maximize, work)
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


settings = {
    "beta1": 0.9,
    "beta2": 0.99,
    "eps": 1e-8,
    "weight_decay": 0.1,
    "decoupled": False,
    "corrected": True,
    "maximize": False,
}
square = positive(3, 4)

adam = define(
    "adam(p, grad, exp_avg, exp_avg_sq, step, lr; beta1, beta2, eps, weight_decay, decoupled, corrected, maximize)"
    " -> p, exp_avg, exp_avg_sq, step",
    infer=rule("adam", ("grad", "exp_avg", "exp_avg_sq"), ("step", "lr")),
    alias_safe=True,
    sbp=signatures(4, 2, "SSSB"),
    examples=[
        case(small, small(), small(), square, count, rate, **settings),
        case(small, small(), small(), square, count, rate, **settings | {"decoupled": True, "maximize": True}),
        case(single, single(), single(), positive(5)(dtype="float32"), count, rate, **settings | {"weight_decay": 0.0}),
        case(empty, empty(), empty(), empty(), count, rate, **settings),
    ],
    doc="Kingma & Ba 2015 (arXiv:1412.6980), algorithm 1; decoupled: weights decay alone, Loshchilov & Hutter 2019 "
    "(arXiv:1711.05101), algorithm 2.  corrected: the moments' bias towards zero is taken out.",
)


@kernel(adam)
def _(xp, p, grad, exp_avg, exp_avg_sq, step, lr, out=None, **attrs):
    out = results(xp, out, p, exp_avg, exp_avg_sq, step)
    out[3].fill(moments(xp, p, grad, exp_avg, exp_avg_sq, None, step, lr, **attrs, out=out[:3]))
    return out


adam_amsgrad = define(
    "adam_amsgrad(p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr;"
    " beta1, beta2, eps, weight_decay, decoupled, corrected, maximize)"
    " -> p, exp_avg, exp_avg_sq, max_exp_avg_sq, step",
    infer=rule("adam_amsgrad", ("grad", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"), ("step", "lr")),
    alias_safe=True,
    sbp=signatures(5, 2, "SSSSB"),
    examples=[
        case(small, small(), small(), square, square(), count, rate, **settings),
        case(small, small(), small(), square, square(), count, rate, **settings | {"decoupled": True}),
    ],
    doc="adam that divides by the largest second moment so far: Reddi et al. 2018, algorithm 2.",
)


@kernel(adam_amsgrad)
def _(xp, p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, out=None, **attrs):
    out = results(xp, out, p, exp_avg, exp_avg_sq, max_exp_avg_sq, step)
    out[4].fill(moments(xp, p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, **attrs, out=out[:4]))
    return out


# ---- adding up gradients -----------------------------------------------------------------------------------------

accumulate = define(
    "accumulate(total, grad, count) -> total",
    infer=lambda total, grad, count: total,
    alias_safe=True,
    sbp=signatures(2, 1, "S"),
    examples=[
        case(small, small(), floats((), low=0.0, high=0.0)),
        case(small, small(), floats((), low=2.0, high=2.0)),
    ],
    doc="grad where count is 0, else total + grad: the gradient of several parts of a batch, as backward adds it up in .grad.",
)


@kernel(accumulate)
def _(xp, total, grad, count, out=None):
    out = xp.empty_like(total) if out is None else out
    if count == 0:
        xp.copyto(out, grad)
        return out
    return xp.add(total, grad, out=out)
