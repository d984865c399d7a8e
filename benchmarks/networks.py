"""Benchmark eager minflow against eager PyTorch: a train step and a prediction of each network, alternating in one run.

    python benchmarks/networks.py                        # every network, one thread on one core: ten minutes
    python benchmarks/networks.py --only resnet18 unet   # some networks
    python benchmarks/networks.py --quick                # one of each family, three rounds
    python benchmarks/networks.py --output result.json   # the figures as JSON
    MINFLOW_MACHINE=0 python benchmarks/networks.py      # NumPy's kernels; 1: compiled ones for arrays of any size

PyTorch runs in two layouts, contiguous and channels_last; a ratio is the median of paired rounds, relative to the
layout that is faster in that row, as in `compiled.py`. Its networks are built from minflow's own definitions: the
source of a module of `minflow.vision.models` is executed with PyTorch in place of minflow. Before a network is timed,
both get the same weights, and the prediction, the loss and all gradients must agree in float64.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import copy
import gc
import importlib
import importlib.util
import statistics
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import compiled
import numpy as np
import record
import timing
import trainings
from compiled import KINDS, TORCH
from timing import human

from minflow.core.base.errors import MissingDependencyError
from minflow.platforms.compiled import policy, warmup
from minflow.platforms.compiled.config import CompiledKernelConfig

OURS = "minflow"
AIMS = {"median": 1.0, "worst": 1.5}
TOLERANCE = 1e-8  # relative difference in float64, in the Euclidean norm
SHARED = ("", ".nn", ".nn.functional", ".core.functions", ".core.functions.creation", ".core.tensor")
SHARED += (".core.grad.modes",)  # modules of minflow whose names are PyTorch's


class Network(NamedTuple):
    """A network and its data.

    model: function (package, its `nn`) that builds it.  batch: function (generator of numpy) that returns inputs and
    labels.  loss: name of a layer of `nn`, or "" if the model returns its loss.  quick: True if `--quick` includes it.
    """

    model: Callable
    batch: Callable
    loss: str = "CrossEntropyLoss"
    quick: bool = False


# ---- the networks ----------------------------------------------------------------------------------------------------


def definitions(module: str, lib: Any) -> Any:
    """The names that a module of minflow defines, built from the layers and functions of `lib`."""
    if lib.__name__ == "minflow":
        return importlib.import_module(module)
    spec = importlib.util.find_spec(module)
    replaced = {f"minflow{name}": lib for name in SHARED} | {"minflow.nn": lib.nn}

    def import_(name, globals=None, locals=None, fromlist=(), level=0):
        if not level:
            return builtins.__import__(name, globals, locals, fromlist, level)
        absolute = importlib.util.resolve_name("." * level + name, spec.parent)
        return replaced.get(absolute) or importlib.import_module(absolute)

    names = {"__name__": module, "__builtins__": {**vars(builtins), "__import__": import_}}
    exec(compile(spec.loader.get_source(module), spec.origin, "exec"), names)
    return SimpleNamespace(**names)


def vision(module: str, name: str, batch: Callable, loss: str = "CrossEntropyLoss", quick: bool = False, **options):
    model = lambda lib, nn: getattr(definitions(f"minflow.vision.models.{module}", lib), name)(**options)
    return Network(model, batch, loss, quick)


def classifier(module: str, name: str, *shape: int, quick: bool = False, **options) -> Network:
    """A classifier of images of this shape, ten classes."""
    return vision(module, name, samples(*shape), quick=quick, num_classes=10, **options)


def samples(*shape: int, labels: tuple = (), classes: int = 10) -> Callable:
    """Batches of floats of this shape, each sample with labels of this shape."""
    return lambda rng: (rng.standard_normal(shape).astype("f4"), rng.integers(0, classes, (shape[0], *labels)))


def targets(*shape: int, to: tuple = ()) -> Callable:
    """Batches of floats of this shape whose labels are floats in [0, 1) of shape `to`, by default the same."""
    return lambda rng: (rng.random(shape, "f4"), rng.random(to or shape, "f4"))


def text(batch: int, length: int, vocabulary: int = 96, classes: int = 10) -> Callable:
    return lambda rng: (rng.integers(0, vocabulary, (batch, length)), rng.integers(0, classes, batch))


def gpt(lib, nn):
    """Four blocks of width 128. Returns the loss in train mode, else the logits of the last position."""
    names = definitions("minflow.models.gpt", lib)

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.gpt = names.GPT(names.GPTConfig(64, 96, 4, 4, 128))

        def forward(self, tokens):
            logits, loss = self.gpt(tokens[:, :-1], tokens[:, 1:] if self.training else None)
            return loss if self.training else logits

    return Text()


def recurrent(kind: str) -> Callable:
    """A classifier of texts: an embedding, two recurrent layers of width 128, a linear layer."""

    def make(lib, nn):
        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.linear = nn.Embedding(96, 128), nn.Linear(128, 10)
                self.layers = getattr(nn, kind)(128, 128, num_layers=2, batch_first=True)

            def forward(self, tokens):
                return self.linear(self.layers(self.embedding(tokens))[0][:, -1])

        return Recurrent()

    return make


def transformer_encoder(lib, nn):
    """A classifier of texts: an embedding, two encoder layers of width 128, a linear layer of their mean."""

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.linear = nn.Embedding(96, 128), nn.Linear(128, 10)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 512, batch_first=True), 2)

        def forward(self, tokens):
            return self.linear(self.encoder(self.embedding(tokens)).mean(1))

    return Classifier()


def conv1d(lib, nn):
    """A classifier of sound: four 1-D convolutions with batch norm."""
    layers, width = [], 1
    for wider, kernel, stride in [(32, 9, 4), (64, 5, 2), (128, 5, 2), (128, 3, 1)]:
        layers += [nn.Conv1d(width, wider, kernel, stride, kernel // 2), nn.BatchNorm1d(wider), nn.ReLU()]
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 10))


def autoencoder(lib, nn):
    """Three convolutions of stride 2, and three transposed ones."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 7), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 7), nn.ReLU(), nn.ConvTranspose2d(32, 16, 3, 2, 1, 1), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 3, 2, 1, 1), nn.Sigmoid(),
    )  # fmt: skip


def conv_transpose1d(lib, nn):
    """A decoder of sound: three transposed 1-D convolutions."""
    return nn.Sequential(
        nn.ConvTranspose1d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(64, 32, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose1d(32, 1, 8, 4, 2),
    )  # fmt: skip


def vae(lib, nn):
    """The variational autoencoder of PyTorch's examples; returns its loss in train mode, else the reconstruction."""

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.mean, self.log_variance = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
            self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())
            self.register_buffer("noise", lib.randn(128, 20))

        def forward(self, x):
            hidden = lib.relu(self.encoder(x))
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            decoded = self.decoder(mean + (self.noise * lib.exp(0.5 * log_variance) if self.training else 0.0))
            if not self.training:
                return decoded
            error = nn.functional.binary_cross_entropy(decoded, x, reduction="sum")
            return error - 0.5 * lib.sum(1 + log_variance - mean.pow(2) - log_variance.exp())

    return VAE()


NETWORKS: dict[str, Network] = {
    "alexnet": classifier("alexnet", "alexnet", 16, 3, 64, 64, quick=True),
    "lenet": classifier("lenet", "lenet", 100, 1, 28, 28, quick=True),
    **{f"vgg{n}": classifier("vgg", f"vgg{n}", 2, 3, 64, 64, quick=n == "11") for n in ("11", "13", "16", "19")},
    **{f"vgg{n}_bn": classifier("vgg", f"vgg{n}_bn", 2, 3, 64, 64) for n in ("11", "13", "16", "19")},
    **{f"resnet{n}": classifier("resnet", f"resnet{n}", 8, 3, 64, 64, quick=n == 18) for n in (18, 34)},
    **{f"resnet{n}": classifier("resnet", f"resnet{n}", 4, 3, 64, 64, quick=n == 50) for n in (50, 101, 152)},
    "resnext50_32x4d": classifier("resnet", "resnext50_32x4d", 4, 3, 64, 64, quick=True),
    "wide_resnet50_2": classifier("resnet", "wide_resnet50_2", 4, 3, 64, 64),
    "mobilenet_v2": classifier("mobilenet_v2", "mobilenet_v2", 16, 3, 64, 64, quick=True),
    "squeezenet1_0": classifier("squeezenet", "squeezenet1_0", 16, 3, 64, 64),
    "squeezenet1_1": classifier("squeezenet", "squeezenet1_1", 16, 3, 64, 64, quick=True),
    "unet": vision("unet", "UNet", samples(2, 3, 64, 64, labels=(64, 64), classes=4), quick=True, n_classes=4),
    "dcgan generator": vision("dcgan", "DCGANGenerator", targets(16, 100, 1, 1, to=(16, 3, 64, 64)), "MSELoss", True),
    "dcgan discriminator": vision(
        "dcgan", "DCGANDiscriminator", targets(16, 3, 64, 64, to=(16, 1, 1, 1)), "BCELoss", True
    ),
    "style transfer": vision(
        "neural_style_transfer.stylenet", "NeuralStyleTransfer", targets(2, 3, 64, 64), "MSELoss", True
    ),
    "vit_b_16": classifier("vision_transformer", "vit_b_16", 4, 3, 64, 64, image_size=64),
    "vit_tiny": classifier("vision_transformer", "vit_tiny", 32, 3, 32, 32, quick=True),
    "gpt": Network(gpt, text(8, 65), "", True),
    "LSTM": Network(recurrent("LSTM"), text(16, 64), quick=True),
    "GRU": Network(recurrent("GRU"), text(16, 64), quick=True),
    "TransformerEncoder": Network(transformer_encoder, text(16, 64), quick=True),
    "conv1d": Network(conv1d, samples(16, 1, 4000), quick=True),
    "conv_transpose1d": Network(conv_transpose1d, targets(8, 64, 256, to=(8, 1, 4096)), "MSELoss", True),
    "autoencoder": Network(autoencoder, targets(64, 1, 28, 28), "MSELoss", True),
    "vae": Network(vae, targets(128, 784), "", True),
}


def training(library, name: str) -> trainings.Training:
    """The network in train mode, its loss, optimizer and batch."""
    lib, nn = library
    network = NETWORKS[name]
    lib.manual_seed(0)
    model = network.model(lib, nn).train()
    loss_fn = getattr(nn, network.loss)() if network.loss else lambda loss, _: loss
    batch = tuple([lib.from_numpy(array) for array in network.batch(np.random.default_rng(0))])
    return trainings.Training(model, loss_fn, lib.optim.SGD(model.parameters(), lr=1e-4), batch)


# ---- agreement -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_dropout(model) -> Iterator[None]:
    """Set the rate of all dropout layers, and of attention, to zero in this block."""
    rates = [(m, name, vars(m)[name]) for m in model.modules() for name in ("p", "dropout") if is_rate(m, name)]
    for module, name, _ in rates:
        setattr(module, name, 0.0)
    yield
    for module, name, rate in rates:
        setattr(module, name, rate)


def is_rate(module, name: str) -> bool:
    return isinstance(vars(module).get(name), float)


def results(training: trainings.Training) -> dict[str, np.ndarray]:
    """The prediction, the loss, and the gradients of all parameters in float64, without dropout."""
    model, loss_fn, _, batch = training
    model.double()
    x, y = [t.double() if t.is_floating_point() else t for t in batch]
    found = {"prediction": model.eval()(x).detach().numpy()}
    with without_dropout(model.train()):
        loss = loss_fn(model(x), y)
        loss.backward()
    found |= {"loss": loss.detach().numpy()}
    return found | {f"gradient of {n}": p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}


def difference(ours: trainings.Training, theirs: trainings.Training) -> float:
    """Largest relative difference of `results` for the same weights: those of PyTorch's model, plus noise.

    The gradients count as one vector, since that of a bias before a batch norm is rounding alone.
    """
    lib, rng = trainings.flow_library()[0], np.random.default_rng(1)
    with trainings.torch_library()[0].no_grad():
        for tensor in theirs.model.state_dict().values():
            if tensor.is_floating_point():
                tensor.numpy()[...] += 0.01 * rng.random(tensor.shape)
    state = {name: lib.from_numpy(tensor.numpy().copy()) for name, tensor in theirs.model.state_dict().items()}
    ours.model.load_state_dict(state)
    mine, other = results(ours), results(theirs)
    assert mine.keys() == other.keys(), set(mine) ^ set(other)
    groups: dict[str, list[str]] = {}
    for name in mine:
        groups.setdefault(name.partition(" ")[0], []).append(name)
    joined = [[np.concatenate([d[n].ravel() for n in names]) for d in (mine, other)] for names in groups.values()]
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in joined)


# ---- measurements ----------------------------------------------------------------------------------------------------


def measure(run: record.Run, name: str, options: argparse.Namespace) -> None:
    """Check that both libraries compute the same, then measure each kind of step."""
    ours, error = training(trainings.flow_library(), name), None
    if not options.no_torch:
        theirs = training(trainings.torch_library(), name)
        error = difference(copy.deepcopy(ours), copy.deepcopy(theirs))
        if not error <= TOLERANCE:
            sys.exit(f"{name}: minflow and PyTorch differ by {error:.1e}, more than {TOLERANCE:.0e}")
        layouts = {contestant: copy.deepcopy(theirs) for contestant in TORCH[:2]}
    for kind in options.kinds:
        ours.model.train()
        steps = {OURS: compiled.our_step(ours, kind, False)}
        if not options.no_torch:
            for contestant in TORCH[: 2 if ours.batch[0].ndim == 4 else 1]:
                steps[contestant] = compiled.torch_step(layouts[contestant], kind, contestant)
        times = timing.rounds(steps, options.rounds, compiled.switch)
        row = run.add(
            name=name, case=kind, difference=error, **timing.figures(times, OURS, timing.fastest(times, TORCH))
        )
        line = f"  {name:20}{kind:8}{human(row['processors']):>10}"
        if "peer" in row:
            line += f"{human(row['peer_processors']):>11}   {timing.shown(row['processors_ratio'])}   {row['peer']}"
        print(line, flush=True)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Kind -> the median of the ratios of all networks, and the worst with its network."""
    found = {}
    for kind in KINDS:
        ratios = {row["name"]: row["processors_ratio"][1] for row in rows if row["case"] == kind and "peer" in row}
        if ratios:
            worst = max(ratios, key=ratios.get)
            found[kind] = {"median": statistics.median(ratios.values()), "worst": ratios[worst], "network": worst}
    return found


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = record.parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=NETWORKS, metavar="NETWORK", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="train steps, predictions")
    parser.add_argument("--rounds", type=int, help="rounds of alternation (default 7)")
    parser.add_argument("--quick", action="store_true", help="one network of each family, three rounds")
    parser.add_argument("--no-torch", action="store_true", help="minflow's own figures only")
    options = parser.parse_args(words)
    options.only = options.only or [name for name, network in NETWORKS.items() if network.quick or not options.quick]
    options.rounds = options.rounds or (3 if options.quick else 7)
    return options


def main() -> None:
    options = parse_options()
    run = record.Run("networks", options)
    options.no_torch = len(trainings.libraries(not options.no_torch)) == 1
    if CompiledKernelConfig.graphs != "none":
        with contextlib.suppress(MissingDependencyError):
            warmup()  # a process that has to wait for kernels runs NumPy's until it ends
    compiled.set_threads(1, True, not options.no_torch)
    run.say("one thread; processor time: minflow, the faster layout of PyTorch, and their ratio: median [quartiles]")
    for name in options.only:
        measure(run, name, options)
        gc.collect()
    if policy.why_numpy():
        print(f"minflow ran NumPy's kernels: {policy.why_numpy()}")
    for key, row in summary(run.rows).items():
        missed = "".join(f"  {what} misses the aim of {aim}" for what, aim in AIMS.items() if row[what] > aim)
        print(f"{key}: median {row['median']:.2f}, worst {row['worst']:.2f} ({row['network']}){missed}")
    run.finish()


if __name__ == "__main__":
    main()
