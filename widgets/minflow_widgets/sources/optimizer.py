"""Source of a curve: steps of an optimizer, in eager code or in a graph."""

from __future__ import annotations

from threading import get_ident
from typing import Any

from minflow.compiler.executor import holds_lock
from minflow.core.base import events
from minflow.job.queue.events import JobCalled
from minflow.job.queue.stream import current_stream
from minflow.nn.graph import Graph
from minflow.nn.graph.compiled import GraphRan

from ..update_thread import clock
from .gradient_norm import GradientNorm
from .source import Source
from .step_values import LOSS_NAMES, NO_NUMBERS, hyperparameters, numbers_of, rate_values, scheduled_panels

MAX_LOSSES = 1000  # losses remembered for one step


class OptimizerSource(Source):
    """Steps of an optimizer, in eager code or in a graph. The loss is the tensor on which backward() was called since
    the previous step.
    """

    cost = 12e-6

    def __init__(self, optimizer, gradients: bool):
        super().__init__(type(optimizer).__name__)
        self.optimizer, self.norm = optimizer, GradientNorm() if gradients else None
        self.parameters: Any = None
        self.graph: Any = None  # graph: the last one that ran its step
        self.losses: dict[int, list[float]] = {}  # thread -> losses
        # rates of the last step; the same as names and values; names of a step with a loss
        self.last_rates, self.lr = None, NO_NUMBERS
        self.names: tuple[str, ...] = LOSS_NAMES
        self.panels = ("loss", *scheduled_panels(optimizer), *(["norm"] if gradients else []))

    def config(self) -> dict:
        return hyperparameters(self.optimizer)

    def listeners(self) -> dict:
        return {events.BackwardDone: self.on_backward, events.StepDone: self.on_step, GraphRan: self.on_graph_call}

    def steps(self) -> dict:
        # inside a graph the optimizer steps under the lock of plans, before the call has ended
        return {
            events.StepDone: lambda event: event.optimizer is self.optimizer and not holds_lock(),
            GraphRan: lambda event: self.is_in(event.graph) and not current_stream().working,
            JobCalled: lambda event: isinstance(event.job, Graph) and self.is_in(event.job),  # the call of a submit
        }

    def is_in(self, graph) -> bool:
        return any(optimizer is self.optimizer for optimizer, _ in graph.optimizers)

    def on_backward(self, event) -> None:
        losses = [float(t.array.item()) for t in event.outputs if t.array is not None and t.array.size == 1]
        if losses:
            kept = self.losses.setdefault(get_ident(), losses)
            if kept is not losses:
                kept += losses
                if len(kept) > 2 * MAX_LOSSES:  # a thread that never steps
                    del kept[:-MAX_LOSSES]

    def on_step(self, event) -> None:
        losses = self.losses.pop(get_ident(), None)
        optimizer, step, lr = event.optimizer, event.step, event.lr
        if optimizer is not self.optimizer:
            return
        when = clock()
        if lr != self.last_rates:
            self.last_rates, self.lr = lr, rate_values(lr)
            self.names = LOSS_NAMES + self.lr[0]
        if losses is None:
            self.feed.append((self.lr[0], step, when, *self.lr[1]))
        else:
            loss = losses[0] if len(losses) == 1 else sum(losses) / len(losses)
            self.feed.append((self.names, step, when, loss, *self.lr[1]))
            norm = self.norm
            if norm is not None:
                norm.last = step, when
                norm.left -= 1
                if norm.left <= 0 or (loss - loss != 0.0 and not norm.seen_nonfinite):
                    norm.record(step, when, self.gradients)

    def gradients(self) -> list:
        grads = [p.grad for p in self.parameters or self.optimizer._all_parameters()]
        return [g.array for g in grads if g is not None and g.array is not None]

    def last(self) -> None:
        if self.norm is not None and self.graph is not None:
            self.norm.end(self.graph_gradients)
        elif self.norm is not None and not self.losses:  # otherwise a later backward has changed the gradients
            self.norm.end(self.gradients)

    def graph_gradients(self) -> list:
        return [g.array for g in self.graph.grads.values()]

    def on_graph_call(self, event) -> None:
        if self.is_in(event.graph):
            step, when, (names, values) = self.optimizer._steps_taken, clock(), numbers_of(event.result, True)
            self.graph = event.graph
            self.feed.append((names, step, when, *values))
            if self.norm is not None:
                self.norm.last = step, when
                self.norm.left -= 1
                if self.norm.left <= 0 or (values and values[0] - values[0] != 0.0 and not self.norm.seen_nonfinite):
                    self.norm.record(step, when, self.graph_gradients)
