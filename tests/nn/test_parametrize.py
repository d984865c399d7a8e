"""Parametrizations and pruning in training, in graphs, after saving, and the errors of wrong calls."""

import copy

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DTypeError, ModuleError, OutOfRangeError, ShapeError
from minflow.nn.utils import parametrize, prune


class LowRank(nn.Module):
    """weight + B @ A, as in LoRA."""

    def __init__(self, features_in, features_out):
        super().__init__()
        self.A = nn.Parameter(flow.randn(1, features_out))
        self.B = nn.Parameter(flow.zeros(features_in, 1))
        self.enabled = True

    def forward(self, weight):
        return weight + self.B @ self.A if self.enabled else weight


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1))

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


def lora():
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    parametrize.register_parametrization(model[0], "weight", LowRank(3, 4))
    model[0].parametrizations.weight.original.requires_grad_(False)
    return model


def pruned():
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    prune.l1_unstructured(model[0], "weight", 0.5)
    return model


@pytest.mark.parametrize("make", [lora, pruned])
def test_a_graph_trains_the_same_parameters(make):
    x = flow.randn(5, 4)
    eager, graphed = make(), make()
    graph, step = Train(graphed), flow.optim.SGD([p for p in eager.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        loss = eager(x).square().mean()
        step.zero_grad()
        loss.backward()
        step.step()
        assert graph(x).item() == pytest.approx(loss.item(), rel=1e-5)
    for name, value in eager.state_dict().items():
        assert flow.allclose(value, graphed.state_dict()[name], atol=1e-6), name


def test_low_rank_update_is_switched_off():
    model = lora()
    frozen = model[0].parametrizations.weight.original.clone()
    with flow.no_grad():
        model[0].parametrizations.weight[0].B.fill_(1)
    assert not flow.allclose(model[0].weight, frozen)
    model[0].parametrizations.weight[0].enabled = False
    assert flow.equal(model[0].weight, frozen)
    assert list(model.state_dict())[:4] == [
        "0.bias",
        "0.parametrizations.weight.original",
        "0.parametrizations.weight.0.A",
        "0.parametrizations.weight.0.B",
    ]


@pytest.mark.parametrize("make", [lora, pruned])
def test_copies_and_saved_states(make, tmp_path):
    model = make()
    with flow.no_grad():
        for p in model.parameters():
            p.add_(0.5)
    flow.save(model.state_dict(), tmp_path / "model")
    loaded = make()
    loaded.load_state_dict(flow.load(tmp_path / "model"))
    x = flow.randn(2, 4)
    assert flow.equal(loaded(x), model(x)) and flow.equal(copy.deepcopy(model)(x), model(x))


def test_zeros_stay_zero_in_training():
    model = pruned()
    zeros = model[0].weight == 0
    optimizer = flow.optim.Adam(model.parameters())
    for _ in range(3):
        model(flow.randn(5, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert zeros.sum().item() == 6 and flow.equal(model[0].weight == 0, zeros)


def test_rewinding_to_first_weights():
    """The loop of the lottery-ticket hypothesis: train, prune the smallest weights, go back to the first ones."""
    flow.manual_seed(1)
    layer = nn.Linear(6, 5)
    first = layer.weight.detach().clone()
    for rounds in range(1, 4):
        with flow.no_grad():
            (layer.weight_orig if rounds > 1 else layer.weight).mul_(2)
        prune.l1_unstructured(layer, "weight", 0.2)
        layer.weight_orig.data = first.clone()
        assert flow.equal(layer.weight, first * layer.weight_mask)
        assert (layer.weight == 0).sum().item() == [6, 11, 15][rounds - 1]  # a fifth of those that are left


def test_own_method_and_structured_kinds():
    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = nn.Linear(4, 2)
    EveryOther.apply(layer, "weight")
    assert layer.weight_mask.flatten().tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    EveryOther.apply(layer, "weight")
    assert layer.weight_mask.flatten().tolist() == [0, 0, 0, 1, 0, 0, 0, 1]
    container = next(iter(layer._forward_pre_hooks.values()))
    assert [type(method) for method in container] == [EveryOther, EveryOther] and container._tensor_name == "weight"
    conv = nn.Conv2d(3, 4, 2)
    prune.random_structured(conv, "weight", 2, dim=1)
    assert sorted(conv.weight_mask.sum((0, 2, 3)).tolist()) == [0, 0, 16]
    prune.random_unstructured(conv, "bias", 0.5)
    assert conv.bias_mask.sum().item() == 2


def test_cached_weights_are_computed_once():
    calls = []

    class Counted(nn.Module):
        def forward(self, weight):
            calls.append(1)
            return weight * 2

    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Counted(), unsafe=True)
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert len(calls) == 1 and layer.weight is not layer.weight


def test_two_parametrizations_and_transfer():
    class Scale(nn.Module):
        def forward(self, x):
            return x * 3

    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    original = layer.weight
    for _ in range(2):
        parametrize.register_parametrization(layer, "weight", Scale())
    assert flow.allclose(layer.weight, original * 9) and len(layer.parametrizations.weight) == 2
    parametrize.transfer_parametrizations_and_params(layer, other)
    assert flow.equal(other.weight, layer.weight)
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight is original and not parametrize.is_parametrized(layer)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda l: prune.l1_unstructured(l, "wait", 0.2), ModuleError, "no parameter 'wait'"),
        (lambda l: prune.l1_unstructured(l, "weight", 1.2), OutOfRangeError, "between 0 and 1, got 1.2"),
        (lambda l: prune.l1_unstructured(l, "weight", 7), OutOfRangeError, "at most .* 6, got 7"),
        (lambda l: prune.l1_unstructured(l, "weight", "all"), ModuleError, "must be a number, got 'all'"),
        (lambda l: prune.remove(l, "weight"), ModuleError, "'weight' of this Linear is not pruned"),
        (lambda l: prune.custom_from_mask(l, "weight", flow.ones(2)), ShapeError, r"\(2, 3\)"),
        (lambda l: prune.global_unstructured([], prune.L1Unstructured), ModuleError, "no parameters"),
        (
            lambda l: prune.global_unstructured([(l, "weight")], prune.LnStructured, amount=1, n=1),
            ModuleError,
            "only unstructured",
        ),
        (lambda l: prune.ln_structured(l, "bias", 1, 1, 0), ShapeError, "1 axis"),
        (lambda l: parametrize.register_parametrization(l, "wait", nn.Identity()), ModuleError, "'wait'"),
        (lambda l: parametrize.register_parametrization(l, "weight", nn.Flatten(0)), ShapeError, r"\(2, 3\)"),
        (lambda l: parametrize.remove_parametrizations(l, "weight"), ModuleError, "'weight' of this Linear"),
        (lambda l: nn.utils.parametrizations.orthogonal(l, "bias"), ShapeError, "2 axes or more, got 1"),
        (lambda l: nn.utils.parametrizations.orthogonal(l, orthogonal_map="x"), OutOfRangeError, "'x'"),
        (lambda l: nn.utils.parametrizations.spectral_norm(l, n_power_iterations=0), OutOfRangeError, "got 0"),
    ],
)
def test_errors(call, error, text):
    layer = nn.Linear(3, 2)
    with pytest.raises(error, match=text) as caught:
        call(layer)
    assert caught.value.hint
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight"]


def test_errors_of_assignments():
    layer = nn.Linear(3, 2)
    prune.identity(layer, "weight")
    with pytest.raises(ModuleError, match=r"weight_orig \* weight_mask") as caught:
        layer.weight = flow.ones(2, 3)
    assert "weight_orig" in caught.value.hint
    other = nn.Linear(3, 2)
    parametrize.register_parametrization(other, "weight", nn.Tanh())
    with pytest.raises(ModuleError, match="Tanh has no right_inverse"):
        other.weight = flow.ones(2, 3)
    normed = nn.utils.weight_norm(nn.Linear(3, 2))
    with pytest.raises(ModuleError, match="computed by WeightNorm") as caught:
        normed.weight = flow.ones(2, 3)
    assert "weight_g, weight_v" in caught.value.hint

    class Half(nn.Module):
        def forward(self, x):
            return x.half()

    with pytest.raises(DTypeError, match="float32"):
        parametrize.register_parametrization(nn.Linear(3, 2), "weight", Half())
