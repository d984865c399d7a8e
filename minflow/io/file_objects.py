"""Save to and load from open files instead of paths: `flow.save(state, io.BytesIO())`.

Reading goes through a temporary copy, so that all checks of `load` apply. Read next: `checkpoint.py`.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from typing import Any, BinaryIO

from ..core.base.errors import CheckpointError, MinflowError
from ..core.source_location import here


def write(
    stream: Any,
    put: Callable[[BinaryIO], None],
    what: str = "save",
    error_class: type[MinflowError] = CheckpointError,
    example: str = "model.safetensors",
) -> None:
    """Write to an open file at its position. Raises error_class if the bytes cannot be written.

    what: the name of the caller, for the error.  example: a file name for the hint.
    """
    try:
        stream.write(b"")
        put(stream)
        if isinstance(stream, io.BufferedWriter | io.BufferedRandom):  # report a full disk now, not when it is closed
            stream.flush()
    except MinflowError:
        raise  # of an earlier check on a device, which waited for this read
    except (OSError, TypeError, ValueError) as error:
        raise error_class(
            f"{what}: the open file cannot be written",
            values={"file": stream, "reason": error},
            where=here(),
            hint=f'open("{example}", "wb"), or io.BytesIO()',
        ) from error


def copy(stream: Any, folder: str) -> str:
    """Copy the rest of an open file into `folder` and return the path. Raises CheckpointError if it cannot be read."""
    name = os.path.basename(str(getattr(stream, "name", ""))) or "stream"
    path = os.path.join(folder, name if "." in name else f"{name}.safetensors")
    with open(path, "wb") as file:
        try:
            shutil.copyfileobj(stream, file)
        except (OSError, TypeError, ValueError) as error:
            raise CheckpointError(
                "load: the open file cannot be read",
                values={"file": stream, "reason": error},
                where=here(),
                hint='open("model.safetensors", "rb"), or io.BytesIO(...)',
            ) from error
    return path
