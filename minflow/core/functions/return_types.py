"""The named results of functions that return two tensors, as PyTorch names them."""

from __future__ import annotations

from collections import namedtuple

max = namedtuple("max", ["values", "indices"])
min = namedtuple("min", ["values", "indices"])
median = namedtuple("median", ["values", "indices"])
sort = namedtuple("sort", ["values", "indices"])
topk = namedtuple("topk", ["values", "indices"])
frexp = namedtuple("frexp", ["mantissa", "exponent"])
