"""Maps from unconstrained numbers to a constraint: `transform_to(c)`, and bijective ones: `biject_to(c)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.base.errors import OutOfRangeError
from ..core.messages.suggestions import missing_names
from ..core.source_location import fail
from . import constraints, transforms
from .constraints import Constraint
from .transforms import AffineTransform, ComposeTransform, ExpTransform, SigmoidTransform, Transform


class ConstraintRegistry:
    """Functions that build the transform to a constraint, by the class of the constraint or the constraint itself."""

    def __init__(self, name: str):
        self.name = self.__name__ = name
        self.factories: dict[Any, Callable[[Any], Transform]] = {}

    def register(self, constraint, factory: Callable[[Constraint], Transform] | None = None):
        """Register a factory for a constraint (all of its class, or one set of a shared class); also a decorator."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        shared = isinstance(constraint, constraints.Elements)
        self.factories[constraint if isinstance(constraint, type) or shared else type(constraint)] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        found = self.factories.get(constraint) or self.factories.get(type(constraint))
        if found is None:
            what = f"{self.name}: no transform to {constraint!r} is registered"
            fail(OutOfRangeError, what, f"{self.name}.register(constraint, lambda c: your transform)")
        return found(constraint)


biject_to, transform_to = ConstraintRegistry("biject_to"), ConstraintRegistry("transform_to")


def register_both(constraint, factory: Callable) -> None:
    for registry in (biject_to, transform_to):
        registry.register(constraint, factory)


def above(c) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(c.lower_bound, 1)])


def below(c) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(c.upper_bound, -1)])


def between(c) -> Transform:
    if (c.lower_bound, c.upper_bound) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)])


def on_events(c, registry: ConstraintRegistry) -> Transform:
    return transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims)


register_both(constraints.real, lambda c: transforms.identity_transform)
register_both(constraints.greater_than, above)
register_both(constraints.greater_than_eq, above)
register_both(constraints.less_than, below)
register_both(constraints.interval, between)
register_both(constraints.half_open_interval, between)
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform())
register_both(constraints.cat, lambda c: transforms.CatTransform([biject_to(x) for x in c.cseq], c.dim, c.lengths))
register_both(constraints.stack, lambda c: transforms.StackTransform([biject_to(x) for x in c.cseq], c.dim))
biject_to.register(constraints.independent, lambda c: on_events(c, biject_to))
transform_to.register(constraints.independent, lambda c: on_events(c, transform_to))
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())

__getattr__ = missing_names("flow.distributions.constraint_registry", globals())
del globals()["__dir__"]  # otherwise completion would list imported names
