"""Read data files that may be damaged or not what they claim to be: npz, idx (MNIST's own format), CIFAR-10.

Sizes are checked in the headers before memory is allocated; nothing is written to disk or unpickled. Each problem
becomes a DataError with the file and what was expected. Read next: `mnist.py`.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..core.base.errors import DataError
from ..core.source_location import here
from ..io.files import open_regular
from ..io.other_formats import npy_header


def read_errors() -> tuple[type[BaseException], ...]:
    """The exceptions that the readers of zip, gzip, tar and npy raise for damaged input."""
    import tarfile
    import zipfile

    return (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        RuntimeError,
        SyntaxError,
        MemoryError,
        struct.error,
        zlib.error,
        zipfile.BadZipFile,
        tarfile.TarError,
    )


def file_error(path: Path, what: str, hint: str = "", **values: Any) -> DataError:
    """The error for an unusable file."""
    path = Path(path)
    if os.path.isfile(path):
        values["size"] = f"{os.path.getsize(path)} bytes"
    return DataError(
        f"{path.name}: {what}",
        values={"file": path, **values},
        where=here(),
        hint=hint or "delete the file: the next call fetches it again; or copy an undamaged one to its place",
    )


def read_npz(path: Path, expected: dict[str, tuple[tuple[int, ...], str]]) -> dict[str, np.ndarray]:
    """The arrays of an npz file. expected: name -> (shape, dtype); each must be there and match exactly."""
    import zipfile

    path = Path(path)
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
            if missing := [name for name in expected if name not in names]:
                raise file_error(
                    path,
                    f"has no array {', '.join(missing)}",
                    found=", ".join(sorted(names)[:8]) or "nothing",
                    expected=", ".join(expected),
                )
            for name, (shape, dtype) in expected.items():
                info = archive.getinfo(f"{name}.npy")
                with archive.open(info) as member:
                    result = npy_header(member)
                if result != (shape, np.dtype(dtype)):
                    raise file_error(
                        path,
                        f"its array {name} has another dtype or shape",
                        found=f"{result[1]}{list(result[0])}",
                        expected=f"{dtype}{list(shape)}",
                    )
                if info.file_size > 4096 + np.dtype(dtype).itemsize * int(np.prod(shape)):
                    raise file_error(
                        path, f"its array {name} claims {info.file_size} bytes, too many for {dtype}{list(shape)}"
                    )
        with open_regular(path) as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in expected}
    except DataError:
        raise
    except FileNotFoundError:
        raise file_error(path, "there is no such file") from None
    except read_errors() as error:
        raise file_error(path, "is damaged or not an npz file", reason=str(error) or type(error).__name__) from None


def read_idx(path: Path, ndim: int, limit: int = 1 << 28) -> np.ndarray:
    """`uint8[...]` of an idx file, gzipped or not: two zero bytes, the type 8, the number of axes, the sizes, the data.

    ndim: the required number of axes (3 for images, 1 for labels).  limit: maximum unpacked size in bytes.
    """
    import gzip

    path = Path(path)
    try:
        with open_regular(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = gzip.open(raw) if packed else raw
            head = file.read(4)
            if len(head) < 4 or head[:3] != b"\0\0\x08" or head[3] != ndim:
                raise file_error(
                    path,
                    f"is not an idx file of bytes with {ndim} axes",
                    found=head.hex(" ") or "an empty file",
                    expected=f"00 00 08 0{ndim}",
                )
            shape = struct.unpack(f">{ndim}I", file.read(4 * ndim))
            size = math.prod(shape)
            if math.prod(n or 1 for n in shape) > limit:
                raise file_error(path, f"claims the shape {list(shape)}: more than {limit} bytes")
            data, left = bytearray(), size + 1
            while left > 0 and (piece := file.read(min(left, 1 << 20))):  # allocate no more than the bytes that exist
                data += piece
                left -= len(piece)
    except DataError:
        raise
    except FileNotFoundError:
        raise file_error(path, "there is no such file") from None
    except read_errors() as error:
        raise file_error(path, "is damaged", reason=str(error) or type(error).__name__) from None
    if len(data) != size:
        more = "more" if len(data) > size else f"{len(data)}"
        raise file_error(path, f"its header says {list(shape)}, {size} bytes, but there are {more}")
    return np.frombuffer(data, "uint8").reshape(shape)


CIFAR_RECORD = 1 + 3 * 32 * 32  # a label, then the red, green and blue planes
CIFAR_ROWS = 10_000
CIFAR100_ROWS = {True: 50_000, False: 10_000}
MAX_UNPACKED_BYTES = 1 << 28  # bytes; the whole archives have 184,320,000 and 184,440,000


class LimitedReader:
    """A readable stream of at most `limit` bytes, because a few packed bytes may unpack to any size."""

    def __init__(self, file: Any, limit: int):
        self.file, self.remaining = file, limit

    def read(self, size: int) -> bytes:
        data = self.file.read(min(size, self.remaining + 1))
        self.remaining -= len(data)
        if self.remaining < 0:
            raise ValueError("it unpacks to more than a CIFAR archive")
        return data


def read_cifar10(path: Path, train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images `uint8[n, 3, 32, 32]` and labels `uint8[n]` from `cifar-10-binary.tar.gz`."""
    members = [f"data_batch_{i}.bin" for i in range(1, 6)] if train else ["test_batch.bin"]
    rows = cifar_rows(path, "CIFAR-10", members, CIFAR_ROWS, CIFAR_RECORD)
    check_labels(path, rows[:, 0], 10)
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0].copy()


def read_cifar100(path: Path, train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images `uint8[n, 3, 32, 32]` and labels `uint8[n]` of the 100 classes from `cifar-100-binary.tar.gz`; in the
    file, each label follows that of one of 20 groups.
    """
    members = ["train.bin" if train else "test.bin"]
    rows = cifar_rows(path, "CIFAR-100", members, CIFAR100_ROWS[bool(train)], CIFAR_RECORD + 1)
    check_labels(path, rows[:, 1], 100)
    return rows[:, 2:].reshape(-1, 3, 32, 32), rows[:, 1].copy()


def cifar_rows(path: Path, dataset: str, members: list[str], count: int, record: int) -> np.ndarray:
    """`uint8[n, record]`, the records of these members, read without unpacking the archive to disk.

    Only regular files with these names and exactly `count` records are read; other members are ignored.
    """
    import gzip
    import tarfile

    path = Path(path)
    parts: dict[str, bytes] = {}
    try:
        with (
            open_regular(path) as raw,
            gzip.open(raw) as packed,
            tarfile.open(fileobj=LimitedReader(packed, MAX_UNPACKED_BYTES), mode="r|") as archive,  # type: ignore[call-overload]
        ):
            for number, member in enumerate(archive):
                name = member.name.rpartition("/")[2]
                if name in members and name not in parts:
                    if not member.isreg() or member.size != count * record:
                        raise file_error(
                            path,
                            f"its member {name} is not a file of {count * record} bytes",
                            found=f"{member.size} bytes",
                        )
                    file = archive.extractfile(member)
                    parts[name] = file.read(member.size) if file else b""
                    if len(parts[name]) != member.size:
                        raise file_error(path, f"ends inside {name}")
                if len(parts) == len(members):
                    break
                if number >= 100:
                    raise file_error(path, f"holds more than the {dataset} archive")
    except DataError:
        raise
    except FileNotFoundError:
        raise file_error(path, "there is no such file") from None
    except read_errors() as error:
        raise file_error(
            path, "is damaged or not a tar.gz archive", reason=str(error) or type(error).__name__
        ) from None
    if missing := [name for name in members if name not in parts]:
        hint = (
            f"minflow reads the binary version, {dataset.lower()}-binary.tar.gz: "
            "the Python version consists of pickles, which can run any program"
        )
        raise file_error(path, f"has no member {', '.join(missing)}", hint)
    return np.frombuffer(bytearray().join(parts[name] for name in members), "uint8").reshape(-1, record)


def check_labels(path: Path, labels: np.ndarray, classes: int) -> None:
    """Refuse labels outside the classes."""
    if labels.size and labels.max() >= classes:
        raise file_error(
            path,
            f"has the label {labels.max()} at position {int(labels.argmax())}",
            expected=f"labels 0 to {classes - 1}",
        )
