"""The named results of functions that return two tensors, as PyTorch names them."""

from __future__ import annotations

from collections import namedtuple

max = namedtuple("max", ["values", "indices"])
min = namedtuple("min", ["values", "indices"])
median = namedtuple("median", ["values", "indices"])
sort = namedtuple("sort", ["values", "indices"])
topk = namedtuple("topk", ["values", "indices"])
frexp = namedtuple("frexp", ["mantissa", "exponent"])
cummax = namedtuple("cummax", ["values", "indices"])
cummin = namedtuple("cummin", ["values", "indices"])
mode = namedtuple("mode", ["values", "indices"])
kthvalue = namedtuple("kthvalue", ["values", "indices"])
nanmedian = namedtuple("nanmedian", ["values", "indices"])
aminmax = namedtuple("aminmax", ["min", "max"])
histogram = namedtuple("histogram", ["hist", "bin_edges"])
