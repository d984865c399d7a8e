"""`flow.comm`: OneFlow's collectives. They are those of `flow.distributed`, except that `recv` returns its tensor."""

from ...core.messages.suggestions import name_hints as _name_hints
from ...distributed import (
    all_gather as all_gather,
    all_gather_into_tensor as all_gather_into_tensor,
    all_reduce as all_reduce,
    all_to_all as all_to_all,
    barrier as barrier,
    broadcast as broadcast,
    gather as gather,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
)
from ...distributed.messages import recv as recv, send as send

__getattr__ = _name_hints("flow.comm", globals())
