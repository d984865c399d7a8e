"""Types, tensors and attributes of an ONNX file as text of bounded length. Read next: `records.py`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...core.base.errors import cut
from ...introspection.graph.explore.details import bytes_text as bytes_text
from ...views.text.listing import count

MAX_NAME_CHARS, MAX_TEXT_CHARS = 255, 40  # characters of a name; of a string in an attribute
MAX_SHOWN_AXES, MAX_SHOWN_NUMBERS = 12, 8  # axes of a spec, and numbers of an attribute, that are shown
DTYPE_NAMES = {"float": "float32", "double": "float64"}  # those whose name in ONNX differs
ALL_ONES_DEFAULTS, ALL_ZEROS_DEFAULTS = ("strides", "dilations"), ("pads",)  # lists with such a default


def short(name: str) -> str:
    return cut(name, MAX_NAME_CHARS)


def dtype_of(number: int) -> str:
    """The name of an element type: "float32", "float8_e4m3fn", or "dtype 99" for an unknown one."""
    from onnx import TensorProto

    known = TensorProto.DESCRIPTOR.enum_types_by_name["DataType"].values_by_number.get(number)
    if known is None or not number:
        return f"dtype {number}"
    name = known.name.lower()
    return DTYPE_NAMES.get(name) or re.sub(r"^float(\d)e", r"float\1_e", name)


def bits_of(dtype: str) -> int:
    """Bits of an element, 0 if it has no fixed size."""
    found = re.fullmatch(r"[a-z]+(\d+)(_\w+)?", dtype)
    return int(found[1]) if found else 8 * (dtype == "bool")


def shape_text(dims: Iterable[str]) -> str:
    dims = list(dims)
    if len(dims) > MAX_SHOWN_AXES:
        dims = [*dims[: MAX_SHOWN_AXES // 2], f"... {len(dims) - MAX_SHOWN_AXES // 2:,} more axes"]
    return ", ".join(dims)


def dim_text(dim: Any) -> str:
    """The number, the name, or "?"; characters with a meaning in a spec are removed from a name."""
    if dim.WhichOneof("value") == "dim_value":
        return str(dim.dim_value)
    name = cut(dim.dim_param, MAX_TEXT_CHARS).translate(str.maketrans("[],", "();"))
    return "?" if not name or name.isdecimal() or re.fullmatch(r"unk__\d+", name) else name  # inference makes up unk__1


def spec_of(type_: Any) -> str:
    """ "float32[batch, 3, ?]" for a tensor, "float32[...]" if its rank is unknown."""
    kind = type_.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(type_, kind)
        shape = shape_text(map(dim_text, tensor.shape.dim)) if tensor.HasField("shape") else "..."
        return f"{'sparse ' * (kind != 'tensor_type')}{dtype_of(tensor.elem_type)}[{shape}]"
    if kind in ("sequence_type", "optional_type"):
        return cut(f"{kind[:-5]}({spec_of(getattr(type_, kind).elem_type)})", MAX_NAME_CHARS)
    if kind == "map_type":
        return cut(f"map({dtype_of(type_.map_type.key_type)}, {spec_of(type_.map_type.value_type)})", MAX_NAME_CHARS)
    return "?"


def tensor_spec(tensor: Any, dtype: int | None = None) -> str:
    return f"{dtype_of(tensor.data_type if dtype is None else dtype)}[{shape_text(map(str, tensor.dims))}]"


def size_of(dims: Iterable[int]) -> int:
    """Number of elements, at most 2**63."""
    total = 1
    for n in dims:
        total = min(total * max(n, 0), 2**63)
    return total


def data_error(tensor: Any) -> str:
    """The reason why the data of a tensor is invalid; "" if it may be valid or is in another file."""
    bits, size = bits_of(dtype_of(tensor.data_type)), size_of(tensor.dims)
    if min(tensor.dims, default=0) < 0:
        return "a negative size"
    if size >= 2**63 or size * bits >= 2**66:
        return "sizes that overflow"
    if tensor.data_location or not bits or not size:
        return ""
    if tensor.HasField("raw_data"):
        nbytes, wanted = len(tensor.raw_data), -(-size * bits // 8)
        return "" if nbytes == wanted else f"it has {nbytes:,} bytes of data, and its shape needs {wanted:,}"
    numbers = max(
        len(x)
        for x in (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
    )
    return "" if numbers else "it has no elements"


def numbers_of(tensor: Any) -> Any:
    """Its elements as an array; None if they are strings, are invalid, or are in another file, which is not opened."""
    from onnx import numpy_helper

    if tensor.data_location or data_error(tensor) or not bits_of(dtype_of(tensor.data_type)):
        return None
    try:
        return numpy_helper.to_array(tensor)
    except Exception:  # fewer elements than its shape requires
        return None


def number_text(x: Any) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)


def tuple_text(values: Any, of: int) -> str:
    """(1, 2, 3), shortened if long. of: number of elements."""
    parts = [number_text(x) for x in values]
    if of > len(parts):
        parts.append(f"... {of:,} in all")
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def bytes_as_text(data: bytes) -> str:
    return repr(cut(data[: 4 * MAX_TEXT_CHARS].decode("utf-8", "replace"), MAX_TEXT_CHARS))


def attribute_text(a: Any) -> str:
    """Short text of an attribute; for a small tensor, its elements."""
    if a.DESCRIPTOR.name == "TensorProto":
        array = numbers_of(a) if size_of(a.dims) <= MAX_SHOWN_NUMBERS else None
        if array is None:
            return tensor_spec(a) if size_of(a.dims) > MAX_SHOWN_NUMBERS or a.data_location else ""
        values = array.reshape(-1).tolist()
        return tuple_text(values, len(values)) if array.ndim else number_text(values[0])
    if a.ref_attr_name:
        return f"the caller's {cut(a.ref_attr_name, MAX_TEXT_CHARS)}"
    kind = a.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number.get(a.type)
    match kind.name if kind else "":
        case "FLOAT":
            return number_text(a.f)
        case "INT":
            return dtype_of(a.i) if a.name in ("to", "dtype") else number_text(a.i)
        case "STRING":
            return bytes_as_text(a.s)
        case "TENSOR":
            return attribute_text(a.t) or tensor_spec(a.t)
        case "FLOATS":
            return tuple_text(a.floats[:MAX_SHOWN_NUMBERS], len(a.floats))
        case "INTS":
            return tuple_text(a.ints[:MAX_SHOWN_NUMBERS], len(a.ints))
        case "STRINGS":
            return tuple_text(map(bytes_as_text, a.strings[:MAX_SHOWN_NUMBERS]), len(a.strings))
        case "TYPE_PROTO":
            return spec_of(a.tp)
    return kind.name.lower().replace("_", " ") if kind else f"of type {a.type}"


def graph_summary(nodes: Any) -> str:
    """ "3 operations (Conv, Relu)" for a nested graph."""
    kinds = Counter(node.op_type for node in nodes)
    return count(len(nodes), "operation") + (f" ({kinds_text(kinds)})" if kinds else "")


def kinds_text(kinds: Iterable[str], most: int = 3) -> str:
    kinds = [cut(kind, MAX_TEXT_CHARS) for kind in kinds]
    return ", ".join(kinds[:most]) + (", ..." if len(kinds) > most else "")


def is_default(a: Any, schema: Any) -> bool:
    """True if the attribute has its default value."""
    if a.name in ALL_ONES_DEFAULTS + ALL_ZEROS_DEFAULTS and a.ints:
        return all(n == int(a.name in ALL_ONES_DEFAULTS) for n in a.ints[:64])
    known = schema.attributes.get(a.name) if schema is not None else None
    if known is None or not known.default_value.name:
        return False
    return attribute_text(known.default_value) == attribute_text(a)


def opsets_text(opsets: Mapping[str, int], ir: int) -> str:
    versions = [
        f"{version}" if domain == "ai.onnx" else f"{cut(domain, MAX_TEXT_CHARS)} {version}"
        for domain, version in sorted(opsets.items(), key=lambda item: item[0] != "ai.onnx")[:6]
    ]
    return f"{', '.join(versions) or 'none'} (IR version {ir})"
