"""Compiled recurrent layers: values and gradients against float64, at odd sizes, at any thread count."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from graph_models import Step

import minflow as flow
from minflow import nn
from minflow.core.kernels import CALLS
from minflow.core.ops import gru, lstm, rnn
from minflow.platforms import compiled
from minflow.platforms.compiled.kernels import recurrent
from tests.single_tasks import run_builder, same_bits, tasks_of

LAYERS = {
    "tanh": (rnn.rnn, rnn.rnn_grad, 1, dict(relu=False)),
    "relu": (rnn.rnn, rnn.rnn_grad, 1, dict(relu=True)),
    "lstm": (lstm.lstm, lstm.lstm_grad, 4, {}),
    "gru": (gru.gru, gru.gru_grad, 3, {}),
}
SIZES = [(1, 1, 1, 1), (3, 2, 5, 7), (5, 9, 16, 16), (2, 33, 20, 50), (6, 17, 3, 33)]  # steps, sequences, input, state


def arguments(kind, size, dtype="f8", seed=0):
    op, _, gates, _ = LAYERS[kind]
    (count, batch, width, hidden), rng = size, np.random.default_rng(seed)
    shapes = [
        (count, batch, width),
        *[(batch, hidden)] * (2 if op.name == "lstm" else 1),
        (gates * hidden, width),
        (gates * hidden, hidden),
        (gates * hidden,),
        (gates * hidden,),
    ]
    states = len(shapes) - 4
    return [
        (rng.uniform(-1, 1, shape) * (1 if i < states else hidden**-0.5)).astype(dtype)
        for i, shape in enumerate(shapes)
    ]


def backward_arguments(kind, args, results):
    op, grad, _, _ = LAYERS[kind]
    rng, known = np.random.default_rng(7), dict(zip(op.inputs, args)) | dict(zip(op.outputs, results))
    known |= {f"g{name}": rng.standard_normal(x.shape).astype(x.dtype) for name, x in zip(op.outputs, results)}
    return [known[name] for name in grad.inputs]


def compiled_outputs(op, args, like, **attrs):
    return run_builder(getattr(recurrent, op.name), args, like, **attrs)


def both(kind, args, **attrs):
    """Results of the layer and its gradient in float32, and the same in float64."""
    op, grad, _, more = LAYERS[kind]
    attrs = dict(sizes=(), reverse=False) | more | attrs
    exact = CALLS[op](*args, **attrs)
    exact_args = backward_arguments(kind, args, exact)
    exact_grads = CALLS[grad](*exact_args, **attrs)
    found = compiled_outputs(op, [a.astype("f4") for a in args], exact, **attrs)
    grads = compiled_outputs(grad, [a.astype("f4") for a in exact_args], exact_grads, **attrs)
    return [*found, *grads], [*exact, *exact_grads]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", LAYERS)
def test_error_against_float64(kind, size, reverse):
    found, exact = both(kind, arguments(kind, size), reverse=reverse)
    for a, b in zip(found, exact):
        np.testing.assert_allclose(a, b, rtol=0, atol=3e-6 * max(1, abs(b).max()))


@pytest.mark.parametrize("kind", LAYERS)
def test_bits_do_not_depend_on_thread_count(kind):
    args = arguments(kind, (4, 40, 24, 72))
    same_bits(lambda: both(kind, args)[0], (1, 2, 5))


@pytest.mark.parametrize("kind", LAYERS)
def test_nan_and_infinity_stay_in_their_sequence(kind):
    args = arguments(kind, (3, 12, 5, 20))
    clean = both(kind, args)[0][0]
    args[0][1, 4], args[0][0, 7, 0] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        y = both(kind, args)[0][0]
    others = [n for n in range(12) if n not in (4, 7)]
    assert y[:, others].tobytes() == clean[:, others].tobytes()
    assert y[0, 4].tobytes() == clean[0, 4].tobytes() and np.isnan(y[1:, 4]).all()
    assert kind in ("relu", "tanh") or np.isfinite(y[0, 7]).all()


@pytest.mark.parametrize("kind", LAYERS)
def test_strided_time_axis(kind):
    args = arguments(kind, (5, 6, 7, 8))
    op, grad, _, more = LAYERS[kind]
    attrs, single = dict(sizes=(), reverse=False) | more, [a.astype("f4") for a in args]
    wanted = compiled_outputs(op, single, CALLS[op](*args, **attrs), **attrs)
    turned = [np.ascontiguousarray(single[0].swapaxes(0, 1)).swapaxes(0, 1), *single[1:]]
    for a, b in zip(compiled_outputs(op, turned, wanted, **attrs), wanted):
        np.testing.assert_allclose(a, b, atol=1e-6)
    backward = backward_arguments(kind, single, wanted)
    grads = compiled_outputs(grad, backward, CALLS[grad](*backward, **attrs), **attrs)
    backward[grad.inputs.index("x")] = turned[0]
    assert [a.tobytes() for a in compiled_outputs(grad, backward, grads, **attrs)] == [a.tobytes() for a in grads]


def test_unsupported_calls_fall_back():
    attrs = dict(sizes=(), reverse=False)
    double = arguments("lstm", (2, 3, 4, 5))
    single, nobody = arguments("lstm", (2, 3, 4, 5), "f4"), arguments("lstm", (2, 0, 4, 5), "f4")
    packed = [single[0].reshape(6, 4), *single[1:]]
    for args, more in ((double, attrs), (nobody, attrs), (packed, dict(sizes=(3, 3), reverse=False))):
        outs = list(CALLS[lstm.lstm](*args, **more))
        assert tasks_of(recurrent.lstm, args, outs, **more) is None
    apart = [single[0], np.asfortranarray(single[1]), *single[2:]]
    assert tasks_of(recurrent.lstm, apart, list(CALLS[lstm.lstm](*single, **attrs)), **attrs) is None


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_bidirectional_layers_in_graphs(name, kernels_of_numpy):
    x = flow.from_numpy(np.random.default_rng(0).standard_normal((5, 9, 6)).astype("f4"))

    def trained(on):
        flow.manual_seed(0)
        layer, head = getattr(nn, name)(6, 20, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(40, 3)
        model = nn.ModuleList([layer, head])
        compiled.use(on)
        graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.1), lambda x: head(layer(x)[0]).square().mean())
        return [graph(x).item() for _ in range(4)], [p.numpy() for p in model.parameters()]

    (plain, by_numpy), (losses, parameters) = trained(False), trained(True)
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    for a, b in zip(parameters, by_numpy):
        np.testing.assert_allclose(a, b, atol=2e-6)
