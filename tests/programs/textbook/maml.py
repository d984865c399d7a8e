"""Learning to learn sines (Finn, Abbeel & Levine 2017): steps of descent that a second descent goes through."""

from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


def task(rng, n=6):
    amplitude, phase = rng.uniform(0.5, 2.0), rng.uniform(0, np.pi)
    x = rng.uniform(-2, 2, (2 * n, 1)).astype("float32")
    y = (amplitude * np.sin(x + phase)).astype("float32")
    return [torch.from_numpy(part) for part in (x[:n], y[:n], x[n:], y[n:])]


def main(prepare):
    model = prepare(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)))
    meta_optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rng, losses = np.random.default_rng(1), []
    for _ in range(6):
        meta_loss = 0.0
        for _ in range(3):
            x_support, y_support, x_query, y_query = task(rng)
            fast_weights = OrderedDict(model.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(functional_call(model, fast_weights, (x_support,)), y_support)
                grads = torch.autograd.grad(loss, fast_weights.values(), create_graph=True)
                fast_weights = OrderedDict(
                    (name, param - 0.05 * grad) for ((name, param), grad) in zip(fast_weights.items(), grads)
                )
            meta_loss += F.mse_loss(functional_call(model, fast_weights, (x_query,)), y_query)
        meta_optimizer.zero_grad()
        meta_loss.backward()
        meta_optimizer.step()
        losses.append(meta_loss.item())
    return losses
