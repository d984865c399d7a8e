"""Mistakes that run: each is reported once, with its values; similar correct programs are not."""

import gc
import runpy
from pathlib import Path

import numpy as np
import pytest
from lessons import warned

import minflow as flow
from minflow import nn
from minflow.core.messages.training_warnings import MAX_LIVE_LOSSES, check_state
from minflow.core.source_location import warned_lines

PROGRAMS = Path(__file__).parents[1] / "programs"
TRAINS = """
flow.manual_seed(0)
x, y = flow.randn(32, 6), flow.arange(32) % 3
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
def train(optimizer, loss_of, steps=4):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
"""
LESSONS = [
    (
        "a rate that is too high",
        [
            "the loss is nan",
            "learning rate  SGD 1e+30",
            "began in       matmul in Sequential.3",
            "a smaller learning rate",
        ],
        """
train(flow.optim.SGD(model.parameters(), lr=1e30), lambda: F.cross_entropy(model(x), y))
""",
    ),
    (
        "log of 0",
        [
            "the loss is inf",
            "began in       log, created at lesson.py:19",
            "float32[32, 3] from 0 to",
            "clamp(min=1e-6)",
            "SGD 0.1",
        ],
        """
def loss_of():
    p = F.relu(model(x))
    return -(p.log()).mean()
train(flow.optim.SGD(model.parameters(), lr=0.1), loss_of)
""",
    ),
    (
        "0 divided by 0",
        ["the loss is nan", "began in       div, created at lesson.py:17", "a divisor that is not 0"],
        """
train(flow.optim.SGD(model.parameters(), lr=0.1), lambda: (model(x) * 0 / (model(x) * 0)).mean())
""",
    ),
    (
        "NaN in the data",
        [
            "began in       matmul in Sequential.0",
            "its input      has 1 NaN and 0 inf among 192 elements",
            "isfinite(x)",
        ],
        """
x[3, 2] = float("nan")
train(flow.optim.SGD(model.parameters(), lr=0.1), lambda: F.cross_entropy(model(x), y))
""",
    ),
    (
        "NaN in a parameter",
        ["began in       bias float32[3], which has 3 NaN and 0 inf among 3 elements", "a smaller learning rate"],
        """
with flow.no_grad():
    model[3].bias.fill_(float("nan"))
train(flow.optim.Adam(model.parameters(), lr=0.1), lambda: F.cross_entropy(model(x), y))
""",
    ),
    (
        "a root without a slope",
        [
            "gradient of a parameter is not finite, though the loss was",
            "96 NaN and 0 inf among 96",
            "learning rate  0.1",
        ],
        """
train(flow.optim.SGD(model.parameters(), lr=0.1), lambda: (model(x) * 0).square().sum().sqrt(), 1)
""",
    ),
    (
        "eval() forgotten",
        ["Sequential is called under no_grad in training mode", "2 (Dropout)", "model.eval()", "lesson.py:20"],
        """
train(flow.optim.SGD(model.parameters(), lr=0.1), lambda: F.cross_entropy(model(x), y))
with flow.no_grad():
    for part in x.split(8):
        model(part)
""",
    ),
    (
        "eval() forgotten with batch norm",
        ["called under no_grad in training mode: batch norm", "1 (BatchNorm1d)"],
        """
model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
train(flow.optim.SGD(model.parameters(), lr=0.1), lambda: F.cross_entropy(model(x), y))
with flow.no_grad():
    print(sum((model(part).argmax(1) == 0).sum().item() for part in x.split(8)))
""",
    ),
    (
        "a layer replaced after the optimizer",
        ["2 parameters of Sequential get gradients", "never train; 2 that it holds are no longer", "3.weight, 3.bias"],
        """
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
model[3] = nn.Linear(16, 3)
train(optimizer, lambda: F.cross_entropy(model(x), y))
""",
    ),
    (
        "a layer that no optimizer was given",
        ["2 parameters of Sequential get gradients", "3.weight, 3.bias", "requires_grad_(False)"],
        """
train(flow.optim.SGD(model[0].parameters(), lr=0.1), lambda: F.cross_entropy(model(x), y))
""",
    ),
    (
        "losses summed up with their tapes",
        [f"the last {MAX_LIVE_LOSSES} losses are all kept", "loss.item()", "lesson.py:20"],
        """
optimizer, total = flow.optim.SGD(model.parameters(), lr=0.1), 0
for _ in range(200):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss
""",
    ),
    (
        "NaN in a graph",
        ["a training step returned nan", "learning rate  1e+30", "step           2"],
        """
class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=1e30))
    def build(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        return loss
graph = Train()
for _ in range(4):
    graph(x, y)
""",
    ),
    (
        "NaN in a job",
        ["job train: a training step returned inf", "learning rate  1e+30", "at lesson.py:18"],
        """
import minflow.typing as tp
@flow.global_function(type="train")
def train(x: tp.Numpy.Placeholder((4, 6))) -> tp.Numpy:
    dense = flow.layers.dense(x, 3, name="of_notices", kernel_initializer=flow.ones_initializer())
    loss = flow.math.reduce_mean(flow.math.square(dense))
    flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [1e30])).minimize(loss)
    return loss
for _ in range(4):
    train(np.ones((4, 6), "float32"))
flow.clear_default_session()
""",
    ),
]


@pytest.fixture(autouse=True)
def anew():
    warned_lines().clear()
    flow.notices(True)
    gc.collect()
    yield
    flow.notices(True)


def told_by(program: str, tmp_path) -> list[str]:
    return [str(w.message) for w in warned(TRAINS + program, tmp_path) if issubclass(w.category, flow.MinflowWarning)]


@pytest.mark.parametrize(("what", "says", "program"), LESSONS, ids=[lesson[0] for lesson in LESSONS])
def test_silent_mistake_is_reported_once_and_can_be_silenced(what, says, program, tmp_path):
    told = told_by(program, tmp_path)
    assert len(told) == 1, "\n".join(told)
    missing = [part for part in (*says, "Try: ") if part not in told[0]]
    assert not missing, f"{missing} not in:\n{told[0]}"
    warned_lines().clear()
    assert flow.notices(False) is True and not told_by(program, tmp_path) and flow.notices(True) is False


@pytest.mark.parametrize("name", ["gan", "style_transfer", "mc_dropout", "grad_scaler"])
def test_intended_uses_are_not_reported(name):
    names = runpy.run_path(str(PROGRAMS / f"{name}.py"))
    if name == "grad_scaler":
        assert names["skipped"] > 0, "the scaler of its own met infinity"
    elif name == "mc_dropout":
        assert names["spread"] > 0.01
    if "losses" in names:
        assert np.isfinite(names["losses"]).all() and names["losses"][-1] != names["losses"][0]


RIGHT = {
    "losses kept as numbers": """
optimizer, total, kept = flow.optim.SGD(model.parameters(), lr=0.1), 0, []
for _ in range(200):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss.detach()
    kept.append(loss.item())
""",
    "one loss, many times backward": """
loss = F.cross_entropy(model(x), y)
for _ in range(200):
    loss.backward(retain_graph=True)
""",
    "a frozen part, and groups of two optimizers": """
model[0].requires_grad_(False)
train(flow.optim.SGD(model[3].parameters(), lr=0.1), lambda: F.cross_entropy(model(x), y))
a, b = nn.Linear(6, 4), nn.Linear(4, 3)
both = nn.Sequential(a, b)
one, other = flow.optim.SGD(a.parameters(), lr=0.1), flow.optim.Adam(b.parameters())
train(one, lambda: F.cross_entropy(both(x), y))
train(other, lambda: F.cross_entropy(both(x), y))
""",
    "updates by hand": """
for _ in range(5):
    F.cross_entropy(model(x), y).backward()
    with flow.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
""",
    "shapes looked at before training": """
with flow.no_grad():
    for part in x.split(8):
        model(part)
""",
    "gradients that are large": """
p = nn.Parameter(flow.ones(4))
train(flow.optim.SGD([p], lr=1e-38), lambda: (p * 1e30).sum())
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_correct_programs_are_not_reported(name, tmp_path):
    assert not told_by(RIGHT[name], tmp_path)


def test_checked_models_are_freed():
    import weakref

    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    model(flow.ones(2, 2)).sum().backward()
    with flow.no_grad():
        model(flow.ones(2, 2))
    gone = weakref.ref(model), weakref.ref(optimizer), weakref.ref(model[0].weight)
    del model, optimizer
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3 and len(check_state().roots) <= MAX_LIVE_LOSSES
