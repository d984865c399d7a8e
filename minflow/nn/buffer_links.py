"""Buffers that are bound to other tensors by an assignment, in `build` or between two calls of a graph.

`module.state = tensor` binds the new tensor and leaves the old one as it is, as in PyTorch. A plan reads most states in
place; for a linked buffer it has a separate array, filled before each run, so that rebinding requires no rebuild. Read
next: `../compiler/plan.py`.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..core.backend import Array, backend_of_array, owner_of
from ..core.base.errors import TraceError
from ..core.functionalize import bump_version
from ..core.ir import Source
from ..core.mode import MODE, bump_mutations
from ..core.source_location import fail
from ..core.tensor import Tensor, new_tensor
from ..core.trace import Trace


class BufferLink:
    """A buffer of a module that is a state of a plan.

    buffers, name: the dict that holds it, and its key there. source: the state. assigned: True if build binds another
    tensor to the buffer; otherwise the graph writes it in place, or only reads it. alone: True if no other tensor of
    the program shares the storage of the buffer's first tensor; only then can plans follow a rebinding. submitted: the
    tensor that it was bound to when the step that runs was submitted, or None.
    """

    submitted: Tensor | None = None

    def __init__(
        self, buffers: dict[str, Tensor], name: str, source: Source, assigned: bool = False, unshared: bool = True
    ):
        self.buffers, self.name, self.source, self.assigned, self.unshared = buffers, name, source, assigned, unshared

    @property
    def tensor(self) -> Tensor:
        """The tensor that the buffer is bound to."""
        return self.buffers[self.name] if self.submitted is None else self.submitted

    def rebound(self) -> bool:
        """True if the buffer was bound to another tensor of the same spec since the last call."""
        tensor = self.buffers.get(self.name)
        if tensor is None or tensor.spec is not self.source.out_specs[0] or tensor._alias is not None:
            return False
        return tensor.array is not self.source.array

    def read(self) -> Array:
        """The array of the tensor that the buffer is bound to."""
        self.source.array = self.tensor.array
        return self.source.array

    def write(self, array: Array) -> None:
        """Write the new value of the state back to the program after a run: to a new tensor, or to the buffer's own."""
        if self.assigned:
            self.bind(new_tensor(array.copy(order="K"), self.source.out_specs[0]))
        else:
            self.tensor.array[...] = array
            bump_version(self.tensor, MODE.get().entered)

    def bind(self, tensor: Tensor) -> None:
        """Bind the buffer to a tensor; other graphs compare it at their next call."""
        self.buffers[self.name], self.source.array = tensor, tensor.array
        bump_mutations()


def link_assigned(graph: Any, trace: Trace, nonmembers: list) -> None:
    """Link the buffers that build assigned. nonmembers: the modules used by build that are not members of the graph."""
    if not trace.rebound:
        return
    outside, replaced = graph.outside_names(), [tensor for _, _, tensor in trace.rebound.values()]
    refuse_shared(graph, trace, nonmembers, outside)

    @functools.cache
    def shared_owners() -> tuple[Counter[int], Counter[int]]:
        """Number of names of each tensor, and of tensors on each array that owns memory, by ids."""
        named = [tensor for tensor, _ in graph.named_tensors(nonmembers)]
        distinct = {id(t): t for t in (*named, *replaced, *[tensor for tensor, _ in trace.views.values()])}
        return Counter(map(id, named)), Counter([id(owner_of(tensor.array)) for tensor in distinct.values()])

    def unshared(old: Tensor) -> bool:
        names, owners = shared_owners()  # now that the buffers are bound to their first tensors again
        alone = names[id(old)] <= 1 and owners[id(owner_of(old.array))] <= 1
        return old._alias is None and alone and not outside(old)

    for buffers, name, source, single in trace.update_buffers(unshared):
        if not single and graph.config.accumulation > 1:
            what = f"the buffer {name!r} is assigned in a graph that accumulates gradients, and shares its memory"
            fail(TraceError, what, f"module.{name} = module.{name}.clone() before the first call", buffer=buffers[name])
        source.link = BufferLink(buffers, name, source, assigned=True, unshared=single)


def refuse_shared(graph: Any, trace: Trace, nonmembers: list, outside: Callable[[Tensor], str]) -> None:
    """Refuse an assigned tensor that shares its storage with another one that outlives the call.

    A plan gives each buffer a separate tensor, so a later write to one of the two would not be visible in the other.
    """
    changed = {key: row for key, row in trace.rebound.items() if row[0][row[1]] is not row[2]}
    if not changed:
        return
    old = {id(tensor) for _, _, tensor in changed.values()}
    symbols = [trace.resolve(buffers[name]) for buffers, name, _ in changed.values()]  # which meets those around
    stay = [
        (f"{path}.{name}", tensor)
        for path, module in graph.all_modules(nonmembers)
        for registry in (module._parameters, module._buffers)
        for name, tensor in registry.items()
        if tensor is not None and (id(registry), name) not in changed
    ]
    stay += [
        ("", tensor)
        for tensor, _ in trace.views.values()
        if id(tensor) not in old and id(tensor.array) not in trace.created
    ]
    first: dict[int, int] = {}  # id of a tensor or of the version counter of its storage -> the first one in `stay`
    for i, (_, other) in enumerate(stay):
        for key in sharing_keys(other):
            first.setdefault(key, i)
    for (buffers, name, _), symbol in zip(changed.values(), symbols):
        if found := [first[key] for key in (*sharing_keys(symbol), id(buffers[name])) if key in first]:
            place, other = stay[min(found)]
            place = place or outside(other) or other._label or "a captured tensor"
            what = f"the buffer {name!r} is assigned a tensor that shares its memory with {place}"
            fail(TraceError, what, f"assign a copy: self.{name} = x.clone()", buffer=symbol, shared=other)
        for key in sharing_keys(symbol):
            first[key] = len(stay)
        stay.append((name, symbol))


def sharing_keys(tensor: Tensor) -> list[int]:
    """Return keys of which two tensors have one in common if they are the same or share a storage (`share_storage`)."""
    counter = tensor._version_counter
    return [id(tensor)] if counter is None else [id(tensor), id(counter.storage or counter)]


def own_storages(modules: Iterable[tuple[str, Any]]) -> None:
    """Turn buffers that are views of tensors without other users, such as `tril(ones(n, n)).view(1, 1, n, n)`, into
    tensors with a storage of their own, which a plan updates and a file holds under the name of the buffer.
    """
    for _, module in modules:
        for tensor in module._buffers.values():
            alias = None if tensor is None else tensor._alias
            if alias is None or not alias.path or tensor._needs or tensor._copied is not None:
                continue
            # one reference in the alias, one as the argument of getrefcount
            if alias.base._alias is None and sys.getrefcount(alias.base) <= 2:
                array = tensor.array
                tensor.array = array if array.flags.c_contiguous else backend_of_array(array).copy(array)
                tensor._alias = None


def buffer_links(modules: Iterable[tuple[str, Any]], states: Iterable[Source]) -> list[BufferLink]:
    """Links for all states that are buffers of these modules; those made by `link_assigned` are kept."""
    by_array = {id(source.array): source for source in states if source.link is None}
    links = [source.link for source in states if source.link is not None]
    for _, module in modules:
        for name, tensor in module._buffers.items():
            if tensor is not None and id(tensor.array) in by_array:
                links.append(BufferLink(module._buffers, name, by_array[id(tensor.array)]))
    return links
