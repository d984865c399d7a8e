"""A graph called by several threads, and a kernel that raises within a step: the results stay right."""

import functools
import operator

import numpy as np
import pytest
from graph_models import Predict, Step

import minflow as flow
from minflow import nn
from minflow.compiler.executor import holds_lock
from minflow.core.context import current_context
from minflow.library import custom_op
from tests.threads import LONG, run_in_threads


def linear():
    flow.manual_seed(0)
    return nn.Linear(5, 3)


def rows(number):
    return flow.tensor(np.random.default_rng(number).standard_normal((number % 3 + 1, 5)).astype("f"))


@pytest.mark.parametrize("size", [1, 3000], ids=["copied inputs", "inputs where they are"])
def test_graph_called_by_several_threads(size):
    """Three kinds of inputs, each compiled once."""
    model = linear()
    wanted = [model(rows(number).repeat(size, 1)).numpy(force=True).tobytes() for number in range(6)]
    graph = Predict(model)
    found = run_in_threads(6, lambda number: [graph(rows(number).repeat(size, 1)).numpy().tobytes() for _ in range(20)])
    assert [set(outcomes) for outcomes in found] == [{outcome} for outcome in wanted]
    assert len(graph._history) == 3


def test_training_graph_called_by_several_threads_takes_every_step():
    """The gradient of a sum is the same at each step, so the order of the steps does not matter."""
    model, one = linear(), flow.ones(1, 5)
    before = model.bias.numpy(force=True).copy()
    graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.125), lambda x: model(x).sum())
    run_in_threads(4, lambda number: [graph(one) for _ in range(25)])
    assert np.allclose(model.bias.numpy(force=True), before - 12.5, atol=1e-4)
    assert graph._steps == 100 and len(graph._history) == 1


def test_job_called_by_several_threads_is_compiled_once():
    import minflow.typing as tp

    built = []

    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((4,))) -> tp.Numpy:
        built.append(1)
        a = flow.get_variable("threads-a", (4,), initializer=flow.zeros_initializer())
        loss = a * x
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [4.0]), momentum=0).minimize(loss)
        return loss

    ones = np.ones(4, "f")
    found = run_in_threads(4, lambda number: [float(train_job(ones)[0]) for _ in range(10)])
    assert (
        sorted(functools.reduce(operator.iadd, found, [])) == [-float(i) for i in reversed(range(40))]
        and len(built) == 1
    )
    flow.clear_default_session()


class Refused(Exception):
    pass


def refusing():
    """A custom op whose kernel refuses a negative first element."""

    @custom_op("test_refusing(x)", vjp=lambda g: g)
    def op(xp, x):
        if x.flat[0] < 0:
            raise Refused(f"{x.flat[0]} is negative")
        return x + 0

    return op


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("steps", [1, 2], ids=["whole batch", "accumulated"])
def test_failing_kernel_leaves_the_graph_usable(steps, threads):
    """The lock is released, the parameters are those of the last step, and the next steps are those of a graph without
    the error.
    """

    def trained(calls, threads=1):
        model, op = linear(), refusing()
        with flow.no_grad():
            model.weight.copy_(flow.ones(3, 5)), model.bias.copy_(flow.zeros(3))
        optimizer = flow.optim.SGD(model.parameters(), lr=1 / 64, momentum=0.5)
        graph = Step(model, optimizer, lambda x: op(model(x)).sum())
        if steps > 1:
            graph.config.set_gradient_accumulation_steps(steps)
        losses = []
        for x in calls:
            if x.numpy()[-1, 0] >= 0:
                losses.append(graph(x).numpy().tobytes())
                continue
            before = [p.numpy(force=True).tobytes() for p in model.parameters()]

            def fails(number):
                with pytest.raises(Refused, match="is negative") as caught:
                    graph(x)  # noqa: B023
                assert "test_refusing" in "".join(caught.value.__notes__)
                assert "test_threads.py" in "".join(caught.value.__notes__)
                assert not holds_lock()

            run_in_threads(threads, fails) if threads > 1 else fails(0)
            assert current_context().plan_lock.acquire(timeout=LONG)
            current_context().plan_lock.release()
            assert [p.numpy(force=True).tobytes() for p in model.parameters()] == before
        return losses, [p.numpy(force=True).tobytes() for p in model.parameters()]

    good = [flow.full((2, 5), value) for value in (1.0, 2.0, 0.5, 1.5)]
    bad = flow.cat([flow.ones(1, 5), flow.full((1, 5), -9.0)]) if steps > 1 else flow.full((2, 5), -9.0)
    assert trained([good[0], bad, good[1], bad, bad, good[2], good[3]], threads) == trained(good)
