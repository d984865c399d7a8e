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
