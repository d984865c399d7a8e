"""Placement, views and namespaces: `flow.scope`.

Without a GPU a placement only changes what is displayed: "gpu" means cpu, as in OneFlow's builds without CUDA.
Read next: `config.py`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from ..core.backend import is_available
from ..core.base.errors import JobError
from ..core.base.interrupts import ContextVarScope
from ..core.messages.suggestions import missing_names
from ..core.source_location import here, warn
from ..core.spec import Device, cpu
from .build_context import current
from .session import default_session

NAMESPACES: ContextVar[tuple[str, ...]] = ContextVar("namespaces", default=())
CURRENT_VIEW: ContextVar[str] = ContextVar("view", default="consistent")
PLACEMENTS: ContextVar[tuple] = ContextVar("placements", default=())


class Placement(ContextVarScope):
    """A device tag and device ids. As a context manager it places the ops inside."""

    variable = PLACEMENTS

    def __init__(self, device_tag: str, machine_device_ids: Any = "0:0"):
        if device_tag not in ("cpu", "gpu"):
            hint = 'flow.scope.placement("cpu", "0:0")'
            raise JobError("device_tag must be cpu or gpu", values={"got": repr(device_tag)}, where=here(), hint=hint)
        super().__init__()
        self.device_tag, self.machine_device_ids = device_tag, machine_device_ids
        if device_tag == "gpu" and not is_available("cuda"):
            warn_no_gpu()

    @property
    def device(self) -> Device:
        """The device that the first of its ids names; the CPU if there is no GPU."""
        if self.device_tag == "cpu" or not is_available("cuda"):
            return cpu
        first = self.machine_device_ids if isinstance(self.machine_device_ids, str) else self.machine_device_ids[0]
        return Device("cuda", int(first.rpartition(":")[2].partition("-")[0]))

    def value(self) -> tuple[Placement, ...]:
        return *PLACEMENTS.get(), self

    def __repr__(self) -> str:
        return f"placement({self.device_tag!r}, {self.machine_device_ids!r})"


class View(ContextVarScope):
    """`consistent_view()` or `mirrored_view()`: a value for function_config.default_logical_view, or a context
    manager.
    """

    variable = CURRENT_VIEW

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def value(self) -> str:
        return self.kind

    def __repr__(self) -> str:
        return f"{self.kind}_view()"


def warn_no_gpu() -> None:
    """Warn once per session that "gpu" means cpu."""
    if not default_session().warned_of_gpu:
        warn("there is no GPU here: gpu means cpu")
        default_session().warned_of_gpu = True


def placement(device_tag: str, machine_device_ids: Any = "0:0") -> Placement:
    """Place the ops inside. device_tag: "cpu" or "gpu".  machine_device_ids: "machine:device", "0:0-3", or a list of
    these.
    """
    return Placement(device_tag, machine_device_ids)


def current_device() -> Device:
    """The device of the innermost placement; by default that of the job that is built."""
    build, places = current(), PLACEMENTS.get()
    if places:
        return places[-1].device
    return cpu if build is None or build.job.config.place is None else build.job.config.place.device


def consistent_view() -> View:
    """One logical tensor over all devices."""
    return View("consistent")


def mirrored_view() -> View:
    """A copy of the model on each device, each with its part of the batch; gradients are averaged."""
    return View("mirrored")


def consistent_view_enabled() -> bool:
    """True if the current view is the consistent one."""
    return current_view() == "consistent"


def mirrored_view_enabled() -> bool:
    """True if the current view is the mirrored one."""
    return current_view() == "mirrored"


def current_view() -> str:
    build = current()
    if CURRENT_VIEW.get() == "consistent" and build is not None:
        return build.job.config.view
    return CURRENT_VIEW.get()


def namespace(name: str) -> AbstractContextManager[None]:
    """Prefix the names of layers and variables created inside with `name-`."""
    if not isinstance(name, str) or not name:
        what = "a namespace must be a name: a string that is not empty"
        raise JobError(what, values={"got": repr(name)}, where=here(), hint='flow.scope.namespace("encoder")')
    return Namespace(name)


class Namespace(ContextVarScope):
    """Context manager behind `namespace`."""

    variable = NAMESPACES

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def value(self) -> tuple[str, ...]:
        return *NAMESPACES.get(), self.name


def full_name(name: str) -> str:
    """`name` prefixed with the current namespaces."""
    return "-".join((*NAMESPACES.get(), name))


def current_scope() -> str:
    """Names of the current scopes, joined by "-"."""
    return "-".join(NAMESPACES.get())


__all__ = [
    "consistent_view",
    "consistent_view_enabled",
    "current_scope",
    "mirrored_view",
    "mirrored_view_enabled",
    "namespace",
    "placement",
]
__getattr__ = missing_names("flow.scope", globals())
