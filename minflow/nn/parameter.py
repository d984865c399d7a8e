"""Parameter: a tensor that a Module trains.

Assigning one to an attribute of a Module registers it. Knows nothing of modules. Read next: `module.py`.
"""

from __future__ import annotations

from typing import Any

from ..core.functions.creation import as_tensor
from ..core.base.errors import TraceError
from ..core.rebind import cell_of
from ..core.tensor import Tensor
from ..core.where import fail


class Parameter(Tensor):
    """A leaf tensor that requires grad and shares the storage of `data` (a Tensor, or numbers that `tensor` takes)."""

    def __init__(self, data: Any = (), requires_grad: bool = True):
        source = as_tensor(data).detach().contiguous()
        if source.array is None:
            fail(
                TraceError,
                "a Parameter was made of a symbolic tensor while a graph is built",
                "make parameters in __init__, before the graph is built",
                data=data,
            )
        super().__init__(source.array, source.spec)
        self.cell = cell_of(source)
        if requires_grad:
            self.requires_grad_()


class Buffer(Tensor):
    """A tensor that a Module registers as a buffer when it is assigned to an attribute: state that is not trained.

    persistent: whether it is part of state_dict.
    """

    def __init__(self, data: Any = (), *, persistent: bool = True):
        source = as_tensor(data).detach()
        super().__init__(source.array, source.spec)
        self.cell = cell_of(source)
        self.persistent = persistent
