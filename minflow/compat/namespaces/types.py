"""`flow.types`: the type annotations `Device` and `Number`, for programs that import them."""

from ...core.messages.suggestions import missing_names as _missing_names
from ...core.spec import Device as _Device, DType as _DType

Number = int | float | bool
Device = _Device | str | int | None
_dtype, _device = _DType, _Device
_int, _float, _bool = int, float, bool
_size = list[int] | tuple[int, ...]
_layout = str

__all__ = ["Device", "Number"]
__getattr__ = _missing_names("flow.types", globals())
