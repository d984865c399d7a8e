"""Every layer in one to four threads: eager code, graphs and jobs have the bits of eager code in the main thread.

The layers of `tests/exported_cases.py` are too small for BLAS to divide their products; those of PRODUCTS are not, and
run while other threads compute other ones. Read next: `tests/core/test_blas.py`.
"""

import copy
from collections import defaultdict
from functools import partial

import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core import kernels
from minflow.core.host import blas
from minflow.nn.summary import tensors_in
from minflow.platforms import of_large_calls
from minflow.platforms.compiled.config import CompiledKernelConfig
from tests.exported_cases import Repeated, input_of, layer_cases
from tests.graphs import Predict, bits, loss_of
from tests.sampling import sampled
from tests.threads import run_in_threads

THREADS, SEED = 4, 3
LAYERS = defaultdict(list)
for name, make, x in layer_cases():
    LAYERS[name].append((make, x))
PRODUCTS = {  # name -> (constructor, input shape)
    "Conv2d": (lambda: nn.Conv2d(16, 48, 3), (8, 16, 21, 21)),
    "Conv2d, pointwise": (lambda: nn.Conv2d(70, 90, 1), (4, 70, 25, 25)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(30, 20, 3, 2), (4, 30, 15, 15)),
    "Linear": (lambda: nn.Linear(501, 267), (93, 501)),
    "Linear, one row": (lambda: nn.Linear(1501, 267), (1, 1501)),
    "LSTM": (lambda: nn.LSTM(64, 170, proj_size=90), (6, 57, 64)),
    "GRU": (lambda: nn.GRU(64, 170), (6, 57, 64)),
    "RNN": (lambda: nn.RNN(64, 230), (6, 57, 64)),
    "MultiheadAttention": (lambda: Repeated(nn.MultiheadAttention(130, 2), 3), (111, 3, 130)),
    "float16": (lambda: Function(lambda x: x.half() @ x.half().T), (150, 170)),
    "cdist": (lambda: Function(lambda x: flow.cdist(x, x + 1)), (203, 157)),
    "inv": (lambda: Function(flow.linalg.inv), (230, 230)),
    "qr": (lambda: Function(lambda x: flow.linalg.qr(x)[0]), (230, 230)),
    "slogdet": (lambda: Function(lambda x: flow.linalg.slogdet(x)[1]), (230, 230)),
    "svd": (lambda: Function(flow.linalg.svdvals), (230, 230)),
}


class Function(nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.fixture(autouse=True)
def blas_threads():
    """BLAS with several threads, as it begins on a machine of several cores."""
    library = blas.library()
    before = None if library is None else library.count()
    blas.set_threads(2)
    yield
    blas.set_threads(before)


@pytest.fixture
def default_kernels(monkeypatch):
    """Compiled kernels on large arrays, as in a program that does not choose; the tests choose NumPy's."""
    pytest.importorskip("numba", reason="kernels are compiled by numba, which is not installed")
    from minflow.platforms.compiled import compile_cache, switch

    if not compile_cache.tested():
        pytest.skip("on this system eager code does not use compiled kernels by itself")
    switch.warmup()
    before = kernels.EAGER_PLATFORMS["cpu"]
    monkeypatch.setattr(CompiledKernelConfig, "graphs", "large")
    kernels.use_platforms("cpu", kernels.PlatformsBySize(kernels.HOST_PLATFORMS, of_large_calls))
    yield
    kernels.use_platforms("cpu", before)


def seeded(mode, *args):
    flow.manual_seed(SEED)
    return mode(*args)


def outputs(model, x):
    return bits(tensors_in(copy.deepcopy(model)(x.clone())))


def step_of(model, x):
    """Bits of the outputs and the gradients in eager code."""
    model = copy.deepcopy(model)
    outs = tensors_in(model(x.clone()))
    leaves = [p for p in model.parameters() if p.requires_grad]
    return bits([*outs, *flow.autograd.grad(loss_of(outs), leaves, allow_unused=True)] if leaves else outs)


def in_graph(model, x):
    """Bits of the outputs of a graph."""
    return bits(tensors_in(Predict(copy.deepcopy(model), exact=True)(x)))


def in_job(model, x, name):
    """Bits of the outputs of a job function."""
    config = flow.function_config()
    config.exact(True)
    model = copy.deepcopy(model)
    place = tp.Numpy.Placeholder(tuple(x.shape), dtype=x.dtype)

    def job(x: place):
        return tensors_in(model(x))

    job.__name__ = name
    return bits([out.numpy() for out in flow.global_function(function_config=config)(job)(x.numpy()).get()])


class Case:
    """The bits of a model in the main thread, and their check in others."""

    def __init__(self, make, x):
        flow.manual_seed(SEED)
        self.model, self.x = make(), flow.tensor(input_of(x))
        self.step = seeded(step_of, self.model, self.x)
        self.draws = flow.get_rng_state().tolist() != flow.Generator().manual_seed(SEED).get_state().tolist()
        self.outs = seeded(outputs, self.model, self.x)
        # A job must not write buffers.
        self.frozen = copy.deepcopy(self.model).eval() if [*self.model.buffers()] else self.model
        self.outs_of_job = seeded(outputs, self.frozen, self.x)

    def check(self, name, thread):
        assert seeded(step_of, self.model, self.x) == self.step, f"{name}, eager"
        assert seeded(in_graph, self.model, self.x) == self.outs, f"{name}, graph"
        assert seeded(in_job, self.frozen, self.x, f"{name}_{thread}") == self.outs_of_job, f"{name}, job"


@pytest.mark.filterwarnings("ignore:.*an input of a graph is written in place")
@pytest.mark.parametrize("name", sampled(LAYERS, 0.5))
def test_layer(name):
    flow.clear_default_session()
    for i, row in enumerate(LAYERS[name]):
        case = Case(*row)
        # The threads share the generator of random numbers.
        run_in_threads(1 if case.draws else THREADS, partial(case.check, f"{name}_{i}"))


def check_products(threads):
    flow.clear_default_session()
    cases = [(name, Case(*row)) for name, row in PRODUCTS.items()]

    def check(thread):
        for name, case in cases[thread::threads]:
            case.check(name, thread)

    run_in_threads(threads, check)


@pytest.mark.parametrize("threads", range(1, THREADS + 1))
def test_products_beside_others(threads):
    check_products(threads)


@pytest.mark.parametrize("threads", [1, THREADS])
def test_large_calls_beside_others(default_kernels, threads):
    """Exact graphs and jobs select the compiled kernels that eager code does, in any thread."""
    platforms = set()
    with kernels.observed(lambda op, platform, arrays, result: platforms.add(platform)):
        step_of(PRODUCTS["Conv2d"][0](), flow.randn(PRODUCTS["Conv2d"][1]))
    assert "compiled" in platforms
    check_products(threads)
