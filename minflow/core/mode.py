"""The current mode: how ops run, whether gradients are recorded, the module that we are in; and the epoch of changes.

A ContextVar holds it: `eager.py` and `trace.py` are its two kinds, and `using` sets one for a block.
Knows no op. Read next: `where.py`, which says at which line of the user's program we are; `door.py`, which asks the
mode to run an op.
"""

from __future__ import annotations

from contextvars import ContextVar


class Mode:
    """How ops run, whether gradients are recorded, and the module we are in. Immutable: `but` makes a changed copy.

    grad: record for backward.  anomaly: check every gradient for NaN.  scope: "LeNet.conv1".
    entered: where the innermost Module was called from.  trace: the Trace that we are in, or None.
    watch: who is told of every call of a Module (nn.Graph, while it builds).  origin: of Nodes, see `ir.Node`.
    seed: the gradient that backward starts from; 1/n where a graph adds up n gradients.
    room: how long `scope` may become before a Module makes sure that Python takes more calls inside each other.
    told: a list that an eager mode adds every op to, or None. What runs with one is put back, and no listener hears of
    it.
    """

    grad, anomaly, scope, entered, trace, watch, origin, seed, told = True, False, "", None, None, None, None, 1, None
    room = 250

    def first(self, value):
        """The Value that the gradient of a leaf is kept under; any other stands for itself."""
        return value

    def but(self, **changes) -> Mode:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other


DEFAULT = Mode()  # eager.py makes it an Eager; a ContextVar wants its default now
MODE: ContextVar = ContextVar("mode", default=DEFAULT)


class using:
    """Run the block in `mode`."""

    def __init__(self, mode: Mode):
        self.mode = mode

    def __enter__(self) -> Mode:
        before = MODE.get()
        try:
            self.token = MODE.set(self.mode)
        except BaseException:  # an interrupt just after it was set
            MODE.set(before)
            raise
        return self.mode

    def __exit__(self, *error: object) -> None:
        MODE.reset(self.token)


class Epoch:
    """now: moves with every write to a Module, a Parameter's flag or an optimizer's group: plans look closer only then.

    backwards: how many backward() there were.
    """

    now, backwards = 0, 0


EPOCH = Epoch()


def touch() -> None:
    """Something that a plan may depend on was written: every graph and job looks closer at its next call."""
    EPOCH.now += 1
