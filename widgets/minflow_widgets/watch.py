"""watch: a curve that follows a training run by itself, by one line and without a change to the loop.

    with watch(graph) as curve: ...            # an nn.Graph
    with watch(model, optimizer) as curve: ... # eager
    with watch(job) as curve: ...              # a job function; two of them side by side: watch(sync_job, async_job)
    watch(run)                                 # what flow.start gave: the cell returns, the buttons pause and stop it

Listens to the engine's events, which cost one test where nobody listens; knows nothing of how a curve is shown.
Read next: `curve/loss_curve.py`.
"""

from __future__ import annotations

import atexit
import threading
from contextlib import ExitStack, suppress
from threading import get_ident

import numpy as np

from minflow.core.base import events
from minflow.core.base.errors import MinflowError
from minflow.core.tensor import Tensor
from minflow.job.events import JobStepped
from minflow.job.function import Job
from minflow.job.run import Run
from minflow.job.stream import STREAM
from minflow.nn.graph.compiled import GraphRan
from minflow.nn.graph.graph import Graph
from minflow.nn.module import Module

from .curve.loss_curve import LossCurve, clock
from .sources.gradient_norm import Norm
from .sources.step_values import LOSS, LOSS_LR, LR, NOTHING, Numbers, numbers_of, rates, scheduled
from .curve.feed import Rows

HELD: set[LossCurve] = set()  # curves of runs, which nobody else needs to hold
MOST = 1000  # losses of one step that are remembered
STEPS = 0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000  # at which a schedule is asked whether it changes


def watch(*things, names=None, total=None, epoch=None, x=None, log=None, gradients=True, into=None):
    """A LossCurve that fills itself from nn.Graphs, job functions, runs of flow.start, or a model and its optimizer.

    What a step gives is drawn as "loss" (a dict: by its keys), beside the learning rate, if it changes, and the norm of
    all gradients together, of every n-th step where each would cost too much. Several things stand side by side, told
    apart by their names or by `names`. total, epoch, x, log: see LossCurve. gradients=False: no norm.  into: a
    LossCurve to fill; then leaving the `with` block ends the watching, not the curve. Raises MinflowError for anything
    that has no steps.
    """
    models = [thing for thing in things if isinstance(thing, Module)]
    others = [thing for thing in things if not isinstance(thing, Module)]
    sources = [source_of(thing, gradients) for thing in others]
    if not sources:
        raise MinflowError("watch has nothing that takes steps", values={"got": ", ".join(map(described, things)) or "nothing"},
                           hint="with watch(model, optimizer), watch(graph), watch(job) or watch(run)")  # fmt: skip
    if names is not None and not (isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
                                  and len(names) == len(set(names)) == len(sources)):  # fmt: skip
        raise MinflowError("watch: names is a list with a name for each, no two alike", hint='names=["sync", "async"]',
                           values={"names": repr(names)[:60], "things": len(sources)})  # fmt: skip
    if into is not None and not isinstance(into, LossCurve):
        raise MinflowError("watch: into is a LossCurve", values={"got": described(into)}, hint="with watch(graph, into=curve): ...")
    if len(sources) > 1 or names is not None:
        for i, source in enumerate(sources):
            source.prefix = f"{names[i] if names is not None else unique(sources, i)} "
    if models and len(sources) == 1 and isinstance(sources[0], OptimizerSource):
        sources[0].parameters = [p for model in models for p in model.parameters()]
    runs = [source.run for source in sources if isinstance(source, RunSource)]
    if into is not None:
        return Filling(into, Sources(into, sources))
    if total is None and len(runs) == 1:
        with suppress(TypeError):  # no length, or that of a data set that has none
            total = len(runs[0].loader) * runs[0].epochs or None
    curve = LossCurve(total=total, epoch=epoch, x=x or ("time" if len(sources) > 1 else "step"), log=log,
                      panels=tuple(dict.fromkeys([word for source in sources for word in source.panels])),
                      control=runs[0] if len(runs) == len(sources) == 1 else None)  # fmt: skip
    curve._source = Sources(curve, sources)
    if runs and len(runs) == len(sources):
        HELD.add(curve)
        curve.__enter__()
    return curve


def source_of(thing, gradients: bool) -> Source:
    if isinstance(thing, Graph):
        return GraphSource(thing, gradients)
    if isinstance(thing, Job):
        return JobSource(thing)
    if isinstance(thing, Run):
        return RunSource(thing)
    if hasattr(thing, "param_groups") and hasattr(thing, "stepped"):
        return OptimizerSource(thing, gradients)
    raise MinflowError("watch does not know what this is", values={"got": described(thing)},
                       hint="an nn.Graph, a job function, what flow.start gave, or a model and its optimizer")  # fmt: skip


def described(thing) -> str:
    if isinstance(thing, type):
        return f"the class {thing.__name__}: an object of it takes steps"[:60]
    name = getattr(thing, "name", "")
    return f"{type(thing).__name__} {name if isinstance(name, str) else ''}".strip()[:60]


def unique(sources: list, i: int) -> str:
    """The name of a source among others."""
    name, same = sources[i].name, [k for k, source in enumerate(sources) if source.name == sources[i].name]
    return name if len(same) == 1 else f"{name} {same.index(i) + 1}"


class Sources:
    """What fills one curve: listens from `begin` to `end`."""

    def __init__(self, curve: LossCurve, sources: list):
        self.curve, self.sources, self.listening, self.began = curve, sources, None, False
        self.lock = threading.Lock()  # the loop's thread and the pump may both end it
        self.polled = [source for source in sources if isinstance(source, RunSource)]
        self.rows: list[Rows] = []

    def begin(self) -> None:
        with self.lock:
            if self.listening is not None:
                return
            self.listening, self.began = ExitStack(), True
            if self.polled and len(self.polled) == len(self.sources):
                self.curve._started = min([source.run.started for source in self.polled])
            for source in self.sources:
                source.curve, source.rows = self.curve, self.curve.rows(source.prefix)
                source.rows.cost = source.cost
                self.rows.append(source.rows)
                if source.norm is not None:
                    source.norm.last = None
                    source.norm.rows = self.curve.rows(source.prefix)
                    self.rows.append(source.norm.rows)
                for kind, listener in source.listeners().items():
                    self.listening.enter_context(events.subscribe(kind, source.safely(listener)))
        if self.curve._front is None and not self.curve._finished:
            self.curve.__enter__()
        if self.curve._pump is not None:
            self.curve._pump.idle = 0.0
            self.curve._pump.wake()

    def look(self) -> bool:
        """Take what came; False where all has ended."""
        if self.listening is None:
            return True
        over = [source.take() for source in self.polled]
        return len(over) < len(self.sources) or not all(over)

    def wait(self) -> None:
        """Until what was submitted has landed, and all of the last step is told. After an error nobody waits."""
        for source in self.sources:
            source.wait()
            source.safely(lambda _, source=source: source.last())(None)

    def end(self) -> None:
        with self.lock:
            if self.listening is None:
                return
            self.listening.close()
            self.listening = None  # a further block goes on
        for source in self.polled:
            source.take()
        self.curve.close(self.rows)
        self.rows = []

    def ended(self) -> float | None:
        """When the last of several runs ended; None where not all that is watched is a run that has."""
        times = [source.run.ended if isinstance(source, RunSource) else None for source in self.sources]
        return None if None in times else max(times)

    def let_go(self) -> None:
        """The picture is there: nobody needs to hold the curve."""
        HELD.discard(self.curve)

    def note(self) -> str:
        """What is to be told at the end."""
        if not self.began:
            return "nothing was watched: with watch(...) as curve, around the loop"
        return "; ".join([note for source in self.sources if (note := source.note())])


class Filling:
    """A `with` block in which a curve of the caller is filled."""

    def __init__(self, curve: LossCurve, sources: Sources):
        self.curve, self.sources = curve, sources

    def __enter__(self) -> LossCurve:
        self.sources.begin()
        self.curve._fed.append(self.sources)  # its pump looks what has come
        return self.curve

    def __exit__(self, kind, error, traceback) -> None:
        try:
            if kind is None:
                self.sources.wait()
        finally:
            self.sources.end()
            self.curve._fed.remove(self.sources)
            self.curve._remark(self.sources.note())


class Source:
    """One thing that is watched. prefix: of the names of its series.  panels: words of them, known in advance."""

    panels: tuple[str, ...] = ("loss",)
    norm: Norm | None = None
    # seconds of processor that a step takes to be told, in a loop that sleeps between them: benchmarks/widgets.py
    cost = 7e-6

    def __init__(self, name: str):
        self.name, self.prefix, self.problem = name, "", ""
        self.curve: LossCurve | None = None
        self.rows: Rows | None = None

    def listeners(self) -> dict:
        return {}

    def safely(self, listener):
        """What is watched goes on, whatever goes wrong here; the curve tells it at its end."""

        def heard(event) -> None:
            try:
                listener(event)
            except Exception as error:
                self.problem = f"{self.name} is not watched well: {type(error).__name__}: {error}"

        return heard

    def wait(self) -> None:
        pass

    def last(self) -> None:
        """Tell what is still to be told of the last step."""

    def note(self) -> str:
        return self.problem


class OptimizerSource(Source):
    """Steps of an optimizer, in eager code or of a graph; the loss is what backward() started from since the step
    before."""

    cost = 12e-6

    def __init__(self, optimizer, gradients: bool):
        super().__init__(type(optimizer).__name__)
        self.optimizer, self.norm = optimizer, Norm() if gradients else None
        self.parameters, self.graph = None, None  # graph: that stepped it last
        self.losses: dict[int, list[float]] = {}  # of each thread
        # rates of the last step; told as; names of a step with a loss
        self.told, self.lr, self.names = None, NOTHING, LOSS
        self.panels = ("loss", *scheduled(optimizer), *(["norm"] if gradients else []))

    def listeners(self) -> dict:
        return {events.BackwardDone: self.backward, events.StepDone: self.stepped, GraphRan: self.ran}

    def backward(self, event) -> None:
        found = [float(t.array.item()) for t in event.outputs if t.array is not None and t.array.size == 1]
        if found:
            kept = self.losses.setdefault(get_ident(), found)
            if kept is not found:
                kept += found
                if len(kept) > 2 * MOST:  # of a thread that never steps
                    del kept[:-MOST]

    def stepped(self, event) -> None:
        losses = self.losses.pop(get_ident(), None)
        optimizer, step, lr = event
        if optimizer is not self.optimizer:
            return
        when = clock()
        if lr != self.told:
            self.told, self.lr = lr, rates(lr)
            self.names = LOSS + self.lr[0]
        if losses is None:
            self.rows.append((self.lr[0], step, when, *self.lr[1]))
        else:
            loss = losses[0] if len(losses) == 1 else sum(losses) / len(losses)
            self.rows.append((self.names, step, when, loss, *self.lr[1]))
            norm = self.norm
            if norm is not None:
                norm.last = step, when
                norm.left -= 1
                if norm.left <= 0 or (loss - loss != 0.0 and not norm.bad):
                    norm.tell(step, when, self.gradients)

    def gradients(self) -> list:
        grads = [p.grad for p in self.parameters or self.optimizer.parameters()]
        return [g.array for g in grads if g is not None and g.array is not None]

    def last(self) -> None:
        if self.norm is not None and self.graph is not None:
            self.norm.end(self.of_graph)
        elif self.norm is not None and not self.losses:  # a backward since has changed the gradients
            self.norm.end(self.gradients)

    def of_graph(self) -> list:
        return [g.numpy() for g in self.graph.grads.values()]

    def ran(self, event) -> None:
        if any(optimizer is self.optimizer for optimizer, _ in event.graph.optimizers):
            step, when, (names, values) = self.optimizer.steps, clock(), numbers_of(event.result, True)
            self.graph = event.graph
            self.rows.append((names, step, when, *values))
            if self.norm is not None:
                self.norm.last = step, when
                self.norm.left -= 1
                if self.norm.left <= 0 or (values and values[0] - values[0] != 0.0 and not self.norm.bad):
                    self.norm.tell(step, when, self.of_graph)


class GraphSource(Source):
    """Calls of an nn.Graph."""

    def __init__(self, graph: Graph, gradients: bool):
        super().__init__(graph.name)
        self.graph, self.training, self.count = graph, graph.training, 0
        # rates of the last step; told as; names of a step that gives one number
        self.told, self.lr, self.names = (), NOTHING, LOSS
        self.norm = Norm() if gradients and graph.training and graph.config.gradients else None
        self.panels = ("loss", *(scheduled(graph.optimizers[0][0]) if graph.training else ()), *(["norm"] if self.norm else []))

    def listeners(self) -> dict:
        return {GraphRan: self.ran}

    def ran(self, event) -> None:
        if event.graph is not self.graph:
            return
        step, when, result = event.step, clock(), event.result
        if not step:
            step = self.count = self.count + 1
        elif event.lr != self.told:
            self.told, self.lr = event.lr, rates(event.lr)
            self.names = LOSS + self.lr[0]
        # without a call, which costs a microsecond between cold steps
        if type(result) is Tensor and result.array.size == 1:
            values = (float(result.array.item()),)
            self.rows.append((self.names, step, when, *values, *self.lr[1]))
        else:
            (names, values), (more, lr) = numbers_of(result, self.training), self.lr
            if not names:
                self.problem = f"{self.name} gives no number to draw: return the loss from build"
            self.rows.append((names + more, step, when, *values, *lr))
        norm = self.norm
        if norm is not None:
            norm.last = step, when
            norm.left -= 1
            if norm.left <= 0 or (values and values[0] - values[0] != 0.0 and not norm.bad):
                norm.tell(step, when, self.gradients)

    def gradients(self) -> list:
        return [g.numpy() for g in self.graph.grads.values()]

    def last(self) -> None:
        if self.norm is not None:
            self.norm.end(self.gradients)


class JobSource(Source):
    """Steps of a job function; heard on the worker."""

    cost = 12e-6

    def __init__(self, job: Job):
        super().__init__(job.name)
        # rate: the schedule of the plan of the last step, where there is one
        self.job, self.plan, self.rate = job, None, None
        # steps that are in the curve: calls before it was watched, to compile, are none of them
        self.count: int | None = None

    def listeners(self) -> dict:
        return {JobStepped: self.stepped}

    def stepped(self, event) -> None:
        if event.job is not self.job:
            return
        if self.count is None:
            self.begun(event)
        step = self.count = self.count + 1
        result, (more, lr) = event.result, self.lr()
        if type(result) is np.ndarray and result.size == 1 and result.dtype.kind == "f":  # without a call, as above
            self.rows.append((LOSS_LR if more else LOSS, step, event.record.ended, float(result.item()), *lr))
            return
        names, values = numbers_of(result, self.job.training)
        if not names:
            self.problem = f"{self.name} gives no number to draw: return the loss"
        self.rows.append((names + more, step, event.record.ended, *values, *lr))

    def begun(self, event) -> None:
        """Its first step that is heard: it goes on where another watch of the same curve has ended."""
        with self.curve._lock:
            self.curve._take()
            found = [self.curve._series.get(self.prefix + name) for name in LOSS_LR]
        self.count = int(max([s.steps[-1] for s in found if s is not None], default=0))
        if self.rows.zero is None and self.prefix:
            self.rows.zero = event.record.submitted

    def lr(self) -> Numbers:
        """As the learning rate of the training step that has just ended: how many were done before it. `late` makes it
        a rate."""
        plan = self.job.compiled
        if plan is not self.plan:
            self.scheduled(plan)
        return (LR, (max(self.job.steps - 1, 0),)) if self.rate is not None else NOTHING

    def scheduled(self, plan) -> None:
        """From now on the steps are those of this plan."""
        rate = getattr(plan, "rate", None)
        if rate is not self.rate:
            with self.curve._lock:
                self.curve._take()  # what came before has the rate of before
            self.rate = rate
        self.plan = plan
        if rate is None:
            return
        try:
            if len({rate(step) for step in STEPS}) > 1:
                self.curve.panels = tuple(dict.fromkeys([*self.curve.panels, "lr"]))
        except Exception:  # a schedule that is an input of the job
            self.rate = None
            return

        def told(done: float) -> float:
            try:
                return float(rate(int(done)))
            except Exception:
                return float("nan")

        self.rows.late = {"lr": told}

    def wait(self) -> None:
        if STREAM.thread is not threading.current_thread():
            STREAM.idle()


class RunSource(JobSource):
    """A run of flow.start: its values are taken by the pump, so that the run itself is not slowed down."""

    def __init__(self, run: Run):
        super().__init__(run.job)
        self.run, self.seen, self.epochs, self.rates, self.taking = run, 0, 1, {}, threading.Lock()

    def stepped(self, event) -> None:
        if event.owner is self.run:
            self.rates[len(self.run.values)] = self.lr()  # the run appends this step's value after it is told of here

    def take(self) -> bool:
        """Put what has landed since the last time; True once the run has ended."""
        run = self.run
        over = run.done()
        with self.taking:
            self.rows.zero = run.started
            for i in range(self.seen, len(run.values)):
                names, lr = self.rates.pop(i, NOTHING)
                self.rows.append((LOSS + names, i + 1, run.times[i], run.values[i], *lr))
                self.seen = i + 1
            while self.epochs < len(run.starts) and 0 < run.starts[self.epochs] <= self.seen:
                at = run.starts[self.epochs]
                with self.curve._lock:
                    self.curve._marks.append((float(at), run.times[at - 1] - run.started, str(self.epochs)))
                self.epochs += 1
        return over

    def wait(self) -> None:
        self.run.over.wait()

    def note(self) -> str:
        if self.run.state == "failed":
            return f"failed: {next(iter(str(self.run.error).splitlines()), '') or type(self.run.error).__name__}"
        return "stopped" if self.run.state == "stopped" else self.problem


@atexit.register
def leave() -> None:
    """A program that ends while a run is watched leaves the curve as it is then."""
    for curve in tuple(HELD):
        curve.finish("the program ended")
