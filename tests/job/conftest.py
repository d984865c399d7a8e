"""Fixtures for tests that use the stream of job functions."""

import pytest
from builders import LONG, WorkerHold
from forked import programs, run_program  # noqa: F401 - fixtures

import minflow as flow
from minflow.job.queue.stream import current_stream
from minflow.job.session import default_session


@pytest.fixture
def clean_queue():
    """Clear the session afterwards; fail if the queue does not drain."""
    yield
    assert current_stream().wait_until_idle(LONG), current_stream().thread_locations()
    current_stream().errors.clear()
    current_stream().counts.clear()
    flow.clear_default_session()


@pytest.fixture
def worker_hold():
    """A callback that blocks the worker, until the end of the test at the latest."""
    holder = WorkerHold()
    yield holder
    holder.go.set()


@pytest.fixture
def empty_session():
    """An empty session, before and afterwards."""
    flow.clear_default_session()
    yield default_session()
    flow.clear_default_session()
