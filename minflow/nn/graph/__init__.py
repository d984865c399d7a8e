"""nn.Graph: a program traced once, compiled and run again and again.

`graph.py` is the class; `build.py` one trace of a `build`; `key.py` what a plan depends on; `compiled.py` what came out.
How it looks: `listing.py` (print), `debug.py` (while it builds), `reports.py` (records for views). `state.py` saves and
resumes, `inspect.py` looks at gradients and values, `mistakes.py` has the texts of errors. Read next: `graph.py`.
"""

from .config import GraphConfig as GraphConfig
from .config import GraphModule as GraphModule
from .graph import Graph as Graph
