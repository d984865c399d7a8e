"""Layers: RNNCell, LSTMCell, GRUCell, which compute one step of a sequence.

Read next: `../functional/rnn.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.base.errors import ShapeError
from ...core.functions.creation import empty
from ...core.ops.shape import filled
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F
from ..functional import rnn
from ..module import Module
from ..parameter import Parameter
from .linear import check_size
from .rnn import draw_uniform, nonlinearity_mode, pair_of_states


class RNNCellBase(Module):
    """Base of the cells: weight_ih, weight_hh, bias_ih, bias_hh, initialized uniform in +-1/sqrt(hidden_size)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            check_size(type(self).__name__, name, value)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        shapes = {
            "weight_ih": (rows, input_size),
            "weight_hh": (rows, hidden_size),
            "bias_ih": (rows,),
            "bias_hh": (rows,),
        }
        for name, shape in shapes.items():
            needed = bias or len(shape) > 1
            self.register_parameter(name, Parameter(empty(*shape, device=device, dtype=dtype)) if needed else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all weights."""
        draw_uniform(self, self.hidden_size)

    def _step(self, function: Any, input: Tensor, states: tuple | None) -> Any:
        """Apply `function` to a batch, or to one example. states: a tuple of tensors, or None for zeros."""
        name = type(self).__name__
        F.arguments.check_tensor(name, input)
        if input.spec.ndim not in (1, 2) or input.spec.shape[-1] != self.input_size:
            fail(
                ShapeError,
                f"{name}: the input must be (N, {self.input_size}) or "
                f"({self.input_size},), got {list(input.spec.shape)}",
                f"one step of a sequence: x[t], or nn.{name[:-4]} for all steps",
                input=input,
            )
        expected = (*input.spec.shape[:-1], self.hidden_size)
        if states is None:
            zeros = filled(input.spec.replace(shape=expected), 0.0)
            states = (zeros,) * (2 if name == "LSTMCell" else 1)
        for state in states:
            F.arguments.check_tensor(name, state, "hx")
            if state.spec.shape != expected:
                what = f"{name}: hx must be {list(expected)}, got {list(state.spec.shape)}"
                fail(ShapeError, what, "the batch of the input, and hidden_size", input=input, hx=state)
        batched = input.spec.ndim == 2
        x, *now = (input, *states) if batched else [t.unsqueeze(0) for t in (input, *states)]
        result = function(
            x, now if name == "LSTMCell" else now[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        if batched:
            return result
        return tuple([t.squeeze(0) for t in result]) if isinstance(result, tuple) else result.squeeze(0)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        kind = getattr(self, "nonlinearity", "tanh")
        return text if kind == "tanh" else f"{text}, nonlinearity={kind}"


class RNNCell(RNNCellBase):
    """One step of RNN: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or max(0, ...).

    input: float (N, input_size) or (input_size,). hx: (N, hidden_size), zeros if None. Returns h' of (N, hidden_size).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        nonlinearity_mode("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        function = rnn.rnn_tanh_cell if self.nonlinearity == "tanh" else rnn.rnn_relu_cell
        return self._step(function, input, None if hx is None else (hx,))


class GatedCell(RNNCellBase):
    """Base of LSTMCell and GRUCell. gates: number of products with each input."""

    _gates: int

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, self._gates, device, dtype)


class LSTMCell(GatedCell):
    """One step of LSTM: (h', c') from input (N, input_size) and hx = (h, c), each (N, hidden_size), zeros if None."""

    _gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._step(rnn.lstm_cell, input, None if hx is None else pair_of_states("LSTMCell", hx))


class GRUCell(GatedCell):
    """One step of GRU: h' of (N, hidden_size) from input (N, input_size) and hx (N, hidden_size), zeros if None."""

    _gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(rnn.gru_cell, input, None if hx is None else (hx,))
