"""Trainings of whole models on global tensors, which must equal those on one rank."""

import functools

import numpy as np

import minflow as flow
from minflow import nn
from minflow.core.context import world
from minflow.models.gpt import GPT, GPTConfig
from minflow.utils.global_view import global_mode
from minflow.vision.models.mobilenet_v2 import MobileNetV2
from minflow.vision.models.resnet import BasicBlock
from tests.graph_models import MLP, LeNet

B, S = flow.sbp.broadcast, flow.sbp.split
STEPS, BATCH, CLASSES = 20, 6, 5  # a batch that 4 ranks cannot divide evenly


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(4, 6, num_layers=2, batch_first=True), nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        shorter = nn.Sequential(nn.Conv2d(8, 12, 1, 2, bias=False), nn.BatchNorm2d(12))
        self.conv, self.blocks = nn.Conv2d(3, 8, 3), nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 12, 2, shorter))
        self.fc = nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.fc(self.blocks(self.conv(x)).mean((2, 3)))


STAGES = [[1, 8, 1, 1], [3, 16, 2, 2]]
MODELS = {  # name -> (model, shape of the data, or None for tokens)
    "mlp": (lambda: MLP((20, 33, CLASSES)), (20,)),
    "lenet": (LeNet, (1, 28, 28)),
    "mobilenet": (lambda: MobileNetV2(CLASSES, 0.25, STAGES), (3, 12, 12)),
    "resnet": (SmallResNet, (3, 10, 10)),
    "lstm": (LSTM, (7, 4)),
    "gpt": (lambda: GPT(GPTConfig(8, 11, 1, 2, 12, 0.1)), None),
}


def batches(name):
    """(data, labels) of each step."""
    draw = np.random.RandomState(len(name))
    shape = MODELS[name][1]
    for _ in range(STEPS):
        if shape is None:
            tokens = draw.randint(0, 11, (BATCH, 9))
            yield tokens[:, :-1], tokens[:, 1:]
        else:
            yield draw.randn(BATCH, *shape), draw.randint(0, CLASSES, BATCH)


def loss_of(model, x, y):
    if isinstance(model, GPT):
        return model(x, y)[1]
    return nn.functional.cross_entropy(model(x), y)


def built(name):
    flow.manual_seed(5)
    model = MODELS[name][0]().double()
    return model, flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


@functools.cache
def expected(name):
    """(losses, state) of one rank."""
    model, optimizer = built(name)
    losses = [step(model, optimizer, flow.tensor(x), flow.tensor(y)) for x, y in batches(name)]
    return losses, {key: tensor.numpy() for key, tensor in model.state_dict().items()}


def step(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def alternating(state, tensor):
    """S(0) and S(1) for matrices and filters in turn."""
    if tensor.ndim < 2:
        return B
    weights = [t for t in state.values() if t.ndim > 1]
    place = next(i for i, t in enumerate(weights) if t is tensor)
    return S(place % 2)


def data_parallel(size):
    """The placement, the sbp of the data, and that of a parameter."""
    return flow.placement("cpu", range(size)), S(0), lambda state, tensor: B


def tensor_parallel(size):
    return flow.placement("cpu", range(size)), B, alternating


def two_axes(size):
    placement = flow.placement("cpu", np.arange(size).reshape(2, -1))
    return placement, [S(0), B], lambda state, tensor: [B, alternating(state, tensor)]


def graph_of(model, optimizer, zero):
    """A graph with a call like `step`. zero: the stage of ZeRO, 0 for none."""

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)
            if zero:
                self.config.enable_zero(True, stage=zero, shard_min_size=1)

        def build(self, x, y):
            loss = loss_of(self.model, x, y)
            loss.backward()
            return loss

    graph = Step()
    return lambda model, optimizer, x, y: graph(x, y).item()


def trains_as_one_rank(name, strategy, losses, state, how="eager"):
    placement, sbp, sbp_of = strategy(flow.env.get_world_size())
    whole = [B] * len(placement.hierarchy)
    model, _ = built(name)
    model.to_global(placement, whole).to_global(sbp=sbp_of)
    specs = [p.spec for p in model.parameters()]
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step_of = step if how == "eager" else graph_of(model, optimizer, 0 if how == "graph" else int(how[-1]))
    found = []
    with global_mode(True, placement, whole):
        for pair in batches(name):
            x, y = [flow.tensor(array).to_global(sbp=sbp) for array in pair]
            found.append(step_of(model, optimizer, x, y))
    assert how == "zero 3" or [p.spec for p in model.parameters()] == specs
    np.testing.assert_allclose(found, losses, rtol=1e-12, atol=1e-12)
    for key, tensor in model.state_dict().items():
        np.testing.assert_allclose(tensor.numpy(), state[key], rtol=1e-12, atol=1e-12, err_msg=key)


def bytes_of_steps(placement, sbp, sbp_of, steps=2):
    """The bytes that this rank sends in a step of training, and those of all parameters."""
    model, _ = built("mlp")
    model.to_global(placement, B).to_global(sbp=sbp_of)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for data, labels in list(batches("mlp"))[:steps]:
        x, y = [flow.tensor(array).to_global(placement, B).to_global(sbp=sbp) for array in (data, labels)]
        before = world().sent
        loss_of(model, x, y).backward()
        optimizer.step()
        optimizer.zero_grad()
        sent = world().sent - before
    return sent, sum(p.nbytes for p in model.parameters())


def train_sharded(width=256, layers=6, steps=2):
    """Adam on linear layers of which each rank holds a part."""
    placement = flow.placement.all("cpu")
    weights = [flow.zeros(width, width, placement=placement, sbp=S(0)) for _ in range(layers)]
    parameters = [nn.Parameter(weight) for weight in weights]
    optimizer = flow.optim.Adam(parameters)
    for _ in range(steps):
        h = flow.ones(4, width, placement=placement, sbp=B)
        for weight in parameters:
            h = nn.functional.linear(h, weight).tanh()
        h.sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    flow.distributed.init_process_group(timeout=60)
    for name in ("mlp", "lstm"):
        for strategy in (data_parallel, tensor_parallel, two_axes):
            trains_as_one_rank(name, strategy, *expected(name))
    print(f"trained on rank {flow.env.get_rank()} of {flow.env.get_world_size()}")
