"""The files of a saved graph: `graph.json` (the computation), `weights.safetensors`, and `meta.json` (description,
sha256 of the others).

All three are plain files, readable by people and other programs. They are written to a temporary folder that is
renamed, so a partial graph is never visible. Files are not trusted: links are not followed, the size of a text is
checked before it is parsed, and any damage raises one GraphFormatError. Independent of graphs: `document.py`
interprets the text. Read next: `strict_json.py`, `io/atomic.py`; then `document.py`.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from ..core.base.errors import CheckpointError, GraphFormatError
from ..core.files.temporary import write_in_progress
from ..core.host import HostArray
from ..core.memory import free_bytes
from ..core.source_location import fail
from ..io import atomic, container, files
from ..io.checkpoint import refuse_unwritten
from ..io.files import GRAPH, META, SAVED_GRAPH, WEIGHTS
from .checks import Malformed, check_choice, check_fields, check_int, check_text, checking_file, refuse
from .strict_json import LineReader, dumps, encode_lines, parse, parse_cost
from .versions import FORMAT, VERSION

MAX_META_BYTES = 1 << 20  # bytes
# Bytes of memory that the parsed JSON may take: a constant, plus a factor per byte of the files.
BASE_BUDGET, BUDGET_PER_BYTE = 8_000_000, 8
MAX_ATTEMPTS = 40  # attempts to read the folder while others write it

Saved = tuple[dict[str, Any], dict[str, Any], dict[str, HostArray]]


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(path: str | os.PathLike, graph: Mapping, meta: Mapping, arrays: Mapping[str, HostArray]) -> None:
    """Write this graph into the folder `path`, all or nothing. Raises CheckpointError and leaves the folder as it was.

    Parent folders are created; an older graph there is kept until the new one is on disk. Equal graphs give equal
    bytes. Raises GraphFormatError if the graph or meta contains values that JSON cannot hold.
    """
    path = files.absolute(files.checked_path(path, "save", 'flow.save(graph, "1/model")'))
    with checking_file(GRAPH, "numbers, texts, lists and dicts of them"):
        text_of_graph = b"".join(encode_lines(dict(graph)))
    with checking_file(META, "numbers, texts, lists and dicts of them"):
        plain = dumps({name: x for name, x in meta.items() if name != "sha256"}, "", indent=1)

    def fill(stage: Path) -> None:
        hashes = {META: hashlib.sha256(plain.encode()).hexdigest()}
        hashes[GRAPH] = write_file(stage / GRAPH, lambda file: container.write_all(file, text_of_graph))
        hashes[WEIGHTS] = write_file(stage / WEIGHTS, lambda file: container.write(file, arrays, None))
        whole_meta = parse(plain, "") | {"sha256": {name: hashes[name] for name in SAVED_GRAPH}}
        write_file(
            stage / META, lambda file: container.write_all(file, f"{dumps(whole_meta, '', indent=1)}\n".encode())
        )
        atomic.sync_folder(stage)

    size = len(text_of_graph) + sum(array.nbytes for array in arrays.values())
    try:
        if os.path.exists(path) and not path.is_dir():
            what = f"save: {path} is a file, and a saved graph is a folder"
            fail(CheckpointError, what, "another name, or remove it first", path=path)
        atomic.new_folder(path, fill, META, SAVED_GRAPH)
    except FileExistsError as error:
        hint = "another folder, which holds nothing else; or move these files away first"
        fail(CheckpointError, f"save: nothing is written into {path}: {error.strerror}", hint, path=path)
    except OSError as error:
        old = "unchanged" if os.path.isdir(path) and os.listdir(path) else "there is none"
        refuse_unwritten(
            error, path, size, f"look whether {path.parent} has room (df -h) and may be written", old_graph=old
        )


class HashingFile(io.RawIOBase):
    """A file that hashes the data written to it."""

    def __init__(self, file: BinaryIO):
        self.file, self.hash = file, hashlib.sha256()

    def write(self, data: Any) -> int:
        written = self.file.write(data)
        self.hash.update(memoryview(data)[:written])
        return written


def write_file(path: Path, write: Any) -> str:
    """Write a new file, flush it to disk, and return its sha256."""
    with open(path, "xb") as file:  # buffered, so that write() is complete or raises
        hashing = HashingFile(file)
        write(hashing)
        file.flush()
        os.fsync(file.fileno())
    return hashing.hash.hexdigest()


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike) -> Saved:
    """Read (graph, meta, name -> array) from a folder that `write` made. Raises GraphFormatError for anything else.

    Uses at most 20 MB plus ten times the size of the files. The folder is not changed: if a process was killed while it
    moved files one by one, its backup copies are read.
    """
    path = files.absolute(files.checked_path(path, "load_graph", 'flow.load_graph("1/model")', GraphFormatError))
    for tries in range(MAX_ATTEMPTS):
        before = file_identity(path)
        try:
            return read_once(path)
        except GraphFormatError:
            if tries == MAX_ATTEMPTS - 1 or (file_identity(path) == before and not write_in_progress(path)):
                raise
        time.sleep(0.01 * (tries > 1))  # another process is saving it
    raise AssertionError


def read_once(path: Path) -> Saved:
    with ExitStack() as stack:
        opened = open_all(path, stack)
        sizes = {name: os.fstat(file.fileno()).st_size for name, file in opened.items()}
        free = free_bytes()
        if free is not None and sum(sizes.values()) > free:  # hashing a sparse file could take hours
            what = f"{path} has {sum(sizes.values()):,} bytes, more than the free memory"
            refuse(what, "a machine with more memory", free=f"{free:,} bytes")
        budget = BASE_BUDGET + BUDGET_PER_BYTE * sum(sizes.values())
        meta = read_meta(path, opened[META])
        check_hashes(path, meta, opened, stack)
        with checking_file(path / GRAPH):
            lines = LineReader(opened[GRAPH], budget)
            graph = lines.read_object()
            check_format(graph, path / GRAPH)
        return graph, meta, read_weights(path / WEIGHTS, opened[WEIGHTS], lines.budget_left)


def file_identity(path: Path) -> list:
    """Identity of the folder and its files, to detect changes."""
    result: list = []
    for name in ("", *SAVED_GRAPH):
        try:
            found = os.stat(path / name)
            result.append((found.st_dev, found.st_ino, found.st_mtime_ns if name else 0))
        except OSError:
            result.append(None)
    return result


def open_all(path: Path, stack: ExitStack) -> dict[str, BinaryIO]:
    """Open the three files of one folder."""
    before = file_identity(path)
    result = {}
    for name in SAVED_GRAPH:
        file = path / name
        try:
            if not stat.S_ISREG(kind := os.lstat(file).st_mode):
                what = "a link" if stat.S_ISLNK(kind) else files.SPECIAL_FILE_KINDS.get(stat.S_IFMT(kind), "a folder")
                refuse(f"{file} is {what}, and a saved graph has plain files", "", file=file)
            result[name] = stack.enter_context(files.open_regular(file))
        except FileNotFoundError:
            refuse_missing(path, name)
        except NotADirectoryError:
            refuse_file(path)
        except OSError as error:
            refuse(f"{file} cannot be read: {error.strerror or error}", "look at its permissions", error, file=file)
    if file_identity(path) != before:
        refuse(f"{path} is being saved by another process", "load it again in a moment", path=path)
    return result


def refuse_missing(path: Path, name: str) -> NoReturn:
    if not os.path.isdir(path):
        refuse(f"load_graph: there is no folder {path}", "os.getcwd() says where a relative path begins", path=path)
    there = sorted(os.listdir(path))
    listed = atomic.abbreviate(there) or "nothing"
    if not set(there) & {GRAPH, META}:
        inside = [entry for entry in there[:100] if os.path.isfile(path / entry / GRAPH)]
        hint = "the folder that flow.save(graph, path) wrote"
        if inside:
            hint = f'flow.load_graph("{path / inside[0]}")'
        elif any(entry.endswith(".safetensors") or entry == "snapshot_done" for entry in there):
            hint = f'flow.load("{path}"): it holds only tensors; or {hint}'
        refuse(f"load_graph: {path} is not a saved graph, it has no {name}", hint, path=path, it_holds=listed)
    refuse(f"{path} is half of a saved graph: it has no {name}", "", path=path, it_holds=listed)


def refuse_file(path: Path) -> NoReturn:
    hint = f'flow.load("{path}"), if it holds tensors; or the path of the folder that flow.save(graph, path) wrote'
    if path.suffix == ".onnx":
        hint = f'flow.onnx.show("{path}") draws it'
    elif path.name in SAVED_GRAPH and os.path.isfile(path):
        hint = f'flow.load_graph("{path.parent}")'
    refuse(f"load_graph: {path} is a file, and a saved graph is a folder", hint, path=path)


def read_meta(path: Path, file: BinaryIO) -> dict[str, Any]:
    data = file.read(MAX_META_BYTES + 1)
    with checking_file(path / META):
        if len(data) > MAX_META_BYTES or parse_cost(data) > BASE_BUDGET + BUDGET_PER_BYTE * len(data) * 3:
            raise Malformed(f"at most {MAX_META_BYTES:,} bytes, and few parts for its size", data[:100])
        try:
            meta = parse(data.decode(), "")
        except UnicodeDecodeError as error:
            raise Malformed(f"UTF-8 ({error.reason} at byte {error.start})", data[:100]) from None
        check_format(meta, path / META)
        hashes = check_fields(meta.get("sha256"), "sha256", SAVED_GRAPH)
        for name in SAVED_GRAPH:
            check_text(hashes[name], f"sha256.{name}", 64, 64)
    return meta


def check_format(data: Any, file: Path) -> None:
    """Check that the meta describes a saved graph of a supported version."""
    if type(data) is not dict:
        raise Malformed("an object with format and version", data)
    check_choice(data.get("format"), "format", [FORMAT])
    if check_int(data.get("version"), "version", 1) > VERSION:
        what = f"{file} is of version {data['version']} of the format, this minflow reads up to version {VERSION}"
        refuse(what, "a newer minflow", version=data["version"])


def check_hashes(path: Path, meta: dict[str, Any], opened: dict[str, BinaryIO], stack: ExitStack) -> None:
    """Raise GraphFormatError if the files were not saved together. Backup copies of an interrupted save replace moved
    files.
    """
    plain = dumps({name: x for name, x in meta.items() if name != "sha256"}, "", indent=1)
    got = {META: hashlib.sha256(plain.encode()).hexdigest()}
    for name in (GRAPH, WEIGHTS):
        got[name] = digest(opened[name])
        if got[name] != meta["sha256"][name]:
            with suppress(OSError):
                copy = stack.enter_context(files.open_regular(atomic.kept_copy(path, name, opened[META]), links=False))
                if digest(copy) == meta["sha256"][name]:
                    opened[name], got[name] = copy, meta["sha256"][name]
    if wrong := [name for name in SAVED_GRAPH if got[name] != meta["sha256"][name]]:
        listed = {name: f"{got[name][:16]}..., saved was {meta['sha256'][name][:16]}..." for name in wrong}
        refuse(
            f"{path}: the sha256 of {' and '.join(wrong)} differs: not what was saved together",
            "save the graph or "
            "copy the whole folder again; was it edited, or one file of it taken from another folder?",
            **listed,
        )


def digest(file: BinaryIO) -> str:
    """The sha256 of an open file, which is rewound."""
    result = hashlib.file_digest(cast(Any, file), "sha256").hexdigest()
    file.seek(0)
    return result


def read_weights(path: Path, file: BinaryIO, budget: int) -> dict[str, HostArray]:
    check_header(path, file, budget)
    try:
        arrays, structure = container.read(path, file)
    except CheckpointError as error:
        raise GraphFormatError(error.what, values=error.values, where=error.where, hint=error.hint) from error
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "out of memory"
        refuse(f"{path} cannot be read: {reason}", "look at its permissions, and at the free memory", error, file=path)
    if structure is not None:
        refuse(f"{path} holds what flow.save(obj, path) wrote, not the weights of {GRAPH}", "", structure=structure)
    return arrays


def check_header(path: Path, file: BinaryIO, budget: int) -> None:
    """Raise GraphFormatError if the header of the weights would take more memory than `budget` when parsed."""
    (length,) = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
    needed = 0
    while length > 0 and needed <= budget and (block := file.read(min(length, container.CHUNK_BYTES))):
        needed += parse_cost(block) // 2
        length -= len(block)
    file.seek(0)
    if needed > budget:
        what = f"{path}: its header has too many parts for its size"
        refuse(what, "", needed=f"{needed:,} bytes of memory or more", allowed=f"{budget:,} bytes")
