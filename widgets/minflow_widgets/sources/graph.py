"""Source of a curve: calls of an nn.Graph."""

from __future__ import annotations

import threading

from minflow.core.tensor import Tensor
from minflow.job.queue.events import JobCalled
from minflow.job.queue.stream import current_stream
from minflow.nn.graph import Graph
from minflow.nn.graph.compiled import GraphRan

from ..update_thread import clock
from .gradient_norm import GradientNorm
from .source import Source
from .step_values import LOSS_NAMES, NO_NUMBERS, hyperparameters, numbers_of, rate_values, scheduled_panels


class GraphSource(Source):
    """Calls of an nn.Graph."""

    def __init__(self, graph: Graph, gradients: bool):
        super().__init__(graph.name)
        self.graph, self.training, self.count = graph, graph.training, 0
        # rates of the last step; the same as names and values; names of a step with a single value
        self.last_rates, self.lr = (), NO_NUMBERS
        self.names: tuple[str, ...] = LOSS_NAMES
        self.norm = GradientNorm() if gradients and graph.training and graph.config.gradients else None
        rates_panel = scheduled_panels(graph.optimizers[0][0]) if graph.training else ()
        self.panels = ("loss", *rates_panel, *(["norm"] if self.norm else []))

    def config(self) -> dict:
        return hyperparameters(self.graph.optimizers[0][0]) if self.training else {}

    def listeners(self) -> dict:
        return {GraphRan: self.on_call}

    def steps(self) -> dict:
        def is_call(event: GraphRan) -> bool:  # the loop that submits a step is held where it submits
            return event.graph is self.graph and not current_stream().working

        return {GraphRan: is_call, JobCalled: lambda event: event.job is self.graph}

    def on_call(self, event) -> None:
        if event.graph is not self.graph:
            return
        step, when, result = event.step, clock(), event.result
        if not step:
            step = self.count = self.count + 1
        elif event.lr != self.last_rates:
            self.last_rates, self.lr = event.lr, rate_values(event.lr)
            self.names = LOSS_NAMES + self.lr[0]
        # inlined, because a function call costs a microsecond between cold steps
        if type(result) is Tensor and result.array.size == 1:
            values: tuple[float, ...] = (float(result.array.item()),)
            self.feed.append((self.names, step, when, *values, *self.lr[1]))
        else:
            (names, values), (more, lr) = numbers_of(result, self.training), self.lr
            if not names:
                self.problem = f"{self.name} returns no number to draw: return the loss from build"
            self.feed.append((names + more, step, when, *values, *lr))
        norm = self.norm
        if norm is not None:
            norm.last = step, when
            norm.left -= 1
            if norm.left <= 0 or (values and values[0] - values[0] != 0.0 and not norm.seen_nonfinite):
                norm.record(step, when, self.gradients)

    def gradients(self) -> list:
        return [g.array for g in self.graph.grads.values()]

    def wait(self) -> None:
        if current_stream().thread is not threading.current_thread():
            current_stream().wait_until_idle()

    def last(self) -> None:
        if self.norm is not None:
            self.norm.end(self.gradients)
