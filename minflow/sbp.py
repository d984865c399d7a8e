"""How a global tensor is distributed over ranks (`flow.sbp`): `split(dim)`, `broadcast` or `partial_sum`.

    placement = flow.placement("cpu", ranks=[0, 1])
    x.to_global(placement, flow.sbp.split(0))  # each of the two ranks holds half of the rows

`broadcast` and `partial_sum` are values, which may be called: `broadcast()` is `broadcast`.
"""

from .core.base.placement import Sbp as sbp, broadcast as broadcast, partial_sum as partial_sum, split as split
from .core.messages.suggestions import name_hints as _name_hints

__all__ = ["broadcast", "partial_sum", "sbp", "split"]
__getattr__ = _name_hints("flow.sbp", globals())
