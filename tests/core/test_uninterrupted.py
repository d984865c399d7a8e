"""`uninterrupted`: Ctrl-C waits until the end of the block, and is never lost."""

import signal
import threading

import pytest

from minflow.core.base.interrupts import uninterrupted


def handler():
    return signal.getsignal(signal.SIGINT)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_interrupt_is_raised_after_the_outermost_block(depth):
    before, reached = handler(), []

    def inside(depth):
        with uninterrupted():
            if depth == 1:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
            else:
                inside(depth - 1)
            reached.append(depth)

    with pytest.raises(KeyboardInterrupt):
        inside(depth)
    assert reached == list(range(1, depth + 1)) and handler() is before


def test_interrupt_is_not_lost_if_the_block_raises():
    with pytest.raises(KeyboardInterrupt) as caught, uninterrupted():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("of the block")
    assert isinstance(caught.value.__context__, ValueError)


def test_uninterrupted_block_changes_nothing():
    before = handler()
    with uninterrupted():
        assert handler() is not before
    assert handler() is before
    with uninterrupted(False):
        assert handler() is before
    with pytest.raises(ValueError), uninterrupted():
        raise ValueError
    assert handler() is before


def test_other_threads_are_never_interrupted():
    before, seen = handler(), []

    def body():
        with uninterrupted():
            seen.append(handler())

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen == [before]


def test_ignored_interrupts_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        assert handler() is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
