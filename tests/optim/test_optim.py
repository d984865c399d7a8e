"""Optimizers against the formulas of their papers; groups, state, and errors."""

import warnings

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core import launch_all
from minflow.core.base import events
from minflow.core.base.errors import MinflowWarning, OptimError, StateError
from minflow.core.kernels import CALLS
from minflow.core.mode import MODE, mutation_counter
from minflow.core.op import OPS
from minflow.core.source_location import warned_lines
from tests.measuring import peak

RNG = np.random.default_rng(11)
SHAPES = [(3, 4), (), (0, 2), (70_000,)]


@pytest.fixture(autouse=True)
def forget_warnings():
    warned_lines().clear()


def parameters(dtype="float64", shapes=SHAPES):
    return [flow.tensor(RNG.standard_normal(s).astype(dtype), requires_grad=True) for s in shapes]


def give(params, seed):
    rng = np.random.default_rng(seed)
    for p in params:
        p.grad = flow.tensor(rng.standard_normal(p.shape).astype(p.dtype.name))


def sgd(p, g, s, t, lr=0.1, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    if momentum:
        s["b"] = g if t == 1 else momentum * s["b"] + (1 - dampening) * g
        g = g + momentum * s["b"] if nesterov else s["b"]
    return p - lr * g


def adam(
    p,
    g,
    s,
    t,
    lr=0.1,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    amsgrad=False,
    maximize=False,
    decoupled=False,
    do_bias_correction=True,
):
    g = -g if maximize else g
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
    s["x"] = np.maximum(s.get("x", 0), s["v"])
    fix1, fix2 = (1 - betas[0] ** t, 1 - betas[1] ** t) if do_bias_correction else (1, 1)
    return p - lr * (s["m"] / fix1) / (np.sqrt((s["x"] if amsgrad else s["v"]) / fix2) + eps)


CASES = [
    (flow.optim.SGD, sgd, {}),
    (flow.optim.SGD, sgd, {"weight_decay": 0.1, "maximize": True}),
    (flow.optim.SGD, sgd, {"momentum": 0.9}),
    (flow.optim.SGD, sgd, {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    (flow.optim.SGD, sgd, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (flow.optim.SGD, sgd, {"momentum": 0.9, "nesterov": True, "maximize": True}),
    (flow.optim.SGD, sgd, {"momentum": 0.9, "dampening": 0.3}),
    (flow.optim.SGD, sgd, {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1, "maximize": True}),
    (flow.optim.Adam, adam, {}),
    (flow.optim.Adam, adam, {"betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    (flow.optim.Adam, adam, {"amsgrad": True, "weight_decay": 0.1}),
    (flow.optim.Adam, adam, {"do_bias_correction": False}),
    (flow.optim.AdamW, lambda *a, **k: adam(*a, **{"weight_decay": 0.01, **k}, decoupled=True), {}),
    (
        flow.optim.AdamW,
        lambda *a, **k: adam(*a, **k, decoupled=True),
        {"weight_decay": 0.3, "amsgrad": True, "maximize": True},
    ),
]


@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_formula(cls, formula, options, dtype):
    params = parameters(dtype)
    optimizer = cls(params, lr=0.1, **options)
    expected, states = [p.detach().numpy().astype("f8") for p in params], [{} for _ in params]
    for t in range(1, 5):
        give(params, t)
        optimizer.param_groups[0]["lr"] = 0.1 / t
        for i, p in enumerate(params):
            expected[i] = formula(expected[i], p.grad.numpy().astype("f8"), states[i], t, lr=0.1 / t, **options)
        arrays = [p.array for p in params]
        optimizer.step()
        assert all(p.array is a for p, a in zip(params, arrays)), "the storage was replaced"
    for p, e in zip(params, expected):
        np.testing.assert_allclose(
            p.detach().numpy(),
            e,
            rtol=1e-12 if dtype == "float64" else 3e-5,
            atol=1e-14 if dtype == "float64" else 3e-6,
        )


@pytest.mark.parametrize("name", ["sgd", "sgd_momentum", "sgd_dampened", "adam", "adam_amsgrad"])
def test_kernels_agree_in_place_in_chunks_and_strided(name, monkeypatch):
    """Fresh results, in place, in small chunks and on non-contiguous arrays have the same bits."""
    from minflow.core.ops.examples import cases
    from minflow.platforms.numpy import update

    op = OPS[name]
    for case in cases(op):
        kept = [i for i, x in enumerate(op.inputs) if x not in ("grad", "lr")]
        expected = CALLS[op](*case.arrays(), **case.attrs)
        expected = list(expected) if op.many else [expected]
        for chunk, layout in (
            (1 << 17, np.array),
            (16, np.array),
            (16, lambda a: np.repeat(a, 2).reshape(*a.shape, 2)[..., 0]),
        ):
            monkeypatch.setattr(update, "CHUNK", chunk)
            arrays = [layout(a) for a in case.arrays()]
            targets = [arrays[i] for i in kept]
            CALLS[op](*arrays, **case.attrs, out=targets if op.many else targets[0])
            for a, b in zip(targets, expected):
                assert np.array_equal(a, b) and a.dtype == b.dtype


RULES = [
    (flow.optim.SGD, {"momentum": 0.9, "dampening": 0.3}),
    (flow.optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
    (flow.optim.RMSprop, {"centered": True, "momentum": 0.9}),
    (flow.optim.Rprop, {}),
    (flow.optim.ASGD, {"t0": 1}),
    (flow.optim.NAdam, {}),
    (flow.optim.RAdam, {}),
    (flow.optim.LAMB, {}),
    (flow.optim.SparseAdam, {}),
]


@pytest.mark.parametrize(("cls", "options"), RULES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_small_parameters_are_updated_together(cls, options, dtype, monkeypatch):
    """By fewer kernel calls, with the same bits; rules that read norms or rows update each by itself."""
    rng, results, launched = np.random.default_rng(5), [], []
    shapes = [(3, 4), (7,), (), (0, 2), (5_000,), (4, 1, 2)]
    values = [[rng.standard_normal(s).astype(dtype) for s in shapes] for _ in range(5)]
    for most in (launch_all.JOINED, 0):
        monkeypatch.setattr(launch_all, "JOINED", most)
        params = [flow.tensor(x, requires_grad=True) for x in values[0]]
        optimizer = cls(params, lr=0.1, **options)
        op = optimizer._update_rule(optimizer.param_groups[0])[0]
        kernel, count = CALLS[op], []
        monkeypatch.setitem(CALLS, op, lambda *a, kernel=kernel, count=count, **k: count.append(1) or kernel(*a, **k))
        for step, grads in enumerate(values[1:]):
            for i, (p, g) in enumerate(zip(params, grads)):
                p.grad = None if i == 1 and step == 0 else flow.tensor(g)  # the second is a step behind
            optimizer.step()
        monkeypatch.setitem(CALLS, op, kernel)
        launched.append(sum(count))
        results.append([t.numpy() for p in params for t in (p, *optimizer.state[p].values())])
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*results))
    apart = cls in (flow.optim.LAMB, flow.optim.SparseAdam)
    assert launched == ([23, 23] if apart else [15, 23])


def test_parameters_that_share_memory_are_updated_one_after_another(monkeypatch):
    results = []
    for most in (launch_all.JOINED, 0):
        monkeypatch.setattr(launch_all, "JOINED", most)
        buffer, memory = flow.ones(8, dtype=flow.float64), bytearray(32)
        params = [flow.nn.Parameter(x) for x in (buffer[:5], buffer[3:], buffer, buffer[1], flow.ones(2))]
        params += [flow.nn.Parameter(flow.frombuffer(memory, dtype=flow.float32)) for _ in range(2)]
        for p in params:
            p.grad = flow.ones_like(p)
        flow.optim.SGD(params, lr=0.125).step()
        results.append([p.tolist() for p in params])
    assert results[0] == results[1]
    assert results[0][2] == [0.75, 0.625, 0.75, 0.625, 0.625, 0.75, 0.75, 0.75] and results[0][5] == [-0.25] * 8


def test_step_allocates_little_memory():
    params = parameters("float32", [(1_000_000,)])
    for cls, options in (
        (flow.optim.SGD, {}),
        (flow.optim.SGD, {"momentum": 0.9}),
        (flow.optim.Adam, {"amsgrad": True}),
    ):
        optimizer = cls(params, lr=1e-3, **options)
        give(params, 0)
        optimizer.step()
        assert peak(optimizer.step, below=400_000) < 400_000


def test_no_state_without_momentum():
    params = parameters()
    optimizer = flow.optim.SGD(params, lr=0.1)
    give(params, 0)
    optimizer.step()
    assert optimizer.state_dict()["state"] == {} and not any(optimizer.state.values())


def test_parameters_without_gradient_are_unchanged():
    a, b = parameters(shapes=[(2,), (2,)])
    optimizer = flow.optim.Adam([a, b], lr=0.1)
    before = b.tolist()
    a.grad = flow.ones(2, dtype=flow.float64)
    optimizer.step()
    assert b.tolist() == before and b not in optimizer.state and list(optimizer.state_dict()["state"]) == [0]


def test_half_precision():
    p = flow.tensor(np.ones(5, "f2"), requires_grad=True)
    optimizer = flow.optim.Adam([p], lr=0.5, eps=1e-4)
    p.grad = flow.tensor(np.full(5, 2, "f2"))
    optimizer.step()
    assert p.dtype is flow.float16 and np.allclose(p.detach().numpy(), 0.5, atol=1e-2)


def test_infinite_gradients_raise_only_our_warning():
    p = flow.tensor([1.0, 1.0], requires_grad=True)
    for cls in (flow.optim.SGD, flow.optim.Adam):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            p.grad = flow.tensor([float("inf"), float("nan")])
            cls([p], lr=0.1).step()
        assert all(issubclass(w.category, flow.MinflowWarning) for w in caught)


def test_step_increments_versions():
    """Backward after a step is refused: the weights are not those that forward used."""
    w = flow.tensor([2.0], requires_grad=True)
    loss = (w * w).sum()
    w.grad = flow.tensor([1.0])
    flow.optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match=r"(?s)changed in place at .*test_optim.py:\d+"):
        loss.backward()


def test_closure():
    w = flow.tensor([2.0], requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with flow.no_grad():
        losses = [optimizer.step(closure).item() for _ in range(3)]
    assert losses == pytest.approx([4, 2.56, 1.6384])


def test_step_takes_no_learning_rate():
    optimizer = flow.optim.SGD([flow.ones(2, requires_grad=True)], lr=0.1)
    text = r"(?s)SGD.step takes a function .*closure +0\.1.*at test_optim\.py:\d+.*SGD\(model\.parameters\(\), lr="
    with pytest.raises(TypeError, match=text):
        optimizer.step(0.1)


def test_zero_grad():
    w = flow.tensor([2.0], requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=0.1)
    w.grad = flow.tensor([1.0])
    g = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is g and g.tolist() == [0]
    optimizer.zero_grad()
    assert w.grad is None


# ---- groups ------------------------------------------------------------------------------------------------------


def test_groups():
    a, b, c = parameters(shapes=[(2,), (2,), (2,)])
    optimizer = flow.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5, "name": "second"}], lr=0.1, momentum=0.9)
    optimizer.add_param_group({"params": iter([c]), "momentum": 0.0})
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5, 0.1]
    assert [g["momentum"] for g in optimizer.param_groups] == [0.9, 0.9, 0.0]
    before = [p.detach().numpy().copy() for p in (a, b, c)]
    for p in (a, b, c):
        p.grad = flow.ones(2, dtype=flow.float64)
    optimizer.step()
    for p, old, lr in zip((a, b, c), before, (0.1, 0.5, 0.1)):
        np.testing.assert_allclose(p.detach().numpy(), old - lr)
    assert c not in optimizer.state or not optimizer.state[c]
    assert "Parameter Group 1" in repr(optimizer) and "name: second" in repr(optimizer)
    groups = optimizer.state_dict()["param_groups"]
    assert [g["params"] for g in groups] == [[0], [1], [2]]


def test_named_parameters():
    model = nn.Linear(2, 3)
    optimizer = flow.optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is model.weight


W = flow.tensor([1.0], requires_grad=True)


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda: flow.optim.SGD([W], lr=-0.1), ["lr must be at least 0, got -0.1"]),
        (lambda: flow.optim.SGD([W], lr="fast"), ["lr must be a number, got a str"]),
        (lambda: flow.optim.SGD([W], momentum=-1), ["momentum must be at least 0, got -1"]),
        (lambda: flow.optim.SGD([W], weight_decay=float("nan")), ["weight_decay must be at least 0, got nan"]),
        (lambda: flow.optim.SGD([W], nesterov=True), ["nesterov", "momentum"]),
        (lambda: flow.optim.SGD([W], momentum=0.9, dampening=0.1, nesterov=True), ["0.9", "0.1"]),
        (lambda: flow.optim.Adam([W], betas=(0.9, 1.0)), ["betas[1] must be at least 0 and below 1, got 1"]),
        (lambda: flow.optim.Adam([W], betas=(-0.1, 0.9)), ["betas[0] must be at least 0 and below 1, got -0.1"]),
        (lambda: flow.optim.Adam([W], betas=0.9), ["betas", "0.9"]),
        (lambda: flow.optim.AdamW([W], eps=-1), ["AdamW", "eps must be at least 0, got -1"]),
        (lambda: flow.optim.SGD([{"params": [W], "lr": -2}], lr=1), ["lr must be at least 0, got -2"]),
        (
            lambda: flow.optim.SGD([{"params": [W], "clip_grad_max_norm": -2}], lr=1),
            ["clip_grad_max_norm must be at least 0, got -2"],
        ),
        (lambda: flow.optim.SGD([W, W], lr=1), ["position 0", "parameter 1"]),
        (lambda: flow.optim.SGD([{"params": [W]}, {"params": W}], lr=1), ["parameter 0 of group 1 is in group 0"]),
        (lambda: flow.optim.SGD([{"lr": 0.1}], lr=1), ["key 'params'"]),
        (lambda: flow.optim.SGD(W, lr=1), ["one tensor"]),
        (lambda: flow.optim.SGD({"params": [W]}, lr=1), ["one dict"]),
        (lambda: flow.optim.SGD(nn.Linear(2, 2), lr=1), ["module Linear", "model.parameters()"]),
        (lambda: flow.optim.SGD(nn.Linear(2, 2).parameters, lr=1), ["parameters, which was not called"]),
        (lambda: flow.optim.SGD("weights", lr=1), ["str"]),
        (lambda: flow.optim.SGD(3, lr=1), ["int"]),
        (lambda: flow.optim.SGD([nn.Linear(2, 2)], lr=1), ["parameter 0 is a Linear"]),
        (lambda: flow.optim.SGD([W * 2], lr=1), ["parameter 0 was computed"]),
        (lambda: flow.optim.SGD([flow.tensor([1])], lr=1), ["parameter 0 is int64"]),
        (lambda: flow.optim.SGD([{"params": {W}}], lr=1), ["set"]),
        (lambda: flow.optim.SGD([("a", W), ("a", flow.zeros(1))], lr=1), ["one name"]),
        (lambda: flow.optim.Optimizer([W], {"lr": 1}).load_state_dict({"w": 1}), ["param_groups"]),
        (
            lambda: flow.optim.SGD([W], lr=1).load_state_dict(flow.optim.SGD([W, flow.zeros(1)], lr=1).state_dict()),
            ["[2]", "[1]"],
        ),
    ],
)
def test_refused(make, texts):
    with pytest.raises((OptimError, StateError)) as caught:
        make()
    for text in [*texts, "test_optim.py"]:
        assert text in str(caught.value)


def test_base_class_cannot_step():
    W.grad = flow.ones(1)
    with pytest.raises(OptimError, match="no rule"):
        flow.optim.Optimizer([W], {"lr": 1}).step()
    W.grad = None


def test_clip_grad():
    a, b, c = parameters(shapes=[(2,), (3,), (2,)])
    for p in (a, b, c):
        p.grad = flow.full(tuple(p.shape), 10.0, dtype=flow.float64)
    optimizer = flow.optim.SGD([{"params": [a, b], "clip_grad_max_norm": 1.0}, {"params": [c]}], lr=0.1)
    optimizer.clip_grad()
    assert np.hypot(np.linalg.norm(a.grad.numpy()), np.linalg.norm(b.grad.numpy())) == pytest.approx(1)
    assert c.grad.tolist() == [10, 10]
    optimizer.param_groups[1].update(clip_grad_max_norm=2.0, clip_grad_norm_type=float("inf"))
    optimizer.clip_grad()
    assert c.grad.tolist() == pytest.approx([2, 2])


def test_writes_bump_the_mutation_counter():
    optimizer = flow.optim.SGD([W], lr=0.1, momentum=0.9)
    group, before = optimizer.param_groups[0], optimizer._fingerprint()

    def moves(write):
        now = mutation_counter.count
        write()
        return mutation_counter.count > now

    assert not moves(lambda: group.__setitem__("lr", 0.5)) and not moves(lambda: group.update(lr=1.0, momentum=0.9))
    assert optimizer._fingerprint() == before
    assert moves(lambda: group.__setitem__("momentum", 0.5)) and moves(lambda: group.update(weight_decay=0.1))
    assert optimizer._fingerprint() != before
    assert (
        moves(lambda: group.setdefault("new", 1))
        and moves(lambda: group.pop("new"))
        and not moves(lambda: group.pop("new", None))
    )
    assert moves(lambda: group.__ior__({"nesterov": True})) and moves(lambda: group.__delitem__("nesterov"))
    assert moves(lambda: optimizer.add_param_group({"params": [flow.zeros(1)]}))


# ---- state -------------------------------------------------------------------------------------------------------


def test_load_state_dict_copies_and_keeps_the_storage():
    params = parameters(shapes=[(3,)])
    optimizer = flow.optim.SGD(params, lr=0.1, momentum=0.9)
    optimizer._create_states()
    held = optimizer.state[params[0]]["momentum_buffer"]
    given = np.ones(3)
    optimizer.load_state_dict({"state": {0: {"momentum_buffer": given}}, "param_groups": [{"lr": 0.5, "params": [0]}]})
    assert optimizer.state[params[0]]["momentum_buffer"] is held and held.tolist() == [1, 1, 1]
    given[:] = 7
    assert (
        held.tolist() == [1, 1, 1]
        and optimizer.param_groups[0]["lr"] == 0.5
        and optimizer.param_groups[0]["momentum"] == 0.9
    )
    with pytest.raises(StateError, match=r"momentum_buffer of parameter 0 must have shape \(3,\), got \(4,\)"):
        optimizer.load_state_dict(
            {"state": {0: {"momentum_buffer": np.ones(4)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
        )
    assert held.tolist() == [1, 1, 1] and optimizer.param_groups[0]["lr"] == 0.5


def test_unused_initial_state():
    params = parameters(shapes=[(3,)])
    optimizer = flow.optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5)
    optimizer._create_states()
    assert optimizer.state_dict()["state"] == {}


# ---- one rule for eager and traced -------------------------------------------------------------------------------


def test_updates_are_dispatched_to_the_mode():
    """A trace would record the op, its targets and its inputs; nothing else touches the parameters."""

    class Spy(type(MODE.get())):
        seen = []

        def update(self, op, targets, inputs, attrs):
            self.seen.append((op.name, [t.shape for t in targets], len(inputs)))
            super().update(op, targets, inputs, attrs)

        def scalar(self, read):
            self.seen.append(read)
            return super().scalar(read)

    params = parameters(shapes=[(2,), (3,)])
    optimizer = flow.optim.Adam(params, lr=0.1)
    give(params, 0)
    token = MODE.set(Spy())
    try:
        optimizer.step()
    finally:
        MODE.reset(token)
    read, *updates = Spy.seen
    assert updates == [("adam", [(2,), (2,), (2,), ()], 6), ("adam", [(3,), (3,), (3,), ()], 6)]
    optimizer.param_groups[0]["lr"] = 0.25
    assert read() == 0.25


def test_steps_notify_listeners():
    heard = []
    weight = flow.tensor([1.0], requires_grad=True)
    weight.sum().backward()
    optimizer = flow.optim.SGD([weight], lr=0.1)
    with events.subscribe(events.StepDone, heard.append):
        optimizer.step()
        optimizer.step()
    assert [(e.step, e.lr, e.optimizer) for e in heard] == [(1, (0.1,), optimizer), (2, (0.1,), optimizer)]


# ---- silent mistakes ---------------------------------------------------------------------------------------------


def model_and_loss():
    model = nn.Linear(2, 1)
    return model, lambda: model(flow.ones(3, 2)).sum()


def test_steps_without_any_gradient_warn_once():
    """backward() is missing; or the model was recreated, and the optimizer was not."""
    model, loss = model_and_loss()
    new = flow.optim.SGD(model.parameters(), lr=0.1)
    with pytest.warns(MinflowWarning) as caught:
        for _ in range(30):
            loss()
            new.step()
    text = str(caught[0].message)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert text.startswith("SGD.step: none of its 2 parameters has a gradient")
    assert "weight  float32[1, 2]" in text and "flow.optim.SGD(model.parameters(), ...)" in text
    assert f"test_optim.py:{caught[0].lineno}" in text
    old = flow.optim.Adam(model.parameters())
    loss().backward()
    old.step()
    _other, its_loss = model_and_loss()
    with pytest.warns(MinflowWarning, match="Adam.step: none of its 2 parameters has a gradient") as caught:
        for _ in range(30):
            old.zero_grad()
            its_loss().backward()
            old.step()
    assert len(caught) == 1 and old._steps_taken == 31


def test_deliberate_steps_without_gradient_do_not_warn():
    """Warnings are errors in tests."""
    model, loss = model_and_loss()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    optimizer.step()  # the first step, so that a scheduler may step
    for _ in range(3):
        loss().backward()
        optimizer.step()
        for _ in range(5):  # stepped only every few iterations
            optimizer.zero_grad()
            optimizer.step()
    model.requires_grad_(False)
    frozen = flow.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        frozen.step()
    looked_at = flow.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    schedule = flow.optim.lr_scheduler.StepLR(looked_at, 5)
    for _ in range(20):  # no training: the learning rates are plotted
        looked_at.step()
        schedule.step()


@pytest.mark.parametrize("set_to_none", [True, False])
def test_valid_zero_grad_positions_do_not_warn(set_to_none):
    model, loss = model_and_loss()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for clear in (optimizer.zero_grad, model.zero_grad):
        for _ in range(3):  # after step() instead of before backward()
            loss().backward()
            optimizer.step()
            clear(set_to_none)
    for _ in range(2):  # twice with one gradient
        optimizer.step()


def test_scheduled_optimizer_of_another_model_warns():
    _model, loss = model_and_loss()
    optimizer = flow.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    schedule = flow.optim.lr_scheduler.StepLR(optimizer, 5)
    with pytest.warns(MinflowWarning, match="SGD.step: none of its 2 parameters has a gradient") as caught:
        for _ in range(20):
            loss().backward()
            optimizer.step()
            schedule.step()
    assert len(caught) == 1
