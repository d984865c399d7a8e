"""nn.Graph: a program traced once, compiled, and run again and again.

`graph.py` is the class, `build.py` one trace of a `build`, `key.py` the key of a plan, `compiled.py` a compiled plan,
`state.py` saves and resumes. `introspection/graph/` shows it, and is attached to the class only here. Read next:
`graph.py`.
"""

from ...introspection.graph.listing.mixin import GraphListing
from .config import GraphConfig as GraphConfig, GraphModule as GraphModule
from .graph import RunningGraph, reserve


class Graph(GraphListing, RunningGraph):
    __doc__ = RunningGraph.__doc__


reserve(Graph, "_level", "_debug")
