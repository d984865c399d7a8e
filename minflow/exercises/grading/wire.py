"""Messages from an answer's process to the judge: plain data of bounded size, decoded without running anything.

Values that are not plain (objects, functions, generators) arrive as an `Opaque` with the name of their type and their
repr. A message of a wrong form raises WireError. Read next: `worker.py`, which sends.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minflow as flow

from ..runner import RaisedError, Result

MAX_BYTES = 8_000_000  # of one message
MAX_ITEMS = 50_000  # numbers, texts and containers in a message; an array counts once
MAX_KEYS = 2_000  # entries of a dict or set: hashes of chosen keys may all be equal
MAX_DEPTH = 20
MAX_INT_BITS = 2_000
MAX_TEXT = 10_000  # characters of a text that is not a value
DTYPES = {
    name: np.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
    )
}
TENSORS = {"Tensor": flow.Tensor, "Parameter": flow.nn.Parameter}


class WireError(ValueError):
    """A message has a wrong form or is too large."""


class Opaque:
    """Value of another kind than plain data. Its class has the name of the value's type."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


# ---- sending --------------------------------------------------------------------------------------------------------


def dump(message: dict[str, Any]) -> bytes:
    """Encode a message, a dict of JSON values, as one line. Raises WireError if it is too large."""
    line = json.dumps(message).encode()
    if len(line) > MAX_BYTES or count_items(line) > MAX_ITEMS:
        raise WireError("the result is too large")
    return line + b"\n"


def dump_result(result: Result) -> bytes:
    """Encode a result. A value that is too large is sent as an `Opaque`."""
    fields = {**vars(result), "error": result.error and dump_error(result.error)}
    try:
        return dump(fields | {"value": encode(result.value)})
    except Exception as error:  # too large, or a learner's object raises
        return dump(fields | {"value": opaque(result.value, f"<it cannot be sent: {error}>"[:MAX_TEXT])})


def dump_error(error: RaisedError) -> dict[str, Any]:
    return dict(vars(error))


def encode(value: Any, depth: int = 0) -> Any:
    """Encode a value as JSON. The methods are those of the built-in types, also for a learner's subclass."""
    if depth > MAX_DEPTH:
        raise WireError("it is nested too deeply")
    if value is None or value is True or value is False:
        return value
    if value is ...:
        return ["ellipsis"]
    if isinstance(value, np.generic | np.ndarray) and not isinstance(value, str | bytes):
        return encode_array("scalar" if isinstance(value, np.generic) else "array", np.asarray(value), depth)
    if isinstance(value, int):
        number = int.__int__(value)
        return number if number.bit_length() <= MAX_INT_BITS else opaque(value, "a number of many digits")
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray):
        return ["bytes", as_text(bytes(value))]
    if isinstance(value, range):
        return ["range", value.start, value.stop, value.step]
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return [kind.__name__, [encode(item, depth + 1) for item in kind.__iter__(value)]]  # type: ignore
    if isinstance(value, dict):
        return ["dict", [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in dict.items(value)]]
    if isinstance(value, flow.Tensor):
        name = "Parameter" if isinstance(value, flow.nn.Parameter) else "Tensor"
        return encode_array(name, np.asarray(value.detach().numpy()), depth)
    return opaque(value)


def encode_array(kind: str, array: np.ndarray, depth: int) -> list:
    if array.dtype.name in DTYPES:
        return [kind, array.dtype.name, list(array.shape), as_text(array.tobytes())]
    return ["objects", list(array.shape), [encode(item, depth + 1) for item in array.reshape(-1).tolist()]]


def opaque(value: Any, text: str = "") -> list:
    try:
        text = text or str.__str__(repr(value))[:MAX_TEXT]
    except Exception:  # the learner's own __repr__
        text = ""
    name = type.__dict__["__name__"].__get__(type(value))
    return ["opaque", name, text or f"<{name}>"]


def as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


# ---- receiving ------------------------------------------------------------------------------------------------------


def count_items(line: bytes) -> int:
    """Upper bound of the values that parsing creates."""
    return line.count(b",") + line.count(b"[") + line.count(b"{") + line.count(b":")


def load(line: bytes) -> dict[str, Any]:
    """Parse a message. Raises WireError."""
    if len(line) > MAX_BYTES or count_items(line) > MAX_ITEMS:
        raise WireError("a message is too large")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError("a message is not JSON") from error
    if not isinstance(message, dict):
        raise WireError("a message is not a dict")
    return message


def text(value: Any) -> str:
    return checked(value, str)[:MAX_TEXT]


def texts(value: Any) -> list[str]:
    return [text(item) for item in checked(value, list)[:100]]


def count(value: Any) -> int:
    return min(max(checked(value, int), 0), 10**9)


def seconds(value: Any) -> float:
    return checked(value, float) if checked(value, float) < math.inf else 0.0


def line(value: Any) -> tuple[int, str]:
    number, source = items(value, 2)
    return count(number), text(source)


def error(value: Any) -> RaisedError | None:
    return None if value is None else RaisedError(**fields(value, ERROR_FIELDS))


ERROR_FIELDS: dict[str, Callable] = {
    "name": text,
    "kind": text,
    "bases": lambda value: tuple(texts(value)),
    "text": text,
    "line": line,
    "missing": text,
    "of_none": lambda value: checked(value, bool),
}
RESULT_FIELDS: dict[str, Callable] = {
    "value": lambda value: decode(value),
    "error": error,
    "method": text,
    "changed": lambda value: tuple(count(item) for item in checked(value, list)[:100]),
    "seconds": seconds,
    "printed": texts,
    "omitted_lines": count,
    "warned": texts,
}


def load_result(line: bytes) -> Result:
    """Parse a result. Raises WireError."""
    return Result(**fields(load(line), RESULT_FIELDS))


def fields(value: Any, known: dict[str, Callable]) -> dict[str, Any]:
    if checked(value, dict).keys() != known.keys():
        raise WireError("a message has other fields")
    return {name: read(value[name]) for name, read in known.items()}


def checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise WireError(f"{kind.__name__} must be sent, got {type(value).__name__}")
    return value


def items(value: Any, length: int) -> list:
    if len(checked(value, list)) != length:
        raise WireError(f"{length} items must be sent, got {len(value)}")
    return value


def decode(value: Any, depth: int = 0) -> Any:
    """Decode a value. Raises WireError."""
    if value is None or type(value) in (bool, float, str):
        return value
    if type(value) is int:
        if value.bit_length() > MAX_INT_BITS:
            raise WireError("a number has too many digits")
        return value
    if type(value) is not list or not value or type(value[0]) is not str or depth > MAX_DEPTH:
        raise WireError("a value has an unknown form")
    kind, parts = value[0], value[1:]
    try:
        if kind in ("list", "tuple", "set", "frozenset"):
            inside = [decode(item, depth + 1) for item in checked(*parts, kind=list)]
            if "set" in kind and len(inside) > MAX_KEYS:
                raise WireError("a set is too large")
            return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](inside)
        if kind == "dict":
            pairs = [items(pair, 2) for pair in checked(*parts, kind=list)[: MAX_KEYS + 1]]
            if len(pairs) > MAX_KEYS:
                raise WireError("a dict is too large")
            return {decode(key, depth + 1): decode(item, depth + 1) for key, item in pairs}
        return DECODERS[kind](*parts)
    except WireError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise WireError(f"a value of the kind {kind[:20]!r} has a wrong form") from error


def decode_array(dtype: Any, shape: Any, data: Any) -> np.ndarray:
    array = np.frombuffer(base64.b64decode(text_of(data)), DTYPES[dtype])
    return array.reshape(checked_shape(shape)).copy()


def decode_objects(shape: Any, values: Any) -> np.ndarray:
    inside = [decode(value, MAX_DEPTH) for value in checked(values, list)]
    array = np.empty(len(inside), object)
    array[:] = inside
    strings = inside and all(isinstance(value, str) for value in inside)
    return (array.astype(str) if strings and max(map(len, inside)) <= MAX_TEXT / len(inside) else array).reshape(
        checked_shape(shape)
    )


def decode_opaque(name: Any, shown: Any) -> Opaque:
    return type(text(name)[:100], (Opaque,), {})(text(shown))


def checked_shape(shape: Any) -> tuple[int, ...]:
    if any(type(size) is not int or size < 0 for size in checked(shape, list)) or len(shape) > 32:
        raise WireError("a shape has a wrong form")
    return tuple(shape)


def text_of(value: Any) -> str:
    return checked(value, str)


DECODERS: dict[str, Callable] = {
    "ellipsis": lambda: ...,
    "complex": lambda real, imaginary: complex(checked(real, float), checked(imaginary, float)),
    "bytes": lambda data: base64.b64decode(text_of(data), validate=True),
    "range": lambda start, stop, step: range(decode(start), decode(stop), decode(step)),
    "array": decode_array,
    "scalar": lambda dtype, shape, data: decode_array(dtype, [], data)[()],
    "objects": decode_objects,
    "opaque": decode_opaque,
    **{
        name: lambda dtype, shape, data, kind=kind: as_tensor(kind, decode_array(dtype, shape, data))
        for name, kind in TENSORS.items()
    },
}


def as_tensor(kind: type, array: np.ndarray) -> Any:
    tensor = flow.tensor(array)
    return flow.nn.Parameter(tensor, requires_grad=False) if kind is flow.nn.Parameter else tensor
