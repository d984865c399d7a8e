"""Code that inspects a graph or a job is imported when it is first used."""

import inspect
import textwrap

import pytest

from minflow import nn
from minflow.introspection.graph.listing.accessors import GraphAccessors
from minflow.introspection.graph.listing.mixin import GraphListing
from minflow.introspection.graph.listing.reports import GraphReports
from minflow.nn.graph import INSPECTION
from tests.processes import python

CALLS = {
    "graph": """
        class Train(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = nn.Linear(3, 2)
                self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))
            def build(self, x):
                loss = self.model(x).sum()
                loss.backward()
                return loss
        graph, x = Train(), flow.ones(4, 3)
        call = lambda: (graph(x), graph(x))
        use = lambda: graph.plan
    """,
    "job": """
        import minflow.typing as tp
        @flow.global_function(type="predict")
        def job(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
            return x * 2
        ones = numpy.ones(2, "f")
        call = lambda: (job(ones), job(ones))
        use = lambda: job.plan
    """,
}


@pytest.mark.parametrize("kind", CALLS)
def test_call_enters_no_file_that_inspects(kind):
    program = f"""
import sys, threading, numpy
import minflow as flow
from minflow import nn
{textwrap.dedent(CALLS[kind])}
files = set()
def note(frame, *_):
    files.add(frame.f_code.co_filename.replace("\\\\", "/"))
threading.setprofile(note)
sys.setprofile(note)
call()
sys.setprofile(None)
looking = [f for f in files if "/minflow/introspection/" in f or "/minflow/views/" in f]
assert not looking, looking
assert any("/minflow/compiler/" in f for f in files)
before = [name for name in sys.modules if name.startswith("minflow.introspection")]
use()
assert not before and "minflow.introspection.graph.listing.roofline" in sys.modules
"""
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


def test_every_member_is_known_before_it_is_imported():
    own = {"__module__", "__doc__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__"}
    members = {name for part in (GraphListing, GraphAccessors, GraphReports) for name in vars(part)} - own
    assert members == set(INSPECTION)


def test_members_have_their_signatures_and_docstrings():
    assert "v_level" in inspect.signature(nn.Graph.debug).parameters
    assert nn.Graph.plan.__doc__.startswith("The calls of a step")
