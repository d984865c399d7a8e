"""Public names of our classes that PyTorch's do not have: each would hide a program's attribute of this name."""

import inspect
from operator import attrgetter

import pytest

import minflow as flow

torch = pytest.importorskip("torch")

GLOBAL = {"to_global", "to_local"}
OTHERS = {  # of OneFlow, promised by our documentation, or attributes of PyTorch's objects; also of subclasses
    "Tensor": GLOBAL
    | {"batch_gather", "cast", "celu", "gelu", "global_to_global", "in_top_k", "is_global", "is_lazy", "is_local"}
    | {"local_to_global", "mish", "nms", "placement", "quick_gelu", "sbp", "selu", "silu", "softplus", "softsign"}
    | {"square_relu"},
    "nn.Module": GLOBAL,
    "nn.modules.conv._ConvNd": {"transposed"},
    "optim.Optimizer": {"clip_grad"},
    "optim.lr_scheduler.LRScheduler": {"last_step"},
    "optim.lr_scheduler.CyclicLR": {"cycle_momentum", "step_ratio", "total_size", "use_beta1"},
    "optim.lr_scheduler.OneCycleLR": {"cycle_momentum", "use_beta1"},
    "distributions.LogNormal": {"base_dist"},
    "distributions.Transform": {"domain", "codomain"},
    "utils.data.TensorDataset": {"whole_batch"},
    "utils.data.DistributedSampler": {"num_samples", "total_size"},
}
CLASSES = ["Tensor"] + [
    f"{space}.{name}"
    for space in ("nn", "optim", "optim.lr_scheduler", "distributions", "utils.data")
    for name in sorted({*dir(attrgetter(space)(flow))} & {*dir(attrgetter(space)(torch))})
    if all(inspect.isclass(getattr(attrgetter(space)(lib), name, None)) for lib in (flow, torch))
]


@pytest.mark.parametrize("name", CLASSES)
def test_no_further_public_names(name):
    mine, theirs = [attrgetter(name)(lib) for lib in (flow, torch)]
    allowed = set().union(*[names for base, names in OTHERS.items() if issubclass(mine, attrgetter(base)(flow))])
    assert {n for n in set(dir(mine)) - set(dir(theirs)) if n[0] != "_"} <= allowed


@pytest.mark.parametrize("name", OTHERS)
def test_allowed_names_exist(name):
    assert OTHERS[name] <= set(dir(attrgetter(name)(flow)))


def test_attributes_of_programs_do_not_meet_ours():
    x = flow.ones(2, requires_grad=True)
    assert not any(hasattr(x, name) for name in ("value", "label", "needs", "hooks", "alias", "gradient"))
    x.label, x.value, x.hooks, x.needs = 3, 4, [], False
    (x * x).sum().backward()
    assert (x.label, x.value, x.hooks, x.grad.tolist()) == (3, 4, [], [2, 2])

    class Mine(flow.optim.SGD):
        def __init__(self, params, lr):
            super().__init__(params, lr)
            self.names, self.rule, self.check, self.steps, self.parameters, self.first = ["w"], 1, 2, 0, params, True

        def step(self, closure=None):
            self.steps += 1
            return super().step(closure)

    optimizer = Mine([x], 0.5)
    optimizer.step()
    assert x.tolist() == [0, 0] and optimizer.steps == 1 and optimizer.state_dict()["param_groups"][0]["lr"] == 0.5


# Pairs (class, base) of which only minflow's or only PyTorch's is a subclass.
OTHER_BASES = {
    # computed directly here, not by a transform of another distribution
    *[("distributions." + name, "distributions.TransformedDistribution") for name in ("Gumbel", "HalfCauchy")],
    *[("distributions." + name, "distributions.TransformedDistribution") for name in ("HalfNormal", "InverseGamma")],
    *[("distributions." + name, "distributions.TransformedDistribution") for name in ("Kumaraswamy", "LogNormal")],
    *[("distributions." + name, "distributions.TransformedDistribution") for name in ("Pareto", "Weibull")],
    ("distributions.InverseGamma", "distributions.Gamma"),
    ("distributions.PositiveDefiniteTransform", "distributions.LowerCholeskyTransform"),
    ("distributions.StackTransform", "distributions.CatTransform"),
    ("nn.CrossMapLRN2d", "nn.LocalResponseNorm"),
    ("nn.NLLLoss", "nn.NLLLoss2d"),
    ("nn.ReLU6", "nn.Hardtanh"),
    # PyTorch changes the class at the first call
    *[(f"nn.Lazy{kind}{n}d", f"nn.{kind}{n}d") for kind in ("BatchNorm", "InstanceNorm") for n in (1, 2, 3)],
    ("optim.lr_scheduler.MultiplicativeLR", "optim.lr_scheduler.LambdaLR"),
}


@pytest.mark.parametrize("space", ["nn", "optim", "optim.lr_scheduler", "distributions", "utils.data"])
def test_isinstance_has_the_same_result(space):
    """Programs choose layers by `isinstance(m, nn.Dropout)`, and cases by `isinstance(d, Categorical)`."""
    names = [name for name in CLASSES if name.rpartition(".")[0] == space]
    pairs = [(a, b) for a in names for b in names if not b.endswith(("ExponentialFamily", "_LRScheduler"))]
    is_subclass = [{pair: issubclass(*[attrgetter(n)(lib) for n in pair]) for pair in pairs} for lib in (flow, torch)]
    assert {p for p in pairs if is_subclass[0][p] != is_subclass[1][p]} <= OTHER_BASES
