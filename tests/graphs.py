"""Graphs of one model, for tests that need no other features of graphs."""

import numpy as np

import minflow as flow
from minflow import nn
from minflow.nn.summary import tensors_in


class Predict(nn.Graph):
    """The output of a model. exact: bit-identical to eager mode."""

    def __init__(self, model, exact=False):
        super().__init__()
        self.model = model
        self.config.exact(exact)

    def build(self, *args):
        return self.model(*args)


class Training(nn.Graph):
    """One step of an optimizer, and of its schedule, on `loss_of`, bit-identical to eager mode."""

    def __init__(self, model, optimizer, schedule=None):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, lr_sch=schedule)
        self.config.exact(True)

    def build(self, x):
        loss = loss_of(self.model(x))
        loss.backward()
        return loss


def loss_of(outputs):
    """Return the sum of the mean squares of all floating-point tensors."""
    return sum((out * out).mean() for out in tensors_in(outputs) if out.spec.floating)


class Scaled(nn.Module):
    """A layer whose first input is scaled, so that there is a parameter and the layer's input gets a gradient."""

    def __init__(self, layer, size):
        super().__init__()
        self.layer, self.scale = layer, nn.Parameter(flow.ones(size))

    def forward(self, x, *others):
        return self.layer(x * self.scale, *others)


def eager_steps(model, optimizer, x, count):
    """Return the losses of eager training, with the same bits as `Training`."""
    losses = []
    for _ in range(count):
        loss = loss_of(model(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def bits(value):
    """Return the bits of a tensor or array, or of each in a structure or state dict."""
    if isinstance(value, flow.Tensor):
        value = value.numpy(force=True)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: bits(x) for key, x in value.items()}
    return [bits(x) for x in value] if isinstance(value, list | tuple) else value


def operations(graph, *args):
    """Return the ops of a graph's plan for these arguments; compiled kernels by name."""
    return [str(node.op) for node in graph.compiled_for(args, {}).parts[0].graph.nodes]


def listing(graph):
    """Return what print shows of a graph, without the index in its name."""
    return str(graph).replace(graph.name, type(graph).__name__)
