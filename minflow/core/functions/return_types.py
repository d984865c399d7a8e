"""Named results of functions that return several tensors, with PyTorch's names.

Each namedtuple is created when it is first returned, because creating one is slow.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..tensor import Tensor

    class _Extremes(NamedTuple):
        values: Tensor
        indices: Tensor

    max = _Extremes
    min = _Extremes
    median = _Extremes
    sort = _Extremes
    topk = _Extremes
    cummax = _Extremes
    cummin = _Extremes
    mode = _Extremes
    kthvalue = _Extremes
    nanmedian = _Extremes

    class frexp(NamedTuple):
        mantissa: Tensor
        exponent: Tensor

    class aminmax(NamedTuple):
        min: Tensor
        max: Tensor

    class histogram(NamedTuple):
        hist: Tensor
        bin_edges: Tensor

    class slogdet(NamedTuple):
        sign: Tensor
        logabsdet: Tensor

    class qr(NamedTuple):
        Q: Tensor
        R: Tensor

    class eig(NamedTuple):
        eigenvalues: Tensor
        eigenvectors: Tensor

    eigh = eig

    class svd(NamedTuple):
        U: Tensor
        S: Tensor
        V: Tensor

    class linalg_svd(NamedTuple):
        U: Tensor
        S: Tensor
        Vh: Tensor

    class inv_ex(NamedTuple):
        inverse: Tensor
        info: Tensor

    class cholesky_ex(NamedTuple):
        L: Tensor
        info: Tensor

    class solve_ex(NamedTuple):
        result: Tensor
        info: Tensor

    class lu_factor(NamedTuple):
        LU: Tensor
        pivots: Tensor

    class lu_unpack(NamedTuple):
        P: Tensor
        L: Tensor
        U: Tensor

    class lstsq(NamedTuple):
        solution: Tensor
        residuals: Tensor
        rank: Tensor
        singular_values: Tensor

    class triangular_solve(NamedTuple):
        solution: Tensor
        cloned_coefficient: Tensor


FIELDS = {
    **dict.fromkeys("max min median sort topk cummax cummin mode kthvalue nanmedian".split(), "values indices"),
    "frexp": "mantissa exponent",
    "aminmax": "min max",
    "histogram": "hist bin_edges",
    "slogdet": "sign logabsdet",
    "qr": "Q R",
    "inv_ex": "inverse info",
    "cholesky_ex": "L info",
    "solve_ex": "result info",
    "eig": "eigenvalues eigenvectors",
    "eigh": "eigenvalues eigenvectors",
    "svd": "U S V",
    "linalg_svd": "U S Vh",
    "lu_factor": "LU pivots",
    "lu_unpack": "P L U",
    "lstsq": "solution residuals rank singular_values",
    "triangular_solve": "solution cloned_coefficient",
}


def __getattr__(name: str) -> Any:
    if name not in FIELDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kind = globals()[name] = namedtuple(name, FIELDS[name], module=__name__)
    return kind
