"""watch: a curve that follows a training run, with one line of code and no change to the loop.

    with watch(graph) as curve: ...            # an nn.Graph
    with watch(model, optimizer) as curve: ... # eager
    with watch(job) as curve: ...              # a job function; two of them side by side: watch(sync_job, async_job)
    watch(run)                                 # of flow.start: the cell returns, the buttons pause and stop it

Listens to the engine's events, which cost a single check without listeners; independent of how a curve is shown.
Read next: `curve/loss_curve.py`.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from minflow.core.base import events
from minflow.core.base.errors import MinflowError
from minflow.core.base.locks import new_lock
from minflow.job.function import Job
from minflow.job.graphs.graph_job import GraphJob
from minflow.job.run import Run
from minflow.nn.graph import Graph
from minflow.nn.module import Module

from .curve.arguments import check_name
from .curve.feed import Feed
from .curve.loss_curve import LossCurve
from .sources.graph import GraphSource
from .sources.job import GraphRunSource, JobSource, RunSource
from .sources.optimizer import OptimizerSource
from .sources.source import Source

WATCHED_CURVES: set[LossCurve] = set()  # keeps curves of runs alive


def watch(
    *things: Any,
    name: str | None = None,
    names: Any = None,
    total: float | None = None,
    epoch: float | None = None,
    x: str | None = None,
    log: bool | str | os.PathLike | None = None,
    config: Mapping[str, Any] | None = None,
    compare: Any = (),
    gradients: bool = True,
    into: LossCurve | None = None,
):
    """Return a LossCurve that is filled by nn.Graphs, job functions, runs of flow.start, or a model and its optimizer.

    The result of a step is drawn as "loss" (a dict: by its keys), with the learning rate, if it changes, and the norm
    of all gradients, of every n-th step if each would cost too much. Several sources are drawn side by side, under
    their names or those in `names`. total, epoch, x, log, name, config, compare: see LossCurve; `log="runs/"` keeps the
    values, in a table for each source, and the arguments of its optimizer in addition to `config`.
    gradients: False for no norm.  into: a LossCurve to fill; the end of the `with` block then ends the watching, not
    the curve. Raises MinflowError for anything that has no steps.
    """
    models = [thing for thing in things if isinstance(thing, Module)]
    others = [thing for thing in things if not isinstance(thing, Module)]
    sources = [source_of(thing, gradients) for thing in others]
    if not sources:
        raise MinflowError(
            "watch has nothing that takes steps",
            values={"got": ", ".join(map(describe_type, things)) or "nothing"},
            hint="with watch(model, optimizer), watch(graph), watch(job) or watch(run)",
        )
    check_names(names, len(sources))
    if into is not None and not isinstance(into, LossCurve):
        hint = "with watch(graph, into=curve): ..."
        raise MinflowError("watch: into must be a LossCurve", values={"got": describe_type(into)}, hint=hint)
    if into is not None and (log is not None or compare):
        values = {"log": repr(log)[:60], "compare": repr(compare)[:60]}
        hint = 'LossCurve(log="runs/"), and watch(..., name="lr 0.1", into=curve)'
        raise MinflowError("watch: with into, log and compare belong to the curve", values=values, hint=hint)
    config = check_name(name, config)
    if into is not None and name is not None and names is None and len(sources) == 1:
        names = [name]
    if len(sources) > 1 or names is not None:
        for i, source in enumerate(sources):
            source.prefix = f"{names[i] if names is not None else unique_name(sources, i)} "
    if models and len(sources) == 1 and isinstance(sources[0], OptimizerSource):
        sources[0].parameters = [p for model in models for p in model.parameters()]
    runs = [source.run for source in sources if isinstance(source, RunSource)]
    if into is not None:
        into.configs |= {source.prefix: source.config() | config for source in sources}
        return FillContext(into, Sources(into, sources))
    if total is None and len(runs) == 1:
        with suppress(TypeError):  # no `__len__`, or that of a data set without one
            total = len(runs[0].loader) * runs[0].epochs or None  # type: ignore[arg-type]
    panels = tuple(dict.fromkeys([word for source in sources for word in source.panels]))
    control = runs[0] if len(runs) == len(sources) == 1 else None
    x = x or ("time" if len(sources) > 1 else "step")
    curve = LossCurve(
        total=total, epoch=epoch, x=x, log=log, panels=panels, control=control, name=name, compare=compare
    )
    curve.configs |= {source.prefix: source.config() | config for source in sources}
    curve._source = Sources(curve, sources)
    if runs and len(runs) == len(sources):
        WATCHED_CURVES.add(curve)
        curve.__enter__()
    return curve


def source_of(thing: Any, gradients: bool) -> Source:
    if isinstance(thing, Graph):
        return GraphSource(thing, gradients)
    if isinstance(thing, Job):
        return JobSource(thing)
    if isinstance(thing, Run):
        return GraphRunSource(thing) if isinstance(thing.job, GraphJob) else RunSource(thing)
    if hasattr(thing, "param_groups") and hasattr(thing, "_learning_rates"):
        return OptimizerSource(thing, gradients)
    hint = "an nn.Graph, a job function, the result of flow.start, or a model and its optimizer"
    raise MinflowError("watch cannot follow this object", values={"got": describe_type(thing)}, hint=hint)


def check_names(names: Any, count: int) -> None:
    if names is None or (isinstance(names, list | tuple) and len(names) == len(set(map(str, names))) == count):
        if all(isinstance(name, str) for name in names or ()):
            return
    values = {"names": repr(names)[:60], "things": count}
    hint = 'names=["sync", "async"]'
    raise MinflowError("watch: names must be a list of distinct names, one for each", values=values, hint=hint)


def describe_type(thing: Any) -> str:
    if isinstance(thing, type):
        return f"the class {thing.__name__}: an object of it takes steps"[:60]
    name = getattr(thing, "name", "")
    return f"{type(thing).__name__} {name if isinstance(name, str) else ''}".strip()[:60]


def unique_name(sources: list, i: int) -> str:
    """The name of a source, numbered if others have the same."""
    name, same = sources[i].name, [k for k, source in enumerate(sources) if source.name == sources[i].name]
    return name if len(same) == 1 else f"{name} {same.index(i) + 1}"


class Sources:
    """The sources of one curve; they listen from `begin` to `end`."""

    def __init__(self, curve: LossCurve, sources: list):
        self.curve, self.sources, self.began = curve, sources, False
        self.listening: Any = None
        self.lock = new_lock()  # the loop's thread and the update thread may both end it
        self.polled = [source for source in sources if isinstance(source, RunSource)]
        self.feeds: list[Feed] = []

    def begin(self) -> None:
        with self.lock:
            if self.listening is not None:
                return
            self.listening, self.began = ExitStack(), True
            if self.polled and len(self.polled) == len(self.sources):
                self.curve._started = min([source.run.started for source in self.polled])
            for source in self.sources:
                source.curve, source.feed = self.curve, self.curve.feed(source.prefix)
                source.feed.cost = source.cost
                self.feeds.append(source.feed)
                if source.norm is not None:
                    source.norm.last = None
                    source.norm.feed = self.curve.feed(source.prefix)
                    self.feeds.append(source.norm.feed)
                passed = {events.LoaderPassed: self.passed(source)} if source.passes else {}
                for kind, listener in (source.listeners() | passed).items():
                    self.listening.enter_context(events.subscribe(kind, source.catch_errors(listener)))
        self.curve._loop.attach(self.sources)
        if self.curve._front is None and not self.curve._finished:
            self.curve.__enter__()
        if self.curve._update_thread is not None:
            self.curve._update_thread.idle = 0.0
            self.curve._update_thread.wake()

    def passed(self, source: Source):
        """Listener for the end of a DataLoader's pass in the loop's thread."""
        loop, prefix = threading.get_ident(), source.prefix.rstrip()

        def heard(event) -> None:
            if threading.get_ident() == loop:
                self.curve._passed(event.started, prefix)

        return heard

    def take_new_values(self) -> bool:
        """Take new values. Return False if all sources have ended."""
        if self.listening is None:
            return True
        over = [source.take() for source in self.polled]
        return len(over) < len(self.sources) or not all(over)

    def wait(self) -> None:
        """Wait until submitted steps have completed and the last one is fully recorded. Not called after an error."""
        for source in self.sources:
            source.wait()
            source.catch_errors(lambda _, source=source: source.last())(None)

    def end(self) -> None:
        with self.lock:
            if self.listening is None:
                return
            self.listening.close()
            self.listening = None  # another block continues
        self.curve._loop.detach(self.sources)
        for source in self.polled:
            source.take()
        self.curve.close(self.feeds)
        self.feeds = []

    def ended(self) -> float | None:
        """End of the last of several runs; None unless all sources are runs that have ended."""
        times: list[Any] = [source.run.ended if isinstance(source, RunSource) else None for source in self.sources]
        return None if None in times else max(times)

    def release(self) -> None:
        """Release the curve: its final picture is shown."""
        WATCHED_CURVES.discard(self.curve)

    def note(self) -> str:
        """Note of the curve at its end."""
        if not self.began:
            return "nothing was watched: with watch(...) as curve, around the loop"
        return "; ".join([note for source in self.sources if (note := source.note())])


class FillContext:
    """A `with` block that fills a curve of the caller."""

    def __init__(self, curve: LossCurve, sources: Sources):
        self.curve, self.sources = curve, sources

    def __enter__(self) -> LossCurve:
        self.sources.begin()
        self.curve._within.append(self.sources)  # polled by its update thread
        return self.curve

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        try:
            if kind is None:
                self.sources.wait()
        finally:
            self.sources.end()
            self.curve._within.remove(self.sources)
            self.curve._add_note(self.sources.note())


@atexit.register
def finish_at_exit() -> None:
    """At program exit, finish the curves of runs that are still watched."""
    for curve in tuple(WATCHED_CURVES):
        curve.finish("the program ended")
