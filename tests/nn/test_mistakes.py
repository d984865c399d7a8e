"""Error messages for learners: their values, names and line."""

import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DTypeError, MinflowWarning, ModuleError, OutOfRangeError, ShapeError, StateError
from minflow.core.source_location import warned_lines
from minflow.core.trace import trace

F = nn.functional
HERE = r"test_mistakes\.py:\d+"


def test_missing_super_init():
    class Net(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(2, 2)

    with pytest.raises(ModuleError, match=rf"(?s)Net .*'fc'.*{HERE}.*super\(\).__init__\(\)"):
        Net()

    class Late(nn.Module):
        def __init__(self):
            self.sizes = [1]

    with pytest.raises(ModuleError, match=r"(?s)Late was called.*super\(\).__init__\(\)"):
        Late()(flow.ones(1))
    with pytest.raises(AttributeError, match=r"(?s)'fc'.*super\(\).__init__\(\)"):
        Late().fc


def test_flatten_needs_a_batch():
    text = r"(?s)Flatten merges the axes from 1 on, but the input has only 1.*float32\[64\].*x\.unsqueeze\(0\)"
    with pytest.raises(IndexError, match=text):
        nn.Sequential(nn.Flatten(), nn.Linear(64, 10))(flow.ones(8, 8).flatten())
    with pytest.raises(TypeError, match="start_dim must be an integer, not str"):
        nn.Flatten("x")(flow.ones(2, 3))
    assert nn.Flatten(0)(flow.ones(3)).shape == (3,) and nn.Flatten(0)(flow.tensor(1.0)).shape == (1,)


@pytest.mark.parametrize("name", ["Forward", "foward", "build", "fowrard", "forwards"])
def test_misspelled_forward(name):
    Net = type("Net", (nn.Module,), {name: lambda self, x, y: x})
    with pytest.raises(ModuleError, match=rf"(?s)Net has no method forward.*{name}.*def forward\(self, x, y\)"):
        Net()(flow.ones(1))


def test_no_forward():
    class Net(nn.Module):
        def compute(self, x):
            return x

    with pytest.raises(ModuleError, match=r"(?s)Net has no method forward.*def forward\(self, x\)"):
        Net()(flow.ones(1))
    with pytest.raises(ModuleError, match="(?s)ModuleList.*for layer in"):
        nn.ModuleList([nn.ReLU()])(flow.ones(1))


def test_class_instead_of_instance():
    with pytest.raises(ModuleError, match=r"(?s)'1' must be a module, got the class ReLU.*nn\.ReLU\(\)"):
        nn.Sequential(nn.Linear(2, 2), nn.ReLU)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU

        def forward(self, x):
            return self.act(x)

    with pytest.raises(
        ModuleError, match=rf"(?s)class nn\.ReLU was called with a tensor.*float32\[2\].*in Net, called at .*{HERE}"
    ):
        Net()(flow.ones(2))
    with pytest.raises(ModuleError, match=r"(?s)nn\.CrossEntropyLoss\(\)\(logits, labels\)"):
        nn.CrossEntropyLoss(flow.ones(2, 2), flow.ones(2))
    with pytest.raises(ModuleError, match=r"(?s)class nn\.Linear"):
        nn.Linear(flow.ones(2))
    assert nn.CrossEntropyLoss(flow.ones(2)).weight.shape == (2,)


def test_function_or_list_instead_of_module():
    with pytest.raises(ModuleError, match=r"(?s)function relu.*nn\.ReLU\(\)"):
        nn.Sequential(nn.Linear(2, 2), F.relu)
    with pytest.raises(ModuleError, match=r"(?s)list of modules.*\*layers"):
        nn.Sequential([nn.Linear(2, 2)])


def test_layers_hidden_in_a_list():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]

    with pytest.warns(MinflowWarning, match=r"(?s)Net: parameters\(\) gives nothing.*layers.*2 of Linear.*ModuleList"):
        assert list(Net().parameters()) == []

    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(2, 2)
            self.more = {"a": nn.Linear(2, 2)}

    with pytest.warns(MinflowWarning, match=r"(?s)self\.more.*nn\.ModuleDict"):
        assert len(list(Partly().parameters())) == 2


def test_lists_without_hidden_layers(recwarn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.both = [self.a, self.b]
            self.acts = [nn.ReLU(), "text", nn.ReLU]

    assert len(list(Net().parameters())) == 4 and list(nn.ReLU().parameters()) == []
    assert not recwarn.list


def test_attribute_errors():
    net = nn.Module()
    net.encoder = nn.Linear(2, 2)
    with pytest.raises(AttributeError, match=r"(?s)'encodr'.*encoder"):
        net.encodr
    with pytest.raises(AttributeError, match="(?s)'zzz'.*encoder"):
        net.zzz
    assert not hasattr(net, "zzz") and getattr(net, "zzz", 3) == 3
    with pytest.raises(ModuleError, match=r"(?s)weight is a parameter.*copy_"):
        net.encoder.weight = flow.ones(2, 2)
    with pytest.raises(ModuleError, match="(?s)'encoder'.*int"):
        net.encoder = 3
    with pytest.raises(ModuleError, match=r"a\.b"):
        net.add_module("a.b", nn.ReLU())
    with pytest.raises(ModuleError, match="already has an attribute 'training'"):
        net.register_buffer("training", flow.ones(1))
    with pytest.raises(ModuleError, match="(?s)buffer.*list"):
        net.register_buffer("seen", [1.0])


def test_linear_shapes():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(784, 512)

        def forward(self, x):
            return self.fc1(x)

    net = Net()
    with pytest.raises(ShapeError) as error:
        net(flow.ones(64, 1, 28, 28))
    text = str(error.value)
    for part in (
        "28 features",
        "fc1.weight takes 784",
        "float32[64, 1, 28, 28]",
        "float32[512, 784]",
        "in Net.fc1, called at",
        "nn.Flatten()",
        "1 * 28 * 28 = 784",
    ):
        assert part in text, text
    assert re.search(HERE, text)
    with pytest.raises(ShapeError, match=r"nn\.Linear\(100, 512\)"):
        net(flow.ones(64, 100))
    with pytest.raises(ShapeError, match=r"x\.T"):
        net(flow.ones(784, 64))
    with pytest.raises(ShapeError, match=r"(?s)nn\.Linear\(512, 784\).*\(out_features, in_features\)"):
        net(flow.ones(64, 512))
    with pytest.raises(ShapeError, match=r"weight\.T"):
        F.linear(flow.ones(4, 3), flow.ones(3, 2))
    with pytest.raises(DTypeError, match=r"(?s)uint8.*float32.*/ 255"):
        net(flow.ones(2, 784).byte())
    with pytest.raises(DTypeError, match="ndarray"):
        net(np.ones((2, 784), "float32"))
    with pytest.raises(DTypeError, match=r"(?s)None.*return"):
        net(None)
    with pytest.raises(ModuleError, match="ReLU module"):
        net(nn.ReLU())
    with pytest.raises(ShapeError, match=r"in_features must be .* got 2\.5"):
        nn.Linear(2.5, 2)


def test_float64_input_warns_once_per_line():
    layer, x = nn.Linear(3, 2), flow.tensor(np.ones((1, 3)))
    with pytest.warns(MinflowWarning, match=r"(?s)float64.*float32.*x\.float\(\)") as seen:
        for _ in range(3):
            assert layer(x).dtype is flow.float64
    assert len(seen) == 1


LOGITS = flow.ones(4, 10)
REFUSED = [
    (
        ShapeError,
        lambda: nn.Conv2d(3, 8, 3)(flow.ones(2, 32, 32, 3)),
        r"(?s)32 channels \(axis 1\).*takes 3.*permute\(0, 3, 1, 2\)",
    ),
    (ShapeError, lambda: nn.Conv2d(3, 8, 3)(flow.ones(2, 1, 32, 32)), r"(?s)1 channels.*nn\.Conv2d\(1, 8"),
    (ShapeError, lambda: nn.Conv2d(3, 8, 3)(flow.ones(2, 32)), "2 axes"),
    (ShapeError, lambda: nn.Conv2d(1, 8, 3)(flow.ones(5, 28, 28)), r"unsqueeze\(1\)"),
    (ShapeError, lambda: nn.Conv2d(3, 8, 3, groups=2), "groups=2"),
    (ShapeError, lambda: nn.Conv2d(3, 8, "x"), "kernel_size must be .* got 'x'"),
    (ShapeError, lambda: nn.BatchNorm2d(3)(flow.ones(2, 32, 32, 3)), r"(?s)32 channels.*num_features is 3.*permute"),
    (ShapeError, lambda: nn.BatchNorm1d(3)(flow.ones(2, 3, 4, 4)), "(?s)4 axes.*BatchNorm2d"),
    (ShapeError, lambda: nn.LayerNorm(5)(flow.ones(2, 4)), r"\[5\]"),
    (ShapeError, lambda: F.cross_entropy(LOGITS, flow.zeros(4, 1).long()), r"(?s)must be \[4\].*got \[4, 1\].*squeeze"),
    (DTypeError, lambda: F.cross_entropy(LOGITS, flow.zeros(4)), r"float32.*(?s:.*)target\.long\(\)"),
    (
        OutOfRangeError,
        lambda: F.cross_entropy(LOGITS, flow.tensor([1, 2, 3, 10])),
        r"(?s)1 to 10.*10 classes.*target - 1",
    ),
    (OutOfRangeError, lambda: F.cross_entropy(LOGITS, flow.tensor([1, -1, 3, 9])), r"(?s)-1.*ignore_index=-1"),
    (ShapeError, lambda: F.cross_entropy(LOGITS, flow.zeros(5).long()), "as many labels as examples"),
    (ShapeError, lambda: F.cross_entropy(LOGITS, flow.zeros(4, 10).long()), "argmax"),
    (DTypeError, lambda: F.cross_entropy(flow.zeros(4).long(), LOGITS), "predictions first"),
    (ShapeError, lambda: F.cross_entropy(LOGITS, flow.zeros(4).long(), flow.ones(3)), r"\[3\].*10 classes"),
    (ShapeError, lambda: nn.MSELoss("avg"), "'avg'"),
    (OutOfRangeError, lambda: F.binary_cross_entropy(flow.full((3,), 2.0), flow.ones(3)), "(?s)2.*BCEWithLogits"),
    (
        ShapeError,
        lambda: F.binary_cross_entropy_with_logits(flow.ones(3, 1), flow.ones(3)),
        r"(?s)\[3, 1\].*\[3\].*squeeze",
    ),
    (OutOfRangeError, lambda: nn.Embedding(5, 2)(flow.tensor([1, 7])), "(?s)7.*5"),
    (DTypeError, lambda: nn.Embedding(5, 2)(flow.ones(2)), r"(?s)float32.*long"),
]


@pytest.mark.parametrize(("kind", "call", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_shapes_and_labels(kind, call, said):
    with pytest.raises(kind, match=said):
        call()


def test_silent_mistakes_warn(recwarn):
    x = flow.randn(4, 10, requires_grad=True)
    labels = flow.zeros(4).long()
    with pytest.warns(MinflowWarning, match="softmax"):
        F.cross_entropy(F.softmax(x, 1), labels)
    with pytest.warns(MinflowWarning, match="(?s)log_softmax.*NLLLoss"):
        F.cross_entropy(F.log_softmax(x, 1), labels)
    with pytest.warns(MinflowWarning, match="nll_loss"):
        F.nll_loss(F.softmax(x, 1), labels)
    with pytest.warns(MinflowWarning, match="sigmoid"):
        F.binary_cross_entropy_with_logits(F.sigmoid(x), flow.zeros(4, 10))
    for loss in (F.mse_loss, F.l1_loss):
        with pytest.warns(MinflowWarning, match=r"(?s)float32\[5, 1\].*float32\[5\]"):
            loss(flow.ones(5, 1), flow.ones(5))
    recwarn.clear()
    F.nll_loss(F.log_softmax(x, 1), labels)
    F.cross_entropy(x, labels)
    F.mse_loss(flow.ones(5, 1), flow.tensor(1.0))
    F.binary_cross_entropy(F.sigmoid(x), flow.zeros(4, 10))
    assert not recwarn.list


def test_mistakes_are_reported_in_a_trace():
    with pytest.raises(ShapeError, match=r"Linear\.weight takes 3"):
        trace(nn.Linear(3, 2), [flow.ones(1, 4)])
    weight = nn.Parameter(flow.ones(3))
    with pytest.warns(MinflowWarning, match="softmax"):
        trace(lambda x, y: F.cross_entropy(F.softmax(x * weight, 1), y), [flow.ones(4, 3), flow.zeros(4).long()])


def test_load_state_dict_reports_all_errors_together():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    state = {"0.weight": flow.ones(4, 3), "0.bias": "text", "1.weight": flow.ones(2, 3), "2.weight": flow.ones(1)}
    before = net[1].weight.tolist()
    with pytest.raises(StateError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    for part in (
        "1.bias",
        "2.weight",
        "0.weight: must be [3, 4], got [4, 3] (transposed: .T)",
        "0.bias: str",
        "nothing was loaded",
    ):
        assert part in text, text
    assert net[1].weight.tolist() == before
    wrapped = {"module." + k: v for k, v in net.state_dict().items()}
    with pytest.raises(StateError, match=r"removeprefix\('module\.'\)"):
        net.load_state_dict(wrapped)
    with pytest.raises(StateError, match=r"'weights' may be meant as 'weight'"):
        nn.Linear(2, 2, bias=False).load_state_dict({"weights": flow.ones(2, 2)})
    with pytest.raises(StateError, match=r"flow\.load\(path\)"):
        net.load_state_dict("model.safetensors")


@pytest.mark.parametrize(
    ("a", "b", "hint"),
    [
        (
            (50, 10),
            flow.zeros(50, dtype=flow.int64),
            r"F\.one_hot\(target, 10\)\.float\(\); or nn\.CrossEntropyLoss\(\)",
        ),
        ((50, 10), flow.zeros(50), r"a target of the input's shape \[50, 10\]"),
        ((50, 3), flow.zeros(50, 2), r"a target of the input's shape \[50, 3\]"),
    ],
)
@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.L1Loss()])
def test_regression_losses_refuse_mismatched_shapes(loss, a, b, hint):
    with pytest.raises(ShapeError, match=rf"(?s)input has shape \{list(a)}, target has \{list(b.shape)}.*Try: {hint}"):
        loss(flow.ones(*a), b)


@pytest.mark.parametrize(
    ("a", "b", "hint"),
    [
        ((8, 1), (8,), r"target\.unsqueeze\(1\), or input\.squeeze\(1\)"),
        ((8,), (8, 1), r"target\.squeeze\(1\)"),
        ((1, 8), (8, 1), r"target\.reshape\(input\.shape\)"),
    ],
)
def test_regression_losses_warn_on_broadcasting(a, b, hint):
    warned_lines().clear()  # one for each line
    with pytest.warns(MinflowWarning, match=rf"(?s)float32\{list(a)}.*float32\{list(b)}.*Try: {hint}"):
        F.mse_loss(flow.ones(*a), flow.ones(*b))
