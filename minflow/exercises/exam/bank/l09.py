"""Variants of lesson 09."""

from ..variants import Change, vary

vary(
    "what_stays",
    "Nine operations are written down for the program below: one in each line, and two in the line of `a`, which fills "
    "a tensor and multiplies it. A graph leaves out results that are never read, computes constants once, and computes "
    "nothing twice. How many operations run at each call? Write `{answer} = ...`",
    [Change("left", "")],
    setup='print("""\n{drawn}\n""")',
)

vary(
    "fair_race",
    "Write `{answer}(f, g, rounds=7)`. Both are functions without arguments. `time.perf_counter()` gives seconds, and "
    "`statistics.median` the median of a list. The clock is simulated, so that every machine gives the same answer.",
    [
        Change("percent_longer", "Return how many percent longer `g` takes than `f`: 0 if they are equally fast, 100 "
               "if `g` takes twice as long.", result="100 * (({}) - 1)",
               undo=lambda answer: lambda *race, **rounds: answer(*race, **rounds) / 100 + 1),
        Change("times_as_fast", "Return how many times as long `f` takes as `g`.", result="1 / ({})",
               undo=lambda answer: lambda *race, **rounds: 1 / answer(*race, **rounds)),
    ],
)
