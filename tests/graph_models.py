"""Small models, graphs and training loops, eager and as nn.Graph."""

import itertools
import math

import minflow as flow
from minflow import nn
from tests import graphs
from tests.graphs import bits


class MLP(nn.Module):
    def __init__(self, sizes=(20, 32, 5)):
        super().__init__()
        layers = []
        for a, b in itertools.pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.layers(x)


class LeNet(nn.Module):
    def __init__(self, p=0.25):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.pool, self.drop = nn.MaxPool2d(2), nn.Dropout(p)
        self.fc1, self.fc2 = nn.Linear(16 * 5 * 5, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.pool(self.conv1(x).relu())
        x = self.pool(self.conv2(x).relu())
        return self.fc2(self.drop(self.fc1(x.flatten(1)).relu()))


class Block(nn.Module):
    """A layer of a transformer decoder."""

    def __init__(self, width, heads, length, p):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.act = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.GELU()
        self.drop = nn.Dropout(p)
        self.register_buffer("mask", flow.tril(flow.ones(length, length)) == 0)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, 2)
        q, k, v = (t.view(n, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(self.mask[:length, :length], -1e9)
        mixed = (self.drop(flow.softmax(scores, dim=-1)) @ v).transpose(1, 2).reshape(n, length, width)
        x = x + self.drop(self.out(mixed))
        return x + self.drop(self.down(self.act(self.up(self.norm2(x)))))


class GPT(nn.Module):
    """A small language model: token and position embeddings, two blocks, an output layer tied to the embedding."""

    def __init__(self, vocab=17, width=16, heads=2, length=12, blocks=2, p=0.1):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads, length, p) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        h = self.tokens(x) + self.places(flow.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


class TrainGraph(nn.Graph):
    def __init__(self, model, loss_fn, *optimizers, lr_sch=None):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        for optimizer in optimizers:
            self.add_optimizer(optimizer, lr_sch=lr_sch)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


class Train(TrainGraph):
    """One step of SGD with momentum on the loss of a classifier."""

    def __init__(self, model, loss_fn=None):
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        super().__init__(model, loss_fn or nn.CrossEntropyLoss(), optimizer)


class Step(nn.Graph):
    """One optimizer step on `loss(*inputs)`, by default the mean square of the model's output.

    passes: those of the graph; config: its settings, by name.
    """

    def __init__(self, model, optimizer, loss=None, *, lr_sch=None, passes=None, **config):
        super().__init__()
        self.model, self.loss = model, loss
        self.add_optimizer(optimizer, lr_sch=lr_sch)
        if passes is not None:
            self.passes = passes
        for name, value in config.items():
            getattr(self.config, name)(value)

    def build(self, *inputs):
        loss = self.loss(*inputs) if self.loss else self.model(*inputs).square().mean()
        loss.backward()
        return loss


class FunctionGraph(nn.Graph):
    """A graph that returns the result of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def build(self, *inputs, **named):
        return self.function(*inputs, **named)


def graph_of(build, name="Net", **attributes):
    """Return a graph whose class has this name and these attributes; `build` takes self."""
    graph = type(name, (nn.Graph,), {"build": build})()
    for key, value in attributes.items():
        setattr(graph, key, value)
    return graph


class Predict(graphs.Predict):
    """Predict from one input, which errors and listings call x."""

    def build(self, x):
        return self.model(x)


def state_bits(model, optimizer=None):
    found = {name: bits(t) for name, t in model.state_dict().items()}
    if optimizer is not None:
        for i, p in enumerate(optimizer._all_parameters()):
            found |= {f"{i}-{key}": bits(t) for key, t in optimizer.state.get(p, {}).items()}
    return found


def eager_step(model, loss_fn, optimizer, x, y, scheduler=None):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.clip_grad()
    optimizer.step()
    if scheduler is not None:
        scheduler.step()
    return loss


def train_both_modes(make, batches, steps, graph_of=None, seed=3):
    """Return losses and final states of a training run, eager and as a graph.

    `make()` returns (model, loss_fn, optimizer, scheduler).
    """
    results = []
    for as_graph in (False, True):
        flow.manual_seed(seed)
        model, loss_fn, optimizer, scheduler = make()
        flow.manual_seed(seed + 1)
        graph = None
        if as_graph:
            graph = (graph_of or TrainGraph)(model, loss_fn, optimizer, lr_sch=scheduler)
            graph.config.exact(True)
        losses = []
        for i in range(steps):
            x, y = batches[i % len(batches)]
            losses.append(graph(x, y) if as_graph else eager_step(model, loss_fn, optimizer, x, y, scheduler))
        results.append(([bits(loss) for loss in losses], state_bits(model, optimizer), graph))
    return results


def assert_same(results):
    (losses, state, _), (graph_losses, graph_state, _) = results
    different = [i for i, (a, b) in enumerate(zip(losses, graph_losses)) if a != b]
    assert not different, f"losses differ from step {different[0]} on"
    assert state.keys() == graph_state.keys()
    assert not [name for name in state if state[name] != graph_state[name]]
