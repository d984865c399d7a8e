"""Arguments of every public name: by argument name, and for some calls by a function.

`HOLDERS` are the namespaces that users see. A public name is called, or is in `UNCALLED` with the reason; a test fails
for a name with neither. `call_of(name, draw)` gives one call as a program. Read next: `comparison.py`.
"""

from __future__ import annotations

import inspect
from math import prod
from random import Random

import minflow as flow
from minflow.core.op import Op
from tests.names import collect

from . import calls_dtypes, calls_images, calls_layers, calls_linalg, calls_shapes, sequences
from .draw import SHAPES, STRANGERS, Draw, table

REDUCTION = lambda d: d.of("'mean' 'sum' 'none' 'mean' 'batchmean'") if d.chance(0.97) else "'x'"

AXES = "dim dim0 dim1 dim2 axis0 axis1 start_dim end_dim source destination index"
TRUTHS = """keepdim keepdims unbiased descending stable largest sorted equal_nan as_tuple training inplace ceil_mode
count_include_pad bias affine track_running_stats elementwise_affine copy force non_blocking nesterov maximize amsgrad
requires_grad"""
WORDS = {  # argument name -> texts, one of which is drawn
    "correction": "0 1 2 0.5 10",
    "device": "None 'cpu'",
    "generator": "None",
    "p": "1 2 0 3 inf -inf 0.5 2.0 -1 'fro'",
    "rounding_mode": "None 'floor' 'trunc' 'floor' 'trunc' 'up'",
    "rtol": "0 1e-5 0.5 -1.0 nan",
    "atol": "0 1e-8 0.5 -1.0",
    "eps": "1e-5 0.0 0.1 -1.0 1e-12",
    "approximate": "'none' 'tanh' 'x'",
    **dict.fromkeys(("diagonal", "offset", "decimals"), "0 1 -1 2 -2 3 -3"),
}
ARGUMENTS = {  # argument name -> a function that draws it
    **{name: lambda d, words=words: d.of(words) for name, words in WORDS.items()},
    **dict.fromkeys("input self x tensor a".split(), Draw.first),
    **dict.fromkeys("other end tensor1 tensor2 b".split(), Draw.partner),
    **dict.fromkeys(AXES.split(), Draw.axis),
    **dict.fromkeys(TRUTHS.split(), Draw.truth),
    **dict.fromkeys(
        "alpha beta value fill_value negative_slope".split(), lambda d: d.number() if d.chance(0.4) else d.small()
    ),
    **dict.fromkeys(("min", "max"), lambda d: "None" if d.chance(0.2) else d.partner(0.6)),
    **dict.fromkeys("k chunks num_classes n m repeats".split(), Draw.count),
    **dict.fromkeys(("nan", "posinf", "neginf"), lambda d: d.one("None", d.small(), d.number())),
    "element": Draw.number,
    "exponent": lambda d: d.partner(0.6),
    "values": lambda d: d.partner(0.0),
    "weight": lambda d: d.partner(0.5),
    "dtype": lambda d: "None" if d.chance(0.15) else d.dtype(),
    "mask": lambda d: d.partner(0.0, dtype="bool"),
    "reduction": REDUCTION,
    "vec2": lambda d: d.tensor(d.one((3,), (0,), (1,), (2, 3), ()), d.x.dtype if d.chance(0.8) else None),
}
WANT_AXES = set(
    """sum mean std var amax amin norm vector_norm logsumexp count_nonzero all any squeeze var_mean std_mean
flip""".split()
)


# ---- calls with related arguments ----------------------------------------------------------------------------------


def sizes_that_fit(d: Draw, *letters: str) -> list[tuple]:
    """Shapes by letters with the same size everywhere; rarely one is off."""
    of = {c: d.one(1, 2, 3, 4, 2, 3, 0 if d.chance(0.15) else 2) for c in dict.fromkeys("".join(letters))}
    shapes = [[of[c] for c in word] for word in letters]
    if d.chance(0.08):
        wrong = d.choice(shapes)
        if wrong and d.chance(0.6):
            wrong[d.randrange(len(wrong))] += 1
        else:
            wrong.append(2)
    return [tuple(s) for s in shapes]


def product(*words: str, extra=()):
    """A call on tensors whose shapes share letters; `extra` are optional keywords."""

    def make(d: Draw):
        word = d.choice(words)
        dtype = d.dtype_of("float32", "float32", "float64", "int64", "float16", "float32", None)
        args = [d.tensor(s, dtype or None) for s in sizes_that_fit(d, *word.split())]
        return [str(a) for a in args], {name: ARGUMENTS[name](d) for name in extra if d.chance(0.4)}

    return make


def shaped(d: Draw):
    """reshape, view: x and sizes."""
    x = d.first()
    return [str(x), *d.spread(d.reshaped())], {}


def expanded(d: Draw):
    x = d.first()
    sizes = [d.one(2, 3) if n == 1 and d.chance(0.7) else d.one(n, n, -1) for n in x.shape]
    sizes = [d.one(1, 2) for _ in range(d.randrange(2))] + sizes
    if d.chance(0.1):
        sizes.append(d.one(2, 0, -1))
    return [str(x), *d.spread(sizes)], {}


def broadcast_to(d: Draw):
    x = d.first()
    sizes = [d.one(2, 3) if n == 1 else n for n in x.shape]
    return [str(x), d.shape_text([d.one(1, 2) for _ in range(d.randrange(2))] + sizes)], {}


def repeats(d: Draw):
    x = d.first()
    sizes = [d.one(1, 2, 0, 3) for _ in range(x.ndim + d.one(0, 0, 1, -1, 2))]
    return [str(x), *d.spread(sizes)], {}


def permuted(d: Draw):
    x = d.first()
    dims = list(range(x.ndim))
    d.shuffle(dims)
    dims = [i - x.ndim if d.chance(0.2) else i for i in dims]
    if d.chance(0.1):
        dims.append(d.one(0, 1, 5))
    return [str(x), *d.spread(dims)], {}


def flipped(d: Draw):
    x = d.first()
    dims = d.sample(range(x.ndim), d.randrange(x.ndim + 1)) if x.ndim else []
    if d.chance(0.15):
        dims.append(d.one(0, 1, -1, 5))
    return [str(x), *d.spread(dims)], {}


def movedims(d: Draw):
    x = d.first()
    n = d.randrange(1, x.ndim + 1) if x.ndim else 0
    pick = lambda: d.sample(range(x.ndim), n)
    if n == 1 or d.chance(0.4):
        return [str(x), d.axis(), d.axis()], {}
    return [str(x), str(tuple(pick())), str(tuple(pick()))], {}


def rolled(d: Draw):
    x = d.first()
    if d.chance(0.3):
        return [str(x), d.integer()], {}
    if d.chance(0.6):
        return [str(x), d.integer(), d.axis()], {}
    n = d.randrange(3)
    shifts = tuple(d.randrange(-3, 4) for _ in range(n))
    return [str(x), str(shifts), str(tuple(d.randrange(-2, 2) for _ in range(n)))], {}


def unflattened(d: Draw):
    x = d.first()
    i, n = d.along(x)
    return [str(x), str(i), d.shape_text(d.one((n, 1), (1, n), (-1, 1), (n // 2, 2), (2, -1), (n,)))], {}


def tensors_of(axis: bool = True, sizes=(1, 2, 2, 3), stack: bool = False):
    def make(d: Draw):
        x = d.first()
        parts = [x]
        for _ in range(d.choice(sizes) - 1):
            shape = list(x.shape)
            if shape and not stack and d.chance(0.5):
                shape[d.randrange(len(shape))] = d.one(0, 1, 2)
            parts.append(d.tensor(shape if d.chance(0.95) else None, x.dtype if d.chance(0.75) else None))
        text = ", ".join(map(str, parts))
        text = f"[{text}]" if d.chance(0.6) else f"({text},)"
        if d.chance(0.03):
            text = d.one("[]", "()", str(x))
        return [text, *([d.axis(extra=int(stack))] if axis and d.chance(0.7) else [])], {}

    return make


def broadcasts(d: Draw):
    x = d.first()
    return [str(x), *[str(d.partner(0.05)) for _ in range(d.randrange(3))]], {}


def meshes(d: Draw):
    shape = lambda: d.one((), (2,), (3,), (0,), (1,), (2, 2) if d.chance(0.2) else (2,))
    parts = [d.tensor(shape(), "float32" if d.chance(0.8) else None) for _ in range(d.randrange(1, 4))]
    return [str(p) for p in parts], {"indexing": d.of("'ij' 'xy' 'ij' 'x'")}


def splits(d: Draw):
    x = d.first()
    axis, n = d.along(x)
    how = d.one("1", "2", "3", "0", str([1, n - 1]), str([n]), str([0, n]), str((n + 1, -1)), "-1")
    return [str(x), how, str(axis if d.chance(0.9) else axis + 3)], {}


def indexed(with_source: bool):
    """gather, scatter, scatter_add: x, axis, index, perhaps a source."""

    def make(d: Draw):
        x = d.first(shape=d.one((3,), (4,), (2, 3), (3, 3), (2, 3, 4), (), (0, 3), (1, 3)))
        axis, size = d.along(x)
        shape = [n if d.chance(0.6) else d.randrange(n + 1) for n in x.shape]
        if shape and d.chance(0.2):
            shape[axis] = d.one(1, 2, 5)
        if d.chance(0.05):
            shape.append(1)
        index = d.labels(tuple(shape), size)
        args = [str(x), str(axis - x.ndim if d.chance(0.3) and x.ndim else axis), str(index)]
        if with_source:
            source = [n + d.one(0, 0, 1) for n in shape]
            args.append(str(d.tensor(source, x.dtype if d.chance(0.9) else None)) if d.chance(0.7) else d.number())
        return args, {}

    return make


def rows(source: str = ""):
    """index_select, index_add, index_copy, index_fill."""

    def make(d: Draw):
        x = d.first(shape=d.one((3,), (4,), (2, 3), (3, 3), (2, 3, 4), (), (3, 0), (1, 3)))
        axis, n = d.along(x)
        index = d.labels(d.one((2,), (1,), (3,), (0,), (), (1, 2) if d.chance(0.2) else (2,)), n)
        args = [str(x), str(axis if d.chance(0.9) else d.axis()), str(index)]
        if source == "tensor":
            shape = x.resized(axis, prod(index.shape)) if d.chance(0.93) else None
            args.append(str(d.tensor(shape, x.dtype if d.chance(0.9) else None)))
        if source == "number":
            args.append(d.number())
        return args, {"alpha": d.small()} if source == "tensor" and d.chance(0.2) else {}

    return make


def taken(d: Draw):
    x = d.first()
    return [str(x), str(d.labels(d.one((2,), (3,), (2, 2), (), (0,)), prod(x.shape)))], {}


def taken_along(d: Draw):
    x = d.first()
    axis, n = d.along(x)
    index = d.labels(x.resized(axis, d.one(1, 2, n)), n)
    return [str(x), str(index), *([str(axis)] if d.chance(0.9) else [])], {}


def chosen(d: Draw):
    """where(condition, input, other)."""
    x = d.first()
    condition = d.partner(0.03, dtype="bool" if d.chance(0.9) else None)
    if d.chance(0.1):
        return [str(condition)], {}
    first = str(x) if d.chance(0.8) else d.number()
    return [str(condition), first, str(d.partner())], {}


def clamped(d: Draw):
    x = d.first()
    low, high = ARGUMENTS["min"](d), ARGUMENTS["max"](d)
    if d.chance(0.5):
        return [str(x), str(low), str(high)], {}
    return [str(x)], {d.one("min", "max"): str(low)}


def ranges(d: Draw):
    number = lambda: d.of("0 1 3 5 -2 0.5 2.5 -1.0 10 0.1 4 4 4 4" + " nan inf" * d.chance(0.1))
    args = [number() for _ in range(d.randrange(1, 4))]
    return args, {"dtype": d.dtype()} if d.chance(0.3) else {}


def spaced(d: Draw):
    number = lambda: d.of("0 1 3 -2 0.5 2.5 10")
    return [number(), number(), d.of("0 1 2 3 5 -1")], {"dtype": d.dtype()} if d.chance(0.3) else {}


def filled(with_value: bool = False):
    def make(d: Draw):
        shape = d.choice(SHAPES) if d.chance(0.93) else (-1, 2)
        args = [d.shape_text(shape), d.number()] if with_value else d.spread(shape)
        return args, {name: ARGUMENTS[name](d) for name in ("dtype", "requires_grad") if d.chance(0.3)}

    return make


DATA = """1 | 2.5 | True | [] | [1, 2] | [1.5, 2] | [[1, 2], [3, 4]] | [True, False] | [1, True] | [1, 2.5, True]
[[1], [2, 3]] | np.ones((2, 3)) | np.arange(3) | np.arange(3, dtype=np.int32) | np.float32(2) | 'x' | None | [None]
(1, 2) | [inf, nan] | 2**63 | [300] | -1 | [[]] | np.zeros((0, 3)) | np.ones(3) > 0 | [np.float64(1)]
[L.tensor(1.0), L.tensor(2.0)] | 1j | {} | np.arange(3)[::-1] | range(3) | [-1] | [nan] | L.tensor([1, 2])
[[1, 2], 3]""".replace("\n", " | ").split(" | ")


def data(d: Draw):
    return [d.choice(DATA)], {"dtype": d.dtype()} if d.chance(0.4) else {}


def randoms(d: Draw):
    low, high = d.one(("0", "3"), ("-2", "5"), ("1", "2"), ("3", "1"), ("2", "2"))
    return [low, high, d.new_shape()], {"dtype": d.dtype()} if d.chance(0.3) else {}


def einsums(d: Draw):
    equation = d.of(
        "ij,jk->ik ij->ji ij-> i,i-> i,j->ij bij,bjk->bik ii->i ij,ij->i ...i,i->... ij,kj->ik ij->j i-> ij,j"
    )
    words = equation.partition("->")[0].replace("...", "b").split(",")
    dtypes = "float32", "float32", "float64", "int64", "float16"
    args = [d.tensor(shape, d.dtype_of(*dtypes)) for shape in sizes_that_fit(d, *words)]
    if d.chance(0.1):
        equation = d.one("ij,jk->iz", "ij", "i->ii", "ij,jk,kl", "", "i j -> j i", "1->")
    return [repr(equation), *map(str, args)], {}


def tensordots(d: Draw):
    words = d.one(("ij", "jk"), ("ijk", "jkl"), ("i", "i"), ("ij", "ij"))
    a, b = [d.tensor(shape, "float32") for shape in sizes_that_fit(d, *words)]
    dims = d.of("1 2 0 ([1],[0]) ([0,1],[0,1]) ([-1],[0]) -1 3 ([0],[0]) ([0,0],[0,1])")
    return [str(a), str(b)], {"dims": dims} if d.chance(0.8) else {}


def kthings(d: Draw):
    x = d.first(profile="distinct")  # which of several ties is returned is unspecified
    n = x.shape[-1] if x.ndim else 1
    args = [str(x), str(d.randrange(n + 2))]
    return args, {"dim": d.axis(), "largest": d.truth(), "sorted": "True"} if d.chance(0.5) else {}


def diags(d: Draw):
    x = d.first(shape=d.one((3,), (2, 3), (3, 3), (0,), (), (0, 3), (2, 3, 4)))
    return [str(x), *([d.integer()] if d.chance(0.6) else [])], {}


def typed(d: Draw):
    args = [str(d.first())]
    kind = d.random()
    if kind < 0.7:
        return [*args, d.dtype()], {"copy": d.truth()} if d.chance(0.2) else {}
    if kind < 0.85:
        return [*args, str(d.tensor())], {}
    return [*args, d.one("'cpu'", "'x'")], {}


def getitems(d: Draw):
    x = d.first()

    def part(n: int) -> str:
        kind = d.random()
        if kind < 0.3:
            return str(d.randrange(-n, n)) if n and d.chance(0.95) else d.of("0 5 -6")
        if kind < 0.6:
            return d.of(": 1: :1 ::2 -2: :-1 1:1 5: :10 0:2 ::3 1::2" + " ::0" * d.chance(0.1))
        if kind < 0.7:
            return str([d.randrange(-n, n) for _ in range(d.randrange(1, 4))]) if n else "[]"
        if kind < 0.8:
            return str(d.labels(d.one((2,), (1,), (2, 2), (), (0,)), n))
        if kind < 0.9:
            return str(d.tensor((n,), "bool", layout="plain"))
        return d.one("None", "...", "True", "np.array([0])", "1.5" if d.chance(0.3) else "None")

    if d.chance(0.12):
        index = str(d.tensor(x.shape, "bool"))
    else:
        parts = [part(x.shape[i] if i < x.ndim else 1) for i in range(d.randrange(1, x.ndim + 2))]
        while parts.count("...") > 1:
            parts.remove("...")
        index = ", ".join(parts)
    return [str(x), index], {}


def setitems(d: Draw):
    args, _ = getitems(d)
    if d.chance(0.5):
        return [*args, d.number()], {}
    shape = d.one((), (1,), (3,), (2, 3), d.x.shape)
    return [*args, str(d.tensor(shape, d.x.dtype if d.chance(0.7) else None))], {}


def softmaxes(d: Draw):
    x = d.first(dtype=d.dtype_of("float32", "float32", "float64", "float16", None))
    return [str(x), d.axis()], {"dtype": d.dtype()} if d.chance(0.2) else {}


# ---- layers and losses ---------------------------------------------------------------------------------------------


def linear(d: Draw):
    x, w, b = sizes_that_fit(d, *d.one(("ni", "oi", "o"), ("i", "oi", "o"), ("bni", "oi", "o")))
    dtype = d.dtype_of("float32", "float32", "float64", "float16", "int64")
    args = [str(d.tensor(x, dtype)), str(d.tensor(w, dtype if d.chance(0.95) else None))]
    if d.chance(0.6):
        args.append(str(d.tensor(b, dtype)) if d.chance(0.9) else "None")
    return args, {}


def embeddings(d: Draw):
    n = d.one(3, 4, 5)
    index = d.labels(d.one((2,), (3, 2), (), (0,), (1,)), n)
    d.x = index
    w = d.floats((n, d.one(2, 3)))
    return [str(index), str(w)], d.some(padding_idx=f"0 1 -1 None {n} {-n - 1}")


def batch_norms(d: Draw):
    c = d.one(2, 3, 1)
    dtype = d.dtype_of("float32", "float64", "float32", "float16" if d.chance(0.3) else "float32")
    shape = d.one((3, c), (2, c, 3), (2, c, 2, 2), (1, c), (2, c, 1), (0, c, 3)) if d.chance(0.95) else d.choice(SHAPES)
    x = d.tensor(shape, dtype)
    # layout: PyTorch reads strided running statistics wrongly
    vector = lambda profile=None, grad=None: str(
        d.tensor((c,) if d.chance(0.97) else (c + 1,), dtype, profile, grad, layout="plain")
    )
    mean, var = (vector("plain", False), vector("unit", False)) if d.chance(0.7) else ("None", "None")
    kw = d.some(momentum="0.1 0.5 0.0 1.0", eps=ARGUMENTS["eps"])
    if d.chance(0.6):
        kw |= {"weight": vector(), "bias": vector()}
    if d.chance(0.7) or mean == "None":
        kw["training"] = d.truth()
    return [str(x), mean, var], kw


def layer_norms(d: Draw):
    shape = d.one((2, 3), (3,), (2, 3, 4), (0, 3), (1, 1), (2, 1), (3, 0))
    x = d.floats(shape)
    n = d.one(1, 1, len(shape))
    tail = shape[-n:] if d.chance(0.95) else (2,)
    parameter = lambda d: str(d.tensor(tail, x.dtype))
    kw = d.some(weight=parameter, eps=ARGUMENTS["eps"])
    if "weight" in kw:
        kw |= d.some(bias=parameter)
    return [str(x), d.shape_text(tail)], kw


def pads(d: Draw):
    if d.chance(0.4):
        return calls_images.pad(d)
    x = d.first()
    n = d.randrange(x.ndim + 1) * 2
    widths = [d.one(0, 1, 2, 1, -1 if d.chance(0.2) else 1) for _ in range(n)]
    if d.chance(0.05):
        widths.append(1)
    return [str(x), d.shape_text(widths)], d.some(mode=f"{calls_images.MODES} 'x'", value=Draw.number)


def number_loss(binary: bool = False, weights: bool = False):
    def make(d: Draw):
        x = d.floats(profile="unit" if binary and d.chance(0.7) else None)
        y = d.same(profile="unit" if binary or weights else None) if d.chance(0.93) else d.partner(0.05)
        fitting = lambda d: str(d.tensor(d.fitting(x.shape), x.dtype, grad=False))
        kw = d.some(weight=fitting) if binary or weights else {}
        kw |= d.some(pos_weight=fitting) if weights else {}
        return [str(x), str(y)], kw | d.some(reduction=REDUCTION)

    return make


def label_loss(logs: bool):
    def make(d: Draw):
        n, c = d.one(1, 2, 3, 3, 0 if d.chance(0.2) else 2), d.one(2, 3, 4, 1)
        shape = d.one((n, c), (n, c), (c,), (n, c, 2), (n, c, 2, 1))
        x = d.floats(shape)
        target_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
        if d.chance(0.03):
            target_shape = (n + 1,)
        kw = {}
        if not logs and d.chance(0.15):
            y = d.tensor(shape, x.dtype if d.chance(0.9) else None, "unit")
        else:
            y = d.labels(target_shape, c, ignored=True)
            if d.chance(0.2):
                kw["ignore_index"] = d.of("0 1 -1 -100 255")
        if d.chance(0.25):
            kw["weight"] = str(d.tensor((c,) if d.chance(0.95) else (c + 1,), x.dtype, "unit", grad=False))
        if not logs:
            kw |= d.some(label_smoothing="0.1 0.0 1.0 0.5 -0.1 1.5")
        return [str(x), str(y)], kw | d.some(reduction=REDUCTION)

    return make


def one_hots(d: Draw):
    classes = d.one(2, 3, 4)
    x = d.labels(d.one((), (2,), (3,), (2, 2), (0,)), classes)
    return [str(x)], {"num_classes": d.one(str(classes), str(classes + 1), "-1", "1", "0")} if d.chance(0.7) else {}


# ---- layers: constructor arguments, and a valid input --------------------------------------------------------------


def channels(d: Draw, c: int, *shapes):
    return d.floats(d.choice(shapes)) if d.chance(0.95) else d.tensor()


LAYERS = {
    "Identity": lambda d: ([], {}, d.first()),
    "Unflatten": lambda d: (unflattened(d)[0][1:], {}, d.x),
    "Linear": lambda d: (
        ["3", d.of("2 1 4")],
        d.some(bias="True False"),
        channels(d, 3, (2, 3), (3,), (2, 2, 3), (0, 3), (2, 4)),
    ),
    "Embedding": lambda d: (["4", "2"], d.some(padding_idx="0 -1 4 2"), d.labels(d.one((2,), (2, 3), (0,), ()), 4)),
    "BatchNorm1d": lambda d: (
        ["3"],
        d.some(eps=ARGUMENTS["eps"], momentum="None 0.5 0.0", affine="True False", track_running_stats="True False"),
        channels(d, 3, (2, 3), (1, 3), (2, 3, 2), (0, 3), (2, 3, 0), (3,)),
    ),
    "LayerNorm": lambda d: (
        [d.of("3 (3,) (2,3) [3]")],
        d.some(eps=ARGUMENTS["eps"], elementwise_affine="True False", bias="True False"),
        channels(d, 3, (2, 3), (1, 2, 3), (0, 3), (3,)),
    ),
}
FUNCTIONS = {  # layer -> the function that it calls, if it has another name
    "BCELoss": "F.binary_cross_entropy",
    "BCEWithLogitsLoss": "F.binary_cross_entropy_with_logits",
    "CrossEntropyLoss": "F.cross_entropy",
    "CrossMapLRN2d": "F.local_response_norm",
    "Flatten": "flatten",
    "KLDivLoss": "F.kl_div",
    "NLLLoss2d": "F.nll_loss",
    "Upsample": "F.interpolate",
    "UpsamplingBilinear2d": "F.upsample_bilinear",
    "UpsamplingNearest2d": "F.upsample_nearest",
}
FUNCTIONS |= {
    name: f"F.{function}"
    for function in dir(flow.nn.functional)
    if not function.endswith("_")
    for name in dir(flow.nn)
    if name.lower() == function.replace("_", "")
}
EPSILONS = "1e-8|0.1|-1.0"
STEPPED = "lr=0.1|0.0|-1.0 weight_decay=0.1|-0.1 maximize=truth"
MOMENTS = f"{STEPPED} betas=(0.9,0.999)|(0.0,0.5)|(1.0,0.9)|(0.5,) eps={EPSILONS}"
OPTIMIZERS = table(f"""
SGD: {STEPPED} momentum=0.9|0.0|-0.1 dampening=0.0|0.5 nesterov=truth
Adam AdamW: {MOMENTS} amsgrad=truth
RMSprop: {STEPPED} alpha=0.5|0.99|-0.1 eps={EPSILONS} momentum=0.9|0.0|-0.1 centered=truth
Adagrad: {STEPPED} lr_decay=0.1|0.0|-1.0 initial_accumulator_value=0.5|0.0|-1.0 eps={EPSILONS}
Adadelta: {STEPPED} rho=0.9|0.0|1.0|1.5 eps=1e-6|0.1|-1.0
Adamax: {MOMENTS}
NAdam: {MOMENTS} momentum_decay=0.004|0.5|-1.0 decoupled_weight_decay=truth
RAdam: {MOMENTS} decoupled_weight_decay=truth
Rprop: lr=0.1|0.0|-1.0 etas=(0.5,1.2)|(0.1,3.0)|(1.2,0.5)|(0.5,) step_sizes=(1e-6,50)|(0.2,0.3) maximize=truth
ASGD: {STEPPED} lambd=0.0001|0.1 alpha=0.75|0.5 t0=1e6|0|1
""")
CYCLE = "step_size_up=1|2|3 step_size_down=1|2|4 gamma=1.0|0.9 scale_fn=abs cycle_momentum=truth"
CYCLES = "'triangular'|'triangular2'|'exp_range'|'up'"
PLATEAU = "factor=0.1|0.5|1.0 patience=0|1|2 threshold=1e-4|0.6|0.0 cooldown=0|1|2 eps=1e-8|1.0"
ONE_CYCLE = "total_steps=6|10|3|0 epochs=2|3 steps_per_epoch=3|4 pct_start=0.3|0.5|0.25|1.5"
ANNEALING = "anneal_strategy='cos'|'linear'|'up' div_factor=25.0|2.0 final_div_factor=1e4|10.0 three_phase=truth"
SCHEDULERS = table(f"""
StepLR: 1|2|3|0 gamma=0.1|0.5|0|-1.0
MultiStepLR: (1,2)|[1,3]|[2]|[]|[3,1]|[2,2] gamma=0.1|0.5
LinearLR: start_factor=0.5|1.0|0.1|0.0|2.0 end_factor=1.0|0.0|0.5|-1.0 total_iters=1|3|5|0
CosineAnnealingLR: 1|3|5|2 eta_min=0.0|0.01|1.0
ConstantLR: factor=0.5|1.0|0.0|2.0|-0.5 total_iters=1|3|5|0|9
ExponentialLR: 0.9|0.5|1.0|-1.0|2|0
PolynomialLR: total_iters=1|3|5|9 power=1.0|2.0|0.5|0
CosineAnnealingWarmRestarts: 1|2|3|5|0|2.5 T_mult=1|2|3|0 eta_min=0.0|0.01|1.0
OneCycleLR: 0.5|1.0|[0.3]|[0.1,0.2] {ONE_CYCLE} {ANNEALING} cycle_momentum=truth
CyclicLR: 0.01|0.1|[0.05] 0.5|1.0 {CYCLE} mode={CYCLES} scale_mode='cycle'|'iterations'
ReduceLROnPlateau: mode='min'|'max'|'up' {PLATEAU} threshold_mode='rel'|'abs'|'no' min_lr=0|0.03|[0.05]|[0.1,0.2]
ChainedScheduler: (S.StepLR(o,2),S.ExponentialLR(o,0.9))|[S.ConstantLR(o,0.5,2),S.LinearLR(o)]|[]
""")
DECAYS = "lambda e: 0.5**e|[lambda e: e]|lambda e: 1 / e|lambda e: 1|[]|3|[lambda e: 1, lambda e: 2]".split("|")
SEQUENCES = "[S.StepLR(o,2),S.LinearLR(o)] [S.LinearLR(o,0.5,1.0,2),S.CosineAnnealingLR(o,3)] [S.StepLR(o,1)]"
SCHEDULERS |= dict.fromkeys(("LambdaLR", "MultiplicativeLR"), lambda d: ([d.one(*DECAYS)], {}))
SCHEDULERS["SequentialLR"] = lambda d: ([d.of(SEQUENCES), d.of("[2] [3] [1] [1,2] [] [0]")], {})


def clipped(*more):
    """clip_grad_norm_ and similar functions: parameters with gradients."""

    def make(d: Draw):
        dtype = d.dtype_of("float32", "float64", "float16")
        for shape in [(3,), (2, 2)][: d.one(1, 2)]:
            p, g = d.tensor(shape, dtype, "plain", True, "plain"), d.tensor(shape, dtype, grad=False, layout="plain")
            d.lines.append(f"{p}.grad = {g}")
        ps = [str(p) for p in d.made[::2]]
        return [f"[{', '.join(ps)}]" if len(ps) > 1 or d.chance(0.7) else ps[0], *[m(d) for m in more]], {}

    return make


def total_norms(d: Draw):
    parts = [str(d.floats(grad=False)) for _ in range(d.one(1, 2, 3))]
    return [f"[{', '.join(parts)}]"], d.some(norm_type="2.0 1.0 inf 0.0 3 -1", error_if_nonfinite="True False")


def vectors(d: Draw):
    parts = [str(d.tensor(dtype="float32", grad=True)) for _ in range(d.one(1, 2, 3))]
    return [f"[{', '.join(parts)}]"], {}


def from_vectors(d: Draw):
    shapes = [d.one((2,), (1, 2), (3,)) for _ in range(2)]
    n = sum(prod(s) for s in shapes) + d.one(0, 0, 0, 1, -1)
    parts = [str(d.tensor(s, "float32", "plain", False, "plain")) for s in shapes]
    return [str(d.tensor((n,), "float32", layout="plain")), f"[{', '.join(parts)}]"], {}


def gradients(d: Draw):
    """autograd.grad of a small function of x."""
    x = d.tensor(d.one((3,), (), (2, 2)), d.dtype_of("float32", "float64"), "kinks", d.chance(0.95), "plain")
    f = d.of("(x0*x0).sum() (x0.exp()*x0).sum() x0*2 x0.clamp(0,1).sum() (x0**3).sum() x0.detach().sum() x0.sum()")
    d.lines.append(f"f = {f}")
    kw = d.some(create_graph="True False", retain_graph="True False", allow_unused="True False")
    if d.chance(0.3):
        kw["grad_outputs"] = str(d.tensor(x.shape, x.dtype, grad=False, layout="plain"))
    return [d.one("f", "[f]"), d.one("x0", "[x0]", "[x0]", "(x0, x0)", "f")], kw


ARRAYS = """np.ones(3)|np.arange(4)[::2]|np.float32(1)|[1]|np.zeros((2,0))|np.array(1.0)|np.array(['a'])|
np.array([True])|np.ones(2,dtype=np.float16)|np.arange(3)[::-1]|
np.ones(2,dtype=complex)|np.arange(3,dtype='>i4')""".replace("\n", "")
P, EPS = WORDS["p"].replace(" ", "|"), WORDS["eps"].replace(" ", "|")
# function name -> its arguments, if their names are not sufficient
CALLS = {
    **dict.fromkeys(("mm",), product("ij jk")),
    "bmm": product("bij bjk"),
    "mv": product("ij j"),
    "dot": product("i i"),
    "inner": product("i i", "ni i", "ni mi"),
    "matmul": product("ij jk", "bij bjk", "bij jk", "i i", "ij j", "j jk", "aij bjk"),
    "outer": product("i j"),
    "kron": product("ij kl", "i j", "ij k"),
    "addmm": product("ik ij jk", "k ij jk", extra=("alpha", "beta")),
    "addmv": product("i ij j", extra=("alpha", "beta")),
    "baddbmm": product("bik bij bjk", "k bij bjk", extra=("alpha", "beta")),
    "tensordot": tensordots,
    "einsum": einsums,
    **dict.fromkeys(("reshape", "view"), shaped),
    "expand": expanded,
    "broadcast_to": broadcast_to,
    **dict.fromkeys(("repeat", "tile"), repeats),
    "permute": permuted,
    "flip": flipped,
    **dict.fromkeys(("movedim", "moveaxis"), movedims),
    "roll": rolled,
    "unflatten": unflattened,
    **dict.fromkeys(("cat", "concat", "concatenate"), tensors_of()),
    "stack": tensors_of(stack=True),
    **dict.fromkeys(("hstack", "vstack"), tensors_of(axis=False)),
    "broadcast_tensors": broadcasts,
    "meshgrid": meshes,
    "split": splits,
    "gather": indexed(False),
    **dict.fromkeys(("scatter", "scatter_add"), indexed(True)),
    **dict.fromkeys(
        ("logit", "special.logit"),
        lambda d: ([str(d.first(profile="unit" if d.chance(0.4) else None))], d.some(eps="1e-6 0.25 None 0.0 0.5")),
    ),
    "index_select": rows(),
    "index_add": rows("tensor"),
    "index_copy": rows("tensor"),
    "index_fill": rows("number"),
    "take": taken,
    "take_along_dim": taken_along,
    "where": chosen,
    **dict.fromkeys(("clamp", "clip"), clamped),
    "arange": ranges,
    "linspace": spaced,
    **dict.fromkeys("zeros ones empty rand randn".split(), filled()),
    "full": filled(True),
    **dict.fromkeys(("tensor", "as_tensor"), data),
    "randint": randoms,
    "topk": kthings,
    **dict.fromkeys(("diag",), diags),
    "Tensor.to": typed,
    "Tensor.__getitem__": getitems,
    "Tensor.__setitem__": setitems,
    **dict.fromkeys("softmax log_softmax F.softmax F.log_softmax".split(), softmaxes),
    "one_hot": one_hots,
    "unsqueeze": lambda d: ([str(d.first()), d.axis(extra=1)], {}),
    "F.linear": linear,
    "F.embedding": embeddings,
    "F.batch_norm": batch_norms,
    "F.layer_norm": layer_norms,
    "F.pad": pads,
    "F.mse_loss": number_loss(),
    "F.l1_loss": number_loss(),
    "F.binary_cross_entropy": number_loss(True),
    "F.binary_cross_entropy_with_logits": number_loss(False, True),
    "F.cross_entropy": label_loss(False),
    "F.nll_loss": label_loss(True),
    "F.one_hot": one_hots,
    **dict.fromkeys(
        "Tensor.new_zeros Tensor.new_ones Tensor.new_empty".split(),
        lambda d: ([str(d.first()), *d.spread(d.choice(SHAPES))], d.some(dtype=ARGUMENTS["dtype"])),
    ),
    "Tensor.new_tensor": lambda d: ([str(d.first()), data(d)[0][0]], d.some(dtype=ARGUMENTS["dtype"])),
    "Tensor.random_": lambda d: ([str(d.first()), *[d.of("0 3 5 100") for _ in range(d.randrange(3))]], {}),
    "nn.utils.clip_grad_norm_": clipped(
        lambda d: d.of("1.0 0.5 100.0 0.0 -1.0 inf"), lambda d: d.of("2.0 1.0 inf 0.0 3 -1.0")
    ),
    "nn.utils.clip_grad_value_": clipped(lambda d: d.of("1.0 0.5 0.0 inf -1.0")),
    "nn.utils.get_total_norm": total_norms,
    "nn.utils.parameters_to_vector": vectors,
    "nn.utils.vector_to_parameters": from_vectors,
    "autograd.grad": gradients,
    "nonzero_static": lambda d: (
        [str(d.tensor(d.one((2, 3), (4,), (), (0, 2)), d.dtype_of("float32", "int64", "bool")))],
        {"size": d.one("0", "3", "9"), **d.some(fill_value="-1 0 7")},
    ),
    **table(f"""
narrow: x axis 0|1|-1|2 count
Tensor.where: x mask partner
masked_fill: x mask number
full_like: x number dtype=dtype
zeros_like ones_like empty_like rand_like randn_like: x dtype=dtype
randint_like: x 3|5 dtype=dtype
eye: count [count] dtype=dtype
randperm: count
finfo iinfo: dtype
bernoulli: unit p=0.0|1.0|0.5|1.5
normal: float partner
F.dropout: x p=0.0|1.0|0.5|1.5|-0.1 training=truth
F.normalize: float p={P} dim=axis eps={EPS}
F.gelu: x approximate='none'|'tanh'|'x'
result_type atan2 arctan2: x partner
mvlgamma multigammaln: x 1|2|3|0|5
squeeze: x [axes]
Tensor.expand_as Tensor.view_as Tensor.reshape_as Tensor.type_as: x tensor
Tensor.new_full: x shape number dtype=dtype
Tensor.copy_: x other
Tensor.fill_: x number
Tensor.uniform_ Tensor.normal_: x [number] [number]
Tensor.bernoulli_: x [0.5|0.0|1.0|2.0]
Tensor.exponential_: x [1.0|2.0|0.0|-1.0]
Tensor.addcdiv_ Tensor.addcmul_: x other other value=number
Tensor.type: x [dtype]
Tensor.size Tensor.stride: x [axis]
from_numpy: {ARRAYS}
is_tensor: 1|None|L.ones(2)
init.xavier_uniform_ init.xavier_normal_ init.kaiming_uniform_ init.kaiming_normal_ init.orthogonal_: buffer
init.eye_ init.ones_ init.zeros_ init.dirac_ init.uniform_ init.normal_ init.trunc_normal_: buffer
init.constant_: buffer number
init.sparse_: buffer 0.5|0.0|1.0
init.calculate_gain: 'relu'|'tanh'|'leaky_relu'|'linear'|'sigmoid'|'selu'|'x'|'conv2d' param=0.2|None|'x'|1
"""),
    **calls_linalg.CALLS,
    **calls_dtypes.CALLS,
}

# random results: only shape and dtype are compared with PyTorch
RANDOM = set(
    """rand randn randint randperm rand_like randn_like randint_like bernoulli normal empty empty_like
Tensor.new_empty Tensor.uniform_ Tensor.normal_ Tensor.bernoulli_ Tensor.random_ Tensor.exponential_ Tensor.bernoulli
F.dropout nn.Dropout init.xavier_uniform_ init.xavier_normal_ init.kaiming_uniform_ init.kaiming_normal_
init.orthogonal_ init.uniform_ init.normal_ init.trunc_normal_ init.sparse_""".split()
)

for more in (calls_layers, calls_shapes, calls_images, sequences):
    CALLS |= more.CALLS
    LAYERS |= getattr(more, "LAYERS", {})
RANDOM |= calls_layers.RANDOM | calls_shapes.RANDOM
STATE = "process-wide state, not a function of its arguments"
CLASS = "a class or value that other calls use"
STORED = "tells of storage or of the tape, not of numbers"
ONEFLOW = "OneFlow's: PyTorch has none"
JOBS = "OneFlow's job functions: PyTorch has no such name"
SETTING = "accepted, for programs of other machines: tests/compat"
CONTEXT = "a context: tests/core/test_autograd.py, tests/core/test_autocast.py"
ELSEWHERE = "PyTorch has it in another place, which is called"
REASONS = {  # a reason not to call -> the public names
    STATE: """Generator get_rng_state set_rng_state manual_seed seed initial_seed default_generator notices
        set_default_dtype get_default_dtype set_default_device get_default_device set_printoptions is_grad_enabled""",
    CONTEXT: """no_grad enable_grad inference_mode set_grad_enabled autocast autograd.detect_anomaly
        autograd.set_detect_anomaly autograd.enable_grad autograd.inference_mode autograd.no_grad
        autograd.set_grad_enabled""",
    CLASS: """TypedStorage UntypedStorage
        Tensor Size device dtype MinflowError MinflowWarning layout memory_format lr_scheduler.LRScheduler
        autograd.Function autograd.Variable optim.Optimizer nn.Buffer nn.Module nn.ModuleDict nn.ModuleList nn.Parameter
        nn.ParameterDict nn.ParameterList nn.Sequential nn.Graph nn.UninitializedBuffer nn.UninitializedParameter""",
    "the function of nn.functional; PyTorch's takes reduction as a number": """binary_cross_entropy_with_logits
        cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss
        triplet_margin_loss""",
    "changes or makes modules: tests/nn/test_layer_names.py": """nn.utils.weight_norm nn.utils.remove_weight_norm
        nn.utils.spectral_norm nn.utils.remove_spectral_norm nn.utils.skip_init nn.utils.fuse_conv_bn_eval
        nn.utils.fuse_conv_bn_weights nn.utils.fuse_linear_bn_eval nn.utils.fuse_linear_bn_weights
        nn.utils.clip_grad_norm nn.utils.clip_grads_with_norm_""",
    "of several ranks: tests/distributed": """virtual_ranks placement Tensor.placement Tensor.sbp Tensor.to_global
        Tensor.global_to_global Tensor.to_local""",
    "sparse tensors: tests/core/test_sparse_torch.py": """sparse_coo_tensor spmm sparse.mm sparse.addmm sparse.sum
        sparse.softmax sparse.log_softmax sparse_coo Tensor.to_sparse Tensor.to_sparse_coo Tensor.to_dense
        Tensor.to_sparse_csr Tensor.to_sparse_csc Tensor.to_sparse_bsr Tensor.to_sparse_bsc Tensor.crow_indices
        Tensor.col_indices Tensor.coalesce Tensor.is_coalesced Tensor.sparse_mask Tensor.sparse_dim Tensor.dense_dim
        Tensor.indices Tensor.values""",
    "PyTorch's warns or needs a window: tests/core/test_stft_torch.py": "stft istft Tensor.stft Tensor.istft",
    "random places, or another function's result: tests/nn/test_pools.py": """conv_tbc F.conv_tbc
        F.max_pool1d_with_indices F.max_pool2d_with_indices F.max_pool3d_with_indices F.adaptive_max_pool1d_with_indices
        F.adaptive_max_pool2d_with_indices F.adaptive_max_pool3d_with_indices F.fractional_max_pool2d
        F.fractional_max_pool3d F.fractional_max_pool2d_with_indices F.fractional_max_pool3d_with_indices
        nn.FractionalMaxPool2d nn.FractionalMaxPool3d""",
    "takes a class that a program defines: tests/core/test_subclasses_torch.py": "Tensor.as_subclass",
    "reads or writes what is no tensor": "load load_graph save from_dlpack frombuffer",
    ONEFLOW: """nn.CombinedMarginLoss F.combined_margin_loss F.sparse_softmax_cross_entropy nn.QuickGELU nn.SquareReLU
        F.depend F.quick_gelu F.square_relu quick_gelu square_relu gelu mish silu softplus softsign F.cdist Tensor.gelu
        Tensor.quick_gelu Tensor.square_relu Tensor.mish Tensor.silu Tensor.softplus Tensor.softsign Tensor.selu
        Tensor.celu Tensor.is_global Tensor.is_lazy Tensor.is_local Tensor.local_to_global optim.LAMB
        lr_scheduler.CosineDecayLR lr_scheduler.WarmupLR lr_scheduler.WarmUpLR """
    + " ".join(calls_images.ONEFLOWS),
    "for programs of PyTorch: tests/core/test_tensor_idioms.py": " ".join(flow._TORCH_FUNCTIONS),
    "calls the method of its name: tests/core/test_tensor_idioms.py": " ".join(flow._IN_PLACE),
    "a view: PyTorch has none": "show summary roofline kernels",
    ELSEWHERE: "expand one_hot dropout",
    "PyTorch has none; round(x) is what a reader expects to work": "Tensor.__round__",
    "its step calls a closure: tests/optim/test_lbfgs.py": "optim.LBFGS",
    "Newton-Schulz iterations and means of rows: tests/optim/test_matrices_torch.py": "optim.Muon optim.Adafactor",
    "PyTorch's refuses dense gradients: tests/optim/test_optim_torch.py": "optim.SparseAdam",
    SETTING: "nn.DataParallel Tensor.is_pinned",
    "every call ends in the first; tests/core has the others": """autograd.backward autograd.gradcheck
        autograd.gradgradcheck""",
    STORED: " ".join(
        f"Tensor.{n}"
        for n in """grad_fn backward register_hook register_post_accumulate_grad_hook
        retain_grad numpy cuda data_ptr storage_offset requires_grad_ detach_ pin_memory record_stream get_device
        __array__ __array_ufunc__ __dlpack__ __dlpack_device__ __copy__ __deepcopy__ __reduce_ex__ __repr__ __hash__
        __init__ __format__ __array_wrap__ new storage untyped_storage
        stride is_contiguous""".split()
    ),
}
UNCALLED = {name: reason for reason, names in REASONS.items() for name in names.split()}
UNCALLED |= calls_shapes.UNCALLED | calls_dtypes.UNCALLED | sequences.UNCALLED

HOLDERS = {  # prefix of a public name -> the module or class that holds it, in minflow
    "": flow,
    "F.": flow.nn.functional,
    "nn.": flow.nn,
    "optim.": flow.optim,
    "linalg.": flow.linalg,
    "special.": flow.special,
    "init.": flow.nn.init,
    "nn.utils.": flow.nn.utils,
    "nn.utils.rnn.": flow.nn.utils.rnn,
    "lr_scheduler.": flow.optim.lr_scheduler,
    "autograd.": flow.autograd,
    "Tensor.": flow.Tensor,
}
PATHS = {prefix: f"L.{prefix}" for prefix in HOLDERS} | {"F.": "L.nn.functional.", "init.": "L.nn.init."}
ARITHMETIC = dict(
    add="+",
    sub="-",
    mul="*",
    truediv="/",
    pow="**",
    floordiv="//",
    mod="%",
    matmul="@",
    xor="^",
    lshift="<<",
    rshift=">>",
)
COMPARED = dict(lt="<", le="<=", gt=">", ge=">=", eq="==", ne="!=")
LOGIC = {"and": "&", "or": "|"}
OPERATORS = {
    **{f"__{n}__": f"{{0}} {s} {{1}}" for n, s in (ARITHMETIC | COMPARED | LOGIC).items()},
    **{f"__r{n}__": f"{{1}} {s} {{0}}" for n, s in (ARITHMETIC | LOGIC).items()},
    "__neg__": "-{0}",
    "__pos__": "+{0}",
    "__abs__": "abs({0})",
    "__invert__": "~{0}",
    "__bool__": "bool({0})",
    "__float__": "float({0})",
    "__int__": "int({0})",
    "__index__": "{0}.__index__()",
    "__len__": "len({0})",
    "__contains__": "{1} in {0}",
    "__iter__": "list({0})",
    "__round__": "round({0})",
    "__getitem__": "{0}[{1}]",
}
INPLACE_OPERATORS = {f"__i{n}__": f"{s}=" for n, s in (ARITHMETIC | LOGIC).items() if n != "matmul"}


def public_names() -> list[str]:
    """Every public callable: "add", "F.conv2d", "nn.Linear", "Tensor.add_", ..."""
    found = []
    for prefix, holder in HOLDERS.items():
        for name in dir(holder):
            value = inspect.getattr_static(holder, name) if prefix == "Tensor." else getattr(holder, name)
            hidden = name.startswith("_") and not (
                prefix == "Tensor." and (name in OPERATORS or name in INPLACE_OPERATORS or name == "__setitem__")
            )
            if hidden or inspect.ismodule(value) or not (callable(value) or isinstance(value, property)):
                continue
            if prefix in ("init.", "lr_scheduler."):  # files whose imports are not public
                ours = value.__module__.startswith(holder.__name__) and (
                    name.endswith("_") or isinstance(value, type) or name == "calculate_gain"
                )
            else:
                ours = ".job" not in (getattr(value, "__module__", "") or "")
            if not ours or (prefix == "nn.utils.rnn." and name not in holder.__all__):
                continue
            found.append(prefix + name)
    return sorted(found)


TORCH_NAMES = {line.split("\t")[1] for line in collect.FILE.read_text().splitlines()}


def why_not(name: str) -> str | None:
    """Reason why a public name is not called, or None."""
    if name in UNCALLED:
        return UNCALLED[name]
    if "." not in name and (name in flow.job.FLOW or name in flow.job.GROUPS):
        return JOBS
    value = getattr(getattr(flow, name.rpartition(".")[0], flow), name.rpartition(".")[2], None)
    if isinstance(value, type) and issubclass(value, Exception):
        return CLASS
    if getattr(inspect.unwrap(value), "__module__", "").startswith("minflow.compat.namespaces."):
        return SETTING
    if "." not in name and isinstance(value, Op) and name not in TORCH_NAMES:
        return "PyTorch has none"
    return None


def parameters(name: str) -> list[inspect.Parameter]:
    """Parameters of our function."""
    prefix = next(p for p in sorted(HOLDERS, key=len, reverse=True) if name.startswith(p))
    value = getattr(HOLDERS[prefix], name.removeprefix(prefix))
    try:
        return list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return []


ALIASES = {"dim": "axes"}
SIGNATURES: dict = {}


def by_signature(name: str, d: Draw) -> tuple[list, dict]:
    """Arguments by the names in our signature."""
    if name not in SIGNATURES:
        SIGNATURES[name] = parameters(name)
    plain = name.rpartition(".")[2].rstrip("_") or name
    args, kw, gap = [], {}, False
    for p in SIGNATURES[name]:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if p.default is not p.empty and d.chance(0.55):
            gap = True
            continue
        if p.name not in ARGUMENTS:
            if p.default is not p.empty:
                gap = True
                continue
            raise KeyError(
                f"{name}: no kind of argument is known for {p.name!r}: add it to ARGUMENTS or CALLS in "
                f"tests/fuzz/calls.py"
            )
        value = str(d.axes() if p.name == "dim" and plain in WANT_AXES else ARGUMENTS[p.name](d))
        if gap or p.kind is p.KEYWORD_ONLY:
            kw[p.name] = value
        else:
            args.append(value)
    return args, kw


def generator(name: str):
    """Function that draws this name's arguments."""
    plain = name.rpartition(".")[2]
    inplace = plain[3:-2] if plain.startswith("__i") else ""
    operator = plain[2:-2] if plain.startswith("__") else ""
    return next((CALLS[key] for key in (name, plain, plain.rstrip("_"), inplace, operator) if key in CALLS), None)


def wrong(d: Draw, args: list, kw: dict, first: int = 0) -> None:
    """Replace one argument by an invalid one, omit the last, or add one."""
    kind = d.random()
    stranger = lambda: d.choice(STRANGERS) if d.chance(0.75) else str(d.tensor())
    if kind < 0.75 and (len(args) > first or kw):
        place = d.randrange(first, len(args) + len(kw))
        if place < len(args):
            args[place] = stranger()
        else:
            kw[list(kw)[place - len(args)]] = stranger()
    elif kind < 0.87 and len(args) > first:
        args.pop()
    else:
        args.append(stranger())


def joined(args: list, kw: dict) -> str:
    return ", ".join([*args, *[f"{k}={v}" for k, v in kw.items()]])


def arguments(name: str, d: Draw) -> tuple[list, dict]:
    make = generator(name)
    args, kw = make(d) if make is not None else by_signature(name, d)
    return list(args), dict(kw)


def layer_call(name: str, d: Draw) -> tuple[list, dict, str]:
    """Arguments of a constructor, its keywords, and the inputs: from LAYERS, or from a call of its function."""
    if name in LAYERS:
        args, kw, inputs = LAYERS[name](d)
        return list(args), dict(kw), str(inputs)
    if name not in FUNCTIONS:
        raise KeyError(f"nn.{name}: no function has its name: add it to LAYERS or FUNCTIONS in tests/fuzz/calls.py")
    args, kw = arguments(FUNCTIONS[name], d)
    given = dict(zip([p.name for p in parameters(FUNCTIONS[name])], args)) | kw
    given.pop("training", None)
    options = [p.name for p in parameters(f"nn.{name}")]
    inputs = [given.pop(key) for key in [*given] if key not in options]
    args = []
    by_place = "Loss" not in name  # PyTorch's losses begin with deprecated names
    while by_place and len(args) < len(options) and options[len(args)] in given and d.chance(0.5):
        args.append(given.pop(options[len(args)]))
    return args, given, ", ".join(inputs)


PATTERN = "((L.arange(p.numel()) % 7 - 3).reshape(p.shape) / 4).to(p.dtype)"


def call_of(name: str, seed, valid: bool | None = None, **fixed) -> list[str]:
    """One random call as the lines of a program; its result is `r`, its tensors are x0, x1, ..., a layer is `m`.

    seed: of this call, or a generator that makes the choices.
    """
    d = Draw(seed if isinstance(seed, Random) else f"{name} {seed}", **fixed)
    amiss = d.chance(0.25) if valid is None else not valid
    prefix, _, plain = name.rpartition(".")
    if prefix == "nn":
        args, kw, inputs = layer_call(plain, d)
        if amiss:
            wrong(d, args, kw)
        mode = "" if d.chance(0.7) else ".eval()"
        dtype = (
            f".to(L.{d.x.dtype})" if d.x is not None and d.x.dtype in ("float64", "float16") and d.chance(0.9) else ""
        )
        fill = "with L.no_grad(): [p.copy_(" + PATTERN + ") for p in m.parameters()]"
        sized = [f"m({inputs})"] if plain.startswith("Lazy") else []  # its parameters have a shape from then on
        return [*d.lines, f"m = L.nn.{plain}({joined(args, kw)}){mode}{dtype}", *sized, fill, f"r = m({inputs})"]
    if prefix == "optim":
        _, kw = OPTIMIZERS[plain](d)
        dtype = d.one("float32", "float64")
        p, g, h = (d.tensor((3,), dtype, grad=False, layout="plain") for _ in range(3))
        args = ["[p]"]
        if amiss:
            wrong(d, args, kw)
        made = [f"p = L.nn.Parameter({p})", f"o = L.optim.{plain}({joined(args, kw)})"]
        return [*d.lines, *made, f"p.grad = {g}", "o.step()", f"p.grad = {h}", "o.step()", "r = p.detach()"]
    if prefix == "lr_scheduler":
        args, kw = SCHEDULERS[plain](d)
        if plain != "ChainedScheduler":
            args = ["o", *args]
        if amiss:
            wrong(d, args, kw, 1)
        metric = "v" if plain == "ReduceLROnPlateau" else ""
        values = "[3, 2, 2, 2.5, 2, 1]" if metric else "range(6)"
        steps = f"r = [(o.step(), s.step({metric}), o.param_groups[0]['lr'])[2] for v in {values}]"
        lines = ["S = L.optim.lr_scheduler", "o = L.optim.SGD([L.nn.Parameter(L.ones(2))], lr=0.1)"]
        return [*d.lines, *lines, f"s = S.{plain}({joined(args, kw)})", steps]
    if prefix == "Tensor" and isinstance(getattr(flow.Tensor, plain), property):
        x = d.first()
        return [*d.lines, f"r = {x}.{plain}"]
    args, kw = arguments(name, d)
    method = prefix == "Tensor"
    if amiss and plain not in ("__getitem__", "__setitem__"):
        wrong(d, args, kw, int(method))
    if name in ("finfo", "iinfo"):
        fields = "[i.min, i.max, i.bits" + (", i.eps, i.tiny]" if name == "finfo" else "]")
        return [*d.lines, f"i = L.{name}({joined(args, kw)})", f"r = {fields}"]
    if not method:
        if plain.endswith("_") and prefix in ("", "F") and args:  # leaves are not written to
            args[0] = f"{args[0]}.clone()"
        return [*d.lines, f"r = {PATHS[prefix + '.' if prefix else '']}{plain}({joined(args, kw)})"]
    target = args[0]
    writes = plain in INPLACE_OPERATORS or plain == "__setitem__" or (plain.endswith("_") and not plain.startswith("_"))
    lines = list(d.lines)
    if writes:
        lines.append(f"y = {target}.clone()" if d.chance(0.93) else f"y = {target}")
        target = "y"
    if plain in INPLACE_OPERATORS:
        return [*lines, f"y {INPLACE_OPERATORS[plain]} {args[1] if len(args) > 1 else ''}", "r = y"]
    if plain == "__setitem__":
        return [*lines, f"y[{args[1]}] = {args[2]}", "r = y"]
    if plain in OPERATORS and OPERATORS[plain].count("{") <= len(args):
        return [*lines, "r = " + OPERATORS[plain].format(target, *args[1:])]
    return [*lines, f"r = {target}.{plain}({joined(args[1:], kw)})"]


def called_names() -> list[str]:
    return [name for name in public_names() if why_not(name) is None]
