"""Additions are complete: each op, function, layer, loss, optimizer and schedule has its exports and its tests.

Each test names what is missing and where its line belongs. Intended omissions are in a table, with reasons.
"""

import importlib
import inspect
import pathlib
import pkgutil
import re

import pytest

import minflow as flow
from minflow import nn
from minflow.core import functions
from minflow.core.methods.forwarded import Forwarded
from minflow.core.op import OPS, Op
from minflow.core.tensor import Tensor
from tests import exported_cases
from tests.core import oracles
from tests.core.oracles import GLOBAL_OPS

# Ops that are not called by name -> what calls them.
INTERNAL = {
    **dict.fromkeys(("getitem", "ravel_index"), "methods and indexing of Tensor"),
    **dict.fromkeys(("view_write", "unrecorded", "overwritten", "strided_look", "sum_to"), "rebinding and backward"),
    "cast": "Tensor.to",
    "copy_to": "Tensor.to",
    "recompute": "the pass of that name",
    "trunc_divide": "div(rounding_mode='trunc')",
    "mix": "the running statistics of batch_norm",
    "uniform": "rand and dropout",
    **dict.fromkeys(("checked_labels", "nll", "softmax_cross_entropy", "soft_cross_entropy"), "losses"),
    **dict.fromkeys(("binary_entropy", "logit_entropy"), "binary cross-entropy"),
    **dict.fromkeys(("im2col", "col2im"), "F.unfold, F.fold and convolutions of volumes"),
    "at_least": "gaussian_nll_loss and cosine_similarity",
    "pad_from_input": "F.pad",
    "ctc": "ctc_loss",
    "reduce_bags": "embedding_bag",
    "pair_distances": "cdist and pdist",
    "batch_norm_inference": "batch_norm and instance_norm",
    "cofactors": "the gradient of det",
    "lu_permutation": "lu_unpack",
    "max_pool2d_pick": "the second gradient of max_pool2d",
    **dict.fromkeys(("conv2d_input_grad", "conv2d_weight_grad"), "the gradient of conv2d"),
}
INTERNAL |= dict.fromkeys(GLOBAL_OPS, "global tensors")
INTERNAL |= {"rnn": "nn.RNN", "rnn_cell": "rnn_tanh_cell and rnn_relu_cell", "lstm_projected": "nn.LSTM"}
INTERNAL |= {
    "recurrence": "the gradient of cumprod",
    "mode_place": "mode",
    **dict.fromkeys(("groups", "firsts"), "unique and unique_consecutive"),
    "windows": "Tensor.unfold",
}
# Functions marked `@composite`, and why they are not composite ops. A new function of several ops is one.
SCOPED = {
    "gumbel_softmax": "draws its noise",
    "scaled_dot_product_attention": "draws the mask of a dropout of its weights; without that it is a composite op",
}
COMPLEX = {"complex", "conj", "real", "imag", "view_as_real", "view_as_complex", "fft"}  # tests/core/test_complex.py
INTERNAL["fft"] = "flow.fft"
RULES = "minflow.core.ops.update"  # of optimizers, which call them
# Functions that are not methods of Tensor, as in PyTorch: they take several tensors, or create one.
NO_METHOD = {
    "chain_matmul",
    "lu_unpack",
    "nuclear_norm",
    "pca_lowrank",
    "svd_lowrank",
    "broadcast_tensors",
    "cat",
    "concat",
    "concatenate",
    "dropout",
    "einsum",
    "hstack",
    "meshgrid",
    "one_hot",
    "randint_like",
    "repeat_interleave",
    "result_type",
    "rsub",
    "stack",
    "std_mean",
    "tensordot",
    "var_mean",
    "vstack",
}
NO_METHOD |= {
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bartlett_window",
    "binomial",
    "blackman_window",
    "block_diag",
    "bucketize",
    "cartesian_prod",
    "column_stack",
    "combinations",
    "cumulative_trapezoid",
    "dstack",
    "gradient",
    "hamming_window",
    "hann_window",
    "isin",
    "kaiser_window",
    "logspace",
    "poisson",
    "roc_auc_score",
    "row_stack",
    "searchsorted",
    "trapezoid",
    "trapz",
    "tril_indices",
    "triu_indices",
    "unravel_index",
    "vander",
}
NO_METHOD |= {"complex", "is_complex", "polar", "view_as_complex", "view_as_real"}
# Functions that PyTorch also has as methods and Tensor does not have yet.
METHODS_TO_COME = set[str]()
# Functions that are only methods of Tensor, or that methods and other functions call.
NO_FUNCTION = {
    "advanced_getitem",
    "advanced_target",
    "assign_indexed",
    "normalize_axis",
    "bernoulli_like",
    "dropout",
    "expand_as",
    "exponential_like",
    "matrix_norm",
    "check_min_axes",
    "normal_like",
    "normal_of",
    "accept_axis",
    "randint_of",
    "randperm_of",
    "scaled",
    "is_sequence",
    "shape_of",
    "uniform",
    "uniform_like",
    "vector_norm",
    "view",
}
NO_FUNCTION |= {
    "cauchy_like",
    "fill_diagonal",
    "geometric_like",
    "in_top_k",
    "log_normal_like",
    "sum_to_size",
    "unfold",
}
NO_IN_PLACE = {"clone", "logaddexp", "logaddexp2", "maximum", "minimum"}  # as in PyTorch
NO_IN_PLACE |= {"softplus"}
BASES = {"InPlace", "Loss", "WeightedLoss", "Norm", "BatchNorm", "LRScheduler", "Optimizer"}  # base classes
BASES |= {"Moments", "MatrixOptimizer"}  # of optimizers
BASES |= {"InplaceActivation", "MarginLoss", "TransformerLayer", "GatedCell"}
BASES |= {"AlongAxis", "DropoutNd", "EmbeddingTable", "Shrink", "ZeroPad"}
BASES |= exported_cases.IMAGE_BASES
FUNCTIONS, METHODS, FACE = "core/functions/__init__.py", "core/methods/forwarded.py", "minflow/__init__.py"


def public(holder) -> set[str]:
    return {name for name, value in vars(holder).items() if not name.startswith("_") and inspect.isroutine(value)}


def ops() -> list[str]:
    """Return ops that cannot be called by name, and ops without examples or an oracle."""
    names = {name for holder in (flow, nn.functional, flow.linalg, flow.special) for name in public(holder)}
    hidden = [
        f"{name}: a line in {FUNCTIONS} and in {FACE}, or INTERNAL with what calls it"
        for name, op in OPS.items()
        if name not in names
        and name not in INTERNAL
        and not name.endswith("_grad")
        and not op.__module__.startswith(RULES)
    ]
    untested = [
        f"{name}: a row in tests/core/oracles.py"
        for name in OPS
        if name not in oracles.ORACLES
        and name not in ("unrecorded", "strided_look", "recompute", *COMPLEX, *GLOBAL_OPS)
        and not OPS[name].gradient_of
    ]
    return (
        hidden + untested + [f"{name}: no longer hidden, strike it off INTERNAL" for name in INTERNAL if name in names]
    )


def top_level() -> list[str]:
    """Return functions that are not in `flow`."""
    return [
        f"{name}: a name in {FACE}, or in NO_FUNCTION"
        for name in public(functions)
        if name not in vars(flow) and name not in NO_FUNCTION
    ]


def methods() -> list[str]:
    """Return functions on a tensor that are not methods."""
    return [
        f"{name}: a row in {METHODS}, or a name in NO_METHOD"
        for name in public(functions) & public(flow)
        if not hasattr(Tensor, name) and name not in NO_METHOD | METHODS_TO_COME
    ]


def in_place() -> list[str]:
    """Return elementwise methods without an in-place form."""
    return [
        f"{name}_: a row in {METHODS}, or a name in NO_IN_PLACE"
        for name, op in OPS.items()
        if op.elementwise in ("float", "same")
        and hasattr(Tensor, name)
        and name in vars(flow)
        and not hasattr(Tensor, f"{name}_")
        and name not in NO_IN_PLACE
    ]


def classes(package: str, base: type) -> list[type]:
    """Return the classes that the files of a package define."""
    room = importlib.import_module(package)
    files = [importlib.import_module(f"{package}.{info.name}") for info in pkgutil.iter_modules(room.__path__)]
    return [
        value
        for file in files
        for value in vars(file).values()
        if inspect.isclass(value) and issubclass(value, base) and value.__module__ == file.__name__
    ]


def exports() -> list[str]:
    """Return layers, losses and optimizers that are not in their namespace."""
    return [
        f"{cls.__name__}: a line in {package.replace('.', '/')}/__init__.py, or a name in BASES"
        for folder, package, holder, base in (
            ("minflow.nn.modules", "minflow.nn", nn, nn.Module),
            ("minflow.optim", "minflow.optim", flow.optim, flow.optim.Optimizer),
        )
        for cls in classes(folder, base)
        if cls.__name__ not in dir(holder) and cls.__name__ not in BASES
    ]


def graph_tests() -> list[str]:
    """Return layers, losses, optimizers and schedules that no test runs both eagerly and as a graph."""
    layers = {name for name, *_ in exported_cases.layer_cases()}
    missing = [f"{name}: a row in LAYERS" for name in exported_cases.callable_layers() if name not in layers]
    missing += [
        f"{name}: a row in LOSSES"
        for name, cls in exported_cases.losses().items()
        if exported_cases.needs_arguments(cls)
    ]
    missing += [
        f"{name}: a row in OPTIMIZERS"
        for name in exported_cases.optimizers()
        if name not in {name for name, _ in exported_cases.optimizer_cases()}
    ]
    missing += [
        f"{name}: a row in SCHEDULES" for name in exported_cases.schedules() if name not in exported_cases.SCHEDULES
    ]
    gone = {
        *exported_cases.LAYERS,
        *exported_cases.LOSSES,
        *exported_cases.TARGETS,
        *exported_cases.OPTIMIZERS,
        *exported_cases.SCHEDULES,
    }
    there = {*dir(nn), *dir(flow.optim), *dir(flow.optim.lr_scheduler)}
    missing = [f"{line} of tests/exported_cases.py" for line in missing]
    return missing + [f"{name}: strike off its row" for name in gone - there]


@pytest.mark.parametrize("check", [ops, top_level, methods, in_place, exports, graph_tests], ids=lambda c: c.__name__)
def test_nothing_is_missing(check):
    assert not check(), "\n".join(check())


@pytest.mark.parametrize(
    ("check", "holder", "name"),
    [
        (ops, oracles.ORACLES, "exp"),
        (ops, flow, "exp"),
        (top_level, flow, "exp"),
        (methods, Forwarded, "cumsum"),
        (in_place, Forwarded, "exp_"),
        (exports, nn, "LayerNorm"),
        (exports, nn, "MSELoss"),
        (exports, flow.optim, "AdamW"),
        (graph_tests, exported_cases.LAYERS, "Linear"),
        (graph_tests, exported_cases.SCHEDULES, "StepLR"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_missing_rows_are_named(monkeypatch, check, holder, name):
    """Remove one row: the test that checks for it names it."""
    delete = monkeypatch.delitem if isinstance(holder, dict) else monkeypatch.delattr
    delete(holder, name)
    assert [line.split(":")[0] for line in check()] == [name]


def test_new_class_is_tested_or_reported(monkeypatch):
    class Halved(nn.Module):
        def forward(self, x):
            return x * 0.5

    class Scaled(Halved):
        def __init__(self, factor):
            super().__init__()

    monkeypatch.setattr(nn, "Halved", Halved, raising=False)
    monkeypatch.setattr(nn, "Scaled", Scaled, raising=False)
    assert ("Halved", Halved, exported_cases.ROWS) in exported_cases.layer_cases()
    assert graph_tests() == ["Scaled: a row in LAYERS of tests/exported_cases.py"]
    monkeypatch.setattr(flow.optim, "Own", type("Own", (flow.optim.SGD,), {}), raising=False)
    assert ("Own", {}) in exported_cases.optimizer_cases()


def test_functions_of_several_ops_are_composite_ops():
    """The others are in SCOPED, each with its reason."""
    texts = [file.read_text(encoding="utf-8") for file in pathlib.Path(flow.__file__).parent.rglob("*.py")]
    assert sorted(name for text in texts for name in re.findall(r"composite\(['\"](\w+)", text)) == sorted(SCOPED)


def test_new_op_is_reported(monkeypatch):
    monkeypatch.setitem(OPS, "spiral", Op.__new__(Op))
    assert [line.split(":")[0] for line in ops()] == ["spiral", "spiral"]
