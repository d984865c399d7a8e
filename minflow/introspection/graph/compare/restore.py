"""Restore everything that a run for inspection wrote. Read next: `compare.py`, `../explore/explorer_model.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ....core.backend import Array, backend_of_array
from ....core.random import Generator
from ....nn.buffer_links import BufferLink
from ....nn.graph.compiled import batch_part


def copies_of(arrays: Iterable[Array]) -> list[tuple[Array, Array]]:
    """(array, a copy) of each array that can be written."""
    return [(array, array.copy()) for array in arrays if backend_of_array(array).is_writable(array)]


@contextmanager
def restore_on_exit(
    arrays: Iterable[Array], generators: Iterable[Generator], links: Iterable[BufferLink] = ()
) -> Iterator[Callable[[], None]]:
    """Restore these arrays, the state of the generators and the tensors of linked buffers at the end of the block.

    Yields a function that restores at once, before the next run in the block.
    """
    saved = copies_of({id(a): a for a in arrays}.values())
    states = [(generator, generator.get_state()) for generator in set(generators)]
    bound = [(link, link.tensor) for link in links]

    def restore() -> None:
        for link, tensor in bound:
            if link.tensor is not tensor:
                link.bind(tensor)
        for array, before in saved:
            array[...] = before
        for generator, state in states:
            generator.set_state(state)

    try:
        yield restore
    finally:
        restore()


@contextmanager
def preserve_last_call(*graphs: Any) -> Iterator[None]:
    """Restore `grads` and `values` of the last call at the end of the block, whatever was compiled or run in it."""
    last = [(graph, graph._last) for graph in graphs if graph._last is not None]
    plans = [part.plan for _, compiled in last if compiled.runs for part in compiled.parts]
    slots = [list(plan.slots) for plan in plans]
    outputs = [plan.env[v] for plan in plans for v in plan.kept if v in plan.env]
    with restore_on_exit(outputs, ()):
        try:
            yield
        finally:
            for graph, compiled in last:
                graph._plans.last = compiled
            for plan, before in zip(plans, slots):
                plan.slots[:] = before


def states_of(compiled: Any) -> list[Array]:
    """The arrays that a compiled graph reads and writes."""
    return [s.array for part in compiled.parts for s in part.graph.states]


def input_arrays(compiled: Any, args: tuple, kwargs: dict) -> list[Array]:
    """The input arrays of the first part of a step."""
    arrays = [t.array for t in compiled.build.inputs_of(args, kwargs)]
    return compiled.contiguous_inputs(batch_part(arrays, 0, compiled.steps))
