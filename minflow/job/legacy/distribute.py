"""`flow.distribute`: how a Blob would be distributed over devices. Accepted and displayed, without effect on one
machine.
"""

from __future__ import annotations

from ...core.base.errors import JobError
from ...core.messages.suggestions import missing_names
from ...core.source_location import here


class Distribute:
    """Requested distribution of a Blob: see `split`, `broadcast`, `auto`."""

    def __init__(self, kind: str, axis: int | None = None):
        self.kind, self.axis = kind, axis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribute) and (self.kind, self.axis) == (other.kind, other.axis)

    def __hash__(self) -> int:
        return hash((self.kind, self.axis))

    def __repr__(self) -> str:
        return f"distribute.{self.kind}({'' if self.axis is None else self.axis})"


def split(axis: int) -> Distribute:
    """Split along `axis` over the devices."""
    if not isinstance(axis, int) or isinstance(axis, bool) or axis < 0:
        what = "distribute.split takes an axis"
        raise JobError(what, values={"got": repr(axis)}, where=here(), hint="flow.distribute.split(0)")
    return Distribute("split", axis)


def broadcast() -> Distribute:
    """A full copy on each device."""
    return Distribute("broadcast")


def auto() -> Distribute:
    """Let the framework choose the distribution."""
    return Distribute("auto")


def assert_is_valid_distribute(distribute: object) -> None:
    """Raise JobError unless `distribute` is one of the three."""
    if not isinstance(distribute, Distribute):
        hint = "flow.distribute.split(axis), broadcast() or auto()"
        raise JobError("this is not a distribution", values={"got": repr(distribute)[:60]}, where=here(), hint=hint)


__all__ = ["assert_is_valid_distribute", "auto", "broadcast", "split"]
__getattr__ = missing_names("flow.distribute", globals())
