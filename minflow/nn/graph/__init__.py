"""nn.Graph: a program traced once, compiled, and run again and again.

`graph.py` is the class, `build.py` one trace of a `build`, `key.py` the key of a plan, `compiled.py` a compiled plan,
`state.py` saves and resumes. Introspection is in subfolders, listing/, compare/ and explore/, and is attached to the
class only here. Read next: `graph.py`.
"""

from .config import GraphConfig as GraphConfig, GraphModule as GraphModule
from .graph import RunningGraph, reserve
from .listing.mixin import GraphListing


class Graph(GraphListing, RunningGraph):
    __doc__ = RunningGraph.__doc__


reserve(Graph, "_level", "_debug")
