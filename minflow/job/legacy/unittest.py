"""`flow.unittest`, for tests of OneFlow's job functions. In a program with one rank, devices are virtual.

The number of devices is read from MINFLOW_TEST_DEVICE_NUM, or ONEFLOW_TEST_DEVICE_NUM. If neither is set, each rank of
a machine is one.
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ...core.context import world
from ...core.messages.suggestions import missing_names
from ..function import clear_default_session


class TestCase(unittest.TestCase):
    """Starts each test with an empty session, and ends it by waiting for every step and callback."""

    def setUp(self) -> None:
        clear_default_session()

    def tearDown(self) -> None:
        from ..function import sync_default_session

        sync_default_session()


def device_num() -> int:
    """Number of devices that tests may use."""
    number = os.environ.get("MINFLOW_TEST_DEVICE_NUM") or os.environ.get("ONEFLOW_TEST_DEVICE_NUM")
    return int(number) if number else world().size // world().machines


def node_size() -> int:
    """Number of machines."""
    return world().machines


def skip_unless(nodes: int, devices: int) -> Callable[[], Callable]:
    def decorator() -> Callable:
        """Skip the test or class if there are not enough machines and devices."""
        reason = f"needs {nodes} machine(s) with {devices} device(s): here are {node_size()} with {device_num()}"
        return unittest.skipUnless(node_size() == nodes and device_num() == devices, reason)

    decorator.__name__ = f"skip_unless_{nodes}n{devices}d"
    return decorator


skip_unless_1n1d, skip_unless_1n2d, skip_unless_1n4d = skip_unless(1, 1), skip_unless(1, 2), skip_unless(1, 4)
skip_unless_2n1d, skip_unless_2n2d, skip_unless_2n4d = skip_unless(2, 1), skip_unless(2, 2), skip_unless(2, 4)


def num_nodes_required(nodes: int) -> Callable:
    """Skip the test if the number of machines differs."""
    return unittest.skipUnless(node_size() == nodes, f"needs {nodes} machine(s): here is {node_size()}")


def register_test_cases(
    scope: dict[str, Any],
    directory: str,
    filter_by_num_nodes: Callable,
    base_class: type = unittest.TestCase,
    test_case_mixin: tuple = (),
) -> None:
    """Add the test cases of a directory's files to `scope` if the filter accepts their number of machines."""
    if filter_by_num_nodes(node_size()):
        for suite in unittest.defaultTestLoader.discover(directory):
            for case in cases_of(suite):
                if isinstance(case, base_class):
                    scope[type(case).__name__] = type(case)


def cases_of(suite: Any) -> list:
    return [case for part in suite for case in cases_of(part)] if isinstance(suite, unittest.TestSuite) else [suite]


env = SimpleNamespace(
    **{"node_size": node_size, "device_num": device_num, "node_list": list, "has_node_list": lambda: False},
    **{"eager_execution_enabled": lambda: False, "typing_check_enabled": lambda: True},
    **{"world_size": lambda: 1, "has_world_size": lambda: False},
)
__all__ = """TestCase device_num env node_size num_nodes_required register_test_cases skip_unless_1n1d skip_unless_1n2d
    skip_unless_1n4d skip_unless_2n1d skip_unless_2n2d skip_unless_2n4d""".split()
__getattr__ = missing_names("flow.unittest", globals())
