"""Update rules of optimizers: each maps a parameter, its gradient and its state to new ones.

No rule has a gradient. Eager runs the kernel with `out=` on the parameter's own storage; a trace records updates of its
states. Each output may overwrite the input that it replaces. The fast kernels are in `../../platforms/numpy/update.py`.
Read next: `../../optim/sgd.py`.
"""

from __future__ import annotations

import sys
from typing import Any

from ..base.errors import DTypeError, ShapeError
from ..kernels import kernel
from ..op import Op, define, parse_signature
from ..sharding import Labels
from ..spec import Spec
from .examples import case, floats, positive
from .rules import need_spec


def descent_gradient(p, grad, weight_decay: float, maximize: bool):
    """The gradient to descend along: negated if maximize, plus weight decay."""
    down = -grad if maximize else grad
    return down + weight_decay * p if weight_decay else down


def running_mean(mean, new, weight: float):
    """Move the running mean by `weight` towards `new`. An infinite mean becomes NaN, as with PyTorch's lerp."""
    return mean + weight * (new - mean) if weight < 0.5 else new - (new - mean) * (1 - weight)


NUMBERS = {"step", "lr", "mu", "eta", "mu_product"}  # inputs that are 0-d; all others have the spec of p


def define_rule(signature: str, **facts: Any) -> Op:
    """Define an update rule; see `define` for the facts. The outputs have the specs of the inputs that they replace.

    sharding: of a rule that does not compute each element by itself.
    """
    op, names, _, outputs = parse_signature(signature)

    def infer(*specs: Spec, **attrs):
        p = specs[0]
        if not getattr(p, "floating", False):
            raise DTypeError(
                f"{op}: {{p}} is {p.dtype.name}, and only floating tensors can be trained", hint="{p}.float()"
            )
        for name, spec in zip(names[1:], specs[1:]):
            if name in NUMBERS and getattr(spec, "shape", ()) != ():
                raise ShapeError(f"{op}: {{{name}}} must be one number, got shape {spec.shape}", hint="a 0-d tensor")
            if name not in NUMBERS and spec is not p:
                raise ShapeError(
                    f"{op}: {{{name}}} is {spec}, {{p}} is {p}",
                    hint="gradient and state need the shape and dtype of {p}",
                )
        kept = tuple(s for name, s in zip(names, specs) if name not in ("grad", "lr"))
        return kept if len(kept) > 1 else p

    numbers = [name for name in names if name in NUMBERS]

    def sharding(p: Spec, *_: Spec, **attrs) -> list[Labels]:
        return [() if name in NUMBERS else tuple(range(p.ndim)) for name in (*names, *outputs)]

    facts = {"sharding": sharding, "module": sys._getframe(1).f_globals["__name__"]} | facts
    joins = facts["sharding"] is sharding
    return define(signature, infer, alias_safe=True, host_inputs=numbers, joins=joins, **facts)


small, rate, count = floats(3, 4), positive((), low=0.01, high=0.1), floats((), low=1.0, high=1.0, dtype="float32")
single, empty = floats(5, dtype="float32"), floats(0, 3)


# ---- stochastic gradient descent ---------------------------------------------------------------------------------

sgd = define_rule(
    "sgd(p, grad, lr; weight_decay, maximize) -> p",
    flops=2,
    examples=[
        case(small, small(), rate, weight_decay=0.0, maximize=False),
        case(small, small(), rate, weight_decay=0.1, maximize=True),
        case(single, single(), rate, weight_decay=0.1, maximize=False),
        case(empty, empty(), rate, weight_decay=0.0, maximize=False),
    ],
    doc="p - lr * (grad + weight_decay * p).",
    slow_on_numpy=True,
)


@kernel(sgd)
def _(xp, p, grad, lr, weight_decay, maximize):
    return p - float(lr) * descent_gradient(p, grad, weight_decay, maximize)


sgd_momentum = define_rule(
    "sgd_momentum(p, grad, buf, lr; momentum, nesterov, weight_decay, maximize) -> p, buf",
    flops=4,
    examples=[
        case(small, small(), small(), rate, momentum=0.9, nesterov=False, weight_decay=0.0, maximize=False),
        case(small, small(), small(), rate, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True),
        case(single, single(), single(), rate, momentum=0.5, nesterov=False, weight_decay=0.1, maximize=False),
        case(empty, empty(), empty(), rate, momentum=0.9, nesterov=True, weight_decay=0.0, maximize=False),
    ],
    doc="buf = momentum * buf + direction; p - lr * buf (with Nesterov: direction + momentum * buf). "
    "Sutskever et al. 2013, section 2, as PyTorch writes it.",
    slow_on_numpy=True,
)


@kernel(sgd_momentum)
def _(xp, p, grad, buf, lr, momentum, nesterov, weight_decay, maximize):
    down = descent_gradient(p, grad, weight_decay, maximize)
    buf = momentum * buf + down
    return p - float(lr) * (down + momentum * buf if nesterov else buf), buf


sgd_dampened = define_rule(
    "sgd_dampened(p, grad, buf, step, lr; momentum, dampening, weight_decay, maximize) -> p, buf, step",
    examples=[
        case(small, small(), small(), count, rate, momentum=0.9, dampening=0.1, weight_decay=0.0, maximize=False),
        case(small, small(), small(), count, rate, momentum=0.9, dampening=0.5, weight_decay=0.1, maximize=True),
    ],
    doc="sgd_momentum with buf = momentum * buf + (1 - dampening) * direction; the first step is not dampened.",
)


@kernel(sgd_dampened)
def _(xp, p, grad, buf, step, lr, momentum, dampening, weight_decay, maximize):
    take = 1 - dampening if step > 0 else 1.0
    buf = momentum * buf + take * descent_gradient(p, grad, weight_decay, maximize)
    return p - float(lr) * buf, buf, step + 1


# ---- Adam --------------------------------------------------------------------------------------------------------


def adam_step(
    xp, p, grad, first, second, most, step, lr, beta1, beta2, eps, weight_decay, decoupled, corrected, maximize
):
    """(p, first moment, second moment) after a step of Adam, and the largest second moment if `most` is given."""
    lr, now = float(lr), float(step) + 1
    down = descent_gradient(p, grad, 0.0 if decoupled else weight_decay, maximize)
    first = beta1 * first + (1 - beta1) * down
    second = beta2 * second + (1 - beta2) * down * down
    largest = second if most is None else xp.maximum(most, second)
    fix1, fix2 = (1 - beta1**now, 1 - beta2**now) if corrected else (1.0, 1.0)
    if decoupled:
        p = p * (1 - lr * weight_decay)
    p = p - lr * (first / fix1) / (xp.sqrt(largest / fix2) + eps)
    return (p, first, second) if most is None else (p, first, second, largest)


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

adam = define_rule(
    "adam(p, grad, exp_avg, exp_avg_sq, step, lr; beta1, beta2, eps, weight_decay, decoupled, corrected, maximize)"
    " -> p, exp_avg, exp_avg_sq, step",
    flops=12,  # two means 3 and 4, root, division, step
    examples=[
        case(small, small(), small(), square, count, rate, **settings),
        case(small, small(), small(), square, count, rate, **settings | {"decoupled": True, "maximize": True}),
        case(single, single(), single(), positive(5)(dtype="float32"), count, rate, **settings | {"weight_decay": 0.0}),
        case(empty, empty(), empty(), empty(), count, rate, **settings),
    ],
    doc="Kingma & Ba 2015 (arXiv:1412.6980), algorithm 1; decoupled: weights decay alone, Loshchilov & Hutter 2019 "
    "(arXiv:1711.05101), algorithm 2.  corrected: the moments' bias towards zero is taken out.",
    slow_on_numpy=True,
)


@kernel(adam)
def _(xp, p, grad, exp_avg, exp_avg_sq, step, lr, **attrs):
    return *adam_step(xp, p, grad, exp_avg, exp_avg_sq, None, step, lr, **attrs), step + 1


adam_amsgrad = define_rule(
    "adam_amsgrad(p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr;"
    " beta1, beta2, eps, weight_decay, decoupled, corrected, maximize)"
    " -> p, exp_avg, exp_avg_sq, max_exp_avg_sq, step",
    examples=[
        case(small, small(), small(), square, square(), count, rate, **settings),
        case(small, small(), small(), square, square(), count, rate, **settings | {"decoupled": True}),
    ],
    doc="adam that divides by the largest second moment so far: Reddi et al. 2018, algorithm 2.",
)


@kernel(adam_amsgrad)
def _(xp, p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, **attrs):
    return *adam_step(xp, p, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, **attrs), step + 1


# ---- gradient accumulation -----------------------------------------------------------------------------------------


def accumulate_spec(total: Spec, grad: Spec, count: Spec) -> Spec:
    need_spec("accumulate", total, grad=grad)
    need_spec("accumulate", (), count=count)
    return total


accumulate = define(
    "accumulate(total, grad, count) -> total",
    infer=accumulate_spec,
    host_inputs=("count",),
    alias_safe=True,
    flops=1,
    sharding=lambda total, *_: [(axes := tuple(range(total.ndim))), axes, (), axes],
    examples=[
        case(small, small(), floats((), low=0.0, high=0.0)),
        case(small, small(), floats((), low=2.0, high=2.0)),
    ],
    doc="grad where count is 0, else total + grad: the gradient of several parts of a batch, as backward adds it up "
    "in .grad.",
)


@kernel(accumulate)
def _(xp, total, grad, count, out=None):
    out = xp.empty_like(total) if out is None else out
    if count == 0:
        xp.copyto(out, grad)
        return out
    return xp.add(total, grad, out=out)
