"""Fixtures of the tests of fusion passes."""

import pytest

from minflow.platforms import compiled


@pytest.fixture(params=["NumPy", "machine"])
def kernels(request, kernels_of_numpy):
    """The platform whose kernels run the rewritten graph."""
    if request.param == "machine":
        pytest.importorskip("numba")
        compiled.use()
    return request.param
