"""The file format: safetensors (8 bytes of header length, a JSON header, the data), with a checksum in the metadata.

The sizes in a header are checked against the size of the file before memory is allocated. The safetensors library
validates each header too; the data is read here, piece by piece, so that the checksum needs no second copy.
Format: https://github.com/huggingface/safetensors#format. Read next: `checkpoint.py`.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from ..core.backend import Array, namespace, to_host
from ..core.base.dtypes import bfloat16
from ..core.base.errors import CheckpointError
from ..core.host import HostArray
from ..core.source_location import here, need
from .files import open_regular

MAX_HEADER_BYTES = 100_000_000  # bytes of a header; the library's own limit
CHUNK_BYTES = 1 << 20  # bytes read, hashed and written at a time
MAX_HASH_COLLISIONS = 100  # limit of keys with the same hash in one dict
STRUCTURE_KEY, CHECKSUM_KEY = "minflow", "sha256"  # keys of the metadata

# Name in the file -> (how it is stored, NumPy dtype to return)
READ_DTYPES = {
    "BOOL": ("|b1", "bool"),
    "U8": ("|u1", "uint8"),
    "I8": ("|i1", "int8"),
    "I16": ("<i2", "int16"),
    "U16": ("<u2", "uint16"),
    "I32": ("<i4", "int32"),
    "U32": ("<u4", "uint32"),
    "U64": ("<u8", "uint64"),
    "I64": ("<i8", "int64"),
    "F16": ("<f2", "float16"),
    "BF16": ("<u2", "bfloat16"),
    "F32": ("<f4", "float32"),
    "F64": ("<f8", "float64"),
    "C64": ("<c8", "complex64"),
}
WRITTEN_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}


class Entry(NamedTuple):
    """One array of the file: name, dtype as named in the file, shape, and its byte range after the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def refuse(path: Path, what: str, hint: str = "", **values: object) -> NoReturn:
    """Raise a CheckpointError about this file."""
    raise CheckpointError(
        f"{path.name}: {what}",
        values={"file": path, **{name.replace("_", " "): shorten(value) for name, value in values.items()}},
        where=here(),
        hint=hint or "save or download the file again; flow.save never leaves half a file, so it was damaged later",
    )


def shorten(value: object) -> object:
    text = str(value)
    return value if len(text) <= 120 else f"{text[:117]}..."


class Checksum:
    """sha256 of the structure, and of name, dtype, shape and data of each array in the order of the file."""

    def __init__(self, structure: str):
        self.hash = hashlib.sha256(structure.encode())

    def begin(self, entry: Entry) -> None:
        self.hash.update(json.dumps([entry.name, entry.dtype, list(entry.shape)]).encode())

    def add(self, data: Any) -> None:
        self.hash.update(data)

    def text(self) -> str:
        return self.hash.hexdigest()


# ---- writing -----------------------------------------------------------------------------------------------------


def layout(arrays: Mapping[str, HostArray]) -> list[Entry]:
    """The order of the arrays: by descending item size, so that all are aligned; then by name."""
    entries, end = [], 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        begin, end = end, end + array.nbytes
        entries.append(Entry(name, WRITTEN_DTYPES[array.dtype.newbyteorder("=").name], array.shape, begin, end))
    return entries


def byte_chunks(array: HostArray) -> Iterator:
    """The bytes of an array, little-endian in C order, in chunks; a contiguous array is not copied."""
    array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    flat = array.reshape(-1).view("uint8")
    for start in range(0, flat.size, CHUNK_BYTES):
        yield flat[start : start + CHUNK_BYTES].data


def header_of(entries: list[Entry], metadata: dict[str, str] | None) -> bytes:
    table: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    for e in entries:
        table[e.name] = {"dtype": e.dtype, "shape": list(e.shape), "data_offsets": [e.begin, e.end]}
    header = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    return header + b" " * (-len(header) % 8)


def write(file: BinaryIO, arrays: Mapping[str, Array], structure: str | None) -> None:
    """Write header and data; without a structure there is no checksum. Raises OSError, also for a partial write."""
    arrays = {name: to_host(array) for name, array in arrays.items()}
    entries, metadata = layout(arrays), None
    if structure is not None:
        checksum = Checksum(structure)
        for e in entries:
            checksum.begin(e)
            for chunk in byte_chunks(arrays[e.name]):
                checksum.add(chunk)
        metadata = {STRUCTURE_KEY: structure, CHECKSUM_KEY: checksum.text()}
    header = header_of(entries, metadata)
    write_all(file, struct.pack("<Q", len(header)) + header)
    for e in entries:
        for chunk in byte_chunks(arrays[e.name]):
            write_all(file, chunk)


def write_all(file: BinaryIO, data: Any) -> None:
    """Write all of the data to an open file, even if each write() accepts only part of it. Raises OSError."""
    rest = memoryview(data)
    while rest:
        written = file.write(rest)
        if written is None and not isinstance(file, io.IOBase):  # a user's class whose write() returns no count
            return
        if not written:
            raise OSError(errno.EIO, "the open file takes no more bytes")
        rest = rest[written:]


# ---- reading -----------------------------------------------------------------------------------------------------


def read(path: Path, file: BinaryIO | None = None) -> tuple[dict[str, HostArray], str | None]:
    """(name -> array, structure text or None) of a safetensors file, verified against its checksum if it has one.

    file: the same file, open at its beginning; then the library, which can only open paths, does not validate it.
    """
    by_path = file is None
    with open_regular(path) if file is None else nullcontext(file) as file:
        size = os.fstat(file.fileno()).st_size
        header, start = read_header(path, file, size)
        metadata = header.pop("__metadata__", {})
        entries = entries_of(path, header, size - start)
        del header
        if by_path:
            validate(path)
        structure = structure_of(path, metadata)
        checksum = None if structure is None else Checksum(structure)
        arrays = {}
        file.seek(start)
        for e in entries:
            arrays[e.name] = read_array(path, file, e, checksum)
    if checksum is not None and checksum.text() != metadata[CHECKSUM_KEY]:
        what = "the checksum differs, so the data is not what was saved"
        refuse(path, what, saved=metadata[CHECKSUM_KEY], read=checksum.text())
    return arrays, structure


def read_header(path: Path, file: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    """(the JSON header, the offset of the data)."""
    if size < 8:
        what = f"{size} bytes are too few for a safetensors file"
        refuse(path, what, "was the download complete?", size=f"{size} bytes")
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(size - 8, MAX_HEADER_BYTES):
        refuse(
            path,
            "the header claims to be longer than the file" if length > size - 8 else "the header is longer than any is",
            "is it a safetensors file, and was the download complete?",
            header=f"{length} bytes",
            file_size=f"{size} bytes",
        )
    text = file.read(length)
    if not text.startswith(b"{"):
        what = "this is not a safetensors file: the header does not begin with {"
        refuse(path, what, "a file written by flow.save, safetensors or numpy.savez", first_bytes=text[:8])
    try:
        header = json.loads(text.decode(), object_pairs_hook=unique_pairs, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        refuse(path, "the header is damaged", reason=str(error) or type(error).__name__, header=f"{length} bytes")
    return header, 8 + length


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError(f"the name {shorten(first_repeated([name for name, _ in pairs]))!r} occurs twice")
    return result


def first_repeated(names: list[str]) -> str | None:
    """The first name that occurs more than once, or None."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def refuse_repeated(path: Path, names: list[str]) -> None:
    """Refuse an archive with two entries of the same name: readers would disagree about which of them counts."""
    if (name := first_repeated(names)) is not None:
        refuse(path, "a name occurs twice", name=repr(name), entries=f"{len(names):,}")


def reason_to_refuse_keys(keys: list[Any]) -> str:
    """The reason to refuse the keys of a file, or "". A dict takes quadratic time for keys with the same hash; hashes
    of strings are random, but numbers and tuples can be chosen to collide.
    """
    for key in keys:
        if not (key is None or isinstance(key, str | int | float | tuple)):
            return f"a key that is a {type(key).__name__}"
    try:
        hashes = Counter([hash(key) for key in keys if not isinstance(key, str)])
    except TypeError as error:
        return f"a key without a hash ({error})"
    many = max(hashes.values(), default=0)
    return f"{many:,} keys with the same hash" if many > MAX_HASH_COLLISIONS else ""


def refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def entries_of(path: Path, header: dict[str, Any], data_size: int) -> list[Entry]:
    """Return the arrays in file order. They must fill the file without gaps or overlaps."""
    entries = [entry_of(path, name, fields) for name, fields in header.items()]
    entries.sort(key=lambda e: (e.begin, e.end, e.name))
    end = 0
    for before, e in zip([None, *entries], entries):
        if e.begin != end:
            what = "overlaps" if e.begin < end else "leaves a gap after"
            refuse(
                path,
                f"array {e.name!r} {what} {before.name if before else 'the header'!r}",
                begins_at=e.begin,
                expected=end,
            )
        end = e.end
    if end != data_size:
        what = "the file ends before its data does" if end > data_size else "bytes follow that belong to no array"
        refuse(path, what, "was the download complete?", claimed=f"{end} bytes of data", actual=f"{data_size} bytes")
    return entries


def entry_of(path: Path, name: str, fields: Any) -> Entry:
    if not isinstance(fields, dict) or set(fields) != {"dtype", "shape", "data_offsets"}:
        refuse(path, f"the header must have dtype, shape and data_offsets for {name!r}, and nothing else", entry=fields)
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    whole = all(
        isinstance(part, list) and all(type(n) is int and 0 <= n < 2**63 for n in part) for part in (shape, offsets)
    )
    if not whole or len(offsets) != 2:
        refuse(path, f"shape and offsets of {name!r} must be integers of at least 0", shape=shape, data_offsets=offsets)
    if not isinstance(dtype, str) or dtype not in READ_DTYPES:
        what = f"array {name!r} has the dtype {dtype!r}, which minflow does not read"
        refuse(path, what, "convert it before: x.float(), or leave it out", known=", ".join(READ_DTYPES))
    if len(shape) > 64:
        refuse(path, f"array {name!r} has {len(shape)} axes", "at most 64", shape=shape)
    itemsize = int(READ_DTYPES[dtype][0][2:])  # 4 of "<f4"
    # NumPy refuses such a shape even if an axis of size 0 leaves it without data.
    if math.prod(n or 1 for n in shape) * itemsize >= 2**63:
        refuse(path, f"array {name!r} has a shape that no array can have", shape=shape)
    size = math.prod(shape) * itemsize
    begin, end = offsets
    if end - begin != size:
        what = f"array {name!r} has {end - begin} bytes, and its shape needs {size}"
        refuse(path, what, shape=shape, dtype=dtype, data_offsets=offsets)
    return Entry(name, dtype, tuple(shape), begin, end)


def validate(path: Path) -> None:
    """Let the safetensors library validate the file too."""
    library = need("safetensors", "loading a safetensors file")
    try:
        with library.safe_open(str(path), framework="numpy"):
            pass
    except library.SafetensorError as error:
        refuse(path, "the safetensors library refuses the header", reason=error)


def structure_of(path: Path, metadata: Any) -> str | None:
    """The structure text that flow.save wrote; None for a file of another program."""
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        refuse(path, "the metadata is not a dict of strings", metadata=metadata)
    if (STRUCTURE_KEY in metadata) != (CHECKSUM_KEY in metadata):
        what = f"only one of {STRUCTURE_KEY!r} and {CHECKSUM_KEY!r} is there, and flow.save writes both"
        refuse(path, what, metadata=sorted(metadata))
    return metadata.get(STRUCTURE_KEY)


def read_array(path: Path, file: Any, e: Entry, checksum: Checksum | None) -> HostArray:
    stored, expected = READ_DTYPES[e.dtype]
    if checksum is not None:
        checksum.begin(e)
    array = namespace().empty(e.shape, stored)
    flat = array.reshape(-1).view("uint8")
    for start in range(0, flat.size, CHUNK_BYTES):
        chunk = flat[start : start + CHUNK_BYTES]
        bytes_read = file.readinto(chunk.data)
        if bytes_read != chunk.size:
            what = f"the file ends inside {e.name!r}"
            refuse(path, what, read=f"{start + (bytes_read or 0)} bytes", expected=f"{flat.size} bytes")
        if checksum is not None:
            checksum.add(chunk.data)
    if e.dtype == "BOOL" and array.size and array.view("uint8").max() > 1:
        refuse(path, f"array {e.name!r} is bool, but has a byte other than 0 and 1", byte=array.view("uint8").max())
    if e.dtype == "BF16":
        return array.astype("u2", copy=False).view(bfloat16.np)
    return array.astype(expected, copy=False)
