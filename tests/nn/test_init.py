"""Initialization: bounds, moments, and reproducibility by seed."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import ShapeError

init = nn.init


def array(tensor):
    return tensor.detach().numpy()


def test_constants():
    x = flow.empty(3, 4)
    assert init.constant_(x, 2.5) is x and (array(x) == 2.5).all()
    assert (array(init.ones_(x)) == 1).all() and (array(init.zeros_(x)) == 0).all()
    assert (array(init.eye_(x)) == np.eye(3, 4)).all()
    filters = array(init.dirac_(flow.empty(4, 2, 3, 3), groups=2))
    assert filters.sum() == 4 and filters[3, 1, 1, 1] == 1


def test_uniform_and_normal():
    x = array(init.uniform_(flow.empty(200, 100), -2.0, 3.0))
    assert x.min() >= -2 and x.max() < 3 and abs(x.mean() - 0.5) < 0.05
    x = array(init.normal_(flow.empty(200, 100), 1.0, 0.5))
    assert abs(x.mean() - 1) < 0.02 and abs(x.std() - 0.5) < 0.02
    x = array(init.trunc_normal_(flow.empty(200, 100), 0.0, 1.0, -1.0, 2.0))
    assert x.min() >= -1 and x.max() <= 2
    assert abs(x.mean() - 0.2296) < 0.03  # (phi(-1) - phi(2)) / (Phi(2) - Phi(-1))


def test_erfinv():
    from scipy.special import erfinv

    y = np.linspace(-0.999999, 0.999999, 101)
    np.testing.assert_allclose(init.erfinv(flow.tensor(y)).numpy(), erfinv(y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(300, 200), (60, 50, 3, 3)])
def test_scaled(shape):
    fan_in, fan_out = math.prod(shape[1:]), shape[0] * math.prod(shape[2:])
    x = flow.empty(*shape)
    bound = math.sqrt(6 / (fan_in + fan_out))
    assert np.abs(array(init.xavier_uniform_(x))).max() == pytest.approx(bound, rel=0.01)
    assert array(init.xavier_normal_(x, gain=2.0)).std() == pytest.approx(2 * bound / math.sqrt(3), rel=0.03)
    assert np.abs(array(init.kaiming_uniform_(x, nonlinearity="relu"))).max() == pytest.approx(
        math.sqrt(6 / fan_in), rel=0.01
    )
    assert array(init.kaiming_normal_(x, mode="fan_out", nonlinearity="relu")).std() == pytest.approx(
        math.sqrt(2 / fan_out), rel=0.03
    )


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (6, 2, 2)])
def test_orthogonal(shape):
    x = array(init.orthogonal_(flow.empty(*shape), gain=2.0)).reshape(shape[0], -1)
    square = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-5)


def test_sparse():
    x = array(init.sparse_(flow.empty(20, 10), 0.25))
    assert ((x == 0).sum(0) == 5).all()


def test_initialization_is_untracked_and_reproducible():
    weight = nn.Parameter(flow.empty(3, 4))
    flow.manual_seed(3)
    first = array(init.kaiming_uniform_(weight)).copy()
    flow.manual_seed(3)
    assert (array(init.kaiming_uniform_(weight)) == first).all() and weight.is_leaf and weight.grad_fn is None
    own = flow.Generator().manual_seed(3)
    assert (array(init.kaiming_uniform_(weight, generator=own)) == first).all()


def test_default_initialization_of_layers():
    linear, conv = nn.Linear(100, 200), nn.Conv2d(6, 50, 5)
    for layer, fan_in in ((linear, 100), (conv, 150)):
        for p in (layer.weight, layer.bias):
            assert np.abs(array(p)).max() == pytest.approx(1 / math.sqrt(fan_in), rel=0.05)
    embedding = nn.Embedding(100, 50, padding_idx=-1)
    assert array(embedding.weight)[:-1].std() == pytest.approx(1, rel=0.05) and (array(embedding.weight)[-1] == 0).all()
    norm = nn.BatchNorm2d(3)
    assert (
        norm.weight.tolist() == [1, 1, 1] and norm.bias.tolist() == [0, 0, 0] and norm.running_var.tolist() == [1, 1, 1]
    )
    flow.manual_seed(1)
    a = nn.Linear(3, 3)
    flow.manual_seed(1)
    assert a.weight.tolist() == nn.Linear(3, 3).weight.tolist()


def test_mistakes():
    with pytest.raises(ShapeError, match=r"(?s)at least 2 axes.*1.*float32\[3\]"):
        init.kaiming_uniform_(flow.empty(3))
    with pytest.raises(ShapeError, match="'swish'"):
        init.calculate_gain("swish")
    with pytest.raises(ShapeError, match="'fan'"):
        init.kaiming_normal_(flow.empty(3, 3), mode="fan")
    with pytest.raises(ShapeError, match="3"):
        init.eye_(flow.empty(3))


def test_former_names_fill_the_tensor():
    for name, arguments in {"uniform": (2, 3), "normal": (2.5, 0.01), "constant": (2.5,)}.items():
        x = flow.zeros(50)
        with pytest.warns(UserWarning, match=f"init.{name} is the old name of init.{name}_"):
            assert getattr(nn.init, name)(x, *arguments) is x
        assert x.min() > 2 and x.max() < 3
    with pytest.warns(UserWarning, match="init.eye is the old name"):
        assert nn.init.eye(flow.ones(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
