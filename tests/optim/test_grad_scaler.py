"""GradScaler: skipped steps and the scale are PyTorch's; on a device they have the CPU's bits, and nothing is read."""

import copy
import pickle

import numpy as np
import pytest

import minflow as flow
from minflow import nn, optim
from tests.optim.test_optim_devices import KINDS
from tests.strict_backend import UPLOADS, counted

pytestmark = pytest.mark.usefixtures("reference_kernels")
OVERFLOWS = 0, 1, 4  # steps


def parameters(device):
    values = np.linspace(-2, 2, 12, dtype="float32")
    return [flow.tensor(x, device=device, requires_grad=True) for x in (values.reshape(4, 3), values[:3])]


def loss_of(parameters):
    return sum([((p - 1) ** 2).sum() for p in parameters])


def trained(kind, device, steps=8, unscale=False, **options):
    """(parameters, optimizer, scaler, copies to and from the device in the last steps)."""
    mine = parameters(device)
    optimizer = kind(mine, lr=0.1)
    scaler = flow.amp.GradScaler(device, init_scale=16.0, growth_interval=2, **options)
    uploads = 0
    with counted() as copies:
        for n in range(steps):
            before = UPLOADS.total()
            optimizer.zero_grad()
            scaler.scale(loss_of(mine)).backward()
            if n in OVERFLOWS:
                mine[0].grad.mul_(float("inf"))
            if unscale:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(mine, 1.0)
            scaler.step(optimizer)
            scaler.update()
            uploads = UPLOADS.total() - before
    return mine, optimizer, scaler, dict(copies), uploads


def bits(tensors):
    return [t.detach().cpu().numpy().tobytes() for t in tensors]


def state_bits(optimizer):
    return [bits(state.values()) for state in optimizer.state_dict()["state"].values()]


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("LBFGS", "Custom")])
def test_a_device_has_the_bits_of_the_cpu(name, unscale, cuda):
    there, there_optimizer, scaler, copies, uploads = trained(KINDS[name], "cuda", unscale=unscale)
    here, optimizer, expected, *_ = trained(KINDS[name], "cpu", unscale=unscale)
    assert not copies and not uploads
    assert bits(there) == bits(here) and scaler.state_dict() == expected.state_dict()
    states = [
        [x for part in o.state_dict()["state"].values() for x in part.values()] for o in (there_optimizer, optimizer)
    ]
    assert bits(states[0]) == bits(states[1])


def test_skipped_steps_are_no_steps():
    """The scale falls after each; parameters and state are those of a program without these steps."""
    mine, optimizer, scaler, *_ = trained(optim.Adam, "cpu")
    theirs = parameters("cpu")
    other = optim.Adam(theirs, lr=0.1)
    for n in range(8):
        if n not in OVERFLOWS:
            other.zero_grad()
            loss_of(theirs).backward()
            other.step()
    assert bits(mine) == bits(theirs)
    assert [float(state["step"]) for state in optimizer.state.values()] == [5.0, 5.0]
    assert scaler.get_scale() == 16 / 2 / 2 * 2 / 2 * 2 and scaler.state_dict()["_growth_tracker"] == 1


def test_the_scale_stays_finite(cuda):
    for device in ("cpu", "cuda"):
        p = flow.ones(1, device=device, requires_grad=True)
        scaler = flow.amp.GradScaler(device, init_scale=2.0**127, growth_interval=1)
        for _ in range(2):
            p.grad = flow.ones(1, device=device)
            scaler.step(optim.SGD([p], lr=0.1))
            scaler.update()
        assert scaler.get_scale() == 2.0**127


def test_an_optimizer_without_a_rule_reads_the_flag(cuda):
    mine, _, scaler, *_ = trained(optim.SGD, "cuda", steps=1)
    optimizer = optim.LBFGS(mine, lr=0.1)
    before = bits(mine)
    for p in mine:
        p.grad = flow.full_like(p, float("nan"))
    assert scaler.step(optimizer) is None and bits(mine) == before


def test_states_continue():
    *_, scaler, _, _ = trained(optim.SGD, "cpu")
    other = flow.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    for twin in (other, copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))):
        assert (
            twin.state_dict()
            == scaler.state_dict()
            == dict(scale=8.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2, _growth_tracker=1)
        )
    with pytest.raises(flow.StateError, match="has no scale, growth_factor"):
        other.load_state_dict({})
    scaler.update(4.0)
    assert scaler.get_scale() == 4.0 and [float(x) for x in scaler.scale([flow.ones(()), flow.ones(())])] == [4.0, 4.0]


def test_without_a_gpu_it_does_nothing():
    p = flow.ones(2, requires_grad=True)
    scaler, optimizer = flow.amp.GradScaler(), optim.SGD([p], lr=0.5)
    loss = p.sum()
    assert not scaler.is_enabled() and scaler.scale(loss) is loss and scaler.get_scale() == 1.0
    loss.backward()
    scaler.unscale_(optimizer), scaler.step(optimizer), scaler.update()
    assert p.tolist() == [0.5, 0.5] and scaler.state_dict() == {}
    scaler.load_state_dict({})


MISTAKES = {
    "unscale_.. was called twice": lambda scaler, optimizer: (scaler.unscale_(optimizer), scaler.unscale_(optimizer)),
    "unscale_.. was called after step": lambda scaler, optimizer: (
        scaler.step(optimizer),
        scaler.flags.clear(),
        scaler.unscale_(optimizer),
    ),
    "step.. was called twice": lambda scaler, optimizer: (scaler.step(optimizer), scaler.step(optimizer)),
    "no step since the last update": lambda scaler, optimizer: scaler.update(),
    "has no gradients": lambda scaler, optimizer: (optimizer.zero_grad(), scaler.step(optimizer)),
    "a closure": lambda scaler, optimizer: scaler.step(optimizer, lambda: 0.0),
    "gradients in float16": lambda scaler, optimizer: scaler.step(half()),
}


def half():
    p = flow.ones(2, dtype=flow.float16, requires_grad=True)
    p.sum().backward()
    return optim.SGD([p], lr=0.1)


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes(message):
    p = flow.ones(2, requires_grad=True)
    p.sum().backward()
    with pytest.raises(flow.GradError, match=message):
        MISTAKES[message](flow.amp.GradScaler("cpu"), optim.SGD([p], lr=0.1))
    with pytest.raises(flow.OptimError, match="factors must be above 1 and below 1, got 0.5 and 2"):
        flow.amp.GradScaler("cpu", growth_factor=0.5, backoff_factor=2)
