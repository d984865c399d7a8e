"""A trained graph leaves home: saved with its computation, and run again without the code that made it.

Read next, as a graph goes: `program.py` says what is saved, `writing.py` makes data of it, `folder.py` keeps the files;
`document.py` holds what was read against the shape rules, `replay.py` runs it, `training/__init__.py` goes on training,
and `saving.py` puts them together.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..io import SAVERS

if TYPE_CHECKING:
    from .replay import LoadedGraph


def load_graph(path: str | os.PathLike) -> LoadedGraph:
    """The graph that `flow.save(graph, path)` wrote, without the code that it was made of.

    What it gives is an nn.Graph: it is called with tensors of the saved shapes and dtypes (of dynamic axes, any sizes),
    and gives the same numbers, bit for bit on one machine with one count of threads. `print`, `show`, `explore`,
    `tree()` and times work as on the graph that was saved. A training graph goes on with the next step: optimizers,
    schedules, and the default generator stand where they stood when it was saved. Its modules hold the parameters
    under their names (`graph.model.state_dict()`); their classes are not there, so a module alone is not called.

    Raises GraphFormatError if the folder is damaged, or none that `flow.save` wrote; nothing of a file is executed.
    """
    from . import saving  # at first use: with all that it needs

    return saving.load(path)


def save_graph(obj: Any, path: str | os.PathLike, dynamic: Any = None) -> None:
    """What `flow.save` does with a graph or a predict job."""
    from . import saving

    saving.save(obj, path, dynamic)


SAVERS |= dict.fromkeys(("minflow.nn.graph.graph.RunningGraph", "minflow.job.function.Job"), save_graph)
