"""What the tests of fusion's passes share."""

import pytest

from minflow.platforms import compiled


@pytest.fixture(params=["NumPy", "machine"])
def kernels(request, kernels_of_numpy):
    """Whose kernels run what a pass has made."""
    if request.param == "machine":
        pytest.importorskip("numba")
        compiled.use()
    return request.param
