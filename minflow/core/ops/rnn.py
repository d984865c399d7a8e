"""Recurrent layers: one op runs a layer over the whole sequence, and one computes all its gradients.

x is (T, N, I), or (rows, I) in packed order: then `sizes` is the number of sequences at each step and never increases.
The products with the input are one matrix product for all steps; the states are computed step by step.
This module has the simplest layer and the parts that `lstm.py` and `gru.py` share. Source: Elman 1990. Read next:
`lstm.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from ..base.errors import GradError, ShapeError
from ..host.blas import product
from ..host.float_warnings import silent
from ..kernels import kernel, select
from ..op import Op, define
from ..source_location import fail
from ..spec import Spec
from .examples import Case, Maker, floats
from .rules import need_floating, need_spec, via_float32
from .shape import filled

# ---- shape rules of all three layers
# ------------------------------------------------------------------------------------------


def layer_spec(
    op: str, gates: int, hidden: int, sizes: tuple, x: Spec, h0: Spec, w_ih: Spec, w_hh: Spec, b_ih: Spec, b_hh: Spec
) -> Spec:
    """The Spec of the states of all steps; the weights have `gates * hidden` rows."""
    need_floating(op, x)
    if x.ndim != (2 if sizes else 3) or h0.ndim != 2 or not x.shape[0]:
        raise ShapeError(
            f"{op}: {{x}} must be (T, N, I) with at least one step, got {list(x.shape)}",
            hint="x.unsqueeze(1) for one sequence of (T, I)",
        )
    rows, batch = gates * hidden, sizes[0] if sizes else x.shape[1]
    wanted = dict(
        h0=(batch, h0.shape[1]), w_ih=(rows, x.shape[-1]), w_hh=(rows, h0.shape[1]), b_ih=(rows,), b_hh=(rows,)
    )
    for name, spec in dict(h0=h0, w_ih=w_ih, w_hh=w_hh, b_ih=b_ih, b_hh=b_hh).items():
        if spec.dtype is not x.dtype or spec.shape != wanted[name]:
            raise ShapeError(
                f"{op}: {{{name}}} must have shape {list(wanted[name])}, got {list(spec.shape)}",
                hint="input_size is the size of the last axis of x, hidden_size that of the states",
            )
    if not hidden or list(sizes) != sorted(sizes, reverse=True) or 0 in sizes:
        raise ShapeError(f"{op}: a state of {hidden} elements, sizes {sizes}", hint="sizes that never increase")
    if sum(sizes) != (x.shape[0] if sizes else 0):
        raise ShapeError(
            f"{op}: sizes add up to {sum(sizes)}, {{x}} has {x.shape[0]} rows",
            hint="the batch_sizes that belong to this data",
        )
    return x.replace(shape=(*x.shape[:-1], h0.shape[1]))


def recurrent_macs(x: Spec, *weights: Spec) -> int:
    """Multiply-accumulates of a layer: each element of each weight is used once per row of the sequence."""
    return math.prod(x.shape[:-1]) * sum(w.size for w in weights)


def rnn_spec(x, h0, w_ih, w_hh, b_ih, b_hh, relu, sizes, reverse):
    return layer_spec("rnn", 1, h0.shape[-1], sizes, x, h0, w_ih, w_hh, b_ih, b_hh), h0


def fill_cotangents(g, *specs: Spec) -> list:
    """The cotangents of the first outputs, with zeros for missing ones."""
    return [filled(s, 0.0) if x is None else x for x, s in zip(g, specs)]


def no_second_gradient(layer: str) -> Callable:
    """The gradient rule of a gradient op, which is not implemented."""

    def rule(g):
        what = f"{layer}: the gradient of its gradient is not defined"
        fail(GradError, what, f"nn.{layer}Cell in a loop over the steps: it consists of ordinary ops")

    return rule


def split_batch(signature: str) -> Callable:
    """The labels of an op with these inputs and outputs: sequences (t), states (s), matrices (w) and biases (b). The
    batch can be split, unless sequences of several lengths are packed.
    """
    axes = {"t": ". n .", "s": "n .", "w": ". .", "b": ".", ">": "->"}
    pattern = ",".join([axes[kind] for kind in signature]).replace(",->,", "->")
    return lambda *specs, sizes, **_: None if sizes else pattern


class Backward(Case):
    """An example of a gradient op: cotangents, and the forward op's inputs and outputs by name."""

    def __init__(self, inputs: tuple[Any, ...], attrs: dict[str, Any], forward: Op, names: tuple[str, ...]):
        super().__init__(inputs, attrs)
        self.forward, self.names = forward, names

    def arrays(self) -> list:
        given = dict(zip(self.forward.inputs, (m.make(17 + i) for i, m in enumerate(self.inputs))))
        results = dict(zip(self.forward.outputs, select(self.forward).call(*given.values(), **self.attrs)))
        wanted = {f"g{name}": floats(*a.shape, dtype=a.dtype.name).make(5) for name, a in results.items()}
        return [(given | results | wanted)[name] for name in self.names]


def examples(
    gates: int, *states: int, extra: tuple = (), dtype: str = "float64", steady: bool = False, **attrs
) -> list[tuple]:
    """(makers, attrs): four steps of two sequences forward and backward, and packed sequences of 3, 2 and 1 steps.

    steady: all biases are 0.1.
    """
    m = lambda *shape: floats(*shape, low=-1.0, high=1.0, dtype=dtype)
    rows, width = gates * states[-1], states[0]
    bias = m(rows)(layout=lambda a: a * 0 + a.dtype.type(0.1)) if steady else m(rows)
    weights: list[Maker] = [m(rows, 3), m(rows, width), bias, bias, *[m(*shape) for shape in extra]]
    return [
        ([m(*x), *[m(batch, n) for n in states], *weights], attrs | dict(sizes=sizes, reverse=reverse))
        for x, batch, sizes, reverse in (
            ((4, 2, 3), 2, (), False),
            ((4, 2, 3), 2, (), True),
            ((6, 3), 3, (3, 2, 1), False),
            ((6, 3), 3, (3, 2, 1), True),
        )
    ]


def forward_cases(*args, **options) -> list[Case]:
    return [Case(tuple(makers), attrs) for makers, attrs in examples(*args, **options)]


def backward_cases(forward: Op, names: str, *args, **options) -> list[Case]:
    """Examples in float32, because gradient ops have no gradient to check."""
    return [
        Backward(tuple(makers), attrs, forward, tuple(names.split()))
        for makers, attrs in examples(*args, **options, dtype="float32", steady=True)
    ]


# ---- shared by the kernels ----------------------------------------------------------------------------------------


def step_rows(x, sizes: tuple, reverse: bool) -> list[tuple[int, int]]:
    """The rows (start, stop) of each step, in the order in which the layer visits them."""
    ends = list(accumulate(sizes or (x.shape[1],) * (len(x) if x.shape[1] else 0)))
    steps = list(zip([0, *ends], ends))
    return steps[::-1] if reverse else steps


def flatten_steps(x):
    """Reshape (T, N, I) to (T * N, I)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def previous_states(xp, states, first, steps):
    """The state at the beginning of each row: that of the step before, or the first."""
    result, n = xp.empty_like(states), len(first)
    if steps and len(steps) * n == len(states):  # all sequences have all steps
        result[slice(*steps[0])] = first
        (into, source) = (slice(n, None), slice(-n)) if steps[0][0] == 0 else (slice(-n), slice(n, None))
        if len(steps) > 1:
            result[into] = states[source]
        return result
    now = first.copy()
    for a, b in steps:
        result[a:b] = now[: b - a]
        now[: b - a] = states[a:b]
    return result


def sigmoid_(xp, x):
    """1 / (1 + exp(-x)), in place. Not by tanh, which would lose all digits of small results."""
    with silent():
        xp.exp(xp.multiply(x, -1, out=x), out=x)  # not negative(), which is wrong for strided arrays in NumPy 2.4
    x += 1
    xp.reciprocal(x, out=x)


def parameter_grads(xp, x, w_ih, inner, previous, at_state=None):
    """Gradients of x, w_ih, w_hh and the bias from those of the pre-activations."""
    gw_hh = product(xp, (inner if at_state is None else at_state).T, previous)
    gx, gw_ih = product(xp, inner, w_ih), product(xp, inner.T, flatten_steps(x))
    return gx.reshape(x.shape), gw_ih, gw_hh, inner.sum(0)


# ---- rnn -----------------------------------------------------------------------------------------------------------


def rnn_rule(g, x, h0, w_ih, w_hh, out0, relu, sizes, reverse):
    gy, ghn = fill_cotangents(g, out0.spec, h0.spec)
    gx, gh0, gw_ih, gw_hh, gb = rnn_grad(gy, ghn, x, h0, w_ih, w_hh, out0, relu=relu, sizes=sizes, reverse=reverse)
    return gx, gh0, gw_ih, gw_hh, gb, gb


rnn = define(
    "rnn(x, h0, w_ih, w_hh, b_ih, b_hh; relu, sizes, reverse) -> y, hn",
    rnn_spec,
    {"x, h0, w_ih, w_hh, b_ih, b_hh": rnn_rule},
    second_order=False,
    macs=lambda out, x, h, *w, **_: recurrent_macs(x, *w[:2]),
    sharding=split_batch("tswwbb>ts"),
    examples=[
        *forward_cases(1, 2, relu=False),
        *forward_cases(1, 2, relu=True)[:2],
        *forward_cases(1, 2, relu=False, dtype="float32")[2:],
    ],
    doc="h = tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh) step by step, or max(0, ...); all h, and the last.",
    slow_on_numpy=True,
)


@kernel(rnn)
@via_float32
def _(xp, x, h0, w_ih, w_hh, b_ih, b_hh, relu, sizes, reverse):
    y, h, w = product(xp, flatten_steps(x), w_ih.T), h0.copy(), xp.ascontiguousarray(w_hh.T)
    y += b_ih + b_hh
    own = xp.empty_like(h)
    for a, b in step_rows(x, sizes, reverse):
        now, n = y[a:b], b - a
        now += product(xp, h[:n], w, out=own[:n])
        xp.maximum(now, 0, out=now) if relu else xp.tanh(now, out=now)
        h[:n] = now
    return y.reshape(*x.shape[:-1], h.shape[1]), h


def bias_spec(w_ih: Spec) -> Spec:
    return w_ih.replace(shape=w_ih.shape[:1])


def need_states(op: str, wanted: tuple[Spec, ...], *found: Spec) -> None:
    """Refuse tensors that do not have the specs of the forward op's outputs and their cotangents."""
    for i, (want, x) in enumerate(zip(wanted, found)):
        need_spec(op, want, **{f"result_{i}": x})


def rnn_grad_spec(gy, ghn, x, h0, w_ih, w_hh, y, **attrs):
    bias = bias_spec(w_ih)
    forward = rnn_spec(x, h0, w_ih, w_hh, bias, bias, **attrs)
    need_states("rnn_grad", (*forward, *forward[:1]), gy, ghn, y)
    return x, h0, w_ih, w_hh, bias


rnn_grad = define(
    "rnn_grad(gy, ghn, x, h0, w_ih, w_hh, y; relu, sizes, reverse) -> gx, gh0, gw_ih, gw_hh, gb",
    rnn_grad_spec,
    {"gy, ghn, x, h0, w_ih, w_hh": no_second_gradient("RNN")},
    flops=lambda out, gy, ghn, x, h, *w, **_: 4 * recurrent_macs(x, *w[:2]),
    sharding=split_batch("tstswwt>tswwb"),
    examples=backward_cases(rnn, "gy ghn x h0 w_ih w_hh y", 1, 2, relu=False),
    doc="The gradients of rnn; both biases have the same one.",
    slow_on_numpy=True,
)


@kernel(rnn_grad)
@via_float32
def _(xp, gy, ghn, x, h0, w_ih, w_hh, y, relu, sizes, reverse):
    steps, gy, y, gh = step_rows(x, sizes, reverse), flatten_steps(gy), flatten_steps(y), ghn.copy()
    inner = xp.empty_like(y) if relu else 1 - y * y
    for a, b in reversed(steps):
        g = gy[a:b] + gh[: b - a]
        inner[a:b] = xp.where(y[a:b] == 0, 0, g) if relu else inner[a:b] * g
        product(xp, inner[a:b], w_hh, out=gh[: b - a])
    gx, gw_ih, gw_hh, gb = parameter_grads(xp, x, w_ih, inner, previous_states(xp, y, h0, steps))
    return gx, gh, gw_ih, gw_hh, gb
