"""Annotations of sizes that programs import: `_size_2_t` is an int or a pair of ints."""

from ..core.tensor import Tensor

_scalar_or_tuple_any_t = int | tuple[int, ...]
_scalar_or_tuple_1_t = _size_1_t = int | tuple[int]
_scalar_or_tuple_2_t = _size_2_t = int | tuple[int, int]
_scalar_or_tuple_3_t = _size_3_t = int | tuple[int, int, int]
_scalar_or_tuple_4_t = _size_4_t = int | tuple[int, int, int, int]
_scalar_or_tuple_5_t = _size_5_t = int | tuple[int, int, int, int, int]
_scalar_or_tuple_6_t = _size_6_t = int | tuple[int, int, int, int, int, int]
_size_any_t = _scalar_or_tuple_any_t
_size_any_opt_t = tuple[int | None, ...]
_size_2_opt_t = tuple[int | None, int | None]
_size_3_opt_t = tuple[int | None, int | None, int | None]
_ratio_2_t = _ratio_any_t = float | tuple[float, ...]
_ratio_3_t = float | tuple[float, float, float]
_tensor_list_t = Tensor | list[Tensor]
_maybe_indices_t = Tensor | tuple[Tensor, Tensor]
