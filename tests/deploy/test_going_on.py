"""A training graph saved after some steps goes on in a process that never saw its source: equal in all bits."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.deploy import saving

s = flow.optim.lr_scheduler

# What a process that goes on runs: the folder and the data are all that it has.
GOING_ON = """
import json, sys
import numpy as np
import minflow as flow

def bits(x):
    return np.ascontiguousarray(x.numpy()).tobytes().hex()

def going_on(folder):
    graph, data = flow.load_graph(folder), np.load(folder + ".npz")
    rows = []
    for step in range(5):
        outs = graph(*[flow.tensor(data[f"{step}.{i}"]) for i in range(len(data.files) // 5)])
        rows.append({"outs": [bits(x) for x in (outs if isinstance(outs, tuple) else [outs])],
                     "rates": [list(o.learning_rates()) for o, _ in graph.optimizers]})
    state = graph.state_dict()
    tensors = {f"{name}.{key}": bits(x) for name, part in state.items() if isinstance(part, dict)
               for key, x in part.items() if hasattr(x, "numpy")}
    tensors |= {name: bits(x) for name, x in state.items() if hasattr(x, "numpy")}
    return {"rows": rows, "tensors": tensors, "steps": graph._steps, "config": repr(graph.config)}

print(json.dumps({folder: going_on(folder) for folder in sys.argv[1:]}))
"""


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


class Classify(nn.Graph):
    def __init__(self, model, optimizer, scheduler=None, accumulation=1):
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()
        self.add_optimizer(optimizer, lr_sch=scheduler)
        if accumulation > 1:
            self.config.set_gradient_accumulation_steps(accumulation)

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss


class Game(nn.Graph):
    """Two models against each other, as a GAN's, each with an optimizer and a schedule of its own."""

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
    return Classify(model, optimizer, schedule and schedule(optimizer), accumulation), images


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
    "momentum and a schedule": lambda: classify(o.SGD, 1, lambda p: s.SequentialLR(
        p, [s.LinearLR(p, 0.1, total_iters=3), s.StepLR(p, 2, 0.5)], [3]), lr=0.1, momentum=0.9, dampening=0.1),
    "accumulation": lambda: classify(o.AdamW, 2, lambda p: s.OneCycleLR(p, 0.1, 12, cycle_momentum=False), lr=0.1),
    "two optimizers": game,
    "recomputed activations": recomputed,
}


def bits(x):
    return np.ascontiguousarray(x.numpy()).tobytes().hex()


def tensors_of(graph):
    """Everything that a step changes, by name; the generator's state too."""
    state = graph.state_dict()
    inner = {f"{member}.{key}": bits(x) for member, part in state.items() if isinstance(part, dict)
             for key, x in part.items() if hasattr(x, "numpy")}
    return inner | {key: bits(x) for key, x in state.items() if hasattr(x, "numpy")}


def stepped(graph, batch):
    outs = graph(*map(flow.tensor, batch))
    return {"outs": [bits(x) for x in (outs if isinstance(outs, tuple) else [outs])],
            "rates": [list(o.learning_rates()) for o, _ in graph.optimizers]}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Case -> (what five further steps gave here, what they gave in another process)."""
    top, here = tmp_path_factory.mktemp("saved"), {}
    for number, (name, make) in enumerate(CASES.items()):
        flow.manual_seed(number)
        graph, batch = make()
        for step in range(5):
            stepped(graph, batch(step))
        folder, before = str(top / f"graph{number}"), tensors_of(graph)
        flow.save(graph, folder)
        assert tensors_of(graph) == before
        batches = {step: batch(step + 5) for step in range(5)}
        np.savez(f"{folder}.npz", **{f"{step}.{i}": x for step, xs in batches.items() for i, x in enumerate(xs)})
        rows = [stepped(graph, xs) for xs in batches.values()]
        here[name] = folder, {"rows": rows, "tensors": tensors_of(graph), "steps": 10, "config": repr(graph.config)}
    command = [sys.executable, "-c", GOING_ON, *[folder for folder, _ in here.values()]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=top, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    return {name: (expected, there[folder]) for name, (folder, expected) in here.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_process_without_the_classes_goes_on(both, name):
    here, there = both[name]
    assert there["rows"] == here["rows"]
    assert there["tensors"] == here["tensors"] and len(here["tensors"]) > 20
    assert there == here


def test_a_loaded_graph_is_saved_again(tmp_path):
    """The second copy goes on as the first."""
    graph, batch = CASES["two optimizers"]()
    stepped(graph, batch(0))
    flow.save(graph, tmp_path / "first")
    loaded = flow.load_graph(tmp_path / "first")
    first = stepped(loaded, batch(1))
    flow.save(loaded, tmp_path / "second")
    expected = stepped(loaded, batch(2))
    assert stepped(flow.load_graph(tmp_path / "second"), batch(2)) == expected != first


@pytest.mark.parametrize("name", ["more", "generator.0.weight-momentum_buffer"])
def test_weights_that_nothing_holds(name, tmp_path, monkeypatch):
    graph, batch = CASES["two optimizers"]()
    stepped(graph, batch(0))
    write = saving.folder.write
    monkeypatch.setattr(saving.folder, "write", lambda path, graph, meta, arrays: write(
        path, graph, meta, arrays | {name: np.zeros((4, 3), "float32")}))
    flow.save(graph, tmp_path / "saved")
    with pytest.raises(flow.GraphFormatError, match=f"weights.safetensors must be(?s:.*){name}"):
        flow.load_graph(tmp_path / "saved")


def test_a_tensor_named_as_a_state_of_the_optimizer(tmp_path):
    model = nn.Linear(3, 2)
    model.register_buffer("weight-momentum_buffer", flow.ones(1))

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    graph = Train()
    graph(flow.ones(2, 3))
    with pytest.raises(flow.GraphError, match=r"model.weight-momentum_buffer names a tensor of a module and"):
        flow.save(graph, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_other_accumulation_is_refused(tmp_path):
    """The saved gradients are divided by the number of parts that there was."""
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
    """A parameter is what a layer is called with, a buffer changes between two calls."""

    def __init__(self):
        super().__init__()
        self.query, self.layer = nn.Parameter(flow.ones(4, 3)), nn.Linear(3, 2)
        self.register_buffer("last", flow.zeros(4, 3))

    def forward(self, x):
        before = self.layer(self.last)
        self.last.add_(x)
        return self.layer(self.query) * self.layer(self.last) + before


class Asking(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.1))

    def build(self, x):
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        return loss


def test_layers_called_with_parameters_and_buffers(tmp_path):
    graph, (x, _) = Asking(Queries()), points(0)
    stepped(graph, [x])
    flow.save(graph, tmp_path / "saved")
    loaded = flow.load_graph(tmp_path / "saved")
    for _ in range(3):
        assert stepped(loaded, [x]) == stepped(graph, [x])
    state = tensors_of(graph)
    assert tensors_of(loaded) == state and "model.last" in state


OUTSIDE = nn.Parameter(flow.ones(2, 3))


class Image(nn.Graph):
    """Trains a parameter that no module has."""

    def __init__(self):
        super().__init__()
        self.model = nn.Linear(3, 2)
        self.add_optimizer(flow.optim.Adam([OUTSIDE], lr=0.1))

    def build(self):
        loss = (self.model(OUTSIDE) ** 2).mean()
        loss.backward()
        return loss


def test_a_parameter_outside_of_all_modules_is_refused(tmp_path):
    graph = Image()
    graph()
    with pytest.raises(flow.GraphError, match=r"belongs to no module(?s:.*)float32\[2, 3\](?s:.*)nn.Parameter"):
        flow.save(graph, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
