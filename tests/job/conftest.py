"""Fixtures for what runs through the stream of job functions."""

import pytest
from builders import LONG, Held
from forked import programs, ran  # noqa: F401 - fixtures

import minflow as flow
from minflow.job.queue.stream import STREAM
from minflow.job.session import default_session


@pytest.fixture
def clean():
    """An empty session afterwards; fails where the queue does not end."""
    yield
    assert STREAM.idle(LONG), STREAM.thread_locations()
    STREAM.errors.clear()
    STREAM.counts.clear()
    flow.clear_default_session()


@pytest.fixture
def held():
    """A callback that holds the worker, at the latest until the end of the test."""
    holder = Held()
    yield holder
    holder.go.set()


@pytest.fixture
def fresh():
    """An empty session, before and afterwards."""
    flow.clear_default_session()
    yield default_session()
    flow.clear_default_session()
