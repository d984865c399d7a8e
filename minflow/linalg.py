"""Linear algebra by the names of `flow.linalg`. What they compute stands in `core/functions/linear_algebra.py`."""

from .core.messages.near import name_hints as _name_hints
from .core.functions import matmul as matmul
from .core.functions import matrix_norm as matrix_norm
from .core.functions import norm as norm
from .core.functions import vector_norm as vector_norm

__getattr__ = _name_hints("flow.linalg", globals())
