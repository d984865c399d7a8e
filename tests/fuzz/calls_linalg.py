"""Arguments of matrix functions: usually solvable and invertible, sometimes not.

Read next: `calls.py`.
"""

from __future__ import annotations

import itertools

from .draw import Draw

REGULAR, DEFINITE, LOWER, UPPER, ANY = "regular", "definite", "lower", "upper", "any"


def matrix(d: Draw, kind: str = REGULAR, rows: int | None = None, columns: int | None = None, batch=None) -> str:
    """The text of a stack of matrices of one kind."""
    n = d.one(1, 2, 3, 0 if d.chance(0.1) else 2) if rows is None else rows
    m = n if columns is None else columns
    batch = d.one((), (), (2,)) if batch is None else batch
    dtype = d.dtype_of("float32", "float32", "float64")
    if kind == ANY:
        return str(d.tensor((*batch, n, m), dtype, profile="unit"))
    if d.chance(0.03):
        return str(d.tensor())
    x = d.tensor((*batch, n, m), dtype, profile="plain")
    if kind == DEFINITE:
        return f"({x} @ {x}.mT + 2 * L.eye({n}, dtype={x}.dtype))"
    whole = f"({x} + 4 * L.eye({n}, {m}, dtype={x}.dtype))"
    return whole if kind == REGULAR else f"{whole}.{'tril' if kind == LOWER else 'triu'}()"


def of(kind: str = REGULAR, **choices):
    def make(d: Draw):
        return [matrix(d, kind)], d.some(**choices)

    return make


def wide(**choices):
    """Matrices of any shape."""

    def make(d: Draw):
        return [matrix(d, REGULAR, d.one(1, 2, 3), d.one(1, 2, 3, 4))], d.some(**choices)

    return make


def equation(kind: str = REGULAR, swapped: bool = False, always=(), **choices):
    def make(d: Draw):
        n, batch = d.one(1, 2, 3), d.one((), (), (2,))
        a = matrix(d, kind, n, batch=batch)
        b = str(d.tensor((*batch, n, d.one(1, 2, 0)), d.x.dtype, profile="plain"))
        kw = {k: d.of(v) for k, v in choices.items() if k in always or d.chance(0.5)}
        if kw.get("left") == "False":
            b = f"{b}.mT"
        return [b, a] if swapped else [a, b], kw

    return make


def pair(*shapes):
    def make(d: Draw):
        dtype = d.dtype_of("float32", "float64", "float32", "int64")
        return [str(d.tensor(shape, dtype)) for shape in d.choice(shapes)], {}

    return make


def crossed(d: Draw):
    one, other = d.one(((3,), (3,)), ((2, 3), (2, 3)), ((3, 2), (3, 2)), ((2, 3), (1, 3)), ((4, 3, 2), (4, 3, 2)))
    dim = next(k for k, n in enumerate(one) if n == 3) - len(one)
    dtype = d.dtype_of("float32", "float64", "int64")
    return [str(d.tensor(one, dtype)), str(d.tensor(other, dtype))], {"dim": str(dim)}


def factored(d: Draw):
    """The three arguments of lu_solve."""
    n = d.one(1, 2, 3)
    a = matrix(d, REGULAR, n, batch=())
    b = str(d.tensor((n, 2), d.x.dtype, profile="plain"))
    return [f"*L.linalg.lu_factor({a}.detach())", b], {}


def chain(d: Draw):
    sizes = [d.one(1, 2, 3) for _ in range(4)]
    dtype = d.dtype_of("float32", "float64")
    return [str(d.tensor(shape, dtype, profile="plain")) for shape in itertools.pairwise(sizes)], {}


def normed(d: Draw):
    x = d.tensor(d.one((2, 3), (3, 3), (2, 3, 4), (1, 2)), d.dtype_of("float32", "float64"), profile="plain")
    ord, dim = d.of("'fro' 'nuc' 1 -1 2 -2 float('inf') -float('inf')"), d.of("(-2,-1) (0,1) (-1,-2) (1,0)")
    return [str(x)], {"ord": ord, "dim": dim, **({"keepdim": "True"} if d.chance(0.4) else {})}


CALLS = {
    **dict.fromkeys("inverse inv det logdet slogdet matrix_exp tensorinv".split(), of()),
    "logdet": of(DEFINITE),
    "matrix_exp": lambda d: ([f"({matrix(d, ANY)} / 8)"], {}),
    "tensorinv": lambda d: ([matrix(d, batch=())], {"ind": "1"}),
    "tensorsolve": lambda d: ([matrix(d, rows=3, batch=()), str(d.tensor((3,), d.x.dtype, profile="plain"))], {}),
    "inv_ex": of(check_errors="True False"),
    "cholesky": of(DEFINITE, upper="True False"),
    "cholesky_ex": of(DEFINITE, upper="True False", check_errors="True False"),
    "cholesky_inverse": of(LOWER),
    "cholesky_solve": equation(LOWER, swapped=True),
    "eigh": of(DEFINITE, UPLO="'L' 'U'"),
    "linalg.eig": of(),
    "linalg.eigvals": of(),
    "eigvalsh": of(DEFINITE, UPLO="'L' 'U'"),
    "qr": wide(),
    "linalg.qr": wide(mode="'reduced' 'r'"),
    "svd": lambda d: ([matrix(d, REGULAR, 2, 2, ())], {}),
    "linalg.svd": lambda d: ([matrix(d, REGULAR, 2, 2, ())], {}),
    "svd_lowrank": lambda d: ([matrix(d, REGULAR, 3, 3, ())], {"q": "3"}),
    "pca_lowrank": lambda d: ([matrix(d, REGULAR, 4, 2, ())], {"q": "2"}),
    "svdvals": wide(),
    "pinv": wide(),
    "pinverse": wide(),
    "matrix_rank": wide(),
    "lstsq": lambda d: ([matrix(d, REGULAR, 3, 2, ()), str(d.tensor((3, 2), d.x.dtype, profile="plain"))],
                        {"driver": d.of("None 'gels' 'gelsd'")}),
    "lu_factor": of(),
    "lu": of(),
    "linalg.lu_solve": factored,
    "lu_solve": lambda d: (lambda args: ([args[1], args[0]], {}))(factored(d)[0]),
    "lu_unpack": lambda d: ([f"*L.linalg.lu_factor({matrix(d)})"], {}),
    "solve": equation(left="True False"),
    "solve_ex": equation(left="True False", check_errors="True False"),
    "solve_triangular": equation(UPPER, always=("upper",), upper="True", left="True False", unitriangular="True False"),
    "triangular_solve": equation(UPPER, swapped=True, transpose="True False"),
    "matrix_power": lambda d: ([matrix(d), d.of("0 1 2 3 5 -1 -2")], {}),
    "matrix_norm": normed,
    "linalg.norm": normed,
    "nuclear_norm": lambda d: ([matrix(d, REGULAR, d.one(1, 2, 3), d.one(1, 2), ())], {}),
    "cond": lambda d: ([matrix(d, batch=())], {"p": d.of("None 1 2 -2 'fro' 'nuc' float('inf')")}),
    "multi_dot": lambda d: ([f"[{', '.join(chain(d)[0])}]"], {}),
    "chain_matmul": chain,
    "cross": crossed,
    "vecdot": pair(((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((0,), (0,))),
    "vdot": pair(((3,), (3,)), ((0,), (0,)), ((3,), (2,))),
    "addr": pair(((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((), (2,), (3,))),
    "addbmm": pair(((2, 4), (3, 2, 1), (3, 1, 4)), ((4,), (3, 2, 1), (3, 1, 4))),
    "linalg.vander": lambda d: ([str(d.tensor((3,), d.dtype_of("float32", "int64")))],
                                d.some(N="3 4 1")),
    "linalg.diagonal": lambda d: ([str(d.tensor(d.one((2, 3), (2, 3, 3))))], {"offset": d.of("0 1 -1")}),
    "cov": lambda d: ([str(d.floats(d.one((3, 4), (4,), (1, 3), (2, 1))))],
                      d.some(correction="0 1 2")),
    "corrcoef": lambda d: ([str(d.floats(d.one((3, 4), (4,), (1, 3))))], {}),
    "dist": lambda d: ([str(d.floats()), str(d.partner(0.0))], {"p": d.of("1 2 3 0 float('inf')")}),
    "renorm": lambda d: ([str(d.floats(d.one((2, 3), (3, 1), (2, 2, 3)))), d.of("1 2 2.0 3"), d.of("0 1 -1"),
                          d.of("1 0.5 0.0 10")], {}),
}  # fmt: skip
