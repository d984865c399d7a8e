"""`uninterrupted`: Ctrl-C waits until the end of the block, and is never lost."""

import signal
import threading

import pytest

from minflow.core.base.interrupts import uninterrupted


def handler():
    return signal.getsignal(signal.SIGINT)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_interrupt_comes_at_the_end_of_the_outermost_block(depth):
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


def test_an_interrupt_is_not_lost_to_an_error_of_the_block():
    with pytest.raises(KeyboardInterrupt) as caught, uninterrupted():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("of the block")
    assert isinstance(caught.value.__context__, ValueError)


def test_a_block_that_is_not_interrupted_changes_nothing():
    before = handler()
    with uninterrupted():
        assert handler() is not before
    assert handler() is before
    with uninterrupted(False):
        assert handler() is before
    with pytest.raises(ValueError), uninterrupted():
        raise ValueError
    assert handler() is before


def test_another_thread_is_never_interrupted():
    before, seen = handler(), []

    def body():
        with uninterrupted():
            seen.append(handler())

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_program_that_ignores_interrupts_goes_on():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        assert handler() is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
