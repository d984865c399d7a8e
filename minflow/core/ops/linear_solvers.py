"""Inverses, linear systems, determinants and exponentials of (stacks of) matrices, with their gradients.

Rules follow Giles 2008 ("Collected matrix derivative results"). Shape rules and LAPACK errors that factorizations share
are here too. Read next: `factorization.py`.
"""

from __future__ import annotations

from ..backend import namespace
from ..base.errors import DTypeError, LinAlgError, ShapeError
from ..host.blas import on_all_threads, product
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..source_location import fail, need
from ..spec import Spec, float32, float64, spec_of
from .checks import first_wrong
from .elementwise import mul
from .examples import Maker, case, floats
from .linalg import matmul
from .rules import broadcast_shape, mark
from .shape import cat, permute


def regular_matrices(*shape: int, dtype: str = "float64") -> Maker:
    """Matrices that are far from singular."""
    return Maker(shape, dtype=dtype, layout=lambda a: a + 5 * namespace().eye(*shape[-2:], dtype=dtype))


SQUARE_EXAMPLES = [
    regular_matrices(3, 3),
    regular_matrices(2, 4, 4),
    regular_matrices(2, 2, dtype="float32"),
    regular_matrices(1, 1),
    floats(0, 0),
    floats(0, 2, 2),
]


# ---- rules and checks ------------------------------------------------------------------------------------------------


def check_matrices(op: str, x: Spec, name: str = "a") -> Spec:
    """Refuse anything but stacks of float matrices."""
    if x.ndim < 2:
        raise ShapeError(
            f"{op}: {mark(name)} must have at least 2 axes, got {x.ndim}",
            hint=f"{mark(name)}.reshape(1, -1) is a matrix of one row",
        )
    if x.dtype not in (float32, float64):
        raise DTypeError(
            f"{op}: matrices must be float32 or float64, got {x.dtype.name}", hint=f"{mark(name)}.float() first"
        )
    return x


def check_square(op: str, x: Spec, name: str = "a") -> Spec:
    """Refuse anything but stacks of square float matrices."""
    check_matrices(op, x, name)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{op}: the matrix must be square, got {x.shape[-2]} rows and {x.shape[-1]} columns",
            hint="linalg.pinv and linalg.lstsq take any matrix",
        )
    return x


def solution_shape(op: str, a: Spec, b: Spec) -> Spec:
    """The shape of x with a @ x = b."""
    check_square(op, a)
    check_matrices(op, b, "b")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{op}: {a.shape[-1]} unknowns (columns of {mark('a')}) and {b.shape[-2]} rows of {mark('b')}",
            hint="a needs one row and one column for each row of b",
        )
    return b.replace(shape=(*broadcast_shape(op, {"a": a.shape[:-2], "b": b.shape[:-2]}), *b.shape[-2:]))


def call_lapack(xp, op: str, what: str, hint: str, function, a, *others):
    """Call a LAPACK function; if it fails, raise an error with the index of the matrix. what: its problem."""
    if not a.size:  # LAPACK does not accept empty matrices; most NumPy functions return early for them
        with silent():
            return on_all_threads(function, a, *others)
    try:
        with silent():
            return on_all_threads(function, a, *others)
    except xp.linalg.LinAlgError:
        at, whole = "", a.reshape(-1, *a.shape[-2:])
        if a.ndim > 2:
            at = f" (matrix {next((k for k, m in enumerate(whole) if fails(xp, function, m, others)), 0)} of the stack)"
    fail(LinAlgError, f"{op}: the matrix {what}{at}", hint, a=spec_of(a))


def need_finite(xp, op: str, a) -> None:
    """Refuse infinity and NaN, with which LAPACK's iterations do not terminate."""
    if not xp.isfinite(a).all():
        wrong, at = first_wrong(xp, a, ~xp.isfinite(a), "a")
        fail(LinAlgError, f"{op}: the matrix has the element {wrong}{at}", "a.nan_to_num() first", a=spec_of(a))


def fails(xp, function, matrix, others) -> bool:
    try:
        function(matrix, *[b.reshape(-1, *b.shape[-2:])[0] for b in others])
        return False
    except xp.linalg.LinAlgError:
        return True


def transposed(x):
    """Transpose the matrices."""
    axes = tuple(range(x.spec.ndim))
    return permute(x, dims=(*axes[:-2], axes[-1], axes[-2]))


def dot(*xs):
    """The product of several matrices."""
    result, *others = xs
    for x in others:
        result = matmul(result, x, ta=False, tb=False)
    return result


# ---- solving ---------------------------------------------------------------------------------------------------------


SINGULAR_MESSAGE = "is singular: some row is a sum of multiples of others"
TAKE_PINV = "linalg.pinv and linalg.lstsq take such matrices; or add a small multiple of flow.eye(n)"

inverse = define(
    "inverse(a)",
    lambda a: check_square("inverse", a),
    lambda g, out: -dot(transposed(out), g, transposed(out)),
    autocast="float32",
    sharding="... . . -> ... . .",
    examples=SQUARE_EXAMPLES,
    doc="The inverse matrix.",
)


@kernel(inverse, on_host=True)
def _(xp, a):
    return call_lapack(xp, "inverse", SINGULAR_MESSAGE, TAKE_PINV, xp.linalg.inv, a)


solve = define(
    "solve(a, b)",
    lambda a, b: solution_shape("solve", a, b),
    {"a, b": lambda g, a, out: (lambda gb: (-matmul(gb, out, ta=False, tb=True), gb))(solve(transposed(a), g))},
    autocast="float32",
    sharding="... . ., ... . n -> ... . n",
    linear=("b",),
    examples=[
        case(regular_matrices(3, 3), floats(3, 2)),
        case(regular_matrices(2, 3, 3), floats(3, 1)),
        case(regular_matrices(3, 3), floats(2, 3, 4)),
        case(regular_matrices(2, 2, dtype="float32"), floats(2, 2, dtype="float32")),
        case(floats(0, 0), floats(0, 2)),
    ],
    doc="x with a @ x = b, by an LU factorization with pivoting.",
)


@kernel(solve, on_host=True)
def _(xp, a, b):
    return call_lapack(xp, "solve", SINGULAR_MESSAGE, TAKE_PINV, xp.linalg.solve, a, b)


def triangle(x, upper: bool, unit: bool):
    """The part of a gradient for the elements that solve_triangular reads."""
    return x.triu(int(unit)) if upper else x.tril(-int(unit))


solve_triangular = define(
    "solve_triangular(a, b; upper, unit)",
    lambda a, b, upper, unit: solution_shape("solve_triangular", a, b),
    {
        "a, b": lambda g, a, out, upper, unit: (
            lambda gb: (-triangle(matmul(gb, out, ta=False, tb=True), upper, unit), gb)
        )(solve_triangular(transposed(a), g, upper=not upper, unit=unit))
    },
    sharding="... . ., ... . n -> ... . n",
    linear=("b",),
    examples=[
        case(regular_matrices(3, 3), floats(3, 2), upper=False, unit=False),
        case(regular_matrices(2, 3, 3), floats(3, 1), upper=True, unit=False),
        case(floats(3, 3), floats(2, 3, 2), upper=True, unit=True),
        case(regular_matrices(2, 2, dtype="float32"), floats(2, 2, dtype="float32"), upper=False, unit=True),
        case(floats(0, 0), floats(0, 2), upper=True, unit=False),
    ],
    doc="x with a @ x = b, reading one triangle of a; unit: its diagonal counts as ones.",
)


@kernel(solve_triangular)
def _(xp, a, b, upper, unit):
    n = a.shape[-1]
    batch = xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = xp.array(xp.broadcast_to(b, (*batch, *b.shape[-2:])), order="C")
    with silent():
        for i in range(n - 1, -1, -1) if upper else range(n):  # substitution: each row needs the rows before it
            solved = slice(i + 1, n) if upper else slice(0, i)
            x[..., i : i + 1, :] -= product(xp, a[..., i : i + 1, solved], x[..., solved, :])
            if not unit:
                x[..., i, :] /= a[..., i, i, None]
    return x


def _pinv_gradient(g, a, out):
    across, down = transposed(out), transposed(g)
    outside = down - dot(a, out, down)  # for the columns of a
    beside = down - dot(down, out, a)  # for its rows
    return dot(outside, out, across) - dot(across, g, across) + dot(across, out, beside)


pinv = define(
    "pinv(a; rtol, atol)",
    lambda a, rtol, atol: check_matrices("pinv", a).replace(shape=(*a.shape[:-2], a.shape[-1], a.shape[-2])),
    _pinv_gradient,
    autocast="float32",
    sharding="... . . -> ... . .",
    examples=[
        case(regular_matrices(3, 3), rtol=1e-12, atol=0.0),
        case(floats(2, 4, 2), rtol=1e-12, atol=0.0),
        case(floats(2, 4), rtol=1e-12, atol=0.0),
        case(floats(3, 2, dtype="float32"), rtol=1e-6, atol=0.0),
        case(floats(0, 2), rtol=1e-12, atol=0.0),
    ],
    doc="The pseudo-inverse; singular values up to max(atol, rtol * the largest) count as 0. "
    "Its gradient: Golub & Pereyra 1973, for full rank.",
)


@kernel(pinv, on_host=True)
def _(xp, a, rtol, atol):
    if not a.size:
        return xp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    need_finite(xp, "pinv", a)
    u, s, v = call_lapack(
        xp,
        "pinv",
        "has singular values that did not converge",
        "check it for large numbers",
        lambda x: xp.linalg.svd(x, full_matrices=False),
        a,
    )
    keep = s > xp.maximum(atol, rtol * s.max(-1, keepdims=True))
    with silent():
        scaled = xp.where(keep, 1 / s, 0).astype(a.dtype)[..., None, :] * v.swapaxes(-1, -2)
        return product(xp, scaled, u.swapaxes(-1, -2))


# ---- determinants ----------------------------------------------------------------------------------------------------


def per_matrix(op: str, a: Spec) -> Spec:
    return check_square(op, a).replace(shape=a.shape[:-2])


det = define(
    "det(a)",
    lambda a: per_matrix("det", a),
    lambda g, a: mul(g.unsqueeze(-1).unsqueeze(-1), cofactors(a)),
    autocast="float32",
    sharding="... . . -> ...",
    examples=SQUARE_EXAMPLES,
    doc="The determinant: the factor by which the matrix scales volumes.",
)


@kernel(det, on_host=True)
def _(xp, a):
    with silent():
        return on_all_threads(xp.linalg.det, a)


def _cofactors_gradient(g, a, out):
    inverted = transposed(inverse(a))
    sizes = mul(g, inverted).sum((-2, -1), keepdim=True)
    return mul(sizes, out) - dot(out, transposed(g), inverted)


cofactors = define(
    "cofactors(a)",
    lambda a: check_square("cofactors", a),
    _cofactors_gradient,
    sharding="... . . -> ... . .",
    examples=SQUARE_EXAMPLES,
    doc="The gradient of the determinant, det(a) * inverse(a).T, also for singular matrices.",
)


@kernel(cofactors, on_host=True)
def _(xp, a):
    if not a.size:
        return a.copy()
    if not xp.isfinite(a).all():
        return xp.full_like(a, xp.nan)
    u, s, v = on_all_threads(xp.linalg.svd, a)
    others = xp.where(xp.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)  # the product of all s but one
    sign = on_all_threads(xp.linalg.det, u) * on_all_threads(xp.linalg.det, v)
    return sign[..., None, None] * product(xp, u * others[..., None, :], v)


slogdet = define(
    "slogdet(a) -> sign, logabsdet",
    lambda a: (per_matrix("slogdet", a),) * 2,
    lambda g, a: 0 * a if g[1] is None else mul(g[1].unsqueeze(-1).unsqueeze(-1), transposed(inverse(a))),
    autocast="float32",
    sharding="... . . -> ..., ...",
    examples=SQUARE_EXAMPLES,
    doc="The sign of the determinant, and the logarithm of its absolute value, which does not overflow.",
)


@kernel(slogdet, on_host=True)
def _(xp, a):
    with silent():
        sign, size = on_all_threads(xp.linalg.slogdet, a)
    return xp.asarray(sign, a.dtype), xp.asarray(size, a.dtype)


# ---- the exponential -------------------------------------------------------------------------------------------------


def _matrix_exp_gradient(g, a):
    n = a.spec.shape[-1]
    above = cat(transposed(a), g, dim=a.spec.ndim - 1)  # Higham 2008, equation 3.16
    below = cat(0 * g, transposed(a), dim=a.spec.ndim - 1)
    return matrix_exp(cat(above, below, dim=a.spec.ndim - 2))[..., :n, n:]


matrix_exp = define(
    "matrix_exp(a)",
    lambda a: check_square("matrix_exp", a),
    _matrix_exp_gradient,
    sharding="... . . -> ... . .",
    examples=[floats(3, 3), floats(2, 4, 4), floats(2, 2, dtype="float32"), floats(1, 1), floats(0, 0)],
    doc="The matrix exponential, I + a + a @ a / 2 + ... (Al-Mohy & Higham 2009, by SciPy).",
)


@kernel(matrix_exp, on_host=True)
def _(xp, a):
    if not a.size:
        return a.copy()
    if not xp.isfinite(a).all():
        return xp.full_like(a, xp.nan)
    return on_all_threads(need("scipy.linalg", "matrix_exp").expm, a).astype(a.dtype, copy=False)
