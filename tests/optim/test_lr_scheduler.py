"""Schedules: closed forms, state, OneFlow's names, and errors. PyTorch's values: `test_optim_torch.py`."""

import math

import pytest

import minflow as flow
from minflow.core.base.errors import MinflowWarning, OptimError, StateError
from minflow.core.source_location import warned_lines
from minflow.optim import lr_scheduler as s


@pytest.fixture(autouse=True)
def forget_warnings():
    warned_lines().clear()


def optimizer(lr=0.8):
    return flow.optim.SGD([flow.zeros(1, requires_grad=True)], lr=lr)


def rates(scheduler, steps):
    found = scheduler.get_last_lr()
    for _ in range(steps):
        scheduler.optimizer.step()
        scheduler.step()
        found += scheduler.get_last_lr()
        assert scheduler.optimizer.param_groups[0]["lr"] == found[-1]
    return found


FORMULAS = {
    "StepLR": (lambda o: s.StepLR(o, step_size=2, gamma=0.5), lambda t: 0.8 * 0.5 ** (t // 2)),
    "MultiStepLR": (lambda o: s.MultiStepLR(o, milestones=[3, 5]), lambda t: 0.8 * 0.1 ** ((t >= 3) + (t >= 5))),
    "LambdaLR": (lambda o: s.LambdaLR(o, lr_lambda=lambda t: 1 / (1 + t)), lambda t: 0.8 / (1 + t)),
    "CosineAnnealingLR": (
        lambda o: s.CosineAnnealingLR(o, T_max=6, eta_min=0.2),
        lambda t: 0.2 + 0.3 * (1 + math.cos(math.pi * t / 6)),
    ),
    "LinearLR": (
        lambda o: s.LinearLR(o, start_factor=0.25, total_iters=4),
        lambda t: 0.8 * (0.25 + 0.75 * min(t, 4) / 4),
    ),
    "SequentialLR": (
        lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.5, total_iters=3), s.StepLR(o, 2)], milestones=[3]),
        lambda t: 0.8 * (0.5 + t / 6) if t < 3 else 0.8 * 0.1 ** ((t - 3) // 2),
    ),
    "SequentialLR in another": (  # PyTorch starts the second inner schedule a step too early
        lambda o: s.SequentialLR(
            o,
            [
                s.SequentialLR(o, [s.LinearLR(o, 0.5, total_iters=3), s.StepLR(o, 2)], [3]),
                s.LambdaLR(o, lambda t: 0.5**t),
            ],
            [7],
        ),
        lambda t: 0.8 * (0.5 + t / 6) if t < 3 else 0.8 * 0.1 ** ((t - 3) // 2) if t < 7 else 0.8 * 0.5 ** (t - 7),
    ),
    "SequentialLR that goes on counting": (
        lambda o: s.SequentialLR(o, [s.StepLR(o, 1, gamma=0.9), s.StepLR(o, 2)], [3], interval_rescaling=False),
        lambda t: 0.8 * 0.9**t if t < 3 else 0.8 * 0.1 ** (t // 2),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name):
    make, formula = FORMULAS[name]
    assert rates(make(optimizer()), 11) == pytest.approx([formula(t) for t in range(12)], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", FORMULAS)
def test_step_to_an_epoch(name):
    make, formula = FORMULAS[name]
    scheduler = make(optimizer())
    if "Sequential" in name:
        with pytest.raises(OptimError, match="7"):
            scheduler.step(7)
        return
    scheduler.optimizer.step()
    scheduler.step(7)
    assert (
        scheduler.get_last_lr() == pytest.approx([formula(7)], rel=1e-12)
        and scheduler.last_epoch == scheduler.last_step == 7
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_state_round_trips_through_a_file(name, tmp_path):
    make, formula = FORMULAS[name]
    first = make(optimizer())
    rates(first, 4)
    flow.save({"o": first.optimizer.state_dict(), "s": first.state_dict()}, tmp_path / "x.mf")
    state, other = flow.load(tmp_path / "x.mf"), make(optimizer())
    other.optimizer.load_state_dict(state["o"])
    other.load_state_dict(state["s"])
    assert rates(other, 6) == pytest.approx([formula(t) for t in range(4, 11)], rel=1e-12, abs=1e-15)
    with pytest.raises(StateError, match="last_epoch"):
        other.load_state_dict({})


def test_resuming_by_last_epoch():
    o = optimizer()
    with pytest.raises(OptimError, match="(?s)step 4.*initial_lr"):
        s.StepLR(o, 2, last_epoch=4)
    o.param_groups[0].update(initial_lr=0.8, lr=0.2)
    assert rates(s.StepLR(o, 2, 0.5, last_step=4), 3) == pytest.approx([0.2, 0.1, 0.1, 0.05])


def test_callable_objects_are_saved():
    class Decay:
        def __init__(self, base):
            self.base = base

        def __call__(self, t):
            return self.base**t

    one, two = s.LambdaLR(optimizer(), Decay(0.5)), s.LambdaLR(optimizer(), Decay(0.9))
    two.load_state_dict(one.state_dict())
    assert two.lr_lambdas[0].base == 0.5


def test_wrong_order_warns_once():
    o = optimizer()
    scheduler = s.StepLR(o, 2)
    with pytest.warns(
        MinflowWarning, match=r"(?s)StepLR.step comes before.*0\.8.*test_lr_scheduler.py:\d+.*optimizer.step\(\) first"
    ) as caught:
        for _ in range(3):
            scheduler.step()
            o.step()
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda o: s.StepLR(o, 0), "step_size must be an integer of at least 1, got 0"),
        (lambda o: s.StepLR(o, 2.5), "step_size must be an integer of at least 1, got 2.5"),
        (lambda o: s.StepLR(o.param_groups, 2), "StepLR takes an optimizer, not a list"),
        (lambda o: s.MultiStepLR(o, 30), "milestones must be a list of steps, got 30"),
        (lambda o: s.LambdaLR(o, [lambda t: 1, lambda t: 1]), "2 functions for 1"),
        (lambda o: s.LambdaLR(o, 0.5), "function of the step"),
        (lambda o: s.LinearLR(o, start_factor=0), "start_factor must be above 0 and at most 1, got 0"),
        (lambda o: s.LinearLR(o, end_factor=1.5), "end_factor must be at least 0 and at most 1, got 1.5"),
        (lambda o: s.CosineAnnealingLR(o, 0), "T_max must be above 0, got 0"),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]), "1 schedulers and 1 milestones"),
        (lambda o: s.SequentialLR(o, [], []), "0 schedulers"),
        (
            lambda o: s.SequentialLR(o, [s.StepLR(o, 1)], [], flow.float32),
            "interval_rescaling cannot be minflow.float32",
        ),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1)], [], [True, 2]), r"interval_rescaling cannot be \[True, 2\]"),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1)] * 3, [3, 2]), r"\[3, 2\]"),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1), s.StepLR(optimizer(), 1)], [3]), "entry 1"),
        (lambda o: s.LRScheduler(o), "does not define get_lr"),
    ],
)
def test_refused(make, text):
    with pytest.raises(OptimError, match=text) as caught:
        make(optimizer())
    assert "test_lr_scheduler.py" in str(caught.value)


def test_overridden_scheduler_methods():
    class Mine(flow.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [rate / (self.last_epoch + 1) for rate in self.base_lrs]

    class Jumps(Mine):
        def _get_closed_form_lr(self):
            return [0.125 for _ in self.base_lrs]

    for kind, there in ((Mine, 0.5), (Jumps, 0.125)):
        optimizer = flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=1.0)
        schedule = kind(optimizer)
        for rate in (1 / 2, 1 / 3):
            optimizer.step()
            schedule.step()
            assert optimizer.param_groups[0]["lr"] == rate
        schedule.step(1)
        assert schedule.get_last_lr() == [there]
    for name in ("_initial_step", "_update_lr"):
        with pytest.raises(OptimError, match=f"Other defines {name}, which is not called here"):
            type("Other", (Mine,), {name: lambda self, *args: None})


def test_a_whole_float_counts_steps():
    parameter = flow.nn.Parameter(flow.ones(1))
    scheduler = s.StepLR(flow.optim.SGD([parameter], lr=0.8), step_size=1e8)
    assert scheduler.step_size == 10**8 and isinstance(scheduler.step_size, int)
