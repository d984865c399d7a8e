"""Calls of the layers of signals, images and volumes, merged in `calls.py`; n is the number of spatial axes."""

from __future__ import annotations

from .draw import SHAPES, Draw, DrawnTensor

ONEFLOWS = (
    "nn.FusedBatchNorm1d",
    "nn.FusedBatchNorm2d",
    "nn.FusedBatchNorm3d",
    "nn.RMSLayerNorm",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
)
FLOATS = ("float32", "float32", "float64", "float16", "int64")


def signal(d: Draw, n: int, c: int | None = None, **fixed) -> DrawnTensor:
    """(N, C, ...) or (C, ...), small; rarely something else."""
    space = [d.one(4, 3, 5) if n < 3 else d.one(2, 3, 3) for _ in range(n)]
    shape = [2 if c is None else c, *space]
    if d.chance(0.75):
        shape.insert(0, d.one(1, 2, 2, 0) if d.chance(0.3) else 1)
    elif d.chance(0.2):
        shape[-1] = 0
    return d.tensor(tuple(shape) if d.chance(0.95) else d.choice(SHAPES), d.dtype_of(*FLOATS), **fixed)


def window(d: Draw, n: int) -> str:
    """An int or one per axis."""
    if d.chance(0.03):
        return d.of("0 -1 (1,2,3,4) 100 2.5")
    many = str(tuple(d.one(1, 2, 2, 3) for _ in range(n)))
    return d.one("1", "2", "2", "3", many)


def near(d: Draw, n: int, *usual: int) -> str:
    return d.one(*map(str, usual), str(tuple(d.choice(usual) for _ in range(n))))


def convolution(n: int, turned: bool = False):
    def make(d: Draw):
        groups = d.one(1, 1, 1, 2)
        c, f = d.one(1, 2) * groups, d.one(1, 2) * groups
        dtype = d.dtype_of(*FLOATS[:4], "int64" if d.chance(0.2) else "float32")
        x = signal(d, n, c) if d.chance(0.1) else d.tensor((d.one(1, 2, 1, 0), c, *[3] * n)[d.chance(0.1) :], dtype)
        first, second = (c, f) if turned else (f, c)
        kernel = tuple(d.one(1, 2, 3) for _ in range(n))
        w = d.tensor((first, second // groups + d.chance(0.03), *kernel), dtype)
        args, kw = [str(x), str(w)], {}
        if d.chance(0.5):
            args.append(str(d.tensor((f + d.chance(0.05),), dtype)) if d.chance(0.8) else "None")
        if d.chance(0.5):
            kw["stride"] = near(d, n, 1, 2)
        if d.chance(0.5):
            kw["padding"] = near(d, n, 0, 1) if turned or d.chance(0.6) else d.of("'same' 'valid' 'x' -1")
        if d.chance(0.3):
            kw["dilation"] = near(d, n, 1, 2)
        if turned and d.chance(0.3):
            kw["output_padding"] = near(d, n, 0, 1)
        if groups > 1 or d.chance(0.05):
            kw["groups"] = str(groups if d.chance(0.95) else d.one(3, 0))
        return args, kw

    return make


def conv_layer(n: int, turned: bool = False, lazy: bool = False):
    def make(d: Draw):
        args = [d.of("2 4"), window(d, n)] if lazy else ["2", d.of("2 4"), window(d, n)]
        kw = d.some(stride="1 2", groups="1 2", bias="True False", dilation="1 2")
        if turned:
            kw |= d.some(padding="0 1", output_padding="0 1")
        else:
            kw |= d.some(padding="0 1 'same'", padding_mode="'zeros' 'reflect' 'circular' 'replicate'")
        return args, kw, signal(d, n, 2)

    return make


MODES = "'constant' 'reflect' 'replicate' 'circular'"


def padded(n: int, constant: bool = False, least: int = -1):
    """least: PyTorch's circular pad reads uninitialized memory if one side is negative and another is not."""

    def make(d: Draw):
        many = tuple(d.one(0, 1, 1, 2, least) for _ in range(2 * n))
        args = [d.one("1", "2", str(many)) if d.chance(0.95) else d.of("(1,) -5 9 (1,2,3)")]
        return args + [d.of("0 1.5 -2 nan")] * constant, {}, signal(d, n)

    return make


def pad(d: Draw):
    n = d.one(1, 2, 3)
    many = [d.one(0, 1, 2, 1, -1) for _ in range(2 * n - d.chance(0.04))]
    return [str(signal(d, n)), str(tuple(many))], {"mode": d.of(f"{MODES} 'x'")} | d.some(value="0 1.5")


EPS = "1e-5 0.1 0.0 1e-3"


def vector(d: Draw, c: int, dtype: str, profile: str | None = None) -> str:
    grad = False if profile else None
    return str(d.tensor((c if d.chance(0.97) else c + 1,), dtype, profile, grad, layout="plain"))


def some_numbers(d: Draw, n: int | None = None):
    """(x, channels) for a norm, with float elements."""
    n, c = n or d.one(1, 1, 2, 3), d.one(2, 4, 2, 1)
    space = [d.one(2, 2, 3) for _ in range(n)]
    shape = (d.one(1, 2, 2, 0 if d.chance(0.2) else 2), c, *space)
    return d.floats(shape if d.chance(0.95) else d.choice(SHAPES)), c


def group_norm(d: Draw):
    x, c = some_numbers(d)
    args = [str(x), d.one("1", "2", str(c), "1", "0" if d.chance(0.1) else "1")]
    if d.chance(0.6):
        args += [vector(d, c, x.dtype), vector(d, c, x.dtype)]
    return args, d.some(eps=EPS)


def instance_norm(d: Draw):
    x, c = some_numbers(d)
    kw = d.some(eps=EPS, momentum="0.1 0.5 0.0", use_input_stats="True False")
    if d.chance(0.5):
        kw |= {"running_mean": vector(d, c, x.dtype, "plain"), "running_var": vector(d, c, x.dtype, "unit")}
    if d.chance(0.5):
        kw |= {"weight": vector(d, c, x.dtype), "bias": vector(d, c, x.dtype)}
    return [str(x)], kw


def rms_norm(d: Draw):
    shape = d.one((2, 3), (3,), (2, 3, 4), (0, 3), (1, 1))
    x = d.floats(shape)
    tail = shape[-d.one(1, 1, len(shape)) :] if d.chance(0.95) else (2,)
    weight = [str(d.tensor(tail, x.dtype))] if d.chance(0.6) else []
    return [str(x), d.shape_text(tail), *weight], d.some(eps="1e-5 0.1 None 0.0")


def local_response_norm(d: Draw):
    kw = d.some(alpha="1e-4 0.5 0.0", beta="0.75 1.0 0.5", k="1.0 2.0 0.0")
    return [str(some_numbers(d)[0]), d.of("1 2 3 5 0" if d.chance(0.1) else "1 2 3 5")], kw


def norm_layer(n: int, track: str = "True False"):
    """Instance and batch norms of two channels."""

    def make(d: Draw):
        shape = (d.one(1, 2, 2), 2, *[d.one(2, 2, 3) for _ in range(n)])
        if d.chance(0.1):
            shape = d.one(shape[1:], (2, 3, *shape[2:]), (0, *shape[1:]))
        options = d.some(eps=EPS, momentum="0.1 0.5", affine="True False", track_running_stats=track)
        return ["2"], options, d.floats(shape)

    return make


def pooling(n: int, kind: str):
    """max, avg, lp."""

    def make(d: Draw):
        x = signal(d, n)
        args, kw = [window(d, n)], {}
        if d.chance(0.5):
            kw["stride"] = d.of("None 1 2 0" if d.chance(0.1) else "None 1 2")
        if d.chance(0.4) and kind != "lp":
            kw["padding"] = near(d, n, 0, 1)
        kw |= d.some(ceil_mode="True False")
        if kind == "max":
            kw |= d.some(dilation="1 2", return_indices="True False")
        if kind == "avg":
            kw |= d.some(count_include_pad="True False") | (d.some(divisor_override="3 -2 None") if n > 1 else {})
        if kind == "lp":
            args.insert(0, d.of("1 2 2.0 3 inf 0.5"))
        return [str(x), *args], kw

    return make


def adaptive(n: int, kind: str):
    def make(d: Draw):
        x = signal(d, n)
        args = [d.one("1", "2", "3", "7" if n == 1 else "4", str(tuple(d.one(1, 2, 3, None) for _ in range(n))))]
        kw = d.some(return_indices="True False") if kind == "max" else {}
        return [str(x), *args], kw

    return make


def unpooling(n: int):
    def make(d: Draw):
        x = signal(d, n, profile="distinct" if d.chance(0.3) else None)
        kernel = d.one("2", "3", str((2,) * n))
        kw = d.some(stride="2 1" if kernel == "2" else "3 2")
        pooled = ", ".join([str(x), kernel, *[f"{k}={v}" for k, v in kw.items()], "return_indices=True"])
        d.lines.append(f"y, i = L.nn.functional.max_pool{n}d({pooled})")
        size = {} if d.chance(0.4) else {"output_size": str(list(x.shape[-n:])) if d.chance(0.9) else "[5]"}
        return ["y", "i", kernel], kw | size

    return make


SMOOTH = {1: "'linear'", 2: "'bilinear' 'bicubic'", 3: "'trilinear'"}


def sized(d: Draw, n: int) -> dict:
    each = lambda *options: str(tuple(d.choice(options) for _ in range(n)))
    if d.chance(0.5):
        return {"size": d.one("1", "2", "5", each(1, 2, 3, 5)) if d.chance(0.95) else d.of("0 -1 (1,2,3,4) 2.5")}
    factor = {"scale_factor": d.one("2", "0.5", "1.5", "3.0", each(0.7, 1.0, 2, 1.3)) if d.chance(0.95) else "0"}
    return factor | d.some(recompute_scale_factor="True False None")


def interpolate(d: Draw):
    n = d.one(1, 2, 3)
    kw = sized(d, n) | {"mode": d.of(f"'nearest' 'nearest-exact' 'area' {SMOOTH[n]} {SMOOTH[n]}")}
    if kw["mode"] in SMOOTH[n]:
        kw |= d.some(align_corners="True False None")
    return [str(signal(d, n))], kw


def upsampling(call):
    """Without the argument that only interpolate takes."""

    def make(d: Draw):
        args, kw = call(d)
        kw.pop("recompute_scale_factor", None)
        return args, kw

    return make


def images_resized(d: Draw):
    return [str(signal(d, 2))], sized(d, 2) if d.chance(0.5) else {"size": "(3, 4)"}


def grid_sample(d: Draw):
    n = d.one(2, 2, 3)
    x = d.floats((d.one(1, 2), d.one(1, 2), *[d.one(2, 3, 1) for _ in range(n)]))
    profile = d.of("plain kinks unit ties")  # finite: PyTorch may crash on infinite coordinates
    grid = d.tensor((x.shape[0], *[d.one(1, 2) for _ in range(n)], n if d.chance(0.97) else 1), x.dtype, profile)
    kw = {"mode": d.of("'bilinear' 'nearest' 'bilinear' 'bicubic'")} if n == 2 or d.chance(0.1) else {}
    return [str(x), str(grid)], kw | d.some(padding_mode="'zeros' 'border' 'reflection'", align_corners="True False")


def affine_grid(d: Draw):
    n = d.one(2, 2, 3)
    size = (d.one(1, 2), 2, *[d.one(1, 2, 3) for _ in range(n)])
    theta = d.floats((size[0], n, n + 1) if d.chance(0.95) else (2, 3))
    return [str(theta), str(size)], d.some(align_corners="True False")


def folds(d: Draw, back: bool):
    kernel = d.one((2, 2), (1, 2), (3, 1))
    kw = d.some(dilation="1 2", padding="0 1", stride="1 2")
    h, w = d.one(3, 4), d.one(3, 4)
    if not back:
        x = signal(d, 2)
        return [str(x), d.one("1", "2", str(kernel))], kw
    s, p, g = (int(kw.get(k, default)) for k, default in (("stride", 1), ("padding", 0), ("dilation", 1)))
    counts = [max((n + 2 * p - g * (k - 1) - 1) // s + 1, 1) for n, k in zip((h, w), kernel)]
    many = counts[0] * counts[1] + d.chance(0.05)
    shape = (2, 2 * kernel[0] * kernel[1], many)[d.chance(0.2) :]
    return [str(d.tensor(shape, d.dtype_of(*FLOATS))), str((h, w)), str(kernel)], kw


def shuffled(d: Draw, shape: tuple):
    x = d.tensor(shape if d.chance(0.9) else d.choice(SHAPES))
    return [str(x), d.of("2 2 2 1 3 0" if d.chance(0.2) else "2 2 1")], {}


RESIZED = {
    "interpolate": interpolate,
    "upsample": upsampling(interpolate),
    **dict.fromkeys(("upsample_nearest", "upsample_bilinear"), upsampling(images_resized)),
    "grid_sample": grid_sample,
    "affine_grid": affine_grid,
    "F.unfold": lambda d: folds(d, False),
    "fold": lambda d: folds(d, True),
    "pixel_shuffle": lambda d: shuffled(d, (*[1, 2][: d.one(1, 2)], d.one(4, 8), 2, 3)),
    "pixel_unshuffle": lambda d: shuffled(d, (*[1, 2][: d.one(1, 2)], 2, 4, 2)),
    "channel_shuffle": lambda d: shuffled(d, (2, 4, 2, 3)[: d.one(3, 4)]),
}
CALLS, LAYERS = dict(RESIZED), {}
for n in (1, 2, 3):
    CALLS |= {f"{k}_pool{n}d": pooling(n, k) for k in ("max", "avg", "lp")}
    CALLS |= {f"adaptive_{k}_pool{n}d": adaptive(n, k) for k in ("max", "avg")}
    CALLS |= {f"max_unpool{n}d": unpooling(n)}
CALLS |= {f.__name__: f for f in (group_norm, instance_norm, rms_norm, local_response_norm)}
LAYERS |= {
    "GroupNorm": lambda d: (
        (x := some_numbers(d)) and [d.of("1 2"), str(x[1])],
        d.some(eps=EPS, affine="True False"),
        x[0],
    ),
    "RMSNorm": lambda d: (
        ["(3,)"],
        d.some(eps="1e-5 None", elementwise_affine="True False"),
        d.floats(d.one((2, 3), (3,), (0, 3), (2, 2, 3), (2, 2))),
    ),
    "SyncBatchNorm": norm_layer(2),
    "BatchNorm2d": norm_layer(2),
    "BatchNorm3d": norm_layer(3),
    **{f"InstanceNorm{n}d": norm_layer(n) for n in (1, 2, 3)},
}
for n in (1, 2, 3):
    CALLS |= {f"conv_transpose{n}d": convolution(n, True), f"conv{n}d": convolution(n)}
    LAYERS |= {f"Conv{n}d": conv_layer(n), f"ConvTranspose{n}d": conv_layer(n, True)}
    LAYERS |= {f"{kind}Pad{n}d": padded(n) for kind in ("Zero", "Reflection", "Replication")}
    LAYERS |= {f"CircularPad{n}d": padded(n, least=0)}
    LAYERS |= {f"ConstantPad{n}d": padded(n, True)}
for n in (1, 2, 3):
    LAYERS |= {f"LazyConv{n}d": conv_layer(n, lazy=True), f"LazyConvTranspose{n}d": conv_layer(n, True, lazy=True)}
    LAYERS |= {f"Lazy{kind}Norm{n}d": (lambda d, n=n: ([], *norm_layer(n)(d)[1:])) for kind in ("Batch", "Instance")}
LAYERS["LazyLinear"] = lambda d: ([d.of("2 1 4")], d.some(bias="True False"), d.floats(d.one((2, 3), (3,), (0, 3))))
