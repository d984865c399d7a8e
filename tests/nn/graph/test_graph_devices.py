"""Graphs on another device: parts of a batch, strided inputs and loaded states have the bits of the CPU."""

import pytest

import minflow as flow
from minflow import nn
from tests.strict_backend import counted

pytestmark = pytest.mark.usefixtures("reference_kernels")


class Training(nn.Graph):
    def __init__(self, model, optimizer, parts):
        super().__init__()
        self.model = model
        schedule = flow.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        self.add_optimizer(optimizer, lr_sch=schedule)
        self.config.exact(True)
        self.config.set_gradient_accumulation_steps(parts)

    def build(self, x, target):
        loss = nn.functional.cross_entropy(self.model(x), target)
        loss.backward()
        return loss


def trained(device, parts=1, transposed=False, saved=None, folder=None):
    """(losses of three steps, the model's tensors, the graph's state, copies to the host)."""
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, 3)).to(device)
    x = (flow.randn(4, 8).to(device).T) if transposed else flow.randn(8, 4).to(device)
    target = flow.tensor([0, 1, 2, 0, 1, 2, 0, 1], device=device)
    graph = Training(model, flow.optim.Adam(model.parameters(), lr=0.1), parts)
    graph(x, target)
    if saved is not None:
        graph.load_state_dict(saved)
    with counted() as copies:
        losses = [graph(x, target) for _ in range(3)]
    assert {t.device.type for t in (*losses, *model.state_dict().values())} == {device}
    if folder is not None:
        flow.save(graph, folder)
    return [bits(t) for t in losses], [bits(t) for t in model.state_dict().values()], graph.state_dict(), dict(copies)


def bits(t):
    return t.dtype, tuple(t.shape), t.cpu().numpy().tobytes()


@pytest.mark.parametrize("options", [{"parts": 2}, {"transposed": True}, {"parts": 4, "transposed": True}], ids=str)
def test_training_has_the_bits_of_the_cpu(options, cuda):
    there, here = trained("cuda", **options), trained("cpu", **options)
    assert there[:2] == here[:2] and not there[3]


def test_a_state_moves_between_devices(cuda):
    on_cpu = trained("cpu")
    there = trained("cuda", saved=on_cpu[2])
    assert there[:2] == trained("cpu", saved=on_cpu[2])[:2]
    assert trained("cpu", saved=there[2])[:2] == trained("cuda", saved=there[2])[:2]


def test_a_saved_graph_continues_on_the_cpu(cuda, tmp_path):
    for device in ("cpu", "cuda"):
        trained(device, parts=2, folder=tmp_path / device)
    batches = flow.randn(3, 8, 4), flow.tensor([0, 1, 2, 0, 1, 2, 0, 1])

    def losses(device):
        graph = flow.load_graph(tmp_path / device)
        return [bits(graph(x, batches[1])) for x in batches[0]]

    assert losses("cuda") == losses("cpu")


@pytest.mark.parametrize("saved_on", ["cpu", "cuda"])
def test_a_saved_graph_continues_on_a_device(saved_on, cuda, tmp_path):
    trained(saved_on, parts=2, folder=tmp_path / "graph")
    x, target = flow.randn(3, 8, 4), flow.tensor([0, 1, 2, 0, 1, 2, 0, 1])

    def run(device, **options):
        flow.manual_seed(0)
        graph = flow.load_graph(tmp_path / "graph", **options)
        batches = [(batch.to(device), target.to(device)) for batch in x]
        first = graph(*batches[0])
        with counted() as copies:
            losses = [graph(*batch) for batch in batches[1:]]
        states = [*graph.model.state_dict().values()]
        assert {t.device.type for t in (first, *losses, *states)} == {device} and not copies
        return [bits(t) for t in (first, *losses, *states)]

    here = run("cpu")
    assert run("cuda", map_location="cuda") == here
    with cuda:
        assert run("cuda") == here and run("cpu", map_location="cpu") == here


def test_a_saved_graph_makes_tensors_and_reads_indices_on_its_device(cuda, tmp_path):
    """A constant, a new tensor, random numbers, and positions that an op reads on the host."""
    constant = flow.tensor([1.0, 2.0])

    class Program(nn.Graph):
        def build(self, x):
            y = nn.functional.interpolate(x[None, None], size=(3, 4), mode="bicubic")[0, 0]
            return flow.cat([y[:, [1, 0]] * constant, flow.ones(3, 2), nn.functional.dropout(x[:3], 0.5)], 1)

    graph, x = Program(), flow.arange(8.0).view(4, 2)
    graph(x)
    flow.save(graph, tmp_path / "graph")

    def run(device):
        flow.manual_seed(0)
        result = flow.load_graph(tmp_path / "graph", device)(x.to(device))
        assert result.device.type == device
        return bits(result)

    assert run("cuda") == run("cpu")
