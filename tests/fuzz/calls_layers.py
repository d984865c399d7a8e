"""Calls of losses, activations and distances with related arguments, merged in `calls.py`."""

from __future__ import annotations

from .draw import Draw, table

REDUCTION = lambda d: d.of("'mean' 'sum' 'none' 'mean'") if d.chance(0.97) else "'x'"


def signs(d: Draw, shape: tuple, dtype: str) -> str:
    """A tensor of 1 and -1, rarely of another number."""
    x = d.tensor(shape, dtype, grad=False)
    name = f"y{len(d.lines)}"
    d.lines.append(f"{name} = L.where({x}.detach() > 0, 1, -1).to({x}.dtype)")
    return name


def pairs(target="same", **choices):
    """A loss of an input and a target of the same kind."""

    def make(d: Draw):
        x = d.floats()
        if target == "signs":
            y = signs(d, x.shape, x.dtype)
        else:
            fixed = {} if target == "same" else {"grad": False}
            y = d.same(profile="unit" if target == "unit" else None, **fixed) if d.chance(0.95) else d.partner(0.0)
        return [str(x), str(y)], d.some(reduction=REDUCTION, **choices)

    return make


def ranking(d: Draw):
    x = d.floats()
    others = [str(d.same() if d.chance(0.9) else d.tensor(d.fitting(x.shape), x.dtype)), signs(d, x.shape, x.dtype)]
    return [str(x), *others], d.some(margin="0.0 0.5 2 -1.0", reduction=REDUCTION)


ROWS = [(2, 3), (3, 4), (1, 2), (3,), (0, 3)]


def triplets(*names: str):
    def make(d: Draw):
        shape = d.choice(ROWS)
        x = d.floats(shape)
        y, z = (d.tensor(shape if d.chance(0.96) else (2, 3), x.dtype) for _ in range(2))
        kinds = dict(margin="1.0 0.5 0.0", p="2.0 1.0 3.0 inf", eps="1e-6 0.0 0.1", swap="True False")
        return [str(x), str(y), str(z)], d.some(reduction=REDUCTION, **{name: kinds[name] for name in names})

    return make


def cosines(d: Draw):
    shape = d.choice(ROWS)
    x = d.floats(shape)
    y = d.tensor(shape if d.chance(0.96) else (2, 3), x.dtype)
    return [str(x), str(y), signs(d, shape[:-1], x.dtype)], d.some(margin="0.0 0.5 -0.5", reduction=REDUCTION)


def gaussian(d: Draw):
    x = d.floats()
    shape = d.one(x.shape, x.shape, x.shape[:-1], (*x.shape[:-1], 1)) if x.shape else ()
    v = d.tensor(shape, x.dtype, "unit")
    y = d.same(grad=False)
    return [str(x), str(y), str(v)], d.some(full="True False", eps="1e-6 0.1", reduction=REDUCTION)


def classes(d: Draw):
    n, c = d.one(1, 2, 3), d.one(1, 2, 4)
    shape = d.one((n, c), (n, c), (c,))
    x = d.floats(shape)
    kw = d.some(p="1 2 1 2 3", margin="1.0 0.5 0.0", reduction=REDUCTION)
    if d.chance(0.3):
        kw["weight"] = str(d.tensor((c,), x.dtype, "unit", grad=False))
    return [str(x), str(d.labels(shape[:-1], c))], kw


def several_classes(d: Draw):
    n, c = d.one(1, 2, 3), d.one(2, 3, 4)
    shape = d.one((n, c), (n, c), (c,))
    x = d.floats(shape)
    y = d.labels(shape, c)
    name = f"y{len(d.lines)}"
    d.lines.append(f"{name} = {y} - {d.one(0, 1)}")
    return [str(x), name], d.some(reduction=REDUCTION)


def weighted_labels(d: Draw):
    args, kw = pairs("unit")(d)
    if d.chance(0.3):
        kw["weight"] = str(d.tensor(d.fitting(d.x.shape), d.x.dtype, grad=False))
    return args, kw


def texts(d: Draw):
    """ctc_loss on frames from log_softmax."""
    frames, n, c = d.one(3, 4, 6), d.one(1, 2, 3), d.one(2, 3, 4)
    x = d.floats((frames, n, c), profile=d.one("plain", "ties", "saturated"), layout="plain")
    longest = d.one(1, 2, 3)
    lengths = [d.randrange(longest + 1) for _ in range(n)]
    labels = lambda count: [d.randrange(1, c) for _ in range(count)]
    targets = str([labels(longest) for _ in range(n)]) if d.chance(0.6) else str(labels(sum(lengths)))
    given = [
        f"L.tensor({targets}, dtype=L.int64)",
        f"L.tensor({[d.one(frames, frames, frames - 1) for _ in lengths]})",
        f"L.tensor({lengths})",
    ]
    name = f"y{len(d.lines)}"
    d.lines.append(f"{name} = {x}.log_softmax(2)")
    return [name, *given], d.some(reduction=REDUCTION, zero_infinity="True False")


# ---- distances -----------------------------------------------------------------------------------------------------


def two(*shapes, **choices):
    """Two tensors of compatible shapes."""

    def make(d: Draw):
        a, b = d.choice(shapes)
        x = d.floats(a)
        return [str(x), str(d.tensor(b if d.chance(0.95) else (2, 5), x.dtype))], d.some(**choices)

    return make


COSINES = [((2, 3), (2, 3)), ((3, 2), (3, 1)), ((1, 3), (2, 3)), ((2, 3, 4), (2, 3, 4)), ((0, 3), (0, 3))]
DISTANCES = [*COSINES, ((3,), (3,)), ((2, 3), (3,))]
SETS = [
    ((2, 3), (4, 3)),
    ((3, 2), (3, 2)),
    ((2, 3, 2), (2, 2, 2)),
    ((1, 3, 2), (2, 2, 2)),
    ((0, 3), (2, 3)),
    ((2, 0), (3, 0)),
]
ORDER = "2.0 1.0 0.0 inf 3.0 0.5"

CALLS = {
    "F.smooth_l1_loss": pairs(beta="1.0 0.5 0.0 2.0 -1.0"),
    "F.huber_loss": pairs(delta="1.0 0.5 2.0 0.0"),
    "F.kl_div": pairs("unit", log_target="True False"),
    "F.margin_ranking_loss": ranking,
    "F.hinge_embedding_loss": pairs("signs", margin="1.0 0.5 0.0"),
    "F.soft_margin_loss": pairs("signs"),
    "F.cosine_embedding_loss": cosines,
    "F.triplet_margin_loss": triplets("margin", "p", "eps", "swap"),
    "F.triplet_margin_with_distance_loss": triplets("margin", "swap"),
    "F.poisson_nll_loss": pairs("fixed", log_input="True False", full="True False", eps="1e-8 0.1"),
    "F.gaussian_nll_loss": gaussian,
    "F.multi_margin_loss": classes,
    "F.multilabel_margin_loss": several_classes,
    "F.multilabel_soft_margin_loss": weighted_labels,
    "F.ctc_loss": texts,
    "cosine_similarity": two(*COSINES, dim="1 0 -1 5", eps="1e-8 0.1 0.0"),
    "pairwise_distance": two(*DISTANCES, p=ORDER, eps="1e-6 0.0 0.1", keepdim="True False"),
    "cdist": two(*SETS, p=ORDER),
    # with other shapes and layouts PyTorch may read out of bounds
    "pdist": lambda d: ([str(d.floats(d.one((3, 2), (4, 3), (2, 1)), layout="plain"))], d.some(p=ORDER)),
}
NUMBERS = "0.5 0.0 1.0 2 -1.0"
ANY = NUMBERS.replace(" ", "|")


def prelus(d: Draw):
    x = d.floats()
    channels = x.shape[1] if len(x.shape) > 1 else 1
    return [str(x), str(d.tensor(d.one((1,), (channels,)) if d.chance(0.95) else (2,), x.dtype, "plain"))], {}


def bilinears(d: Draw):
    n, i, j, k = d.one(1, 2, 0), d.one(1, 2, 3), d.one(2, 3), d.one(1, 2)
    x = d.floats((n, i))
    made = [d.tensor(s if d.chance(0.97) else (2, 2), x.dtype) for s in ((n, j), (k, i, j))]
    return [str(x), *map(str, made), *([str(d.tensor((k,), x.dtype))] if d.chance(0.5) else [])], {}


def channel_dropouts(*shapes):
    def make(d: Draw):
        x = d.tensor(d.choice(shapes) if d.chance(0.9) else None, d.dtype_of("float32", "float64"))
        p = d.of("0.0 1.0 0.5 1.5")
        return [str(x), p], d.some(training="True False")

    return make


def bags(d: Draw):
    n, size = d.one(3, 4), d.one(1, 2, 5)
    kw = d.some(mode="'sum' 'mean' 'max'", padding_idx="0 1 -1", max_norm="1.0 2.0")
    row = lambda: [d.randrange(n) for _ in range(size)]  # never outside: PyTorch reads out of bounds there
    if d.chance(0.5):
        index, offsets = f"L.tensor({row()})", f"L.tensor({sorted([0, d.randrange(size + 1)])})"
    else:
        index, offsets = f"L.tensor({[row() for _ in range(d.one(1, 2))]})", "None"
    weight = d.tensor((n, 2), d.dtype_of("float32", "float64"), grad="max_norm" not in kw)
    return [index, str(weight), offsets], kw


CHANNELS = {1: ((2, 3), (2, 3, 2)), 2: ((2, 3, 2, 2), (1, 2, 3, 1)), 3: ((1, 2, 2, 2), (2, 2, 2, 1, 2))}
CALLS |= {
    **table(f"""
elu celu: numeric alpha={ANY}
hardtanh: numeric min_val=-1.0|0.0|-2 max_val=1.0|6.0|0.0 inplace=False
threshold threshold_: numeric {ANY} {ANY}
softplus: numeric beta=1.0|2.0|0.5 threshold=20.0|1.0
softshrink: numeric lambd=0.5|0.0|1.0|2.0|-1.0
hardshrink: numeric lambd=0.5|0.0|1.0|2.0
gelu: numeric approximate='none'|'tanh'
F.softmin: numeric axis
F.gumbel_softmax: float tau=1.0|0.5 hard=truth dim=-1|0
rrelu: float lower=0.1|0.25 upper=0.5|1.0
F.relu_ F.leaky_relu_ F.elu_ F.selu_ F.celu_ F.hardtanh_ F.rrelu_: numeric
"""),
    "prelu": prelus,
    "F.glu": lambda d: ([str(d.floats(d.one((2, 4), (4,), (2, 2), (3,), (2, 0), (3, 2, 2))))], d.some(dim="-1 0 1 5")),
    "F.embedding_bag": bags,
    "bilinear": bilinears,
    **{f"F.dropout{n}d": channel_dropouts(*CHANNELS[n]) for n in CHANNELS},
    "F.alpha_dropout": channel_dropouts((2, 3), (3,)),
    "alpha_dropout": lambda d: ([str(d.floats()), "0.5", "True"], {}),
    "F.feature_alpha_dropout": channel_dropouts((2, 3), (2, 3, 2)),
    "feature_alpha_dropout": lambda d: ([str(d.floats((2, 3, 2))), "0.5", "True"], {}),
}
LAYERS = {
    "PReLU": lambda d: (
        ["2"] if d.chance(0.5) else [],
        d.some(init="0.25 -1.0"),
        d.floats(d.one((2, 2), (3, 2, 2), (2,), (2, 3))),
    ),
    "AdaptiveLogSoftmaxWithLoss": lambda d: (
        ["4", "6", d.of("[2] [1, 3] [2, 4]")],
        d.some(div_value="2.0 1.0", head_bias="True False"),
        f"{d.floats((3, 4))}, {d.labels((3,), 6)}",
    ),
    "Softmax2d": lambda d: ([], {}, d.floats(d.one((2, 2, 2, 2), (2, 2, 3), (2, 3)))),
    "Bilinear": lambda d: (
        ["3", "2", "2"],
        d.some(bias="True False"),
        f"{d.floats((2, 3))}, {d.tensor((2, 2), d.x.dtype)}",
    ),
    "EmbeddingBag": lambda d: (
        ["4", "2"],
        d.some(mode="'sum' 'mean' 'max'", padding_idx="0 -1 4"),
        d.of("L.tensor([[0,3],[1,1]]) L.tensor([[2,1,0]])"),
    ),
}
RANDOM = {
    "F.gumbel_softmax",
    "F.rrelu",
    "rrelu",
    "F.rrelu_",
    "rrelu_",
    "nn.RReLU",
    "nn.AlphaDropout",
    "nn.FeatureAlphaDropout",
    "F.alpha_dropout",
    "F.feature_alpha_dropout",
    "alpha_dropout",
    "feature_alpha_dropout",
    *[f"{part}ropout{n}d" for n in CHANNELS for part in ("nn.D", "F.d")],
}
