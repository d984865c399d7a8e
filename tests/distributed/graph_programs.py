"""Programs for several ranks that train a network of global tensors in an nn.Graph, and what they must equal."""

import numpy as np

import minflow as flow
import minflow.typing as tp
from minflow import distributed as dist, nn
from minflow.core.base.placement import Placement, broadcast as B, split
from minflow.nn.parallel import DistributedDataParallel
from tests.job.builders import job_of

DRAWN = np.random.RandomState(0)
WEIGHTS = [DRAWN.randn(*shape) for shape in ((6, 8), (8,), (8, 4), (4,))]
X, Y = DRAWN.randn(24, 6), DRAWN.randn(24, 4)
OPTIMIZERS = {
    "SGD": lambda parameters: flow.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "Adam": lambda parameters: flow.optim.Adam(parameters, lr=0.01),
}


def data_parallel(size):
    """The placement, the sbp of each parameter, and that of the data."""
    return Placement("cpu", range(size)), [[B]] * 4, [split(0)]


def tensor_parallel(size):
    return Placement("cpu", range(size)), [[split(1)], [split(0)], [split(0)], [B]], [B]


def two_axes(size):
    """Data-parallel along the first axis of ranks, tensor-parallel along the second."""
    weights = [[B, split(1)], [B, split(0)], [B, split(0)], [B, B]]
    return Placement("cpu", np.arange(size).reshape(2, -1)), weights, [split(0), B]


STRATEGIES = [data_parallel, tensor_parallel, two_axes]


def spread(array, placement, sbp):
    """A global tensor with these elements."""
    whole = flow.tensor(array).to_global(placement, [B] * len(placement.hierarchy))
    return whole.to_global(placement, sbp)


def elements(x):
    """All elements of a tensor, on each rank of its placement."""
    if x.is_global:
        x = x.detach().to_global(x.placement, [B] * len(x.placement.hierarchy)).to_local()
    return x.detach().numpy().copy()


class Net(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.w1, self.b1, self.w2, self.b2 = [nn.Parameter(w.detach()) for w in weights]

    def forward(self, x):
        return flow.tanh(x @ self.w1 + self.b1) @ self.w2 + self.b2


class Layer(nn.Module):
    """tanh(norm(x @ w + b)); without an activation in the last one."""

    def __init__(self, w, b, last):
        super().__init__()
        self.w, self.b, self.last = nn.Parameter(flow.tensor(w)), nn.Parameter(flow.tensor(b)), last
        self.norm = nn.Identity() if last else nn.BatchNorm1d(len(b)).double()

    def forward(self, x):
        y = self.norm(x @ self.w + self.b)
        return y if self.last else flow.tanh(y)


def pipeline(placements, checkpointing=()):
    """Two layers, each on its ranks; local ones without placements."""
    layers = Layer(*WEIGHTS[:2], False), Layer(*WEIGHTS[2:], True)
    for i, (layer, placement) in enumerate(zip(layers, placements)):
        layer.to_global(placement, [B])
        layer.to(nn.graph.GraphModule).set_stage(i, placement)
        layer.to(nn.graph.GraphModule).activation_checkpointing = i in checkpointing
    return nn.Sequential(*layers)


def pipeline_equals_one_rank(first, second, accumulate=3, of_data=B, steps=20, **options):
    """The placement of a stage has one axis."""
    results = []
    for placements in ((), (first, second)):
        graph, x, y = pipeline_training(placements, of_data, accumulate, **options)
        losses = [graph(x, y) for _ in range(steps)]
        results.append((losses, dict(graph.model.state_dict())))
    (alone, state), (losses, parts) = results
    if dist.get_rank() in second.order:
        assert np.allclose([elements(x) for x in losses], [elements(x) for x in alone], rtol=0, atol=1e-12)
    for name, x in parts.items():
        if dist.get_rank() in x.placement.order:
            assert np.allclose(elements(x), elements(state[name]), rtol=0, atol=1e-12), name
        else:
            assert x.array.size == 0
    return graph


def pipeline_training(placements, of_data=B, accumulate=3, **options):
    model = pipeline(placements, **options)
    x, y = flow.tensor(X), flow.tensor(Y)
    if placements:
        x, y = spread(X, placements[0], [of_data]), spread(Y, placements[1], [of_data])
    return Training(model, OPTIMIZERS["SGD"](model.parameters()), accumulate), x, y


def pipelines_equal_one_rank():
    size = dist.get_world_size()
    if size > 1:
        pipeline_equals_one_rank(Placement("cpu", range(size // 2)), Placement("cpu", range(size // 2, size)))


class Training(nn.Graph):
    def __init__(self, model, optimizer, accumulate=1, zero=0, checkpointing=False, lower=None):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(accumulate)
        self.model.to(nn.graph.GraphModule).activation_checkpointing = checkpointing
        self.lower = lower
        if zero:
            self.config.enable_zero(True, stage=zero, shard_min_size=1, shard_restore_level=0)

    def build(self, x, y):
        with flow.autocast("cpu", self.lower, enabled=self.lower is not None):
            loss = (self.model(x) - y).square().mean()
        loss.backward()
        return loss


def prepared(strategy, size, optimizer="SGD", **settings):
    """(graph, x, y) of a training; strategy None for local tensors."""
    if strategy is None:
        model, data = Net([flow.tensor(w) for w in WEIGHTS]), (flow.tensor(X), flow.tensor(Y))
    else:
        placement, weights, of_data = strategy(size)
        model = Net([spread(w, placement, sbp) for w, sbp in zip(WEIGHTS, weights)])
        data = [spread(array, placement, of_data) for array in (X, Y)]
    return Training(model, OPTIMIZERS[optimizer](model.parameters()), **settings), *data


def trained(strategy, size, steps=20, **settings):
    """The losses of a training, and the parameters at its end."""
    graph, x, y = prepared(strategy, size, **settings)
    losses = [float(elements(graph(x, y)).mean()) for _ in range(steps)]
    return losses, [elements(p) for p in graph.model.parameters()]


def equals_one_rank(strategy, size, atol=1e-12, **settings):
    alone = trained(None, 1, **{key: value for key, value in settings.items() if key != "zero"})
    losses, parameters = trained(strategy, size, **settings)
    assert np.allclose(losses, alone[0], rtol=0, atol=atol)
    for mine, one in zip(parameters, alone[1]):
        assert np.allclose(mine, one, rtol=0, atol=atol)


def job_losses(strategy, size, result, steps=20):
    """The losses of a training job. Each rank has its part of the variables and of the data."""
    rank = dist.get_rank()
    placement, sbp, of_data = strategy(size) if strategy else (None, [None] * 4, None)

    def part(array, sbp):
        return spread(array, placement, sbp).to_local().numpy() if strategy else array

    def train(x, y):
        weights = []
        for name, array, its in zip(("w1", "b1", "w2", "b2"), WEIGHTS, sbp):
            mine = initial[name]
            w = flow.get_variable(name, mine.shape, dtype=flow.float64, initializer=flow.zeros_initializer())
            weights.append(w.to_global(placement, its) if strategy else w)
        if strategy:
            x, y = x.to_global(placement, of_data), y.to_global(placement, of_data)
        hidden = flow.tanh(x @ weights[0] + weights[1])
        loss = (hidden @ weights[2] + weights[3] - y).square().mean()
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.05]), momentum=0.9).minimize(loss)
        return loss

    initial = {name: part(array, its) for name, array, its in zip(("w1", "b1", "w2", "b2"), WEIGHTS, sbp)}
    x, y = part(X, of_data), part(Y, of_data)
    job = job_of(train, x, y, kind="train", result=result, name=f"train_on_{rank}")
    job.compile()
    flow.load_variables(initial)
    return [float(got if result is tp.Numpy else got.get()) for got in [job(x, y) for _ in range(steps)]]


def graphs_train_global_tensors():
    size = dist.get_world_size()
    for strategy in STRATEGIES if size % 2 == 0 else STRATEGIES[:2]:
        equals_one_rank(strategy, size, optimizer="Adam")


class Prepared(nn.Graph):
    """Trains a module of DistributedDataParallel."""

    def __init__(self, model, optimizer, accumulate):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(accumulate)

    def build(self, x, y):
        loss = (self.model(x) - y).square().mean()
        loss.backward()
        return loss


def prepared_modules_train_in_graphs(accumulate=1):
    """A graph gives the parameters, buffers and losses of eager code; each rank has other elements at first."""
    size, rank = dist.get_world_size(), dist.get_rank()
    flow.manual_seed(rank)
    models = [nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4)).double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    eager, compiled = [DistributedDataParallel(model) for model in models]
    optimizers = [flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9) for model in models]
    graph = Prepared(compiled, optimizers[1], accumulate)
    x, y = [flow.tensor(array[rank::size][:6]) for array in (X, Y)]
    parts = list(zip(x.split(6 // accumulate), y.split(6 // accumulate)))
    for _ in range(20):
        losses = [(eager(a) - b).square().mean() / accumulate for a, b in parts]
        for loss in losses:
            loss.backward()
        optimizers[0].step()
        optimizers[0].zero_grad()
        assert np.allclose(graph(x, y).numpy().sum(), sum(losses).item() * accumulate, rtol=1e-12)
    for name, wanted in eager.state_dict().items():
        assert np.allclose(compiled.state_dict()[name].numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12), name
    found = [None] * size
    dist.all_gather_object(found, [p.tolist() for p in compiled.parameters()])
    assert found == found[:1] * size
