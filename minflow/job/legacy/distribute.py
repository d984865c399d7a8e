"""`flow.distribute`: how a Blob is distributed over the ranks of its placement. With one rank it is whole."""

from __future__ import annotations

from ...core.base.errors import JobError
from ...core.messages.suggestions import missing_names
from ...core.source_location import here
from ..blob import Distribute, check_distribute


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
    check_distribute(distribute)


__all__ = ["assert_is_valid_distribute", "auto", "broadcast", "split"]
__getattr__ = missing_names("flow.distribute", globals())
