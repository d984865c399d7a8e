"""Recurrent layers: against their formula step by step, against their cells, packed sequences, and mistakes."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.nn.utils import rnn

KINDS = ["RNN", "LSTM", "GRU"]


def numbers(*shape, seed=0):
    return flow.tensor(np.random.default_rng(seed).standard_normal(shape))


def first(states):
    return states[0] if isinstance(states, tuple) else states


@pytest.mark.parametrize("kind", KINDS)
def test_layer_matches_its_cell(kind):
    layer, cell = getattr(nn, kind)(3, 4).double(), getattr(nn, f"{kind}Cell")(3, 4).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = numbers(5, 2, 3)
    y, _ = layer(x)
    states = None
    for t in range(5):
        states = cell(x[t], states)
        np.testing.assert_allclose(first(states).detach().numpy(), y[t].detach().numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_layer_is_one_node(kind):
    """A picture of the tape shows one operation for all fifty steps."""
    y, _ = getattr(nn, kind)(3, 4)(flow.rand(50, 2, 3))
    assert y._value.node.op.name == kind.lower() and y.shape == (50, 2, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_axes(kind):
    """batch_first swaps two axes, one sequence is a batch of one, and omitted states are zeros."""
    layer = getattr(nn, kind)(3, 4, 2, batch_first=True, bidirectional=True)
    other = getattr(nn, kind)(3, 4, 2, bidirectional=True)
    other.load_state_dict(layer.state_dict())
    x = flow.rand(2, 5, 3)
    y, h = layer(x)
    zeros = flow.zeros(4, 2, 4)
    again, _ = other(x.transpose(0, 1), (zeros, zeros) if kind == "LSTM" else zeros)
    alone, state = layer(x[0])
    assert y.shape == (2, 5, 8) and first(h).shape == (4, 2, 4) and first(state).shape == (4, 4)
    assert again.transpose(0, 1).tolist() == y.tolist()
    np.testing.assert_allclose(alone.detach().numpy(), y[0].detach().numpy(), rtol=1e-5, atol=1e-6)


def test_names_shapes_and_repr():
    layer = nn.LSTM(10, 20, 2, batch_first=True, dropout=0.5, bidirectional=True, proj_size=5)
    assert repr(layer) == "LSTM(10, 20, proj_size=5, num_layers=2, batch_first=True, dropout=0.5, bidirectional=True)"
    assert [name for name, _ in layer.named_parameters()][:6] == [
        "weight_ih_l0",
        "weight_hh_l0",
        "bias_ih_l0",
        "bias_hh_l0",
        "weight_hr_l0",
        "weight_ih_l0_reverse",
    ]
    assert layer.weight_ih_l1.shape == (80, 10) and layer.weight_hr_l0.shape == (5, 20)
    assert [len(weights) for weights in layer.all_weights] == [5] * 4 and layer.flatten_parameters() is None
    assert all(float(p.abs().max()) <= 20**-0.5 for p in layer.parameters())
    assert repr(nn.RNNCell(3, 4, False, "relu")) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"


def test_empty_batch_has_gradients():
    for layer in (nn.RNN(4, 3), nn.GRU(4, 3), nn.LSTM(4, 3), nn.LSTM(4, 3, proj_size=2)):
        x = flow.zeros(5, 0, 4, requires_grad=True)
        layer(x)[0].sum().backward()
        assert x.grad.shape == x.shape and not layer.weight_hh_l0.grad.any()


def test_dropout_is_applied_between_layers_in_training():
    flow.manual_seed(0)
    layer, x = nn.GRU(3, 4, 2, dropout=0.9), flow.rand(4, 2, 3)
    assert layer(x)[0].tolist() != layer(x)[0].tolist()
    layer.eval()
    assert layer(x)[0].tolist() == layer(x)[0].tolist()
    with pytest.warns(flow.MinflowWarning, match="there is one"):
        nn.GRU(3, 4, dropout=0.5)


def test_functions_match_layers():
    layer, x, zeros = nn.LSTM(3, 4, 2, bidirectional=True), flow.rand(5, 2, 3), flow.zeros(4, 2, 4)
    params = [weight for weights in layer.all_weights for weight in weights]
    y, h, c = flow.lstm(x, (zeros, zeros), params, True, 2, 0.0, False, True, False)
    want, (wanted_h, wanted_c) = layer(x)
    assert (y.tolist(), h.tolist(), c.tolist()) == (want.tolist(), wanted_h.tolist(), wanted_c.tolist())
    packed = rnn.pack_padded_sequence(x, [5, 3])
    data, *_ = flow.lstm(packed.data, packed.batch_sizes, (zeros, zeros), params, True, 2, 0.0, False, True)
    assert data.tolist() == layer(packed)[0].data.tolist()
    with pytest.raises(ValueError, match="params must be 4 tensors, got 3"):
        flow.gru(x, zeros[:1], params[:3], True, 1, 0.0, False, False, False)
    with pytest.raises(ValueError, match=r"b_ih.* \[16\], got \[4\]"):
        flow.lstm(
            x,
            (zeros[:1], zeros[:1]),
            [params[0], params[1], zeros[0, 0], zeros[0, 0]],
            True,
            1,
            0.0,
            False,
            False,
            False,
        )


def test_half_precision_computes_in_float32():
    layer, x = nn.LSTM(3, 4), flow.rand(5, 2, 3)
    y = layer.half()(x.half())[0]
    assert y.dtype is flow.float16
    np.testing.assert_allclose(y.detach().numpy(), layer.float()(x)[0].detach().numpy(), atol=2e-3)


def test_multiply_accumulates_and_parameters():
    record = flow.summary(nn.LSTM(10, 20, proj_size=5), (7, 3, 10)).record
    assert record.params == 80 * 10 + 80 * 5 + 160 + 5 * 20
    assert record.macs == 7 * 3 * (80 * 10 + 80 * 5 + 5 * 20)
    assert flow.summary(nn.GRU(4, 5, 2), (7, 3, 4)).record.macs == 21 * 15 * (4 + 5 + 5 + 5)


@pytest.mark.parametrize("kind", KINDS)
def test_second_gradients_are_refused_by_name(kind):
    x = flow.rand(3, 1, 2, requires_grad=True)
    (g,) = flow.autograd.grad(getattr(nn, kind)(2, 2)(x)[0].sum(), [x], create_graph=True)
    with pytest.raises(flow.GradError, match=f"(?s){kind}: the gradient of its gradient.*nn.{kind}Cell in a loop"):
        g.sum().backward()
    cell, step = getattr(nn, f"{kind}Cell")(2, 2), flow.rand(1, 2, requires_grad=True)
    (g,) = flow.autograd.grad(first(cell(step)).sum(), [step], create_graph=True)
    g.sum().backward()
    assert float(step.grad.abs().sum()) > 0


# ---- packed sequences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_packed_batch_matches_single_sequences(kind):
    layer = getattr(nn, kind)(3, 4, 2, bidirectional=True).double()
    parts = [numbers(n, 3, seed=n).requires_grad_() for n in (2, 5, 1, 4)]
    packed, states = layer(rnn.pack_sequence(parts, enforce_sorted=False))
    for i, (part, y) in enumerate(zip(parts, rnn.unpack_sequence(packed))):
        alone, state = layer(part)
        np.testing.assert_allclose(y.detach().numpy(), alone.detach().numpy(), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            first(states)[:, i].detach().numpy(), first(state).detach().numpy(), rtol=1e-12, atol=1e-14
        )
    packed.data.sum().backward()
    for part in parts:
        got, part.grad = part.grad.numpy(), None
        layer(part)[0].sum().backward()
        np.testing.assert_allclose(got, part.grad.numpy(), rtol=1e-12, atol=1e-14)


def test_packing_and_padding_are_inverses():
    parts = [flow.tensor(row) for row in ([1, 2, 3], [4, 5], [6])]
    packed = rnn.pack_sequence(parts)
    assert packed.data.tolist() == [1, 4, 6, 2, 5, 3] and packed.batch_sizes.tolist() == [3, 2, 1]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert padded.tolist() == [[1, 2, 3, -1], [4, 5, -1, -1], [6, -1, -1, -1]] and lengths.tolist() == [3, 2, 1]
    turned = rnn.pack_sequence(parts[::-1], enforce_sorted=False)
    assert turned.sorted_indices.tolist() == [2, 1, 0] and turned.data.tolist() == packed.data.tolist()
    assert [part.tolist() for part in rnn.unpack_sequence(turned)] == [[6], [4, 5], [1, 2, 3]]
    assert rnn.pad_sequence(parts, True, padding_side="left").tolist() == [[1, 2, 3], [0, 4, 5], [0, 0, 6]]
    assert rnn.invert_permutation(flow.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    assert packed.double().data.dtype is flow.float64 and packed.to(flow.int64) is packed
    assert rnn.PackedSequence(*packed) == packed


def test_graph_refuses_packed_sequences_by_name():
    class Packs(nn.Graph):
        def build(self, x):
            return rnn.pack_padded_sequence(x, [2, 1]).data

    with pytest.raises(flow.TraceError, match="(?s)pack_padded_sequence: packing needs the lengths.*mask"):
        Packs()(flow.rand(2, 2, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: nn.LSTM(4, 5)(x), "the input has 3 features .* input_size is 4"),
        (lambda x: nn.LSTM(3, 5)(x, flow.zeros(1, 2, 5)), "hx is not a pair"),
        (lambda x: nn.GRU(3, 5)(x, flow.zeros(1, 4, 5)), r"h_0 must be \[1, 2, 5\], got \[1, 4, 5\]"),
        (lambda x: nn.GRU(3, 5)(x[:0]), "no steps"),
        (lambda x: nn.GRU(3, 5)(x[0, 0]), "must have 2 or 3 axes, got 1"),
        (lambda x: nn.RNN(3, 5, nonlinearity="sin"), "nonlinearity is 'sin'"),
        (lambda x: nn.RNN(3, 0), "hidden_size must be .* got 0"),
        (lambda x: nn.LSTM(3, 5, proj_size=5), "proj_size is 5, hidden_size 5"),
        (lambda x: nn.RNN(3, 5, dropout=2.0, num_layers=2), "dropout must be .* got 2.0"),
        (lambda x: nn.RNN(3, 5, bias=1), "bias must be True or False, got 1"),
        (lambda x: nn.LSTMCell(3, 5)(x), r"must be \(N, 3\) or \(3,\), got \[4, 2, 3\]"),
        (lambda x: nn.GRUCell(3, 5)(x[0], flow.zeros(2, 4)), r"hx must be \[2, 5\], got \[2, 4\]"),
        (lambda x: rnn.pack_padded_sequence(x, [2, 3]), "not sorted"),
        (lambda x: rnn.pack_padded_sequence(x, [5, 1]), "lengths must be from 1 to 4, got 1 to 5"),
        (lambda x: rnn.pack_padded_sequence(x, [4]), "1 lengths for 2 sequences"),
        (lambda x: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [4, 2]), total_length=3), "total_length is 3"),
        (lambda x: rnn.pad_packed_sequence(x), "must be a PackedSequence, got"),
        (lambda x: rnn.pad_sequence([x, x[:, :1]]), r"\[4, 1, 3\], the first \[4, 2, 3\]"),
        (lambda x: rnn.pad_sequence([]), "no sequences"),
        (lambda x: rnn.pad_sequence([x], padding_side="up"), "padding_side is 'up'"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(flow.MinflowError, match=f"(?s){words}"):
        call(flow.rand(4, 2, 3))
