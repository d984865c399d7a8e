"""Fixtures of the tests of compiled kernels."""

import pytest


@pytest.fixture
def on():
    """Compiled kernels are used by eager and by graphs, whatever the environment asks for."""
    pytest.importorskip("numba", reason="kernels are compiled by numba, which is not installed")
    from minflow.platforms import compiled

    before = compiled.used()
    compiled.use()
    yield
    compiled.use(before)
