"""Every layer and every loss in all modes, each built once: traced, trained eagerly and as a graph, with strided
inputs, saved and loaded, with compiled kernels. The bits are the same.

Tests are named by layer; the cases are the rows of `tests/exported_cases.py`. Read next: `tests/graphs.py`.
"""

import copy
import importlib.util
from collections import defaultdict

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.trace import trace
from minflow.deploy.attrs import check_inputs
from minflow.nn.summary import tensors_in
from minflow.platforms import compiled
from tests.cases import Cases
from tests.deploy.test_attrs import again, written
from tests.exported_cases import TARGETS, input_of, layer_cases, loss_cases
from tests.graphs import Predict, Scaled, Training, bits, eager_steps, listing, loss_of, operations
from tests.nn.graph.test_exact_strides import with_random_strides
from tests.reference import execute
from tests.sampling import sampled

STEPS = 3
LAYERS, LOSSES = defaultdict(list), defaultdict(list)
for name, make, x in layer_cases():
    LAYERS[name].append((make, x))
for name, options in loss_cases():
    LOSSES[name].append(options)
PREDICTING = {"evaluated": {}, "compiled": {}, "exact": {"exact": True}}
SAVED_IN_ALL_WAYS = sampled(LAYERS, 0.25)  # the others are saved while training
COMPILED = importlib.util.find_spec("numba") is not None


@pytest.fixture
def kernels():
    """`kernels(True)` uses compiled kernels until the end of the test."""
    before = compiled.used()
    yield compiled.use
    compiled.use(before)


@pytest.mark.filterwarnings("ignore:.*an input of a graph is written in place")
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, tmp_path, kernels):
    with Cases() as case:
        for i, (make, x) in enumerate(LAYERS[name]):
            model, array = make(), input_of(x)
            x = flow.tensor(array)

            def check(what, label=f"{name} {i}"):
                return case(f"{label}: {what}")

            kernels(False)
            trained = Scaled(model, x.shape[-1]) if x.is_floating_point() else model
            with check("traced"):
                check_traced(trained, [x], check)
            with check("trained"):
                check_training(copy.deepcopy(trained), x, tmp_path / f"trained {i}", check)
            for what, options in PREDICTING.items():
                kernels(COMPILED and what != "evaluated")
                with check(what):
                    predicting = copy.deepcopy(model)
                    if what == "evaluated":
                        predicting.eval()
                    folder = tmp_path / f"{what} {i}" if name in SAVED_IN_ALL_WAYS else None
                    check_predicting(predicting, array, folder, check, **options)


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    """With elements between 0 and 1, which are valid probabilities, logits and log-probabilities."""
    x, target = np.random.default_rng(0).uniform(0.1, 0.9, (2, 4, 3)).astype("float32")
    targets = TARGETS.get(name, target)
    inputs = [flow.tensor(x), *map(flow.tensor, targets if isinstance(targets, tuple) else [targets])]
    with Cases() as case:
        for options in LOSSES[name]:
            check_traced(
                Scaled(getattr(nn, name)(**options), 3),
                inputs,
                lambda what, options=options: case(f"{name} {options}: {what}"),
            )


def outputs_and_gradients(model, *inputs):
    outs = tensors_in(model(*inputs))
    loss_of(outs).backward()
    return [*outs, *[p.grad for p in model.parameters()]]


def check_traced(model, inputs, check):
    """Assert that a trace run node by node has the bits of eager mode, and that its attributes round-trip."""
    eager, traced = copy.deepcopy(model), copy.deepcopy(model)
    flow.manual_seed(3)
    wanted = outputs_and_gradients(eager, *inputs)
    flow.manual_seed(3)
    graph, _ = trace(lambda *inputs: outputs_and_gradients(traced, *inputs), inputs)
    found = execute(graph, [x.numpy() for x in inputs])
    with check("outputs and gradients of a trace"):
        assert bits(found) == bits(wanted)
    with check("buffers after a trace"):
        assert bits(dict(traced.named_buffers())) == bits(dict(eager.named_buffers()))
        assert all(p.grad is None for p in traced.parameters())
    with check("attributes as data and back"):
        for node in graph.nodes:
            if not node.op.custom_backward:
                assert written(again(node.op, node.attrs)) == written(node.attrs), node.op.name
                check_inputs(node.op, [getattr(x, "spec", x) for x in node.inputs])


def check_training(model, x, folder, check):
    """Assert that a graph trains like eager mode, and so does the graph saved after its first step and loaded."""

    def sgd(model):
        return flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    eager = copy.deepcopy(model)
    flow.manual_seed(3)
    wanted = eager_steps(eager, sgd(eager), x, STEPS)
    graph = Training(model, sgd(model))
    flow.manual_seed(3)
    found = [graph(x).item()]
    flow.save(graph, folder)
    loaded = flow.load_graph(folder)
    with check("losses of training"):
        state = flow.get_rng_state()
        found += [graph(x).item() for _ in range(STEPS - 1)]
        np.testing.assert_array_equal(found, wanted)
    with check("losses of training that goes on from a file"):
        flow.set_rng_state(state)
        np.testing.assert_array_equal([loaded(x).item() for _ in range(STEPS - 1)], found[1:])
    for what, other in (("eager code", eager), ("the loaded graph", loaded.model)):
        with check(f"state after training, against that of {what}"):
            assert bits(model.state_dict()) == bits(other.state_dict())
    check_alike(loaded, graph, check)


def check_predicting(model, array, folder, check, exact=False):
    """Assert that a graph computes what eager mode does; saved, unless the folder is None, and loaded it computes the
    same with the same kernels. exact: with strided inputs, with the bits of eager mode.
    """

    def call(function, seed):
        """Outputs of two calls, since a call may update running statistics."""
        flow.manual_seed(seed)
        rng = np.random.default_rng(seed)
        inputs = [with_random_strides(rng, array) if exact else flow.tensor(array) for _ in range(2)]
        return [out.numpy(force=True) for x in inputs for out in tensors_in(function(x))]

    graph, eager = Predict(model, exact), copy.deepcopy(model)
    found, wanted = call(graph, 0), call(eager, 0)
    with check(f"outputs, exact={exact}"):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-5)
        assert not exact or bits(found) == bits(wanted)
    if folder is None:
        return
    flow.save(graph, folder)
    loaded = flow.load_graph(folder)
    with check(f"outputs of a loaded graph, exact={exact}"):
        assert bits(call(loaded, 1)) == bits(call(graph, 1))
    if not model.training and not compiled.used():
        with check("a loaded graph compared with eager code"):
            assert loaded.compare_eager(flow.tensor(array)).equal
    with check(f"kernels of a loaded graph, exact={exact}"):
        assert operations(loaded, flow.tensor(array)) == operations(graph, flow.tensor(array))
    check_alike(loaded, graph, check)


def check_alike(loaded, graph, check):
    with check("listing of a loaded graph"):
        assert listing(loaded) == listing(graph)
    with check("operations of a loaded graph"):
        assert [str(node.op) for node in loaded.nodes] == [str(node.op) for node in graph.nodes]
