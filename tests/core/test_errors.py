"""Error classes: public names in tracebacks and pickles, and the matching classes of PyTorch."""

import inspect
import pickle
import subprocess
import sys

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base import errors

OURS = flow.MinflowError, flow.MinflowWarning
KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, OURS)]


def test_every_error_class_is_found():
    assert len(KINDS) > 25 and {flow.MinflowError, flow.ShapeError, flow.StateError, flow.MinflowWarning} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_error_classes_are_pickled_by_their_public_name(kind):
    assert getattr(flow, kind.__name__) is kind and kind.__module__ == "minflow" and kind.__name__ in dir(flow)
    assert pickle.loads(pickle.dumps(kind)) is kind
    again = pickle.loads(pickle.dumps(kind("seven")))
    assert type(again) is kind and str(again) == "seven"


def test_traceback_shows_the_public_name():
    program = "import minflow as flow\nflow.ones(2, 3) @ flow.ones(4, 5)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "\nminflow.ShapeError: matmul: inner sizes differ, 3 " in done.stderr


def test_user_error_class_keeps_its_module():
    class Mine(flow.ShapeError):
        pass

    assert Mine.__module__ == __name__


@pytest.mark.parametrize(
    "kind, mistake",
    [
        (RuntimeError, lambda: flow.ones(2, 3) @ flow.ones(2, 3)),
        (RuntimeError, lambda: flow.ones(2) + flow.ones(3)),
        (RuntimeError, lambda: nn.Linear(3, 2)(flow.ones(1, 4))),
        (RuntimeError, lambda: nn.Linear(3, 2)(flow.ones(1, 3, dtype=flow.int64))),
        (RuntimeError, lambda: flow.tensor([1, 2]).requires_grad_()),
        (RuntimeError, lambda: flow.arange(6).view(4)),
        (ValueError, lambda: nn.CrossEntropyLoss()(flow.ones(2, 3), flow.tensor([0, 1, 2]))),
        (ValueError, lambda: nn.BatchNorm2d(3)(flow.ones(2, 3))),
        (ValueError, lambda: nn.Dropout(1.5)),
        (ValueError, lambda: flow.distributions.Normal(0.0, -1.0)),
        (IndexError, lambda: nn.Embedding(3, 2)(flow.tensor([3]))),
        (IndexError, lambda: flow.ones(2).sum(1)),
        (TypeError, lambda: flow.ones(2) + "1"),
    ],
)
def test_error_class_matches_pytorch(kind, mistake):
    with pytest.raises(kind):
        mistake()
