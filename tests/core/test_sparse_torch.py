"""Sparse tensors against PyTorch: elements, specified values and gradients. Skipped without PyTorch."""

import warnings

import numpy as np

import minflow as flow
from tests.cases import in_cases
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch

ROWS, COLUMNS = [0, 2, 1, 2, 0, 3], [1, 0, 2, 0, 1, 3]  # (2, 0) and (0, 1) occur twice
VALUES = [0.5, -1.0, 2.0, 3.0, 0.25, 0.0]


def edges(lib, requires_grad=False):
    return lib.tensor([ROWS, COLUMNS]), lib.tensor(VALUES, requires_grad=requires_grad)


def adjacency(lib):
    return lib.sparse_coo_tensor(*edges(lib), (4, 5))


def features(lib, rows=5, columns=3):
    elements = np.random.default_rng(1).standard_normal((rows, columns)).astype("float32")
    return lib.tensor(elements, requires_grad=True)


def pieces(x):
    return [x._indices(), x._values(), x.coalesce().indices(), x.coalesce().values(), x.to_dense()]


def products(lib):
    (i, v), x = edges(lib, True), features(lib)
    a = lib.sparse_coo_tensor(i, v, (4, 5))
    b = lib.ones(4, 3)
    ys = [lib.spmm(a, x), lib.sparse.mm(a, x), lib.mm(a, x), a @ x, a.matmul(x), lib.sparse.addmm(b, a, x, beta=0.5)]
    sum([(y * y).sum() for y in ys]).backward()
    return [*ys, v.grad, x.grad]


def product_of_sparse(lib):
    a = adjacency(lib)
    return pieces(lib.sparse.mm(a.t(), a).coalesce())


def conversions(lib):
    a = adjacency(lib)
    kinds = [a.double(), a.to(lib.float64), a.cpu(), a.clone(), a.detach(), a.t(), a.transpose(0, 1), a.float()]
    return [piece for x in kinds for piece in pieces(x)] + [lib.tensor([a.sparse_dim(), a.dense_dim(), a._nnz()])]


def linear_functions(lib):
    a, dense = adjacency(lib), features(lib, 4, 5).detach()
    results = [a * 2, 3.0 * a, a / 4, -a, a.mul(2), a.div(2)]
    sums = [(a + a).coalesce(), (a - a.clone() * 0.5).coalesce(), a.add(a.t().t(), alpha=3).coalesce()]
    return [piece for x in results + sums for piece in pieces(x)] + [(a.coalesce() * dense).to_dense(), dense + a]


def reductions(lib):
    a = adjacency(lib)
    some = [lib.sparse.sum(a, dim) for dim in (0, 1, -1, (0,), [1])]
    softmaxes = [f(a.coalesce(), dim) for f in (lib.sparse.softmax, lib.sparse.log_softmax) for dim in (0, 1)]
    return [x.to_dense() for x in some + softmaxes] + [lib.sparse.sum(a), lib.sparse.sum(a, (0, 1)), a.sum()]


def softmax_gradient(lib):
    i, v = edges(lib, True)
    y = lib.sparse.softmax(lib.sparse_coo_tensor(i, v, (4, 5)).coalesce(), 1)
    (y.to_dense() * features(lib, 4, 5)).sum().backward()
    return [v.grad]


def from_dense(lib):
    x = features(lib, 4, 4)
    y = (x * (x > 0)).to_sparse()
    (lib.sparse.mm(y, x) ** 2).sum().backward()
    return [*pieces(y), x.grad]


def hybrid(lib):
    i, v = lib.tensor([[2, 0, 2]]), features(lib, 3, 2)
    a = lib.sparse_coo_tensor(i, v, (4, 2))
    (a.to_dense() ** 2).sum().backward()
    whole = lib.tensor([[1.0, 0.0], [0.0, 0.0], [3.0, 4.0]]).to_sparse(1)
    numbers = [a.sparse_dim(), a.dense_dim(), a._nnz(), whole.sparse_dim(), whole._nnz()]
    return [*pieces(a), v.grad, *pieces(whole), lib.tensor(numbers)]


def sizes(lib):
    i, v = edges(lib)
    made = [
        lib.sparse_coo_tensor(i, v),
        lib.sparse_coo_tensor([ROWS, COLUMNS], VALUES),
        lib.sparse_coo_tensor(np.array([ROWS, COLUMNS]), np.array(VALUES), dtype=lib.float64),
        lib.sparse_coo_tensor((2, 3)),
        lib.sparse_coo_tensor(i, v.long(), (9, 9)),
        lib.sparse_coo_tensor(i, v > 0, (9, 9)),
        lib.sparse.FloatTensor(i, v, lib.Size([4, 5])),
        lib.sparse.FloatTensor(i, v),
        lib.sparse.FloatTensor(indices=i, values=v, size=lib.Size([4, 5])),
        lib.sparse.FloatTensor(2, 3),
        lib.sparse.DoubleTensor(i, v.double(), lib.Size([4, 5])),
    ]
    facts = [[x.is_sparse, x.is_coalesced(), x._nnz(), *x.shape] for x in made]
    return [lib.tensor(fact) for fact in facts] + [piece for x in made for piece in pieces(x)]


def mask(lib):
    a = adjacency(lib).coalesce()
    return pieces(features(lib, 4, 5).detach().sparse_mask(a))


def leaf(lib):
    a = lib.sparse_coo_tensor(*edges(lib), (4, 5), requires_grad=True)
    (lib.sparse.mm(a, features(lib)) ** 2).sum().backward()
    return [a.grad.to_dense()]


def graph_convolution(lib):
    """Three steps of a two-layer network (Kipf & Welling 2017) on a normalized adjacency."""
    n, classes = 4, 2
    a = lib.sparse.FloatTensor(lib.tensor([[0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 1, 0]]), lib.ones(6), lib.Size([n, n]))
    degree = lib.sparse.sum(a, 1).to_dense()
    i = a._indices()
    a = lib.sparse.FloatTensor(i, a._values() / degree[i[0]], a.size())
    x, w1, w2 = features(lib, n, 3).detach(), features(lib, 3, 4), features(lib, 4, classes)
    optimizer = lib.optim.Adam([w1, w2], lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        hidden = lib.relu(lib.spmm(a, lib.mm(x, w1)))
        scores = lib.nn.functional.log_softmax(lib.spmm(a, lib.mm(hidden, w2)), dim=1)
        loss = lib.nn.functional.nll_loss(scores, lib.tensor([0, 1, 0, 1]))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [lib.stack(losses), w1, w2]


def attention(lib):
    """The product of a graph attention network (Velickovic et al. 2018) as an autograd function."""

    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            a = lib.sparse_coo_tensor(indices, values, shape)
            ctx.save_for_backward(a, b)
            ctx.N = shape[0]
            return lib.matmul(a, b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            places = a._indices()[0, :] * ctx.N + a._indices()[1, :]
            return None, grad.matmul(b.t()).view(-1)[places], None, a.t().matmul(grad)

    i, v = lib.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]), lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    h = features(lib, 3, 2)
    total = Product.apply(i, v.exp(), lib.Size([3, 3]), lib.ones(3, 1))
    (Product.apply(i, v.exp(), lib.Size([3, 3]), h) / total).pow(2).sum().backward()
    return [v.grad, h.grad]


def edge_dropout(lib):
    """The dropout of a collaborative filter (He et al. 2020): some values, scaled, in a new sparse tensor."""
    a = adjacency(lib).coalesce()
    kept = lib.tensor([True, False, True, True])
    index, values = a.indices().t(), a.values()
    return pieces(lib.sparse.FloatTensor(index[kept].t(), values[kept] / 0.5, a.size()))


def normalized_adjacency(lib):
    """Degrees by sparse.sum, broadcast over rows and columns; products of sparse diagonals; scaled dot products."""
    n = 4
    loops = lib.stack([lib.arange(n), lib.arange(n)])
    a = lib.sparse_coo_tensor(lib.cat([lib.tensor([[0, 1, 2], [1, 2, 0]]), loops], 1), lib.ones(7), lib.Size([n, n]))
    degree = lib.sparse.sum(a, dim=1).to_dense().pow(-0.5)
    scaled = a * degree.view(1, -1) * degree.view(-1, 1)
    diagonal = lib.sparse_coo_tensor(loops, degree, (n, n))
    product = lib.sparse.mm(lib.sparse.mm(diagonal, a), diagonal)
    total = lib.sparse_coo_tensor(size=(n, n))
    total += a
    total += a.t()
    q, k, edges = features(lib, n, 2), features(lib, n, 2), a.coalesce().indices()
    scores = lib.sparse.FloatTensor(edges, (q[edges[0]] * k[edges[1]]).sum(-1), lib.Size([n, n])) / 1.5
    attention = lib.sparse.mm(lib.sparse.softmax(scores, dim=1), k)
    attention.pow(2).sum().backward()
    dense = [scaled.to_dense(), product.to_dense(), total.to_dense(), attention, q.grad, k.grad]
    return [*dense, *pieces(scaled), *pieces(total.coalesce())[2:]]


def writes_to_values(lib):
    """In-place methods, views and `data` of the values; values before and after a write; those of a gradient."""
    a, raw, p = adjacency(lib).coalesce(), adjacency(lib), lib.ones(4, 5, requires_grad=True)
    a._values().mul_(2).add_(1)
    a.values()[1:3].fill_(7.0)
    values = a.values()
    values[0] = -1.0
    values.data.abs_()
    results = [values.clone(), a.to_dense()]
    a.mul_(3)
    a.detach()._values().sqrt_()
    raw._values().pow_(2)
    raw._values()[0] += 1.5
    p.grad = adjacency(lib).coalesce()
    p.grad.data._values().clamp_(-0.5, 0.5)
    p.grad._values()[p.grad._values() == 0] = 9.0
    return [*results, *pieces(a), *pieces(raw), *pieces(p.grad)]


def rows_of_an_optimizer(lib):
    """One step of an optimizer (Defazio & Jelassi 2021) on the specified elements of a sparse gradient."""
    weight, squares, sums = features(lib, 4, 5).detach(), lib.ones(4, 5), lib.zeros(4, 5)
    for _ in range(2):
        grad = adjacency(lib).coalesce()
        some, old_squares, old_sums = (x.sparse_mask(grad) for x in (weight, squares, sums))
        start = some._values().addcdiv(old_sums._values(), old_squares._values().pow(1 / 3).add_(0.1), value=1)
        squares.add_(grad * grad, alpha=0.3)
        old_squares.add_(grad * grad, alpha=0.3)
        scale = old_squares._values().pow_(1 / 3).add_(0.1)
        sums.add_(grad, alpha=0.3)
        old_sums._values().add_(grad._values(), alpha=0.3)
        some._values().add_(start.addcdiv(old_sums._values(), scale, value=-1), alpha=-1)
        weight.add_(some, alpha=-1)
    return [weight, squares, sums]


def typed(lib):
    a = adjacency(lib)
    kinds = [lib.sparse.FloatTensor, lib.sparse.DoubleTensor]
    facts = [isinstance(x, kind) for x in (a, a.double(), a.to_dense()) for kind in kinds]
    return [lib.tensor([*facts, a.type().endswith("sparse.FloatTensor"), a.layout == lib.sparse_coo])]


@in_cases(
    "program",
    [
        products,
        product_of_sparse,
        conversions,
        linear_functions,
        reductions,
        softmax_gradient,
        from_dense,
        hybrid,
        sizes,
        mask,
        leaf,
        graph_convolution,
        attention,
        edge_dropout,
        normalized_adjacency,
        writes_to_values,
        rows_of_an_optimizer,
        typed,
    ],
)
def test_program(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = program(torch), program(flow)
    assert len(ours) == len(theirs)
    for k, (mine, right) in enumerate(zip(ours, theirs)):
        right = right.to_dense() if right.is_sparse else right
        mine, right = mine.detach().numpy(), right.detach().numpy()
        assert mine.dtype == right.dtype, k
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6, err_msg=f"result {k}")
