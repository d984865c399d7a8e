"""Muon and Adafactor against PyTorch: values, states, and states that continue in the other library."""

import numpy as np
import pytest

import minflow as flow

torch = pytest.importorskip("torch")

SHAPES = {"Muon": [(5, 3), (3, 5), (4, 4)], "Adafactor": [(5, 3), (7,), (), (2, 3, 4), (1, 6)]}
CASES = [
    ("Muon", {}),
    ("Muon", {"nesterov": False, "momentum": 0.5, "weight_decay": 0.0, "ns_steps": 3}),
    ("Muon", {"adjust_lr_fn": "match_rms_adamw", "eps": 0.5, "ns_coefficients": (2.0, -1.5, 0.5)}),
    ("Adafactor", {}),
    ("Adafactor", {"beta2_decay": -0.5, "d": 2.0, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"eps": (1e-4, 0.5)}),
]


def pair(name, options, dtype):
    rng = np.random.default_rng(2)
    arrays = [np.asarray(rng.standard_normal(shape), dtype) for shape in SHAPES[name]]
    made = []
    for lib in (flow, torch):
        params = [lib.tensor(a.copy(), requires_grad=True) for a in arrays]
        made.append((params, getattr(lib.optim, name)(params, lr=0.05, **options)))
    return made


def run(made, steps):
    for t in steps:
        rng = np.random.default_rng(t)
        grads = [np.asarray(rng.standard_normal(tuple(p.shape))) for p in made[0][0]]
        for lib, (params, optimizer) in zip((flow, torch), made):
            for p, g in zip(params, grads):
                p.grad = lib.tensor(g).to(p.dtype)
            optimizer.step()


def check(made, tolerance):
    (mine, ours), (theirs, other) = made
    for p, q in zip(mine, theirs):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance / 10)
        assert list(ours.state[p]) == list(other.state[q])
        for name, x in ours.state[p].items():
            y = other.state[q][name]
            assert tuple(x.shape) == tuple(y.shape) and str(x.dtype)[8:] == str(y.dtype)[6:]
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps(name, options, dtype):
    made = pair(name, options, dtype)
    run(made, range(5))
    # Newton-Schulz iterations run in bfloat16, with 8 bits
    check(made, 2e-3 if name == "Muon" else 2e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_state_of_pytorch_continues(name, options):
    made = pair(name, options, "float64")
    run(made, range(3))
    saved = made[1][1].state_dict()
    fresh = pair(name, options, "float64")
    for p, q in zip(fresh[0][0], made[1][0]):
        p.data = flow.tensor(q.detach().numpy().copy())
    states = {n: {k: flow.tensor(x.numpy()) for k, x in state.items()} for n, state in saved["state"].items()}
    fresh[0][1].load_state_dict({**saved, "state": states})
    continued = [fresh[0], made[1]]
    run(continued, range(3, 6))
    check(continued, 2e-3 if name == "Muon" else 1e-12)
