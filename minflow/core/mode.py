"""The current mode: how ops run, whether gradients are recorded, the running module; and the mutation counter.

A ContextVar holds it; `eager.py` and `trace.py` are the two modes; `using` sets one for a block. Must not import ops.
Read next: `source_location.py`, which finds the current line of the user's program; `dispatch.py`, which asks the mode
to run an op.
"""

from __future__ import annotations

import itertools
from contextvars import ContextVar
from typing import Any, Self

from .base.events import LISTENERS
from .base.interrupts import ContextVarScope


class Mode:
    """How ops run, whether gradients are recorded, and the running module. Immutable: `replace` makes a changed copy.

    grad: True to record for backward.  anomaly: True to check every gradient for NaN.  scope: "LeNet.conv1".
    entered: where the innermost Module was called.  trace: the current Trace, or None.
    watch: the object that is notified of every call of a Module (nn.Graph, while it builds).
    origin: `ir.Node.origin` of new Nodes.  low: the dtypes of autocast by device type, or None.
    casts: parameters that autocast has cast, see `amp.Casting`; or None.
    seed: the gradient that backward starts from; 1/n if a graph accumulates n gradients.
    place: the source location of new Nodes within a composite op; None to look for it.
    boxed: (id of a tensor, placement, sbp) -> (the tensor, its boxed copy), while the rules of one node run; else None.
    saved_hooks_error: the message that refuses `autograd.graph.saved_tensors_hooks`, or None.
    recursion_check_len: length of `scope` from which a Module checks that Python's recursion limit is high enough.
    """

    grad, anomaly, scope, entered = True, False, "", None
    trace, watch, origin, seed, low, casts, place, boxed = None, None, None, 1, None, None, None, None
    recursion_check_len, saved_hooks_error = 250, None

    def grad_key(self, value):
        """The Value under which the gradient of a leaf accumulates; any other Value unchanged."""
        return value

    def replace(self, **changes: Any) -> Self:
        """A copy with some attributes changed."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other

    # ---- hooks for modes that record a program: a trace, or a run whose effects are undone afterwards --------------

    def enter_gradient(self, node) -> None:
        """Called when backward reaches the gradient of `node`."""

    def replay(self, node, gs) -> list | None:
        """(input index, gradient) for a node by the kernels of an equal node; None if its rules must run."""
        return None

    def sum_of(self, x, y):
        """x + y for two gradients of a backward, without dispatch; None if the op must run."""

    def writes_directly(self) -> bool:
        """True if an in-place op may run its kernel on the storage directly, without `write_into`."""
        return True

    def reports_mistakes(self) -> bool:
        """True if warnings about likely mistakes may be reported."""
        return True

    def has_listeners(self, event: type) -> bool:
        """True if an event of this type has a listener."""
        return event in LISTENERS

    def run_decomposed(self, op, arrays, attrs):
        """The result arrays of a composite op, computed by its decomposition."""
        raise NotImplementedError

    def infer_decomposed(self, op, specs, attrs):
        """The specs of a composite op's results, by tracing its decomposition."""
        raise NotImplementedError

    def before_step(self, optimizer) -> None:
        """Called before an optimizer writes its parameters or clears their gradients."""

    def before_schedule(self, schedule) -> None:
        """Called before a schedule changes learning rates."""

    def before_bind(self, buffers: dict, name: str) -> None:
        """Called before the buffer `name` of a module, an entry of `buffers`, is bound to another tensor."""

    def before_run(self, graph, parts) -> None:
        """Called before a graph runs the plans of these parts."""


DEFAULT = Mode()  # eager.py makes it an Eager; the ContextVar needs its default now
# Instance attributes, which `replace` copies: every op reads these, and Python finds them faster than class attributes.
vars(DEFAULT).update(grad=True, scope="", trace=None, place=None)
MODE: ContextVar = ContextVar("mode", default=DEFAULT)
current = MODE.get  # bound once, so that a call needs no attribute lookup


class using(ContextVarScope):
    """Run the block in `mode`."""

    variable = MODE

    def __init__(self, mode: Mode):
        super().__init__()
        self.mode = mode

    def value(self) -> Mode:
        return self.mode


class MutationCounter:
    """Counts the writes that compiled plans may depend on; a plan checks its fingerprint only after the count changed.

    count: writes to Modules, flags of Parameters and groups of optimizers.  backwards: calls of `backward()`.
    """

    count, backwards = 0, 0


mutation_counter = MutationCounter()
WRITES = itertools.count(1)


def bump_mutations() -> None:
    """Record a write that a plan may depend on: every graph and job checks its fingerprint at its next call.

    Each write gets its own number, also if several threads write: with `+= 1` a plan could miss the second of two.
    """
    number = next(WRITES)
    if number > mutation_counter.count:  # another thread may have stored a later one
        mutation_counter.count = number
