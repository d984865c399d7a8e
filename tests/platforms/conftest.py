"""Fixtures of the tests of compiled kernels."""

import pytest


@pytest.fixture
def on():
    """Use compiled kernels in eager mode and in graphs, whatever the environment says."""
    pytest.importorskip("numba", reason="kernels are compiled by numba, which is not installed")
    from minflow.platforms import compiled

    before = compiled.used()
    compiled.use()
    yield
    compiled.use(before)
