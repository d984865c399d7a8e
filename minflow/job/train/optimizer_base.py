"""What all optimizers of job functions share: what they are given, when they are asked, and what they write.

`minimize(loss)` tells the build of the job which optimizer it has; at the end of the job function the build asks it, by
`apply`, for the updates. A subclass gives the new numbers of one weight and of its states, as ops of the graph.
Knows no formula and nothing of how a step runs. Read next: `rules.py`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.ir import where_text
from ...core.ops.elementwise import where
from ...core.ops.shape import cast
from ...core.tensor import Tensor
from ...core.where import fail
from .arguments import number, said
from ..current import building
from .grad_clipping import ClipGradientConf
from .loss_scale import LossScalePolicy, static_loss_scale
from .schedule import LrScheduler

Names = Sequence[str] | Callable[[], Sequence[str]] | None
Update = tuple[Tensor, Tensor]  # a weight or a state, and its new numbers


class Optimizer:
    """Base class of the optimizers of job functions.

    loss_scale_factor: the same as loss_scale_policy=loss_scale.static_loss_scale(factor); only one of the two.
    train_step_lbn: the original's name of a step counter; here the job counts, so only None is accepted.
    """

    def __init__(
        self,
        loss_scale_factor: float | None = None,
        train_step_lbn: str | None = None,
        loss_scale_policy: LossScalePolicy | None = None,
    ):
        owner = type(self).__name__
        if loss_scale_factor is not None and loss_scale_policy is not None:
            fail(
                OptimError,
                f"{owner}: loss_scale_factor and loss_scale_policy are both given",
                "one of them; loss_scale_factor=f is static_loss_scale(f)",
                loss_scale_factor=loss_scale_factor,
                loss_scale_policy=loss_scale_policy,
            )
        if loss_scale_factor is not None:
            loss_scale_policy = static_loss_scale(loss_scale_factor)
        if loss_scale_policy is not None and not isinstance(loss_scale_policy, LossScalePolicy):
            fail(
                OptimError,
                f"{owner}: loss_scale_policy is a {type(loss_scale_policy).__name__}",
                "loss_scale_policy=flow.optimizer.loss_scale.dynamic_loss_scale()",
                loss_scale_policy=loss_scale_policy,
            )
        if train_step_lbn is not None:
            fail(
                OptimError,
                f"{owner}: train_step_lbn names a step counter of one's own, and here the job counts its steps",
                "leave it out; System-Train-TrainStep-<job> in a checkpoint is the job's count",
                train_step_lbn=train_step_lbn,
            )
        self.train_step_lbn, self.loss_scale_policy = None, loss_scale_policy

    # ---- what a job calls ----------------------------------------------------------------------------------------

    def minimize(self, loss: Tensor | Sequence[Tensor]) -> None:
        """Train all trainable variables of the job to make the mean of the loss small.

        loss: a Blob of any shape, or a list of Blobs of one shape and dtype, whose sum counts.
        """
        what = f"flow.optimizer.{type(self).__name__}.minimize"
        build = building(what)
        losses = list(loss) if isinstance(loss, list | tuple) else [loss]
        if not losses:
            fail(OptimError, f"{what}: the list of losses is empty", "minimize(loss)")
        for i, x in enumerate(losses):
            place = f"losses[{i}]" if len(losses) > 1 else "the loss"
            if not isinstance(x, Tensor):
                fail(OptimError, f"{what}: {place} is a {type(x).__name__}, where a Blob is wanted",
                     "the Blob that a loss function of the job returned", loss=x)  # fmt: skip
            if not x.spec.floating:
                fail(OptimError, f"{what}: {place} is {x.dtype.name}, and only floating numbers have a gradient",
                     "flow.cast(loss, flow.float32), or minimize the loss and not the labels", loss=x)  # fmt: skip
            if (x.shape, x.dtype) != (losses[0].shape, losses[0].dtype):
                fail(OptimError, f"{what}: losses[{i}] is {x.spec}, losses[0] is {losses[0].spec}",
                     "losses of one shape and dtype; flow.math.reduce_mean(loss) of each", first=losses[0], other=x)  # fmt: skip
        build.minimize(self, losses)

    # ---- what the build calls ------------------------------------------------------------------------------------

    def loss_scale(self, build: Any) -> float | Tensor | None:
        """The factor that backward starts from: a number, a 0-d Blob where it changes, None for 1."""
        return None if self.loss_scale_policy is None else self.loss_scale_policy.scale(build)

    def apply(self, build: Any, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> None:
        """Write the updates of this step.

        pairs: (variable, weight, gradient) of each trainable variable that the losses depend on.
        """
        policy = self.loss_scale_policy
        try:
            updates = list(self.updates(build, pairs))
        except OptimError as error:  # the job function has ended: the line to look at is that of minimize
            if (line := getattr(build, "minimized_at", None)) is not None:
                error.where = f"at {where_text(line)}"
            raise
        good = policy.advance(build, [g for _, _, g in pairs]) if policy is not None and pairs else None
        news = [(target, new if good is None else kept(good, new, target)) for target, new in updates]
        for target, new in news:  # after all of them are there: a write changes what its target stands for
            build.write(target, new)

    def updates(self, build: Any, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> Iterator[Update]:
        """Every weight and state with its new numbers."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return said(self)


def kept(good: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """new where the step is taken, else old."""
    return where(good, cast(new, dtype=old.dtype) if new.dtype is not old.dtype else new, old)


class OneRule(Optimizer):
    """Base class of all optimizers but CombinedOptimizer: a schedule, a clipping, and one rule for all variables.

    lr_scheduler: a schedule of the learning rate.  grad_clipping: None or `grad_clipping.by_global_norm(...)`.
    variables: full names of the variables that it trains, or a function that gives them; None: all of the job.
    """

    def __init__(self, lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables):
        super().__init__(loss_scale_factor, train_step_lbn, loss_scale_policy)
        owner = type(self).__name__
        if not isinstance(lr_scheduler, LrScheduler):
            given = lr_scheduler if isinstance(lr_scheduler, int | float) else 0.1
            fail(
                OptimError,
                f"{owner}: lr_scheduler is a {type(lr_scheduler).__name__}, where a schedule is wanted",
                f"{owner}(flow.optimizer.PiecewiseConstantScheduler([], [{given}])): {given} in every step",
                lr_scheduler=lr_scheduler,
            )
        if grad_clipping is not None and not isinstance(grad_clipping, ClipGradientConf):
            fail(
                OptimError,
                f"{owner}: grad_clipping is a {type(grad_clipping).__name__}",
                "grad_clipping=flow.optimizer.grad_clipping.by_global_norm(1.0)",
                grad_clipping=grad_clipping,
            )
        if isinstance(variables, str):
            fail(OptimError, f"{owner}: variables is one string, where a list of names is wanted",
                 f"variables=[{variables!r}]", variables=variables)  # fmt: skip
        self.lr_scheduler, self.grad_clipping, self.variables = lr_scheduler, grad_clipping, variables

    def own(self, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> list[tuple[Any, Tensor, Tensor]]:
        """Those of the variables that this optimizer trains."""
        if self.variables is None:
            return list(pairs)
        names = list(self.variables() if callable(self.variables) else self.variables)
        known = {variable.name: (variable, weight, g) for variable, weight, g in pairs}
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, 3) or list(known)[:6]
                fail(
                    OptimError,
                    f"{type(self).__name__}: {name!r} is no variable that this job trains",
                    f"a full name, such as {', '.join(near) or 'dense1-weight'}",
                    variables=names,
                )
        return [known[name] for name in dict.fromkeys(names)]

    def updates(self, build: Any, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> Iterator[Update]:
        pairs = self.own(pairs)
        gradients = [g for _, _, g in pairs]
        if self.grad_clipping is not None:
            gradients = self.grad_clipping.clipped(gradients)
        if not pairs:
            return
        now = self.now(build)
        for (variable, weight, _), g in zip(pairs, gradients):
            yield from self.rule(build, variable, weight, g, *now)

    def now(self, build: Any) -> tuple[Tensor, ...]:
        """What the rule is told of this step, 0-d Blobs: the learning rate first."""
        return (self.lr_scheduler.symbol(build),)

    def rule(self, build: Any, variable: Any, w: Tensor, g: Tensor, rate: Tensor) -> list[Update]:
        """The weight and its states, each with its new numbers."""
        raise NotImplementedError


class Decaying(OneRule):
    """Base class of the optimizers with weight decay.

    weight_decay: None for none.  weight_decay_includes, weight_decay_excludes: a regular expression or a list of them,
    searched in the full names of variables: which decay, or which do not. Only one of the two.
    """

    def __init__(self, weight_decay, includes, excludes, *args):
        super().__init__(*args)
        owner = type(self).__name__
        if includes is not None and excludes is not None:
            fail(
                OptimError,
                f"{owner}: weight_decay_includes and weight_decay_excludes are both given",
                "one of them",
                weight_decay_includes=includes,
                weight_decay_excludes=excludes,
            )
        self.weight_decay = None if weight_decay is None else number(owner, "weight_decay", weight_decay, 0)
        self.weight_decay_includes = self.patterns("weight_decay_includes", includes)
        self.weight_decay_excludes = self.patterns("weight_decay_excludes", excludes)

    def patterns(self, name: str, given: str | Sequence[str] | None) -> list[str] | None:
        if given is None:
            return None
        found = [given] if isinstance(given, str) else list(given)
        for pattern in found:
            try:
                re.compile(pattern)
            except (re.error, TypeError) as error:
                fail(OptimError, f"{type(self).__name__}: {name} holds {pattern!r}, which is no regular expression: {error}",
                     f'{name}=["-weight$"]', **{name: given})  # fmt: skip
        return found

    def decay_of(self, name: str) -> float:
        """The weight decay of the variable of this name."""
        if not self.weight_decay:
            return 0.0
        if self.weight_decay_includes is not None:
            return self.weight_decay if found_in(self.weight_decay_includes, name) else 0.0
        return 0.0 if found_in(self.weight_decay_excludes or [], name) else self.weight_decay


def found_in(patterns: Sequence[str], name: str) -> bool:
    return any([re.search(pattern, name) for pattern in patterns])
