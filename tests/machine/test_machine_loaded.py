"""A loaded graph computes with the kernels of the one that was saved: every layer, bit for bit."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

import minflow as flow
from minflow import machine, nn
from tests.registered import layer_cases


@pytest.fixture(autouse=True)
def compiled():
    before = machine.used()
    machine.use()
    yield
    machine.use(before)


class Predict(nn.Graph):
    def __init__(self, model, exact):
        super().__init__()
        self.model = model
        self.config.exact(exact)

    def build(self, x):
        return self.model(x)


def arrays(found):
    return [t.numpy() for t in nn.summary.tensors_in(found)]


def check(model, x, path, exact):
    """Two calls of each; a call may move running statistics, so both start from the state that is saved."""
    graph = Predict(model, exact)
    flow.manual_seed(0)
    graph(x)
    flow.save(graph, path)
    loaded = flow.load_graph(path)
    names = [[str(node.op) for node in g.compiled_for((x,), {}).parts[0].graph.nodes] for g in (graph, loaded)]
    assert names[0] == names[1]
    for seed in range(2):
        flow.manual_seed(seed)
        wanted = arrays(graph(x))
        flow.manual_seed(seed)
        for a, b in zip(wanted, arrays(loaded(x)), strict=True):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.filterwarnings("ignore:.*an input of a graph is written in place")
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("name", "make", "x"), layer_cases(), ids=lambda p: p if isinstance(p, str) else "")
def test_every_layer(name, make, x, exact, tmp_path):
    if isinstance(x, tuple):
        x = np.random.default_rng(0).standard_normal(x).astype("float32")
    flow.manual_seed(1)
    check(make(), flow.tensor(x), tmp_path / "graph", exact)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("options", [{"scale_factor": 2}, {"scale_factor": 1.7}, {"size": (6, 13)}])
def test_an_interpolation_between_convolutions(mode, options, tmp_path):
    flow.manual_seed(2)
    resize = nn.Upsample(mode=mode, **options, **({} if mode == "nearest" else {"align_corners": False}))
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), resize, nn.Conv2d(16, 8, 3))
    check(model, flow.randn(2, 3, 16, 20), tmp_path / "graph", False)

