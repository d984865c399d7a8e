"""Gated recurrent units over a whole sequence.

Source: Cho et al. 2014; the reset gate scales the product with the state, as in cuDNN. Read next: `rnn.py`.
"""

from __future__ import annotations

import math

from ..op import define, kernel
from .rnn import (
    backward_cases, before, bias_of, filled, flat, forward_cases, layer_spec, need_states, refused, sigmoid_, spans,
    sums,
)
from .rules import single


def gru_spec(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse):
    y = layer_spec("gru", 3, h0.shape[-1], sizes, x, h0, w_ih, w_hh, b_ih, b_hh)
    return y, h0, y.but(shape=(math.prod(x.shape[:-1]), 4 * h0.shape[1]))


def gru_rule(g, x, h0, w_ih, w_hh, out0, out2, sizes, reverse):
    gy, ghn = filled(g, out0.spec, h0.spec)
    return gru_grad(gy, ghn, x, h0, w_ih, w_hh, out0, out2, sizes=sizes, reverse=reverse)


gru = define(
    "gru(x, h0, w_ih, w_hh, b_ih, b_hh; sizes, reverse) -> y, hn, gates",
    gru_spec,
    {"x, h0, w_ih, w_hh, b_ih, b_hh": gru_rule},
    second_order=False,
    examples=[*forward_cases(3, 2), *forward_cases(3, 2, dtype="float32")[2:]],
    doc="h = (1 - z) * n + z * h, n = tanh(... + r * (h @ w_hn.T + b_hn)) step by step; all h, the last, r, z, n.",
)


@kernel(gru)
@single
def _(xp, x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse):
    arriving, h, size = flat(x) @ w_ih.T + b_ih, h0.copy(), h0.shape[1]
    gates = xp.empty((len(arriving), 4 * size), h.dtype)  # r, z, n, and what r scales
    y = xp.empty((len(arriving), size), h.dtype)
    for a, b in spans(x, sizes, reverse):
        now, old = gates[a:b], h[: b - a]
        own = old @ w_hh.T + b_hh
        xp.add(arriving[a:b, : 2 * size], own[:, : 2 * size], out=now[:, : 2 * size])
        sigmoid_(xp, now[:, : 2 * size])
        r, z, n, scaled = xp.split(now, 4, axis=1)
        scaled[:] = own[:, 2 * size :]
        xp.tanh(arriving[a:b, 2 * size :] + r * scaled, out=n)
        y[a:b] = h[: b - a] = n + z * (old - n)
    return y.reshape(*x.shape[:-1], size), h, gates


def gru_grad_spec(gy, ghn, x, h0, w_ih, w_hh, y, gates, **attrs):
    bias = bias_of(w_ih)
    forward = gru_spec(x, h0, w_ih, w_hh, bias, bias, **attrs)
    need_states("gru_grad", (*forward, *forward[:1]), gy, ghn, gates, y)
    return x, h0, w_ih, w_hh, bias, bias


gru_grad = define(
    "gru_grad(gy, ghn, x, h0, w_ih, w_hh, y, gates; sizes, reverse) -> gx, gh0, gw_ih, gw_hh, gb_ih, gb_hh",
    gru_grad_spec,
    {"gy, ghn, x, h0, w_ih, w_hh": refused("GRU")},
    examples=backward_cases(gru, "gy ghn x h0 w_ih w_hh y gates", 3, 2),
    doc="The gradients of gru.",
)


@kernel(gru_grad)
@single
def _(xp, gy, ghn, x, h0, w_ih, w_hh, y, gates, sizes, reverse):
    steps, gy, gh = spans(x, sizes, reverse), flat(gy), ghn.copy()
    previous, (r, z, n, scaled) = before(xp, flat(y), h0, steps), xp.split(gates, 4, axis=1)
    inner = xp.empty((len(gates), len(w_ih)), gates.dtype)
    own = xp.empty_like(inner)  # of the products with h
    gr, gz, gn = xp.split(inner, 3, axis=1)  # views
    for a, b in reversed(steps):
        g = gy[a:b] + gh[: b - a]
        gz[a:b] = g * (previous[a:b] - n[a:b]) * z[a:b] * (1 - z[a:b])
        gn[a:b] = g * (1 - z[a:b]) * (1 - n[a:b] * n[a:b])
        gr[a:b] = gn[a:b] * scaled[a:b] * r[a:b] * (1 - r[a:b])
        own[a:b] = inner[a:b]
        own[a:b, 2 * h0.shape[1] :] *= r[a:b]
        gh[: b - a] = g * z[a:b] + own[a:b] @ w_hh
    gx, gw_ih, gw_hh, gb = sums(x, w_ih, inner, previous, own)
    return gx, gh, gw_ih, gw_hh, gb, own.sum(0)
