"""`flow.comm`: OneFlow's collectives, for a single process. Read next: `distributed.py`."""

from ...core.messages.suggestions import name_hints as _name_hints
from .distributed import all_gather as all_gather
from .distributed import all_gather_into_tensor as all_gather_into_tensor
from .distributed import all_reduce as all_reduce
from .distributed import all_to_all as all_to_all
from .distributed import barrier as barrier
from .distributed import broadcast as broadcast
from .distributed import gather as gather
from .distributed import reduce as reduce
from .distributed import reduce_scatter as reduce_scatter
from .distributed import reduce_scatter_tensor as reduce_scatter_tensor
from .distributed import scatter as scatter

__getattr__ = _name_hints("flow.comm", globals())
