"""Convert nested dicts, lists and tuples of tensors to a plain JSON value and a table of arrays, and back.

A number, string, bool or None represents itself; anything else is a list whose first entry is its kind:
`["dict", [[key, value], ...]]`, `["list", [...]]`, `["tensor", name, options]`. Tensors that share their storage share
one array, and do so again when loaded. Objects of classes are `["object", number, parts]`, and ["same", number] when
they come again; see `objects.py`. The module versions in the `_metadata` of a state_dict are in a list next to the
tree, with an entry for each OrderedDict in the tree. Independent of files. Read next: `checkpoint.py`.
"""

from __future__ import annotations

import builtins
import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ..core.backend import Array, backend_of_array
from ..core.base.errors import CheckpointError
from ..core.base.placement import Placement, broadcast
from ..core.functionalize import version_counter_of
from ..core.host import HostArray, HostScalar
from ..core.overrides import overrides
from ..core.source_location import fail
from ..core.spec import DType, dtype_named, spec_of
from ..core.tensor import Size, Tensor, note_read
from ..nn.parameter import Parameter
from . import objects
from .container import WRITTEN_DTYPES, reason_to_refuse_keys

MAX_DEPTH = 100  # limit of the nesting depth
MAX_DIGITS = 4000  # limit for integers: Python's own parser refuses a little more
INTEGER_LIMIT = 10**MAX_DIGITS
RESERVED_NAME = "__metadata__"  # a name that the file format reserves


class Writer:
    """Encodes an object. Then `arrays` holds name -> array, each storage once, and `metadata` that of its dicts.

    rank: the one that gets all elements of global tensors; None to refuse these.
    """

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank
        self.gathered: dict[int, tuple[Array, Array]] = {}  # id of a local part -> it, and the array of all elements
        self.arrays: dict[str, Array] = {}
        self.names_by_memory: dict[tuple, str] = {}
        self.enclosing_ids: list[int] = []
        self.metadata: list[Any] = []
        self.objects: dict[int, tuple[int, Any]] = {}  # id -> (number, the object and its parts, which keeps ids valid)
        self.inside = 0  # number of objects around the value

    def encode(self, x: Any, path: tuple = (), shown: str = "state") -> Any:
        """Return the JSON value of x. path: the keys that lead to it; shown: the same as Python code, for errors."""
        if self.inside and is_special(x):
            return self.object(x, path, shown)
        if x is None or isinstance(x, bool | str):
            return x if x is None or isinstance(x, bool) else self.check_text(x, shown)
        if isinstance(x, Tensor) and not overrides(type(x)):
            return self.tensor(x, path, shown)
        if isinstance(x, HostArray):
            return ["array", self.add_array(x, path, shown)]
        kind = x.dtype.kind if isinstance(x, HostScalar) else ""
        if isinstance(x, int) or kind in ("i", "u"):
            return self.check_integer(int(x), shown)
        if isinstance(x, float) or kind == "f":
            return float(x) if math.isfinite(x) else ["float", repr(float(x))]
        if kind == "b":
            return bool(x)
        if isinstance(x, DType):
            return ["dtype", x.name]
        if isinstance(x, Mapping) or type(x) in (list, tuple, Size):
            return self.container(x, path, shown)
        return self.object(x, path, shown) if objects.is_savable(x) else self.refuse(x, shown)

    def object(self, x: Any, path: tuple, shown: str) -> Any:
        """The parts of an object; those of a function or class are its name."""
        if isinstance(x, bytes):
            return ["bytes", x.hex()]
        if isinstance(x, type | FunctionType | BuiltinFunctionType) and getattr(x, "__self__", None) in (
            None,
            builtins,
        ):
            return ["global", objects.name_of(x, shown)]
        if id(x) in self.objects:
            return ["same", self.objects[id(x)][0]]
        parts = objects.reduced(x, shown)
        if parts is None:
            return None
        if "name" in parts:
            return ["global", parts["name"]]
        if len(self.enclosing_ids) >= MAX_DEPTH:
            fail(CheckpointError, f"save: {shown} is nested more than {MAX_DEPTH} levels deep", "a flatter structure")
        number = len(self.objects)
        self.objects[id(x)] = number, (x, parts)
        self.enclosing_ids.append(id(x))
        self.inside += 1
        encoded = {"make": self.encode(parts["make"], path, shown)}
        encoded["args"] = ["tuple", [self.encode(argument, path, shown) for argument in parts["args"]]]
        encoded["state"] = self.encode(parts["state"], path, f"{shown}.__dict__")
        encoded |= {part: self.encode(parts[part], path, shown) for part in ("items", "pairs")}
        self.inside -= 1
        self.enclosing_ids.pop()
        return ["object", number, encoded]

    def check_text(self, x: str, shown: str) -> str:
        try:
            x.encode()
        except UnicodeEncodeError:
            what = f"save: {shown} is a string with half a character (a lone surrogate), which no file can hold"
            fail(CheckpointError, what, "x.encode('utf-8', 'replace').decode()", value=x)
        return str(x)

    def check_integer(self, x: int, shown: str) -> int:
        if abs(x) >= INTEGER_LIMIT:
            what = f"save: {shown} is an integer of more than {MAX_DIGITS} digits"
            fail(CheckpointError, what, "hex(x), a string", bits=x.bit_length())
        return x

    def container(self, x: Any, path: tuple, shown: str) -> list:
        if id(x) in self.enclosing_ids:
            fail(CheckpointError, f"save: {shown} contains itself", "remove the entry that leads back to it")
        if len(self.enclosing_ids) >= MAX_DEPTH:
            fail(CheckpointError, f"save: {shown} is nested more than {MAX_DEPTH} levels deep", "a flatter structure")
        self.enclosing_ids.append(id(x))
        if isinstance(x, Mapping):
            kind = "OrderedDict" if isinstance(x, OrderedDict) else "dict"
            if kind == "OrderedDict":
                self.metadata.append(None)
                if isinstance(versions := getattr(x, "_metadata", None), Mapping):
                    self.metadata[-1] = self.encode({k: dict(v) for k, v in versions.items()}, path, shown)
            entries = [
                [
                    self.encode_key(k, shown),
                    self.encode(v, path if k in objects.REGISTRIES else (*path, k), f"{shown}[{quoted(k)}]"),
                ]
                for k, v in x.items()
            ]
        else:
            kind = "list" if type(x) is list else "tuple"
            entries = [self.encode(v, (*path, i), f"{shown}[{i}]") for i, v in enumerate(x)]
        self.enclosing_ids.pop()
        return [kind, entries]

    def encode_key(self, key: Any, shown: str) -> Any:
        if isinstance(key, tuple):
            return ["tuple", [self.encode_key(k, shown) for k in key]]
        if key is None or isinstance(key, bool | int | float | str):
            return self.encode(key, (), f"a key of {shown}")
        return fail(
            CheckpointError,
            f"save: a key of {shown} is a {type(key).__name__}",
            "keys must be strings, numbers, None or tuples of them",
            key=key,
        )

    def tensor(self, x: Tensor, path: tuple, shown: str) -> list:
        note_read(x, "save")
        options: dict[str, Any] = {}
        if isinstance(x, Parameter):
            options["parameter"] = True
        if x.requires_grad and x.is_leaf:
            options["requires_grad"] = True
        options["object"] = id(x)
        return ["tensor", self.add_array(self.gather(x, shown) if x.is_global else x.array, path, shown), options]

    def gather(self, x: Tensor, shown: str) -> Array:
        """All elements of a global tensor, on the rank that writes."""
        if self.rank is None:
            what = f"save: {shown} is a global tensor, and no rank is named that writes it"
            hint = "flow.save(state, path, global_dst_rank=0) on all ranks; or x.to_local()"
            fail(CheckpointError, what, hint, value=x)
        if id(x.array) not in self.gathered:
            there = Placement(x.placement.type, self.rank)
            self.gathered[id(x.array)] = x.array, x.detach().to_global(there, broadcast).array
        return self.gathered[id(x.array)][1]

    def add_array(self, array: Array, path: tuple, shown: str) -> str:
        """Store an array and return its name in the file; views of exactly the same memory are stored once."""
        if array.dtype.newbyteorder("=").name not in WRITTEN_DTYPES:  # safetensors has no complex128
            hint = f"one of {', '.join(WRITTEN_DTYPES)}; flow.view_as_real(x) of a complex tensor"
            fail(CheckpointError, f"save: {shown} is an array of {array.dtype}", hint, value=array.dtype)
        backend = backend_of_array(array)
        key = backend, backend.storage_key(array), array.shape, array.strides, array.dtype.str
        if array.size and key in self.names_by_memory:
            return self.names_by_memory[key]
        name = base = ".".join(map(str, path)) or "tensor"
        number = 1
        while name in self.arrays or name == RESERVED_NAME:
            number += 1
            name = f"{base}~{number}"
        self.check_text(name, f"a key of {shown}")
        self.arrays[name] = array
        self.names_by_memory[key] = name
        return name

    def refuse(self, x: Any, shown: str) -> Any:
        if isinstance(x, tuple) and x.__reduce_ex__(4)[0] is type(None):  # the creation site of a module
            return self.encode(None, (), shown)
        kind = type(x).__name__
        if hasattr(x, "state_dict"):
            hint = "its state: x.state_dict(); load it again with x.load_state_dict(flow.load(path))"
        elif isinstance(x, tuple):
            hint = "tuple(x), or x._asdict() to keep the names"
        elif callable(x):
            hint = "leave it out: code is not saved, only data; make it again after loading"
        else:
            hint = "tensors, numpy arrays, numbers, strings, bools, None, and dicts, lists and tuples of them"
        return fail(CheckpointError, f"save: {shown} is a {kind}, which cannot be saved", hint, value=x)


def is_special(x: Any) -> bool:
    """True if an attribute of an object is more than the data that other programs can read."""
    if isinstance(x, HostArray):
        return x.dtype.newbyteorder("=").name not in WRITTEN_DTYPES
    if type(x) is dict:
        return not all(k is None or isinstance(k, bool | int | float | str) for k in x)
    data = bool, int, float, str, OrderedDict, list, tuple, Tensor, Parameter
    if isinstance(x, HostScalar):
        return x.dtype.kind not in "biuf"
    return x is not None and type(x) not in data and not isinstance(x, DType)


def quoted(key: Any) -> str:
    return json.dumps(key, ensure_ascii=False) if isinstance(key, str) else repr(key)


class Reader:
    """Builds the object that a JSON value describes, from the arrays of the file.

    trusted: True to build objects of classes, which runs their code.
    """

    def __init__(self, arrays: Mapping[str, HostArray], metadata: Any = (), trusted: bool = False):
        self.arrays, self.trusted = arrays, trusted
        self.objects: dict[Any, Any] = {}  # number in the file -> the object
        self.metadata = iter(metadata if isinstance(metadata, list) else ())
        self.first_tensors: dict[
            str, Tensor
        ] = {}  # the first tensor of each array; others share its storage and version
        self.created: dict[tuple, Tensor] = {}

    def decode(self, x: Any, depth: int = 0) -> Any:
        if depth > MAX_DEPTH + 1:
            raise MalformedStructure("levels of nesting", depth)
        if x is None or isinstance(x, bool | int | float | str):
            return x
        if not isinstance(x, list) or not x or not isinstance(x[0], str):
            raise MalformedStructure("an entry that says what it is", x)
        kind, *rest = x
        if kind == "tensor" and len(rest) == 2:
            return self.tensor(*rest)
        if kind in ("object", "same", "global", "bytes"):
            return self.object(kind, rest, depth)
        if len(rest) != 1:
            raise MalformedStructure(f"one part after {kind!r}", rest)
        part = rest[0]
        if kind in ("dict", "OrderedDict"):
            versions = self.decode(next(self.metadata, None), depth + 1) if kind == "OrderedDict" else None
            for entry in self.entries(part):
                if not isinstance(entry, list) or len(entry) != 2:
                    raise MalformedStructure("a key and a value", entry)
            keys = [self.decode(entry[0], depth + 1) for entry in part]
            if wrong := reason_to_refuse_keys(keys):
                raise MalformedStructure(f"keys, and not {wrong}", [entry[0] for entry in part])
            kind_of = OrderedDict if kind == "OrderedDict" else dict
            result = kind_of(zip(keys, [self.decode(entry[1], depth + 1) for entry in part]))
            if len(result) != len(part):
                raise MalformedStructure("keys that differ", [entry[0] for entry in part])
            if versions is not None:
                if not isinstance(versions, dict) or not all(isinstance(v, dict) for v in versions.values()):
                    raise MalformedStructure("the versions of modules", versions)
                result._metadata = OrderedDict(versions)  # type: ignore[attr-defined]
            return result
        if kind in ("list", "tuple"):
            items = [self.decode(entry, depth + 1) for entry in self.entries(part)]
            return items if kind == "list" else tuple(items)
        if kind == "array":
            return self.array(part)
        if kind == "float" and part in ("nan", "inf", "-inf"):
            return float(part)
        if kind == "dtype" and isinstance(part, str) and part in DType.table:
            return dtype_named(part)
        raise MalformedStructure("a known kind of entry", x)

    def object(self, kind: str, rest: list, depth: int) -> Any:
        """Build an object, or return it if it was built before. Raises HoldsObjects for a name that is not trusted."""
        if kind == "global" and isinstance(rest[0], str):
            return objects.resolve_saved(rest[0], self.trusted)
        if kind == "same" and rest[0] in self.objects:
            return self.objects[rest[0]]
        if kind == "bytes":
            return bytes.fromhex(rest[0])
        if len(rest) != 2 or not isinstance(rest[1], dict) or set(rest[1]) != objects.PARTS:
            raise MalformedStructure("the parts of an object", rest)
        make, args = [self.decode(rest[1][part], depth + 1) for part in ("make", "args")]
        new = self.objects[rest[0]] = objects.build(make, args)
        state, items, pairs = [self.decode(rest[1][part], depth + 1) for part in ("state", "items", "pairs")]
        objects.set_state(new, state, items, pairs)
        return new

    def entries(self, part: Any) -> list:
        if not isinstance(part, list):
            raise MalformedStructure("a list of entries", part)
        return part

    def array(self, name: Any) -> HostArray:
        if not isinstance(name, str) or name not in self.arrays:
            raise MalformedStructure("the name of an array in the file", name)
        return self.arrays[name]

    def tensor(self, name: Any, options: Any) -> Tensor:
        array = self.array(name)
        if not isinstance(options, dict):
            raise MalformedStructure("the options of a tensor", options)
        key = name, options.get("object")
        try:
            known = self.created.get(key)
        except TypeError:
            raise MalformedStructure("the options of a tensor", options) from None
        if known is not None:
            return known
        x = Tensor(array, spec_of(array))
        if options.get("requires_grad") and not x.spec.differentiable:
            raise MalformedStructure("a floating tensor that requires grad", array.dtype)
        if name in self.first_tensors:
            x._version_counter = version_counter_of(self.first_tensors[name])
        if options.get("parameter"):
            x = Parameter(x, requires_grad=bool(options.get("requires_grad")))
        elif options.get("requires_grad"):
            x.requires_grad_()
        self.first_tensors.setdefault(name, x)
        self.created[key] = x
        return x


class MalformedStructure(Exception):
    """The structure text is invalid. expected: description of a valid value, actual: repr of the value."""

    def __init__(self, expected: str, result: Any):
        text = repr(result)
        super().__init__(expected)
        self.expected, self.actual = expected, text if len(text) <= 80 else text[:77] + "..."
