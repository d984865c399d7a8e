"""FlopCounterMode counts what PyTorch's counts."""

import importlib

from minflow.utils.flop_counter import FlopCounterMode

import minflow as flow
from tests.pytorch import needs_torch, torch


def model(library):
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(256, 5, bias=False))
    )


def counted(library, counter):
    net, x = model(library), library.ones(2, 3, 8, 8)
    with counter(display=False, depth=None) as forward, library.no_grad():
        net(x)
    with counter(display=False) as both:
        net(x).sum().backward()
    sums = {name: sum(counts.values()) for name, counts in forward.get_flop_counts().items()}
    return sums, forward.get_total_flops(), both.get_total_flops()


@needs_torch
def test_operations_by_module():
    reference = importlib.import_module("torch.utils.flop_counter").FlopCounterMode
    assert counted(flow, FlopCounterMode) == counted(torch, reference)


def test_the_table(capsys):
    net = model(flow)
    with FlopCounterMode(net, depth=1):
        net(flow.ones(2, 3, 8, 8))
    text = capsys.readouterr().out
    assert "Sequential" in text and "32,768" in text and "Sequential.0" not in text
    with FlopCounterMode(display=False) as counter:
        try:
            net(flow.ones(2, 3, 9, 9))
        except flow.ShapeError:
            net(flow.ones(1, 3, 8, 8))
    assert "Sequential.2.1" in counter.get_flop_counts() and "Sequential.2.1" in counter.get_table(3)
