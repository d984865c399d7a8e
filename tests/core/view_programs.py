"""Random programs of views, in-place writes, detach and no_grad, and their meaning: a model in a hundred lines of
numpy.

The model has no tape: each storage is a flat array, each of its histories has one tangent per element and leaf element,
and a tensor is an array of positions. So a view is numpy's own, a write puts values and tangents at positions, `detach`
takes new tangents (zeros) for the same values, and under no_grad tangents are unchanged.
"""

from contextlib import nullcontext

import numpy as np

LEAVES = {"p": (3, 4), "q": (2, 3)}  # requires grad
PLAIN = {"a": (3, 4), "b": (4,)}  # does not require grad
UNARY = {  # name -> function, derivative
    "neg": (np.negative, lambda x: -np.ones_like(x)),
    "sin": (np.sin, np.cos),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "abs": (np.abs, np.sign),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    "square": (np.square, lambda x: 2 * x),
    "clamp": (lambda x: np.clip(x, -1, 1), lambda x: ((x >= -1) & (x <= 1)) * 1.0),
}  # fmt: skip
OPTIONS = {"clamp": (-1.0, 1.0)}


class History:
    """Tangents of a storage. leaf: must not be written while gradients are recorded. barred: same, but from no_grad."""

    def __init__(self, size, count, needs=False, leaf=False, barred=False):
        self.tangents, self.needs, self.leaf, self.barred = np.zeros((size, count)), needs, leaf, barred


class Model:
    """A tensor of the model. whole: True if it is not a view."""

    def __init__(self, storage, history, at, whole=True):
        self.storage, self.history, self.at, self.whole = storage, history, at, whole

    numbers = property(lambda self: self.storage[self.at])
    tangents = property(lambda self: self.history.tangents[self.at])
    shape = property(lambda self: self.at.shape)
    overlaps = property(lambda self: len(np.unique(self.at)) < self.at.size)

    @staticmethod
    def new(numbers, tangents, needs):
        history = History(numbers.size, tangents.shape[-1], needs)
        if needs:
            history.tangents[...] = tangents.reshape(-1, tangents.shape[-1])
        return Model(numbers.reshape(-1).copy(), history, np.arange(numbers.size).reshape(numbers.shape))

    def view(self, at, grad):
        history = self.history
        if history.needs and not grad:
            history = History(len(self.storage), history.tangents.shape[-1], barred=True)
        return Model(self.storage, history, at, False)

    def detach(self):
        return Model(self.storage, History(len(self.storage), self.history.tangents.shape[-1]), self.at, self.whole)

    def write(self, numbers, tangents, needs, grad):
        if grad:
            self.history.needs = needs if self.whole else needs or self.history.needs
            self.history.tangents[self.at] = np.broadcast_to(tangents, (*self.shape, tangents.shape[-1]))
        self.storage[self.at] = numbers


class Program:
    """A random list of steps, each `(name, under no_grad, indices of tensors, arguments)`, drawn while the model runs
    it.
    """

    def __init__(self, seed, length=14):
        self.rng = np.random.default_rng(seed)
        self.start = {name: self.rng.standard_normal(shape) for name, shape in {**LEAVES, **PLAIN}.items()}
        count = sum(int(np.prod(shape)) for shape in LEAVES.values()) + 12
        self.alive, self.steps, self.leaves, used = [], [], [], 0
        for name, numbers in self.start.items():
            t = Model.new(numbers, np.zeros((*numbers.shape, count)), False)
            if name in LEAVES:
                used = self.make_leaf(t, used)
            self.alive.append(t)
        self.used = used
        self.step("mulsum", True, (0, 1))
        self.step("mulsum", True, (1, 0))
        while len(self.steps) < length:
            self.draw()
        self.weights = [self.rng.standard_normal(t.shape) for t in self.alive]

    def make_leaf(self, t, used):
        h, n = t.history, t.at.size
        h.leaf = h.needs = True
        h.tangents[t.at.reshape(-1), used + np.arange(n)] = 1.0
        self.leaves.append((len(self.alive), slice(used, used + n), t.shape))
        return used + n

    # ---- drawing a step ------------------------------------------------------------------------------------------

    def draw(self):
        rng = self.rng
        i, j = (int(rng.integers(len(self.alive))) for _ in range(2))
        grad, t = bool(rng.random() < 0.75), self.alive[i]
        kind = rng.choice(["view", "compute", "write"], p=[0.45, 0.1, 0.45])
        names = {"view": LOOKS, "compute": COMPUTED, "write": WRITES}[kind]
        name = str(rng.choice(names))
        if kind == "write" and (
            (grad and (t.history.leaf or t.history.barred)) or (t.overlaps and name not in ("fill_", "zero_"))
        ):
            return
        self.step(name, grad, (i, j))

    def index(self, t):
        parts = []
        for n in t.shape[: int(self.rng.integers(t.at.ndim + 1))]:
            kind = self.rng.integers(4)
            parts.append(
                int(self.rng.integers(-n, n))
                if kind == 0 and n
                else slice(int(self.rng.integers(2)), None, int(self.rng.integers(1, 3)))
                if kind < 3
                else slice(None)
            )
        if self.rng.random() < 0.2:
            parts.insert(int(self.rng.integers(len(parts) + 1)), None)
        if self.rng.random() < 0.2:
            parts.append(Ellipsis)
        return tuple(parts)

    def axis(self, t):
        return int(self.rng.integers(-t.at.ndim, t.at.ndim))

    def some_shape(self, n):
        """A random shape of n elements."""
        shape = []
        for d in (2, 3, 5):
            while n and n % d == 0 and self.rng.random() < 0.7:
                shape.append(d)
                n //= d
        shape.append(n)
        if self.rng.random() < 0.3:
            shape.append(1)
        self.rng.shuffle(shape)
        return tuple(int(n) for n in shape)

    def step(self, name, grad, which):
        args = self.run(name, grad, *[self.alive[k] for k in which])
        if args is not None:
            self.steps.append((name, grad, which, args))

    def run(self, name, grad, t, other):
        """Run one step of the model; return its random arguments, or None if it does not apply."""
        if name in LOOKS:
            found = self.look(name, grad, t, other) if len(self.alive) <= 22 else None
            if found is None:
                return None
            args, results = found
            self.alive += results
            return args
        wants = t.history.needs
        if name in COMPUTED:
            scale = other.numbers.sum() * 0.1
            both = wants or other.history.needs
            if name == "mulsum":
                tangents = (
                    t.tangents * scale
                    + t.numbers[..., None] * other.tangents.reshape(-1, t.tangents.shape[-1]).sum(0) * 0.1
                )
                self.alive.append(Model.new(t.numbers * scale, tangents, both and grad))
            elif name == "clone":
                self.alive.append(Model.new(t.numbers, t.tangents, wants and grad))
            else:
                value, slope = UNARY[name]
                self.alive.append(Model.new(value(t.numbers), slope(t.numbers)[..., None] * t.tangents, wants and grad))
            return ()
        return self.put(name, grad, t, other, wants)

    def look(self, name, grad, t, other):
        """(arguments, [views]) of a view, or None."""
        if name in ("detach", "data"):
            return (), [t.detach()]
        if name == "leaf":
            if t.overlaps or self.used + t.at.size > self.alive[0].history.tangents.shape[-1]:
                return None
            twin = t.detach()
            self.used = self.make_leaf(twin, self.used)
            return (), [twin]
        arguments, positions = VIEWS[name]
        args = arguments(self, t, other) if (t.at.ndim and t.at.size) or name not in ALONG else None
        if args is None:
            return None
        new = positions(t.at, *args)
        if new is t.at and name in ("contiguous", "flatten"):
            return args, [t]
        if isinstance(new, list):
            return args, [t.view(x, grad) for x in new]
        if not new.size or np.shares_memory(new, t.at):
            return args, [t.view(new, grad)]
        if name in ("view", "view_as"):
            return None
        tangents = t.tangents.reshape(*new.shape, t.tangents.shape[-1])
        return args, [Model.new(t.numbers.reshape(new.shape), tangents, t.history.needs and grad)]

    def put(self, name, grad, t, other, wants):
        rng = self.rng
        if name[:-1] in UNARY:
            value, slope = UNARY[name[:-1]]
            x = t.numbers
            t.write(value(x), slope(x)[..., None] * t.tangents, wants, grad)
            return ()
        c = round(float(rng.standard_normal()), 2)
        none = np.zeros(t.tangents.shape[-1])
        if name in ("fill_", "zero_"):
            t.write(c if name == "fill_" else 0.0, none, False, grad)
            return (c,) if name == "fill_" else ()
        if name == "scale_":
            t.write(t.numbers * c, t.tangents * c, wants, grad)
            return (c,)
        if name == "masked_fill_":
            mask = t.numbers > 0
            t.write(np.where(mask, c, t.numbers), np.where(mask[..., None], 0.0, t.tangents), wants, grad)
            return (c,)
        if name in ("setitem", "setsum", "setrows"):
            if name == "setrows" and (not t.at.ndim or t.shape[0] < 2):
                return None
            index = ([0, -1],) if name == "setrows" else self.index(t)
            place = Model(t.storage, t.history, t.at[(*index, ...) if Ellipsis not in index else index], False)
            if name == "setitem":
                place.write(c, none, False, grad)
                return index, c
            place.write(
                other.numbers.sum() * 0.2, other.tangents.reshape(-1, len(none)).sum(0) * 0.2, other.history.needs, grad
            )
            return (index,)
        if name in ("transpose_", "unsqueeze_"):
            if t.history.leaf or not t.at.ndim or t in self.alive[: len(self.start)]:
                return None
            args = (self.axis(t), self.axis(t)) if name == "transpose_" else (int(rng.integers(t.at.ndim + 1)),)
            t.at = t.at.swapaxes(*args) if name == "transpose_" else np.expand_dims(t.at, args[0])
            t.whole = False
            return args
        try:
            if np.broadcast_shapes(t.shape, other.shape) != t.shape:
                return None
        except ValueError:
            return None
        x, y, dx, dy = t.numbers, other.numbers, t.tangents, other.tangents
        both = wants or other.history.needs
        if name == "mul_":
            t.write(x * y, dx * y[..., None] + x[..., None] * dy, both, grad)
        elif name == "copy_":
            t.write(y, dy, other.history.needs, grad)
        else:
            t.write(x + y, dx + dy, both, grad)
        return ()

    # ---- running it elsewhere ------------------------------------------------------------------------------------

    def run_in(self, library, tensors, upto=None):
        """Run the steps with the tensors of a library (minflow or torch); return all final tensors."""
        alive = list(tensors)
        for name, grad, (i, j), args in self.steps[:upto]:
            with nullcontext() if grad else library.no_grad():
                alive += run_step(library, name, alive[i], alive[j], args) or []
        return alive

    def loss(self, library, alive, tensor):
        """A scalar that depends on all tensors, twice differentiable."""
        terms = [(t * tensor(w) + t * t * 0.1).sum() for t, w in zip(alive, self.weights)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def expected(self):
        """[values of all tensors], and the gradient of each leaf."""
        total = sum(
            [
                (t.tangents * (w + 0.2 * t.numbers)[..., None]).reshape(-1, t.tangents.shape[-1]).sum(0)
                for t, w in zip(self.alive, self.weights)
            ]
        )
        return [t.numbers for t in self.alive], [total[part].reshape(shape) for _, part, shape in self.leaves]


def a_range(program, t, other):
    d = program.axis(t)
    start = int(program.rng.integers(t.shape[d]))
    return d, start, int(program.rng.integers(t.shape[d] - start + 1))


def a_diagonal(program, t, other):
    axes = [int(d) for d in program.rng.permutation(t.at.ndim)[:2]]
    return (int(program.rng.integers(-1, 2)), *axes) if len(axes) == 2 else None


def an_expansion(program, t, other):
    shape = [3 if n == 1 and program.rng.random() < 0.5 else n for n in t.shape]
    shape = (2, *shape) if program.rng.random() < 0.5 else tuple(shape)
    return (shape,) if np.prod(shape) <= 24 else None


def an_unfolding(program, t, other):
    d = program.axis(t) % t.at.ndim
    return d, program.some_shape(t.shape[d])


def flattened(at, start, end):
    if at.ndim and start == end:
        return at
    return at.reshape(*at.shape[:start], int(np.prod(at.shape[start : end + 1])), *at.shape[end + 1 :])


def cut(at, d, size):
    return [np.moveaxis(np.moveaxis(at, d, 0)[k : k + size], 0, d) for k in range(0, at.shape[d], size)]


VIEWS = {  # name -> function of (program, tensor, another tensor) that draws arguments or None; positions of the view
    "getitem": (lambda p, t, other: (p.index(t),),
                lambda at, index: at[index if Ellipsis in index else (*index, ...)]),
    "T": (lambda p, t, other: () if t.at.ndim <= 2 else None, np.transpose),
    "t": (lambda p, t, other: () if t.at.ndim <= 2 else None, np.transpose),
    "mT": (lambda p, t, other: () if t.at.ndim >= 2 else None, lambda at: at.swapaxes(-1, -2)),
    "squeeze": (lambda p, t, other: (), np.squeeze),
    "unsqueeze": (lambda p, t, other: (int(p.rng.integers(t.at.ndim + 1)),), np.expand_dims),
    "permute": (lambda p, t, other: tuple(map(int, p.rng.permutation(t.at.ndim))) or None,
                lambda at, *dims: at.transpose(dims)),
    "expand": (an_expansion, np.broadcast_to),
    "transpose": (lambda p, t, other: (p.axis(t), p.axis(t)), np.swapaxes),
    "movedim": (lambda p, t, other: (p.axis(t), p.axis(t)), np.moveaxis),
    "narrow": (a_range, lambda at, d, start, size: np.moveaxis(np.moveaxis(at, d, 0)[start : start + size], 0, d)),
    "select": (lambda p, t, other: a_range(p, t, other)[:2], lambda at, d, k: np.moveaxis(at, d, 0)[k, ...]),
    "diagonal": (a_diagonal, np.diagonal),
    "unbind": (lambda p, t, other: (p.axis(t),),
               lambda at, d: [np.moveaxis(at, d, 0)[k, ...] for k in range(at.shape[d])]),
    "split": (lambda p, t, other: (2, p.axis(t)), lambda at, size, d: cut(at, d, size)),
    "chunk": (lambda p, t, other: (2, p.axis(t)), lambda at, count, d: cut(at, d, -(-at.shape[d] // count))),
    "reshape": (lambda p, t, other: (p.some_shape(t.at.size),), np.reshape),
    "view": (lambda p, t, other: (p.some_shape(t.at.size),), np.reshape),
    "flatten": (lambda p, t, other: sorted(int(p.rng.integers(max(t.at.ndim, 1))) for _ in range(2)), flattened),
    "view_as": (lambda p, t, other: (other.shape,) if other.at.size == t.at.size else None, np.reshape),
    "unflatten": (an_unfolding, lambda at, d, shape: at.reshape(*at.shape[:d], *shape, *at.shape[d + 1 :])),
    "contiguous": (lambda p, t, other: (), lambda at: at if at.flags.c_contiguous else at.copy()),
}  # fmt: skip
ALONG = "transpose movedim narrow select diagonal unbind split chunk unflatten".split()  # a non-empty axis
LOOKS = [*VIEWS, *"getitem getitem reshape flatten detach detach detach data leaf".split()]
COMPUTED = ["mulsum", "mulsum", "clone", *UNARY]
WRITES = [*[f"{name}_" for name in UNARY], *"""fill_ zero_ scale_ scale_ masked_fill_ setitem setitem setsum setsum
          setrows mul_ mul_ copy_ iadd iadd transpose_ unsqueeze_""".split()]  # fmt: skip


def run_step(library, name, t, other, args):
    """Run one step; return the new tensors, if any."""
    if name in ("T", "mT", "data"):
        return [getattr(t, name)]
    if name == "getitem":
        return [t[args[0]]]
    if name == "leaf":
        return [t.detach().requires_grad_()]
    if name == "view_as":
        return [t.view_as(other)]
    if name == "mulsum":
        return [t * (other.sum() * 0.1)]
    if name == "setitem":
        t[args[0]] = args[1]
    elif name in ("setsum", "setrows"):
        t[args[0]] = other.sum() * 0.2
    elif name == "scale_":
        t.mul_(args[0])
    elif name == "masked_fill_":
        t.masked_fill_(t > 0, args[0])
    elif name == "iadd":
        t += other
    elif name in ("mul_", "copy_"):
        getattr(t, name)(other)
    elif name[:-1] in UNARY and name[-1] == "_":
        getattr(t, name)(*OPTIONS.get(name[:-1], ()))
    elif name[-1] == "_":
        getattr(t, name)(*args)
    else:
        results = getattr(t, name)(*OPTIONS.get(name, args))
        return list(results) if isinstance(results, list | tuple) else [results]
