"""nn.Graph: a program that is traced and compiled once, and run many times.

`graph.py` defines the class, `build.py` traces a `build`, `key.py` makes the key of a plan, `compiled.py` runs a
compiled plan, `state.py` saves and resumes. `introspection/graph/` displays it, and is attached to the class only here.
Read next: `graph.py`.
"""

from ...introspection.graph.listing.mixin import GraphListing
from .config import GraphConfig as GraphConfig, GraphModule as GraphModule
from .graph import RunningGraph, reserve


class Graph(GraphListing, RunningGraph):
    __doc__ = RunningGraph.__doc__


reserve(Graph, "_level", "_debug")
