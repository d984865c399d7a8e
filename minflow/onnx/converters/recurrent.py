"""Converters of recurrent layers: one ONNX operator per layer and direction, and a loop for an LSTM with projections.

ONNX has an axis of directions, which has size 1 here, and other orders of gates: i, o, f, c for LSTM (ours: i, f, g, o)
and z, r, h for GRU (ours: r, z, n). A Gather reorders each parameter, which a runtime folds when it loads the file; so
the file has the parameters in the model's order.
"""

from __future__ import annotations

from ..builder import converter, onnx_type

ORDERS = {"lstm": [0, 3, 1, 2], "gru": [1, 0, 2], "rnn": [0]}


def check(b, node, count: int) -> None:
    """Refuse packed sequences, and nodes whose outputs beyond the first `count` are used."""
    if any(b.is_used(node, i) for i in range(count, len(node.out_specs))):
        b.refuse("returns its gates for a gradient, and ONNX does not", "a model without gradients")
    if node.attrs["sizes"]:
        b.refuse("does not support packed sequences of different lengths", "padded sequences (T, N, I)")


def layer(b, node, operator: str, x, states, w_ih, w_hh, b_ih, b_hh, **attributes) -> tuple[str, ...]:
    """All states (T, N, H), and the last states (N, H)."""
    check(b, node, 1 + len(states))
    hidden = node.inputs[1].spec.shape[1]
    rows = [gate * hidden + i for gate in ORDERS[node.op.name] for i in range(hidden)]
    order, first = b.const([rows]), b.const([0])
    biases = [rows + [len(rows) + i for i in rows]]
    params = [
        b.op("Gather", w_ih, order, axis=0),
        b.op("Gather", w_hh, order, axis=0),
        b.op("Gather", b.op("Concat", b_ih, b_hh, axis=0), b.const(biases), axis=0),
    ]
    results = b.op(
        operator,
        x,
        *params,
        None,
        *[b.op("Unsqueeze", s, first) for s in states],
        outputs=1 + len(states),
        hidden_size=hidden,
        direction="reverse" if node.attrs["reverse"] else "forward",
        **attributes,
    )
    axes = b.const([1]), *[first] * len(states)
    return tuple([b.op("Squeeze", y, axis) for y, axis in zip(results, axes)])


@converter("rnn")
def _(b, node, x, h0, *params):
    return layer(b, node, "RNN", x, [h0], *params, activations=["Relu" if node.attrs["relu"] else "Tanh"])


@converter("gru")
def _(b, node, x, h0, *params):
    return *layer(b, node, "GRU", x, [h0], *params, linear_before_reset=1), None


@converter("lstm")
def _(b, node, x, h0, c0, *params):
    return *layer(b, node, "LSTM", x, [h0, c0], *params), None, None


@converter("lstm_projected")
def _(b, node, x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr):
    """ONNX's LSTM has no projection, so this is a Scan whose body is one step."""
    check(b, node, 3)
    from_input, back, shorter = (b.op("Transpose", w, perm=[1, 0]) for w in (w_ih, w_hh, w_hr))
    gates = b.op("Add", b.op("MatMul", x, from_input), b.op("Add", b_ih, b_hh))
    backward = [int(node.attrs["reverse"])]
    h, c, y = b.op(
        "Scan",
        h0,
        c0,
        gates,
        outputs=3,
        body=step(b, node, back, shorter),
        num_scan_inputs=1,
        scan_input_directions=backward,
        scan_output_directions=backward,
    )
    return y, h, c, None, None


def step(b, node, back: str, shorter: str):
    """One step as a graph: from h, c and the input's gates to the next h and c, and h again. back, shorter: the
    matrices of the state and of the projection, from the outer graph.
    """
    from onnx import helper

    ours = b.unique_name(f"{b.prefix}/step")
    nodes: list = []

    def op(kind, *inputs, outputs="", **attributes):
        names = [f"{ours}/{name}" for name in (outputs or f"{kind}{len(nodes)}").split()]
        nodes.append(helper.make_node(kind, inputs, names, names[0], **attributes))
        return names[0] if len(names) == 1 else names

    h, c, gates = (f"{ours}/{name}" for name in ("h", "c", "gates"))
    i, f, g, o = op("Split", op("Add", gates, op("MatMul", h, back)), outputs="i f g o", axis=1, num_outputs=4)
    kept, new = op("Mul", op("Sigmoid", f), c), op("Mul", op("Sigmoid", i), op("Tanh", g))
    cell = op("Add", kept, new, outputs="c_next")
    op("MatMul", op("Mul", op("Sigmoid", o), op("Tanh", cell)), shorter, outputs="h_next")
    op("Identity", f"{ours}/h_next", outputs="y")
    kind, sizes = onnx_type(node.out_specs[0].dtype), [node.inputs[k].spec.shape[1] for k in (1, 2)]
    widths = dict(h=sizes[0], c=sizes[1], gates=4 * sizes[1], h_next=sizes[0], c_next=sizes[1], y=sizes[0])
    infos = [helper.make_tensor_value_info(f"{ours}/{name}", kind, [None, n]) for name, n in widths.items()]
    return helper.make_graph(nodes, ours, infos[:3], infos[3:])
