"""Layers: RNN, LSTM, GRU over sequences.

Read next: `../functional/rnn.py`; `rnn_cell.py`, the layers of one step.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.base.errors import DTypeError, ModuleError, OutOfRangeError, ShapeError
from ...core.functions.creation import empty
from ...core.source_location import fail, warn
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F, init
from ..functional import rnn
from ..module import Module
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .linear import check_size

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def nonlinearity_mode(layer: str, nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        fail(OutOfRangeError, f"{layer}: nonlinearity is {nonlinearity!r}", 'nonlinearity="tanh" or "relu"')
    return f"RNN_{nonlinearity.upper()}"


def draw_uniform(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """Base of RNN, LSTM and GRU: weights by name, axes of input and states, packed sequences.

    Weights of layer k: weight_ih_lk (gates * hidden_size, its input), weight_hh_lk (gates * hidden_size, hidden_size),
    bias_ih_lk and bias_hh_lk; those of the backward direction end with _reverse; weight_hr_lk (proj_size, hidden_size)
    projects. All are initialized uniform in +-1/sqrt(hidden_size).
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        name = type(self).__name__
        for size, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            check_size(name, size, value, 0 if size == "input_size" else 1)
        for option, value in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            if not isinstance(value, bool):
                fail(DTypeError, f"{name}: {option} must be True or False, got {value!r}", f"{option}=True")
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            what = f"{name}: dropout must be a probability between 0 and 1, got {dropout!r}"
            fail(OutOfRangeError, what, "dropout=0.5")
        if dropout and num_layers == 1:
            warn(f"{name}: dropout={dropout} is for several layers, and there is one", "num_layers=2, or no dropout")
        if proj_size and mode != "LSTM":
            fail(ShapeError, f"{name}: proj_size is for LSTM alone", "nn.LSTM")
        if not 0 <= proj_size < hidden_size:
            what = f"{name}: proj_size is {proj_size}, hidden_size {hidden_size}"
            fail(ShapeError, what, "a projection must be smaller than hidden_size; 0 means none")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        directions, rows, width = 2 if bidirectional else 1, GATES[mode] * hidden_size, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            before = input_size if layer == 0 else width * directions
            for end in ("", "_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, before), "weight_hh": (rows, width)}
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                names = [f"{kind}_l{layer}{end}" for kind in shapes]
                for weight, shape in zip(names, shapes.values()):
                    self.register_parameter(weight, Parameter(empty(*shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all weights."""
        draw_uniform(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing; exists for programs that call it, since cuDNN needs all weights contiguous in memory."""

    @property
    def _flat_weights_names(self) -> list[str]:
        """The names of all weights, in the order of `_flat_weights`."""
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        """All weights, read from the attributes at each call of forward, so that an assigned list must hold these."""
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        for name, old, new in zip(self._flat_weights_names, self._flat_weights, weights, strict=True):
            if new is not old:
                what = f"{type(self).__name__}._flat_weights: {name} differs from the attribute, which forward reads"
                fail(ModuleError, what, f"del rnn.{name}; rnn.{name} = tensor; then the same tensor here", weight=new)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _run_sequence(self, input: Tensor | PackedSequence, states: tuple | None) -> tuple:
        """Return (output, final states) of a batch, sequence or PackedSequence. states: tuple of tensors or None."""
        name = type(self).__name__
        if isinstance(input, PackedSequence):
            sizes = rnn.batch_sizes_as_ints(name, input.batch_sizes)
            y, *finals = self._run_layers(
                input.data, self._initial_states(states, sizes[0], True, input.sorted_indices), sizes
            )
            if input.unsorted_indices is not None:
                finals = [h.index_select(1, input.unsorted_indices) for h in finals]
            return PackedSequence(y, input.batch_sizes, input.sorted_indices, input.unsorted_indices), tuple(finals)
        F.arguments.check_tensor(name, input)
        if input.spec.ndim not in (2, 3):
            hint = "(N, T, input_size) with batch_first=True, else (T, N, input_size); (T, input_size) is one sequence"
            fail(ShapeError, f"{name}: the input must have 2 or 3 axes, got {input.spec.ndim}", hint, input=input)
        batched = input.spec.ndim == 3
        x = input if batched else input.unsqueeze(1)
        x = x.transpose(0, 1) if batched and self.batch_first else x
        y, *finals = self._run_layers(x, self._initial_states(states, x.spec.shape[1], batched), ())
        if not batched:
            return y.squeeze(1), tuple([h.squeeze(1) for h in finals])
        return y.transpose(0, 1) if self.batch_first else y, tuple(finals)

    def _run_layers(self, x: Tensor, states: tuple, sizes: tuple) -> tuple:
        """Return the output and the final states of all layers."""
        name = type(self).__name__
        if x.spec.shape[-1] != self.input_size:
            what = f"{name}: the input has {x.spec.shape[-1]} features (its last axis), input_size is {self.input_size}"
            fail(ShapeError, what, f"nn.{name}({x.spec.shape[-1]}, {self.hidden_size})", input=x)
        if not x.spec.shape[0]:
            fail(ShapeError, f"{name}: the sequence has no steps", "at least one step", input=x)
        params = self._flat_weights
        return rnn.run_layers(
            self.mode.lower(),
            x,
            states,
            params,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            sizes=sizes,
        )

    def _initial_states(self, states: tuple | None, batch: int, batched: bool, order: Tensor | None = None) -> tuple:
        """Return the initial states, each (layers * directions, N, width), in the order of a packed sequence."""
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: 2 if self.mode == "LSTM" else 1]
        if states is None:
            return (None,) * len(widths)
        rows = self.num_layers * (2 if self.bidirectional else 1)
        for name, state, width in zip(("h_0", "c_0"), states, widths):
            F.arguments.check_tensor(type(self).__name__, state, name)
            expected = (rows, batch, width) if batched else (rows, width)
            if state.spec.shape != expected:
                layer = type(self).__name__
                what = f"{layer}: {name} must be {list(expected)}, got {list(state.spec.shape)}"
                hint = "(num_layers * directions, N, hidden_size), also with batch_first"
                fail(ShapeError, what, hint, **{name: state})
        states = states if batched else tuple([s.unsqueeze(1) for s in states])
        return states if order is None else tuple([s.index_select(1, order) for s in states])

    def extra_repr(self) -> str:
        options = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        changed = [f"{name}={getattr(self, name)}" for name, usual in options.items() if getattr(self, name) != usual]
        return ", ".join([str(self.input_size), str(self.hidden_size), *changed])


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh) for each step of a sequence, or max(0, ...). Elman 1990.

    input: float (T, N, input_size), or (N, T, input_size) with batch_first, or (T, input_size), or a PackedSequence.
    h_0: (num_layers * directions, N, hidden_size), zeros if None. Returns (output, h_n): output (T, N, directions *
    hidden_size) has the last layer's states, both directions concatenated. dropout: between the layers.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        mode = nonlinearity_mode("RNN", nonlinearity)
        options: tuple[Any, ...] = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__(mode, input_size, hidden_size, *options)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple:
        output, (h,) = self._run_sequence(input, None if hx is None else (hx,))
        return output, h


class LSTM(RNNBase):
    """Long short-term memory: c = f * c + i * g, h = o * tanh(c), where i, f, o = sigmoid(...) and g = tanh(...) of
    W_ih x + b_ih + W_hh h + b_hh, step by step. Hochreiter & Schmidhuber 1997; Gers et al. 2000.

    input: float (T, N, input_size), or (N, T, input_size) with batch_first, or (T, input_size), or a PackedSequence.
    hx: (h_0, c_0), each (num_layers * directions, N, hidden_size), zeros if None. Returns (output, (h_n, c_n)): output
    (T, N, directions * hidden_size). proj_size: h is W_hr (o * tanh(c)) of that size. dropout: between the layers.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        options: tuple[Any, ...] = (num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, *options)

    def forward(self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None) -> tuple:
        return self._run_sequence(input, None if hx is None else pair_of_states("LSTM", hx))


class GRU(RNNBase):
    """Gated recurrent units: h = (1 - z) * n + z * h, n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), where r, z =
    sigmoid(...) of W_ih x + b_ih + W_hh h + b_hh, step by step. Cho et al. 2014, where r is inside the product.

    input, h_0 and return value: as in RNN. dropout: between the layers.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        options: tuple[Any, ...] = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__("GRU", input_size, hidden_size, *options)

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple:
        output, (h,) = self._run_sequence(input, None if hx is None else (hx,))
        return output, h


def pair_of_states(layer: str, hx: Any) -> tuple:
    if not isinstance(hx, tuple | list) or len(hx) != 2:
        fail(DTypeError, f"{layer}: hx is not a pair", "a pair of states: lstm(x, (h_0, c_0))", hx=hx)
    return tuple(hx)
