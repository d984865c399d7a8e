"""A stub of the build of a job, as far as optimizers use it, with eager tensors."""

from types import SimpleNamespace

import numpy as np

import minflow as flow

SHAPES = {"dense1-weight": (4, 3), "dense1-bias": (4,), "scale": ()}


class Bench:
    """The parts of a job's build that an optimizer uses, eager: variables, slots, the number of finished steps."""

    def __init__(self, dtype="float64", shapes=SHAPES, seed=3):
        rng = np.random.default_rng(seed)
        self.job, self.t, self.slots, self.readers = SimpleNamespace(name="train_job"), 0, {}, 0
        self.weights = {name: flow.tensor(rng.uniform(0.5, 2.0, shape).astype(dtype)) for name, shape in shapes.items()}
        self.dtype = dtype

    def slot(self, variable, suffix, value=0.0, shape=None):
        name = f"{variable.name}-{suffix}"
        if name not in self.slots:
            dtype = variable.dtype
            self.slots[name] = flow.full(tuple(variable.shape) if shape is None else shape, value, dtype=dtype)
        return self.slots[name]

    def at_step(self, function):
        self.readers += 1
        return flow.tensor(function(self.t), dtype=flow.float64)

    def write(self, target, new):
        assert tuple(target.shape) == tuple(new.shape)
        target.copy_(new.to(target.dtype))

    def step(self, optimizer, gradients):
        pairs = [
            (SimpleNamespace(name=name, shape=w.shape, dtype=w.dtype), w, flow.tensor(gradients[name]).to(w.dtype))
            for name, w in self.weights.items()
            if name in gradients
        ]
        with flow.no_grad():
            optimizer.apply(self, pairs)
        self.t += 1

    def numbers(self):
        return {name: w.numpy().copy() for name, w in self.weights.items()}


def gradients_of(step, shapes=SHAPES, size=1.0):
    rng = np.random.default_rng(100 + step)
    return {name: size * rng.standard_normal(shape) for name, shape in shapes.items()}
