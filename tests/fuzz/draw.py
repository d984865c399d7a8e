"""Building blocks of random calls: tensors at kinks and edges, numbers, axes, shapes, and arguments of a wrong kind.

All of it is text in which `L` is the library, so that one call runs in minflow and in PyTorch, and prints as a program.
The choices come from a seeded generator, or from hypothesis's, which minimizes a failing call. Read next: `calls.py`,
where the public names say which of these they take.
"""

from __future__ import annotations

import random
import re
from math import prod
from typing import NamedTuple

FLOATS, INTEGERS = ("float32", "float64", "float16"), ("int64", "int32", "uint8", "int8")
DTYPES = [*["float32"] * 11, *["float64"] * 3, "float16", "float16", "int64", "int64", "int32", "uint8", "int8", "bool"]
SHAPES = [
    (),
    (0,),
    (1,),
    (3,),
    (4,),
    (5,),
    (2, 3),
    (3, 3),
    (1, 3),
    (3, 1),
    (0, 3),
    (3, 0),
    (2, 1, 3),
    (2, 3, 4),
    (1, 2, 2),
    (2, 0, 3),
]
VALUES = {
    "kinks": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0],
    "ties": [1.0, 2.0, 1.0, -1.0],
    "edges": ["inf", "-inf", "nan", 0.0, -0.0, 1.0, -1.0],
    "infinite": ["inf", "-inf", 0.0, 1.0, -2.0],
    "saturated": [20.0, -20.0, 88.0, -88.0, 100.0, -100.0, 1000.0, 0.0],
    "unit": [0.0, 1.0, 0.5, 0.25, 0.875, 0.125],
    "large": [60000.0, -60000.0, 300.0, -300.0, 2.0**-14, 1.0],
    "zeros": [0.0],
}
LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
STRANGERS = [  # arguments of a wrong kind, to replace any argument
    *"None 'x' 2.5 -1 0 1 7 -4 True () [] [0] (0,0) (1,-1) {} nan inf -0.5 2**63 object() 1j b'x' np.ones(2)".split(),
    *"np.float32(2) np.int64(1) [1.5,2.0] L.float32 L.int64 'mean' slice(None)".split(),
]
NUMBERS = "0 1 2 -1 3 0.5 -0.5 2.0 -2.0 0.0 -0.0 1e-3 inf -inf nan True 100 300"


class DrawnTensor(NamedTuple):
    """A tensor of the program: its variable, shape and dtype."""

    name: str
    shape: tuple
    dtype: str

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def resized(self, axis: int, size: int) -> tuple:
        """Its shape with another size along an axis."""
        return (*self.shape[:axis], size, *self.shape[axis + 1 :]) if self.shape else ()

    def __str__(self) -> str:
        return self.name


def nested(values: list, shape: tuple) -> str:
    """The text of nested lists."""
    if not shape:
        return str(values[0])
    step = len(values) // shape[0]
    return "[" + ", ".join(nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])) + "]"


class Draw:
    """Random arguments of one call. `lines` create its tensors; `x` is the first of them.

    seed: of the choices, or the generator that makes them.  fixed: values that are not random: dtype and shape (of x),
    profile, layout, grad.
    """

    def __init__(self, seed, **fixed):
        source = seed if isinstance(seed, random.Random) else random.Random(seed)
        for name in "random choice choices randrange randint sample shuffle".split():
            setattr(self, name, getattr(source, name))
        self.fixed = fixed
        self.lines: list[str] = []
        self.made: list[DrawnTensor] = []
        self.x: DrawnTensor | None = None

    def chance(self, p: float) -> bool:
        return self.random() < p

    def one(self, *options):
        return self.choice(options)

    def of(self, words: str) -> str:
        """One of several texts without spaces."""
        return self.choice(words.split())

    def some(self, **choices) -> dict:
        """Some of these keywords: each is a choice from its text, or drawn by a function."""
        return {k: v(self) if callable(v) else self.of(v) for k, v in choices.items() if self.chance(0.4)}

    # ---- tensors -----------------------------------------------------------------------------------------------------

    def numbers(self, count: int, dtype: str, profile: str | None = None) -> list:
        profile = profile or self.fixed.get("profile")
        if dtype == "bool":
            return [self.chance(0.5) for _ in range(count)]
        if dtype in LIMITS:
            low, high = LIMITS[dtype]
            if profile is None:
                profile = self.one("small", "small", "small", "ties", "limits", "zeros")
            if profile == "limits":
                return [self.one(low, high, 0, 1) for _ in range(count)]
            if profile == "distinct":
                return self.sample(range(0 if low == 0 else -count, count * 2), count)
            values = {"ties": [1, 2], "zeros": [0], "small": [0, 1, 2, 3, 4, 7] + [-1, -2, -3] * (low < 0)}
            return [self.choice(values.get(profile, values["small"])) for _ in range(count)]
        if profile is None:
            profile = self.one("plain", "plain", "plain", "plain", *VALUES, "one nan")
        if profile == "distinct":
            return self.sample([i / 2 for i in range(-count, count)], count)
        if profile in VALUES:
            return [self.choice(VALUES[profile]) for _ in range(count)]
        values: list = [self.randint(-80, 80) / 16 for _ in range(count)]  # exact in float16
        if profile == "one nan" and count:
            values[self.randrange(count)] = "nan"
        return values

    def tensor(self, shape=None, dtype=None, profile=None, grad=None, layout=None) -> DrawnTensor:
        if shape is None:
            shape = self.fixed.get("shape", self.choice(SHAPES)) if self.x is None else self.choice(SHAPES)
        shape = tuple(shape)
        dtype = dtype or self.dtype_of(*DTYPES)
        grad = self.fixed.get("grad") if grad is None else grad
        layout = layout or self.fixed.get("layout") or self.of("plain plain plain plain turned strided offset")
        base, suffix = shape, ""
        if layout == "turned" and len(shape) > 1:
            base, suffix = (*shape[:-2], shape[-1], shape[-2]), ".mT"
        elif layout == "strided" and shape:
            base, suffix = (*shape[:-1], shape[-1] * 2), "[..., ::2]"
        elif layout == "offset" and shape:
            base, suffix = (shape[0] + 1, *shape[1:]), "[1:]"
        text = self.literal(self.numbers(prod(base), dtype, profile), base, dtype) + suffix
        if dtype in FLOATS and (self.chance(0.6) if grad is None else grad):
            text += ".requires_grad_()"
        return self.add(text, shape, dtype)

    first = tensor

    def literal(self, values: list, shape: tuple, dtype: str) -> str:
        if 0 in shape:
            return f"L.zeros({', '.join(map(str, shape))}, dtype=L.{dtype})"
        return f"L.tensor({nested(values, shape)}, dtype=L.{dtype})"

    def add(self, text: str, shape: tuple, dtype: str) -> DrawnTensor:
        made = DrawnTensor(f"x{len(self.made)}", shape, dtype)
        self.lines.append(f"{made.name} = {text}")
        self.made.append(made)
        if self.x is None:
            self.x = made
        return made

    def dtype_of(self, *options):
        """The fixed dtype, or one of these."""
        dtype = self.fixed.get("dtype")
        return dtype if dtype and (dtype in options or options == tuple(DTYPES)) else self.choice(options)

    def floats(self, shape=None, **fixed) -> DrawnTensor:
        return self.tensor(shape, self.dtype_of("float32", "float32", "float32", "float64", "float16"), **fixed)

    def fitting(self, shape: tuple) -> tuple:
        """A shape that broadcasts with `shape`."""
        parts = [n if self.chance(0.7) else 1 for n in shape]
        return tuple(parts[self.randrange(len(parts) + 1) if self.chance(0.3) else 0 :])

    def partner(self, number: float = 0.3, **fixed):
        """Other operand of a broadcast with x: a tensor, or a Python number."""
        if self.chance(number):
            return self.number()
        x = self.x
        shape = x.shape if self.chance(0.6) else self.fitting(x.shape) if self.chance(0.85) else self.choice(SHAPES)
        fixed.setdefault("dtype", x.dtype if self.chance(0.7) else None)
        return self.tensor(shape, **fixed)

    def same(self, **fixed) -> DrawnTensor:
        """Usually a tensor like x."""
        shape = self.x.shape if self.chance(0.9) else self.choice(SHAPES)
        fixed.setdefault("dtype", self.x.dtype if self.chance(0.9) else None)
        return self.tensor(shape, **fixed)

    # ---- arguments that are not tensors
    # --------------------------------------------------------------------------------

    def number(self) -> str:
        return self.of(NUMBERS)

    def small(self) -> str:
        return self.of("0 1 2 -1 3 -2 0.5 1.0 2.0 -0.5")

    def truth(self) -> str:
        return self.of("True False")

    def dtype(self) -> str:
        return "L." + self.choice([*FLOATS, *INTEGERS, "bool"])

    def axis(self, x: DrawnTensor | None = None, extra: int = 0) -> str:
        n = max((x or self.x).ndim + extra, 1)
        return str(self.randrange(-n, n) if self.chance(0.93) else self.one(n, -n - 1, 5))

    def axes(self) -> str:
        """One axis, several of them, or None."""
        n = self.x.ndim
        kind = self.random()
        if kind < 0.5:
            return self.axis()
        if kind < 0.6:
            return "None"
        picked = self.sample(range(n), self.randrange(0, n + 1)) if n else []
        picked = [i - n if self.chance(0.3) else i for i in picked]
        if self.chance(0.05):
            picked.append(self.randrange(-3, 3))
        return str(tuple(picked) if self.chance(0.7) else picked)

    def along(self, x: DrawnTensor) -> tuple[int, int]:
        """A random axis of x and its size; 0 and 1 if x is a scalar."""
        axis = self.randrange(max(x.ndim, 1))
        return axis, x.shape[axis] if x.ndim else 1

    def count(self) -> str:
        return self.of("1 2 3 0 4") if self.chance(0.95) else "-1"

    def integer(self) -> str:
        return self.of("0 1 -1 2 -2 3 -3")

    def shape_text(self, shape) -> str:
        return str(tuple(shape) if self.chance(0.7) else list(shape))

    def new_shape(self) -> str:
        return self.shape_text(self.choice(SHAPES) if self.chance(0.9) else (-1, 2))

    def reshaped(self) -> list:
        """Sizes of another shape with the same number of elements, perhaps with a -1."""
        n = prod(self.x.shape)
        options = [list(s) for s in [(n,), (1, n), (n, 1), *[(n // d, d) for d in (2, 3, 4) if n % d == 0]]]
        shape = self.choice(options)
        if self.chance(0.3):
            shape[self.randrange(len(shape))] = -1
        return shape if self.chance(0.9) else list(self.choice(SHAPES))

    def spread(self, sizes) -> list[str]:
        """Sizes as one tuple, or as separate arguments."""
        return [self.shape_text(sizes)] if self.chance(0.5) or not len(sizes) else [str(n) for n in sizes]

    def labels(self, shape, classes: int, ignored: bool = False) -> DrawnTensor:
        """int64 labels in [0, classes); rarely one outside, or ignored."""
        values = [self.randrange(max(classes, 1)) for _ in range(prod(shape))]
        if values and self.chance(0.06):
            values[self.randrange(len(values))] = self.one(classes, -1, -classes)
        if values and ignored and self.chance(0.4):
            values[self.randrange(len(values))] = -100
        dtype = "int64" if self.chance(0.95) else self.of("int32 uint8 float32")
        return self.add(self.literal(values, tuple(shape), dtype), tuple(shape), dtype)


# ---- arguments described by words ----------------------------------------------------------------------------------

KINDS = {
    "x": Draw.first, "float": Draw.floats, "axis": Draw.axis, "axes": Draw.axes, "number": Draw.number,
    "small": Draw.small, "count": Draw.count, "truth": Draw.truth, "dtype": Draw.dtype, "shape": Draw.new_shape,
    "partner": Draw.partner, "other": lambda d: d.partner(0.03), "same": Draw.same, "tensor": Draw.tensor,
    "mask": lambda d: d.partner(0.03, dtype="bool" if d.chance(0.95) else None),
    "buffer": lambda d: d.floats(grad=False), "distinct": lambda d: d.first(profile="distinct"),
    "ties": lambda d: d.first(profile="ties" if d.chance(0.6) else None),
    "unit": lambda d: d.first(dtype=d.dtype_of("float32", "float64"), profile="unit"),
    "numeric": lambda d: d.first(dtype=d.dtype_of("float32", "float32", "float32", "float64", "float16", "int64")),
}  # fmt: skip


def word(d: Draw, text: str) -> str:
    """Text of a kind of argument, or one of several texts: `axis`, `0|1|-1`."""
    return str(KINDS[text](d)) if text in KINDS else d.choice(text.split("|"))


def table(text: str) -> dict:
    """Dictionary from name to a function that draws its arguments; a line is `NAMES: ARGUMENTS`.

    An argument is a word; `[word]` is optional, and so is the keyword `name=word`.
    """

    def drawing(arguments: str):
        def make(d: Draw):
            args, kw = [], {}
            for argument in arguments.split():
                if keyword := re.fullmatch(r"(\w+)=(.+)", argument):
                    if d.chance(0.4):
                        kw[keyword[1]] = word(d, keyword[2])
                elif not argument.startswith("["):
                    args.append(word(d, argument))
                elif d.chance(0.6):
                    args.append(word(d, argument[1:-1]))
            return args, kw

        return make

    lines = [line.partition(": ") for line in text.strip().splitlines()]
    return {name: drawing(arguments) for names, _, arguments in lines for name in names.split()}
