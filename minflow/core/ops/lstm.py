"""Long short-term memory over a whole sequence, with and without a projection of its states.

Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000. Read next: `rnn.py`, the shared part.
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
from .rules import need_spec, via_float32


def lstm_spec(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr=None, *, sizes, reverse):
    y = layer_spec("lstm", 4, c0.shape[-1], sizes, x, h0, w_ih, w_hh, b_ih, b_hh)
    gates, cells = (y.replace(shape=(*x.shape[:-1], n * c0.shape[1])) for n in (4, 1))
    need_spec("lstm", c0.replace(shape=(h0.shape[0], c0.shape[1])), c0=c0)
    if w_hr is None:
        need_spec("lstm", h0, h0=c0)
    else:
        need_spec("lstm", c0.replace(shape=(h0.shape[1], c0.shape[1])), w_hr=w_hr)
    return y, h0, c0, gates, cells


def lstm_rule(g, x, h0, c0, w_ih, w_hh, out0, out3, out4, sizes, reverse):
    gy, ghn, gcn = fill_cotangents(g, out0.spec, h0.spec, c0.spec)
    *grads, gb = lstm_grad(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, out0, out3, out4, sizes=sizes, reverse=reverse)
    return *grads, gb, gb


def projected_rule(g, x, h0, c0, w_ih, w_hh, w_hr, out0, out3, out4, sizes, reverse):
    gy, ghn, gcn = fill_cotangents(g, out0.spec, h0.spec, c0.spec)
    *grads, gb, gw_hr = lstm_projected_grad(
        gy, ghn, gcn, x, h0, c0, w_ih, w_hh, out0, out3, out4, w_hr, sizes=sizes, reverse=reverse
    )
    return *grads, gb, gb, gw_hr


lstm = define(
    "lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh; sizes, reverse) -> y, hn, cn, gates, cells",
    lstm_spec,
    {"x, h0, c0, w_ih, w_hh, b_ih, b_hh": lstm_rule},
    second_order=False,
    autocast="lower",
    macs=lambda out, x, h, c, *w, **_: recurrent_macs(x, *w[:2], *w[4:]),
    sharding=split_batch("tsswwbb>tsstt"),
    version=2,
    examples=[*forward_cases(4, 2, 2), *forward_cases(4, 2, 2, dtype="float32")[2:]],
    doc="c = f * c + i * g; h = o * tanh(c) step by step; all h, the last h and c, and tensors saved for the gradient.",
    slow_on_numpy=True,
)
lstm_projected = define(
    "lstm_projected(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr; sizes, reverse) -> y, hn, cn, gates, cells",
    lstm_spec,
    {"x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr": projected_rule},
    second_order=False,
    macs=lambda out, x, h, c, *w, **_: recurrent_macs(x, *w[:2], *w[4:]),
    sharding=split_batch("tsswwbbw>tsstt"),
    version=2,
    examples=forward_cases(4, 2, 3, extra=((2, 3),)),
    doc="lstm whose h is w_hr @ (o * tanh(c)), shorter than c. Sak et al. 2014, section 2.2.",
)


@via_float32
def lstm_kernel(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr=None, *, sizes, reverse):
    h, c, size = h0.copy(), c0.copy(), c0.shape[1]
    gates, w = product(xp, flatten_steps(x), w_ih.T), xp.ascontiguousarray(w_hh.T)
    gates += b_ih + b_hh
    y, cells = xp.empty((len(gates), h.shape[1]), h.dtype), xp.empty((len(gates), size), c.dtype)
    own, seen = xp.empty((len(c), 4 * size), c.dtype), xp.empty_like(c)
    i, f, g, o = xp.split(gates, 4, axis=1)  # views
    for a, b in step_rows(x, sizes, reverse):
        n, now = b - a, gates[a:b]
        now += product(xp, h[:n], w, out=own[:n])
        sigmoid_(xp, now[:, : 2 * size])
        xp.tanh(g[a:b], out=g[a:b])
        sigmoid_(xp, o[a:b])
        cell, part = c[:n], seen[:n]
        xp.multiply(f[a:b], cell, out=cell)
        cell += xp.multiply(i[a:b], g[a:b], out=part)
        cells[a:b] = cell
        xp.multiply(o[a:b], xp.tanh(cell, out=part), out=part)
        y[a:b] = h[:n] = part if w_hr is None else product(xp, part, w_hr.T)
    y, gates, cells = (every.reshape(*x.shape[:-1], every.shape[1]) for every in (y, gates, cells))
    return y, h, c, gates, cells


kernel(lstm, lstm_kernel)
kernel(lstm_projected, lstm_kernel)


def lstm_grad_spec(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells, w_hr=None, **attrs):
    bias = bias_spec(w_ih)
    forward = lstm_spec(x, h0, c0, w_ih, w_hh, bias, bias, w_hr, **attrs)
    need_states("lstm_grad", (*forward, *forward[:1]), gy, ghn, gcn, gates, cells, y)
    return (x, h0, c0, w_ih, w_hh, bias, *([] if w_hr is None else [w_hr]))


lstm_grad = define(
    "lstm_grad(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells; sizes, reverse) -> gx, gh0, gc0, gw_ih, gw_hh, gb",
    lstm_grad_spec,
    {"gy, ghn, gcn, x, h0, c0, w_ih, w_hh": no_second_gradient("LSTM")},
    flops=lambda out, gy, ghn, gcn, x, h, c, *w, **_: 4 * recurrent_macs(x, *w[:2], *w[5:]),
    sharding=split_batch("tsstsswwttt>tsswwb"),
    examples=backward_cases(lstm, "gy ghn gcn x h0 c0 w_ih w_hh y gates cells", 4, 2, 2),
    doc="The gradients of lstm; both biases have the same one.",
    slow_on_numpy=True,
)
lstm_projected_grad = define(
    "lstm_projected_grad(gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells, w_hr; sizes, reverse) "
    "-> gx, gh0, gc0, gw_ih, gw_hh, gb, gw_hr",
    lstm_grad_spec,
    {"gy, ghn, gcn, x, h0, c0, w_ih, w_hh, w_hr": no_second_gradient("LSTM")},
    flops=lambda out, gy, ghn, gcn, x, h, c, *w, **_: 4 * recurrent_macs(x, *w[:2], *w[5:]),
    sharding=split_batch("tsstsswwtttw>tsswwbw"),
    examples=backward_cases(
        lstm_projected, "gy ghn gcn x h0 c0 w_ih w_hh y gates cells w_hr", 4, 2, 3, extra=((2, 3),)
    ),
    doc="The gradients of lstm_projected; both biases have the same one.",
)


@via_float32
def lstm_grad_kernel(xp, gy, ghn, gcn, x, h0, c0, w_ih, w_hh, y, gates, cells, w_hr=None, *, sizes, reverse):
    steps, gh, gc = step_rows(x, sizes, reverse), ghn.copy(), gcn.copy()
    gy, gates, cells = map(flatten_steps, (gy, gates, cells))
    arriving = xp.empty_like(gy)
    i, f, g, o = xp.split(gates, 4, axis=1)
    tanh = xp.tanh(cells)
    # Factors of the gradient of the cell or, for the output gate, of the output, for all steps at once.
    inner = xp.subtract(1, gates)
    inner *= gates
    gi, gf, gg, go = xp.split(inner, 4, axis=1)  # views
    gi *= g
    gf *= previous_states(xp, cells, c0, steps)
    xp.subtract(1, xp.multiply(g, g, out=gg), out=gg)
    gg *= i
    go *= tanh
    slope = xp.multiply(tanh, tanh)
    xp.subtract(1, slope, out=slope)
    slope *= o
    gated = inner.reshape(len(inner), 4, inner.shape[1] // 4)
    for a, b in reversed(steps):
        n = b - a
        xp.add(gy[a:b], gh[:n], out=arriving[a:b])
        seen = arriving[a:b] if w_hr is None else product(xp, arriving[a:b], w_hr)
        cell = slope[a:b]
        cell *= seen
        cell += gc[:n]
        gated[a:b, :3] *= cell[:, None]
        go[a:b] *= seen
        xp.multiply(cell, f[a:b], out=gc[:n])
        product(xp, inner[a:b], w_hh, out=gh[:n])
    gx, gw_ih, gw_hh, gb = parameter_grads(xp, x, w_ih, inner, previous_states(xp, flatten_steps(y), h0, steps))
    return gx, gh, gc, gw_ih, gw_hh, gb, *([] if w_hr is None else [product(xp, arriving.T, o * tanh)])


kernel(lstm_grad, lstm_grad_kernel)
kernel(lstm_projected_grad, lstm_grad_kernel)
