"""The classes of errors: public names, under which tracebacks show them and pickles find them."""

import inspect
import pickle
import subprocess
import sys

import pytest

import minflow as flow
from minflow.core.base import errors

OURS = flow.MinflowError, flow.MinflowWarning
KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, OURS)]


def test_all_are_found():
    assert len(KINDS) > 25 and {flow.MinflowError, flow.ShapeError, flow.StateError, flow.MinflowWarning} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_is_public_and_pickled_by_that_name(kind):
    assert getattr(flow, kind.__name__) is kind and kind.__module__ == "minflow" and kind.__name__ in dir(flow)
    assert pickle.loads(pickle.dumps(kind)) is kind
    again = pickle.loads(pickle.dumps(kind("seven")))
    assert type(again) is kind and str(again) == "seven"


def test_a_traceback_shows_the_public_name():
    program = "import minflow as flow\nflow.ones(2, 3) @ flow.ones(4, 5)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "\nminflow.ShapeError: matmul: inner sizes differ, 3 " in done.stderr


def test_a_kind_of_the_users_own_keeps_its_module():
    class Mine(flow.ShapeError):
        pass

    assert Mine.__module__ == __name__
