"""OneFlow's argument names: each row of the table is accepted, and equals a call with our names."""

import functools
import inspect
from fnmatch import fnmatchcase

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CallError
from minflow.core.messages.renamed import RENAMED_ARGUMENTS, translate_call

F = nn.functional
X, W = flow.tensor([[1.5, -2.0], [0.25, 3.0]]), flow.tensor([0.5])
IMAGE = flow.arange(32.0).reshape(1, 2, 4, 4)

SAME = {
    "round": (lambda: flow.round(x=X), lambda: flow.round(X)),
    "split": (lambda: flow.split(x=X, split_size_or_sections=1)[1], lambda: flow.split(X, 1)[1]),
    "leaky_relu": (lambda: F.leaky_relu(x=X, alpha=0.5), lambda: F.leaky_relu(X, 0.5)),
    "softshrink": (lambda: F.softshrink(X, alpha=1), lambda: F.softshrink(X, 1)),
    "prelu": (lambda: F.prelu(X, alpha=W), lambda: F.prelu(X, W)),
    "conv2d": (lambda: F.conv2d(IMAGE, IMAGE[:, :, :2, :2], channel_pos="channels_first"),
               lambda: F.conv2d(IMAGE, IMAGE[:, :, :2, :2])),
    "max_pool2d": (lambda: F.max_pool2d(IMAGE, 2, data_format="channels_first"), lambda: F.max_pool2d(IMAGE, 2)),
    "linalg": (lambda: flow.linalg.norm(input=X, ord="nuc"), lambda: flow.linalg.norm(X, "nuc")),
    "det": (lambda: flow.linalg.det(A=X), lambda: flow.linalg.det(X)),
    "pow": (lambda: X.pow(exponent=2), lambda: X * X),
    "broadcast_to": (lambda: W.broadcast_to(shape=(2, 2)), lambda: W.expand(2, 2)),
    "swapaxes": (lambda: flow.swapaxes(X.swapaxes(axis0=0, axis1=1), axis0=0, axis1=1), lambda: X),
    "gather": (lambda: flow.gather(X, 1, flow.tensor([[1], [0]]), sparse_grad=True),
               lambda: flow.tensor([[-2], [0.25]])),
    "vector_norm": (lambda: flow.linalg.vector_norm(X, ord=1), lambda: X.abs().sum()),
    "one_hot": (lambda: F.one_hot(flow.tensor([1, 0]), 2, on_value=3, off_value=-1),
                lambda: flow.tensor([[-1, 3], [3, -1]])),
    "unique": (lambda: flow.unique(flow.tensor([2, 1, 2]), return_counts=True, dtype=flow.int32)[1],
               lambda: flow.tensor([1, 2], dtype=flow.int32)),
    "added": (lambda: flow.scatter(X, 0, flow.tensor([[1, 1], [1, 0]]), 2.0, reduce="add"),
              lambda: flow.tensor([[1.5, 0.0], [4.25, 5.0]])),
    "multiplied": (lambda: X.scatter(0, flow.tensor([[1, 1], [1, 0]]), X, reduce="multiply"),
                   lambda: flow.tensor([[1.5, -6.0], [0.09375, -6.0]])),
    "addcmul": (lambda: X.addcmul(X, X, value=2), lambda: X + 2 * X * X),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_oneflow_argument_names(name):
    theirs, ours = (make() for make in SAME[name])
    assert theirs.dtype is ours.dtype and theirs.tolist() == ours.tolist()


def test_classes_take_oneflow_names():
    assert nn.Softshrink(0.5, inplace=True).lambd == 0.5
    assert len(nn.ParameterList(parameters=[nn.Parameter(W)])) == 1
    nn.init.xavier_uniform_(X.clone(), data_format="NCHW")
    optimizer = flow.optim.SGD([nn.Parameter(W)], lr=1.0)
    assert flow.optim.lr_scheduler.PolynomialLR(optimizer, decay_batch=7, end_learning_rate=0.1).total_iters == 7
    assert X.size(idx=1) == 2 and X.norm(dtype=flow.float64).dtype is flow.float64


def test_rows_name_existing_arguments():
    for names, words in RENAMED_ARGUMENTS.items():
        theirs = dict(word.split("=", 1) for word in words.split())
        ours = {word for word in theirs.values() if word[:1] not in ("", ":", "@")}
        for pattern in names.split():
            *space, last = pattern.removeprefix("flow.").split(".")
            owner = functools.reduce(getattr, space, flow)
            matching = [name for name in dir(owner) if fnmatchcase(name, last)]
            assert matching, pattern
            for name in matching if last != "*" else ["xavier_uniform_"]:
                known = {
                    n
                    for n, p in inspect.signature(getattr(owner, name)).parameters.items()
                    if p.kind is not p.VAR_POSITIONAL
                }
                assert ours <= known and not theirs.keys() & known, (pattern, name)


@pytest.mark.parametrize("call", [
    lambda: F.max_pool2d(IMAGE, 2, data_format="channels_last"), lambda: F.leaky_relu(X, alpha=1, negative_slope=2),
    lambda: nn.init.xavier_uniform_(X.clone(), data_format="NHWC"), lambda: F.leaky_relu(X, alpa=1),
])  # fmt: skip
def test_arguments_without_meaning_are_refused(call):
    with pytest.raises(CallError, match="has no argument"):
        call()


def test_failed_call_is_not_repeated():
    misfit = TypeError("got an unexpected keyword argument 'x'")
    assert translate_call("flow.round", (), {"x": 1}, ValueError("unexpected keyword argument")) is None
    assert translate_call("flow.round", (), {"x": 1}, TypeError("begun")) is None
    assert translate_call("flow.round", (), {"x": 1}, misfit) == ((), {"input": 1})
    assert translate_call("flow.flip", (), {"dims": (0,), "input": 1}, misfit) == ((1, (0,)), {})


def test_dropout_with_a_generator():
    x = flow.ones(100)
    first, second = (nn.Dropout(0.5, generator=flow.Generator().manual_seed(3)) for _ in range(2))
    state = flow.get_rng_state()
    assert first(x).tolist() == second(x).tolist() and flow.get_rng_state().tolist() == state.tolist()


def test_train_is_called_on_each_submodule():
    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(False)

    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Frozen(2), nn.Dropout()))
    model.train()
    assert model[0].training and not model[1][0].training and model[1][1].training
    assert not any(module.training for module in model.eval().modules())
