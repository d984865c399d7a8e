"""Placement, views and namespaces: `flow.scope`.

A device of a machine is one of its ranks: "1:0-3" names the first four of the second machine. In the consistent view
arguments and variables are global tensors, and each op runs on the ranks of the innermost placement. In the mirrored
view each rank runs the job on its part of the batch, and gradients are added up. With one device, each rank runs a job
by itself; a program with one rank simulates its devices one after another.
Without a GPU "gpu" means cpu, as in OneFlow's builds without CUDA.
Read next: `config.py`.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from ..core.backend import is_available
from ..core.base.errors import JobError, RankError
from ..core.base.interrupts import ContextVarScope
from ..core.base.placement import Placement as Ranks
from ..core.context import world
from ..core.messages.invocation import command
from ..core.messages.suggestions import missing_names
from ..core.source_location import here, warn
from ..core.spec import Device, cpu
from .build_context import current
from .session import default_session

NAMESPACES: ContextVar[tuple[str, ...]] = ContextVar("namespaces", default=())
CURRENT_VIEW: ContextVar[str] = ContextVar("view", default="consistent")
PLACEMENTS: ContextVar[tuple] = ContextVar("placements", default=())
Devices = tuple[tuple[int, int], ...]  # pairs of a machine and one of its devices


class Placement(ContextVarScope):
    """A device tag and device ids. As a context manager it places the ops inside."""

    variable = PLACEMENTS

    def __init__(self, device_tag: str, machine_device_ids: Any = "0:0"):
        if device_tag not in ("cpu", "gpu"):
            hint = 'flow.scope.placement("cpu", "0:0")'
            raise JobError("device_tag must be cpu or gpu", values={"got": repr(device_tag)}, where=here(), hint=hint)
        super().__init__()
        self.device_tag, self.machine_device_ids = device_tag, machine_device_ids
        self.devices = parse_devices(machine_device_ids)
        if device_tag == "gpu" and not is_available("cuda"):
            warn_no_gpu()

    @property
    def device(self) -> Device:
        """The device that the first of its ids names; the CPU if there is no GPU."""
        if self.device_tag == "cpu" or not is_available("cuda"):
            return cpu
        return Device("cuda", self.devices[0][1])

    def ranks(self) -> Ranks | None:
        """The ranks of its devices; None if the ops inside run on each rank by itself."""
        return ranks_of("cpu" if self.device is cpu else "cuda", self.devices, default_session().one_device)

    def value(self) -> tuple[Placement, ...]:
        return *PLACEMENTS.get(), self

    def __repr__(self) -> str:
        return f"placement({self.device_tag!r}, {self.machine_device_ids!r})"


def parse_devices(ids: Any) -> Devices:
    """The devices of "0:0", "0:0-3", or a list of these. Raises JobError for anything else."""
    devices: list[tuple[int, int]] = []
    for text in ids if isinstance(ids, list | tuple) else [ids]:
        found = re.fullmatch(r"@?(\d+):(\d+)(?:-(\d+))?", text) if isinstance(text, str) else None
        if found is None or int(found[3] or found[2]) < int(found[2]):
            devices = []
            break
        devices += [(int(found[1]), device) for device in range(int(found[2]), int(found[3] or found[2]) + 1)]
    if not devices:
        what = 'the devices of a placement must be "machine:device", "machine:first-last", or a list of these'
        hint = 'flow.scope.placement("cpu", "0:0-3")'
        raise JobError(what, values={"got": repr(ids)[:60]}, where=here(), hint=hint)
    return tuple(dict.fromkeys(devices))


# ---- ranks -----------------------------------------------------------------------------------------------------------


class RanksMustAgree(BaseException):
    """Ends a build that must not wait for other ranks, so that `Session.agree` can be called before the next one."""


def devices_per_machine() -> int:
    """The number of ranks on each machine."""
    return world().size // world().machines


def check_devices(what: str, count: int) -> None:
    """Raise RankError for more devices than each machine has ranks. A program with one rank may simulate any number."""
    if world().size > 1 and count > (there := devices_per_machine()):
        values = {"devices": count, "ranks on each machine": there}
        raise RankError(f"{what}: the program has fewer ranks", values=values, where=here(), hint=launch(count))


def launch(count: int) -> str:
    return command("launch", "-n", str(count), "program.py")


def ranks_of(type: str, devices: Devices, alone: bool) -> Ranks | None:
    """The ranks of some devices; None if each rank runs the job by itself. alone: True if there is one device.

    Raises RankError for a device that is none of the ranks.
    """
    if (alone and devices == ((0, 0),)) or world().size == 1:
        return None
    each, machines = devices_per_machine(), world().machines
    for machine, device in devices:
        if machine >= machines or device >= each:
            values = {"device": f"{machine}:{device}", "machines": machines, "ranks on each": each}
            what = "a placement names a device that is none of the ranks of this program"
            raise RankError(what, values=values, where=here(), hint=launch(device + 1))
    order = tuple([machine * each + device for machine, device in devices])
    return Ranks.of(type, order, (len(order),))


def all_devices(count: int) -> Devices:
    """The first devices of each machine."""
    return tuple([(machine, device) for machine in range(world().machines) for device in range(count)])


def current_ranks() -> Ranks | None:
    """The ranks of the innermost placement, by default those of the job that is built; None if it runs on each rank by
    itself.
    """
    build, places = current(), PLACEMENTS.get()
    if build is None or build.mirror is not None:
        return None
    ranks = places[-1].ranks() if places else build.ranks
    if ranks is not None and not build.session.agreed:
        raise RanksMustAgree
    return ranks


# ---- views -----------------------------------------------------------------------------------------------------------


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
