"""Ops without a form, each with an alternative. Ops that draw random numbers are refused because another runtime would
draw other numbers.
"""

from __future__ import annotations

from ..builder import form
from .norm import EVAL


@form("dropout")
def _(b, node, *inputs):
    b.refuse("draws random numbers: dropout in training mode", EVAL)


@form("uniform", "normal", "randint", "randperm", "bernoulli", "multinomial", "poisson", "binomial")
def _(b, node, *inputs):
    b.refuse("draws random numbers at each call", "give the random numbers to the model as an input")


@form("cumprod")
def _(b, node, x):
    b.newer("CumProd", 26, "x.log().cumsum(dim).exp() for positive numbers")
