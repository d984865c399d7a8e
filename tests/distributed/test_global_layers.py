"""Every layer, loss and optimizer on global tensors: 2 and 3 virtual ranks train to the numbers of one rank.

The cases are the rows of `tests/exported_cases.py`, in float64. The input is split along its first axis, or whole on
each rank; so are the parameters, and those with several axes also along the second one.
"""

import functools
from collections import defaultdict

import numpy as np
import pytest

import minflow as flow
from minflow.distributed import boxing
from tests.cases import Cases
from tests.exported_cases import TARGETS, PairedInput, input_of, layer_cases, loss_cases, optimizer_cases
from tests.graphs import Scaled, Training, loss_of

STEPS = 3
B, S = flow.sbp.broadcast, flow.sbp.split
WAYS = [(S(0), B), (B, S(0)), (B, S(1)), (S(0), S(0))]  # sbp of the input, and of parameters that have this axis
LAYERS, LOSSES = defaultdict(list), defaultdict(list)
for name, make, x in layer_cases():
    LAYERS[name].append((make, x))
for name, options in loss_cases():
    LOSSES[name].append(options)


def placed(x, placement, sbp):
    """A tensor of which all ranks have the elements, with this sbp; whole on each rank if it has no such axis."""
    sbp = sbp if isinstance(sbp, list) else [sbp]
    sbp = [B if one.kind == "split" and one.dim >= x.ndim else one for one in sbp]
    return x.to_global(placement, [B] * len(sbp)).to_global(placement, sbp)


def placed_other(other, x):
    y = other(x)
    return y if y.is_global else placed(y, x.placement, list(x.sbp))


def place_module(model, placement, sbp):
    """Make the parameters and buffers of a module global, and the inputs that it makes."""
    for module in model.modules():
        if isinstance(module, PairedInput):
            module.other = functools.partial(placed_other, module.other)
        for name, p in module._parameters.items():
            if p is not None:
                module._parameters[name] = flow.nn.Parameter(placed(p.detach(), placement, sbp), p.requires_grad)
        for name, b in module._buffers.items():
            if b is not None:
                module._buffers[name] = placed(b, placement, [B] * len(placement.hierarchy))


def trained(model, inputs, optimizer):
    """Losses, gradients and the state after some steps, as arrays."""
    flow.manual_seed(11)
    found = []
    for _ in range(STEPS):
        loss = loss_of(model(*inputs))
        optimizer.zero_grad()
        loss.backward()
        found += [loss.numpy(), *[p.grad.numpy() for p in model.parameters() if p.grad is not None]]
        optimizer.step()
    return [*found, *[t.numpy() for t in model.state_dict().values()]]


def sgd(parameters):
    return flow.optim.SGD(parameters, lr=0.001, momentum=0.9, weight_decay=0.01)


def in_float64(make, *arrays):
    """A model and its inputs; its first input is scaled by a parameter if it is floating."""
    flow.manual_seed(3)
    model, inputs = make(), [flow.tensor(x) for x in arrays]
    inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    x = inputs[0]
    return (Scaled(model, x.shape[-1]) if x.is_floating_point() else model).double(), inputs


def check_ways(case, label, make, arrays, ways=WAYS, optimizer=sgd, train=trained, tolerance=1e-12):
    """Train on one rank, and in each way on 2 and 3 ranks."""
    model, inputs = in_float64(make, *arrays)
    want = train(model, inputs, optimizer(model.parameters()))

    def train_placed(count, sbp, of_parameters):
        model, inputs = in_float64(make, *arrays)
        placement = flow.placement("cpu", range(count))
        place_module(model, placement, of_parameters)
        return train(model, [placed(x, placement, sbp) for x in inputs], optimizer(model.parameters()))

    for count, ways in ((2, ways), (3, ways[::2])):  # noqa: B020
        for way in ways:
            with case(f"{label} on {count} ranks, {way}"), flow.virtual_ranks(count) as ranks:
                for got in ranks.run(train_placed, count, *way):
                    assert_same(got, want, tolerance)


def assert_same(got, want, tolerance):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    with Cases() as case:
        for i, (make, x) in enumerate(LAYERS[name]):
            check_ways(case, f"{name} {i}", make, [input_of(x)])


def cases_of(name):
    """(constructor, input arrays) of each case of a layer or loss."""
    x, target = np.random.default_rng(0).uniform(0.1, 0.9, (2, 5, 3))
    targets = TARGETS.get(name, target[:4])
    arrays = [x[:4], *(targets if isinstance(targets, tuple) else [targets])]
    losses = [(functools.partial(getattr(flow.nn, name), **options), arrays) for options in LOSSES.get(name, [])]
    return [*[(make, [input_of(x)]) for make, x in LAYERS.get(name, [])], *losses]


@pytest.mark.parametrize("name", [*LAYERS, *LOSSES])
def test_two_axes_of_ranks(name):
    """The batch is split over one axis of four ranks, and features or parameters over the other."""
    make, arrays = cases_of(name)[0]
    model, inputs = in_float64(make, *arrays)
    want = trained(model, inputs, sgd(model.parameters()))

    def train(of_input, of_parameters):
        model, inputs = in_float64(make, *arrays)
        placement = flow.placement("cpu", [[0, 1], [2, 3]])
        place_module(model, placement, of_parameters)
        return trained(model, [placed(x, placement, of_input) for x in inputs], sgd(model.parameters()))

    with Cases() as case:
        for way in (([S(0), B], [B, S(0)]), ([S(0), S(1)], [S(0), S(1)])):
            with case(f"{way}"), flow.virtual_ranks(4) as ranks:
                for got in ranks.run(train, *way):
                    assert_same(got, want, 1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    with Cases() as case:
        for make, arrays in cases_of(name):
            check_ways(case, f"{make}", make, arrays, WAYS[:2])


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in optimizer_cases()))
def test_optimizer(name):
    make = lambda: flow.nn.Sequential(flow.nn.Linear(5, 7), flow.nn.Tanh(), flow.nn.Linear(7, 3))
    x = np.random.default_rng(0).standard_normal((7, 5))
    with Cases() as case:
        for options in [options for other, options in optimizer_cases() if other == name]:
            optimizer = lambda parameters: getattr(flow.optim, name)(parameters, **options)  # noqa: B023
            check_ways(case, f"{options}", make, [x], optimizer=optimizer)


def clipped(model, inputs, optimizer):
    """`trained` with a GradScaler, clipping, and a moving average of the parameters."""
    scaler, found = flow.amp.GradScaler(init_scale=8.0, growth_interval=2), []
    average = flow.optim.swa_utils.AveragedModel(model, multi_avg_fn=flow.optim.swa_utils.get_ema_multi_avg_fn(0.5))
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(loss_of(model(*inputs))).backward()
        scaler.unscale_(optimizer)
        flow.nn.utils.clip_grad_value_(model.parameters(), 0.05)
        for order in (2, 1, float("inf")):
            found.append(flow.nn.utils.clip_grad_norm_(model.parameters(), 0.1, order).numpy())
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
    return [*found, *[t.numpy() for t in [*model.state_dict().values(), *average.state_dict().values()]]]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ignored_labels(reduction):
    """A mean is that of all labels that count, of which ranks have different numbers."""
    x, labels = np.random.default_rng(0).standard_normal((5, 3)), np.array([0, 2, -100, -100, 1])
    make = functools.partial(flow.nn.CrossEntropyLoss, reduction=reduction)
    with Cases() as case:
        check_ways(case, reduction, make, [x, labels], WAYS[:2])
        if reduction != "mean":  # which is NaN
            check_ways(case, "none counts", make, [x, np.full(5, -100)], WAYS[:2])


def test_clipping_scaling_and_averages():
    make = lambda: flow.nn.Sequential(flow.nn.Linear(5, 7), flow.nn.Tanh(), flow.nn.Linear(7, 3))
    x = np.random.default_rng(0).standard_normal((7, 5))
    with Cases() as case:
        check_ways(case, "", make, [x], train=clipped)
        # it magnifies rounding
        check_ways(case, "LBFGS", make, [x], train=closed, optimizer=flow.optim.LBFGS, tolerance=1e-8)


def closed(model, inputs, optimizer):
    """Training by an optimizer that computes the loss itself."""

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model(*inputs))
        loss.backward()
        return loss

    losses = [optimizer.step(closure).numpy() for _ in range(STEPS)]
    return [*losses, *[t.numpy() for t in model.state_dict().values()]]


def trained_in_graph(model, inputs, optimizer):
    """Training by a graph, with the same draws in each step as `trained`."""
    flow.manual_seed(11)
    graph = Training(model, optimizer)
    losses = [graph(*inputs).numpy() for _ in range(STEPS)]
    return [*losses, *[t.numpy() for t in model.state_dict().values()]]


@pytest.mark.parametrize("name", LAYERS)
def test_layer_in_a_graph(name):
    make, x = LAYERS[name][0]
    with Cases() as case:
        check_ways(case, name, make, [input_of(x)], [(S(0), B), (S(0), S(0))], train=trained_in_graph)


# layers whose batch may be axis 1, and those that join all rows of a batch
STEPS_FIRST = (
    "GRU LSTM RNN MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
    "TransformerEncoderLayer"
)
JOINED = "EmbeddingBag CTCLoss"


def boxed_from_parts(monkeypatch, make, arrays, axis):
    """(logical shape, sbp) of all split tensors of a training step that ranks send each other."""
    box, sent = boxing.box, []

    def recorded(x, shape, dtype, source, target, *more):
        if flow.distributed.get_rank() == 0 and source != target and source[1][0].kind == "split":
            sent.append((shape, source[1][0], target[1][0]))
        return box(x, shape, dtype, source, target, *more)

    def step():
        model, inputs = in_float64(make, *arrays)
        placement = flow.placement("cpu", range(2))
        place_module(model, placement, B)
        inputs = [placed(x, placement, S(axis)) for x in inputs]
        loss = loss_of(model(*inputs))
        loss.backward()
        sgd(model.parameters()).step()

    with monkeypatch.context() as patch, flow.virtual_ranks(2) as ranks:
        patch.setattr(boxing, "box", recorded)
        ranks.run(step)
    return sent


@pytest.mark.parametrize("name", sorted({*LAYERS, *LOSSES}.difference(JOINED.split())))
def test_a_split_batch_stays_in_its_place(name, monkeypatch):
    """Ranks send each other partial sums of gradients and statistics, but no parts of activations."""
    axes = (0, 1) if name in STEPS_FIRST.split() else (0,)
    with Cases() as case:
        for i, (make, arrays) in enumerate(cases_of(name)):
            with case(f"{name} {i}"):
                assert not min([boxed_from_parts(monkeypatch, make, arrays, axis) for axis in axes], key=len)
