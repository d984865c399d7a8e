"""`config.exact(True)` gives the bits of eager for strided views as inputs, for every op and many layers."""

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.dispatch import apply
from minflow.core.infer import data_dependent
from minflow.core.op import OPS
from minflow.core.ops.examples import cases
from minflow.nn import functional as F
from tests.cases import Cases
from tests.graph_models import TrainGraph
from tests.graphs import Predict


def with_random_strides(rng, array):
    """A tensor with these elements whose storage has its axes in random order, with random strides."""
    order = rng.permutation(array.ndim)
    steps = rng.integers(1, 4, array.ndim)
    moved = array.transpose(order)
    whole = np.zeros([n * step + 1 for n, step in zip(moved.shape, steps)], array.dtype)
    first = [int(rng.integers(0, 2)) if n else 0 for n in moved.shape]
    index = tuple([slice(f, f + n * step, step) for f, n, step in zip(first, moved.shape, steps)])
    view = flow.tensor(whole)[index]
    with flow.no_grad():
        view.copy_(flow.tensor(moved.copy()))
    return view.permute(*np.argsort(order).tolist())


def exact_graph(function):
    return Predict(function, exact=True)


def check(function, inputs):
    """Compare two calls, the second with other values, with eager."""
    graph = exact_graph(function)
    for _ in range(2):
        wanted, found = function(*inputs), graph(*inputs)
        for a, b in zip(*[x if isinstance(x, list | tuple) else [x] for x in (wanted, found)], strict=True):
            a, b = a.detach().numpy(), b.numpy()
            assert a.dtype == b.dtype and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
        with flow.no_grad():
            for x in inputs:
                if x.is_floating_point() and x.ndim:
                    x.mul_(0.75)


WITHOUT = {"unrecorded", "strided_look", "recompute"}
WITHOUT |= {"reshape", "as_strided"}  # contiguous tensors: the functions copy other inputs first
PLAIN_OPS = [op for op in OPS.values() if op.name not in WITHOUT and op.examples and op.infer is not data_dependent]


@pytest.mark.parametrize("op", PLAIN_OPS, ids=lambda op: op.name)
def test_every_op(op):
    rng = np.random.default_rng(sum(map(ord, op.name)))
    with Cases() as case:
        for example in cases(op)[:4]:
            arrays = example.arrays()
            inputs = [with_random_strides(rng, x) for x in arrays if isinstance(x, np.ndarray)]

            def function(*tensors, arrays=arrays, attrs=example.attrs):
                rest = iter(tensors)
                found = apply(op, *[next(rest) if isinstance(x, np.ndarray) else x for x in arrays], **attrs)
                return list(found) if isinstance(found, list | tuple) else found

            with case(f"{op.name} {[x.shape for x in inputs]} {example.attrs}"):
                check(function, inputs)


FUNCTIONS = {  # of two float32 tensors of a random shape, 37 to 130 by 37 to 130
    "layer_norm": lambda x, y: F.layer_norm(x, x.shape[-1:]),
    "layer_norm over all": lambda x, y: F.layer_norm(x, x.shape),
    "sums": lambda x, y: [x.sum(), x.sum(0), x.sum(1), x.mean(0), x.mean(-1)],
    "var and std": lambda x, y: [x.var(0), x.std(1), x.var()],
    "norms": lambda x, y: [x.norm(), x.norm(dim=0), F.normalize(x, dim=1)],
    "softmax": lambda x, y: [x.softmax(0), x.log_softmax(1), x.logsumexp(0)],
    "matmul": lambda x, y: [x @ y.t(), x.t() @ y, x @ y.t().contiguous()],
    "mv": lambda x, y: [x @ y[0], x.t() @ y[:, 0], flow.dot(x[0], y[0]), flow.outer(x[0], y[1])],
    "linear": lambda x, y: F.linear(x, y, x[: y.shape[0], 0].clone()[: y.shape[0]]) if len(x) >= len(y) else x + y,
    "elementwise": lambda x, y: [x * y + x, x.exp(), x.tanh(), F.gelu(x), x.sigmoid() / y.cosh(), x.square().sqrt()],
    "cumulated": lambda x, y: [x.cumsum(0), x.cumsum(1), (x.sigmoid()).cumprod(1)],
    "prod": lambda x, y: [x.sigmoid().prod(1), x.max(0)[0], x.amin(1), x.argmax(1)],
    "losses": lambda x, y: [F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.kl_div(x, y.sigmoid())],
    "cross_entropy": lambda x, y: F.cross_entropy(x, y.abs().argmax(1)),
    "cosine": lambda x, y: [F.cosine_similarity(x, y), F.pairwise_distance(x, y), flow.cdist(x, y)],
    "sorted": lambda x, y: [x.sort(0)[0], x.topk(5, 1)[0], x.median()],
    "views": lambda x, y: [x.reshape(-1).sum(), x[1:, ::2].mean(0), x.t().flatten().cumsum(0), x.unsqueeze(0).sum(1)],
    "written": lambda x, y: (x * 1).add_(y).mul_(x).sum(0),
    "einsum": lambda x, y: [flow.einsum("ij,ij->i", x, y), flow.einsum("ij,kj->ik", x, y)],
    "join": lambda x, y: [flow.cat([x, y], 1).sum(1), flow.stack([x, y]).mean(0)],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrix_functions(name):
    with Cases() as case:
        for seed in range(3):
            rng = np.random.default_rng([seed, sum(map(ord, name))])
            shape = rng.integers(37, 131, 2)
            with case(f"{name}, seed {seed}"):
                check(
                    FUNCTIONS[name],
                    [with_random_strides(rng, rng.standard_normal(shape).astype("float32")) for _ in range(2)],
                )


def test_micro_batches_keep_their_strides():
    flow.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(50), nn.Linear(50, 3))
    graph = TrainGraph(model, nn.MSELoss(), flow.optim.SGD(model.parameters(), 0.1))
    graph.config.exact(True)
    graph.config.set_gradient_accumulation_steps(3)
    x, y = flow.randn(100, 60).t()[:, ::2], flow.randn(3, 60).t()
    for _ in range(2):
        wanted = [F.mse_loss(model(a), b).item() for a, b in zip(x.split(20), y.split(20))]
        assert graph.compare_eager(x, y).equal
        assert graph(x, y).tolist() == wanted


def test_each_layout_has_a_plan():
    graph, whole = exact_graph(lambda x: x.mean(-1)), flow.randn(40, 60)
    views = whole[:, ::2], whole[:30].t()[:40, :30], whole[:, :30].clone(), whole[:, 1::2], whole[0].expand(40, 60)
    for _ in range(2):
        for x in views:
            assert np.array_equal(graph(x).numpy(), x.mean(-1).numpy())
    assert len(graph._plans) == 4


def test_layouts_share_a_plan_without_exact():
    graph, whole = exact_graph(lambda x: x.mean(-1)), flow.randn(40, 60)
    graph.config.exact(False)
    for x in (whole[:, ::2], whole[:, :30], whole[:, :30].clone()):
        graph(x)
    assert len(graph._plans) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.layer_norm(x, x.shape[-1:]),
        lambda x: x.flatten().cumsum(0),  # of a view: eager code copies first, and so does the loaded graph
        lambda x: x[:, ::2].reshape(-1, 5).sum(0),
        lambda x: x.reshape(8, 5, 30).sum(1),  # a view of a view
    ],
    ids=["layer_norm", "flatten", "reshape of a slice", "reshape"],
)
def test_exact_graph_of_a_view_is_compared_saved_and_loaded(function, tmp_path):
    graph = exact_graph(function)
    columns, rows = flow.randn(40, 60)[:, ::2], flow.randn(30, 40).t()
    graph(columns)
    assert graph.compare_eager(columns).equal
    flow.save(graph, tmp_path / "graph")
    loaded = flow.load_graph(tmp_path / "graph")
    for x in (columns, rows, columns.contiguous()):
        for _ in range(2):
            assert np.array_equal(loaded(x).numpy(), function(x).numpy())
            assert np.array_equal(graph(x).numpy(), function(x).numpy())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exact_job_that_captures_a_view(name):
    """A job copies its arguments to contiguous tensors, like `flow.tensor(array)`; captured tensors keep their
    strides.
    """
    rng = np.random.default_rng(sum(map(ord, name)))
    shape = tuple(map(int, rng.integers(37, 131, 2)))
    y, config = with_random_strides(rng, rng.standard_normal(shape).astype("float32")), flow.function_config()
    config.exact(True)
    a = np.asfortranarray(rng.standard_normal(shape).astype("float32"))

    def first(x, y):
        found = FUNCTIONS[name](x, y)
        return found[0] if isinstance(found, list) else found

    def job(x: tp.Numpy.Placeholder(shape)) -> tp.Numpy:
        return first(x, y)

    found = flow.global_function(type="predict", function_config=config)(job)(a)
    assert np.array_equal(found, first(flow.tensor(a), y).numpy())
    flow.clear_default_session()
