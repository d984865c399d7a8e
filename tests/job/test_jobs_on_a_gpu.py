"""Job functions on the stand-in for a GPU: their own stream, copies beside steps, and the results of the CPU."""

import threading

import numpy as np
import pytest

import minflow as flow
from minflow import typing as tp
from minflow.core.backend import backend_of
from minflow.job.queue.device_arguments import streams
from minflow.job.session import default_session
from tests.nn.test_models_on_a_device import reference_kernels  # noqa: F401
from tests.strict_backend import strict_cuda
from tests.strict_streams import delayed

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((5, 6, 8)).astype("f4"), RNG.integers(0, 4, (5, 6))


def train(tag, asynchronous):
    """(losses, variables) of steps with dropout on different batches."""
    flow.clear_default_session()
    flow.manual_seed(0)
    config = flow.function_config()
    config.default_placement_scope(flow.scope.placement(tag, "0:0"))
    start, losses = flow.random_normal_initializer(stddev=0.1), []
    returned = tp.Callback[tp.Numpy] if asynchronous else tp.Numpy

    def step(x: tp.Numpy.Placeholder((6, 8)), y: tp.Numpy.Placeholder((6,), dtype=flow.int64)) -> returned:
        h = flow.layers.dense(x, 16, activation=flow.math.relu, kernel_initializer=start, name="first")
        logits = flow.layers.dense(flow.nn.dropout(h, 0.2), 4, kernel_initializer=start, name="second")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([3], [0.01, 0.002])).minimize(loss)
        return loss

    job = flow.global_function(type="train", function_config=config)(step)
    for x, y in zip(X, Y):
        if asynchronous:
            job(x, y)(losses.append)
        else:
            losses.append(job(x, y))
    flow.sync_default_session()
    variables = {name: v.numpy().tobytes() for name, v in default_session().variables.items()}
    return [loss.tobytes() for loss in losses], variables


@pytest.mark.parametrize("order", ["", "others", "all"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_training_has_the_results_of_the_cpu(asynchronous, order):
    here = train("cpu", asynchronous)
    with strict_cuda(), delayed(order):
        assert train("gpu", asynchronous) == here


@pytest.mark.parametrize("order", ["others", "all"])
def test_a_step_waits_for_the_work_of_its_caller(order, cuda):
    weight, results = flow.ones(8, device="cuda"), []

    @flow.global_function()
    def scaled(x: tp.Numpy.Placeholder((6, 8))) -> tp.Callback[tp.Numpy]:
        return (x.to("cuda") * weight).to("cpu")

    with delayed(order):
        for k, x in enumerate(X):
            weight.fill_(k)
            scaled(x)(results.append)
        flow.sync_default_session()
    assert [r.tobytes() for r in results] == [(x * np.float32(k)).tobytes() for k, x in enumerate(X)]


def test_a_callback_runs_after_the_work_of_its_step(cuda):
    backend, ended = backend_of(cuda), []

    @flow.global_function()
    def summed(x: tp.Numpy.Placeholder((6, 8))) -> tp.Callback[tp.Numpy]:
        return x.to("cuda").sum(0)

    with delayed():
        for x in X:
            summed(x)(lambda _: ended.append(not streams()[backend][0].queue))
        flow.sync_default_session()
    assert ended == [True] * len(X) and backend.stream() is backend.default_stream()


def test_two_threads_have_the_streams_of_one_worker_and_their_own_results(cuda):
    results = {0: [], 1: []}

    @flow.global_function()
    def doubled(x: tp.Numpy.Placeholder((6, 8))) -> tp.Numpy:
        return x.to("cuda") * 2

    def call(k):
        results[k] = [doubled(x + k).tobytes() for x in X]

    with delayed():
        threads = [threading.Thread(target=call, args=(k,)) for k in results]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {k: [((x + k) * 2).tobytes() for x in X] for k in results}
