"""States of schedules: PyTorch's continue here, with its rates, and ours have the entries that its programs read."""

import numpy as np
import pytest

import minflow as flow
from tests.optim.test_optim_torch import SCHEDULES

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch")
# our entries that PyTorch's states lack, or that are attributes of OneFlow's schedules
OWN = {
    *("verbose", "base_lrs", "_step_count", "_rescaling", "_cycles", "decay_rate", "restart_limit", "cycle"),
    *("end_learning_rate", "step_size_up", "step_size_down", "epochs", "steps_per_epoch", "pct_start", "three_phase"),
    *("div_factor", "final_div_factor", "max_lrs", "base_momentums", "max_momentums", "_goals", "last_epoch"),
}


class Decay:
    """A callable object, whose attributes are part of a state."""

    def __init__(self, factor=0.9):
        self.factor = factor

    def __call__(self, step):
        return self.factor**step


MADE = {
    **SCHEDULES,
    "LambdaLR of an object": lambda s, o: s.LambdaLR(o, Decay()),
    "CyclicLR of an object": lambda s, o: s.CyclicLR(o, 0.01, 0.9, 2, scale_fn=Decay(), cycle_momentum=False),
    "CyclicLR of betas": lambda s, o: s.CyclicLR(o, 0.01, 0.9, 4, 3),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=1, cooldown=1, factor=0.5, min_lr=0.01),
    "SWALR": lambda s, o: lib_of(s).optim.swa_utils.SWALR(o, 0.05, anneal_epochs=6),
}


def lib_of(schedules):
    return flow if schedules is flow.optim.lr_scheduler else torch


def made(lib, make, adam=False):
    params = [lib.nn.Parameter(lib.ones(2)) for _ in range(2)]
    for p in params:
        p.grad = lib.zeros(2)
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}]
    optimizer = lib.optim.Adam(groups, lr=0.1) if adam else lib.optim.SGD(groups, lr=0.1, momentum=0.9)
    return optimizer, make(lib.optim.lr_scheduler, optimizer)


def run(optimizer, scheduler, steps):
    rates = []
    for t in steps:
        optimizer.step()
        scheduler.step(*([1.0 / (1 + t % 5)] if "Plateau" in type(scheduler).__name__ else []))
        group = optimizer.param_groups[0]
        rates.append([g["lr"] for g in optimizer.param_groups] + [group.get("momentum", group.get("betas", [0])[0])])
    return rates


def plain(state):
    """The groups of an optimizer's state, as data of no library."""
    return {"state": {}, "param_groups": [dict(group) for group in state["param_groups"]]}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("steps", [1, 5, 9])
def test_a_state_of_pytorch_continues(name, steps):
    adam = "betas" in name
    optimizer, scheduler = made(torch, MADE[name], adam)
    run(optimizer, scheduler, range(steps))
    saved, groups = scheduler.state_dict(), optimizer.state_dict()
    other, resumed = made(flow, MADE[name], adam)
    other.load_state_dict(plain(groups))
    resumed.load_state_dict(saved)
    assert resumed.get_last_lr() == scheduler.get_last_lr()
    later = range(steps, steps + 12)
    np.testing.assert_allclose(run(other, resumed, later), run(optimizer, scheduler, later), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", MADE)
def test_our_state_has_the_entries_of_pytorch(name):
    states = []
    for lib in (torch, flow):
        optimizer, scheduler = made(lib, MADE[name], "betas" in name)
        run(optimizer, scheduler, range(6))
        states.append((scheduler.state_dict(), optimizer, scheduler))
    (theirs, optimizer, scheduler), (ours, *_) = states
    same(theirs, ours)
    scheduler.load_state_dict(ours)
    run(optimizer, scheduler, range(6, 9))


def same(theirs, ours):
    read = {k: v for k, v in theirs.items() if k not in ("_is_initial", "_get_lr_called_within_step")}
    assert set(ours) - set(read) <= OWN and set(read) - set(ours) <= {"default_min_lr", "mode_worse"}
    for key, value in read.items():
        if key == "_schedulers":
            for a, b in zip(value, ours[key], strict=True):
                same(a, b)
        elif key in ours and key != "_step_count":  # PyTorch does not count those of CosineAnnealingWarmRestarts
            assert rounded(ours[key]) == rounded(value), key


def rounded(x):
    """Data without the last digits of its numbers."""
    if isinstance(x, dict):
        return {name: rounded(value) for name, value in x.items()}
    return [rounded(value) for value in x] if isinstance(x, list) else round(x, 12) if isinstance(x, float) else x


def test_levels_come_from_the_groups_of_the_loaded_optimizer():
    """As in PyTorch, where a schedule made with other arguments continues with those of the saved one."""
    optimizer, scheduler = made(torch, lambda s, o: s.OneCycleLR(o, 0.9, 25, final_div_factor=10))
    run(optimizer, scheduler, range(5))
    other, resumed = made(flow, lambda s, o: s.OneCycleLR(o, 0.1, 30, pct_start=0.5, three_phase=True))
    other.load_state_dict(plain(optimizer.state_dict()))
    resumed.load_state_dict(scheduler.state_dict())
    later = range(5, 20)
    np.testing.assert_allclose(run(other, resumed, later), run(optimizer, scheduler, later), rtol=1e-12)


def test_attributes_that_programs_read():
    optimizer, plateau = made(flow, lambda s, o: s.ReduceLROnPlateau(o, patience=1))
    run(optimizer, plateau, range(4))
    state = plateau.state_dict()
    assert state["last_epoch"] == 4 and state["best"] == 0.25 and state["num_bad_epochs"] == 0
    assert state["_last_lr"] == plateau._last_lr == [0.1, 0.05]
    optimizer, cyclic = made(flow, lambda s, o: s.CyclicLR(o, 0.01, 0.9, 4, 3))
    assert (cyclic.total_size, cyclic.max_lrs, cyclic.base_lrs) == (7.0, [0.9, 0.9], [0.01, 0.01])
    optimizer, cycle = made(flow, lambda s, o: s.OneCycleLR(o, 0.9, 20))
    assert optimizer.param_groups[1]["max_lr"] == 0.9 and cycle._schedule_phases[0]["end_step"] == 5
