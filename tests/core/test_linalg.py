"""Matrices: errors, stacks, gradients where a factor is not unique, graphs."""

import numpy as np
import pytest

import minflow as flow
from minflow import linalg, nn
from tests.core.refusals import refusals
from tests.graphs import Training, bits, eager_steps

REGULAR = flow.tensor([[4.0, 1.0], [2.0, 3.0]], dtype=flow.float64)
SINGULAR = flow.tensor([[1.0, 2.0], [2.0, 4.0]])


test_refused = refusals(
    [
        (
            flow.LinAlgError,
            lambda: linalg.inv(SINGULAR),
            r"(?s)inverse: the matrix is singular.*float32\[2, 2\].*linalg\.pinv",
        ),
        (
            flow.LinAlgError,
            lambda: linalg.solve(flow.stack([flow.eye(2), SINGULAR]), flow.ones(2, 2)),
            r"(?s)is singular.*\(matrix 1 of the stack\)",
        ),
        (flow.LinAlgError, lambda: linalg.cholesky(-flow.eye(2)), "cholesky: the matrix is not positive definite"),
        (
            flow.LinAlgError,
            lambda: linalg.eigh(flow.tensor([[float("nan")]])),
            r"has the element nan \(at position \(0, 0\) of a\)",
        ),
        (flow.ShapeError, lambda: linalg.det(flow.ones(2, 3)), "must be square, got 2 rows and 3 columns"),
        (flow.ShapeError, lambda: flow.inverse(flow.ones(3)), "must have at least 2 axes, got 1"),
        (
            flow.DTypeError,
            lambda: linalg.svd(flow.ones(2, 2).long()),
            r"(?s)must be float32 or float64, got int64.*\.float\(\) first",
        ),
        (flow.ShapeError, lambda: linalg.solve(REGULAR, flow.ones(3, 1).double()), "(?s)2 unknowns.*3 rows"),
        (flow.OutOfRangeError, lambda: linalg.qr(REGULAR, "all"), "(?s)mode is 'all'.*\"reduced\""),
        (flow.OutOfRangeError, lambda: linalg.norm(REGULAR, "nuclear"), "(?s)ord is 'nuclear'.*\"nuc\""),
        (flow.ShapeError, lambda: flow.cross(flow.ones(2), flow.ones(2)), r"no axis of \[2\] has size 3"),
        (flow.ShapeError, lambda: flow.matrix_power(flow.ones(2, 3), 2), r"(?s)must be square.*float32\[2, 3\]"),
        (flow.ShapeError, lambda: linalg.multi_dot([REGULAR]), "at least two tensors are needed, got 1"),
        (flow.OutOfRangeError, lambda: flow.renorm(REGULAR, 0, 0, 1.0), "p is 0"),
        (
            flow.GradError,
            lambda: linalg.lu(flow.ones(3, 2).requires_grad_())[1].sum().backward(),
            "3 rows and 2 columns",
        ),
    ]
)


def test_errors_have_one_name():
    assert linalg.LinAlgError is flow.LinAlgError and issubclass(flow.LinAlgError, RuntimeError)


def test_named_results():
    assert linalg.svd(REGULAR)._fields == ("U", "S", "Vh")
    assert flow.svd(REGULAR)._fields == ("U", "S", "V")
    assert linalg.qr(REGULAR).R.shape == (2, 2)
    assert linalg.slogdet(REGULAR).logabsdet.item() == pytest.approx(np.log(10))


def test_determinant_gradient_of_a_singular_matrix():
    a = SINGULAR.double().requires_grad_()
    linalg.det(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), [[4, -2], [-2, 1]], atol=1e-12)


def test_matrix_norms_differ_from_vector_norms():
    """ord=2 is the largest singular value, unlike the root of the sum of squares."""
    a = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert linalg.norm(a).item() == pytest.approx(np.sqrt(30))
    assert linalg.norm(a, 2).item() == pytest.approx(np.linalg.norm(a.numpy(), 2))
    assert linalg.norm(a, 1).item() == 6 and linalg.norm(a, float("inf")).item() == 7
    assert linalg.vector_norm(a, 1).item() == 10


@pytest.mark.parametrize(
    "function",
    [
        linalg.inv,
        linalg.det,
        lambda a: linalg.solve(a, a.sum(-1)),
        linalg.svdvals,
        lambda a: linalg.eigh(a @ a.mT).eigenvalues,
        lambda a: linalg.cholesky(a @ a.mT),
        lambda a: linalg.qr(a).R,
        linalg.pinv,
        flow.matrix_exp,
    ],
)
def test_graph_has_the_bits_and_gradients_of_eager(function):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(flow.stack([REGULAR, REGULAR.T + 1]).float())

        def forward(self, scale):
            return function(self.a * scale)

    model, twin, x = Model(), Model(), flow.tensor(0.5)
    losses = eager_steps(model, flow.optim.SGD(model.parameters(), lr=0.01), x, 3)
    graph = Training(twin, flow.optim.SGD(twin.parameters(), lr=0.01))
    assert [graph(x).item() for _ in losses] == losses and bits(twin.state_dict()) == bits(model.state_dict())


def test_lstsq_of_more_rows_than_columns():
    a, b = flow.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), flow.tensor([[1.0], [3.0], [4.0]])
    found = linalg.lstsq(a, b, driver="gelsd")
    np.testing.assert_allclose(found.solution.numpy(), np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)[0], rtol=1e-5)
    assert found.residuals.item() == pytest.approx(1 / 6, rel=1e-4) and found.rank.item() == 2
