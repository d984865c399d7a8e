"""Related arguments of functions that reshape, sort, count and scatter, merged in `calls.py`."""

from __future__ import annotations

from math import prod

from .draw import SHAPES, Draw, table

PLACED = ((3,), (4,), (2, 3), (3, 3), (2, 3, 4), (1, 3))


def several(d: Draw):
    return [str(d.tensor()) for _ in range(d.one(1, 1, 2))], {}


def listed(d: Draw):
    x = d.first()
    return [f"[{', '.join([str(x), *[str(d.same()) for _ in range(d.randrange(3))]])}]"], {}


def cuts(d: Draw):
    x = d.first()
    return [str(x), d.one("1", "2", "3", "[1]", "[1, 2]", "[0, 1]", "[]", "(-1,)", "[2, 1]", "[7]", "0")], {}


def cuts_along(d: Draw):
    args, _ = cuts(d)
    return args, {"dim": d.axis()} if d.chance(0.6) else {}


def sized(d: Draw):
    x = d.first()
    axis, n = d.along(x)
    return [str(x), str([1, n - 1]) if n else "[0]", str(axis)], {}


def vectors_of(d: Draw, *fixed: tuple):
    n = d.one(2, 3, 1)
    return [str(d.tensor(d.one((2,), (3,), (0,), (1,)), d.made[0].dtype if d.made else None)) for _ in range(n)], {}


def blocks(d: Draw):
    return [str(d.tensor(d.one((), (2,), (2, 3), (1, 2), (0,), (3, 1)))) for _ in range(d.one(1, 2, 3))], {}


def choices_of(d: Draw):
    kw = d.some(r="0 1 2 3 5", with_replacement="True False")
    return [str(d.tensor(d.one((3,), (4,), (0,), (1,), (2, 2))))], kw


def shapes(d: Draw):
    return [d.of("(2,1) (3,) (1,3) () (2,3) 3 (0,) (1,) (4,)") for _ in range(d.randrange(1, 4))], {}


def repeats_of(d: Draw):
    if d.chance(0.2):
        return [str(d.tensor((3,), "int64", "zeros", layout="plain"))], {}
    x = d.first()
    axis, n = d.along(x)
    if d.chance(0.5):
        return [str(x), d.count()], {"dim": str(axis)} if d.chance(0.7) else {}
    text = f"L.tensor({[d.randrange(3) for _ in range(n)]}, dtype=L.int64)"
    return [str(x), text], {"dim": str(axis)}


def method_repeats(d: Draw):
    args, kw = repeats_of(d)
    while len(args) < 2:
        args, kw = repeats_of(d)
    return args, kw


def slopes(d: Draw):
    x = d.first(shape=d.fixed.get("shape", d.one((4,), (3,), (3, 4), (2, 3), (5,), (3, 0))))
    return [str(x)], d.some(spacing="1 2 0.5", edge_order="1 2", dim="0 -1 (0,)")


def areas(d: Draw):
    y = d.first()
    kw = d.some(dim=Draw.axis, dx="1 2 0.5")
    if "dx" not in kw:
        kw |= d.some(x=lambda d: str(d.same()))
    return [str(y)], kw


def shares(d: Draw):
    dtype, shape = d.fixed.get("dtype", d.one("float32", "float32", "float64")), d.fixed.get("shape", d.choice(SHAPES))
    # for more than 16 ties it is unspecified which gets the gradient
    x = d.first(dtype=dtype, shape=shape, profile="distinct" if prod(shape) > 16 else None)
    q = d.one(
        "0.5", "0.0", "1.0", "0.3", f"L.tensor([0.25, 0.5, 0.9], dtype=L.{dtype})", f"L.tensor(0.1, dtype=L.{dtype})"
    )
    return [str(x), q], d.some(
        dim=Draw.axis, keepdim="True False", interpolation="'linear' 'lower' 'higher' 'midpoint' 'nearest' 'x'"
    )


def counts(d: Draw):
    x = d.labels(d.one((4,), (3,), (0,), (1,), (2, 2)), 5)
    d.x = x
    return [str(x)], d.some(weights=lambda d: str(d.tensor(x.shape)), minlength="0 3 8 -1")


def bins(d: Draw):
    x = d.first(dtype=d.fixed.get("dtype", d.one("float32", "float32", "float64")))
    args = [str(x), d.of("4 1 3")]
    return args + (["-1.0", "2.5"] if d.chance(0.6) else []), {}


def histograms(d: Draw):
    x = d.first(dtype=d.fixed.get("dtype", d.one("float32", "float32", "float64")))
    how = d.one("3", "1", "4", f"L.tensor([-1.0, 0.0, 2.0], dtype=L.{x.dtype})")
    kw = d.some(density="True False")
    if how[0] != "L" and d.chance(0.5):
        kw["range"] = "(-1.0, 2.0)"
    if d.chance(0.3):
        kw["weight"] = str(d.tensor(x.shape, x.dtype))
    return [str(x), how], kw


def members(d: Draw):
    x = d.first(profile="ties")
    return [str(x), str(d.partner(0.15, profile="ties"))], d.some(invert="True False")


def edges(swapped: bool):
    def make(d: Draw):
        x = d.first()
        values = "[-1.0, 0.0, 0.0, 1.5, 2.0]" if x.dtype in ("float32", "float64", "float16") else "[0, 0, 1, 2, 5]"
        text = f"L.tensor({values}, dtype=L.{x.dtype})"
        args = [str(x), text] if swapped else [text, str(x)]
        return args, d.some(right="True False", out_int32="True False")

    return make


def reduced_places(rows: bool):
    """scatter_reduce, index_reduce: x, axis, index, source, reduction."""

    def make(d: Draw):
        x = d.first(shape=d.fixed.get("shape") or d.choice(PLACED))
        axis, size = d.along(x)
        if rows:
            index = d.labels((d.one(1, 2, 3),), size)
            shape = x.resized(axis, index.shape[0])
        else:
            shape = [n if d.chance(0.6) else d.randrange(n + 1) for n in x.shape]
            index = d.labels(tuple(shape), size)
        how = "'prod' 'mean' 'amax' 'amin'" + ("" if rows else " 'sum' 'x'")
        source = d.tensor(shape, x.dtype)
        return [str(x), str(axis), str(index), str(source), d.of(how)], d.some(include_self="True False")

    return make


def put_many(d: Draw):
    x = d.first(shape=d.fixed.get("shape") or d.choice(PLACED))
    n = x.shape[0] if x.ndim else 1
    k = d.one(1, 2)
    index = d.labels((k,), n)
    shape = (k, *x.shape[1:])
    parts = f"({index},)"
    if x.ndim > 1 and d.chance(0.5):
        parts, shape = f"({index}, {d.labels((k,), x.shape[1])})", (k, *x.shape[2:])
    return [str(x), parts, str(d.tensor(shape, x.dtype))], d.some(accumulate="True False")


def put_flat(d: Draw):
    x = d.first()
    shape = d.one((2,), (1,), (2, 2), (0,))
    index = d.labels(shape, prod(x.shape))
    return [str(x), str(index), str(d.tensor(shape, x.dtype))], d.some(accumulate="True False")


def masked(d: Draw):
    x = d.first()
    mask = d.tensor(x.shape if d.chance(0.8) else d.fitting(x.shape), "bool", layout="plain")
    n = prod(x.shape) if d.chance(0.9) else 1
    return [str(x), str(mask), str(d.tensor((n,), x.dtype))], {}


def into_view(kind: str):
    def make(d: Draw):
        x = d.first(shape=d.fixed.get("shape") or d.choice(PLACED))
        axis = d.randrange(max(x.ndim, 1))
        shape = list(x.shape)
        source = lambda: str(d.tensor(shape, x.dtype))
        if kind == "select":
            k = shape.pop(axis) if shape else 1
            return [str(x), source(), str(axis), str(d.randrange(k) if k else 0)], {}
        if kind == "slice":
            k = shape[axis] if shape else 1
            start, end, step = d.one((0, k, 1), (1, k, 1), (0, k, 2), (0, 1, 1))
            if shape:
                shape[axis] = len(range(start, end, step))
            return [str(x), source(), str(axis), str(start), str(end), str(step)], {}
        if len(shape) < 2:
            return [str(x), source()], {}
        a, b = shape[0], shape[1]
        shape = [*shape[2:], min(a, b)]
        return [str(x), source()], {}

    return make


def looks(d: Draw):
    x = d.tensor(d.fixed.get("shape") or d.one((6,), (2, 3), (3, 4), (2, 3, 2)), layout="plain")
    size_, stride = d.one(
        ("(2, 2)", "(1, 2)"),
        ("(3,)", "(1,)"),
        ("(2, 2)", "(1, 1)"),
        ("()", "()"),
        ("(2,)", "(3,)"),
        ("(9,)", "(1,)"),
        ("(2, 0)", "(1, 1)"),
    )
    return [str(x), size_, stride], d.some(storage_offset="0 1 2")


def strided_scatter(d: Draw):
    x = d.tensor(d.fixed.get("shape") or d.one((6,), (2, 3), (3, 4)), layout="plain")
    return [str(x), str(d.tensor((2, 2), x.dtype)), "(2, 2)", "(1, 2)"], d.some(storage_offset="0 1")


def summed(d: Draw):
    x = d.first()
    shape = [n if d.chance(0.5) else 1 for n in x.shape][d.randrange(2) if x.ndim > 1 else 0 :]
    return [str(x), *d.spread(shape)], {}


def weights(d: Draw):
    x = d.tensor(d.one((3,), (2, 3), (0, 3), (4,)), d.dtype_of("float32", "float64", "float16"), "unit", layout="plain")
    return [str(x), d.of("1 2 3 1")], d.some(replacement="True False")


def many_trials(d: Draw):
    n = d.tensor(d.one((3,), (2, 3), ()), d.dtype_of("float32", "float64"), "unit", grad=False)
    return [str(n), str(d.tensor(n.shape, n.dtype, "unit", grad=False))], {}


def window(*more: str):
    def make(d: Draw):
        kw = d.some(periodic="True False", dtype="L.float64 L.float32 L.int64")
        return [d.of("0 1 2 5 8 -1")], kw | (d.some(beta="0.5 12.0", alpha="0.5") if more else {})

    return make


CALLS = {
    **table("""
unsafe_chunk unsafe_split: x 1|2|3 axis
rot90: x k=0|1|2|3|-1|5 dims=(0,1)|(1,0)|[0,2]|(-1,0)|(0,0)
narrow_copy: x axis 0|1|-1|2 0|1|2
diff: x n=0|1|2|3 dim=axis
kthvalue: distinct 1|1|2|3|0 dim=axis keepdim=truth
mode: ties dim=axis keepdim=truth
unique unique_consecutive: ties return_inverse=truth return_counts=truth dim=axis
unfold: x axis 1|2|3|0 1|2|3|1
diag_embed: x offset=0|1|-1 dim1=0|-2|1 dim2=-1|1|2
diagflat: x offset=0|1|-1
fill_diagonal: x 0|1|-2.5|7 wrap=truth
unravel_index: L.tensor(4)|L.tensor([2,5])|L.tensor([[0,1],[5,6]])|L.tensor([],dtype=L.int64) (2,3)|(3,2)|6|(6,)|(1,2,3)
poisson: unit
kaiser_window: 0|1|2|5|8|-1 periodic=truth beta=0.5|12.0
tril_indices triu_indices: 0|1|3|4 0|2|3 offset=0|1|-1 dtype=L.int32|L.int64
logspace: 0|1|-2|0.5 2|3|1 0|1|3|5 base=2|10.0|0.5 dtype=L.float64|L.float32
vander: x N=0|1|3 increasing=truth
resize: buffer (2,2)|(1,)|(3,)|(0,)
resize_as: buffer tensor
Tensor.is_same_size: x same
Tensor.geometric_: x 0.5|0.1|0.0|1.0
Tensor.cauchy_: x median=0.0|1.0 sigma=1.0|0.0
Tensor.log_normal_: x mean=0.0|1.0 std=1.0|0.0
Tensor.apply_: buffer abs|3
"""),
    **dict.fromkeys("atleast_1d atleast_2d atleast_3d".split(), several),
    **dict.fromkeys("column_stack dstack row_stack".split(), listed),
    **dict.fromkeys("hsplit vsplit dsplit".split(), cuts),
    "tensor_split": cuts_along,
    **dict.fromkeys(("split_with_sizes", "unsafe_split_with_sizes"), sized),
    "block_diag": blocks,
    "cartesian_prod": vectors_of,
    "combinations": choices_of,
    "broadcast_shapes": shapes,
    "repeat_interleave": repeats_of,
    "Tensor.repeat_interleave": method_repeats,
    "gradient": slopes,
    **dict.fromkeys("trapezoid trapz cumulative_trapezoid".split(), areas),
    **dict.fromkeys(("quantile", "nanquantile"), shares),
    "bincount": counts,
    "histc": bins,
    "histogram": histograms,
    "isin": members,
    "searchsorted": edges(False),
    "bucketize": edges(True),
    "scatter_reduce": reduced_places(False),
    "index_reduce": reduced_places(True),
    "index_put": put_many,
    "put": put_flat,
    "masked_scatter": masked,
    "select_scatter": into_view("select"),
    "slice_scatter": into_view("slice"),
    "diagonal_scatter": into_view("diagonal"),
    "as_strided": looks,
    "as_strided_scatter": strided_scatter,
    "sum_to_size": summed,
    "multinomial": weights,
    "binomial": many_trials,
    **dict.fromkeys("hann_window blackman_window bartlett_window".split(), window()),
    "hamming_window": window("alpha"),
    "Tensor.set_": lambda d: ((x := d.first(grad=False)) and [str(x), str(d.tensor(dtype=x.dtype, grad=False))], {}),
    "Tensor.is_set_to": lambda d: ((x := d.first()) and [str(x), d.one(str(x), str(d.same()))], {}),
    "Tensor.map_": lambda d: (
        (x := d.first(grad=False)) and [str(x), str(d.tensor(x.shape, x.dtype, grad=False)), "lambda a, b: a + b"],
        {},
    ),
    "Tensor.map2_": lambda d: (
        (x := d.first(grad=False))
        and [
            str(x),
            str(d.tensor(x.shape, x.dtype, grad=False)),
            str(d.tensor(x.shape, x.dtype, grad=False)),
            "lambda a, b, c: a + b * c",
        ],
        {},
    ),
}

RANDOM = {  # only shapes and dtypes are compared
    "multinomial",
    "poisson",
    "binomial",
    "Tensor.multinomial",
    "Tensor.geometric_",
    "Tensor.cauchy_",
    "Tensor.log_normal_",
    "Tensor.resize_",
    "Tensor.resize_as_",
}
UNCALLED = {
    **dict.fromkeys(
        ("batch_gather", "nms", "roc_auc_score", "Tensor.batch_gather", "Tensor.in_top_k", "Tensor.nms"),
        "OneFlow's: PyTorch has none (tests/core/test_scatter.py)",
    ),
    **dict.fromkeys(("repeat", "new_ones", "Tensor.put", "Tensor.fill_diagonal"), "PyTorch has it in another place"),
    **{
        f"Tensor.{name}": "tells of storage, of which there is one kind: tests/core/test_storage.py"
        for name in "const_data_ptr share_memory_ is_shared dim_order retains_grad is_cpu".split()
    },
}
