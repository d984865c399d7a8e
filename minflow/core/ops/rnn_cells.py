"""Composite ops: one step of a recurrent layer.

x is (N, I), a state (N, H); the weights are in PyTorch's order. Read next: `rnn.py`, whole layers.
"""

from __future__ import annotations

from ..op import define
from .elementwise import relu as max_with_0, sigmoid, tanh
from .examples import case, floats, strided
from .linalg import affine


def gates(x, weight, bias):
    if hasattr(bias, "spec"):
        return affine(x, weight, bias)
    return affine(x, weight) if bias == 0 else affine(x, weight) + bias


def cell_inputs(states: int, rows: int, dtype: str = "float64") -> list:
    """Examples of the inputs of a cell: x (2, 3), states (2, 4), weights with `rows` rows, biases."""
    shapes = [(2, 3), *[(2, 4)] * states, (rows, 3), (rows, 4), (rows,), (rows,)]
    return [floats(*shape, low=-1.0, high=1.0, dtype=dtype) for shape in shapes]


def lstm_parts(x, h, c, w_ih, w_hh, b_ih, b_hh):
    i, f, g, o = (gates(x, w_ih, b_ih) + gates(h, w_hh, b_hh)).chunk(4, -1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


lstm_cell = define(
    "lstm_cell(x, h, c, w_ih, w_hh, b_ih, b_hh) -> hn, cn",
    decompose=lstm_parts,
    number_inputs=["b_ih", "b_hh"],
    autocast="parts",
    domain="complex",
    examples=[
        case(*cell_inputs(2, 16)),
        case(strided(3, 5), strided(3, 2), floats(3, 2), floats(8, 5), strided(8, 2), 0, 0),
        case(*cell_inputs(2, 16, "float32")),
    ],
    doc="One step of lstm: the new states (h, c). Biases of 0 for none. Hochreiter & Schmidhuber 1997.",
)


def gru_parts(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input, from_state = gates(x, w_ih, b_ih).chunk(3, -1), gates(h, w_hh, b_hh).chunk(3, -1)
    r, z = (sigmoid(a + b) for a, b in zip(from_input[:2], from_state[:2]))
    n = tanh(from_input[2] + r * from_state[2])
    return n + z * (h - n)


gru_cell = define(
    "gru_cell(x, h, w_ih, w_hh, b_ih, b_hh) -> hn",
    decompose=gru_parts,
    number_inputs=["b_ih", "b_hh"],
    autocast="parts",
    domain="complex",
    examples=[
        case(*cell_inputs(1, 12)),
        case(strided(3, 5), strided(3, 2), floats(6, 5), strided(6, 2), 0, 0),
        case(*cell_inputs(1, 12, "float32")),
    ],
    doc="One step of gru: the new state. Biases of 0 for none. Cho et al. 2014.",
)


def rnn_parts(x, h, w_ih, w_hh, b_ih, b_hh, relu):
    return (max_with_0 if relu else tanh)(gates(x, w_ih, b_ih) + gates(h, w_hh, b_hh))


rnn_cell = define(
    "rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh; relu) -> hn",
    decompose=rnn_parts,
    number_inputs=["b_ih", "b_hh"],
    autocast="parts",
    domain="complex",
    examples=[
        case(*cell_inputs(1, 4), relu=False),
        case(*cell_inputs(1, 4), relu=True),
        case(strided(3, 5), strided(3, 2), floats(2, 5), strided(2, 2), 0, 0, relu=False),
        case(*cell_inputs(1, 4, "float32"), relu=False),
    ],
    doc="One step of rnn: the new state, by tanh or max(0, x). Biases of 0 for none. Elman 1990.",
)
