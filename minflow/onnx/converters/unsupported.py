"""Unsupported ops, each with an alternative. Ops that draw random numbers are refused because another runtime would
draw other numbers.
"""

from __future__ import annotations

from ..builder import converter
from .norm import EVAL


@converter("dropout")
def _(b, node, *inputs):
    b.refuse("draws random numbers: dropout in training mode", EVAL)


@converter("uniform", "normal", "randint", "randperm", "bernoulli", "multinomial", "poisson", "binomial")
def _(b, node, *inputs):
    b.refuse("draws random numbers at each call", "give the random numbers to the model as an input")


@converter("cumprod")
def _(b, node, x):
    b.refuse_newer_opset("CumProd", 26, "x.log().cumsum(dim).exp() for positive numbers")
