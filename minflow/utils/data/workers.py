"""Workers that make batches ahead of the loop: threads, or processes. Both take tasks and give outcomes in order.

Worker k makes the batches k, k + n, k + 2n, ...: no queue is shared, so a worker that dies takes nothing with it, and
what comes next is known without asking. `close` leaves nothing running. Read next: `channel.py`, how batches travel.
"""

from __future__ import annotations

import contextvars
import gc
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.base.errors import LoaderError, WorkerError
from ...core.source_location import here
from .channel import SHARES, receive, send
from .fetch import WORKER, Recipe, WorkerInfo

PATIENCE = 5.0  # seconds that a loop which is left waits for the batches that its worker threads have in hand
# Forking a process that has other threads is safe for what we and OpenBLAS do; macOS's own libraries forbid it.
START = "fork" if sys.platform.startswith("linux") else "spawn"


class RemoteTraceback(Exception):
    """Shown above an error that came from a worker process: the traceback there."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


class Worker:
    """What a worker does wherever it lives: initialize once, then make batches. Errors are results too."""

    def __init__(self, recipe: Recipe, number: int, count: int, init: Callable | None, reseeds: bool):
        self.recipe, self.number, self.count, self.init, self.reseeds = recipe, number, count, init, reseeds
        self.failed: BaseException | None = None

    def enter(self) -> None:
        seed = self.recipe.seed("worker", self.number)
        WORKER.set(WorkerInfo(self.number, self.count, seed, self.recipe.dataset))
        if self.reseeds:  # worker_init_fn may seed them otherwise
            reseed(seed)
        try:
            if self.init is not None:
                self.init(self.number)
        except BaseException as error:
            error.add_note("in worker_init_fn")
            self.failed = error

    def answer(self, task: tuple[int, Any]) -> tuple[bool, Any]:
        if self.failed is not None:
            return False, self.failed
        try:
            if self.reseeds and self.init is None:
                reseed(self.recipe.seed("batch", task[0]))
            return True, self.recipe.make(*task)
        except BaseException as error:
            return False, error


def reseed(seed: int) -> None:
    """Forked processes would all draw the same numbers from the generators that are not ours."""
    random.seed(seed)
    np.random.seed(seed % 2**32)


class Threads:
    """Workers as threads of this process: nothing is copied, and numpy works in them at the same time."""

    kind = "worker thread"

    def __init__(self, recipe: Recipe, count: int, init: Callable | None, timeout: float, prefetch: int):
        self.timeout, self.stopped, self.in_flight, self.patience = timeout, threading.Event(), prefetch, PATIENCE
        self.owner = os.getpid()
        self.tasks = [queue.SimpleQueue() for _ in range(count)]
        self.answers = [queue.SimpleQueue() for _ in range(count)]
        self.threads = []
        for k in range(count):
            worker = Worker(recipe if init is None else recipe.apart(), k, count, init, False)
            # The grad mode and dtypes of the caller hold in the worker too.
            context, arguments = contextvars.copy_context(), (worker, self.tasks[k], self.answers[k], self.stopped)
            self.threads.append(
                threading.Thread(
                    target=context.run, args=(thread_main, *arguments), name=f"minflow-loader-{k}", daemon=True
                )
            )
        # should Ctrl-C come before `close` has begun
        self.net = weakref.finalize(self, dismiss, self.stopped, self.tasks)
        try:
            for started, thread in enumerate(self.threads):
                thread.start()
        except RuntimeError as error:
            dismiss(self.stopped, self.tasks)
            raise too_few(started, count, "worker threads", error) from error

    def submit(self, k: int, task: tuple[int, Any]) -> None:
        self.tasks[k].put(task)

    def result(self, k: int, number: int) -> tuple[bool, Any]:
        check_owner(self)
        try:
            return self.answers[k].get(timeout=self.timeout or None)
        except queue.Empty:
            self.patience = 0.0
            raise too_slow(self.kind, k, number, self.timeout) from None

    def close(self, finished: bool) -> None:
        """A thread cannot be killed: it ends when the batch in hand is done. That is waited for, but not for long."""
        dismiss(self.stopped, self.tasks)
        self.net.detach()
        end = time.monotonic() + self.patience
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(end - time.monotonic(), 0))


def check_owner(workers: Any) -> None:
    """Refuse an iterator in a forked process, which does not have its workers: the batch would never come."""
    if workers.owner != os.getpid():
        raise WorkerError(
            "an iterator of a DataLoader is used in a process that was forked after it was made",
            values={"made in": f"process {workers.owner}", "used in": f"process {os.getpid()}"},
            where=here(),
            hint="for batch in loader: in the process that uses the batches",
        )


def dismiss(stopped: threading.Event, tasks: list) -> None:
    """Tell worker threads to end."""
    stopped.set()
    for queued in tasks:
        queued.put(None)


def thread_main(worker: Worker, tasks, answers, stopped: threading.Event) -> None:
    worker.enter()
    while (task := tasks.get()) is not None and not stopped.is_set():
        answers.put(worker.answer(task))


LIVE: weakref.WeakSet = weakref.WeakSet()  # our ends of all pipes: a forked worker closes its copies of them


class Processes:
    """Workers as processes: for datasets whose own Python code takes long."""

    kind = "worker process"

    def __init__(self, recipe: Recipe, count: int, init: Callable | None, timeout: float, prefetch: int):
        import multiprocessing

        context = multiprocessing.get_context(START)
        if START != "fork":
            check_sendable(recipe, init)
        self.timeout, self.owner = timeout, os.getpid()
        # Never more under way than the pipe holds: two sides that both wait to write would wait forever.
        self.in_flight = prefetch if SHARES else 1
        self.inline = min(16384, 65536 // prefetch)
        self.processes, self.pipes = [], []
        try:
            for k in range(count):
                ours, theirs = context.Pipe()
                LIVE.add(ours)
                self.pipes.append(ours)
                worker = Worker(recipe, k, count, init, True)
                process = context.Process(
                    target=process_main, args=(worker, theirs, self.inline), name=f"minflow-loader-{k}", daemon=True
                )
                with theirs, quietly_forking():
                    process.start()
                self.processes.append(process)
        except BaseException as error:
            started = len(self.processes)
            self.close(False)
            if isinstance(error, OSError):
                raise too_few(started, count, "worker processes", error) from error
            raise

    def submit(self, k: int, task: tuple[int, Any]) -> None:
        try:
            send(self.pipes[k], task, self.inline)
        except OSError:
            pass  # it died: asking for its result will say so

    def result(self, k: int, number: int) -> tuple[bool, Any]:
        check_owner(self)
        pipe = self.pipes[k]
        try:
            if self.timeout and not pipe.poll(self.timeout):
                raise too_slow(self.kind, k, number, self.timeout)
            good, thing = receive(pipe)
        except (EOFError, ConnectionError):
            raise self.died(k, number) from None
        return (True, thing) if good else (False, thing.error())

    def died(self, k: int, number: int) -> WorkerError:
        process = self.processes[k]
        process.join(5)
        code = process.exitcode
        if code is not None and code < 0:
            try:
                how = f"killed by {signal.Signals(-code).name}"
            except ValueError:
                how = f"killed by signal {-code}"
        else:
            how = f"exit code {code}"
        return WorkerError(
            f"DataLoader: worker process {k} died while it was making batch {number}",
            values={"how": how, "process": process.pid},
            where=here(),
            hint="SIGKILL often means that memory ran out: fewer num_workers or smaller batches"
            if code == -9
            else 'num_workers=0 or workers="thread" runs the dataset in this process, where a debugger sees it',
        )

    def close(self, finished: bool) -> None:
        """Workers at rest end by themselves when their pipe closes; the others are ended."""
        if os.getpid() != self.owner:
            return  # a forked copy of this object must not end its siblings
        for pipe in self.pipes:
            pipe.close()
        running = list(self.processes)
        try:
            if not finished:
                end(running, "terminate", 2)
            end(running, None, 2)
            end(running, "terminate", 2)
        finally:
            end(running, "kill", 5)
            for process in self.processes:
                if process.exitcode is not None:
                    process.close()
            self.processes = []


def end(running: list, how: str | None, seconds: float) -> None:
    """Ask each process that still runs to end, wait for it, and strike the ended ones from the list."""
    for process in running if how else ():
        getattr(process, how)()
    for process in running:
        process.join(seconds)
    running[:] = [process for process in running if process.exitcode is None]


@contextmanager
def quietly_forking():
    """Start a process: no warning that threads exist, and Ctrl-C held back until the child ignores it."""
    masks = hasattr(signal, "pthread_sigmask") and threading.current_thread() is threading.main_thread()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_main(worker: Worker, pipe, inline: int) -> None:
    """The life of a worker process: until its pipe closes, which it does even if the owner is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the owner decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.set_wakeup_fd(-1)  # the owner's event loop must not hear of our signals
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in list(LIVE):
        other.close()
    gc.freeze()  # what the owner made is the owner's to clean up
    worker.enter()
    while True:
        try:
            task = receive(pipe)
        except (EOFError, OSError):
            return
        good, thing = worker.answer(task)
        try:
            try:
                send(pipe, (good, thing if good else Failure(thing)), inline)
            except OSError:
                raise
            except Exception as error:
                error.add_note(
                    "while sending the batch to the owner of the DataLoader: what it holds cannot be pickled"
                )
                send(pipe, (False, Failure(error)), inline)
        except OSError:
            return


class Failure:
    """An error on its way between processes: itself where it survives pickling, and its traceback as text."""

    def __init__(self, error: BaseException):
        self.text = "".join(traceback.format_exception(error))
        self.name = f"{type(error).__name__}: {error}"
        self.packed = None
        if isinstance(error, Exception):
            try:
                self.packed = pickle.dumps(error)
                pickle.loads(self.packed)
            except Exception:
                self.packed = None

    def error(self) -> BaseException:
        """The error as it is raised in the owner."""
        error = None
        if self.packed is not None:
            try:
                error = pickle.loads(self.packed)
            except Exception:  # its class is not known here
                pass
        if error is None:
            error = WorkerError(f"DataLoader: {self.name}", hint="see the traceback of the worker above")
        error.__cause__ = RemoteTraceback(self.text)
        return error


def too_slow(kind: str, k: int, number: int, timeout: float) -> WorkerError:
    return WorkerError(
        f"DataLoader: {kind} {k} did not finish batch {number} within {timeout} s",
        where=here(),
        hint="a longer timeout",
    )


def too_few(started: int, count: int, what: str, reason: BaseException) -> WorkerError:
    return WorkerError(
        f"DataLoader: only {started} of {count} {what} could be started",
        values={"reason": reason},
        where=here(),
        hint="fewer num_workers",
    )


def check_sendable(recipe: Recipe, init: Callable | None) -> None:
    """Where processes cannot be forked, say in time what cannot be sent to them."""
    own = "__main__" in (
        type(recipe.dataset).__module__,
        getattr(recipe.collate_fn, "__module__", ""),
        getattr(init, "__module__", ""),
    )
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if own and not file:
        raise LoaderError(
            "DataLoader: on this system a worker process cannot see what a notebook cell defines",
            values={"dataset": type(recipe.dataset).__name__, "start method": START},
            where=here(),
            hint='workers="thread", or put the dataset class and its functions into a .py file and import it',
        )
    try:
        pickle.dumps((recipe, init), protocol=5, buffer_callback=lambda buffer: False)
    except Exception as error:
        raise LoaderError(
            "DataLoader: the dataset or its functions cannot be sent to a worker process",
            values={"reason": error, "start method": START},
            where=here(),
            hint='workers="thread"; or no lambdas and open files in the dataset, and functions that can be imported',
        ) from error


KINDS = {"thread": Threads, "process": Processes}
