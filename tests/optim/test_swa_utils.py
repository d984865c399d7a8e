"""Averaged models and their schedule against PyTorch, and batch norm statistics."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import OptimError
from minflow.optim.swa_utils import SWALR, AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, update_bn
from tests.pytorch import needs_torch, torch

WEIGHTS = [np.random.default_rng(i).standard_normal((1, 2)) for i in range(4)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, np.mean(WEIGHTS, 0)),
        ({"avg_fn": get_ema_avg_fn(0.5)}, WEIGHTS[0] / 8 + WEIGHTS[1] / 8 + WEIGHTS[2] / 4 + WEIGHTS[3] / 2),
        (
            {"multi_avg_fn": get_ema_multi_avg_fn(0.5), "use_buffers": True},
            WEIGHTS[0] / 8 + WEIGHTS[1] / 8 + WEIGHTS[2] / 4 + WEIGHTS[3] / 2,
        ),
    ],
)
def test_average(options, expected):
    model = nn.Linear(2, 1, bias=False).double()
    model.register_buffer("seen", flow.zeros(1))
    averaged = AveragedModel(model, **options)
    for i, weight in enumerate(WEIGHTS):
        with flow.no_grad():
            model.weight.copy_(flow.tensor(weight))
            model.seen.fill_(i)
        averaged.update_parameters(model)
    assert averaged.module.weight.detach().numpy() == pytest.approx(expected, rel=1e-12)
    assert averaged.n_averaged.item() == 4 and (averaged.module.seen.item() == 3) != ("multi_avg_fn" in options)
    x = flow.ones(1, 2, dtype=flow.float64)
    assert averaged(x).item() == pytest.approx(expected.sum())
    assert list(averaged.state_dict()) == ["n_averaged", "module.weight", "module.seen"]


@needs_torch
@pytest.mark.parametrize("options", [{}, {"anneal_epochs": 3, "anneal_strategy": "linear"}, {"anneal_epochs": 0}])
def test_schedule(options):
    both = []
    for L in (flow, torch):
        optimizer = L.optim.SGD([L.zeros(1, requires_grad=True)], lr=0.5)
        scheduler = L.optim.swa_utils.SWALR(optimizer, 0.05, **options)
        found = [optimizer.param_groups[0]["lr"]]
        for _ in range(13):
            optimizer.step()
            scheduler.step()
            found.append(optimizer.param_groups[0]["lr"])
        both.append(found)
    assert both[0] == pytest.approx(both[1], rel=1e-12)


def test_update_bn_recomputes_statistics():
    model = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3)).eval()
    batches = [flow.randn(8, 2) + 3, flow.randn(8, 2) - 1]
    update_bn([(x, 0) for x in batches], model)
    expected = np.mean([x.numpy().mean(0) for x in batches], 0)
    assert model[0].running_mean.numpy() == pytest.approx(expected, rel=1e-5)
    assert model[0].momentum == 0.3 and not model.training
    update_bn([], nn.Linear(2, 1))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda o: AveragedModel(nn.Linear(1, 1), None, get_ema_avg_fn(), get_ema_multi_avg_fn()),
            "only one of avg_fn",
        ),
        (lambda o: get_ema_avg_fn(1.5), "decay must be from 0 to 1, got 1.5"),
        (lambda o: SWALR(o, [0.1, 0.2]), "swa_lr has 2 numbers for 1 groups"),
        (lambda o: SWALR(o, 0.1, -1), "anneal_epochs must be an integer of at least 0, got -1"),
        (lambda o: SWALR(o, 0.1, anneal_strategy="up"), "anneal_strategy must be 'cos' or 'linear', got 'up'"),
    ],
)
def test_refused(make, text):
    with pytest.raises(OptimError, match=text):
        make(flow.optim.SGD([flow.zeros(1, requires_grad=True)], lr=0.1))
