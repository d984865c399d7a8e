"""`utils.dlpack`: exchange arrays with other libraries without a copy."""

from __future__ import annotations

from typing import Any

from ..core.functions.creation import from_dlpack as from_dlpack
from ..core.messages.suggestions import name_hints as _name_hints


def to_dlpack(tensor: Any) -> Any:
    """Return a capsule for another library's `from_dlpack`; `np.from_dlpack(tensor)` does not need one."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
__getattr__ = _name_hints("flow.utils.dlpack", globals())
