"""autograd.grad with all its arguments."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.autograd import grad


def leaves():
    return flow.tensor([1.0, 2.0, 3.0], requires_grad=True), flow.tensor([4.0, 5.0], requires_grad=True)


def test_only_inputs_is_accepted():
    x, _ = leaves()
    (g,) = grad(
        outputs=x.square(), inputs=x, grad_outputs=flow.ones(3), create_graph=True, retain_graph=True, only_inputs=True
    )
    (second,) = grad(g.sum(), x)
    assert g.tolist() == [2.0, 4.0, 6.0] and second.tolist() == [2.0, 2.0, 2.0]


def test_inputs_from_any_iterable():
    x, other = leaves()
    for inputs in ([x, other], iter([x, other]), {"x": x, "other": other}.values()):
        assert [tuple(g.shape) for g in grad(x.sum() + other.sum(), inputs)] == [(3,), (2,)]


def test_parameter_list_is_an_iterable_of_parameters():
    """As in a learner whose `parameters()` returns the nn.ParameterList that holds them."""
    held = nn.ParameterList([nn.Parameter(flow.ones(2)), nn.Parameter(flow.ones(3))])
    loss = lambda: sum([(p**2).sum() for p in held])
    assert [g.tolist() for g in grad(loss(), held)] == [[2.0] * 2, [2.0] * 3]
    flow.autograd.backward(loss(), inputs=held)
    for parameters in (held, [{"params": held}]):
        flow.optim.SGD(parameters, lr=0.25).step()
    assert [p.tolist() for p in held] == [[0.0] * 2, [0.0] * 3]


@pytest.mark.parametrize("wrong", [nn.Linear(2, 1), nn.Linear(2, 1).parameters, [nn.Linear(2, 1)], nn.Linear])
def test_modules_and_functions_are_no_inputs(wrong):
    x = flow.ones(2, requires_grad=True)
    calls = [
        lambda: grad(x.sum(), wrong),
        lambda: grad(wrong, x),
        lambda: flow.autograd.backward(x.sum(), inputs=wrong),
    ]
    for call in calls:
        with pytest.raises(flow.GradError, match=r"must be tensors, got (a Linear|a method|the class Linear)"):
            call()


def test_unused_inputs_get_zeros():
    x, other = leaves()
    g, zero = grad(x.sum(), (x, other), materialize_grads=True)
    assert g.tolist() == [1.0] * 3 and zero.tolist() == [0.0, 0.0]
    assert grad(x.sum(), (x, other), allow_unused=True)[1] is None
    with pytest.raises(flow.GradError, match="do not depend on input 1"):
        grad(x.sum(), (x, other))
    with pytest.raises(flow.GradError, match="leave out allow_unused"):
        grad(x.sum(), (x, other), allow_unused=False, materialize_grads=True)


def test_batched_vectors_give_the_jacobian():
    x, other = leaves()
    y = flow.stack([x.prod(), x.square().sum()])
    jacobian, unused = grad(y, (x, other), flow.eye(2), is_grads_batched=True, materialize_grads=True)
    assert np.allclose(jacobian.numpy(), [[6, 3, 2], [2, 4, 6]]) and unused.shape == (2, 2)
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.sum().backward()
    with pytest.raises(flow.GradError, match="without grad_outputs"):
        grad(x.square(), x, is_grads_batched=True)


def test_arange_multiplies_its_step():
    numbers = flow.arange(-8.0, 8.0, 0.1, dtype=flow.float64)
    assert numbers.shape == (160,) and numbers[80] == 0 and numbers[155].item() == -8.0 + 155 * 0.1


def test_scatter_takes_a_scalar_keyword_and_reduce():
    index = flow.tensor([0, 2])
    assert flow.zeros(3).scatter_(0, index, value=1).tolist() == [1, 0, 1]
    assert flow.ones(3).scatter(0, index, 2.0, reduce="add").tolist() == [3, 1, 3]
    assert flow.full((3,), 3.0).scatter_(0, index, flow.tensor([2.0, 4.0]), reduce="multiply").tolist() == [6, 3, 12]
    with pytest.raises(flow.OutOfRangeError, match="scatter_reduce"):
        flow.ones(3).scatter(0, index, 2.0, reduce="mean")


def test_vector_index_needs_no_axes():
    place, zeros = flow.tensor(1), flow.zeros(3)
    assert flow.zeros(3).scatter_(0, place, value=1).tolist() == [0, 1, 0]
    for written in (
        zeros.scatter(0, place, flow.tensor(2.0)),
        zeros.scatter_add(0, place, flow.tensor([2.0])),
        zeros.scatter(0, place, 2, reduce="add"),
        zeros.scatter_reduce(0, place, flow.tensor(2.0), "sum"),
    ):
        assert written.tolist() == [0, 2, 0]
    assert flow.arange(5).gather(0, place).item() == 1 and flow.arange(5).gather(0, place).shape == ()
    with pytest.raises(flow.ShapeError, match="shape \\(\\)"):
        flow.zeros(3, 2).scatter(0, place, 1.0)


def test_distributions_import_paths():
    from minflow.distributions.categorical import Categorical
    from minflow.distributions.kl import kl_divergence

    from minflow.distributions import multinomial

    assert multinomial.Multinomial is flow.distributions.Multinomial and Categorical is flow.distributions.Categorical
    assert kl_divergence is flow.distributions.kl_divergence
