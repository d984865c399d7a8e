"""State dicts in PyTorch's zip files, written by `torch.save`: tensors, numbers, strings, lists and dicts.

The zip contains a pickle, a program that can call anything. It is not run: this module interprets the few opcodes that
build such data; names must be in a table, and nothing is ever called. Sizes are checked against the size of the file
before memory is allocated. While the pickle is read, nothing is hashed, compared or formatted: with 40 levels of
containers, each holding the next one twice, that would take years. Read next: `other_formats.py`.
"""

from __future__ import annotations

import math
import pickletools
import warnings
import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ..core.backend import namespace
from ..core.base.errors import CheckpointError
from ..core.host import HostArray, host_array
from ..core.spec import DType
from .container import reason_to_refuse_keys, refuse, refuse_repeated
from .files import open_regular

STORAGES = {f"torch {name}Storage": dtype for name, dtype in {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128"}.items()}  # fmt: skip
STORAGES["torch.storage UntypedStorage"] = "uint8"
REBUILD_ARGUMENTS = {  # name -> number of its arguments that define the tensor
    "torch._utils _rebuild_tensor": 4,
    "torch._utils _rebuild_tensor_v2": 4,
    "torch._utils _rebuild_tensor_v3": 4,
    "torch._utils _rebuild_parameter": 1,
}
ORDERED, SIZE, DEVICE = "collections OrderedDict", "torch Size", "torch device"
KNOWN_GLOBALS = {*STORAGES, *REBUILD_ARGUMENTS, ORDERED, SIZE, DEVICE}
MARK = object()
MAX_PICKLE_BYTES = 1 << 24  # bytes of the pickle
MAX_OPCODES = 1 << 21
MAX_ENTRIES, MAX_DEPTH = 1 << 20, 200  # limits on the entries of all lists and dicts, and on the nesting depth
CYCLIC = "its lists and dicts hold each other without end", "a flat dict name -> tensor"
MAX_EXPANSION = 4  # limit on the bytes of all tensors as a multiple of the file's size: slices of one storage overlap
CODE_HINT = "it holds objects, not only tensors: torch.save(model.state_dict(), path) in PyTorch, and load that"


class GlobalName(NamedTuple):
    """Name of a global in the pickle. The name is never imported."""

    text: str


class Storage(NamedTuple):
    """The entry of the archive with the elements of a tensor."""

    key: str
    dtype: str
    size: int


class PendingDict(list):
    """A dict that is not built yet: key, value, key, value, ..."""


class PendingOrderedDict(PendingDict):
    """An OrderedDict, which may have attributes. metadata: module versions that PyTorch attaches to a state_dict."""

    metadata: Any = None


class SavedTensor(NamedTuple):
    """A tensor of the file. view_key: the same for tied tensors."""

    array: HostArray
    view_key: tuple


class MalformedPickle(Exception):
    """The pickle is invalid at this point."""


def holds_torch(names: list[str]) -> bool:
    """True if these are the entries of a zip that torch.save wrote."""
    return any(name.endswith("/data.pkl") for name in names)


def read(path: Path) -> Any:
    """The saved structure, with each tensor as a `SavedTensor`. Raises CheckpointError for anything but plain data."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            entries = {info.filename: info for info in archive.infolist()}
            refuse_repeated(path, archive.namelist())
            root = next(name for name in entries if name.endswith("/data.pkl")).removesuffix("data.pkl")
            program = read_entry(path, archive, entries[f"{root}data.pkl"])
            if sum(info.compress_size for info in entries.values()) > path.stat().st_size:
                refuse(path, "its entries overlap")
            order = (
                read_entry(path, archive, entries[f"{root}byteorder"]) if f"{root}byteorder" in entries else b"little"
            )
            storages = Storages(path, archive, entries, root, "<" if order == b"little" else ">")
            with warnings.catch_warnings():
                return to_plain(path, Builder(path, storages).run(program))
    except CheckpointError:  # a ValueError too
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError, ValueError) as error:
        refuse(path, "the archive is damaged", reason=error)


def read_entry(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MAX_PICKLE_BYTES:
        refuse(path, f"{info.filename} has {info.file_size:,} bytes, too many for names and sizes")
    return archive.read(info)


class Storages:
    """The elements in the archive, read when a tensor needs them; each entry once."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, entries: dict, root: str, order: str):
        self.path, self.archive, self.entries, self.root, self.order = path, archive, entries, root, order
        self.arrays: dict[tuple[str, str], HostArray] = {}
        self.tensors: dict[tuple, SavedTensor] = {}
        self.bytes_left = MAX_EXPANSION * path.stat().st_size + (1 << 20)  # bytes that tensors may still use

    def elements(self, storage: Storage) -> HostArray:
        key = storage.key, storage.dtype
        if key not in self.arrays:
            name = f"{self.root}data/{storage.key}"
            info, dtype = self.entries.get(name), DType.table[storage.dtype].np
            if info is None:
                refuse(self.path, f"the elements of {storage.key!r} are not in the file", names=list(self.entries))
            needed = storage.size * dtype.itemsize
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                refuse(self.path, f"{name} is compressed, which torch.save never does")
            if info.file_size != needed:
                refuse(self.path, f"{name} must have {needed} bytes, got {info.file_size}", dtype=dtype)
            with self.archive.open(info) as file:
                raw = namespace().frombuffer(file.read(), dtype if self.order == "<" else dtype.newbyteorder(">"))
            if raw.size != storage.size:
                refuse(self.path, f"{name} ends after {raw.size} of {storage.size} elements")
            self.arrays[key] = raw.astype(dtype) if self.order == ">" else raw
        return self.arrays[key]

    def tensor(self, storage: Any, offset: Any, shape: Any, strides: Any, dtype: str | None = None) -> SavedTensor:
        """A contiguous copy of a view of a storage; the same one for the same view."""
        whole = isinstance(shape, tuple) and isinstance(strides, tuple) and len(shape) == len(strides) <= 64
        numbers = (offset, *shape, *strides) if whole else (None,)
        if not isinstance(storage, Storage) or not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
            raise MalformedPickle("a tensor without storage, shape and strides")
        if dtype is not None:
            wide = DType.table[dtype].itemsize
            storage = storage._replace(dtype=dtype, size=storage.size // wide)
        view_key = (*storage, *numbers)
        if view_key not in self.tensors:
            last = offset + sum((n - 1) * step for n, step in zip(shape, strides))
            if 0 not in shape and last >= storage.size:
                refuse(self.path, f"a tensor reaches element {last} of {storage.size}", shape=shape, strides=strides)
            self.bytes_left -= math.prod(shape) * DType.table[storage.dtype].itemsize
            if self.bytes_left < 0:
                refuse(self.path, "its tensors are far larger than the file", shape=shape, strides=strides)
            flat, xp = self.elements(storage), namespace()
            if 0 in shape:
                view = xp.empty(shape, flat.dtype)
            else:
                steps = [step * flat.itemsize for step in strides]
                view = xp.lib.stride_tricks.as_strided(flat[offset:], shape, steps)
            self.tensors[view_key] = SavedTensor(host_array(view), view_key)
        return self.tensors[view_key]


class Builder:
    """A stack machine for the opcodes of plain data. It builds objects, and calls nothing."""

    def __init__(self, path: Path, storages: Storages):
        self.path, self.storages = path, storages
        self.stack: list[Any] = []
        self.marks: list[int] = []  # the height of the stack at each mark
        self.memo: dict[int, Any] = {}
        self.entries_left = MAX_ENTRIES

    def refuse(self, what: str, hint: str = CODE_HINT) -> NoReturn:
        refuse(self.path, f"{what}, and a pickle can run any program while it is read", hint)

    def run(self, program: bytes) -> Any:
        try:
            warnings.simplefilter("ignore", DeprecationWarning)  # about escapes in strings of old protocols
            for count, (opcode, value, _) in enumerate(pickletools.genops(program)):
                if count >= MAX_OPCODES:
                    refuse(self.path, f"its pickle has more than {MAX_OPCODES:,} opcodes", CYCLIC[1])
                if opcode.name == "STOP":
                    (result,) = self.stack
                    return result
                step = getattr(self, f"op_{opcode.name.lower()}", None)
                if step is not None:
                    step(value)
                elif opcode.name in PUSH_OPCODES:
                    self.stack.append(CONSTANTS.get(opcode.name, value))
                else:
                    self.refuse(f"its pickle has a {opcode.name}")
        except CheckpointError:  # a ValueError too
            raise
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, MalformedPickle, OverflowError) as error:
            refuse(self.path, "the pickle of names and sizes is damaged", reason=f"{type(error).__name__}: {error}")
        refuse(self.path, "the pickle of names and sizes is damaged", reason="it has no end")

    def pop_to_mark(self) -> list[Any]:
        at = self.marks.pop()
        if len(self.stack) < at or self.stack[at - 1] is not MARK:
            raise MalformedPickle("a mark used as an object")
        taken = self.stack[at:]
        del self.stack[at - 1 :]
        return taken

    def count_entries(self, entries: Any, kinds: Any = (list, tuple)) -> Any:
        """Return the entries that a call copies, and count them. Raises MalformedPickle for those of other kinds."""
        if not isinstance(entries, kinds):
            raise MalformedPickle(f"a {type(entries).__name__} as entries")
        self.entries_left -= len(entries)
        if self.entries_left < 0:
            refuse(self.path, *CYCLIC)
        return entries

    # ---- containers --------------------------------------------------------------------------------------------------

    def op_mark(self, _: Any) -> None:
        self.stack.append(MARK)
        self.marks.append(len(self.stack))

    def op_empty_dict(self, _: Any) -> None:
        self.stack.append(PendingDict())

    def op_empty_list(self, _: Any) -> None:
        self.stack.append([])

    def op_tuple(self, _: Any) -> None:
        self.stack.append(tuple(self.pop_to_mark()))

    def op_list(self, _: Any) -> None:
        self.stack.append(self.pop_to_mark())

    def op_tuple1(self, _: Any) -> None:
        self.tuple_of(1)

    def op_tuple2(self, _: Any) -> None:
        self.tuple_of(2)

    def op_tuple3(self, _: Any) -> None:
        self.tuple_of(3)

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise MalformedPickle("a tuple of too few entries")
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def op_append(self, _: Any) -> None:
        value = self.stack.pop()
        self.top_of_type(list).append(value)

    def op_appends(self, _: Any) -> None:
        values = self.pop_to_mark()
        self.top_of_type(list).extend(values)

    def op_setitem(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.top_of_type(PendingDict).extend((key, value))

    def op_setitems(self, _: Any) -> None:
        pairs = self.pop_to_mark()
        self.top_of_type(PendingDict).extend(self.check_pairs(pairs))

    def op_dict(self, _: Any) -> None:
        self.stack.append(PendingDict(self.check_pairs(self.pop_to_mark())))

    def check_pairs(self, pairs: list) -> list:
        if len(pairs) % 2:
            raise MalformedPickle("a key without a value")
        return pairs

    def top_of_type(self, kind: type) -> Any:
        if not isinstance(top := self.stack[-1], kind) or (kind is list and isinstance(top, PendingDict)):
            raise MalformedPickle(f"an entry for a {type(top).__name__}")
        return top

    # ---- memo ---------------------------------------------------------------------------------------

    def op_binput(self, index: Any) -> None:
        self.memo[index] = self.stack[-1]

    op_put = op_long_binput = op_binput

    def op_memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def op_binget(self, index: Any) -> None:
        self.stack.append(self.memo[index])

    op_get = op_long_binget = op_binget

    def op_pop(self, _: Any) -> None:
        if self.stack.pop() is MARK:
            self.marks.pop()

    def op_proto(self, _: Any) -> None:
        pass

    op_frame = op_proto

    # ---- tensors -----------------------------------------------------------------------------------------------------

    def op_global(self, text: Any) -> None:
        if text not in KNOWN_GLOBALS and not (text.startswith("torch ") and text[6:] in DType.table):
            self.refuse(f"its pickle names {text.replace(' ', '.', 1)!r}")
        self.stack.append(GlobalName(text))

    def op_stack_global(self, _: Any) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise MalformedPickle(f"a name that is a {type(name).__name__} of a {type(module).__name__}")
        self.op_global(f"{module} {name}")

    def op_binpersid(self, _: Any) -> None:
        parts = self.stack.pop()
        if (
            type(parts) is not tuple
            or [type(x) for x in parts] != [str, GlobalName, str, str, int]
            or parts[0] != "storage"
        ):
            raise MalformedPickle("a storage that is not named by its dtype, key, device and size")
        _, storage, key, _, size = parts
        if storage.text not in STORAGES:
            raise MalformedPickle(f"a storage of {storage.text}")
        dtype = STORAGES[storage.text]
        if dtype not in DType.table:
            refuse(self.path, f"its elements are {dtype}, for which minflow has no dtype", "tensor.float() in PyTorch")
        self.stack.append(Storage(key, dtype, size))

    def op_reduce(self, _: Any) -> None:
        arguments, name = self.stack.pop(), self.stack.pop()
        if not isinstance(name, GlobalName) or type(arguments) is not tuple:
            self.refuse("its pickle calls something that is not a name")
        if name.text == ORDERED:
            pairs = self.count_entries(*arguments) if arguments else ()
            self.stack.append(
                PendingOrderedDict(x for pair in pairs for x in self.check_pairs(self.count_entries(pair)))
            )
        elif name.text == SIZE:
            self.stack.append(tuple(self.count_entries(*arguments)) if arguments else ())
        elif name.text == DEVICE:
            self.stack.append(self.count_entries(arguments[0], str))
        elif name.text in REBUILD_ARGUMENTS:
            self.stack.append(self.tensor(name.text, arguments))
        else:
            self.refuse(f"its pickle calls {name.text.replace(' ', '.', 1)!r}")

    def tensor(self, name: str, arguments: tuple) -> SavedTensor:
        defining: Any = arguments[: REBUILD_ARGUMENTS[name]]
        if name.endswith("parameter"):
            (tensor,) = defining
            if not isinstance(tensor, SavedTensor):
                raise MalformedPickle("a parameter without a tensor")
            return tensor
        kind = arguments[6].text.removeprefix("torch ") if name.endswith("v3") else None
        return self.storages.tensor(*defining, dtype=kind)  # type: ignore[misc]  # REBUILD_ARGUMENTS counts four

    def op_build(self, _: Any) -> None:
        """Keep the module versions that PyTorch attaches to a dict, and ignore other attributes."""
        state = self.stack.pop()
        if not isinstance(top := self.stack[-1], PendingOrderedDict | SavedTensor):
            self.refuse(f"its pickle fills a {type(top).__name__}")
        if isinstance(top, PendingOrderedDict) and isinstance(state, PendingDict) and state[:1] == ["_metadata"]:
            top.metadata = state[1]


CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
PUSH_OPCODES = {*CONSTANTS, "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"}


def to_plain(path: Path, tree: Any) -> Any:
    """The tree with plain dicts. Refuses one that contains itself, is nested too deeply, or has too many entries."""
    counted: dict[int, int] = {}  # id of a container -> number of its entries, including nested ones; 0: not known yet

    def count(x: Any, depth: int) -> int:
        if type(x) not in (list, tuple, PendingDict, PendingOrderedDict):
            return 1
        if id(x) not in counted:
            counted[id(x)] = 0
            entries = [*x, x.metadata] if isinstance(x, PendingOrderedDict) else x
            counted[id(x)] = 1 + sum(
                [count(entry, depth + 1) for entry in entries] if depth < MAX_DEPTH else [MAX_ENTRIES]
            )
        if not 0 < counted[id(x)] <= MAX_ENTRIES:
            refuse(path, *CYCLIC)
        return counted[id(x)]

    def copy(x: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            refuse(path, *CYCLIC)
        if isinstance(x, SavedTensor) or x is None or isinstance(x, bool | int | float | str | bytes):
            return x
        if isinstance(x, GlobalName):
            if x.text.startswith("torch ") and x.text[6:] in DType.table:
                return DType.table[x.text[6:]]
        elif isinstance(x, PendingDict):
            keys = [copy(key, depth + 1) for key in x[::2]]
            if wrong := reason_to_refuse_keys(keys):
                refuse(path, f"a dict has {wrong}", "strings as keys")
            entries = dict(zip(keys, [copy(value, depth + 1) for value in x[1::2]]))
            metadata = copy(x.metadata, depth + 1) if isinstance(x, PendingOrderedDict) else None
            if not isinstance(metadata, dict) or not all(isinstance(v, dict) for v in metadata.values()):
                return entries
            entries = OrderedDict(entries)
            entries._metadata = OrderedDict(metadata)  # type: ignore[attr-defined]
            return entries
        elif type(x) in (list, tuple):
            return type(x)([copy(v, depth + 1) for v in x])
        refuse(path, f"expected a tensor, a number, a string, a list or a dict, got a {type(x).__name__}", CODE_HINT)

    count(tree, 0)
    return copy(tree, 0)
