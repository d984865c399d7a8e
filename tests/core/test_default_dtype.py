"""The default dtype is per process, and nothing remembers the old one."""

import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError


def test_changing_it_changes_what_was_inferred_before():
    x = flow.tensor([1, 2])
    assert (x + 0.5).dtype is flow.float32 and x.sqrt().dtype is flow.float32
    flow.set_default_dtype(flow.float64)
    try:
        assert flow.get_default_dtype() is flow.float64
        assert (x + 0.5).dtype is flow.float64 and x.sqrt().dtype is flow.float64
        assert flow.tensor(1.5).dtype is flow.zeros(2).dtype is flow.float64
    finally:
        flow.set_default_dtype(flow.float32)
    assert (x + 0.5).dtype is flow.float32 and flow.rand(2).dtype is flow.float32


def test_it_must_be_floating():
    with pytest.raises(DTypeError, match="floating, not int64"):
        flow.set_default_dtype(flow.int64)
