"""Values of a graph after a call: gradients, learning rates, outputs of modules, and comparisons.

Read next: `reports.py`, which makes records of these and other data for views.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ....core.base.errors import GraphError, clean
from ....core.mode import bump_mutations
from ....core.source_location import fail
from ....core.tensor import Tensor
from ....diagnosis.name_suggestions import similar_names
from ....nn.graph import messages

if TYPE_CHECKING:
    from ....views.renderers.divergence import GraphComparison


def last_run(graph: Any, what: str, name: str) -> Any:
    """The plan of the last call."""
    if graph._last is None or not graph._last.runs:
        why = f"{graph.name} has not been called yet, so there are no {what}"
        fail(GraphError, why, "call the graph once", name=name)
    return graph._last


class Gradients(Mapping):
    """name -> the gradient used by the last step, after clipping; `graph.grads["model.fc.weight"]`. Read on access."""

    def __init__(self, graph: Any):
        self.graph = graph

    def names(self) -> list[str]:
        last = self.graph._last
        kept = [key for part in last.parts for key in part.kept] if last is not None else []
        return [key.removeprefix("grad ") for key in kept if key.startswith("grad ")]

    def __getitem__(self, name: str) -> Tensor:
        graph = self.graph
        gradient = last_run(graph, "gradients", name).kept(f"grad {name}")
        if gradient is None:
            hint = "self.add_optimizer(optimizer) and loss.backward() compute gradients"
            if not graph.config.gradients:
                hint = "config.keep_gradients(True)"
            elif self.names():
                near = similar_names(name, self.names(), 3) or self.names()[:3]
                hint = f"one of {', '.join(near)}; a parameter that is frozen or not used has none"
            raise KeyError(str(GraphError(f"{graph.name} has no gradient {name!r}", hint=hint)))
        return gradient

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        norms = {name: float((gradient.double() ** 2).sum() ** 0.5) for name, gradient in self.items()}
        rows = [f"  {clean(name)}: {self[name].spec}, norm {norm:.4g}" for name, norm in norms.items()]
        return "\n".join([clean(f"gradients of {self.graph.name}: {len(rows)}"), *rows])


class GraphAccessors:
    """Mixin of nn.Graph for values of its last call, and comparisons."""

    @property
    def grads(self: Any) -> Gradients:
        """name -> gradient of each parameter in the last step, after clipping."""
        return Gradients(self)

    @property
    def lr(self: Any) -> Any:
        """The learning rate of the next step: a number, or a list if there are several groups."""
        rates = [float(group["lr"]) for optimizer, _ in self.optimizers for group in optimizer.param_groups]
        if not rates:
            what = f"{self.name} has no optimizer, so it has no learning rate"
            fail(GraphError, what, "self.add_optimizer(optimizer)", graph=self.name)
        return rates[0] if len(rates) == 1 else rates

    def keep(self: Any, *names: str) -> None:
        """Keep the values of these modules or operations readable by `values` after each call."""
        self.kept.update(names)
        bump_mutations()

    def values(self: Any, name: str) -> Any:
        """The value of the last call of the module at path `name` (its first one), or of the operation of that name in
        a listing or a plan.

        A tensor, or a tuple if there are several. Values share one buffer and are lost after the step unless they are
        kept: the first request for a name raises GraphError, and keeps it from the next call on.
        """
        last = self._last
        if name not in self.kept:
            self.keep(name)
            if last is not None:
                messages.not_kept(self, name)
        value = last_run(self, "values", name).kept(f"value {name}")
        if value is not None:
            return value
        several = [k for part in last.parts for k in part.kept if k.startswith(f"value {name} ")]
        if not several:
            messages.not_kept(self, name)
        return tuple([last.kept(key) for key in several])

    def compare(
        self: Any, reference: Any, /, *args: Any, rtol: float | None = None, atol: float | None = None, **kwargs: Any
    ) -> GraphComparison:
        """Find where this graph diverges from `reference` (another graph, a module or a function) on these inputs.

        Operations are paired by name and shape in program order, and by their values; values are equal if |graph -
        reference| <= atol + rtol * |reference|, and NaN equals NaN. By default rtol is 1.3e-6 for float32, 1e-7 for
        float64, 1e-3 for float16 and 0 for integers and bool; atol is 1e-5, 1e-7, 1e-5 and 0, or 8 units in the last
        place of the largest element of the tensor if that is more: sums in different orders may differ by that much
        when terms cancel. For two dtypes the larger tolerance applies.

        The result displays itself: the first node that differs red, those before it green; `.first` is its row,
        `.equal` is True if there is none. There are no side effects, as in `compare_eager`.
        """
        from ..compare.compare import compare_with  # on first use, with its pictures

        return compare_with(self, reference, args, kwargs, rtol, atol)

    def compare_eager(self: Any, *args: Any, **kwargs: Any) -> GraphComparison:
        """Run the graph and eager on these inputs from the current state, and compare every operation's result.

        There are no side effects: parameters, buffers, gradients, optimizer and generator are restored, `grads` and
        `values` stay those of the last call, and listeners such as a watch are not notified. With gradient accumulation
        the first part of the batch is compared, up to its gradients.
        """
        from ..compare.compare import run_comparison

        return run_comparison(self, None, args, kwargs)
