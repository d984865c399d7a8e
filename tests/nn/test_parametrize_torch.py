"""Pruning and parametrizations against PyTorch: masks, names in state_dict, outputs and gradients."""

import importlib

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from tests.pytorch import T, needs_torch, torch

pytestmark = [needs_torch, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def pair(name, *args):
    """The same layer of both libraries, with the same weights."""
    theirs, ours = getattr(T, name)(*args), getattr(nn, name)(*args)
    copy_state(theirs, ours)
    return theirs, ours


def copy_state(theirs, ours):
    ours.load_state_dict({name: value.detach().numpy() for name, value in theirs.state_dict().items()})


def same_state(theirs, ours):
    assert list(theirs.state_dict()) == list(ours.state_dict())
    assert [name for name, _ in theirs.named_parameters()] == [name for name, _ in ours.named_parameters()]
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(value.numpy(), ours.state_dict()[name].numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def same_steps(theirs, ours, shape):
    """Compare outputs, and gradients of the parameters."""
    x = np.random.default_rng(0).normal(size=shape).astype("f")
    a, b = theirs(torch.tensor(x)), ours(flow.tensor(x))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
    a.pow(2).sum().backward()
    b.pow(2).sum().backward()
    for (name, p), (_, q) in zip(theirs.named_parameters(), ours.named_parameters()):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


def several(prune, layer):
    prune.l1_unstructured(layer, "weight", 0.3)
    prune.ln_structured(layer, "weight", 0.5, 1, 0)
    prune.l1_unstructured(layer, "weight", 0.5)


def removed(prune, layer):
    weight = layer.weight
    prune.l1_unstructured(layer, "weight", 0.3)
    prune.remove(layer, "weight")
    assert layer.weight is weight  # the object that an optimizer holds


PRUNED = {
    "l1": lambda prune, layer: prune.l1_unstructured(layer, "weight", 0.3),
    "count": lambda prune, layer: prune.l1_unstructured(layer, "bias", 2),
    "rows": lambda prune, layer: prune.ln_structured(layer, "weight", 0.5, 2, 0),
    "columns": lambda prune, layer: prune.ln_structured(layer, "weight", 1, float("inf"), 1),
    "identity": lambda prune, layer: prune.identity(layer, "weight"),
    "several": several,
    "removed": removed,
    "global": lambda prune, layer: prune.global_unstructured(
        [(layer, "weight"), (layer, "bias")], pruning_method=prune.L1Unstructured, amount=0.4
    ),
}


@pytest.mark.parametrize("name", PRUNED)
def test_prune(name):
    theirs, ours = pair("Linear", 7, 6)
    library = importlib.import_module("torch.nn.utils.prune")
    PRUNED[name](library, theirs)
    PRUNED[name](nn.utils.prune, ours)
    same_state(theirs, ours)
    same_steps(theirs, ours, (3, 7))
    assert nn.utils.prune.is_pruned(ours) == library.is_pruned(theirs)
    hooks = [[type(hook).__name__ for hook in layer._forward_pre_hooks.values()] for layer in (theirs, ours)]
    assert hooks[0] == hooks[1]


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    theirs, ours = pair("Linear", 4, 3)
    torch.nn.utils.parametrizations.weight_norm(theirs, dim=dim)
    nn.utils.parametrizations.weight_norm(ours, dim=dim)
    same_state(theirs, ours)
    same_steps(theirs, ours, (2, 4))


def test_old_names_of_weight_norm_load():
    state = nn.utils.weight_norm(nn.Linear(4, 3)).state_dict()
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    layer.load_state_dict(state)
    assert flow.equal(layer.parametrizations.weight.original0, state["weight_g"])


def test_spectral_norm():
    theirs, ours = T.Conv2d(3, 4, 2), nn.Conv2d(3, 4, 2)
    torch.nn.utils.parametrizations.spectral_norm(theirs)
    nn.utils.parametrizations.spectral_norm(ours)
    copy_state(theirs, ours)
    same_steps(theirs, ours, (2, 3, 5, 5))
    same_state(theirs, ours)


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal(sizes, kind, trivial):
    theirs, ours = pair("Linear", *sizes)
    for library, layer in ((torch.nn, theirs), (nn, ours)):
        library.utils.parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)
    if trivial and sizes[0] != sizes[1]:  # the base is completed by random columns
        copy_state(theirs, ours)
    same_state(theirs, ours)
    same_steps(theirs, ours, (2, sizes[0]))


def symmetric(library):
    class Symmetric(library.Module):
        def forward(self, X):
            return X.triu() + X.triu(1).mT

        def right_inverse(self, A):
            return A.triu()

    return Symmetric()


def test_assignment_and_removal():
    theirs, ours = pair("Linear", 4, 4)
    torch.nn.utils.parametrize.register_parametrization(theirs, "weight", symmetric(T))
    nn.utils.parametrize.register_parametrization(ours, "weight", symmetric(nn))
    same_state(theirs, ours)
    matrix = np.random.default_rng(1).normal(size=(4, 4)).astype("f")
    theirs.weight, ours.weight = torch.tensor(matrix + matrix.T), flow.tensor(matrix + matrix.T)
    same_state(theirs, ours)
    same_steps(theirs, ours, (2, 4))
    torch.nn.utils.parametrize.remove_parametrizations(theirs, "weight")
    nn.utils.parametrize.remove_parametrizations(ours, "weight")
    same_state(theirs, ours)
