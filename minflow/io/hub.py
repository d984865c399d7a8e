"""`flow.hub` and `utils.model_zoo`: pretrained weights of other programs, from files that are here already.

Nothing is downloaded: the error for a missing file says where to put it. Read next: `checkpoint.py`.
"""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import urlparse as urlparse

from ..core.base.errors import FileError
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail
from . import load as _load

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "load_url", "set_dir"]
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the part of a file's name that is its hash
DIRECTORY: list[str] = []  # the folder of `set_dir`


def get_dir() -> str:
    """The folder of fetched files: that of set_dir, else $TORCH_HOME/hub, else ~/.cache/torch/hub."""
    home = os.environ.get("TORCH_HOME") or os.path.join("~", ".cache", "torch")
    return DIRECTORY[-1] if DIRECTORY else os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str) -> None:
    """Set the folder of fetched files."""
    DIRECTORY[:] = [os.fspath(d)]


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raise FileError, unless the file dst exists."""
    if not os.path.exists(dst):
        fail(FileError, "hub: nothing is downloaded", f"fetch {url} and put it at {dst}", url=url)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load the file of this name from model_dir, by default the folder `checkpoints` of get_dir(). See `flow.load`.

    Raises FileError if it is not there: nothing is downloaded.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(url.partition("?")[0]))
    download_url_to_file(url, path)
    return _load(path, map_location=map_location)


load_url = load_state_dict_from_url
__getattr__ = _name_hints("flow.hub", globals())
