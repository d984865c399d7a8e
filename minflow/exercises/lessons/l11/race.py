"""11.2 race: an accuracy that is read before all callbacks have ended."""

import threading
import time

import numpy as np

import minflow as flow

from ....job.queue.stream import current_stream
from ....job.session import default_session
from ...definition import Exercise, case

tp = flow.typing
exercise = Exercise(
    "11.2", "race", kind="mend", level="core", answer="evaluate", time_limit=8.0,
    question="Why are sometimes only some of the images counted?",
    hint="When the loop ends, two steps may still be in the queue. Where must the program wait for them?",
    forbidden={
        "sleep": "How long is long enough? On a slow machine the sleep is too short, on a fast one it wastes time. "
                 "Wait until the work is done.",
        "Lock": "A lock keeps two threads from counting at once. But the counts were not corrupted, they were late: "
                "some callbacks had not run yet.",
        "RLock": "The counts were not corrupted, they were late: some callbacks had not run yet.",
    },
    fact="Such a mistake hides: a `print` or a faster machine makes it go away, and the result is only a little "
         "wrong. So you have to find it by reading.",
    sibling="You give ten letters to a messenger, one after the other, and note each answer in a book. After you hand "
            "over the tenth letter you open the book: eight answers are there. Waiting for the messenger after each "
            "letter helps, and takes ten times as long. It is enough to wait once, at the end, until the messenger is "
            "back.",
)


@exercise.stub
def evaluate(job, batches):
    total = right = 0

    def count(result):
        nonlocal total, right
        labels, scores = result
        total += len(labels)
        right += (scores.argmax(1) == labels).sum()

    for images, labels in batches:
        job(images, labels)(count)
    return right / total


@exercise.solution
def evaluate(job, batches):
    total = right = 0

    def count(result):
        nonlocal total, right
        labels, scores = result
        total += len(labels)
        right += (scores.argmax(1) == labels).sum()

    for images, labels in batches:
        job(images, labels)(count)
    # wait until the last callback has ended
    flow.sync_default_session()
    return right / total


@exercise.also_right
def evaluate(job, batches):
    results = []
    for images, labels in batches:
        job(images, labels)(results.append)
    flow.sync_default_session()
    hits = [hit for labels, scores in results for hit in scores.argmax(1) == labels]
    return sum(hits) / len(hits)


@exercise.also_right
def evaluate(job, batches):
    steps = [job(images, labels) for images, labels in batches]
    counts = np.zeros(2)
    for step in steps:
        labels, scores = step.get()
        counts += (scores.argmax(1) == labels).sum(), len(labels)
    return counts[0] / counts[1]


def make_counter():
    """(callback, counts): right, all."""
    counts = [0, 0]

    def count(result):
        labels, scores = result
        counts[0] += int((scores.argmax(1) == labels).sum())
        counts[1] += len(labels)

    return count, counts


@exercise.wrong("no wait",
                "The loop has ended, and the last steps have not. The counts are read too early.",
                "One line is missing, between the loop and `return`.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
    return counts[0] / counts[1]


@exercise.wrong("wait before the loop",
                "Before the loop nothing is in flight yet, so there is nothing to wait for.",
                "The callbacks run while the loop runs, and after it. Where do you read the counts?")
def evaluate(job, batches):
    count, counts = make_counter()
    flow.sync_default_session()
    for images, labels in batches:
        job(images, labels)(count)
    return counts[0] / counts[1]


@exercise.wrong("a get for each",
                "That is right, but as slow as with waiting: with `.get()` after each call, the loop waits for every "
                "step.",
                "Hand in all batches first, and wait once, after the loop.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        count(job(images, labels).get())
    return counts[0] / counts[1]


@exercise.wrong("a get for each, and a callback",
                "`.get()` waits for a result, not for its callback: the last count is late. And it waits in each step.",
                "Take `.get()` out of the loop, and wait once after it, for the callbacks too.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        step = job(images, labels)
        step(count)
        step.get()
    return counts[0] / counts[1]


@exercise.wrong("wait inside the loop",
                "That is right, but as slow as with waiting: in the loop it waits for every step.",
                "Move that line out of the loop: one wait, at the end.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
        flow.sync_default_session()
    return counts[0] / counts[1]


@exercise.wrong("a get for the last",
                "The last result is there, but its callback has not ended: `.get()` does not wait for callbacks.",
                "Wait for the whole queue: `flow.sync_default_session()`.")
def evaluate(job, batches):
    count, counts = make_counter()
    step = None
    for images, labels in batches:
        step = job(images, labels)
        step(count)
    step.get()
    return counts[0] / counts[1]


@exercise.wrong("divided by all",
                "You divide by all images, but not all of them are counted: the share is too small.",
                "The count of right answers is late as well. Wait after the loop.")
def evaluate(job, batches):
    count, counts = make_counter()
    batches = list(batches)
    for images, labels in batches:
        job(images, labels)(count)
    return counts[0] / sum(len(labels) for images, labels in batches)


@exercise.wrong("wait after the first",
                "You wait in the loop, before it has ended. That does not wait for the steps that are handed in later.",
                "The wait belongs after the loop, not in it.")
def evaluate(job, batches):
    count, counts = make_counter()
    for i, (images, labels) in enumerate(batches):
        job(images, labels)(count)
        if i == 0:
            flow.sync_default_session()
    return counts[0] / counts[1]


@exercise.wrong("no wait, and no error",
                "The loop has ended, and the last steps have not. If nothing is counted yet, that is no result either.",
                "One line is missing, between the loop and `return`.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
    return counts[0] / counts[1] if counts[1] else 0


@exercise.wrong("asks again and again",
                "A loop that asks again and again whether the work is done keeps a core busy, and never ends if a "
                "callback fails. Let the queue tell you.",
                "A barrier waits for the queue: one line, without a loop.")
def evaluate(job, batches):
    count, counts = make_counter()
    n = 0
    for images, labels in batches:
        job(images, labels)(count)
        n += len(labels)
    while counts[1] < n:
        pass
    return counts[0] / counts[1]


@exercise.wrong("session cleared",
                "`clear_default_session` waits too, but then it erases: all jobs and variables, with everything that "
                "they have learned.",
                "The barrier of this lesson only waits. Its name begins with `sync`.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
    flow.clear_default_session()
    return counts[0] / counts[1]


@exercise.wrong("a get of nothing",
                "`job(images, labels)` gives the handle. `job(images, labels)(count)` hands it a callback, and gives "
                "nothing. And `.get()` does not wait for callbacks.",
                "Wait for the whole queue, after the loop: `flow.sync_default_session()`.")
def evaluate(job, batches):
    count, counts = make_counter()
    step = None
    for images, labels in batches:
        step = job(images, labels)(count)
    step.get()
    return counts[0] / counts[1]


@exercise.wrong("a get of the job",
                "A job has many results, one for each call: only the handle that a call gives has `.get()`.",
                "Wait for the whole queue, after the loop: `flow.sync_default_session()`.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
    job.get()
    return counts[0] / counts[1]


@exercise.wrong("joins its own thread",
                "The callbacks run in the worker's thread, and it goes on after your work is done. Wait for the "
                "queue, not for a thread.",
                "`flow.sync_default_session()`.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
    threading.current_thread().join()
    return counts[0] / counts[1]


@exercise.wrong("another name",
                "It has another name in minflow: see the text above the exercise.",
                "`flow.sync_default_session()`.")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
    flow.sync()
    return counts[0] / counts[1]


@exercise.wrong("sleep", "How long is long enough?")
def evaluate(job, batches):
    count, counts = make_counter()
    for images, labels in batches:
        job(images, labels)(count)
    time.sleep(0.1)
    return counts[0] / counts[1]


@exercise.wrong("a lock", "The counts were not corrupted, they were late.")
def evaluate(job, batches):
    count, counts = make_counter()
    lock = threading.Lock()

    def safe(result):
        with lock:
            count(result)

    for images, labels in batches:
        job(images, labels)(safe)
    return counts[0] / counts[1]


# ---- how it is judged: a worker whose callbacks are as slow as they can be -------------------------------------------

PATIENCE = 2.0  # seconds that a callback is held back at most
POLLS = 100  # times that a worker finds the answer neither waiting nor done, after its loop: then it polls


class Slow:
    """A job whose callbacks are held back until the answer waits for them or returns: a callback that is not waited
    for is late on every machine. waits: waits that happened while there were batches left. polls: times that a
    callback found the answer neither waiting nor done, after the loop."""

    def __init__(self, job, batches):
        self.job, self.batches = job, batches
        self.waits, self.called, self.calling, self.looping = [], False, False, True
        self.returned, self.end, self.polls = threading.Event(), time.monotonic() + PATIENCE, 0

    def __iter__(self):
        """Yield the batches; the loop is over when one more is requested after the last."""
        self.looping = True
        yield from self.batches
        self.looping = False

    def __len__(self):
        return len(self.batches)

    def __call__(self, images, labels):
        if current_stream().callers.waits and not self.called:
            self.record_wait("a wait for the queue, before the first call")
        self.called = self.calling = True
        try:
            return Handle(self, self.job(images, labels))
        finally:
            self.calling = False

    def record_wait(self, what):
        if what not in self.waits:
            self.waits.append(what)

    def delay_callback(self):
        """Hold a callback back, on the worker, until the answer waits."""
        while not self.returned.wait(0.0005) and time.monotonic() < self.end:
            queue = tuple(current_stream().queue)
            gates = [gate for one in queue for gate in (one.finished, getattr(one, "computed", one.finished))]
            if any(gate.waiters and not gate.opened for gate in gates):
                if self.looping and not self.calling:
                    self.record_wait("a wait for the queue, in the loop")
                return
            self.polls += not self.looping
            if self.polls > POLLS:
                return

    def __getattr__(self, name):
        return getattr(self.job, name)


class Handle:
    """Handle that a call of a slow job returns."""

    def __init__(self, slow, step):
        self.slow, self.step = slow, step

    def __call__(self, callback):
        def late(result):
            self.slow.delay_callback()
            callback(result)

        self.step(late)

    def get(self, timeout=None):
        if self.slow.looping:
            self.slow.record_wait("a .get(), in the loop")
        return self.step.get(timeout)

    def __getattr__(self, name):
        return getattr(self.step, name)


def with_slow(evaluate, batches, calls=1):
    """(results of the calls, waits that came too early)"""
    batches = [(np.asarray(scores, "float32"), np.asarray(labels, "int32")) for scores, labels in batches]
    kind = tp.Numpy.Placeholder(batches[0][0].shape)
    labels_kind = tp.Numpy.Placeholder(batches[0][1].shape, dtype=flow.int32)

    @flow.global_function(type="predict")
    def eval_job(images: kind, labels: labels_kind) -> tp.Callback[tuple[tp.Numpy, tp.Numpy]]:
        return labels, images * 1

    eval_job.compile()
    given, waits = [], []
    for _ in range(calls):
        current_stream().callers.forget()
        slow = Slow(eval_job, batches)
        try:
            result = evaluate(slow, slow)
            result = result if isinstance(result, str) else float(result)
            given.append(result if slow.polls <= POLLS else "it asks again and again")
        except ZeroDivisionError:
            given.append("0 images were counted")
        finally:
            slow.returned.set()
        current_stream().wait_until_idle(PATIENCE)
        waits += slow.waits
    return given, waits


def accuracy(evaluate, batches):
    """Result of the answer if callbacks are late."""
    return with_slow(evaluate, batches)[0][0]


def two_calls(evaluate, batches):
    return with_slow(evaluate, batches, 2)[0]


def waits_in_loop(evaluate, batches):
    """Waits that happen while there are batches left."""
    return "; ".join(with_slow(evaluate, batches)[1]) or "nothing"


def kept_jobs(evaluate, batches):
    """Whether the session has its jobs still, after the answer."""
    with_slow(evaluate, batches)
    return "kept" if default_session().jobs else "erased"


def batches_of(*rights):
    """Batches of two images and two classes, with the given numbers of right answers."""
    return [([[1, 0], [1, 0]], [0 if i < right else 1 for i in range(2)]) for right in rights]


@exercise.cases
def cases(rng):
    yield case(batches_of(2, 2, 0, 1), run=accuracy, expected=5 / 8,
               text="4 batches of 2: right 2, 2, 0, 1; slow worker")
    yield case(batches_of(1), run=accuracy, expected=1 / 2, text="1 batch of 2: right 1")
    yield case(batches_of(2, 1, 0), run=accuracy, expected=3 / 6, text="3 batches of 2: right 2, 1, 0")
    yield case(batches_of(1, 1, 1, 1, 1, 0), run=accuracy, expected=5 / 12,
               text="6 batches of 2: right 1, 1, 1, 1, 1, 0")
    yield case(batches_of(2, 1, 2, 0), run=waits_in_loop, expected="nothing",
               text="what it waits for before the loop has ended")
    yield case(batches_of(2, 0, 1), run=two_calls, expected=[0.5, 0.5],
               text="called twice: 3 batches of 2: right 2, 0, 1")
    yield case(batches_of(1, 2), run=kept_jobs, expected="kept", text="the jobs of the session, after the call")
    rights = rng.integers(0, 3, 7)
    yield case(batches_of(*rights), run=accuracy, expected=rights.sum() / 14, hidden=True)
    yield case(batches_of(*rights[:5]), run=waits_in_loop, expected="nothing", hidden=True)
