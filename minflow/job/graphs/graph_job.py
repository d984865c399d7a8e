"""An nn.Graph as a job: its calls are steps of the stream, in one order with those of job functions.

The plan is chosen, inputs are copied and random numbers are drawn on the caller's thread, so a step gives the bits of a
synchronous call at that place of the program. Read next: `../queue/ordering.py`, which orders everything else with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ...core.arrays import copy_keeping_strides
from ...core.backend import Array, backend_of_array, on_host
from ...core.base import events
from ...core.context import world
from ...core.functions.creation import tensor
from ...core.grad.hooks import functions_on
from ...core.host import HostArray
from ...core.in_flight import DRAWS
from ...core.mode import mutation_counter
from ...core.tensor import Tensor
from ...nn.graph import Graph, messages
from ...nn.graph.compiled import CompiledGraph
from ..queue.events import JobCalled
from ..queue.step import Step, Stopped
from ..queue.stream import current_stream
from ..session import default_session


class GraphJob:
    """A graph with the attributes of a `Job` that the stream and `flow.start` use."""

    style = "async"

    def __init__(self, graph: Graph):
        self.graph, self.name, self.session = graph, graph.name, default_session()

    training = property(lambda self: self.graph.training)

    def call(self, args: tuple, kwargs: dict) -> Step:
        """Submit one call of the user's thread."""
        if JobCalled in events.LISTENERS:
            events.emit(JobCalled(self.graph))
        return self.submit(args, kwargs)

    def submit(self, args: tuple, kwargs: dict, callback: Callable | None = None, owner: Any = None) -> Step:
        graph, stream = self.graph, current_stream()
        stream.check_can_wait(f"submitting to {self.name}")
        if owner is not None and owner.is_ending():
            raise Stopped
        plans = graph._plans
        if plans.epoch != mutation_counter.count:  # the fingerprint is taken between two steps
            stream.wait_until_idle()
        compiled, tensors = graph.prepare(args, kwargs)
        arrays = [self.copied(x, compiled) for x in tensors]
        used, written = compiled.storages
        for storage in used:
            storage.order = self.session.order
        self.session.order.graphs.add(graph)
        draws = {
            generator: [generator.draw(count) for _ in range(compiled.steps)]
            for generator, (count, _) in compiled.build.trace.draws.items()
        }

        bound = [(link, link.tensor) for link in compiled.links if not link.assigned]

        def work() -> Any:
            thread = threading.get_ident()
            DRAWS.update({(thread, generator): drawn for generator, drawn in draws.items()})
            for link, buffer in bound:
                link.submitted = buffer
            try:
                return compiled.run(graph, arrays, compiled.runs < 2 and compiled.timing is None)
            finally:
                for generator in draws:
                    del DRAWS[thread, generator]
                for link, _ in bound:
                    link.submitted = None

        waits = world().size > 1  # all ranks call their collectives in the order of the program
        step = stream.submit(
            self.name, work, callback, owner=owner, job=graph, reads=used, waited_for=waits, writes=written
        )
        if waits:
            stream.wait_for(step.finished)
        # uses of tensors that cannot be ordered with those of the program
        assigned = any([link.assigned for link in compiled.links])
        shared = any([storage.lent for storage in used - written])
        if assigned or shared or any([x is y.array for x, y in zip(arrays, tensors)]):
            stream.wait_for(step.computed)
        return step

    def copied(self, x: Tensor, compiled: CompiledGraph) -> Array:
        """Copy of an input, with its strides if the plan depends on them."""
        array = x.array
        if array is None:
            messages.symbolic_input(self.graph, x)
        if x._needs and functions_on(x):
            messages.hooked_input(self.graph, x)
        if not compiled.strided:
            return backend_of_array(array).copy(array)
        return copy_keeping_strides(array) if on_host(array) else array

    @staticmethod
    def argument(value: Any) -> Any:
        """An argument of a batch, as a call of the graph takes it."""
        return tensor(value) if isinstance(value, HostArray) else value
