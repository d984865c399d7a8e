"""A training graph saved after some steps continues in a process without its source: equal in all bits."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from tests.deploy.stepping import batches, resume_steps, state_of, stepped
from tests.graph_models import Step

s = flow.optim.lr_scheduler


class Block(nn.Module):
    """Batch norm, dropout, and a parameter that two layers share."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.drop, self.first, self.second = nn.Dropout(0.4), nn.Linear(48, 6), nn.Linear(6, 6)
        self.third = nn.Linear(6, 6)
        self.third.weight = self.second.weight

    def forward(self, x):
        x = self.drop(self.norm(self.conv(x)).relu()).flatten(1)
        return self.third(self.second(self.first(x).relu()))


class Game(nn.Graph):
    """Two adversarial models, as in a GAN, each with its own optimizer and schedule."""

    def __init__(self, generator, critic, first, second):
        super().__init__()
        self.generator, self.critic = generator, critic
        self.add_optimizer(first, lr_sch=s.CosineAnnealingLR(first, 7))
        self.add_optimizer(second, lr_sch=s.WarmupLR(second, 0.1, 3))

    def build(self, noise, real):
        made = self.generator(noise)
        fooled = nn.functional.softplus(-self.critic(made)).mean()
        seen = nn.functional.softplus(self.critic(made.detach())).mean()
        loss = fooled + seen + nn.functional.softplus(-self.critic(real)).mean()
        loss.backward()
        return loss, fooled


def images(step):
    random = np.random.default_rng(step)
    return random.standard_normal((4, 2, 4, 4)).astype("float32"), random.integers(0, 6, 4)


def points(step):
    random = np.random.default_rng(step)
    return random.standard_normal((4, 3)).astype("float32"), random.standard_normal((4, 2)).astype("float32")


def classify(kind, accumulation=1, schedule=None, **options):
    model = Block()
    biases = [p for p in model.parameters() if p.ndim == 1]
    weights = [p for p in model.parameters() if p.ndim > 1]
    optimizer = kind([{"params": weights, "clip_grad_max_norm": 0.5}, {"params": biases, "lr": 0.02}], **options)
    return Step(
        model,
        optimizer,
        lambda x, y: nn.functional.cross_entropy(model(x), y),
        lr_sch=schedule and schedule(optimizer),
        set_gradient_accumulation_steps=accumulation,
    ), images


def game():
    generator = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    critic = nn.Sequential(nn.Linear(2, 4), nn.LeakyReLU(), nn.Dropout(0.3), nn.Linear(4, 1))
    first = flow.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.9))
    second = flow.optim.SGD(critic.parameters(), lr=0.1, momentum=0.9)
    return Game(generator, critic, first, second), points


def recomputed():
    graph, batch = classify(flow.optim.LAMB, lr=0.01, weight_decay=0.1)
    graph.model.drop.to(nn.graph.GraphModule).activation_checkpointing = True
    return graph, batch


o = flow.optim
CASES = {
    "momentum and a schedule": lambda: classify(
        o.SGD,
        1,
        lambda p: s.SequentialLR(p, [s.LinearLR(p, 0.1, total_iters=3), s.StepLR(p, 2, 0.5)], [3]),
        lr=0.1,
        momentum=0.9,
        dampening=0.1,
    ),
    "accumulation": lambda: classify(o.AdamW, 2, lambda p: s.OneCycleLR(p, 0.1, 12, cycle_momentum=False), lr=0.1),
    "two optimizers": game,
    "recomputed activations": recomputed,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Dictionary from case to (results of five further steps here, and in another process)."""
    top, here = tmp_path_factory.mktemp("saved"), {}
    for number, (name, make) in enumerate(CASES.items()):
        flow.manual_seed(number)
        graph, batch = make()
        for step in range(5):
            stepped(graph, batch(step))
        folder, before = str(top / f"graph{number}"), state_of(graph)
        flow.save(graph, folder)
        assert state_of(graph) == before
        np.savez(f"{folder}.npz", **{f"{step}.{i}": x for step in range(5) for i, x in enumerate(batch(step + 5))})
        here[name] = folder, resume_steps(graph, batches(f"{folder}.npz"))
    command = [sys.executable, "-m", "tests.deploy.stepping", *[folder for folder, _ in here.values()]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=top, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    return {name: (expected, there[folder]) for name, (folder, expected) in here.items()}


@pytest.mark.parametrize("name", CASES)
def test_process_without_the_classes_resumes(both, name):
    here, there = both[name]
    for what in here:
        assert there[what] == here[what], what
    assert here["steps"] == 10 and len(here["state"]) > 5


def test_loaded_graph_can_be_saved(tmp_path):
    """The second copy continues like the first."""
    graph, batch = CASES["two optimizers"]()
    stepped(graph, batch(0))
    flow.save(graph, tmp_path / "first")
    loaded = flow.load_graph(tmp_path / "first")
    first = stepped(loaded, batch(1))
    flow.save(loaded, tmp_path / "second")
    expected = stepped(loaded, batch(2))
    assert stepped(flow.load_graph(tmp_path / "second"), batch(2)) == expected != first


def test_tensor_named_like_an_optimizer_state(tmp_path):
    model = nn.Linear(3, 2)
    model.register_buffer("weight-momentum_buffer", flow.ones(1))

    graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    graph(flow.ones(2, 3))
    with pytest.raises(flow.GraphError, match=r"model.weight-momentum_buffer names a tensor of a module and"):
        flow.save(graph, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_other_accumulation_is_refused(tmp_path):
    """The saved gradients are divided by the number of micro-batches."""
    graph, batch = CASES["accumulation"]()
    stepped(graph, batch(0))
    flow.save(graph, tmp_path / "saved")
    loaded = flow.load_graph(tmp_path / "saved")
    loaded.config.set_gradient_accumulation_steps(4)
    with pytest.raises(flow.GraphError, match="saved with 2 gradient accumulation steps(?s:.*)now +4"):
        stepped(loaded, batch(1))
    loaded.config.set_gradient_accumulation_steps(2)
    stepped(loaded, batch(1))


class Queries(nn.Module):
    """A layer is called with a parameter, and a buffer changes between two calls."""

    def __init__(self):
        super().__init__()
        self.query, self.layer = nn.Parameter(flow.ones(4, 3)), nn.Linear(3, 2)
        self.register_buffer("last", flow.zeros(4, 3))

    def forward(self, x):
        before = self.layer(self.last)
        self.last.add_(x)
        return self.layer(self.query) * self.layer(self.last) + before


def test_layers_called_with_parameters_and_buffers(tmp_path):
    model, (x, _) = Queries(), points(0)
    graph = Step(model, flow.optim.Adam(model.parameters(), lr=0.1))
    stepped(graph, [x])
    flow.save(graph, tmp_path / "saved")
    loaded = flow.load_graph(tmp_path / "saved")
    for _ in range(3):
        assert stepped(loaded, [x]) == stepped(graph, [x])
    state = state_of(graph)
    assert state_of(loaded) == state and "last" in state["model"]


def test_parameter_outside_all_modules_is_refused(tmp_path):
    """For example an image whose pixels a step changes."""
    model, outside = nn.Linear(3, 2), nn.Parameter(flow.ones(2, 3))
    graph = Step(model, flow.optim.Adam([outside], lr=0.1), lambda: model(outside).square().mean())
    graph()
    with pytest.raises(flow.GraphError, match=r"belongs to no module(?s:.*)float32\[2, 3\](?s:.*)nn.Parameter"):
        flow.save(graph, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
