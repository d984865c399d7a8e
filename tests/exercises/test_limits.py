"""Time limits stop any code, in the main thread and in others, and nothing is raised afterwards."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from minflow.exercises.limits import OutOfTime, limit_by_thread, limit_by_timer, limited

pytestmark = pytest.mark.usefixtures("unraisable_errors_are_printed")


def endless():
    while True:
        pass


def swallows_errors():
    while True:
        try:
            pass
        except:  # noqa: E722
            pass


def swallows_everything():
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue


def sleeps():
    time.sleep(60)


def recurses():
    def down(n):
        try:
            return down(n + 1)
        finally:
            pass

    while True:
        try:
            down(0)
        except RecursionError:
            pass


@pytest.mark.parametrize("answer", [endless, swallows_errors, swallows_everything, sleeps, recurses])
def test_by_timer(answer):
    with pytest.raises(OutOfTime):
        limit_by_timer(0.05, answer)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    time.sleep(0.03)  # the timer no longer fires


@pytest.mark.parametrize("answer", [endless, swallows_errors])
def test_by_thread(answer):
    seen = []

    def work():
        try:
            limit_by_thread(0.05, answer)
        except OutOfTime:
            seen.append("stopped")
        seen.append(sum(range(1000)))  # and nothing is raised later

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert seen == ["stopped", 499500]


def test_debugger_works_afterwards():
    """Python 3.11 hung in the next call under a trace function: run in a separate process, which can be killed."""
    program = """
import sys, time
from minflow.exercises.limits import OutOfTime, limit_by_thread
def endless():
    while True: pass
for call in (lambda: None), (lambda: time.sleep(0.1)), endless:
    try:
        limit_by_thread(0.05, call)
    except OutOfTime:
        pass
    seen = []
    sys.settrace(lambda frame, event, arg: seen.append(event))
    (lambda: None)()
    sys.settrace(None)
    print(*seen, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == 3 * ["call"], done.stderr


def test_code_ending_in_time_is_not_affected():
    for limit in (limit_by_timer, limit_by_thread, limited):
        assert limit(60, lambda: sum(range(10))) == 45
    for one in threading.enumerate():
        if one.name == "minflow-time-limit":
            one.join(10)
            assert not one.is_alive()


@pytest.mark.parametrize("limit", [limit_by_timer, limit_by_thread])
def test_ending_exactly_at_the_limit(limit):
    """The timer fires around the end of the call: it ends or is stopped, and nothing is raised later."""

    def busy():
        until = time.perf_counter() + 0.0015 + 0.00001 * (i % 100)
        while time.perf_counter() < until:
            pass

    ended = stopped = 0
    for i in range(150):
        try:
            limit(0.002, busy)
            ended += 1
        except OutOfTime:
            stopped += 1
        sum(range(300))
    assert ended + stopped == 150


def test_zero_limit():
    """A timer that fires before the call has begun."""
    for i in range(10):
        with pytest.raises(OutOfTime):
            limit_by_timer(1e-6, endless)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_nested_limits():
    def inner():
        with pytest.raises(OutOfTime):
            limit_by_timer(0.02, endless)
        endless()

    with pytest.raises(OutOfTime):
        limit_by_timer(0.2, inner)


def test_signal_handler_is_restored():
    def mine(number, frame):
        pass

    before = signal.signal(signal.SIGALRM, mine)
    try:
        limit_by_timer(1, lambda: None)
        assert signal.getsignal(signal.SIGALRM) is mine
    finally:
        signal.signal(signal.SIGALRM, before)
