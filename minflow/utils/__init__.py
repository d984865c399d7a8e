"""`flow.utils`: data loading, activation checkpointing, global tensors, and exchange of arrays with other libraries."""

from ..core.messages.suggestions import missing_names as _missing_names
from . import (
    _pytree as _pytree,
    checkpoint as checkpoint,
    data as data,
    dlpack as dlpack,
    global_view as global_view,
    tensor as tensor,
)

__getattr__ = _missing_names("flow.utils", globals(), {"benchmark": "benchmark."})
