"""`flow.utils`: the room of `utils.data`, and arrays of other libraries."""

from ..core.messages.suggestions import missing_names as _missing_names
from . import checkpoint as checkpoint, data as data
from . import dlpack as dlpack
from . import tensor as tensor

__getattr__ = _missing_names("flow.utils", globals())
