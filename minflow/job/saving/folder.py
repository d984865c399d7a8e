"""The files of a checkpoint.

`<path>/<variable>/out` holds raw little-endian elements in C order, `<path>/<variable>/meta` their shape and dtype as
protobuf text; the empty `<path>/snapshot_done` is written last. A checkpoint is written to a temporary folder and
renamed, so a partial one is never visible. Files are not trusted: the claims of a meta are checked against the file
size before memory is allocated, and links out of the folder are not followed. Independent of sessions and jobs. Read
next: `manager.py`.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from ...core.backend import namespace
from ...core.base.errors import CheckpointError, clean
from ...core.host import HostArray
from ...core.source_location import here
from ...core.spec import DType, as_dtype
from ...io import atomic
from ...io.files import absolute, checked_path

DATA_FILE, META_FILE, DONE_FILE = "out", "meta", "snapshot_done"
MAX_META_BYTES = 1 << 16  # bytes; 64 axes need about a thousand
MAX_DEPTH = 64  # largest number of axes, and of nested folders in a name

# dtype <-> its name in a meta; the enum value of each name, for metas that use values.
META_NAMES = {
    "float16": "kFloat16",
    "float32": "kFloat",
    "float64": "kDouble",
    "int8": "kInt8",
    "int32": "kInt32",
    "int64": "kInt64",
    "uint8": "kUInt8",
    "bool": "kBool",
}
DTYPES = {name: dtype for dtype, name in META_NAMES.items()} | {"kChar": "int8"}
ENUM_NAMES = {
    1: "kChar",
    2: "kFloat",
    3: "kDouble",
    4: "kInt8",
    5: "kInt32",
    6: "kInt64",
    7: "kUInt8",
    9: "kFloat16",
    12: "kBool",
}


def refuse(what: str, hint: str, error: BaseException | None = None, /, **values: object) -> NoReturn:
    """Raise a CheckpointError with four parts; strings are shown without quotes."""
    # "job train_job" is not an identifier and is kept
    named = {name.replace("_", " ") if name.isidentifier() else name: shorten(x) for name, x in values.items()}
    raise CheckpointError(what, values=named, where=here(), hint=hint) from error


def shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


def check_path(path: object, what: str) -> Path:
    """The absolute path. Called before waiting for the queue, so that an invalid path raises CheckpointError early."""
    return absolute(checked_path(path, what, f'{what}("./models_1")'))


# ---- one variable in a folder ----------------------------------------------------------------------------------------


class FileVariable:
    """A variable of a checkpoint, read lazily: `.name`, `.shape`, `.dtype`, `.numpy()`.

    shape and dtype are None if the folder has no meta (oldest checkpoints); then they come from the variable that is
    loaded. Raises CheckpointError if the meta is damaged or the file does not have the size that it claims.
    """

    __slots__ = ("name", "folder", "root", "shape", "dtype")

    def __init__(self, folder: str | os.PathLike, name: str = "", root: Path | None = None):
        self.folder = Path(folder)
        self.name = name or self.folder.name
        self.root = os.path.realpath(self.folder if root is None else root)
        self.shape: tuple[int, ...] | None = None
        self.dtype: DType | None = None
        size = self.size_of(self.path)
        meta = self.folder / META_FILE
        if os.path.lexists(meta):
            if self.size_of(meta) > MAX_META_BYTES:
                self.damaged(f"the meta has more than {MAX_META_BYTES:,} bytes", meta=meta)
            try:
                text = meta.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                self.damaged("the meta cannot be read", error, meta=meta, reason=error)
            try:
                self.shape, self.dtype = parse(text)
            except ValueError as error:
                self.damaged(f"the meta is damaged: {error}", None, meta=meta)
            self.check_size(size, self.shape, self.dtype)

    @property
    def path(self) -> Path:
        """The file of its elements."""
        return self.folder / DATA_FILE

    @property
    def ndim(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    def size_of(self, file: Path) -> int:
        """Size in bytes of a regular file inside the checkpoint. Raises CheckpointError for anything else."""
        try:
            inside = os.path.realpath(file)
            if os.path.commonpath([inside, self.root]) != self.root:
                self.damaged(f"{file.name} is a link that leads out of the checkpoint", leads_to=inside)
            status = os.stat(inside)
        except FileNotFoundError:
            self.damaged(f"there is no file {file.name}", file=file)
        except OSError as error:
            self.damaged(f"{file.name} cannot be read", error, file=file, reason=error.strerror or error)
        if not stat.S_ISREG(status.st_mode):
            self.damaged(f"{file.name} is not a plain file", file=file)
        return status.st_size

    def check_size(self, size: int, shape: tuple[int, ...], dtype: DType) -> None:
        expected = math.prod(shape) * dtype.itemsize
        if size != expected:
            lost = "truncated" if size < expected else "too long, or of another variable"
            self.damaged(
                f"its file is {lost}: {size:,} bytes, and {dtype.name}{list(shape)} has {expected:,}", file=self.path
            )

    def damaged(self, what: str, error: BaseException | None = None, /, **values: object) -> NoReturn:
        hint = "save or copy the checkpoint again; saving never leaves half of one, so it was damaged later"
        refuse(f"variable {self.name!r} of the checkpoint: {what}", hint, error, **{"folder": self.folder, **values})

    def numpy(self) -> HostArray:
        """Read its elements into a new array."""
        if self.shape is None:
            what = f"variable {self.name!r} of the checkpoint has no meta, so its shape and dtype are not known"
            hint = (
                "flow.load_variables gives it the shape and dtype of the variable of that name; "
                f'np.fromfile("{self.path}", "float32") reads the raw elements'
            )
            refuse(what, hint, folder=self.folder)
        return self.read(self.shape, self.dtype)

    def read(self, shape: Any, dtype: Any) -> HostArray:
        """Read its elements as an array of this shape and dtype; the file must have exactly that size."""
        self.check_size(self.size_of(self.path), shape, dtype)
        try:
            array = namespace().empty(shape, dtype.np.newbyteorder("<"))
            with open(self.path, "rb", buffering=0) as file:
                view, got = array.reshape(-1).view("uint8").data, 0
                while got < array.nbytes and (n := file.readinto(view[got:])):
                    got += n
        except (OSError, MemoryError, ValueError) as error:
            self.damaged(
                "its elements cannot be read",
                error,
                file=self.path,
                reason=getattr(error, "strerror", None) or str(error) or "out of memory",
            )
        if got < array.nbytes:
            self.damaged(f"its file ended after {got:,} of {array.nbytes:,} bytes", file=self.path)
        return array.astype(dtype.np, copy=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        kind = "shape unknown" if self.shape is None or self.dtype is None else f"{self.dtype.name}{list(self.shape)}"
        return clean(f"<variable {self.name} in a file: {kind}, {self.folder}>")


# ---- meta ------------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r"\s+|#[^\n]*|([A-Za-z_]\w*|-?\d+|[{}\[\]:,;])")


def meta_text(shape: tuple[int, ...], dtype: DType) -> str:
    """The meta of an array in protobuf's text format."""
    return "shape {\n" + "".join(f"  dim: {n}\n" for n in shape) + f"}}\ndata_type: {META_NAMES[dtype.name]}\n"


def parse(text: str) -> tuple[tuple[int, ...], DType]:
    """(shape, dtype) of a meta. Raises ValueError with the reason."""
    tokens, at = [], 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"unexpected {text[at]!r} in line {text.count(chr(10), 0, at) + 1}")
        if token[1] is not None and token[1] not in ":,;":  # `shape: {` and `shape {` are the same
            tokens.append(token[1])
        at = token.end()
    tokens.reverse()
    shape: list[int] = []
    kind = None
    while tokens:
        key = tokens.pop()
        if key == "shape" and tokens and tokens.pop() == "{":
            while (inner := pop(tokens)) == "dim":
                shape += dims(tokens)
            if inner != "}":
                raise ValueError(f"{inner!r} inside shape")
        elif key == "data_type":
            kind = pop(tokens)
        else:
            raise ValueError(f"{shorten(key)!r} is neither a shape nor a data_type")
    if kind is None:
        raise ValueError("it names no data_type")
    kind = ENUM_NAMES.get(int(kind), kind) if kind.isdigit() and len(kind) < 4 else kind
    if kind not in DTYPES:
        raise ValueError(f"no variable has the data_type {shorten(kind)}; {', '.join(DTYPES)} are known")
    if len(shape) > MAX_DEPTH:
        raise ValueError(f"{len(shape)} axes")
    return tuple(shape), as_dtype(DTYPES[kind])


def pop(tokens: list[str]) -> str:
    if not tokens:
        raise ValueError("it ends too early")
    return tokens.pop()


def dims(tokens: list[str]) -> list[int]:
    """Parse the value of `dim`: one size, or several in brackets."""
    values = [pop(tokens)]
    if values == ["["]:
        values = []
        while (token := pop(tokens)) != "]":
            values.append(token)
    for token in values:
        if not token.isdigit() or len(token) > 18:
            raise ValueError(f"{shorten(token)} is not the size of an axis")
    return [int(token) for token in values]


def is_temporary(name: str) -> bool:
    """True if this is the name of a folder that is being written."""
    return name[:1] == "." and name.endswith(".tmp")


# ---- reading a folder ------------------------------------------------------------------------------------------------


def variables_in(root: Path) -> dict[str, FileVariable]:
    """Name -> variable for all variables in a folder, sorted by name. A "/" in a name means a nested folder."""
    variables: dict[str, FileVariable] = {}

    def visit(folder: Path, name: str, depth: int) -> None:
        if name and os.path.lexists(folder / DATA_FILE) and not (folder / DATA_FILE).is_dir():
            variables[name] = FileVariable(folder, name, root)
        if depth == MAX_DEPTH:
            return
        for entry in entries(folder):
            inner = folder / entry
            if inner.is_symlink() and os.path.isdir(inner):  # it may lead out of the folder, or form a cycle
                what = f"{entry!r} of the checkpoint is a link to a folder"
                refuse(what, "copy what it leads to in its place", folder=folder, leads_to=os.path.realpath(inner))
            if os.path.isdir(inner) and not is_temporary(entry):
                visit(inner, f"{name}/{entry}" if name else entry, depth + 1)

    visit(root, "", 0)
    return variables


# ---- writing a folder ------------------------------------------------------------------------------------------------


def check_names(names: list[str], what: str) -> None:
    """Raise CheckpointError for names that are not valid paths inside the folder, or collide with another file."""
    taken = set(names)
    for name in names:
        parts = name.split("/") if isinstance(name, str) else []
        reason = (
            "names must be strings"
            if not isinstance(name, str)
            else "it would be outside the checkpoint"
            if ".." in parts or name[:1] in ("/", "~") or re.match(r"[A-Za-z]:", name)
            else "a part of it is empty"
            if not all(parts) or "." in parts
            else "it has characters that no file may have"
            if re.search(r"[\0-\x1f\x7f\\\ud800-\udfff]", name)
            else f"{DONE_FILE} marks a finished checkpoint"
            if parts[0] == DONE_FILE
            else "a part of it is longer than 255 bytes"
            if max(len(part.encode()) for part in parts) > 255
            else "it is nested too deeply"
            if len(parts) > MAX_DEPTH
            else "it ends like a temporary folder"
            if any(map(is_temporary, parts))
            else f"that path is a file of variable {owner!r}"
            if (owner := next(owners_of(parts, taken), None)) is not None
            else ""
        )
        if reason:
            what = f"{what}: {shorten(repr(name))} cannot be the name of a variable in a checkpoint: {reason}"
            refuse(what, "a name of letters, digits, - and _", name=repr(name))


def owners_of(parts: list[str], names: set[str]) -> Iterator[str]:
    """The variables whose files would collide with a folder of this name."""
    return (
        owner
        for i, part in enumerate(parts)
        if i and part in (DATA_FILE, META_FILE) and (owner := "/".join(parts[:i])) in names
    )


def write(path: Path, arrays: Mapping[str, HostArray], what: str) -> None:
    """Write these arrays into the folder `path`, all or nothing. Raises CheckpointError and leaves the folder as it
    was.
    """
    check_names(list(arrays), what)
    size = sum(array.nbytes for array in arrays.values())
    try:
        refuse_full(path, what)
        atomic.new_folder(path, lambda stage: fill(stage, arrays), DONE_FILE)
    except OSError as error:
        what = f"{what}: {path} cannot be written: {error.strerror or error}"
        hint = f"check that {path.parent} has free space (df -h) and is writable, or save to another folder"
        refuse(what, hint, error, path=path, size=f"{size:,} bytes in {len(arrays)} variables", left_behind="nothing")


def fill(stage: Path, arrays: Mapping[str, HostArray]) -> None:
    """Write a whole checkpoint into an empty folder and flush it to disk."""
    folders = {stage}
    for name, array in arrays.items():
        folder = stage.joinpath(*name.split("/"))
        folder.mkdir(parents=True, exist_ok=True)
        while folder not in folders:
            folders.add(folder)
            folder = folder.parent
        folder = stage.joinpath(*name.split("/"))
        little = namespace().ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
        put(folder / DATA_FILE, little.view("uint8").data)
        put(folder / META_FILE, meta_text(array.shape, as_dtype(array.dtype.newbyteorder("="))).encode())
    put(stage / DONE_FILE, b"")
    for folder in folders:
        atomic.sync_folder(folder)


def put(file: Path, data: Any) -> None:
    """Write a new file and flush it to disk."""
    with open(file, "xb") as out:  # buffered, so that write() is complete or raises
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def entries(path: Path) -> list[str]:
    """Sorted names of the entries of a folder. Raises CheckpointError if it cannot be read."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        what = f"the folder {path} cannot be read"
        refuse(what, "check that it exists, and its permissions", error, reason=error.strerror or error)


def refuse_full(path: Path, what: str) -> None:
    """Raise CheckpointError if `path` exists and is not an empty folder. Remnants of a killed save are removed."""
    if not os.path.exists(path):
        return
    if not os.path.isdir(path):
        refuse(f"{what}: {path} must be a folder, got a file", "another name", path=path)
    atomic.sweep(path)
    if names := entries(path):
        half = (
            ""
            if DONE_FILE in names or not any(os.path.isfile(path / name / DATA_FILE) for name in names)
            else " (a save that did not finish)"
        )
        refuse(
            f"{what}: the folder {path} is not empty{half}, and a checkpoint is never written over another one",
            f'another folder for each save, or remove this one first: import shutil; shutil.rmtree("{path}")',
            path=path,
            it_holds=", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else ""),
        )
