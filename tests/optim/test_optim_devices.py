"""Optimizers of parameters on another device: state and steps stay there, and the numbers are the CPU's."""

import inspect

import numpy as np
import pytest

import minflow as flow
from minflow import optim
from tests.strict_backend import StrictArray, counted

NAMES = [name for name in dir(optim) if name != "Optimizer" and inspect.isclass(getattr(optim, name))]
KINDS = {name: kind for name in NAMES if issubclass(kind := getattr(optim, name), optim.Optimizer)}
KINDS = {name: kind for name, kind in KINDS.items() if name not in ("Muon", "Adafactor")}  # they read norms
pytestmark = pytest.mark.usefixtures("reference_kernels")


def parameters(device):
    values = np.linspace(-2, 2, 12, dtype="float32")
    return [flow.tensor(x, device=device, requires_grad=True) for x in (values.reshape(4, 3), values[:3], values[5])]


def closure_of(parameters):
    """Set the gradients of sum (p - 1)**2 by hand."""

    def closure():
        with flow.no_grad():
            for p in parameters:
                p.grad = (p - 1) * 2
            return sum([((p - 1) ** 2).sum() for p in parameters])

    return closure


def trained(kind, device, **options):
    """(optimizer, parameters, closure) after three steps."""
    mine = parameters(device)
    optimizer, closure = kind(mine, lr=0.1, **options), closure_of(mine)
    for _ in range(3):
        optimizer.step(closure)
    return optimizer, mine, closure


class Training(flow.nn.Graph):
    """A step of an optimizer on two parameters, whose gradients differ in each step."""

    def __init__(self, kind, device):
        super().__init__()
        self.model = flow.nn.Linear(3, 2)
        with flow.no_grad():
            self.model.weight.copy_(flow.tensor(np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)))
            self.model.bias.fill_(0.5)
        self.model.to(device)
        self.config.exact(True)
        self.add_optimizer(kind(self.model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).square().sum()
        loss.backward()
        return loss


def check_devices(optimizer, cuda):
    """Check that numbers of a state, which rules read, are on the CPU, and all else on the device."""
    held = [(name, x) for state in optimizer.state.values() for name, x in state.items()]
    held += [("", x) for _, part in held if isinstance(part, list) for x in part]
    devices = {(x.device, name in optimizer._scalar_states) for name, x in held if isinstance(x, flow.Tensor)}
    assert devices <= {(cuda, False), (flow.device("cpu"), True)}
    assert (cuda, False) in devices or type(optimizer) is optim.SGD


def equal(ours, others):
    for p, q in zip(ours, others, strict=True):
        assert isinstance(p.array, StrictArray)
        assert p.detach().cpu().numpy().tobytes() == q.detach().numpy().tobytes()


@pytest.mark.parametrize("name", KINDS)
def test_steps_on_a_device_are_those_on_the_cpu(name, cuda):
    optimizer, mine, _ = trained(KINDS[name], cuda)
    _, theirs, _ = trained(KINDS[name], "cpu")
    equal(mine, theirs)
    check_devices(optimizer, cuda)


@pytest.mark.parametrize("name", KINDS)
def test_a_loaded_state_is_on_the_device_of_its_parameter(name, cuda):
    there, theirs, closure = trained(KINDS[name], "cpu")
    mine = [flow.tensor(p.detach().numpy(), device=cuda, requires_grad=True) for p in theirs]
    optimizer = KINDS[name](mine, lr=0.1)
    optimizer.load_state_dict(there.state_dict())
    check_devices(optimizer, cuda)
    optimizer.load_state_dict(there.state_dict())  # into the tensors that it has now
    optimizer.step(closure_of(mine))
    there.step(closure)
    equal(mine, theirs)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "LBFGS"])
def test_a_step_reads_nothing_to_the_host(name, cuda):
    optimizer, _, closure = trained(KINDS[name], cuda)
    closure()
    with counted() as copies:
        optimizer.step()
    assert not copies


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("LBFGS", "Custom")])
def test_steps_of_a_graph_on_a_device_are_those_on_the_cpu(name, cuda):
    def run(device):
        graph, x = Training(KINDS[name], device), np.linspace(0, 1, 12, dtype="float32").reshape(4, 3)
        graph(flow.tensor(x, device=device))
        with counted() as copies:
            losses = [graph(flow.tensor(x * k, device=device)) for k in (1.0, 2.0, 0.5)]
        return [t.detach().cpu().numpy().tobytes() for t in (*losses, *graph.model.parameters())], copies

    there, copies = run(cuda)
    assert there == run("cpu")[0] and not copies


def test_line_search_on_a_device(cuda):
    _, mine, _ = trained(optim.LBFGS, cuda, line_search_fn="strong_wolfe")
    _, theirs, _ = trained(optim.LBFGS, "cpu", line_search_fn="strong_wolfe")
    equal(mine, theirs)


class Custom(optim.Optimizer):
    """A program of its own, as in PyTorch."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for p in self._all_parameters():
            state = self.state[p]
            state.setdefault("step", flow.tensor(0.0))
            state.setdefault("seen", flow.zeros(p.shape, dtype=flow.int64, device=p.device))
            state.setdefault("mean", flow.zeros(p.shape, device=p.device))


def test_a_custom_state_follows_the_parameter_but_for_its_step(cuda):
    there = Custom(parameters("cpu"))
    there.step()
    (p,) = mine = [flow.zeros(4, 3, dtype=flow.float64, device=cuda)]
    optimizer = Custom(mine)
    saved = there.state_dict()
    optimizer.load_state_dict({"state": {0: saved["state"][0]}, "param_groups": [{"lr": 0.1, "params": [0]}]})
    state = optimizer.state[p]
    assert (state["step"].device.type, state["step"].dtype) == ("cpu", flow.float32)
    assert (state["seen"].device, state["seen"].dtype) == (cuda, flow.int64)
    assert (state["mean"].device, state["mean"].dtype) == (cuda, flow.float64)
