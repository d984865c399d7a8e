"""Jobs with compiled kernels: sync and async calls, resumed training, and one or four threads give the same bits; with
`exact` they are the bits of eager mode.
"""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from graph_models import TrainGraph

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.introspection.job.explore import job_explorer_model
from tests.single_tasks import same_bits

RNG = np.random.default_rng(5)
IMAGES = RNG.standard_normal((6, 20, 1, 20, 20)).astype("f4")
LABELS = RNG.integers(0, 10, (6, 20)).astype("i4")


@pytest.fixture(autouse=True)
def fresh_session(on):
    flow.clear_default_session()
    yield
    flow.clear_default_session()


def job(result, exact=False):
    config = flow.function_config()
    config.exact(exact)

    @flow.global_function(type="train", function_config=config)
    def train_job(
        images: tp.Numpy.Placeholder((20, 1, 20, 20)), labels: tp.Numpy.Placeholder((20,), dtype=flow.int32)
    ) -> result:
        x = flow.layers.conv2d(images, 32, 5, padding="SAME", activation=flow.nn.relu, name="conv1")
        x = flow.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID", name="pool1")
        x = flow.layers.conv2d(x, 32, 5, padding="SAME", activation=flow.nn.relu, name="conv2")
        x = flow.flatten(x, start_dim=1)
        x = flow.layers.dense(x, 40, name="dense1", kernel_initializer=flow.truncated_normal(0.1))
        x = flow.nn.dropout(x, rate=0.5)
        x = flow.layers.dense(x, 10, name="dense2", kernel_initializer=flow.truncated_normal(0.1))
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.05]), momentum=0.9).minimize(loss)
        return loss

    return train_job


def losses_of(wait, exact=False):
    flow.clear_default_session()
    flow.manual_seed(3)
    train, losses = job(tp.Callback[tp.Numpy] if wait else tp.Numpy, exact), []
    for images, labels in zip(IMAGES, LABELS):
        if wait:
            train(images, labels)(lambda loss: losses.append(loss.copy()))
        else:
            losses.append(train(images, labels))
    if wait:
        flow.sync_default_session()
    return np.array(losses)


@pytest.mark.parametrize("exact", [False, True])
def test_sync_and_async_jobs_have_the_same_bits(exact):
    called = losses_of(False, exact)
    np.testing.assert_array_equal(called, losses_of(True, exact))
    assert np.isfinite(called).all() and called[-1].mean() != called[0].mean()


def test_exact_disables_passes():
    fast, exact = losses_of(False), losses_of(False, exact=True)
    assert not np.array_equal(fast, exact)
    np.testing.assert_allclose(fast, exact, rtol=1e-2, atol=1e-3)


def training():
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU6(),
        nn.Flatten(),
        nn.Linear(3200, 40),
        nn.Dropout(0.3),
        nn.Linear(40, 10),
    )
    return TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))


def batches():
    return [(flow.from_numpy(x), flow.from_numpy(y.astype("i8"))) for x, y in zip(IMAGES, LABELS)]


def test_resumed_training_has_the_same_bits():
    flow.manual_seed(1)
    graph = training()
    start = graph.state_dict()
    seed = flow.get_rng_state()
    whole = [graph(x, y).numpy() for x, y in batches()]
    first, second = training(), training()
    first.load_state_dict(start)
    flow.set_rng_state(seed)
    losses = [first(x, y).numpy() for x, y in batches()[:3]]
    second.load_state_dict(first.state_dict())
    losses += [second(x, y).numpy() for x, y in batches()[3:]]
    np.testing.assert_array_equal(losses, whole)
    for name, tensor in graph.model.state_dict().items():
        np.testing.assert_array_equal(second.model.state_dict()[name].numpy(), tensor.numpy(), err_msg=name)


def test_bits_do_not_depend_on_thread_count():
    def trained():
        flow.manual_seed(1)
        graph = training()
        losses = [graph(x, y).numpy() for x, y in batches()[:3]]
        return [*losses, *[t.numpy() for t in graph.model.state_dict().values()]]

    same_bits(trained, (1, 2, 4))


def test_exploring_a_job_has_no_side_effects():
    """Including the random numbers of its dropout."""

    def losses(explored):
        flow.clear_default_session()
        flow.manual_seed(3)
        train, result = job(tp.Numpy), []
        for k in range(3):
            result.append(train(IMAGES[k], LABELS[k]))
            for given in ((), (IMAGES[k], LABELS[k])) if explored else ():
                model = job_explorer_model(train, given)
                names = [node.op.name for node in model.parts[0].graph.nodes]
                assert names.count("conv2d") == 2 and "max_pool2d" in names and "blocks_conv2d" not in names
                assert bool(model.instructions) is bool(given)
        return result

    np.testing.assert_array_equal(losses(True), losses(False))
