"""Optimizers and their state against PyTorch."""

import numpy as np
import pytest

import minflow as flow
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch

CASES = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1, "maximize": True}),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
    ("SGD", {"momentum": 0.9, "dampening": 0.4, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"betas": (0.5, 0.7), "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("AdamW", {"weight_decay": 0.3, "amsgrad": True}),
    ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "capturable": False, "foreach": False}),
    ("RMSprop", {}),
    ("RMSprop", {"alpha": 0.8, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "eps": 1e-3}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.3, "weight_decay": 0.1, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.5, 0.7), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"momentum_decay": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.4, 2.0), "step_sizes": (0.04, 0.3), "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lambd": 0.1, "alpha": 0.5, "t0": 2, "weight_decay": 0.1, "maximize": True}),
]
SHAPES = [(5, 3), (7,), ()]


def draw(rng, shape, dtype):
    real, imag = rng.standard_normal((2, *shape))
    return np.asarray(real + 1j * imag if dtype == "complex128" else real, dtype)


def pair(name, options, dtype):
    rng = np.random.default_rng(2)
    arrays = [draw(rng, s, dtype) for s in SHAPES]
    mine = [flow.tensor(a.copy(), requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a.copy(), requires_grad=True) for a in arrays]
    return (
        mine,
        theirs,
        getattr(flow.optim, name)(mine, lr=0.05, **options),
        getattr(torch.optim, name)(theirs, lr=0.05, **options),
    )


def run(steps, mine, theirs, ours, other):
    for t in steps:
        rng = np.random.default_rng(t)
        for p, q in zip(mine, theirs):
            g = draw(rng, p.shape, p.dtype.name)
            p.grad, q.grad = flow.tensor(g), torch.tensor(g)
        ours.step()
        other.step()


def close(mine, theirs, dtype):
    for p, q in zip(mine, theirs):
        np.testing.assert_allclose(
            p.detach().numpy(),
            q.detach().numpy(),
            rtol=2e-5 if dtype == "float32" else 1e-12,
            atol=1e-7 if dtype == "float32" else 0,
        )


@pytest.mark.filterwarnings("ignore:.*sparse=True")
@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.8), "eps": 1e-3, "maximize": True}])
def test_sparse_adam_moves_the_rows_that_were_looked_up(options):
    weights = []
    for lib in (flow, torch):
        start = lib.arange(18.0, dtype=lib.float64).view(6, 3) + 1
        layer = lib.nn.Embedding(6, 3, sparse=True, _weight=start.clone())
        optimizer = lib.optim.SparseAdam(layer.parameters(), lr=0.05, **options)
        for rows in ([0, 2, 2], [5, 2], [], [0, 1]):
            optimizer.zero_grad()
            (layer(lib.tensor(rows, dtype=lib.int64)) ** 2).sum().backward()
            optimizer.step()
        weights.append(layer.weight.detach().numpy())
        assert weights[-1][3:5].tolist() == start[3:5].tolist()
    np.testing.assert_allclose(*weights, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps(name, options, dtype):
    mine, theirs, ours, other = pair(name, options, dtype)
    run(range(20), mine, theirs, ours, other)
    close(mine, theirs, dtype)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_state_dicts_are_exchangeable(name, options):
    mine, theirs, ours, other = pair(name, options, "float64")
    run(range(3), mine, theirs, ours, other)
    a, b = ours.state_dict(), other.state_dict()
    assert {k: set(v) for k, v in a["state"].items()} == {
        k: {n for n, x in v.items() if x is not None}
        for k, v in b["state"].items()
        if any(x is not None for x in v.values())
    }
    assert [g["params"] for g in a["param_groups"]] == [g["params"] for g in b["param_groups"]]
    assert set(a["param_groups"][0]) - {"do_bias_correction"} <= set(b["param_groups"][0])
    _, _, _fresh, _fresh_other = pair(name, {}, "float64")
    ours2, other2 = type(ours)(mine, lr=9.0), type(other)(theirs, lr=9.0)
    ours2.load_state_dict(b)
    as_torch = {n: {k: torch.tensor(v.numpy()) for k, v in s.items()} for n, s in a["state"].items()}
    other2.load_state_dict({"state": as_torch, "param_groups": a["param_groups"]})
    run(range(3, 6), mine, theirs, ours2, other2)
    # PyTorch converts the float32 state of these to float64 when loading, and continues with more digits
    close(mine, theirs, "float32" if name in ("NAdam", "ASGD") else "float64")


def scheduled(build, steps, change=None):
    """Learning rates of minflow's and PyTorch's schedule, step by step, with two groups."""
    rates = []
    for lib in (flow, torch):
        ps = [lib.zeros(1, requires_grad=True) for _ in range(2)]
        optimizer = lib.optim.SGD([{"params": ps[0]}, {"params": ps[1], "lr": 0.03}], lr=0.7)
        scheduler = build(lib.optim.lr_scheduler, optimizer)
        found = [[*[g["lr"] for g in optimizer.param_groups], *scheduler.get_last_lr()]]
        for i in range(steps):
            optimizer.step()
            scheduler.step()
            if change and i == change:
                optimizer.param_groups[0]["lr"] *= 0.5
            last = getattr(scheduler, "last_epoch", i + 1)  # PyTorch's ChainedScheduler has none
            found.append(
                [
                    *[g["lr"] for g in optimizer.param_groups],
                    *scheduler.get_last_lr(),
                    last,
                    *[g["momentum"] for g in optimizer.param_groups],
                ]
            )
        rates.append(found)
    return rates


SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, 3, gamma=0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 11], gamma=0.5),
    "MultiStepLR from 0": lambda s, o: s.MultiStepLR(o, [0, 4]),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda t: 0.9**t),
    "LambdaLR for each": lambda s, o: s.LambdaLR(o, [lambda t: 1 / (t + 1), lambda t: 0.5]),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 7, eta_min=0.001),
    "CosineAnnealingLR of 1": lambda s, o: s.CosineAnnealingLR(o, 1),
    "CosineAnnealingLR long": lambda s, o: s.CosineAnnealingLR(o, 100),
    "LinearLR": lambda s, o: s.LinearLR(o),
    "LinearLR down": lambda s, o: s.LinearLR(o, 1.0, 0.1, 8),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda t: 1 - 0.02 * t),
    "ConstantLR": lambda s, o: s.ConstantLR(o),
    "ConstantLR of 0": lambda s, o: s.ConstantLR(o, 0.5, 0),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 9, 0.7),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "CosineAnnealingWarmRestarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.9, 25),
    "OneCycleLR of three": lambda s, o: s.OneCycleLR(
        o, [0.9, 0.5], epochs=5, steps_per_epoch=5, pct_start=0.4, anneal_strategy="linear", three_phase=True
    ),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.9, 4, 3, mode="triangular2"),
    "CyclicLR by gamma": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.9, 5, mode="exp_range", gamma=0.95),
    "CyclicLR of one's own": lambda s, o: s.CyclicLR(o, 0.01, 0.9, 2, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 7), s.ExponentialLR(o, 0.9)]),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 10)], [4]
    ),
    "SequentialLR of three": lambda s, o: s.SequentialLR(
        o, [s.StepLR(o, 2), s.LambdaLR(o, lambda t: 0.5**t), s.MultiStepLR(o, [1, 2])], milestones=[3, 8]
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("change", [None, 4])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name, change):
    mine, theirs = scheduled(SCHEDULES[name], 220 if "long" in name else 24, change)
    for a, b in zip(mine, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)
