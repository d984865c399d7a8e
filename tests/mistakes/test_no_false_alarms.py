"""Correct textbook programs must not cause warnings. In tests our warnings are errors."""

import copy

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.source_location import warned_lines


@pytest.fixture(autouse=True)
def forget_warnings():
    warned_lines().clear()


def data(n=64, features=6, classes=3):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, n)
    x = rng.standard_normal((n, features)).astype("f4") * 0.3
    x[np.arange(n), labels] += 2.0
    return flow.from_numpy(x), flow.from_numpy(labels)


def mlp():
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))


def step(optimizer, loss):
    """One training step, as in every textbook."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_classifier_with_scheduler_evaluation_and_early_stopping_is_silent():
    x, y = data()
    model, loss_fn = mlp(), nn.CrossEntropyLoss()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
    best, kept = float("inf"), None
    for _ in range(12):
        model.train()
        for i in range(0, 64, 16):
            optimizer.zero_grad()
            loss = loss_fn(model(x[i : i + 16]), y[i : i + 16])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        scheduler.step()
        model.eval()
        with flow.no_grad():
            validation = loss_fn(model(x), y).item()
        if validation < best:
            best, kept = validation, copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    model.eval()
    assert (model(x).argmax(1) == y).float().mean().item() > 0.95


def test_gradient_accumulation_gives_the_gradient_of_the_whole_batch():
    x, y = data()
    model = nn.Linear(6, 3)
    twin = copy.deepcopy(model)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for i in range(0, 64, 16):
            (loss_fn(model(x[i : i + 16]), y[i : i + 16]) / 4).backward()
        if _ == 0:
            loss_fn(twin(x), y).backward()
            assert np.allclose(model.weight.grad.numpy(), twin.weight.grad.numpy(), atol=1e-6)
        optimizer.step()


def test_frozen_layers_and_groups():
    x, y = data()
    model = mlp()
    for p in model[0].parameters():
        p.requires_grad = False
    frozen = model[0].weight.tolist()
    groups = [{"params": [model[3].weight]}, {"params": [model[3].bias], "weight_decay": 0.0, "lr": 0.01}]
    optimizer = flow.optim.AdamW(groups, lr=0.1, weight_decay=0.1)
    for _ in range(3):
        step(optimizer, nn.CrossEntropyLoss()(model(x), y))
    assert model[0].weight.tolist() == frozen and model[0].weight.grad is None


def test_two_optimizers_with_detach():
    flow.manual_seed(0)
    generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
    g_step, c_step = (flow.optim.Adam(m.parameters(), lr=0.01) for m in (generator, critic))
    loss_fn = nn.BCEWithLogitsLoss()
    for _ in range(3):
        fake, real = generator(flow.randn(8, 2)), flow.randn(8, 4)
        step(c_step, loss_fn(critic(real), flow.ones(8, 1)) + loss_fn(critic(fake.detach()), flow.zeros(8, 1)))
        step(g_step, loss_fn(critic(fake), flow.ones(8, 1)))


def test_handwritten_recurrent_net_and_optimizer():
    flow.manual_seed(0)
    w = (flow.randn(5, 5) * 0.1).requires_grad_()
    u = (flow.randn(3, 5) * 0.1).requires_grad_()
    for _ in range(3):
        h = flow.zeros(2, 5)
        for t in range(6):
            h = (h @ w + flow.ones(2, 3) * t @ u).tanh()
        loss = (h - 0.5).pow(2).mean()
        loss.backward()
        with flow.no_grad():
            for p in (w, u):
                p -= 0.1 * p.grad
                p.grad.zero_()
    assert w.grad.abs().sum().item() == 0


def test_exploding_loss_is_inf_without_a_warning():
    x = flow.tensor([1e20, 1e30], requires_grad=True)
    y = (x * x * x).exp().sum()
    before = flow.notices(False)  # backward reports it, numpy does not
    y.backward()
    flow.notices(before)
    x.detach().mul_(1e30).add_(float("inf"))
    flow.ones(3).mul(3e38).sum()
    assert y.item() == float("inf") and (flow.tensor([1.0]) / 0).item() == float("inf")
