"""Fixtures of the tests of compiled kernels."""

import pytest


@pytest.fixture
def on():
    """Compiled kernels are used by eager and by graphs, whatever the environment asks for."""
    pytest.importorskip("numba", reason="kernels are compiled by numba, which is not installed")
    from minflow import machine

    before = machine.used()
    machine.use()
    yield
    machine.use(before)
