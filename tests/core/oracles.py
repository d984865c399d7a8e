"""For each op, the same result computed by numpy and scipy instead of the engine. None: see the op's own tests."""

import numpy as np
from scipy import special

from minflow.core.spec import promote, spec_of
from tests.core import (
    oracles_activations,
    oracles_counting,
    oracles_images,
    oracles_layers,
    oracles_linalg,
    oracles_losses,
    oracles_math,
    oracles_nn,
    oracles_pools,
    oracles_rnn,
    oracles_update,
)


def promoted(*arrays, floating: bool = False):
    """Inputs promoted to a common dtype, as in PyTorch."""
    dtype = promote(*[a.__class__ if isinstance(a, bool | int | float) else spec_of(a) for a in arrays])
    name = "float32" if floating and not dtype.floating else dtype.name
    return [np.asarray(a, name) for a in arrays]


def of(function, floating: bool = False):
    """An elementwise function of numpy on promoted inputs."""
    return lambda *arrays: function(*promoted(*arrays, floating=floating))


def erf_slow(x):
    return special.erf(x.astype("float64"))


def rows(x, index, axis):
    return (
        np.stack([x[(slice(None),) * axis + (i,)] for i in index.reshape(-1)], axis).reshape(
            x.shape[:axis] + index.shape + x.shape[axis + 1 :]
        )
        if index.size
        else np.zeros(x.shape[:axis] + index.shape + x.shape[axis + 1 :], x.dtype)
    )


def into_rows(x, index, src, axis, add: bool):
    """index_add and index_put, one element of the index at a time."""
    out = np.moveaxis(x.copy(), axis, 0)
    flat = index.reshape(-1)
    if isinstance(src, np.ndarray):
        src = np.moveaxis(src.reshape((*x.shape[:axis], flat.size, *x.shape[axis + 1 :])), axis, 0)
    for k, i in enumerate(flat):
        value = src[k] if isinstance(src, np.ndarray) else src
        out[i] = out[i] + value if add else value
    return np.ascontiguousarray(np.moveaxis(out, 0, axis))


def at(index, dim):
    for place in np.ndindex(index.shape):
        yield place, (*place[:dim], int(index[place]), *place[dim + 1 :])


def gathered(x, index, dim):
    out = np.empty(index.shape, x.dtype)
    for place, source in at(index, dim):
        out[place] = x[source]
    return out


def scattered(x, index, src, dim, add: bool):
    out = x.copy()
    for place, target in at(index, dim):
        value = src[place] if isinstance(src, np.ndarray) else src
        out[target] = out[target] + value if add else value
    return out


def written(base, value, path):
    out = base.copy()
    place = out
    for op, attrs in path:
        if op.name == "getitem":
            place = place[tuple([slice(*i) if isinstance(i, tuple) else i for i in attrs["index"]])]
        else:
            place = np.transpose(place, attrs["dims"])
    place[...] = value
    return out


def reduce_by(function, axis_name="axis"):
    return lambda x, axis, keepdims: function(x, axis=axis, keepdims=keepdims)


def product(a, b, ta, tb):
    return np.einsum("...ij,...jk->...ik", np.swapaxes(a, -1, -2) if ta else a, np.swapaxes(b, -1, -2) if tb else b)


def ordered(x, axis, descending):
    """Sort stably with Python's own sort."""

    def along(v):
        order = sorted(range(len(v)), key=lambda i: -v[i] if descending else v[i])
        return np.array(order, "int64")

    indices = np.apply_along_axis(along, axis, x) if x.size else np.zeros(x.shape, "int64")
    return np.take_along_axis(x, indices, axis), indices


def sum_back(x, shape):
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1)
    return np.sum(x, axes, keepdims=True).reshape(shape)


ORACLES = {
    # shape
    "clone": lambda x: x,
    "copy_to": lambda x, device: x,
    "overwritten": lambda new, old: new,
    "cast": lambda x, dtype: x.astype(dtype.np),
    "full": lambda shape, value, dtype: np.full(shape, value, dtype.np),
    "getitem": lambda x, index: x[tuple([slice(*i) if isinstance(i, tuple) else i for i in index])],
    "reshape": lambda x, shape: np.reshape(x, shape),
    "permute": lambda x, dims: np.transpose(x, dims),
    "expand": lambda x, shape: np.broadcast_to(x, shape),
    "detach": lambda x: x,
    "diagonal": lambda x, offset, dim1, dim2: np.diagonal(x, offset, dim1, dim2),
    "view_write": written,
    "sum_to": sum_back,
    "cat": lambda *tensors, dim: np.concatenate(tensors, dim),
    "stack": lambda *tensors, dim: np.stack(tensors, dim),
    # elementwise
    "add": of(np.add),
    "sub": of(np.subtract),
    "mul": of(np.multiply),
    "div": of(np.divide, floating=True),
    "pow": of(lambda a, b: np.power(a, b)),
    "floor_divide": of(lambda a, b: np.floor(a / b).astype(a.dtype)),
    "remainder": of(lambda a, b: a - b * np.floor(a / b).astype(a.dtype)),
    "fmod": of(lambda a, b: a - b * np.trunc(a / b).astype(a.dtype)),
    "trunc_divide": of(lambda a, b: np.trunc(a / b), True),
    "mix": of(lambda a, b, keep, take: keep * a + take * b, True),
    "lerp": of(lambda a, b, w: (1 - w) * a + w * b, True),
    "maximum": of(lambda a, b: np.where(a > b, a, b)),
    "minimum": of(lambda a, b: np.where(a < b, a, b)),
    "clamp": of(lambda x, low, high: np.clip(x, low, high)),
    "where": lambda cond, a, b: np.choose(cond.astype(int), [np.asarray(b), np.asarray(a)]),
    "neg": of(lambda x: 0 - x),
    "abs": of(lambda x: np.where(x < 0, -x, x)),
    "sign": of(lambda x: ((x > 0) * 1 - (x < 0) * 1).astype(x.dtype)),
    "square": of(lambda x: x * x),
    "exp": of(np.exp, True),
    "expm1": of(np.expm1, True),
    "log": of(np.log, True),
    "log1p": of(np.log1p, True),
    "log2": of(np.log2, True),
    "sqrt": of(np.sqrt, True),
    "rsqrt": of(lambda x: x**-0.5, True),
    "reciprocal": of(lambda x: 1 / x, True),
    "sin": of(np.sin, True),
    "cos": of(np.cos, True),
    "tan": of(np.tan, True),
    "asin": of(np.arcsin, True),
    "acos": of(np.arccos, True),
    "atan": of(np.arctan, True),
    "tanh": of(np.tanh, True),
    "sinh": of(np.sinh, True),
    "cosh": of(np.cosh, True),
    "asinh": of(np.arcsinh, True),
    "acosh": of(np.arccosh, True),
    "atanh": of(np.arctanh, True),
    "atan2": of(np.arctan2, True),
    "sigmoid": of(special.expit, True),
    "erf": of(erf_slow, True),
    "softplus": of(lambda x: np.logaddexp(x, 0), True),
    "logit_entropy": of(lambda x, t: t * np.logaddexp(-x, 0) + (1 - t) * np.logaddexp(x, 0), True),
    "binary_entropy": of(lambda p, t: -special.xlogy(t, p) - special.xlog1py(1 - t, -p), True),
    "relu": of(lambda x: np.where(x > 0, x, 0)),
    "leaky_relu": of(lambda x, slope: np.where(x > 0, x, x * slope)),
    "leaky_relu_grad": of(lambda grad, x, slope: np.where(x > 0, grad, grad * slope)),
    "relu_grad": of(lambda x, y: np.where(y > 0, x, 0)),
    "floor": of(np.floor),
    "ceil": of(np.ceil),
    "round": of(np.round),
    "trunc": of(np.trunc),
    "log10": of(np.log10, True),
    "exp2": of(np.exp2, True),
    **oracles_math.ORACLES,
    # compare
    "signbit": np.signbit,
    "eq": of(np.equal),
    "ne": of(np.not_equal),
    "lt": of(np.less),
    "le": of(np.less_equal),
    "gt": of(np.greater),
    "ge": of(np.greater_equal),
    "isnan": lambda x: x != x,
    "isinf": lambda x: np.abs(x) == np.inf,
    "isfinite": lambda x: np.abs(x) < np.inf,
    "logical_not": lambda x: x == 0,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) != (b != 0),
    "bitwise_and": of(lambda a, b: a & b),
    "bitwise_or": of(lambda a, b: a | b),
    "bitwise_xor": of(lambda a, b: a ^ b),
    "bitwise_not": of(lambda x: ~x),
    # reduce
    "sum": reduce_by(np.sum),
    "mean": reduce_by(np.mean),
    "var": lambda x, axis, keepdims, correction: np.var(x, axis, keepdims=keepdims, ddof=correction),
    "prod": reduce_by(np.prod),
    "amax": reduce_by(np.max),
    "amin": reduce_by(np.min),
    "median": lambda x: np.sort(x, axis=None)[(x.size - 1) // 2],
    "argmax": reduce_by(np.argmax),
    "argmin": reduce_by(np.argmin),
    "any": reduce_by(np.any),
    "all": reduce_by(np.all),
    "cumsum": lambda x, axis: np.cumsum(x, axis),
    # linalg
    "matmul": product,
    # index
    "take": rows,
    "index_add": lambda x, index, src, axis: into_rows(x, index, src, axis, True),
    "index_put": lambda x, index, src, axis: into_rows(x, index, src, axis, False),
    "ravel_index": lambda *index, shape: np.arange(np.prod(shape)).reshape(shape)[tuple(index)],
    "pad": lambda x, widths, value: np.pad(x, widths, constant_values=value) if widths else x,
    "gather": gathered,
    "scatter": lambda x, index, src, dim: scattered(x, index, src, dim, False),
    "scatter_add": lambda x, index, src, dim: scattered(x, index, src, dim, True),
    "nonzero": lambda x: np.stack(np.nonzero(x), 1) if x.ndim else np.zeros((int(bool(x)), 0), "int64"),
    "tril": lambda x, diagonal: np.tril(x, diagonal),
    "triu": lambda x, diagonal: np.triu(x, diagonal),
    "checked_labels": lambda labels, **_: labels,
    "one_hot": lambda index, num_classes: np.eye(num_classes, dtype="int64")[index],
    "flip": lambda x, axes: np.flip(x, axes),
    "roll": lambda x, shifts, axes: np.roll(x, shifts, axes),
    "sort": ordered,
    "topk": lambda x, k, axis, descending: tuple([a.take(range(k), axis) for a in ordered(x, axis, descending)]),
    # random: tests/core/test_ops_random.py
    "uniform": None,
    "normal": None,
    "randint": None,
    "randperm": None,
    "bernoulli": None,
    "dropout": None,
    **oracles_activations.ORACLES,
    **oracles_nn.ORACLES | oracles_pools.ORACLES,
    **oracles_images.ORACLES,
    **oracles_update.ORACLES,
    **oracles_layers.ORACLES | oracles_losses.ORACLES,
    **oracles_rnn.ORACLES,
    **oracles_counting.ORACLES,
    **oracles_linalg.ORACLES,
}

TOLERANCE: dict[str, float] = {"fmod": 1e-6, "remainder": 1e-6, "pow": 1e-6, **oracles_linalg.TOLERANCE}

# Outputs without a gradient of their own, which a rule omits because they are never differentiated.
GLOBAL_OPS = {"boxing", "as_global", "as_local", "in_order", "share"}  # tests/distributed
FREE_GRADIENT: dict[str, tuple[int, ...]] = {
    "dropout": (1,),
    "batch_norm": (1, 2),
    "lstm": (3, 4),
    "lstm_projected": (3, 4),
    "gru": (2,),
}

# Inputs that depend on others: functions that make them consistent before gradients are compared.
IN_LINE = {"batch_norm_grad": oracles_nn.with_batch_statistics, **oracles_linalg.IN_LINE}
