"""Subclasses of programs may use any public name that PyTorch's classes do not have for their own attributes."""

import pytest

import minflow as flow
from minflow import distributions, nn
from minflow.utils.data import BatchSampler, DataLoader, RandomSampler, StackDataset

LAYER_NAMES = (
    "axes function kind initialize normalize shared_doc padding_widths check_input run_layers run_sequence gates step "
    "initial_states repr_parts fold_from forward_hint repr_attributes output_padding_for shapes layer axis attentions"
).split()
IMAGE, SEQUENCE = flow.rand(2, 4, 6, 6), flow.rand(5, 2, 4)
LAYERS = {
    nn.Conv2d: ((4, 3, 3, 1, 1, 1, 1, True, "circular"), IMAGE),
    nn.ConvTranspose2d: ((4, 3, 3, 2), IMAGE),
    nn.BatchNorm2d: ((4,), IMAGE),
    nn.InstanceNorm2d: ((4,), IMAGE),
    nn.MaxPool2d: ((2,), IMAGE),
    nn.AdaptiveAvgPool2d: ((3,), IMAGE),
    nn.ReflectionPad2d: ((1,), IMAGE),
    nn.LSTM: ((4, 3), SEQUENCE),
    nn.GRUCell: ((4, 3), SEQUENCE[0]),
    nn.Embedding: ((5, 3), flow.tensor([1, 4])),
    nn.TransformerEncoderLayer: ((4, 2), SEQUENCE),
    nn.Sequential: ((nn.ReLU(), nn.Tanh()), IMAGE),
    nn.LazyLinear: ((3,), IMAGE),
    nn.Softplus: ((2.0,), IMAGE),
}


def own_class(base, names):
    """A subclass in which each of these names has a value of the program, in the class and in its objects."""

    class Own(base):
        def __init__(self, *args):
            super().__init__(*args)
            self.__dict__.update(dict.fromkeys(names, "mine"))

    for name in names:
        assert not hasattr(base, name), name
        setattr(Own, name, None)
    Own.__name__ = base.__name__
    return Own


@pytest.mark.parametrize("base", LAYERS)
def test_layers(base):
    args, x = LAYERS[base]
    flow.manual_seed(0)
    expected = base(*args)
    flow.manual_seed(0)
    layer = own_class(base, LAYER_NAMES)(*args)
    assert repr(layer) == repr(expected) and layer.kind == "mine"
    flow.manual_seed(1)
    want = expected(x)
    flow.manual_seed(1)
    got = layer(x)
    for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in (got, want)]):
        assert not isinstance(a, flow.Tensor) or flow.equal(a, b)


def test_weight_standardization():
    class WSConv2d(nn.Conv2d):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.initialize()

        def initialize(self):
            nn.init.ones_(self.weight)

        def normalize(self, weight):
            return weight - weight.mean((1, 2, 3), keepdim=True)

        def forward(self, x):
            return self._conv_forward(x, self.normalize(self.weight), None)

    assert WSConv2d(4, 3, 3, padding="same")(IMAGE).abs().max() == 0


@pytest.mark.parametrize(
    "name, args",
    {"Normal": (0.0, 2.0), "Gumbel": (0.0, 1.0), "Dirichlet": ([1.0, 2.0],), "Categorical": ([1.0, 3.0],)}.items(),
)
def test_distributions(name, args):
    names = (
        "extended_shape validate require validate_value parameter_names expanded_names raise_unavailable total by_probs"
    )
    base = getattr(distributions, name)
    args = [flow.tensor(x) for x in args]
    own, expected = own_class(base, names.split())(*args), base(*args)
    x = expected.sample()
    assert flow.equal(own.log_prob(x), expected.log_prob(x)) and repr(own) == repr(expected)
    assert own.expand([3]).sample([2]).shape == (2, 3, *own.event_shape) and own.total == "mine"
    with pytest.raises(ValueError, match="must be"):
        own_class(base, names.split())(*args[:-1], -args[-1])


def test_transforms():
    own = own_class(distributions.AffineTransform, ["parameters", "cached"])
    assert own(0.0, 2.0, 0) == own(0.0, 2.0, 0) != own(1.0, 2.0, 0)
    assert own(1.0, 2.0, 0)(flow.tensor(3.0)) == 7


def test_loaders():
    data = own_class(StackDataset, ["parts"])(flow.arange(6), flow.arange(6) * 2)
    batches = own_class(BatchSampler, ["batches"])(range(6), 4, False)
    names = ["iterate_inline", "iterate_prefetched", "emit_passed", "batched", "iterable"]
    loader = own_class(DataLoader, names)(data, 4)
    assert [a.tolist() for a, _ in loader] == [*batches] == [[0, 1, 2, 3], [4, 5]] and len(data) == 6
    assert sorted(own_class(RandomSampler, ["wanted"])(range(4))) == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:sparse tensors are stored dense")
def test_sparse_tensors():
    x = flow.eye(2).to_sparse()
    x.coo = "mine"
    assert x._nnz() == 2
    assert flow.equal(x.coalesce().to_dense(), flow.eye(2)) and x.coo == "mine"
