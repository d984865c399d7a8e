"""Workers that make batches ahead of the loop: threads or processes. Both take tasks and return outcomes in order.

Worker k makes batches k, k + n, k + 2n, ...: workers share no queue, so a worker that dies loses no batches of others,
and the worker that makes the next batch is known. `close` leaves nothing running. Read next: `channel.py`, how batches
travel.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.base.errors import LoaderError, WorkerError
from ...core.source_location import here
from .channel import SHARES_MEMORY, receive, send
from .fetch import WORKER, BatchMaker, WorkerInfo

JOIN_TIMEOUT = 5.0  # seconds that an abandoned loop waits for worker threads to finish their batches
# Forking a process with threads is safe for minflow and OpenBLAS; macOS's own libraries forbid it.
START_METHOD = "fork" if sys.platform.startswith("linux") else "spawn"


class RemoteTraceback(Exception):
    """The traceback in a worker process, shown above its error."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


class Worker:
    """Work common to threads and processes: initialize once, then make batches. Errors are returned as results."""

    def __init__(self, maker: BatchMaker, number: int, count: int, init: Callable | None, seeds_globals: bool):
        self.maker, self.number, self.count, self.init, self.seeds_globals = maker, number, count, init, seeds_globals
        self.failed: BaseException | None = None

    def initialize(self) -> None:
        seed = self.maker.seed("worker", self.number)
        WORKER.set(WorkerInfo(self.number, self.count, seed, self.maker.dataset))
        if self.seeds_globals:  # worker_init_fn may reseed them
            reseed(seed)
        try:
            if self.init is not None:
                self.init(self.number)
        except BaseException as error:
            error.add_note("in worker_init_fn")
            self.failed = error

    def run_task(self, task: tuple[int, Any]) -> tuple[bool, Any]:
        if self.failed is not None:
            return False, self.failed
        try:
            if self.seeds_globals and self.init is None:
                reseed(self.maker.seed("batch", task[0]))
            return True, self.maker.make(*task)
        except BaseException as error:
            return False, error


def reseed(seed: int) -> None:
    """Seed the generators of Python and NumPy, which would otherwise be the same in all forked processes."""
    random.seed(seed)
    np.random.seed(seed % 2**32)


class ThreadWorkers:
    """Workers that are threads of this process: nothing is copied, and NumPy runs in parallel."""

    kind = "worker thread"

    def __init__(self, maker: BatchMaker, count: int, init: Callable | None, timeout: float, prefetch: int):
        self.timeout, self.stopped, self.in_flight, self.join_timeout = (
            timeout,
            threading.Event(),
            prefetch,
            JOIN_TIMEOUT,
        )
        self.owner = os.getpid()
        self.tasks: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in range(count)]
        self.results: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in range(count)]
        self.threads = []
        for k in range(count):
            worker = Worker(maker if init is None else maker.with_own_dataset(), k, count, init, False)
            # The grad mode and default dtypes of the caller apply in the worker too.
            context, arguments = contextvars.copy_context(), (worker, self.tasks[k], self.results[k], self.stopped)
            self.threads.append(
                threading.Thread(
                    target=context.run, args=(thread_main, *arguments), name=f"minflow-loader-{k}", daemon=True
                )
            )
        # in case Ctrl-C comes before `close` begins
        self.finalizer = weakref.finalize(self, stop_threads, self.stopped, self.tasks)
        try:
            for started, thread in enumerate(self.threads):
                thread.start()
        except RuntimeError as error:
            stop_threads(self.stopped, self.tasks)
            raise start_error(started, count, "worker threads", error) from error

    def submit(self, k: int, task: tuple[int, Any]) -> None:
        self.tasks[k].put(task)

    def result(self, k: int, number: int) -> tuple[bool, Any]:
        check_owner(self)
        try:
            return self.results[k].get(timeout=self.timeout or None)
        except queue.Empty:
            self.join_timeout = 0.0
            raise timeout_error(self.kind, k, number, self.timeout) from None

    def close(self, finished: bool) -> None:
        """End each thread after its current batch, since threads cannot be killed. Waits for that, but not for long."""
        stop_threads(self.stopped, self.tasks)
        self.finalizer.detach()
        end = time.monotonic() + self.join_timeout
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(end - time.monotonic(), 0))


def check_owner(workers: Any) -> None:
    """Refuse to iterate in a forked process, which does not have the workers: the batch would never arrive."""
    if workers.owner != os.getpid():
        raise WorkerError(
            "an iterator of a DataLoader is used in a process that was forked after it was created",
            values={"made in": f"process {workers.owner}", "used in": f"process {os.getpid()}"},
            where=here(),
            hint="for batch in loader: in the process that uses the batches",
        )


def stop_threads(stopped: threading.Event, tasks: list) -> None:
    """Tell worker threads to end."""
    stopped.set()
    for queued in tasks:
        queued.put(None)


def thread_main(worker: Worker, tasks: Any, results: Any, stopped: threading.Event) -> None:
    worker.initialize()
    while (task := tasks.get()) is not None and not stopped.is_set():
        results.put(worker.run_task(task))


OPEN_PIPES: weakref.WeakSet = weakref.WeakSet()  # the owner's ends of all pipes; a forked worker closes its copies


class ProcessWorkers:
    """Workers that are processes: for datasets with slow Python code."""

    kind = "worker process"

    def __init__(self, maker: BatchMaker, count: int, init: Callable | None, timeout: float, prefetch: int):
        import multiprocessing

        context: Any = multiprocessing.get_context(START_METHOD)
        if START_METHOD != "fork":
            check_sendable(maker, init)
        self.timeout, self.owner = timeout, os.getpid()
        # No more tasks in flight than the pipe holds: two sides that both block on writing would deadlock.
        self.in_flight = prefetch if SHARES_MEMORY else 1
        self.inline = min(16384, 65536 // prefetch)
        self.processes, self.pipes = [], []
        try:
            for k in range(count):
                ours, theirs = context.Pipe()
                OPEN_PIPES.add(ours)
                self.pipes.append(ours)
                worker = Worker(maker, k, count, init, True)
                process = context.Process(
                    target=process_main, args=(worker, theirs, self.inline), name=f"minflow-loader-{k}", daemon=True
                )
                with theirs, block_interrupts():
                    process.start()
                self.processes.append(process)
        except BaseException as error:
            started = len(self.processes)
            self.close(False)
            if isinstance(error, OSError):
                raise start_error(started, count, "worker processes", error) from error
            raise

    def submit(self, k: int, task: tuple[int, Any]) -> None:
        try:
            send(self.pipes[k], task, self.inline)
        except OSError:
            pass  # it died: `result` will report it

    def result(self, k: int, number: int) -> tuple[bool, Any]:
        check_owner(self)
        pipe = self.pipes[k]
        try:
            if self.timeout and not pipe.poll(self.timeout):
                raise timeout_error(self.kind, k, number, self.timeout)
            ok, payload = receive(pipe)
        except (EOFError, ConnectionError):
            raise self.death_error(k, number) from None
        return (True, payload) if ok else (False, payload.error())

    def death_error(self, k: int, number: int) -> WorkerError:
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
        """End idle workers by closing their pipes, and terminate the others."""
        if os.getpid() != self.owner:
            return  # a forked copy of this object must not terminate its siblings
        for pipe in self.pipes:
            pipe.close()
        running = list(self.processes)
        try:
            if not finished:
                stop_processes(running, "terminate", 2)
            stop_processes(running, None, 2)
            stop_processes(running, "terminate", 2)
        finally:
            stop_processes(running, "kill", 5)
            for process in self.processes:
                if process.exitcode is not None:
                    process.close()
            self.processes = []


def stop_processes(running: list, how: str | None, seconds: float) -> None:
    """Signal each process that still runs, wait for it, and remove ended ones from the list."""
    if how:
        for process in running:
            getattr(process, how)()
    for process in running:
        process.join(seconds)
    running[:] = [process for process in running if process.exitcode is None]


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Start a process without the warning about threads, and block Ctrl-C until the child ignores it."""
    masks = hasattr(signal, "pthread_sigmask") and threading.current_thread() is threading.main_thread()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_main(worker: Worker, pipe: Any, inline: int) -> None:
    """Main loop of a worker process. Runs until its pipe closes, which happens even if the owner is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group: the owner handles it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.set_wakeup_fd(-1)  # the owner's event loop must not receive our signals
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in list(OPEN_PIPES):
        other.close()
    gc.freeze()  # objects of the owner must not be collected here
    worker.initialize()
    while True:
        try:
            task = receive(pipe)
        except (EOFError, OSError):
            return
        ok, payload = worker.run_task(task)
        try:
            try:
                send(pipe, (ok, payload if ok else WorkerFailure(payload)), inline)
            except OSError:
                raise
            except Exception as error:
                error.add_note("while sending the batch to the owner of the DataLoader: its contents cannot be pickled")
                send(pipe, (False, WorkerFailure(error)), inline)
        except OSError:
            return


class WorkerFailure:
    """An error in transit between processes: the exception if it can be pickled, and its traceback as text."""

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
        """The error to raise in the owner."""
        error = None
        if self.packed is not None:
            try:
                error = pickle.loads(self.packed)
            except Exception:  # the class of the error cannot be imported here
                pass
        if error is None:
            error = WorkerError(f"DataLoader: {self.name}", hint="see the traceback of the worker above")
        error.__cause__ = RemoteTraceback(self.text)
        return error


def timeout_error(kind: str, k: int, number: int, timeout: float) -> WorkerError:
    return WorkerError(
        f"DataLoader: {kind} {k} did not finish batch {number} within {timeout} s",
        where=here(),
        hint="a longer timeout",
    )


def start_error(started: int, count: int, what: str, reason: BaseException) -> WorkerError:
    return WorkerError(
        f"DataLoader: only {started} of {count} {what} could be started",
        values={"reason": reason},
        where=here(),
        hint="fewer num_workers",
    )


def check_sendable(maker: BatchMaker, init: Callable | None) -> None:
    """If processes cannot be forked, report objects that cannot be pickled before any worker starts."""
    own = "__main__" in (
        type(maker.dataset).__module__,
        getattr(maker.collate_fn, "__module__", ""),
        getattr(init, "__module__", ""),
    )
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if own and not file:
        raise LoaderError(
            "DataLoader: on this system worker processes cannot see definitions in notebook cells",
            values={"dataset": type(maker.dataset).__name__, "start method": START_METHOD},
            where=here(),
            hint='workers="thread", or put the dataset class and its functions into a .py file and import it',
        )
    try:
        pickle.dumps((maker, init), protocol=5, buffer_callback=lambda buffer: False)
    except Exception as error:
        raise LoaderError(
            "DataLoader: the dataset or its functions cannot be sent to a worker process",
            values={"reason": error, "start method": START_METHOD},
            where=here(),
            hint='workers="thread"; or no lambdas and open files in the dataset, and functions that can be imported',
        ) from error


WORKER_POOLS = {"thread": ThreadWorkers, "process": ProcessWorkers}
