"""Recurrent layers, one ONNX operator for each layer and direction.

ONNX has an axis of directions, which is 1 here, and other orders of gates: i, o, f, c of an LSTM (ours: i, f, g, o) and
z, r, h of a GRU (ours: r, z, n). Reordering is one Gather of each parameter, which a runtime does once, when it loads
the file; so the parameters stand in the file as the model has them.
"""

from __future__ import annotations

import numpy as np

from ..builder import form

ORDERS = {"lstm": [0, 3, 1, 2], "gru": [1, 0, 2], "rnn": [0]}


def layer(b, node, operator: str, x, states, w_ih, w_hh, b_ih, b_hh, **attributes) -> tuple[str, ...]:
    """All states (T, N, H), and the last ones (N, H)."""
    if any(b.used(node, i) for i in range(1 + len(states), len(node.out_specs))):
        b.refuse(node, "gives its gates to a gradient, and ONNX keeps them to itself", "a model without gradients")
    if node.attrs["sizes"]:
        b.refuse(node, "sequences of several lengths, packed", "padded sequences (T, N, I)")
    hidden = node.inputs[1].spec.shape[1]
    rows = np.concatenate([np.arange(hidden) + gate * hidden for gate in ORDERS[node.op.name]])[None]
    order, first = b.const(rows), b.const([0])
    biases = np.concatenate([rows, rows + rows.size], 1)
    params = [b.op("Gather", w_ih, order, axis=0), b.op("Gather", w_hh, order, axis=0),
              b.op("Gather", b.op("Concat", b_ih, b_hh, axis=0), b.const(biases), axis=0)]
    results = b.op(operator, x, *params, None, *[b.op("Unsqueeze", s, first) for s in states], outputs=1 + len(states),
                   hidden_size=hidden, direction="reverse" if node.attrs["reverse"] else "forward", **attributes)
    axes = b.const([1]), *[first] * len(states)
    return tuple([b.op("Squeeze", y, axis) for y, axis in zip(results, axes)])


@form("rnn")
def _(b, node, x, h0, *params):
    return layer(b, node, "RNN", x, [h0], *params, activations=["Relu" if node.attrs["relu"] else "Tanh"])


@form("gru")
def _(b, node, x, h0, *params):
    return *layer(b, node, "GRU", x, [h0], *params, linear_before_reset=1), None


@form("lstm")
def _(b, node, x, h0, c0, *params):
    return *layer(b, node, "LSTM", x, [h0, c0], *params), None, None


@form("lstm_projected")
def _(b, node, *inputs):
    b.refuse(node, "the LSTM of ONNX has no projection", "nn.LSTM without proj_size and a Linear layer behind it")
