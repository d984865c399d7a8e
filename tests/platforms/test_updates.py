"""Compiled optimizer updates: NumPy's bits, in graphs of every optimizer that has one."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from graph_models import Step

import minflow as flow
from minflow import nn
from minflow.core.kernels import CALLS
from minflow.core.ops import update as ops
from minflow.platforms.compiled.kernels import updates
from tests.single_tasks import run_builder, run_tasks, same_bits, tasks_of

SGD = [dict(weight_decay=d, maximize=m) for d in (0.0, 0.1) for m in (False, True)]
MOMENTUM = [dict(momentum=0.9, nesterov=n, **one) for n in (False, True) for one in SGD]
ADAM = [
    dict(beta1=0.9, beta2=0.999, eps=1e-8, decoupled=d, corrected=c, **one)
    for d in (False, True)
    for c in (False, True)
    for one in SGD
]
CASES = [
    *[(ops.sgd, 2, 0, attrs) for attrs in SGD],
    *[(ops.sgd_momentum, 3, 0, attrs) for attrs in MOMENTUM],
    *[(ops.adam, 4, 1, attrs) for attrs in ADAM],
]


def inputs(arrays, steps, shape, seed=0):
    rng = np.random.default_rng(seed)
    found = [rng.standard_normal(shape).astype("f4") for _ in range(arrays)]
    if arrays == 4:
        found[3] = np.abs(found[3])  # the second moment
    return [*found, *[np.array(3.0, "f4") for _ in range(steps)], np.array(0.0123)]


def builder(op):
    return getattr(updates, op.name)


@pytest.mark.parametrize("shape", [(1,), (5,), (16, 3), (130, 127), (70001,)])
@pytest.mark.parametrize("op, arrays, steps, attrs", CASES)
def test_bits_match_numpy(op, arrays, steps, attrs, shape):
    args = inputs(arrays, steps, shape)
    wanted = CALLS[op](*args, **attrs)
    wanted = wanted if op.many else [wanted]
    outs = run_builder(builder(op), args, wanted, **attrs)
    assert [o.tobytes() for o in outs] == [np.asarray(w).tobytes() for w in wanted]


@pytest.mark.parametrize("op, arrays, steps, attrs", [CASES[1], CASES[5], CASES[-1]])
def test_in_place_update_at_any_thread_count(op, arrays, steps, attrs):
    def thrice(update):
        args = inputs(arrays, steps, (300, 301))
        places = [op.inputs.index(name) for name in op.outputs]
        for _ in range(3):
            update(args, places)
        return [args[place] for place in places]

    def by_numpy(args, places):
        found = CALLS[op](*args, **attrs)
        for place, result in zip(places, found if op.many else [found]):
            args[place] = np.asarray(result)

    def by_tasks(args, places):
        run_tasks(tasks_of(builder(op), args, [args[place] for place in places], **attrs))

    found = same_bits(lambda: thrice(by_tasks), (1, 2, 4))
    assert [a.tobytes() for a in found] == [a.tobytes() for a in thrice(by_numpy)]


def test_unsupported_calls_fall_back():
    double = [np.ones(5), np.ones(5), np.array(0.1)]
    apart = [np.ones((5, 4), "f4").T, np.ones((4, 5), "f4"), np.array(0.1)]
    nothing = [np.ones((0, 5), "f4"), np.ones((0, 5), "f4"), np.array(0.1)]
    for args in (double, apart, nothing):
        out = [np.empty(args[0].shape, args[0].dtype)]
        assert tasks_of(updates.sgd, args, out, weight_decay=0.0, maximize=False) is None


OPTIMIZERS = {
    "SGD": lambda p: flow.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: flow.optim.Adam(p, lr=0.1, weight_decay=0.01),
    "AdamW": lambda p: flow.optim.AdamW(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_graph_trains_with_the_bits_of_eager(name, on):
    """Also if the learning rate changes between two steps."""
    found, x = [], flow.tensor(np.random.default_rng(0).standard_normal((8, 30)).astype("f4"))
    for as_graph in (False, True):
        flow.manual_seed(0)
        model = nn.Linear(30, 20)
        optimizer = OPTIMIZERS[name](model.parameters())
        schedule = flow.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        graph = Step(model, optimizer, lr_sch=schedule, exact=True)
        for _ in range(4):
            if as_graph:
                graph(x)
                continue
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            schedule.step()
        found.append([p.numpy().tobytes() for p in model.parameters()])
    assert found[0] == found[1]
    assert graph.compiled_for((x,), {}).parts[0].plan.units  # what a plan runs
