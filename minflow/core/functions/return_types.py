"""Named results of functions that return several tensors, with PyTorch's names.

Each namedtuple is created when it is first returned, because creating one is slow.
"""

from __future__ import annotations

from collections import namedtuple

FIELDS = {
    **dict.fromkeys("max min median sort topk cummax cummin mode kthvalue nanmedian".split(), "values indices"),
    "frexp": "mantissa exponent",
    "aminmax": "min max",
    "histogram": "hist bin_edges",
    "slogdet": "sign logabsdet",
    "qr": "Q R",
    "eig": "eigenvalues eigenvectors",
    "eigh": "eigenvalues eigenvectors",
    "svd": "U S V",
    "linalg_svd": "U S Vh",
    "lu_factor": "LU pivots",
    "lu_unpack": "P L U",
    "lstsq": "solution residuals rank singular_values",
    "triangular_solve": "solution cloned_coefficient",
}


def __getattr__(name: str) -> type:
    if name not in FIELDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kind = globals()[name] = namedtuple(name, FIELDS[name], module=__name__)
    return kind
