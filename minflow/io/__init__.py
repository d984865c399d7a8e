"""Save and load nested objects: one safetensors file, which also holds the structure and a checksum.

`checkpoint.py` implements `save` and `load`, `ranks.py` those by one of several ranks; `tree.py` turns nested objects
into text and tensors, `container.py` reads and writes the file, `atomic.py` makes writes all or nothing,
`other_formats.py` and `torch_zip.py` read the files of other programs. No file is ever unpickled.
Read next: `checkpoint.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from .safe_globals import (
    add_safe_globals as add_safe_globals,
    clear_safe_globals as clear_safe_globals,
    get_safe_globals as get_safe_globals,
    safe_globals as safe_globals,
)

# "module.Class" -> function that saves its objects: `deploy` registers graphs and jobs by name, so that neither is
# imported before a program uses one.
SAVERS: dict[str, Callable] = {}
# The version of pickle that programs pass as pickle_protocol, which is accepted: no file is pickled.
DEFAULT_PROTOCOL = 2


def save(
    obj: Any,
    path: str | os.PathLike | BinaryIO,
    global_dst_rank: int | None = None,
    *,
    dynamic: Mapping | None = None,
    pickle_module: Any = None,
    pickle_protocol: Any = None,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors, NumPy arrays, numbers, strings, bools, None, and nested dicts, lists and tuples of them to `path`,
    or a graph with its computation. A whole module, or an object of a class of the program, is saved by its attributes
    and the names of its classes, which must be at the top level of a module; `load` then needs weights_only=False.

    A path with a suffix (`"model.safetensors"`) is a file; one without (`"checkpoint"`) is a folder that contains it,
    unless a file of that name exists, which is replaced.
    An open file, or an io.BytesIO, is written at its position. PyTorch's pickle options are accepted.
    The old file stays until the new one is complete and on disk. Tensors that share a storage are written once.

    global_dst_rank: the rank that writes global tensors, whole, and all other values as it has them. All ranks call
    `save`, which returns when the file is complete. Any number of ranks can load it.

    An nn.Graph that was called, or a predict job, is saved with its computation and its tensors, so that
    `flow.load_graph` needs none of their code. path: a folder. dynamic: the input axes whose sizes may differ after
    loading, `{"x": {0: "batch"}}`. Raises GraphError if it cannot be saved, before anything is written. See
    docs/deployment.md.

    Raises CheckpointError if something in `obj` is not data (with its position: `state["opt"]["fn"]`), or if the file
    cannot be written; then the old file is unchanged.
    """
    from . import checkpoint  # imported on first use, with the standard modules that it needs

    for kind in type(obj).__mro__ if global_dst_rank is None else ():
        if write := SAVERS.get(f"{kind.__module__}.{kind.__name__}"):
            return write(obj, path, dynamic)
    checkpoint.save(obj, path, dynamic, global_dst_rank)


def load(
    path: str | os.PathLike | BinaryIO,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    global_src_rank: int | None = None,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load the object that `save` wrote to `path`, or a dict name -> tensor from another program's file.

    `model.load_state_dict(flow.load("torch_model.safetensors"))` loads the weights of a PyTorch model.
    path: also an open file or an io.BytesIO.  map_location: the device for the tensors; a dict or function of device
    names is accepted: all tensors are on the CPU.
    global_src_rank: the rank that reads the file. All ranks call `load` and get global tensors on that rank, with sbp
    broadcast, or on a placement given as map_location.
    weights_only: False to build whole modules and other objects too, if `save` wrote any. This imports the modules of
    their classes and runs code that the file names, so use it only for a file that you trust.
    Options of pickles are accepted: no file is ever unpickled.  Other programs' files: safetensors, .npz, and PyTorch's
    zip files (.pt, .pth) if they hold only plain data. Raises CheckpointError if the file is damaged or of another
    kind; for other pickles the error says how to convert them. A missing file is also a FileNotFoundError.
    """
    from . import checkpoint

    if global_src_rank is not None:
        return checkpoint.load_on_ranks(path, map_location, global_src_rank, weights_only is False)
    return checkpoint.load(path, map_location, weights_only is False)
