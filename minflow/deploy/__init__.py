"""Save a graph with its computation, and load and run it without the code that defined it.

Read next, in the order of a save and a load: `program.py` (what is saved), `writing.py` (as data), `folder.py` (files);
`document.py` (checks what was read against the shape rules), `replay.py` (runs it), `training/__init__.py` (resumes
training), and `saving.py`, which combines them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..io import SAVERS

if TYPE_CHECKING:
    from ..core.spec import Device
    from .replay import LoadedGraph


def load_graph(path: str | os.PathLike, map_location: Device | str | int | None = None) -> LoadedGraph:
    """Load a graph that `flow.save(graph, path)` wrote, without the code that defined it.

    The result is an nn.Graph. It is called with tensors of the saved shapes and dtypes (dynamic axes may have any size)
    and returns the same results, bit for bit on the same machine with the same number of threads. `print`, `show`,
    `explore`, `tree()` and times work as on the saved graph. A training graph continues with the next step: optimizers,
    schedules and the default generator have the state in which they were saved. Its modules hold the parameters by name
    (`graph.model.state_dict()`), but not their classes, so a module cannot be called on its own. Neither are there
    classes of results: it returns a dict for a dataclass or a subclass of dict, and a tuple for a named tuple; as
    arguments it takes either.

    map_location: the device of the graph, wherever the saved one was; by default that of new tensors, the CPU.

    Raises GraphFormatError if the folder is damaged or was not written by `flow.save`. Nothing in a file is executed.
    """
    from . import saving  # imported on first use, because it imports much

    return saving.load(path, map_location)


def save_graph(obj: Any, path: str | os.PathLike, dynamic: Any = None) -> None:
    """Save a graph or a predict job; called by `flow.save`."""
    from . import saving

    saving.save(obj, path, dynamic)


SAVERS |= dict.fromkeys(("minflow.nn.graph.graph.RunningGraph", "minflow.job.function.Job"), save_graph)
