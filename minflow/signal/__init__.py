"""`flow.signal`: window functions, in `flow.signal.windows`."""

from ..core.messages.suggestions import name_hints as _name_hints
from . import windows as windows

__getattr__ = _name_hints("flow.signal", globals())
