"""Base classes of the optimizers of job functions: arguments, protocol, and the writes of updates.

`minimize(loss)` passes the optimizer to the build of the job; at the end of the job function the build calls `apply`
for the updates. A subclass computes the new values of one weight and its states as ops of the graph. Independent of the
formulas and of how a step runs. Read next: `rules.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.ir import where_text
from ...core.ops.elementwise import where
from ...core.ops.shape import cast
from ...core.source_location import fail
from ...core.tensor import Tensor
from ...diagnosis.name_suggestions import similar_names
from ..build_context import building
from .arguments import DeclaredArgument, DeclaredArguments, float_argument, instance_argument
from .grad_clipping import ClipGradientConf
from .loss_scale import LossScalePolicy, static_loss_scale
from .schedule import LrScheduler

Names = Sequence[str] | Callable[[], Sequence[str]] | None
Update = tuple[Tensor, Tensor]  # a weight or a state, and its new value


def refuse_counter(owner: str, name: str, value: Any) -> None:
    what = f"{owner}: train_step_lbn names a step counter of one's own, and here the job counts its steps"
    hint = "leave it out; System-Train-TrainStep-<job> in a checkpoint is the job's count"
    fail(OptimError, what, hint, train_step_lbn=value)


class Optimizer(DeclaredArguments):
    """Base class of the optimizers of job functions.

    loss_scale_factor: the same as loss_scale_policy=loss_scale.static_loss_scale(factor); only one of the two.
    train_step_lbn: OneFlow's name of a step counter; in minflow the job counts steps, so it must be None.
    """

    arguments = "loss_scale_factor train_step_lbn loss_scale_policy"
    loss_scale_factor: Any = DeclaredArgument(lambda owner, name, value: value, "float | None", None)
    train_step_lbn: Any = DeclaredArgument(refuse_counter, "str | None", None)
    loss_scale_policy = instance_argument(
        LossScalePolicy, "loss_scale_policy=flow.optimizer.loss_scale.dynamic_loss_scale()"
    )

    def complete(self) -> None:
        factor, policy = self.loss_scale_factor, self.loss_scale_policy
        if factor is not None:
            if policy is not None:
                what = f"{type(self).__name__}: loss_scale_factor and loss_scale_policy are both given"
                hint = "one of them; loss_scale_factor=f is static_loss_scale(f)"
                fail(OptimError, what, hint, loss_scale_factor=factor, loss_scale_policy=policy)
            self.loss_scale_factor, self.loss_scale_policy = None, static_loss_scale(factor)

    # ---- what a job calls ----------------------------------------------------------------------------------------

    def minimize(self, loss: Tensor | Sequence[Tensor]) -> None:
        """Train all trainable variables of the job to minimize the mean of the loss.

        loss: a Blob of any shape, or a list of Blobs of the same shape and dtype, which are summed.
        """
        what = f"flow.optimizer.{type(self).__name__}.minimize"
        build = building(what)
        losses: list[Any] = list(loss) if isinstance(loss, list | tuple) else [loss]
        if not losses:
            fail(OptimError, f"{what}: the list of losses is empty", "minimize(loss)")
        for i, x in enumerate(losses):
            place = f"losses[{i}]" if len(losses) > 1 else "the loss"
            if not isinstance(x, Tensor):
                wrong = f"{what}: {place} must be a Blob, got a {type(x).__name__}"
                fail(OptimError, wrong, "the Blob that a loss function of the job returned", loss=x)
            if not x.spec.floating:
                wrong = f"{what}: {place} is {x.dtype.name}, and only floating numbers have a gradient"
                hint = "flow.cast(loss, flow.float32), or minimize the loss and not the labels"
                fail(OptimError, wrong, hint, loss=x)
            if (x.shape, x.dtype) != (losses[0].shape, losses[0].dtype):
                wrong = f"{what}: losses[{i}] is {x.spec}, losses[0] is {losses[0].spec}"
                hint = "losses of the same shape and dtype; flow.math.reduce_mean(loss) of each"
                fail(OptimError, wrong, hint, first=losses[0], other=x)
        build.minimize(self, losses)

    # ---- what the build calls ------------------------------------------------------------------------------------

    def loss_scale(self, build: Any) -> float | Tensor | None:
        """The factor from which backward starts: a number, a 0-d Blob if it changes, or None for 1."""
        return None if self.loss_scale_policy is None else self.loss_scale_policy.scale(build)

    def apply(self, build: Any, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> None:
        """Write the updates of this step.

        pairs: (variable, weight, gradient) for each trainable variable on which the losses depend.
        """
        policy = self.loss_scale_policy
        try:
            updates = list(self.updates(build, pairs))
        except OptimError as error:  # the job function has ended, so the error points to the call of minimize
            if (line := getattr(build, "minimized_at", None)) is not None:
                error.where = f"at {where_text(line)}"
            raise
        good = policy.advance(build, [g for _, _, g in pairs]) if policy is not None and pairs else None
        news = [(target, new if good is None else select(good, new, target)) for target, new in updates]
        for target, new in news:  # after all are computed: a write changes the value of its target
            build.write(target, new)

    def updates(self, build: Any, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> Iterator[Update]:
        """Yield every weight and state with its new value."""
        raise NotImplementedError


def select(good: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """`new` if the step is taken, else `old`."""
    return where(good, cast(new, dtype=old.dtype) if new.dtype is not old.dtype else new, old)


def check_schedule(owner: str, name: str, value: Any) -> LrScheduler:
    if not isinstance(value, LrScheduler):
        rate = value if isinstance(value, int | float) else 0.1
        hint = f"{owner}(flow.optimizer.PiecewiseConstantScheduler([], [{rate}])): {rate} in every step"
        what = f"{owner}: {name} must be a schedule, got a {type(value).__name__}"
        fail(OptimError, what, hint, **{name: value})
    return value


def names_of_variables(owner: str, name: str, value: Any) -> Any:
    if isinstance(value, str):
        what = f"{owner}: {name} must be a list of names, got a string"
        fail(OptimError, what, f"{name}=[{value!r}]", **{name: value})
    return value


class OneRule(Optimizer):
    """Base class of all optimizers except CombinedOptimizer: a schedule, a clipping, and one rule for all variables.

    lr_scheduler: learning rate schedule.  grad_clipping: None or `grad_clipping.by_global_norm(...)`. variables: full
    names of the variables to train, or a function that returns them; None: all variables of the job.
    """

    last = "grad_clipping train_step_lbn loss_scale_policy variables"
    arguments = f"lr_scheduler loss_scale_factor {last}"
    lr_scheduler: Any = DeclaredArgument(check_schedule, "LrScheduler")
    grad_clipping = instance_argument(
        ClipGradientConf, "grad_clipping=flow.optimizer.grad_clipping.by_global_norm(1.0)"
    )
    variables: Any = DeclaredArgument(names_of_variables, "Names", None)

    def own(self, pairs: Sequence[tuple[Any, Tensor, Tensor]]) -> list[tuple[Any, Tensor, Tensor]]:
        """The pairs of the variables that this optimizer trains."""
        if self.variables is None:
            return list(pairs)
        names = list(self.variables() if callable(self.variables) else self.variables)
        known = {variable.name: (variable, weight, g) for variable, weight, g in pairs}
        for name in names:
            if name not in known:
                near = similar_names(name, known, 3) or list(known)[:6]
                what = f"{type(self).__name__}: {name!r} is not a variable that this job trains"
                fail(OptimError, what, f"a full name, such as {', '.join(near) or 'dense1-weight'}", variables=names)
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
        """Arguments of the rule for this step, as 0-d Blobs: first the learning rate."""
        return (self.lr_scheduler.symbol(build),)

    def rule(self, *args: Any, **kwargs: Any) -> list[Update]:
        """The weight and its states, each with its new value. Arguments: build, variable, w, g, and those of `now`."""
        raise NotImplementedError


def patterns(owner: str, name: str, value: str | Sequence[str]) -> list[str]:
    """Check one or several regular expressions and return them as a list."""
    expressions = [value] if isinstance(value, str) else list(value)
    for pattern in expressions:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            what = f"{owner}: {name} holds {pattern!r}, which is not a regular expression: {error}"
            fail(OptimError, what, f'{name}=["-weight$"]', **{name: value})
    return expressions


class Decaying(OneRule):
    """Base class of the optimizers with weight decay.

    weight_decay: None for no decay.  weight_decay_includes, weight_decay_excludes: a regular expression or a list of
    them, searched in the full names of variables, for those to decay, or those not to decay. Only one of the two may be
    given.
    """

    last = f"weight_decay weight_decay_includes weight_decay_excludes {OneRule.last}"
    weight_decay = float_argument(None, 0)
    weight_decay_includes: Any = DeclaredArgument(patterns, "str | Sequence[str] | None", None)
    weight_decay_excludes: Any = weight_decay_includes

    def complete(self) -> None:
        super().complete()
        includes, excludes = self.weight_decay_includes, self.weight_decay_excludes
        if includes is not None and excludes is not None:
            what = f"{type(self).__name__}: weight_decay_includes and weight_decay_excludes are both given"
            fail(OptimError, what, "one of them", weight_decay_includes=includes, weight_decay_excludes=excludes)

    def decay_of(self, name: str) -> float:
        """Weight decay of the variable of this name."""
        if not self.weight_decay:
            return 0.0
        if self.weight_decay_includes is not None:
            return self.weight_decay if matches(self.weight_decay_includes, name) else 0.0
        return 0.0 if matches(self.weight_decay_excludes or [], name) else self.weight_decay


def matches(patterns: Sequence[str], name: str) -> bool:
    return any([re.search(pattern, name) for pattern in patterns])
