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
slogdet = namedtuple("slogdet", ["sign", "logabsdet"])
qr = namedtuple("qr", ["Q", "R"])
eig = namedtuple("eig", ["eigenvalues", "eigenvectors"])
eigh = namedtuple("eigh", ["eigenvalues", "eigenvectors"])
svd = namedtuple("svd", ["U", "S", "V"])
linalg_svd = namedtuple("linalg_svd", ["U", "S", "Vh"])
lu_factor = namedtuple("lu_factor", ["LU", "pivots"])
lu_unpack = namedtuple("lu_unpack", ["P", "L", "U"])
lstsq = namedtuple("lstsq", ["solution", "residuals", "rank", "singular_values"])
triangular_solve = namedtuple("triangular_solve", ["solution", "cloned_coefficient"])
