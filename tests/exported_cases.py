"""Test cases of every exported layer, loss, optimizer and schedule, which run eagerly and as a graph.

The lists are read from the package, so new exports are included. A row here constructs a class whose arguments have no
defaults, or adds options; `test_registration.py` names classes that need a row.
"""

import inspect
import warnings

import numpy as np

import minflow as flow
from minflow import nn
from minflow.nn.modules.loss import Loss
from tests.image_layer_cases import IMAGE_BASES as IMAGE_BASES, IMAGE_LAYERS

IMAGES, ROWS = (4, 6, 8, 8), (4, 6)
IDS = np.array([[0, 4], [2, 2], [1, 3], [4, 0]])
LABELS = np.array([0, 2, 1, 1])


class AdaptiveSoftmax(nn.Module):
    """The loss of an adaptive softmax, with the largest column as label."""

    def __init__(self):
        super().__init__()
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(6, 12, [1, 2], div_value=2.0)

    def forward(self, x):
        return self.layer(x, x.argmax(1)).loss


class PairedInput(nn.Module):
    """A layer of two tensors that is given one: the other is computed from it."""

    def __init__(self, layer, other=lambda x: x * 0.5 + 1):
        super().__init__()
        self.layer, self.other = layer, other

    def forward(self, x):
        return self.layer(x, self.other(x))


def exported(holder, base: type) -> dict[str, type]:
    """Return name -> class for the public subclasses of `base` in a namespace."""
    return {
        name: cls
        for name in dir(holder)
        if inspect.isclass(cls := getattr(holder, name))
        and issubclass(cls, base)
        and cls is not base
        and name == cls.__name__
    }


def single_device(module: nn.Module) -> nn.Module:
    """Construct DataParallel without its notice about a single device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.DataParallel(module)


LAYERS = {  # name -> (constructor, input shape or input)
    "BatchNorm1d": [(lambda: nn.BatchNorm1d(6), ROWS)],
    "BatchNorm2d": [
        (lambda: nn.BatchNorm2d(6), IMAGES),
        (lambda: nn.BatchNorm2d(6, momentum=None), IMAGES),
        (lambda: nn.BatchNorm2d(6, affine=False), IMAGES),
        (lambda: nn.BatchNorm2d(6).eval(), IMAGES),
    ],
    "CombinedMarginLoss": [
        (
            lambda: nn.Sequential(
                nn.Tanh(),
                PairedInput(nn.CombinedMarginLoss(1.0, 0.5, 0.1), lambda x: flow.tensor(LABELS, device=x.device)),
            ),
            ROWS,
        )
    ],
    "Conv2d": [
        (lambda: nn.Conv2d(6, 4, 3), IMAGES),
        (lambda: nn.Conv2d(6, 6, 3, 2, 1, groups=6), IMAGES),
        (lambda: nn.Conv2d(6, 4, (2, 3), padding="same"), IMAGES),
    ],
    "DataParallel": [(lambda: single_device(nn.Linear(6, 3)), ROWS)],
    "Dropout": [(lambda: nn.Dropout(0.4), IMAGES), (lambda: nn.Dropout(0.4).eval(), IMAGES)],
    "Embedding": [(lambda: nn.Embedding(5, 3, padding_idx=0), IDS)],
    "Flatten": [(nn.Flatten, IMAGES)],
    "GELU": [(nn.GELU, ROWS), (lambda: nn.GELU("tanh"), ROWS)],
    "LayerNorm": [(lambda: nn.LayerNorm(8), IMAGES)],
    "LeakyReLU": [(lambda: nn.LeakyReLU(inplace=True), ROWS)],
    "Linear": [(lambda: nn.Linear(6, 3), ROWS), (lambda: nn.Linear(8, 3), IMAGES)],
    "LogSoftmax": [(lambda: nn.LogSoftmax(-1), IMAGES)],
    "ReLU6": [(lambda: nn.ReLU6(inplace=True), ROWS)],
    "Sequential": [
        (
            lambda: nn.Sequential(
                nn.Conv2d(6, 4, 3),
                nn.BatchNorm2d(4),
                nn.ReLU(inplace=True),
                nn.Dropout(0.1),
                nn.Flatten(),
                nn.Linear(144, 2),
            ),
            IMAGES,
        ),
    ],
    "Softmax": [(lambda: nn.Softmax(1), ROWS)],
    "Unflatten": [(lambda: nn.Unflatten(1, (2, 3)), ROWS)],
}
LAYERS |= IMAGE_LAYERS
SIGNALS, VOLUMES = (4, 6, 8), (2, 6, 2, 4, 4)
LAYERS |= {
    "AdaptiveLogSoftmaxWithLoss": [(AdaptiveSoftmax, ROWS)],
    "AlphaDropout": [(lambda: nn.AlphaDropout(0.4), ROWS)],
    "Bilinear": [(lambda: PairedInput(nn.Bilinear(6, 6, 2)), ROWS)],
    "CELU": [(lambda: nn.CELU(0.5, inplace=True), ROWS)],
    "CosineSimilarity": [(lambda: PairedInput(nn.CosineSimilarity()), ROWS)],
    "Dropout1d": [(lambda: nn.Dropout1d(0.4), SIGNALS)],
    "Dropout2d": [(lambda: nn.Dropout2d(0.4), IMAGES)],
    "Dropout3d": [(lambda: nn.Dropout3d(0.4), VOLUMES)],
    "EmbeddingBag": [
        (lambda: nn.EmbeddingBag(5, 3, mode="max"), IDS),
        (
            lambda: PairedInput(nn.EmbeddingBag(5, 3, padding_idx=0), lambda x: flow.tensor([0, 3], device=x.device)),
            IDS.reshape(-1),
        ),
    ],
    "FractionalMaxPool2d": [(lambda: nn.FractionalMaxPool2d(2, output_size=2), IMAGES)],
    "FractionalMaxPool3d": [(lambda: nn.FractionalMaxPool3d((1, 2, 2), output_size=(2, 3, 3)), VOLUMES)],
    "FeatureAlphaDropout": [(lambda: nn.FeatureAlphaDropout(0.4), IMAGES)],
    "PReLU": [(nn.PReLU, ROWS), (lambda: nn.PReLU(6), IMAGES)],
    "PairwiseDistance": [(lambda: PairedInput(nn.PairwiseDistance()), ROWS)],
    "Softmax2d": [(nn.Softmax2d, IMAGES)],
    "Softmin": [(lambda: nn.Softmin(1), ROWS)],
    "Threshold": [(lambda: nn.Threshold(0.1, -1.0, inplace=True), ROWS)],
}
SIGNS = np.array([[1, -1, 1], [-1, 1, 1], [1, 1, -1], [-1, -1, 1]], "float32")
OTHERS = np.random.default_rng(1).uniform(0.1, 0.9, (4, 3)).astype("float32")
TARGETS = {  # losses whose target is not floating-point, or that take several
    "NLLLoss": LABELS,
    "CrossEntropyLoss": LABELS,
    "CTCLoss": (np.array([1, 2]), np.array(4), np.array(2)),
    "CosineEmbeddingLoss": (OTHERS, SIGNS[:, 0]),
    "GaussianNLLLoss": (OTHERS, OTHERS),
    "HingeEmbeddingLoss": SIGNS,
    "MarginRankingLoss": (OTHERS, SIGNS),
    "MultiLabelMarginLoss": np.array([[0, 2, -1], [1, -1, 0], [-1, 0, 1], [2, 1, 0]]),
    "MultiMarginLoss": LABELS,
    "SoftMarginLoss": SIGNS,
    "TripletMarginLoss": (OTHERS, SIGNS),
    "TripletMarginWithDistanceLoss": (OTHERS, SIGNS),
}
SEQUENCE = (4, 2, 6)


class Repeated(nn.Module):
    """A layer of several inputs that gets the same one for each."""

    def __init__(self, layer, times):
        super().__init__()
        self.layer, self.times = layer, times

    def forward(self, x):
        return self.layer(*[x] * self.times)


LAYERS |= {  # over sequences
    "RNN": [(lambda: nn.RNN(6, 3, nonlinearity="relu"), SEQUENCE)],
    "LSTM": [
        (lambda: nn.LSTM(6, 3, 2, batch_first=True, dropout=0.4, bidirectional=True), SEQUENCE),
        (lambda: nn.LSTM(6, 3, bias=False, proj_size=2), SEQUENCE),
    ],
    "GRU": [(lambda: nn.GRU(6, 3, bidirectional=True), SEQUENCE)],
    "RNNCell": [(lambda: nn.RNNCell(6, 3), ROWS)],
    "LSTMCell": [(lambda: nn.LSTMCell(6, 3), ROWS)],
    "GRUCell": [(lambda: nn.GRUCell(6, 3), ROWS)],
    "MultiheadAttention": [
        (lambda: Repeated(nn.MultiheadAttention(6, 2, 0.4), 3), SEQUENCE),
        (
            lambda: Repeated(nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True, batch_first=True), 3),
            SEQUENCE,
        ),
    ],
    "TransformerEncoderLayer": [(lambda: nn.TransformerEncoderLayer(6, 2, 5, norm_first=True), SEQUENCE)],
    "TransformerDecoderLayer": [(lambda: Repeated(nn.TransformerDecoderLayer(6, 2, 5, 0.0, "gelu"), 2), SEQUENCE)],
    "TransformerEncoder": [(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 5), 2), SEQUENCE)],
    "TransformerDecoder": [
        (lambda: Repeated(nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 5), 1), 2), SEQUENCE)
    ],
    "Transformer": [(lambda: Repeated(nn.Transformer(6, 2, 1, 1, 5, batch_first=True), 2), SEQUENCE)],
}
LOSSES = {  # name -> options to test in addition to each reduction
    "CrossEntropyLoss": [{"weight": flow.tensor([1.0, 2.0, 0.5]), "ignore_index": 1, "label_smoothing": 0.1}],
    "BCEWithLogitsLoss": [{"pos_weight": flow.tensor([1.0, 2.0, 0.5])}],
    "GaussianNLLLoss": [{"full": True}],
    "KLDivLoss": [{"reduction": "batchmean", "log_target": True}],
    "MultiMarginLoss": [{"p": 2, "weight": flow.tensor([1.0, 2.0, 0.5])}],
    "PoissonNLLLoss": [{"log_input": False, "full": True}],
    "SmoothL1Loss": [{"beta": 0.1}],
    "TripletMarginLoss": [{"p": 1.0, "swap": True}],
}
OPTIMIZERS = {  # name -> options to test in addition to the defaults
    "SGD": [
        {"weight_decay": 0.1, "maximize": True},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.9, "dampening": 0.5},
    ],
    "Adam": [{"weight_decay": 0.1}],
    "AdamW": [{"amsgrad": True}],
    "RMSprop": [{"momentum": 0.9}, {"centered": True, "alpha": 0.5}, {"centered": True, "momentum": 0.9}],
    "Adagrad": [{"lr_decay": 0.1, "initial_accumulator_value": 0.5}],
    "NAdam": [{"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{"betas": (0.5, 0.9)}],
    "ASGD": [{"t0": 2}],
    "LAMB": [{"weight_decay": 0.1, "adam_w_mode": False}],
}
s = flow.optim.lr_scheduler
SCHEDULES = {  # name -> constructor for an optimizer with two param groups
    "StepLR": lambda o: s.StepLR(o, 2, 0.5),
    "MultiStepLR": lambda o: s.MultiStepLR(o, [1, 3], 0.1),
    "LinearLR": lambda o: s.LinearLR(o, 0.1, total_iters=4),
    "CosineAnnealingLR": lambda o: s.CosineAnnealingLR(o, 5),
    "LambdaLR": lambda o: s.LambdaLR(o, [lambda k: 0.9**k, lambda k: 1.0]),
    "MultiplicativeLR": lambda o: s.MultiplicativeLR(o, lambda k: 0.9),
    "ConstantLR": lambda o: s.ConstantLR(o, 0.5, 9),
    "ExponentialLR": lambda o: s.ExponentialLR(o, 0.8),
    "PolynomialLR": lambda o: s.PolynomialLR(o, 4, 2.0),
    "CosineAnnealingWarmRestarts": lambda o: s.CosineAnnealingWarmRestarts(o, 4, 2),
    "CosineDecayLR": lambda o: s.CosineDecayLR(o, 4, 0.1),
    "OneCycleLR": lambda o: s.OneCycleLR(o, [0.3, 0.2], 8, cycle_momentum=False),
    "CyclicLR": lambda o: s.CyclicLR(o, 0.01, 0.2, 2, cycle_momentum=False),
    "ChainedScheduler": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 2), s.ExponentialLR(o, 0.9)]),
    "WarmupLR": lambda o: s.WarmupLR(o, 0.5, 3),
    "SequentialLR": lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=2), s.StepLR(o, 1, 0.7)], [2]),
}


def callable_layers() -> dict[str, type]:
    """Return the layers that can be called: all modules except losses and containers that only hold others."""
    return {
        name: cls
        for name, cls in exported(nn, nn.Module).items()
        if not issubclass(cls, Loss) and cls.forward is not nn.Module.forward
    }


def losses() -> dict[str, type]:
    return exported(nn, Loss)


def optimizers() -> dict[str, type]:
    """Return the optimizers that a graph runs; tests/optim/test_lbfgs.py has the other one."""
    every = exported(flow.optim, flow.optim.Optimizer)
    return {name: cls for name, cls in every.items() if cls._update_rule is not flow.optim.Optimizer._update_rule}


def schedules() -> dict[str, type]:
    """Return the schedules that need no metric, which a graph cannot pass."""
    return {name: cls for name, cls in exported(s, s.LRScheduler).items() if cls is not s.ReduceLROnPlateau}


def needs_arguments(cls: type) -> bool:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.default is p.empty and p.kind not in kinds for p in inspect.signature(cls).parameters.values())


def layer_cases() -> list[tuple]:
    """Return tuples (name, constructor, input shape or input)."""
    return [
        (name, *row)
        for name, cls in callable_layers().items()
        for row in LAYERS.get(name, [] if needs_arguments(cls) else [(cls, ROWS)])
    ]


def input_of(x) -> np.ndarray:
    """Return the input of a layer's case; random if the case has a shape."""
    return np.random.default_rng(0).standard_normal(x).astype("float32") if isinstance(x, tuple) else x


def loss_cases() -> list[tuple]:
    """Return tuples (name, options of the loss)."""
    reductions = [{"reduction": reduction} for reduction in ("mean", "sum", "none")]
    return [(name, options) for name in losses() for options in [*reductions, *LOSSES.get(name, [])]]


def optimizer_cases() -> list[tuple]:
    """Return tuples (name, options of the optimizer)."""
    return [(name, options) for name in optimizers() for options in [{}, *OPTIMIZERS.get(name, [])]]
