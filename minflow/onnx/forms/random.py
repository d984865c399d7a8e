"""Ops that draw random numbers are refused: another runtime would draw others. For dropout see `norm.py`."""

from __future__ import annotations

from ..builder import form


@form("uniform", "normal", "randint", "randperm", "bernoulli", "multinomial", "poisson", "binomial")
def _(b, node, *inputs):
    b.refuse(node, "draws random numbers at each call", "give the random numbers to the model as an input")
