"""Update rules of optimizers that adapt to each element's past gradients: RMSprop, Adagrad, Adadelta, Rprop, ASGD.

They run as described in `update.py`. Read next: `../../optim/adaptive.py`.
"""

from __future__ import annotations

from ..kernels import kernel
from .examples import case, floats, positive
from .update import count, define_rule, descent_gradient, empty, rate, running_mean, single, small, square

# ---- RMSprop -----------------------------------------------------------------------------------------------------


def scaled_gradient(xp, p, grad, square_avg, grad_avg, alpha, eps, weight_decay, maximize):
    """(the gradient, the denominator of its quotient, the new means), shared by the four forms of RMSprop."""
    down = descent_gradient(p, grad, weight_decay, maximize)
    spread = square_avg = alpha * square_avg + (1 - alpha) * down * down
    if grad_avg is not None:
        grad_avg = running_mean(grad_avg, down, 1 - alpha)
        spread = square_avg - grad_avg * grad_avg
    return down, xp.sqrt(spread) + eps, square_avg, grad_avg


past = {"alpha": 0.9, "eps": 1e-8, "weight_decay": 0.0, "maximize": False}
single_square = positive(5)(dtype="float32")
wide, low = positive(3, 4, low=2.0, high=3.0), floats(3, 4, low=-0.5, high=0.5)  # gives a positive variance

rmsprop = define_rule(
    "rmsprop(p, grad, square_avg, step, lr; alpha, eps, weight_decay, maximize) -> p, square_avg, step",
    examples=[
        case(small, small(), square, count, rate, **past),
        case(single, single(), single_square, count, rate, **past | {"weight_decay": 0.1, "maximize": True}),
        case(empty, empty(), empty(), count, rate, **past),
    ],
    doc="s = alpha * s + (1 - alpha) * grad**2; p - lr * grad / (sqrt(s) + eps). Tieleman & Hinton 2012, lecture 6.5.",
)


@kernel(rmsprop)
def _(xp, p, grad, square_avg, step, lr, **attrs):
    down, root, square_avg, _ = scaled_gradient(xp, p, grad, square_avg, None, **attrs)
    return p - float(lr) * (down / root), square_avg, step + 1


rmsprop_momentum = define_rule(
    "rmsprop_momentum(p, grad, square_avg, momentum_buffer, step, lr; momentum, alpha, eps, weight_decay, maximize)"
    " -> p, square_avg, momentum_buffer, step",
    examples=[case(small, small(), square, small(), count, rate, momentum=0.9, **past)],
    doc="rmsprop with momentum: buf = momentum * buf + grad / (sqrt(s) + eps); p - lr * buf.",
)


@kernel(rmsprop_momentum)
def _(xp, p, grad, square_avg, momentum_buffer, step, lr, momentum, **attrs):
    down, root, square_avg, _ = scaled_gradient(xp, p, grad, square_avg, None, **attrs)
    buf = momentum * momentum_buffer + down / root
    return p - float(lr) * buf, square_avg, buf, step + 1


rmsprop_centered = define_rule(
    "rmsprop_centered(p, grad, square_avg, grad_avg, step, lr; alpha, eps, weight_decay, maximize)"
    " -> p, square_avg, grad_avg, step",
    examples=[case(small, small(), wide, low, count, rate, **past)],
    doc="rmsprop with the variance s - mean(grad)**2 under the root. Graves 2013 (arXiv:1308.0850), eq. 38.",
)


@kernel(rmsprop_centered)
def _(xp, p, grad, square_avg, grad_avg, step, lr, **attrs):
    down, root, square_avg, grad_avg = scaled_gradient(xp, p, grad, square_avg, grad_avg, **attrs)
    return p - float(lr) * (down / root), square_avg, grad_avg, step + 1


rmsprop_centered_momentum = define_rule(
    "rmsprop_centered_momentum(p, grad, square_avg, grad_avg, momentum_buffer, step, lr;"
    " momentum, alpha, eps, weight_decay, maximize) -> p, square_avg, grad_avg, momentum_buffer, step",
    examples=[case(small, small(), wide, low, small(), count, rate, momentum=0.9, **past)],
    doc="rmsprop_centered with momentum, as in rmsprop_momentum.",
)


@kernel(rmsprop_centered_momentum)
def _(xp, p, grad, square_avg, grad_avg, momentum_buffer, step, lr, momentum, **attrs):
    down, root, square_avg, grad_avg = scaled_gradient(xp, p, grad, square_avg, grad_avg, **attrs)
    buf = momentum * momentum_buffer + down / root
    return p - float(lr) * buf, square_avg, grad_avg, buf, step + 1


# ---- Adagrad, Adadelta -------------------------------------------------------------------------------------------

adagrad = define_rule(
    "adagrad(p, grad, sum, step, lr; lr_decay, eps, weight_decay, maximize) -> p, sum, step",
    examples=[
        case(small, small(), square, count, rate, lr_decay=0.0, eps=1e-10, weight_decay=0.0, maximize=False),
        case(single, single(), single_square, count, rate, lr_decay=0.1, eps=1e-10, weight_decay=0.1, maximize=True),
        case(empty, empty(), empty(), count, rate, lr_decay=0.0, eps=1e-10, weight_decay=0.0, maximize=False),
    ],
    doc="sum + grad**2; p - lr / (1 + step * lr_decay) * grad / (sqrt(sum) + eps). Duchi, Hazan & Singer 2011, "
    "section 1.",
)


@kernel(adagrad)
def _(xp, p, grad, sum, step, lr, lr_decay, eps, weight_decay, maximize):
    down = descent_gradient(p, grad, weight_decay, maximize)
    sum = sum + down * down
    return p - float(lr) / (1 + float(step) * lr_decay) * (down / (xp.sqrt(sum) + eps)), sum, step + 1


adadelta = define_rule(
    "adadelta(p, grad, square_avg, acc_delta, step, lr; rho, eps, weight_decay, maximize)"
    " -> p, square_avg, acc_delta, step",
    examples=[
        case(small, small(), square, square(), count, rate, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False),
        case(small, small(), square, square(), count, rate, rho=0.5, eps=1e-6, weight_decay=0.1, maximize=True),
    ],
    doc="p - lr * d, where d = grad * sqrt(mean(d**2) + eps) / sqrt(mean(grad**2) + eps), the means running ones. "
    "Zeiler 2012 (arXiv:1212.5701), algorithm 1.",
)


@kernel(adadelta)
def _(xp, p, grad, square_avg, acc_delta, step, lr, rho, eps, weight_decay, maximize):
    down = descent_gradient(p, grad, weight_decay, maximize)
    square_avg = rho * square_avg + (1 - rho) * down * down
    delta = xp.sqrt(acc_delta + eps) / xp.sqrt(square_avg + eps) * down
    return p - float(lr) * delta, square_avg, rho * acc_delta + (1 - rho) * delta * delta, step + 1


# ---- Rprop, ASGD -------------------------------------------------------------------------------------------------

rprop = define_rule(
    "rprop(p, grad, prev, step_size, step, lr; etaminus, etaplus, smallest, largest, maximize)"
    " -> p, prev, step_size, step",
    examples=[
        case(
            small,
            small(),
            small(),
            square,
            count,
            rate,
            etaminus=0.5,
            etaplus=1.2,
            smallest=1e-6,
            largest=50.0,
            maximize=False,
        ),
        case(
            small,
            small(),
            small(),
            square,
            count,
            rate,
            etaminus=0.5,
            etaplus=1.2,
            smallest=0.5,
            largest=0.7,
            maximize=True,
        ),
    ],
    doc="p - sign(grad) * size: sizes grow by etaplus where the gradient keeps its sign, shrink by etaminus where it "
    "turns, and there this step is left out. lr is the first size alone. Riedmiller & Braun 1993, section 3.",
)


@kernel(rprop)
def _(xp, p, grad, prev, step_size, step, lr, etaminus, etaplus, smallest, largest, maximize):
    down = -grad if maximize else grad
    same = down * prev
    factor = xp.where(same > 0, etaplus, xp.where(same < 0, etaminus, 1.0)).astype(p.dtype)
    size, down = xp.clip(step_size * factor, smallest, largest), xp.where(same < 0, p.dtype.type(0), down)
    sign = (down > 0).astype(p.dtype) - (down < 0).astype(p.dtype)  # 0 for NaN, as in PyTorch
    return p - sign * size, down, size, step + 1


asgd = define_rule(
    "asgd(p, grad, ax, mu, eta, step, lr; lambd, alpha, t0, weight_decay, maximize) -> p, ax, mu, eta, step",
    examples=[
        case(
            small,
            small(),
            small(),
            count,
            rate(dtype="float32"),
            count,
            rate,
            lambd=1e-4,
            alpha=0.75,
            t0=1e6,
            weight_decay=0.0,
            maximize=False,
        ),
        case(
            small,
            small(),
            small(),
            floats((), low=0.5, high=0.5, dtype="float32"),
            rate(dtype="float32"),
            count,
            rate,
            lambd=0.1,
            alpha=0.75,
            t0=0.0,
            weight_decay=0.1,
            maximize=True,
        ),
    ],
    doc="p * (1 - lambd * eta) - eta * grad, where eta = lr / (1 + lambd * lr * step)**alpha; ax is the mean of all p "
    "after t0 steps. Polyak & Juditsky 1992, section 2.",
)


@kernel(asgd)
def _(xp, p, grad, ax, mu, eta, step, lr, lambd, alpha, t0, weight_decay, maximize):
    now, lr, size = float(step) + 1, float(lr), float(eta)
    p = p * (1 - lambd * size) - size * descent_gradient(p, grad, weight_decay, maximize)
    ax = p if float(mu) == 1 else ax + (p - ax) * float(mu)
    new_mu, new_eta = 1 / max(1.0, now - t0), lr / (1 + lambd * lr * now) ** alpha
    return p, ax, mu.dtype.type(new_mu), eta.dtype.type(new_eta), step + 1
