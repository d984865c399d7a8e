"""nn.Graph: a program traced once, compiled and run again and again.

What runs stands here: `graph.py` is the class, `build.py` one trace of a `build`, `key.py` what a plan depends on,
`compiled.py` what came out, `state.py` saves and resumes. What only looks has a folder each: listing/, compare/,
explore/; it is attached here and nowhere else. Read next: `graph.py`.
"""

from .config import GraphConfig as GraphConfig
from .config import GraphModule as GraphModule
from .graph import RunningGraph, reserve
from .listing.mixin import GraphListing


class Graph(GraphListing, RunningGraph):
    __doc__ = RunningGraph.__doc__


reserve(Graph, "_level", "_debug")
