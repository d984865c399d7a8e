"""Gated recurrent units over a whole sequence.

Source: Cho et al. 2014; the reset gate scales the product with the state, as in cuDNN. Read next: `rnn.py`.
"""

from __future__ import annotations

from ..host.blas import product
from ..kernels import kernel
from ..op import define
from .rnn import (
    backward_cases,
    bias_spec,
    fill_cotangents,
    flatten_steps,
    forward_cases,
    layer_spec,
    need_states,
    no_second_gradient,
    parameter_grads,
    previous_states,
    recurrent_macs,
    sigmoid_,
    split_batch,
    step_rows,
)
from .rules import via_float32


def gru_spec(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse):
    y = layer_spec("gru", 3, h0.shape[-1], sizes, x, h0, w_ih, w_hh, b_ih, b_hh)
    return y, h0, y.replace(shape=(*x.shape[:-1], 4 * h0.shape[1]))


def gru_rule(g, x, h0, w_ih, w_hh, out0, out2, sizes, reverse):
    gy, ghn = fill_cotangents(g, out0.spec, h0.spec)
    return gru_grad(gy, ghn, x, h0, w_ih, w_hh, out0, out2, sizes=sizes, reverse=reverse)


gru = define(
    "gru(x, h0, w_ih, w_hh, b_ih, b_hh; sizes, reverse) -> y, hn, gates",
    gru_spec,
    {"x, h0, w_ih, w_hh, b_ih, b_hh": gru_rule},
    second_order=False,
    macs=lambda out, x, h, *w, **_: recurrent_macs(x, *w[:2]),
    sharding=split_batch("tswwbb>tst"),
    version=2,
    examples=[*forward_cases(3, 2), *forward_cases(3, 2, dtype="float32")[2:]],
    doc="h = (1 - z) * n + z * h, n = tanh(... + r * (h @ w_hn.T + b_hn)) step by step; all h, the last, r, z, n.",
    slow_on_numpy=True,
)


@kernel(gru)
@via_float32
def _(xp, x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse):
    h, size = h0.copy(), h0.shape[1]
    arriving, w = product(xp, flatten_steps(x), w_ih.T), xp.ascontiguousarray(w_hh.T)
    arriving += b_ih
    gates = xp.empty((len(arriving), 4 * size), h.dtype)  # r, z, n, and the product that r scales
    y, every = xp.empty((len(arriving), size), h.dtype), xp.empty((len(h), 3 * size), h.dtype)
    both, new, scaled = gates[:, : 2 * size], gates[:, 2 * size : 3 * size], gates[:, 3 * size :]
    for a, b in step_rows(x, sizes, reverse):
        old, own = h[: b - a], every[: b - a]
        product(xp, old, w, out=own)
        own += b_hh
        xp.add(arriving[a:b, : 2 * size], own[:, : 2 * size], out=both[a:b])
        sigmoid_(xp, both[a:b])
        scaled[a:b] = own[:, 2 * size :]
        n = new[a:b]
        xp.multiply(both[a:b, :size], scaled[a:b], out=n)
        n += arriving[a:b, 2 * size :]
        xp.tanh(n, out=n)
        old -= n
        old *= both[a:b, size:]
        old += n
        y[a:b] = old
    return y.reshape(*x.shape[:-1], size), h, gates.reshape(*x.shape[:-1], 4 * size)


def gru_grad_spec(gy, ghn, x, h0, w_ih, w_hh, y, gates, **attrs):
    bias = bias_spec(w_ih)
    forward = gru_spec(x, h0, w_ih, w_hh, bias, bias, **attrs)
    need_states("gru_grad", (*forward, *forward[:1]), gy, ghn, gates, y)
    return x, h0, w_ih, w_hh, bias, bias


gru_grad = define(
    "gru_grad(gy, ghn, x, h0, w_ih, w_hh, y, gates; sizes, reverse) -> gx, gh0, gw_ih, gw_hh, gb_ih, gb_hh",
    gru_grad_spec,
    {"gy, ghn, x, h0, w_ih, w_hh": no_second_gradient("GRU")},
    flops=lambda out, gy, ghn, x, h, *w, **_: 4 * recurrent_macs(x, *w[:2]),
    sharding=split_batch("tstswwtt>tswwbb"),
    examples=backward_cases(gru, "gy ghn x h0 w_ih w_hh y gates", 3, 2),
    doc="The gradients of gru.",
    slow_on_numpy=True,
)


@kernel(gru_grad)
@via_float32
def _(xp, gy, ghn, x, h0, w_ih, w_hh, y, gates, sizes, reverse):
    steps, gh, size = step_rows(x, sizes, reverse), ghn.copy(), h0.shape[1]
    gy, gates = map(flatten_steps, (gy, gates))
    previous, (r, z, n, scaled) = previous_states(xp, flatten_steps(y), h0, steps), xp.split(gates, 4, axis=1)
    # Factors of the gradient of the state, for all steps at once.
    inner = xp.empty((len(gates), len(w_ih)), gates.dtype)
    gr, gz, gn = xp.split(inner, 3, axis=1)  # views
    xp.subtract(1, xp.multiply(n, n, out=gn), out=gn)
    gn *= xp.subtract(1, z, out=gz)
    xp.multiply(xp.subtract(1, r, out=gr), r, out=gr)
    gr *= scaled
    gr *= gn
    gz *= z
    gz *= previous - n
    own = inner.copy()  # gradients of the products with h
    own[:, 2 * size :] *= r
    for a, b in reversed(steps):
        g = gy[a:b] + gh[: b - a]
        for part in (inner[a:b], own[a:b]):
            part.reshape(b - a, 3, size)[...] *= g[:, None]
        g *= z[a:b]
        gh[: b - a] = g
        gh[: b - a] += product(xp, own[a:b], w_hh)
    gx, gw_ih, gw_hh, gb = parameter_grads(xp, x, w_ih, inner, previous, own)
    return gx, gh, gw_ih, gw_hh, gb, own.sum(0)
