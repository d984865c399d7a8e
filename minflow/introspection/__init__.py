"""Text and records of graphs and jobs, comparisons with eager code, sessions of the explorer.

Code that runs graphs or jobs must not import this package; `nn/graph/__init__.py` and `job/__init__.py` attach it to
the public classes. Read next: `graph/listing/mixin.py`.
"""

from ..nn import graph as _nn_graph  # noqa: F401  first: it imports parts of this package itself
