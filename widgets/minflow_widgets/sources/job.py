"""Sources of a curve: steps of a job function, and of a run of flow.start."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from minflow.core.base.locks import new_lock
from minflow.job.function import Job
from minflow.job.graphs.graph_job import GraphJob
from minflow.job.queue.events import JobCalled, JobStepped
from minflow.job.queue.stream import current_stream
from minflow.job.run import Run
from minflow.nn.graph.compiled import GraphRan

from .source import Source
from .step_values import (
    LOSS_LR_NAMES,
    LOSS_NAMES,
    LR_NAMES,
    NO_NUMBERS,
    Numbers,
    hyperparameters,
    numbers_of,
    rate_values,
    scheduled_panels,
)

PROBED_STEPS = 0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000  # steps at which a schedule is probed for changes


class JobSource(Source):
    """Steps of a job function, observed on the worker."""

    cost = 12e-6

    def __init__(self, job: Job | GraphJob):
        super().__init__(job.name)
        self.passes = job.style == "sync"  # in async style the loader runs ahead of the steps
        # rate: the schedule in the plan of the last step, if any
        self.job: Any = job
        self.plan: Any = None
        self.rate: Any = None
        # steps in the curve, without calls before it was watched, and without those that compile
        self.count: Any = None

    def listeners(self) -> dict:
        return {JobStepped: self.on_step}

    def steps(self) -> dict:
        return {JobCalled: lambda event: event.job is self.job}

    def on_step(self, event) -> None:
        if event.job is not self.job:
            return
        if self.count is None:
            self.on_first_step(event)
        step = self.count = self.count + 1
        result, (more, lr) = event.result, self.lr()
        if (
            type(result) is np.ndarray and result.size == 1 and result.dtype.kind == "f"
        ):  # inlined, see GraphSource.on_call
            self.feed.append(
                (LOSS_LR_NAMES if more else LOSS_NAMES, step, event.record.ended, float(result.item()), *lr)
            )
            return
        names, values = numbers_of(result, self.job.training)
        if not names:
            self.problem = f"{self.name} returns no number to draw: return the loss"
        self.feed.append((names + more, step, event.record.ended, *values, *lr))

    def on_first_step(self, event) -> None:
        """The first observed step: continues where another watch of the same curve has ended."""
        with self.curve._lock:
            self.curve._take()
            series = [self.curve._series.get(self.prefix + name) for name in LOSS_LR_NAMES]
        self.count = int(max([s.steps[-1] for s in series if s is not None], default=0))
        if self.feed.zero is None and self.prefix:
            self.feed.zero = event.record.submitted

    def lr(self) -> Numbers:
        """The index of the training step that has just ended, as its learning rate. The feed converts it into a
        rate.
        """
        plan = self.job.compiled
        if plan is not self.plan:
            self.use_schedule(plan)
        return (LR_NAMES, (max(self.job.steps - 1, 0),)) if self.rate is not None else NO_NUMBERS

    def use_schedule(self, plan) -> None:
        """Use the schedule of this plan from now on."""
        rate = getattr(plan, "rate", None)
        if rate is not self.rate:
            with self.curve._lock:
                self.curve._take()  # earlier steps have the earlier rate
            self.rate = rate
        self.plan = plan
        if rate is None:
            return
        try:
            if len({rate(step) for step in PROBED_STEPS}) > 1:
                self.curve.panels = tuple(dict.fromkeys([*self.curve.panels, "lr"]))
        except Exception:  # the schedule depends on an input of the job
            self.rate = None
            return

        def rate_after(done: float) -> float:
            try:
                return float(rate(int(done)))
            except Exception:
                return float("nan")

        self.feed.converters = {"lr": rate_after}

    def wait(self) -> None:
        if current_stream().thread is not threading.current_thread():
            current_stream().wait_until_idle()


def first_name(result: Any) -> str:
    """Name of the value that a run keeps of each step, the mean of the first array: its key in a dict, or "loss"."""
    return str(next(iter(result))) if isinstance(result, dict) and result else "loss"


class RunSource(JobSource):
    """A run of flow.start. Its values are taken by the update thread, so that the run is not slowed down."""

    def __init__(self, run: Run):
        super().__init__(run.job)
        self.run, self.seen, self.epochs, self.lock = run, 0, 1, new_lock()
        self.others: dict[int, Numbers] = {}  # step, counted from 0 -> its numbers beside `run.values`
        self.passes = False  # a run knows its epochs

    def steps(self) -> dict:
        return {}

    def on_step(self, event) -> None:
        if event.owner is self.run:
            (names, values), (more, lr) = numbers_of(event.result, False), self.lr()
            if names != LOSS_NAMES:
                numbers = {name: value for name, value in zip(names, values) if name != first_name(event.result)}
                more, lr = (*numbers, *more), (*numbers.values(), *lr)
            self.others[len(self.run.values)] = more, lr  # the run appends this step's value after this event

    def take(self) -> bool:
        """Add new values to the curve. Return True once the run has ended."""
        run = self.run
        over = run.done()
        with self.lock:
            self.feed.zero = run.started
            for i in range(self.seen, len(run.values)):
                names, values = self.others.pop(i, NO_NUMBERS)
                self.feed.append(((first_name(run.last), *names), i + 1, run.times[i], run.values[i], *values))
                self.seen = i + 1
            while self.epochs < len(run.starts) and 0 < run.starts[self.epochs] <= self.seen:
                self.end_epoch(run.starts[self.epochs])
            if over and run.state == "done" and self.seen and self.epochs == len(run.starts):
                self.end_epoch(self.seen)
        return over

    def end_epoch(self, at: int) -> None:
        """Record the end of an epoch after `at` steps."""
        with self.curve._lock:
            self.curve._epochs.passed(self.prefix.rstrip(), float(at), self.run.times[at - 1] - self.run.started)
        self.epochs += 1

    def wait(self) -> None:
        self.run.finished.wait()

    def note(self) -> str:
        if self.run.state == "failed":
            return f"failed: {next(iter(str(self.run.error).splitlines()), '') or type(self.run.error).__name__}"
        if self.run.ended_by:
            return f"stopped after {self.run.steps} steps: {self.run.ended_by}"
        return "stopped" if self.run.state == "stopped" else self.problem


class GraphRunSource(RunSource):
    """A run of flow.start over a graph: the learning rates come with its calls."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.rates_now = NO_NUMBERS
        optimizers = self.job.graph.optimizers
        self.optimizer = optimizers[0][0] if optimizers else None
        self.panels = ("loss", *(scheduled_panels(self.optimizer) if optimizers else ()))

    def config(self) -> dict:
        return hyperparameters(self.optimizer) if self.optimizer is not None else {}

    def listeners(self) -> dict:
        return super().listeners() | {GraphRan: self.on_call}

    def on_call(self, event: GraphRan) -> None:
        if event.graph is self.job.graph:
            self.rates_now = rate_values(event.lr)

    def lr(self) -> Numbers:
        return self.rates_now
