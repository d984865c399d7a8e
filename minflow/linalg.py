"""Linear algebra (`flow.linalg`): names from `core/functions/matrices.py` and `core/functions/matrix_products.py`."""

from .core.base.errors import LinAlgError as LinAlgError
from .core.functions import diagonal as _diagonal, matmul as matmul, vander as _vander, vector_norm as vector_norm
from .core.functions.matrices import (
    cholesky as cholesky,
    cholesky_ex as cholesky_ex,
    det as det,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    inv_ex as inv_ex,
    inverse as _inverse,
    linalg_lu_solve as _lu_solve,
    linalg_svd as _svd,
    lstsq as lstsq,
    lu as lu,
    lu_factor as lu_factor,
    matrix_rank as matrix_rank,
    pinv as pinv,
    qr as qr,
    slogdet as slogdet,
    solve as solve,
    solve_ex as solve_ex,
    solve_triangular as solve_triangular,
    svdvals as svdvals,
)
from .core.functions.matrix_products import (
    cond as cond,
    linalg_cross as _cross,
    linalg_norm as _norm,
    matrix_exp as matrix_exp,
    matrix_norm as matrix_norm,
    matrix_power as matrix_power,
    multi_dot as multi_dot,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
    vecdot as vecdot,
)
from .core.messages.suggestions import name_hints as _name_hints

inv, svd, norm, cross, lu_solve = _inverse, _svd, _norm, _cross, _lu_solve


def diagonal(A, *, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Diagonal of the last two axes, as a view of the tensor."""
    return _diagonal(A, offset, dim1, dim2)


def vander(x, N: int | None = None):
    """Rows of increasing powers: out[..., i, j] = x[..., i] ** j for j from 0 to N - 1 (the length of x by default)."""
    return _vander(x, N, increasing=True)


__getattr__ = _name_hints("flow.linalg", globals())
