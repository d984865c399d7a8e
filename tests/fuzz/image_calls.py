"""Calls of the layers of signals, images and volumes. `calls.py` takes them over; n is how many axes of space."""

from __future__ import annotations

from .draw import SHAPES, Draw, Made

FLOATS = ("float32", "float32", "float64", "float16", "int64")


def some(d: Draw, **texts) -> dict:
    """Each keyword now and then, with one of its words."""
    return {name: d.of(words) for name, words in texts.items() if d.chance(0.35)}


def signal(d: Draw, n: int, c: int | None = None, **fixed) -> Made:
    """(N, C, ...) or (C, ...), small; rarely something else."""
    space = [d.one(4, 3, 5) if n < 3 else d.one(2, 3, 3) for _ in range(n)]
    shape = [2 if c is None else c, *space]
    if d.chance(0.75):
        shape.insert(0, d.one(1, 2, 2, 0) if d.chance(0.3) else 1)
    elif d.chance(0.2):
        shape[-1] = 0
    return d.tensor(tuple(shape) if d.chance(0.95) else d.choice(SHAPES), d.dtype_of(*FLOATS), **fixed)


def window(d: Draw, n: int) -> str:
    """An int or one for each axis."""
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
        x = signal(d, n, c) if d.chance(0.1) else d.tensor((d.one(1, 2, 1, 0), c, *[3] * n)[d.chance(0.1):], dtype)
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
        kw = some(d, stride="1 2", groups="1 2", bias="True False", dilation="1 2")
        if turned:
            kw |= some(d, padding="0 1", output_padding="0 1")
        else:
            kw |= some(d, padding="0 1 'same'", padding_mode="'zeros' 'reflect' 'circular' 'replicate'")
        return args, kw, signal(d, n, 2)

    return make


MODES = "'constant' 'reflect' 'replicate' 'circular'"


def padded(n: int, constant: bool = False):
    def make(d: Draw):
        many = tuple(d.one(0, 1, 1, 2, -1) for _ in range(2 * n))
        args = [d.one("1", "2", str(many)) if d.chance(0.95) else d.of("(1,) -5 9 (1,2,3)")]
        return args + [d.of("0 1.5 -2 nan")] * constant, {}, signal(d, n)

    return make


def pad(d: Draw):
    n = d.one(1, 2, 3)
    many = [d.one(0, 1, 2, 1, -1) for _ in range(2 * n - d.chance(0.04))]
    return [str(signal(d, n)), str(tuple(many))], {"mode": d.of(f"{MODES} 'x'")} | some(d, value="0 1.5")


CALLS, LAYERS = {}, {}
for n in (1, 2, 3):
    CALLS |= {f"F.conv_transpose{n}d": convolution(n, True)} | ({f"F.conv{n}d": convolution(n)} if n != 2 else {})
    LAYERS |= {f"Conv{n}d": conv_layer(n), f"ConvTranspose{n}d": conv_layer(n, True)}
    LAYERS |= {f"{kind}Pad{n}d": padded(n) for kind in ("Zero", "Reflection", "Replication", "Circular")}
    LAYERS |= {f"ConstantPad{n}d": padded(n, True)}
