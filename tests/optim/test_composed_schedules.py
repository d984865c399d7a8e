"""Schedules that need more than a step count: a metric, another schedule, PyTorch's state, a user's class."""

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GraphError, OptimError
from tests.graphs import Training
from tests.pytorch import needs_torch, torch

s = flow.optim.lr_scheduler


def sgd(lr=0.001, L=flow):
    return L.optim.SGD([L.zeros(1, requires_grad=True)], lr=lr)


def rates(optimizer, scheduler, steps):
    found = [optimizer.param_groups[0]["lr"]]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        found.append(optimizer.param_groups[0]["lr"])
    return found


PLATEAUS = [
    {},
    {"mode": "max", "factor": 0.5, "patience": 1, "threshold_mode": "abs", "threshold": 0.2},
    {"patience": 0, "cooldown": 2, "min_lr": [0.3], "eps": 1e-3},
    {"patience": 2, "threshold": 0.3},
]


@needs_torch
@pytest.mark.parametrize("options", PLATEAUS)
def test_plateau(options):
    metrics = [3, 2.9, 2.9, 2.2, 2.5, 2.5, 1.9, 2.4, 2.0, 2.6, float("nan"), 0.1, 0.2, 0.2, 0.2, 0.3, 0.3, 0.2, 0.3]
    both = []
    for L in (flow, torch):
        optimizer = sgd(1.0, L)
        scheduler = L.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        found = []
        for metric in metrics:
            scheduler.step(metric)
            found.append((scheduler.get_last_lr()[0], scheduler.num_bad_epochs, scheduler.best, scheduler.last_epoch))
        both.append(found)
    assert both[0] == both[1]


def test_plateau_state_resumes():
    first, second = s.ReduceLROnPlateau(sgd(), patience=0), s.ReduceLROnPlateau(sgd(), patience=0)
    first.step(3.0)
    second.load_state_dict(first.state_dict())
    second.step(flow.tensor(4.0))
    assert second.get_last_lr() == [pytest.approx(0.0001)] and second.best == 3.0 and second.last_epoch == 2


# Values of the formulas in OneFlow's documentation, with base 0.001.
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: s.WarmupLR(o, 0.5, 5), [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0]),
        (lambda o: s.WarmUpLR(o, 0.5, 5, "constant"), [0.5] * 5 + [1.0, 1.0]),
        (
            lambda o: s.WarmupLR(s.CosineDecayLR(o, 5, 0.1), 0.5, 2),
            [0.5, 0.594529, 0.689058, 0.410942, 0.185942, 0.1, 0.1],
        ),
        (
            lambda o: s.WarmupLR(s.CosineDecayLR(o, 5, 0.1), 0.5, 2, warmup_prefix=True),
            [0.5, 0.75, 1.0, 0.914058, 0.689058, 0.410942, 0.185942],
        ),
        (lambda o: s.WarmupLR(s.StepLR(o, 2, 0.5), warmup_iters=0), [1.0, 1.0, 0.5, 0.5, 0.25]),
        (lambda o: s.PolynomialLR(o, steps=4, end_learning_rate=0.0002, power=2), [1.0, 0.65, 0.4, 0.25, 0.2, 0.2]),
        (lambda o: s.PolynomialLR(o, steps=2, end_learning_rate=0.0, cycle=True), [1.0, 0.5, 0.0, 0.25, 0.0, 1 / 6]),
        (lambda o: s.PolynomialLR(o, steps=2), [1.0, 0.55, 0.1, 0.1]),
        (
            lambda o: s.CosineAnnealingWarmRestarts(o, 2, decay_rate=0.5, restart_limit=2),
            [1.0, 0.5, 0.5, 0.25, 0.0, 0.0],
        ),
    ],
)
def test_oneflow_schedules(make, expected):
    optimizer = sgd()
    assert rates(optimizer, make(optimizer), len(expected) - 1) == pytest.approx([x / 1000 for x in expected], abs=1e-9)


@needs_torch
def test_step_with_fractional_epoch():
    both = []
    for L in (flow, torch):
        optimizer = sgd(1.0, L)
        scheduler = L.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2)
        optimizer.step()
        found = []
        for epoch in (0.5, None, 3, 4.25, 10, None, None, 2):
            scheduler.step(epoch)
            found += [scheduler.get_last_lr()[0], scheduler.T_cur, scheduler.T_i, scheduler.last_epoch]
        both.append(found)
    assert both[0] == pytest.approx(both[1], rel=1e-12)


@needs_torch
@pytest.mark.parametrize("name", ["StepLR", "ExponentialLR", "PolynomialLR"])
def test_pytorch_state(name):
    options = {"StepLR": (2,), "ExponentialLR": (0.9,), "PolynomialLR": (7,)}[name]
    other = sgd(1.0, torch)
    theirs = getattr(torch.optim.lr_scheduler, name)(other, *options)
    other.step()
    theirs.step()
    optimizer = sgd(1.0)
    ours = getattr(s, name)(optimizer, *options)
    saved = theirs.state_dict()
    ours.load_state_dict(
        {k: v for k, v in saved.items() if name != "PolynomialLR"}
        if name != "PolynomialLR"
        else saved | {"cycle": False, "end_learning_rate": None}
    )
    assert ours.last_epoch == 1 and ours.get_last_lr() == theirs.get_last_lr()


def test_state_of_nested_schedules():
    """Each schedule that wraps another undoes its first step, so that every second one begins at -2."""

    def nested():
        o = sgd(1.0)
        return s.SequentialLR(o, [s.SequentialLR(o, [s.StepLR(o, 1), s.StepLR(o, 2, 0.5)], [2]), s.StepLR(o, 3)], [4])

    first, second = nested(), nested()
    assert first._schedulers[0]._schedulers[1].last_epoch == -2
    second.load_state_dict(first.state_dict())
    assert rates(first.optimizer, first, 9) == rates(second.optimizer, second, 9)


def test_custom_scheduler_class():
    class Noam(s._LRScheduler):
        def __init__(self, optimizer, warmup, last_epoch=-1):
            self.warmup = warmup
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            assert self._get_lr_called_within_step
            return [base * min(self._step_count / self.warmup, 1.0) for base in self.base_lrs]

    class Counted(s.LRScheduler):
        def __init__(self, optimizer):
            self.calls = 0
            super().__init__(optimizer)

        def step(self, epoch=None):
            self.calls += 1
            self.last_epoch += 1
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 * self.calls
            self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    optimizer = sgd(1.0)
    assert rates(optimizer, Noam(optimizer, 4), 4) == [0.0, 0.5, 0.75, 1.0, 1.0]
    optimizer = sgd(1.0)
    assert rates(optimizer, Counted(optimizer), 2) == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    "make",
    [
        lambda o: s.ReduceLROnPlateau(o),
        lambda o: s.OneCycleLR(o, 0.1, 10),
        lambda o: s.CyclicLR(o, 0.1, 0.2),
        lambda o: s.ChainedScheduler([s.OneCycleLR(o, 0.1, 10)]),
    ],
)
def test_graph_refuses_by_name(make):
    model = nn.Linear(2, 1)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(GraphError, match="cannot be part of a graph: (its step needs|it changes)"):
        Training(model, optimizer, make(optimizer))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda o: s.ConstantLR(o, 2.0), "factor must be from 0 to 1, got 2"),
        (lambda o: s.ExponentialLR(o, "x"), "gamma must be a number, got a str"),
        (lambda o: s.PolynomialLR(o, 0), "total_iters must be an integer of at least 1, got 0"),
        (lambda o: s.CosineDecayLR(o, -1), "decay_steps must be an integer of at least 1, got -1"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 0), "T_0 must be an integer of at least 1, got 0"),
        (lambda o: s.OneCycleLR(o, 0.1), "number of steps must be given"),
        (lambda o: s.OneCycleLR(o, 0.1, 10, pct_start=1.5), "pct_start must be from 0 to 1, got 1.5"),
        (
            lambda o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="up"),
            "anneal_strategy must be 'cos' or 'linear', got 'up'",
        ),
        (lambda o: s.OneCycleLR(o, [0.1, 0.2], 10), "max_lr has 2 numbers for 1 groups"),
        (lambda o: s.CyclicLR(o, 0.1, 0.2, mode="up"), "mode cannot be 'up'"),
        (lambda o: s.CyclicLR(o, 0.1, 0.2, 0), "0 steps up and 0 down"),
        (lambda o: s.CyclicLR(flow.optim.Adagrad([flow.zeros(1)]), 0.1, 0.2), "Adagrad has neither momentum nor betas"),
        (lambda o: s.WarmupLR(3), "not a int and 5 steps"),
        (lambda o: s.WarmupLR(o, warmup_method="up"), "warmup_method .*'up'"),
        (lambda o: s.ChainedScheduler([]), "at least one scheduler"),
        (lambda o: s.ChainedScheduler([s.StepLR(o, 2), s.ReduceLROnPlateau(o)]), "entry 1 is a ReduceLROnPlateau"),
        (lambda o: s.MultiplicativeLR(o, 3), "MultiplicativeLR takes a function"),
        (lambda o: s.ReduceLROnPlateau(o, mode="up"), "mode cannot be 'up'"),
        (lambda o: s.ReduceLROnPlateau(o, factor=1.0), "factor must be below 1, got 1"),
        (lambda o: s.ReduceLROnPlateau(o).step(), "needs the metric"),
    ],
)
def test_refused(make, text):
    with pytest.raises(OptimError, match=text):
        make(sgd())


def test_step_past_the_end():
    optimizer = sgd()
    with pytest.raises(OptimError, match="OneCycleLR: step 4 is beyond the total of 3"):
        rates(optimizer, s.OneCycleLR(optimizer, 0.1, 3), 4)
