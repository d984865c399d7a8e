"""Files of other programs: NumPy's .npz, read without unpickling anything, and pickles, which are refused.

Read next: `container.py`, for safetensors files.
"""

from __future__ import annotations

import math
import operator
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from ..core.base.errors import CheckpointError
from ..core.host import HostArray
from ..core.memory import free_bytes_if_short, size_text
from ..core.source_location import here
from ..core.spec import DType
from . import torch_zip
from .container import refuse, refuse_repeated
from .files import open_regular

ZIP = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"
MAX_COMPRESSION_RATIO = 1100  # deflate compresses at most 1032 bytes to one
MAX_GAP = 60  # bytes that may surround an array: extra fields of its header, and the data descriptor
PICKLE_SUFFIXES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin")

MSG_PICKLE = """once, where PyTorch is installed and you trust the file:
    import torch, safetensors.torch
    safetensors.torch.save_file(torch.load("{name}", map_location="cpu", weights_only=True), "{stem}.safetensors")
  then model.load_state_dict(flow.load("{stem}.safetensors"))"""


def kind_of(path: Path) -> str:
    """Identify a file as "safetensors", "npz", "torch" (its zip) or "pickle", by its first bytes."""
    with open_regular(path) as file:
        start = file.read(16) or b""
    if start[:4] in (ZIP, EMPTY_ZIP):
        names = zip_names(path)
        if names is not None and torch_zip.holds_torch(names):
            return "torch"
        return "npz" if is_npz(path, names) else "pickle"
    if start[8:9] == b"{":  # a length, and JSON: tested first, because a length may begin like a pickle
        return "safetensors"
    protocol = start[:1] == b"\x80" and start[1:2] in (b"\x01", b"\x02", b"\x03", b"\x04", b"\x05")
    if protocol or path.suffix.lower() in PICKLE_SUFFIXES:
        return "pickle"
    return "safetensors"


def zip_names(path: Path) -> list[str] | None:
    """The names of the entries of a zip, or None if they cannot be read."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def is_npz(path: Path, names: list[str] | None) -> bool:
    if names is None:
        return path.suffix.lower() not in PICKLE_SUFFIXES
    return all(name.endswith(".npy") for name in names) and (bool(names) or path.suffix.lower() == ".npz")


def refuse_pickle(path: Path) -> None:
    raise CheckpointError(
        f"{path.name} is a pickle (or a zip of pickles), which can run any program while it is read",
        values={"file": path},
        where=here(),
        hint=MSG_PICKLE.format(name=path.name, stem=path.stem),
    )


def read_npz(path: Path) -> dict[str, HostArray]:
    """Read an .npz file: name -> array."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            refuse_repeated(path, archive.namelist())
            check_gaps(path, archive, infos)
            check_memory(path, infos)
            return {info.filename.removesuffix(".npy"): read_member(path, archive, info) for info in infos}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        refuse(path, "the archive is damaged", reason=error)


def check_gaps(path: Path, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> None:
    """Refuse an archive whose directory skips a part of the file, or in which two entries share bytes."""
    end = least = 0  # least: names may be encoded in fewer bytes than here, and the local header may omit the name
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < least:
            what = f"{info.filename!r} overlaps the array before it"
            refuse(path, what, begins_at=info.header_offset, expected=least)
        least = info.header_offset + 30 + info.compress_size
        if info.header_offset > end + MAX_GAP:
            refuse(path, f"{info.header_offset - end} bytes before {info.filename!r} belong to no array")
        end = info.header_offset + 30 + len(info.filename.encode()) + info.compress_size
    if archive.start_dir > end + MAX_GAP:
        what = f"{archive.start_dir - end} bytes before the central directory belong to no array"
        refuse(path, what, listed=[info.filename for info in infos])


def check_memory(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    """Refuse arrays that need more memory than is free: they may be a thousand times larger than the file."""
    needed = sum([info.file_size for info in infos])
    if (free := free_bytes_if_short(needed)) is not None:
        refuse(
            path,
            f"its arrays need {size_text(needed)} of memory, and {size_text(free)} are free",
            "numpy.load(path)[name] for one array; or a computer with more memory",
            file_size=f"{path.stat().st_size} bytes",
            arrays=f"{needed} bytes",
            free=f"{free} bytes",
        )


def read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> HostArray:
    """Read one array, after checking its header against the size of its entry."""
    name = info.filename.removesuffix(".npy")
    if info.file_size > MAX_COMPRESSION_RATIO * info.compress_size + 4096:
        what = f"array {name!r} claims more bytes than its compressed data can hold"
        refuse(path, what, claimed=info.file_size, packed=info.compress_size)
    with archive.open(info) as file:
        try:
            shape, dtype = npy_header(file)
        except ValueError as error:
            refuse(path, f"array {name!r} has no readable header", reason=error)
        if dtype.hasobject:
            what = f"array {name!r} holds Python objects, which only unpickling could read"
            refuse(path, what, "save numeric arrays: numpy.savez(path, **arrays)", dtype=dtype)
        native = dtype.newbyteorder("=").name
        if native not in DType.table:
            what = f"array {name!r} is {dtype}, for which minflow has no dtype"
            refuse(path, what, f"array.astype(one of {', '.join(DType.table)})", dtype=dtype)
        if any(n < 0 for n in shape) or math.prod(n or 1 for n in shape) * max(dtype.itemsize, 1) >= 2**63:
            refuse(path, f"array {name!r} has a shape that no array can have", shape=shape)
        needed, there = math.prod(shape) * dtype.itemsize, info.file_size - file.tell()
        if needed != there:
            refuse(path, f"array {name!r} has {there} bytes, and its shape needs {needed}", shape=shape, dtype=dtype)
    with archive.open(info) as file:
        try:
            array = np.lib.format.read_array(file, allow_pickle=False)
            while file.read(1 << 16):  # zipfile verifies the CRC only at the end
                pass
        except (ValueError, MemoryError) as error:
            refuse(path, f"array {name!r} cannot be read", reason=error)
    return array.astype(native, order="C", copy=False)


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Read (shape, dtype) from the header of an npy file. Raises only ValueError, with the reason.

    NumPy passes the text to Python's tokenizer, whose errors are of many kinds.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 may have written
            version = np.lib.format.read_magic(file)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = reader(file)
            return tuple(map(operator.index, shape)), dtype
    except Exception as error:
        raise ValueError(str(error) or type(error).__name__) from error
