"""A normalizing flow of affine couplings (Dinh, Sohl-Dickstein & Bengio 2017) on two moons, with its inverse."""

import math

import numpy as np
import torch
from torch import distributions, nn


class RealNVP(nn.Module):
    def __init__(self, nets, nett, mask, prior):
        super().__init__()
        self.prior = prior
        self.mask = nn.Parameter(mask, requires_grad=False)
        self.t = torch.nn.ModuleList([nett() for _ in range(len(mask))])
        self.s = torch.nn.ModuleList([nets() for _ in range(len(mask))])

    def g(self, z):
        x = z
        for i in range(len(self.t)):
            x_ = x * self.mask[i]
            s = self.s[i](x_) * (1 - self.mask[i])
            t = self.t[i](x_) * (1 - self.mask[i])
            x = x_ + (1 - self.mask[i]) * (x * torch.exp(s) + t)
        return x

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp


def main(prepare):
    nets = lambda: nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2), nn.Tanh())  # noqa: E731
    nett = lambda: nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2))  # noqa: E731
    masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 2).astype(np.float32))
    prior = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    flow = RealNVP(nets, nett, masks, prior)
    prepare(flow.s), prepare(flow.t)
    optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad is True], lr=1e-2)
    angle = torch.linspace(0, math.pi, 30)
    x = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1)
    x = torch.cat([x, 1 - x - torch.tensor([0.0, 0.5])]) + 0.05 * torch.randn(60, 2)
    losses = []
    for _ in range(8):
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss.item())
    z, log_det = flow.f(x[:3])
    jacobian = torch.autograd.functional.jacobian(lambda v: flow.f(v[None])[0][0], x[0])
    back = (flow.g(z) - x[:3]).abs().max() < 1e-5
    return [*losses, *log_det.tolist(), torch.linalg.slogdet(jacobian)[1].item(), back.item()]
