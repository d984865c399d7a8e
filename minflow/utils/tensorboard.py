"""`flow.utils.tensorboard`: the SummaryWriter of the package tensorboardX, which takes tensors of minflow.

Without the package the module imports, and SummaryWriter() raises an error. `flow.watch` and the curves of a notebook
need no other package. Read next: `_pytree.py`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..core.base.errors import GraphError
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail, need
from ..core.spec import bfloat16
from ..core.tensor import Tensor
from ._pytree import tree_map_only

try:
    from tensorboardX import SummaryWriter as Writer, summary as summary
except ImportError:
    Writer, summary = object, ModuleType(f"{__name__}.summary")


def to_array(x: Tensor) -> Any:
    x = x.detach().cpu()
    return (x.float() if x.dtype is bfloat16 else x).numpy()


class SummaryWriter(Writer):
    """Writes events for TensorBoard into the folder log_dir: `add_scalar(tag, value, step)` and others of tensorboardX.

    Raises MissingDependencyError without tensorboardX.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        need("tensorboardX", "utils.tensorboard.SummaryWriter, unlike flow.watch and its curves,")
        super().__init__(*args, **kwargs)

    log_dir = property(lambda self: self.logdir, doc="The folder.")

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if not name.startswith("add_"):
            return method

        def with_arrays(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = tree_map_only(Tensor, to_array, (args, kwargs))
            return method(*args, **kwargs)

        return with_arrays

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, **options: Any) -> None:
        """Raise GraphError: the graphs of minflow are not PyTorch's."""
        fail(GraphError, "SummaryWriter.add_graph: TensorBoard gets no graph of a model", "flow.show(graph)")


__all__ = ["SummaryWriter", "summary"]
__getattr__ = _name_hints("flow.utils.tensorboard", globals())
