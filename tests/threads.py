"""Threads that start simultaneously."""

import threading

LONG = 120  # seconds: a thread that works longer has deadlocked


def run_in_threads(count, action):
    """Run `action(index)` in `count` threads that start simultaneously. Return their results; raise the first error."""
    start, found, errors = threading.Barrier(count), [None] * count, []

    def body(number):
        start.wait(LONG)
        try:
            found[number] = action(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if errors:
        raise errors[0]
    return found
