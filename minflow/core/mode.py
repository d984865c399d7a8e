"""The current mode: how ops run, whether gradients are recorded, the module that we are in; and the mutation counter.

A ContextVar holds it: `eager.py` and `trace.py` are its two kinds, and `using` sets one for a block.
Knows no op. Read next: `source_location.py`, which says at which line of the user's program we are; `dispatch.py`,
which asks the mode to run an op.
"""

from __future__ import annotations

from contextvars import ContextVar

from .base.events import LISTENERS
from .base.interrupts import Restoring


class Mode:
    """How ops run, whether gradients are recorded, and the module we are in. Immutable: `replace` makes a changed copy.

    grad: record for backward.  anomaly: check every gradient for NaN.  scope: "LeNet.conv1".
    entered: where the innermost Module was called from.  trace: the Trace that we are in, or None.
    watch: what hears of every call of a Module (nn.Graph, while it builds).  origin: of Nodes, see `ir.Node`.
    seed: the gradient that backward starts from; 1/n where a graph adds up n gradients.
    low: the dtype of autocast, or None.
    recursion_check_len: length of `scope` from which a Module checks that Python's recursion limit is high enough.
    """

    grad, anomaly, scope, entered = True, False, "", None
    trace, watch, origin, seed, low = None, None, None, 1, None
    recursion_check_len = 250

    def first(self, value):
        """The Value that the gradient of a leaf is kept under; any other stands for itself."""
        return value

    def replace(self, **changes) -> Mode:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other

    # ---- what a mode answers that records a program, as a trace does, or a recording that puts everything back -----

    def enter_gradient(self, node) -> None:
        """Backward has come to the gradient of `node`."""

    def writes_at_once(self) -> bool:
        """May an op in place run its kernel on the storage, without `write`?"""
        return True

    def looks_for_mistakes(self) -> bool:
        """Is a notice of a likely mistake wanted, where there are notices?"""
        return True

    def hears(self, event: type) -> bool:
        """Does anybody listen to what happens here?"""
        return event in LISTENERS

    def before_step(self, optimizer) -> None:
        """An optimizer is about to write its parameters, or to forget their gradients."""

    def before_schedule(self, schedule) -> None:
        """A schedule is about to change the learning rates."""

    def before_bind(self, buffers: dict, name: str) -> None:
        """The buffer `name` of a module, held in `buffers`, is about to be bound to another tensor."""

    def before_run(self, graph, parts) -> None:
        """A graph is about to run the plans of these parts."""


DEFAULT = Mode()  # eager.py makes it an Eager; a ContextVar wants its default now
# Instance attributes, which `replace` copies: every op reads these, and Python finds them sooner than in the class.
vars(DEFAULT).update(grad=True, scope="", trace=None)
MODE: ContextVar = ContextVar("mode", default=DEFAULT)
current = MODE.get  # a name of its own: a method of an imported object is looked up at each call


class using(Restoring):
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


def bump() -> None:
    """Record a write that a plan may depend on: every graph and job checks its fingerprint at its next call."""
    mutation_counter.count += 1
