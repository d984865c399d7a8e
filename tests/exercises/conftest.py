"""Fixtures of the tests of exercises; hypothesis with the same examples and without time limits on any machine."""

import sys

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture
def unraisable_errors_are_printed(monkeypatch):
    """The interrupt of an answer may arrive in a garbage collection callback, where Python reports it; it is repeated.
    pytest's own reporter is Python code, in which the next interrupt may arrive and fail the test: the interpreter
    prints instead.
    """
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
