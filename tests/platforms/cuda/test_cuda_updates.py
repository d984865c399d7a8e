"""Optimizers on a GPU update all parameters in few launches, in eager code and in graphs."""

import pytest
from graph_models import Step

import minflow as flow
from minflow import nn
from minflow.platforms.cupy.device_code import CudaBackend
from tests.strict_backend import StrictBackend

OPTIMIZERS = {
    "SGD": lambda p: flow.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "dampened": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, maximize=True),
    "Adam": lambda p: flow.optim.Adam(p, lr=0.1, weight_decay=0.01),
    "AdamW": lambda p: flow.optim.AdamW(p, lr=0.1, amsgrad=True),
}


@pytest.fixture
def launches(monkeypatch):
    """The number of blocks of each launch of update.cu."""
    found = []

    def function(backend, file, name, macros):
        run = CudaBackend.function(backend, file, name, macros)
        return lambda grid, *rest: (found.append(grid[0]) if file == "update.cu" else None, run(grid, *rest))

    monkeypatch.setattr(StrictBackend, "function", function)
    return found


def parameters(device, sizes):
    flow.manual_seed(0)
    return [nn.Parameter(flow.randn(n).to(device)) for n in sizes]


def train(optimizer, found, steps=3):
    for k in range(steps):
        optimizer.zero_grad()
        flow.cat([p.sin() for p in found]).square().sum().backward()
        if k == 1:
            found[0].grad = None  # its step counter differs from now on
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.5


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_all_parameters_in_one_launch(name, cuda_kernels, launches):
    sizes = [1, 5, 2048, 2049, 5000, *range(30, 90)]
    here, there = [parameters(device, sizes) for device in ("cpu", "cuda")]
    for found in (here, there):
        train(OPTIMIZERS[name](found), found)
    for p, q in zip(here, there):
        assert (p - q.cpu()).abs().max() <= 1e-5 * p.abs().max()
    counted = name not in ("SGD", "momentum")
    blocks = len(sizes) + 1 + 2
    assert launches == [blocks - 1, 1, blocks - 1, *([1, blocks - 1] if counted else [blocks - 1, 1])]


def test_empty_and_strided_parameters(cuda_kernels, launches):
    """They run by the reference kernel."""
    found = [nn.Parameter(flow.zeros(0, 3, device="cuda")), flow.ones(4, 3, device="cuda").T.detach().requires_grad_()]
    optimizer = flow.optim.SGD(found, lr=0.5)
    sum([p.sum() for p in found]).backward()
    optimizer.step()
    assert found[1].cpu().tolist() == [[0.5] * 4] * 3 and not launches


@pytest.mark.parametrize("name", ["momentum", "Adam"])
def test_graph_trains_with_the_bits_of_eager(name, cuda_kernels, launches):
    found, x = [], flow.tensor([[0.5, -1.0, 2.0]] * 5).to("cuda")
    for as_graph in (False, True):
        flow.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 2)).to("cuda")
        optimizer = OPTIMIZERS[name](model.parameters())
        graph = Step(model, optimizer, exact=True)
        for _ in range(4):
            launches.clear()
            if as_graph:
                graph(x)
            else:
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        assert launches == [4]  # the first steps of a graph are watched, call by call
        found.append([p.cpu().numpy().tobytes() for p in model.parameters()])
    assert found[0] == found[1]
