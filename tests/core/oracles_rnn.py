"""Oracles of the recurrent ops: one sequence, one step and one unit at a time; gradients by imaginary steps.

f(x + ih) = f(x) + ih f'(x) + O(h^2): with h = 1e-30 the derivative is exact to the last digit, without deriving
anything by hand.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return x if x.real > 0 else 0 * x


def walks(x, sizes, reverse):
    """Positions of the steps of each sequence, in the order in which the layer processes them."""
    if not sizes:
        rows = [[(t, n) for t in range(x.shape[0])] for n in range(x.shape[1])]
    else:
        begins = np.cumsum([0, *sizes])
        rows = [[(begins[t] + n,) for t, size in enumerate(sizes) if size > n] for n in range(sizes[0])]
    return [row[::-1] if reverse else row for row in rows]


def rnn(x, h0, w_ih, w_hh, b_ih, b_hh, relu=False, sizes=(), reverse=False):
    y, hn = np.zeros((*x.shape[:-1], h0.shape[1]), (x * h0.flat[0]).dtype), np.array(h0)
    act = globals()["relu"] if relu else np.tanh
    for n, places in enumerate(walks(x, sizes, reverse)):
        for at in places:
            hn[n] = [act(w_ih[u] @ x[at] + b_ih[u] + w_hh[u] @ hn[n] + b_hh[u]) for u in range(len(b_ih))]
            y[at] = hn[n]
    return y, hn


def lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr=None, sizes=(), reverse=False):
    kind, size = (x * h0.flat[0]).dtype, c0.shape[1]
    y, hn, cn = np.zeros((*x.shape[:-1], h0.shape[1]), kind), np.array(h0), np.array(c0)
    gates, cells = np.zeros((*x.shape[:-1], 4 * size), kind), np.zeros((*x.shape[:-1], size), kind)
    for n, places in enumerate(walks(x, sizes, reverse)):
        for at in places:
            sums = w_ih @ x[at] + b_ih + w_hh @ hn[n] + b_hh
            i, f, g, o = (act(part) for act, part in zip((sigmoid, sigmoid, np.tanh, sigmoid), np.split(sums, 4)))
            cn[n] = f * cn[n] + i * g
            seen = o * np.tanh(cn[n])
            hn[n] = seen if w_hr is None else w_hr @ seen
            y[at], gates[at], cells[at] = hn[n], np.concatenate([i, f, g, o]), cn[n]
    return y, hn, cn, gates, cells


def gru(x, h0, w_ih, w_hh, b_ih, b_hh, sizes=(), reverse=False):
    kind, size = (x * h0.flat[0]).dtype, h0.shape[1]
    y, hn, gates = np.zeros((*x.shape[:-1], size), kind), np.array(h0), np.zeros((*x.shape[:-1], 4 * size), kind)
    for n, places in enumerate(walks(x, sizes, reverse)):
        for at in places:
            of_x, of_h = np.split(w_ih @ x[at] + b_ih, 3), np.split(w_hh @ hn[n] + b_hh, 3)
            r, z = sigmoid(of_x[0] + of_h[0]), sigmoid(of_x[1] + of_h[1])
            new = np.tanh(of_x[2] + r * of_h[2])
            hn[n] = (1 - z) * new + z * hn[n]
            y[at], gates[at] = hn[n], np.concatenate([r, z, new, of_h[2]])
    return y, hn, gates


def slopes(forward, cotangents, inputs, attrs):
    """d (sum of cotangent * output) / d each element of each input."""
    inputs, result = [np.array(x, complex) for x in inputs], []
    for x in inputs:
        slope = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            x[at] += 1e-30j
            slope[at] = sum((g * out).sum().imag for g, out in zip(cotangents, forward(*inputs, **attrs))) / 1e-30
            x[at] -= 1e-30j
        result.append(slope)
    return result


BIAS = 0.1  # in the examples of gradient ops, which do not get the biases


def gradient(forward, states: int, saved: int, biases: int = 1):
    """Gradients returned by the op of a layer: of x, the states, the weights, the biases, and of a projection."""

    def oracle(*arrays, **attrs):
        cotangents, given = arrays[: 1 + states], arrays[1 + states :]
        inputs, projection = given[: 3 + states], given[3 + states + saved :]
        bias = np.full(len(inputs[-1]), BIAS)
        grads = slopes(forward, cotangents, [*inputs, bias, bias, *projection], attrs)
        return grads[: 3 + states + biases] + grads[5 + states :]

    return oracle


def cell(layer, states: int):
    """One step: the last states of a layer over a sequence of length 1."""

    def oracle(x, *arrays, **attrs):
        *rest, b_ih, b_hh = arrays
        biases = [np.broadcast_to(b, len(rest[-1])) for b in (b_ih, b_hh)]
        last = layer(x[None], *rest, *biases, **attrs)[1 : 1 + states]
        return last if states > 1 else last[0]

    return oracle


ORACLES = {
    "rnn_cell": cell(rnn, 1),
    "gru_cell": cell(gru, 1),
    "lstm_cell": cell(lstm, 2),
    "rnn": rnn,
    "rnn_grad": gradient(rnn, 1, 1),
    "lstm": lstm,
    "lstm_grad": gradient(lstm, 2, 3),
    "lstm_projected": lstm,
    "lstm_projected_grad": gradient(lstm, 2, 3),
    "gru": gru,
    "gru_grad": gradient(gru, 1, 2, biases=2),
}
