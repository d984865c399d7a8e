"""`flow.utils`: the room of `utils.data`."""

from ..core.messages.near import missing_names as _missing_names
from . import checkpoint as checkpoint, data as data

__getattr__ = _missing_names("flow.utils", globals())
