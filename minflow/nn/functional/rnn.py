"""Recurrent layers and cells as functions of their weights, in PyTorch's order: w_ih, w_hh, b_ih, b_hh, w_hr.

`lstm`, `gru`, `rnn_tanh`, `rnn_relu` run layers over sequences, each layer as one op; a cell is one step, a composite
op. Read next: `../../core/ops/rnn.py`, `../../core/ops/rnn_cells.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.base.errors import ShapeError, TraceError
from ...core.functions import cat, stack
from ...core.mode import MODE
from ...core.op import Op
from ...core.ops import rnn_cells as cells
from ...core.ops.gru import gru as gru_layer
from ...core.ops.lstm import lstm as lstm_layer, lstm_projected
from ...core.ops.rnn import rnn as rnn_layer
from ...core.ops.shape import filled
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, same_dtype
from .dropout import dropout as drop
from .linear import matched

LAYER_OPS = {
    "lstm": (lstm_layer, {}),
    "gru": (gru_layer, {}),
    "rnn_tanh": (rnn_layer, {"relu": False}),
    "rnn_relu": (rnn_layer, {"relu": True}),
}


def run_layers(
    kind: str,
    x: Tensor,
    states: Sequence[Tensor | None],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    *,
    sizes: tuple = (),
) -> tuple:
    """Run all layers and directions: (states of the last layer at all steps, final h, final c of lstm).

    x: (T, N, I), or packed (rows, I) with `sizes`. states: (num_layers * directions, N, H) each, or None for zeros.
    """
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    check_params(kind, params, num_layers * directions, has_biases)
    finals: list[list[Tensor]] = []
    for layer in range(num_layers):
        ys = []
        for direction in range(directions):
            k = layer * directions + direction
            y, last = run_layer(
                kind,
                x,
                [s if s is None else s[k] for s in states],
                params[k * each : (k + 1) * each],
                has_biases,
                sizes,
                direction == 1,
            )
            ys.append(y)
            finals.append(last)
        x = ys[0] if directions == 1 else cat(ys, -1)
        if dropout and layer < num_layers - 1:
            x = drop(x, dropout, train)
    if directions == 1 and x.array is not None and x._needs:
        x.array, x._version_counter = (
            x.array.copy(),
            None,
        )  # the program may write into its result; the tape keeps the other array
    return x, *[stack(same) if len(same) > 1 else same[0].unsqueeze(0) for same in zip(*finals)]


def run_layer(
    kind: str,
    x: Tensor,
    states: Sequence[Tensor | None],
    params: Sequence[Tensor],
    has_biases: bool,
    sizes: tuple,
    reverse: bool,
) -> tuple[Tensor, list[Tensor]]:
    """Run the op of one layer in one direction: (states at all steps, [final h, final c])."""
    op, attrs = LAYER_OPS[kind]
    w_ih, w_hh, *rest = params
    x, w_ih = same_dtype(kind, x, w_ih)
    biases, w_hr = (rest[:2], rest[2:]) if has_biases else ([], rest)
    zeros = lambda *shape: filled(x.spec.replace(shape=shape), 0.0)
    batch = sizes[0] if sizes else x.spec.shape[1]
    widths = w_hh.spec.shape[-1], w_ih.spec.shape[0] // 4  # of h, of c
    begin = [zeros(batch, width) if s is None else s for s, width in zip(states, widths)]
    begin, hidden, biases, w_hr = ([t.to(x.dtype) for t in group] for group in (begin, [w_hh], biases, w_hr))
    biases = biases or [zeros(w_ih.spec.shape[0])] * 2
    results = (lstm_projected if w_hr else op)(
        x, *begin, w_ih, *hidden, *biases, *w_hr, **attrs, sizes=sizes, reverse=reverse
    )
    return results[0], list(results[1 : 1 + len(states)])


def check_params(kind: str, params: Sequence[Tensor], count: int, has_biases: bool) -> None:
    fitting = [n * count for n in ((4, 5) if has_biases else (2, 3))[: 2 if kind == "lstm" else 1]]
    if len(params) not in fitting:
        what = f"{kind}: params must be {' or '.join(map(str, fitting))} tensors, got {len(params)}"
        fail(ShapeError, what, "for each layer and direction: w_ih, w_hh, with biases b_ih, b_hh, with projection w_hr")


def batch_sizes_as_ints(name: str, batch_sizes: Tensor) -> tuple[int, ...]:
    """Return the number of sequences at each step as Python ints, which do not exist in a graph."""
    if MODE.get().trace is not None:
        refuse_packed(name)
    return tuple(batch_sizes.tolist())


def refuse_packed(name: str) -> None:
    """Refuse packed sequences in a graph, which has one shape for all calls."""
    fail(
        TraceError,
        f"{name}: packing needs the lengths of the sequences, which are not known while a graph is built",
        "run it eagerly; or use the padded sequences with a mask in the graph: (out * mask).sum(), "
        "or out[flow.arange(N), lengths - 1] for the last step of each",
    )


def run_layers_from_args(kind: str, input: Tensor, *args: Any) -> tuple:
    """Accept both forms of PyTorch: (input, hx, params, ..., batch_first), or (data, batch_sizes, hx, params, ...)."""
    check_tensor(kind, input)
    packed = isinstance(args[2], list | tuple)
    if packed:
        batch_sizes, hx, params, *options = args
        sizes, swap = batch_sizes_as_ints(kind, batch_sizes), False
    else:
        hx, params, *options, swap = args
        sizes = ()
        if input.spec.ndim != 3:
            what = f"{kind}: the input must have 3 axes, got {input.spec.ndim}"
            fail(ShapeError, what, "x.unsqueeze(1)", input=input)
    states = tuple(hx) if kind == "lstm" else (hx,)
    y, *finals = run_layers(kind, input.transpose(0, 1) if swap else input, states, params, *options, sizes=sizes)
    return y.transpose(0, 1) if swap else y, *finals


def lstm(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Layers of long short-term memory, called by `nn.LSTM` with its weights: (output, h_n, c_n).

    i, f, o = sigmoid(...), g = tanh(...) of W_ih x + b_ih + W_hh h + b_hh;  c = f * c + i * g;  h = o * tanh(c).
    input: float (T, N, I). hx: (h_0, c_0), each (L * D, N, H). params: for each layer and direction w_ih (4H, I), w_hh
    (4H, H), then b_ih, b_hh (4H,), then w_hr (P, H) of a projection. Returns (T, N, D * H), and h and c as in hx.
    Packed, in this order: lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).
    Raises ShapeError if sizes differ. Source: Hochreiter & Schmidhuber 1997.
    """
    return run_layers_from_args(
        "lstm", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


def gru(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """Layers of gated recurrent units, called by `nn.GRU` with its weights: (output, h_n).

    r, z = sigmoid(...);  n = tanh(W_in x + b_in + r * (W_hn h + b_hn));  h = (1 - z) * n + z * h.
    hx: h_0 (L * D, N, H). Other shapes and the packed form: as in `lstm`, with 3H rows. Source: Cho et al. 2014.
    """
    return run_layers_from_args(
        "gru", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


def rnn_tanh(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """(output, h_n) with h = tanh(W_ih x + b_ih + W_hh h + b_hh); arguments as in `gru`, with H rows."""
    return run_layers_from_args(
        "rnn_tanh", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


def rnn_relu(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """(output, h_n) with h = max(0, W_ih x + b_ih + W_hh h + b_hh); arguments as in `gru`, with H rows."""
    return run_layers_from_args(
        "rnn_relu", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


# ---- cells: one step -----------------------------------------------------------------------------------------------


def run_cell(op: Op, x: Tensor, states: Sequence[Tensor], params: Sequence[Any], **attrs: Any) -> Any:
    """Run the op of a cell, with its arguments checked like those of `linear`. params: w_ih, w_hh, b_ih, b_hh."""
    w_ih, w_hh, *biases = params
    x, w_ih = matched(x, w_ih, biases[0])
    h, w_hh = matched(states[0], w_hh, biases[1])
    return op(x, h, *states[1:], w_ih, w_hh, *[0 if b is None else b for b in biases], **attrs)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of `lstm`: (h, c) from input (N, I) and hx, a pair (h, c) of (N, H)."""
    h, c = hx
    h, c = run_cell(cells.lstm_cell, input, (h, c), (w_ih, w_hh, b_ih, b_hh))
    return h, c


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of `gru`: h of (N, H) from input (N, I) and hx (N, H)."""
    return run_cell(cells.gru_cell, input, (hx,), (w_ih, w_hh, b_ih, b_hh))


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of `rnn_tanh`: h of (N, H) from input (N, I) and hx (N, H)."""
    return run_cell(cells.rnn_cell, input, (hx,), (w_ih, w_hh, b_ih, b_hh), relu=False)


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of `rnn_relu`: h of (N, H) from input (N, I) and hx (N, H)."""
    return run_cell(cells.rnn_cell, input, (hx,), (w_ih, w_hh, b_ih, b_hh), relu=True)
