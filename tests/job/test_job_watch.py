"""flow.watch: what it saw is there when a sync call returns, and what its handler raises is raised by that call."""

from threading import Event

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError

ONES = np.ones(2, "float32")


@pytest.fixture(autouse=True)
def fresh():
    flow.clear_default_session()
    yield
    flow.clear_default_session()


def watched(handler):
    @flow.global_function()
    def double(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        flow.watch(x, handler)
        return x * 2

    return double


def test_sync_call_returns_after_its_handlers():
    seen, never = [], Event()

    def slow(x: tp.Numpy):
        never.wait(0.05)  # long enough for a caller that does not wait to go on
        seen.append(x)

    double = watched(slow)
    for n in (1, 2, 3):
        assert (double(n * ONES) == 2 * n).all()
        assert len(seen) == n and (seen[-1] == n).all()


def test_sync_call_raises_what_its_handler_raised():
    def bad(x: tp.Numpy):
        if x[0] == 2:
            raise KeyError("the handler")

    double = watched(bad)
    assert (double(ONES) == 2).all()
    with pytest.raises(JobError, match="watch handler of step 2 of double raised KeyError: 'the handler'"):
        double(2 * ONES)
    assert (double(ONES) == 2).all()
    flow.sync_default_session()  # it was told once
