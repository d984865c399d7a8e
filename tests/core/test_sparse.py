"""Sparse tensors on dense storage: the notice, refusals, graphs, and modules. Values: `test_sparse_torch.py`."""

import copy
import pickle

import pytest

import minflow as flow
from minflow.core.functions import sparse
from minflow.core.source_location import warned_lines
from tests.cases import in_cases
from tests.graph_models import graph_of
from tests.graphs import Predict

# It comes once in a process: in whichever test runs first.
pytestmark = pytest.mark.filterwarnings("ignore:sparse tensors are stored dense")
ROWS = [[0, 2, 2], [1, 0, 0]]


def matrix(**options):
    return flow.sparse_coo_tensor(ROWS, [1.0, 2.0, 3.0], (3, 3), **options)


def test_one_notice():
    warned_lines().clear()
    with pytest.warns(flow.MinflowWarning, match="sparse tensors are stored dense") as caught:
        matrix()
        flow.eye(3).to_sparse()
    assert len(caught) == 1 and "index_add" in str(caught[0].message)


def write_old_values():
    x = matrix().coalesce()
    values = x.values()
    x.mul_(2)
    values.add_(1)


def write_values_in_a_graph(write, x=None):
    def program(_, y):
        made = flow.sparse_coo_tensor(ROWS, y, (3, 3)) if x is None else x
        write(made._values())
        return made.to_dense()

    graph_of(program)(flow.ones(3))


@in_cases(
    "call, kind, text",
    [
        (lambda: matrix().values(), flow.StateError, "several values for one element"),
        (lambda: flow.ones(2).indices(), flow.DTypeError, "must be sparse, this one is dense"),
        (lambda: flow.sparse.sum(flow.ones(2, 2)), flow.DTypeError, "this one is dense"),
        (lambda: flow.ones(2, 2).to_sparse_csr(), flow.MissingNameError, "compressed layout"),
        (lambda: flow.ones(2, 2).to_sparse(blocksize=2), flow.MissingNameError, "compressed layout"),
        (lambda: flow.ones(2, 2).to_sparse(3), flow.OutOfRangeError, "from 1 to 2, got 3"),
        (lambda: flow.sparse_csr_tensor, flow.MissingNameError, "has no sparse_csr_tensor"),
        (lambda: flow.sparse.sampled_addmm, flow.MissingNameError, "sampled_addmm"),
        (lambda: flow.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), flow.OutOfRangeError, "negative"),
        (lambda: flow.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,)), flow.OutOfRangeError, "index 3"),
        (lambda: flow.sparse_coo_tensor([[0, 1]], [1.0]), flow.ShapeError, r"\[1, 2\] and values \[1\]"),
        (lambda: flow.sparse_coo_tensor([[0]], [1.0], (2, 2)), flow.ShapeError, r"\[2, 2\] must have 1 sizes"),
        (lambda: matrix().__setitem__(0, 1.0), flow.StateError, "cannot be written by index"),
        (lambda: matrix().coalesce().indices().mul_(2), flow.ShapeError, "read-only"),
        (write_old_values, flow.StateError, "read before another write"),
        (lambda: write_values_in_a_graph(lambda v: v.mul_(2)), flow.TraceError, "values of .* written in a graph"),
        (lambda: write_values_in_a_graph(lambda v: v[1:].detach().zero_(), matrix()), flow.TraceError, "in a graph"),
        (lambda: flow.nn.Parameter(matrix()), flow.GradError, "not specified"),
    ],
)
def test_refused(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert caught.value.hint


def test_too_large_is_refused_before_allocation():
    with pytest.raises(flow.OutOfMemoryError, match=r"float32\[1000000, 1000000\] needs 4,000.0 GB") as caught:
        flow.sparse_coo_tensor(ROWS, [1.0, 2.0, 3.0], (10**6, 10**6))
    assert "index_add" in caught.value.hint


def test_large_product_without_the_matrix():
    """The program that the hint suggests."""
    row, col, value, x = flow.tensor(ROWS[0]), flow.tensor(ROWS[1]), flow.tensor([1.0, 2.0, 3.0]), flow.randn(3, 4)
    n = 3
    found = flow.zeros(n, x.shape[1]).index_add(0, row, value[:, None] * x[col])
    assert flow.allclose(found, matrix() @ x) and "index_add(0, row, value[:, None] * x[col])" in sparse.WITHOUT_MATRIX


def test_values_after_a_write():
    whole, raw = matrix().coalesce(), matrix()
    whole.clamp_(max=2.0)
    assert whole.values().tolist() == [1.0, 2.0]
    whole.fill_(1)
    raw.clamp_(max=2.0)
    assert raw.coalesce().values().tolist() == [1.0, 2.0]
    for read in (whole._values, whole._indices, whole.coalesce, (whole * 2)._nnz, raw._values, (raw * 2)._values):
        with pytest.raises(flow.StateError, match="written in place"):
            read()
    with pytest.raises(flow.StateError, match="written in place"):
        flow.sparse.mm(whole, whole)
    assert whole.to_dense().sum() == 9 and "2." in repr(raw)


def test_operators_in_place():
    x = twin = flow.sparse_coo_tensor((3, 3))
    x += matrix()
    x -= matrix() * 0.5
    x *= 2
    x /= 4
    x.add_(matrix(), alpha=2).mul_(2)
    assert x is twin and x.coalesce().values().tolist() == [4.5, 22.5] and (x.to_dense() != 0).sum() == 2
    w = matrix(requires_grad=True)
    with pytest.raises(flow.GradError, match="cannot be changed in place"):
        w += matrix()


def test_explicit_zeros_are_kept():
    x = flow.sparse_coo_tensor([[0, 1, 2]], [0.0, 1.0, 0.0], (4,)).coalesce()
    assert x.values().tolist() == [0.0, 1.0, 0.0] and (x * 2)._nnz() == 3 and x.to_dense().to_sparse()._nnz() == 1


def test_a_leaf_stays_0_where_nothing_is_specified():
    w = matrix(requires_grad=True)
    (w @ flow.ones(3, 2)).sum().backward()
    assert w.grad.tolist() == [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    flow.optim.SGD([w], lr=1.0).step()
    assert w.coalesce().values().tolist() == [-1.0, 3.0]


class Net(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = flow.nn.Parameter(flow.randn(2, 2))
        self.register_buffer("adjacency", matrix())

    def forward(self, x, values):
        w = flow.sparse_coo_tensor(ROWS, values, (3, 3))
        return self.adjacency.t() @ x @ self.weight + flow.spmm(w * 2, x) + w.t().to_dense() @ x


def test_graph_gives_the_same_bits():
    net, x, values = Net(), flow.randn(3, 2), flow.tensor([1.0, 2.0, 3.0])
    assert flow.equal(Predict(net, exact=True)(x, values), net(x, values))


def test_graph_refuses_what_depends_on_elements():
    graph = graph_of(lambda self, i: flow.sparse_coo_tensor(i, flow.ones(3)))
    with pytest.raises(flow.TraceError, match="the shape depends on the indices"):
        graph(flow.tensor(ROWS))
    graph = graph_of(lambda self, i: flow.sparse_coo_tensor(i, flow.ones(3), (3, 3)).to_dense())
    with pytest.raises(flow.OutOfRangeError, match="axis 0, which has size 3"):
        graph(flow.tensor([[0, 1, -1], [0, 0, 0]]))


def test_modules_and_copies_keep_it_sparse():
    net = Net()
    net.double()
    assert net.adjacency.is_sparse and net.adjacency._values().dtype is flow.float64
    for twin in (copy.deepcopy(net.adjacency), pickle.loads(pickle.dumps(net.adjacency)), net.adjacency.data):
        assert twin._values().tolist() == [1.0, 2.0, 3.0] and flow.equal(twin, net.adjacency)
    net.load_state_dict(net.state_dict())
    assert flow.equal(net.adjacency.to_dense(), matrix().double().to_dense())
    x = matrix()
    x.data = flow.ones(3, 3)
    assert not x.is_sparse and type(x) is flow.Tensor
