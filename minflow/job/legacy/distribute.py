"""`flow.distribute`: how a Blob would be laid out over devices. Accepted and shown; on one machine the numbers are the
same."""

from __future__ import annotations

from ...core.base.errors import JobError
from ...core.messages.suggestions import missing_names
from ...core.source_location import here


class Distribute:
    """A wish for the layout of a Blob: see `split`, `broadcast`, `auto`."""

    def __init__(self, kind: str, axis: int | None = None):
        self.kind, self.axis = kind, axis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribute) and (self.kind, self.axis) == (other.kind, other.axis)

    def __hash__(self) -> int:
        return hash((self.kind, self.axis))

    def __repr__(self) -> str:
        return f"distribute.{self.kind}({'' if self.axis is None else self.axis})"


def split(axis: int) -> Distribute:
    """A part along `axis` on each device."""
    if not isinstance(axis, int) or isinstance(axis, bool) or axis < 0:
        what = "distribute.split takes an axis"
        raise JobError(what, values={"got": repr(axis)}, where=here(), hint="flow.distribute.split(0)")
    return Distribute("split", axis)


def broadcast() -> Distribute:
    """All of it on each device."""
    return Distribute("broadcast")


def auto() -> Distribute:
    """As the framework chooses."""
    return Distribute("auto")


def assert_is_valid_distribute(distribute: object) -> None:
    """Raises JobError unless `distribute` is one of the three."""
    if not isinstance(distribute, Distribute):
        hint = "flow.distribute.split(axis), broadcast() or auto()"
        raise JobError("this is no distribution", values={"got": repr(distribute)[:60]}, where=here(), hint=hint)


__all__ = ["assert_is_valid_distribute", "auto", "broadcast", "split"]
__getattr__ = missing_names("flow.distribute", globals())
