"""09.4 fair_race: how many times slower is one function than another?"""

import statistics
import time
import timeit
import types

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "09.4", "fair_race", kind="measure", level="core", answer="ratio", tolerance=(1e-6, 0.05),
    question="How do you measure fairly which of two functions is slower?",
    hint="Call each once without looking at the clock. Then take turns, and keep the middle result of the rounds.",
    fact="A ratio of medians, measured in turns, is reliable even on a busy machine on which single times differ by "
         "half. The shortest time of each is fair too: a disturbance only makes a time longer.",
    sibling="Two bakers are timed. On the first day each one heats the oven: that day does not count. They bake on "
            "the same days, since the weather changes. One day the phone rings for an hour: that changes the mean, "
            "but not the *middle* day of each baker.",
)


@exercise.solution
def ratio(f, g, rounds=7):
    # the first call of each may compile: it is not timed
    f(), g()
    times = {f: [], g: []}
    # in turns, so that both meet the same machine
    for _ in range(rounds):
        for function in (f, g):
            start = time.perf_counter()
            function()
            times[function].append(time.perf_counter() - start)
    # one hiccup does not move the median
    return statistics.median(times[g]) / statistics.median(times[f])


@exercise.also_right
def ratio(f, g, rounds=7):
    def seconds(function):
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    seconds(f), seconds(g)
    pairs = [(seconds(f), seconds(g)) for i in range(rounds)]
    one, other = zip(*pairs)
    return sorted(other)[rounds // 2] / sorted(one)[rounds // 2]


@exercise.also_right
def ratio(f, g, rounds=7):
    g()
    f()
    each = []
    for i in range(rounds):
        begin = time.perf_counter()
        g()
        middle = time.perf_counter()
        f()
        end = time.perf_counter()
        each.append((middle - begin) / (end - middle))
    return statistics.median(each)


@exercise.also_right
def ratio(f, g, rounds=7):
    from timeit import timeit

    f(), g()
    pairs = [(timeit(f, number=1), timeit(g, number=1)) for i in range(rounds)]
    one, other = zip(*pairs)
    return min(other) / min(one)


@exercise.also_right
def ratio(f, g, rounds=7):
    from time import perf_counter_ns as clock

    f(), g()
    times = {f: [], g: []}
    for function in [f, g] * rounds:
        start = clock()
        function()
        times[function] += [clock() - start]
    return statistics.median(times[g]) / statistics.median(times[f])


@exercise.wrong("one call each",
                "You call each once: the first call compiles, and a single time depends on chance.",
                "Call both once untimed, then time several rounds.")
def ratio(f, g, rounds=7):
    a = time.perf_counter()
    f()
    b = time.perf_counter()
    g()
    c = time.perf_counter()
    return (c - b) / (b - a)


@exercise.wrong("one after the other",
                "You time all of f, then all of g: the machine changed meanwhile. Take turns.",
                "In each round call f, then g.")
def ratio(f, g, rounds=7):
    medians = []
    f(), g()
    for function in (f, g):
        times = []
        for i in range(rounds):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return medians[1] / medians[0]


@exercise.wrong("mean",
                "One hiccup moved your result. The mean of 1, 1 and 100 is 34; what is their middle value?",
                "`statistics.median` does not see the outlier.")
def ratio(f, g, rounds=7):
    f(), g()
    one = other = 0.0
    for i in range(rounds):
        a = time.perf_counter()
        f()
        b = time.perf_counter()
        g()
        one, other = one + b - a, other + time.perf_counter() - b
    return other / one


@exercise.wrong("upside down",
                "The answer is how many times slower g is: above 1 if g takes longer.",
                "Divide the time of g by that of f.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = [], []
    for i in range(rounds):
        a = time.perf_counter()
        f()
        b = time.perf_counter()
        g()
        c = time.perf_counter()
        one.append(b - a), other.append(c - b)
    return statistics.median(one) / statistics.median(other)


@exercise.wrong("first call timed",
                "The first call compiles, and you timed it. Call each function once before the clock starts.",
                "Call each before the loop, without a clock.")
def ratio(f, g, rounds=7):
    one, other = [], []
    for i in range(rounds):
        a = time.perf_counter()
        f()
        b = time.perf_counter()
        g()
        c = time.perf_counter()
        one.append(b - a), other.append(c - b)
    return statistics.median(other) / statistics.median(one)


@exercise.wrong("difference",
                "That is by how many *seconds* g is slower. The answer is how many *times*.",
                "Divide; do not subtract.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = [], []
    for i in range(rounds):
        a = time.perf_counter()
        f()
        b = time.perf_counter()
        g()
        c = time.perf_counter()
        one.append(b - a), other.append(c - b)
    return statistics.median(other) - statistics.median(one)


def timed(f, g, rounds):
    """The times of f and g, in turns."""
    one, other = [], []
    for i in range(rounds):
        a = time.perf_counter()
        f()
        b = time.perf_counter()
        g()
        c = time.perf_counter()
        one.append(b - a), other.append(c - b)
    return one, other


@exercise.wrong("a single round",
                "You measure one round, so one hiccup decides. How many rounds are asked for?",
                "`for _ in range(rounds)`, and then the median of their times.")
def ratio(f, g, rounds=7):
    f(), g()
    (one,), (other,) = timed(f, g, 1)
    return other / one


@exercise.wrong("always 7 rounds",
                "Your number of rounds is fixed. How does the caller ask for more of them?",
                "The number is given as `rounds`.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = timed(f, g, 7)
    return statistics.median(other) / statistics.median(one)


@exercise.wrong("middle of an unsorted list",
                "The entry in the middle of your list is just the one that was measured in the middle of the time.",
                "The median is the middle of the *sorted* list.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = timed(f, g, rounds)
    return other[rounds // 2] / one[rounds // 2]


@exercise.wrong("not called",
                "No time passes between your two looks at the clock. Are f and g called?",
                "A function runs only with its parentheses: `f()`.")
def ratio(f, g, rounds=7):
    one, other = timed(lambda: f, lambda: g, rounds)
    return statistics.median(other) / statistics.median(one)


@exercise.wrong("one start for both",
                "The time of g contains that of f: both begin at the same look at the clock.",
                "Look at the clock again before g.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = timed(f, g, rounds)
    return statistics.median(a + b for a, b in zip(one, other)) / statistics.median(one)


@exercise.wrong("start before the loop",
                "Your times grow from round to round: all of them begin before the loop. When does a call begin?",
                "Look at the clock directly before each call.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other, start = [], [], time.perf_counter()
    for i in range(rounds):
        f()
        one.append(time.perf_counter() - start)
        g()
        other.append(time.perf_counter() - start)
    return statistics.median(other) / statistics.median(one)


@exercise.wrong("looks at the clock",
                "Those are looks at the clock, not times. How long did the call take?",
                "The look after the call minus the look before it.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = [], []
    for i in range(rounds):
        f()
        one.append(time.perf_counter())
        g()
        other.append(time.perf_counter())
    return statistics.median(other) / statistics.median(one)


@exercise.wrong("g not warmed up",
                "f is called once before the clock starts, g is not: its first call compiles, too.",
                "Call both once, without a clock.")
def ratio(f, g, rounds=7):
    f()
    one, other = timed(f, g, rounds)
    return statistics.median(other) / statistics.median(one)


@exercise.wrong("time of f",
                "That is the time of f, in seconds. What do you divide by it?",
                "Measure g as well: how many times longer does it take?")
def ratio(f, g, rounds=7):
    f(), g()
    return statistics.median(timed(f, lambda: None, rounds)[0])


@exercise.wrong("all rounds at once",
                "You time all rounds together: one hiccup is in the sum, and the machine changes between f and g.",
                "One time for each call, in turns; then the median.")
def ratio(f, g, rounds=7):
    f(), g()
    looks = [time.perf_counter()]
    for function in (f, g):
        for i in range(rounds):
            function()
        looks.append(time.perf_counter())
    return (looks[2] - looks[1]) / (looks[1] - looks[0])


@exercise.wrong("the other sign",
                "Only the sign is wrong: one of your times is below 0. Which look at the clock comes first?",
                "The later look minus the earlier one.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = timed(f, g, rounds)
    return -statistics.median(other) / statistics.median(one)


@exercise.wrong("percent",
                "That is a percentage. The answer is how many *times*: 2, not 200.",
                "Leave out the 100.")
def ratio(f, g, rounds=7):
    f(), g()
    one, other = timed(f, g, rounds)
    return 100 * statistics.median(other) / statistics.median(one)


class Clock:
    """A clock that the functions themselves move, so that a race has the same times on every machine.

    first: extra time of the first call. drift: share by which each call slows the machine down.
    slow: index of a call -> its extra time, an outlier.
    """

    def __init__(self, first=0.0, drift=0.0, slow=None):
        self.now, self.calls = 100.0, 0
        self.first, self.drift, self.slow = first, drift, slow or {}
        self.seen = set()

    def function(self, seconds):
        def call():
            number, self.calls = self.calls, self.calls + 1
            extra = 0.0 if call in self.seen else self.first
            self.seen.add(call)
            self.now += seconds * (1 + self.drift * number) + extra + self.slow.get(number, 0.0)

        return call


CLOCKS = "perf_counter", "time", "monotonic", "process_time"


def race(ratio, one, other, rounds=7, **clock):
    """Run `ratio` with a simulated clock. It replaces every clock of `time`, even if it was imported by name or
    through timeit."""
    mine = Clock(**clock)
    ours = {getattr(time, name): lambda: mine.now for name in CLOCKS}
    ours |= {getattr(time, f"{name}_ns"): lambda: round(1e9 * mine.now) for name in CLOCKS}
    places = [vars(time), vars(timeit), getattr(ratio, "__globals__", {})]
    before = [(place, name, value) for place in places for name, value in place.items()
              if isinstance(value, types.BuiltinFunctionType) and value in ours]
    timers = [(one, one.__defaults__) for one in (timeit.timeit, timeit.repeat, timeit.Timer.__init__)]
    try:
        for place, name, value in before:
            place[name] = ours[value]
        for function, defaults in timers:
            function.__defaults__ = tuple(ours.get(one, one) if callable(one) else one for one in defaults)
        return ratio(mine.function(one), mine.function(other), rounds)
    finally:
        for place, name, value in before:
            place[name] = value
        for function, defaults in timers:
            function.__defaults__ = defaults


def calls_added(ratio, fewer, more):
    """Number of calls of f and of g by which more rounds differ from fewer. None: the default number."""
    def count(*rounds):
        called = []
        ratio(lambda: called.append("f"), lambda: called.append("g"), *rounds)
        return np.array([called.count("f"), called.count("g")])

    return (count(more) - (count() if fewer is None else count(fewer))).tolist()


@exercise.cases
def cases(rng):
    yield case(0.01, 0.02, run=race, text="f takes 10 ms, g takes 20 ms")
    yield case(0.03, 0.01, run=race, text="f takes 30 ms, g takes 10 ms")
    yield case(0.01, 0.02, run=race, first=0.5, text="f 10 ms, g 20 ms; the first call of each takes 0.5 s more")
    yield case(0.01, 0.02, run=race, slow={8: 1.0}, text="f 10 ms, g 20 ms; one call in the middle takes 1 s more")
    yield case(0.01, 0.02, run=race, slow={2: 1.0}, text="f 10 ms, g 20 ms; the third call takes 1 s more")
    yield case(0.01, 0.02, run=race, drift=0.04, text="f 10 ms, g 20 ms; each call slows the machine down by 4 %",
               expected=2.0)
    yield case(0.02, 0.02, 3, run=race, text="f and g take 20 ms, 3 rounds")
    yield case(0.01, 0.02, 2, run=race, first=0.03, text="f 10 ms, g 20 ms, 2 rounds; the first call of each takes "
                                                         "30 ms more")
    yield case(5, 9, run=calls_added, expected=[4, 4], text="9 rounds instead of 5: how many more calls of f, and of g")
    yield case(None, 9, run=calls_added, expected=[2, 2], hidden=True)
    a, b = float(rng.uniform(0.01, 0.02)), float(rng.uniform(0.03, 0.05))
    yield case(a, b, run=race, first=0.2, slow={9: 2.0}, hidden=True)
    yield case(b, a, 5, run=race, first=0.1, slow={6: 1.0}, hidden=True)
