"""Ops that draw random numbers: refused, since another runtime would draw others. Read next: `../model.py`."""

from __future__ import annotations

from ..builder import form


@form("dropout")
def _(b, node, *inputs):
    b.refuse(node, "draws random numbers at each call", "model.eval(), in which dropout passes everything")


@form("uniform", "normal", "randint", "randperm", "bernoulli", "multinomial", "poisson", "binomial")
def _(b, node, *inputs):
    b.refuse(node, "draws random numbers at each call", "give the random numbers to the model as an input")
