"""Corrupt states: a load is complete, or refused with a StateError without any change.

A seeded mutator changes a state_dict(): other types, keys, values, shapes, dtypes, nested junk. A refused state leaves
every bit unchanged, and the next step equals that of an untouched twin; an accepted one can step and be saved.
"""

import copy
import io
import math
import random
import signal
import sys

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CheckpointError, StateError
from minflow.optim import lr_scheduler as schedules
from tests import sampling
from tests.exported_cases import SCHEDULES, optimizer_cases
from tests.graphs import Training, loss_of
from tests.interrupts import Interrupter

SGD, Adam = flow.optim.SGD, flow.optim.Adam


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)

    def forward(self, x):
        return self.b(self.norm(self.a(x)).relu())


class Power:
    """A learning rate with its own state."""

    def __init__(self, base):
        self.base, self.name, self.table = base, "power", {"a": 1.0}

    def __call__(self, step):
        return self.base ** min(step, 100) * self.table.get("a", 1.0)


def of_registry(name, options):
    return lambda p: getattr(flow.optim, name)(p, lr=0.05, **options)


OPTIMIZERS = {
    " ".join([name, *map(str, options.items())]): of_registry(name, options) for name, options in optimizer_cases()
}
OPTIMIZERS |= {
    "momentum": lambda p: SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "dampening": lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "amsgrad": lambda p: Adam(p, lr=0.01, amsgrad=True, maximize=True),
    "groups": lambda p: SGD(
        [{"params": p[:2], "lr": 0.3, "name": "first"}, {"params": p[2:], "clip_grad_max_norm": 1.0}], 0.1, 0.9
    ),
    "LBFGS": lambda p: flow.optim.LBFGS(p, lr=0.1, max_iter=3),
    "LBFGS with a search": lambda p: flow.optim.LBFGS(p, max_iter=3, line_search_fn="strong_wolfe"),
}
SCHEDULERS = SCHEDULES | {
    "LambdaLR": lambda o: schedules.LambdaLR(o, lambda step: 0.9 ** min(step, 100)),
    "LambdaLR of an object": lambda o: schedules.LambdaLR(o, Power(0.9)),
    "OneCycleLR": lambda o: schedules.OneCycleLR(o, 0.1, total_steps=200, cycle_momentum=False),
    "ReduceLROnPlateau": lambda o: schedules.ReduceLROnPlateau(o, patience=1, cooldown=1, min_lr=1e-4),
    "ReduceLROnPlateau of the most": lambda o: schedules.ReduceLROnPlateau(o, "max", patience=0, threshold_mode="abs"),
}


class Setup:
    """A model, its optimizer and its schedule, after two steps."""

    def __init__(self, optimizer="momentum", scheduler="StepLR", graph=False):
        flow.manual_seed(7)
        self.model = Net()
        self.optimizer = OPTIMIZERS[optimizer](list(self.model.parameters()))
        self.scheduler = SCHEDULERS[scheduler](self.optimizer)
        self.x = flow.tensor(np.linspace(-1, 1, 15, dtype="f4").reshape(5, 3))
        self.graph = Training(self.model, self.optimizer, self.scheduler) if graph else None
        for _ in range(2):
            self.step()

    def step(self):
        if self.graph is not None:
            return self.graph(self.x)
        loss = self.closure()
        self.optimizer.step(*[self.closure] * isinstance(self.optimizer, flow.optim.LBFGS))
        self.scheduler.step(*[loss] * isinstance(self.scheduler, schedules.ReduceLROnPlateau))
        return loss

    def closure(self):
        loss = loss_of(self.model(self.x))
        self.optimizer.zero_grad()
        loss.backward()
        return loss

    def everything(self):
        whole = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "random": flow.get_rng_state(),
            "steps": self.optimizer._steps_taken,
        }
        if self.graph is not None:
            whole["graph"] = self.graph.state_dict()
        return whole

    def target(self, kind):
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "graph": self.graph,
            "generator": Random(),
        }[kind]


class Random:
    """The default generator with the interface of the others."""

    def state_dict(self):
        return {"words": flow.get_rng_state()}

    def load_state_dict(self, state):
        flow.set_rng_state(state.get("words") if isinstance(state, dict) else state)


def text(x):
    """Every bit of a state, as text."""
    if isinstance(x, flow.Tensor | np.ndarray):
        array = np.asarray(x.detach().numpy() if isinstance(x, flow.Tensor) else x)
        return f"{array.dtype}{array.shape}{array.tobytes().hex()}"
    if isinstance(x, dict):
        return "{" + ",".join(f"{k!r}:{text(v)}" for k, v in x.items()) + "}"
    if isinstance(x, list | tuple):
        return f"{type(x).__name__}[" + ",".join(map(text, x)) + "]"
    return f"{type(x).__name__} {x!r}"


# ---- the mutator -----------------------------------------------------------------------------------------------------


class Odd:
    """An object whose attributes all fail."""

    def __repr__(self):
        return "Odd()"


class Broken(dict):
    def __getitem__(self, key):
        return "not what you asked for"


JUNK = [
    None, True, False, 0, 1, -1, 2, -7, 10**30, 10**400, 0.5, -0.5, math.nan, math.inf, -math.inf, 1e300, -1e-300, "",
    "0.1",
    "x" * 1000, "\x1b]0;title\x07", b"x", 1j, (), [], {}, [[]], [1, [2, [3]]], {"a": {"b": 1}}, {1: 2}, (0.9,),
    (0.9, 0.999),
    (0.9, 1.5), [0.5, 0.5], {3, 4},
    print, Odd(), Odd, Broken(params=[0]), np.zeros(0), np.zeros(3), np.zeros((2, 2), "i4"), np.float32(0.5),
    np.int64(3), np.bool_(True),
    np.array(["a"]), np.array([1j]), np.array([None]), np.array(2.0), np.array([[1, 2]], "u1"), np.datetime64("2020"),
    range(3), ...,
    float, "params", [0, 0], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, "5"], iter([1]),
]  # fmt: skip


def junk(rng):
    x = rng.choice([*JUNK, "tensor"])
    if isinstance(x, str) and x == "tensor":
        return flow.tensor(
            np.full(
                rng.choice([(), (1,), (4,), (4, 3), (2, 4), (0, 3)]), rng.choice([0.0, -1.0, math.nan, math.inf, 1e30])
            )
        )
    return unshared(x)


def of_array(x, rng):
    """An array similar to x."""
    array = np.array(x.detach().numpy() if isinstance(x, flow.Tensor) else x)
    way = rng.randrange(7)
    if way == 0:
        array = array.reshape(-1)[: rng.randrange(array.size + 1)]
    elif way == 1:
        array = array.T[None]
    elif way == 2:
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["f8", "f2", "i8", "i4", "u1", "?", "i2", "c8", "U5", "O", ">f4"]))
    elif way == 3 and array.size:
        with np.errstate(all="ignore"):
            array.reshape(-1)[rng.randrange(array.size)] = (
                rng.choice([math.nan, math.inf, -1, 1e30]) if array.dtype.kind == "f" else -1
            )
    elif way == 4:
        return array.tolist()
    elif way == 5:
        array = np.broadcast_to(array, (2, *array.shape))[0][::-1] if array.ndim else array[None]
    return flow.tensor(array) if array.dtype.kind in "f" and rng.random() < 0.5 else array


def places(x, path=()):
    """All (container, key) of a nested state."""
    items = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    for key, value in items:
        yield x, key, value
        yield from places(value)


def mutated(state, rng):
    """A copy of the state with one to three changes."""
    state = unshared(state)
    if rng.random() < 0.03:
        return junk(rng)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = list(places(state))
        if not found:
            return state
        holder, key, value = rng.choice(found)
        way = rng.randrange(8)
        if way == 0:
            del holder[key]
        elif way == 1:
            if isinstance(holder, dict):
                holder[rng.choice(["extra", f"{key}x", 5, None, ("a", 1), "\x1b[31m", "k" * 3000])] = junk(rng)
            else:
                holder.insert(key, junk(rng))
        elif way == 2 and isinstance(holder, dict):
            holder[rng.choice([f"{key}_", str(key).upper(), 99, "-", ""])] = holder.pop(key)
        elif way == 3:
            holder[key] = [value] if rng.random() < 0.5 else {"x": value}
        elif way == 4:
            other, place, there = rng.choice(found)
            if place in other if isinstance(other, dict) else place < len(other):
                holder[key] = unshared(there)
        elif isinstance(value, flow.Tensor | np.ndarray) and way < 7:
            holder[key] = of_array(value, rng)
        elif isinstance(value, bool | int | float) and way < 7:
            near = [-value, value + 1, value * 10**6, value / 3, float(value), -1, math.nan]
            holder[key] = rng.choice([*near, str(value), not value, [value]])
        else:
            holder[key] = junk(rng)
    return state


def unshared(x):
    if isinstance(x, flow.Tensor):
        return x.detach().clone()
    if isinstance(x, dict):
        return {k: unshared(v) for k, v in x.items()}
    if isinstance(x, list):
        return [unshared(v) for v in x]
    return x if callable(x) else copy.copy(x)


# ---- the test --------------------------------------------------------------------------------------------------------

CASES = (
    [("model", "momentum", "StepLR", 300), ("generator", "SGD", "StepLR", 100)]
    + [("optimizer", name, "StepLR", 60) for name in OPTIMIZERS]
    + [("scheduler", "SGD", name, 60) for name in SCHEDULERS]
    + [("graph", "Adam", "SequentialLR", 120), ("graph", "groups", "LambdaLR of an object", 120)]
    + [("graph", "dampening", "MultiStepLR", 120)]
)
SHARE = 1 if sampling.complete else 5  # the short command tries the first fifth of the mutants of each case


def one_step(setup):
    flow.manual_seed(3)
    return setup.step().item()


@pytest.mark.filterwarnings("ignore::minflow.MinflowWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(("kind", "optimizer", "scheduler", "mutants"), CASES)
def test_corrupt_states(kind, optimizer, scheduler, mutants):
    rng = random.Random(f"{kind} {optimizer} {scheduler}")
    setup, taken, refused = None, 0, 0
    for number in range(mutants // SHARE):
        if setup is None:
            setup, twin = (Setup(optimizer, scheduler, kind == "graph") for _ in range(2))
            good = text(setup.everything())
        state = mutated(setup.target(kind).state_dict(), rng)
        try:
            setup.target(kind).load_state_dict(state)
        except StateError as error:
            refused += 1
            assert text(setup.everything()) == good, (number, state)
            assert error.what and error.where and error.hint and len(str(error)) < 20_000, (number, state)
            if refused % 10 == 0 or kind == "graph":  # the next step is that of a twin whose state is unchanged
                assert one_step(setup) == one_step(twin), (number, state)
                good = text(setup.everything())
                assert good == text(twin.everything()), (number, state)
        except Exception as error:
            raise AssertionError(f"mutant {number}: {type(error).__name__}: {error}\n{state}") from error
        else:
            taken += 1
            try:
                setup.step()
                flow.save(setup.everything(), file := io.BytesIO())
                file.seek(0)
                again = flow.load(file)["graph" if kind == "graph" else "model" if kind == "generator" else kind]
                if kind != "generator":
                    setup.target(kind).load_state_dict(again)
                setup.step()
            except Exception as error:
                raise AssertionError(f"mutant {number}, taken: {type(error).__name__}: {error}\n{state}") from error
            setup = None
    assert refused > mutants // SHARE // 3 and (taken or SHARE > 1), (refused, taken)


def test_interrupt_waits_until_all_is_written(monkeypatch):
    """Ctrl-C during a load: the load completes, and then the interrupt is raised."""
    one, two = Setup("Adam", "StepLR", graph=True), Setup("Adam", "StepLR", graph=True)
    two.step()
    copy_, calls = flow.Tensor.copy_, []

    def interrupted(self, *args):
        calls.append(self)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return copy_(self, *args)

    monkeypatch.setattr(flow.Tensor, "copy_", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.graph.load_state_dict(two.graph.state_dict())
    monkeypatch.undo()
    assert len(calls) > 10 and text(one.everything()) == text(two.everything())


@pytest.mark.filterwarnings("ignore::minflow.MinflowWarning")
@pytest.mark.parametrize("kind", ["model", "optimizer", "scheduler", "graph"])
def test_interrupt_at_each_line(kind):
    """Wherever a load was interrupted, loading again gives the state and the next step of an uninterrupted load."""
    rooms = ("nn.loading", "nn.state", "nn.graph.state", "optim.optimizer", "optim.lr_scheduler", "optim.groups")
    files = [sys.modules[f"minflow.{name}"].__file__ for name in rooms]
    setup, later = Setup("amsgrad", "SequentialLR", graph=True), Setup("amsgrad", "SequentialLR", graph=True)
    later.step()
    old, new = (unshared(one.target(kind).state_dict()) for one in (setup, later))
    for other in ("model", "optimizer", "scheduler", "graph"):
        setup.target(other).load_state_dict(unshared(later.target(other).state_dict()))
    wanted, target = text(later.everything()), setup.target(kind)
    counted = Interrupter(files)
    counted.run(lambda: target.load_state_dict(old))
    places = counted.places()
    assert len(places) > 10
    for at in places[:: 1 if len(places) < 150 else 2 if sampling.complete else 5]:
        target.load_state_dict(old)
        assert Interrupter(files, at).run(lambda: target.load_state_dict(new)), at
        target.load_state_dict(new)
        assert text(setup.everything()) == wanted, at
    assert one_step(setup) == one_step(later) and text(setup.everything()) == text(later.everything())


VARIABLES = {"a-weight": (2, 3), "b": ()}


@pytest.mark.filterwarnings("ignore::minflow.MinflowWarning")
def test_corrupt_variables_of_jobs(tmp_path):
    """flow.load_variables and checkpoints of jobs: all or nothing, one error."""
    flow.clear_default_session()

    @flow.global_function(type="predict")
    def job() -> flow.typing.Numpy:
        found = [
            flow.get_variable(name, shape, initializer=flow.ones_initializer()) for name, shape in VARIABLES.items()
        ]
        return flow.math.reduce_sum(found[0]) + found[1]

    job()
    flow.checkpoint.save(tmp_path / "m")
    good = {name: v.numpy() for name, v in flow.checkpoint.get(tmp_path / "m").items()}
    rng, refused, taken = random.Random(11), 0, 0
    for number in range(300 // SHARE):
        before = text({name: x.numpy() for name, x in flow.get_all_variables().items()})
        state = mutated(good, rng)
        try:
            flow.load_variables(state, ignore_mismatch=number % 2 == 0)
        except CheckpointError:
            refused += 1
            assert text({name: x.numpy() for name, x in flow.get_all_variables().items()}) == before, (number, state)
        except Exception as error:
            raise AssertionError(f"mutant {number}: {type(error).__name__}: {error}\n{state}") from error
        else:
            taken += 1
            job()
            flow.checkpoint.save(tmp_path / str(number))
    assert refused > 100 // SHARE and taken > 10 // SHARE
    flow.clear_default_session()


class Own(nn.Linear):
    """A user's module with its own loading code, which fails half-way."""

    def load_state_dict(self, state_dict, strict=True, assign=False):
        if "half" in state_dict:
            self.weight.data.fill_(9.0)
            raise KeyError("half")
        return super().load_state_dict(state_dict, strict, assign)


def test_failing_custom_load():
    class Two(nn.Graph):
        def __init__(self):
            super().__init__()
            self.plain, self.own = nn.Linear(2, 2), Own(2, 2)

        def build(self, x):
            return self.own(self.plain(x))

    graph = Two()
    before = text(graph.state_dict())
    with pytest.raises(KeyError, match="half"):
        graph.load_state_dict({"plain": nn.Linear(2, 2).state_dict(), "own": {"half": 1}})
    assert text(graph.state_dict()) == before
    other = Two()
    graph.load_state_dict(other.state_dict())
    assert text(graph.state_dict()) == text(other.state_dict())


def optimizer(kind=SGD, state=None, **group):
    """Load a state with one group that has these values."""
    kind([flow.ones(2)], lr=1).load_state_dict({"state": state or {}, "param_groups": [group | {"params": [0]}]})


def schedule():
    return schedules.StepLR(SGD([flow.ones(2)], lr=1), 3)


@pytest.mark.parametrize(("load", "texts"), [
    (lambda: nn.Linear(2, 2).load_state_dict({"weight": np.ones((2, 2), "c8"), "bias": flow.ones(2)}), ["complex64"]),
    (lambda: nn.Linear(2, 2).load_state_dict({5: 1, "weight": 3, "bias": None}),
     ["unexpected  5", "weight: int", "NoneType"]),
    (lambda: nn.Linear(1, 1).load_state_dict({"weight": np.ones((1, 1), "i4"), "bias": flow.ones(1)}, assign=True),
     ["got int32"]),
    (lambda: optimizer(state={7: {}}, lr=1), ["state for 7"]),
    (lambda: optimizer(lr=-2), ["lr must be at least 0, got -2"]),
    (lambda: optimizer(lr="0.1"), ["lr must be a number, got a str"]),
    (lambda: optimizer(), ["group 0 has no 'lr'"]),
    (lambda: optimizer(Adam, {0: {"exp_avg": np.ones(2), "step": -1}}, lr=1), ["not a number of steps", "-1"]),
    (lambda: optimizer(Adam, {0: {"exp_avg": np.ones(2), "step": 1}}, lr=1), ["exp_avg_sq of parameter 0"]),
    (lambda: schedule().load_state_dict(schedule().state_dict() | {"step_size": 2.5}), ["step_size must", "got 2.5"]),
    (lambda: flow.amp.GradScaler().load_state_dict({"weight": 1}), ["GradScaler", "weight"]),
    (lambda: flow.Generator(1).set_state([1.5, 2]), ["1.5"]),
    (lambda: flow.set_rng_state("x"), ["'x'"]),
])  # fmt: skip
def test_error_reports_the_values(load, texts):
    with pytest.raises(StateError) as caught:
        load()
    for part in [*texts, "test_corrupt_states.py"]:
        assert part in str(caught.value)
