"""Implementation of `save` and `load`: nested dicts, lists and tuples of tensors and numbers in one safetensors file.

Other programs see a plain safetensors file: tensors under their dotted path. Its metadata holds the structure
(`tree.py`) and a sha256 of everything. Read next: `tree.py`, `container.py`, `atomic.py`.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ..core.base.errors import CheckpointError, MissingFileError
from ..core.base.placement import Placement
from ..core.files.atomic import old_file_state, write_hint
from ..core.source_location import fail, here
from ..core.spec import Device, spec_of
from ..core.tensor import Tensor
from ..nn.module import Module
from . import atomic, container, file_objects, files, objects, other_formats, ranks, torch_zip
from .tree import MalformedStructure, Reader, Writer

DATA_FILE = "data.safetensors"  # the file in a folder that `save` created
FORMAT_VERSION = 1


def save(obj: Any, path: str | os.PathLike | BinaryIO, dynamic: Any = None, rank: int | None = None) -> None:
    """rank: the one that writes for all ranks; None if each writes its own."""
    stream = path if hasattr(path, "write") else None
    path = Path() if stream is not None else files.checked_path(path, "save", 'flow.save(state, "model.safetensors")')
    if not isinstance(obj, dict | list | tuple) and hasattr(obj, "state_dict") and not objects.is_savable(obj):
        hint = "flow.save(model.state_dict(), path), and later model.load_state_dict(flow.load(path))"
        fail(CheckpointError, f"save: a {type(obj).__name__} cannot be saved as an object, only its tensors", hint)
    if dynamic is not None:
        what = "save: dynamic is only for graphs, whose inputs it describes"
        fail(CheckpointError, what, "flow.save(graph, path, dynamic=...)", dynamic=dynamic)
    if rank is not None:
        ranks.check_rank("global_dst_rank", rank)
    writer = Writer(rank)
    tree = writer.encode(obj)
    renumber_objects(tree, {})
    header = {
        "version": FORMAT_VERSION,
        "tree": tree,
        **({"metadata": writer.metadata} if any(writer.metadata) else {}),
    }
    structure = json.dumps(header, separators=(",", ":"), ensure_ascii=False)

    def write() -> None:
        if stream is not None:
            file_objects.write(stream, lambda out: container.write(out, writer.arrays, structure))
        else:
            write_file(path, writer.arrays, structure)

    if rank is None:
        write()
    else:
        ranks.on_rank(rank, "save", write)


def write_file(path: Path, arrays: dict[str, Any], structure: str) -> None:
    """Write a file, or a folder with one if the path has no suffix and is not a file: all of it, or raise an error."""
    file, created = path, False
    try:
        if not path.suffix and not os.path.isfile(path):
            if os.path.lexists(path) and not os.path.isdir(path):
                what = f"save: {path} must be a folder, since it has no suffix, got a file"
                fail(CheckpointError, what, f'"{path}.safetensors", or remove the file first', path=str(path))
            if os.path.isfile(path / files.GRAPH):
                what = f"save: {path} holds a saved graph"
                fail(CheckpointError, what, "another folder; or remove this one first", path=str(path))
            created = not os.path.isdir(path)
            path.mkdir(exist_ok=True)
            file = path / DATA_FILE
        atomic.replace(file, lambda out: container.write(out, arrays, structure))
    except OSError as error:
        if created:
            with suppress(OSError):
                path.rmdir()
        size = sum(array.nbytes for array in arrays.values())
        refuse_unwritten(error, file, size, write_hint(path), old_file=old_file_state(file))


def refuse_unwritten(error: OSError, path: Path, size: int, hint: str, **values: str) -> NoReturn:
    """Raise the error for a save of `size` bytes that the system refused."""
    kind = MissingFileError if isinstance(error, FileNotFoundError) else CheckpointError
    raise kind(
        f"save: {path} cannot be written: {error.strerror or error}",
        values={"file": path, "size": f"{size:,} bytes", **{name.replace("_", " "): x for name, x in values.items()}},
        where=here(),
        hint=hint,
    ) from error


def renumber_objects(tree: Any, numbers: dict[int, int]) -> None:
    """Replace the ids of tensors by small integers, so that equal states give equal files."""
    if isinstance(tree, list):
        if len(tree) == 3 and tree[0] == "tensor" and isinstance(tree[2], dict):
            tree[2]["object"] = numbers.setdefault(tree[2]["object"], len(numbers))
            return
        for entry in tree:
            renumber_objects(entry, numbers)


def load_on_ranks(path: str | os.PathLike | BinaryIO, map_location: Any, rank: int, trusted: bool) -> Any:
    """`load` by one rank, which all ranks wait for."""
    ranks.check_rank("global_src_rank", rank)
    placement = map_location if isinstance(map_location, Placement) else None
    return ranks.load(rank, placement, lambda: load(path, None if placement else map_location, trusted))


def load(path: str | os.PathLike | BinaryIO, map_location: Any, trusted: bool = False) -> Any:
    """trusted: True if the file may run the code of the classes that it names."""
    if isinstance(map_location, Placement):
        what = "load: map_location is a placement, for global tensors, and no rank reads the file for all"
        fail(CheckpointError, what, "flow.load(path, map_location=placement, global_src_rank=0)")
    if hasattr(path, "read"):
        with tempfile.TemporaryDirectory(prefix="minflow.") as folder:
            return load(file_objects.copy(path, folder), map_location, trusted)
    path = file = files.checked_path(path, "load", 'flow.load("model.safetensors")')
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu")
    map_location = None if map_location is None or callable(map_location) else Device(map_location)
    try:
        status = files.status(path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            file = find_data_file(path)
        kind = other_formats.kind_of(file)
        if kind == "pickle":
            other_formats.refuse_pickle(file)
        if kind == "torch":
            result = tensors_of(torch_zip.read(file), {})
            return result if map_location is None else to_device(result, map_location)
        if kind == "npz":
            arrays, structure = other_formats.read_npz(file), None
        else:
            arrays, structure = container.read(file)
    except FileNotFoundError:
        refuse_missing(path)
    except OSError as error:
        raise CheckpointError(
            f"load: {file} cannot be read: {error.strerror or error}",
            values={"file": file},
            where=here(),
            hint="check its permissions, and whether it is a file",
        ) from error
    result = (
        {name: Tensor(array, spec_of(array)) for name, array in arrays.items()}
        if structure is None
        else rebuild(file, arrays, structure, trusted)
    )
    return result if map_location is None else to_device(result, map_location)


def tensors_of(x: Any, known: dict) -> Any:
    """Convert the tensors of a PyTorch file to ours; tied tensors stay tied."""
    if isinstance(x, torch_zip.SavedTensor):
        if x.view_key not in known:
            known[x.view_key] = Tensor(x.array, spec_of(x.array))
        return known[x.view_key]
    if isinstance(x, dict):
        return with_metadata(x, type(x)((key, tensors_of(value, known)) for key, value in x.items()))
    return type(x)([tensors_of(value, known) for value in x]) if type(x) in (list, tuple) else x


def with_metadata(x: dict, result: dict) -> dict:
    """Return `result` with the module versions of `x`, if any."""
    if hasattr(x, "_metadata"):
        result._metadata = x._metadata  # type: ignore[attr-defined]
    return result


def rebuild(file: Path, arrays: dict, structure: str, trusted: bool) -> Any:
    try:
        header = json.loads(structure, object_pairs_hook=container.unique_pairs)
        if not isinstance(header, dict) or type(header.get("version")) is not int or "tree" not in header:
            raise MalformedStructure("a version and a tree", header)
    except (ValueError, RecursionError) as error:
        container.refuse(file, "the structure text is damaged", reason=str(error) or type(error).__name__)
    except MalformedStructure as error:
        container.refuse(file, f"the structure text is damaged: expected {error.expected}", got=error.actual)
    if header["version"] != FORMAT_VERSION:
        container.refuse(
            file,
            f"it has version {header['version']} of the format, and this minflow reads version {FORMAT_VERSION}",
            "a newer minflow",
            version=header["version"],
        )
    try:
        return Reader(arrays, header.get("metadata"), trusted).decode(header["tree"])
    except objects.HoldsObjects as error:
        first_object = str(error)
    except MalformedStructure as error:
        container.refuse(file, f"the structure text is damaged: expected {error.expected}", got=error.actual)
    container.refuse(
        file,
        "it holds whole objects, and loading them runs code that the file names",
        "flow.load(path, weights_only=False), if you trust the file and its classes can be imported; or for a few "
        "classes flow.serialization.add_safe_globals([...]); or save model.state_dict(), which any load reads",
        first_object=first_object,
    )


def to_device(x: Any, device: Device) -> Any:
    """Copy a structure, with its tensors moved to `device`."""
    if isinstance(x, Tensor):
        return x.to(device=device)
    if isinstance(x, Module):
        return x.to(device)
    if isinstance(x, dict):
        return with_metadata(x, type(x)((k, to_device(v, device)) for k, v in x.items()))
    return type(x)([to_device(v, device) for v in x]) if isinstance(x, list | tuple) else x


def find_data_file(folder: Path) -> Path:
    """Return the file in a folder: the one that `save` wrote, or the only safetensors file."""
    if (folder / DATA_FILE).is_file():
        return folder / DATA_FILE
    if all(os.path.lexists(folder / name) for name in files.SAVED_GRAPH):
        container.refuse(
            folder,
            "a saved graph, with its computation; flow.load reads only tensors",
            f'graph = flow.load_graph("{folder}"), or its weights: flow.load("{folder / files.WEIGHTS}")',
            it_holds=", ".join(files.SAVED_GRAPH),
        )
    names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    if len(names) == 1:
        return folder / names[0]
    return container.refuse(
        folder,
        f"a folder in which flow.load finds no {DATA_FILE}",
        "the path of one file in it",
        safetensors_files=", ".join(names[:6]) or "none",
    )


def refuse_missing(path: Path) -> NoReturn:
    similar: list[str] = []
    with suppress(OSError):
        similar = sorted(name for name in os.listdir(path.parent) if name.startswith(path.stem) and name != path.name)[
            :4
        ]
    raise MissingFileError(
        f"load: there is no file {path}",
        values={"folder": files.absolute(path.parent), **({"there": ", ".join(similar)} if similar else {})},
        where=here(),
        hint=f'flow.load("{path.with_name(similar[0])}")'
        if similar
        else "os.getcwd() says where a relative path begins",
    )
