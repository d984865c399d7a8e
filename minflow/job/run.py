"""flow.start: a training loop over a loader on its own thread; the cell returns at once.

    run = flow.start(train_job, loader, epochs=3, callback=show)     # or a graph
    run.pause(); run.resume(); run.stop(); run.result()
    runs = [flow.start(job, loader, own_session=True) for job in (sync_job, async_job)]  # at the same time

Each of these takes effect between steps. Read next: `queue/stream.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ..core.base.errors import JobError, MinflowError, clean
from ..core.context import Context, current_context, entered
from ..core.host import HostArray
from ..core.random import default_generator
from ..core.source_location import IS_MINFLOW_FILE, here
from ..core.tensor import Tensor
from ..diagnosis.notebook import running_cell
from ..nn.graph import Graph
from .function import Job
from .graphs.graph_job import GraphJob
from .queue.records import clock
from .queue.step import Latch, Step, Stopped, check_arity, check_timeout
from .queue.stream import current_stream
from .session import default_session
from .signature import describe

LOADER_TIMEOUT = 2.0  # seconds to wait for a batch that the loader is loading, before it is left to itself
# inherited by the loader's workers
LOOP: ContextVar[Any] = ContextVar("the run whose loader this code belongs to", default=None)


class Run:
    """A loop that submits steps of a job function or a graph, and its handle.

    state: "running", "paused", "stopped", "failed" or "done".  epoch: counted from 1.  steps: number of finished steps.
    values: for each step the mean of its first array, such as the loss.  times: when each step finished.  starts:
    number of steps submitted before each epoch.  started, ended, times: `time.perf_counter` seconds.  stream: the queue
    of its steps.  ended_by: reason of `end`, or "".  cell: the cell that started it, as of `notebook.running_cell`.
    """

    def __init__(self, job: Job | GraphJob, loader: Iterable, epochs: int, callback: Callable | None):
        self.job, self.loader, self.epochs, self.callback = job, loader, epochs, callback
        self.stream, self.home = job.session.stream, current_context()
        self.epoch, self.steps = 0, 0
        self.values: list[Any] = []
        self.times: list[float] = []
        self.starts: list[Any] = []
        self.error: BaseException | None = None
        self.error_trace: TracebackType | None = None  # of the error, from the first frame of the program
        self.last: Any = None
        self.stopping, self.raised, self.ended_by = False, False, ""
        self.submitted = 0  # number of steps, also of the one that is being submitted
        self.cell = running_cell()
        self.thread: Any = None
        self.caller = 0  # number of its thread in the timeline
        self.where = here()
        self.resumed, self.finished = Latch(), Latch()
        self.resumed.open()
        self.started = clock()
        self.ended: float | None = None

    @property
    def state(self) -> str:
        """Current state: "running", "paused", "done", "stopped" or "failed"."""
        if self.finished.opened:
            return "failed" if self.error is not None else "stopped" if self.stopping else "done"
        return "running" if self.resumed.opened else "paused"

    # ---- the handle --------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop submitting steps until `resume()`; those in flight finish."""
        if self.resumed.opened and not self.done():
            self.resumed = Latch()
        if self.is_ending():  # another thread has stopped it in the meantime
            self.resumed.open()

    def resume(self) -> None:
        """Continue with the next batch."""
        self.resumed.open()

    def stop(self) -> None:
        """End after the running step and cancel the steps queued behind it. The parameters are those after that
        step.
        """
        self.stopping = self.stopping or not self.finished.opened  # a run that is done stays so
        self.stream.cancel_queued(self)
        self.resumed.open()

    def end(self, reason: str) -> None:
        """Stop, wait for the end, and report it in one line: a new program takes the place of this run's."""
        self.ended_by = reason
        self.stop()
        if LOOP.get() is not self:
            self.finished.wait(LOADER_TIMEOUT)
        print(clean(f"The run of {self.job.name} was stopped after {self.steps} steps: {reason}."))

    def done(self) -> bool:
        """True if the run has ended, successfully or not."""
        return self.finished.opened

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end and return the result of the last step. Raises the error of a step, of the callback or of
        the loader, and TimeoutError after `timeout` seconds. Interrupting the wait does not stop the run.
        """
        current_stream().check_can_wait("waiting for a run")
        if LOOP.get() is self:
            what = f"waiting for the run of {self.job.name} inside its own loader: it would wait for itself"
            raise JobError(what, where=here(), hint="run.stop() ends it; wait where it was started")
        check_timeout(timeout)
        if not self.finished.wait(timeout):
            raise TimeoutError(f"the run of {self.job.name} did not end in {timeout} s; it is {self.state}")
        if self.error is not None:
            self.raised = True
            raise self.error.with_traceback(self.error_trace)  # no longer at each call
        return self.last

    def __repr__(self) -> str:
        return clean(f"<run of {self.job.name}: {self.state}, epoch {self.epoch} of {self.epochs}, {self.steps} steps>")

    # ---- the loop, on its thread -------------------------------------------------------------------------------------

    def is_ending(self) -> bool:
        """True if no further steps are submitted."""
        return self.stopping or self.error is not None

    def failed(self, error: BaseException) -> None:
        """Keep the first error; the loop ends at its next step."""
        if self.error is None:
            self.error, trace = error, error.__traceback__
            while trace is not None and IS_MINFLOW_FILE[trace.tb_frame.f_code.co_filename]:
                trace = trace.tb_next
            self.error_trace = trace or error.__traceback__
        self.resumed.open()

    def loop(self) -> None:
        """Submit one step after another; runs on the thread of the run."""
        step: Step | None = None
        self.caller = self.stream.callers.number
        LOOP.set(self)
        try:
            if self.is_ending():
                raise Stopped
            for epoch in range(1, self.epochs + 1):
                self.starts.append(self.submitted)
                self.epoch = epoch
                for batch in self.loader:
                    self.stream.wait_for(self.resumed)  # a pause does not count as loading time
                    if self.is_ending():
                        raise Stopped
                    args, kwargs = arguments(batch, self.job.argument)
                    self.submitted += 1
                    step = self.job.submit(args, kwargs, self.on_step, self)
                    if self.job.style == "sync":
                        self.stream.wait_for(step.computed)
                        self.stream.callers.record_result(step.record)
        except Stopped:
            pass
        except BaseException as error:
            # the error points into this thread, which has no line of the user's
            if isinstance(error, MinflowError) and error.where == here():
                error.where = self.where
            self.failed(error)
        finally:
            if step is not None:
                step.finished.wait()
            self.ended = clock()
            self.finished.open()
            if self.stream.context is not self.home:
                self.stream.end_worker()

    def on_step(self, result: Any) -> None:
        """Record a finished step and call the user's callback; runs on the worker."""
        self.steps, self.last = self.steps + 1, result
        first = first_array(result)
        self.times.append(clock())
        self.values.append(float(first.mean()) if first is not None else float("nan"))
        if self.callback is not None:
            self.callback(result)


def program_name(job: Job | GraphJob | Graph) -> str:
    """Name of the job function or class of the graph: a cell that runs again makes another graph, with a new number."""
    graph = job.graph if isinstance(job, GraphJob) else job
    return type(graph).__name__ if isinstance(graph, Graph) else graph.name


def first_array(result: Any) -> HostArray | Tensor | None:
    while isinstance(result, list | tuple | dict):
        if not result:
            return None
        result = next(iter(result.values() if isinstance(result, dict) else result))
    return result


def arguments(batch: Any, argument: Callable[[Any], Any]) -> tuple[tuple, dict]:
    """Turn a batch into arguments of a job or graph: a tuple or list by position, a dict by name."""
    if isinstance(batch, Mapping):
        return (), {key: argument(value) for key, value in batch.items()}
    return tuple([argument(value) for value in (batch if isinstance(batch, tuple | list) else (batch,))]), {}


def with_own_session(job: Job) -> Job:
    """A compiled copy of the job in a Context of its own. Raises JobError if it uses tensors outside its session."""
    seed, context = default_generator.initial_seed(), Context()
    with entered(context):
        default_generator.manual_seed(seed)
        session = default_session()
        session.stream.hooked = True  # cells do not wait for its steps
        session.settings = dict(job.session.settings)
        copy = Job(job.function, job.kind, job.config, session)
        plan = copy.compile()
    if copy.modules or plan.reads:
        kinds = sorted({type(module).__name__ for module in copy.modules.values()})
        what = f"job {job.name} uses modules or tensors that a session of its own would share with other runs"
        hint = "create them in the job, by flow.layers or flow.get_variable; or leave out own_session"
        values = {"modules": ", ".join(kinds) or "none", "captured tensors": len(plan.captured)}
        raise JobError(what, values=values, where=here(), hint=hint)
    return copy


def start(
    job: Job | Graph, loader: Iterable, epochs: int = 1, callback: Callable | None = None, own_session: bool = False
) -> Run:
    """Call a job function or an nn.Graph with every batch of `loader`, `epochs` times, on a new thread. Returns the Run
    at once.

    A batch is a tuple or list (the arguments), a dict (by name) or one array. callback(result) runs on the worker after
    every step. An iterator can be consumed only once: for several epochs pass a list or a DataLoader. A job that waits
    (`-> tp.Numpy`) has the result of a step before the next batch is loaded. If a notebook's cell runs again while its
    run of the same job goes on, that run is stopped first.
    own_session: True to run a copy of the job with variables, queue and worker of its own, initialized from the current
    seed, as in another program. Several such runs neither share variables nor wait for each other.
    """
    if not isinstance(job, Job | Graph):
        what = "flow.start runs a job function or a graph"
        hint = "flow.start(train_job, loader), not train_job(...); or flow.start(graph, loader)"
        if isinstance(job, type) and issubclass(job, Graph):
            hint = f"graph = {job.__name__}(), and flow.start(graph, loader)"
        raise JobError(what, values={"got": describe(job)}, where=here(), hint=hint)
    if isinstance(job, Graph) and own_session:
        what = "a graph trains the modules that it was given, which a session of its own would share with other runs"
        hint = "a graph of its own model for each run, without own_session"
        raise JobError(what, values={"graph": job.name}, where=here(), hint=hint)
    if callback is not None:
        if not callable(callback):
            what = "the callback of a run is not callable"
            raise JobError(what, values={"got": describe(callback)}, where=here(), hint="callback=show")
        check_arity(job.name, callback)
    if not isinstance(loader, Iterable):
        what = "flow.start takes something to loop over"
        program = "graph" if isinstance(job, Graph) else "train_job"
        hint = f"flow.start({program}, zip(images, labels)), or a DataLoader"
        raise JobError(what, values={"got": describe(loader)}, where=here(), hint=hint)
    if not isinstance(epochs, int) or isinstance(epochs, bool) or epochs < 1:
        raise JobError(
            "epochs must be an integer of at least 1", values={"got": repr(epochs)}, where=here(), hint="epochs=1"
        )
    if epochs > 1 and isinstance(loader, Iterator):
        what = "an iterator ends after one epoch"
        hint = "list(zip(images, labels)), or a DataLoader"
        raise JobError(what, values={"epochs": epochs, "loader": type(loader).__name__}, where=here(), hint=hint)
    current_stream().check_can_wait("starting a run")
    cell, again = running_cell()
    for old in current_stream().runs:
        same = program_name(old.job) == program_name(job)
        if not old.done() and same and old.cell[0] == cell != "" and old.cell[1] != again:
            old.end("its cell runs again")
    called = GraphJob(job) if isinstance(job, Graph) else with_own_session(job) if own_session else job
    run = Run(called, loader, epochs, callback)
    try:
        current_stream().start_run(run)
        return run
    except BaseException:  # Ctrl-C, or the thread could not start: the caller would have no handle
        run.stop()
        if run.thread is None or run.thread.ident is None:
            run.finished.open()
        raise
