"""Capture of a plan's calls on a GPU: adjacent calls become one launch of a CUDA graph.

A plan is captured before its second run on a stream, when its kernels have been compiled. A launch repeats the same
work at the same addresses, without Python code. Calls that depend on values on the CPU (a learning rate, the counter of
random numbers), or that wait for the device, stay single. Read next: `executor.py`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import deferred
from ..core.backend import Array, on_device
from ..core.host import HostArray
from ..core.ir import Node, Value
from ..core.kernels import KERNELS, device_of_node, is_moved_for
from ..core.spec import cpu, spec_of
from .call_merging import joined

if TYPE_CHECKING:
    from .plan import Plan

VARIABLE = "ONEFLOW_KERNEL_ENABLE_CUDA_GRAPH"  # as in OneFlow; "0" leaves all calls single, and is read at each capture


class CapturedCalls:
    """Calls that one launch repeats. checks: the checks of their kernels, with their keys."""

    def __init__(self, launch: Callable[[], None], checks: list[tuple[Hashable, deferred.Check]]):
        self.launch, self.checks = launch, checks

    def __call__(self) -> None:
        self.launch()
        for key, check in self.checks:
            deferred.repeat(key, check)


class SingleCall(NamedTuple):
    """A call that is not captured, and why."""

    node: Node
    reason: str


class Capture:
    """The state of a plan's capture.

    stream: that of the plan's runs.  merged: the plan's units without capture.  single: the calls that were not
    captured, in order.
    """

    def __init__(self, plan: Plan):
        self.merged, self.stream = plan.units, plan.backend.stream()
        self.runs = 0
        self.single: list[SingleCall] = []
        self.memory: Any = None

    def before_run(self, plan: Plan) -> None:
        """Capture the calls before the second run on this thread's stream; begin anew if that has changed."""
        backend = plan.backend
        if (stream := backend.stream()) != self.stream:
            backend.wait(backend.event(self.stream))  # the plan's memory is in use there
            self.stream, self.runs, plan.units = stream, 0, self.merged
        self.runs += 1
        if self.runs == 2 and os.environ.get(VARIABLE, "1").lower() not in ("0", "false", "off"):
            self.single, self.memory = [], backend.graph_memory()
            reasons = [reason_of(plan, i) for i in range(len(plan.calls))]
            units: list[tuple[Callable, Node]] = []
            for reason, group in groupby(range(len(reasons)), reasons.__getitem__):
                calls = [*group]
                units += self.keep_single(plan, calls, reason) if reason else self.record(plan, calls)
            plan.units = [call for call, _ in units], [node for _, node in units]

    def keep_single(self, plan: Plan, calls: Sequence[int], reason: str) -> list[tuple[Callable, Node]]:
        """Units of adjacent calls, of which a platform may join some."""
        nodes = [plan.nodes[i] for i in calls]
        self.single += [SingleCall(node, reason) for node in nodes]
        return [*zip(*joined([plan.calls[i] for i in calls], nodes))]

    def record(self, plan: Plan, calls: Sequence[int]) -> list[tuple[Callable, Node]]:
        """Units of adjacent calls. One unit ends where a call turns out not to be capturable."""
        units: list[tuple[Callable, Node]] = []
        while calls:
            nodes = [plan.nodes[i] for i in calls]
            checks: list[tuple[Hashable, deferred.Check]] = []
            token = deferred.CAPTURED.set(checks)
            try:
                started = plan.start([plan.calls[i] for i in calls], nodes)
                launch, done, error = plan.backend.capture(started, self.memory)
            finally:
                deferred.CAPTURED.reset(token)
            if launch is not None:
                return [*units, (CapturedCalls(launch, checks), nodes[0])]
            if done < len(calls):
                units += self.record(plan, calls[:done])
            failed = calls[done : done + 1] or calls  # all of them, if the device does not say which
            units += self.keep_single(plan, failed, f"{type(error).__name__}: {error}")
            calls = calls[done + 1 :]
        return units


def capture_notes(plan: Plan) -> list[str]:
    """How the calls of a plan run on a GPU, in lines; none before they were captured."""
    capture = plan.capture
    if capture is None or plan.units is capture.merged:
        return []
    launches = sum([isinstance(unit, CapturedCalls) for unit in plan.units[0]])
    graphs = "1 CUDA graph" if launches == 1 else f"{launches} CUDA graphs"
    lines = [f"{len(plan.calls) - len(capture.single)} of {len(plan.calls)} calls are captured in {graphs}"]
    for reason in dict.fromkeys([call.reason for call in capture.single]):
        ops = [call.node.op.name for call in capture.single if call.reason == reason]
        lines.append(f"not captured: {', '.join(dict.fromkeys(ops))} ({reason})")
    return lines


def reason_of(plan: Plan, i: int) -> str:
    """The reason why a call cannot be captured, as far as its node says; "" if there is none."""
    node, selected = plan.nodes[i], plan.selections[i]
    if is_copy(plan.calls[i]):
        return "it copies from the CPU"
    if device_of_node(node) is not plan.device:
        return "it runs on the CPU"
    if node.op.inline_kernel is not None:
        return "it is Python code of the program"
    if KERNELS[node.op, selected.platform].on_host:
        return "its kernel is for the CPU"
    on_cpu = [k for k, x in enumerate(node.inputs) if x.__class__ is Value and x.spec.device is cpu]
    if not all([is_moved_for(node, k, selected) for k in on_cpu]):
        return "it reads values on the CPU"
    return ""


def copy_in(copy: Array, array: HostArray) -> None:
    """Copy an array of the host into one of another device."""
    copy[...] = on_device(array, spec_of(copy).device)


def is_copy(call: Callable) -> bool:
    """True if a call copies an input of a node, and does not compute it."""
    return isinstance(call, functools.partial) and call.func is copy_in
