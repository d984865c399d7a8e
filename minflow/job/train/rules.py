"""The formulas of the optimizers of job functions, with OneFlow's defaults.

In the formulas w is a weight, g its gradient (of the mean loss, with regularizers, clipped), lr the rate of this step.
They are written as ops, so they appear in the graph of a job. Read next: `optimizer_base.py`, `schedule.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.ops.compare import gt, logical_and, ne
from ...core.ops.elementwise import maximum, rsqrt, sqrt, square, where
from ...core.ops.reduce import mean, sum
from ...core.ops.shape import cast
from ...core.ops.update import adam, sgd
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import DeclaredArgument, flag_argument, float_argument
from .optimizer_base import Decaying, OneRule, Optimizer, Update

# ---- stochastic gradient descent ---------------------------------------------------------------------------------


class SGDW(Decaying):
    """Stochastic gradient descent with decoupled weight decay d.

    m = momentum * m - lr * g;  w = w + m - lr * d * w.  Without momentum (0) w = w - lr * (g + d * w), and there is no
    m. The rate is inside m: if it changes, old gradients keep the rate of their step, unlike in flow.optim.SGD.
    State: `<variable>-momentum`.
    """

    arguments = f"lr_scheduler loss_scale_factor momentum {Decaying.last}"
    momentum = float_argument(0.9, 0, 1, open_high=True)

    def rule(self, build: Any, variable: Any, w: Tensor, g: Tensor, rate: Tensor) -> list[Update]:
        decay = self.decay_of(variable.name)
        if self.momentum == 0:
            return [(w, sgd(w, g, rate, weight_decay=decay, maximize=False))]
        m, lr = build.slot(variable, "momentum"), cast(rate, dtype=w.dtype)
        new = self.momentum * m - lr * g
        moved = w + new
        return [(m, new), (w, moved - lr * decay * w if decay else moved)]


class SGD(SGDW):
    """Stochastic gradient descent: m = momentum * m - lr * g;  w = w + m.  Without momentum (0): w = w - lr * g.

    momentum is 0.9 by default. State: `<variable>-momentum`.
    """

    arguments = f"lr_scheduler loss_scale_factor momentum {OneRule.last}"
    weight_decay = weight_decay_includes = weight_decay_excludes = None


# ---- Adam and its family ------------------------------------------------------------------------------------------


BETAS = float_argument(0.9, 0, 1, open_high=True), float_argument(0.999, 0, 1, open_high=True)


class AdamW(Decaying):
    """Adam with decoupled weight decay d.

    m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g * g;  w = w - lr * (m / (sqrt(v) + epsilon) + d *
    w). do_bias_correction (off by default): in step t = 1, 2, ... lr is lr * sqrt(1 - beta2**t) / (1 -
    beta1**t), for the decay too; epsilon is not corrected. States: `<variable>-m`, `<variable>-v`.
    Source: Loshchilov & Hutter 2019 (arXiv:1711.05101), algorithm 2; the correction as in Kingma & Ba 2015, section 2.
    """

    arguments = f"lr_scheduler beta1 beta2 epsilon do_bias_correction loss_scale_factor {Decaying.last}"
    beta1, beta2, epsilon = *BETAS, float_argument(1e-8, 0)
    do_bias_correction = flag_argument(False)

    def now(self, build: Any) -> tuple[Tensor, ...]:
        (rate,) = super().now(build)
        if self.do_bias_correction:
            rate = rate * build.at_step(lambda t: math.sqrt(1 - self.beta2 ** (t + 1)) / (1 - self.beta1 ** (t + 1)))
        return rate, build.at_step(float)

    def rule(self, build: Any, variable: Any, w: Tensor, g: Tensor, rate: Tensor, step: Tensor) -> list[Update]:
        m, v = build.slot(variable, "m"), build.slot(variable, "v")
        # The op's own correction also divides v below the epsilon, so it is disabled; the op then ignores its step.
        new, first, second, _ = adam(
            *(w, g, m, v, step, rate),
            **{"beta1": self.beta1, "beta2": self.beta2, "eps": self.epsilon},
            **{"weight_decay": self.decay_of(variable.name), "decoupled": True, "corrected": False, "maximize": False},
        )
        return [(m, first), (v, second), (w, new)]


class Adam(AdamW):
    """Adam: m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g * g;  w = w - lr * m / (sqrt(v) +
    epsilon).

    do_bias_correction is off by default: the first steps are then small if beta1 is large, and large if beta2 is. With
    it lr is lr * sqrt(1 - beta2**t) / (1 - beta1**t) in step t = 1, 2, ...
    States: `<variable>-m`, `<variable>-v`. Source: Kingma & Ba 2015 (arXiv:1412.6980), algorithm 1 and section 2.
    """

    arguments = f"lr_scheduler beta1 beta2 epsilon do_bias_correction loss_scale_factor {OneRule.last}"
    weight_decay = weight_decay_includes = weight_decay_excludes = None


class LazyAdam(Adam):
    """Adam with bias correction that skips elements without a gradient in this step.

    Where g is 0, as in the rows of an embedding that do not occur in the batch, w, m and v are unchanged.
    """

    arguments = f"lr_scheduler beta1 beta2 epsilon loss_scale_factor {OneRule.last}"
    do_bias_correction = True

    def rule(self, build: Any, variable: Any, w: Tensor, g: Tensor, rate: Tensor, step: Tensor) -> list[Update]:
        touched, updates = ne(g, 0), super().rule(build, variable, w, g, rate, step)
        return [(target, where(touched, new, target)) for target, new in updates]


class LAMB(Decaying):
    """Adam whose step is scaled to the norm of the weight, layer by layer, with weight decay d.

    m and v as in Adam;  a = m / (1 - beta1**t) / sqrt(v / (1 - beta2**t) + epsilon) in step t = 1, 2, ...;
    w = w - lr * r * (a + d * w), r = norm(w) / norm(a) if both are above 0, else 1.
    The epsilon is inside the root, and the decay outside the norm, as in OneFlow.
    States: `<variable>-m`, `<variable>-v`. Source: You et al. 2020 (arXiv:1904.00962), algorithm 2.
    """

    arguments = f"lr_scheduler beta1 beta2 epsilon loss_scale_factor {Decaying.last}"
    beta1, beta2, epsilon = *BETAS, float_argument(1e-6, 0)

    def now(self, build: Any) -> tuple[Tensor, ...]:
        return *super().now(build), *[build.at_step(lambda t, b=b: 1 - b ** (t + 1)) for b in (self.beta1, self.beta2)]

    def rule(self, build: Any, variable: Any, w: Tensor, g: Tensor, *now: Tensor) -> list[Update]:
        m, v = build.slot(variable, "m"), build.slot(variable, "v")
        lr, fix1, fix2 = [cast(x, dtype=w.dtype) for x in now]
        first = self.beta1 * m + (1 - self.beta1) * g
        second = self.beta2 * v + (1 - self.beta2) * square(g)
        step = first / fix1 * rsqrt(second / fix2 + self.epsilon)
        ours, its = norm(w), norm(step)
        both = logical_and(gt(ours, 0), gt(its, 0))
        trust = where(both, ours / where(both, its, 1.0), 1.0)
        decay = self.decay_of(variable.name)
        return [(m, first), (v, second), (w, w - lr * trust * (step + decay * w if decay else step))]


def norm(x: Tensor) -> Tensor:
    """sqrt of the sum of squares, a 0-d tensor."""
    return sqrt(sum(square(x), axis=None, keepdims=False))


# ---- others ------------------------------------------------------------------------------------------------------


class RMSProp(OneRule):
    """s = decay_rate * s + (1 - decay_rate) * g * g;  w = w - lr * g / sqrt(s + epsilon).

    centered: with a = decay_rate * a + (1 - decay_rate) * g, s - a * a replaces s under the root, clamped at 0 against
    rounding. States: `<variable>-mean_square`, and centered `<variable>-mean_gradient`.
    Source: Tieleman & Hinton 2012, lecture 6.5; centered: Graves 2013 (arXiv:1308.0850), eq. 38.
    """

    arguments = f"lr_scheduler decay_rate epsilon centered loss_scale_factor {OneRule.last}"
    decay_rate, epsilon = float_argument(0.99, 0, 1, open_high=True), float_argument(1e-8, 0)
    centered = flag_argument(False)

    def rule(self, build: Any, variable: Any, w: Tensor, g: Tensor, rate: Tensor) -> list[Update]:
        s = build.slot(variable, "mean_square")
        squares = spread = (1 - self.decay_rate) * square(g) + self.decay_rate * s
        news = [(s, squares)]
        if self.centered:
            a = build.slot(variable, "mean_gradient")
            average = (1 - self.decay_rate) * g + self.decay_rate * a
            spread = maximum(squares - square(average), 0.0)
            news.append((a, average))
        return [*news, (w, w - cast(rate, dtype=w.dtype) * g * rsqrt(spread + self.epsilon))]


class LARS(OneRule):
    """Momentum whose step is a fixed fraction of the weight, layer by layer.

    m = momentum_beta * m - lr * r * g;  w = w + m;  r = lars_coefficient * rms(w) / (epsilon + rms(g)), rms the root of
    the mean square. A weight that is all zeros has r = 0 and does not change: do not initialize biases with zeros.
    State: `<variable>-momentum`. Source: You, Gitman & Ginsburg 2017 (arXiv:1708.03888), algorithm 1.
    """

    arguments = f"lr_scheduler momentum_beta epsilon lars_coefficient loss_scale_factor {OneRule.last}"
    momentum_beta, epsilon = float_argument(0.9, 0, 1, open_high=True), float_argument(1e-9, 0, open_low=True)
    lars_coefficient = float_argument(0.0001, 0)

    def rule(self, build: Any, variable: Any, w: Tensor, g: Tensor, rate: Tensor) -> list[Update]:
        m, lr = build.slot(variable, "momentum"), cast(rate, dtype=w.dtype)
        local = lr * self.lars_coefficient * rms(w) / (self.epsilon + rms(g))
        new = self.momentum_beta * m - local * g
        return [(m, new), (w, w + new)]


def rms(x: Tensor) -> Tensor:
    """Root mean square, a 0-d tensor."""
    return sqrt(mean(square(x), axis=None, keepdims=False))


class CombinedOptimizer(Optimizer):
    """Several optimizers, each for the `variables` that it names; no variable may be in two of them.

    The loss scale is given here, not in the optimizers. A variable that none of them names is not trained.
    """

    arguments = f"optimizers {Optimizer.arguments}"
    optimizers: Any = DeclaredArgument(lambda owner, name, value: list(value), "Sequence[Optimizer]")

    def complete(self) -> None:
        super().complete()
        for i, each in enumerate(self.optimizers):
            if not isinstance(each, OneRule):
                what = f"CombinedOptimizer: optimizers[{i}] is a {type(each).__name__}"
                fail(OptimError, what, "optimizers such as flow.optimizer.SGD(..., variables=[...])", optimizer=each)
            if each.loss_scale_policy is not None:
                what = f"CombinedOptimizer: optimizers[{i}] has a loss scale of its own, and the loss has only one"
                fail(OptimError, what, "loss_scale_policy of the CombinedOptimizer", optimizer=each)

    def updates(self, build: Any, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> Iterator[Update]:
        taken: dict[str, int] = {}
        for i, each in enumerate(self.optimizers):
            for variable, _, _ in each.own(pairs):
                if variable.name in taken:
                    j = taken[variable.name]
                    what = f"CombinedOptimizer: {variable.name} is trained by optimizers[{j}] and by optimizers[{i}]"
                    hint = "variables=[...] in each, and every name once"
                    fail(OptimError, what, hint, first=self.optimizers[j], second=each)
                taken[variable.name] = i
        for each in self.optimizers:
            yield from each.updates(build, pairs)
