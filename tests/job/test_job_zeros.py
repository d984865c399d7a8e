"""Layers of zeros behind each other: they never learn, and a job that trains them says so; every other use is
silent."""

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.job.session import default_session

MATRIX = np.random.default_rng(1).standard_normal((4, 3)).astype("float32")


@pytest.fixture(autouse=True)
def session():
    flow.clear_default_session()
    yield
    flow.clear_default_session()


def dense(x, units, name, **options):
    return flow.layers.dense(x, units, name=name, **options)


def trained(network, kind="train"):
    """A job of `network(x)`, run for two steps."""
    @flow.global_function(type=kind)
    def zero_job(x: tp.Numpy.Placeholder(MATRIX.shape)) -> tp.Numpy:
        loss = flow.math.square(network(x) - 1.0)
        if kind == "train":
            flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss

    return [zero_job(MATRIX) for _ in range(2)]


def test_zeros_behind_zeros_are_told_once():
    """OneFlow's default: nothing but the last bias learns, whatever the data are."""
    def network(x):
        hidden = dense(x, 5, "first", activation=flow.nn.relu)
        hidden = dense(hidden * 2.0, 4, "second", activation=flow.nn.relu)
        return dense(hidden, 3, "third")

    with pytest.warns(flow.MinflowWarning) as caught:
        losses = trained(network)
    assert len(caught) == 1 and caught[0].filename == __file__
    text = str(caught[0].message)
    assert text.startswith(
        "job zero_job: the weights of the layers 'first' and 'second', one behind the other, all start at 0"
    )
    assert "Try: kernel_initializer=flow.truncated_normal(0.1) for both" in text
    assert f"at test_job_zeros.py:{caught[0].lineno}" in text
    assert losses[1].mean() < losses[0].mean()  # by the last bias
    assert not any(default_session().variables[f"{name}-weight"].numpy().any() for name in ("first", "second", "third"))


SMALL = flow.random_normal_initializer(0, 0.1)


@pytest.mark.parametrize(("network", "kind"), [
    (lambda x: dense(x, 3, "only"), "train"),
    (lambda x: dense(dense(x, 4, "filled", kernel_initializer=SMALL), 3, "zeros"), "train"),
    (lambda x: dense(dense(x, 4, "zeros"), 3, "filled", kernel_initializer=SMALL), "train"),
    (lambda x: dense(x, 3, "left") + dense(x, 3, "right"), "train"),
    (lambda x: dense(dense(x, 4, "zeros"), 3, "asked", kernel_initializer=flow.zeros_initializer()), "train"),
    (lambda x: dense(dense(x, 4, "frozen", trainable=False), 3, "zeros"), "train"),
    (lambda x: dense(dense(x, 4, "one"), 3, "two"), "predict"),
], ids=["one", "last", "first", "side by side", "asked for", "frozen", "predict"])  # fmt: skip
def test_zeros_that_learn_or_are_meant_are_not_told(network, kind):
    trained(network, kind)


def test_layers_that_another_job_has_filled_are_not_told():
    trained(lambda x: dense(dense(x, 4, "a", kernel_initializer=SMALL), 3, "b", kernel_initializer=SMALL))
    trained(lambda x: dense(dense(x, 4, "a"), 3, "b"))
