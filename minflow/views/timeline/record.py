"""When loader, queue, compute and callback were busy while a job ran, as records, statistics and sentences.

The loader time of a step is the time in which the submitting thread does anything but wait. Pure functions of times,
independent of queues and jobs. Read next: `svg.py`, the picture; `text.py`, the text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ..text.listing import clean
from ..text.tables import cut

LANES = ("loader", "queue", "compute", "callback", "GPU")
OPTIONAL_LANES = {"callback", "GPU"}  # drawn if a step has such a bar
DEFAULT_STEPS = 12  # steps in a picture by default
MAX_STEPS = 33  # largest number of steps in a picture: six bars each
MIN_WAIT_SHARE = 0.004  # fraction of a picture: shorter waits are not drawn
MIN_PAUSE = 0.1  # seconds that the loop waits with nothing in flight to count as a pause, not as a wait for a result
EXCESS_FACTOR = 1.005  # times the speedup of the formula: more than that needs an explanation

Span = tuple[float, float]  # start and end in seconds of one clock


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step. loads, waits: activity of the caller before it. queued, compute, callback: None if not reached yet.

    got: when the caller had received its result, None if it never did.  other_jobs: seconds since the previous step
    that other jobs of the same loop took for loading, and for work on the worker.  gpu: when a GPU computed it.
    """

    number: int
    loads: tuple[Span, ...] = ()
    waits: tuple[Span, ...] = ()
    queued: Span | None = None
    compute: Span | None = None
    callback: Span | None = None
    failed: bool = False
    got: float | None = None
    other_jobs: Span = (0.0, 0.0)
    gpu: Span | None = None

    @property
    def load(self) -> float:
        return sum([b - a for a, b in self.loads])

    @property
    def work(self) -> float:
        """Seconds on the worker: compute and callback."""
        return span_seconds(self.compute) + span_seconds(self.callback)

    @property
    def end(self) -> float | None:
        last = self.callback or self.compute
        return last[1] if last else None


def span_seconds(x: Span | None) -> float:
    return x[1] - x[0] if x else 0.0


class Bar(NamedTuple):
    """A bar of a picture. lane: index in LANES.  row, rows: its row within the lane, and their number.  kind: "busy",
    "wait" or "failed".
    """

    lane: int
    row: int
    rows: int
    start: float
    stop: float
    number: int
    kind: str


@dataclass(frozen=True)
class TimelineRecord:
    """The steps of a job, oldest first. cores: number available to the process.  asked: True to draw all steps."""

    name: str
    steps: tuple[StepTimes, ...]
    cores: int = 1
    asked: bool = False

    # ---- statistics: means over the steps without the first, whose loader may have begun long before ----------------

    @cached_property
    def ended(self) -> tuple[StepTimes, ...]:
        return tuple([s for s in self.steps if s.end is not None])

    @cached_property
    def steady(self) -> tuple[StepTimes, ...]:
        return self.ended[1:] or self.ended

    @cached_property
    def load(self) -> float:
        return mean([s.load for s in self.steady])

    @cached_property
    def compute(self) -> float:
        return mean([span_seconds(s.compute) for s in self.steady])

    @cached_property
    def callback(self) -> float:
        return mean([span_seconds(s.callback) for s in self.steady])

    @cached_property
    def work(self) -> float:
        """Seconds of a step on the worker: compute and callback."""
        return self.compute + self.callback

    @cached_property
    def other_jobs(self) -> Span:
        """Seconds that other jobs of the same loop take between two steps, for loading and for work. Neither is
        attributed to this job.
        """
        a, b = [mean([s.other_jobs[i] for s in self.steady]) for i in (0, 1)]
        return (a, b) if a + b >= 0.02 * (self.load + self.work) else (0.0, 0.0)

    @cached_property
    def sequential_seconds(self) -> float:
        """Seconds of a step if nothing overlaps."""
        return self.load + self.work + sum(self.other_jobs)

    @cached_property
    def overlapped_seconds(self) -> float:
        """Seconds of a step if loop and worker never wait for each other: the time of the busier one."""
        return max(self.load + self.other_jobs[0], self.work + self.other_jobs[1])

    @cached_property
    def step(self) -> float:
        """Seconds from the end of a step to the end of the next, without pauses."""
        ends = [s.end for s in self.ended]
        if len(ends) > 1:
            return (ends[-1] - ends[0] - sum(self.pauses)) / (len(ends) - 1)
        return max(self.sequential_seconds, 0.0)

    @cached_property
    def pauses(self) -> tuple[float, ...]:
        """Seconds of pause before each step that has ended."""
        flying = sorted([(s.queued[0], s.end) for s in self.ended if s.queued])
        first, last = (self.ended[0].end, self.ended[-1].end) if self.ended else (0.0, 0.0)
        pauses = []
        for s in self.ended:
            idle = 0.0
            for a, b in s.waits if not any(s.other_jobs) else ():  # a loop with several jobs also waits for the others
                a, b = max(a, first), min(b, last)
                room = s.queued is not None and b >= s.queued[0]  # True for back-pressure
                if b - a > MIN_PAUSE and not room:
                    free = b - a - covered_seconds(flying, a, b)
                    idle += free if free > MIN_PAUSE else 0.0
            pauses.append(idle)
        return tuple(pauses)

    @cached_property
    def best(self) -> float:
        """Speedup of async over sync at best, with one loader; see `formula_text`."""
        return self.sequential_seconds / max(self.overlapped_seconds, 1e-12)

    @cached_property
    def overlap(self) -> float:
        """Seconds of loading and computing per second: 1 if they alternate, 2 if both are always busy."""
        return self.sequential_seconds / max(self.step, 1e-12)

    @cached_property
    def mode(self) -> str:
        """ "sync" if the caller mostly had the result of a step before it submitted the next, else "async"; "" for a
        single step. Waiting because the queue is full is async.
        """
        waited = [
            before.got is not None and s.queued is not None and before.got <= s.queued[0]
            for before, s in zip(self.steps, self.steps[1:])
        ]
        return "" if not waited else "sync" if 2 * sum(waited) > len(waited) else "async"

    @cached_property
    def shown(self) -> tuple[StepTimes, ...]:
        """The steps that are drawn: the last ones."""
        steps = self.steps[-(MAX_STEPS if self.asked else DEFAULT_STEPS) :]
        paused = {s.number for s, seconds in zip(self.ended, self.pauses) if seconds}
        after = next((i for i in range(len(steps) - 1, 0, -1) if steps[i].number in paused), 0)
        return drop_early_waits(
            steps[after:] if len(steps) - after > 1 else steps
        )  # a pause would dwarf all other bars

    @cached_property
    def title(self) -> str:
        name = cut(clean(self.name), 40)
        return f"{name}, {self.mode}" if self.mode else name

    @cached_property
    def left_out(self) -> str:
        """The part that the picture does not show, in words."""
        n, all_ = len(self.shown), len(self.steps)
        return f"the last {n} of {all_:,} steps are drawn, the numbers are of all" if n < all_ else ""


def drop_early_waits(steps: tuple[StepTimes, ...]) -> tuple[StepTimes, ...]:
    """Remove waits before the first loader: they belong to a step that is not drawn."""
    if not steps or not steps[0].loads:
        return steps
    since = steps[0].loads[-1][0]
    first = replace(
        steps[0],
        loads=tuple([x for x in steps[0].loads if x[0] >= since]),
        waits=tuple([x for x in steps[0].waits if x[0] >= since]),
    )
    return (first, *steps[1:])


def covered_seconds(spans: list[Span], a: float, b: float) -> float:
    """Seconds between a and b that are covered by the spans, which are sorted."""
    seconds, at = 0.0, a
    for start, stop in spans:
        if stop > at and start < b:
            seconds += min(stop, b) - max(start, at)
            at = min(stop, b)
    return seconds


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def trim_first_load(steps: list[StepTimes]) -> list[StepTimes]:
    """Cut the first loader bar to the longest other bar: time before the loop is not loading."""
    if len(steps) < 2:
        return steps
    longest = max([s.load for s in steps[1:]] + [span_seconds(s.compute) for s in steps] + [1e-4])
    first = steps[0]
    if first.load <= longest or not first.loads:
        return steps
    since = first.loads[-1][1] - longest
    keep = [tuple([(max(a, since), b) for a, b in spans if b > since]) for spans in (first.loads, first.waits)]
    return [replace(first, loads=keep[0], waits=keep[1]), *steps[1:]]


def bars(steps: tuple[StepTimes, ...]) -> list[Bar]:
    """The bars of a picture; steps that wait in the queue at the same time are in different rows."""
    drawn: list[Bar] = []
    queued: list[Bar] = []
    free: list[float] = []  # when each row of the queue becomes free
    for s in steps:
        drawn += [Bar(0, 0, 1, a, b, s.number, "busy") for a, b in s.loads if b > a]
        drawn += [Bar(0, 0, 1, a, b, s.number, "wait") for a, b in s.waits if b > a]
        if s.queued:
            row = next((i for i, end in enumerate(free) if end <= s.queued[0]), len(free))
            free[row : row + 1] = [s.queued[1]]
            queued.append(Bar(1, row, 1, *s.queued, s.number, "busy"))
        if s.compute:
            drawn.append(Bar(2, 0, 1, *s.compute, s.number, "failed" if s.failed else "busy"))
        if s.callback:
            drawn.append(Bar(3, 0, 1, *s.callback, s.number, "busy"))
        if s.gpu:
            drawn.append(Bar(4, 0, 1, *s.gpu, s.number, "busy"))
    return drawn + [bar._replace(rows=len(free)) for bar in queued]


def bars_since(steps: tuple[StepTimes, ...], start: float) -> list[Bar]:
    """The bars of a picture that begins at `start`, with the true numbers of the steps."""
    return [bar._replace(start=max(bar.start, start)) for bar in bars(steps) if bar.stop > start]


def renumbered(steps: tuple[StepTimes, ...]) -> tuple[StepTimes, ...]:
    """Number the steps from 1, as a reader counts bars; `step_range` gives their true numbers."""
    return tuple([replace(s, number=i) for i, s in enumerate(steps, 1)])


def time_range(drawn: list[Bar]) -> Span:
    """Start and end of a picture in seconds."""
    return (min([b.start for b in drawn]), max([b.stop for b in drawn])) if drawn else (0.0, 1.0)


# ---- words ---------------------------------------------------------------------------------------------------------


def ms(seconds: float) -> str:
    """Format a duration: milliseconds with two or three digits, seconds from 10 s upwards.

    >>> ms(0.00412), ms(0.0846), ms(12.3)
    ('4.1 ms', '85 ms', '12.3 s')
    """
    x = seconds * 1e3
    return (
        f"{seconds:.1f} s"
        if x >= 10_000
        else f"{x:.0f} ms"
        if x >= 20
        else f"{x:.1f} ms"
        if x >= 0.1
        else f"{x:.2f} ms"
    )


Term = tuple[str, float]  # an activity and its seconds


def step_terms(record: TimelineRecord) -> tuple[list[Term], list[Term]]:
    """The parts of a step on the loop's thread, and on the worker; invisibly short ones are left out."""
    loop, worker = [("load", record.load)], [("compute", record.compute), ("callback", record.callback)]
    if record.callback < 0.02 * record.compute or not record.callback:
        worker = [("compute", record.work)]
    loading, working = record.other_jobs
    loop += [("load others", loading)] if loading >= 0.02 * record.sequential_seconds and loading else []
    worker += [("other jobs", working)] if working else []
    return loop, worker


def formula_text(record: TimelineRecord) -> str:
    """`(load + compute) / max(load, compute) = (4.0 + 4.1) / 4.1 = 1.97`, with callback and other jobs if there are
    any.
    """
    loop, worker = step_terms(record)
    digits = 2 if record.overlapped_seconds < 1e-3 else 1
    side = [" + ".join([name for name, _ in of]) for of in (loop, worker)]
    numbers = " + ".join([f"{seconds * 1e3:.{digits}f}" for _, seconds in loop + worker])
    busiest = f"{record.overlapped_seconds * 1e3:.{digits}f}"
    return f"({side[0]} + {side[1]}) / max({side[0]}, {side[1]}) = ({numbers}) / {busiest} = {record.best:.2f}"


def durations_text(record: TimelineRecord) -> str:
    """Durations of the parts: `load 4.0 ms, compute 4.1 ms, callback 0.1 ms; a step every 4.5 ms`."""
    loop, worker = step_terms(record)
    return ", ".join([f"{name} {ms(seconds)}" for name, seconds in loop + worker]) + f"; a step every {ms(record.step)}"


def remarks_text(record: TimelineRecord) -> str:
    """Sentences about failed steps, time of other jobs, and pauses; empty if there are none."""
    took, paused = sum(record.other_jobs), sum(record.pauses)
    failed = [step.number for step in record.steps if step.failed]
    sentences = []
    if took:
        sentences.append(
            f"Other jobs of the same loop take {ms(took)} between two steps: neither loading nor computing of this job."
        )
    if failed:  # a failed step may be too short to be seen in red
        steps = f"step {failed[0]}" if len(failed) == 1 else f"{len(failed)} steps, step {failed[0]} first"
        sentences.insert(0, f"Failed of {record.title}: {steps}.")
    return " ".join(sentences + ([f"{paused:.1f} s of pauses are left out."] if paused else []))


def wait_legend(steps: tuple[StepTimes, ...], seconds: float) -> str:
    """Legend of the waits in a picture of this many seconds, if one is long enough to be visible."""
    return (
        "; dashed: the loop waits" if any([b - a > MIN_WAIT_SHARE * seconds for s in steps for a, b in s.waits]) else ""
    )


def gain_share(gain: float, best: float) -> str:
    """The share of the possible gain that was reached, if there is any."""
    if best < 1.15 or gain <= 1:
        return ""
    if gain > EXCESS_FACTOR * best:
        return f", more than the {best:.2f} of the formula"
    reached = 100 * (gain - 1) / (best - 1)
    return f", {reached:.0f} % of the possible gain" if reached < 99.5 else ", all of the possible gain"


def verdict(record: TimelineRecord) -> str:
    """Verdict on one timeline."""
    if not record.ended:
        return "no step has ended yet"
    if record.mode == "sync":
        if record.best >= 1.15 and record.step < 1.1 * record.overlapped_seconds:
            return (
                "The loop asks for the result of every step, but does its loading meanwhile: this is as fast as "
                "async can be."
            )
        all_ = ", with all jobs of the loop async" if any(record.other_jobs) else ""
        return f"The loop waits for every step. Async could be {record.best:.2f} times as fast at best{all_}."
    if record.mode == "async":
        if slowest(record) == "callback":
            return (
                "The callback is the slowest: it sets the pace, as it runs on the worker's thread, after the "
                "computing. "
                "A shorter callback makes the step shorter."
            )
        if small_gain(record):
            return small_gain(record)
        if slowest(record) in PACE_SENTENCES:
            return PACE_SENTENCES[slowest(record)]
        much = f"Loader and worker together do {record.overlap:.2f} seconds of work in each second."
        return (
            f"{much} What was gained over sync? Compare with a sync loop: bars get longer where two share a core or "
            "the GIL."
        )
    return "One step alone does not show who waits for whom."


PACE_SENTENCES = {
    "load": "Loading is the slowest: it sets the pace, and computing is hidden behind it.",
    "compute": "Computing is the slowest: it sets the pace, and loading is hidden behind it.",
    "other jobs": "The other jobs of the loop are the slowest: they set the pace.",
}


def slowest(record: TimelineRecord) -> str:
    """The longest activity on the busier of loop and worker, if that one is hardly ever idle; else ""."""
    if record.step > 1.15 * record.overlapped_seconds:
        return ""
    loop, worker = step_terms(record)
    busier = max(loop, worker, key=lambda of: sum([seconds for _, seconds in of]))
    return max(busier, key=lambda term: term[1])[0]


def small_gain(record: TimelineRecord) -> str:
    """Explain why async can gain little or nothing."""
    if record.best >= 1.15 or any(record.other_jobs):
        return ""
    if record.load < record.work:
        percent = 100 * record.load / max(record.load + record.work, 1e-12)
        most = 100 * (record.best - 1)
        return (
            f"Loading is only {percent:.0f} % of a step, so there is little to hide: async can win {most:.0f} % "
            "at most."
        )
    percent = 100 * record.work / max(record.load + record.work, 1e-12)
    return (
        f"Computing is only {percent:.0f} % of a step: the loader sets the pace. Several loaders help, async "
        "alone does not."
    )


@dataclass(frozen=True, slots=True)
class TimelinePair:
    """Two timelines on one scale; a sync one is first."""

    first: TimelineRecord
    second: TimelineRecord

    @property
    def shown(self) -> tuple[tuple[StepTimes, ...], tuple[StepTimes, ...]]:
        """The same number of steps from each."""
        a, b = self.first.shown, self.second.shown
        n = min(len(a), len(b))
        return drop_early_waits(a[-n:]), drop_early_waits(b[-n:])

    @property
    def gain(self) -> float:
        """Measured speedup: a step of the first over a step of the second."""
        return self.first.step / max(self.second.step, 1e-12)

    @property
    def slower(self) -> tuple[float, float]:
        """Factors by which loading and computing take longer in the second."""
        a, b = self.first, self.second
        return b.load / max(a.load, 1e-12), b.work / max(a.work, 1e-12)

    @property
    def left_out(self) -> str:
        n, a, b = len(self.shown[0]), len(self.first.steps), len(self.second.steps)
        return f"the last {n} steps of {a:,} and {b:,} are drawn, the numbers are of all" if n < max(a, b) else ""


def ordered_pair(a: TimelineRecord, b: TimelineRecord) -> TimelinePair:
    """Order two timelines: sync first, otherwise as given."""
    return TimelinePair(b, a) if (a.mode, b.mode) == ("async", "sync") else TimelinePair(a, b)


def pair_verdict(record: TimelinePair) -> str:
    """Explain in one or two sentences why the second is faster, or why it is not."""
    a, b = record.first, record.second
    if (a.mode, b.mode) != ("sync", "async"):
        return "Two runs of the same kind: the ratio says how different they are, not what async wins."
    if small_gain(a):
        return small_gain(a)
    reached = (record.gain - 1) / (a.best - 1)
    load, work = record.slower
    if reached < 0.7:
        if b.cores == 1:
            return (
                "There is only one core: loading and computing cannot run at the same time, unless the loader "
                "only waits."
            )
        if max(load, work) > 1.2:
            return (
                f"Side by side, loading takes {load:.1f} times and computing {work:.1f} times as long as in sync: "
                "they share something. "
                f"A loader of Python's own lines holds the GIL; or none of the {b.cores} cores is "
                "free."
            )
        return (
            "Bars are as long as in sync, yet there are gaps: batches that take unequally long, or a machine that "
            "does something else."
        )
    if slowest(b) == "callback":
        return (
            "The callback is the slowest: it sets the pace. The callback runs on the worker too: a shorter one "
            "makes the step shorter."
        )
    if b.callback > 0.5 * b.compute:
        return "Loading is hidden, but the callback runs on the worker too: a short one makes the step shorter."
    hidden, pace = ("Loading", "computing") if a.load <= a.work else ("Computing", "loading")
    return f"{hidden} is hidden behind {pace}: {pace} sets the pace.{excess_reason(record)}"


def excess_reason(record: TimelinePair) -> str:
    """Explain why the gain exceeds the formula, which counts only loading and work of sync; empty if it does not."""
    a, b = record.first, record.second
    if record.gain <= EXCESS_FACTOR * a.best:
        return ""
    idle = a.step - a.sequential_seconds
    why = [f"in sync {ms(idle)} of each step go by between loading and computing"] if idle > 0.005 * a.step else []
    for name, one, other in (("loading", a.load, b.load), ("computing", a.work, b.work)):
        why += [f"{name} took {ms(other)} instead of {ms(one)}"] if other < 0.995 * one else []
    return (
        f" More than {a.best:.2f} times, as {' and '.join(why)}; the formula counts loading and computing of sync."
        if why
        else ""
    )


def measured_text(record: TimelinePair) -> str:
    """Measured gain: `a step every 8.4 ms / 4.6 ms = 1.83 times as fast, 89 % of the possible gain`."""
    gain = record.gain
    return (
        f"a step every {ms(record.first.step)} / {ms(record.second.step)} = {gain:.2f} times as "
        f"fast{gain_share(gain, record.first.best)}"
    )


def gain_so_far(names: tuple[str, str], steps: tuple[float, float], load: float, work: float, formula: bool) -> str:
    """Gain of a run over another that runs beside it: `async is 1.62 times as fast so far; the formula promises 1.71`.

    steps: seconds of a step of both.  load, work: those of the first.  formula: True if the first waits for each step
    and the second does not.
    """
    said = f"{names[1]} is {steps[0] / max(steps[1], 1e-12):.2f} times as fast as {names[0]} so far"
    if not formula:
        return said
    best = (load + work) / max(load, work, 1e-12)
    return f"{said}; the formula promises {best:.2f} (load {ms(load)}, compute {ms(work)})"


def steps_text(n: int) -> str:
    return f"{n:,} step{'s' * (n != 1)}"


def step_range(steps: tuple[StepTimes, ...]) -> str:
    """`8 steps` if they start at the first, else `steps 47 to 54`."""
    n = len(steps)
    if not n or [s.number for s in steps] == list(range(1, n + 1)):
        return steps_text(n)
    first, last = steps[0].number, steps[-1].number
    if n == 1:
        return f"step {first:,}"
    return (
        f"steps {first:,} to {last:,}" if last - first == n - 1 else f"{steps_text(n)}, number {first:,} to {last:,},"
    )
