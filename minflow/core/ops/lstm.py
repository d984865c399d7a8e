"""Long short-term memory over a whole sequence, with and without a projection of its states.

Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000. Read next: `rnn.py`, what is shared.
"""

from __future__ import annotations

import math

from ..op import define, kernel
from .rnn import (
    backward_cases, before, bias_of, filled, flat, forward_cases, layer_spec, need_states, refused, sigmoid_, spans,
    sums,
)
from .rules import need_spec, single


def lstm_spec(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr=None, *, sizes, reverse):
    y = layer_spec("lstm", 4, c0.shape[-1], sizes, x, h0, w_ih, w_hh, b_ih, b_hh)
    gates, cells = (y.but(shape=(math.prod(x.shape[:-1]), n * c0.shape[1])) for n in (4, 1))
    need_spec("lstm", c0.but(shape=(h0.shape[0], c0.shape[1])), c0=c0)
    if w_hr is None:
        need_spec("lstm", h0, h0=c0)
    else:
        need_spec("lstm", c0.but(shape=(h0.shape[1], c0.shape[1])), w_hr=w_hr)
    return y, h0, c0, gates, cells


def lstm_rule(g, x, h0, c0, w_ih, w_hh, out0, out3, out4, sizes, reverse):
    gy, ghn, gcn = filled(g, out0.spec, h0.spec, c0.spec)
    *grads, gb = lstm_grad(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, out0, out3, out4, sizes=sizes, reverse=reverse)
    return *grads, gb, gb


def projected_rule(g, x, h0, c0, w_ih, w_hh, w_hr, out0, out3, out4, sizes, reverse):
    gy, ghn, gcn = filled(g, out0.spec, h0.spec, c0.spec)
    *grads, gb, gw_hr = lstm_projected_grad(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, out0, out3, out4, w_hr,
                                            sizes=sizes, reverse=reverse)
    return *grads, gb, gb, gw_hr


lstm = define(
    "lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh; sizes, reverse) -> y, hn, cn, gates, cells",
    lstm_spec,
    {"x, h0, c0, w_ih, w_hh, b_ih, b_hh": lstm_rule},
    second_order=False,
    examples=[*forward_cases(4, 2, 2), *forward_cases(4, 2, 2, dtype="float32")[2:]],
    doc="c = f * c + i * g; h = o * tanh(c) step by step; all h, the last h and c, and what the gradient needs.",
)
lstm_projected = define(
    "lstm_projected(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr; sizes, reverse) -> y, hn, cn, gates, cells",
    lstm_spec,
    {"x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr": projected_rule},
    second_order=False,
    examples=forward_cases(4, 2, 3, extra=((2, 3),)),
    doc="lstm whose h is w_hr @ (o * tanh(c)), shorter than c. Sak et al. 2014, section 2.2.",
)


@single
def lstm_kernel(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr=None, *, sizes, reverse):
    gates, h, c, size = flat(x) @ w_ih.T + (b_ih + b_hh), h0.copy(), c0.copy(), c0.shape[1]
    y, cells = xp.empty((len(gates), h.shape[1]), h.dtype), xp.empty((len(gates), size), c.dtype)
    for a, b in spans(x, sizes, reverse):
        now, n = gates[a:b], b - a
        now += h[:n] @ w_hh.T
        sigmoid_(xp, now[:, : 2 * size])
        xp.tanh(now[:, 2 * size : 3 * size], out=now[:, 2 * size : 3 * size])
        sigmoid_(xp, now[:, 3 * size :])
        i, f, g, o = xp.split(now, 4, axis=1)
        cells[a:b] = c[:n] = f * c[:n] + i * g
        seen = o * xp.tanh(c[:n])
        y[a:b] = h[:n] = seen if w_hr is None else seen @ w_hr.T
    return y.reshape(*x.shape[:-1], h.shape[1]), h, c, gates, cells


kernel(lstm, lstm_kernel)
kernel(lstm_projected, lstm_kernel)


def lstm_grad_spec(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells, w_hr=None, **attrs):
    bias = bias_of(w_ih)
    forward = lstm_spec(x, h0, c0, w_ih, w_hh, bias, bias, w_hr, **attrs)
    need_states("lstm_grad", (*forward, *forward[:1]), gy, ghn, gcn, gates, cells, y)
    return (x, h0, c0, w_ih, w_hh, bias, *([] if w_hr is None else [w_hr]))


lstm_grad = define(
    "lstm_grad(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells; sizes, reverse) "
    "-> gx, gh0, gc0, gw_ih, gw_hh, gb",
    lstm_grad_spec,
    {"gy, ghn, gcn, x, h0, c0, w_ih, w_hh": refused("LSTM")},
    examples=backward_cases(lstm, "gy ghn gcn x h0 c0 w_ih w_hh y gates cells", 4, 2, 2),
    doc="The gradients of lstm; that of both biases is one.",
)
lstm_projected_grad = define(
    "lstm_projected_grad(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells, w_hr; sizes, reverse) "
    "-> gx, gh0, gc0, gw_ih, gw_hh, gb, gw_hr",
    lstm_grad_spec,
    {"gy, ghn, gcn, x, h0, c0, w_ih, w_hh, w_hr": refused("LSTM")},
    examples=backward_cases(lstm_projected, "gy ghn gcn x h0 c0 w_ih w_hh y gates cells w_hr", 4, 2, 3,
                            extra=((2, 3),)),
    doc="The gradients of lstm_projected; that of both biases is one.",
)


@single
def lstm_grad_kernel(xp, gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells, w_hr=None, *, sizes, reverse):
    steps, gy, gh, gc = spans(x, sizes, reverse), flat(gy), ghn.copy(), gcn.copy()
    previous, inner, arriving = before(xp, cells, c0, steps), xp.empty_like(gates), xp.empty_like(gy)
    i, f, g, o = xp.split(gates, 4, axis=1)
    gi, gf, gg, go = xp.split(inner, 4, axis=1)  # views
    tanh = xp.tanh(cells)
    for a, b in reversed(steps):
        n = b - a
        arriving[a:b] = gy[a:b] + gh[:n]
        seen = arriving[a:b] if w_hr is None else arriving[a:b] @ w_hr
        cell = gc[:n] + seen * o[a:b] * (1 - tanh[a:b] * tanh[a:b])
        gi[a:b] = cell * g[a:b] * i[a:b] * (1 - i[a:b])
        gf[a:b] = cell * previous[a:b] * f[a:b] * (1 - f[a:b])
        gg[a:b] = cell * i[a:b] * (1 - g[a:b] * g[a:b])
        go[a:b] = seen * tanh[a:b] * o[a:b] * (1 - o[a:b])
        gc[:n] = cell * f[a:b]
        gh[:n] = inner[a:b] @ w_hh
    gx, gw_ih, gw_hh, gb = sums(x, w_ih, inner, before(xp, flat(y), h0, steps))
    return gx, gh, gc, gw_ih, gw_hh, gb, *([] if w_hr is None else [arriving.T @ (o * tanh)])


kernel(lstm_grad, lstm_grad_kernel)
kernel(lstm_projected_grad, lstm_grad_kernel)
